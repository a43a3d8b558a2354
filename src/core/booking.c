/* SPDX-License-Identifier: Apache-2.0 */
#include "core/booking.h"

#include <string.h>

#include "core/backfill.h"
#include "core/core.h"
#include "core/drain.h"
#include "core/index.h"
#include "core/queue.h"
#include "core/tenant.h"
#include "core/txn.h"
#include "core/walk.h"

#define ALLOC(s, n, type)                                                                          \
    ((type *)(s)->mem.resize((s)->mem.ctx, NULL, 0, (size_t)(n) * sizeof(type)))

int stk_booking_init(struct stk_state *s)
{
    struct stk_book *k = &s->book;

    k->next = 1;
    k->on_node = ALLOC(s, s->n_nodes + 1, uint32_t);
    k->stamped = ALLOC(s, s->n_nodes + 1, uint64_t);
    k->outside = ALLOC(s, s->n_nodes / 64 + 1, uint64_t);
    k->until = STK_NEVER_TIME;
    return k->on_node && k->stamped && k->outside ? 0 : -ENOMEM;
}

void stk_booking_memory(struct stk_state *s, struct stk_visit *v)
{
    struct stk_book *k = &s->book;

    STK_BLOCK(v, k->row, k->cap);
    STK_BLOCK(v, k->fence, k->cap_fences);
    STK_BLOCK(v, k->on_node, s->n_nodes + 1);
    STK_BLOCK(v, k->stamped, s->n_nodes + 1);
    STK_BLOCK(v, k->outside, s->n_nodes / 64 + 1);
    STK_BLOCK(v, k->charged, k->cap_charged);
}

int stk_booking_jobs(struct stk_state *s, uint32_t n)
{
    return stk_mem_grow(&s->mem, &s->book.charged, &s->book.cap_charged, n,
                        sizeof(*s->book.charged));
}

struct stk_booking *stk_booking_find(const struct stk_state *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->book.n; i++)
        if (s->book.row[i].number == number)
            return &s->book.row[i];
    return NULL;
}

/* ---- whose ---- */

static bool in_tenant(const struct stk_state *s, uint32_t tenant, uint32_t of)
{
    uint32_t at = tenant + 1;

    if (s->n_tenants == 0)
        return tenant == of;
    while (at && at - 1 != of)
        at = s->tenants[at - 1].parent;
    return at != 0;
}

uint64_t stk_booking_holders(const struct stk_state *s, const struct stk_job *j,
                             const struct stk_terms *t)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < s->book.n_holders; i++) {
        const struct stk_holder_row *h = &s->book.holder[i];
        bool is = false;

        switch ((enum stk_holder)h->kind) {
        case STK_HOLDER_TENANT:
            is = in_tenant(s, j->tenant, h->id);
            break;
        case STK_HOLDER_USER:
            is = t->user == h->id && h->id != 0;
            break;
        case STK_HOLDER_NAMED:
            is = t->reservation == h->id && h->id != 0;
            break;
        case STK_HOLDER_JOB:
            is = j->number == h->id;
            break;
        case STK_HOLDER_MAX:
            break;
        }
        mask |= is ? UINT64_C(1) << i : 0;
    }
    return mask;
}

/* The row of this holder, or the first that nobody needs; STK_NONE. */
static uint32_t holder_row(const struct stk_state *s, const struct stk_booking_spec *k)
{
    uint32_t spare = s->book.n_holders < STK_MAX_HOLDERS ? s->book.n_holders : STK_NONE;

    for (uint32_t i = s->book.n_holders; i-- > 0;) {
        const struct stk_holder_row *h = &s->book.holder[i];

        if (h->kind == k->holder && h->id == k->holder_id)
            return i;
        if (h->refs == 0)
            spare = i;
    }
    return spare;
}

static bool is_live(const struct stk_job *j)
{
    return j->state != STK_JOB_NONE && j->state != STK_JOB_DONE;
}

/* The job's shape says to whom it belongs. */
static void reshape(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    const uint64_t holders = stk_booking_holders(s, j, &s->terms[job]);
    bool waits = j->state == STK_JOB_WAITING;

    if (holders == s->shapes[j->shape].demand.holders)
        return;
    if (waits)
        stk_queue_leave(s, job, false);
    stk_shape_belongs(s, j, holders);
    if (waits)
        stk_queue_enter(s, job); /* it keeps its time in the queue */
}

static void set_holder(struct stk_state *s, uint32_t row, const struct stk_booking_spec *k)
{
    struct stk_holder_row *h = &s->book.holder[row];
    bool known = row < s->book.n_holders && h->kind == k->holder && h->id == k->holder_id;

    if (!known) {
        *h = (struct stk_holder_row){(uint8_t)k->holder, k->holder_id, 0};
        s->book.n_holders += row == s->book.n_holders;
        for (uint32_t i = 0; i < s->n_jobs; i++)
            if (is_live(&s->jobs[i]))
                reshape(s, i);
    }
    h->refs++;
}

/* ---- windows ---- */

