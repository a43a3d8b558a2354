/* SPDX-License-Identifier: Apache-2.0 */
/* running.h - one run of the simulator while it goes on: run.c sets it up and sums it up,
 * run_feed.c brings its jobs, run_watch.c sees what becomes of them. */
#ifndef STK_SIM_RUNNING_H
#define STK_SIM_RUNNING_H

#include "core/cycles.h"
#include "core/state.h"
#include "drive/loop.h"
#include "sim/booked_run.h"
#include "sim/estimate.h"
#include "sim/mix.h"
#include "sim/ruled.h"
#include "sim/run.h"
#include "sim/speeds.h"

#define STK_KWH_US 3.6e12 /* watts x microseconds */

__extension__ typedef unsigned __int128
    stk_u128; /* GPU-microseconds pass 2^63 in three years of 100,000 GPUs */

struct stk_running_job { /* by job slot: what the core does not keep of a job */
    stk_time first_start;
    uint32_t nodes;
    uint32_t gpu_w;  /* what its GPUs draw while it has them */
    double gpu_us_w; /* so far, in microseconds x watts */
    uint32_t mate;   /* who has the same GPUs; slot + 1 */
    stk_time joined; /* since when */
};

struct stk_running {
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
    struct stk_running_job *live;
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
    stk_u128 busy_gpu_us;
    stk_time end;     /* of what counts: switching off what nobody needs any more does not */
    stk_u128 watt_us; /* drawn up to 'end' */
    stk_u128 on_us;   /* time of nodes that were on */
    uint64_t watts;   /* since 'end' */
    uint32_t on;
    uint64_t evicted_since_end;
    stk_time sample_gap;
    int rc; /* of the shadow core, or of memory: watchers of events cannot fail */
};

static inline const struct stk_run_guest *stk_running_guest(const struct stk_running *x)
{
    static const struct stk_run_guest nobody;

    return x->o->guest ? x->o->guest : &nobody;
}

/* Whether the job's work is counted in steps here. */
static inline bool stk_running_steps(const struct stk_running *x, const struct stk_trace_job *j)
{
    return x->speeds.s.types > 0 && j->steps > 0;
}

static inline bool stk_running_measured(const struct stk_running *x, uint32_t tag)
{
    uint64_t id = x->t->jobs[tag].id;

    return id >= x->o->first_id && id <= x->o->last_id;
}

extern const struct stk_source_ops stk_running_source; /* the trace; ctx: struct stk_running */
extern const struct stk_watch_ops stk_running_watch;   /* rows, totals, samples; likewise */

#endif
