/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - why a job does not run: all reasons as data, the dominant one first. Works on the
 * state as it is; no record of past attempts is kept, so the answer cannot be stale. */
#include <string.h>

#include "core/drain.h"
#include "core/fence.h"
#include "core/gang.h"
#include "core/index.h"
#include "core/lack.h"
#include "core/lane.h"
#include "core/limit.h"
#include "core/place.h"
#include "core/power.h"
#include "core/sets.h"
#include "core/speed.h"
#include "core/verbs.h"
#include "model/reason.h"

static uint32_t most_free(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t most = 0;

    for (uint32_t i = 0; d->nodes && i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];

        if (n->up && n->gpus_free > most && (d->gpu_types >> n->gpu_type & 1) &&
            stk_sets_allow(s, d, node))
            most = n->gpus_free;
    }
    for (uint32_t i = 0; !d->nodes && i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];
        uint32_t b;

        if (!stk_group_accepts(g, d->gpu_types))
            continue;
        b = stk_index_bucket_down(s, g, g->max_gpus);
        if (b != STK_NONE && b > most)
            most = b;
    }
    return most;
}

/* The job that has one of these GPUs, the one expected to be the last to go; NULL: none. */
static const struct stk_job *holder(const struct stk_state *s, const struct stk_piece *at)
{
    const struct stk_job *last = NULL;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        for (uint32_t k = 0; j->lease && k < j->n_pieces; k++) {
            const struct stk_piece *p = &s->pieces[j->first_piece + k];

            if (p->node.i == at->node.i &&
                (at->mask ? (stk_index_blocks(s, j, p) & at->mask) != 0 : p->gpus > 0) &&
                (!last || j->expected_end > last->expected_end))
                last = j;
        }
    }
    return last;
}

/* A sleeping job, and not all of its GPUs are free. */
static void cannot_wake(const struct stk_state *s, const struct stk_piece *at, struct stk_reason *r)
{
    const struct stk_node *n = &s->nodes[at->node.i];
    const struct stk_job *other = holder(s, at);

    r->code = STK_WHY_PINNED;
    r->have = at->mask ? (uint64_t)__builtin_popcountll(at->mask & n->mask_free) : n->gpus_free;
    r->missing = r->need > r->have ? r->need - r->have : 0;
    r->other = other ? other->number : 0;
    if (other && other->state != STK_JOB_STOPPING && other->expected_end > s->now)
        r->until = other->expected_end;
}

/* It would fit if there were no power cap. */
static bool lacks_power(struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const uint64_t cap_w = s->cap_w;
    uint32_t n = 0;
    bool fits;

    if (cap_w == 0)
        return false;
    s->cap_w = 0;
    fits = stk_place_try(s, j->shape, NULL, &n);
    s->cap_w = cap_w;
    if (!fits)
        return false;
    r->code = STK_WHY_POWER;
    r->need = (uint64_t)stk_power_added(s, s->try_pieces, n);
    r->have = s->watts < cap_w ? cap_w - s->watts : 0;
    r->missing = r->need > r->have ? r->need - r->have : 0;
    return true;
}

static bool fits_without_limits(struct stk_state *s, const struct stk_job *j)
{
    struct stk_shape *sh = &s->shapes[j->shape];
    const struct stk_shape was = *sh;
    uint32_t n;
    bool fits;

    sh->tenant = 0;
    memset(sh->account, 0, sizeof(sh->account));
    fits = stk_place_try(s, j->shape, NULL, &n);
    sh->tenant = was.tenant;
    memcpy(sh->account, was.account, sizeof(sh->account));
    return fits;
}

/* It is over a limit, or would fit on GPUs of a type that is closed to it for one. */
static bool over_limit(struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    if (!stk_shape_limited(&s->shapes[j->shape]))
        return false;
    return (stk_limit_open(s, j->shape) == 0 || fits_without_limits(s, j)) &&
           stk_limit_why(s, j, r);
}

/* It would fit if there were no reservations. */
static bool kept_out(struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_booking *b = stk_fence_why(s, (uint32_t)(j - s->jobs), s->now);

    if (!b)
        return false;
    r->code = STK_WHY_BOOKED;
    r->booking = b->number;
    r->have = s->pools[j->pool].gpus_free;
    r->until = b->end;
    r->other = b->drain ? s->book.holder[b->holder].id : 0;
    return true;
}

