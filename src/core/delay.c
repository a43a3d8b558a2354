/* SPDX-License-Identifier: Apache-2.0 */
#include "core/delay.h"

#include "core/ahead.h"
#include "core/booking.h"

static bool never(const struct stk_ahead *a)
{
    (void)a;
    return false;
}

static const struct stk_ahead_ops ops = {.holds = stk_ahead_expected, .enough = never};

/* As it is when the job is expected to run so long, and all is decided. */
static int look(struct stk_ahead *a, const struct stk_core *core, stk_time now, stk_job_id job,
                stk_time longest, struct stk_err *err)
{
    const struct stk_event ev = {
        .type = STK_EV_UPDATE, .job = job, .u.update = {.estimate = longest, .limit = longest}};
    int rc = stk_ahead_init(a, core, &ops, NULL);

    if (rc == 0)
        rc = stk_ahead_fork(a, now, NULL);
    if (rc == 0) {
        stk_ahead_tell(a, ev);
        stk_ahead_settle(a);
        rc = a->rc;
    }
    return rc == -ENOMEM ? stk_err_set(err, rc, "out of memory")
           : rc < 0      ? stk_err_set(err, -EINVAL, "how long it may run cannot be changed now")
                         : 0;
}

/* When the job is promised to start; STK_NEVER_TIME: it is not. */
static stk_time promised(const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_pool *p = &s->pools[j->pool];

    if (j->state != STK_JOB_WAITING)
        return STK_NEVER_TIME;
    if (s->backfill->reserve_all)
        return p->plan_valid && stk_heap_has(s->due_pos, job) ? j->planned : STK_NEVER_TIME;
    return p->resv_job == job ? p->resv_at : STK_NEVER_TIME;
}

/* GPUs that the reservation will lack when it begins. */
static uint64_t lacks(const struct stk_state *s, const struct stk_booking *b)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < b->n && !b->open; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];
        const struct stk_node *n = &s->nodes[f->node];
        const uint64_t want = stk_fence_wants(f), has = n->up ? n->gpus : 0;

        sum += want + f->late > has ? want + f->late - has : 0;
    }
    return sum;
}

/* One that has begun, and waits for GPUs of the job's nodes; 0: none does. */
static uint32_t waited_for(const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    for (uint32_t i = 0; s->book.n > 0 && i < j->n_pieces; i++)
        for (uint32_t k = s->book.on_node[s->pieces[j->first_piece + i].node.i]; k;
             k = s->book.fence[k - 1].next) {
            const struct stk_fence *f = &s->book.fence[k - 1];
            const struct stk_booking *b = &s->book.row[f->row];

            if (b->open && stk_fence_wants(f) > f->held && s->book.charged[job] != b->number)
                return b->number;
        }
    return 0;
}

static void compare_bookings(const struct stk_state *s, const struct stk_state *then,
                             struct stk_delay *ret)
{
    for (uint32_t i = 0; i < s->book.n && !ret->booking; i++) {
        const struct stk_booking *b = &s->book.row[i], *c = stk_booking_find(then, b->number);

        if (c && lacks(then, c) > lacks(s, b)) {
            ret->booking = b->number;
            ret->at = b->start;
        }
    }
}

static void compare(const struct stk_state *s, const struct stk_state *then, uint32_t job,
                    struct stk_delay *ret)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const stk_time at = s->jobs[i].pool == s->jobs[job].pool ? promised(s, i) : STK_NEVER_TIME;

        if (at == STK_NEVER_TIME || then->jobs[i].state != STK_JOB_WAITING ||
            promised(then, i) <= at || (ret->number && at >= ret->at))
            continue;
        ret->number = s->jobs[i].number;
        ret->at = at;
    }
    if (ret->number)
        return;
    ret->booking = waited_for(s, job);
    ret->at = s->now;
    compare_bookings(s, then, ret);
}

int stk_core_delays(const struct stk_core *core, stk_time now, const struct stk_longer *l,
                    struct stk_delay *ret, struct stk_err *err)
{
    struct stk_ahead a, b;
    int rc = look(&a, core, now, l->job, l->was, err);

    *ret = (struct stk_delay){0};
    if (rc == 0) {
        rc = look(&b, core, now, l->job, l->longest, err);
        if (rc == 0)
            compare(a.s, b.s, l->job.i, ret);
        stk_ahead_done(&b);
    }
    stk_ahead_done(&a);
    return rc;
}
