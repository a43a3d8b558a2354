/* SPDX-License-Identifier: Apache-2.0 */
/* stoker.c - place: where the least is expected to stay unsold. Our own.
 *
 * Every node has an expected loss, from the mix of what usually comes (model/mix.h):
 *
 * Gaps. V(l) is how much of a gap of l thousandths of a GPU will be sold if OFFERS more tasks of
 * the mix are offered and bad fits may be passed on: V_0 = 0, and with each offer a task that fits
 * is taken when it and the rest of the gap are worth more than the gap is. The loss is l - V(l).
 * Along with V goes the CPU that the tasks will want: its mean and its variance.
 *
 * CPU. What will be wanted for all gaps of a node is about normally distributed. What of it is
 * expected beyond the CPU that is left, times what a core sells in GPU, is lost too.
 *
 * A task goes where the loss grows least. Two things besides may become scarce: GPUs of types that
 * some tasks insist on, and groups of free GPUs on one node for tasks of several. Each has a price
 * that grows with the square of the demand for it over its share of what is free, made anew now and
 * then (PRICES_EVERY); what a task takes of them is added to its cost. Besides, a node with few
 * free GPUs is a little better than one with many, so that as jobs come and go some nodes become
 * empty.
 *
 * Where CPU is not limited and whole GPUs are wanted, the loss grows as much on every node of a
 * type. There the fullest node is taken, as "pack" does, of the type with the least price: groups
 * of free GPUs then stay whole by themselves as jobs come and go.
 *
 * No two nodes in different states tie, but by chance: the order of nodes does not matter.
 */
#include <math.h>
#include <string.h>

#include "core/part.h"
#include "policy/place/frag.h"
#include "policy/registry.h"

#define STEP 10 /* thousandths of a GPU in one row of the tables */
#define ROWS (1000 / STEP + 1)
#define OFFERS 60
#define SCARCE 0.2      /* price of a thing wanted just as much as there is */
#define SCARCE_MOST 5.0 /* wanted so many times over, no price rises further */
#define FULLEST 2.0     /* what a node with free GPUs is worth, times the square of their number */
#define NORMAL_STEPS 64 /* per standard deviation */
#define NORMAL_MOST 4   /* standard deviations */

struct gap {
    double sold;          /* thousandths of a GPU */
    double cpu, variance; /* cores wanted for that */
};

struct tables {
    uint64_t known; /* bit per type: gaps are made */
    struct gap gap[STK_MAX_GPU_TYPES][ROWS];
    double
        beyond[2 * NORMAL_MOST * NORMAL_STEPS + 1]; /* of a normal variable, from -NORMAL_MOST on */
    double demand;                             /* thousandths of GPUs a task, of the whole mix */
    double group_share[STK_MAX_NODE_GPUS + 1]; /* of that, by GPUs on one node */
};

/* Expected excess over z of a standard normal variable: the integral of its tail, from the far end.
 */
static void make_beyond(double *beyond)
{
    const int n = 2 * NORMAL_MOST * NORMAL_STEPS, fine = 16;
    const double h = 1.0 / (NORMAL_STEPS * fine), scale = 0.39894228040143268;
    double tail = 3.17e-5, sum = 7.1e-6, z = NORMAL_MOST; /* of what lies beyond the end */

    beyond[n] = sum;
    for (int i = n - 1; i >= 0; i--) {
        for (int k = 0; k < fine; k++) {
            double before = tail;

            tail += h * scale * exp(-0.5 * (z - h / 2) * (z - h / 2));
            z -= h;
            sum += h * (before + tail) / 2;
        }
        beyond[i] = sum;
    }
}

static double excess(const struct tables *t, double z)
{
    double x = (z + NORMAL_MOST) * NORMAL_STEPS;
    int i;

    if (z >= NORMAL_MOST)
        return 0;
    if (z <= -NORMAL_MOST)
        return -z;
    i = (int)x;
    return t->beyond[i] + (t->beyond[i + 1] - t->beyond[i]) * (x - i);
}

struct offer { /* tasks of one size as one GPU sees them */
    uint32_t rows;
    double milli, chance;
    double cpu, cpu2; /* mean and second moment */
};

/* The offer of this size, or a new one at the end. */
static struct offer *offer_of(struct offer *list, uint32_t *io_n, uint32_t milli)
{
    uint32_t i = 0;

    while (i < *io_n && list[i].milli != milli)
        i++;
    if (i == *io_n)
        list[(*io_n)++] = (struct offer){.rows = (milli + STEP - 1) / STEP, .milli = milli};
    return &list[i];
}

