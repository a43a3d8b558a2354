/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c - a process that runs already becomes a job: submitted and placed in one go, where it is,
 * so that nobody else is given its GPUs in between. */
#include <string.h>

#include "core/state.h"
#include "live/state.h"

static int refuse(struct stk_live_request *r, const char *text)
{
    r->status = 409;
    r->answer = stk_live_error("conflict", text);
    return 0;
}

/* The job that has one of these GPUs. */
static const struct stk_job *holder(const struct stk_state *s, uint64_t mask)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        for (uint32_t k = 0; j->lease && k < j->n_pieces; k++)
            if (s->pieces[j->first_piece + k].node.i == 0 &&
                s->pieces[j->first_piece + k].mask & mask)
                return j;
    }
    return NULL;
}

static int refuse_taken(struct stk_live *l, struct stk_live_request *r, uint64_t taken)
{
    const struct stk_job *j = holder(stk_core_state(l->core), taken);
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

static int place(struct stk_live *l, uint32_t slot, uint64_t mask, struct stk_err *err)
{
    const struct stk_node *n = &stk_core_state(l->core)->nodes[0];
    const struct stk_piece piece = {
        .gpus = (uint32_t)__builtin_popcountll(mask), .tasks = 1, .mask = mask};
    const struct stk_event on = {.at = l->now,
                                 .type = STK_EV_GPUS_OFF,
                                 .u.off = {{0}, n->mask_off & ~mask, n->mask_last, false}};
    const struct stk_event ev = {.at = l->now,
                                 .type = STK_EV_PLACE,
                                 .job = {slot},
                                 .lease = stk_core_next_lease(l->core),
                                 .u.place = {&piece, 1}};
    int rc = 0;

    if ((n->mask_off & mask) || n->closed) { /* very likely because of this process */
        rc = stk_loop_apply(l->loop, &on, err);
        l->off[0].applied = on.u.off.mask;
        l->off[0].closed = false;
        l->off_changed = true;
    }
    return rc < 0 ? rc : stk_loop_apply(l->loop, &ev, err);
}

int stk_live_do_adopt(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    const struct stk_live_adoption *a = &r->adopt;
    const struct stk_node *n = &stk_core_state(l->core)->nodes[0];
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
    if (a->mask & n->mask_used)
        return refuse_taken(l, r, a->mask & n->mask_used);
    rc = stk_live_submit_made(
        l, r, &a->owner, "adopt",
        json_pack("{s:I,s:I}", "pid", (json_int_t)a->pid, "start", (json_int_t)a->start), err);
    rc = rc != 0 ? rc : place(l, slot, a->mask, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    e = stk_entries_find(&l->entries, number);
    if (e)
        e->adopted = a->pid;
    r->status = 201;
    r->answer = json_pack("{s:I, s:i}", "id", (json_int_t)number, "count", 1);
    return 0;
}
