/* SPDX-License-Identifier: Apache-2.0 */
/* spent.c - the jobs of a period added up: by tenant, user or queue, and by name. A job counts with
 * the part of its time that lies in the period; what was measured of it is shared out in the same
 * way. Who brings the jobs is look.c. */
#include "api/spent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "series/series.h"

#define MAX_WAITS 50000u

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%.*s", (int)size - 1, from ? from : "");
}

static struct stk_spent_group *group_of(struct stk_spent *s, const char *name)
{
    struct stk_spent_group *g;

    for (uint32_t i = 0; i < s->n_groups; i++)
        if (strncmp(s->group[i].name, name, sizeof(s->group[i].name) - 1) == 0)
            return &s->group[i];
    if (s->n_groups == STK_SPENT_GROUPS)
        return NULL;
    g = &s->group[s->n_groups++];
    copy(g->name, sizeof(g->name), name);
    return g;
}

/* By hash: there can be many names. */
static struct stk_spent_kind *kind_of(struct stk_spent *s, const struct stk_record *r)
{
    uint64_t h = (uint64_t)stk_series_id(r->name) * 31 + (uint64_t)stk_series_id(r->user);
    uint32_t at = (uint32_t)(h >> 20) % STK_SPENT_TABLE;
    struct stk_spent_kind *k;

    for (; s->table[at]; at = (at + 1) % STK_SPENT_TABLE) {
        k = &s->kind[s->table[at] - 1];
        if (k->kind == r->kind && strcmp(k->user, r->user) == 0 &&
            strncmp(k->name, r->name, sizeof(k->name) - 1) == 0)
            return k;
    }
    if (s->n_kinds == STK_SPENT_KINDS)
        return NULL;
    k = &s->kind[s->n_kinds++];
    s->table[at] = s->n_kinds;
    copy(k->user, sizeof(k->user), r->user);
    copy(k->name, sizeof(k->name), r->name);
    k->kind = r->kind;
    return k;
}

static void add_wait(struct stk_spent_group *g, double wait)
{
    if (g->n_wait == g->cap_wait) {
        uint32_t cap = g->cap_wait ? 2 * g->cap_wait : 64;
        float *more = cap <= MAX_WAITS * 2 ? realloc(g->wait, cap * sizeof(*more)) : NULL;

        if (!more)
            return;
        g->wait = more;
        g->cap_wait = cap;
    }
    g->wait[g->n_wait++] = (float)wait;
}

/* The ten largest, in order. */
static void add_top(struct stk_spent_row *rows, uint32_t *n, const struct stk_spent_row *row)
{
    uint32_t at = *n;

    if (at == STK_SPENT_TOP && row->value <= rows[at - 1].value)
        return;
    if (at < STK_SPENT_TOP)
        ++*n;
    else
        at--;
    for (; at > 0 && rows[at - 1].value < row->value; at--)
        rows[at] = rows[at - 1];
    rows[at] = *row;
}

static void add_to(struct stk_spent_group *g, const struct stk_record *r,
                   const struct stk_spent_job *j, double wait)
{
    double measured = j->util >= 0 ? j->gpu_h : 0;

    g->jobs++;
    g->failed += r->ended > 0 && r->cause != STK_CAUSE_OK && r->cause != STK_CAUSE_CANCELLED;
    g->preemptions += r->preemptions;
    g->gpu_h += j->gpu_h;
    g->measured_h += measured;
    g->active_h += measured > 0 ? measured * j->util : 0;
    g->kwh += j->kwh > 0 ? j->kwh : 0;
    if (wait >= 0)
        add_wait(g, wait);
}

static void add_kind(struct stk_spent *s, const struct stk_record *r, const struct stk_spent_job *j)
{
    struct stk_spent_kind *k = j->util >= 0 && j->seen_s >= STK_JUDGE_AFTER ? kind_of(s, r) : NULL;

    if (!k)
        return;
    k->jobs++;
    k->gpu_h += j->gpu_h;
    k->measured_h += j->gpu_h;
    k->active_h += j->gpu_h * j->util;
    k->mem_mib = j->mem_mib > k->mem_mib ? j->mem_mib : k->mem_mib;
    if (r->number >= k->last) {
        k->last = r->number;
        k->spec = r->spec;
        k->gpus = j->gpus;
        k->idle_gpus = j->idle;
    }
}

