/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/out_json.h"

#include <inttypes.h>
#include <string.h>

#include "rules/booked.h"

#define DECIMALS 6

static void member_u64(struct stk_emit *e, const char *name, uint64_t v)
{
    stk_emit_member(e, name);
    stk_emit_u64(e, v);
}

static void member_real(struct stk_emit *e, const char *name, double v)
{
    stk_emit_member(e, name);
    stk_emit_real(e, v, DECIMALS);
}

static void foreseen_part(struct stk_emit *e, const char *name, const struct stk_foreseen_part *p)
{
    stk_emit_member(e, name);
    stk_emit_text(e, "{\"jobs\":");
    stk_emit_u64(e, p->jobs);
    member_real(e, "p90_coverage", p->p90_coverage);
    member_real(e, "median_error_s", p->median_error_s);
    member_real(e, "naive_median_error_s", p->naive_median_error_s);
    member_real(e, "mean_error_s", p->mean_error_s);
    member_real(e, "naive_mean_error_s", p->naive_mean_error_s);
    stk_emit_text(e, "}");
}

static void foreseen(struct stk_emit *e, const struct stk_foreseen *f)
{
    stk_emit_member(e, "forecast");
    stk_emit_text(e, "{\"every\":");
    stk_emit_u64(e, f->every);
    member_u64(e, "unknown", f->unknown);
    foreseen_part(e, "all", &f->all);
    foreseen_part(e, "waited", &f->waited);
    member_real(e, "run_error", f->run_error);
    member_real(e, "plain_run_error", f->plain_run_error);
    stk_emit_text(e, "}");
}

static void fairness(struct stk_emit *e, const struct stk_fair_result *f)
{
    stk_emit_member(e, "fairness");
    stk_emit_text(e, "{\"windows\":");
    stk_emit_u64(e, f->windows);
    member_real(e, "window_s", f->window_s);
    member_real(e, "jain", f->jain);
    member_real(e, "jain_worst", f->jain_worst);
    member_real(e, "share_ratio", f->ratio);
    member_real(e, "share_ratio_worst", f->ratio_worst);
    member_real(e, "rho", f->rho);
    member_real(e, "rho_worst", f->rho_worst);
    stk_emit_member(e, "tenants");
    stk_emit_text(e, "[");
    for (uint32_t i = 0; i < f->n_tenants; i++) {
        stk_emit_text(e, i ? ",{\"tenant\":" : "{\"tenant\":");
        stk_emit_json(e, f->tenant[i].name);
        member_u64(e, "jobs", f->tenant[i].jobs);
        member_real(e, "gpu_hours", f->tenant[i].gpu_hours);
        member_real(e, "rho", f->tenant[i].rho);
        member_real(e, "rho_worst", f->tenant[i].rho_worst);
        member_real(e, "share", f->tenant[i].share);
        member_real(e, "part", f->tenant[i].part);
        if (f->guarantees) {
            member_real(e, "borrowed_gpu_hours", f->tenant[i].borrowed_h);
            member_real(e, "idle_gpu_hours", f->tenant[i].idle_h);
        }
        stk_emit_text(e, "}");
    }
    stk_emit_text(e, "]}");
}

static void reservations(struct stk_emit *e, const struct stk_booked *x)
{
    stk_emit_member(e, "reservations");
    stk_emit_text(e, "[");
    for (uint32_t i = 0; i < stk_booked_n(x); i++) {
        const struct stk_booked_row *row = stk_booked_row(x, i);

        stk_emit_text(e, i ? ",{\"name\":" : "{\"name\":");
        stk_emit_json(e, row->name);
        member_u64(e, "windows", row->windows);
        member_u64(e, "lapsed", row->lapsed);
        member_u64(e, "refused", row->refused);
        member_real(e, "gpu_hours", row->gpu_hours);
        if (row->note[0]) {
            stk_emit_member(e, "note");
            stk_emit_json(e, row->note);
        }
        stk_emit_text(e, "}");
    }
    stk_emit_text(e, "]");
}

