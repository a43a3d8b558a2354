/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trace_sacct.h"

#include <string.h>

#include "when/zone.h"

#define MAX_UNIX_S UINT64_C(3155760000) /* as STK_MAX_DURATION: no time of a trace is later */

static bool is_nothing(struct stk_field f)
{
    return f.len == 0 || stk_field_is(f, "Unknown") || stk_field_is(f, "None") ||
           stk_field_is(f, "NONE") || stk_field_is(f, "N/A") || stk_field_is(f, "(null)");
}

/* Exactly 'n' digits at *at, at most 'max'. */
static bool digits(struct stk_field f, uint32_t *at, uint32_t n, uint32_t max, uint32_t *ret)
{
    uint32_t v = 0;

    if (f.len - *at < n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        char c = f.s[*at + i];

        if (c < '0' || c > '9')
            return false;
        v = v * 10 + (uint32_t)(c - '0');
    }
    *at += n;
    *ret = v;
    return v <= max;
}

static bool skip(struct stk_field f, uint32_t *at, char c)
{
    if (*at >= f.len || f.s[*at] != c)
        return false;
    (*at)++;
    return true;
}

/* Digits after a point; only the first six count. */
static bool fraction(struct stk_field f, uint32_t *at, stk_time *ret)
{
    stk_time unit = STK_SECOND / 10;
    uint32_t from = *at;

    *ret = 0;
    for (; *at < f.len && f.s[*at] >= '0' && f.s[*at] <= '9'; (*at)++, unit /= 10)
        *ret += (f.s[*at] - '0') * unit;
    return *at > from;
}

/* "Z", "+01:00", "+0100", "+01" or nothing: seconds east of UTC. */
static bool zone(struct stk_field f, uint32_t *at, int64_t *ret)
{
    uint32_t h = 0, m = 0;
    bool west;

    *ret = 0;
    if (*at == f.len || skip(f, at, 'Z'))
        return true;
    west = f.s[*at] == '-';
    if (!west && f.s[*at] != '+')
        return false;
    (*at)++;
    if (!digits(f, at, 2, 23, &h))
        return false;
    (void)skip(f, at, ':');
    if (*at < f.len && !digits(f, at, 2, 59, &m))
        return false;
    *ret = ((int64_t)h * 3600 + (int64_t)m * 60) * (west ? -1 : 1);
    return true;
}

static bool calendar(struct stk_field f, int64_t *ret_s, stk_time *ret_part)
{
    uint32_t at = 0, y, mo, d, h, mi, s;
    int64_t east;

    if (!digits(f, &at, 4, 9999, &y) || y < 1970 || !skip(f, &at, '-') ||
        !digits(f, &at, 2, 12, &mo) || mo == 0 || !skip(f, &at, '-') ||
        !digits(f, &at, 2, 31, &d) || d == 0 || !(skip(f, &at, 'T') || skip(f, &at, ' ')) ||
        !digits(f, &at, 2, 23, &h) || !skip(f, &at, ':') || !digits(f, &at, 2, 59, &mi) ||
        !skip(f, &at, ':') || !digits(f, &at, 2, 60, &s))
        return false;
    *ret_part = 0;
    if ((skip(f, &at, '.') && !fraction(f, &at, ret_part)) || !zone(f, &at, &east) || at != f.len)
        return false;
    *ret_s = stk_days_from((int32_t)y, (int32_t)mo, (int32_t)d) * 86400 + (int64_t)h * 3600 +
             (int64_t)mi * 60 + s - east;
    return true;
}

int stk_sacct_time(struct stk_field f, stk_time *ret)
{
    uint64_t whole;
    stk_time part = 0;
    int64_t s;

    if (is_nothing(f))
        return 1;
    if (stk_field_whole(f, &whole)) /* SLURM_TIME_FORMAT=%s */
        s = whole <= MAX_UNIX_S ? (int64_t)whole : -1;
    else if (!calendar(f, &s, &part))
        return -EINVAL;
    if (s < 0 || (uint64_t)s >= MAX_UNIX_S)
        return -EINVAL;
    *ret = s * STK_SECOND + part;
    return 0;
}

/* Digits up to the next sign: *ret, and the sign (0: the end). */
static bool number(struct stk_field f, uint32_t *at, uint64_t *ret, char *ret_sign)
{
    uint32_t from = *at;

    while (*at < f.len && f.s[*at] >= '0' && f.s[*at] <= '9')
        (*at)++;
    if (!stk_field_whole((struct stk_field){f.s + from, *at - from}, ret) || *ret > MAX_UNIX_S)
        return false;
    *ret_sign = '\0';
    if (*at < f.len)
        *ret_sign = f.s[(*at)++];
    return true;
}

int stk_sacct_duration(struct stk_field f, stk_time *ret)
{
    uint64_t days = 0, part[3] = {0}, sum;
    stk_time us = 0;
    uint32_t at = 0, n = 0;
    char sign;

    if (is_nothing(f) || stk_field_is(f, "UNLIMITED") || stk_field_is(f, "Partition_Limit") ||
        stk_field_is(f, "INVALID"))
        return 1;
    do {
        if (n == 3 || !number(f, &at, &part[n++], &sign))
            return -EINVAL;
        if (sign == '-' && n == 1 && days == 0) {
            days = part[0];
            n = 0;
        } else if (sign == '.' && n >= 2) {
            if (!fraction(f, &at, &us) || at != f.len)
                return -EINVAL;
            sign = '\0';
        } else if (sign != ':' && sign != '\0') {
            return -EINVAL;
        }
    } while (sign != '\0');
    if (n < 2)
        return -EINVAL;
    sum = n == 3 ? part[0] * 3600 + part[1] * 60 + part[2] : part[0] * 60 + part[1];
    sum += days * 86400;
    if (sum > MAX_UNIX_S)
        return -EINVAL;
    *ret = (stk_time)sum * STK_SECOND + us;
    return *ret > STK_MAX_DURATION ? -EINVAL : 0;
}

