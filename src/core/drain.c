/* SPDX-License-Identifier: Apache-2.0 */
#include "core/drain.h"

#include "base/hash.h"
#include "core/booking.h"
#include "core/fence.h"
#include "core/index.h"
#include "core/limit.h"
#include "core/part.h"
#include "core/txn.h"

#define TRIES 4 /* jobs of a pool, at one look */

stk_time stk_drain_wake(const struct stk_state *s)
{
    return s->book.drain.after > 0 && s->n_waiting > 0 ? s->book.drain.wake_at : STK_NEVER_TIME;
}

const struct stk_booking *stk_drain_of(const struct stk_state *s, const struct stk_job *j)
{
    for (uint32_t i = 0; i < s->book.n; i++)
        if (s->book.row[i].drain && s->book.holder[s->book.row[i].holder].id == j->number)
            return &s->book.row[i];
    return NULL;
}

/* ---- over ---- */

static const struct stk_job *job_of(const struct stk_state *s, const struct stk_booking *b)
{
    uint32_t job = stk_map_get(&s->by_number, s->book.holder[b->holder].id);

    return job == STK_NONE ? NULL : &s->jobs[job];
}

/* Its GPUs went elsewhere: a node was lost, or somebody has reserved them. */
static bool lost(const struct stk_state *s, const struct stk_booking *b)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];

        if (!s->nodes[f->node].up || stk_booking_crowded(s, f->node, b->start, b->end))
            return true;
        sum += f->gpus;
    }
    return sum < b->gpus;
}

bool stk_drain_over(const struct stk_state *s, const struct stk_booking *b, stk_time now,
                    enum stk_over_why *ret)
{
    const struct stk_job *j = job_of(s, b);

    if (j && j->lease)
        *ret = STK_OVER_STARTED;
    else if (!j || j->state != STK_JOB_WAITING || s->book.drain.after == 0)
        *ret = STK_OVER_REMOVED;
    else if (now >= b->end)
        *ret = STK_OVER_GIVEN_UP;
    else if (lost(s, b))
        *ret = STK_OVER_LOST;
    else
        return false;
    return true;
}

/* Rows of which the time is past go; of too many the one that is over first. */
static void tire(struct stk_state *s, stk_job_number job)
{
    struct stk_drain *d = &s->book.drain;
    uint32_t n = 0, first = 0;

    for (uint32_t i = 0; i < d->n_tired; i++)
        if (d->tired[i].until > s->now)
            d->tired[n++] = d->tired[i];
    for (uint32_t i = 1; i < n; i++)
        if (d->tired[i].until < d->tired[first].until)
            first = i;
    if (n == STK_MAX_TIRED) {
        for (uint32_t i = first; i + 1 < n; i++)
            d->tired[i] = d->tired[i + 1];
        n--;
    }
    d->tired[n].job = job;
    d->tired[n].until = s->now + d->after;
    d->n_tired = n + 1;
}

void stk_drain_done(struct stk_state *s, const struct stk_booking *b, enum stk_over_why why)
{
    if (why == STK_OVER_GIVEN_UP)
        tire(s, s->book.holder[b->holder].id);
    s->book.drain.look_at = s->now;
}

/* ---- who ---- */

/* When the job may have one; it has not waited long enough before. */
static stk_time earned(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_drain *d = &s->book.drain;
    stk_time t = j->queued + d->after;

    for (uint32_t i = 0; i < d->n_tired; i++)
        if (d->tired[i].job == j->number && d->tired[i].until > t)
            t = d->tired[i].until;
    return t;
}

static bool could_have(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d;

    if (j->state != STK_JOB_WAITING || j->gpus < s->book.drain.gpus)
        return false;
    d = &s->shapes[j->shape].demand;
    return !stk_demand_shares(d) && !d->pin;
}

/* Whether the first has waited longer. */
static bool longer(const struct stk_job *a, const struct stk_job *b)
{
    return a->queued != b->queued ? a->queued < b->queued : a->number < b->number;
}

/* Some job has GPUs of its pool that came later, and is of no higher tier. */
static bool passed(const struct stk_state *s, const struct stk_job *j)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *o = &s->jobs[i];

        if (stk_has_gpus(o) && o->pool == j->pool && o->gpus > 0 && o->tier <= j->tier &&
            o->queue_seq > j->queue_seq)
            return true;
    }
    return false;
}

