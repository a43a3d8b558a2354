/* SPDX-License-Identifier: Apache-2.0 */
/* ftf.c - order: finish-time fairness, after Themis (Mahajan et al., NSDI'20).
 *
 * rho of a job is its time from submission to end if it starts now, over the time it would take if
 * its tenant had its part of the cluster to itself: the larger of its estimate and what all live
 * jobs of the tenant ask for, divided by that part. The part is what weights give to the tenant
 * among those that have live jobs, level by level. It is fixed when the job is submitted. The worst
 * rho comes first, inside a level (tier and class); ties go to the older job.
 *
 * Ranks of waiting jobs stand still here, so rho is rounded: four steps to each doubling. A job
 * gets a new rank when it reaches the next step, so seldom that it costs little, and less the
 * longer it has waited. The policy word is the time it would take in isolation.
 *
 * Cost: a timer per waiting job. Bad when estimates are: rho is only as good as they are.
 */
#include "policy/registry.h"

#include "core/lane.h"
#include "core/usage.h"
#include "policy/preempt/levels.h"

#define LEAST (10 * STK_SECOND) /* shorter jobs do not count as badly delayed */
#define ONE 32                  /* rho of 1 is 2^32 */
#define STEP_BITS 2
#define STEPS (128 << STEP_BITS)

static int64_t word(const void *st, const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    stk_time alone = j->estimate > LEAST ? j->estimate : LEAST;
    stk_time shared = stk_usage_isolated(s, j->tenant);

    (void)st;
    return alone > shared ? alone : shared;
}

/* The step of rho that a job has reached, whose time is t in all. */
static uint32_t step_of(stk_time t, uint64_t isolated)
{
    stk_u128 rho = ((stk_u128)(t > 0 ? t : 0) << ONE) / isolated;
    uint32_t bits = 0;

    while (rho >> (bits + 1))
        bits++;
    if (bits < STEP_BITS)
        return 0;
    return bits << STEP_BITS | ((uint32_t)(rho >> (bits - STEP_BITS)) & ((1U << STEP_BITS) - 1));
}

/* The least time at which the step is reached. */
static stk_u128 reached(uint32_t step, uint64_t isolated)
{
    stk_u128 rho = 1U << STEP_BITS | (step & ((1U << STEP_BITS) - 1));

    rho <<= (step >> STEP_BITS) - STEP_BITS;
    return (rho * isolated + (UINT64_C(1) << ONE) - 1) >> ONE;
}

/* Of a job that was loaded it may be anything. */
static uint64_t isolated_of(const struct stk_job *j)
{
    return (uint64_t)(j->word > LEAST ? j->word : LEAST);
}

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    uint32_t step = step_of(now - j->submitted + stk_job_remaining(j, now), isolated_of(j));

    return (struct stk_key){stk_levels_rank(st, j) + STEPS - step, 0};
}

static stk_time next_change(const void *st, const struct stk_job *j, stk_time now)
{
    const stk_time left = stk_job_remaining(j, now);
    uint32_t step = step_of(now - j->submitted + left, isolated_of(j));
    stk_u128 t;

    (void)st;
    if (j->lease)
        return STK_NEVER_TIME;
    step = step >> STEP_BITS < STEP_BITS ? STEP_BITS << STEP_BITS : step + 1;
    t = reached(step, isolated_of(j));
    if (t > (stk_u128)STK_MAX_DURATION)
        return STK_NEVER_TIME;
    return (stk_time)t - left + j->submitted > now ? (stk_time)t - left + j->submitted : now + 1;
}

static int64_t on_change(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)now;
    return j->word;
}

const struct stk_order_ops stk_order_ftf = {
    .name = "ftf",
    .help = "by tier and class, then the worst finish-time fairness: time in the system against "
            "that with the tenant's part of the cluster alone (Themis)",
    .shared = stk_levels_params,
    .state_size = sizeof(struct stk_levels),
    .tick = 1,
    .levels = true,
    .backlog = true,
    .init = stk_levels_init,
    .key = key,
    .next_change = next_change,
    .on_change = on_change,
    .word = word,
};
