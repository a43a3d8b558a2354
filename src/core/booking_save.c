/* SPDX-License-Identifier: Apache-2.0 */
/* booking_save.c - reservations saved, loaded, hashed and checked. */
#include <string.h>

#include "base/hash.h"
#include "core/booking.h"
#include "core/drain.h"
#include "core/index.h"
#include "core/tenant.h"

static uint32_t n_charged(const struct stk_state *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++)
        n += s->jobs[i].lease && s->book.charged[i];
    return n;
}

static void put_row(struct stk_bytes *out, const struct stk_state *s, const struct stk_booking *b)
{
    stk_put_u(out, b->number);
    stk_put_u(out, b->tag);
    stk_put_u(out, b->holder);
    stk_put_u(out, (uint64_t)b->evict | (uint64_t)b->drain << 1 | (uint64_t)b->open << 2 |
                       (uint64_t)b->used << 3 | (uint64_t)b->exact << 4);
    stk_put_u(out, b->pool);
    stk_put_u(out, b->gpus);
    stk_put_u(out, ~b->gpu_types);
    stk_put_s(out, b->start);
    stk_put_s(out, b->end);
    stk_put_s(out, b->grace);
    stk_put_u(out, b->opened);
    stk_put_u(out, b->n);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];

        stk_put_u(out, f->node);
        stk_put_u(out, f->gpus);
        stk_put_u(out, f->held);
        stk_put_u(out, f->mask);
    }
}

/* Tenants are known by their names. */
static void put_holder(struct stk_bytes *out, const struct stk_state *s,
                       const struct stk_holder_row *h)
{
    const char *name =
        h->kind == STK_HOLDER_TENANT && h->id < s->n_tenants ? s->tenants[h->id].name : "";

    stk_put_u(out, h->kind);
    stk_put_u(out, h->id);
    stk_put_u(out, strlen(name));
    stk_put_raw(out, name, (uint32_t)strlen(name));
}

void stk_booking_put(struct stk_bytes *out, const struct stk_state *s)
{
    const struct stk_book *k = &s->book;

    stk_put_u(out, k->next);
    stk_put_u(out, k->n_holders);
    for (uint32_t i = 0; i < k->n_holders; i++)
        put_holder(out, s, &k->holder[i]);
    stk_put_u(out, k->n);
    for (uint32_t i = 0; i < k->n; i++)
        put_row(out, s, &k->row[i]);
    stk_put_u(out, n_charged(s));
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].lease && k->charged[i]) {
            stk_put_u(out, i);
            stk_put_u(out, k->charged[i]);
        }
    stk_drain_put(out, s);
}

/* ---- load ---- */

static struct stk_booking get_row(struct stk_reader *r, const struct stk_book *k)
{
    struct stk_booking b = {.number = stk_get_u32(r)};
    uint32_t how;

    b.tag = stk_get_u32(r);
    b.holder = (uint8_t)stk_get_u(r, STK_MAX_HOLDERS - 1);
    how = (uint32_t)stk_get_u(r, 31);
    b.evict = how & 1;
    b.drain = how & 2;
    b.open = how & 4;
    b.used = how & 8;
    b.exact = how & 16;
    b.pool = stk_get_u32(r);
    b.gpus = (uint32_t)stk_get_u(r, STK_MAX_GPUS);
    b.gpu_types = ~stk_get_u(r, UINT64_MAX);
    b.start = stk_get_i(r, 0, STK_MAX_DURATION);
    b.end = stk_get_i(r, 0, STK_MAX_DURATION);
    b.grace = stk_get_i(r, 0, STK_MAX_WINDOW);
    b.opened = stk_get_u32(r);
    b.first = k->n_fences;
    r->bad |= b.end <= b.start || b.number == 0 || b.number >= k->next ||
              (k->n > 0 && k->row[k->n - 1].number >= b.number) || b.holder >= k->n_holders;
    b.holder_kind = b.holder < k->n_holders ? k->holder[b.holder].kind : 0;
    return b;
}

/* Nodes are known by their places in the list; those that are gone are left out. */
static int get_fences(struct stk_reader *r, struct stk_state *s, struct stk_booking *b, bool here)
{
    struct stk_book *k = &s->book;
    uint32_t n = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at)), last = STK_NONE;

    if (stk_mem_grow(&s->mem, &k->fence, &k->cap_fences, k->n_fences + n, sizeof(*k->fence)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct stk_fence f = {.row = k->n, .node = stk_get_u32(r)};

        f.gpus = (uint32_t)stk_get_u(r, STK_MAX_GPUS);
        f.held = (uint32_t)stk_get_u(r, f.gpus);
        f.mask = stk_get_u(r, UINT64_MAX);
        r->bad |= last != STK_NONE && f.node <= last;
        last = f.node;
        if (here && f.node < s->n_nodes && s->nodes[f.node].pool == b->pool &&
            f.gpus <= s->nodes[f.node].gpus && f.gpus > 0)
            k->fence[k->n_fences++] = f;
    }
    b->n = k->n_fences - b->first;
    return 0;
}

