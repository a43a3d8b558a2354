/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - numbers are made from integers by hand: printf() would follow the locale's decimal
 * point, and a million CSV rows should not take seconds. */
#include "sim/emit.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

static void flush(struct stk_emit *e)
{
    if (e->n && !e->rc && fwrite(e->buf, 1, e->n, e->f) != e->n)
        e->rc = errno ? -errno : -EIO;
    e->n = 0;
}

void stk_emit_init(struct stk_emit *e, FILE *f)
{
    e->f = f;
    e->rc = 0;
    e->n = 0;
}

int stk_emit_end(struct stk_emit *e)
{
    flush(e);
    if (fflush(e->f) && !e->rc)
        e->rc = errno ? -errno : -EIO;
    return e->rc;
}

void stk_emit_bytes(struct stk_emit *e, const char *s, size_t len)
{
    while (len) {
        size_t room = sizeof(e->buf) - e->n;
        size_t part = len < room ? len : room;

        memcpy(e->buf + e->n, s, part);
        e->n += part;
        s += part;
        len -= part;
        if (e->n == sizeof(e->buf))
            flush(e);
    }
}

void stk_emit_text(struct stk_emit *e, const char *s)
{
    stk_emit_bytes(e, s, strlen(s));
}

void stk_emit_u64(struct stk_emit *e, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    stk_emit_bytes(e, digits + at, sizeof(digits) - at);
}

/* '.' and the 'width' digits of 'frac' without trailing zeros; nothing for 0. */
static void emit_fraction(struct stk_emit *e, uint64_t frac, unsigned width)
{
    char text[8] = ".";

    if (!frac)
        return;
    while (frac % 10 == 0) {
        frac /= 10;
        width--;
    }
    for (unsigned i = width; i > 0; i--, frac /= 10)
        text[i] = (char)('0' + frac % 10);
    stk_emit_bytes(e, text, 1 + width);
}

void stk_emit_us(struct stk_emit *e, stk_time us)
{
    uint64_t abs = us < 0 ? -(uint64_t)us : (uint64_t)us;

    if (us < 0)
        stk_emit_bytes(e, "-", 1);
    stk_emit_u64(e, abs / (uint64_t)STK_SECOND);
    emit_fraction(e, abs % (uint64_t)STK_SECOND, 6);
}

void stk_emit_real(struct stk_emit *e, double v, unsigned digits)
{
    double scaled = fabs(v);
    uint64_t unit = 1;
    uint64_t all;

    if (!isfinite(v)) {
        stk_emit_text(e, "null");
        return;
    }
    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    if (scaled >= 9e18 / (double)unit) { /* larger than any figure here: no decimals left */
        char text[330];

        (void)snprintf(text, sizeof(text), "%.0f", v);
        stk_emit_text(e, text);
        return;
    }
    all = (uint64_t)(scaled * (double)unit + 0.5);
    if (v < 0 && all)
        stk_emit_bytes(e, "-", 1);
    stk_emit_u64(e, all / unit);
    emit_fraction(e, all % unit, digits);
}

/* Length of the UTF-8 character that starts at 's', 0 when there is none. Reads no byte after a
 * NUL. */
static size_t utf8_len(const unsigned char *s)
{
    unsigned char low = 0x80, high = 0xBF; /* of the second byte: no overlong, no surrogate */
    size_t len;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        len = 2;
    else if ((s[0] & 0xF0) == 0xE0)
        len = 3;
    else if (s[0] >= 0xF0 && s[0] <= 0xF4)
        len = 4;
    else
        return 0;
    if (s[0] == 0xE0)
        low = 0xA0;
    else if (s[0] == 0xF0)
        low = 0x90;
    else if (s[0] == 0xED)
        high = 0x9F;
    else if (s[0] == 0xF4)
        high = 0x8F;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

static void emit_u_escape(struct stk_emit *e, unsigned code)
{
    static const char hex[] = "0123456789abcdef";
    char text[6] = {'\\', 'u'};

    for (unsigned i = 0; i < 4; i++)
        text[2 + i] = hex[code >> (12 - 4 * i) & 15];
    stk_emit_bytes(e, text, sizeof(text));
}

void stk_emit_json(struct stk_emit *e, const char *str)
{
    const unsigned char *s = (const unsigned char *)str;

    stk_emit_bytes(e, "\"", 1);
    while (*s) {
        size_t len = utf8_len(s);

        if (!len)
            stk_emit_text(e, REPLACEMENT);
        else if (*s < 0x20 || *s == 0x7F || strchr("\"\\<>&", *s))
            emit_u_escape(e, *s);
        else if (len == 3 && s[0] == 0xE2 && s[1] == 0x80 && (s[2] & 0xFE) == 0xA8)
            emit_u_escape(e, 0x2000u | (s[2] & 0x3Fu)); /* line ends in JavaScript */
        else
            stk_emit_bytes(e, (const char *)s, len);
        s += len ? len : 1;
    }
    stk_emit_bytes(e, "\"", 1);
}

void stk_emit_member(struct stk_emit *e, const char *name)
{
    stk_emit_text(e, ",\"");
    stk_emit_text(e, name);
    stk_emit_text(e, "\":");
}

static const char *html_entity(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return c < 0x20 || c == 0x7F ? " " : NULL;
    }
}

void stk_emit_html(struct stk_emit *e, const char *str)
{
    const unsigned char *s = (const unsigned char *)str;

    while (*s) {
        size_t len = utf8_len(s);
        const char *entity = len ? html_entity(*s) : REPLACEMENT;

        if (entity)
            stk_emit_text(e, entity);
        else
            stk_emit_bytes(e, (const char *)s, len);
        s += len ? len : 1;
    }
}

void stk_emit_csv(struct stk_emit *e, const char *s)
{
    size_t len = strlen(s);
    bool quote = strpbrk(s, ",\"\r\n") || (len && (s[0] == ' ' || s[len - 1] == ' '));

    if (!quote) {
        stk_emit_bytes(e, s, len);
        return;
    }
    stk_emit_bytes(e, "\"", 1);
    for (; *s; s++)
        stk_emit_bytes(e, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    stk_emit_bytes(e, "\"", 1);
}
