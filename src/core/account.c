/* SPDX-License-Identifier: Apache-2.0 */
#include "core/account.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "core/limit.h"
#include "core/shape.h"

/* ---- the table ---- */

static int no_memory(struct stk_err *err)
{
    return stk_err_set(err, -ENOMEM, "out of memory for queues");
}

static int check_row(const struct stk_state *s, const struct stk_queue_spec *q, struct stk_err *err)
{
    if (q->lowest > q->priority || q->priority > q->most)
        return stk_err_set(err, -EINVAL, "queue %.63s: priority %d is not within %d to %d", q->name,
                           q->priority, q->lowest, q->most);
    if (q->pool > s->n_pools)
        return stk_err_set(err, -EINVAL, "queue %.63s: there is no pool %u (0 to %u)", q->name,
                           q->pool - 1, s->n_pools - 1);
    if ((unsigned)q->tier >= STK_TIER_MAX || q->job_time < 0 || q->job_time > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "queue %.63s: unknown tier, or a bad run time", q->name);
    return stk_queue_limited(q) ? stk_limit_policies(s, "queues", err) : 0;
}

int stk_accounts_init(struct stk_state *s, const struct stk_queue_spec *queues, uint32_t n,
                      struct stk_err *err)
{
    const struct stk_mem *m = &s->mem;
    int rc = 0;

    if (n == 0)
        return 0;
    if (n > STK_MAX_QUEUES)
        return stk_err_set(err, -EINVAL, "at most %d queues, got %u", STK_MAX_QUEUES, n);
    s->queues = m->resize(m->ctx, NULL, 0, n * sizeof(*s->queues));
    if (!s->queues)
        return no_memory(err);
    s->n_queues = n;
    if (stk_mem_grow(m, &s->accounts, &s->cap_accounts, n, sizeof(*s->accounts)) < 0)
        return no_memory(err);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        s->queues[i] = queues[i];
        s->accounts[i] = (struct stk_account){.queue = i, .of = STK_OF_QUEUE};
        rc = check_row(s, &queues[i], err);
    }
    s->n_accounts = n;
    return rc;
}

void stk_accounts_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->queues, s->n_queues);
    STK_BLOCK(v, s->accounts, s->cap_accounts);
    STK_BLOCK(v, s->account_by_hash.slot, s->account_by_hash.cap);
}

/* ---- jobs that come and go ---- */

int stk_account_check(const struct stk_state *s, const struct stk_job_spec *spec,
                      struct stk_err *err)
{
    const struct stk_queue_spec *q;

    if (s->n_queues == 0)
        return 0;
    if (spec->terms.queue >= s->n_queues)
        return stk_err_set(err, -EINVAL, "there is no queue %u (0 to %u)", spec->terms.queue,
                           s->n_queues - 1);
    q = &s->queues[spec->terms.queue];
    if (q->pool && q->pool - 1 != spec->pool.i)
        return stk_err_set(err, -EINVAL, "jobs of queue %.63s are for pool %u, not %u", q->name,
                           q->pool - 1, spec->pool.i);
    return stk_queue_allows(q, spec->priority, stk_terms_longest(&spec->terms, spec->estimate),
                            stk_limit_milli(s, &spec->demand, spec->pool.i), err);
}

static uint32_t hash_of(uint32_t queue, enum stk_queue_of of, uint32_t who)
{
    return (uint32_t)(stk_hash_mix(stk_hash_mix(queue, (uint64_t)of), who) >> 33);
}

static uint32_t find(const struct stk_state *s, uint32_t queue, enum stk_queue_of of, uint32_t who)
{
    uint32_t at = stk_map_get(&s->account_by_hash, hash_of(queue, of, who));

    for (; at != STK_NONE; at = s->accounts[at].next - 1) {
        const struct stk_account *a = &s->accounts[at];

        if (a->queue == queue && a->of == of && a->who == who)
            return at;
    }
    return STK_NONE;
}

