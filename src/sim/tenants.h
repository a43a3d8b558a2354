/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.h - a tree of tenants from a YAML file (docs/spec/tenants.md):
 *
 *     tenants:
 *       - name: research
 *         limit: 64                  # GPUs, over all types
 *         limits: {A100: 16}         # of a type
 *         guarantee: 32              # always to be had; guarantees: of a type
 *         weight: 2                  # share of what is above guarantees
 *         tenants:
 *           - {name: vision, limit: 40}
 *           - {name: speech, limit: 8.5}
 *       - {name: default, limit: 4}  # who is not in the file
 */
#ifndef STK_SIM_TENANTS_H
#define STK_SIM_TENANTS_H

#include "model/tenant.h"
#include "sim/cluster.h"
#include "sim/trace.h"

#define STK_TENANT_DEFAULT "default"

struct stk_tenants { /* zeroed: none */
    struct stk_tenant_spec *rows;
    uint32_t n, cap;
    struct stk_names names; /* of the rows, by number */
    uint32_t *of_trace;     /* row of each of the trace's tenants */
};

/* Reads the file into empty tenants. GPU types are those of the cluster. 0, or -Exxx with a
 * sentence. stk_tenants_free() in every case. */
int stk_tenants_read(struct stk_tenants *t, const char *path, const struct stk_cluster *c,
                     struct stk_err *err);
/* The same over the text of a file, for tests. 'name' is used in messages. */
int stk_tenants_parse(struct stk_tenants *t, const char *name, const char *data, size_t len,
                      const struct stk_cluster *c, struct stk_err *err);

/* Finds the trace's tenants by name; those that are not there are 'default'. */
int stk_tenants_match(struct stk_tenants *t, const struct stk_trace *trace, struct stk_err *err);

/* The row of a job; t may be NULL: the trace's own number. */
uint32_t stk_tenants_of(const struct stk_tenants *t, const struct stk_trace_job *j);

void stk_tenants_free(struct stk_tenants *t);

#endif