/* What not every run has. */
static void some_members(struct stk_emit *e, const struct stk_run_result *r)
{
    if (r->deadlines > 0) {
        member_u64(e, "deadlines", r->deadlines);
        member_u64(e, "deadlines_met", r->deadlines_met);
        member_u64(e, "deadlines_missed", r->deadlines - r->deadlines_met);
        member_real(e, "avg_late_s", r->avg_late_s);
        member_real(e, "worst_late_s", r->worst_late_s);
    }
    if (r->power) {
        member_real(e, "energy_kwh", r->energy_kwh);
        member_real(e, "node_hours_on", r->node_hours_on);
        member_u64(e, "peak_w", r->peak_w);
    }
    if (r->shares) {
        member_u64(e, "colocations", r->colocations);
        member_real(e, "least_speed", r->least_speed);
    }
    if (r->blocked.looked) {
        member_real(e, "waiting_gpu_s", r->blocked.waiting_gpu_s);
        member_real(e, "blocked_gpu_s", r->blocked.blocked_gpu_s);
        member_real(e, "allocation",
                    r->blocked.all_gpu_s > 0 ? r->blocked.used_gpu_s / r->blocked.all_gpu_s : 0);
    }
    if (r->drains > 0) {
        member_u64(e, "drains", r->drains);
        member_u64(e, "drains_started", r->drains_started);
        member_u64(e, "drains_given_up", r->drains_given_up);
    }
    if (r->booked)
        reservations(e, r->booked);
    if (r->fair.known)
        fairness(e, &r->fair);
    if (r->foreseen.every)
        foreseen(e, &r->foreseen);
    if (r->rounds > 0)
        member_u64(e, "rounds", r->rounds);
}

void stk_out_json_members(struct stk_emit *e, const struct stk_run_result *r)
{
    char digest[17];

    (void)snprintf(digest, sizeof(digest), "%016" PRIx64, r->digest);
    stk_emit_text(e, "\"bundle\":");
    stk_emit_json(e, r->bundle);
    member_u64(e, "jobs", r->n_jobs);
    member_u64(e, "finished", r->finished);
    stk_emit_member(e, "sum_jct_s");
    stk_emit_us(e, r->sum_jct_us);
    member_real(e, "avg_jct_s", r->avg_jct_s);
    member_real(e, "p50_jct_s", r->p50_jct_s);
    member_real(e, "p90_jct_s", r->p90_jct_s);
    member_real(e, "p99_jct_s", r->p99_jct_s);
    member_real(e, "avg_wait_s", r->avg_wait_s);
    member_real(e, "p999_wait_s", r->p999_wait_s);
    member_real(e, "avg_bounded_slowdown", r->avg_bounded_slowdown);
    member_real(e, "makespan_s", r->makespan_s);
    member_real(e, "utilization", r->utilization);
    member_real(e, "gpu_hours", r->gpu_hours);
    member_u64(e, "preemptions", r->preemptions);
    member_u64(e, "cycles", r->cycles);
    member_u64(e, "migrations", r->migrations);
    member_u64(e, "migrated_gpus", r->migrated_gpus);
    member_real(e, "restarts_cost_gpu_s", r->restarts_cost_gpu_s);
    member_u64(e, "max_waiting", r->max_waiting);
    member_u64(e, "events", r->events);
    member_u64(e, "decisions", r->decisions);
    member_real(e, "cpu_s", r->cpu_s);
    member_real(e, "rss_mib", r->rss_mib);
    stk_emit_member(e, "digest");
    stk_emit_json(e, digest);
    stk_emit_member(e, "policies");
    stk_emit_json(e, r->policies);
    member_real(e, "p50_wait_s", r->p50_wait_s);
    member_real(e, "p90_wait_s", r->p90_wait_s);
    member_real(e, "p99_wait_s", r->p99_wait_s);
    some_members(e, r);
}

int stk_out_json(FILE *f, const struct stk_run_result *runs, uint32_t n_runs, struct stk_err *err)
{
    struct stk_emit e;
    int rc;

    stk_emit_init(&e, f);
    stk_emit_text(&e, "{\"runs\":[");
    for (uint32_t i = 0; i < n_runs; i++) {
        stk_emit_text(&e, i ? ",\n{" : "\n{");
        stk_out_json_members(&e, &runs[i]);
        stk_emit_text(&e, "}");
    }
    stk_emit_text(&e, "\n]}\n");
    rc = stk_emit_end(&e);
    return rc ? stk_err_set(err, rc, "cannot write JSON: %s", strerror(-rc)) : 0;
}
