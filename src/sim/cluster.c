/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - building a cluster, from words or from a file in one of the formats of cluster_csv.c
 * and cluster_yaml.c, and folding it into aggregate nodes. See cluster.h. */
#include "sim/cluster.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/mig.h"
#include "sim/slurp.h"
#include "sim/trace_lines.h"

static int name_of(struct stk_names *names, uint32_t max, const char *what, struct stk_field f,
                   uint32_t *ret, struct stk_err *err)
{
    int64_t number;

    if (!stk_field_is_name(f))
        return stk_err_set(err, -EINVAL, "the name of a %s must be 1 to %u printable characters",
                           what, STK_TRACE_MAX_NAME_LEN);
    number = stk_names_add(names, f.s, f.len, max);
    if (number == -E2BIG)
        return stk_err_set(err, -E2BIG, "more than %" PRIu32 " %ss", max, what);
    if (number < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    *ret = (uint32_t)number;
    return 0;
}

/* The text, or 'otherwise' when there is none. */
static struct stk_field text_or(const char *s, size_t len, const char *otherwise)
{
    if (len == 0) {
        s = otherwise;
        len = strlen(otherwise);
    }
    return (struct stk_field){s, len > UINT32_MAX ? UINT32_MAX : (uint32_t)len};
}

static int reserve(struct stk_cluster *c, uint64_t more, struct stk_err *err)
{
    uint64_t need = c->n_nodes + more, cap = c->cap_nodes ? c->cap_nodes : 64;
    struct stk_node_spec *nodes;

    if (more > STK_MAX_NODES || need > STK_MAX_NODES)
        return stk_err_set(err, -E2BIG, "more than %d nodes", STK_MAX_NODES);
    if (need <= c->cap_nodes)
        return 0;
    while (cap < need)
        cap *= 2;
    nodes = realloc(c->nodes, cap * sizeof(*nodes));
    if (!nodes)
        return stk_err_set(err, -ENOMEM, "out of memory");
    c->nodes = nodes;
    c->cap_nodes = (uint32_t)cap;
    return 0;
}

/* The type of GPUs in MIG mode, in 'buf'. */
static int mig_type(struct stk_field *type, struct stk_node_spec *node, char *buf, size_t size,
                    struct stk_err *err)
{
    node->mig = stk_mig_model(type->s, type->len, node->gpu_mem_mib);
    if (!node->mig)
        return stk_err_set(err, -EINVAL,
                           "mig: no model of GPU with MIG is known as \"%s\" with %s memory",
                           stk_field_show(*type).text, node->gpu_mem_mib ? "that" : "unknown");
    type->len = (uint32_t)snprintf(buf, size, "%.*s" STK_GPU_TYPE_MIG "%s", (int)type->len, type->s,
                                   stk_mig_model_name(node->mig));
    type->s = buf;
    return 0;
}

int stk_cluster_resource(struct stk_cluster *c, const char *name, size_t len, uint32_t *ret,
                         struct stk_err *err)
{
    struct stk_field f = {name, len > UINT32_MAX ? UINT32_MAX : (uint32_t)len};

    if (!stk_resource_name_ok(name, len))
        return stk_err_set(err, -EINVAL,
                           "the name of a resource must be 1 to %d letters, digits, _ - or .",
                           STK_MAX_RESOURCE_NAME - 1);
    return name_of(&c->resources, STK_MAX_RESOURCES, "resource", f, ret, err);
}

static int set_speed(struct stk_cluster *c, uint32_t type, uint32_t milli, struct stk_err *err)
{
    if (c->type_speed[type] && c->type_speed[type] != milli)
        return stk_err_set(err, -EINVAL, "GPUs of type %.60s have gpu_speed %g elsewhere, %g here",
                           stk_names_get(&c->gpu_types, type), c->type_speed[type] / 1000.0,
                           milli / 1000.0);
    c->type_speed[type] = milli;
    return 0;
}

int stk_cluster_add(struct stk_cluster *c, const struct stk_node_row *row, struct stk_err *err)
{
    const char *no_type = row->node.gpus > 0 ? STK_GPU_TYPE_DEFAULT : STK_GPU_TYPE_NONE;
    struct stk_field pool = text_or(row->pool, row->pool_len, STK_POOL_DEFAULT);
    struct stk_field type = text_or(row->gpu_type, row->gpu_type_len, no_type);
    char mig[STK_TRACE_MAX_NAME_LEN + 32];
    struct stk_node_spec node = row->node;
    int rc;

    if (row->count == 0)
        return stk_err_set(err, -EINVAL, "there must be at least one node");
    if (node.gpus > STK_MAX_NODE_GPUS)
        return stk_err_set(err, -EINVAL, "a node has 0 to %d GPUs, got %" PRIu32, STK_MAX_NODE_GPUS,
                           node.gpus);
    rc = reserve(c, row->count, err);
    if (rc == 0 && row->mig && type.len <= STK_TRACE_MAX_NAME_LEN)
        rc = mig_type(&type, &node, mig, sizeof(mig), err);
    if (rc == 0)
        rc = name_of(&c->pools, STK_MAX_POOLS, "pool", pool, &node.pool.i, err);
    if (rc == 0)
        rc = name_of(&c->gpu_types, STK_MAX_GPU_TYPES, "GPU type", type, &node.gpu_type, err);
    if (rc == 0 && row->speed)
        rc = set_speed(c, node.gpu_type, row->speed, err);
    for (uint64_t i = 0; rc == 0 && i < row->count; i++) {
        rc = stk_cluster_place(c, row, i, &node, err);
        if (rc == 0)
            c->nodes[c->n_nodes++] = node;
    }
    return rc;
}

/* Digits at *p; moves past them. */
static bool number_at(const char **p, uint64_t *ret)
{
    size_t n = strspn(*p, "0123456789");
    struct stk_field f = {*p, (uint32_t)(n < 20 ? n : 20)};

    *p += n;
    return stk_field_whole(f, ret);
}

static bool looks_like_words(const char *spec)
{
    size_t nodes = strspn(spec, "0123456789"), gpus;

    if (nodes == 0 || spec[nodes] != 'x')
        return false;
    spec += nodes + 1;
    gpus = strspn(spec, "0123456789");
    return spec[gpus] == '\0' || spec[gpus] == '+' || spec[gpus] == ':';
}

/* One NODESxGPUS[:TYPE] at *p; moves past it. */
static int parse_word(struct stk_cluster *c, const char **p, struct stk_err *err)
{
    const char *start = *p;
    struct stk_node_row row = {.count = 0};
    uint64_t gpus = 0;
    bool ok = number_at(p, &row.count) && *(*p)++ == 'x' && number_at(p, &gpus);

    if (ok && **p == ':') {
        row.gpu_type = ++*p;
        row.gpu_type_len = strcspn(*p, "+");
        *p += row.gpu_type_len;
        ok = row.gpu_type_len > 0;
    }
    if (!ok || (**p != '\0' && **p != '+'))
        return stk_err_set(err, -EINVAL,
                           "expected NODESxGPUS[:TYPE], for example 16x8:A100, got \"%.40s\"",
                           start);
    row.node.gpus = gpus > UINT32_MAX ? UINT32_MAX : (uint32_t)gpus;
    return stk_cluster_add(c, &row, err);
}

static int parse_words(struct stk_cluster *c, const char *spec, struct stk_err *err)
{
    int rc = parse_word(c, &spec, err);

    while (rc == 0 && *spec == '+') {
        spec++;
        rc = parse_word(c, &spec, err);
    }
    return rc;
}

/* A CSV begins with a header: commas, and nothing of YAML's. */
static bool is_csv(const char *data, size_t len)
{
    struct stk_trace_lines in;
    bool comma = false;

    stk_lines_init(&in, "", data, len);
    if (!stk_lines_next(&in))
        return false;
    for (uint32_t i = 0; i < in.text.len; i++) {
        if (strchr(":{[-", in.text.s[i]))
            return false;
        comma |= in.text.s[i] == ',';
    }
    return comma || stk_field_is(in.text, "gpus");
}

int stk_cluster_parse_text(struct stk_cluster *c, const char *name, const char *data, size_t len,
                           struct stk_err *err)
{
    int rc = is_csv(data, len) ? stk_cluster_parse_csv(c, name, data, len, err)
                               : stk_cluster_parse_yaml(c, name, data, len, err);

    if (rc == 0 && c->n_nodes == 0)
        rc = stk_err_set(err, -EINVAL, "%s: there are no nodes in it", name);
    if (rc < 0)
        stk_cluster_done(c);
    return rc;
}

int stk_cluster_parse(struct stk_cluster *c, const char *spec, struct stk_err *err)
{
    struct stk_err why;
    char *data = NULL;
    size_t len = 0;
    int rc;

    if (looks_like_words(spec)) {
        rc = parse_words(c, spec, &why);
        if (rc < 0) {
            (void)stk_err_set(err, rc, "cluster \"%.60s\": %s", spec, why.text);
            stk_cluster_done(c);
        }
        return rc;
    }
    rc = stk_slurp(spec, &data, &len, &why);
    if (rc < 0)
        return stk_err_set(err, rc, "a cluster is NODESxGPUS[:TYPE] or a YAML or CSV file; %s",
                           why.text);
    rc = stk_cluster_parse_text(c, spec, data, len, err);
    free(data);
    return rc;
}

/* Sum of two sizes of which 0 means no limit. */
static uint32_t add_limits(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* What both draw together, on all the time. */
static void fold_power(struct stk_node_spec *into, const struct stk_node_spec *n)
{
    uint64_t gpus = (uint64_t)into->gpus + n->gpus;

    into->power.idle_w = into->power.idle_w > UINT32_MAX - n->power.idle_w
                             ? UINT32_MAX
                             : into->power.idle_w + n->power.idle_w;
    if (gpus > 0) /* on average */
        into->power.gpu_w = (uint32_t)(((uint64_t)into->power.gpu_w * into->gpus +
                                        (uint64_t)n->power.gpu_w * n->gpus) /
                                       gpus);
}

static void fold(struct stk_node_spec *into, const struct stk_node_spec *n)
{
    fold_power(into, n);
    into->gpus += n->gpus; /* cannot overflow: both counts are bounded */
    into->cpu_milli = add_limits(into->cpu_milli, n->cpu_milli);
    into->mem_mib = add_limits(into->mem_mib, n->mem_mib);
    if (n->gpu_mem_mib < into->gpu_mem_mib)
        into->gpu_mem_mib = n->gpu_mem_mib;
    for (uint32_t i = 0; i < STK_MAX_RESOURCES; i++)
        into->resource[i] = n->resource[i] > UINT32_MAX - into->resource[i]
                                ? UINT32_MAX
                                : into->resource[i] + n->resource[i];
}

int stk_cluster_aggregate(struct stk_cluster *c, struct stk_err *err)
{
    /* (pool, type) -> its node + 1; small, as both are bounded */
    uint32_t *place = calloc((size_t)c->pools.n * STK_MAX_GPU_TYPES + 1, sizeof(*place));
    uint32_t n = 0;

    if (!place)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const struct stk_node_spec *node = &c->nodes[i];
        uint32_t *at = &place[(size_t)node->pool.i * STK_MAX_GPU_TYPES + node->gpu_type];

        if (*at > 0) {
            fold(&c->nodes[*at - 1], node);
            continue;
        }
        c->nodes[n] = *node; /* n <= i: nothing is overwritten before it is read */
        c->nodes[n].aggregate = true;
        c->nodes[n].mig = 0; /* an instance is a whole GPU there */
        c->nodes[n].domain = c->nodes[n].rack = c->nodes[n].zone = c->nodes[n].region = 0;
        c->nodes[n].layout = 0;
        *at = ++n;
    }
    c->n_nodes = n;
    free(place);
    return 0;
}

void stk_cluster_done(struct stk_cluster *c)
{
    free(c->nodes);
    stk_cluster_places_done(c);
    stk_names_done(&c->pools);
    stk_names_done(&c->gpu_types);
    stk_names_done(&c->resources);
    *c = (struct stk_cluster){0};
}
