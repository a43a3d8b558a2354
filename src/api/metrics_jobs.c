/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_jobs.c - /metrics/jobs: the jobs that have GPUs or processes now, one line each in every
 * family. On a path of its own, because each job is a new series: whoever does not want these does
 * not read it. At most MAX_JOBS are there; how many are not is said. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/metrics.h"
#include "api/owners.h"
#include "core/state.h"
#include "series/series.h"

#define MAX_JOBS 5000u

struct row {
    const struct stk_entry *e;
    const struct stk_job *j;
    char number[16];
    double gpus;
    float now[STK_SERIES_MAX_FIELDS];
};

static const struct {
    const char *name, *help;
    int field;
    double scale;
} measured[] = {
    {"stoker_job_active_gpus", "GPUs of the job at work.", STK_SERIES_JOB_ACTIVE, 1},
    {"stoker_job_gpu_utilization_ratio", "Utilization of its GPUs, mean.",
     STK_SERIES_JOB_UTILIZATION, 1},
    {"stoker_job_gpu_memory_bytes", "Memory in use on its GPUs.", STK_SERIES_JOB_GPU_MEMORY,
     1048576},
    {"stoker_job_power_watts", "Power that its GPUs draw.", STK_SERIES_JOB_POWER, 1},
    {"stoker_job_cpu_cores", "CPU cores that its processes use.", STK_SERIES_JOB_CPUS, 1},
    {"stoker_job_memory_bytes", "Memory of its processes.", STK_SERIES_JOB_MEMORY, 1048576},
    {"stoker_job_steps", "Steps done, as it reports.", STK_SERIES_JOB_STEP, 1},
};

static void line(struct stk_prom *p, const char *name, const struct row *r, double v)
{
    const struct stk_prom_labels l = {
        {"job", "user", "queue", "tenant"},
        {r->number, r->e->rec.user, r->e->rec.queue, r->e->rec.tenant}};

    stk_prom_line(p, name, &l, v);
}

static uint32_t collect(struct stk_api *a, struct row *rows, uint32_t *ret_left)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    uint32_t n = 0;

    *ret_left = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        const struct stk_demand *d;
        struct row *r = &rows[n];

        if (!j->lease)
            continue;
        r->e = stk_live_entry(a->cfg.live, j->number);
        if (!r->e || n == MAX_JOBS) {
            *ret_left += n == MAX_JOBS;
            continue;
        }
        d = &s->shapes[j->shape].demand;
        r->j = j;
        r->gpus = (double)j->gpus * stk_demand_milli(d) / 1000;
        (void)snprintf(r->number, sizeof(r->number), "%u", j->number);
        stk_series_now(a->series, STK_SERIES_JOB, (int64_t)j->number, r->now);
        n++;
    }
    return n;
}

static void put_rows(struct stk_prom *p, const struct row *rows, uint32_t n, stk_time now)
{
    stk_prom_head(p, "stoker_job_gpus", "gauge", "GPUs that the job has.");
    for (uint32_t i = 0; i < n; i++)
        line(p, "stoker_job_gpus", &rows[i], rows[i].gpus);
    stk_prom_head(p, "stoker_job_run_seconds", "gauge", "Time it has run, all starts together.");
    for (uint32_t i = 0; i < n; i++)
        line(p, "stoker_job_run_seconds", &rows[i], (double)stk_job_served(rows[i].j, now) / 1e6);
    stk_prom_head(p, "stoker_job_preemptions", "gauge", "How often it had to give way.");
    for (uint32_t i = 0; i < n; i++)
        line(p, "stoker_job_preemptions", &rows[i], rows[i].j->preemptions);
    for (size_t f = 0; f < sizeof(measured) / sizeof(*measured); f++) {
        stk_prom_head(p, measured[f].name, "gauge", measured[f].help);
        for (uint32_t i = 0; i < n; i++)
            if (isfinite(rows[i].now[measured[f].field]))
                line(p, measured[f].name, &rows[i],
                     (double)rows[i].now[measured[f].field] * measured[f].scale);
    }
}

void stk_do_metrics_jobs(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct row *rows = calloc(MAX_JOBS + 1u, sizeof(*rows));
    struct stk_prom p = {0};
    uint32_t n, left = 0;

    if (!rows) {
        stk_request_error(r, 503, "busy", "out of memory");
        return;
    }
    n = collect(a, rows, &left);
    put_rows(&p, rows, n, stk_api_now(a));
    stk_prom_one(&p, "stoker_jobs_not_listed", "gauge", "Jobs with GPUs that are not listed here.",
                 left);
    free(rows);
    stk_prom_send(&p, r);
}
