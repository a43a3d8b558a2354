/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - Slurm's nodes as the core has them. Their number is fixed for the daemon's life: a
 * node that comes later needs a restart, and is named in the log.
 *
 * Slurm tells GPUs apart by index and chooses which a job gets; the core counts with its own bits.
 * So GPUs that others' jobs have are taken off the core's free ones by number: the same indices if
 * these are free, else others. */
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "model/node.h"

uint32_t stk_slurm_find_node(const struct stk_slurm *m, const char *name)
{
    uint32_t i = 0;

    while (i < m->n_nodes && (!name || strcmp(m->nodes[i].name, name) != 0))
        i++;
    return i;
}

static uint32_t count_gpus(const json_t *list, const char **ret_type)
{
    uint32_t n = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *g = json_array_get(list, i);

        n += (uint32_t)json_integer_value(json_object_get(g, "count"));
        if (ret_type && !**ret_type)
            *ret_type = json_string_value(json_object_get(g, "type"));
    }
    return n < STK_MAX_NODE_GPUS ? n : STK_MAX_NODE_GPUS;
}

static bool is_up(const json_t *node)
{
    const char *state = json_string_value(json_object_get(node, "state"));

    return state && strcmp(state, "down") != 0;
}

static int add_node(struct stk_slurm *m, const char *name, uint32_t partition)
{
    const json_t *o = json_object_get(m->news, name);
    struct stk_slurm_node *n;
    const char *type = "";

    if (!o || stk_slurm_find_node(m, name) < m->n_nodes)
        return 0;
    n = reallocarray(m->nodes, m->n_nodes + 1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    m->nodes = n;
    n = &m->nodes[m->n_nodes];
    *n = (struct stk_slurm_node){.name = strdup(name),
                                 .partition = partition,
                                 .gpus = count_gpus(json_object_get(o, "gpus"), &type),
                                 .cpus = (uint32_t)json_integer_value(json_object_get(o, "cpus")),
                                 .mem_mib =
                                     (uint64_t)json_integer_value(json_object_get(o, "mem_mib")),
                                 .up = is_up(o)};
    n->gpu_type = strdup(type ? type : "");
    m->n_nodes++;
    return n->name && n->gpu_type ? 0 : -ENOMEM;
}

static const json_t *find_partition(const struct stk_slurm *m, const char *name)
{
    const json_t *p;
    size_t i;

    json_array_foreach(m->partitions, i, p)
    {
        const char *is = json_string_value(json_object_get(p, "name"));

        if (is && strcmp(is, name) == 0)
            return p;
    }
    return NULL;
}

int stk_slurm_cluster_make(struct stk_slurm *m, struct stk_err *err)
{
    uint32_t gpus = 0;
    const json_t *node;
    size_t i;
    int rc = 0;

    for (uint32_t k = 0; m->cfg.partitions[k] && rc == 0; k++) {
        const json_t *p = find_partition(m, m->cfg.partitions[k]);

        if (!p)
            return stk_err_set(err, -EINVAL,
                               "slurm.partitions: Slurm has no partition \"%s\"; sinfo lists them",
                               m->cfg.partitions[k]);
        json_array_foreach(json_object_get(p, "nodes"), i, node)
        {
            rc = rc < 0 ? rc : add_node(m, json_string_value(node), k);
        }
        m->n_partitions = k + 1;
    }
    for (uint32_t k = 0; k < m->n_nodes; k++)
        gpus += m->nodes[k].gpus;
    m->off = calloc(m->n_nodes + 1, sizeof(*m->off));
    if (rc < 0 || !m->off)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (m->n_nodes == 0)
        return stk_err_set(err, -EINVAL, "the partitions of slurm.partitions have no nodes");
    if (gpus == 0)
        return stk_err_set(
            err, -EINVAL,
            "no node of these partitions has GPUs as Slurm sees it: GresTypes=gpu and "
            "Gres=gpu:... in slurm.conf, and gres.conf, say so");
    return 0;
}

/* ---- news ---- */

static void node_news(struct stk_slurm *m, json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "name"));
    uint32_t i = stk_slurm_find_node(m, name);
    struct stk_event ev = {.u.node = {i}};

    if (!name)
        return;
    if (m->ready && i == m->n_nodes && !json_object_get(m->news, name))
        stk_slurm_log(m, true, "Slurm has a new node %s; a restart takes it in", name);
    (void)json_object_set(m->news, name, o);
    if (!m->ready || i == m->n_nodes || m->nodes[i].up == is_up(o))
        return;
    m->nodes[i].up = is_up(o);
    ev.at = m->cfg.now(m->cfg.ctx);
    ev.type = m->nodes[i].up ? STK_EV_NODE_UP : STK_EV_NODE_DOWN;
    m->base.emit(m->base.emit_ctx, &ev);
}

