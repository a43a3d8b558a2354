/* SPDX-License-Identifier: Apache-2.0 */
/* growth.h - a number that doubles in every half-life, in whole numbers: equal on every machine.
 *
 * What fades with a half-life need not be multiplied again and again: let what is new count for
 * more instead, by this number. Sums then only grow, and compare as faded ones would.
 */
#ifndef STK_BASE_GROWTH_H
#define STK_BASE_GROWTH_H

#include <stdint.h>

#define STK_GROWTH_ONE (UINT64_C(1) << 40)
#define STK_GROWTH_MOST 22 /* half-lives; later, the number stands still */

/* STK_GROWTH_ONE * 2^(t / half_life), rounded down; never falls with t. half_life > 0. */
uint64_t stk_growth(uint64_t t, uint64_t half_life);

#endif
