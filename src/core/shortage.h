/* SPDX-License-Identifier: Apache-2.0 */
/* shortage.h - which resource keeps a job from ever being placed, as a sentence. */
#ifndef STK_CORE_SHORTAGE_H
#define STK_CORE_SHORTAGE_H

#include "core/state.h"

/* The job does not fit on the empty pool, cut into tasks of 'gpus' GPUs each, of which all nodes
 * hold 'can'. -ERANGE, with what is short: "4 tasks need 4 CPUs; this machine has 2". */
int stk_shortage_say(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                     uint32_t gpus, uint64_t can, struct stk_err *err);

/* Whether a demand could be placed on the empty pool. */
typedef bool stk_shortage_test(const struct stk_state *s, const struct stk_demand *d,
                               uint32_t pool);
/* The same of a job that cannot be placed. -ERANGE: it could if it asked for GPUs alone, with what
 * is short beside: "needs 3 CPUs on one node; the most that one it may use has is 2". 0: it is
 * GPUs. */
int stk_shortage_besides(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                         stk_shortage_test *could, struct stk_err *err);

#define STK_WHERE_LEN 96
/* "this machine", "pool a100", "the cluster": what the job may use, as a noun. */
const char *stk_shortage_where(const struct stk_state *s, uint32_t pool, char buf[STK_WHERE_LEN]);

#endif
