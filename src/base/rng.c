/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c - xoshiro256** with its state filled by splitmix64.
 *
 * Small, fast, passes the usual statistical batteries, and defined on 64-bit integers alone, so
 * that a workload generated from a seed is the same everywhere.
 *
 * See: Blackman and Vigna, "Scrambled linear pseudorandom number generators", TOMS 2021.
 */
#include "base/rng.h"

static uint64_t rotate(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z;

    *state += UINT64_C(0x9e3779b97f4a7c15);
    z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void stk_rng_init(struct stk_rng *r, uint64_t seed)
{
    /* splitmix64 is a bijection of a moving counter: four zeros in a row cannot come out. */
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

uint64_t stk_rng_next(struct stk_rng *r)
{
    uint64_t *s = r->s;
    uint64_t out = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return out;
}

uint64_t stk_rng_below(struct stk_rng *r, uint64_t n)
{
    uint64_t reject, x;

    if (n == 0)
        return 0;
    reject = (0 - n) % n; /* 2^64 mod n: this many values would favour the small results */
    do
        x = stk_rng_next(r);
    while (x < reject);
    return x % n;
}

double stk_rng_unit(struct stk_rng *r)
{
    return (double)(stk_rng_next(r) >> 11) * 0x1p-53;
}
