/* SPDX-License-Identifier: Apache-2.0 */
/* run_watch.c - what is seen of a run, event by event: one row for each job that ends, the totals,
 * and samples of the cluster's use, which are thinned out when they get many. A run that only
 * preempts is ended with a sentence. */
#include <stdlib.h>
#include <string.h>

#include "core/pair.h"
#include "engine/sim/sim.h"
#include "hetero/hetero.h"
#include "sim/running.h"
#include "sys/big.h"

#define MAX_SAMPLES 65536u
#define MAX_EVICTIONS 5000000u /* without a job ending: it will never end */
#define PROGRESS_STEP 4096u    /* turns between looks at the clock */

static int watch_submit(struct stk_running *x, const struct stk_event *ev)
{
    uint32_t slot = ev->job.i, tag = ev->u.spec->tag;
    const struct stk_trace_job *j = &x->t->jobs[tag];
    enum stk_cause ends = j->cause == STK_CAUSE_NONE ? STK_CAUSE_OK : (enum stk_cause)j->cause;

    if (stk_mem_grow(&stk_big_mem, &x->live, &x->cap_live, slot + 1, sizeof(*x->live)) < 0)
        return -ENOMEM;
    x->live[slot] = (struct stk_running_job){.first_start = -1};
    if (x->foresee)
        stk_foresee_submitted(x->foresee, slot);
    if (x->adviser && stk_adviser_job(x->adviser, ev->job, j->speed_row, j->steps) < 0)
        return -ENOMEM;
    if (stk_running_steps(x, j))
        return stk_engine_sim_steps(x->engine, ev->job, j->speed_row, j->steps, ends);
    if (stk_engine_sim_work(x->engine, ev->job, j->duration, ends) < 0)
        return -ENOMEM;
    if (j->extra)
        stk_engine_sim_saves(x->engine, ev->job, x->t->extras[j->extra - 1].checkpoint,
                             !x->t->extras[j->extra - 1].no_save);
    return 0;
}

/* Two jobs have the same GPUs from now on. */
static void watch_join(struct stk_running *x, const struct stk_event *ev)
{
    uint32_t mate = stk_pair_mate(x->s, ev->job.i);

    if (mate == STK_NONE)
        return;
    x->r->colocations++;
    x->live[ev->job.i].mate = mate + 1;
    x->live[mate].mate = ev->job.i + 1;
    x->live[ev->job.i].joined = x->live[mate].joined = ev->at;
}

/* One of them goes: for so long two jobs counted the same GPUs. */
static void watch_part(struct stk_running *x, const struct stk_event *ev, const struct stk_job *j)
{
    struct stk_running_job *l = &x->live[ev->job.i];

    if (l->mate == 0)
        return;
    x->busy_gpu_us -= (stk_u128)(ev->at - l->joined) * j->gpus;
    l->gpu_us_w -= (double)(ev->at - l->joined) * l->gpu_w / 2; /* half of it was the other's */
    x->live[l->mate - 1].gpu_us_w -= (double)(ev->at - l->joined) * l->gpu_w / 2;
    x->live[l->mate - 1].mate = 0;
    l->mate = 0;
}

/* What its GPUs draw from now on; of a part, its share. */
static void watch_gpu_power(struct stk_running *x, const struct stk_event *ev)
{
    const struct stk_demand *d = &x->s->shapes[x->s->jobs[ev->job.i].shape].demand;
    uint64_t sum = 0;

    for (uint32_t i = 0; x->s->power && i < ev->u.place.n; i++) {
        const struct stk_piece *p = &ev->u.place.pieces[i];

        sum += (uint64_t)p->gpus * x->s->nodes[p->node.i].power.gpu_w;
    }
    x->live[ev->job.i].gpu_w = (uint32_t)(d->gpu_milli ? sum * d->gpu_milli / 1000 : sum);
}

static void watch_place(struct stk_running *x, const struct stk_event *ev)
{
    struct stk_running_job *l = &x->live[ev->job.i];
    const struct stk_piece *p = ev->u.place.pieces;
    uint32_t n = ev->u.place.n, same = 0;

    if (l->first_start < 0 && x->foresee)
        stk_foresee_started(x->foresee, x->s, ev->job.i, ev->at);
    if (l->first_start < 0)
        l->first_start = ev->at;
    watch_join(x, ev);
    watch_gpu_power(x, ev);
    for (uint32_t i = 1; x->s->any_mig && i < n; i++) /* instances may have several on a node */
        for (uint32_t k = 0; k < i; k++)
            if (p[k].node.i == p[i].node.i) {
                same++;
                break;
            }
    if (n - same > l->nodes)
        l->nodes = n - same;
}

