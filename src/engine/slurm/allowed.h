/* SPDX-License-Identifier: Apache-2.0 */
/* allowed.h - on which nodes a user's own job may run: --nodelist, --exclude, --constraint. */
#ifndef STK_ENGINE_SLURM_ALLOWED_H
#define STK_ENGINE_SLURM_ALLOWED_H

#include "engine/slurm/inner.h"

/* Puts them into the description. -EOPNOTSUPP: that cannot be taken, and the sentence says why. */
int stk_slurm_allow(const struct stk_slurm *m, const json_t *job, json_t *wish,
                    struct stk_err *err);

#endif
