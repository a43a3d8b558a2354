/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - /metrics for Prometheus: the daemon, the queue, the store. GPUs and tenants are in
 * files of their own; jobs have a path of their own, because there can be many.
 *
 * Labels are bounded: by the states, reasons and causes there are, by GPUs and by tenants. Why jobs
 * wait is asked once for each kind of job and at most every ten seconds, for it takes a try at
 * placing. */
#include "api/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "api/owners.h"
#include "api/show.h"
#include "core/state.h"
#include "model/reason.h"

#define REASONS_MS 10000u
#define MAX_ASKED 256u /* kinds of jobs of which the reason is asked */

/* ---- the queue ---- */

/* Why jobs wait, by the first of each kind; those of too many kinds are not looked at. */
static void look_at_reasons(struct stk_api *a)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    const struct stk_state *s = stk_core_state(core);
    struct stk_api_reasons *r = &a->reasons;
    uint8_t *of = calloc((size_t)s->n_shapes + 1, 1); /* reason + 1 */
    stk_time now = stk_api_now(a), oldest = now;
    uint32_t left = s->n_waiting, asked = 0;

    *r = (struct stk_api_reasons){.until_ms = uv_now(a->cfg.loop) + REASONS_MS};
    for (uint32_t i = 0; of && i < s->n_jobs && left > 0; i++) {
        const struct stk_job *j = &s->jobs[i];
        struct stk_reason why = {.code = STK_WHY_MAX};

        if (j->state != STK_JOB_WAITING)
            continue;
        left--;
        if (j->slept) /* it is suspended */
            continue;
        if (j->queued > 0 && j->queued < oldest)
            oldest = j->queued;
        if (of[j->shape] == 0 && asked < MAX_ASKED) {
            asked++;
            if (stk_core_why(core, (stk_job_id){i}, &why, NULL) < 0)
                why.code = STK_WHY_MAX;
            of[j->shape] = (uint8_t)(why.code + 1);
        }
        r->n[of[j->shape] ? of[j->shape] - 1 : STK_WHY_MAX]++;
    }
    r->oldest_s = (double)(now - oldest) / 1e6;
    free(of);
}

const struct stk_api_reasons *stk_api_reasons(struct stk_api *a)
{
    if (a->reasons.until_ms <= uv_now(a->cfg.loop))
        look_at_reasons(a);
    return &a->reasons;
}

static void put_queue(struct stk_prom *p, struct stk_api *a)
{
    const struct stk_job_counts c = stk_count_jobs(a);
    const struct stk_api_reasons *r = stk_api_reasons(a);

    stk_prom_head(p, "stoker_jobs", "gauge", "Jobs that have not ended, by state.");
    stk_prom_put(p, "stoker_jobs", "state", "running", c.leased);
    stk_prom_put(p, "stoker_jobs", "state", "waiting", c.waiting);
    stk_prom_put(p, "stoker_jobs", "state", "suspended", c.suspended);
    stk_prom_put(p, "stoker_jobs", "state", "blocked", c.blocked);
    stk_prom_put(p, "stoker_jobs", "state", "held", c.held);
    stk_prom_put(p, "stoker_jobs", "state", "stopping", c.stopping);
    stk_prom_head(p, "stoker_waiting_jobs", "gauge",
                  "Jobs that wait, by what holds the first of their kind back.");
    for (int i = 0; i <= STK_WHY_MAX; i++)
        if (i != STK_WHY_RUNNING && i != STK_WHY_ENDED)
            stk_prom_put(p, "stoker_waiting_jobs", "reason",
                         i == STK_WHY_MAX ? "unknown" : stk_reason_name((enum stk_reason_code)i),
                         (double)r->n[i]);
    stk_prom_one(p, "stoker_oldest_wait_seconds", "gauge",
                 "How long the job that waits longest has waited.", r->oldest_s);
}