void stk_slurm_cluster_news(struct stk_slurm *m, const json_t *message)
{
    json_t *list = json_object_get(message, "nodes"), *o;
    size_t i;

    if (!list) {
        json_decref(m->partitions);
        m->partitions = json_incref(json_object_get(message, "partitions"));
        return;
    }
    json_array_foreach(list, i, o)
    {
        node_news(m, o);
    }
    if (m->ready)
        stk_slurm_cluster_off(m);
}

/* ---- what cannot be used ---- */

static uint64_t all_of(uint32_t gpus)
{
    return gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << gpus) - 1;
}

/* The core's bits that our jobs have on the node. */
static uint64_t taken(const struct stk_slurm *m, uint32_t node)
{
    uint64_t mask = 0;

    for (const struct stk_slurm_job *j = m->jobs; j; j = j->next)
        for (uint32_t i = 0; i < j->n_pieces && j->where != STK_S_ENDED; i++)
            mask |= j->pieces[i].node.i == node ? j->pieces[i].mask : 0;
    return mask;
}

static uint64_t choose(const struct stk_slurm *m, uint32_t node, uint64_t indices, uint32_t n)
{
    uint64_t free = all_of(m->nodes[node].gpus) & ~taken(m, node), mask = indices & free;

    while ((uint32_t)__builtin_popcountll(mask) > n)
        mask &= mask - 1;
    for (uint64_t left = free & ~mask; left && (uint32_t)__builtin_popcountll(mask) < n;) {
        uint64_t last = UINT64_C(1) << (63 - __builtin_clzll(left));

        mask |= last;
        left &= ~last;
    }
    return mask;
}

struct use {
    uint64_t indices;
    uint32_t n;
};

static void add_use(const json_t *gpus, struct use *u)
{
    u->n += count_gpus(gpus, NULL);
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *list = json_object_get(json_array_get(gpus, i), "indices");

        for (size_t k = 0; k < json_array_size(list); k++)
            u->indices |= UINT64_C(1) << (json_integer_value(json_array_get(list, k)) & 63);
    }
}

/* What others' jobs have, by node. */
static void add_uses(const struct stk_slurm *m, struct use *uses)
{
    const char *key;
    json_t *job, *piece;
    size_t i;

    json_object_foreach(m->theirs, key, job)
    {
        json_array_foreach(json_object_get(job, "pieces"), i, piece)
        {
            uint32_t node =
                stk_slurm_find_node(m, json_string_value(json_object_get(piece, "node")));

            if (node < m->n_nodes)
                add_use(json_object_get(piece, "gpus"), &uses[node]);
        }
    }
}

void stk_slurm_cluster_off(struct stk_slurm *m)
{
    struct use *uses = calloc(m->n_nodes + 1, sizeof(*uses));

    if (!uses || !m->cfg.off) {
        free(uses);
        return;
    }
    add_uses(m, uses);
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const char *state =
            json_string_value(json_object_get(json_object_get(m->news, m->nodes[i].name), "state"));
        uint64_t off = state && (strcmp(state, "drain") == 0 || strcmp(state, "maint") == 0)
                           ? all_of(m->nodes[i].gpus)
                           : choose(m, i, uses[i].indices, uses[i].n);

        if (off != m->off[i])
            m->cfg.off(m->cfg.ctx, i, off);
        m->off[i] = off;
    }
    free(uses);
}
