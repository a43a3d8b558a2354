/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdbool.h>

/* How many bytes a character has that begins with first; 0: none begins so. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static bool is_character(uint32_t code, size_t bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by bytes: no longer forms */

    return code >= least[bytes] && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
}

size_t stk_utf8(const char *s, size_t left, uint32_t *ret_code)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = length_of(u[0]);
    uint32_t c = n == 1 ? u[0] : u[0] & (0x7fU >> n);

    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (u[i] & 0x3fU);
    }
    if (!is_character(c, n))
        return 0;
    *ret_code = c;
    return n;
}
