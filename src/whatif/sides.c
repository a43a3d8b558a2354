/* SPDX-License-Identifier: Apache-2.0 */
/* sides.c - what a comparison shows of each of its sides beside the totals: how many GPUs were in
 * use and how many jobs waited as time went on, in the same intervals for all; and how each tenant
 * fared. */
#include <math.h>
#include <stdlib.h>

#include "sim/series.h"
#include "sim/stats.h"
#include "whatif/whatif.h"

#define BINS 240u /* as many as a chart can show */

/* ---- tenants ---- */

static json_t *number(double v)
{
    return isfinite(v) ? json_real(round(v * 1000) / 1000) : json_null();
}

static json_t *show_tenant(const struct stk_trace *t, const struct stk_tenant_wait *w)
{
    bool any = w->jobs > 0;

    return json_pack("{s:s,s:I,s:o,s:o,s:o,s:o,s:o}", "tenant",
                     t->tenants.n ? stk_names_get(&t->tenants, w->tenant) : "default", "jobs",
                     (json_int_t)w->jobs, "gpu_hours", number(w->gpu_hours), "avg_wait_s",
                     any ? number(w->avg_wait_s) : json_null(), "p50_wait_s",
                     any ? number(w->p50_wait_s) : json_null(), "p90_wait_s",
                     any ? number(w->p90_wait_s) : json_null(), "avg_jct_s",
                     any ? number(w->avg_jct_s) : json_null());
}

json_t *stk_side_tenants(const struct stk_run_result *r, const struct stk_trace *t)
{
    uint32_t top[STK_WHATIF_TENANTS + 1];
    struct stk_tenant_wait rows[STK_WHATIF_TENANTS];
    int n = stk_tenants_top(t, top, STK_WHATIF_TENANTS);
    json_t *list = NULL;

    if (n < 0 || stk_tenant_waits(r, t, top, (uint32_t)n, rows) < 0)
        return NULL;
    list = json_array();
    for (int i = 0; i < n; i++)
        (void)json_array_append_new(list, show_tenant(t, &rows[i]));
    return list;
}

/* ---- the load over time ---- */

static json_t *show_load(const struct stk_run_result *r, const struct stk_bins *bins)
{
    double busy[BINS];
    uint32_t waiting[BINS], n = stk_series_sample(r, bins, busy, waiting);
    json_t *gpus = json_array(), *jobs = json_array();

    for (uint32_t i = 0; i < bins->n; i++) {
        bool known = i < n && isfinite(busy[i]);

        (void)json_array_append_new(gpus, known ? number(round(busy[i] * 100) / 100) : json_null());
        (void)json_array_append_new(jobs, known ? json_integer(waiting[i]) : json_null());
    }
    return json_pack("{s:o,s:o}", "gpus", gpus, "waiting", jobs);
}

json_t *stk_side_series(const struct stk_run_result *runs, const char *const *names, uint32_t n)
{
    struct stk_bins bins = stk_series_bins(runs, n, BINS);
    json_t *o = json_pack("{s:f,s:f}", "since", (double)bins.start / 1e6, "step_s",
                          (double)bins.width / 1e6);

    for (uint32_t i = 0; o && bins.n > 0 && i < n; i++)
        if (runs[i].n_samples > 1)
            (void)json_object_set_new(o, names[i], show_load(&runs[i], &bins));
    return o;
}
