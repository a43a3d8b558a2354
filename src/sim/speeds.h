/* SPDX-License-Identifier: Apache-2.0 */
/* speeds.h - a file of measured speeds (--throughputs), as Gavel publishes it:
 *
 *     {"v100": {"('ResNet-18 (batch size 16)', 1)": {"null": 32.35, "('A3C', 1)": [28.0, 6.1]}},
 *      "v100_unconsolidated": ...}
 *
 * GPU type, kind of job, then steps per second alone ("null") and, for each other kind on the same
 * GPUs, its own and the other's; [0, 0]: they cannot share. With "_unconsolidated" at the end of
 * the type: over several nodes; without such an entry spread costs nothing.
 */
#ifndef STK_SIM_SPEEDS_H
#define STK_SIM_SPEEDS_H

#include "model/speed.h"
#include "sim/trace.h"

#define STK_THROUGHPUTS "simulation_throughputs.json"
#define STK_MAX_STEPS UINT64_C(1000000000000000)

struct stk_cluster;
struct stk_trace_lines;

struct stk_speed_table { /* columns: GPU types as the file has them */
    struct stk_names rows, types;
    struct stk_speeds s;
    double *alone, *beside;
};

int stk_speed_table_read(const char *path, struct stk_speed_table **ret, struct stk_err *err);
void stk_speed_table_free(struct stk_speed_table *t); /* NULL is a no-op */

/* Reads the table that goes with a file of the trace, and keeps it with the trace: the one named by
 * --throughputs, or the one beside the file. One that came with another file stays. 'what' counts
 * steps. -EINVAL or the errno of the file. */
int stk_speed_table_for(struct stk_trace *t, const struct stk_trace_lines *in, const char *what,
                        struct stk_err *err);

/* The row of a kind of job, or -ENOENT. */
int64_t stk_speed_table_row(const struct stk_speed_table *t, const char *name);

/* The same speeds with the cluster's GPU types as columns, names compared without regard to case;
 * without 'spread' those of jobs over several nodes are as on one. 'ret' has no types when the
 * table does not know all of the cluster's. */
int stk_speed_table_fit(const struct stk_speed_table *t, const struct stk_cluster *c, bool spread,
                        struct stk_speed_table *ret, struct stk_err *err);
void stk_speed_table_done(struct stk_speed_table *t);

#endif
