/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - the GPUs as they are now: who has them, and what they measure. */
#ifndef STK_API_GPUS_H
#define STK_API_GPUS_H

#include "api/handlers.h"

struct stk_gpu_view {
    struct stk_api *api;
    const struct stk_who *who; /* who looks; NULL: a stranger */
    stk_job_number *owner;     /* node * STK_MAX_NODE_GPUS + GPU; 0: nobody */
};

struct stk_gpu_counts {
    uint64_t total, busy, off, drained; /* off: not drained and not to be used; the rest is free */
};

int stk_gpus_look(struct stk_gpu_view *v, struct stk_api *a, const struct stk_who *who);
void stk_gpus_done(struct stk_gpu_view *v);

json_t *stk_gpus_show(const struct stk_gpu_view *v, uint32_t node, uint32_t gpu);
void stk_gpus_count(const struct stk_gpu_view *v, struct stk_gpu_counts *ret);
/* What "stoker-gpu watch" said last of this GPU; borrowed, may be NULL. */
const json_t *stk_gpus_sample(const struct stk_api *a, uint32_t gpu);

#endif
