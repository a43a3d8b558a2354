/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - our own objective: each job where its speed counts most.
 *
 * A job is worth something on each GPU type:
 *
 *     speed there / its best speed  /  fourth root of (work done + BASE_S)  /  square root of GPUs
 *
 * Work done is in seconds at its best speed. Its root makes those that have had little go before
 * those that have had much, gently: how long a job will take is not known, but one that has run
 * long will probably run on. Jobs of several GPUs count for what they take.
 *
 * Wanted is the choice of places with the largest sum. It is made greedily, best worth per GPU
 * first, and then improved: a job moves to a type with room where it is worth more; two jobs change
 * places, also one that runs with one that does not, when that adds up to more. The second part is
 * what puts a job that is fast everywhere on a slow GPU when another gains more from the fast one;
 * it stops when nothing adds up any more, or after PASSES. Who stays where it is has a small bonus.
 *
 * Cost: O(jobs^2) per pass, a few passes per round. Bad for jobs that must not wait: one that is
 * slow everywhere but on a type in demand waits long.
 */
#include <math.h>
#include <stdlib.h>

#include "hetero/view.h"

#define BASE_S 20000.
#define STAY 1.02
#define PASSES 20
#define LEAST_GAIN 1e-12

struct bid {
    double density;
    uint32_t job, type;
};

struct value {
    struct stk_view *v;
    double *worth; /* jobs x types */
    double left[STK_MAX_GPU_TYPES];
};

static double worth(const struct value *w, uint32_t job, uint32_t where)
{
    return where ? w->worth[(size_t)job * w->v->types + where - 1] : 0;
}

static void set_worth(struct value *w)
{
    for (uint32_t i = 0; i < w->v->n; i++) {
        const struct stk_view_job *j = &w->v->jobs[i];
        double age = sqrt(sqrt(j->done / j->best + BASE_S)) * sqrt(j->gpus);

        for (uint32_t t = 0; t < w->v->types; t++)
            w->worth[(size_t)i * w->v->types + t] =
                j->speed[t] / j->best / age * (j->memo->where == t + 1 ? STAY : 1);
    }
}

static int compare(const void *pa, const void *pb)
{
    const struct bid *a = pa, *b = pb;

    if (a->density != b->density)
        return a->density > b->density ? -1 : 1;
    if (a->job != b->job)
        return a->job < b->job ? -1 : 1;
    return a->type < b->type ? -1 : a->type > b->type;
}

static void seat(struct value *w, uint32_t job, uint32_t where)
{
    struct stk_view_job *j = &w->v->jobs[job];

    if (j->where)
        w->left[j->where - 1] += j->gpus;
    if (where)
        w->left[where - 1] -= j->gpus;
    j->where = where;
}

static void greedy(struct value *w, struct bid *bids)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->v->n; i++)
        for (uint32_t t = 0; t < w->v->types; t++)
            if (worth(w, i, t + 1) > 0)
                bids[n++] = (struct bid){worth(w, i, t + 1) / w->v->jobs[i].gpus, i, t};
    qsort(bids, n, sizeof(*bids), compare);
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_view_job *j = &w->v->jobs[bids[i].job];

        if (!j->where && j->gpus <= w->left[bids[i].type])
            seat(w, bids[i].job, bids[i].type + 1);
    }
}

static bool move(struct value *w, uint32_t a)
{
    const struct stk_view_job *j = &w->v->jobs[a];
    bool better = false;

    for (uint32_t t = 1; t <= w->v->types; t++)
        if (t != j->where && w->left[t - 1] >= j->gpus &&
            worth(w, a, t) > worth(w, a, j->where) + LEAST_GAIN) {
            seat(w, a, t);
            better = true;
        }
    return better;
}

/* Whether 'where' still has room when 'in' comes in the place of 'out'. */
static bool room(const struct value *w, uint32_t where, double in, double out)
{
    return !where || w->left[where - 1] + out - in >= 0;
}

static bool exchange(struct value *w, uint32_t a, uint32_t b)
{
    const struct stk_view_job *ja = &w->v->jobs[a], *jb = &w->v->jobs[b];
    uint32_t at_a = ja->where, at_b = jb->where;

    if (at_a == at_b || !room(w, at_a, jb->gpus, ja->gpus) || !room(w, at_b, ja->gpus, jb->gpus) ||
        worth(w, a, at_b) + worth(w, b, at_a) <= worth(w, a, at_a) + worth(w, b, at_b) + LEAST_GAIN)
        return false;
    /* one that goes where it cannot run waits instead */
    seat(w, a, 0);
    seat(w, b, worth(w, b, at_a) > 0 ? at_a : 0);
    seat(w, a, worth(w, a, at_b) > 0 ? at_b : 0);
    return true;
}

static void improve(struct value *w)
{
    bool better = true;

    for (int pass = 0; better && pass < PASSES; pass++) {
        better = false;
        for (uint32_t a = 0; a < w->v->n; a++) {
            better |= move(w, a);
            for (uint32_t b = a + 1; b < w->v->n; b++)
                better |= exchange(w, a, b);
        }
    }
}

int stk_value_round(struct stk_view *v, struct stk_err *err)
{
    size_t n = (size_t)v->n * v->types;
    struct value w = {.v = v, .worth = calloc(n + 1, sizeof(double))};
    struct bid *bids = calloc(n + 1, sizeof(*bids));

    if (!w.worth || !bids) {
        free(bids);
        free(w.worth);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    for (uint32_t t = 0; t < v->types; t++)
        w.left[t] = v->count[t];
    set_worth(&w);
    greedy(&w, bids);
    improve(&w);
    free(bids);
    free(w.worth);
    return 0;
}
