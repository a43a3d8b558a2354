/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/pattern.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct out {
    char *buf;
    size_t n, size;
};

static void put(struct out *o, const char *s, size_t len)
{
    if (o->n + len < o->size)
        memcpy(o->buf + o->n, s, len);
    o->n += len;
}

static void put_number(struct out *o, uint32_t v, unsigned width)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%0*u", (int)(width > 10 ? 10 : width), v);

    put(o, text, (size_t)n);
}

static void put_name(struct out *o, const char *s)
{
    s = s ? s : "";
    for (; *s; s++)
        put(o, *s == '/' ? "_" : s, 1); /* a name never makes a folder */
}

static bool expand(struct out *o, char c, unsigned width, const struct stk_pattern *p)
{
    switch (c) {
    case 'j':
        put_number(o, p->number, width);
        return true;
    case 'A':
        put_number(o, p->array ? p->array : p->number, width);
        return true;
    case 'a':
        put_number(o, p->index, width);
        return true;
    case 't':
        put_number(o, p->task, width);
        return true;
    case 'x':
        put_name(o, p->name);
        return true;
    case 'N':
        put_name(o, p->node);
        return true;
    case 'u':
        put_name(o, p->user);
        return true;
    case '%':
        put(o, "%", 1);
        return true;
    default:
        return false;
    }
}

int stk_pattern_path(const char *pattern, const struct stk_pattern *p, const char *workdir,
                     char *buf, size_t size)
{
    struct out o = {buf, 0, size};

    if (pattern[0] != '/' && workdir) {
        put(&o, workdir, strlen(workdir));
        if (o.n == 0 || workdir[strlen(workdir) - 1] != '/')
            put(&o, "/", 1);
    }
    for (const char *s = pattern; *s; s++) {
        const char *c = s + 1;
        unsigned width = 0;

        while (*s == '%' && *c >= '0' && *c <= '9' && width < 100)
            width = width * 10 + (unsigned)(*c++ - '0');
        if (*s == '%' && expand(&o, *c, width, p))
            s = c;
        else
            put(&o, s, 1);
    }
    if (o.n >= size)
        return -ENAMETOOLONG;
    buf[o.n] = 0;
    return 0;
}

const char *stk_pattern_default(const struct stk_pattern *p)
{
    return p->array ? "stoker-%A_%a.out" : "stoker-%j.out";
}
