/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - see calibrate.h. Waits are compared by their ratio, with some minutes added to
 * both: whether it is one second or ten does not matter to anybody. */
#include "forecast/calibrate.h"

#include "base/sort.h"

#define SIZES 34u
#define KEPT 256u  /* forecasts */
#define ENOUGH 20u /* that say something */
#define SAME (300 * STK_SECOND)
#define RATIO 1000000 /* ratios as whole numbers, for sorting */
#define MOST_RATIO 1e12

struct mean {
    double sum;
    uint64_t n;
};

struct said {
    stk_job_number number; /* 0: none */
    stk_time at, wait;     /* when, and what */
    stk_time waited;       /* what came; < 0: it waits still */
};

struct stk_calibrate {
    struct stk_mem mem;
    uint32_t n_pools, next;
    double late; /* P90 over P50; 0: not known */
    struct said said[KEPT];
    struct mean all;
    struct mean mean[]; /* SIZES of each pool, then one of each pool */
};

static size_t bytes(uint32_t n_pools)
{
    return sizeof(struct stk_calibrate) + (size_t)n_pools * (SIZES + 1) * sizeof(struct mean);
}

struct stk_calibrate *stk_calibrate_new(const struct stk_mem *mem, uint32_t n_pools)
{
    struct stk_calibrate *c = mem->resize(mem->ctx, NULL, 0, bytes(n_pools));

    if (c) {
        c->mem = *mem;
        c->n_pools = n_pools;
    }
    return c;
}

void stk_calibrate_free(struct stk_calibrate *c)
{
    struct stk_mem mem;

    if (!c)
        return;
    mem = c->mem;
    (void)mem.resize(mem.ctx, c, bytes(c->n_pools), 0);
}

/* ---- waits of the past ---- */

static uint32_t size_of(uint32_t gpus)
{
    return gpus <= 1 ? gpus : 33u - (uint32_t)__builtin_clz(gpus - 1);
}

/* Of its pool and size, of its pool, of all; how many. */
static uint32_t rows(const struct stk_calibrate *c, uint32_t pool, uint32_t gpus, size_t ret[2])
{
    if (pool >= c->n_pools)
        return 0;
    ret[0] = (size_t)pool * SIZES + size_of(gpus);
    ret[1] = (size_t)c->n_pools * SIZES + pool;
    return 2;
}

static void add(struct mean *m, stk_time wait)
{
    m->sum += (double)wait;
    m->n++;
}

void stk_calibrate_waited(struct stk_calibrate *c, uint32_t pool, uint32_t gpus, stk_time wait)
{
    size_t at[2];
    uint32_t n = rows(c, pool, gpus, at);

    for (uint32_t i = 0; i < n; i++)
        add(&c->mean[at[i]], wait);
    add(&c->all, wait);
}

stk_time stk_calibrate_mean(const struct stk_calibrate *c, uint32_t pool, uint32_t gpus)
{
    size_t at[2];
    uint32_t n = rows(c, pool, gpus, at);

    for (uint32_t i = 0; i < n; i++)
        if (c->mean[at[i]].n > 0)
            return (stk_time)(c->mean[at[i]].sum / (double)c->mean[at[i]].n);
    return c->all.n > 0 ? (stk_time)(c->all.sum / (double)c->all.n) : 0;
}

/* ---- what was said, and what came ---- */

void stk_calibrate_said(struct stk_calibrate *c, stk_job_number number, stk_time now, stk_time wait)
{
    c->said[c->next] = (struct said){number, now, wait, -1};
    c->next = (c->next + 1) % KEPT;
}

void stk_calibrate_started(struct stk_calibrate *c, stk_job_number number, stk_time now)
{
    for (uint32_t i = 0; i < KEPT; i++)
        if (c->said[i].number == number && c->said[i].waited < 0)
            c->said[i].waited = now - c->said[i].at;
}

static double ratio(stk_time a, stk_time b)
{
    return (double)(a + SAME) / (double)(b + SAME);
}

void stk_calibrate_now(struct stk_calibrate *c, stk_time now)
{
    struct stk_sort_item r[KEPT], tmp[KEPT];
    uint32_t n = 0, at;

    for (uint32_t i = 0; i < KEPT; i++) {
        const struct said *s = &c->said[i];
        stk_time waited = s->waited >= 0 ? s->waited : now - s->at;
        double late = ratio(waited, s->wait) * RATIO;

        if (s->number && (s->waited >= 0 || waited > s->wait))
            r[n++] = (struct stk_sort_item){
                .key = late < MOST_RATIO ? (int64_t)late : (int64_t)MOST_RATIO, .id = i};
    }
    stk_sort(r, n, tmp);
    at = n * 9 / 10;
    c->late = n < ENOUGH ? 0 : (double)r[at].key / RATIO;
}

/* ---- corrections ---- */

/* By halving: no library, and the same everywhere. */
static double root(double x)
{
    double low = 0, high = x > 1 ? x : 1;

    for (int i = 0; i < 100; i++) {
        double mid = (low + high) / 2;

        if (mid * mid < x)
            low = mid;
        else
            high = mid;
    }
    return high;
}

static stk_time scaled(stk_time wait, double by)
{
    double t = (double)(wait + SAME) * by - (double)SAME;

    return t < 0 ? 0 : t > (double)STK_MAX_DURATION ? STK_MAX_DURATION : (stk_time)t;
}

static stk_time within(stk_time t, stk_time low, stk_time high)
{
    return t < low ? low : t > high ? high : t;
}

void stk_calibrate_correct(const struct stk_calibrate *c, const struct stk_calibrate_of *of,
                           struct stk_expected *io)
{
    const stk_time raw = io->p50 - of->now, raw90 = io->p90 - of->now,
                   past = stk_calibrate_mean(c, of->pool, of->gpus) - (of->now - of->submitted);
    stk_time wait = raw, late;

    if (io->p50 == STK_NEVER_TIME || raw <= 0)
        return;
    if (past > 0)
        wait = within(scaled(raw, root(root(ratio(past, raw)))), io->p10 - of->now, raw90);
    late = c->late > 0 ? scaled(wait, c->late) : raw90;
    late = late > wait ? late : wait;
    if (io->p90 != STK_NEVER_TIME || c->late > 0) {
        io->end_p90 = io->end_p90 == STK_NEVER_TIME ? io->end_p90 : io->end_p90 + late - raw90;
        io->p90 = of->now + late;
    }
    io->p50 = of->now + wait;
    io->end_p50 = io->end_p50 == STK_NEVER_TIME ? io->end_p50 : io->end_p50 + wait - raw;
    if (io->end_p90 < io->end_p50)
        io->end_p90 = io->end_p50;
}
