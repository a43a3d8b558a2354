/* SPDX-License-Identifier: Apache-2.0 */
/* gavel.c - rounds as in Gavel (Narayanan et al., OSDI 2020): each job has a share of the time of
 * each GPU type, and who is furthest behind its share goes first.
 *
 * When jobs came or went, and not before RESET_S after the last time, time is shared out anew and
 * everybody starts from an equal count. Then type by type: jobs by share / time got since then,
 * then by what they were short of before, then by share; each that fits and has no place yet runs.
 * Jobs without a share of a type come last, by the same rule, so that no GPU stays idle; except
 * where shares are first come, first served.
 *
 * Objectives that go by speeds look at the fastest type first. The others look at the types in
 * another order each round, for to them all are the same.
 *
 * Two oddities are Gavel's: a job that came after the last sharing out takes up room but does not
 * run; and whoever was put on a GPU counts as having had the round.
 */
#include <math.h>
#include <stdlib.h>

#include "hetero/view.h"

#define RESET_S 1920.

struct entry {
    double first, second, third; /* larger first */
    uint32_t job;
};

static int compare(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    if (a->first != b->first)
        return a->first > b->first ? -1 : 1;
    if (a->second != b->second)
        return a->second > b->second ? -1 : 1;
    if (a->third != b->third)
        return a->third > b->third ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

/* What everybody got in the round that is over. */
static void credit(struct stk_view *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        struct stk_view_job *j = &v->jobs[i];
        uint32_t w = j->memo->where;

        if (w > 0)
            j->got[w - 1] += floor(j->speed[w - 1] * v->round_s) / j->speed[w - 1];
    }
}

static int share_out(struct stk_gavel *g, struct stk_view *v, struct stk_err *err)
{
    double passed = g->began ? v->now_s - g->reset_s : 0;
    int rc;

    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t t = 0; t < v->types; t++) {
            struct stk_view_job *j = &v->jobs[i];

            j->deficit[t] += (j->memo->shared ? j->share[t] * passed : 0) - j->got[t];
            j->got[t] = 0;
            j->share[t] = 0;
        }
    rc = stk_shares_make(&g->shares, v, err);
    for (uint32_t i = 0; i < v->n; i++)
        v->jobs[i].memo->shared = true;
    g->reset_s = v->now_s;
    g->began = true;
    g->stale = false;
    return rc;
}

/* The types in the order of this round. */
static uint32_t nth_type(const struct stk_gavel *g, const struct stk_view *v, uint32_t i)
{
    uint32_t k = v->types, from = g->round / 2 % k;

    if (g->shares.perf)
        return v->faster[i];
    return v->faster[k - 1 - (g->round % 2 ? (from + k - i) % k : (from + i) % k)];
}

static void fill_type(const struct stk_gavel *g, struct stk_view *v, uint32_t type, struct entry *e)
{
    double left = v->count[type];

    for (uint32_t i = 0; i < v->n; i++) {
        const struct stk_view_job *j = &v->jobs[i];
        double share = j->memo->shared && j->speed[type] > 0 ? j->share[type] : 0;

        e[i] = (struct entry){share / (j->got[type] + v->round_s / 2), j->deficit[type],
                              j->memo->shared ? j->share[type] : 0, i};
    }
    qsort(e, v->n, sizeof(*e), compare);
    for (uint32_t i = 0; i < v->n && left > 0; i++) {
        struct stk_view_job *j = &v->jobs[e[i].job];

        if (j->where > 0 || !(j->speed[type] > 0) || j->gpus > left ||
            (g->shares.rule == STK_FIFO && !(e[i].first > 0)))
            continue;
        left -= j->gpus;
        j->where = type + 1;
    }
}

int stk_gavel_round(struct stk_gavel *g, struct stk_view *v, struct stk_err *err)
{
    struct entry *e;
    int rc = 0;

    credit(v);
    g->stale |= v->changed;
    if (g->stale && (!g->began || v->now_s - g->reset_s >= RESET_S))
        rc = share_out(g, v, err);
    if (rc < 0)
        return rc;
    e = calloc(v->n + 1u, sizeof(*e));
    if (!e)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < v->types; i++)
        fill_type(g, v, nth_type(g, v, i), e);
    for (uint32_t i = 0; i < v->n; i++)
        if (!v->jobs[i].memo->shared)
            v->jobs[i].where = 0;
    g->round++;
    free(e);
    return 0;
}
