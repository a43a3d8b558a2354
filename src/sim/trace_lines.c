/* SPDX-License-Identifier: Apache-2.0 */
/* trace_lines.c - lines and fields; see trace_lines.h. Numbers and names are in trace_fields.c. */
#include "sim/trace_lines.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_PATH 100 /* of a long path, this much of its tail is shown */

void stk_lines_init(struct stk_trace_lines *in, const char *name, const char *data, size_t len)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t name_len = strlen(name);

    memset(in, 0, sizeof(*in));
    in->name = name_len > SHOWN_PATH ? name + (name_len - SHOWN_PATH) : name;
    in->next = data;
    in->end = data + len;
    in->comment = '#';
    if (len >= sizeof(mark) - 1 && memcmp(data, mark, sizeof(mark) - 1) == 0)
        in->next += sizeof(mark) - 1;
}

static bool is_blank(struct stk_field f)
{
    for (uint32_t i = 0; i < f.len; i++)
        if (f.s[i] != ' ' && f.s[i] != '\t')
            return false;
    return true;
}

/* Over-long lines are cut to one byte more than is allowed, which stk_lines_each() refuses. */
static void take_line(struct stk_trace_lines *in)
{
    size_t left = (size_t)(in->end - in->next);
    const char *nl = memchr(in->next, '\n', left);
    size_t len = nl ? (size_t)(nl - in->next) : left;

    in->text.s = in->next;
    in->next = nl ? nl + 1 : in->end;
    in->number++;
    if (len > 0 && in->text.s[len - 1] == '\r')
        len--;
    in->text.len = len > STK_TRACE_MAX_LINE ? STK_TRACE_MAX_LINE + 1 : (uint32_t)len;
}

bool stk_lines_next(struct stk_trace_lines *in)
{
    while (in->next < in->end) {
        take_line(in);
        if (in->text.len == 0 || (in->comment && in->text.s[0] == in->comment))
            continue;
        if (in->text.s[0] > ' ' || !is_blank(in->text))
            return true;
    }
    return false;
}

int stk_lines_bad(struct stk_trace_lines *in, const char *fmt, ...)
{
    size_t cap = sizeof(in->bad.text);
    int at = snprintf(in->bad.text, cap, "%s:%" PRIu32 ": ", in->name, in->number);
    va_list ap;

    if (at < 0 || (size_t)at >= cap)
        return -EINVAL;
    va_start(ap, fmt);
    (void)vsnprintf(in->bad.text + at, cap - (size_t)at, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

int stk_lines_bad_count(struct stk_trace_lines *in, const char *columns, uint32_t want,
                        uint32_t got)
{
    return stk_lines_bad(in, "expected %" PRIu32 " fields (%s), got %" PRIu32, want, columns, got);
}

int stk_lines_header(struct stk_trace_lines *in, const char *expected, struct stk_err *err)
{
    size_t first = strcspn(expected, ",");
    struct stk_trace_lines before = *in;

    if (!stk_lines_next(in))
        return 0;
    if (in->text.len < first || memcmp(in->text.s, expected, first) != 0 ||
        (in->text.len > first && in->text.s[first] != ',')) {
        *in = before;
        return 0;
    }
    if (stk_field_is(in->text, expected))
        return 0;
    (void)stk_lines_bad(in, "expected the header \"%s\", got \"%s\"", expected,
                        stk_field_show(in->text).text);
    return stk_err_set(err, -EINVAL, "%s", in->bad.text);
}

static int give_up(const struct stk_trace_lines *in, int rc, struct stk_err *err)
{
    switch (rc) {
    case -EINVAL:
        return stk_err_set(err, rc, "%s", in->bad.text);
    case -E2BIG:
        return stk_err_set(err, rc, "%s:%" PRIu32 ": too many jobs or names (at most %u and %u)",
                           in->name, in->number, STK_TRACE_MAX_JOBS, STK_TRACE_MAX_NAMES);
    default:
        return stk_err_set(err, rc, "%s:%" PRIu32 ": %s", in->name, in->number, strerror(-rc));
    }
}

int stk_lines_each(struct stk_trace_lines *in, int (*one)(struct stk_trace_lines *in, void *ctx),
                   void *ctx, struct stk_err *err)
{
    while (stk_lines_next(in)) {
        int rc = in->text.len > STK_TRACE_MAX_LINE
                     ? stk_lines_bad(in, "the line is longer than %u bytes", STK_TRACE_MAX_LINE)
                     : one(in, ctx);

        if (rc == 0)
            continue;
        if (rc != -EINVAL || !in->lenient)
            return give_up(in, rc, err);
        if (in->n_skipped++ == 0)
            in->first_skip = in->bad;
    }
    return 0;
}

uint32_t stk_lines_split(const struct stk_trace_lines *in, char sep, struct stk_field *f,
                         uint32_t max)
{
    const char *p = in->text.s, *end = p + in->text.len, *start = p;
    uint32_t n = 0;

    for (;; p++) {
        if (p < end && *p != sep)
            continue;
        if (n < max) {
            f[n].s = start;
            f[n].len = (uint32_t)(p - start);
        }
        n++;
        if (p == end)
            return n;
        start = p + 1;
    }
}

uint32_t stk_lines_words(const struct stk_trace_lines *in, struct stk_field *f, uint32_t max)
{
    const char *p = in->text.s, *end = p + in->text.len, *start;
    uint32_t n = 0;

    for (;;) {
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        if (p == end)
            return n;
        start = p;
        while (p < end && *p != ' ' && *p != '\t')
            p++;
        if (n < max) {
            f[n].s = start;
            f[n].len = (uint32_t)(p - start);
        }
        n++;
    }
}

struct stk_shown stk_field_show(struct stk_field f)
{
    static const char dots[] = "...";
    struct stk_shown out;
    size_t cap = sizeof(out.text) - sizeof(dots);
    size_t n = f.len < cap ? f.len : cap;

    for (size_t i = 0; i < n; i++) {
        out.text[i] = '?';
        if (f.s[i] >= ' ' && f.s[i] < 0x7f)
            out.text[i] = f.s[i];
    }
    memcpy(out.text + n, f.len > n ? dots : "", f.len > n ? sizeof(dots) : 1);
    return out;
}

bool stk_field_is(struct stk_field f, const char *s)
{
    return strlen(s) == f.len && memcmp(f.s, s, f.len) == 0;
}

bool stk_text_begins(const char *data, size_t len, const char *s)
{
    struct stk_trace_lines in;
    size_t n = strlen(s);

    stk_lines_init(&in, "", data, len);
    return stk_lines_next(&in) && in.text.len >= n && memcmp(in.text.s, s, n) == 0;
}
