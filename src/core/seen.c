/* SPDX-License-Identifier: Apache-2.0 */
#include "core/seen.h"

#include <string.h>

#include "base/hash.h"
#include "core/blocks.h"
#include "core/place.h"
#include "core/score.h"
#include "core/shape.h"

#define MOST_JOBS 5000 /* between two mixes */

int stk_seen_init(struct stk_state *s)
{
    if (!s->place->mix || s->mix_given)
        return 0;
    s->seen = s->mem.resize(s->mem.ctx, NULL, 0, sizeof(*s->seen));
    if (!s->seen)
        return -ENOMEM;
    s->seen->next = 20;
    return 0;
}

void stk_seen_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->seen, 1);
}

static uint32_t home_of(const struct stk_seen_kind *k)
{
    uint64_t h = stk_hash_mix(k->gpu_types, (uint64_t)k->gpus << 32 | k->cpu_milli);

    return (uint32_t)(stk_hash_mix(h, k->gpu_milli) % STK_SEEN_SLOTS);
}

static bool same(const struct stk_seen_kind *a, const struct stk_seen_kind *b)
{
    return a->cpu_milli == b->cpu_milli && a->gpus == b->gpus && a->gpu_milli == b->gpu_milli &&
           a->gpu_types == b->gpu_types;
}

/* Where the kind is, or the empty slot where it would be. */
static uint16_t *find(struct stk_seen *e, const struct stk_seen_kind *k)
{
    uint32_t at = home_of(k);

    while (e->slot[at] && !same(&e->kind[e->slot[at] - 1], k))
        at = (at + 1) % STK_SEEN_SLOTS;
    return &e->slot[at];
}

static void file_all(struct stk_seen *e)
{
    memset(e->slot, 0, sizeof(e->slot));
    for (uint32_t i = 0; i < e->n; i++)
        *find(e, &e->kind[i]) = (uint16_t)(i + 1);
}

static void halve(struct stk_seen *e)
{
    uint32_t n = 0;

    e->sum = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        struct stk_seen_kind k = e->kind[i];

        k.n /= 2;
        e->sum += k.n;
        if (k.n > 0 || k.told > 0) /* what the mix has is kept until there is another */
            e->kind[n++] = k;
    }
    e->n = n;
}

static void count(struct stk_seen *e, struct stk_seen_kind k)
{
    uint16_t *at = find(e, &k);
    bool fits = *at || e->n < STK_SEEN_KINDS;

    if (!fits || e->sum + k.n > STK_SEEN_SUM) {
        halve(e);
        file_all(e);
        at = find(e, &k);
        fits = *at || e->n < STK_SEEN_KINDS;
    }
    if (!fits)
        return;
    if (!*at) {
        e->kind[e->n] = k;
        e->kind[e->n].n = 0;
        *at = (uint16_t)++e->n;
    }
    e->kind[*at - 1].n += k.n;
    e->sum += k.n;
}

static struct stk_kind kind_of(const struct stk_seen_kind *k)
{
    return (struct stk_kind){.cpu_milli = k->cpu_milli,
                             .gpus = k->gpus,
                             .gpu_milli = k->gpu_milli,
                             .gpu_types = k->gpu_types,
                             .share = k->told};
}

static uint64_t weight(const struct stk_state *s, const struct stk_seen_kind *k)
{
    const struct stk_kind kind = kind_of(k);

    return stk_kind_weight(&kind, k->told, s->place->by_demand);
}

/* The kinds that together are enough of all. */
static void make_mix(struct stk_state *s)
{
    struct stk_seen *e = s->seen;
    struct stk_mix *m = s->mix;
    uint64_t cover = s->place->by_demand ? STK_MIX_COVER_DEMAND_PCT : STK_MIX_COVER_PCT;
    uint64_t all = 0, sum = 0, n = 0;

    for (uint32_t i = 0; i < e->n; i++) {
        e->sort[i] = (struct stk_sort_item){-(int64_t)weight(s, &e->kind[i]), i, i};
        all += weight(s, &e->kind[i]);
    }
    stk_sort(e->sort, e->n, e->sort + STK_SEEN_KINDS);
    m->n = 0;
    while (m->n < e->n && m->n < STK_MAX_MIX && sum * 100 < all * cover) {
        const struct stk_seen_kind *k = &e->kind[e->sort[m->n].id];

        m->kind[m->n++] = kind_of(k);
        sum += weight(s, k);
        n += k->told;
    }
    for (uint32_t i = 0; i < m->n; i++)
        m->kind[i].share /= (double)n;
    if (s->place->learn)
        s->place->learn(s->place_st, s);
    stk_score_forget(s);
}

static uint64_t next_after(uint64_t jobs)
{
    uint64_t more = jobs / 2 > 400 ? jobs / 2 : 400;

    return jobs < 100 ? 100 : jobs + (more < MOST_JOBS ? more : MOST_JOBS);
}

void stk_seen_add(struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    struct stk_seen *e = s->seen;
    uint32_t whole, size, rest;
    struct stk_seen_kind k = {.cpu_milli = s->pools[pool].cpu_limited ? d->cpu_milli : 0,
                              .gpus = d->gpus,
                              .gpu_milli = d->gpus == 0 ? 0 : stk_demand_asked_milli(d),
                              .gpu_types = d->gpus ? stk_shape_types(s, d, pool) : STK_ANY_GPU_TYPE,
                              .n = d->tasks};

    stk_place_cut(s, d, pool, &whole, &size, &rest);
    if (whole > 0 && d->gpus > 0) {
        k.gpus = size;
        k.cpu_milli = (uint32_t)((uint64_t)k.cpu_milli * size / d->gpus);
        k.n = whole;
    }
    k.n = k.n < STK_SEEN_SUM / 2 ? k.n : STK_SEEN_SUM / 2;
    count(e, k);
    if (++e->jobs < e->next)
        return;
    e->next = next_after(e->jobs);
    for (uint32_t i = 0; i < e->n; i++)
        e->kind[i].told = e->kind[i].n;
    make_mix(s);
}

bool stk_seen_restore(struct stk_state *s)
{
    struct stk_seen *e = s->seen;

    e->sum = 0;
    memset(e->slot, 0, sizeof(e->slot));
    for (uint32_t i = 0; i < e->n; i++) {
        uint16_t *at = find(e, &e->kind[i]);

        if (*at)
            return false;
        *at = (uint16_t)(i + 1);
        e->sum += e->kind[i].n;
    }
    make_mix(s);
    return true;
}
