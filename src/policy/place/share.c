/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - place: as pack; and when no GPUs are free, beside a running job that the new one
 * disturbs little, and that disturbs it little.
 *
 * Two trainings on one GPU often do more together than one after the other: one computes while the
 * other waits for data. How much of its speed each keeps was measured for pairs of kinds of jobs
 * (model/speed.h; Gavel, Narayanan et al., OSDI 2020, has 1,759 such pairs). Two jobs share their
 * GPUs only when each keeps at least share.floor of its speed alone, both shares together are at
 * least share.gain, and neither falls below what it insists on (its SLO). At most two, as it was
 * measured. Of several the one is taken with which the sum is largest.
 *
 * Pairs that were not measured are left apart. With share.unknown=true they are put together as if
 * they did not disturb each other, but never a job that has an SLO.
 *
 * Cost: pack's, and one look at the table for each shape and GPU type of jobs that are alone. Bad
 * where the table is not that of the jobs at hand.
 */
#include "policy/registry.h"

#define UNDISTURBED 2000 /* thousandths, both together */

struct share {
    uint32_t floor_milli, gain_milli;
    bool all, unknown, join_first;
};

enum { P_FLOOR, P_GAIN, P_ALL, P_UNKNOWN, P_FIRST };
static const struct stk_param params[] = {
    [P_FLOOR] = {"share.floor", STK_PARAM_MILLI, "0.6", 1, 1000, NULL,
                 "each of two jobs on the same GPUs keeps at least this share of its speed alone"},
    [P_GAIN] = {"share.gain", STK_PARAM_MILLI, "1.1", 1, 2000, NULL,
                "both shares together are at least this"},
    [P_ALL] = {"share.all", STK_PARAM_WORD, "false", 0, 0, "true|false",
               "every job on whole GPUs may share them, not only those that ask for it"},
    [P_UNKNOWN] = {"share.unknown", STK_PARAM_WORD, "false", 0, 0, "true|false",
                   "jobs without an SLO share with others they were not measured with"},
    [P_FIRST] = {"share.first", STK_PARAM_WORD, "free", 0, 0, "free|join",
                 "what is tried first: GPUs that are free, or company"},
    {0},
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct share *r = st;

    (void)err;
    r->floor_milli = (uint32_t)stk_params_milli(p, &params[P_FLOOR]);
    r->gain_milli = (uint32_t)stk_params_milli(p, &params[P_GAIN]);
    r->all = stk_params_word(p, &params[P_ALL], "true");
    r->unknown = stk_params_word(p, &params[P_UNKNOWN], "true");
    r->join_first = stk_params_word(p, &params[P_FIRST], "join");
    return 0;
}

static void rule(const void *st, struct stk_pair_rule *ret)
{
    const struct share *r = st;

    *ret =
        (struct stk_pair_rule){.all = r->all, .unknown = r->unknown, .join_first = r->join_first};
}

/* The share of its speed alone that 'row' keeps beside 'other'; negative: not measured. */
static double keeps(const struct stk_speeds *t, uint32_t type, uint32_t row, uint32_t other)
{
    double alone;

    if (!t || row == 0 || other == 0 || row > t->rows || other > t->rows || type >= t->types)
        return -1;
    alone = stk_speed_alone(t, row - 1, type, false);
    if (!(alone > 0) || !stk_speed_measured(t, row - 1, other - 1, type))
        return -1;
    return stk_speed_beside(t, row - 1, other - 1, type) / alone;
}

static bool enough(const struct share *r, double keep, uint32_t slo_milli)
{
    return keep * 1000 >= r->floor_milli && keep * 1000 >= slo_milli;
}

static uint32_t mate(const void *st, const struct stk_speeds *speeds, uint32_t gpu_type,
                     const struct stk_demand *a, const struct stk_demand *b)
{
    const struct share *r = st;
    double ka = keeps(speeds, gpu_type, a->row, b->row);
    double kb = keeps(speeds, gpu_type, b->row, a->row);

    if (ka < 0 || kb < 0)
        return r->unknown && !a->slo_milli && !b->slo_milli ? UNDISTURBED : 0;
    if (!enough(r, ka, a->slo_milli) || !enough(r, kb, b->slo_milli) ||
        (ka + kb) * 1000 < r->gain_milli)
        return 0;
    return (uint32_t)((ka + kb) * 1000);
}

const struct stk_place_ops stk_place_share = {
    .name = "share",
    .help = "as pack; when no GPUs are free, beside a job that is disturbed little",
    .params = params,
    .state_size = sizeof(struct share),
    .init = init,
    .mate = mate,
    .share = rule,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};
