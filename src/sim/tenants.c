/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tenants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/slurp.h"
#include "sim/yaml_text.h"

#define MAX_LIMIT 10000000 /* GPUs */

struct reader {
    struct stk_tenants *t;
    const struct stk_cluster *c;
    const char *name;
    struct stk_err *err;
};

static int bad(const struct reader *r, struct fy_node *at, const char *what)
{
    return stk_err_set(r->err, -EINVAL, "%s:%d: %s", r->name, stk_yaml_line_of(at), what);
}

/* A new row; its number, or -ENOMEM. */
static int64_t add_row(struct stk_tenants *t, uint32_t parent)
{
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? 2 * t->cap : 16;
        struct stk_tenant_spec *rows = realloc(t->rows, cap * sizeof(*rows));

        if (!rows)
            return -ENOMEM;
        t->rows = rows;
        t->cap = cap;
    }
    stk_tenant_spec_init(&t->rows[t->n], NULL, parent);
    return t->n++;
}

/* A limit or a guarantee. */
static int read_gpus(const struct reader *r, const char *name, struct fy_node *v, uint64_t *ret)
{
    struct stk_field f = stk_yaml_scalar(v);
    uint64_t micro;
    char what[160];

    if (stk_field_micro(f, &micro) && micro <= (uint64_t)MAX_LIMIT * 1000000 && micro % 1000 == 0) {
        *ret = micro / 1000;
        return 0;
    }
    (void)snprintf(what, sizeof(what),
                   "a %s is a number of GPUs (0 to %d, in thousandths), got \"%s\"", name,
                   MAX_LIMIT, stk_field_show(f).text);
    return bad(r, v, what);
}

static int read_weight(const struct reader *r, struct fy_node *v, uint32_t *ret)
{
    struct stk_field f = stk_yaml_scalar(v);
    uint64_t micro;
    char what[160];

    if (stk_field_micro(f, &micro) && micro <= (uint64_t)STK_MAX_WEIGHT * 1000 &&
        micro % 1000 == 0) {
        *ret = (uint32_t)(micro / 1000);
        return 0;
    }
    (void)snprintf(what, sizeof(what), "a weight is 0 to %d, in thousandths, got \"%s\"",
                   STK_MAX_WEIGHT / STK_WEIGHT, stk_field_show(f).text);
    return bad(r, v, what);
}

/* The same of single GPU types. */
static int read_by_type(const struct reader *r, const char *name, struct fy_node *v,
                        uint64_t ret[STK_MAX_GPU_TYPES])
{
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = 0;

    if (!fy_node_is_mapping(v)) {
        char what[80];

        (void)snprintf(what, sizeof(what), "%ss must be a mapping such as {A100: 16}", name);
        return bad(r, v, what);
    }
    while (rc == 0 && (pair = fy_node_mapping_iterate(v, &it))) {
        struct fy_node *key = fy_node_pair_key(pair);
        struct stk_field f = stk_yaml_scalar(key);
        int64_t type = stk_names_find(&r->c->gpu_types, f.s, f.len);
        char what[160];

        if (type < 0) {
            (void)snprintf(what, sizeof(what), "the cluster has no GPUs of type \"%s\"",
                           stk_field_show(f).text);
            return bad(r, key, what);
        }
        v = fy_node_pair_value(pair);
        rc = v ? read_gpus(r, name, v, &ret[type]) : bad(r, key, "this GPU type has no value");
    }
    return rc;
}

/* The values of a tenant, found by their keys. */
struct fields {
    struct fy_node *name, *limit, *limits, *guarantee, *guarantees, *weight, *tenants;
};

#define N_KEYS 7

