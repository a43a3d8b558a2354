/* SPDX-License-Identifier: Apache-2.0 */
/* pools.c - partitions that share nodes are one pool, since the core has each node in one; the pool
 * is that of the first of them. A job is confined to the nodes of its own partition by its set of
 * nodes (live/sets.c).
 *
 * Jobs know their pool by its number. So a partition keeps its row, and the pool that it had when
 * it was first seen: both are kept with the rows of nodes. Partitions that come to share nodes
 * later stay apart; a node that both have is in the first one's pool, and the log says so. A
 * partition that is left out of slurm.partitions keeps its row, without a name and nodes: events of
 * the past refer to it. */
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "sys/json.h"

#define UNKNOWN UINT32_MAX

static uint64_t bit(uint32_t row)
{
    return UINT64_C(1) << row;
}

json_t *stk_slurm_pools_members(const struct stk_slurm *m)
{
    json_t *in = json_object(), *node;
    size_t i;

    for (uint32_t k = 0; k < m->n_partitions; k++)
        json_array_foreach(json_object_get(stk_slurm_find_partition(m, m->names[k]), "nodes"), i,
                           node)
        {
            const char *name = json_string_value(node);
            uint64_t was = (uint64_t)json_integer_value(json_object_get(in, name));

            if (name)
                (void)json_object_set_new(in, name, json_integer((json_int_t)(was | bit(k))));
        }
    return in;
}

/* ---- which is in which ---- */

/* The partition and all that share nodes with it, as long as they have no pool yet. */
static uint64_t around(const struct stk_slurm *m, const uint64_t *shares, uint32_t row)
{
    uint64_t set = bit(row), before = 0;

    while (set != before) {
        before = set;
        for (uint32_t k = 0; k < m->n_partitions; k++)
            if ((before & bit(k)) && m->pools[k] == UNKNOWN)
                set |= shares[k];
    }
    return set;
}

static void give_pool(struct stk_slurm *m, uint64_t set)
{
    uint32_t pool = UNKNOWN;

    for (uint32_t k = 0; k < m->n_partitions && pool == UNKNOWN; k++)
        pool = set & bit(k) ? m->pools[k] : UNKNOWN;
    if (pool == UNKNOWN)
        pool = (uint32_t)__builtin_ctzll(set);
    for (uint32_t k = 0; k < m->n_partitions; k++)
        if ((set & bit(k)) && m->pools[k] == UNKNOWN)
            m->pools[k] = pool;
}

void stk_slurm_pools_find(struct stk_slurm *m, json_t *in)
{
    uint64_t shares[STK_SLURM_PARTITIONS] = {0};
    const char *name;
    json_t *bits;

    json_object_foreach(in, name, bits)
    {
        for (uint32_t k = 0; k < m->n_partitions; k++)
            if ((uint64_t)json_integer_value(bits) & bit(k))
                shares[k] |= (uint64_t)json_integer_value(bits);
    }
    for (uint32_t k = 0; k < m->n_partitions; k++)
        if (m->pools[k] == UNKNOWN)
            give_pool(m, around(m, shares, k));
}

uint32_t stk_slurm_pools_of(struct stk_slurm *m, const char *node, uint64_t in)
{
    uint32_t first = (uint32_t)__builtin_ctzll(in), pool = m->pools[first];

    for (uint64_t left = in; left && !m->pools_told; left &= left - 1) {
        uint32_t other = (uint32_t)__builtin_ctzll(left);

        if (m->pools[other] == pool)
            continue;
        m->pools_told = true;
        stk_slurm_log(m, true,
                      "partitions %s and %s share nodes since stoker knows them (%s): jobs of %s "
                      "are not given these. They become one pool if stoker is started without "
                      "slurm-nodes in its state folder, when it has no jobs",
                      m->names[first], m->names[other], node, m->names[other]);
    }
    return pool;
}

/* ---- kept ---- */

const char *stk_slurm_pools_name(const struct stk_slurm *m, uint32_t row)
{
    return m->left_out[row] ? m->left_out[row] : m->names[row];
}

