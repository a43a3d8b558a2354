/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c - an end as the engine reports it, with what is known beside it: how the items of a
 * batch ended, and whether a GPU of the job failed. Happens before the event is applied, so that
 * retry budgets and dependencies go by the cause that people are shown. */
#include "core/state.h"
#include "live/state.h"

void stk_live_reported(void *ctx, struct stk_event *ev)
{
    struct stk_live *l = ctx;
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_entry *e;
    const struct stk_job *j;

    if (ev->type != STK_EV_EXITED || ev->job.i >= s->n_jobs)
        return;
    j = &s->jobs[ev->job.i];
    if (ev->lease != (j->lease ? j->lease : j->slept))
        return; /* late news of an earlier one */
    e = stk_entries_find(&l->entries, j->number);
    if (j->kind == STK_KIND_BATCH)
        stk_live_items_judge(l, j, ev);
    if (e && e->why)
        stk_live_note(l, j->number, e->why);
}