/* Bits of those that are not known here: their reservations are nobody's. */
static uint64_t get_holders(struct stk_reader *r, struct stk_state *s)
{
    struct stk_book *k = &s->book;
    uint64_t gone = 0;

    k->n_holders = (uint32_t)stk_get_u(r, STK_MAX_HOLDERS);
    for (uint32_t i = 0; i < k->n_holders; i++) {
        struct stk_holder_row *h = &k->holder[i];
        const unsigned char *name;
        uint32_t len;

        h->kind = (uint8_t)stk_get_u(r, STK_HOLDER_MAX - 1);
        h->id = stk_get_u32(r);
        h->refs = 0;
        len = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
        if (len == 0 && (h->kind != STK_HOLDER_TENANT || s->n_tenants == 0))
            continue;
        name = stk_get_raw(r, len);
        h->id = name ? stk_tenant_named(s, name, len) : STK_NONE;
        gone |= h->id == STK_NONE ? UINT64_C(1) << i : 0;
    }
    return gone;
}

static int get_rows(struct stk_reader *r, struct stk_state *s, uint64_t gone)
{
    struct stk_book *k = &s->book;
    uint32_t n = (uint32_t)stk_get_u(r, STK_MAX_BOOKINGS);
    const bool go = s->preempt->pass == NULL && s->cap_w == 0;

    if (stk_mem_grow(&s->mem, &k->row, &k->cap, n, sizeof(*k->row)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        struct stk_booking b = get_row(r, k);
        bool here = go && b.pool < s->n_pools && !r->bad && !(gone >> b.holder & 1);

        if (get_fences(r, s, &b, here) < 0)
            return -ENOMEM;
        if (!here || r->bad)
            continue;
        k->row[k->n++] = b;
        k->holder[b.holder].refs++;
        s->pools[b.pool].n_booked++;
        s->pools[b.pool].n_open += b.open;
    }
    return 0;
}

int stk_booking_get(struct stk_reader *r, struct stk_state *s, uint64_t version)
{
    struct stk_book *k = &s->book;
    uint32_t n;

    k->next = stk_get_u32(r);
    r->bad |= k->next == 0;
    if (get_rows(r, s, get_holders(r, s)) < 0)
        return -ENOMEM;
    n = (uint32_t)stk_get_u(r, s->n_jobs);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t job = (uint32_t)stk_get_u(r, s->n_jobs - 1);
        uint32_t number = (uint32_t)stk_get_u(r, k->next - 1);

        r->bad |= !r->bad && (!s->jobs[job].lease || number == 0);
        if (!r->bad)
            k->charged[job] = number;
    }
    if (version > 5)
        stk_drain_get(r, s);
    stk_booking_link(s);
    k->loading = true;
    return 0;
}

void stk_booking_hold_again(struct stk_state *s)
{
    s->book.loading = false;
    for (uint32_t i = 0; i < s->book.n_fences; i++) {
        struct stk_fence *f = &s->book.fence[i];
        const struct stk_node *n = &s->nodes[f->node];
        const struct stk_use u = stk_fence_use(f);
        bool same =
            n->aggregate ? f->mask == 0 : (uint32_t)__builtin_popcountll(f->mask) == f->held;

        if (!s->book.row[f->row].open || !same || f->held > stk_fence_wants(f) ||
            !stk_index_fits(s, f->node, &u))
            f->held = 0, f->mask = 0;
        if (f->held > 0)
            stk_index_take(s, f->node, &u);
    }
}

/* ---- digest, sound ---- */

