/* SPDX-License-Identifier: Apache-2.0 */
/* las.c - order: least attained service first, in two dimensions (run time x GPUs), after Tiresias
 * (Gu et al., NSDI'19). Needs no estimates: what has had little goes first, so short jobs finish
 * early and long ones share what is left.
 *
 * Discretised: a job's level is the number of thresholds its attained GPU-seconds have reached;
 * inside a level first come, first served. A job is moved down at the first whole second at which a
 * threshold is reached. Without thresholds the attained service itself is the rank and decisions
 * are made in rounds (las.round_s, or round_s), else every second would swap jobs.
 *
 * las.count=seconds counts run time alone: then large jobs do not fall faster than small ones.
 * las.stay puts running jobs before waiting ones of their level: fewer swaps.
 *
 * Promotion (off by default): a job that has waited las.promote times as long as it has run goes
 * back to the top with its count set to zero. The job's policy word holds what was forgiven.
 *
 * Cost: a timer per running job. Bad when many long jobs of equal size share a level: none finishes
 * early.
 */
#include "policy/registry.h"

#include "core/core.h"
#include "core/state.h"

enum { P_THRESHOLDS, P_ROUND, P_PROMOTE, P_COUNT, P_STAY };
static const struct stk_param params[] = {
    [P_THRESHOLDS] = {"las.thresholds", STK_PARAM_LIST, "3250,7200,18000", 1,
                      INT64_C(1000000000000), NULL,
                      "GPU-seconds at which a job falls one level (default without rounds)"},
    [P_ROUND] = {"las.round_s", STK_PARAM_SECONDS, "0", 0, 31536000, NULL,
                 "decide only at multiples of this; with no thresholds rank by attained service"},
    [P_PROMOTE] = {"las.promote", STK_PARAM_INT, "0", 0, 1000000, NULL,
                   "back to the top after waiting this many times its run time; 0: never"},
    [P_COUNT] = {"las.count", STK_PARAM_WORD, "gpu-seconds", 0, 0, "gpu-seconds|seconds",
                 "what is counted: run time x GPUs, or run time alone"},
    [P_STAY] = {"las.stay", STK_PARAM_WORD, "off", 0, 0, "on|off",
                "inside a level running jobs come before waiting ones (with thresholds)"},
    {0},
};

struct las {
    int64_t threshold[STK_MAX_PARAM_LIST]; /* GPU-milliseconds */
    uint32_t n;
    stk_time round;
    int64_t promote;
    bool seconds, stay;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct las *l = st;
    bool rounds;

    (void)err;
    l->round = stk_params_seconds(p, &params[P_ROUND]);
    l->promote = stk_params_int(p, &params[P_PROMOTE]);
    l->seconds = stk_params_word(p, &params[P_COUNT], "seconds");
    l->stay = stk_params_word(p, &params[P_STAY], "on");
    rounds = l->round > 0 || stk_params_seconds(p, &stk_core_params[0]) > 0;
    if (!rounds || stk_params_has(p, &params[P_THRESHOLDS]))
        l->n = stk_params_list(p, &params[P_THRESHOLDS], l->threshold);
    for (uint32_t i = 0; i < l->n; i++)
        l->threshold[i] *= 1000;
    return 0;
}

/* By how much it grows in a millisecond. */
static int64_t pace(const struct las *l, const struct stk_job *j)
{
    return l->seconds ? 1 : j->gpus;
}

static int64_t attained(const struct las *l, const struct stk_job *j, stk_time now)
{
    return stk_job_served(j, now) / 1000 * pace(l, j) - j->word;
}

static uint32_t level(const struct las *l, int64_t service)
{
    uint32_t q = 0;

    while (q < l->n && service >= l->threshold[q])
        q++;
    return q;
}

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    const struct las *l = st;
    int64_t g = pace(l, j);

    if (l->n > 0)
        return (struct stk_key){
            2 * (int64_t)level(l, attained(l, j, now)) - (l->stay && j->lease != 0), 0};
    if (j->lease == 0)
        return (struct stk_key){attained(l, j, now), 0};
    return (struct stk_key){j->served / 1000 * g - j->word - j->started / 1000 * g, g};
}

static stk_time next_change(const void *st, const struct stk_job *j, stk_time now)
{
    const struct las *l = st;
    int64_t have = attained(l, j, now), g = pace(l, j);
    uint32_t q = level(l, have);

    if (j->lease != 0) {
        int64_t left_s;

        if (q >= l->n || g == 0)
            return STK_NEVER_TIME;
        left_s = (l->threshold[q] - have + g * 1000 - 1) / (g * 1000);
        return now + (left_s > 0 ? left_s : 1) * STK_SECOND;
    }
    if (l->promote == 0 || have <= 0 || j->served == 0)
        return STK_NEVER_TIME;
    if (j->served > STK_MAX_DURATION / l->promote)
        return STK_NEVER_TIME;
    return j->queued + l->promote * j->served;
}

static int64_t on_change(const void *st, const struct stk_job *j, stk_time now)
{
    if (j->lease != 0)
        return j->word; /* moved down: the level follows from the service */
    return j->word + attained(st, j, now);
}

static stk_time round_of(const void *st)
{
    return ((const struct las *)st)->round;
}

const struct stk_order_ops stk_order_las = {
    .name = "las",
    .help = "least attained GPU-time first (Tiresias 2D-LAS); preempts",
    .params = params,
    .state_size = sizeof(struct las),
    .tick = 1000,
    .preemptive = true,
    .init = init,
    .key = key,
    .next_change = next_change,
    .on_change = on_change,
    .round = round_of,
};