/* Whether jobs of the queue are booked on accounts of this kind. */
static bool books(const struct stk_state *s, uint32_t queue, enum stk_queue_of of)
{
    const struct stk_queue_limit *l = &s->queues[queue].limit[of];

    if (of == STK_OF_QUEUE)
        return stk_queue_limited(&s->queues[queue]);
    return l->milli != STK_NO_LIMIT || l->jobs != STK_NO_JOB_LIMIT;
}

void stk_account_find(const struct stk_state *s, const struct stk_terms *terms, uint32_t tenant,
                      uint32_t ret[STK_QUEUE_OF_MAX])
{
    const uint32_t who[STK_QUEUE_OF_MAX] = {[STK_OF_USER] = terms->user, [STK_OF_TENANT] = tenant};

    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        ret[of] = 0;
        if (s->n_queues == 0 || !books(s, terms->queue, (enum stk_queue_of)of))
            continue;
        ret[of] = of == STK_OF_QUEUE ? terms->queue + 1
                                     : find(s, terms->queue, (enum stk_queue_of)of, who[of]) + 1;
        if (ret[of] == 0)
            ret[of] = STK_NONE;
    }
}

int stk_account_reserve(struct stk_state *s)
{
    if (s->n_queues == 0)
        return 0;
    if (stk_mem_grow(&s->mem, &s->accounts, &s->cap_accounts, s->n_accounts + 2,
                     sizeof(*s->accounts)) < 0)
        return -ENOMEM;
    return stk_map_reserve(&s->account_by_hash, &s->mem, s->n_accounts + 2);
}

static uint32_t add(struct stk_state *s, uint32_t queue, enum stk_queue_of of, uint32_t who)
{
    uint32_t hash = hash_of(queue, of, who), head = stk_map_get(&s->account_by_hash, hash), at;

    if (s->free_account) {
        at = s->free_account - 1;
        s->free_account = s->accounts[at].next;
    } else {
        at = s->n_accounts++;
    }
    s->accounts[at] =
        (struct stk_account){.queue = queue, .of = (uint8_t)of, .who = who, .next = head + 1};
    stk_map_put(&s->account_by_hash, hash, at);
    return at;
}

void stk_account_join(struct stk_state *s, const struct stk_terms *terms, uint32_t tenant,
                      uint32_t ret[STK_QUEUE_OF_MAX])
{
    stk_account_find(s, terms, tenant, ret);
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        if (ret[of] == STK_NONE)
            ret[of] = add(s, terms->queue, (enum stk_queue_of)of,
                          of == STK_OF_USER ? terms->user : tenant) +
                      1;
        if (ret[of])
            s->accounts[ret[of] - 1].refs++;
    }
}

/* Nobody is booked on it any more. Shapes that nobody uses may still name the row: whoever has it
 * next is in their place. */
static void drop(struct stk_state *s, uint32_t account)
{
    struct stk_account *a = &s->accounts[account];
    uint32_t hash = hash_of(a->queue, (enum stk_queue_of)a->of, a->who);
    uint32_t at = stk_map_get(&s->account_by_hash, hash);

    while (a->parked)
        stk_shape_ready(s, a->parked - 1);
    if (at == account && a->next == 0) {
        stk_map_remove(&s->account_by_hash, hash);
    } else if (at == account) {
        stk_map_put(&s->account_by_hash, hash, a->next - 1);
    } else {
        while (s->accounts[at].next - 1 != account)
            at = s->accounts[at].next - 1;
        s->accounts[at].next = a->next;
    }
    *a = (struct stk_account){.next = s->free_account};
    s->free_account = account + 1;
}

void stk_account_leave(struct stk_state *s, const struct stk_job *j)
{
    const uint32_t *on = s->shapes[j->shape].account;

    for (int of = 0; of < STK_QUEUE_OF_MAX; of++)
        if (on[of] && --s->accounts[on[of] - 1].refs == 0 && of != STK_OF_QUEUE)
            drop(s, on[of] - 1);
}

/* ---- limits ---- */