/* GPUs are being kept free for it, and it has not got all yet. */
static bool drains(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_booking *b = stk_drain_of(s, j);

    if (!b)
        return false;
    r->code = STK_WHY_DRAINS;
    r->booking = b->number;
    r->need = b->gpus;
    r->have = stk_drain_has(s, b, &r->until);
    r->missing = r->need - r->have;
    return true;
}

/* Nodes that it may use, and those of them that are shut. True: all are. */
static bool all_shut(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    (void)stk_sets_free(s, d, j->pool, &r->nodes);
    stk_sets_shut(s, d, j->pool, &r->drained, &r->down);
    return r->drained + r->down == r->nodes;
}

/* Too few GPUs are free on the nodes that it may use. */
static bool lacks_nodes(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint64_t have;

    if (!d->nodes)
        return false;
    have = stk_sets_free(s, d, j->pool, &r->nodes);
    if (have >= r->need)
        return false;
    (void)all_shut(s, j, r);
    r->code = STK_WHY_NODES;
    r->have = have;
    r->missing = r->need - have;
    return true;
}

/* Whether it would fit if it asked for this, and there were neither limits nor a power cap. */
static bool fits_as(struct stk_state *s, const struct stk_job *j, const struct stk_demand *d)
{
    struct stk_shape *sh = &s->shapes[j->shape];
    const struct stk_demand was = sh->demand;
    const uint64_t cap_w = s->cap_w;
    bool fits;

    sh->demand = *d;
    s->cap_w = 0;
    fits = fits_without_limits(s, j);
    s->cap_w = cap_w;
    sh->demand = was;
    return fits;
}

/* It lacks this, beside GPUs. */
static void lacks(const struct stk_lack *l, uint32_t of, struct stk_reason *r)
{
    r->level = l->level;
    if (of < STK_LACK_RESOURCE) {
        r->code = STK_WHY_CPU_MEM;
        r->unit = of == STK_LACK_CPUS ? STK_UNIT_CPUS : STK_UNIT_MEM;
        r->limit = l->need;
        r->used = l->have;
        return;
    }
    r->code = STK_WHY_RESOURCE;
    r->resource = of - STK_LACK_RESOURCE;
    r->need = l->need;
    r->have = l->have;
    r->missing = l->need > l->have ? l->need - l->have : 0;
}

/* The first of CPUs, memory and named resources of which too little is free, by count. */
static bool counts_short(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    struct stk_lack l;

    for (uint32_t of = 0; of < STK_LACK_END; of++)
        if (stk_lack_asks(d, of) && stk_lack_find(s, d, j->pool, of, false, &l)) {
            lacks(&l, of, r);
            return true;
        }
    return false;
}

/* It would fit if it needed GPUs alone: what else is short. Where each suffices by count, the one
 * without which it would fit; where there is none such, the first. */
static bool lacks_besides(struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_demand d = s->shapes[j->shape].demand;
    struct stk_demand less = stk_lack_without(&d, STK_LACK_ANY);
    uint32_t first = STK_LACK_END, of;
    struct stk_lack l;

    if (!stk_lack_asks(&d, STK_LACK_ANY) || !fits_as(s, j, &less))
        return false;
    if (counts_short(s, j, r))
        return true;
    for (of = 0; of < STK_LACK_END; of++) {
        if (!stk_lack_asks(&d, of))
            continue;
        first = first < of ? first : of;
        less = stk_lack_without(&d, of);
        if (fits_as(s, j, &less))
            break;
    }
    of = of < STK_LACK_END ? of : first;
    (void)stk_lack_find(s, &d, j->pool, of, false, &l);
    lacks(&l, of, r);
    return true;
}

/* Pieces of so many GPUs for which there is room on nodes that it may use. */
static uint64_t count_pieces(const struct stk_state *s, const struct stk_job *j, uint32_t gpus,
                             bool one_each)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_pool *p = &s->pools[j->pool];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p->n_nodes && gpus > 0; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];
        const uint32_t fit = n->gpus_free / gpus;

        if (n->up && (d->gpu_types >> n->gpu_type & 1) && stk_sets_allow(s, d, node))
            sum += one_each && fit > 1 ? 1 : fit;
    }
    return sum;
}

