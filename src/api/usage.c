/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - when GPUs are used: the same amounts as in a report, by hour and weekday of local time;
 * what they drew; and how much jobs get done in a GPU-hour, where they report their steps. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "api/spent.h"
#include "series/series.h"

#define DAY (INT64_C(86400) * STK_SECOND)
#define KEPT (401 * DAY)
#define PART (15 * DAY) /* read at once */
#define POINTS 2000     /* of the steps of a job */

/* How long of this quarter of an hour lies in the period and is known. */
static stk_time known_of(const struct stk_spent *s, stk_time at)
{
    const stk_time i = (at - s->bins.since) / STK_SERIES_QUARTER;

    return at < s->bins.since || i >= (stk_time)s->bins.n
               ? 0
               : (stk_time)s->bins.amount[STK_AMOUNT_KNOWN][i];
}

stk_time stk_spent_energy(struct stk_api *a, const struct stk_spent *s, struct stk_period p,
                          struct stk_spent_heat *io, struct stk_err *err)
{
    const stk_time now = stk_api_now(a), first = now - KEPT, last = now + STK_SERIES_QUARTER;
    const stk_time from = p.since < first ? first - first % STK_SERIES_QUARTER : p.since;
    struct stk_series_query q = {
        .kind = STK_SERIES_CLUSTER, .since = from, .step = STK_SERIES_QUARTER, .now = now};
    struct stk_series_result r = {0};
    int rc;

    q.until = p.until < last ? p.until : last;
    if (q.until <= q.since)
        return p.until;
    q.until = q.until - q.since > PART ? q.since + PART : q.until;
    rc = stk_series_fit(a->series, &q, 1, err);
    rc = rc < 0 ? rc : stk_series_read(a->series, stk_live_store(a->cfg.live), &q, &r, err);
    for (uint32_t i = 0; rc == 0 && i < r.points; i++) {
        const float power = r.value[STK_SERIES_CLUSTER_POWER * r.points + i];
        const double hours = (double)known_of(s, r.since + i * r.step) / 3.6e9;

        if (isfinite(power))
            io->kwh = (io->kwh < 0 ? 0 : io->kwh) + (double)power * hours / 1000;
    }
    free(r.value);
    return rc < 0 ? rc : q.until;
}

void stk_spent_cells(struct stk_spent *s, struct stk_spent_heat *io)
{
    const struct stk_gpu_amounts *b = &s->bins;

    stk_gpu_amounts_finish(&s->bins);
    for (uint32_t i = 0; i < b->n; i++) {
        const time_t at = (time_t)((b->since + i * b->step) / STK_SECOND);
        struct stk_spent_cell *c;
        struct tm tm;

        if (b->amount[STK_AMOUNT_CAPACITY][i] == 0 || !localtime_r(&at, &tm))
            continue;
        c = &io->cell[(tm.tm_wday + 6) % 7][tm.tm_hour];
        c->hours += (double)b->amount[STK_AMOUNT_KNOWN][i] / 3.6e9;
        c->gpus += (double)b->amount[STK_AMOUNT_CAPACITY][i] / 3.6e12;
        c->allocated += (double)b->amount[STK_AMOUNT_ALLOCATED][i] / 3.6e12;
        c->active += (double)b->amount[STK_AMOUNT_ACTIVE][i] / 3.6e12;
    }
}

static json_t *show_cells(const struct stk_spent_heat *h)
{
    json_t *list = json_array();

    for (int d = 0; d < 7; d++)
        for (int t = 0; t < 24; t++) {
            const struct stk_spent_cell *c = &h->cell[d][t];

            if (c->hours > 0)
                (void)json_array_append_new(
                    list, json_pack("{s:i,s:i,s:o,s:o,s:o}", "weekday", d, "hour", t, "allocated",
                                    stk_spent_number(c->allocated / c->gpus), "active",
                                    stk_spent_number(c->active / c->gpus), "hours",
                                    stk_spent_number(c->hours)));
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
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "since",
                     json_real((double)s->since / 1e6), "until", json_real((double)s->until / 1e6),
                     "cluster", stk_spent_show_whole(a, s, h), "all",
                     stk_spent_show_group(a, &s->all), "cells", show_cells(h), "tenants", groups,
                     "recommendations", stk_spent_advise(a, s, h), "throughput",
                     show_throughput(a, s), "truncated", s->truncated, "currency",
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