static bool within(const struct stk_state *s, const struct stk_account *a, uint64_t milli,
                   uint32_t jobs)
{
    const struct stk_queue_limit *l = &s->queues[a->queue].limit[a->of];

    if (a->of == STK_OF_USER && a->who == 0)
        return true; /* nobody in particular */
    if (milli > 0 && l->milli != STK_NO_LIMIT &&
        (a->milli > l->milli || milli > l->milli - a->milli))
        return false;
    return l->jobs == STK_NO_JOB_LIMIT || (a->jobs <= l->jobs && jobs <= l->jobs - a->jobs);
}

static uint64_t shape_milli(const struct stk_shape *sh)
{
    return (uint64_t)stk_demand_asked_milli(&sh->demand) * sh->gpus;
}

uint32_t stk_account_in_the_way(const struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];

    for (int of = STK_QUEUE_OF_MAX; of-- > 0;)
        if (sh->account[of] && !within(s, &s->accounts[sh->account[of] - 1], shape_milli(sh), 1))
            return sh->account[of] - 1;
    return STK_NONE;
}

uint32_t stk_account_beside(const struct stk_state *s, uint32_t shape, uint32_t job)
{
    const struct stk_shape *sh = &s->shapes[shape], *other = &s->shapes[s->jobs[job].shape];

    for (int of = STK_QUEUE_OF_MAX; of-- > 0;) {
        bool both = sh->account[of] == other->account[of];

        if (sh->account[of] &&
            !within(s, &s->accounts[sh->account[of] - 1],
                    shape_milli(sh) + (both ? shape_milli(other) : 0), both ? 2 : 1))
            return sh->account[of] - 1;
    }
    return STK_NONE;
}

/* ---- leases ---- */

void stk_account_took(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_shape *sh = &s->shapes[j->shape];

    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        if (!sh->account[of])
            continue;
        s->accounts[sh->account[of] - 1].milli += shape_milli(sh);
        s->accounts[sh->account[of] - 1].jobs++;
    }
}

static void wake(struct stk_state *s, uint32_t account)
{
    struct stk_account *a = &s->accounts[account];

    for (uint32_t at = a->parked; at;) {
        uint32_t shape = at - 1, way = stk_account_in_the_way(s, shape);

        at = s->shapes[shape].park_next;
        if (way == STK_NONE) {
            s->pools[s->shapes[shape].pool].blocked = false;
            stk_shape_ready(s, shape);
        } else if (way != account) {
            stk_shape_unpark(s, shape);
            stk_shape_park_at(s, shape, STK_PARKED_QUEUE, way);
        }
    }
    if (a->closed)
        stk_limit_wake_pools(s);
    a->closed = false;
}

void stk_account_gave(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_shape *sh = &s->shapes[j->shape];

    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        if (!sh->account[of])
            continue;
        s->accounts[sh->account[of] - 1].milli -= shape_milli(sh);
        s->accounts[sh->account[of] - 1].jobs--;
    }
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++)
        if (sh->account[of])
            wake(s, sh->account[of] - 1);
}

bool stk_account_why(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_shape *sh = &s->shapes[j->shape];
    uint32_t at = stk_account_in_the_way(s, j->shape);
    const struct stk_queue_limit *l;
    const struct stk_account *a;
    bool jobs;

    if (at == STK_NONE)
        return false;
    a = &s->accounts[at];
    l = &s->queues[a->queue].limit[a->of];
    r->code = STK_WHY_QUEUE;
    r->queue = s->queues[a->queue].name;
    r->of = a->of;
    r->tenant =
        a->of == STK_OF_TENANT && s->n_tenants > 0 ? stk_limit_tenant_name(s, a->who) : NULL;
    jobs = l->jobs != STK_NO_JOB_LIMIT && a->jobs >= l->jobs;
    r->unit = jobs ? STK_UNIT_JOBS : STK_UNIT_GPUS;
    r->need = jobs ? 1 : shape_milli(sh);
    r->used = jobs ? a->jobs : a->milli;
    r->limit = jobs ? l->jobs : l->milli;
    r->have = r->limit > r->used ? r->limit - r->used : 0;
    r->missing = r->need > r->have ? r->need - r->have : 0;
    return true;
}

