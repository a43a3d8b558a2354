/* SPDX-License-Identifier: Apache-2.0 */
/* take.h - a submission that is being taken in, slice by slice; see take.c. */
#ifndef STK_LIVE_TAKE_H
#define STK_LIVE_TAKE_H

struct stk_taking;
void stk_live_taking_free(struct stk_taking *t); /* NULL is a no-op */

#endif
