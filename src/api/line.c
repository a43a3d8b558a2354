/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - the place of each waiting job in the line of its pool.
 *
 * Ranks move by themselves, so places are not kept but counted: all waiting jobs are sorted, when
 * somebody looks and something has happened since the last time. That costs O(n log n); so it is
 * done again only after a pause that is many times as long as it took, and not at all in a line
 * that is longer than anybody reads. The first in line is not always the first to start: smaller
 * jobs may pass it (docs/spec/policy.md). */
#include <stdlib.h>

#include "api/show.h"
#include "core/lane.h"
#include "core/state.h"

#define MAX_LINE 100000u
#define PAUSE 20 /* times as long as it took */

struct stk_line {
    uint64_t seq; /* of the event it was counted after */
    uint64_t due_ns;
    uint32_t n; /* rows of 'place' */
    struct {
        stk_job_number number;
        uint32_t at;
    } * place; /* by slot */
};

struct one {
    int64_t rank;
    stk_time submitted;
    uint32_t pool, slot;
    stk_job_number number;
};

static int by_rank(const void *x, const void *y)
{
    const struct one *a = x, *b = y;

    if (a->pool != b->pool)
        return a->pool < b->pool ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->submitted != b->submitted)
        return a->submitted < b->submitted ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static uint32_t collect(const struct stk_state *s, struct one *list)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs && n < s->n_waiting; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_WAITING)
            list[n++] = (struct one){stk_rank(s, j), j->submitted, j->pool, i, j->number};
    }
    return n;
}

/* Counts anew; what was known stays when there is no memory. */
static void count(const struct stk_state *s, struct stk_line *l)
{
    struct one *list = calloc(s->n_waiting + 1u, sizeof(*list));
    void *place = list ? calloc(s->n_jobs + 1u, sizeof(*l->place)) : NULL;
    uint32_t n;

    if (!place) {
        free(list);
        return;
    }
    free(l->place);
    l->place = place;
    l->n = s->n_jobs;
    n = collect(s, list);
    qsort(list, n, sizeof(*list), by_rank);
    for (uint32_t i = 0, first = 0; i < n; i++) {
        first = i > 0 && list[i].pool != list[i - 1].pool ? i : first;
        l->place[list[i].slot].number = list[i].number;
        l->place[list[i].slot].at = i - first + 1;
    }
    free(list);
}

static void look(struct stk_api *a, const struct stk_state *s)
{
    uint64_t seq = stk_live_seq(a->cfg.live), now = uv_hrtime();
    struct stk_line *l = a->line;

    if (!l)
        l = a->line = calloc(1, sizeof(*l));
    if (!l || (l->place && (l->seq == seq || now < l->due_ns)))
        return;
    count(s, l);
    l->seq = seq;
    l->due_ns = uv_hrtime() + PAUSE * (uv_hrtime() - now);
}

uint32_t stk_line_place(struct stk_api *a, uint32_t slot)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const struct stk_job *j = &s->jobs[slot];

    if (j->state != STK_JOB_WAITING || s->n_waiting > MAX_LINE)
        return 0;
    look(a, s);
    return a->line && slot < a->line->n && a->line->place &&
                   a->line->place[slot].number == j->number
               ? a->line->place[slot].at
               : 0;
}

void stk_line_free(struct stk_line *l)
{
    if (l)
        free(l->place);
    free(l);
}
