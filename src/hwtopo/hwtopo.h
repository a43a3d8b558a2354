/* SPDX-License-Identifier: Apache-2.0 */
/* hwtopo.h - how this machine is built: packages, NUMA nodes and CPUs as hwloc finds them, where on
 * PCIe the GPUs are, and how they are connected (gpuview has what the driver says of that).
 *
 * Three things come of it: what "stoker gpus --topology" draws, the CPUs near each GPU, and how
 * well any two GPUs are connected. docs/spec/machine.md says how. */
#ifndef STK_HWTOPO_TOPO_H
#define STK_HWTOPO_TOPO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpuview/gpuview.h"
#include "model/topology.h"

struct stk_hwtopo_gpu {
    int32_t numa;                /* as the kernel counts; -1: not known */
    uint32_t island;             /* the lowest GPU that NVLinks lead to, over others too */
    char cpus[STK_GPUVIEW_CPUS]; /* near it; "": not known, or all are equally near */
};

struct stk_hwtopo {
    struct stk_hwtopo_gpu gpu[STK_GPUVIEW_MAX];
    uint32_t n;
    struct stk_gpu_link *link; /* n x n, as in gpuview, with what hwloc knows filled in */
    json_t *shown;             /* as the API has it, without the node's name */
};

/* Looks at the machine. Where hwloc cannot, only what the driver says is known, and 'ret_why' (may
 * be NULL) has the reason. */
int stk_hwtopo_look(struct stk_hwtopo *t, const struct stk_gpus *gpus, struct stk_err *ret_why);
void stk_hwtopo_done(struct stk_hwtopo *t); /* zeroed structs are fine */

/* layout.c: what the scheduler wants of it. 'weight' has room for n x n, and lives as long as the
 * layout. */
void stk_hwtopo_layout(const struct stk_hwtopo *t, stk_weight *weight, struct stk_layout *ret);

/* ---- hw.c: what hwloc says ---- */

struct stk_hw;
struct stk_hw *stk_hw_open(bool pci, struct stk_err *err); /* pci: look at PCI devices */
void stk_hw_close(struct stk_hw *hw);                      /* NULL is a no-op */

/* Adds "packages", "numa", "n_cpus", "mem_mib". */
void stk_hw_show(const struct stk_hw *hw, json_t *o);
/* Fills in numa and cpus of a GPU, from its PCI address or else from what the driver says. */
void stk_hw_place(const struct stk_hw *hw, const struct stk_gpu *g, struct stk_hwtopo_gpu *ret);
/* The bridges above a PCI device from the root down: addresses. An empty array: not known. */
json_t *stk_hw_bridges(const struct stk_hw *hw, const char *pci);
enum stk_gpu_path stk_hw_path(const struct stk_hw *hw, const char *pci, const char *other);

#endif
