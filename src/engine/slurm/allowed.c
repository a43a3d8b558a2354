/* SPDX-License-Identifier: Apache-2.0 */
/* allowed.c - on which nodes a user's own job may run.
 *
 * We tell nodes apart by their type of GPU. A job that rules out nodes so that of each type all or
 * none are left gets those types; most constraints name a type in other words. What divides nodes
 * of one type cannot be taken. */
#include "engine/slurm/allowed.h"

#include <string.h>

static bool has_word(const char *list, const char *word, size_t len)
{
    while (*list) {
        size_t n = strcspn(list, ",");

        if (n == len && strncmp(list, word, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

int stk_slurm_meets(const char *constraint, const char *features)
{
    bool all = strpbrk(constraint, "&,") != NULL, one = strchr(constraint, '|') != NULL;
    bool met = !one;

    if ((all && one) || strpbrk(constraint, "[]()*"))
        return -EINVAL;
    while (*constraint) {
        size_t n = strcspn(constraint, "&,|");
        bool has = has_word(features, constraint, n);

        if (n == 0)
            return -EINVAL;
        met = one ? met || has : met && has;
        constraint += n + (constraint[n] != '\0');
    }
    return met;
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static bool among(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0)
            return true;
    return false;
}

/* 1, 0, -EINVAL. */
static int may(const struct stk_slurm *m, const json_t *job, const char *node)
{
    const json_t *only = json_object_get(job, "req_hosts");

    if (among(json_object_get(job, "exc_hosts"), node) ||
        (json_array_size(only) > 0 && !among(only, node)))
        return 0;
    return stk_slurm_meets(text(job, "features"), text(json_object_get(m->news, node), "features"));
}

/* Types of which all nodes are allowed; *ret_part: one of which some are. NULL: not understood. */
static json_t *types_of(const struct stk_slurm *m, const json_t *job, uint32_t partition,
                        bool *ret_part, bool *ret_all)
{
    json_t *yes = json_object(), *no = json_object(), *list = json_array();
    const char *type;
    json_t *v;

    *ret_part = false;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        int rc = m->nodes[i].partition == partition ? may(m, job, m->nodes[i].name) : -1;

        if (rc < 0 && m->nodes[i].partition == partition) {
            json_decref(list);
            list = NULL;
            break;
        }
        if (rc >= 0)
            (void)json_object_set_new(
                rc ? yes : no, *m->nodes[i].gpu_type ? m->nodes[i].gpu_type : "gpu", json_true());
    }
    json_object_foreach(yes, type, v)
    {
        *ret_part |= json_object_get(no, type) != NULL;
        if (list)
            (void)json_array_append_new(list, json_string(type));
    }
    *ret_all = json_object_size(no) == 0;
    json_decref(yes);
    json_decref(no);
    return list;
}

int stk_slurm_allow(const struct stk_slurm *m, const json_t *job, uint32_t partition, json_t *wish,
                    struct stk_err *err)
{
    json_t *named = json_array_get(json_object_get(wish, "gpu_types"), 0), *types;
    size_t only = json_array_size(json_object_get(job, "req_hosts"));
    bool part = false, all = false;
    int rc = 0;

    if (!*text(job, "req_nodes") && !*text(job, "exc_nodes") && !*text(job, "features"))
        return 0;
    types = types_of(m, job, partition, &part, &all);
    if (!types)
        rc = stk_err_set(err, -EOPNOTSUPP,
                         "its constraint \"%.80s\" is more than names with & or | between them",
                         text(job, "features"));
    else if (json_array_size(types) == 0 || (named && !among(types, json_string_value(named))))
        rc = stk_err_set(err, -EOPNOTSUPP, "no node of the partition is left by its -w, -x and -C");
    else if (part ||
             (only && (json_int_t)only != json_integer_value(json_object_get(wish, "tasks"))))
        rc = stk_err_set(err, -EOPNOTSUPP,
                         "its -w, -x or -C leaves some nodes of a type of GPU and not others, and "
                         "stoker tells nodes apart by type; leave it out, or ask for a type");
    else if (!all && !named)
        (void)json_object_set(wish, "gpu_types", types);
    json_decref(types);
    return rc;
}