json_t *stk_slurm_pools_show(const struct stk_slurm *m)
{
    json_t *list = json_array();

    for (uint32_t k = 0; k < m->n_partitions; k++)
        (void)json_array_append_new(list, json_pack("{s:s,s:s}", "name", stk_slurm_pools_name(m, k),
                                                    "pool", stk_slurm_pools_name(m, m->pools[k])));
    return list;
}

uint32_t stk_slurm_pools_row(const struct stk_slurm *m, const char *name)
{
    uint32_t k = 0;

    while (k < m->n_partitions && name && strcmp(stk_slurm_pools_name(m, k), name) != 0)
        k++;
    return name && k < m->n_partitions ? k : UNKNOWN;
}

static bool is_listed(const struct stk_slurm *m, const char *name)
{
    for (const char *const *p = m->cfg.partitions; *p; p++)
        if (strcmp(*p, name) == 0)
            return true;
    return false;
}

/* Rows are those of the last time, in their order, then the new ones. */
static int make_rows(struct stk_slurm *m, const json_t *kept, struct stk_err *err)
{
    uint32_t listed = 0;
    const json_t *o;
    size_t i;

    while (m->cfg.partitions[listed])
        listed++;
    m->names = calloc(listed + json_array_size(kept) + 1, sizeof(*m->names));
    m->left_out = calloc(listed + json_array_size(kept) + 1, sizeof(*m->left_out));
    if (!m->names || !m->left_out)
        return stk_err_set(err, -ENOMEM, "out of memory");
    json_array_foreach(kept, i, o)
    {
        const char *name = stk_slurm_keep(m, stk_str(o, "name"));

        if (!name)
            return stk_err_set(err, -ENOMEM, "out of memory");
        if (is_listed(m, name)) {
            m->names[m->n_partitions++] = name;
        } else {
            m->names[m->n_partitions] = "";
            m->left_out[m->n_partitions++] = name;
        }
    }
    for (uint32_t k = 0; k < listed; k++)
        if (stk_slurm_pools_row(m, m->cfg.partitions[k]) == UNKNOWN)
            m->names[m->n_partitions++] = m->cfg.partitions[k];
    if (m->n_partitions > STK_SLURM_PARTITIONS)
        return stk_err_set(err, -EINVAL, "slurm.partitions: at most %d, with those of the past",
                           STK_SLURM_PARTITIONS);
    return 0;
}

/* Jobs that name no partition go to the first, and who reads the list expects it to be so. */
static int check_order(const struct stk_slurm *m, struct stk_err *err)
{
    uint32_t at = 0;

    if (m->left_out[0])
        return stk_err_set(err, -EINVAL,
                           "slurm.partitions: %.40s is left out, and jobs that name no partition "
                           "have gone there. Put it back as the first; or start stoker with an "
                           "empty state folder (--state)",
                           m->left_out[0]);
    for (uint32_t k = 0; k < m->n_partitions; k++) {
        const char *name = m->names[k], *listed = m->left_out[k] ? name : m->cfg.partitions[at++];

        if (!name || !listed || strcmp(name, listed) != 0)
            return stk_err_set(
                err, -EINVAL,
                "slurm.partitions: %.40s was number %u when stoker last ran, and jobs know theirs "
                "by its place. Add new ones at the end; or, when stoker has no jobs, remove "
                "slurm-nodes from its state folder",
                name ? name : "", k + 1);
    }
    return 0;
}

int stk_slurm_pools_load(struct stk_slurm *m, const json_t *kept, struct stk_err *err)
{
    const json_t *o;
    size_t i;
    int rc = make_rows(m, kept, err);

    rc = rc < 0 ? rc : check_order(m, err);
    if (rc < 0)
        return rc;
    m->pools = calloc(m->n_partitions + 1, sizeof(*m->pools));
    if (!m->pools)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t k = 0; k < m->n_partitions; k++)
        m->pools[k] = UNKNOWN;
    json_array_foreach(kept, i, o)
    {
        m->pools[i] = stk_slurm_pools_row(m, json_string_value(json_object_get(o, "pool")));
    }
    for (uint32_t k = 0; k < m->n_partitions; k++) /* whose pool is gone is as new */
        if (m->pools[k] != UNKNOWN && m->pools[m->pools[k]] != m->pools[k])
            m->pools[k] = UNKNOWN;
    return 0;
}
