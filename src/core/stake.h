/* SPDX-License-Identifier: Apache-2.0 */
/* stake.h - what is lost when a running job gives way. */
#ifndef STK_CORE_STAKE_H
#define STK_CORE_STAKE_H

#include "core/state.h"

/* In thousandths of GPU-seconds: its GPUs x (work that would be done again + what leaving and
 * coming back takes). At least a second of its GPUs, so that more of them are more. */
int64_t stk_stake_units(const struct stk_state *s, const struct stk_job *j, stk_time now);

#endif
