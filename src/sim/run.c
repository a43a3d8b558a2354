/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - see run.h.
 *
 * The trace is the loop's source; its jobs' true durations are known to the sim engine alone. What
 * happens is watched event by event; when a job ends, one row is written, found by the job's tag.
 * The core keeps the last finished job, so that it can still be read then. So the memory that is
 * touched in no order is that of the jobs alive, whatever the length of the trace.
 */
#include "sim/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cycles.h"
#include "core/pair.h"
#include "core/state.h"
#include "drive/loop.h"
#include "engine/sim/sim.h"
#include "hetero/hetero.h"
#include "policy/registry.h"
#include "sim/booked_run.h"
#include "sim/estimate.h"
#include "sim/mix.h"
#include "sim/ruled.h"
#include "sim/speeds.h"
#include "sys/big.h"

#define MAX_SAMPLES 65536u
#define MAX_EVICTIONS 5000000u /* without a job ending: it will never end */
#define KWH_US 3.6e12          /* watts x microseconds */
#define PROGRESS_STEP 4096u    /* turns between looks at the clock */

__extension__ typedef unsigned __int128
    u128; /* GPU-microseconds pass 2^63 in three years of 100,000 GPUs */

struct live { /* by job slot: what the core does not keep of a job */
    stk_time first_start;
    uint32_t nodes;
    uint32_t gpu_w;  /* what its GPUs draw while it has them */
    double gpu_us_w; /* so far, in microseconds x watts */
    uint32_t mate;   /* who has the same GPUs; slot + 1 */
    stk_time joined; /* since when */
};

struct sim_run {
    const struct stk_trace *t;
    const struct stk_run_options *o;
    struct stk_run_result *r;
    struct stk_core *core, *shadow;
    const struct stk_state *s;
    struct stk_engine *engine;
    struct stk_speed_table speeds; /* by the cluster's GPU types; none: jobs have durations */
    struct stk_adviser *adviser;   /* NULL: the policies take no advice */
    stk_time advised;              /* the round it last spoke in */
    struct stk_fairness *fair;     /* NULL: nobody said who the tenants are */
    struct stk_foresee *foresee;   /* NULL: nobody asked */
    struct stk_sim_estimate told;  /* run times */
    struct stk_ruled *ruled;       /* NULL: no rules */
    struct stk_booked *booked;     /* NULL: no reservations */
    struct live *live;
    uint32_t cap_live;
    uint32_t next_job;
    uint32_t *numbers; /* trace index -> job number; only when jobs depend on others */
    struct stk_dep *deps;
    uint32_t cap_deps;
    stk_pool_id *pool_of_group;
    struct stk_trace_map map;
    const struct stk_tenant_spec *tenants; /* of the core */
    uint32_t n_tenants;
    const struct stk_flat_tenants *flat; /* these; NULL: they are the file's, or there are none */
    uint32_t type_speed[STK_MAX_GPU_TYPES];
    uint64_t turns, ended;
    uint32_t first_measured; /* in the trace */
    uint32_t to_measure;     /* jobs that count in the totals and have not ended */
    bool all_came;           /* and were looked at */
    bool measure_some;       /* not all of them do */
    struct stk_cycles cycles;
    bool signals; /* jobs that are warned save what they have done */
    u128 busy_gpu_us;
    stk_time end;   /* of what counts: switching off what nobody needs any more does not */
    u128 watt_us;   /* drawn up to 'end' */
    u128 on_us;     /* time of nodes that were on */
    uint64_t watts; /* since 'end' */
    uint32_t on;
    uint64_t evicted_since_end;
    stk_time sample_gap;
    int rc; /* of the shadow core, or of memory: watchers of events cannot fail */
};

/* ---- source: the trace ---- */

static const struct stk_run_guest nobody;

static const struct stk_run_guest *guest_of(const struct sim_run *x)
{
    return x->o->guest ? x->o->guest : &nobody;
}