static void add_rows(struct stk_spent *s, const struct stk_record *r, const struct stk_spent_job *j,
                     double wait)
{
    struct stk_spent_row row = {.number = r->number,
                                .gpus = j->gpus,
                                .value = wait,
                                .began = r->first_started,
                                .ended = r->ended,
                                .job = *j};

    copy(row.name, sizeof(row.name), r->name);
    copy(row.user, sizeof(row.user), r->user);
    copy(row.tenant, sizeof(row.tenant), r->tenant);
    if (wait >= 1)
        add_top(s->wait, &s->n_wait, &row);
    row.value = j->util >= 0 ? j->gpu_h * (1 - j->util) : 0;
    if (row.value > 0)
        add_top(s->waste, &s->n_waste, &row);
    row.value = j->gpu_h;
    add_top(s->biggest, &s->n_biggest, &row);
}

/* What share of its time lies in the period. */
static double share_of(const struct stk_spent *s, const struct stk_record *r, stk_time now)
{
    stk_time from = r->first_started, to = r->ended ? r->ended : now;
    stk_time a = from > s->since ? from : s->since, b = to < s->until ? to : s->until;

    if (from == 0 || to <= from)
        return from == 0 ? 0 : 1;
    return b <= a ? 0 : (double)(b - a) / (double)(to - from);
}

void stk_spent_add(struct stk_spent *s, struct stk_api *a, const struct stk_record *r, stk_time run)
{
    double gpus = r->gpu_milli ? (double)r->gpus * r->gpu_milli / 1000 : (double)r->gpus;
    double share = share_of(s, r, stk_api_now(a)), wait = -1;
    const char *of = s->by == STK_BY_USER ? r->user : s->by == STK_BY_QUEUE ? r->queue : r->tenant;
    struct stk_spent_group *g = group_of(s, of ? of : "");
    struct stk_spent_job j;

    stk_spent_job(a, r->number, gpus, run, &j);
    j.gpu_h *= share;
    j.kwh = j.kwh > 0 ? j.kwh * share : j.kwh;
    j.money = stk_spent_money(a, j.gpu_h, j.kwh);
    if (r->first_started >= s->since && r->first_started < s->until)
        wait = (double)(r->first_started - r->submitted) / 1e6;
    s->n_jobs++;
    add_to(&s->all, r, &j, wait);
    if (g)
        add_to(g, r, &j, wait);
    add_kind(s, r, &j);
    add_rows(s, r, &j, wait);
}

struct stk_spent *stk_spent_new(stk_time since, stk_time until, enum stk_spent_by by)
{
    struct stk_spent *s = calloc(1, sizeof(*s));

    if (s) {
        s->group = calloc(STK_SPENT_GROUPS, sizeof(*s->group));
        s->kind = calloc(STK_SPENT_KINDS, sizeof(*s->kind));
    }
    if (!s || !s->group || !s->kind) {
        stk_spent_free(s);
        return NULL;
    }
    s->since = since;
    s->until = until;
    s->by = by;
    return s;
}

void stk_spent_free(struct stk_spent *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->group && i < s->n_groups; i++)
        free(s->group[i].wait);
    free(s->all.wait);
    free(s->group);
    free(s->kind);
    free(s);
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double stk_spent_wait(struct stk_spent_group *g, double share)
{
    uint32_t at;

    if (g->n_wait == 0)
        return -1;
    if (g->n_sorted != g->n_wait)
        qsort(g->wait, g->n_wait, sizeof(*g->wait), by_size);
    g->n_sorted = g->n_wait;
    at = (uint32_t)ceil(share * g->n_wait);
    return (double)g->wait[at > 0 ? at - 1 : 0];
}

json_t *stk_spent_show_group(const struct stk_api *a, struct stk_spent_group *g)
{
    double idle = g->measured_h - g->active_h;

    return json_pack("{s:s,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", g->name, "jobs",
                     (json_int_t)g->jobs, "failed", (json_int_t)g->failed, "preemptions",
                     (json_int_t)g->preemptions, "gpu_hours", stk_spent_number(g->gpu_h), "util",
                     g->measured_h > 0 ? stk_spent_number(g->active_h / g->measured_h)
                                       : json_null(),
                     "idle_gpu_hours", g->measured_h > 0 ? stk_spent_number(idle) : json_null(),
                     "money", stk_spent_number(stk_spent_money(a, g->gpu_h, g->kwh)), "idle_money",
                     stk_spent_number(g->measured_h > 0 ? stk_spent_money(a, idle, 0) : -1), "kwh",
                     g->kwh > 0 ? stk_spent_number(g->kwh) : json_null(), "wait_p50_s",
                     stk_spent_number(stk_spent_wait(g, 0.5)), "wait_p90_s",
                     stk_spent_number(stk_spent_wait(g, 0.9)));
}