uint64_t stk_booking_digest(const struct stk_state *s, uint64_t h)
{
    const struct stk_book *k = &s->book;

    if (k->next == 1)
        return h;
    h = stk_hash_mix(h, k->next);
    for (uint32_t i = 0; i < k->n; i++) {
        const struct stk_booking *b = &k->row[i];

        h = stk_hash_mix(h, (uint64_t)b->number << 32 | (uint64_t)b->exact << 3 |
                                (uint64_t)b->drain << 2 | (uint64_t)b->open << 1 | b->used);
        h = stk_hash_mix(stk_hash_mix(h, (uint64_t)b->start), (uint64_t)b->end);
        h = stk_hash_mix(h, (uint64_t)k->holder[b->holder].kind << 32 | k->holder[b->holder].id);
        for (uint32_t f = 0; f < b->n; f++) {
            const struct stk_fence *on = &k->fence[b->first + f];

            h = stk_hash_mix(h, (uint64_t)on->node << 32 | on->gpus);
            h = stk_hash_mix(h, on->mask ^ on->held);
        }
    }
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].lease && k->charged[i])
            h = stk_hash_mix(h, (uint64_t)i << 32 | k->charged[i]);
    return stk_drain_digest(s, h);
}

#define BAD(...) (stk_err_set(err, -EINVAL, __VA_ARGS__), false)

/* What leases have of the fence's node: charged to it, or expected back too late. */
static void sums(const struct stk_state *s, const struct stk_fence *f, uint64_t *ret_used,
                 uint64_t *ret_late)
{
    const struct stk_booking *b = &s->book.row[f->row];

    *ret_used = *ret_late = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state != STK_JOB_PLACED && j->state != STK_JOB_RUNNING)
            continue;
        for (uint32_t k = 0; k < j->n_pieces; k++) {
            const struct stk_piece *p = &s->pieces[j->first_piece + k];
            uint32_t gpus = s->shapes[j->shape].demand.exclusive ? s->nodes[f->node].gpus : p->gpus;

            if (p->node.i != f->node)
                continue;
            if (s->book.charged[i] == b->number)
                *ret_used += gpus;
            else if (j->expected_end > b->start)
                *ret_late += gpus;
        }
    }
}

static bool fence_sound(const struct stk_state *s, const struct stk_fence *f, struct stk_err *err)
{
    const struct stk_booking *b = &s->book.row[f->row];
    const struct stk_node *n = &s->nodes[f->node];
    struct stk_tally *t = &s->tally[f->node];
    uint64_t used, late;

    sums(s, f, &used, &late);
    if (used != f->used || (!b->open && late != f->late))
        return BAD("reservation %u, node %u: %llu GPUs used and %llu late, counted %u and %u",
                   b->number, f->node, (unsigned long long)used, (unsigned long long)late, f->used,
                   f->late);
    if (f->held > stk_fence_wants(f) || (f->held > 0 && !b->open) || f->let)
        return BAD("reservation %u holds %u GPUs of node %u", b->number, f->held, f->node);
    if (n->up && b->open && n->gpus_free > 0 && f->held < stk_fence_wants(f))
        return BAD("reservation %u lacks GPUs of node %u, where some are free", b->number, f->node);
    if (n->aggregate ? f->mask != 0 : (uint32_t)__builtin_popcountll(f->mask) != f->held)
        return BAD("reservation %u holds other GPUs of node %u than it says", b->number, f->node);
    if (t->mask & f->mask)
        return BAD("reservation %u holds a GPU of node %u that has an owner", b->number, f->node);
    t->uses += f->held > 0;
    t->gpus += f->held;
    t->mask |= f->mask;
    return true;
}

/* Adds what is held to the tallies of nodes. */
bool stk_booking_sound(const struct stk_state *s, struct stk_err *err)
{
    const struct stk_book *k = &s->book;
    uint32_t n = 0;

    for (uint32_t i = 0; i < k->n; i++) {
        const struct stk_booking *b = &k->row[i];

        if (b->first != n || (i > 0 && k->row[i - 1].number >= b->number) || b->number >= k->next ||
            k->holder[b->holder].refs == 0)
            return BAD("reservation %u is out of order", b->number);
        n += b->n;
        for (uint32_t f = 0; f < b->n; f++)
            if (k->fence[b->first + f].row != i || !fence_sound(s, &k->fence[b->first + f], err))
                return k->fence[b->first + f].row != i ? BAD("a fence is somebody else's") : false;
    }
    if (n != k->n_fences)
        return BAD("%u fences, counted %u", n, k->n_fences);
    if (!stk_drain_sound(s, err))
        return false;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state != STK_JOB_NONE && j->state != STK_JOB_DONE &&
            s->shapes[j->shape].demand.holders != stk_booking_holders(s, j, &s->terms[i]))
            return BAD("job %u: its shape says it belongs to others", j->number);
        if (!j->lease && j->state != STK_JOB_NONE && k->charged[i])
            return BAD("job %u has no lease and counts for reservation %u", j->number,
                       k->charged[i]);
    }
    return true;
}
