/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - a job's leases and the capacity of the cluster, as far as they lie in a period.
 *
 * Samples say how active a job was in its life, not at each moment, and they have gaps: before the
 * first, after the last, while no daemon ran. The job counts as equally active all its allocated
 * time. A period gets the part up to its end less the part up to its beginning, so adjacent periods
 * add up to the whole exactly.
 */
#include "figures/figures.h"

#include <math.h>

#define GPU_HOUR 3.6e12 /* of stk_gpu_time */

/* whole * x / of, bit by bit, where the product does not fit in 128 bits. */
static stk_gpu_time share_of_large(stk_gpu_time whole, stk_gpu_time x, stk_gpu_time of)
{
    stk_gpu_time result = 0, rest = 0;

    for (int bit = 126; bit >= 0; bit--) {
        result <<= 1;
        rest <<= 1;
        if (rest >= of) {
            rest -= of;
            result++;
        }
        if (x >> bit & 1)
            rest += whole;
        if (rest >= of) {
            rest -= of;
            result++;
        }
    }
    return result;
}

/* The part of 'whole' that the first x of 'of' get: whole * x / of, for whole <= of. What an
 * interval gets, share_of(its end) - share_of(its beginning), is never more than the interval. */
static stk_gpu_time share_of(stk_gpu_time whole, stk_gpu_time x, stk_gpu_time of)
{
    if (of == 0)
        return 0;
    return (of | x) >> 63 ? share_of_large(whole, x, of) : whole * x / of;
}

static stk_time later_time(stk_time a, stk_time b)
{
    return a > b ? a : b;
}

static stk_time earlier_time(stk_time a, stk_time b)
{
    return a < b ? a : b;
}

static stk_gpu_time ever_allocated(const struct stk_job_past *past, stk_time now)
{
    stk_gpu_time sum = 0;

    for (uint32_t i = 0; i < past->n; i++) {
        const struct stk_lease *l = &past->lease[i];
        const stk_time to = l->to ? l->to : now;

        if (to > l->from)
            sum += (stk_gpu_time)(to - l->from) * l->milli;
    }
    return sum;
}

struct life {                          /* a job's, as its leases are walked over */
    stk_gpu_time ever, active, before; /* before: allocated up to this lease */
    bool sampled;
    struct stk_period p;
    stk_time now;
    struct stk_gpu_amounts *bins;
};

/* The allocated time of a lease in the period, and how much of it was active. */
static void add_time(struct life *x, const struct stk_lease *l, struct stk_job_figures *f)
{
    const stk_time end = later_time(l->to ? l->to : x->now, l->from);
    const stk_time a = later_time(l->from, x->p.since), b = earlier_time(end, x->p.until);
    stk_gpu_time at_a, at_b, active;

    if (a < b) {
        at_a = x->before + (stk_gpu_time)(a - l->from) * l->milli;
        at_b = x->before + (stk_gpu_time)(b - l->from) * l->milli;
        active = share_of(x->active, at_b, x->ever) - share_of(x->active, at_a, x->ever);
        f->run += b - a;
        f->allocated += at_b - at_a;
        f->measured += x->sampled ? at_b - at_a : 0;
        f->active += active;
        if (x->bins) {
            stk_gpu_amounts_add(x->bins, STK_AMOUNT_ALLOCATED, a, b, at_b - at_a);
            stk_gpu_amounts_add(x->bins, STK_AMOUNT_ACTIVE, a, b, active);
        }
    }
    x->before += (stk_gpu_time)(end - l->from) * l->milli;
}

static bool in_period(struct stk_period p, stk_time t)
{
    return t >= p.since && t < p.until;
}

void stk_figures_of_job(const struct stk_job_past *past, struct stk_period p, stk_time now,
                        struct stk_job_figures *ret, struct stk_gpu_amounts *bins)
{
    struct stk_job_figures f = {.ever = ever_allocated(past, now)};
    struct life x = {
        .ever = f.ever, .sampled = past->sampled > 0, .p = p, .now = now, .bins = bins};
    stk_time waited = 0;

    f.sampled = past->sampled < x.ever ? past->sampled : x.ever;
    x.p.until = earlier_time(p.until, now);
    x.active = share_of(past->active < f.sampled ? past->active : f.sampled, x.ever, f.sampled);
    for (uint32_t i = 0; i < past->n; i++) {
        const struct stk_lease *l = &past->lease[i];

        add_time(&x, l, &f);
        if (in_period(p, l->from)) {
            f.starts++;
            f.waited += later_time(l->waited - waited, 0);
        }
        waited = later_time(l->waited, waited);
        f.preemptions += l->preempted && l->to && in_period(p, l->to);
    }
    *ret = f;
}

uint32_t stk_figures_rank(uint32_t n, uint32_t per_mille)
{
    const uint64_t at = ((uint64_t)n * per_mille + 999) / 1000;

    return at > 0 ? (uint32_t)at - 1 : 0;
}

void stk_figures_capacity(struct stk_capacity_figures *io, struct stk_period p,
                          struct stk_period when, uint32_t gpus, struct stk_gpu_amounts *bins)
{
    const stk_time a = later_time(when.since, p.since), b = earlier_time(when.until, p.until);

    if (a >= b)
        return;
    io->sum += (stk_gpu_time)(b - a) * gpus * 1000;
    io->known += b - a;
    io->gpus = gpus;
    if (!bins)
        return;
    stk_gpu_amounts_add(bins, STK_AMOUNT_KNOWN, a, b, (stk_gpu_time)(b - a));
    stk_gpu_amounts_add(bins, STK_AMOUNT_CAPACITY, a, b, (stk_gpu_time)(b - a) * gpus * 1000);
}

static double round_figure(double v)
{
    return round(v * 1e6) / 1e6;
}

double stk_figures_hours(stk_gpu_time t)
{
    return round_figure((double)t / GPU_HOUR);
}

double stk_figures_ratio(stk_gpu_time part, stk_gpu_time of)
{
    return of > 0 ? round_figure((double)part / (double)of) : -1;
}

stk_gpu_time stk_figures_of_seconds(double gpu_s)
{
    return gpu_s > 0 && gpu_s < 1e18 ? (stk_gpu_time)(gpu_s * 1e9) : 0;
}
