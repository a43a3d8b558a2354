/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_yaml.c - a cluster from YAML:
 *
 *     nodes:
 *       - {count: 16, gpus: 8, gpu_type: A100, gpu_mem_gib: 80, cpus: 128, mem_gib: 1024}
 *       - {count: 4, gpus: 4, gpu_type: V100, pool: old}
 *       - {count: 2, gpus: 8, gpu_type: H200, mig: true}
 *       - {gpus: 8, resources: {nic_gbps: 400, nvme_gib: 7000}}
 *       - {racks: 100, per_rack: 32, gpus: 8, zone: a, islands: [[0, 1, 2, 3], [4, 5, 6, 7]]}
 *       - {gpus: 8, power: {idle_w: 800, gpu_w: 700, off_w: 20, boot_s: 120}}
 *
 * libfyaml keeps where each value stood, so that errors name the line. Only plain values are read:
 * aliases would let a short file grow without bound, and are refused. So is, before libfyaml sees
 * it, what a cluster file never needs and some of its versions never return from: directives and
 * bytes that are not text.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/cluster.h"
#include "sim/yaml_text.h"

struct reader {
    struct stk_cluster *c;
    const char *name;
    struct stk_err *err;
};

static int bad(const struct reader *r, struct fy_node *at, const char *what)
{
    return stk_err_set(r->err, -EINVAL, "%s:%d: %s", r->name, stk_yaml_line_of(at), what);
}

enum meaning {
    COUNT,
    GPUS,
    GPU_TYPE,
    GPU_MEM,
    GPU_SPEED,
    MIG,
    CPUS,
    MEM,
    POOL,
    DOMAIN,
    RACK,
    ZONE,
    REGION,
    RACKS,
    PER_RACK,
    ISLANDS,
    NUMA
};

static const struct key {
    const char *name;
    enum meaning meaning; /* of power: not used */
    uint32_t scale;       /* 0: a word; 1: a whole number; else what one is in our unit */
    uint32_t max;
} keys[] = {
    {"count", COUNT, 1, STK_MAX_NODES},
    {"gpus", GPUS, 1, STK_MAX_NODE_GPUS},
    {"gpu_type", GPU_TYPE, 0, 0},
    {"gpu_mem_gib", GPU_MEM, 1024, 1 << 20},
    {"gpu_speed", GPU_SPEED, 1000, 1000},
    {"mig", MIG, 0, 0},
    {"cpus", CPUS, 1000, 1 << 20},
    {"mem_gib", MEM, 1024, 1 << 20},
    {"pool", POOL, 0, 0},
    {"domain", DOMAIN, 0, 0},
    {"rack", RACK, 0, 0},
    {"zone", ZONE, 0, 0},
    {"region", REGION, 0, 0},
    {"racks", RACKS, 1, STK_MAX_NODES},
    {"per_rack", PER_RACK, 1, STK_MAX_NODES},
    {"islands", ISLANDS, 1, STK_MAX_ISLANDS},
    {"numa", NUMA, 1, STK_MAX_ISLANDS},
};
#define N_KEYS (sizeof(keys) / sizeof(*keys))

static int read_number(const struct reader *r, const struct key *k, struct fy_node *v,
                       uint32_t *ret)
{
    struct stk_field f = stk_yaml_scalar(v);
    uint64_t micro;
    char what[160];

    if (stk_field_micro(f, &micro) && micro <= (uint64_t)k->max * 1000000 &&
        (k->scale > 1 || micro % 1000000 == 0)) {
        *ret = (uint32_t)((micro * k->scale + 500000) / 1000000);
        return 0;
    }
    (void)snprintf(what, sizeof(what), "%s must be a %snumber (0 to %" PRIu32 "), got \"%s\"",
                   k->name, k->scale == 1 ? "whole " : "", k->max, stk_field_show(f).text);
    return bad(r, v, what);
}

/* Where nodes are and how their GPUs are linked. */
static void set_place(enum meaning what, struct stk_field f, uint32_t n, struct stk_node_row *row)
{
    if (what == RACKS)
        row->racks = n;
    else if (what == PER_RACK)
        row->per_rack = n;
    else if (what == ISLANDS)
        row->islands = n;
    else if (what == NUMA)
        row->numa = n;
    else
        row->place[what - DOMAIN + STK_PLACE_DOMAIN] = f;
    row->rack_domains |= what == DOMAIN && stk_field_is(f, "rack");
}

static int read_value(const struct reader *r, const struct key *k, struct fy_node *v,
                      struct stk_node_row *row)
{
    struct stk_field f = stk_yaml_scalar(v);
    uint32_t n = 0;

