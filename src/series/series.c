/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - collecting: values to steps, steps to a minute's row, rows to coarser rows. */
#include "series/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "series/state.h"

#define FINE_AGE (INT64_C(3600) * STK_SECOND)
#define MINUTE_AGE (INT64_C(86400) * STK_SECOND)
#define QUARTER_AGE (400 * INT64_C(86400) * STK_SECOND)
#define CALM 2u /* minutes without a value: the group is gone */

int stk_series_new(stk_time step, struct stk_series **ret, struct stk_err *err)
{
    struct stk_series *s = calloc(1, sizeof(*s));

    if (s)
        s->table = calloc(TABLE, sizeof(*s->table));
    if (!s || !s->table) {
        free(s);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    s->step = step;
    *ret = s;
    return 0;
}

static void group_done(struct group *g)
{
    free(g->now);
    free(g->minute);
    free(g->last);
    *g = (struct group){0};
}

void stk_series_free(struct stk_series *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        group_done(&s->list[i]);
    free(s->list);
    free(s->table);
    free(s);
}

stk_time stk_series_step(const struct stk_series *s)
{
    return s->step;
}

/* ---- groups ---- */

static size_t place(enum stk_series_kind kind, int64_t id)
{
    return (stk_hash_mix(stk_hash_mix(0, (uint64_t)kind), (uint64_t)id) >> 7) & (TABLE - 1);
}

struct group *stk_series_group(const struct stk_series *s, enum stk_series_kind kind, int64_t id)
{
    for (size_t at = place(kind, id); s->table[at]; at = (at + 1) & (TABLE - 1)) {
        struct group *g = &s->list[s->table[at] - 1];

        if (g->kind == kind && g->id == id)
            return g;
    }
    return NULL;
}

static void enter(struct stk_series *s, uint32_t i)
{
    size_t at = place(s->list[i].kind, s->list[i].id);

    while (s->table[at])
        at = (at + 1) & (TABLE - 1);
    s->table[at] = i + 1;
}

static uint32_t steps_of(const struct stk_series *s)
{
    return (uint32_t)(STK_SERIES_MINUTE / s->step);
}

static void forget_steps(const struct stk_series *s, struct group *g)
{
    size_t n = (size_t)steps_of(s) * g->width;

    for (size_t i = 0; i < n; i++)
        g->minute[i] = NAN;
    g->steps = 0;
}

static struct group *add(struct stk_series *s, const struct stk_series_at *at)
{
    struct group g = {.kind = at->kind, .id = at->id, .members = at->members};

    if (s->n == s->cap) {
        uint32_t cap = s->cap ? 2 * s->cap : 64;
        struct group *more = realloc(s->list, cap * sizeof(*more));

        if (!more)
            return NULL;
        s->list = more;
        s->cap = cap;
    }
    g.width = g.members * stk_series_n_fields(g.kind);
    g.now = calloc(g.width, sizeof(*g.now));
    g.minute = calloc((size_t)steps_of(s) * g.width, sizeof(*g.minute));
    g.last = calloc(g.width, sizeof(*g.last));
    if (!g.now || !g.minute || !g.last) {
        free(g.now);
        free(g.minute);
        free(g.last);
        return NULL;
    }
    forget_steps(s, &g);
    for (uint32_t v = 0; v < g.width; v++)
        g.last[v] = NAN;
    s->list[s->n] = g;
    enter(s, s->n++);
    return &s->list[s->n - 1];
}

void stk_series_put(struct stk_series *s, const struct stk_series_at *at, const float *values)
{
    struct group *g = stk_series_group(s, at->kind, at->id);
    uint32_t n = stk_series_n_fields(at->kind);

    if (!g && s->n < STK_SERIES_MAX_GROUPS && at->members > 0 &&
        at->members <= STK_SERIES_MAX_MEMBERS)
        g = add(s, at);
    if (!g || at->member >= g->members)
        return;
    g->calm = 0;
    for (uint32_t f = 0; f < n; f++)
        stk_fold_add(&g->now[at->member * n + f], stk_series_fields[at->kind][f].how, values[f], 1);
}

/* ---- steps ---- */

static stk_time floor_to(stk_time t, stk_time step)
{
    return t - t % step;
}

void stk_series_close(struct stk_series *s, stk_time at)
{
    stk_time minute = floor_to(at, STK_SERIES_MINUTE);
    uint32_t k = (uint32_t)((at - minute) / s->step);

    if (s->minute != minute) { /* what was not written by now is too late */
        for (uint32_t i = 0; i < s->n; i++)
            forget_steps(s, &s->list[i]);
        s->minute = minute;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        struct group *g = &s->list[i];
        uint32_t n = g->width / g->members;

        for (uint32_t v = 0; v < g->width; v++) {
            float *to = &g->minute[(size_t)k * g->width + v];
            float value = stk_fold_value(&g->now[v], stk_series_fields[g->kind][v % n].how);

            g->last[v] = value;
            if (!isnan(value))
                *to = value;
            g->now[v] = (struct stk_fold){0};
        }
        g->steps = k + 1 > g->steps ? k + 1 : g->steps;
    }
}

void stk_series_now(const struct stk_series *s, enum stk_series_kind kind, int64_t id,
                    float ret[STK_SERIES_MAX_FIELDS])
{
    const struct group *g = s ? stk_series_group(s, kind, id) : NULL;
    uint32_t n = stk_series_n_fields(kind);

    for (uint32_t f = 0; f < STK_SERIES_MAX_FIELDS; f++)
        ret[f] = g && f < n ? g->last[f] : NAN;
}

bool stk_series_due(const struct stk_series *s, stk_time now)
{
    return s->minute != 0 && floor_to(now, STK_SERIES_MINUTE) > s->minute;
}

/* ---- rows ---- */

static bool has_values(const struct group *g)
{
    for (size_t i = 0; i < (size_t)g->steps * g->width; i++)
        if (!isnan(g->minute[i]))
            return true;
    return false;
}

struct making { /* a coarser row out of finer ones; by kind and id, as they come */
    struct stk_store *st;
    struct stk_err *err;
    uint32_t tier, step_s;
    stk_time at;
    uint32_t kind;
    int64_t id;
    uint32_t members, fields;
    struct stk_fold fold[STK_SERIES_MAX_MEMBERS * STK_SERIES_MAX_FIELDS];
    uint64_t bytes;
};

static int finish(struct making *m)
{
    struct stk_row_shape shape = {m->fields, m->members, 1, m->step_s};
    float values[STK_SERIES_MAX_MEMBERS * STK_SERIES_MAX_FIELDS];
    unsigned char bytes[STK_ROW_HEAD + sizeof(values)];
    struct stk_series_row row = {
        .kind = m->kind, .tier = m->tier, .id = m->id, .at = m->at, .bytes = bytes};

    if (m->members == 0)
        return 0;
    for (uint32_t i = 0; i < m->members * m->fields; i++)
        values[i] = stk_fold_value(&m->fold[i], stk_series_fields[m->kind][i % m->fields].how);
    stk_row_put(&shape, values, bytes);
    row.len = stk_row_size(&shape);
    m->bytes += row.len;
    m->members = 0;
    return stk_store_series_put(m->st, &row, m->err);
}

static int begin(struct making *m, const struct stk_series_row *r, const struct stk_row_shape *s)
{
    uint32_t n = stk_series_n_fields((enum stk_series_kind)r->kind);
    int rc = finish(m);

    m->kind = r->kind;
    m->id = r->id;
    m->members = s->members;
    m->fields = n;
    memset(m->fold, 0, sizeof(m->fold));
    return rc;
}

static int take(void *ctx, const struct stk_series_row *r)
{
    struct making *m = ctx;
    struct stk_row_shape s;
    int rc = 0;

    if (r->kind >= STK_SERIES_KIND_MAX || stk_row_get(r->bytes, r->len, &s) < 0)
        return 0; /* not of ours */
    if (m->members == 0 || m->kind != r->kind || m->id != r->id)
        rc = begin(m, r, &s);
    for (uint32_t k = 0; k < s.steps; k++)
        for (uint32_t i = 0; i < m->members * m->fields; i++)
            stk_fold_add(&m->fold[i], stk_series_fields[m->kind][i % m->fields].how,
                         stk_row_value(r->bytes, &s, k, i / m->fields, i % m->fields), s.step_s);
    return rc;
}

/* The row of each group at 'at' of the tier, out of the one below. */
static int make(struct stk_store *st, uint32_t tier, stk_time at, uint64_t *ret_bytes,
                struct stk_err *err)
{
    stk_time width = tier == 1 ? STK_SERIES_MINUTE : STK_SERIES_QUARTER;
    struct making *m = calloc(1, sizeof(*m));
    int rc;

    if (!m)
        return stk_err_set(err, -ENOMEM, "out of memory");
    m->st = st;
    m->err = err;
    m->tier = tier;
    m->at = at;
    m->step_s = (uint32_t)(width / STK_SECOND);
    rc = stk_store_series(
        st,
        &(struct stk_series_range){.tier = tier - 1, .all = true, .since = at, .until = at + width},
        take, m, err);
    rc = rc < 0 ? rc : finish(m);
    if (ret_bytes)
        *ret_bytes = m->bytes;
    free(m);
    return rc;
}

static int put_minute(const struct stk_series *s, const struct group *g, struct stk_store *st,
                      struct stk_err *err)
{
    struct stk_row_shape shape = {g->width / g->members, g->members, g->steps,
                                  (uint32_t)(s->step / STK_SECOND)};
    size_t len = stk_row_size(&shape);
    unsigned char *bytes = malloc(len);
    struct stk_series_row row = {
        .kind = g->kind, .id = g->id, .at = s->minute, .bytes = bytes, .len = len};
    int rc;

    if (!bytes)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_row_put(&shape, g->minute, bytes);
    rc = stk_store_series_put(st, &row, err);
    free(bytes);
    return rc;
}

/* A row of this minute may be there: from before a restart. What it knows is not lost. */
static int merge(void *ctx, const struct stk_series_row *r)
{
    struct group *g = ctx;
    struct stk_row_shape s;

    if (stk_row_get(r->bytes, r->len, &s) < 0 || s.members != g->members ||
        s.fields != g->width / g->members || s.step_s != g->step_s)
        return 0;
    for (uint32_t k = 0; k < s.steps && k < g->room; k++)
        for (uint32_t v = 0; v < g->width; v++) {
            float *to = &g->minute[(size_t)k * g->width + v];

            if (isnan(*to))
                *to = stk_row_value(r->bytes, &s, k, v / s.fields, v % s.fields);
        }
    g->steps = s.steps > g->steps && s.steps <= g->room ? s.steps : g->steps;
    return 0;
}

static int write_group(struct stk_series *s, struct group *g, struct stk_store *st,
                       struct stk_err *err)
{
    const struct stk_series_range of = {
        .kind = g->kind, .id = g->id, .since = s->minute, .until = s->minute + 1};
    int rc = 0;

    if (g->steps == 0 || !has_values(g))
        return 0;
    g->step_s = (uint32_t)(s->step / STK_SECOND);
    g->room = steps_of(s);
    if (!s->went_on)
        rc = stk_store_series(st, &of, merge, g, err);
    return rc < 0 ? rc : put_minute(s, g, st, err);
}

int stk_series_flush(struct stk_series *s, struct stk_store *st, stk_time now, struct stk_err *err)
{
    stk_time quarter = floor_to(s->minute, STK_SERIES_QUARTER);
    int rc = 0;

    if (s->minute == 0)
        return 0;
    for (uint32_t i = 0; i < s->n && rc == 0; i++)
        rc = write_group(s, &s->list[i], st, err);
    rc = rc < 0 ? rc : make(st, 1, s->minute, NULL, err);
    if (rc == 0 && floor_to(now, STK_SERIES_QUARTER) > quarter)
        rc = make(st, 2, quarter, &s->quarter_bytes, err);
    return rc;
}

void stk_series_written(struct stk_series *s)
{
    uint32_t n = 0;

    s->went_on = true;
    s->minute = 0;
    memset(s->table, 0, TABLE * sizeof(*s->table));
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->list[i].calm++ >= CALM) {
            group_done(&s->list[i]);
            continue;
        }
        forget_steps(s, &s->list[i]);
        if (n != i)
            s->list[n] = s->list[i];
        enter(s, n++);
    }
    s->n = n;
}