/* The one of the pool that has waited longest, of those behind 'last', that may have one now. */
static uint32_t next_of(const struct stk_state *s, uint32_t pool, stk_time now, uint32_t last)
{
    uint32_t best = STK_NONE;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->pool == pool && could_have(s, j) && earned(s, j) <= now &&
            (last == STK_NONE || longer(&s->jobs[last], j)) &&
            (best == STK_NONE || longer(j, &s->jobs[best])) && !stk_drain_of(s, j))
            best = i;
    }
    return best;
}

/* What the pool may still have set aside in this way; 0: no more. */
static uint64_t room(const struct stk_state *s, uint32_t pool)
{
    const struct stk_drain *d = &s->book.drain;
    const uint64_t most = s->pools[pool].gpus_up * d->share / 1000;
    uint64_t gpus = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->book.n; i++)
        if (s->book.row[i].drain && s->book.row[i].pool == pool) {
            gpus += s->book.row[i].gpus;
            n++;
        }
    return n < d->most && gpus < most ? most - gpus : 0;
}

/* ---- where ---- */

/* The pieces that were found, as one row per node in order; returns how many. *ret_gpus: in all. */
static uint32_t by_node(struct stk_state *s, uint32_t job, uint32_t n, uint32_t *ret_gpus)
{
    const struct stk_pool *p = &s->pools[s->jobs[job].pool];
    uint32_t rows = 0;

    s->stamp++;
    *ret_gpus = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_piece *at = &s->try_pieces[i];

        if (s->node_stamp[at->node.i] != s->stamp)
            s->sim_free[at->node.i] = 0;
        s->node_stamp[at->node.i] = s->stamp;
        s->sim_free[at->node.i] += at->gpus;
    }
    for (uint32_t node = 0; node < s->n_nodes; node++) {
        uint32_t gpus = s->node_stamp[node] == s->stamp ? s->sim_free[node] : 0;

        if (&s->pools[s->nodes[node].pool] != p || gpus == 0)
            continue;
        if (s->shapes[s->jobs[job].shape].demand.exclusive)
            gpus = s->nodes[node].gpus;
        s->try_pieces[rows++] = (struct stk_piece){.node = {node}, .gpus = gpus};
        *ret_gpus += gpus;
    }
    return rows;
}

/* It ends before the next window of others on its nodes. */
static stk_time clipped(const struct stk_state *s, const struct stk_booking_spec *k)
{
    stk_time end = k->end;

    for (uint32_t i = 0; i < k->n_nodes; i++)
        for (uint32_t f = s->book.on_node[k->nodes[i].node.i]; f; f = s->book.fence[f - 1].next) {
            const stk_time start = s->book.row[s->book.fence[f - 1].row].start;

            end = start > k->start && start < end ? start : end;
        }
    return end;
}

static bool fits_beside(const struct stk_state *s, const struct stk_booking_spec *k)
{
    for (uint32_t i = 0; i < k->n_nodes; i++)
        if (stk_booking_spare(s, k->nodes[i].node.i, k) < k->nodes[i].gpus)
            return false;
    return stk_booking_room(s, k);
}

/* Nodes that are expected to be free for it the soonest; false: not in time. */
static bool plan(struct stk_state *s, uint32_t job, stk_time now, uint64_t most)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_booking_spec *k = &s->book.drain.spec;
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n = 0;
    const stk_time t = stk_fence_when(s, job, now, &n);

    stk_txn_rollback(s, mark);
    if (t > now + s->book.drain.limit || t == STK_NEVER_TIME)
        return false;
    *k = (struct stk_booking_spec){.number = s->book.next,
                                   .holder = STK_HOLDER_JOB,
                                   .holder_id = j->number,
                                   .pool = {j->pool},
                                   .gpu_types = s->shapes[j->shape].demand.gpu_types,
                                   .start = t > now ? t : now,
                                   .end = now + s->book.drain.limit,
                                   .drain = true,
                                   .nodes = s->try_pieces};
    k->n_nodes = by_node(s, job, n, &k->gpus);
    k->end = clipped(s, k);
    return k->end > k->start && k->gpus <= most && k->n_nodes > 0 && fits_beside(s, k);
}

/* ---- when ---- */

/* Whether no job that waits will have waited long enough later than now. */
static bool all_earned(const struct stk_drain *d, stk_time now)
{
    uint32_t i = 0;

    while (i < d->n_tired && d->tired[i].until <= now)
        i++;
    return d->all_earned <= now && i == d->n_tired;
}