/* The lease is over. */
static void watch_leave(struct stk_running *x, const struct stk_event *ev)
{
    const struct stk_job *j = &x->s->jobs[ev->job.i]; /* the last to end is still known */
    struct stk_running_job *l = &x->live[ev->job.i];

    watch_part(x, ev, j);
    l->gpu_us_w += (double)(ev->at - j->started) * l->gpu_w;
    x->busy_gpu_us += (stk_u128)(ev->at - j->started) * j->gpus *
                      stk_demand_asked_milli(&x->s->shapes[j->shape].demand) / 1000;
    if (ev->type == STK_EV_EXITED && ev->u.exit.cause != STK_CAUSE_EVICTED)
        return;
    x->r->preemptions += !j->moving;
    x->r->migrations += j->moving;
    x->r->migrated_gpus += j->moving ? j->gpus : 0;
    if (++x->evicted_since_end > MAX_EVICTIONS)
        x->rc = -ELOOP;
}

static void watch_exit(struct stk_running *x, const struct stk_event *ev)
{
    const struct stk_job *j = &x->s->jobs[ev->job.i];
    struct stk_running_job *l = &x->live[ev->job.i];

    watch_leave(x, ev);
    if (ev->u.exit.cause == STK_CAUSE_EVICTED)
        return;
    stk_sim_estimate_ended(&x->told, &x->t->jobs[j->tag], j->gpus, j->served);
    x->evicted_since_end = 0;
    x->r->jobs[j->tag] = (struct stk_job_result){.first_start = l->first_start,
                                                 .end = ev->at,
                                                 .done = stk_engine_sim_done(x->engine, ev->job),
                                                 .wait = ev->at - j->submitted - j->served,
                                                 .preemptions = j->preemptions,
                                                 .nodes = l->nodes,
                                                 .gpu_kwh = l->gpu_us_w / STK_KWH_US};
    x->ended++;
    x->to_measure -= x->measure_some && stk_running_measured(x, j->tag);
}

/* Up to this event it was as it was after the last. */
static void watch_power(struct stk_running *x, const struct stk_event *ev)
{
    if (ev->type == STK_EV_NODE_OFF && x->s->n_live == 0 && x->next_job == x->t->n_jobs)
        return;
    if (!x->s->power) { /* nobody knows what nodes draw */
        x->end = ev->at;
        return;
    }
    if (x->s->n_events > 1) {
        x->watt_us += (stk_u128)(ev->at - x->end) * x->watts;
        x->on_us += (stk_u128)(ev->at - x->end) * x->on;
    }
    x->end = ev->at;
    x->watts = x->s->watts;
    x->on = x->s->n_on;
    if (x->watts > x->r->peak_w)
        x->r->peak_w = x->watts;
}

/* One that begins after the last job counts for nothing. */
static void watch_window(struct stk_running *x, const struct stk_event *ev)
{
    if (ev->type == STK_EV_RESERVE) {
        x->r->drains += ev->u.booking->drain;
        return;
    }
    x->r->drains_started += ev->u.unreserve.why == STK_OVER_STARTED;
    x->r->drains_given_up += ev->u.unreserve.why == STK_OVER_GIVEN_UP;
    if (x->booked && (x->next_job < x->t->n_jobs || x->s->n_live > 0))
        stk_booked_over(x->booked, ev);
}

static void watch_event(void *ctx, const struct stk_event *ev)
{
    struct stk_running *x = ctx;

    if (x->rc < 0)
        return;
    if (stk_running_guest(x)->event)
        stk_running_guest(x)->event(stk_running_guest(x)->ctx, ev, x->core);
    watch_power(x, ev);
    if (ev->type == STK_EV_SUBMIT)
        x->rc = watch_submit(x, ev);
    else if (ev->type == STK_EV_PLACE)
        watch_place(x, ev);
    else if (ev->type == STK_EV_EXITED)
        watch_exit(x, ev);
    else if (ev->type == STK_EV_SUSPENDED)
        watch_leave(x, ev);
    else if (ev->type == STK_EV_RESERVE || ev->type == STK_EV_UNRESERVE)
        watch_window(x, ev);
    x->r->cycles += stk_cycles_see(&x->cycles, x->s, ev);
    if (x->fair && x->rc == 0)
        x->rc = stk_fairness_event(x->fair, x->s, ev);
    if (x->shadow && x->rc == 0)
        x->rc = stk_core_apply(x->shadow, ev, NULL);
}