static int find_fields(const struct reader *r, struct fy_node *n, struct fields *f)
{
    const struct {
        const char *name;
        struct fy_node **into;
    } keys[N_KEYS] = {
        {"name", &f->name},           {"limit", &f->limit},           {"limits", &f->limits},
        {"guarantee", &f->guarantee}, {"guarantees", &f->guarantees}, {"weight", &f->weight},
        {"tenants", &f->tenants}};
    struct fy_node_pair *pair;
    void *it = NULL;

    if (!fy_node_is_mapping(n))
        return bad(r, n, "each of tenants must be a mapping such as {name: vision, limit: 8}");
    while ((pair = fy_node_mapping_iterate(n, &it))) {
        struct stk_field k = stk_yaml_scalar(fy_node_pair_key(pair));
        char what[160];
        size_t i = 0;

        while (i < N_KEYS && !stk_field_is(k, keys[i].name))
            i++;
        if (i < N_KEYS && fy_node_pair_value(pair)) {
            *keys[i].into = fy_node_pair_value(pair);
            continue;
        }
        (void)snprintf(what, sizeof(what),
                       i < N_KEYS ? "%s has no value"
                                  : "unknown key \"%s\"; a tenant has name, limit, limits, "
                                    "guarantee, guarantees, weight, tenants",
                       stk_field_show(k).text);
        return bad(r, fy_node_pair_key(pair), what);
    }
    return 0;
}

/* Its row, which is new. */
static int name_row(const struct reader *r, struct fy_node *n, const struct fields *f,
                    uint32_t parent, uint32_t *ret)
{
    struct stk_field name = stk_yaml_scalar(f->name);
    bool is_default = stk_field_is(name, STK_TENANT_DEFAULT);
    char what[160];
    int64_t row;

    if (name.len == 0 || name.len > STK_TRACE_MAX_NAME_LEN)
        return bad(r, f->name ? f->name : n, "a tenant needs a name of at most 255 bytes");
    if (is_default && (parent != STK_NONE || f->tenants))
        return bad(r, f->name,
                   "default is for all tenants that are not in the file: it is at the top, and "
                   "none are below it");
    if (stk_names_find(&r->t->names, name.s, name.len) >= (is_default ? 1 : 0)) {
        (void)snprintf(what, sizeof(what), "there are two tenants \"%s\"",
                       stk_field_show(name).text);
        return bad(r, f->name, what);
    }
    if (is_default) {
        *ret = 0;
        return 0;
    }
    if (r->t->n == STK_MAX_TENANTS)
        return bad(r, f->name, "there are more than 65535 tenants");
    row = stk_names_add(&r->t->names, name.s, name.len, STK_MAX_TENANTS);
    if (row < 0 || add_row(r->t, parent) < 0)
        return stk_err_set(r->err, -ENOMEM, "out of memory");
    *ret = (uint32_t)row;
    return 0;
}

static int read_numbers(const struct reader *r, const struct fields *f, struct stk_tenant_spec *t)
{
    int rc = 0;

    if (f->limit)
        rc = read_gpus(r, "limit", f->limit, &t->limit);
    if (rc == 0 && f->limits)
        rc = read_by_type(r, "limit", f->limits, t->type_limit);
    if (rc == 0 && f->guarantee)
        rc = read_gpus(r, "guarantee", f->guarantee, &t->guarantee);
    if (rc == 0 && f->guarantees)
        rc = read_by_type(r, "guarantee", f->guarantees, t->type_guarantee);
    if (rc == 0 && f->weight)
        rc = read_weight(r, f->weight, &t->weight);
    return rc;
}

static int read_list(const struct reader *r, struct fy_node *list, uint32_t parent, uint32_t depth);

// NOLINTNEXTLINE(misc-no-recursion): at most STK_MAX_TENANT_DEPTH deep
static int read_tenant(const struct reader *r, struct fy_node *n, uint32_t parent, uint32_t depth)
{
    struct fields f = {0};
    uint32_t row = 0;
    int rc = find_fields(r, n, &f);

    rc = rc < 0 ? rc : name_row(r, n, &f, parent, &row);
    rc = rc < 0 ? rc : read_numbers(r, &f, &r->t->rows[row]);
    if (rc == 0 && f.tenants)
        rc = read_list(r, f.tenants, row, depth + 1);
    return rc;
}

