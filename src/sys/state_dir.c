/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/state_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *stk_state_dir(void)
{
    const char *home = getenv("HOME"),
               *xdg = getenv("XDG_STATE_HOME"); // NOLINT(concurrency-mt-unsafe)
    char *path = NULL;
    int n;

    if (geteuid() == 0)
        return strdup("/var/lib/stoker");
    if (xdg && xdg[0] == '/')
        n = asprintf(&path, "%s/stoker", xdg);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s/.local/state/stoker", home);
    else
        return NULL;
    return n < 0 ? NULL : path;
}
