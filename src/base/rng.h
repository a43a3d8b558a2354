/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h - seeded pseudo-random numbers: the same seed gives the same numbers on every machine and
 * compiler. Not for secrets. There is no global generator: whoever wants randomness holds one. */
#ifndef STK_BASE_RNG_H
#define STK_BASE_RNG_H

#include <stdint.h>

struct stk_rng {
    uint64_t s[4]; /* not all zero */
};

/* Any seed is fine; close seeds give unrelated sequences. */
void stk_rng_init(struct stk_rng *r, uint64_t seed);

uint64_t stk_rng_next(struct stk_rng *r); /* 64 random bits */
uint64_t stk_rng_below(struct stk_rng *r,
                       uint64_t n);     /* uniform in [0, n), exactly; 0 for n == 0 */
double stk_rng_unit(struct stk_rng *r); /* uniform in [0, 1), 53 bits */

#endif