/* So many pieces of so many GPUs each, and there is no room for all. */
static void lacks_pieces(const struct stk_state *s, const struct stk_job *j, uint32_t pieces,
                         uint32_t gpus, bool one_each, struct stk_reason *r)
{
    const uint64_t room = count_pieces(s, j, gpus, one_each);

    if (pieces <= 1 || room >= pieces)
        return;
    r->limit = pieces;
    r->used = room;
}

/* GPUs are free, but its tasks cannot lie as they must: where there are too few for that. */
static void lacks_near(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const bool on_node = d->group && d->group_level <= STK_AT_NODE;
    const uint32_t unit = d->per_node ? d->per_node : on_node ? d->group : 0;
    const struct {
        enum stk_level level;
        uint64_t need;
    } parts[] = {{stk_gang_last(d), r->need},
                 {(enum stk_level)d->group_level, (uint64_t)d->group * d->gpus},
                 {STK_AT_NODE, (uint64_t)d->per_node * d->gpus}};

    r->code = STK_WHY_TOPOLOGY;
    for (uint32_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const uint64_t have = parts[i].need ? stk_gang_most_free(s, d, j->pool, parts[i].level) : 0;

        r->have = i == 0 ? have : r->have;
        if (have >= parts[i].need)
            continue;
        r->level = parts[i].level;
        r->need = parts[i].need;
        r->have = have;
        r->missing = r->need - have;
        return;
    }
    if (unit > 0)
        lacks_pieces(s, j, d->tasks / unit, unit * d->gpus, d->per_node > 0, r);
}

/* Enough GPUs are free, but not together. */
static void lacks_together(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint32_t whole, size, rest, piece;

    stk_place_cut(s, d, j->pool, &whole, &size, &rest);
    piece = d->gpu_milli ? 0 : whole ? size : d->gpus;
    r->have = most_free(s, d, j->pool);
    r->missing = piece > r->have ? piece - r->have : 0;
    r->code =
        piece > r->have || s->shapes[j->shape].gpus > piece ? STK_WHY_FRAGMENTS : STK_WHY_CPU_MEM;
    lacks_pieces(s, j, whole ? whole : d->tasks, piece, whole > 0, r);
}

/* A sleeping job: it can wake on its own GPUs only. */
static void lacks_pinned(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_piece at = stk_place_pin(&s->shapes[j->shape].demand);
    const struct stk_node *n = &s->nodes[at.node.i];

    if (!n->up || (at.mask & ~n->mask_free) || at.gpus > n->gpus_free) {
        cannot_wake(s, &at, r);
        return;
    }
    r->have = r->need;
    r->code = STK_WHY_CPU_MEM;
    (void)counts_short(s, j, r);
}

/* It does not fit: what is missing. */
static void lacks_room(struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_shape *sh = &s->shapes[j->shape];

    if (sh->demand.pin) {
        lacks_pinned(s, j, r);
        return;
    }
    r->have = s->pools[j->pool].gpus_free;
    if (stk_place_possible(s, &sh->demand, j->pool, NULL) < 0 && /* nodes were taken away */
        !(s->pools_change && stk_place_anywhere(s, &sh->demand))) {
        r->code = STK_WHY_NEVER;
        return;
    }
    if ((r->have >= r->need || stk_demand_shares(&sh->demand)) && lacks_besides(s, j, r))
        return;
    if (lacks_nodes(s, j, r))
        return;
    if (r->have < r->need) {
        r->code = STK_WHY_GPUS;
        r->missing = r->need - r->have;
    } else if (sh->gpus == 0 && all_shut(s, j, r)) {
        r->code = STK_WHY_CLOSED;
    } else if (stk_demand_near(&sh->demand)) {
        lacks_near(s, j, r);
    } else {
        lacks_together(s, j, r);
    }
}

/* It would fit: who stands before it. */
static void not_its_turn(const struct stk_state *s, const struct stk_job *j, stk_time now,
                         struct stk_reason *r)
{
    const struct stk_pool *p = &s->pools[j->pool];

