/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c - an end as the engine reports it, with what is known beside it: how the items of a
 * batch ended, and whether a GPU of the job failed. Happens before the event is applied, so that
 * retry budgets and dependencies go by the cause that people are shown.
 *
 * The driver tells of a failing GPU when it is asked, and that may be after the job has died of it.
 * The end of a job that failed on GPUs therefore waits for their next reading, a moment at most.
 * Until then it is not written down: a daemon that dies is told again by the engine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"

#define MAX_WAIT (5 * STK_SECOND)
#define MAX_BLAME                                                                                  \
    (60 * STK_SECOND) /* an older error of a shared GPU was not the end of this job                \
                       */

/* Whether a GPU of the job's, on any of its nodes, had an error that ends processes; as
 * cfg.gpu_fault says it. */
static int find_fault(struct stk_live *l, const struct stk_job *j, stk_time since, stk_time until,
                      char *text, size_t size)
{
    const struct stk_state *s = stk_core_state(l->core);
    int all = 0;

    for (uint32_t i = 0; j->lease && i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_gpu_span span = {p->node.i, p->mask, since, until};
        char one[256] = "";
        int rc = p->mask ? l->cfg.gpu_fault(l->cfg.ctx, &span, one, sizeof(one)) : 0;

        if (*one && (rc > 0 || !*text))
            (void)snprintf(text, size, "%s", one);
        if (rc > 0)
            return rc;
        all = rc == -EAGAIN ? rc : all;
    }
    return all;
}

static void add_note(struct stk_live *l, stk_job_number number, const char *more)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, number);
    char text[512];

    if (!e || !*more)
        return;
    (void)snprintf(text, sizeof(text), "%.240s%s%.240s", e->note ? e->note : "",
                   e->note ? "; " : "", more);
    stk_live_note(l, number, text);
}

/* -EAGAIN: not known yet. */
static int look_at_gpus(struct stk_live *l, const struct stk_job *j, struct stk_event *ev)
{
    const struct stk_state *s = stk_core_state(l->core);
    bool shared = s->shapes[j->shape].demand.gpu_milli != 0;
    stk_time since = shared && j->started < ev->at - MAX_BLAME ? ev->at - MAX_BLAME : j->started;
    char text[256] = "";
    int rc;

    if (!l->cfg.gpu_fault ||
        (ev->u.exit.cause != STK_CAUSE_FAILED && ev->u.exit.cause != STK_CAUSE_SIGNAL))
        return 0;
    rc = find_fault(l, j, since, ev->at, text, sizeof(text));
    if (rc > 0) {
        ev->u.exit.cause = STK_CAUSE_GPU;
        ev->u.exit.final = false; /* its exit code says nothing */
    }
    if (rc >= 0)
        add_note(l, j->number, text);
    if (rc >= 0 && shared && text[0])
        add_note(l, j->number, "the GPU is shared, so another job may have caused it");
    return rc;
}

/* False: not known yet. */
static bool judge(struct stk_live *l, const struct stk_job *j, struct stk_event *ev)
{
    struct stk_entry *e = stk_entries_find(&l->entries, j->number);

    if (j->kind == STK_KIND_BATCH)
        stk_live_items_judge(l, j, ev);
    if (look_at_gpus(l, j, ev) == -EAGAIN)
        return false;
    if (e && (e->why || (j->by_hand && ev->u.exit.cause == STK_CAUSE_EVICTED)))
        stk_live_note(l, j->number, e->why ? e->why : "stopped by hand");
    if (e) { /* it may come back, and end in another way */
        free(e->why);
        e->why = NULL;
    }
    return true;
}

static bool put_aside(struct stk_live *l, const struct stk_event *ev)
{
    if (l->n_waiting == l->cap_waiting) {
        uint32_t cap = l->cap_waiting ? 2 * l->cap_waiting : 16;
        struct stk_live_waiting *more = realloc(l->waiting, cap * sizeof(*more));

        if (!more)
            return false;
        l->waiting = more;
        l->cap_waiting = cap;
    }
    l->waiting[l->n_waiting++] = (struct stk_live_waiting){*ev, l->now + MAX_WAIT};
    l->gpus_seen = false;
    return true;
}

bool stk_live_reported(void *ctx, struct stk_event *ev)
{
    struct stk_live *l = ctx;
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_job *j;

    if (ev->type != STK_EV_EXITED || ev->job.i >= s->n_jobs)
        return true;
    j = &s->jobs[ev->job.i];
    if (ev->lease != (j->lease ? j->lease : j->slept))
        return true; /* late news of an earlier one */
    return judge(l, j, ev) || !put_aside(l, ev);
}

bool stk_live_waiting_due(const struct stk_live *l, stk_time now)
{
    if (l->n_waiting > 0 && l->gpus_seen)
        return true;
    for (uint32_t i = 0; i < l->n_waiting; i++)
        if (l->waiting[i].until <= now)
            return true;
    return false;
}

int stk_live_waiting_apply(struct stk_live *l, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t kept = 0;
    int rc = 0;

    l->gpus_seen = false;
    for (uint32_t i = 0; i < l->n_waiting; i++) {
        struct stk_live_waiting *w = &l->waiting[i];
        const struct stk_job *j = &s->jobs[w->ev.job.i];

        if (rc < 0 || (!judge(l, j, &w->ev) && w->until > l->now)) {
            l->waiting[kept++] = *w;
            continue;
        }
        w->ev.at = l->now;
        rc = stk_loop_apply(l->loop, &w->ev, err);
        if (rc == -ESTALE)
            rc = 0;
    }
    l->n_waiting = kept;
    return rc;
}