static uint32_t offers_of(const struct stk_mix *mix, uint32_t type, struct offer *list)
{
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < mix->n; i++) {
        const struct stk_kind *k = &mix->kind[i];
        double chance = k->share * k->gpus, cpu;
        struct offer *o;

        if (k->gpus == 0 || !((k->gpu_types >> type) & 1))
            continue;
        cpu = k->cpu_milli / 1000.0 / k->gpus;
        o = offer_of(list, &n, k->gpu_milli);
        o->chance += chance;
        o->cpu += chance * cpu;
        o->cpu2 += chance * cpu * cpu;
        sum += chance;
    }
    for (uint32_t i = 0; i < n; i++) {
        list[i].cpu /= list[i].chance;
        list[i].cpu2 /= list[i].chance;
        list[i].chance /= sum;
    }
    return n;
}

/* Mean and second moment while they are made; the variance at the end. */
static void offer_all(const struct gap *old, struct gap *now, const struct offer *list, uint32_t n)
{
    for (uint32_t l = 0; l < ROWS; l++) {
        struct gap g = {0};
        double taken = 0;

        for (uint32_t i = 0; i < n; i++) {
            const struct offer *o = &list[i];
            const struct gap *rest = &old[l - (o->rows <= l ? o->rows : l)];

            if (o->rows > l || o->milli + rest->sold <= old[l].sold + 1e-9)
                continue;
            taken += o->chance;
            g.sold += o->chance * (o->milli + rest->sold);
            g.cpu += o->chance * (o->cpu + rest->cpu);
            g.variance += o->chance * (o->cpu2 + 2 * o->cpu * rest->cpu + rest->variance);
        }
        now[l].sold = g.sold + (1 - taken) * old[l].sold;
        now[l].cpu = g.cpu + (1 - taken) * old[l].cpu;
        now[l].variance = g.variance + (1 - taken) * old[l].variance;
    }
}

static void make_gaps(const struct stk_mix *mix, uint32_t type, struct gap *ret)
{
    struct offer list[STK_MAX_MIX];
    struct gap other[ROWS];
    uint32_t n = offers_of(mix, type, list);

    memset(ret, 0, sizeof(other));
    for (uint32_t h = 0; h < OFFERS; h += 2) {
        offer_all(ret, other, list, n);
        offer_all(other, ret, list, n);
    }
    for (uint32_t l = 0; l < ROWS; l++) {
        ret[l].variance -= ret[l].cpu * ret[l].cpu;
        ret[l].variance = ret[l].variance > 0 ? ret[l].variance : 0;
    }
}

static void learn(void *st, const struct stk_state *s)
{
    const struct stk_mix *mix = s->mix;
    struct tables *t = st;

    *t = (struct tables){0};
    make_beyond(t->beyond);
    for (uint32_t i = 0; i < s->n_groups; i++) {
        uint32_t type = s->groups[i].gpu_type;

        if (t->known >> type & 1)
            continue;
        t->known |= UINT64_C(1) << type;
        make_gaps(mix, type, t->gap[type]);
    }
    for (uint32_t i = 0; i < mix->n; i++)
        t->demand += mix->kind[i].share * mix->kind[i].gpus * mix->kind[i].gpu_milli;
    for (uint32_t i = 0; i < mix->n && t->demand > 0; i++) {
        const struct stk_kind *k = &mix->kind[i];

        if (k->gpus > 1 && k->gpus <= STK_MAX_NODE_GPUS)
            t->group_share[k->gpus] += k->share * k->gpus * k->gpu_milli / t->demand;
    }
}

/* What is free of each type, and in whole groups of so many GPUs on one node. */
struct stock {
    double type[STK_MAX_GPU_TYPES], group[STK_MAX_NODE_GPUS + 1], all;
};

static void add_stock(const struct tables *t, struct stock *k, double nodes, uint32_t n_free)
{
    for (uint32_t g = 2; g <= n_free && g <= STK_MAX_NODE_GPUS; g++)
        k->group[g] += t->group_share[g] > 0 ? nodes * 1000.0 * (n_free - n_free % g) : 0;
}

/* Free GPUs by the buckets of the index; then what is left of shared ones. */
static void count_stock(const struct tables *t, const struct stk_state *s, struct stock *k)
{
    for (uint32_t i = 0; i < s->n_groups; i++) {
        const struct stk_group *g = &s->groups[i];

        for (uint32_t b = stk_index_bucket_up(s, g, 1); b != STK_NONE;
             b = stk_index_bucket_up(s, g, b + 1)) {
            k->type[g->gpu_type] += 1000.0 * b * stk_index_count(s, g, b);
            add_stock(t, k, stk_index_count(s, g, b), b);
        }
        k->type[g->gpu_type] += (double)stk_part_left_in(s, g);
    }
    for (uint32_t y = 0; y < STK_MAX_GPU_TYPES; y++)
        k->all += k->type[y];
}