/* Promises were made without it, or with it. */
static void forget_promises(struct stk_state *s, uint32_t pool)
{
    struct stk_pool *p = &s->pools[pool];

    stk_plan_gains(p);
    p->blocked = false;
    stk_shape_unreserve(s, pool);
}

static void open_window(struct stk_state *s, uint32_t row)
{
    struct stk_booking *b = &s->book.row[row];

    b->open = true;
    b->opened = s->next_lease;
    s->pools[b->pool].n_open++;
    for (uint32_t i = 0; i < s->n_jobs; i++) { /* who is there already, though not expected to be */
        const struct stk_job *j = &s->jobs[i];

        if (stk_has_gpus(j) && j->pool == b->pool && s->book.charged[i] == 0 &&
            stk_booking_charge(s, i, row))
            stk_booking_count(s, i, true, row);
        b->used |= stk_has_gpus(j) && s->book.charged[i] == b->number;
    }
    for (uint32_t i = 0; i < b->n; i++)
        stk_booking_fill(s, s->book.fence[b->first + i].node);
    forget_promises(s, b->pool);
}

bool stk_booking_due(const struct stk_state *s, stk_time now)
{
    for (uint32_t i = 0; i < s->book.n; i++)
        if (!s->book.row[i].open && s->book.row[i].start <= now)
            return true;
    return false;
}

void stk_booking_tick(struct stk_state *s)
{
    for (uint32_t i = 0; i < s->book.n; i++)
        if (!s->book.row[i].open && s->book.row[i].start <= s->now)
            open_window(s, i);
}

/* When it lapses if nobody comes. */
stk_time stk_booking_lapses(const struct stk_booking *b)
{
    return b->used || b->grace == 0 ? STK_NEVER_TIME : b->start + b->grace;
}

stk_time stk_booking_wake(const struct stk_state *s)
{
    stk_time t = STK_NEVER_TIME;

    for (uint32_t i = 0; i < s->book.n; i++) {
        const struct stk_booking *b = &s->book.row[i];
        stk_time next =
            b->open ? (stk_booking_lapses(b) < b->end ? stk_booking_lapses(b) : b->end) : b->start;

        t = next < t ? next : t;
    }
    return t;
}

/* Fences lie behind each other in the order of their reservations; nodes know theirs. */
void stk_booking_link(struct stk_state *s)
{
    struct stk_book *k = &s->book;

    memset(k->on_node, 0, (s->n_nodes + (size_t)1) * sizeof(*k->on_node));
    for (uint32_t i = k->n_fences; i-- > 0;) {
        k->fence[i].next = k->on_node[k->fence[i].node];
        k->on_node[k->fence[i].node] = i + 1;
    }
}

bool stk_booking_room(const struct stk_state *s, const struct stk_booking_spec *k)
{
    return s->book.n < STK_MAX_BOOKINGS && holder_row(s, k) != STK_NONE;
}

static int check_spec(const struct stk_state *s, const struct stk_booking_spec *k,
                      struct stk_err *err)
{
    if (k->number != s->book.next)
        return stk_err_set(err, -EINVAL, "a reservation must carry number %u", s->book.next);
    if (s->preempt->pass || s->cap_w)
        return stk_err_set(err, -EINVAL,
                           "reservations do not go with preempt %s%s: that decides by counts that "
                           "know none; take preempt none or tier",
                           s->preempt->name, s->cap_w ? " and a power cap" : "");
    if (s->book.n >= STK_MAX_BOOKINGS)
        return stk_err_set(err, -E2BIG, "at most %d reservations at a time", STK_MAX_BOOKINGS);
    if (k->pool.i >= s->n_pools)
        return stk_err_set(err, -EINVAL, "there is no pool %u", k->pool.i);
    if ((unsigned)k->holder >= STK_HOLDER_MAX ||
        (k->holder == STK_HOLDER_TENANT && s->n_tenants > 0 && k->holder_id >= s->n_tenants))
        return stk_err_set(err, -EINVAL, "nobody that a reservation could be for");
    if (k->drain && (k->holder != STK_HOLDER_JOB || !k->nodes))
        return stk_err_set(err, -EINVAL, "nodes are drained for one job, and must be given");
    if (k->gpus == 0 || k->gpus > STK_MAX_GPUS)
        return stk_err_set(err, -EINVAL, "a reservation is of 1 to %d GPUs, got %u", STK_MAX_GPUS,
                           k->gpus);
    if (k->start < 0 || k->end <= k->start || k->end <= s->now || k->end > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "a reservation must end after it starts, and after now");
    if (k->end - k->start > STK_MAX_WINDOW)
        return stk_err_set(err, -EINVAL, "a reservation lasts at most 366 days");
    if (k->grace < 0 || k->grace > STK_MAX_WINDOW)
        return stk_err_set(err, -EINVAL, "a grace period is 0 to 366 days");
    if (holder_row(s, k) == STK_NONE)
        return stk_err_set(err, -E2BIG, "at most %d holders have reservations at a time",
                           STK_MAX_HOLDERS);
    return 0;
}

