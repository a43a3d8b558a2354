/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.h - a file of tenants and queues (teams/teams.h), and where the jobs of a trace belong in
 * it: --tenants FILE. */
#ifndef STK_SIM_TENANTS_H
#define STK_SIM_TENANTS_H

#include "sim/cluster.h"
#include "sim/trace.h"
#include "teams/teams.h"

struct stk_tenants { /* zeroed: none */
    struct stk_teams teams;
    uint32_t *of_trace; /* row of each of the trace's tenants */
    uint32_t *of_group; /* likewise of its virtual clusters; 0: of none */
    uint32_t *queue_of; /* likewise of its queues */
    uint32_t users;     /* the trace's; tenants stand in for those that are not said */
};

/* Reads the file into empty tenants. GPU types are those of the cluster. 0, or -Exxx with a
 * sentence. stk_tenants_free() in every case. */
int stk_tenants_read(struct stk_tenants *t, const char *path, const struct stk_cluster *c,
                     struct stk_err *err);
/* The same over the text of a file, for tests. 'name' is used in messages. */
int stk_tenants_parse(struct stk_tenants *t, const char *name, const char *data, size_t len,
                      const struct stk_cluster *c, struct stk_err *err);

/* Finds the trace's tenants by name, or as users of one; jobs of those that are not there belong to
 * the tenant named like their virtual cluster, or to 'default'. Finds its queues. */
int stk_tenants_match(struct stk_tenants *t, const struct stk_trace *trace, struct stk_err *err);

/* Tenant, queue, user, and what the queue gives it: priority and tier, where the trace says none. t
 * may be NULL: the tenant is the trace's own number. */
void stk_tenants_place(const struct stk_tenants *t, const struct stk_trace_job *j,
                       struct stk_job_spec *spec);

/* Without a file, for those who ask for tenants: a row for each of the trace's, side by side, all
 * alike; the first is 'default', which also has those over STK_MAX_TENANTS. */
struct stk_flat_tenants {
    struct stk_tenant_spec *rows; /* names are the trace's */
    uint32_t n;
    uint32_t *of_trace;
};
int stk_flat_tenants_make(struct stk_flat_tenants *t, const struct stk_trace *trace,
                          struct stk_err *err);
void stk_flat_tenants_free(struct stk_flat_tenants *t);

void stk_tenants_free(struct stk_tenants *t);

#endif
