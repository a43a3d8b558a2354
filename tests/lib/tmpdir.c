/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "lib/tmpdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fx_dir_make(struct fx_dir *d)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(d->path, sizeof(d->path), "%s/stoker-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(d->path)) {
        perror(d->path);
        abort();
    }
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    (void)s;
    (void)type;
    (void)ftw;
    return remove(path);
}

void fx_dir_remove(const struct fx_dir *d)
{
    if (strstr(d->path, "stoker-test-"))
        (void)nftw(d->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fx_dir_at(const struct fx_dir *d, const char *name, char *buf, size_t cap)
{
    (void)snprintf(buf, cap, "%s/%s", d->path, name);
    return buf;
}