/* Cuts the next part off; false at the end. */
static bool next_part(struct stk_field *f, char sep, struct stk_field *ret)
{
    uint32_t n = 0;

    if (f->len == 0)
        return false;
    while (n < f->len && f->s[n] != sep)
        n++;
    *ret = (struct stk_field){f->s, n};
    n += n < f->len;
    f->s += n;
    f->len -= n;
    return true;
}

static bool begins(struct stk_field f, const char *s)
{
    size_t n = strlen(s);

    return f.len >= n && memcmp(f.s, s, n) == 0;
}

/* MiB from "64G", "512000M", "1.5T", "2048K". */
static int memory(struct stk_field f, uint64_t *ret)
{
    uint64_t unit_kib = 1024, us;

    if (f.len == 0)
        return -EINVAL;
    switch (f.s[f.len - 1]) {
    case 'K':
        unit_kib = 1;
        break;
    case 'M':
        break;
    case 'G':
        unit_kib = UINT64_C(1) << 20;
        break;
    case 'T':
        unit_kib = UINT64_C(1) << 30;
        break;
    case 'P':
        unit_kib = UINT64_C(1) << 40;
        break;
    default:
        f.len++; /* none: MiB */
    }
    f.len--;
    if (f.len == 0 || !stk_field_micro(f, &us))
        return -EINVAL;
    if ((double)us * 1e-6 * (double)unit_kib / 1024 > 1e15)
        return -EINVAL;
    *ret = (uint64_t)((double)us * 1e-6 * (double)unit_kib / 1024);
    return 0;
}

static int add_type(struct stk_sacct_tres *t, struct stk_field type)
{
    if (t->n_types == STK_SACCT_MAX_TYPES)
        return -E2BIG;
    t->type[t->n_types++] = type;
    return 0;
}

/* One "name=value". */
static int one_tres(struct stk_field f, struct stk_sacct_tres *t, uint64_t *typed)
{
    static const char gpu[] = "gres/gpu", typed_gpu[] = "gres/gpu:";
    struct stk_field name, value;
    uint64_t n;

    if (!next_part(&f, '=', &name))
        return -EINVAL;
    value = f;
    if (stk_field_is(name, "mem"))
        return memory(value, &t->mem_mib);
    if (!stk_field_is(name, gpu) && !begins(name, typed_gpu) && !stk_field_is(name, "cpu") &&
        !stk_field_is(name, "node"))
        return 0; /* billing, energy, licences... */
    if (!stk_field_whole(value, &n))
        return -EINVAL;
    if (stk_field_is(name, gpu))
        t->gpus = n;
    else if (stk_field_is(name, "cpu"))
        t->cpus = n;
    else if (stk_field_is(name, "node"))
        t->nodes = n;
    else if (n > 0) {
        *typed += n < STK_MAX_GPUS ? n : STK_MAX_GPUS + 1u;
        name.s += sizeof(typed_gpu) - 1;
        name.len -= (uint32_t)sizeof(typed_gpu) - 1;
        return add_type(t, name);
    }
    return 0;
}

int stk_sacct_tres(struct stk_field f, struct stk_sacct_tres *ret)
{
    struct stk_sacct_tres t = {0};
    struct stk_field part;
    uint64_t typed = 0;

    if (is_nothing(f))
        f.len = 0;
    while (next_part(&f, ',', &part)) {
        int rc = one_tres(part, &t, &typed);

        if (rc < 0)
            return rc;
    }
    if (t.gpus == 0)
        t.gpus = typed;
    *ret = t;
    return 0;
}

/* "gpu", "gpu:2", "gpu:a100" or "gpu:a100:2", of one node. */
static int one_gres(struct stk_field f, uint64_t nodes, struct stk_sacct_tres *t)
{
    struct stk_field part, type = {NULL, 0};
    uint64_t n = 1;

    for (uint32_t i = 0; i < f.len; i++)
        if (f.s[i] == '(') /* which sockets, which indices */
            f.len = i;
    if (begins(f, "gres:") || begins(f, "gres/")) {
        f.s += 5;
        f.len -= 5;
    }
    if (!next_part(&f, ':', &part) || !stk_field_is(part, "gpu"))
        return 0;
    while (next_part(&f, ':', &part))
        if (!stk_field_whole(part, &n))
            type = part;
    if (n > STK_MAX_GPUS || nodes > STK_MAX_GPUS)
        return -EINVAL;
    t->gpus += n * nodes;
    return type.len > 0 && n > 0 ? add_type(t, type) : 0;
}

int stk_sacct_gres(struct stk_field f, uint64_t nodes, struct stk_sacct_tres *ret)
{
    struct stk_sacct_tres t = {.nodes = nodes};
    struct stk_field part;

    if (is_nothing(f))
        f.len = 0;
    while (next_part(&f, ',', &part)) {
        int rc = one_gres(part, nodes, &t);

        if (rc < 0)
            return rc;
    }
    *ret = t;
    return 0;
}
