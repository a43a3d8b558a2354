/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_csv.c - nodes, and their division into pools, from CSV files; see cluster.h.
 *
 * One table of columns serves both headers: a column is known by its name and says what its number
 * means. Names of nodes are read over: the scheduler knows nodes by number.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"
#include "sim/slurp.h"
#include "sim/trace_lines.h"

enum meaning { NODE_NAME, COUNT, GPUS, GPU_TYPE, GPU_MEM, GPU_SPEED, CPUS, MEM, POOL };

static const struct column {
    const char *name, *unit;
    enum meaning meaning;
    uint32_t scale; /* thousandths of a CPU or MiB that one is; fractions allowed when over 1 */
} columns[] = {
    {"name", NULL, NODE_NAME, 0},  {"sn", NULL, NODE_NAME, 0},
    {"count", "nodes", COUNT, 1},  {"gpus", "GPUs", GPUS, 1},
    {"gpu", "GPUs", GPUS, 1},      {"gpu_type", NULL, GPU_TYPE, 0},
    {"model", NULL, GPU_TYPE, 0},  {"gpu_mem_gib", "GiB", GPU_MEM, 1024},
    {"cpus", "CPUs", CPUS, 1000},  {"cpu_milli", "CPU thousandths", CPUS, 1},
    {"mem_gib", "GiB", MEM, 1024}, {"memory_mib", "MiB", MEM, 1},
    {"pool", NULL, POOL, 0},       {"gpu_speed", "speed", GPU_SPEED, 1000},
};
#define N_COLUMNS (sizeof(columns) / sizeof(*columns))
#define MAX_FIELDS 16u
#define MAX_SPEED 1000000u /* thousandths */

struct reader {
    struct stk_cluster *c;
    const struct column *column[MAX_FIELDS]; /* by place in the line */
    uint32_t n_fields;
};

static const struct column *find_column(struct stk_field f)
{
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (stk_field_is(f, columns[i].name))
            return &columns[i];
    return NULL;
}

static bool has(const struct reader *r, uint32_t n, enum meaning m)
{
    for (uint32_t i = 0; i < n; i++)
        if (r->column[i]->meaning == m)
            return true;
    return false;
}

static int read_header(struct reader *r, struct stk_trace_lines *in)
{
    struct stk_field f[MAX_FIELDS];

    if (!stk_lines_next(in))
        return stk_lines_bad(in, "expected a header such as name,gpus,gpu_type,cpus,mem_gib,pool");
    r->n_fields = stk_lines_split(in, ',', f, MAX_FIELDS);
    if (r->n_fields > MAX_FIELDS)
        return stk_lines_bad(in, "expected at most %u columns, got %" PRIu32, MAX_FIELDS,
                             r->n_fields);
    for (uint32_t i = 0; i < r->n_fields; i++) {
        r->column[i] = find_column(f[i]);
        if (!r->column[i])
            return stk_lines_bad(in, "unknown column \"%s\"", stk_field_show(f[i]).text);
        if (has(r, i, r->column[i]->meaning))
            return stk_lines_bad(in, "column \"%s\" is there twice", stk_field_show(f[i]).text);
    }
    return has(r, r->n_fields, GPUS) ? 0 : stk_lines_bad(in, "the header has no column \"gpus\"");
}

static int amount(struct stk_trace_lines *in, const struct column *col, struct stk_field f,
                  uint32_t no, uint32_t *ret)
{
    uint64_t micro;

    if (col->scale == 1)
        return stk_lines_u32(in, f, no, col->unit, ret);
    if (!stk_field_micro(f, &micro) || micro / 1000000 > UINT32_MAX / col->scale - 1)
        return stk_lines_bad(
            in, "expected a number of %s (0 to %" PRIu32 ") in field %" PRIu32 ", got \"%s\"",
            col->unit, UINT32_MAX / col->scale - 1, no, stk_field_show(f).text);
    *ret = (uint32_t)((micro * col->scale + 500000) / 1000000);
    return 0;
}

