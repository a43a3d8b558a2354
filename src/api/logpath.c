/* SPDX-License-Identifier: Apache-2.0 */
#include "api/logpath.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sys/logcut.h"
#include "sys/pattern.h"

uint64_t stk_logpath_cap(const json_t *spec)
{
    const json_t *mib = json_object_get(spec, "log_max_mib");

    return (uint64_t)(mib ? json_integer_value(mib) : STK_LOGCUT_DEFAULT_MIB) << 20;
}

/* The node whose name the path of task 0 has: that which the job began on, the first where it
 * cannot be told. */
static const char *name_node(const struct stk_api *a, const struct stk_pattern *like,
                             const char *path, const char *workdir, const char *known)
{
    const struct stk_live_config *c = stk_live_config(a->cfg.live);
    struct stk_pattern p = *like;
    char buf[PATH_MAX];

    p.task = 0;
    for (uint32_t i = 0; known && i < c->core.n_nodes; i++) {
        p.node = c->nodes[i].name;
        if (stk_pattern_path(path, &p, workdir, buf, sizeof(buf)) == 0 && strcmp(buf, known) == 0)
            return p.node;
    }
    return c->nodes[0].name;
}

int stk_logpath(const struct stk_api *a, const struct stk_logpath *which, char *buf, size_t size)
{
    const struct stk_record *rec = which->rec;
    const json_t *spec = which->spec;
    bool err = which->err;
    struct stk_pattern p = {.number = rec->number,
                            .array = rec->array,
                            .index = rec->array_index,
                            .task = which->task,
                            .name = rec->name,
                            .user = rec->user};
    const char *workdir = json_string_value(json_object_get(spec, "workdir"));
    const char *path = err ? json_string_value(json_object_get(spec, "stderr")) : NULL;
    const char *known =
        err && rec->stderr_path && *rec->stderr_path ? rec->stderr_path : rec->stdout_path;

    if (!path)
        path = json_string_value(json_object_get(spec, "stdout"));
    if (path && which->task == 0 && known && *known && strstr(path, "%N")) {
        int n = snprintf(buf, size, "%s", known); /* the record has the node it was on */

        return n < 0 || (size_t)n >= size ? -ENOENT : 0;
    }
    p.node = path && strstr(path, "%N") ? name_node(a, &p, path, workdir, known)
                                        : stk_live_config(a->cfg.live)->nodes[0].name;
    if (!path && !spec)
        path = known;
    if (!path || !*path)
        path = stk_pattern_default(&p);
    if (stk_pattern_path(path, &p, workdir, buf, size) < 0 || buf[0] != '/')
        return -ENOENT;
    return 0;
}