/* The next arrival, the next round of the adviser, or what the guest has to say. */
static stk_time next_submit(void *ctx)
{
    const struct sim_run *x = ctx;
    const struct stk_run_guest *g = guest_of(x);
    stk_time at = x->next_job < x->t->n_jobs ? x->t->jobs[x->next_job].submit : STK_NEVER_TIME;
    stk_time round = g->next ? g->next(g->ctx) : STK_NEVER_TIME;

    at = round < at ? round : at;
    round = STK_NEVER_TIME;
    /* rules alone do not keep it going, but at the start */
    if (x->ruled && (at < STK_NEVER_TIME || x->s->n_live > 0))
        round = stk_ruled_next(x->ruled);
    if (x->booked && (at < STK_NEVER_TIME || x->s->n_live > 0)) {
        stk_time window = stk_booked_next(x->booked);

        round = window < round ? window : round;
    }
    at = round < at ? round : at;
    round = STK_NEVER_TIME;

    if (x->adviser && x->s->n_live > 0) {
        round = (x->s->now + x->s->round - 1) / x->s->round * x->s->round;
        if (round <= x->advised)
            round = x->advised + x->s->round;
    }
    return at < round ? at : round;
}

/* Whether the job's work is counted in steps here. */
static bool counts_steps(const struct sim_run *x, const struct stk_trace_job *j)
{
    return x->speeds.s.types > 0 && j->steps > 0;
}

/* The GPU types it runs on at all. */
static uint64_t types_it_runs_on(const struct sim_run *x, const struct stk_trace_job *j)
{
    uint64_t types = 0;

    if (!counts_steps(x, j))
        return STK_ANY_GPU_TYPE;
    for (uint32_t t = 0; t < x->speeds.s.types; t++)
        if (stk_speed_alone(&x->speeds.s, j->speed_row, t, false) > 0)
            types |= UINT64_C(1) << t;
    return types;
}