static int read_field(struct stk_trace_lines *in, const struct column *col, struct stk_field f,
                      uint32_t no, struct stk_node_row *row)
{
    uint64_t v = 0;
    int rc = 0;

    switch (col->meaning) {
    case NODE_NAME:
        break;
    case COUNT:
        return stk_lines_whole(in, f, no, col->unit, STK_MAX_NODES, &row->count);
    case GPUS:
        rc = stk_lines_whole(in, f, no, col->unit, STK_MAX_NODE_GPUS, &v);
        row->node.gpus = (uint32_t)v;
        break;
    case GPU_TYPE:
        row->gpu_type = f.s;
        row->gpu_type_len = f.len;
        break;
    case GPU_MEM:
        return f.len ? amount(in, col, f, no, &row->node.gpu_mem_mib) : 0;
    case GPU_SPEED:
        rc = f.len ? amount(in, col, f, no, &row->speed) : 0;
        return rc == 0 && f.len && (row->speed == 0 || row->speed > MAX_SPEED)
                   ? stk_lines_bad(in, "gpu_speed must be 0.001 to 1000")
                   : rc;
    case CPUS:
        return f.len ? amount(in, col, f, no, &row->node.cpu_milli) : 0;
    case MEM:
        return f.len ? amount(in, col, f, no, &row->node.mem_mib) : 0;
    case POOL:
        row->pool = f.s;
        row->pool_len = f.len;
        break;
    }
    return rc;
}

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct reader *r = ctx;
    struct stk_node_row row = {.count = 1};
    struct stk_field f[MAX_FIELDS];
    uint32_t n = stk_lines_split(in, ',', f, MAX_FIELDS);
    struct stk_err why;
    int rc = 0;

    if (n != r->n_fields)
        return stk_lines_bad_count(in, "as the header has", r->n_fields, n);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = read_field(in, r->column[i], f[i], i + 1, &row);
    if (rc == 0 && stk_cluster_add(r->c, &row, &why) < 0)
        rc = stk_lines_bad(in, "%s", why.text);
    return rc;
}

int stk_cluster_parse_csv(struct stk_cluster *c, const char *name, const char *data, size_t len,
                          struct stk_err *err)
{
    struct reader r = {.c = c};
    struct stk_trace_lines in;

    stk_lines_init(&in, name, data, len);
    if (read_header(&r, &in) < 0)
        return stk_err_set(err, -EINVAL, "%s", in.bad.text);
    return stk_lines_each(&in, one, &r, err);
}

/* --- the division into pools --- */

struct split {
    const struct stk_cluster *c;
    struct stk_names pools;
    uint32_t *pool; /* of each node */
    uint32_t n_nodes;
};

static int split_line(struct stk_trace_lines *in, void *ctx)
{
    struct split *s = ctx;
    struct stk_field f[2];
    uint32_t n = stk_lines_split(in, ',', f, 2), pool = 0, before = s->pools.n;
    uint64_t count = 0;
    int rc;

    if (n != 2)
        return stk_lines_bad_count(in, "vc,nodes", 2, n);
    rc = stk_lines_whole(in, f[1], 2, "nodes", STK_MAX_NODES, &count);
    if (rc == 0)
        rc = stk_lines_name(in, &s->pools, STK_MAX_POOLS, f[0], NULL, &pool);
    if (rc < 0)
        return rc;
    if (pool < before)
        return stk_lines_bad(in, "\"%s\" is there twice", stk_field_show(f[0]).text);
    if (count > s->c->n_nodes - s->n_nodes)
        return stk_lines_bad(
            in, "\"%s\" and those before it need %" PRIu64 " nodes, but the cluster has %" PRIu32,
            stk_field_show(f[0]).text, s->n_nodes + count, s->c->n_nodes);
    for (uint64_t i = 0; i < count; i++)
        s->pool[s->n_nodes++] = pool;
    return 0;
}

static int check_split(const struct split *s, const struct stk_names *groups, const char *path,
                       struct stk_err *err)
{
    if (s->n_nodes < s->c->n_nodes)
        return stk_err_set(err, -EINVAL,
                           "%.100s: gives %" PRIu32 " nodes to pools, but the cluster has %" PRIu32,
                           path, s->n_nodes, s->c->n_nodes);
    for (uint32_t i = 0; groups && i < groups->n; i++) {
        const char *name = stk_names_get(groups, i);

        if (stk_names_find(&s->pools, name, strlen(name)) < 0)
            return stk_err_set(err, -EINVAL,
                               "%.100s: has no line for \"%.40s\", which the trace uses", path,
                               name);
    }
    return 0;
}

int stk_cluster_split(struct stk_cluster *c, const struct stk_names *groups,
                      const char *pools_csv_path, struct stk_err *err)
{
    struct split s = {.c = c};
    struct stk_trace_lines in;
    char *data = NULL;
    size_t len = 0;
    int rc = stk_slurp(pools_csv_path, &data, &len, err);

    if (rc < 0)
        return rc;
    s.pool = calloc((size_t)c->n_nodes + 1, sizeof(*s.pool));
    if (!s.pool) {
        rc = stk_err_set(err, -ENOMEM, "out of memory");
        goto out;
    }
    stk_lines_init(&in, pools_csv_path, data, len);
    if ((rc = stk_lines_header(&in, "vc,nodes", err)) < 0 ||
        (rc = stk_lines_each(&in, split_line, &s, err)) < 0 ||
        (rc = check_split(&s, groups, pools_csv_path, err)) < 0)
        goto out;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        c->nodes[i].pool.i = s.pool[i];
    stk_names_done(&c->pools);
    c->pools = s.pools;
    s.pools = (struct stk_names){0};
out:
    stk_names_done(&s.pools);
    free(s.pool);
    free(data);
    return rc;
}