    if (f.len == 0) {
        char what[80];

        (void)snprintf(what, sizeof(what), "%s must have a plain value", k->name);
        return bad(r, v, what);
    }
    if (k->scale > 0 && read_number(r, k, v, &n) < 0)
        return -EINVAL;
    switch (k->meaning) {
    case COUNT:
        row->count = n;
        break;
    case GPUS:
        row->node.gpus = n;
        break;
    case GPU_TYPE:
        row->gpu_type = f.s;
        row->gpu_type_len = f.len;
        break;
    case GPU_MEM:
        row->node.gpu_mem_mib = n;
        break;
    case GPU_SPEED:
        if (n == 0)
            return bad(r, v, "gpu_speed must be at least 0.001");
        row->speed = n;
        break;
    case MIG:
        if (!stk_field_is(f, "true") && !stk_field_is(f, "false"))
            return bad(r, v, "mig must be true (its GPUs are in MIG mode) or false");
        row->mig = stk_field_is(f, "true");
        break;
    case CPUS:
        row->node.cpu_milli = n;
        break;
    case MEM:
        row->node.mem_mib = n;
        break;
    case POOL:
        row->pool = f.s;
        row->pool_len = f.len;
        break;
    case DOMAIN:
    case RACK:
    case ZONE:
    case REGION:
    case RACKS:
    case PER_RACK:
    case ISLANDS:
    case NUMA:
        set_place(k->meaning, f, n, row);
        break;
    }
    return 0;
}

/* One list of GPUs: [0, 1, 2, 3]. */
static int read_set(const struct reader *r, const struct key *k, struct fy_node *list,
                    uint64_t *ret)
{
    const struct key gpu = {k->name, k->meaning, 1, STK_MAX_NODE_GPUS - 1};
    struct fy_node *n;
    void *it = NULL;
    uint32_t i = 0;

    if (!fy_node_is_sequence(list))
        return bad(r, list, "islands and numa are a number, or lists of GPUs: [[0, 1], [2, 3]]");
    while ((n = fy_node_sequence_iterate(list, &it))) {
        if (read_number(r, &gpu, n, &i) < 0)
            return -EINVAL;
        *ret |= UINT64_C(1) << i;
    }
    return 0;
}

static int read_sets(const struct reader *r, const struct key *k, struct fy_node *lists,
                     struct stk_node_row *row)
{
    uint32_t *n = k->meaning == ISLANDS ? &row->layout.n_islands : &row->layout.n_numa;
    uint64_t *set = k->meaning == ISLANDS ? row->layout.island : row->layout.numa;
    struct fy_node *list;
    void *it = NULL;

    while ((list = fy_node_sequence_iterate(lists, &it))) {
        if (*n == STK_MAX_ISLANDS)
            return bad(r, list, "too many islands or NUMA nodes; a node has at most 32");
        set[*n] = 0;
        if (read_set(r, k, list, &set[(*n)++]) < 0)
            return -EINVAL;
    }
    return 0;
}

/* resources: {nic_gbps: 400} */
static int read_resources(const struct reader *r, struct fy_node *v, struct stk_node_row *row)
{
    static const struct key amount = {"a resource", COUNT, 1, UINT32_MAX};
    struct fy_node_pair *pair;
    struct stk_err why;
    void *it = NULL;

    if (!fy_node_is_mapping(v))
        return bad(r, v, "resources must be a mapping such as {nvme_gib: 7000}");
    while ((pair = fy_node_mapping_iterate(v, &it))) {
        struct fy_node *key = fy_node_pair_key(pair), *value = fy_node_pair_value(pair);
        struct stk_field f = stk_yaml_scalar(key);
        uint32_t i, n = 0;

        if (stk_cluster_resource(r->c, f.s, f.len, &i, &why) < 0)
            return bad(r, key ? key : v, why.text);
        if (read_number(r, &amount, value ? value : key, &n) < 0)
            return -EINVAL;
        row->node.resource[i] = n;
    }
    return 0;
}

static const struct key power_keys[] = {
    {"idle_w", COUNT, 1, 1000000},
    {"gpu_w", COUNT, 1, 100000},
    {"off_w", COUNT, 1, 1000000},
    {"boot_s", COUNT, 1, 86400},
};
#define N_POWER_KEYS (sizeof(power_keys) / sizeof(*power_keys))

static int read_power_value(const struct reader *r, struct fy_node_pair *pair,
                            struct stk_power *power)
{
    uint32_t *const into[] = {&power->idle_w, &power->gpu_w, &power->off_w, &power->boot_s};
    struct stk_field f = stk_yaml_scalar(fy_node_pair_key(pair));
    char what[160];

    for (size_t i = 0; i < N_POWER_KEYS; i++)
        if (stk_field_is(f, power_keys[i].name))
            return read_number(r, &power_keys[i],
                               fy_node_pair_value(pair) ? fy_node_pair_value(pair)
                                                        : fy_node_pair_key(pair),
                               into[i]);
    (void)snprintf(what, sizeof(what), "unknown key \"%s\"; power has idle_w, gpu_w, off_w, boot_s",
                   stk_field_show(f).text);
    return bad(r, fy_node_pair_key(pair), what);
}

