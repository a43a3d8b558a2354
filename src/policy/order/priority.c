/* SPDX-License-Identifier: Apache-2.0 */
/* priority.c - order: higher tier, then higher priority, then deadlines that can be met, then first
 * come. The order a user gets who says nothing; with all priorities equal and no deadlines it is
 * fifo. Bad when the top never runs dry: nothing ages.
 *
 * Where jobs preempt by level, the level comes before the priority. It makes a difference to plain
 * jobs only (policy/preempt/levels.h): of all others the level follows from tier and priority.
 *
 * Of jobs of the same priority those with a deadline come first, the earliest before the others, by
 * the minute. A job that would miss its deadline even if it started at once is as one without: it
 * would only make others late. When that is so is known by its estimate; without one, when the
 * deadline is over. priority.deadlines=off: deadlines do not count.
 *
 * The policy word is the deadline. Cost: a timer per waiting job with a deadline.
 */
#include "policy/registry.h"

#include "core/state.h"

enum { P_DEADLINES };
static const struct stk_param params[] = {
    [P_DEADLINES] = {"priority.deadlines", STK_PARAM_WORD, "on", 0, 0, "on|off",
                     "of jobs of one priority, those with a deadline that can be met come first"},
    {0},
};

#define MINUTE (60 * STK_SECOND)
#define WITHOUT 26 /* bits for minutes; behind all of them */

_Static_assert(STK_MAX_DURATION / MINUTE < INT64_C(1) << WITHOUT,
               "deadlines stay below priorities");
_Static_assert((int64_t)STK_TIER_MAX *STK_LEVEL_MAX * 4 * STK_MAX_PRIORITY < INT64_C(1)
                                                                                 << (63 - WITHOUT),
               "tiers, levels and priorities fit above deadlines");

struct priority {
    bool deadlines;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    (void)err;
    ((struct priority *)st)->deadlines = stk_params_word(p, &params[P_DEADLINES], "on");
    return 0;
}

static int64_t word(const void *st, const struct stk_state *s, uint32_t job)
{
    return ((const struct priority *)st)->deadlines ? s->terms[job].deadline : 0;
}

/* It can still end in time. */
static bool in_time(const struct stk_job *j, stk_time now)
{
    return j->word != 0 && now <= j->word - stk_job_remaining(j, now);
}

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    const int64_t top = (int64_t)j->tier * STK_LEVEL_MAX + j->level;
    const int64_t rank = -(top * 4 * STK_MAX_PRIORITY + j->priority);

    (void)st;
    return (struct stk_key){rank * (INT64_C(1) << WITHOUT) +
                                (in_time(j, now) ? j->word / MINUTE : (INT64_C(1) << WITHOUT) - 1),
                            0};
}

static stk_time next_change(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    return j->lease || !in_time(j, now) ? STK_NEVER_TIME : j->word - stk_job_remaining(j, now) + 1;
}

static int64_t on_change(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)now;
    return j->word;
}

const struct stk_order_ops stk_order_priority = {
    .name = "priority",
    .help = "higher tier, then higher priority, then deadlines that can be met, then first come",
    .params = params,
    .state_size = sizeof(struct priority),
    .tick = 1,
    .levels = true,
    .init = init,
    .key = key,
    .next_change = next_change,
    .on_change = on_change,
    .word = word,
};