static double price(double wanted, double have, double all)
{
    double r = wanted > 0 ? SCARCE_MOST : 0;

    if (have > 0)
        r = wanted * all / have;

    r = r < SCARCE_MOST ? r : SCARCE_MOST;
    return SCARCE * r * r;
}

/* Tasks that insist on types share them by what is free of each. */
static void insist(const struct tables *t, const struct stk_mix *mix, const struct stock *k,
                   double *wanted)
{
    for (uint32_t i = 0; i < mix->n && t->demand > 0; i++) {
        const struct stk_kind *m = &mix->kind[i];
        double share = m->share * m->gpus * m->gpu_milli / t->demand, have = 0;

        if (m->gpus == 0 || m->gpu_types == STK_ANY_GPU_TYPE)
            continue;
        for (uint32_t y = 0; y < STK_MAX_GPU_TYPES; y++)
            have += (m->gpu_types >> y) & 1 ? k->type[y] : 0;
        for (uint32_t y = 0; y < STK_MAX_GPU_TYPES && have > 0; y++)
            wanted[y] += (m->gpu_types >> y) & 1 ? share * k->type[y] / have : 0;
    }
}

static void set_prices(const void *st, const struct stk_state *s, struct stk_prices *p)
{
    double wanted[STK_MAX_GPU_TYPES] = {0};
    const struct tables *t = st;
    struct stock k = {.all = 0};

    count_stock(t, s, &k);
    insist(t, s->mix, &k, wanted);
    for (uint32_t y = 0; y < STK_MAX_GPU_TYPES; y++)
        p->type[y] = price(wanted[y], k.type[y], k.all);
    for (uint32_t n = 0; n <= STK_MAX_NODE_GPUS; n++) {
        p->free[n] = FULLEST * n * n;
        for (uint32_t g = 2; g <= n; g++)
            p->free[n] += price(t->group_share[g], k.group[g], k.all) * 1000 * (n - n % g);
    }
}

/* Of one node, without prices. */
static double loss(const struct tables *t, const struct gap *gaps, const struct stk_frag *f)
{
    double left = 0, sold = 0, cpu = 0, variance = 0, sd, have = (double)f->cpu / 1000;

    for (uint32_t i = 0; i < f->gpus; i++) {
        const struct gap *g = &gaps[f->left[i] / STEP];

        left += f->left[i];
        sold += g->sold;
        cpu += g->cpu;
        variance += g->variance;
    }
    if (cpu < 0.01)
        return left - sold;
    sd = sqrt(variance) + 1e-6;
    return left - sold + sold / cpu * sd * excess(t, (have - cpu) / sd);
}

static double score(const void *st, const struct stk_state *s, uint32_t node,
                    const struct stk_want *w, uint32_t *io_gpu)
{
    const struct tables *t = st;
    const struct gap *gaps = t->gap[s->nodes[node].gpu_type];
    double before, best = -INFINITY, closed;
    struct stk_frag f;
    uint32_t n = s->nodes[node].gpus_free;

    stk_frag_see(&f, s, node);
    before = loss(t, gaps, &f);
    if (!w->gpu_milli) {
        stk_frag_take(&f, w);
        return before - loss(t, gaps, &f);
    }
    closed = n > 0 ? s->prices.free[n] - s->prices.free[n - 1] : 0; /* of a GPU that is free now */
    f.cpu -= w->cpu_milli;
    for (uint64_t m = stk_frag_choices(&f, s, node, w); m; m &= m - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(m);
        double v;

        f.left[g] -= w->gpu_milli;
        v = before - loss(t, gaps, &f);
        f.left[g] += w->gpu_milli;
        v -= f.left[g] == 1000 ? closed : 0;
        if (v > best) {
            best = v;
            *io_gpu = g;
        }
    }
    return best +
           (f.left[*io_gpu] == 1000 ? closed : 0); /* the core adds prices as they are then */
}

/* Each GPU is closed with nothing lost; the loss of its being free goes. */
static double whole(const void *st, uint32_t type, uint32_t gpus)
{
    return gpus * (1000 - ((const struct tables *)st)->gap[type][ROWS - 1].sold);
}

const struct stk_place_ops stk_place_stoker = {
    .name = "stoker",
    .help = "where the least is expected to stay unsold, by what usually comes",
    .state_size = sizeof(struct tables),
    .mix = true,
    .by_demand = true,
    .whole = whole,
    .learn = learn,
    .prices = set_prices,
    .score = score,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};
