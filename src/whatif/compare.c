/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - one past three times: as it was recorded, simulated in the world as it was, and
 * simulated in the changed one. The difference between the first two is the simulation's own error;
 * that between the last two is what the change does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "sim/out_json.h"
#include "sim/recorded.h"
#include "sim/run.h"
#include "sim/stats.h"
#include "whatif/whatif.h"

#define STEP 0.01

struct watch {
    const struct stk_whatif *q;
    const char *what;
    double from, part, told; /* of all the work */
    stk_time first, last;
    struct stk_period known; /* of the period: since when the machines were known */
    stk_gpu_time allocated;  /* in it, by what is simulated */
    uint64_t preemptions;
};

/* How far it is by the clock of the trace; what comes after its last job is not counted. */
static int after_turn(void *ctx, struct stk_core *core, stk_time now, struct stk_err *err)
{
    struct watch *w = ctx;
    double done = w->last > w->first ? (double)(now - w->first) / (double)(w->last - w->first) : 1;

    (void)core;
    (void)err;
    done = done < 0 ? 0 : done > 1 ? 1 : done;
    if (w->q->tell && done - w->told >= STEP) {
        w->told = done;
        w->q->tell(w->q->ctx, w->from + w->part * done, w->what);
    }
    return 0;
}

/* A lease of the simulated past is over: counted as those that happened are. */
static void on_event(void *ctx, const struct stk_event *ev, const struct stk_core *core)
{
    const bool suspended = ev->type == STK_EV_SUSPENDED;
    const struct stk_state *s = stk_core_state(core);
    const struct stk_job *j;
    struct watch *w = ctx;
    struct stk_lease lease;
    struct stk_job_figures f;

    if (!suspended && ev->type != STK_EV_EXITED)
        return;
    j = &s->jobs[ev->job.i];
    lease = (struct stk_lease){.from = j->started,
                               .to = ev->at,
                               .milli = j->gpus * stk_demand_milli(&s->shapes[j->shape].demand),
                               .preempted = (suspended || ev->u.exit.cause == STK_CAUSE_EVICTED) &&
                                            !j->moving};
    stk_figures_of_job(&(struct stk_job_past){.lease = &lease, .n = 1}, w->known, ev->at, &f, NULL);
    w->allocated += f.allocated;
    w->preemptions += f.preemptions;
}

/* Figures of the period in place of those that the simulator has of its whole run. */
static void set_period(json_t *side, stk_gpu_time allocated, stk_gpu_time capacity,
                       uint64_t preemptions)
{
    const double ratio = stk_figures_ratio(allocated, capacity);

    (void)json_object_set_new(side, "gpu_hours", json_real(stk_figures_hours(allocated)));
    (void)json_object_set_new(side, "utilization", ratio < 0 ? json_null() : json_real(ratio));
    (void)json_object_set_new(side, "preemptions", json_integer((json_int_t)preemptions));
}

/* The totals and the tenants; of the run only its samples are needed any more. */
static int as_json(struct stk_run_result *r, const struct stk_trace *t, json_t **ret,
                   struct stk_err *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct stk_emit e;
    int rc = f ? 0 : -ENOMEM;

    if (f) {
        stk_emit_init(&e, f);
        stk_emit_text(&e, "{");
        stk_out_json_members(&e, r);
        stk_emit_text(&e, "}");
        rc = stk_emit_end(&e);
        (void)fclose(f);
    }
    *ret = rc == 0 ? json_loadb(text, len, 0, NULL) : NULL;
    free(text);
    if (!*ret)
        return stk_err_set(err, -ENOMEM, "out of memory");
    (void)json_object_del(*ret, "digest"); /* of this program: cpu_s and rss_mib are, too */
    (void)json_object_del(*ret, "cpu_s");
    (void)json_object_del(*ret, "rss_mib");
    (void)json_object_set_new(*ret, "gpus", json_integer((json_int_t)r->gpus));
    (void)json_object_set_new(*ret, "tenants", stk_side_tenants(r, t));
    free(r->jobs);
    r->jobs = NULL;
    return 0;
}

static int prepare(const struct stk_whatif *q, struct stk_world *w, struct stk_flat_tenants *flat,
                   struct stk_run_options *o, struct stk_err *err)
{
    int rc = 0;

