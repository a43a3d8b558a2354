/* SPDX-License-Identifier: Apache-2.0 */
#include "core/score.h"

#include <math.h>

#include "base/hash.h"
#include "core/blocks.h"
#include "core/index.h"
#include "core/part.h"
#include "core/resource.h"
#include "core/topo.h"

#define BLOCK 64
#define MOST_ROWS 256
#define LEAST_ROWS 4
#define ROW_MEMORY (64u << 20) /* bytes for all rows */
#define PRICES_EVERY 100       /* decisions */

static uint32_t n_blocks(const struct stk_state *s)
{
    return (s->n_nodes + BLOCK - 1) / BLOCK;
}

static size_t bytes_of(const struct stk_state *s)
{
    return ((size_t)s->n_nodes + n_blocks(s)) * sizeof(double) + s->n_nodes;
}

/* Where in score_space each row lies. */
static void lay_rows(struct stk_state *s)
{
    double *at = s->score_space;

    for (uint32_t i = 0; i < s->n_scores; i++) {
        s->scores[i].score = at;
        s->scores[i].best = at + s->n_nodes;
        s->scores[i].gpu = (uint8_t *)(at + s->n_nodes + n_blocks(s));
        at += (bytes_of(s) + 7) / 8;
    }
}

int stk_score_init(struct stk_state *s)
{
    const struct stk_mem *m = &s->mem;
    size_t each = bytes_of(s), fit = each ? ROW_MEMORY / each : MOST_ROWS;
    uint32_t n = fit > MOST_ROWS ? MOST_ROWS : fit < LEAST_ROWS ? LEAST_ROWS : (uint32_t)fit;

    if (!s->place->score)
        return 0;
    s->n_scores = n;
    s->scores = m->resize(m->ctx, NULL, 0, n * sizeof(*s->scores));
    s->score_log = m->resize(m->ctx, NULL, 0, STK_SCORE_LOG * sizeof(*s->score_log));
    s->score_stamp = m->resize(m->ctx, NULL, 0, (s->n_nodes + (size_t)1) * sizeof(uint64_t));
    s->score_space = m->resize(m->ctx, NULL, 0, n * ((each + 7) & ~(size_t)7) + 1);
    if (!s->scores || !s->score_log || !s->score_stamp || !s->score_space)
        return -ENOMEM;
    lay_rows(s);
    return 0;
}

void stk_score_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->scores, s->n_scores);
    STK_BLOCK(v, s->score_log, STK_SCORE_LOG);
    STK_BLOCK(v, s->score_stamp, s->n_nodes + (size_t)1);
    stk_block(v, &s->score_space, s->n_scores * ((bytes_of(s) + 7) & ~(size_t)7) + 1);
    if (v->copies && s->scores && s->score_space)
        lay_rows(s);
}

/* Of what is wanted, all that a score may depend on. Memory, named resources and nodes to avoid are
 * looked at when the best is chosen. */
static bool same(const struct stk_want *a, const struct stk_want *b)
{
    return a->pool == b->pool && a->gpu_types == b->gpu_types && a->gpus == b->gpus &&
           a->cpu_milli == b->cpu_milli && a->gpu_mem_mib == b->gpu_mem_mib &&
           a->gpu_milli == b->gpu_milli && a->share == b->share && a->share_max == b->share_max &&
           a->share_with == b->share_with && a->mig == b->mig;
}

/* The score, or -INFINITY: no room. */
static double score(const struct stk_state *s, uint32_t node, const struct stk_want *w,
                    uint8_t *ret_gpu)
{
    const struct stk_use u = stk_want_use(w);
    const struct stk_node *n = &s->nodes[node];
    uint32_t gpu = 0;
    double v;

    *ret_gpu = 0;
    if (!n->up || (n->closed && w->gpus == 0) || !((w->gpu_types >> n->gpu_type) & 1) ||
        (n->cpu_limited && w->cpu_milli > n->cpu_free) ||
        (w->gpus > 0 && n->gpu_mem_mib && w->gpu_mem_mib > n->gpu_mem_mib))
        return -INFINITY;
    if (w->gpu_milli) {
        gpu = stk_part_gpu(s, node, &u, 0);
        if (gpu == UINT32_MAX)
            return -INFINITY;
    } else if (w->gpus > n->gpus_free) {
        return -INFINITY;
    }
    v = s->place->score(s->place_st, s, node, w, &gpu);
    *ret_gpu = (uint8_t)gpu;
    return v;
}

