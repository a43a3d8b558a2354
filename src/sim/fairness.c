/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fairness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/result.h"
#include "sys/big.h"

#define MILLI_HOUR (1000 * 3.6e9)
#define LEAST (10 * STK_SECOND) /* shorter jobs do not count as badly delayed */

struct row {
    uint64_t holds, wants; /* now, thousandths of GPUs */
    stk_time since;        /* up to then the sums go: */
    double got, want;      /* in this window */
    uint64_t sure;         /* guaranteed */
    double over, idle;     /* above that, and below it, in all */
    double all, weight;    /* got in all; part of the cluster that weights give it */
    double drained;        /* when, alone on its part, it would have done what came so far */
    double rho, worst;
    uint32_t jobs, ended;
};

struct slot { /* by job slot: what is counted of it */
    uint32_t tag;
    bool holds, wants;
};

struct stk_fairness {
    const struct stk_trace *t;
    const struct stk_tenant_spec *specs;
    const uint32_t *of_trace;
    struct row *row;
    uint32_t n;
    uint32_t *order; /* scratch: rows by want for their weight */
    struct slot *slot;
    uint32_t cap_slot;
    stk_time window, from; /* of the window at hand */
    uint64_t wanted;       /* of all, now */
    uint32_t windows;
    double jain, ratio, jain_worst, ratio_worst;
};

/* ---- weights ---- */

/* Of all that have jobs, and those above them: the part of each is its weight's among siblings, of
 * its parent's part. */
static int set_weights(struct stk_fairness *f)
{
    bool *busy = calloc(f->n, sizeof(*busy));
    double *part = calloc(f->n, sizeof(*part)), top = 0;
    double *sum = calloc(f->n, sizeof(*sum)); /* of the weights below */

    if (!busy || !part || !sum) {
        free(busy);
        free(part);
        free(sum);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < f->t->n_jobs; i++)
        f->row[f->of_trace[f->t->jobs[i].tenant]].jobs++;
    for (uint32_t i = f->n; i-- > 0;) {
        uint32_t up = f->specs[i].parent;

        busy[i] |= f->row[i].jobs > 0;
        if (busy[i] && up != STK_NONE)
            busy[up] = true;
        *(up == STK_NONE ? &top : &sum[up]) += busy[i] ? f->specs[i].weight : 0;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t up = f->specs[i].parent;
        double of = up == STK_NONE ? top : sum[up];

        part[i] = busy[i] && of > 0 ? f->specs[i].weight / of : 0;
        part[i] *= up == STK_NONE ? 1 : part[up];
        f->row[i].weight = part[i] > 1e-12 ? part[i] : 1e-12;
    }
    free(busy);
    free(part);
    free(sum);
    return 0;
}

int stk_fairness_new(const struct stk_trace *t, const struct stk_tenant_spec *rows, uint32_t n_rows,
                     const uint32_t *of_trace, stk_time window, struct stk_fairness **ret)
{
    struct stk_fairness *f = calloc(1, sizeof(*f));

    if (!f)
        return -ENOMEM;
    *f = (struct stk_fairness){.t = t,
                               .specs = rows,
                               .n = n_rows,
                               .of_trace = of_trace,
                               .window = window,
                               .jain_worst = 1,
                               .ratio_worst = 1};
    f->row = calloc(n_rows, sizeof(*f->row));
    f->order = calloc(n_rows, sizeof(*f->order));
    if (!f->row || !f->order || set_weights(f) < 0) {
        stk_fairness_free(f);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n_rows; i++)
        f->row[i].sure = rows[i].guarantee == STK_GUARANTEE_SUM ? 0 : rows[i].guarantee;
    f->from = t->n_jobs > 0 ? t->jobs[0].submit : 0;
    *ret = f;
    return 0;
}

void stk_fairness_free(struct stk_fairness *f)
{
    if (!f)
        return;
    stk_mem_drop(&stk_big_mem, &f->slot, &f->cap_slot, sizeof(*f->slot));
    free(f->row);
    free(f->order);
    free(f);
}

/* ---- windows ---- */

static void settle(struct stk_fairness *f, struct row *r, stk_time at)
{
    stk_time from = r->since > f->from ? r->since : f->from;

    if (at > from) {
        r->got += (double)r->holds * (double)(at - from);
        r->want += (double)r->wants * (double)(at - from);
        r->over += r->holds > r->sure ? (double)(r->holds - r->sure) * (double)(at - from) : 0;
        r->idle += r->holds < r->sure ? (double)(r->sure - r->holds) * (double)(at - from) : 0;
    }
    r->since = at;
}

