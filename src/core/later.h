/* SPDX-License-Identifier: Apache-2.0 */
/* later.h - what nodes will have free when leases have ended, in a scratch copy: nothing of the
 * state is changed on the way. A new copy begins with s->stamp++. */
#ifndef STK_CORE_LATER_H
#define STK_CORE_LATER_H

#include "core/state.h"

/* The node has a row in the copy: its free GPUs, and how many share each of the others. */
void stk_later_touch(struct stk_state *s, uint32_t node);

/* GPUs that a piece of this demand gives back in the copy: of shared ones those it is the last on.
 */
uint32_t stk_later_back(struct stk_state *s, const struct stk_demand *d, const struct stk_piece *p);

/* GPUs of the node that are free in the copy. */
uint32_t stk_later_free(const struct stk_state *s, uint32_t node);

#endif
