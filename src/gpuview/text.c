/* SPDX-License-Identifier: Apache-2.0 */
#include "gpuview/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static bool is_plain(uint32_t c)
{
    return c >= 0x20 && c != '\\' && !(c >= 0x7f && c <= 0x9f) && c != 0xad &&
           !(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
           !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff && !(c >= 0xfff0 && c <= 0xffff) &&
           c < 0xe0000;
}

void stk_gpu_text_clean(char *ret, size_t size, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0;

    while (*s) {
        char piece[16];
        uint32_t c;
        size_t len = stk_utf8((const char *)s, SIZE_MAX, &c), n;

        if (len == 0) {
            len = 1;
            (void)snprintf(piece, sizeof(piece), "\\x%02x", s[0]);
        } else if (is_plain(c)) {
            (void)snprintf(piece, sizeof(piece), "%.*s", (int)len, (const char *)s);
        } else {
            (void)snprintf(piece, sizeof(piece), c < 0x80 ? "\\x%02x" : "\\u{%x}", (unsigned)c);
        }
        n = strlen(piece);
        if (at + n + 1 > size)
            break;
        memcpy(ret + at, piece, n);
        at += n;
        s += len;
    }
    if (size > 0)
        ret[at] = '\0';
}

void stk_gpu_text_age(char *ret, size_t size, double seconds)
{
    static const struct {
        double s;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    uint64_t s = seconds > 0 && seconds < 1e12 ? (uint64_t)seconds : 0;
    unsigned i = 0;

    while (i < 3 && (double)s < units[i].s)
        i++;
    if (i == 3 || s % (uint64_t)units[i].s / (uint64_t)units[i + 1].s == 0)
        (void)snprintf(ret, size, "%llu %s", (unsigned long long)(s / (uint64_t)units[i].s),
                       units[i].name);
    else
        (void)snprintf(ret, size, "%llu %s %llu %s", (unsigned long long)(s / (uint64_t)units[i].s),
                       units[i].name,
                       (unsigned long long)(s % (uint64_t)units[i].s / (uint64_t)units[i + 1].s),
                       units[i + 1].name);
}
