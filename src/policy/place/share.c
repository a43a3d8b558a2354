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
 * Who was not measured beside the other is left apart. With share.unknown=true it is taken to be
 * undisturbed, unless it has an SLO.
 *
 * Cost: pack's, and one look at the table for each shape and GPU type of jobs that are alone. Bad
 * where the table is not that of the jobs at hand.
 */
#include "policy/registry.h"

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
                   "a job without an SLO shares with others it was not measured with"},
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

/* Of one that was not measured: whether it may be put to chance. */
static bool enough(const struct share *r, double keep, uint32_t slo_milli)
{
    if (keep < 0)
        return r->unknown && slo_milli == 0;
    return keep * 1000 >= r->floor_milli && keep * 1000 >= slo_milli;
}

static uint32_t mate(const void *st, const struct stk_speeds *speeds, uint32_t gpu_type,
                     const struct stk_demand *a, const struct stk_demand *b)
{
    const struct share *r = st;
    double ka = keeps(speeds, gpu_type, a->row, b->row);
    double kb = keeps(speeds, gpu_type, b->row, a->row);

    if (!enough(r, ka, a->slo_milli) || !enough(r, kb, b->slo_milli))
        return 0;
    ka = ka < 0 ? 1 : ka; /* as if it were not disturbed */
    kb = kb < 0 ? 1 : kb;
    return (ka + kb) * 1000 >= r->gain_milli ? (uint32_t)((ka + kb) * 1000) : 0;
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
