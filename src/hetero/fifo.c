/* SPDX-License-Identifier: Apache-2.0 */
/* fifo.c - Gavel's first come, first served.
 *
 * With speeds: at each sharing out every job in order of arrival has the fastest type that has room
 * for it, until one finds none.
 *
 * Without: jobs keep the type they have; who comes gets the fastest type as long as any type has
 * room for it, also when that one is full: it then waits there while others stand idle. A type is
 * struck off the list, slowest first, when the count of the fastest becomes exactly 0. That is not
 * what its paper says, but what Gavel's simulator does, and the figures published for it are with
 * that; it strikes off one at random, here it is the slowest.
 */
#include <stdlib.h>
#include <string.h>

#include "hetero/view.h"

struct fifo {
    struct stk_shares *s;
    struct stk_view *v;
    double left[STK_MAX_GPU_TYPES];
    struct stk_fifo_seat *new; /* seats as they will be */
    uint32_t n_new;
    uint32_t *queue; /* jobs without one */
    uint32_t n_queue, at;
    uint32_t list[STK_MAX_GPU_TYPES]; /* types with room, the slowest first */
    uint32_t n_list;
};

static struct stk_view_job *find(const struct stk_view *v, uint32_t number)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->jobs[i].memo->number == number)
            return &v->jobs[i];
    return NULL;
}

static void seat(struct fifo *f, const struct stk_view_job *j, uint32_t type)
{
    f->new[f->n_new++] = (struct stk_fifo_seat){j->memo->number, type};
    f->left[type] -= j->gpus;
}

/* Seats of jobs that are gone go to the first in the queue; of others they stay. */
static void inherit(struct fifo *f)
{
    for (uint32_t i = 0; i < f->s->n_seats; i++) {
        const struct stk_fifo_seat *old = &f->s->seats[i];
        const struct stk_view_job *j = find(f->v, old->number);
        const struct stk_view_job *head = NULL;

        if (j) {
            seat(f, j, old->type);
            continue;
        }
        if (f->at < f->n_queue)
            head = &f->v->jobs[f->queue[f->at]];
        if (head && head->gpus <= f->left[old->type] && head->speed[old->type] > 0) {
            f->at++;
            seat(f, head, old->type);
        }
    }
}

/* Which type the job gets; *ret_strike: place in the list of what is struck off if that is then
 * full. */
static uint32_t choose(const struct fifo *f, const struct stk_view_job *j, uint32_t *ret_strike)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < f->n_list; i++) {
        if (f->left[f->list[i]] < j->gpus)
            continue;
        if (best == UINT32_MAX || (f->s->perf && j->speed[f->list[i]] > j->speed[f->list[best]]))
            best = i;
    }
    *ret_strike = best;
    if (best == UINT32_MAX)
        return UINT32_MAX;
    return f->list[f->s->perf ? best : f->n_list - 1];
}

static void seat_queue(struct fifo *f)
{
    for (; f->at < f->n_queue && f->n_list > 0; f->at++) {
        const struct stk_view_job *j = &f->v->jobs[f->queue[f->at]];
        uint32_t strike, type = choose(f, j, &strike);

        if (type == UINT32_MAX)
            return;
        if (!(j->speed[type] > 0))
            continue;
        seat(f, j, type);
        if (f->left[type] == 0) {
            f->n_list--;
            memmove(&f->list[strike], &f->list[strike + 1],
                    (f->n_list - strike) * sizeof(*f->list));
        }
    }
}

static int by_number(const void *pa, const void *pb)
{
    const struct stk_fifo_seat *a = pa, *b = pb;

    return a->number < b->number ? -1 : a->number > b->number;
}

static bool seated(const struct stk_shares *s, uint32_t number)
{
    const struct stk_fifo_seat key = {.number = number};

    return s->n_seats > 0 && bsearch(&key, s->seats, s->n_seats, sizeof(key), by_number);
}

static void run(struct fifo *f)
{
    for (uint32_t i = 0; i < f->v->n; i++)
        if (!seated(f->s, f->v->jobs[i].memo->number))
            f->queue[f->n_queue++] = i;
    inherit(f);
    for (uint32_t t = f->v->types; t-- > 0;)
        if (f->left[f->v->faster[t]] > 0)
            f->list[f->n_list++] = f->v->faster[t];
    seat_queue(f);
    qsort(f->new, f->n_new, sizeof(*f->new), by_number);
    for (uint32_t i = 0; i < f->n_new; i++)
        find(f->v, f->new[i].number)->share[f->new[i].type] = 1;
}

int stk_fifo_make(struct stk_shares *s, struct stk_view *v, struct stk_err *err)
{
    struct fifo f = {.s = s, .v = v};

    if (s->perf)
        s->n_seats = 0;
    memcpy(f.left, v->count, sizeof(f.left));
    f.new = calloc(v->n + 1u, sizeof(*f.new));
    f.queue = calloc(v->n + 1u, sizeof(*f.queue));
    if (!f.new || !f.queue) {
        free(f.new);
        free(f.queue);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    run(&f);
    free(f.queue);
    free(s->seats);
    s->seats = f.new;
    s->n_seats = f.n_new;
    return 0;
}
