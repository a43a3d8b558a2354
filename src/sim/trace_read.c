/* SPDX-License-Identifier: Apache-2.0 */
/* trace_read.c - from a file or a buffer to a workload: choose the format, run its reader, keep
 * count of what was skipped, put the jobs in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/slurp.h"
#include "sim/trace.h"
#include "sim/trace_lines.h"

static void list_formats(char *buf, size_t cap)
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; stk_trace_formats[i] && len < cap; i++) {
        int n = snprintf(buf + len, cap - len, "%s%s", i ? ", " : "", stk_trace_formats[i]->name);

        len += n > 0 ? (size_t)n : 0;
    }
}

static const struct stk_trace_format *find_format(const char *format, const char *data, size_t len)
{
    for (size_t i = 0; stk_trace_formats[i]; i++) {
        const struct stk_trace_format *f = stk_trace_formats[i];

        if (format ? strcmp(f->name, format) == 0 : f->detect(data, len))
            return f;
    }
    return NULL;
}

static int no_format(const char *name, const char *format, size_t len, struct stk_err *err)
{
    char list[120];

    list_formats(list, sizeof(list));
    if (format)
        return stk_err_set(err, -EINVAL, "there is no trace format \"%.40s\"; there are %s", format,
                           list);
    if (len == 0)
        return stk_err_set(err, -EINVAL, "%s: the file is empty", name);
    return stk_err_set(err, -EINVAL,
                       "%s:1: cannot tell the format from the first line; pass one of %s", name,
                       list);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, const char *format,
                 struct stk_err *err)
{
    size_t len = (size_t)(in->end - in->next);
    const struct stk_trace_format *f = find_format(format, in->next, len);
    int rc;

    if (!f)
        return no_format(in->name, format, len, err);
    rc = f->parse(t, in, err);
    if (in->n_skipped > 0 && t->n_skipped == 0)
        t->first_skip = in->first_skip;
    t->n_skipped += in->n_skipped;
    t->times_in_trace = true;
    if (rc < 0)
        return rc;
    if (stk_trace_sort(t) < 0)
        return stk_err_set(err, -ENOMEM, "%s: out of memory", in->name);
    return 0;
}

int stk_trace_parse(struct stk_trace *t, const char *name, const char *data, size_t len,
                    const struct stk_trace_options *o, struct stk_err *err)
{
    struct stk_trace_lines in;

    stk_lines_init(&in, name, data, len);
    in.lenient = o && o->lenient;
    in.untimed = o && o->untimed;
    in.throughputs = o ? o->throughputs : NULL;
    return parse(t, &in, o ? o->format : NULL, err);
}

int stk_trace_read(struct stk_trace *t, const char *path, const struct stk_trace_options *o,
                   struct stk_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct stk_trace_lines in;
    size_t len = 0;
    char *data = NULL;
    int rc = stk_slurp(path, &data, &len, err);

    if (rc < 0)
        return rc;
    stk_lines_init(&in, is_stdin ? "stdin" : path, data, len);
    in.lenient = o && o->lenient;
    in.untimed = o && o->untimed;
    in.throughputs = o ? o->throughputs : NULL;
    in.path = is_stdin ? NULL : path;
    rc = parse(t, &in, o ? o->format : NULL, err);
    free(data);
    return rc;
}
