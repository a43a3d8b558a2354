/* SPDX-License-Identifier: Apache-2.0 */
/* growth.c - bit by bit of the fraction: for the k-th after the point times 2^(1/2^k). */
#include "base/growth.h"

__extension__ typedef unsigned __int128 u128;

#define BITS 40

/* 2^(1/2^k) from k = 1 on, in 2^-63ths. */
static const uint64_t root[BITS] = {
    0xb504f333f9de6484, 0x9837f0518db8a96f, 0x8b95c1e3ea8bd6e6, 0x85aac367cc487b14,
    0x82cd8698ac2ba1d7, 0x8164d1f3bc030773, 0x80b1ed4fd999ab6c, 0x8058d7d2d5e5f6b0,
    0x802c6436d0e04f50, 0x8016302f17467628, 0x800b179c82028fd0, 0x80058baf7fee3b5d,
    0x8002c5d00fdcfcb6, 0x800162e61bed4a48, 0x8000b17292f702a3, 0x800058b92abbae02,
    0x80002c5c8dade4d7, 0x8000162e44eaf636, 0x80000b1721fa7c18, 0x8000058b90de7e4c,
    0x800002c5c8678f36, 0x80000162e431db9f, 0x800000b1721872d0, 0x80000058b90c1aa8,
    0x8000002c5c8605a4, 0x800000162e4300e6, 0x8000000b17217ff8, 0x800000058b90bfdd,
    0x80000002c5c85fe6, 0x8000000162e42ff1, 0x80000000b17217f8, 0x8000000058b90bfc,
    0x800000002c5c85fd, 0x80000000162e42fe, 0x800000000b17217f, 0x80000000058b90bf,
    0x8000000002c5c85f, 0x800000000162e42f, 0x8000000000b17217, 0x800000000058b90b,
};

uint64_t stk_growth(uint64_t t, uint64_t half_life)
{
    uint64_t whole = t / half_life, left = t % half_life, g = UINT64_C(1) << 63;

    if (whole >= STK_GROWTH_MOST)
        return STK_GROWTH_ONE << STK_GROWTH_MOST;
    for (int k = 0; k < BITS; k++) {
        if (left < half_life - left) {
            left *= 2;
            continue;
        }
        left -= half_life - left; /* twice what is left, less one half-life */
        g = (uint64_t)((u128)g * root[k] >> 63);
    }
    return g >> (23 - whole); /* 2^63 is STK_GROWTH_ONE */
}
