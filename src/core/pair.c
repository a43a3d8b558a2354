/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pair.h"

#include <string.h>

#include "core/blocks.h"
#include "core/index.h"
#include "core/sets.h"
#include "core/shape.h"

static size_t mates_size(const struct stk_state *s)
{
    return 2 * (s->n_parts + (size_t)1) * sizeof(*s->mates);
}

int stk_pair_init(struct stk_state *s)
{
    s->mates = s->mem.resize(s->mem.ctx, NULL, 0, mates_size(s));
    return s->mates ? 0 : -ENOMEM;
}

void stk_pair_memory(struct stk_state *s, struct stk_visit *v)
{
    stk_block(v, &s->mates, mates_size(s));
}

/* The two seats of the first GPU of a lease stand for all of them. */
static uint32_t *seats(const struct stk_state *s, const struct stk_piece *first)
{
    const struct stk_node *n = &s->nodes[first->node.i];

    return &s->mates[2 * (size_t)(n->first_part + (uint32_t)__builtin_ctzll(first->mask))];
}

static uint32_t *seats_of(const struct stk_state *s, const struct stk_job *j)
{
    return seats(s, &s->pieces[j->first_piece]);
}

static bool pairs(const struct stk_state *s, const struct stk_job *j)
{
    return stk_demand_pairs(&s->shapes[j->shape].demand);
}

bool stk_pair_allows(const struct stk_state *s, const struct stk_piece *pieces, uint32_t n,
                     uint32_t i)
{
    const struct stk_node *node = &s->nodes[pieces[i].node.i];
    const struct stk_job *host;
    const struct stk_piece *p;
    const uint32_t *at;

    if (pieces[i].mask & ~node->mask_all)
        return false;
    at = seats(s, &pieces[0]);
    if (at[0] == 0 || at[1] != 0)
        return (pieces[i].mask & ~node->mask_free) == 0;
    host = &s->jobs[at[0] - 1];
    p = &s->pieces[host->first_piece + i];
    return host->n_pieces == n && p->node.i == pieces[i].node.i && p->mask == pieces[i].mask;
}

uint32_t stk_pair_mate(const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const uint32_t *at = pairs(s, j) ? seats_of(s, j) : NULL;

    if (!at || at[1] == 0)
        return STK_NONE;
    return (at[0] == job + 1 ? at[1] : at[0]) - 1;
}

/* ---- who is alone ---- */

static int64_t type_of(const struct stk_state *s, const struct stk_job *j)
{
    return s->nodes[s->pieces[j->first_piece].node.i].gpu_type;
}

void stk_pair_show(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_oent e = {.key = type_of(s, j), .tie = j->number, .id = job};
    struct stk_shape *sh = &s->shapes[j->shape];
    struct stk_pool *p = &s->pools[j->pool];

    if (sh->alone.count == 0) {
        sh->alone_prev = 0;
        sh->alone_next = p->alone;
        if (p->alone)
            s->shapes[p->alone - 1].alone_prev = j->shape + 1;
        p->alone = j->shape + 1;
    }
    stk_otree_insert(&s->trees, &sh->alone, e);
}

bool stk_pair_hide(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_shape *sh = &s->shapes[j->shape];

    if (j->n_pieces == 0 || sh->alone.count == 0 ||
        !stk_otree_remove(&s->trees, &sh->alone, type_of(s, j), j->number))
        return false;
    if (sh->alone.count > 0)
        return true;
    if (sh->alone_next)
        s->shapes[sh->alone_next - 1].alone_prev = sh->alone_prev;
    if (sh->alone_prev)
        s->shapes[sh->alone_prev - 1].alone_next = sh->alone_next;
    else
        s->pools[j->pool].alone = sh->alone_next;
    return true;
}

/* Where one lies the other may lie. */
static bool same_size(const struct stk_demand *a, const struct stk_demand *b)
{
    return a->gpus == b->gpus && a->tasks == b->tasks && a->cut == b->cut &&
           a->level_required == b->level_required && a->level_preferred == b->level_preferred &&
           a->group == b->group && a->group_level == b->group_level && a->per_node == b->per_node;
}

/* Shapes in this list (shape + 1) that may have company get ready: those that get on with the one
 * that is alone, or all when it does not matter who came. */
static void wake_list(struct stk_state *s, uint32_t at, const struct stk_job *alone)
{
    const struct stk_demand *host = alone ? &s->shapes[alone->shape].demand : NULL;

    while (at) {
        uint32_t shape = at - 1;
        const struct stk_demand *d = &s->shapes[shape].demand;

        at = s->shapes[shape].park_next;
        if (stk_demand_pairs(d) &&
            (!host ||
             (same_size(d, host) &&
              s->place->mate(s->place_st, s->speeds, (uint32_t)type_of(s, alone), d, host) > 0)))
            stk_shape_ready(s, shape);
    }
}

