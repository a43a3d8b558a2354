/* SPDX-License-Identifier: Apache-2.0 */
#include "api/logpath.h"

#include <stdio.h>
#include <string.h>

#include "sys/pattern.h"

int stk_logpath(const struct stk_api *a, const struct stk_logpath *which, char *buf, size_t size)
{
    const struct stk_record *rec = which->rec;
    const json_t *spec = which->spec;
    bool err = which->err;
    const struct stk_pattern p = {.number = rec->number,
                                  .array = rec->array,
                                  .index = rec->array_index,
                                  .task = which->task,
                                  .name = rec->name,
                                  .node = stk_live_config(a->cfg.live)->nodes[0].name,
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
    if (!path && !spec)
        path = known;
    if (!path || !*path)
        path = stk_pattern_default(&p);
    if (stk_pattern_path(path, &p, workdir, buf, size) < 0 || buf[0] != '/')
        return -ENOENT;
    return 0;
}