    *o = (struct stk_run_options){
        .lenient = true, .recorded = true, .samples = true, .last_id = UINT32_MAX};
    if (w->has_tenants) {
        o->tenants = &w->tenants;
        if (!w->tenants.of_trace)
            rc = stk_tenants_match(&w->tenants, q->trace, err);
    }
    rc = rc < 0 ? rc : stk_flat_tenants_make(flat, q->trace, err);
    o->flat = flat;
    return rc;
}

static int simulate(struct watch watch, struct stk_world *w, struct stk_run_result *r, json_t **ret,
                    struct stk_err *err)
{
    const struct stk_whatif *q = watch.q;
    const struct stk_trace *t = q->trace;
    const struct stk_run_guest guest = {.ctx = &watch, .event = on_event, .after = after_turn};
    struct stk_flat_tenants flat = {0};
    struct stk_run_options o;
    int rc = prepare(q, w, &flat, &o, err);

    o.guest = &guest;
    rc = rc < 0 ? rc : stk_sim_run(t, &w->cluster, &w->setup, &o, r, err);
    if (rc == 0) {
        r->recorded_only = true;
        stk_run_result_sum(r, t, 0, UINT32_MAX);
        rc = as_json(r, t, ret, err);
    }
    if (rc == 0 && q->period) {
        struct stk_capacity_figures c = {0};

        stk_figures_capacity(&c, watch.known, watch.known, (uint32_t)w->gpus, NULL);
        set_period(*ret, watch.allocated, c.sum, watch.preemptions);
    }
    stk_flat_tenants_free(&flat);
    return rc;
}

static int recorded(const struct stk_whatif *q, struct stk_run_result *r, json_t **ret,
                    struct stk_err *err)
{
    struct stk_flat_tenants flat = {0};
    struct stk_run_options o;
    int rc = prepare(q, q->before, &flat, &o, err);

    rc = rc < 0 ? rc : stk_recorded_run(q->trace, &q->before->cluster, &o, r, err);
    rc = rc < 0 ? rc : as_json(r, q->trace, ret, err);
    if (rc == 0 && q->period)
        set_period(*ret, q->period->allocated, q->period->capacity.sum, q->period->preemptions);
    stk_flat_tenants_free(&flat);
    return rc;
}

/* Where each side stands in what is returned, and its name there. */
enum side { RECORDED, BEFORE, AFTER, N_SIDES };
static const char *const names[N_SIDES] = {"recorded", "before", "after"};

static int run_all(const struct stk_whatif *q, struct stk_run_result *runs, json_t **sides,
                   struct stk_err *err)
{
    double part = q->after ? 0.45 : 0.9;
    struct watch watch = {.q = q,
                          .what = "the past as it was",
                          .from = 0.1,
                          .part = part,
                          .first = q->trace->jobs[0].submit,
                          .last = q->trace->jobs[q->trace->n_jobs - 1].submit};
    int rc = recorded(q, &runs[RECORDED], &sides[RECORDED], err);

    if (q->period) /* what is known of the machines goes up to its end */
        watch.known =
            (struct stk_period){q->period->p.until - q->period->capacity.known, q->period->p.until};

    rc = rc < 0 ? rc : simulate(watch, q->before, &runs[BEFORE], &sides[BEFORE], err);
    if (rc < 0 || !q->after)
        return rc;
    watch.what = "the past with the changes";
    watch.from += part;
    return simulate(watch, q->after, &runs[AFTER], &sides[AFTER], err);
}

int stk_whatif_compare(const struct stk_whatif *q, json_t **ret, struct stk_err *err)
{
    struct stk_run_result *runs = calloc(N_SIDES, sizeof(*runs));
    json_t *sides[N_SIDES] = {NULL}, *o = json_object();
    int rc = runs ? run_all(q, runs, sides, err) : stk_err_set(err, -ENOMEM, "out of memory");

    for (uint32_t i = 0; i < N_SIDES; i++)
        (void)json_object_set_new(o, names[i], sides[i] ? sides[i] : json_null());
    if (rc == 0 && json_object_set_new(o, "series", stk_side_series(runs, names, N_SIDES)) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; runs && i < N_SIDES; i++)
        stk_run_result_done(&runs[i]);
    free(runs);
    if (rc < 0)
        json_decref(o);
    else
        *ret = o;
    return rc;
}
