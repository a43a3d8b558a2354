/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c - a process that runs already becomes a job: submitted and placed in one go, where it is,
 * so that nobody else is given its GPUs in between. */
#include <string.h>

#include "core/state.h"
#include "live/state.h"
#include "model/queue.h"
#include "model/reason.h"

static int refuse(struct stk_live_request *r, const char *text)
{
    r->status = 409;
    r->answer = stk_live_error("conflict", text);
    return 0;
}

/* The job that has one of these GPUs of the node. */
static const struct stk_job *holder(const struct stk_state *s, uint32_t node, uint64_t mask)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        for (uint32_t k = 0; j->lease && k < j->n_pieces; k++)
            if (s->pieces[j->first_piece + k].node.i == node &&
                s->pieces[j->first_piece + k].mask & mask)
                return j;
    }
    return NULL;
}

static int refuse_taken(struct stk_live *l, struct stk_live_request *r, uint64_t taken)
{
    const struct stk_job *j = holder(stk_core_state(l->core), r->adopt.node, taken);
    const struct stk_entry *e = j ? stk_entries_find(&l->entries, j->number) : NULL;
    char text[256];

    if (e)
        (void)snprintf(text, sizeof(text),
                       "GPU %d is leased to job %u of %s; when that has ended, try again",
                       __builtin_ctzll(taken), j->number, e->rec.user);
    else
        (void)snprintf(text, sizeof(text), "GPU %d is leased to a job", __builtin_ctzll(taken));
    return refuse(r, text);
}

static int place(struct stk_live *l, uint32_t slot, const struct stk_live_adoption *a,
                 struct stk_err *err)
{
    const struct stk_node *n = &stk_core_state(l->core)->nodes[a->node];
    const uint64_t mask = a->mask;
    const struct stk_piece piece = {
        .node = {a->node}, .gpus = (uint32_t)__builtin_popcountll(mask), .tasks = 1, .mask = mask};
    const struct stk_event on = {.at = l->now,
                                 .type = STK_EV_GPUS_OFF,
                                 .u.off = {{a->node}, n->mask_off & ~mask, n->mask_last, false}};
    const struct stk_event ev = {.at = l->now,
                                 .type = STK_EV_PLACE,
                                 .job = {slot},
                                 .lease = stk_core_next_lease(l->core),
                                 .u.place = {&piece, 1}};
    int rc = 0;

    if ((n->mask_off & mask) || n->closed) { /* very likely because of this process */
        rc = stk_loop_apply(l->loop, &on, err);
        l->off[a->node].applied = on.u.off.mask;
        l->off[a->node].closed = false;
        l->off_changed = true;
    }
    return rc < 0 ? rc : stk_loop_apply(l->loop, &ev, err);
}

/* "limits: tenant vision uses 2 of 2 GPUs and this process needs 2". */
static void say_limit(const struct stk_reason *w, uint32_t gpus, char *buf, size_t size)
{
    const bool jobs = w->unit == STK_UNIT_JOBS;
    const double scale = jobs ? 1 : 1000;
    char whose[120], what[32];

    if (w->code == STK_WHY_LIMIT)
        (void)snprintf(whose, sizeof(whose), "tenant %.60s", w->tenant);
    else
        (void)snprintf(whose, sizeof(whose), "%s in queue %.60s",
                       w->of == STK_OF_USER     ? "its user"
                       : w->of == STK_OF_TENANT ? "its tenant"
                                                : "everybody together",
                       w->queue);
    (void)snprintf(what, sizeof(what), jobs ? "it would be one more" : "it needs %u more", gpus);
    (void)snprintf(buf, size,
                   "adopting it would exceed a limit: %s has %g of %g %s, and %s; an operator can "
                   "raise the limit (%s), or end the process",
                   whose, (double)w->used / scale, (double)w->limit / scale, jobs ? "jobs" : "GPUs",
                   what, w->code == STK_WHY_LIMIT ? "stoker quota set" : "queues: in the file");
}

int stk_live_adopt_limits(struct stk_live *l, struct stk_live_request *r,
                          const struct stk_job_spec *job, struct stk_err *err)
{
    struct stk_event ev = {.at = l->now, .type = STK_EV_SUBMIT, .u.spec = job};
    struct stk_core *fork = NULL;
    struct stk_reasons all = {.n = 0};
    char text[400];
    int rc = stk_core_fork(l->core, &fork, err);

    if (rc == 0) {
        ev.job = stk_core_next_job(fork);
        rc = stk_core_apply(fork, &ev, err);
    }
    rc = rc < 0 ? rc : stk_core_reasons(fork, ev.job, &all, err);
    for (uint32_t i = 0; rc == 0 && i < all.n; i++) {
        if (all.list[i].code == STK_WHY_LIMIT || all.list[i].code == STK_WHY_QUEUE) {
            say_limit(&all.list[i], job->demand.gpus, text, sizeof(text));
            r->status = 403;
            r->answer = stk_live_error("over_limit", text);
            rc = 1;
        }
    }
    stk_core_free(fork);
    return rc;
}

int stk_live_do_adopt(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    const struct stk_live_adoption *a = &r->adopt;
    const struct stk_node *n = &stk_core_state(l->core)->nodes[a->node];
    uint32_t slot = stk_core_next_job(l->core).i;
    stk_job_number number = stk_core_state(l->core)->next_number;
    struct stk_entry *e;
    int rc;

    for (e = stk_entries_next(&l->entries, 0); e; e = stk_entries_next(&l->entries, e->number))
        if (e->adopted == a->pid)
            return refuse(r, "this process is a job already");
    if (!n->up)
        return refuse(r, "the node is down");
    if (a->mask & ~n->mask_all)
        return refuse(r, "there is no such GPU");
    if (r->who.role < STK_ROLE_OPERATOR && (a->mask & l->off[a->node].drained))
        return refuse(r, "an operator has drained one of these GPUs: it takes no jobs");
    if (a->mask & n->mask_used)
        return refuse_taken(l, r, a->mask & n->mask_used);
    rc = stk_live_submit_made(
        l, r, &a->owner, "adopt",
        json_pack("{s:I,s:I}", "pid", (json_int_t)a->pid, "start", (json_int_t)a->start), err);
    rc = rc != 0 ? rc : place(l, slot, a, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    e = stk_entries_find(&l->entries, number);
    if (e)
        e->adopted = a->pid;
    r->status = 201;
    r->answer = json_pack("{s:I, s:i}", "id", (json_int_t)number, "count", 1);
    return 0;
}