// NOLINTNEXTLINE(misc-no-recursion)
static int read_list(const struct reader *r, struct fy_node *list, uint32_t parent, uint32_t depth)
{
    struct fy_node *n;
    void *it = NULL;
    int rc = 0;

    if (!fy_node_is_sequence(list) || fy_node_is_alias(list))
        return bad(r, list, "\"tenants\" must be a list");
    if (depth > STK_MAX_TENANT_DEPTH)
        return bad(r, list, "there are more than 8 levels of tenants");
    while (rc == 0 && (n = fy_node_sequence_iterate(list, &it)))
        rc = read_tenant(r, n, parent, depth);
    return rc;
}

static int read_document(const struct reader *r, struct fy_node *root)
{
    struct fy_node *list = NULL;
    struct fy_node_pair *pair;
    void *it = NULL;

    if (!root || !fy_node_is_mapping(root))
        return bad(r, root, "expected \"tenants:\" and a list of tenants");
    while ((pair = fy_node_mapping_iterate(root, &it))) {
        if (!stk_field_is(stk_yaml_scalar(fy_node_pair_key(pair)), "tenants"))
            return bad(r, fy_node_pair_key(pair), "unknown key; expected only \"tenants\"");
        list = fy_node_pair_value(pair);
    }
    return list ? read_list(r, list, STK_NONE, 1) : bad(r, root, "\"tenants\" must be a list");
}

int stk_tenants_parse(struct stk_tenants *t, const char *name, const char *data, size_t len,
                      const struct stk_cluster *c, struct stk_err *err)
{
    struct reader r = {t, c, name, err};
    struct stk_yaml_doc d;
    int rc = stk_yaml_text_check(&r.name, data, len, err);

    if (rc < 0)
        return rc;
    if (stk_names_add(&t->names, STK_TENANT_DEFAULT, strlen(STK_TENANT_DEFAULT), 1) < 0 ||
        add_row(t, STK_NONE) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = stk_yaml_open(&d, r.name, data, len, err);
    if (rc == 0)
        rc = read_document(&r, d.doc ? fy_document_root(d.doc) : NULL);
    stk_yaml_close(&d);
    for (uint32_t i = 0; i < t->n; i++)
        t->rows[i].name = stk_names_get(&t->names, i);
    return rc;
}

int stk_tenants_read(struct stk_tenants *t, const char *path, const struct stk_cluster *c,
                     struct stk_err *err)
{
    char *data = NULL;
    size_t len = 0;
    int rc = stk_slurp(path, &data, &len, err);

    rc = rc < 0 ? rc : stk_tenants_parse(t, path, data, len, c, err);
    free(data);
    return rc;
}

static bool has_below(const struct stk_tenants *t, uint32_t row)
{
    for (uint32_t i = row + 1; i < t->n; i++)
        if (t->rows[i].parent == row)
            return true;
    return false;
}

int stk_tenants_match(struct stk_tenants *t, const struct stk_trace *trace, struct stk_err *err)
{
    t->of_trace = calloc(trace->tenants.n + 1u, sizeof(*t->of_trace));
    if (!t->of_trace)
        return stk_err_set(err, -ENOMEM, "out of memory for %u tenants", trace->tenants.n);
    for (uint32_t i = 0; i < trace->tenants.n; i++) {
        const char *name = stk_names_get(&trace->tenants, i);
        int64_t row = stk_names_find(&t->names, name, strlen(name));

        if (row > 0 && has_below(t, (uint32_t)row))
            return stk_err_set(err, -EINVAL,
                               "the trace has jobs of tenant \"%.60s\", which has others below it: "
                               "put it among those, under a name of its own",
                               name);
        t->of_trace[i] = row > 0 ? (uint32_t)row : 0;
    }
    return 0;
}

uint32_t stk_tenants_of(const struct stk_tenants *t, const struct stk_trace_job *j)
{
    return t ? t->of_trace[j->tenant] : j->tenant;
}

void stk_tenants_free(struct stk_tenants *t)
{
    free(t->rows);
    free(t->of_trace);
    stk_names_done(&t->names);
    *t = (struct stk_tenants){0};
}
