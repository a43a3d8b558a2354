/* SPDX-License-Identifier: Apache-2.0 */
/* power.h - nodes that are switched on when a job needs them, and off when none does.
 *
 * Where the placement policy saves energy, nodes whose power is known are off at first. A start on
 * one switches it on: the job runs when the last of its nodes has booted. A node that was empty for
 * a while is switched off, which the core is told. O(log nodes) for each piece that comes or goes.
 */
#ifndef STK_ENGINE_SIM_POWER_H
#define STK_ENGINE_SIM_POWER_H

#include "base/heap.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "model/node.h"

struct stk_sim_power_config {
    bool saves; /* nodes are switched off at all */
    stk_time off_after;
    const struct stk_node_spec *nodes; /* borrowed */
    uint32_t n_nodes;
};

struct stk_sim_power_node {
    uint32_t leases;
    bool off;
    stk_time ready; /* on, and booted by then */
};

struct stk_sim_power_lease { /* by job slot */
    stk_node_id *nodes;
    uint32_t n, cap;
};

struct stk_sim_power {
    struct stk_sim_power_config cfg;
    struct stk_mem mem;
    struct stk_sim_power_node *nodes;
    struct stk_sim_power_lease *leases;
    struct stk_heap empty; /* nodes that are on, by when they are switched off */
    uint32_t *pos;
    uint32_t cap_nodes, cap_leases, cap_pos;
};

int stk_sim_power_init(struct stk_sim_power *p, const struct stk_sim_power_config *cfg,
                       const struct stk_mem *mem);
void stk_sim_power_done(struct stk_sim_power *p);

/* The lease starts: in how long its nodes are ready. -ENOMEM with nothing changed. */
stk_time stk_sim_power_start(struct stk_sim_power *p, stk_time now, const struct stk_start *s);
/* The job is gone. */
void stk_sim_power_stop(struct stk_sim_power *p, stk_time now, uint32_t job);

/* A node that is to be off by now is switched off: which; STK_NONE. */
uint32_t stk_sim_power_off(struct stk_sim_power *p, stk_time now);
stk_time stk_sim_power_next(const struct stk_sim_power *p); /* when that will be so */

#endif
