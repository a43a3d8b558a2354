/* SPDX-License-Identifier: Apache-2.0 */
#include "api/prom.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_VALUE 200u
#define MAX_BYTES ((size_t)256 << 20)

static void add(struct stk_prom *p, const char *s, size_t n)
{
    if (p->failed)
        return;
    if (n > p->cap - p->len) {
        size_t cap = (p->cap + n) * 2 + 16384;
        char *more = cap <= MAX_BYTES ? realloc(p->s, cap) : NULL;

        if (!more) {
            p->failed = true;
            return;
        }
        p->s = more;
        p->cap = cap;
    }
    memcpy(p->s + p->len, s, n);
    p->len += n;
}

static void word(struct stk_prom *p, const char *s)
{
    add(p, s, strlen(s));
}

/* Anything may be in a name: a label's value is UTF-8 with three characters escaped. */
static void escaped(struct stk_prom *p, const char *s)
{
    size_t left = strnlen(s, MAX_VALUE);

    while (left > 0) {
        uint32_t code;
        size_t n = stk_utf8(s, left, &code);

        if (n == 0) {
            n = 1;
            word(p, "?");
        } else if (*s == '\\' || *s == '"') {
            word(p, *s == '"' ? "\\\"" : "\\\\");
        } else if (*s == '\n') {
            word(p, "\\n");
        } else {
            add(p, s, n);
        }
        s += n;
        left -= n;
    }
}

void stk_prom_head(struct stk_prom *p, const char *name, const char *type, const char *help)
{
    word(p, "# HELP ");
    word(p, name);
    word(p, " ");
    word(p, help);
    word(p, "\n# TYPE ");
    word(p, name);
    word(p, " ");
    word(p, type);
    word(p, "\n");
}

/* As short as it can be without losing what is there. */
static void number(struct stk_prom *p, double v)
{
    char text[40];

    if (v >= -1e15 && v <= 1e15 && v == floor(v))
        (void)snprintf(text, sizeof(text), "%" PRId64, (int64_t)v);
    else
        (void)snprintf(text, sizeof(text), "%.9g", v);
    word(p, text);
}

void stk_prom_line(struct stk_prom *p, const char *name, const struct stk_prom_labels *labels,
                   double value)
{
    word(p, name);
    for (uint32_t i = 0; labels && i < STK_PROM_LABELS && labels->name[i]; i++) {
        word(p, i ? "," : "{");
        word(p, labels->name[i]);
        word(p, "=\"");
        escaped(p, labels->value[i] ? labels->value[i] : "");
        word(p, "\"");
    }
    word(p, labels && labels->name[0] ? "} " : " ");
    number(p, value);
    word(p, "\n");
}

void stk_prom_put(struct stk_prom *p, const char *name, const char *label, const char *of,
                  double value)
{
    const struct stk_prom_labels l = {{label}, {of}};

    stk_prom_line(p, name, &l, value);
}

void stk_prom_one(struct stk_prom *p, const char *name, const char *type, const char *help,
                  double value)
{
    stk_prom_head(p, name, type, help);
    stk_prom_line(p, name, NULL, value);
}

void stk_prom_histogram(struct stk_prom *p, const char *name, const char *help,
                        const struct stk_histogram *h)
{
    char bucket[96], sum[96], count[96], le[32];
    uint64_t n = 0;
    uint32_t i = 0;

    (void)snprintf(bucket, sizeof(bucket), "%s_bucket", name);
    (void)snprintf(sum, sizeof(sum), "%s_sum", name);
    (void)snprintf(count, sizeof(count), "%s_count", name);
    stk_prom_head(p, name, "histogram", help);
    for (; h->le[i] > 0; i++) {
        n += h->in[i];
        (void)snprintf(le, sizeof(le), "%g", h->le[i]);
        stk_prom_put(p, bucket, "le", le, (double)n);
    }
    stk_prom_put(p, bucket, "le", "+Inf", (double)h->count);
    stk_prom_line(p, sum, NULL, h->sum);
    stk_prom_line(p, count, NULL, (double)h->count);
}

void stk_prom_send(struct stk_prom *p, struct stk_request *r)
{
    if (p->failed)
        stk_request_error(r, 503, "busy", "out of memory");
    else
        stk_request_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", p->s ? p->s : "",
                         p->len);
    free(p->s);
    *p = (struct stk_prom){0};
}
