/* SPDX-License-Identifier: Apache-2.0 */
/* speeds.c - see speeds.h. The names are gathered first, then the numbers go into plain arrays. */
#include "sim/speeds.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/cluster.h"
#include "sim/slurp.h"
#include "sim/trace_lines.h"

#define SPREAD "_unconsolidated"
#define ALONE "null"
#define MAX_ROWS 4096u /* the table of pairs is their square */

static bool is_spread(const char *type, size_t *ret_len)
{
    size_t len = strlen(type), tail = sizeof(SPREAD) - 1;
    bool spread = len > tail && strcmp(type + len - tail, SPREAD) == 0;

    *ret_len = spread ? len - tail : len;
    return spread;
}

static int take_names(struct stk_speed_table *t, json_t *root)
{
    const char *type, *kind;
    json_t *kinds, *v;
    int64_t rc = 0;
    size_t len;

    json_object_foreach(root, type, kinds)
    {
        (void)is_spread(type, &len);
        if ((rc = stk_names_add(&t->types, type, len, STK_MAX_GPU_TYPES)) < 0)
            return (int)rc;
        json_object_foreach(kinds, kind, v)
        {
            if ((rc = stk_names_add(&t->rows, kind, strlen(kind), MAX_ROWS)) < 0)
                return (int)rc;
        }
    }
    return 0;
}

static int make_arrays(struct stk_speed_table *t, uint32_t rows, uint32_t types)
{
    size_t n = (size_t)rows * types, pairs = n * rows;

    t->alone = calloc(n * 2 + 1, sizeof(*t->alone));
    t->beside = malloc((pairs + 1) * sizeof(*t->beside));
    if (!t->alone || !t->beside)
        return -ENOMEM;
    for (size_t i = 0; i < pairs; i++)
        t->beside[i] = -1;
    t->s = (struct stk_speeds){rows, types, t->alone, t->beside};
    return 0;
}

/* What the job at 'row' does alone and beside others on one type. */
static bool take_row(struct stk_speed_table *t, uint32_t row, uint32_t type, bool spread,
                     json_t *row_json)
{
    const char *other;
    json_t *v;

    json_object_foreach(row_json, other, v)
    {
        bool alone = strcmp(other, ALONE) == 0;
        int64_t o = alone ? 0 : stk_speed_table_row(t, other);
        double speed = json_number_value(alone ? v : json_array_get(v, 0));

        if (!json_is_number(alone ? v : json_array_get(v, 0)) || !(speed >= 0) || !isfinite(speed))
            return false;
        if (alone)
            t->alone[((size_t)row * t->s.types + type) * 2 + spread] = speed;
        else if (!spread && o >= 0)
            t->beside[((size_t)row * t->s.rows + (size_t)o) * t->s.types + type] = speed;
    }
    return true;
}

static int take_numbers(struct stk_speed_table *t, json_t *root, const char *path,
                        struct stk_err *err)
{
    const char *type, *kind;
    json_t *kinds, *v;
    size_t len;

    for (int spread = 0; spread < 2; spread++)
        json_object_foreach(root, type, kinds)
        {
            if (is_spread(type, &len) != (spread == 1))
                continue;
            json_object_foreach(kinds, kind, v)
            {
                if (!take_row(t, (uint32_t)stk_speed_table_row(t, kind),
                              (uint32_t)stk_names_find(&t->types, type, len), spread, v))
                    return stk_err_set(err, -EINVAL,
                                       "%.80s: \"%.40s\", \"%.60s\": expected steps per second",
                                       path, type, kind);
            }
        }
    for (size_t i = 0; i < (size_t)t->s.rows * t->s.types; i++)
        if (t->alone[i * 2 + 1] == 0) /* not measured */
            t->alone[i * 2 + 1] = t->alone[i * 2];
    return 0;
}

static int take_table(struct stk_speed_table *t, json_t *root, const char *path,
                      struct stk_err *err)
{
    int rc = take_names(t, root);

    rc = rc < 0 ? rc : make_arrays(t, t->rows.n, t->types.n);
    if (rc < 0) {
        (void)stk_err_set(err, rc,
                          rc == -E2BIG ? "%.80s: more than %u kinds of jobs or %d GPU types"
                                       : "%.80s: out of memory",
                          path, MAX_ROWS, STK_MAX_GPU_TYPES);
        return rc;
    }
    return take_numbers(t, root, path, err);
}