static int watch_before(void *ctx, stk_time now, struct stk_err *err)
{
    struct stk_running *x = ctx;

    if (x->s->n_waiting > x->r->max_waiting)
        x->r->max_waiting = x->s->n_waiting;
    return x->foresee ? stk_foresee_look(x->foresee, x->core, now, err) : 0;
}

/* Halves the samples: every second one goes, and the least gap between two doubles. */
static void thin_samples(struct stk_running *x)
{
    struct stk_run_result *r = x->r;

    for (uint32_t i = 0; i < r->n_samples / 2; i++)
        r->samples[i] = r->samples[(size_t)i * 2];
    r->n_samples /= 2;
    x->sample_gap = x->sample_gap ? x->sample_gap * 2 : STK_SECOND;
}

static int take_sample(struct stk_running *x, stk_time now, struct stk_err *err)
{
    struct stk_run_result *r = x->r;
    uint64_t busy = 0;

    if (r->n_samples > 0 && now - r->samples[r->n_samples - 1].at < x->sample_gap)
        return 0;
    if (!r->samples)
        r->samples = malloc(MAX_SAMPLES * sizeof(*r->samples));
    if (!r->samples)
        return stk_err_set(err, -ENOMEM, "out of memory for samples");
    r->cap_samples = MAX_SAMPLES;
    for (uint32_t p = 0; p < x->s->n_pools; p++)
        busy += x->s->pools[p].gpus_up - x->s->pools[p].gpus_free;
    r->samples[r->n_samples++] =
        (struct stk_sample){now, (uint32_t)busy, x->s->n_waiting, x->s->n_leased};
    if (r->n_samples == MAX_SAMPLES)
        thin_samples(x);
    return 0;
}

static int check_all(struct stk_running *x, stk_time now, struct stk_err *err)
{
    struct stk_err why = {{0}};

    if (!stk_core_sound(x->core, &why))
        return stk_err_set(err, -EUCLEAN, "paranoid: at %lld: %.150s", (long long)now, why.text);
    if (x->r->cycles > 0)
        return stk_err_set(err, -EUCLEAN,
                           "paranoid: at %lld: job %u gives way to job %u and the other way round",
                           (long long)now, x->cycles.last[0], x->cycles.last[1]);
    if (stk_core_digest(x->core) != stk_core_digest(x->shadow))
        return stk_err_set(err, -EUCLEAN, "paranoid: at %lld: replay gives another state",
                           (long long)now);
    return 0;
}

static int watch_after(void *ctx, stk_time now, struct stk_err *err)
{
    struct stk_running *x = ctx;
    int rc = 0;

    if (x->rc == -ELOOP)
        return stk_err_set(err, x->rc,
                           "%u preemptions and no job has ended: each costs as much as a job gets "
                           "done in between (restart_s against the rounds)",
                           MAX_EVICTIONS);
    if (x->rc < 0)
        return stk_err_set(err, x->rc, "replay refuses an event at %lld, or out of memory",
                           (long long)now);
    if (x->o->fragments && x->next_job > x->first_measured && !x->all_came) {
        stk_blocked_look(&x->r->blocked, x->s, now);
        x->all_came = x->next_job == x->t->n_jobs;
    }
    if (x->o->samples)
        rc = take_sample(x, now, err);
    if (rc == 0 && x->shadow)
        rc = check_all(x, now, err);
    if (x->o->progress && ++x->turns % PROGRESS_STEP == 0)
        stk_progress_update(x->o->progress, x->ended);
    if (rc == 0 && stk_running_guest(x)->after)
        rc = stk_running_guest(x)->after(stk_running_guest(x)->ctx, x->core, now, err);
    if (rc != 0)
        return rc;
    return x->measure_some && x->to_measure == 0;
}

const struct stk_watch_ops stk_running_watch = {
    .event = watch_event, .before = watch_before, .after = watch_after};
