/* SPDX-License-Identifier: Apache-2.0 */
/* trace_sacct.h - the words of sacct: times, durations, resources. For trace_sacct.c and its tests.
 * All take one field and write their result only when they return 0. */
#ifndef STK_SIM_TRACE_SACCT_H
#define STK_SIM_TRACE_SACCT_H

#include "sim/trace_lines.h"

#define STK_SACCT_MAX_TYPES 8 /* GPU types of one job */

/* Unix time from "2026-11-15T08:30:00", with ".5", "Z", "+01:00" or "+0100" behind it, or from
 * Unix seconds. Without a zone it counts as UTC. 1: "Unknown", "None" or nothing; -EINVAL. */
int stk_sacct_time(struct stk_field f, stk_time *ret);

/* "1-02:03:04", "02:03:04", "03:04.567". 1: "UNLIMITED", "Partition_Limit" or nothing; -EINVAL. */
int stk_sacct_duration(struct stk_field f, stk_time *ret);

struct stk_sacct_tres { /* of the whole job */
    uint64_t gpus;      /* 0: none */
    uint64_t cpus, mem_mib, nodes;
    struct stk_field type[STK_SACCT_MAX_TYPES];
    uint32_t n_types;
};

/* "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1". -EINVAL, -E2BIG: too many types. */
int stk_sacct_tres(struct stk_field f, struct stk_sacct_tres *ret);

/* "gpu:a100:2", "gres:gpu:2(S:0)", joined by commas: older columns, of each node. */
int stk_sacct_gres(struct stk_field f, uint64_t nodes, struct stk_sacct_tres *ret);

#endif