static void wake(struct stk_state *s, uint32_t pool, const struct stk_job *alone)
{
    struct stk_pool *p = &s->pools[pool];
    uint32_t need = 0;

    if (p->n_waiting == 0)
        return;
    if (s->backfill->reserve_all || !s->backfill->pass) {
        p->blocked = false;
        stk_shape_mark_dirty(s, pool);
    }
    while ((need = stk_bits_next(&p->park_layout, s->words + p->park_used, need)) != UINT32_MAX) {
        wake_list(s, s->counts[p->park_head + need], alone);
        need++;
    }
    wake_list(s, p->resv_parked, alone);
}

void stk_pair_wake(struct stk_state *s, uint32_t node)
{
    if (s->place->mate && s->nodes[node].mask_part &&
        (s->nodes[node].cpu_limited || s->nodes[node].mem_limited || s->n_resources > 0))
        wake(s, s->nodes[node].pool, NULL);
}

/* It has its GPUs for itself. */
static void left_alone(struct stk_state *s, uint32_t job)
{
    if (!s->place->mate)
        return;
    stk_pair_show(s, job);
    wake(s, s->jobs[job].pool, &s->jobs[job]);
}

void stk_pair_join(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    uint32_t *at;

    if (!pairs(s, j))
        return;
    at = seats_of(s, j);
    if (at[0] == 0) {
        at[0] = job + 1;
        left_alone(s, job);
        return;
    }
    at[1] = job + 1;
    (void)stk_pair_hide(s, at[0] - 1);
}

void stk_pair_leave(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    uint32_t *at;

    if (!pairs(s, j))
        return;
    at = seats_of(s, j);
    if (at[1] == 0) {
        (void)stk_pair_hide(s, job);
        at[0] = 0;
        return;
    }
    at[0] = at[0] == job + 1 ? at[1] : at[0];
    at[1] = 0;
    left_alone(s, at[0] - 1);
}

/* ---- company ---- */

struct search {
    const struct stk_demand *d;
    const uint64_t *avoid;
    uint32_t best; /* how well they get on */
    stk_job_number number;
    uint32_t host;
};

/* All pieces of the job have room for a second one. */
static bool has_room(const struct stk_state *s, const struct search *q, const struct stk_job *host)
{
    for (uint32_t i = 0; i < host->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[host->first_piece + i];
        const struct stk_use u = stk_use_of(q->d, p);

        if (!((q->d->gpu_types >> s->nodes[p->node.i].gpu_type) & 1) ||
            (q->avoid && stk_bits_test(q->avoid, p->node.i)) ||
            !stk_sets_allow(s, q->d, p->node.i) || !stk_index_fits(s, p->node.i, &u))
            return false;
    }
    return true;
}

/* The first job of the shape on this type that has room, if it is better company than the best. */
static void look_at_type(const struct stk_state *s, struct search *q, const struct stk_shape *sh,
                         struct stk_ocursor c, uint32_t type)
{
    uint32_t v = s->place->mate(s->place_st, s->speeds, type, q->d, &sh->demand);
    const struct stk_oent *e;

    if (v == 0 || v < q->best)
        return;
    for (; (e = stk_ocursor_get(&s->trees, c)) && e->key == type; stk_ocursor_next(&s->trees, &c)) {
        if (v == q->best && e->tie > q->number)
            return;
        if (!has_room(s, q, &s->jobs[e->id]))
            continue;
        q->best = v;
        q->number = e->tie;
        q->host = e->id;
        return;
    }
}

bool stk_pair_find(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   const uint64_t *avoid, uint32_t *ret_n)
{
    struct search q = {.d = d, .avoid = avoid, .number = UINT32_MAX, .host = STK_NONE};
    const struct stk_job *host;

    if (!s->place->mate || !stk_demand_pairs(d) || d->pin || s->n_undo > 0)
        return false;
    for (uint32_t i = s->pools[pool].alone; i; i = s->shapes[i - 1].alone_next) {
        const struct stk_shape *sh = &s->shapes[i - 1];
        struct stk_ocursor c = stk_otree_begin(&s->trees, &sh->alone);
        const struct stk_oent *e;

        while (same_size(d, &sh->demand) && (e = stk_ocursor_get(&s->trees, c))) {
            int64_t type = e->key;

            look_at_type(s, &q, sh, c, (uint32_t)type);
            c = stk_otree_seek(&s->trees, &sh->alone, type + 1, 0);
        }
    }
    if (q.host == STK_NONE)
        return false;
    host = &s->jobs[q.host];
    memcpy(s->try_pieces, &s->pieces[host->first_piece], host->n_pieces * sizeof(*s->try_pieces));
    *ret_n = host->n_pieces;
    return true;
}
