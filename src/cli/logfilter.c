/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/logfilter.h"

#include <stdbool.h>
#include <string.h>

enum { TEXT, ESCAPE, CSI, STRING, STRING_ESCAPE, TWO };

static bool is_plain(unsigned char c)
{
    return c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t' || c == '\r' || c == '\b';
}

/* In the middle of ESC [ ...: true when the sequence goes on. */
static bool in_csi(struct stk_logfilter *f, unsigned char c)
{
    if (c < 0x20 || c >= 0x40)
        return false;
    if (f->n < sizeof(f->held))
        f->held[f->n] = (char)c;
    f->n += f->n <= sizeof(f->held); /* one more than fits: too long to be kept */
    return true;
}

static size_t end_csi(struct stk_logfilter *f, unsigned char c, char *out)
{
    size_t n = f->n < sizeof(f->held) ? f->n : 0;
    bool colour = c == 'm' && n >= 2;

    for (size_t i = 2; i < n && colour; i++)
        colour = (f->held[i] >= '0' && f->held[i] <= '9') || f->held[i] == ';' || f->held[i] == ':';
    f->state = TEXT;
    if (!colour)
        return 0;
    memcpy(out, f->held, n);
    out[n] = 'm';
    return n + 1;
}

static int after_escape(struct stk_logfilter *f, unsigned char c)
{
    switch (c) {
    case '[':
        f->held[0] = 0x1b;
        f->held[1] = '[';
        f->n = 2;
        return CSI;
    case ']': /* a title, a link */
    case 'P':
    case 'X':
    case '^':
    case '_':
        return STRING;
    case '(':
    case ')':
    case '#':
    case '%':
        return TWO;
    default:
        return TEXT;
    }
}

size_t stk_logfilter(struct stk_logfilter *f, const char *in, size_t n, char *out)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)in[i];

        switch (f->state) {
        case ESCAPE:
            f->state = after_escape(f, c);
            break;
        case CSI:
            if (!in_csi(f, c))
                k += end_csi(f, c, out + k);
            break;
        case STRING:
            f->state = c == 7 ? TEXT : c == 0x1b ? STRING_ESCAPE : c == '\n' ? TEXT : STRING;
            break;
        case STRING_ESCAPE:
            f->state = c == '\\' ? TEXT : STRING;
            break;
        case TWO:
            f->state = TEXT;
            break;
        default:
            if (c == 0x1b)
                f->state = ESCAPE;
            else if (is_plain(c))
                out[k++] = (char)c;
        }
    }
    return k;
}
