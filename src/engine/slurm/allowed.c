/* SPDX-License-Identifier: Apache-2.0 */
/* allowed.c - on which nodes a user's own job may run: its -w, -x and -C are those of our own
 * descriptions. In a constraint our words and Slurm's mean the same, but for numbers of nodes by
 * feature, which cannot be taken. */
#include "engine/slurm/allowed.h"

#include <stdio.h>
#include <string.h>

#include "model/where.h"
#include "sys/json.h"

/* Those of the names that are ours; others cannot be meant by anything that we decide. */
static json_t *ours(const struct stk_slurm *m, const json_t *list)
{
    json_t *out = json_array(), *name;
    size_t i;

    json_array_foreach(list, i, name)
    {
        if (stk_slurm_find_node(m, json_string_value(name)) < m->n_nodes)
            (void)json_array_append(out, name);
    }
    return out;
}

static void set_list(const struct stk_slurm *m, const json_t *job, const char *from, json_t *wish,
                     const char *to)
{
    json_t *list = ours(m, json_object_get(job, from));

    if (json_array_size(list) > 0)
        (void)json_object_set(wish, to, list);
    json_decref(list);
}

int stk_slurm_allow(const struct stk_slurm *m, const json_t *job, json_t *wish, struct stk_err *err)
{
    size_t only = json_array_size(json_object_get(job, "req_hosts"));
    const char *constraint = stk_str(job, "features");
    struct stk_err why = {""};

    if (only && (json_int_t)only != stk_whole(wish, "tasks"))
        return stk_err_set(err, -EOPNOTSUPP,
                           "its -w names %zu node%s and it asks for %lld; name as many, or none",
                           only, only == 1 ? "" : "s", (long long)stk_whole(wish, "tasks"));
    if (*constraint && stk_where_meets(constraint, NULL, NULL, &why) < 0)
        return stk_err_set(err, -EOPNOTSUPP, "its constraint cannot be taken: %.200s", why.text);
    if (*constraint)
        (void)json_object_set_new(wish, "constraint", json_string(constraint));
    set_list(m, job, "req_hosts", wish, "nodelist");
    set_list(m, job, "exc_hosts", wish, "exclude");
    return 0;
}