/* What the piece takes of scarce things on the node. */
static double cost(const struct stk_state *s, const struct stk_score_row *r, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_want *w = &r->want;
    uint32_t taken = w->gpu_milli ? (uint32_t)(n->mask_free >> r->gpu[node] & 1) : w->gpus;
    uint32_t milli = w->gpu_milli ? w->gpu_milli : 1000 * w->gpus;

    if (!s->place->prices || n->gpus_free > STK_MAX_NODE_GPUS)
        return 0;
    return s->prices.type[n->gpu_type] * milli + s->prices.free[n->gpus_free] -
           s->prices.free[n->gpus_free - taken];
}

static double value(const struct stk_state *s, const struct stk_score_row *r, uint32_t node)
{
    return r->score[node] == -INFINITY ? -INFINITY : r->score[node] - cost(s, r, node);
}

static void find_best(const struct stk_state *s, struct stk_score_row *r, uint32_t block)
{
    uint32_t from = block * BLOCK, to = from + BLOCK < s->n_nodes ? from + BLOCK : s->n_nodes;
    double best = -INFINITY;

    for (uint32_t i = from; i < to; i++) {
        double v = value(s, r, i);

        best = v > best ? v : best;
    }
    r->best[block] = best;
}

static bool untouched(const struct stk_node *n)
{
    return n->up && n->n_uses == 0 && n->mask_off == 0;
}

static bool alike(const struct stk_node *a, const struct stk_node *b)
{
    return a->gpus == b->gpus && a->gpu_type == b->gpu_type && a->gpu_mem_mib == b->gpu_mem_mib &&
           a->cpu_milli == b->cpu_milli && a->cpu_limited == b->cpu_limited &&
           a->aggregate == b->aggregate && a->instances == b->instances && a->off == b->off &&
           a->power.idle_w == b->power.idle_w && a->power.gpu_w == b->power.gpu_w &&
           a->power.off_w == b->power.off_w;
}

static void find_all(const struct stk_state *s, struct stk_score_row *r)
{
    for (uint32_t b = 0; b < n_blocks(s); b++)
        find_best(s, r, b);
    r->priced = s->priced;
}

/* All nodes of the pool, of those alike and untouched only the first; the others copy it. */
static void fill(const struct stk_state *s, struct stk_score_row *r)
{
    const struct stk_pool *p = &s->pools[r->want.pool];
    uint32_t seen[8], n_seen = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        r->score[i] = -INFINITY;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i], k;
        bool fresh = !s->place->fleeting && untouched(&s->nodes[node]);

        for (k = 0; fresh && k < n_seen && !alike(&s->nodes[node], &s->nodes[seen[k]]); k++)
            ;
        if (fresh && k < n_seen) {
            r->score[node] = r->score[seen[k]];
            r->gpu[node] = r->gpu[seen[k]];
            continue;
        }
        r->score[node] = score(s, node, &r->want, &r->gpu[node]);
        if (fresh)
            seen[n_seen < 8 ? n_seen++ : node % 8] = node;
    }
    find_all(s, r);
}

/* First the nodes, then their blocks: a value is of use only when the score is that of today. */
static void refresh(struct stk_state *s, struct stk_score_row *r)
{
    uint64_t to = s->n_score_log;

    if (to - r->seen > STK_SCORE_LOG || to - r->seen > s->n_nodes) {
        fill(s, r);
        r->seen = to;
        return;
    }
    s->score_round++;
    for (uint64_t i = r->seen; i < to; i++) {
        uint32_t node = s->score_log[i & (STK_SCORE_LOG - 1)];

        if (s->score_stamp[node] == s->score_round || s->nodes[node].pool != r->want.pool)
            continue;
        s->score_stamp[node] = s->score_round;
        r->score[node] = score(s, node, &r->want, &r->gpu[node]);
        r->best[node / BLOCK] = NAN; /* to be found */
    }
    for (uint64_t i = r->seen; i < to; i++) {
        uint32_t block = s->score_log[i & (STK_SCORE_LOG - 1)] / BLOCK;

        if (isnan(r->best[block]))
            find_best(s, r, block);
    }
    r->seen = to;
}

void stk_score_forget(struct stk_state *s)
{
    for (uint32_t i = 0; i < s->n_scores; i++)
        s->scores[i].used = 0;
    s->price_age = PRICES_EVERY;
}

static uint8_t *hint_of(struct stk_state *s, const struct stk_want *w)
{
    uint64_t h = stk_hash_mix(w->gpu_types ^ w->pool, (uint64_t)w->gpus << 48 ^ w->cpu_milli);

    h = stk_hash_mix(h, (uint64_t)w->gpu_mem_mib << 16 ^ w->gpu_milli ^ (uint64_t)w->mig << 48);
    return &s->score_hint[h % sizeof(s->score_hint)];
}

