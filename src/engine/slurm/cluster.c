/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - Slurm's nodes as the core has them: rows that keep their places. A node that comes
 * gets the next row; one that goes leaves its row, which is down until a node of that name is back.
 * So that a restart finds the same places, the rows are kept in a file.
 *
 * Another number of rows, or other GPUs in one, is another core, made from the state of this one:
 * whoever owns the core is asked for it ('changed'). A node of which GPUs, CPUs, memory, type or
 * pool are others takes nothing new until nothing of ours is there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/slurm/inner.h"
#include "model/node.h"
#include "sys/json.h"

#define AGAIN_MS 5000

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

/* Where each GPU has a type of its own, these are no models. */
static const char *model_of(struct stk_slurm *m, const json_t *node)
{
    char *model = stk_slurm_model(json_string_value(json_object_get(node, "features")));
    const char *kept = stk_slurm_keep(m, model ? model : m->cfg.gpu_type ? m->cfg.gpu_type : "");

    free(model);
    return kept;
}

static bool takes_jobs(const json_t *node)
{
    const char *state = json_string_value(json_object_get(node, "state"));

    return state && strcmp(state, "up") == 0;
}

/* ---- rows ---- */

static void *longer(void *old, uint32_t n, size_t elem)
{
    return reallocarray(old, n, elem);
}

/* One more, that the core does not know of yet. */
static struct stk_slurm_node *add_row(struct stk_slurm *m, const char *name)
{
    uint32_t n = m->n_nodes;
    struct stk_slurm_node *nodes = longer(m->nodes, n + 1, sizeof(*nodes));
    struct stk_slurm_use *use;
    uint32_t *changed;

    m->nodes = nodes ? nodes : m->nodes;
    use = nodes ? longer(m->use, n + 1, sizeof(*use)) : NULL;
    m->use = use ? use : m->use;
    changed = use ? longer(m->changed, n + 1, sizeof(*changed)) : NULL;
    m->changed = changed ? changed : m->changed;
    if (!changed)
        return NULL;
    memset(&m->use[n], 0, sizeof(m->use[n]));
    m->nodes[n] = (struct stk_slurm_node){.name = strdup(name)};
    if (!m->nodes[n].name || json_object_set_new(m->rows, name, json_integer(n)) < 0)
        return NULL;
    m->n_nodes++;
    return &m->nodes[n];
}

static bool same(const struct stk_slurm_node *a, const struct stk_slurm_node *b)
{
    return a->pool == b->pool && a->gpus == b->gpus && a->cpus == b->cpus &&
           a->mem_mib == b->mem_mib && strcmp(a->gpu_type, b->gpu_type) == 0;
}

/* What a node is, without its name. */
static int describe(struct stk_slurm *m, const json_t *o, uint32_t pool, struct stk_slurm_node *ret)
{
    const char *type = "", *features = json_string_value(json_object_get(o, "features"));
    char *word;

    *ret = (struct stk_slurm_node){.pool = pool,
                                   .gpus = stk_slurm_count_gpus(json_object_get(o, "gpus"), &type),
                                   .cpus = (uint32_t)stk_whole(o, "cpus"),
                                   .mem_mib = (uint64_t)stk_whole(o, "mem_mib")};
    word = stk_slurm_numbered(json_object_get(o, "gpus"));
    ret->numbered = word ? stk_slurm_keep(m, word) : NULL;
    ret->gpu_type = word ? model_of(m, o) : stk_slurm_keep(m, type ? type : "");
    ret->features = stk_slurm_keep(m, features ? features : "");
    free(word);
    return ret->gpu_type && ret->features ? 0 : -ENOMEM;
}

/* What may change while jobs run there. True: it has. */
static bool set_words(struct stk_slurm_node *n, const struct stk_slurm_node *is)
{
    bool changed = n->features != is->features || n->in != is->in;

    n->features = is->features;
    n->in = is->in;
    return changed;
}

