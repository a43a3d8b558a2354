/* SPDX-License-Identifier: Apache-2.0 */
#include "core/skipped.h"

static stk_time later(stk_time t, stk_time by)
{
    return t > STK_MAX_DURATION - by ? STK_MAX_DURATION : t + by;
}

/* GPUs kept free for single jobs: the core chose these times itself. */
static void move_drains(struct stk_book *book, stk_time by)
{
    for (uint32_t i = 0; i < book->n; i++) {
        struct stk_booking *b = &book->row[i];

        if (!b->drain)
            continue;
        b->end = later(b->end, by);
        b->start = later(b->start, by);
        b->start = b->start < b->end ? b->start : b->end - 1;
    }
    for (uint32_t i = 0; i < book->drain.n_tired; i++)
        book->drain.tired[i].until = later(book->drain.tired[i].until, by);
}

void stk_skipped_move(struct stk_state *s, stk_time by)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE)
            continue;
        j->submitted = stk_skipped(j->submitted, by, s->now);
        j->started = stk_skipped(j->started, by, s->now);
        j->queued = stk_skipped(j->queued, by, s->now);
        s->stakes[i].saved = stk_skipped(s->stakes[i].saved, by, s->now);
        s->stakes[i].day = stk_skipped(s->stakes[i].day, by, s->now);
    }
    move_drains(&s->book, by);
}
