/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - one mixing step, used for digests and hash tables. Not for hostile keys. */
#ifndef STK_BASE_HASH_H
#define STK_BASE_HASH_H

#include <stdint.h>

static inline uint64_t stk_hash_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

#endif
