/* SPDX-License-Identifier: Apache-2.0 */
/* use.c - GPUs that cannot be used: those of drained nodes, those that others' jobs have, and those
 * that Slurm has lost count of.
 *
 * Slurm tells GPUs apart by index and chooses which a job gets; the core counts with its own bits.
 * So GPUs that others' jobs have are taken off the core's free ones by number: the same indices if
 * these are free, else others.
 *
 * What our jobs and others' have is kept by node as jobs come and go, so that a piece of news costs
 * what it is about. */
#include <string.h>

#include "engine/slurm/inner.h"
#include "model/node.h"
#include "sys/json.h"

#define AVOID_MS 30000
#define LOST_TIMES 3 /* looks in a row, five seconds apart */

uint32_t stk_slurm_count_gpus(const json_t *list, const char **ret_type)
{
    uint32_t n = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *g = json_array_get(list, i);

        n += (uint32_t)stk_whole(g, "count");
        if (ret_type && !**ret_type)
            *ret_type = json_string_value(json_object_get(g, "type"));
    }
    return n < STK_MAX_NODE_GPUS ? n : STK_MAX_NODE_GPUS;
}

void stk_slurm_use_changed(struct stk_slurm *m, uint32_t node)
{
    if (!m->use[node].changed)
        m->changed[m->n_changed++] = node;
    m->use[node].changed = true;
}

void stk_slurm_use_ours(struct stk_slurm *m, const struct stk_slurm_job *j, bool on)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        uint32_t node = j->pieces[i].node.i;

        if (on)
            m->use[node].taken |= j->pieces[i].mask;
        else
            m->use[node].taken &= ~j->pieces[i].mask;
        stk_slurm_use_changed(m, node);
    }
}

static void count_index(struct stk_slurm_use *u, const json_t *gpus, int by)
{
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *list = json_object_get(json_array_get(gpus, i), "indices");

        for (size_t k = 0; k < json_array_size(list); k++) {
            uint16_t *n = &u->index[json_integer_value(json_array_get(list, k)) & 63];

            *n = (uint16_t)(*n + by);
        }
    }
}

void stk_slurm_use_theirs(struct stk_slurm *m, const json_t *job, bool on)
{
    const json_t *piece;
    size_t i;

    json_array_foreach(json_object_get(job, "pieces"), i, piece)
    {
        uint32_t node = stk_slurm_find_node(m, json_string_value(json_object_get(piece, "node")));
        const json_t *gpus = json_object_get(piece, "gpus");
        uint32_t n = stk_slurm_count_gpus(gpus, NULL);

        if (node == m->n_nodes)
            continue;
        m->use[node].others = on ? m->use[node].others + n : m->use[node].others - n;
        count_index(&m->use[node], gpus, on ? 1 : -1);
        stk_slurm_use_changed(m, node);
    }
}

static uint64_t all_of(uint32_t gpus)
{
    return gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << gpus) - 1;
}

static const json_t *used_of(const struct stk_slurm *m, uint32_t node)
{
    return json_object_get(json_object_get(m->news, m->nodes[node].name), "used");
}

/* The core's bits that stand for what others have, and for what Slurm has lost count of. */
static uint64_t choose(const struct stk_slurm *m, uint32_t node)
{
    const struct stk_slurm_use *u = &m->use[node];
    uint64_t free = all_of(m->nodes[node].gpus) & ~u->taken, mask = 0;
    uint32_t n = u->others + u->lost;

    for (uint32_t i = 0; i < 64; i++)
        mask |= (uint64_t)(u->index[i] > 0) << i;
    if (u->lost > 0)
        mask |= stk_slurm_indices(used_of(m, node));
    mask &= free;
    while ((uint32_t)__builtin_popcountll(mask) > n)
        mask &= mask - 1;
    for (uint64_t left = free & ~mask; left && (uint32_t)__builtin_popcountll(mask) < n;) {
        uint64_t last = UINT64_C(1) << (63 - __builtin_clzll(left));

        mask |= last;
        left &= ~last;
    }
    return mask;
}