static int reserve(struct stk_state *s, uint32_t fences)
{
    const struct stk_mem *m = &s->mem;
    struct stk_book *k = &s->book;
    int rc = stk_mem_grow(m, &k->row, &k->cap, k->n + 1, sizeof(*k->row));

    rc = rc < 0
             ? rc
             : stk_mem_grow(m, &k->fence, &k->cap_fences, k->n_fences + fences, sizeof(*k->fence));
    rc = rc < 0 ? rc
                : stk_txn_reserve(s, 4 * (s->n_pieces + s->n_nodes + STK_BATCH) + s->n_parts +
                                         8 * (k->n_fences + fences));
    for (uint32_t p = 0; p < s->n_pools && rc == 0 && s->backfill->reserve_all; p++)
        rc = stk_timeline_reserve(&s->pools[p].plan,
                                  2 * s->pools[p].n_live + 2 + 2 * STK_MAX_BOOKINGS);
    return rc < 0 ? rc : stk_queue_reserve_all(s);
}

/* Room in scratch for choosing among nodes. */
static int reserve_scratch(struct stk_state *s)
{
    const struct stk_mem *m = &s->mem;
    uint32_t n = s->n_nodes + 1;
    int rc = stk_mem_grow(m, &s->sort, &s->cap_sort, n, sizeof(*s->sort));

    rc = rc < 0 ? rc : stk_mem_grow(m, &s->sort_tmp, &s->cap_sort_tmp, n, sizeof(*s->sort_tmp));
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->list_a, &s->cap_list_a, n, sizeof(*s->list_a));
    return rc < 0 ? rc : stk_mem_grow(m, &s->list_b, &s->cap_list_b, n, sizeof(*s->list_b));
}

int stk_booking_add(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_booking_spec *k = ev->u.booking;
    struct stk_book *book = &s->book;
    uint32_t n = 0, row = book->n;
    struct stk_booking *b;
    int rc = check_spec(s, k, err);

    if (rc == 0 && reserve_scratch(s) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : stk_booking_choose(s, k, &n, err);
    if (rc == 0 && reserve(s, n) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory for a reservation of %u nodes", n);
    if (rc < 0)
        return rc;
    b = &book->row[book->n++];
    *b = (struct stk_booking){.number = book->next++,
                              .tag = k->tag,
                              .holder_kind = (uint8_t)k->holder,
                              .holder = (uint8_t)holder_row(s, k),
                              .evict = k->evict,
                              .drain = k->drain,
                              .exact = k->nodes != NULL,
                              .pool = k->pool.i,
                              .gpus = k->gpus,
                              .gpu_types = k->gpu_types,
                              .start = k->start,
                              .end = k->end,
                              .grace = k->grace,
                              .first = book->n_fences,
                              .n = n};
    for (uint32_t i = 0; i < n; i++)
        book->fence[book->n_fences++] = (struct stk_fence){
            .row = row, .node = s->try_pieces[i].node.i, .gpus = s->try_pieces[i].gpus};
    s->pools[b->pool].n_booked++;
    stk_booking_link(s);
    set_holder(s, b->holder, k);
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (stk_has_gpus(&s->jobs[i]) && s->jobs[i].pool == b->pool) {
            if (book->charged[i] == 0)
                (void)stk_booking_charge(s, i, row);
            stk_booking_count(s, i, true, row);
        }
    forget_promises(s, b->pool);
    stk_plan_drop(&s->pools[b->pool]);
    if (b->start <= s->now)
        open_window(s, row);
    return 0;
}

static void drop_row(struct stk_state *s, uint32_t row)
{
    struct stk_book *k = &s->book;
    const struct stk_booking b = k->row[row];

    if (b.n > 0)
        memmove(&k->fence[b.first], &k->fence[b.first + b.n],
                (k->n_fences - b.first - b.n) * sizeof(*k->fence));
    k->n_fences -= b.n;
    memmove(&k->row[row], &k->row[row + 1], (k->n - row - 1) * sizeof(*k->row));
    k->n--;
    for (uint32_t i = row; i < k->n; i++)
        k->row[i].first -= b.n;
    for (uint32_t i = b.first; i < k->n_fences; i++)
        k->fence[i].row--;
    stk_booking_link(s);
    k->holder[b.holder].refs--;
    s->pools[b.pool].n_booked--;
    s->pools[b.pool].n_open -= b.open;
}

int stk_booking_remove(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_booking *b = stk_booking_find(s, ev->u.unreserve.number);
    uint32_t pool;

    if (!b)
        return stk_err_set(err, -ENOENT, "there is no reservation %u", ev->u.unreserve.number);
    if ((unsigned)ev->u.unreserve.why >= STK_OVER_MAX)
        return stk_err_set(err, -EINVAL, "reservation %u is over for no reason", b->number);
    pool = b->pool;
    if (b->drain)
        stk_drain_done(s, b, ev->u.unreserve.why);
    for (uint32_t i = 0; i < b->n; i++) {
        struct stk_fence *f = &s->book.fence[b->first + i];

        if (f->held > 0)
            stk_booking_give(s, f, f->held);
        f->gpus = 0;
        stk_booking_fill(s, f->node);
        stk_shape_wake(s, f->node);
    }
    drop_row(s, (uint32_t)(b - s->book.row));
    forget_promises(s, pool);
    return 0;
}
