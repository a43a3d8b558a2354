/* SPDX-License-Identifier: Apache-2.0 */
/* away.h - waiting for a daemon that is away. A command that waits for a job (run, wait, logs -f,
 * attach, srun, sbatch --wait) outlives a restart of the daemon: it asks again, later and later up
 * to a limit, without end. It waits only for a daemon that has answered before: without a daemon,
 * or without permission to use it, the command fails at once. After a second the user is told, once
 * per absence.
 *
 *     rc = stk_client_call(...);
 *     if (stk_away_is(rc)) {
 *         if (stk_away_lost(&away, now))
 *             fprintf(stderr, "stoker: %s\n", STK_AWAY_TEXT);
 *         wait for stk_away_pause_ms(&away) or a signal, and call again
 *     } else
 *         stk_away_back(&away);
 */
#ifndef STK_CLIENT_AWAY_H
#define STK_CLIENT_AWAY_H

#include <stdbool.h>

#define STK_AWAY_TEXT "the daemon does not answer (it may be restarting); waiting for it"

struct stk_away {
    double since;   /* when the daemon first did not answer, in seconds; 0: it answers */
    unsigned tries; /* requests without an answer since then */
    bool said;      /* the user was told */
};

/* True when 'rc' of a call means that the daemon is not there, or leaves. The job that is waited
 * for is not affected by that. */
bool stk_away_is(int rc);

/* A request was not answered. True when the user is to be told now. */
bool stk_away_lost(struct stk_away *a, double now);
/* A request was answered. */
void stk_away_back(struct stk_away *a);
/* How long to wait before the next try. */
int stk_away_pause_ms(const struct stk_away *a);

#endif