static int fill_deps(struct sim_run *x, const struct stk_trace_job *j, struct stk_job_spec *spec)
{
    if (stk_mem_grow(&stk_big_mem, &x->deps, &x->cap_deps, j->n_deps, sizeof(*x->deps)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < j->n_deps; i++) {
        const struct stk_trace_dep *d = &x->t->deps[j->first_dep + i];

        x->deps[i] = (struct stk_dep){.on = x->numbers[d->on], .type = d->type};
    }
    spec->deps = x->deps;
    spec->n_deps = j->n_deps;
    return 0;
}

/* The job's id as the trace has it. */
static const char *id_of(const struct stk_trace *t, uint32_t i, char buf[64])
{
    uint64_t id = t->jobs[i].id;

    if (id & STK_TRACE_ID_NAME)
        (void)snprintf(buf, 64, "%s", stk_names_get(&t->ids, (uint32_t)(id & ~STK_TRACE_ID_NAME)));
    else
        (void)snprintf(buf, 64, "%llu", (unsigned long long)id);
    return buf;
}

/* Whose reservations it may use. */
static int book(const struct sim_run *x, uint32_t i, struct stk_terms *terms, struct stk_err *err)
{
    const struct stk_trace_job *j = &x->t->jobs[i];
    const uint32_t named = j->extra ? x->t->extras[j->extra - 1].reservation : 0;
    const char *name = named ? stk_names_get(&x->t->reservations, named - 1) : NULL;
    char id[64];

    if (!x->booked)
        return 0;
    terms->user = terms->user ? terms->user : j->user;
    terms->reservation = stk_booked_id(x->booked, name, id_of(x->t, i, id));
    return name && terms->reservation == 0
               ? stk_err_set(err, -ENOENT, "there is no reservation \"%.60s\"", name)
               : 0;
}

static int submit(struct sim_run *x, struct stk_loop *loop, uint32_t i, struct stk_err *err)
{
    const struct stk_trace_job *j = &x->t->jobs[i];
    struct stk_job_spec spec = {
        .demand = stk_trace_demand(x->t, j, &x->map),
        .kind = (enum stk_job_kind)j->kind,
        .tier = (enum stk_tier)j->tier,
        .priority = j->priority,
        .pool = x->pool_of_group ? x->pool_of_group[j->group] : (stk_pool_id){0},
        .tag = i,
        .begin = j->begin,
        .array_index = j->array_index,
        .held = j->held,
    };
    const struct stk_event ev = {
        .at = j->submit, .type = STK_EV_SUBMIT, .job = stk_core_next_job(x->core), .u.spec = &spec};

    stk_tenants_place(x->o->tenants, j, &spec);
    if (x->flat)
        spec.tenant = x->flat->of_trace[j->tenant];
    spec.demand.gpu_types &= types_it_runs_on(x, j);
    stk_trace_terms(x->t, j, x->signals, &spec.terms);
    if (book(x, i, &spec.terms, err) < 0)
        return -ENOENT;
    stk_sim_estimate_set(&x->told, j, &spec);
    if (counts_steps(x, j)) /* measured */
        spec.demand.n_speeds = 0;
    spec.demand.row = counts_steps(x, j) ? j->speed_row + 1 : 0;
    if (j->n_deps > 0 && fill_deps(x, j, &spec) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (x->numbers) {
        spec.array = j->array ? x->numbers[j->array - 1] : 0;
        x->numbers[i] = x->s->next_number;
    }
    return stk_loop_apply(loop, &ev, err);
}

/* 0: it is left out. */
static int refuse(struct sim_run *x, uint32_t i, int rc, const struct stk_err *why,
                  struct stk_err *err)
{
    const struct stk_run_guest *g = guest_of(x);
    char id[64];

    if (x->numbers)
        x->numbers[i] = 0;
    if (g->refused)
        g->refused(g->ctx, i, why->text);
    if (x->o->lenient)
        return 0;
    return stk_err_set(err, rc, "job %s %.150s; --lenient leaves such jobs out", id_of(x->t, i, id),
                       why->text);
}

static int feed_jobs(struct sim_run *x, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    while (x->next_job < x->t->n_jobs && x->t->jobs[x->next_job].submit <= now) {
        uint32_t i = x->next_job++;
        struct stk_err why = {{0}};
        char id[64];
        int rc = submit(x, loop, i, &why);

        if (rc == -ERANGE || rc == -ENOENT || (rc == -EINVAL && guest_of(x)->refused))
            rc = refuse(x, i, rc, &why, err);
        else if (rc < 0)
            rc = stk_err_set(err, rc, "job %s: %.180s", id_of(x->t, i, id), why.text);
        if (rc < 0)
            return rc;
    }
    return 0;
}

struct window_feed {
    struct sim_run *x;
    struct stk_loop *loop;
};

static int apply_window(void *ctx, const struct stk_event *ev, struct stk_err *err)
{
    const struct window_feed *f = ctx;
    const struct stk_run_guest *g = guest_of(f->x);
    int rc = stk_loop_apply(f->loop, ev, err);

    if (rc < 0 && g->refused_window)
        g->refused_window(g->ctx, ev->u.booking->tag - 1, err->text);
    return rc;
}

static int feed(void *ctx, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    struct sim_run *x = ctx;
    const struct stk_run_guest *g = guest_of(x);
    struct window_feed f = {x, loop};
    const struct stk_booked_to to = {apply_window, &f};
    int rc = 0;

    if (x->booked && stk_booked_next(x->booked) <= now)
        rc = stk_booked_feed(x->booked, stk_core_next_booking(x->core), now, &to, err);
    rc = rc < 0 ? rc : feed_jobs(x, loop, now, err);
    if (rc == 0 && g->feed && g->next(g->ctx) <= now)
        rc = g->feed(g->ctx, loop, x->core, now, err);
    if (rc < 0)
        return rc;
    if (x->ruled && stk_ruled_next(x->ruled) <= now)
        rc = stk_ruled_feed(x->ruled, loop, x->s, now, err);
    if (rc < 0)
        return rc;
    if (x->adviser && now % x->s->round == 0 && now > x->advised) {
        x->advised = now;
        return stk_adviser_round(x->adviser, loop, now, err);
    }
    return 0;
}

static const struct stk_source_ops source_ops = {next_submit, feed};

/* ---- watch: rows, totals, samples ---- */

static bool measured(const struct sim_run *x, uint32_t tag)
{
    uint64_t id = x->t->jobs[tag].id;

    return id >= x->o->first_id && id <= x->o->last_id;
}

static int watch_submit(struct sim_run *x, const struct stk_event *ev)
{
    uint32_t slot = ev->job.i, tag = ev->u.spec->tag;
    const struct stk_trace_job *j = &x->t->jobs[tag];
    enum stk_cause ends = j->cause == STK_CAUSE_NONE ? STK_CAUSE_OK : (enum stk_cause)j->cause;

    if (stk_mem_grow(&stk_big_mem, &x->live, &x->cap_live, slot + 1, sizeof(*x->live)) < 0)
        return -ENOMEM;
    x->live[slot] = (struct live){.first_start = -1};
    if (x->foresee)
        stk_foresee_submitted(x->foresee, slot);
    if (x->adviser && stk_adviser_job(x->adviser, ev->job, j->speed_row, j->steps) < 0)
        return -ENOMEM;
    if (counts_steps(x, j))
        return stk_engine_sim_steps(x->engine, ev->job, j->speed_row, j->steps, ends);
    if (stk_engine_sim_work(x->engine, ev->job, j->duration, ends) < 0)
        return -ENOMEM;
    if (j->extra)
        stk_engine_sim_saves(x->engine, ev->job, x->t->extras[j->extra - 1].checkpoint,
                             !x->t->extras[j->extra - 1].no_save);
    return 0;
}

/* Two jobs have the same GPUs from now on. */
static void watch_join(struct sim_run *x, const struct stk_event *ev)
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
static void watch_part(struct sim_run *x, const struct stk_event *ev, const struct stk_job *j)
{
    struct live *l = &x->live[ev->job.i];

    if (l->mate == 0)
        return;
    x->busy_gpu_us -= (u128)(ev->at - l->joined) * j->gpus;
    l->gpu_us_w -= (double)(ev->at - l->joined) * l->gpu_w / 2; /* half of it was the other's */
    x->live[l->mate - 1].gpu_us_w -= (double)(ev->at - l->joined) * l->gpu_w / 2;
    x->live[l->mate - 1].mate = 0;
    l->mate = 0;
}

/* What its GPUs draw from now on; of a part, its share. */
static void watch_gpu_power(struct sim_run *x, const struct stk_event *ev)
{
    const struct stk_demand *d = &x->s->shapes[x->s->jobs[ev->job.i].shape].demand;
    uint64_t sum = 0;

    for (uint32_t i = 0; x->s->power && i < ev->u.place.n; i++) {
        const struct stk_piece *p = &ev->u.place.pieces[i];

        sum += (uint64_t)p->gpus * x->s->nodes[p->node.i].power.gpu_w;
    }
    x->live[ev->job.i].gpu_w = (uint32_t)(d->gpu_milli ? sum * d->gpu_milli / 1000 : sum);
}

static void watch_place(struct sim_run *x, const struct stk_event *ev)
{
    struct live *l = &x->live[ev->job.i];
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
static void watch_leave(struct sim_run *x, const struct stk_event *ev)
{
    const struct stk_job *j = &x->s->jobs[ev->job.i]; /* the last to end is still known */
    struct live *l = &x->live[ev->job.i];

    watch_part(x, ev, j);
    l->gpu_us_w += (double)(ev->at - j->started) * l->gpu_w;
    x->busy_gpu_us +=
        (u128)(ev->at - j->started) * j->gpus *
        (x->s->shapes[j->shape].demand.gpu_milli ? x->s->shapes[j->shape].demand.gpu_milli : 1000) /
        1000;
    if (ev->type == STK_EV_EXITED && ev->u.exit.cause != STK_CAUSE_EVICTED)
        return;
    x->r->preemptions += !j->moving;
    x->r->migrations += j->moving;
    x->r->migrated_gpus += j->moving ? j->gpus : 0;
    if (++x->evicted_since_end > MAX_EVICTIONS)
        x->rc = -ELOOP;
}

static void watch_exit(struct sim_run *x, const struct stk_event *ev)
{
    const struct stk_job *j = &x->s->jobs[ev->job.i];
    struct live *l = &x->live[ev->job.i];

    watch_leave(x, ev);
    if (ev->u.exit.cause == STK_CAUSE_EVICTED)
        return;
    stk_sim_estimate_ended(&x->told, &x->t->jobs[j->tag], j->gpus, j->served);
    x->evicted_since_end = 0;
    x->r->jobs[j->tag] = (struct stk_job_result){.first_start = l->first_start,
                                                 .end = ev->at,
                                                 .wait = ev->at - j->submitted - j->served,
                                                 .preemptions = j->preemptions,
                                                 .nodes = l->nodes,
                                                 .gpu_kwh = l->gpu_us_w / KWH_US};
    x->ended++;
    x->to_measure -= x->measure_some && measured(x, j->tag);
}

/* Up to this event it was as it was after the last. */
static void watch_power(struct sim_run *x, const struct stk_event *ev)
{
    if (ev->type == STK_EV_NODE_OFF && x->s->n_live == 0 && x->next_job == x->t->n_jobs)
        return;
    if (!x->s->power) { /* nobody knows what nodes draw */
        x->end = ev->at;
        return;
    }
    if (x->s->n_events > 1) {
        x->watt_us += (u128)(ev->at - x->end) * x->watts;
        x->on_us += (u128)(ev->at - x->end) * x->on;
    }
    x->end = ev->at;
    x->watts = x->s->watts;
    x->on = x->s->n_on;
    if (x->watts > x->r->peak_w)
        x->r->peak_w = x->watts;
}

/* One that begins after the last job counts for nothing. */
static void watch_window(struct sim_run *x, const struct stk_event *ev)
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
    struct sim_run *x = ctx;

    if (x->rc < 0)
        return;
    if (guest_of(x)->event)
        guest_of(x)->event(guest_of(x)->ctx, ev, x->core);
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
    struct sim_run *x = ctx;

    if (x->s->n_waiting > x->r->max_waiting)
        x->r->max_waiting = x->s->n_waiting;
    return x->foresee ? stk_foresee_look(x->foresee, x->core, now, err) : 0;
}

/* Halves the samples: every second one goes, and the least gap between two doubles. */
static void thin_samples(struct sim_run *x)
{
    struct stk_run_result *r = x->r;

    for (uint32_t i = 0; i < r->n_samples / 2; i++)
        r->samples[i] = r->samples[(size_t)i * 2];
    r->n_samples /= 2;
    x->sample_gap = x->sample_gap ? x->sample_gap * 2 : STK_SECOND;
}

static int take_sample(struct sim_run *x, stk_time now, struct stk_err *err)
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

static int check_all(struct sim_run *x, stk_time now, struct stk_err *err)
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
    struct sim_run *x = ctx;
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
    if (rc == 0 && guest_of(x)->after)
        rc = guest_of(x)->after(guest_of(x)->ctx, x->core, now, err);
    if (rc != 0)
        return rc;
    return x->measure_some && x->to_measure == 0;
}

static const struct stk_watch_ops watch_ops = {
    .event = watch_event, .before = watch_before, .after = watch_after};

/* ---- setting up ---- */

static int map_names(struct sim_run *x, const struct stk_cluster *c, struct stk_err *err)
{
    const struct stk_trace *t = x->t;

    if (stk_trace_map(t, c, &x->map, err) < 0)
        return -E2BIG;
    if (!x->o->split)
        return 0;
    x->pool_of_group = calloc(t->groups.n + 1u, sizeof(*x->pool_of_group));
    if (!x->pool_of_group)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < t->groups.n; i++) {
        const char *name = stk_names_get(&t->groups, i);
        int64_t n = stk_names_find(&c->pools, name, strlen(name));

        if (n < 0)
            return stk_err_set(err, -ENOENT, "no pool is named like group \"%.60s\"", name);
        x->pool_of_group[i] = (stk_pool_id){(uint32_t)n};
    }
    return 0;
}

