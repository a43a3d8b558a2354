/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - when GPUs are used: from the measurements of the whole, a quarter of an hour each, by
 * hour and weekday of local time; and how much jobs get done in a GPU-hour, where they report
 * their steps. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "api/spent.h"
#include "series/series.h"

#define DAY (INT64_C(86400) * STK_SECOND)
#define KEPT (401 * DAY)
#define PART (15 * DAY) /* read at once */
#define POINTS 2000     /* of the steps of a job */

static double or_zero(float v)
{
    return isfinite(v) ? (double)v : 0;
}

static void add_cell(struct stk_spent_cell *c, double gpus, double allocated, double active)
{
    c->gpus += gpus;
    c->allocated += allocated;
    c->active += active;
    c->n++;
}

static void add_point(struct stk_spent_heat *h, const struct stk_series_result *r, uint32_t i)
{
    const float *v = r->value;
    uint32_t n = r->points;
    double gpus = or_zero(v[STK_SERIES_CLUSTER_GPUS * n + i]);
    double allocated = or_zero(v[STK_SERIES_CLUSTER_ALLOCATED * n + i]);
    double active = or_zero(v[STK_SERIES_CLUSTER_ACTIVE * n + i]);
    float power = v[STK_SERIES_CLUSTER_POWER * n + i];
    double hours = (double)r->step / 3.6e9;
    time_t at = (time_t)((r->since + i * r->step) / STK_SECOND);
    struct tm tm;

    if (gpus <= 0 || !localtime_r(&at, &tm))
        return;
    add_cell(&h->cell[(tm.tm_wday + 6) % 7][tm.tm_hour], gpus, allocated, active);
    add_cell(&h->all, gpus, allocated, active);
    h->hours += hours;
    h->gpus = gpus;
    h->waiting += or_zero(v[STK_SERIES_CLUSTER_QUEUED * n + i]);
    if (isfinite(power))
        h->kwh = (h->kwh < 0 ? 0 : h->kwh) + (double)power * hours / 1000;
}

stk_time stk_spent_heat(struct stk_api *a, stk_time since, stk_time until,
                        struct stk_spent_heat *io, struct stk_err *err)
{
    const stk_time now = stk_api_now(a), first = now - KEPT, last = now + STK_SERIES_QUARTER;
    const stk_time from = since < first ? first - first % STK_SERIES_QUARTER : since;
    struct stk_series_query q = {
        .kind = STK_SERIES_CLUSTER, .since = from, .step = STK_SERIES_QUARTER, .now = now};
    struct stk_series_result r = {0};
    int rc;

    q.until = until < last ? until : last;
    if (q.until <= q.since)
        return until;
    q.until = q.until - q.since > PART ? q.since + PART : q.until;
    rc = stk_series_fit(a->series, &q, 1, err);
    rc = rc < 0 ? rc : stk_series_read(a->series, stk_live_store(a->cfg.live), &q, &r, err);
    for (uint32_t i = 0; rc == 0 && i < r.points; i++)
        add_point(io, &r, i);
    free(r.value);
    return rc < 0 ? rc : q.until;
}

static json_t *show_cells(const struct stk_spent_heat *h)
{
    json_t *list = json_array();

    for (int d = 0; d < 7; d++)
        for (int t = 0; t < 24; t++) {
            const struct stk_spent_cell *c = &h->cell[d][t];

            if (c->n > 0)
                (void)json_array_append_new(
                    list, json_pack("{s:i,s:i,s:o,s:o,s:o}", "weekday", d, "hour", t, "allocated",
                                    stk_spent_number(c->allocated / c->gpus), "active",
                                    stk_spent_number(c->active / c->gpus), "hours",
                                    stk_spent_number(c->n / 4.0)));
        }
    return list;
}

/* Steps per GPU-hour of a job, from the steps it reported; < 0: it did not. Only its own time is
 * read, in quarters of an hour at most: in longer ones its ends would weigh too much. */
static double throughput(struct stk_api *a, const struct stk_spent_row *w, stk_time since,
                         stk_time until)
{
    const stk_time asked = (until - since) / POINTS;
    struct stk_series_query q = {.kind = STK_SERIES_JOB,
                                 .id = (int64_t)w->number,
                                 .since = w->began > since ? w->began : since,
                                 .until = w->ended > 0 && w->ended < until ? w->ended : until,
                                 .step = asked < STK_SERIES_QUARTER ? asked : STK_SERIES_QUARTER,
                                 .now = stk_api_now(a)};
    struct stk_series_result r = {0};
    double first = -1, last = -1, gpu_h = 0;

    if (stk_series_fit(a->series, &q, 1, NULL) < 0 ||
        stk_series_read(a->series, stk_live_store(a->cfg.live), &q, &r, NULL) < 0)
        return -1;
    for (uint32_t i = 0; i < r.points; i++) {
        float step = r.value[STK_SERIES_JOB_STEP * r.points + i];
        float gpus = r.value[STK_SERIES_JOB_GPUS * r.points + i];

        if (first >= 0 && isfinite(gpus))
            gpu_h += (double)gpus * (double)r.step / 3.6e9;
        if (isfinite(step)) {
            first = first < 0 ? (double)step : first;
            last = (double)step;
        }
    }
    free(r.value);
    return first >= 0 && last > first && gpu_h > 0 ? (last - first) / gpu_h : -1;
}

static json_t *show_throughput(struct stk_api *a, const struct stk_spent *s)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < s->n_biggest; i++) {
        const struct stk_spent_row *w = &s->biggest[i];
        double v = throughput(a, w, s->since, s->until);

        if (v > 0)
            (void)json_array_append_new(list, json_pack("{s:I,s:s,s:s,s:s,s:o}", "job",
                                                        (json_int_t)w->number, "name", w->name,
                                                        "user", w->user, "unit", "steps",
                                                        "per_gpu_hour", stk_spent_number(v)));
    }
    return list;
}

static json_t *show(struct stk_api *a, struct stk_spent *s, const struct stk_spent_heat *h)
{
    json_t *groups = json_array();

    for (uint32_t i = 0; i < s->n_groups; i++)
        (void)json_array_append_new(groups, stk_spent_show_group(a, &s->group[i]));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "since",
                     json_real((double)s->since / 1e6), "until", json_real((double)s->until / 1e6),
                     "cells", show_cells(h), "tenants", groups, "recommendations",
                     stk_spent_advise(a, s, h), "throughput", show_throughput(a, s), "truncated",
                     s->truncated, "currency",
                     a->cost.currency ? json_string(a->cost.currency) : json_null());
}

void stk_do_usage(void *ctx, struct stk_request *r)
{
    stk_time now = stk_api_now(ctx);
    uint64_t days;

    if (stk_request_number(r, "days", 28, 400, &days) < 0)
        return;
    days = days > 0 ? days : 28;
    stk_look(ctx, r,
             &(struct stk_look_for){.since = now - (stk_time)days * DAY,
                                    .until = now,
                                    .by = STK_BY_TENANT,
                                    .days = (uint32_t)days,
                                    .show = show});
}