static double thirst(const struct row *r)
{
    return r->want / r->weight;
}

static void sift(const struct stk_fairness *f, uint32_t *a, uint32_t n, uint32_t at)
{
    for (uint32_t k; (k = 2 * at + 1) < n; at = k) {
        uint32_t v = a[at];

        k += k + 1 < n && thirst(&f->row[a[k]]) < thirst(&f->row[a[k + 1]]);
        if (thirst(&f->row[v]) >= thirst(&f->row[a[k]]))
            return;
        a[at] = a[k];
        a[k] = v;
    }
}

/* Rows that wanted something, least for its weight first. */
static uint32_t by_thirst(const struct stk_fairness *f)
{
    uint32_t *a = f->order, n = 0;

    for (uint32_t i = 0; i < f->n; i++)
        if (f->row[i].want > 0)
            a[n++] = i;
    for (uint32_t i = n / 2; i-- > 0;)
        sift(f, a, n, i);
    for (uint32_t i = n; i-- > 1;) {
        uint32_t v = a[0];

        a[0] = a[i];
        a[i] = v;
        sift(f, a, i, 0);
    }
    return n;
}

/* The window is over: what each got against what it was due, which is all that was got, shared out
 * by weight, but to nobody more than it wanted. */
static void close_window(struct stk_fairness *f)
{
    uint32_t n = by_thirst(f);
    double left = 0, weights = 0, sum = 0, squares = 0, least = 0, most = 0;

    for (uint32_t i = 0; i < n; i++) {
        left += f->row[f->order[i]].got;
        weights += f->row[f->order[i]].weight;
    }
    for (uint32_t i = 0; i < n && left > 0; i++) {
        const struct row *r = &f->row[f->order[i]];
        double due = left * (i + 1 < n ? r->weight / weights : 1), x;

        due = due < r->want ? due : r->want;
        left -= due;
        weights -= r->weight;
        x = due > 0 ? r->got / due : 1;
        sum += x;
        squares += x * x;
        least = i == 0 || x < least ? x : least;
        most = i == 0 || x > most ? x : most;
    }
    if (n < 2 || squares <= 0)
        return;
    f->windows++;
    sum = sum * sum / (n * squares);
    least /= most;
    f->jain += sum;
    f->ratio += least;
    f->jain_worst = sum < f->jain_worst ? sum : f->jain_worst;
    f->ratio_worst = least < f->ratio_worst ? least : f->ratio_worst;
}

static void next_window(struct stk_fairness *f, stk_time end)
{
    for (uint32_t i = 0; i < f->n; i++) {
        settle(f, &f->row[i], end);
        f->row[i].all += f->row[i].got;
    }
    close_window(f);
    for (uint32_t i = 0; i < f->n; i++)
        f->row[i].got = f->row[i].want = 0;
    f->from = end;
}

/* Windows that are over by then. Those in which nobody wants anything are not looked at. */
static void advance(struct stk_fairness *f, stk_time at)
{
    while (at - f->from >= f->window) {
        next_window(f, f->from + f->window);
        if (f->wanted == 0)
            f->from += (at - f->from) / f->window * f->window;
    }
}

/* ---- events ---- */

static uint64_t milli_of(const struct stk_trace_job *j)
{
    return (uint64_t)j->gpus * (j->tasks ? j->tasks : 1) * (j->gpu_milli ? j->gpu_milli : 1000);
}

static void change(struct stk_fairness *f, struct slot *x, stk_time at, bool holds, bool wants)
{
    struct row *r = &f->row[f->of_trace[f->t->jobs[x->tag].tenant]];
    uint64_t milli = milli_of(&f->t->jobs[x->tag]);

    advance(f, at);
    settle(f, r, at);
    r->holds += holds == x->holds ? 0 : holds ? milli : -milli;
    r->wants += wants == x->wants ? 0 : wants ? milli : -milli;
    f->wanted += wants == x->wants ? 0 : wants ? milli : -milli;
    x->holds = holds;
    x->wants = wants;
}