static int make_core(const struct sim_run *x, const struct stk_cluster *c,
                     const struct stk_setup *setup, struct stk_core **ret, struct stk_err *err)
{
    bool known = stk_params_word(&setup->params, stk_sim_mix, "trace");
    struct stk_mix *mix = known ? calloc(1, sizeof(*mix)) : NULL;
    const struct stk_core_config cfg = {
        .nodes = c->nodes,
        .n_nodes = c->n_nodes,
        .n_pools = c->pools.n,
        .n_resources = x->map.n_resources,
        .resource_names = x->map.names,
        .tenants = x->tenants,
        .n_tenants = x->n_tenants,
        .type_speed = x->type_speed,
        .queues = x->o->tenants ? x->o->tenants->teams.queues : NULL,
        .n_queues = x->o->tenants ? x->o->tenants->teams.n_queues : 0,
        .layouts = c->layouts,
        .n_layouts = c->n_layouts,
        .order = setup->order,
        .backfill = setup->backfill,
        .place = setup->place,
        .preempt = setup->preempt,
        .admit = setup->admit,
        .params = &setup->params,
        .mix = mix,
        .speeds = x->speeds.s.types > 0 ? &x->speeds.s : NULL,
        .sleeps = stk_params_word(&setup->params, stk_sim_leave, "suspend"),
        .pools_change = x->ruled && stk_ruled_moves_nodes(x->ruled),
        .retain_done = x->numbers ? UINT32_MAX : 1,
    };
    int rc = known && !mix ? stk_err_set(err, -ENOMEM, "out of memory") : 0;

    rc = rc < 0 || !mix ? rc : stk_mix_of(x->t, &x->map, setup->place->by_demand, mix, err);
    rc = rc < 0 ? rc : stk_core_new(&cfg, &stk_big_mem, ret, err);
    free(mix);
    return rc;
}