/* A row hides finer ones of its time: none is made before that is over. */
static bool is_over(stk_time last, stk_time width, stk_time now)
{
    return last > 0 && floor_to(last, width) + width <= now;
}

int stk_series_catch_up(struct stk_store *st, stk_time now, struct stk_err *err)
{
    stk_time last = 0;
    int rc = stk_store_series_last(st, 0, &last, err);

    if (rc == 0 && is_over(last, STK_SERIES_MINUTE, now))
        rc = make(st, 1, floor_to(last, STK_SERIES_MINUTE), NULL, err);
    rc = rc < 0 ? rc : stk_store_series_last(st, 1, &last, err);
    if (rc == 0 && is_over(last, STK_SERIES_QUARTER, now))
        rc = make(st, 2, floor_to(last, STK_SERIES_QUARTER), NULL, err);
    return rc;
}

void stk_series_keep(const struct stk_series *s, uint64_t bytes, stk_time ret_age[STK_SERIES_TIERS])
{
    uint64_t quarters = s->quarter_bytes ? bytes / s->quarter_bytes : UINT64_MAX;

    ret_age[0] = FINE_AGE + STK_SERIES_MINUTE;
    ret_age[1] = MINUTE_AGE + STK_SERIES_QUARTER;
    ret_age[2] = QUARTER_AGE;
    if (quarters < (uint64_t)(QUARTER_AGE / STK_SERIES_QUARTER))
        ret_age[2] = (stk_time)(quarters + 1) * STK_SERIES_QUARTER;
}