/* The row of what is wanted, up to date. */
static struct stk_score_row *row_of(struct stk_state *s, const struct stk_want *w)
{
    uint8_t *hint = hint_of(s, w);
    struct stk_score_row *r = &s->scores[*hint], *oldest = &s->scores[0];

    if (!r->used || !same(&r->want, w))
        r = NULL;
    for (uint32_t i = 0; i < s->n_scores && !r; i++) {
        struct stk_score_row *k = &s->scores[i];

        if (k->used && same(&k->want, w))
            r = k;
        else if (k->used < oldest->used)
            oldest = k;
    }
    *hint = (uint8_t)((r ? r : oldest) - s->scores);
    if (!r) {
        r = oldest;
        r->want = *w;
        fill(s, r);
        r->seen = s->n_score_log;
    } else if (s->place->fleeting) {
        fill(s, r);
    } else if (r->seen != s->n_score_log) {
        refresh(s, r);
    }
    if (r->priced != s->priced)
        find_all(s, r);
    r->used = ++s->score_clock;
    return r;
}

static bool may_use(const struct stk_state *s, uint32_t node, const struct stk_want *w)
{
    const struct stk_node *n = &s->nodes[node];

    return !(w->avoid && stk_bits_test(w->avoid, node)) &&
           (!w->only || stk_bits_test(w->only, node)) && stk_topo_may(s, node, w) &&
           (!n->mem_limited || w->mem_mib <= n->mem_free) &&
           stk_resource_fits(s, node, &w->resources);
}

/* The best that may be used, when the best of all may not. */
static uint32_t next_best(const struct stk_state *s, const struct stk_score_row *r,
                          const struct stk_want *w)
{
    double most = -INFINITY;
    uint32_t best = STK_NONE;

    for (uint32_t b = 0; b < n_blocks(s); b++) {
        if (r->best[b] == -INFINITY || (best != STK_NONE && r->best[b] <= most))
            continue;
        for (uint32_t i = b * BLOCK; i < (b + 1) * BLOCK && i < s->n_nodes; i++) {
            double v = value(s, r, i);

            if (v > most && may_use(s, i, w)) {
                best = i;
                most = v;
            }
        }
    }
    return best;
}

/* The fullest node of the type that suits best; see score.h. */
static uint32_t pick_fullest(const struct stk_state *s, const struct stk_want *w)
{
    const struct stk_pool *p = &s->pools[w->pool];
    uint32_t best = STK_NONE, best_free = 0;
    double most = -INFINITY;

    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];
        uint32_t node = STK_NONE, b;
        double v;

        if (!stk_group_accepts(g, w->gpu_types))
            continue;
        v = s->place->whole(s->place_st, g->gpu_type, w->gpus) -
            s->prices.type[g->gpu_type] * 1000 * w->gpus;
        for (b = stk_index_bucket_up(s, g, w->gpus); b != STK_NONE && v >= most;
             b = stk_index_bucket_up(s, g, b + 1)) {
            node = stk_index_first(s, g, b, w);
            if (node != STK_NONE)
                break;
        }
        if (node == STK_NONE || (v == most && (b > best_free || (b == best_free && node > best))))
            continue;
        best = node;
        best_free = b;
        most = v;
    }
    return best;
}

static void look_at_prices(struct stk_state *s)
{
    if (!s->place->prices || s->plans_moves || s->n_moving > 0 ||
        s->price_age++ % PRICES_EVERY != 0)
        return;
    s->place->prices(s->place_st, s, &s->prices);
    s->priced++;
    s->price_age = 1;
}

uint32_t stk_score_pick(struct stk_state *s, const struct stk_want *w, uint32_t *ret_gpu)
{
    const struct stk_pool *p = &s->pools[w->pool];
    const struct stk_score_row *r;
    uint32_t block = 0, node;

    look_at_prices(s);
    if (s->place->whole && w->gpus > 0 && !w->gpu_milli && !p->cpu_limited && !p->aggregate)
        return pick_fullest(s, w);
    r = row_of(s, w);
    for (uint32_t b = 1; b < n_blocks(s); b++)
        block = r->best[b] > r->best[block] ? b : block;
    if (s->n_nodes == 0 || r->best[block] == -INFINITY)
        return STK_NONE;
    for (node = block * BLOCK; value(s, r, node) < r->best[block]; node++)
        ;
    if (!may_use(s, node, w))
        node = next_best(s, r, w);
    if (node != STK_NONE)
        *ret_gpu = r->gpu[node];
    return node;
}