static int make_rows(struct sim_run *x, struct stk_err *err)
{
    const struct stk_trace *t = x->t;
    bool linked = t->n_deps > 0;

    x->r->jobs = malloc((t->n_jobs + 1u) * sizeof(*x->r->jobs));
    x->measure_some = x->o->first_id > 0 || x->o->last_id < UINT32_MAX;
    for (uint32_t i = 0; x->r->jobs && i < t->n_jobs; i++) {
        if (x->to_measure == 0 && x->measure_some && measured(x, i))
            x->first_measured = i;
        x->to_measure += x->measure_some && measured(x, i);
        x->r->jobs[i] = (struct stk_job_result){.first_start = -1, .end = -1};
        linked |= t->jobs[i].array > 0;
    }
    if (x->measure_some && x->to_measure == 0)
        return stk_err_set(err, -EINVAL, "no job of the trace has an id from %u to %u",
                           x->o->first_id, x->o->last_id);
    if (linked)
        x->numbers = calloc(t->n_jobs + 1u, sizeof(*x->numbers));
    if (!x->r->jobs || (linked && !x->numbers))
        return stk_err_set(err, -ENOMEM, "out of memory for %u jobs", t->n_jobs);
    return 0;
}

static uint64_t steps_left(void *ctx, stk_job_id job, stk_time now)
{
    return stk_engine_sim_steps_left(((const struct sim_run *)ctx)->engine, job, now);
}

