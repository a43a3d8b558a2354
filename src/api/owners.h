/* SPDX-License-Identifier: Apache-2.0 */
/* owners.h - the GPUs as they are now: who has them, and what they measure. */
#ifndef STK_API_OWNERS_H
#define STK_API_OWNERS_H

#include "api/handlers.h"

struct stk_owners {
    struct stk_api *api;
    const struct stk_who *who; /* who looks; NULL: a stranger */
    stk_job_number *owner;     /* node * STK_MAX_NODE_GPUS + GPU; 0: nobody */
    uint32_t *leased;          /* slots of the jobs that have something */
    uint32_t n_leased;
};

struct stk_owner_counts {
    uint64_t total, busy, off, drained; /* off: not drained and not to be used; the rest is free */
};

int stk_owners_look(struct stk_owners *v, struct stk_api *a, const struct stk_who *who);
void stk_owners_done(struct stk_owners *v);

json_t *stk_owners_show(const struct stk_owners *v, uint32_t node, uint32_t gpu);
void stk_owners_count(const struct stk_owners *v, struct stk_owner_counts *ret);
/* How much of a GPU jobs have, 0 to 1. */
double stk_owners_share(const struct stk_owners *v, uint32_t node, uint32_t gpu);
/* What "stoker-gpu list" said of this GPU of node 0; borrowed, may be NULL. */
const json_t *stk_owners_listed(const struct stk_api *a, uint32_t node, uint32_t gpu);
/* What "stoker-gpu watch" said last of this GPU; borrowed, may be NULL. */
const json_t *stk_owners_sample(const struct stk_api *a, uint32_t node, uint32_t gpu);

#endif