/* A lease may turn out to have ended before the last look: a counter does not go back. */
static void put_allocated(struct stk_prom *p, struct stk_api *a)
{
    const double v = (double)stk_live_allocated(a->cfg.live, stk_api_now(a)) / 1e9;

    a->allocated_gpu_s = v > a->allocated_gpu_s ? v : a->allocated_gpu_s;
    stk_prom_one(p, "stoker_allocated_gpu_seconds_total", "counter",
                 "GPU time allocated to jobs since the daemon was started.", a->allocated_gpu_s);
}

static void put_events(struct stk_prom *p, const struct stk_live_counts *c)
{
    stk_prom_histogram(p, "stoker_job_wait_seconds",
                       "Time waited before each start, restarts included.", &c->wait);
    stk_prom_one(p, "stoker_jobs_submitted_total", "counter", "Jobs submitted.",
                 (double)c->submitted);
    stk_prom_one(p, "stoker_jobs_started_total", "counter", "Jobs started, first starts only.",
                 (double)c->started);
    stk_prom_head(p, "stoker_jobs_ended_total", "counter", "Jobs that have ended, by cause.");
    for (int i = STK_CAUSE_OK; i < STK_CAUSE_MAX; i++)
        stk_prom_put(p, "stoker_jobs_ended_total", "cause", stk_show_cause((enum stk_cause)i),
                     (double)c->ended[i]);
    stk_prom_one(p, "stoker_decisions_total", "counter", "Placements and preemptions decided.",
                 (double)c->decided);
    stk_prom_histogram(p, "stoker_cycle_seconds",
                       "Time of one turn of the scheduler, without writing it down.", &c->turn);
    stk_prom_head(p, "stoker_preemptions_total", "counter",
                  "Times that jobs lost their GPUs to others, by why.");
    for (int i = 0; i < STK_PREEMPTED_MAX; i++)
        stk_prom_put(p, "stoker_preemptions_total", "cause",
                     stk_evicted_name((enum stk_why_evicted)i), (double)c->evicted[i]);
    stk_prom_head(p, "stoker_stops_total", "counter",
                  "Times that running jobs were stopped and no other job needed their GPUs.");
    for (int i = STK_PREEMPTED_MAX; i < STK_EVICTED_MAX; i++)
        stk_prom_put(p, "stoker_stops_total", "cause", stk_evicted_name((enum stk_why_evicted)i),
                     (double)c->evicted[i]);
    stk_prom_one(p, "stoker_lost_gpu_seconds_total", "counter",
                 "GPU time of jobs that has to be spent again.", c->lost_gpu_s);
}

/* ---- the daemon ---- */

static void put_daemon(struct stk_prom *p, const struct stk_api *a)
{
    const struct stk_prom_labels info = {{"version", "policy"},
                                         {a->cfg.version, stk_live_config(a->cfg.live)->policy}};
    uint64_t turns = 0;
    double switch_s = 0;

    stk_prom_head(p, "stoker_info", "gauge", "What runs.");
    stk_prom_line(p, "stoker_info", &info, 1);
    stk_prom_one(p, "stoker_trouble", "gauge", "1 when the daemon cannot do its work.",
                 a->trouble[0] != '\0');
    stk_prom_one(p, "stoker_clock_ahead_seconds", "gauge",
                 "By how much the scheduler's time is ahead of the machine's clock.",
                 (double)stk_api_ahead(a) / 1e6);
    stk_prom_one(p, "stoker_start_time_seconds", "gauge",
                 "When the daemon was started, since 1970.",
                 (double)stk_live_counts(a->cfg.live)->since / 1e6);
    stk_prom_one(p, "stoker_up_seconds", "gauge", "Time since the daemon was started.",
                 (double)(stk_api_now(a) - stk_live_counts(a->cfg.live)->since) / 1e6);
    if (a->cfg.turns)
        a->cfg.turns(a->cfg.ctx, &turns, &switch_s);
    stk_prom_one(p, "stoker_turns_total", "counter",
                 "Turns given to jobs that share a GPU in turns.", (double)turns);
    stk_prom_one(p, "stoker_turn_switch_seconds_total", "counter", "Time that went into switching.",
                 switch_s);
}