static int make_adviser(struct sim_run *x, const struct stk_setup *setup, struct stk_err *err)
{
    const struct stk_adviser_config ac = {.core = x->core,
                                          .params = &setup->params,
                                          .speeds = &x->speeds.s,
                                          .solver = x->o->solver,
                                          .left = steps_left,
                                          .ctx = x};

    if (!setup->order->advised)
        return 0;
    for (uint32_t i = 0; i < x->t->n_jobs; i++)
        if (!counts_steps(x, &x->t->jobs[i]))
            return stk_err_set(err, -EINVAL,
                               "order %s needs a trace that counts steps, and the speeds of "
                               "its jobs on every GPU type of the cluster",
                               setup->order->name);
    x->advised = -1;
    return stk_adviser_new(&ac, &x->adviser, err);
}

static int drive(struct sim_run *x, const struct stk_cluster *c, const struct stk_setup *setup,
                 struct stk_err *err)
{
    const struct stk_sim_config ec = {
        .params = &setup->params,
        .round = stk_params_seconds(&setup->params, &stk_core_params[0]),
        .restart = stk_restart_s,
        .suspend = stk_suspend_s,
        .speeds = x->speeds.s.types > 0 ? &x->speeds.s : NULL,
        .nodes = c->nodes,
        .n_nodes = c->n_nodes,
        .saves = setup->place->saves,
        .off_after = stk_params_seconds(&setup->params, stk_energy_off_after)};
    struct stk_loop *loop = NULL;
    int rc = stk_engine_sim_new(&ec, &stk_big_mem, &x->engine, err);

