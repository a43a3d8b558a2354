/* SPDX-License-Identifier: Apache-2.0 */
/* terms.h - what a job comes with beside its demand, and most jobs do not: all of it 0. The core
 * keeps it apart from the rows of jobs, so that jobs without terms pay nothing for it. */
#ifndef STK_MODEL_TERMS_H
#define STK_MODEL_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/time.h"

struct stk_terms {
    stk_time deadline; /* it should have ended by then; 0: none */
    /* How long its user said it would run; 0: nobody did. And how long it may run though less is
     * expected of it: when it outruns its estimate that grows, up to this; 0: it does not. */
    stk_time asked, limit;
    stk_time min_run; /* after a start it does not give way for so long; 0: as the policy says */
    uint32_t queue;   /* row in the table of queues */
    uint32_t user;    /* who submitted it, for limits of users; 0: nobody in particular */
    uint32_t group;   /* some of its members must stay up; 0: in none */
    uint32_t reservation; /* it may use this one; 0: none */
    bool movable;         /* it may be moved to make room for others */
    uint32_t group_min;   /* of its group so many must stay up, whoever needs room */
    bool signals;         /* told to go, it saves what it has done, if it is given time for it */
    bool no_sleep;        /* it cannot be suspended, or may not */
    bool plain; /* its priority orders it and gives it no class: the class is that of tier.plain
                   (policy/preempt/levels.h) */
};

/* What a job with this estimate may run at most, as far as is known. */
static inline stk_time stk_terms_longest(const struct stk_terms *t, stk_time estimate)
{
    stk_time most = t->limit && t->limit < STK_MAX_DURATION ? t->limit : t->asked;

    return most > estimate ? most : estimate;
}

/* Whether there are any. */
static inline bool stk_terms_any(const struct stk_terms *t)
{
    return t->deadline || t->asked || t->limit || t->min_run || t->queue || t->user || t->group ||
           t->reservation || t->movable || t->group_min || t->signals || t->no_sleep || t->plain;
}

#endif
