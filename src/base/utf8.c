/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

size_t stk_utf8(const char *s, size_t left, uint32_t *ret_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80   ? 1
               : u[0] < 0xc2 ? 0
               : u[0] < 0xe0 ? 2
               : u[0] < 0xf0 ? 3
               : u[0] < 0xf5 ? 4
                             : 0;
    uint32_t c = n == 1 ? u[0] : n > 1 ? u[0] & (0x7fU >> n) : 0;

    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (u[i] & 0x3fU);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *ret_code = c;
    return n;
}