    rc = rc < 0 ? rc : make_adviser(x, setup, err);
    if (rc == 0) {
        const struct stk_loop_config lc = {x->core, x->engine, &source_ops, x, &watch_ops, x};

        rc = stk_loop_new(&lc, &stk_big_mem, &loop, err);
    }
    rc = rc < 0 ? rc : stk_loop_run_virtual(loop, err);
    if (rc == 0) {
        x->r->decisions = stk_loop_decisions(loop);
        x->r->restarts_cost_gpu_s = stk_engine_sim_restart_cost(x->engine);
        x->r->shares = setup->place->mate != NULL;
        x->r->least_speed = stk_engine_sim_least_speed(x->engine);
    }
    stk_loop_free(loop);
    stk_adviser_free(x->adviser);
    if (x->engine)
        x->engine->ops->close(x->engine);
    return rc;
}

static void fill_totals(struct sim_run *x, const struct stk_cluster *c)
{
    struct stk_run_result *r = x->r;
    stk_time first = x->t->n_jobs ? x->t->jobs[0].submit : 0;

    for (uint32_t i = 0; i < c->n_nodes; i++)
        r->gpus += c->nodes[i].gpus;
    r->nodes = c->n_nodes;
    r->pools = c->pools.n;
    r->events = x->s->n_events;
    r->rounds = x->s->round > 0 ? (uint64_t)(x->s->now / x->s->round) : 0;
    r->digest = stk_core_digest(x->core);
    if (x->end > first && r->gpus > 0)
        r->utilization = (double)x->busy_gpu_us / ((double)(x->end - first) * (double)r->gpus);
    r->power = x->s->power;
    r->energy_kwh = (double)x->watt_us / KWH_US;
    r->node_hours_on = (double)x->on_us / 3.6e9;
}

static void clean_up(struct sim_run *x)
{
    stk_core_free(x->core);
    stk_core_free(x->shadow);
    stk_foresee_free(x->foresee);
    stk_sim_estimate_done(&x->told);
    stk_fairness_free(x->fair);
    stk_ruled_free(x->ruled);
    stk_booked_free(x->booked);
    stk_speed_table_done(&x->speeds);
    free(x->numbers);
    free(x->pool_of_group);
    stk_mem_drop(&stk_big_mem, &x->live, &x->cap_live, sizeof(*x->live));
    stk_mem_drop(&stk_big_mem, &x->deps, &x->cap_deps, sizeof(*x->deps));
}

/* Those of the file; else, for orders that ask for tenants, those of the trace. */
static void choose_tenants(struct sim_run *x, const struct stk_setup *setup)
{
    const struct stk_run_options *o = x->o;

    if (o->tenants && o->tenants->teams.n_tenants > 0) {
        x->tenants = o->tenants->teams.tenants;
        x->n_tenants = o->tenants->teams.n_tenants;
    } else if (o->flat && (setup->order->share || setup->order->backlog)) {
        x->flat = o->flat;
        x->tenants = o->flat->rows;
        x->n_tenants = o->flat->n;
    }
}

/* By the file's tenants, or the trace's own. */
static int watch_fairness(struct sim_run *x, const struct stk_setup *setup, struct stk_err *err)
{
    const struct stk_run_options *o = x->o;
    const stk_time window = stk_params_seconds(&setup->params, stk_sim_window);
    bool file = o->tenants && o->tenants->teams.n_tenants > 0;
    int rc = 0;

    if (file)
        rc = stk_fairness_new(x->t, o->tenants->teams.tenants, o->tenants->teams.n_tenants,
                              o->tenants->of_trace, window, &x->fair);
    else if (o->flat)
        rc = stk_fairness_new(x->t, o->flat->rows, o->flat->n, o->flat->of_trace, window, &x->fair);
    return rc < 0 ? stk_err_set(err, rc, "out of memory") : 0;
}

