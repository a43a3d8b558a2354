/* SPDX-License-Identifier: Apache-2.0 */
/* idleness.h - how long a job has done nothing, and what follows from that. No clock, no files:
 * readings go in, the next step comes out.
 *
 *     running   -> WARN    once, before anything else happens to it
 *               -> SUSPEND when others wait for GPUs that it would free
 *               -> END
 *     asleep    -> WAKE    when nobody waits any more, or somebody types
 *               -> END
 *
 * What cannot be read is no idleness: a job is only touched for what was seen.
 */
#ifndef STK_DAEMON_IDLENESS_H
#define STK_DAEMON_IDLENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/time.h"

#define STK_IDLE_CPU 0.01            /* of one core: below this a job's processes do nothing */
#define STK_IDLE_POWER 1.3           /* times the lowest power seen: above this a GPU works */
#define STK_IDLE_CALM STK_SECOND * 2 /* so long nobody has waited before a job is woken */

struct stk_idle_rule { /* seconds; 0: never */
    int64_t warn_s, suspend_s, end_s;
    double below_pct; /* a GPU at or below this does nothing */
};

struct stk_idle_reading { /* of all GPUs, processes and the terminal of one job */
    bool on_gpus;         /* it has GPUs that can be read: they count, its CPU time does not */
    bool gpu_known;
    double gpu_pct; /* the largest of what is known: SM, memory, both in percent */
    bool power_known;
    double power_w;
    bool cpu_known;
    double cpu_s; /* CPU time used so far */
    bool pty_known;
    int64_t pty_idle_s; /* since the last input or output */
};

struct stk_idle {
    stk_time since; /* of the last activity */
    stk_time cpu_at;
    double cpu_s;
    double power_low; /* W; 0: none seen yet */
    bool warned;
    stk_time calm_since; /* asleep: nobody has waited since then; 0: somebody does */
};

void stk_idle_begin(struct stk_idle *i, stk_time now);
void stk_idle_see(struct stk_idle *i, const struct stk_idle_rule *r,
                  const struct stk_idle_reading *s, stk_time now);

enum stk_idle_step {
    STK_IDLE_NOTHING,
    STK_IDLE_WARN,
    STK_IDLE_CLEAR, /* it works again: the warning is over */
    STK_IDLE_SUSPEND,
    STK_IDLE_WAKE,
    STK_IDLE_END
};

struct stk_idle_around { /* what is going on around it */
    bool asleep;         /* we have put it to sleep */
    bool wanted;         /* others wait for GPUs, and its own would help */
    bool may_suspend;    /* it has GPUs, and can sleep */
    bool gpus_free;      /* asleep: those it must wake on */
    bool typed;          /* asleep: somebody is at its terminal */
};

bool stk_idle_due(const struct stk_idle *i, const struct stk_idle_rule *r, stk_time now);
enum stk_idle_step stk_idle_next(struct stk_idle *i, const struct stk_idle_rule *r,
                                 const struct stk_idle_around *a, stk_time now);

#endif
