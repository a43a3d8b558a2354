/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - questions. The coarsest tier that is fine enough is read first, then what it does not
 * have yet from the finer ones, last what is not written yet. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "series/state.h"

#define POINTS 400 /* of an answer, when nobody says how many */

static stk_time up_to(stk_time t, stk_time step)
{
    return (t + step - 1) / step * step;
}

/* The finest step for something that long ago. */
static stk_time finest(const struct stk_series *s, stk_time age)
{
    if (age <= INT64_C(3660) * STK_SECOND)
        return s ? s->step : 10 * STK_SECOND;
    return age <= INT64_C(87300) * STK_SECOND ? STK_SERIES_MINUTE : STK_SERIES_QUARTER;
}

int stk_series_fit(const struct stk_series *s, struct stk_series_query *q, uint32_t members,
                   struct stk_err *err)
{
    stk_time least = finest(s, q->now - q->since);
    uint64_t points;

    if (q->until <= q->since)
        return stk_err_set(err, -EINVAL, "until must be after since");
    if (q->step <= 0)
        q->step = (q->until - q->since) / POINTS;
    q->step = q->step < least ? least : up_to(q->step, least);
    if (q->step > STK_SERIES_MINUTE && q->step < STK_SERIES_QUARTER)
        q->step = up_to(q->step, STK_SERIES_MINUTE);
    q->since -= q->since % q->step;
    q->until = up_to(q->until, q->step);
    points = (uint64_t)((q->until - q->since) / q->step);
    if (points * members * stk_series_n_fields(q->kind) > STK_SERIES_MAX_VALUES)
        return stk_err_set(
            err, -E2BIG,
            "%llu points of %u series are too many; ask for a longer step, a shorter "
            "time or fewer series",
            (unsigned long long)points, members);
    return 0;
}

struct reading {
    const struct stk_series_query *q;
    enum stk_series_kind kind;
    uint32_t members, fields, points;
    struct stk_fold *fold; /* [member][field][point] */
    stk_time end;          /* of what was read so far */
};

struct one { /* number, and how long it stands for */
    uint32_t member, field, step_s;
    float v;
};

static void add(struct reading *r, stk_time at, struct one o)
{
    size_t point = (size_t)((at - r->q->since) / r->q->step);

    if (at >= r->q->since && at < r->q->until && o.member < r->members)
        stk_fold_add(&r->fold[((size_t)o.member * r->fields + o.field) * r->points + point],
                     stk_series_fields[r->kind][o.field].how, o.v, o.step_s);
}

/* Where a node had fewer GPUs before: room for the most. */
static int widen(struct reading *r, uint32_t members)
{
    size_t each = (size_t)r->fields * r->points;
    struct stk_fold *more;

    if (members <= r->members)
        return 0;
    if (members * each > 2 * (size_t)STK_SERIES_MAX_VALUES)
        return -E2BIG;
    more = realloc(r->fold, members * each * sizeof(*more));
    if (!more)
        return -ENOMEM;
    for (size_t i = r->members * each; i < members * each; i++)
        more[i] = (struct stk_fold){0};
    r->fold = more;
    r->members = members;
    return 0;
}

static int take(void *ctx, const struct stk_series_row *row)
{
    struct reading *r = ctx;
    struct stk_row_shape s;
    int rc;

    if (stk_row_get(row->bytes, row->len, &s) < 0)
        return 0;
    rc = widen(r, s.members);
    for (uint32_t k = 0; k < s.steps && rc == 0; k++) {
        stk_time at = row->at + (stk_time)k * s.step_s * STK_SECOND;

        if (at < r->end)
            continue;
        for (uint32_t m = 0; m < s.members; m++)
            for (uint32_t f = 0; f < r->fields; f++)
                add(r, at, (struct one){m, f, s.step_s, stk_row_value(row->bytes, &s, k, m, f)});
    }
    if (rc == 0)
        r->end = row->at + (stk_time)s.steps * s.step_s * STK_SECOND;
    return rc;
}

static int take_pending(const struct stk_series *s, struct reading *r)
{
    const struct group *g = s ? stk_series_group(s, r->kind, r->q->id) : NULL;
    int rc = g && s->minute ? widen(r, g->members) : 0;

    if (rc < 0 || !g || !s->minute)
        return rc;
    for (uint32_t k = 0; k < g->steps; k++)
        for (uint32_t v = 0; v < g->width; v++)
            add(r, s->minute + k * s->step,
                (struct one){v / r->fields, v % r->fields, (uint32_t)(s->step / STK_SECOND),
                             g->minute[(size_t)k * g->width + v]});
    return 0;
}

static int read_tiers(const struct stk_series *s, struct stk_store *st, struct reading *r,
                      struct stk_err *err)
{
    const struct stk_series_query *q = r->q;
    static const stk_time width[STK_SERIES_TIERS] = {0, STK_SERIES_MINUTE, STK_SERIES_QUARTER};
    int rc = 0;

    for (int tier = STK_SERIES_TIERS - 1; tier >= 0 && rc == 0; tier--) {
        struct stk_series_range of = {
            .kind = (uint32_t)q->kind, .tier = (uint32_t)tier, .id = q->id, .until = q->until};

        if (width[tier] > q->step || (width[tier] && q->step % width[tier] != 0))
            continue;
        /* a row of the finest begins up to a minute before what is asked for */
        of.since = tier == 0 ? r->end - r->end % STK_SERIES_MINUTE : r->end;
        rc = stk_store_series(st, &of, take, r, err);
    }
    return rc < 0 ? rc : take_pending(s, r);
}

int stk_series_read(const struct stk_series *s, struct stk_store *st,
                    const struct stk_series_query *q, struct stk_series_result *ret,
                    struct stk_err *err)
{
    struct reading r = {.q = q,
                        .kind = q->kind,
                        .fields = stk_series_n_fields(q->kind),
                        .points = (uint32_t)((q->until - q->since) / q->step),
                        .end = q->since};
    int rc = widen(&r, 1);
    size_t n;

    rc = rc < 0 ? rc : read_tiers(s, st, &r, err);
    n = (size_t)r.members * r.fields * r.points;
    *ret = (struct stk_series_result){.since = q->since,
                                      .step = q->step,
                                      .members = r.members,
                                      .fields = r.fields,
                                      .points = r.points};
    ret->value = rc < 0 ? NULL : malloc((n + 1) * sizeof(float));
    if (rc == 0 && !ret->value)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && ret->value; i++)
        ret->value[i] =
            stk_fold_value(&r.fold[i], stk_series_fields[q->kind][i / r.points % r.fields].how);
    free(r.fold);
    return rc;
}