/* ---- save, load, digest, sound ---- */

void stk_account_put_names(struct stk_bytes *b, const struct stk_state *s)
{
    stk_put_u(b, s->n_queues);
    for (uint32_t i = 0; i < s->n_queues; i++) {
        uint32_t len = (uint32_t)strlen(s->queues[i].name);

        stk_put_u(b, len);
        stk_put_raw(b, s->queues[i].name, len);
    }
}

static bool equals(const char *text, const unsigned char *name, uint32_t len)
{
    return text && strlen(text) == len && memcmp(text, name, len) == 0;
}

uint32_t stk_account_named(const struct stk_state *s, const unsigned char *name, uint32_t len)
{
    for (uint32_t i = 0; i < s->n_queues; i++)
        if (equals(s->queues[i].name, name, len))
            return i;
    for (uint32_t i = 0; i < s->n_queues; i++)
        if (equals(s->queues[i].was, name, len))
            return i;
    return STK_NONE;
}

void stk_account_get_names(struct stk_reader *r, const struct stk_state *s,
                           uint32_t ret_here[STK_MAX_QUEUES], uint32_t *ret_n)
{
    uint32_t n = (uint32_t)stk_get_u(r, STK_MAX_QUEUES);

    for (uint32_t i = 0; i < n && !r->bad; i++) {
        uint32_t len = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
        const unsigned char *name = stk_get_raw(r, len);

        ret_here[i] = name ? stk_account_named(s, name, len) : 0;
        if (ret_here[i] == STK_NONE)
            ret_here[i] = 0;
    }
    *ret_n = r->bad ? 0 : n;
}

uint64_t stk_account_digest(const struct stk_state *s, uint64_t h)
{
    for (uint32_t i = 0; i < s->n_queues; i++)
        if (s->accounts[i].jobs > 0)
            h = stk_hash_mix(stk_hash_mix(stk_hash_mix(h, i), s->accounts[i].milli),
                             s->accounts[i].jobs);
    return h;
}

static bool job_sound(const struct stk_state *s, const struct stk_job *j, struct stk_err *err)
{
    const struct stk_terms *t = &s->terms[j - s->jobs];
    const struct stk_shape *sh = &s->shapes[j->shape];
    uint32_t on[STK_QUEUE_OF_MAX];

    stk_account_find(s, t, j->tenant, on);
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        if (on[of] != sh->account[of]) {
            (void)stk_err_set(err, -EINVAL, "job %u is on account %u, its shape says %u", j->number,
                              on[of], sh->account[of]);
            return false;
        }
        if (on[of] && j->lease) {
            s->accounts[on[of] - 1].seen_milli += shape_milli(sh);
            s->accounts[on[of] - 1].seen_jobs++;
        }
    }
    return true;
}

bool stk_accounts_sound(const struct stk_state *s, struct stk_err *err)
{
    for (uint32_t i = 0; i < s->n_accounts; i++) {
        s->accounts[i].seen_milli = 0;
        s->accounts[i].seen_jobs = 0;
    }
    for (uint32_t i = 0; s->n_queues > 0 && i < s->n_jobs; i++)
        if (s->jobs[i].state != STK_JOB_NONE && s->jobs[i].state != STK_JOB_DONE &&
            !job_sound(s, &s->jobs[i], err))
            return false;
    for (uint32_t i = 0; i < s->n_accounts; i++) {
        const struct stk_account *a = &s->accounts[i];

        if (a->milli == a->seen_milli && a->jobs == a->seen_jobs)
            continue;
        (void)stk_err_set(err, -EINVAL, "queue %.63s, account %u: %u jobs have a lease, counted %u",
                          s->queues[a->queue].name, i, a->seen_jobs, a->jobs);
        return false;
    }
    return true;
}