    r->have = p->gpus_free;
    if (s->round > 0 && now % s->round != 0) {
        r->code = STK_WHY_ROUND;
        r->until = (now / s->round + 1) * s->round;
    } else if (p->claim != STK_NONE && s->jobs[p->claim].number != j->number) {
        r->code = STK_WHY_CLAIMED;
        r->other = s->jobs[p->claim].number;
    } else if (p->resv_job != STK_NONE && s->jobs[p->resv_job].number != j->number) {
        r->code = STK_WHY_RESERVED;
        r->other = s->jobs[p->resv_job].number;
        r->until = p->resv_at == STK_NEVER_TIME ? 0 : p->resv_at;
    } else if (p->ready.n > 0 && !s->backfill->pass) {
        struct stk_oent first;

        r->code = STK_WHY_BEHIND;
        r->other = stk_shape_first(s, p->ready.item[0].id, INT64_MAX, &first)
                       ? s->jobs[first.id].number
                       : 0;
    } else {
        r->code = STK_WHY_RANK;
    }
}

static void add(struct stk_reasons *all, const struct stk_reason *base, struct stk_reason r)
{
    r.off = base->off;
    all->list[all->n++] = r;
}

/* What holds a waiting job back, each thing looked at as if the others were not: what it is over or
 * lacks, and who comes before it. */
static void all_of_waiting(struct stk_state *s, const struct stk_job *j,
                           const struct stk_reason *base, struct stk_reasons *all)
{
    struct stk_reason limit = *base, power = *base, room = *base, turn = *base;
    uint32_t n;
    bool fits, limited, powered;

    stk_fence_for(s, s->now, s->now + stk_speed_longest(s, j, s->now));
    fits = stk_place_try(s, j->shape, NULL, &n);
    limited = !fits && over_limit(s, j, &limit);
    powered = !fits && !limited && lacks_power(s, j, &power);
    if (limited)
        add(all, base, limit);
    if (powered)
        add(all, base, power);
    if (!fits && !powered && (!limited || !fits_without_limits(s, j))) {
        if (!drains(s, j, &room) && !kept_out(s, j, &room))
            lacks_room(s, j, &room);
        add(all, base, room);
    }
    stk_fence_any(s);
    not_its_turn(s, j, s->now, &turn);
    if (fits || turn.code != STK_WHY_RANK)
        add(all, base, turn);
}

static void all_of(struct stk_state *s, uint32_t job, struct stk_reasons *all)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_reason r = {.need = j->gpus, .off = s->pools[j->pool].gpus_off};

    switch ((enum stk_job_state)j->state) {
    case STK_JOB_HELD:
        r.code = STK_WHY_HELD;
        break;
    case STK_JOB_BLOCKED:
        r.code = j->unmet > 0 ? STK_WHY_DEPENDENCY : STK_WHY_BEGIN;
        r.missing = j->unmet;
        r.until = j->unmet > 0 ? 0 : j->begin;
        break;
    case STK_JOB_WAITING:
        all_of_waiting(s, j, &r, all);
        return;
    case STK_JOB_STOPPING:
        r.code = STK_WHY_STOPPING;
        break;
    case STK_JOB_DONE:
        r.code = STK_WHY_ENDED;
        break;
    case STK_JOB_NONE:
    case STK_JOB_PLACED:
    case STK_JOB_RUNNING:
    case STK_JOB_STATE_MAX:
        r.code = STK_WHY_RUNNING;
        break;
    }
    all->list[all->n++] = r;
    if (j->state == STK_JOB_BLOCKED && j->unmet > 0 && j->begin > s->now) {
        r = (struct stk_reason){.code = STK_WHY_BEGIN, .need = r.need, .off = r.off};
        r.until = j->begin;
        all->list[all->n++] = r;
    }
}

int stk_explain(struct stk_state *s, stk_job_id job, struct stk_reasons *ret, struct stk_err *err)
{
    if (job.i >= s->n_jobs || s->jobs[job.i].state == STK_JOB_NONE)
        return stk_err_set(err, -ENOENT, "there is no job in slot %u", job.i);
    ret->n = 0;
    all_of(s, job.i, ret);
    return 0;
}