int stk_speed_table_read(const char *path, struct stk_speed_table **ret, struct stk_err *err)
{
    struct stk_speed_table *t = calloc(1, sizeof(*t));
    json_error_t where = {0};
    json_t *root = NULL;
    char *text = NULL;
    size_t len = 0;
    int rc;

    if (!t)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = stk_slurp(path, &text, &len, err);
    if (rc == 0) {
        root = json_loadb(text, len, 0, &where);
        rc = json_is_object(root)
                 ? take_table(t, root, path, err)
                 : stk_err_set(err, -EINVAL, "%.100s:%d: expected a JSON object: %.80s", path,
                               where.line > 0 ? where.line : 1, where.text);
    }
    json_decref(root);
    free(text);
    if (rc < 0)
        stk_speed_table_free(t);
    else
        *ret = t;
    return rc;
}

/* The path given, or the file that lies beside the trace; NULL: neither, or out of memory. */
static char *table_path(const struct stk_trace_lines *in)
{
    const char *slash = in->path ? strrchr(in->path, '/') : NULL;
    size_t dir = slash ? (size_t)(slash - in->path) + 1 : 0;
    char *path;

    if (in->throughputs)
        return strdup(in->throughputs);
    if (!in->path)
        return NULL;
    path = malloc(dir + sizeof(STK_THROUGHPUTS));
    if (path) {
        memcpy(path, in->path, dir);
        memcpy(path + dir, STK_THROUGHPUTS, sizeof(STK_THROUGHPUTS));
    }
    return path;
}

int stk_speed_table_for(struct stk_trace *t, const struct stk_trace_lines *in, const char *what,
                        struct stk_err *err)
{
    char *path = t->speeds ? NULL : table_path(in);
    struct stk_err why;
    int rc;

    if (t->speeds)
        return 0;
    if (!path)
        return stk_err_set(err, -EINVAL,
                           "%s: %s counts steps; pass the throughputs file (" STK_THROUGHPUTS
                           ") that turns them into time",
                           in->name, what);
    rc = stk_speed_table_read(path, &t->speeds, &why);
    if (rc == -EINVAL)
        (void)stk_err_set(err, rc, "%.250s", why.text);
    else if (rc < 0)
        (void)stk_err_set(err, rc,
                          "%s: %s counts steps; put " STK_THROUGHPUTS
                          " beside it or pass the throughputs file (%.80s)",
                          in->name, what, why.text);
    free(path);
    return rc;
}

void stk_speed_table_done(struct stk_speed_table *t)
{
    stk_names_done(&t->rows);
    stk_names_done(&t->types);
    free(t->alone);
    free(t->beside);
    *t = (struct stk_speed_table){0};
}

void stk_speed_table_free(struct stk_speed_table *t)
{
    if (t)
        stk_speed_table_done(t);
    free(t);
}

int64_t stk_speed_table_row(const struct stk_speed_table *t, const char *name)
{
    return stk_names_find(&t->rows, name, strlen(name));
}

static int64_t column(const struct stk_speed_table *t, const char *type)
{
    for (uint32_t i = 0; i < t->types.n; i++)
        if (strcasecmp(stk_names_get(&t->types, i), type) == 0)
            return i;
    return -ENOENT;
}

static void copy_column(const struct stk_speeds *from, uint32_t a, bool spread,
                        struct stk_speed_table *to, uint32_t b)
{
    for (size_t row = 0; row < from->rows; row++) {
        for (size_t several = 0; several < 2; several++)
            to->alone[(row * to->s.types + b) * 2 + several] =
                stk_speed_alone(from, (uint32_t)row, a, spread && several);
        for (size_t o = 0; o < from->rows; o++)
            to->beside[(row * from->rows + o) * to->s.types + b] =
                from->beside[(row * from->rows + o) * from->types + a];
    }
}

int stk_speed_table_fit(const struct stk_speed_table *t, const struct stk_cluster *c, bool spread,
                        struct stk_speed_table *ret, struct stk_err *err)
{
    struct stk_speed_table f = {0};

    for (uint32_t i = 0; i < c->gpu_types.n; i++)
        if (column(t, stk_names_get(&c->gpu_types, i)) < 0) {
            *ret = f;
            return 0;
        }
    if (make_arrays(&f, t->s.rows, c->gpu_types.n) < 0) {
        stk_speed_table_done(&f);
        return stk_err_set(err, -ENOMEM, "out of memory for speeds");
    }
    for (uint32_t i = 0; i < c->gpu_types.n; i++)
        copy_column(&t->s, (uint32_t)column(t, stk_names_get(&c->gpu_types, i)), spread, &f, i);
    *ret = f;
    return 0;
}