static int read_power(const struct reader *r, struct fy_node *v, struct stk_power *power)
{
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = 0;

    if (!fy_node_is_mapping(v))
        return bad(r, v, "power must be a mapping such as {idle_w: 800, gpu_w: 700}");
    while (rc == 0 && (pair = fy_node_mapping_iterate(v, &it)))
        rc = read_power_value(r, pair, power);
    if (rc == 0 && power->off_w > power->idle_w)
        rc = bad(r, v, "a node draws no more when it is off (off_w) than when it is idle (idle_w)");
    return rc;
}

static int read_pair(const struct reader *r, struct fy_node_pair *pair, struct stk_node_row *row)
{
    struct fy_node *key = fy_node_pair_key(pair), *value = fy_node_pair_value(pair);
    struct stk_field f = stk_yaml_scalar(key);
    char what[256];

    if (stk_field_is(f, "resources"))
        return read_resources(r, value ? value : key, row);
    if (value && stk_field_is(f, "power"))
        return read_power(r, value, &row->node.power);
    for (size_t i = 0; i < N_KEYS; i++)
        if (stk_field_is(f, keys[i].name)) {
            if ((keys[i].meaning == ISLANDS || keys[i].meaning == NUMA) && value &&
                fy_node_is_sequence(value) && !fy_node_is_alias(value))
                return read_sets(r, &keys[i], value, row);
            return read_value(r, &keys[i], value ? value : key, row);
        }
    (void)snprintf(
        what, sizeof(what),
        "unknown key \"%s\"; a node has count, gpus, gpu_type, gpu_mem_gib, gpu_speed, mig, cpus, "
        "mem_gib, pool, rack, zone, region, domain, racks, per_rack, islands, numa, "
        "resources, power",
        stk_field_show(f).text);
    return bad(r, key, what);
}

/* count, or racks and per_rack. */
static int count_nodes(const struct reader *r, struct fy_node *n, struct stk_node_row *row,
                       bool counted)
{
    if (!row->racks && !row->per_rack) {
        row->count = counted ? row->count : 1;
        return 0;
    }
    if (!row->racks || !row->per_rack || counted)
        return bad(r, n, "racks and per_rack go together, in place of count");
    row->count = (uint64_t)row->racks * row->per_rack;
    return 0;
}

static int read_node(const struct reader *r, struct fy_node *n)
{
    struct stk_node_row row = {.count = 0};
    struct fy_node_pair *pair;
    struct stk_err why;
    void *it = NULL;
    bool gpus = false, counted = false;
    int rc = 0;

    if (!fy_node_is_mapping(n))
        return bad(r, n, "each of nodes must be a mapping such as {count: 16, gpus: 8}");
    while (rc == 0 && (pair = fy_node_mapping_iterate(n, &it))) {
        rc = read_pair(r, pair, &row);
        gpus |= stk_field_is(stk_yaml_scalar(fy_node_pair_key(pair)), "gpus");
        counted |= stk_field_is(stk_yaml_scalar(fy_node_pair_key(pair)), "count");
    }
    if (rc < 0)
        return rc;
    if (!gpus)
        return bad(r, n, "a node must say how many gpus it has (0 to 64)");
    rc = count_nodes(r, n, &row, counted);
    if (rc < 0)
        return rc;
    return stk_cluster_add(r->c, &row, &why) < 0 ? bad(r, n, why.text) : 0;
}

static int read_document(const struct reader *r, struct fy_node *root)
{
    struct fy_node *nodes = NULL, *n;
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = 0;

    if (!root || !fy_node_is_mapping(root))
        return bad(r, root, "expected \"nodes:\" and a list of nodes");
    while ((pair = fy_node_mapping_iterate(root, &it))) {
        if (!stk_field_is(stk_yaml_scalar(fy_node_pair_key(pair)), "nodes"))
            return bad(r, fy_node_pair_key(pair), "unknown key; expected only \"nodes\"");
        nodes = fy_node_pair_value(pair);
    }
    if (!nodes || !fy_node_is_sequence(nodes))
        return bad(r, root, "\"nodes\" must be a list");
    it = NULL;
    while (rc == 0 && (n = fy_node_sequence_iterate(nodes, &it)))
        rc = read_node(r, n);
    return rc;
}

int stk_cluster_parse_yaml(struct stk_cluster *c, const char *name, const char *data, size_t len,
                           struct stk_err *err)
{
    struct stk_yaml_doc d;
    struct reader r = {c, name, err};
    int rc = stk_yaml_text_check(&r.name, data, len, err);

    if (rc < 0)
        return rc;
    rc = stk_yaml_open(&d, r.name, data, len, err);
    if (rc == 0)
        rc = read_document(&r, d.doc ? fy_document_root(d.doc) : NULL);
    stk_yaml_close(&d);
    return rc;
}
