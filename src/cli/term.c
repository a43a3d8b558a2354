/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/term.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"

/* Does the environment say UTF-8? Without setlocale(), which reads files. */
static bool is_utf8(void)
{
    const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *v = getenv(names[i]);

        if (v && *v != '\0')
            return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
    }
    return false;
}

void stk_term_size(struct stk_term *t)
{
    const char *columns = getenv("COLUMNS");
    struct winsize w = {0};

    t->width = t->height = 0;
    if (t->tty && ioctl(fileno(t->f), TIOCGWINSZ, &w) == 0) {
        t->width = w.ws_col;
        t->height = w.ws_row;
    }
    if (t->width == 0 && columns && atoi(columns) > 0) // NOLINT(cert-err34-c): 0 means unknown
        t->width = atoi(columns);                      // NOLINT(cert-err34-c)
    if (t->tty && t->width == 0)
        t->width = 80;
    if (t->width > 1000)
        t->width = 1000;
    if (t->height == 0)
        t->height = 24;
}

void stk_term_init(struct stk_term *t, FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    t->f = f;
    t->tty = isatty(fileno(f)) == 1;
    t->colour = t->tty && !(no && *no != '\0') && !(term && strcmp(term, "dumb") == 0);
    t->utf8 = is_utf8();
    stk_term_size(t);
}

const char *stk_term_on(const struct stk_term *t, enum stk_colour c)
{
    static const char *const codes[] = {"",         "\033[1m",  "\033[2m",  "\033[31m", "\033[32m",
                                        "\033[33m", "\033[34m", "\033[35m", "\033[36m"};

    return t->colour ? codes[c] : "";
}

const char *stk_term_off(const struct stk_term *t, enum stk_colour c)
{
    return t->colour && c != STK_PLAIN ? "\033[0m" : "";
}

const char *stk_term_bar(const struct stk_term *t, double share, int cells, char *buf, size_t size)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double clipped = share < 0 || share != share ? 0 : share > 1 ? 1 : share;
    int eighths = (int)(clipped * cells * 8 + 0.5), full = eighths / 8;
    size_t n = 0;

    buf[0] = '\0';
    for (int i = 0; i < cells && n + 4 < size; i++) {
        const char *cell = t->utf8 ? "░" : ".";

        if (i < full)
            cell = t->utf8 ? "█" : "#";
        else if (i == full && eighths % 8 > 0)
            cell = t->utf8 ? parts[eighths % 8] : eighths % 8 >= 4 ? "-" : ".";
        n += (size_t)snprintf(buf + n, size - n, "%s", cell);
    }
    return buf;
}

static bool is_harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
           (c >= 0xe0000 && c < 0xe0080);
}

const char *stk_text_clean(char *buf, size_t size, const char *text, bool lines)
{
    size_t out = 0;

    while (*text != '\0' && out + 1 < size) {
        uint32_t c = 0;
        size_t n = stk_utf8(text, SIZE_MAX, &c);

        if (n == 0 || is_harmful(c)) {
            bool keep = lines && (c == '\n' || c == '\t') && n == 1;
            bool blank = n == 1 && (c == '\n' || c == '\t' || c == '\r');

            buf[out++] = (char)(keep ? *text : blank ? ' ' : '?');
            text += n > 0 ? n : 1;
            continue;
        }
        if (out + n >= size)
            break;
        memcpy(buf + out, text, n);
        out += n;
        text += n;
    }
    buf[out] = '\0';
    return buf;
}

/* 0, 1 or 2 columns; the ranges that matter in practice. */
static int columns(uint32_t c)
{
    static const uint32_t none[][2] = {{0x300, 0x36f}, {0x200b, 0x200d}, {0xfe00, 0xfe0f}};
    static const uint32_t wide[][2] = {{0x1100, 0x115f},  {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                       {0xf900, 0xfaff},  {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                       {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f680, 0x1faff},
                                       {0x20000, 0x3fffd}};

    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        if (c >= none[i][0] && c <= none[i][1])
            return 0;
    for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
        if (c >= wide[i][0] && c <= wide[i][1])
            return 2;
    return 1;
}

size_t stk_text_fit(const char *s, int width)
{
    size_t at = 0;

    while (s[at] != '\0') {
        uint32_t c = 0;
        size_t n = stk_utf8(s + at, SIZE_MAX, &c);

        width -= n > 0 ? columns(c) : 1;
        if (width < 0)
            break;
        at += n > 0 ? n : 1;
    }
    return at;
}

int stk_text_width(const char *s)
{
    int width = 0;

    while (*s != '\0') {
        uint32_t c = 0;
        size_t n = stk_utf8(s, SIZE_MAX, &c);

        width += n > 0 ? columns(c) : 1;
        s += n > 0 ? n : 1;
    }
    return width;
}
