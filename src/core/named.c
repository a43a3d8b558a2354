/* SPDX-License-Identifier: Apache-2.0 */
#include "core/named.h"

static stk_time move_time(stk_time t, stk_time least, stk_time later)
{
    t += later;
    if (t < least)
        return least;
    return t > STK_MAX_DURATION ? STK_MAX_DURATION : t;
}

/* The policy word of some orders is the deadline. That of others does not depend on it, and may
 * have changed since the job was submitted: it stays. */
static void move_deadline(struct stk_state *s, uint32_t job, stk_time later)
{
    struct stk_job *j = &s->jobs[job];
    stk_time *deadline = &s->terms[job].deadline;
    const bool current = s->order->word && s->order->word(s->order_st, s, job) == j->word;

    *deadline = move_time(*deadline, 1, later);
    if (current)
        j->word = s->order->word(s->order_st, s, job);
}

static void move_window(struct stk_booking *b, stk_time later)
{
    if (b->drain) /* the core chose the times of these itself */
        return;
    if (!b->open)
        b->start = move_time(b->start, 0, later);
    if (b->start >= STK_MAX_DURATION)
        b->start = STK_MAX_DURATION - 1;
    b->end = move_time(b->end, b->start + 1, later);
}

void stk_named_move(struct stk_state *s, stk_time later)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        struct stk_job *j = &s->jobs[i];

        if (j->begin > 0 && (j->state == STK_JOB_BLOCKED || j->state == STK_JOB_HELD))
            j->begin = move_time(j->begin, 1, later);
        if (j->state != STK_JOB_NONE && j->state != STK_JOB_DONE && s->terms[i].deadline > 0)
            move_deadline(s, i, later);
    }
    for (uint32_t i = 0; i < s->book.n; i++)
        move_window(&s->book.row[i], later);
}
