/* SPDX-License-Identifier: Apache-2.0 */
/* remedy.h - what would start a job, in words: a sentence, and the command that does it. */
#ifndef STK_API_REMEDY_H
#define STK_API_REMEDY_H

#include <stddef.h>

#include "core/remedy.h"
#include "model/id.h"

struct stk_remedy_names { /* of what remedies name by number */
    const char *const *pools, *const *gpu_types, *const *resources;
    uint32_t n_pools, n_gpu_types;
    const char *queue, *tenant; /* of the remedy, where it is one */
};

/* "with 2 GPUs it would start now" */
void stk_remedy_say(const struct stk_remedy *r, const struct stk_remedy_names *n, char *buf,
                    size_t size);
/* "stoker update 3 --gpus 2" */
void stk_remedy_command(const struct stk_remedy *r, const struct stk_remedy_names *n,
                        const char *job, char *buf, size_t size);

#endif
