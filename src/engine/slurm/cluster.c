/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - Slurm's nodes as the core has them. Their number is fixed for the daemon's life: a
 * node that comes later needs a restart, and is named in the log. */
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "model/node.h"

uint32_t stk_slurm_find_node(const struct stk_slurm *m, const char *name)
{
    const json_t *row = name ? json_object_get(m->rows, name) : NULL;

    return row ? (uint32_t)json_integer_value(row) : m->n_nodes;
}

static bool is_up(const json_t *node)
{
    const char *state = json_string_value(json_object_get(node, "state"));

    return state && strcmp(state, "down") != 0;
}

static bool takes_jobs(const json_t *node)
{
    const char *state = json_string_value(json_object_get(node, "state"));

    return state && strcmp(state, "up") == 0;
}

static int add_node(struct stk_slurm *m, const char *name, uint32_t partition)
{
    const json_t *o = json_object_get(m->news, name);
    struct stk_slurm_node *n;
    const char *type = "";

    if (!o || stk_slurm_find_node(m, name) < m->n_nodes)
        return 0;
    n = reallocarray(m->nodes, m->n_nodes + 1, sizeof(*n));
    m->nodes = n ? n : m->nodes;
    if (!n || json_object_set_new(m->rows, name, json_integer(m->n_nodes)) < 0)
        return -ENOMEM;
    n = &m->nodes[m->n_nodes];
    *n = (struct stk_slurm_node){.name = strdup(name),
                                 .partition = partition,
                                 .gpus = stk_slurm_count_gpus(json_object_get(o, "gpus"), &type),
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
    m->use = calloc(m->n_nodes + 1, sizeof(*m->use));
    m->changed = calloc(m->n_nodes + 1, sizeof(*m->changed));
    if (rc < 0 || !m->use || !m->changed)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t k = 0; k < m->n_seen; k++)
        if (!m->seen[k].number)
            stk_slurm_use_theirs(m, m->seen[k].job, true);
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
    if (i == m->n_nodes)
        return;
    stk_slurm_use_changed(m, i);
    if (!takes_jobs(o))
        stk_slurm_starts_on(m, i);
    if (m->nodes[i].up == is_up(o))
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
    stk_slurm_use_tell(m);
}

void stk_slurm_cluster_free(struct stk_slurm *m)
{
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        free(m->nodes[i].name);
        free(m->nodes[i].gpu_type);
    }
    free(m->nodes);
    free(m->use);
    free(m->changed);
    json_decref(m->rows);
    json_decref(m->news);
    json_decref(m->partitions);
}
