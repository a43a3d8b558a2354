/* SPDX-License-Identifier: Apache-2.0 */
/* edf.c - order: earliest deadline first.
 *
 * Inside a level (tier and class): first jobs that miss their deadline unless they start within
 * edf.margin_s, the one that must start first before the others; then jobs with a deadline, the
 * earliest first; then jobs without one, by priority. A job that would miss its deadline even if it
 * started at once is as one without: else late jobs would make the next ones late, too. Deadlines
 * are met by estimates: what a job is expected to need.
 *
 * The policy word is the deadline. Cost: two timers per waiting job with a deadline. Bad under more
 * load than there is room for: jobs without a deadline may starve.
 */
#include "policy/registry.h"

#include "core/lane.h"
#include "policy/preempt/levels.h"

enum { P_MARGIN };
static const struct stk_param params[] = {
    [P_MARGIN] = {"edf.margin_s", STK_PARAM_SECONDS, "600", 0, 31536000, NULL,
                  "a job that must start within this to meet its deadline goes first"},
    {0},
};

struct edf {
    struct stk_levels classes;
    stk_time margin;
};

enum { IN_DANGER, IN_TIME, WITHOUT }; /* groups of a level */
#define GROUP 53

_Static_assert(GROUP < STK_RANK_LEVEL && STK_MAX_DURATION < INT64_C(1) << GROUP,
               "deadlines stay below groups");

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct edf *e = st;

    e->margin = stk_params_seconds(p, &params[P_MARGIN]);
    return stk_levels_init(&e->classes, p, err);
}

static int64_t word(const void *st, const struct stk_state *s, uint32_t job)
{
    (void)st;
    return s->terms[job].deadline;
}

/* When it must start, at the latest. */
static stk_time latest(const struct stk_job *j, stk_time now)
{
    return j->word - stk_job_remaining(j, now);
}

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    const struct edf *e = st;
    const int64_t level = stk_levels_rank(&e->classes, j);
    const stk_time start = latest(j, now);

    if (j->word == 0 || now > start)
        return (struct stk_key){level + ((int64_t)WITHOUT << GROUP) + stk_priority_rank(j), 0};
    if (now >= start - e->margin)
        return (struct stk_key){level + ((int64_t)IN_DANGER << GROUP) + start, 0};
    return (struct stk_key){level + ((int64_t)IN_TIME << GROUP) + j->word, 0};
}

static stk_time next_change(const void *st, const struct stk_job *j, stk_time now)
{
    const struct edf *e = st;
    const stk_time start = latest(j, now);

    if (j->word == 0 || j->lease || now > start)
        return STK_NEVER_TIME;
    return now < start - e->margin ? start - e->margin : start + 1;
}

static int64_t on_change(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)now;
    return j->word;
}

const struct stk_order_ops stk_order_edf = {
    .name = "edf",
    .help =
        "by tier and class, then jobs whose deadline is in danger, then earliest deadline, then "
        "higher priority",
    .params = params,
    .shared = stk_levels_params,
    .state_size = sizeof(struct edf),
    .tick = 1,
    .levels = true,
    .init = init,
    .key = key,
    .next_change = next_change,
    .on_change = on_change,
    .word = word,
};