/* Slurm starts nothing there: all of its partitions are down, or inactive. */
static bool is_stopped(const struct stk_slurm *m, uint32_t node)
{
    bool stopped = false;

    for (uint64_t in = m->nodes[node].in; in; in &= in - 1) {
        const char *name = m->names[__builtin_ctzll(in)];

        stopped = json_is_false(json_object_get(stk_slurm_find_partition(m, name), "starts"));
        if (!stopped)
            break;
    }
    return stopped;
}

/* It takes nothing new, with GPUs or without. */
static bool is_shut(const struct stk_slurm *m, uint32_t node)
{
    const json_t *o = json_object_get(m->news, m->nodes[node].name);
    const char *state = json_string_value(json_object_get(o, "state"));

    return m->nodes[node].odd || m->use[node].avoid_until || is_stopped(m, node) ||
           (state && strcmp(state, "up") != 0 && strcmp(state, "down") != 0);
}

void stk_slurm_use_avoid(struct stk_slurm *m, uint32_t node)
{
    m->use[node].avoid_until = stk_slurm_ms() + AVOID_MS;
    stk_slurm_use_changed(m, node);
    stk_slurm_use_tell(m);
}

/* ---- what Slurm has lost count of ---- */

static void count_running(struct stk_slurm *m)
{
    for (uint32_t i = 0; i < m->n_nodes; i++)
        m->use[i].run = 0;
    for (uint32_t k = 0; k < m->n_jobs; k++) {
        const struct stk_slurm_job *j = m->jobs[k];

        for (uint32_t i = 0; i < j->n_pieces && j->where == STK_S_RUNNING; i++) {
            uint32_t node = j->pieces[i].node.i;

            m->use[node].run += j->exclusive ? m->nodes[node].gpus : j->pieces[i].gpus;
        }
    }
}

/* GPUs that Slurm has in use on a node where no job has them: a slurmctld that was killed loses
 * count. What is so for a moment only is news that have not come yet. */
static void look_for_lost(struct stk_slurm *m, uint32_t node)
{
    struct stk_slurm_use *u = &m->use[node];
    uint32_t used = stk_slurm_count_gpus(used_of(m, node), NULL), known = u->run + u->others,
             lost = used > known ? used - known : 0;

    u->lost_times = lost == u->lost_seen ? u->lost_times + 1 : 1;
    u->lost_seen = lost;
    if (lost == u->lost || u->lost_times < LOST_TIMES)
        return;
    u->lost = lost;
    stk_slurm_use_changed(m, node);
    if (lost > 0)
        stk_slurm_log(m, true,
                      "node %s: Slurm has %u GPUs in use there that no job has; they are given to "
                      "nobody until it counts anew (scontrol reconfigure)",
                      m->nodes[node].name, lost);
    else
        stk_slurm_log(m, false, "node %s: Slurm counts its GPUs right again", m->nodes[node].name);
}

void stk_slurm_use_tick(struct stk_slurm *m, int64_t now)
{
    count_running(m);
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        look_for_lost(m, i);
        if (m->use[i].avoid_until && now >= m->use[i].avoid_until) {
            m->use[i].avoid_until = 0;
            stk_slurm_use_changed(m, i);
        }
    }
    stk_slurm_use_tell(m);
}

void stk_slurm_use_tell(struct stk_slurm *m)
{
    while (m->n_changed > 0 && m->ready) {
        uint32_t node = m->changed[--m->n_changed];
        bool shut = is_shut(m, node);
        uint64_t off = shut ? all_of(m->nodes[node].gpus) : choose(m, node);

        m->use[node].changed = false;
        if (node >= m->n_core)
            continue; /* told when it has it */
        if ((off != m->use[node].off || shut != m->use[node].shut) && m->cfg.off)
            m->cfg.off(m->cfg.ctx, node, off, shut);
        m->use[node].off = off;
        m->use[node].shut = shut;
    }
}
