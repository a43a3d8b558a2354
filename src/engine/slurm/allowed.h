/* SPDX-License-Identifier: Apache-2.0 */
/* allowed.h - on which nodes a user's own job may run: --nodelist, --exclude, --constraint. */
#ifndef STK_ENGINE_SLURM_ALLOWED_H
#define STK_ENGINE_SLURM_ALLOWED_H

#include "engine/slurm/inner.h"

/* Whether a node with these features ("a,b") meets the constraint: names with '&' or ',' between
 * them (all), or with '|' (one). 1: it does, 0: not; -EINVAL: it is more than that. */
int stk_slurm_meets(const char *constraint, const char *features);

/* Nodes of the partition that the job rules out are kept from it by types of GPU, in the
 * description. -EOPNOTSUPP: they cannot be, and the sentence says why. */
int stk_slurm_allow(const struct stk_slurm *m, const json_t *job, uint32_t partition, json_t *wish,
                    struct stk_err *err);

#endif