static void put_http(struct stk_prom *p, const struct stk_api *a)
{
    struct stk_http_stats h;

    stk_http_stats(a->http, &h);
    stk_prom_one(p, "stoker_http_requests_total", "counter",
                 "Requests since the daemon was started.", (double)h.requests);
    stk_prom_one(p, "stoker_http_connections_total", "counter", "Connections since then.",
                 (double)h.connections);
    stk_prom_one(p, "stoker_http_dropped_total", "counter",
                 "Connections closed for age or want of room.", (double)h.refused);
    stk_prom_one(p, "stoker_http_connections", "gauge", "Open connections.", h.open);
    stk_prom_one(p, "stoker_http_waiting", "gauge", "Requests that wait or stream.", h.held);
}

static void put_store(struct stk_prom *p, const struct stk_api *a)
{
    const struct stk_live_counts *c = stk_live_counts(a->cfg.live);
    uint64_t bytes = 0;

    stk_prom_one(p, "stoker_events_total", "counter", "Events in the journal.",
                 (double)stk_live_seq(a->cfg.live));
    stk_prom_histogram(p, "stoker_commit_seconds", "Time to write one turn down.", &c->commit);
    stk_prom_one(p, "stoker_commit_failures_total", "counter",
                 "Turns that could not be written down.", (double)c->failed);
    if (stk_store_size(stk_live_store(a->cfg.live), &bytes, NULL) == 0)
        stk_prom_one(p, "stoker_store_bytes", "gauge", "Bytes in use in the store.", (double)bytes);
}

/* ---- alerts ---- */

static double count_alerts(const struct stk_api *a, const char *name)
{
    const json_t *list = json_object_get(a->alerts, "alerts"), *o;
    double n = 0;
    size_t i;

    json_array_foreach(list, i, o)
    {
        n += strcmp(json_string_value(json_object_get(o, "kind")), name) == 0 &&
             strcmp(json_string_value(json_object_get(o, "state")), "firing") == 0;
    }
    return n;
}

static void put_alerts(struct stk_prom *p, const struct stk_api *a)
{
    const json_t *rules = json_object_get(a->alerts, "rules"), *o;
    size_t i;

    stk_prom_head(p, "stoker_alerts", "gauge", "Alerts that fire, by kind.");
    json_array_foreach(rules, i, o)
    {
        const char *name = json_string_value(json_object_get(o, "name"));

        stk_prom_put(p, "stoker_alerts", "alert", name, count_alerts(a, name));
    }
    stk_prom_head(p, "stoker_alert_threshold", "gauge",
                  "What an alert begins at, in its unit; absent: the alert is off.");
    json_array_foreach(rules, i, o)
    {
        const json_t *t = json_object_get(o, "threshold");

        if (json_is_true(json_object_get(o, "on")))
            stk_prom_put(p, "stoker_alert_threshold", "alert",
                         json_string_value(json_object_get(o, "name")),
                         json_is_null(t) ? 1 : json_number_value(t));
    }
    stk_prom_one(p, "stoker_idle_gpus", "gauge",
                 "GPUs of jobs that have done nothing for longer than alerts.idle.",
                 json_number_value(json_object_get(a->alerts, "idle_gpus")));
}

void stk_do_metrics(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_prom p = {0};

    put_daemon(&p, a);
    put_http(&p, a);
    put_store(&p, a);
    put_queue(&p, a);
    put_allocated(&p, a);
    put_events(&p, stk_live_counts(a->cfg.live));
    stk_metrics_gpus(&p, a);
    stk_metrics_teams(&p, a);
    put_alerts(&p, a);
    stk_prom_send(&p, r);
}
