/* SPDX-License-Identifier: Apache-2.0 */
/* sets.c - nodes by name and by feature, as the core's sets of nodes (model/nodes.h).
 *
 * A description says which nodes in words. What is the same words is the same set; its number is
 * given out here, and kept by the jobs that name it: after a restart the words of each number are
 * found in their descriptions. Numbers that no job names any more are used again; which these are
 * is counted when there are twice as many numbers as there were in use, O(jobs).
 *
 * Where pools share nodes, which of them it is belongs to the words.
 *
 * Nodes come and go, and their features change: then every set is made anew from its words.
 */
#include <stdlib.h>
#include <string.h>

#include "core/sets.h"
#include "core/state.h"
#include "live/state.h"
#include "model/where.h"

#define FEW 16 /* so many numbers are not worth counting */

static const struct stk_live_node *node_of(const struct stk_live *l, uint32_t i)
{
    return &l->cfg.nodes[i];
}

/* ---- words ---- */

static bool named(const json_t *list, const char *node)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (stk_where_names(json_string_value(json_array_get(list, i)), node))
            return true;
    return false;
}

static bool in_pool(const struct stk_live *l, const char *pool, const struct stk_live_node *n)
{
    for (uint64_t in = n->pools; in; in &= in - 1)
        if (strcmp(l->cfg.pools[__builtin_ctzll(in)], pool) == 0)
            return true;
    return false;
}

/* 1: it may run there, 0: not; -EINVAL: the constraint makes no sense. */
static int may_run(const struct stk_live *l, const json_t *where, uint32_t node,
                   struct stk_err *err)
{
    const struct stk_live_node *n = node_of(l, node);
    const json_t *only = json_object_get(where, "nodelist");
    const char *constraint = json_string_value(json_object_get(where, "constraint")),
               *pool = json_string_value(json_object_get(where, "pool"));

    if ((only && !named(only, n->name)) || named(json_object_get(where, "exclude"), n->name) ||
        (pool && !in_pool(l, pool, n)))
        return 0;
    return constraint
               ? stk_where_meets(constraint, n->features, n->features ? NULL : n->gpu_type, err)
               : 1;
}

/* Every name must be a node's. */
static int check_names(const struct stk_live *l, const json_t *where, const char *key,
                       struct stk_err *err)
{
    const json_t *list = json_object_get(where, key);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pattern = json_string_value(json_array_get(list, i));
        uint32_t k = 0;

        while (k < l->cfg.core.n_nodes && !stk_where_names(pattern, node_of(l, k)->name))
            k++;
        if (k == l->cfg.core.n_nodes)
            return stk_err_set(err, -EINVAL, "%s: there is no node \"%.60s\" (stoker nodes)", key,
                               pattern);
    }
    return 0;
}

struct ranges {
    struct stk_node_range *list;
    uint32_t n, cap;
};

static int add_node(struct ranges *r, uint32_t node)
{
    struct stk_node_range *more;

    if (r->n > 0 && r->list[r->n - 1].last + 1 == node) {
        r->list[r->n - 1].last = node;
        return 0;
    }
    if (r->n == r->cap) {
        uint32_t cap = r->cap ? 2 * r->cap : 16;

        more = reallocarray(r->list, cap, sizeof(*more));
        if (!more)
            return -ENOMEM;
        r->list = more;
        r->cap = cap;
    }
    r->list[r->n++] = (struct stk_node_range){node, node};
    return 0;
}

/* The nodes that the words mean now. The list is the caller's to free. */
static int find_nodes(const struct stk_live *l, const json_t *where, struct ranges *ret,
                      struct stk_err *err)
{
    struct stk_err why = {""};

    *ret = (struct ranges){0};
    for (uint32_t i = 0; i < l->cfg.core.n_nodes; i++) {
        int rc = may_run(l, where, i, &why);

        if (rc < 0)
            return stk_err_set(err, rc, "constraint: %s", why.text);
        if (rc > 0 && add_node(ret, i) < 0)
            return stk_err_set(err, -ENOMEM, "out of memory");
    }
    return 0;
}

/* ---- numbers ---- */

static bool same_bits(const struct stk_state *s, uint32_t number, const struct ranges *r)
{
    const struct stk_demand d = {.nodes = (uint16_t)number};
    uint32_t k = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        while (k < r->n && r->list[k].last < i)
            k++;
        if (stk_sets_allow(s, &d, i) != (k < r->n && i >= r->list[k].first))
            return false;
    }
    return true;
}

static int define(struct stk_live *l, uint32_t number, const json_t *where, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    struct ranges r;
    int rc = find_nodes(l, where, &r, err);

    if (rc == 0 && (number > s->n_sets || !same_bits(s, number, &r))) {
        const struct stk_node_set set = {.number = number, .n = r.n, .range = r.list};
        const struct stk_event ev = {.at = l->now, .type = STK_EV_NODES, .u.nodes = &set};

        rc = stk_loop_apply(l->loop, &ev, err);
    }
    free(r.list);
    return rc;
}