/* What came of it. */
static void sum_up(struct sim_run *x, const struct stk_cluster *c, const struct stk_setup *setup)
{
    struct stk_run_result *r = x->r;

    (void)memcpy(r->bundle, setup->name, sizeof(r->bundle));
    stk_setup_describe(setup, r->policies, sizeof(r->policies));
    fill_totals(x, c);
    if (x->fair)
        stk_fairness_sum(x->fair, x->end, r->gpus, r->jobs, &r->fair);
    r->fair.asked = x->n_tenants > 0;
    if (x->foresee)
        stk_foresee_sum(x->foresee, r->jobs, &r->foreseen);
    r->booked = x->booked; /* with all that became of it */
    x->booked = NULL;
}

/* What is told of run times, and what is asked about starts. */
static int foretell(struct sim_run *x, const struct stk_setup *setup, uint32_t n_pools,
                    struct stk_err *err)
{
    const uint32_t every = x->o->forecast;

    if (stk_sim_estimate_init(&x->told, &setup->params, every > 0) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (every == 0)
        return 0;
    return stk_foresee_new(x->t, n_pools, x->told.predict, every, &x->foresee, err);
}

int stk_sim_run(const struct stk_trace *t, const struct stk_cluster *c,
                const struct stk_setup *setup, const struct stk_run_options *o,
                struct stk_run_result *ret, struct stk_err *err)
{
    struct stk_cluster joined = *c; /* names are shared, nodes may be replaced */
    struct stk_run_result r = {0};
    struct sim_run x = {.t = t, .o = o, .r = &r};
    int rc = 0;

    choose_tenants(&x, setup);
    for (uint32_t i = 0; i < STK_MAX_GPU_TYPES; i++)
        x.type_speed[i] = c->type_speed[i] ? c->type_speed[i] : 1000;

    if (setup->place->aggregate) {
        joined.nodes = malloc(c->n_nodes * sizeof(*c->nodes));
        if (!joined.nodes)
            return stk_err_set(err, -ENOMEM, "out of memory");
        memcpy(joined.nodes, c->nodes, c->n_nodes * sizeof(*c->nodes));
        rc = stk_cluster_aggregate(&joined, err);
    }
    rc = rc < 0 ? rc : map_names(&x, c, err);
    if (rc == 0 && t->speeds)
        rc = stk_speed_table_fit(
            t->speeds, c, stk_params_word(&setup->params, stk_sim_spread, "on"), &x.speeds, err);
    rc = rc < 0 ? rc : make_rows(&x, err);
    if (rc == 0 && o->rules)
        rc = stk_ruled_new(o->rules, &joined, o->tenants, &x.ruled, err);
    if (rc == 0 && o->reservations)
        rc = stk_booked_of_run(o->reservations,
                               &(struct stk_booked_run){t, &joined, x.tenants, x.n_tenants},
                               &x.booked, err);
    rc = rc < 0 ? rc : make_core(&x, &joined, setup, &x.core, err);
    if (rc == 0 && o->paranoid)
        rc = make_core(&x, &joined, setup, &x.shadow, err);
    rc = rc < 0 ? rc : foretell(&x, setup, joined.pools.n, err);
    rc = rc < 0 ? rc : watch_fairness(&x, setup, err);
    if (rc == 0) {
        x.signals = stk_params_word(&setup->params, stk_sim_leave, "signal") ||
                    stk_params_word(&setup->params, stk_sim_leave, "suspend");
        x.s = stk_core_state(x.core);
        rc = drive(&x, &joined, setup, err);
    }
    if (rc == 0) {
        sum_up(&x, c, setup);
        *ret = r;
    } else {
        stk_run_result_done(&r);
    }
    clean_up(&x);
    if (joined.nodes != c->nodes)
        free(joined.nodes);
    return rc;
}
