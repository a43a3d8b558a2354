/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - the engine that runs nothing: leases end when their work is done in virtual time.
 *
 * A job's work is known to the engine alone, as time or, where speeds are known, as steps; the core
 * sees estimates. start and stop O(log running). Memory is that of the jobs alive: work is kept by
 * job slot.
 *
 * What a job loses that has to go is said by sim.leave. 'keep': nothing but a restart cost, which
 * is added to what it still has to do. Else it goes as it is told to, as far as that can be done
 * here: asleep ('suspend'), and then it pays for that; warned ('signal'), and then it saves for a
 * while, on its GPUs, and pays the restart; or at once ('kill'), and then it also does again what
 * it had done since its last checkpoint. Checkpoints come every so often while it runs, and are
 * reported. Work in steps is never lost.
 */
#ifndef STK_ENGINE_SIM_SIM_H
#define STK_ENGINE_SIM_SIM_H

#include "base/mem.h"
#include "engine/engine.h"
#include "model/node.h"
#include "model/params.h"
#include "model/speed.h"

struct stk_sim_config {
    const struct stk_params *params;           /* borrowed while the engine lives */
    stk_time round;                            /* > 0: jobs end at multiples of this only */
    const struct stk_param *restart, *suspend; /* of these, what each costs; NULL: nothing */
    /* For jobs that count steps (engine/sim/pace.h); all borrowed; NULL: there are none. */
    const struct stk_speeds *speeds;
    const struct stk_node_spec *nodes;
    uint32_t n_nodes;
    /* Empty nodes are switched off after a while (engine/sim/power.h). */
    bool saves;
    stk_time off_after;
};

extern const struct stk_param stk_sim_params[];      /* ends with name NULL */
extern const struct stk_param *const stk_sim_spread; /* of these, for whoever makes the speeds */
extern const struct stk_param *const stk_sim_mix;    /* and for whoever makes the core */
extern const struct stk_param *const stk_sim_leave;
extern const struct stk_param *const stk_sim_window;
extern const struct stk_param *const stk_sim_told;
extern const struct stk_param *const stk_sim_limit;

int stk_engine_sim_new(const struct stk_sim_config *cfg, const struct stk_mem *mem,
                       struct stk_engine **ret_engine, struct stk_err *err);

/* What the job in this slot has to do, and how it ends by itself. To be said before it starts. */
int stk_engine_sim_work(struct stk_engine *e, stk_job_id job, stk_time left, enum stk_cause ends);

/* It reports a checkpoint each time it has run for 'every' (0: as sim.checkpoint_s says), and does
 * or does not save when it is warned. After stk_engine_sim_work(). */
void stk_engine_sim_saves(struct stk_engine *e, stk_job_id job, stk_time every, bool warned);

/* What it has to do, for one whose work is so many steps; 'row' is its kind in the speeds. */
int stk_engine_sim_steps(struct stk_engine *e, stk_job_id job, uint32_t row, uint64_t steps,
                         enum stk_cause ends);
uint64_t stk_engine_sim_steps_left(const struct stk_engine *e, stk_job_id job, stk_time now);

/* The least share of its speed alone that company on its GPUs has ever left a job; 1: all of it. */
double stk_engine_sim_least_speed(const struct stk_engine *e);

/* Whether starts and ends are dealt with one after the other (sim.each_s), and then, of a job that
 * has ended, when its work was done: its end was known later. */
bool stk_engine_sim_turns(const struct stk_engine *e);
stk_time stk_engine_sim_done(const struct stk_engine *e, stk_job_id job);

/* GPU time paid for restarts so far, in GPU-seconds. */
double stk_engine_sim_restart_cost(const struct stk_engine *e);

#endif