/* Numbers that no job has become free. */
static void count_used(struct stk_live *l)
{
    const struct stk_state *s = stk_core_state(l->core);
    bool used[STK_MAX_NODE_SETS + 1] = {false};

    l->sets.used = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].state != STK_JOB_NONE && s->jobs[i].state != STK_JOB_DONE)
            used[s->shapes[s->jobs[i].shape].demand.nodes] = true;
    for (uint32_t i = 1; i <= STK_MAX_NODE_SETS; i++) {
        l->sets.used += used[i];
        if (!used[i]) {
            free(l->sets.words[i - 1]);
            l->sets.words[i - 1] = NULL;
        }
    }
}

/* A number without words; 0: all are in use. */
static uint32_t free_number(struct stk_live *l)
{
    const uint32_t n = stk_core_state(l->core)->n_sets;

    if (n >= FEW && n >= 2 * l->sets.used)
        count_used(l);
    for (uint32_t i = 0; i < n; i++)
        if (!l->sets.words[i])
            return i + 1;
    return n < STK_MAX_NODE_SETS ? n + 1 : 0;
}

static uint32_t number_of(const struct stk_live *l, const char *words)
{
    const uint32_t n = stk_core_state(l->core)->n_sets;

    for (uint32_t i = 0; i < n; i++)
        if (l->sets.words[i] && strcmp(l->sets.words[i], words) == 0)
            return i + 1;
    return 0;
}

/* On which nodes a job may run that goes to this pool of the core; *ret NULL: on all. The caller's
 * to free. */
static int words_of(const struct stk_live *l, const struct stk_spec *s, uint32_t pool, char **ret)
{
    bool shared = stk_live_pool_shared(&l->cfg, pool);
    json_t *where = NULL;

    if (shared) {
        where = s->where ? json_loads(s->where, 0, NULL) : json_object();
        (void)json_object_set_new(where, "pool", json_string(s->pool));
    }
    *ret = shared     ? json_dumps(where, JSON_COMPACT | JSON_SORT_KEYS)
           : s->where ? strdup(s->where)
                      : NULL;
    json_decref(where);
    return *ret || (!shared && !s->where) ? 0 : -ENOMEM;
}

static int make_set(struct stk_live *l, const char *words, uint32_t *ret_number,
                    struct stk_err *err)
{
    json_t *where = json_loads(words, 0, NULL);
    uint32_t number;
    int rc;

    rc = check_names(l, where, "nodelist", err);
    rc = rc < 0 ? rc : check_names(l, where, "exclude", err);
    number = rc < 0 ? 0 : free_number(l);
    if (rc == 0 && number == 0)
        rc = stk_err_set(err, -EAGAIN,
                         "nodelist, exclude, constraint: at most %d different ones at a time",
                         STK_MAX_NODE_SETS);
    rc = rc < 0 ? rc : define(l, number, where, err);
    json_decref(where);
    *ret_number = number;
    return rc == 0 || rc == -ENOMEM ? rc : -EINVAL;
}

int stk_live_set_of(struct stk_live *l, struct stk_spec *s, struct stk_err *err)
{
    uint32_t number;
    char *words;
    int rc = words_of(l, s, s->job.pool.i, &words);

    if (rc < 0)
        return stk_err_set(err, rc, "out of memory");
    number = words ? number_of(l, words) : 0;
    if (words && number == 0) {
        rc = make_set(l, words, &number, err);
        if (rc == 0) {
            l->sets.words[number - 1] = words;
            words = NULL;
        }
    }
    free(words);
    s->job.demand.nodes = rc == 0 ? (uint16_t)number : 0;
    return rc;
}

/* ---- after a restart, and when nodes are others ---- */

void stk_live_sets_forget(struct stk_live *l)
{
    for (uint32_t i = 0; i < STK_MAX_NODE_SETS; i++) {
        free(l->sets.words[i]);
        l->sets.words[i] = NULL;
    }
    l->sets.used = 0;
}

int stk_live_sets_load(struct stk_live *l, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);

    stk_live_sets_forget(l);
    for (uint32_t i = 0; i < s->n_jobs && s->n_sets > 0; i++) {
        const struct stk_job *j = &s->jobs[i];
        uint32_t number = j->state == STK_JOB_NONE || j->state == STK_JOB_DONE
                              ? 0
                              : s->shapes[j->shape].demand.nodes;
        const struct stk_entry *e = NULL;
        struct stk_spec spec = {0};
        json_t *json;

        if (number && !l->sets.words[number - 1])
            e = stk_entries_find(&l->entries, j->number);
        json = e ? stk_live_spec(l, e->rec.spec) : NULL;
        if (json && stk_spec_parse(json, &spec, err) == 0) {
            spec.pool = l->cfg.pools[stk_live_pool_row(&l->cfg, spec.pool, s->terms[i].queue)];
            (void)words_of(l, &spec, j->pool, &l->sets.words[number - 1]);
        }
        stk_spec_done(&spec);
        json_decref(json);
    }
    l->sets.look = true;
    return 0;
}

int stk_live_sets_renew(struct stk_live *l, struct stk_err *err)
{
    const uint32_t n = stk_core_state(l->core)->n_sets;
    int rc = 0;

    l->sets.look = false;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        json_t *where = l->sets.words[i] ? json_loads(l->sets.words[i], 0, NULL) : NULL;

        rc = where ? define(l, i + 1, where, err) : 0;
        json_decref(where);
    }
    return rc;
}
