/* SPDX-License-Identifier: Apache-2.0 */
/* trace_fields.c - one field into a number, a time, a name or an id; see trace_lines.h.
 *
 * Written by hand because this is where reading spends its time, and because strtod() depends on
 * the locale and rounds to a double first: a fraction of a second must be the nearest microsecond
 * to the decimal that is written.
 */
#include "base/utf8.h"
#include "sim/trace_lines.h"

#include <inttypes.h>
#include <string.h>

#define MAX_WHOLE ((uint64_t)INT64_MAX)

bool stk_field_whole(struct stk_field f, uint64_t *ret)
{
    uint64_t v = 0;

    if (f.len == 0)
        return false;
    for (uint32_t i = 0; i < f.len; i++) {
        unsigned digit = (unsigned char)f.s[i] - (unsigned)'0';

        if (digit > 9 || v > MAX_WHOLE / 10)
            return false;
        v = v * 10 + digit;
    }
    *ret = v;
    return v <= MAX_WHOLE;
}

/* Digits after the point, as microseconds; the seventh rounds. */
static bool fraction(struct stk_field f, uint64_t *ret)
{
    uint64_t v = 0, weight = 1000000;
    bool up = false;

    for (uint32_t i = 0; i < f.len; i++) {
        unsigned digit = (unsigned char)f.s[i] - (unsigned)'0';

        if (digit > 9)
            return false;
        if (i == 6)
            up = digit >= 5;
        weight /= 10; /* zero from the seventh digit on */
        v += digit * weight;
    }
    *ret = v + up;
    return true;
}

bool stk_field_micro(struct stk_field f, uint64_t *ret)
{
    struct stk_field whole = f, part = {NULL, 0};
    uint64_t s = 0, us = 0;

    if (!stk_field_whole(f, &s)) { /* not the common case */
        const char *point = f.len > 1 ? memchr(f.s, '.', f.len) : NULL;

        if (!point)
            return false;
        whole.len = (uint32_t)(point - f.s);
        part.s = point + 1;
        part.len = f.len - whole.len - 1;
        if (!fraction(part, &us) || (whole.len > 0 && !stk_field_whole(whole, &s)))
            return false;
    }
    if (s >= MAX_WHOLE / 1000000)
        return false;
    *ret = s * 1000000 + us;
    return true;
}

int stk_lines_whole(struct stk_trace_lines *in, struct stk_field f, uint32_t no, const char *what,
                    uint64_t max, uint64_t *ret)
{
    uint64_t v;

    if (!stk_field_whole(f, &v) || v > max)
        return stk_lines_bad(
            in, "expected a whole number of %s (0 to %" PRIu64 ") in field %" PRIu32 ", got \"%s\"",
            what, max, no, stk_field_show(f).text);
    *ret = v;
    return 0;
}

int stk_lines_seconds(struct stk_trace_lines *in, struct stk_field f, uint32_t no, stk_time *ret)
{
    uint64_t us;

    if (!stk_field_micro(f, &us) || us > (uint64_t)STK_MAX_DURATION)
        return stk_lines_bad(
            in, "expected a number of seconds (0 to %" PRId64 ") in field %" PRIu32 ", got \"%s\"",
            STK_MAX_DURATION / STK_SECOND, no, stk_field_show(f).text);
    *ret = (stk_time)us;
    return 0;
}

int stk_lines_u32(struct stk_trace_lines *in, struct stk_field f, uint32_t no, const char *what,
                  uint32_t *ret)
{
    uint64_t v = 0;
    int rc = stk_lines_whole(in, f, no, what, UINT32_MAX, &v);

    if (rc == 0)
        *ret = (uint32_t)v;
    return rc;
}

int stk_lines_gpus(struct stk_trace_lines *in, struct stk_field f, uint32_t no, uint32_t *ret)
{
    uint64_t v = 0;
    int rc = stk_lines_whole(in, f, no, "GPUs", STK_MAX_GPUS, &v);

    if (rc == 0)
        *ret = (uint32_t)v;
    return rc;
}

bool stk_field_is_text(struct stk_field f)
{
    uint32_t code;
    size_t step;

    for (size_t i = 0; i < f.len; i += step) {
        step = stk_utf8(f.s + i, f.len - i, &code);
        if (step == 0 || (code < 0x20 && code != '\t') || code == 0x7f)
            return false;
    }
    return true;
}

bool stk_field_is_name(struct stk_field f)
{
    return f.len > 0 && f.len <= STK_TRACE_MAX_NAME_LEN && stk_field_is_text(f) &&
           !memchr(f.s, '\t', f.len);
}

static int add_name(struct stk_trace_lines *in, struct stk_names *names, uint32_t max,
                    struct stk_field f, uint32_t *ret)
{
    int64_t number = stk_names_find(names, f.s, f.len);

    if (number < 0) {
        if (!stk_field_is_name(f))
            return stk_lines_bad(in, "expected a name of 1 to %u printable characters, got \"%s\"",
                                 STK_TRACE_MAX_NAME_LEN, stk_field_show(f).text);
        number = stk_names_add(names, f.s, f.len, max);
    }
    if (number == -E2BIG)
        return stk_lines_bad(in, "\"%s\" is one name too many (at most %" PRIu32 ")",
                             stk_field_show(f).text, max);
    if (number < 0)
        return (int)number;
    *ret = (uint32_t)number;
    return 0;
}

int stk_lines_name(struct stk_trace_lines *in, struct stk_names *names, uint32_t max,
                   struct stk_field f, struct stk_last_name *last, uint32_t *ret)
{
    int rc;

    if (f.len == 0)
        f = (struct stk_field){STK_NAME_DEFAULT, sizeof(STK_NAME_DEFAULT) - 1};
    if (last && last->name.len == f.len && memcmp(last->name.s, f.s, f.len) == 0) {
        *ret = last->number;
        return 0;
    }
    rc = add_name(in, names, max, f, ret);
    if (rc == 0 && last) {
        last->name = f;
        last->number = *ret;
    }
    return rc;
}

int stk_lines_id(struct stk_trace_lines *in, struct stk_trace *t, struct stk_field f, uint64_t *ret)
{
    uint32_t number = 0;
    int rc;

    /* "007" is a name: as a number it would come back as "7" */
    if ((f.len == 1 || (f.len > 1 && f.s[0] != '0')) && stk_field_whole(f, ret))
        return 0;
    if (f.len == 0)
        return stk_lines_bad(in, "expected a job id, got nothing");
    rc = add_name(in, &t->ids, STK_TRACE_MAX_NAMES, f, &number);
    if (rc == 0)
        *ret = STK_TRACE_ID_NAME | number;
    return rc;
}

struct stk_trace_job stk_lines_job(void)
{
    return (struct stk_trace_job){
        .gpu_types = STK_ANY_GPU_TYPE,
        .kind = STK_KIND_TRAIN,
        .tier = STK_TIER_STANDARD,
        .cause = STK_CAUSE_OK,
    };
}

int stk_lines_push(struct stk_trace *t, const struct stk_trace_job *job)
{
    struct stk_trace_job *j = stk_trace_push(t);

    if (!j)
        return t->n_jobs >= STK_TRACE_MAX_JOBS ? -E2BIG : -ENOMEM;
    *j = *job;
    return 0;
}