int stk_fairness_event(struct stk_fairness *f, const struct stk_state *s,
                       const struct stk_event *ev)
{
    const struct stk_job *j;
    struct slot *x;
    bool holds, wants;

    if (!stk_event_is_of_job(ev->type) || ev->job.i >= s->n_jobs)
        return 0;
    if (stk_mem_grow(&stk_big_mem, &f->slot, &f->cap_slot, ev->job.i + 1, sizeof(*f->slot)) < 0)
        return -ENOMEM;
    j = &s->jobs[ev->job.i];
    x = &f->slot[ev->job.i];
    if (ev->type == STK_EV_SUBMIT)
        *x = (struct slot){.tag = ev->u.spec->tag};
    holds = j->state != STK_JOB_NONE && j->state != STK_JOB_DONE && j->lease != 0;
    wants = j->state != STK_JOB_NONE && j->state != STK_JOB_DONE &&
            (holds || x->wants || j->state == STK_JOB_WAITING);
    if (holds != x->holds || wants != x->wants)
        change(f, x, ev->at, holds, wants);
    return 0;
}

int stk_fairness_say(struct stk_fairness *f, uint32_t job, stk_time at, bool holds, bool wants)
{
    if (stk_mem_grow(&stk_big_mem, &f->slot, &f->cap_slot, job + 1, sizeof(*f->slot)) < 0)
        return -ENOMEM;
    f->slot[job].tag = job;
    change(f, &f->slot[job], at, holds, wants);
    return 0;
}

/* ---- the end ---- */

/* Time in the system against that if the tenant had its part of the cluster to itself. */
static void add_rho(struct stk_fairness *f, const struct stk_trace_job *j, double gpus,
                    const struct stk_job_result *result, struct stk_fair_result *ret, double *sum)
{
    struct row *r = &f->row[f->of_trace[j->tenant]];
    double submit = (double)j->submit, alone, jct, rho;

    r->drained = (r->drained > submit ? r->drained : submit) +
                 (double)milli_of(j) / 1000 * (double)j->duration / (gpus * r->weight);
    if (result->end < 0)
        return;
    alone = r->drained - submit;
    alone = alone > (double)j->duration ? alone : (double)j->duration;
    jct = (double)(result->end - j->submit);
    rho = (jct > (double)LEAST ? jct : (double)LEAST) /
          (alone > (double)LEAST ? alone : (double)LEAST);
    r->rho += rho;
    r->worst = rho > r->worst ? rho : r->worst;
    r->ended++;
    *sum += rho;
    ret->rho_worst = rho > ret->rho_worst ? rho : ret->rho_worst;
}

/* Those with the most GPU-time, in order of rows. */
static void show(const struct stk_fairness *f, struct stk_fair_result *ret)
{
    double all = 0;

    for (uint32_t i = 0; i < f->n; i++) {
        all += f->row[i].all;
        ret->guarantees |= f->row[i].sure > 0;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        const struct row *r = &f->row[i];
        struct stk_fair_tenant *t;
        uint32_t more = 0;

        for (uint32_t k = 0; k < f->n && more < STK_FAIR_SHOWN; k++)
            more += f->row[k].all > r->all || (k < i && f->row[k].all >= r->all && f->row[k].jobs);
        if (r->jobs == 0 || more >= STK_FAIR_SHOWN)
            continue;
        t = &ret->tenant[ret->n_tenants++];
        (void)snprintf(t->name, sizeof(t->name), "%s", f->specs[i].name);
        t->jobs = r->ended;
        t->gpu_hours = r->all / MILLI_HOUR;
        t->share = all > 0 ? r->all / all : 0;
        t->part = r->weight;
        t->borrowed_h = r->over / MILLI_HOUR;
        t->idle_h = r->idle / MILLI_HOUR;
        t->rho = r->ended ? r->rho / r->ended : 0;
        t->rho_worst = r->worst;
    }
}

void stk_fairness_sum(struct stk_fairness *f, stk_time end, uint64_t gpus,
                      const struct stk_job_result *jobs, struct stk_fair_result *ret)
{
    uint32_t busy = 0, ended = 0;
    double sum = 0;

    advance(f, end);
    if (end > f->from)
        next_window(f, end);
    for (uint32_t i = 0; i < f->t->n_jobs && jobs && gpus > 0; i++)
        add_rho(f, &f->t->jobs[i], (double)gpus, &jobs[i], ret, &sum);
    for (uint32_t i = 0; i < f->n; i++) {
        busy += f->row[i].jobs > 0;
        ended += f->row[i].ended;
    }
    ret->known = busy > 1;
    ret->window_s = (double)f->window / (double)STK_SECOND;
    ret->windows = f->windows;
    ret->jain = f->windows ? f->jain / f->windows : 1;
    ret->ratio = f->windows ? f->ratio / f->windows : 1;
    ret->jain_worst = f->jain_worst;
    ret->ratio_worst = f->ratio_worst;
    ret->rho = ended ? sum / ended : 0;
    show(f, ret);
}
