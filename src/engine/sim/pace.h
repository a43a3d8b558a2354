/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h - how far jobs are whose work is counted in steps.
 *
 * A job goes at the speed its kind has on the GPU type it is on, on one node or over several, less
 * what those cost it that share its GPUs. When one of these comes or goes, what was done so far is
 * counted at the old speed and the rest goes on at the new one.
 *
 * With sim.steps_s only whole steps per that time count, as in Gavel's simulator: what is left of a
 * step at the end of it is lost.
 */
#ifndef STK_ENGINE_SIM_PACE_H
#define STK_ENGINE_SIM_PACE_H

#include "base/mem.h"
#include "engine/engine.h"
#include "model/node.h"
#include "model/params.h"
#include "model/speed.h"

struct stk_pace_config {
    const struct stk_speeds *speeds; /* by GPU type of the nodes; NULL: no job counts steps */
    const struct stk_node_spec *nodes;
    uint32_t n_nodes;
    stk_time steps; /* only whole steps per this long count; 0: parts count too */
};

struct stk_pacer {  /* by job slot */
    uint64_t left;  /* steps, when it was last counted */
    stk_time since; /* when that was; later than now: it goes on only then */
    double speed;   /* steps per second */
    uint32_t row;
    uint32_t type;
    bool counts; /* it has steps at all */
    bool runs, spread, shared;
    struct stk_piece *pieces;
    uint32_t n_pieces, cap_pieces;
};

struct stk_pace {
    struct stk_pace_config cfg;
    struct stk_mem mem;
    struct stk_pacer *jobs;
    uint32_t cap_jobs;
    uint32_t *first; /* of each node: its first GPU in 'on' */
    uint16_t *on;    /* jobs on each GPU */
    uint32_t cap_first, cap_on;
    uint32_t *changed; /* jobs whose end moved with the last start or stop */
    uint32_t n_changed, cap_changed;
    uint32_t *running; /* jobs that share GPUs */
    uint32_t n_running, cap_running;
    double least; /* share of its speed alone that company ever left a job */
};

int stk_pace_init(struct stk_pace *p, const struct stk_pace_config *cfg, const struct stk_mem *mem);
void stk_pace_done(struct stk_pace *p);

/* The job in this slot has so many steps to do. */
int stk_pace_work(struct stk_pace *p, uint32_t job, uint32_t row, uint64_t steps);
bool stk_pace_counts(const struct stk_pace *p, uint32_t job);

/* It starts, and after 'delay' gets on; -ENOMEM with nothing changed. It, and those whose end moves
 * with that, are in 'changed'. */
int stk_pace_start(struct stk_pace *p, stk_time now, const struct stk_start *s, stk_time delay);
void stk_pace_stop(struct stk_pace *p, stk_time now, uint32_t job);

stk_time stk_pace_end(const struct stk_pace *p, uint32_t job); /* STK_NEVER_TIME: it stands still */
uint64_t stk_pace_left(const struct stk_pace *p, uint32_t job, stk_time now); /* steps */

#endif