static void set_row(struct stk_slurm_node *n, const struct stk_slurm_node *is)
{
    n->pool = is->pool;
    n->gpus = is->gpus;
    n->cpus = is->cpus;
    n->mem_mib = is->mem_mib;
    n->gpu_type = is->gpu_type;
    n->numbered = is->numbered;
    n->odd = false;
    (void)set_words(n, is);
}

/* A node of these partitions: its row is as Slurm says, or waits to be. 1: something has changed.
 * What runs where is not known before the jobs of an earlier life are: until then rows stay. */
static int meet(struct stk_slurm *m, const char *name, uint64_t in)
{
    const json_t *o = json_object_get(m->news, name);
    uint32_t i = stk_slurm_find_node(m, name);
    struct stk_slurm_node is, *n;

    if (!o)
        return 0; /* not told yet */
    if (describe(m, o, stk_slurm_pools_of(m, name, in), &is) < 0)
        return -ENOMEM;
    is.in = in;
    if (i < m->n_nodes) {
        bool alike, others;

        n = &m->nodes[i];
        n->here = true;
        alike = same(n, &is);
        others = set_words(n, &is);
        n->odd = !alike && (m->use[i].taken != 0 || !m->adopted);
        if (n->odd)
            stk_slurm_use_changed(m, i);
        else
            set_row(n, &is);
        return others || (!alike && !n->odd);
    }
    n = add_row(m, name);
    if (!n)
        return -ENOMEM;
    set_row(n, &is);
    n->up = is_up(o);
    n->here = true;
    return 1;
}

const json_t *stk_slurm_find_partition(const struct stk_slurm *m, const char *name)
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

/* Every node that there is has a row. 1: the core is to have another list. */
static int meet_all(struct stk_slurm *m)
{
    json_t *in = stk_slurm_pools_members(m), *bits;
    int rc = 0, changed = 0;
    const char *name;

    stk_slurm_pools_find(m, in);
    for (uint32_t k = 0; k < m->n_nodes; k++)
        m->nodes[k].here = false;
    json_object_foreach(in, name, bits)
    {
        rc = rc < 0 ? rc : meet(m, name, (uint64_t)json_integer_value(bits));
        changed |= rc > 0;
    }
    json_decref(in);
    return rc < 0 ? rc : changed;
}

/* ---- the file ---- */

static int save_rows(const struct stk_slurm *m)
{
    json_t *list = json_array(), *o;
    char temp[4300], *text;
    size_t len;
    int fd, rc = -EIO;

    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const struct stk_slurm_node *n = &m->nodes[i];

        (void)json_array_append_new(
            list, json_pack("{s:s,s:s,s:I,s:I,s:I,s:s}", "name", n->name, "type", n->gpu_type,
                            "gpus", (json_int_t)n->gpus, "cpus", (json_int_t)n->cpus, "mem_mib",
                            (json_int_t)n->mem_mib, "pool", stk_slurm_pools_name(m, n->pool)));
    }
    o = json_pack("{s:o,s:o}", "pools", stk_slurm_pools_show(m), "nodes", list);
    text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    (void)snprintf(temp, sizeof(temp), "%.4200s.new", m->cfg.rows);
    fd = text ? open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
    len = text ? strlen(text) : 0;
    if (fd >= 0 && write(fd, text, len) == (ssize_t)len && fsync(fd) == 0 &&
        rename(temp, m->cfg.rows) == 0)
        rc = 0;
    if (fd >= 0)
        (void)close(fd);
    free(text);
    return rc;
}

/* The pool of a row that was kept: by name; files of earlier versions, which have nodes alone, have
 * the partition's number. */
static uint32_t kept_pool(const struct stk_slurm *m, const json_t *o)
{
    uint32_t number = (uint32_t)stk_whole(o, "partition"),
             row = stk_slurm_pools_row(m, json_string_value(json_object_get(o, "pool")));

    return row < m->n_partitions ? row : number < m->n_partitions ? number : 0;
}

/* A file that is not there, or cannot be read, is none. */
int stk_slurm_cluster_load(struct stk_slurm *m, struct stk_err *err)
{
    m->kept = m->cfg.rows ? json_load_file(m->cfg.rows, 0, NULL) : NULL;
    return stk_slurm_pools_load(m, json_object_get(m->kept, "pools"), err);
}

