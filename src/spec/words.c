/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - numbers, durations, sizes and plain text; see words.h. */
#include "spec/words.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits at *s, moves past them; -1 when there are none or it is above 'max'. */
static int64_t take_number(const char **s, int64_t max)
{
    int64_t n = 0;

    if (!digit(**s))
        return -1;
    for (; digit(**s); (*s)++) {
        n = n * 10 + (**s - '0');
        if (n > max)
            return -1;
    }
    return n;
}

int stk_words_whole(const char *s, int64_t max, int64_t *ret)
{
    int64_t n = take_number(&s, max > INT64_C(1) << 58 ? INT64_C(1) << 58 : max);

    if (n < 0 || *s != '\0')
        return -EINVAL;
    *ret = n;
    return 0;
}

int stk_words_signed(const char *s, int64_t min, int64_t max, int64_t *ret)
{
    bool minus = *s == '-';
    int64_t n;

    if (stk_words_whole(s + (minus || *s == '+'), INT64_C(1) << 58, &n) < 0)
        return -EINVAL;
    n = minus ? -n : n;
    if (n < min || n > max)
        return -EINVAL;
    *ret = n;
    return 0;
}

/* "1h30m": numbers with units, each unit once and in falling order. */
static int unit_duration(const char *s, int64_t *ret_s)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'w', 604800}, {'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
    int64_t total = 0;
    size_t next = 0;

    while (*s != '\0') {
        int64_t n = take_number(&s, STK_MAX_SECONDS);
        size_t u = next;

        while (u < sizeof(units) / sizeof(*units) && units[u].unit != *s)
            u++;
        if (n < 0 || u == sizeof(units) / sizeof(*units))
            return -EINVAL;
        total += n * units[u].seconds;
        if (total > STK_MAX_SECONDS)
            return -EINVAL;
        next = u + 1;
        s++;
    }
    *ret_s = total;
    return 0;
}

/* "1-12:30:15", "1:30:00", "30:00": days, then up to three parts joined by colons. */
static int clock_duration(const char *s, int64_t *ret_s)
{
    bool days = strchr(s, '-') != NULL;
    int64_t day = 0, part[3] = {0}, total;
    int n = 0;

    if (days) {
        day = take_number(&s, STK_MAX_SECONDS);
        if (day < 0 || *s++ != '-')
            return -EINVAL;
    }
    do {
        if (n == 3 || (part[n] = take_number(&s, STK_MAX_SECONDS)) < 0)
            return -EINVAL;
        n++;
    } while (*s == ':' && s++);
    if (*s != '\0')
        return -EINVAL;
    if (days || n == 3) /* hours first */
        total = day * 86400 + part[0] * 3600 + part[1] * 60 + part[2];
    else /* minutes and seconds */
        total = part[0] * 60 + part[1];
    if (total > STK_MAX_SECONDS)
        return -EINVAL;
    *ret_s = total;
    return 0;
}

int stk_words_duration(const char *s, uint32_t unit_s, int64_t *ret_s)
{
    size_t len = strlen(s);
    int64_t n;

    if (strcasecmp(s, "unlimited") == 0 || strcasecmp(s, "infinite") == 0 ||
        strcmp(s, "none") == 0 || strcmp(s, "off") == 0) {
        *ret_s = 0;
        return 0;
    }
    if (len == 0 || len > 64)
        return -EINVAL;
    if (strpbrk(s, ":-"))
        return clock_duration(s, ret_s);
    if (!digit(s[len - 1]))
        return unit_duration(s, ret_s);
    if (stk_words_whole(s, STK_MAX_SECONDS / (unit_s ? unit_s : 1), &n) < 0)
        return -EINVAL;
    *ret_s = n * unit_s;
    return 0;
}

int stk_words_size(const char *s, char unit, int64_t *ret_mib)
{
    static const char units[] = "KMGT";
    int64_t whole = take_number(&s, INT64_C(1) << 40), part = 0, scale = 1, kib;
    const char *u;

    if (whole < 0)
        return -EINVAL;
    if (*s == '.') {
        s++;
        for (; digit(*s) && scale < 1000000; s++, scale *= 10)
            part = part * 10 + (*s - '0');
        if (scale == 1)
            return -EINVAL;
    }
    if (*s != '\0')
        unit = (char)(*s >= 'a' ? *s - 'a' + 'A' : *s);
    u = unit ? strchr(units, unit) : NULL;
    if (!u ||
        (*s != '\0' && s[1] != '\0' && strcasecmp(s + 1, "b") != 0 && strcasecmp(s + 1, "ib") != 0))
        return -EINVAL;
    kib = INT64_C(1) << (10 * (u - units));
    if (whole > (INT64_C(1) << 50) / kib)
        return -EINVAL;
    kib = whole * kib + (part * kib + scale - 1) / scale;
    *ret_mib = (kib + 1023) / 1024;
    return 0;
}

int stk_words_bool(const char *s, bool *ret)
{
    if (stk_words_among(s, "true|yes|on|1|True|TRUE|Yes|YES"))
        *ret = true;
    else if (stk_words_among(s, "false|no|off|0|False|FALSE|No|NO"))
        *ret = false;
    else
        return -EINVAL;
    return 0;
}

bool stk_words_among(const char *s, const char *words)
{
    size_t len = strlen(s);

    for (const char *w = words; *w != '\0';) {
        size_t n = strcspn(w, "|");

        if (n == len && memcmp(w, s, n) == 0)
            return true;
        w += n + (w[n] == '|');
    }
    return false;
}

/* Length of the character at s, or 0 when it is none for a text: what breaks or turns around a line
 * is not. */
static size_t character(const char *s, size_t left)
{
    uint32_t code;
    size_t n = stk_utf8(s, left, &code);

    if (n == 0 || (code >= 0x80 && code < 0xa0) || (code >= 0x2028 && code < 0x202f) ||
        (code >= 0x2066 && code < 0x206a))
        return 0;
    return n;
}

bool stk_words_is_text(const char *s, size_t len, bool lines)
{
    const char *p = s, *end = s + len;

    while (p < end) {
        size_t n = character(p, (size_t)(end - p));
        bool blank = *p == '\n' || *p == '\r' || *p == '\t';

        if (n == 0 || (((unsigned char)*p < 0x20 || *p == 0x7f) && !(lines && blank)))
            return false;
        p += n;
    }
    return true;
}

char stk_words_bad_pattern(const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s != '%')
            continue;
        s++;
        s += strspn(s, "0123456789");
        if (*s == '\0')
            return '%';
        if (!strchr("jAaxtNu%", *s))
            return *s;
    }
    return 0;
}

struct stk_word stk_words_show(const char *s)
{
    struct stk_word w = {""};
    const unsigned char *p = (const unsigned char *)s;
    size_t out = 0, left = strlen(s);

    while (left > 0) {
        size_t n = character((const char *)p, left);

        if (out + (n ? n : 1) > sizeof(w.text) - 4) {
            memcpy(w.text + out, "...", 3);
            break;
        }
        if (n == 0 || *p < 0x20 || *p == 0x7f)
            w.text[out++] = '?';
        else
            memcpy(w.text + out, p, n), out += n;
        p += n ? n : 1;
        left -= n ? n : 1;
    }
    return w;
}