/* After a look that found nothing: the next. */
static void look_later(struct stk_state *s, stk_time now)
{
    struct stk_drain *d = &s->book.drain;
    stk_time pause = d->after / 16 > STK_SECOND ? d->after / 16 : STK_SECOND;
    bool again = false, none_later = all_earned(d, now);

    d->wake_at = STK_NEVER_TIME;
    for (uint32_t i = 0; i < s->n_jobs && !(again && none_later); i++) {
        stk_time t;

        if (!could_have(s, &s->jobs[i]))
            continue;
        t = earned(s, &s->jobs[i]);
        again |= t <= now;
        d->wake_at = t > now && t < d->wake_at ? t : d->wake_at;
    }
    d->wake_at = d->wake_at < now + pause ? now + pause : d->wake_at;
    d->look_at = again ? now + pause : d->wake_at;
}

static bool try_pool(struct stk_state *s, uint32_t pool, stk_time now)
{
    const uint64_t most = room(s, pool);
    uint32_t job = STK_NONE;

    if (most == 0 || s->pools[pool].n_waiting == 0 || s->pools[pool].n_leased == 0 || s->cap_w)
        return false;
    for (uint32_t i = 0; i < TRIES; i++) {
        job = next_of(s, pool, now, job);
        if (job == STK_NONE)
            return false;
        if (s->jobs[job].gpus <= most && passed(s, &s->jobs[job]) &&
            stk_limit_open(s, s->jobs[job].shape) != 0 && plan(s, job, now, most))
            return true;
    }
    return false;
}

uint32_t stk_drain_step(struct stk_state *s, stk_time now, struct stk_event *out)
{
    struct stk_drain *d = &s->book.drain;

    if (d->after == 0 || now < d->look_at)
        return 0;
    for (uint32_t pool = 0; pool < s->n_pools; pool++)
        if (try_pool(s, pool, now)) {
            *out = (struct stk_event){
                .at = now, .type = STK_EV_RESERVE, .job = {STK_NONE}, .u.booking = &d->spec};
            return 1;
        }
    look_later(s, now);
    return 0;
}

/* ---- why ---- */

uint32_t stk_drain_has(const struct stk_state *s, const struct stk_booking *b, stk_time *ret_until)
{
    uint32_t has = 0;
    stk_time until = b->start;

    for (uint32_t i = 0; i < b->n; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];
        const uint32_t all = s->nodes[f->node].gpus_free + f->held;

        has += all < f->gpus ? all : f->gpus;
    }
    for (uint32_t i = 0; i < s->n_jobs && b->open; i++) {
        const struct stk_job *j = &s->jobs[i];

        for (uint32_t k = 0; stk_has_gpus(j) && j->pool == b->pool && k < j->n_pieces; k++)
            for (uint32_t f = 0; f < b->n; f++)
                if (s->book.fence[b->first + f].node == s->pieces[j->first_piece + k].node.i &&
                    s->book.fence[b->first + f].held < s->book.fence[b->first + f].gpus &&
                    j->expected_end > until)
                    until = j->expected_end;
    }
    *ret_until = until > s->now ? until : 0;
    return has;
}

/* ---- save, load, digest, sound ---- */

void stk_drain_put(struct stk_bytes *out, const struct stk_state *s)
{
    const struct stk_drain *d = &s->book.drain;

    stk_put_u(out, d->n_tired);
    for (uint32_t i = 0; i < d->n_tired; i++) {
        stk_put_u(out, d->tired[i].job);
        stk_put_s(out, d->tired[i].until);
    }
}

void stk_drain_get(struct stk_reader *r, struct stk_state *s)
{
    struct stk_drain *d = &s->book.drain;

    d->n_tired = (uint32_t)stk_get_u(r, STK_MAX_TIRED);
    for (uint32_t i = 0; i < d->n_tired; i++) {
        d->tired[i].job = stk_get_u32(r);
        d->tired[i].until = stk_get_i(r, 0, STK_NEVER_TIME);
    }
    if (r->bad)
        d->n_tired = 0;
}

uint64_t stk_drain_digest(const struct stk_state *s, uint64_t h)
{
    const struct stk_drain *d = &s->book.drain;

    for (uint32_t i = 0; i < d->n_tired; i++)
        h = stk_hash_mix(stk_hash_mix(h, d->tired[i].job), (uint64_t)d->tired[i].until);
    return h;
}

bool stk_drain_sound(const struct stk_state *s, struct stk_err *err)
{
    if (s->book.drain.n_tired > STK_MAX_TIRED)
        return stk_err_set(err, -EINVAL, "too many jobs have given up"), false;
    for (uint32_t i = 0; i < s->book.n; i++)
        if (s->book.row[i].drain && s->book.row[i].holder_kind != STK_HOLDER_JOB)
            return stk_err_set(err, -EINVAL, "reservation %u drains for no job",
                               s->book.row[i].number),
                   false;
    return true;
}
