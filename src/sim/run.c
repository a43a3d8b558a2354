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

#include "engine/sim/sim.h"
#include "hetero/hetero.h"
#include "policy/registry.h"
#include "sim/running.h"
#include "sys/big.h"

static int map_names(struct stk_running *x, const struct stk_cluster *c, struct stk_err *err)
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

static int make_core(const struct stk_running *x, const struct stk_cluster *c,
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

static int make_rows(struct stk_running *x, struct stk_err *err)
{
    const struct stk_trace *t = x->t;
    bool linked = t->n_deps > 0;

    x->r->jobs = malloc((t->n_jobs + 1u) * sizeof(*x->r->jobs));
    x->measure_some = x->o->first_id > 0 || x->o->last_id < UINT32_MAX;
    for (uint32_t i = 0; x->r->jobs && i < t->n_jobs; i++) {
        if (x->to_measure == 0 && x->measure_some && stk_running_measured(x, i))
            x->first_measured = i;
        x->to_measure += x->measure_some && stk_running_measured(x, i);
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
    return stk_engine_sim_steps_left(((const struct stk_running *)ctx)->engine, job, now);
}

static int make_adviser(struct stk_running *x, const struct stk_setup *setup, struct stk_err *err)
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
        if (!stk_running_steps(x, &x->t->jobs[i]))
            return stk_err_set(err, -EINVAL,
                               "order %s needs a trace that counts steps, and the speeds of "
                               "its jobs on every GPU type of the cluster",
                               setup->order->name);
    x->advised = -1;
    return stk_adviser_new(&ac, &x->adviser, err);
}

static int drive(struct stk_running *x, const struct stk_cluster *c, const struct stk_setup *setup,
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
        const struct stk_loop_config lc = {x->core, x->engine,          &stk_running_source,
                                           x,       &stk_running_watch, x};

        rc = stk_loop_new(&lc, &stk_big_mem, &loop, err);
    }
    rc = rc < 0 ? rc : stk_loop_run_virtual(loop, err);
    if (rc == 0) {
        x->r->decisions = stk_loop_decisions(loop);
        x->r->restarts_cost_gpu_s = stk_engine_sim_restart_cost(x->engine);
        x->r->turns = stk_engine_sim_turns(x->engine);
        x->r->shares = setup->place->mate != NULL;
        x->r->least_speed = stk_engine_sim_least_speed(x->engine);
    }
    stk_loop_free(loop);
    stk_adviser_free(x->adviser);
    if (x->engine)
        x->engine->ops->close(x->engine);
    return rc;
}

static void fill_totals(struct stk_running *x, const struct stk_cluster *c)
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
    r->energy_kwh = (double)x->watt_us / STK_KWH_US;
    r->node_hours_on = (double)x->on_us / 3.6e9;
}

static void clean_up(struct stk_running *x)
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
static void choose_tenants(struct stk_running *x, const struct stk_setup *setup)
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
static int watch_fairness(struct stk_running *x, const struct stk_setup *setup, struct stk_err *err)
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
static void sum_up(struct stk_running *x, const struct stk_cluster *c,
                   const struct stk_setup *setup)
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
static int foretell(struct stk_running *x, const struct stk_setup *setup, uint32_t n_pools,
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
    struct stk_running x = {.t = t, .o = o, .r = &r};
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