/* Nodes have the rows that they had. */
static int keep_nodes(struct stk_slurm *m, struct stk_err *err)
{
    const json_t *list = json_is_array(m->kept) ? m->kept : json_object_get(m->kept, "nodes"), *o;
    int rc = 0;
    size_t i;

    json_array_foreach(list, i, o)
    {
        const char *name = json_string_value(json_object_get(o, "name")),
                   *type = json_string_value(json_object_get(o, "type"));
        json_int_t gpus = stk_whole(o, "gpus");
        struct stk_slurm_node *n =
            name && stk_slurm_find_node(m, name) == m->n_nodes ? add_row(m, name) : NULL;

        if (!n) {
            rc = name ? stk_err_set(err, -ENOMEM, "out of memory")
                      : stk_err_set(err, -EINVAL, "%.300s is odd", m->cfg.rows);
            break;
        }
        n->gpu_type = stk_slurm_keep(m, type ? type : "");
        n->features = "";
        n->gpus = gpus > 0 && gpus <= STK_MAX_NODE_GPUS ? (uint32_t)gpus : 0;
        n->cpus = (uint32_t)stk_whole(o, "cpus");
        n->mem_mib = (uint64_t)stk_whole(o, "mem_mib");
        n->pool = kept_pool(m, o);
    }
    json_decref(m->kept);
    m->kept = NULL;
    return rc;
}

/* ---- at the start ---- */

static int check(const struct stk_slurm *m, struct stk_err *err)
{
    uint32_t gpus = 0, here = 0;

    for (uint32_t k = 0; k < m->n_nodes; k++) {
        const json_t *o = json_object_get(m->news, m->nodes[k].name);

        gpus += m->nodes[k].here ? stk_slurm_count_gpus(json_object_get(o, "gpus"), NULL) : 0;
        here += m->nodes[k].here;
    }
    if (here == 0)
        return stk_err_set(err, -EINVAL, "the partitions of slurm.partitions have no nodes");
    if (gpus == 0)
        return stk_err_set(
            err, -EINVAL,
            "no node of these partitions has GPUs as Slurm sees it: GresTypes=gpu and "
            "Gres=gpu:... in slurm.conf, and gres.conf, say so");
    return 0;
}

int stk_slurm_cluster_make(struct stk_slurm *m, struct stk_err *err)
{
    int rc;

    for (const char *const *p = m->cfg.partitions; *p; p++)
        if (!stk_slurm_find_partition(m, *p))
            return stk_err_set(err, -EINVAL,
                               "slurm.partitions: Slurm has no partition \"%s\"; sinfo lists them",
                               *p);
    rc = keep_nodes(m, err);
    if (rc < 0)
        return rc;
    if (meet_all(m) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = check(m, err);
    if (rc < 0)
        return rc;
    if (m->cfg.rows && save_rows(m) < 0)
        return stk_err_set(err, -EIO, "cannot write %.300s", m->cfg.rows);
    for (uint32_t k = 0; k < m->n_nodes; k++) {
        const json_t *o = json_object_get(m->news, m->nodes[k].name);

        m->nodes[k].up = m->nodes[k].here && is_up(o);
        if (!m->nodes[k].gpus && m->nodes[k].here)
            stk_slurm_log(m, true,
                          "node %s has no GPUs as Slurm sees it (Gres=gpu:... in "
                          "slurm.conf); it runs jobs without GPUs only",
                          m->nodes[k].name);
    }
    m->n_core = m->n_nodes;
    for (uint32_t k = 0; k < m->n_seen; k++)
        if (!m->seen[k].number)
            stk_slurm_use_theirs(m, m->seen[k].job, true);
    return 0;
}

/* ---- news ---- */

/* Up or down, as the core is to have it. */
static void set_up(struct stk_slurm *m, uint32_t i, bool up)
{
    struct stk_event ev = {.u.node = {i},
                           .at = m->cfg.now(m->cfg.ctx),
                           .type = up ? STK_EV_NODE_UP : STK_EV_NODE_DOWN};

    if (m->nodes[i].up == up)
        return;
    m->nodes[i].up = up;
    m->use[i].back_at = up ? stk_slurm_ms() : 0;
    if (i < m->n_core)
        m->base.emit(m->base.emit_ctx, &ev);
}

/* What others' jobs have on nodes that had no row is counted from now on. */
static void count_theirs(struct stk_slurm *m)
{
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        m->use[i].others = 0;
        memset(m->use[i].index, 0, sizeof(m->use[i].index));
        stk_slurm_use_changed(m, i);
    }
    for (uint32_t k = 0; k < m->n_seen; k++)
        if (!m->seen[k].number)
            stk_slurm_use_theirs(m, m->seen[k].job, true);
}

