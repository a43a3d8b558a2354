/* SPDX-License-Identifier: Apache-2.0 */
/* blocked.h - how much demand waits although enough is free for it: the part of it that fragments
 * are to blame for. GPU-time: what each waiting job asks for, times how long it waits.
 *
 * Meant for backfill skip, where whoever still waits when all is decided has no place; with others,
 * jobs that wait for their turn are counted too. Costs O(shapes + nodes with shared GPUs) a turn.
 */
#ifndef STK_SIM_BLOCKED_H
#define STK_SIM_BLOCKED_H

#include "core/state.h"

struct stk_blocked {
    double waiting_gpu_s; /* asked for by jobs that waited */
    double blocked_gpu_s; /* of that, while as much was free on GPUs the job accepts */
    double used_gpu_s, all_gpu_s;
    stk_time at;                        /* of the last look */
    double waiting, blocked, used, all; /* GPUs, since then */
    bool looked;
};

/* The turn at 'now' is over. */
void stk_blocked_look(struct stk_blocked *b, const struct stk_state *s, stk_time now);

#endif
