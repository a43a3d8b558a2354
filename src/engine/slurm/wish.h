/* SPDX-License-Identifier: Apache-2.0 */
/* wish.h - what a user asked Slurm for, as a description of ours. */
#ifndef STK_ENGINE_SLURM_WISH_H
#define STK_ENGINE_SLURM_WISH_H

#include <jansson.h>

#include "base/err.h"
#include "engine/slurm/marks.h"

#define STK_SLURM_HELD_UNTIL INT64_C(4102444799) /* a begin time that is a user's hold */
#define STK_SLURM_MAX_ELEMENTS 100000u

struct stk_slurm_room { /* the largest of the partition's nodes */
    int64_t gpus, cpus;
};

/* 'job' is as stoker-libslurm tells it. NULL: it cannot be expressed, and the sentence says why. */
json_t *stk_slurm_wish(const json_t *job, const struct stk_slurm_room *room,
                       const struct stk_slurm_claim *claim, struct stk_err *err);
/* What its user may still change once we have said where it runs: not when it may begin, which is
 * Slurm's own affair then. */
void stk_slurm_wish_later(const json_t *job, bool begins, json_t *o);
/* ... and what it asks for then, as "shape": units and what each has, on as many nodes as we said.
 * < 0: as stk_slurm_wish(). */
int stk_slurm_wish_shape(const json_t *job, const struct stk_slurm_room *room, json_t *o,
                         struct stk_err *err);

#endif
