/* SPDX-License-Identifier: Apache-2.0 */
#include "client/away.h"

#include <errno.h>

#define SILENT_S 1.0 /* most restarts are over before anybody needs to know */
#define FIRST_MS 100
#define LAST_MS 1000

bool stk_away_is(int rc)
{
    return rc == -EHOSTDOWN || rc == -EPIPE || rc == -ETIMEDOUT;
}

bool stk_away_lost(struct stk_away *a, double now)
{
    bool say;

    if (a->tries++ == 0)
        a->since = now;
    say = !a->said && now - a->since >= SILENT_S;
    a->said = a->said || say;
    return say;
}

void stk_away_back(struct stk_away *a)
{
    *a = (struct stk_away){0};
}

int stk_away_pause_ms(const struct stk_away *a)
{
    int ms = FIRST_MS;

    for (unsigned i = 1; i < a->tries && ms < LAST_MS; i++)
        ms *= 2;
    return ms < LAST_MS ? ms : LAST_MS;
}
