/* SPDX-License-Identifier: Apache-2.0 */
/* efficiency.c - what one job has cost and how well it used its GPUs, with advice. Only what was
 * measured is judged: half a minute at least. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/spent.h"

double stk_spent_money(const struct stk_api *a, double gpu_h, double kwh)
{
    if (a->cost.gpu_hour == 0 && a->cost.kwh == 0)
        return -1;
    return gpu_h * (double)a->cost.gpu_hour / 1e6 + (kwh > 0 ? kwh * (double)a->cost.kwh / 1e6 : 0);
}

json_t *stk_spent_price(const struct stk_api *a)
{
    return json_pack("{s:o,s:o,s:s}", "gpu_hour",
                     a->cost.gpu_hour ? json_real((double)a->cost.gpu_hour / 1e6) : json_null(),
                     "kwh", a->cost.kwh ? json_real((double)a->cost.kwh / 1e6) : json_null(),
                     "currency", a->cost.currency ? a->cost.currency : "");
}

json_t *stk_spent_number(double v)
{
    return v < 0 ? json_null() : json_real(round(v * 1e6) / 1e6);
}

static void add_usage(struct stk_spent_job *j, const struct stk_usage *u)
{
    j->seen_s = u->seen_s;
    j->mem_mib = u->gpu_mem_mib;
    j->cpus = u->seen_s > 0 ? u->cpu_s / u->seen_s : 0;
    for (uint32_t i = 0; i < STK_USAGE_GPUS; i++) {
        j->measured += u->had[i] > 0;
        j->idle += u->had[i] > 0 && u->active[i] < STK_IDLE_BELOW * (double)u->had[i];
    }
}

int stk_spent_job(struct stk_api *a, const struct stk_record *r, struct stk_period p,
                  struct stk_gpu_amounts *bins, struct stk_spent_job *ret, struct stk_err *err)
{
    struct stk_store *st = stk_live_store(a->cfg.live);
    struct stk_usage u = {0};
    struct stk_spent_job j = {
        .gpus = r->gpu_milli ? (double)r->gpus * r->gpu_milli / 1000 : (double)r->gpus, .kwh = -1};
    struct stk_job_past past;
    int rc = stk_leases_read(&a->leases, st, r, err);

    if (rc < 0)
        return rc;
    if (stk_store_usage_get(st, r->number, &u, NULL) < 0)
        u = (struct stk_usage){0};
    if (a->cfg.usage)
        a->cfg.usage(a->cfg.ctx, r->number, &u);
    past = (struct stk_job_past){.lease = a->leases.list,
                                 .n = a->leases.n,
                                 .sampled = stk_figures_of_seconds(u.gpu_s),
                                 .active = stk_figures_of_seconds(u.active_s)};
    stk_figures_of_job(&past, p, stk_api_now(a), &j.f, bins);
    add_usage(&j, &u);
    j.gpu_h = stk_figures_hours(j.f.allocated);
    j.util = stk_figures_ratio(j.f.active, j.f.measured);
    if (u.energy_j > 0 && j.f.ever > 0)
        j.kwh = u.energy_j / 3.6e6 * (double)j.f.allocated /
                (double)(j.f.sampled > 0 ? j.f.sampled : j.f.ever);
    j.money = stk_spent_money(a, j.gpu_h, j.kwh);
    *ret = j;
    return 0;
}

const char *stk_spent_verdict(const struct stk_spent_job *j)
{
    if (j->gpus <= 0 || j->util < 0 || j->seen_s < STK_JUDGE_AFTER)
        return "unknown";
    if (j->util < STK_IDLE_BELOW)
        return "idle";
    return j->util < STK_POOR_BELOW || j->idle > 0 ? "poor" : "good";
}

void stk_spent_advice(const struct stk_spent_job *j, char *buf, size_t size)
{
    const char *verdict = stk_spent_verdict(j);
    double part = j->util < 0.12 ? 0.25 : 0.5;

    buf[0] = '\0';
    if (strcmp(verdict, "idle") == 0)
        (void)snprintf(buf, size, "%s did nothing: end it, or run it without GPUs (--gpus 0)",
                       j->gpus > 1 ? "its GPUs" : "its GPU");
    else if (strcmp(verdict, "poor") == 0 && j->idle > 0 && j->measured > j->idle)
        (void)snprintf(buf, size, "%u of %u GPUs idle: ask for %u", j->idle, j->measured,
                       j->measured - j->idle);
    else if (strcmp(verdict, "poor") == 0 && j->gpus > 1)
        (void)snprintf(buf, size,
                       "its %g GPUs work %.0f%% of the time: ask for fewer, or feed them faster",
                       j->gpus, j->util * 100);
    else if (strcmp(verdict, "poor") == 0)
        (void)snprintf(buf, size,
                       "its GPU works %.0f%% of the time: part of one would do (--gpus %g)",
                       j->util * 100, part);
}

json_t *stk_spent_show(struct stk_api *a, const struct stk_spent_job *j)
{
    char advice[200];
    bool known = j->util >= 0 && j->seen_s > 0;

    stk_spent_advice(j, advice, sizeof(advice));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:s,s:o}", "gpu_hours",
                     stk_spent_number(j->gpu_h), "money", stk_spent_number(j->money), "currency",
                     a->cost.currency ? json_string(a->cost.currency) : json_null(), "kwh",
                     stk_spent_number(j->kwh), "util",
                     known ? stk_spent_number(j->util) : json_null(), "mem_used_max_mib",
                     j->mem_mib > 0 ? json_real(j->mem_mib) : json_null(), "gpus_idle",
                     known ? json_integer(j->idle) : json_null(), "verdict", stk_spent_verdict(j),
                     "advice", advice[0] ? json_string(advice) : json_null());
}

void stk_spent_set(const struct stk_show *v, json_t *o, const struct stk_record *rec)
{
    const struct stk_period life = {0, stk_api_now(v->api)};
    struct stk_spent_job j;

    if (!v->detail || rec->gpus == 0 || rec->lease.from == 0 ||
        stk_spent_job(v->api, rec, life, NULL, &j, NULL) < 0)
        return;
    (void)json_object_set_new(o, "efficiency", stk_spent_show(v->api, &j));
}