void stk_slurm_cluster_tick(struct stk_slurm *m, int64_t now)
{
    bool odd = false;
    int rc;

    for (uint32_t i = 0; i < m->n_nodes && !m->rows_dirty; i++)
        odd = odd || (m->nodes[i].odd && m->use[i].taken == 0);
    if ((!m->rows_dirty && !odd) || now < m->rows_at || !m->adopted)
        return;
    m->rows_dirty = false;
    rc = meet_all(m);
    for (uint32_t i = 0; i < m->n_nodes && rc >= 0; i++) {
        const json_t *o = json_object_get(m->news, m->nodes[i].name);

        if (i < m->n_core && m->nodes[i].up && !m->nodes[i].here)
            stk_slurm_log(m, true, "node %s is gone from Slurm's partitions", m->nodes[i].name);
        set_up(m, i, m->nodes[i].here && is_up(o));
    }
    if (rc == 0)
        return;
    count_theirs(m);
    if (rc > 0 && m->cfg.rows)
        rc = save_rows(m);
    if (rc >= 0 && m->cfg.changed)
        rc = m->cfg.changed(m->cfg.ctx);
    if (rc < 0) {
        stk_slurm_log(m, true, "Slurm has other nodes, and they cannot be taken in (%s)",
                      strerror(-rc));
        m->rows_dirty = true;
        m->rows_at = now + AGAIN_MS;
    }
}

static void node_news(struct stk_slurm *m, json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "name"));
    uint32_t i = stk_slurm_find_node(m, name);
    struct stk_slurm_node is;

    if (!name)
        return;
    (void)json_object_set(m->news, name, o);
    if (i == m->n_nodes || !m->nodes[i].here) {
        m->rows_dirty = true;
        return;
    }
    if (describe(m, o, m->nodes[i].pool, &is) < 0 || !same(&m->nodes[i], &is) ||
        m->nodes[i].features != is.features)
        m->rows_dirty = true;
    stk_slurm_use_changed(m, i);
    if (!takes_jobs(o))
        stk_slurm_starts_on(m, i);
    set_up(m, i, is_up(o));
}

void stk_slurm_cluster_news(struct stk_slurm *m, const json_t *message)
{
    json_t *list = json_object_get(message, "nodes"), *o;
    size_t i;

    if (!list) {
        json_decref(m->partitions);
        m->partitions = json_incref(json_object_get(message, "partitions"));
        m->rows_dirty = true;
        for (uint32_t k = 0; k < m->n_nodes; k++)
            stk_slurm_use_changed(m, k);
        stk_slurm_use_tell(m);
        stk_slurm_rest_wake(m);
        return;
    }
    if (stk_yes(message, "all")) { /* some may be gone */
        (void)json_object_clear(m->news);
        m->rows_dirty = true;
    }
    json_array_foreach(list, i, o)
    {
        node_news(m, o);
    }
    stk_slurm_use_tell(m);
}

void stk_slurm_cluster_free(struct stk_slurm *m)
{
    for (uint32_t i = 0; i < m->n_nodes; i++)
        free(m->nodes[i].name);
    free(m->nodes);
    free(m->pools);
    json_decref(m->kept);
    free(m->use);
    free(m->changed);
    json_decref(m->rows);
    json_decref(m->news);
    json_decref(m->partitions);
}
