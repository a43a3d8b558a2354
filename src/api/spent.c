/* SPDX-License-Identifier: Apache-2.0 */
/* spent.c - the jobs of a period added up: by tenant, user or queue, and by name. What a job's part
 * of the period is, figures/ says. Who brings the jobs is look.c. */
#include "api/spent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "series/series.h"

#define QUARTER_DAYS (401 * INT64_C(86400) * STK_SECOND) /* when GPUs were used, that far back */

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

static int add_wait(struct stk_spent_group *g, stk_time wait)
{
    if (g->n_wait == g->cap_wait) {
        uint32_t cap = g->cap_wait ? 2 * g->cap_wait : 64;
        stk_time *more = realloc(g->wait, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        g->wait = more;
        g->cap_wait = cap;
    }
    g->wait[g->n_wait++] = wait;
    g->waited += wait;
    return 0;
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

static int add_to(struct stk_spent_group *g, const struct stk_record *r,
                  const struct stk_spent_job *j, bool ended)
{
    g->jobs++;
    g->failed += ended && r->cause != STK_CAUSE_OK && r->cause != STK_CAUSE_CANCELLED;
    g->starts += j->f.starts;
    g->preemptions += j->f.preemptions;
    g->allocated += j->f.allocated;
    g->measured += j->f.measured;
    g->active += j->f.active;
    g->kwh += j->kwh > 0 ? j->kwh : 0;
    return j->f.starts > 0 ? add_wait(g, j->f.waited) : 0;
}

static void add_kind(struct stk_spent *s, const struct stk_record *r, const struct stk_spent_job *j)
{
    struct stk_spent_kind *k = j->util >= 0 && j->seen_s >= STK_JUDGE_AFTER ? kind_of(s, r) : NULL;

    if (!k)
        return;
    k->jobs++;
    k->measured += j->f.measured;
    k->active += j->f.active;
    k->mem_mib = j->mem_mib > k->mem_mib ? j->mem_mib : k->mem_mib;
    if (r->number >= k->last) {
        k->last = r->number;
        k->spec = r->spec;
        k->gpus = j->gpus;
        k->idle_gpus = j->idle;
    }
}

static void add_rows(struct stk_spent *s, const struct stk_record *r, const struct stk_spent_job *j)
{
    struct stk_spent_row row = {.number = r->number,
                                .gpus = j->gpus,
                                .value = (double)j->f.waited / 1e6,
                                .began = r->first_started,
                                .ended = r->ended,
                                .job = *j};

    copy(row.name, sizeof(row.name), r->name);
    copy(row.user, sizeof(row.user), r->user);
    copy(row.tenant, sizeof(row.tenant), r->tenant);
    if (row.value >= 1)
        add_top(s->wait, &s->n_wait, &row);
    row.value = stk_figures_hours(j->f.measured - j->f.active);
    if (row.value > 0)
        add_top(s->waste, &s->n_waste, &row);
    row.value = j->gpu_h;
    add_top(s->biggest, &s->n_biggest, &row);
}

int stk_spent_add(struct stk_spent *s, struct stk_api *a, const struct stk_record *r,
                  struct stk_err *err)
{
    const char *of = s->by == STK_BY_USER ? r->user : s->by == STK_BY_QUEUE ? r->queue : r->tenant;
    const bool ended = r->ended >= s->p.since && r->ended < s->p.until;
    struct stk_spent_group *g;
    struct stk_spent_job j;
    int rc;

    s->n_jobs++;
    if (r->submitted >= s->p.until)
        return 0;
    rc = stk_spent_job(a, r, s->p, &s->bins, &j, err);
    if (rc < 0 || (!ended && j.f.run == 0 && j.f.starts == 0))
        return rc;
    rc = add_to(&s->all, r, &j, ended);
    g = group_of(s, of ? of : "");
    if (g && rc == 0)
        rc = add_to(g, r, &j, ended);
    add_kind(s, r, &j);
    add_rows(s, r, &j);
    return rc < 0 ? stk_err_set(err, rc, "out of memory") : 0;
}

static int prepare(struct stk_api *a, struct stk_spent *s, struct stk_err *err)
{
    const stk_time now = stk_api_now(a), first = now - QUARTER_DAYS;
    struct stk_period bins = {s->since > first ? s->since : first, s->until < now ? s->until : now};
    int rc;

    s->p = (struct stk_period){s->since, bins.until};
    s->group = calloc(STK_SPENT_GROUPS, sizeof(*s->group));
    s->kind = calloc(STK_SPENT_KINDS, sizeof(*s->kind));
    rc = s->group && s->kind ? stk_gpu_amounts_init(&s->bins, bins, STK_SERIES_QUARTER) : -ENOMEM;
    if (rc < 0)
        return stk_err_set(err, rc, "out of memory");
    rc = stk_figures_read_capacity(stk_live_store(a->cfg.live), s->p, &s->capacity, &s->bins, err);
    stk_gpu_amounts_finish(&s->bins);
    return rc;
}

int stk_spent_new(struct stk_api *a, const struct stk_look_for *what, struct stk_spent **ret,
                  struct stk_err *err)
{
    struct stk_spent *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return stk_err_set(err, -ENOMEM, "out of memory");
    s->since = what->since;
    s->until = what->until;
    s->by = what->by;
    rc = prepare(a, s, err);
    if (rc < 0)
        stk_spent_free(s);
    else
        *ret = s;
    return rc;
}

void stk_spent_free(struct stk_spent *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->group && i < s->n_groups; i++)
        free(s->group[i].wait);
    free(s->all.wait);
    stk_gpu_amounts_done(&s->bins);
    free(s->group);
    free(s->kind);
    free(s);
}

static int by_size(const void *a, const void *b)
{
    const stk_time *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double stk_spent_wait(struct stk_spent_group *g, uint32_t per_mille)
{
    if (g->n_wait == 0)
        return -1;
    if (g->n_sorted != g->n_wait)
        qsort(g->wait, g->n_wait, sizeof(*g->wait), by_size);
    g->n_sorted = g->n_wait;
    return (double)g->wait[stk_figures_rank(g->n_wait, per_mille)] / 1e6;
}

json_t *stk_spent_show_group(const struct stk_api *a, struct stk_spent_group *g)
{
    const bool known = g->measured > 0;
    const double hours = stk_figures_hours(g->allocated),
                 idle = stk_figures_hours(g->measured - g->active);
    json_t *o = json_pack("{s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o}", "name", g->name, "jobs",
                          (json_int_t)g->jobs, "failed", (json_int_t)g->failed, "starts",
                          (json_int_t)g->starts, "preemptions", (json_int_t)g->preemptions,
                          "gpu_hours", stk_spent_number(hours), "active_gpu_hours",
                          known ? stk_spent_number(stk_figures_hours(g->active)) : json_null(),
                          "util", stk_spent_number(stk_figures_ratio(g->active, g->measured)),
                          "idle_gpu_hours", known ? stk_spent_number(idle) : json_null());

    (void)json_object_set_new(o, "money", stk_spent_number(stk_spent_money(a, hours, g->kwh)));
    (void)json_object_set_new(o, "idle_money",
                              stk_spent_number(known ? stk_spent_money(a, idle, 0) : -1));
    (void)json_object_set_new(o, "kwh", g->kwh > 0 ? stk_spent_number(g->kwh) : json_null());
    (void)json_object_set_new(o, "waited_s", stk_spent_number((double)g->waited / 1e6));
    (void)json_object_set_new(o, "wait_p50_s", stk_spent_number(stk_spent_wait(g, 500)));
    (void)json_object_set_new(o, "wait_p90_s", stk_spent_number(stk_spent_wait(g, 900)));
    return o;
}
