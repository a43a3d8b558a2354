/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - where the output of a job's first task lies, by the patterns of its description. With %N
 * that is known when it has started: then it is written down anew. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"
#include "sys/json.h"
#include "sys/pattern.h"

static const char *text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

void stk_live_name_logs(struct stk_record *rec, const json_t *spec, const char *node,
                        struct stk_live_logs *logs)
{
    const struct stk_pattern p = {.number = rec->number,
                                  .array = rec->array,
                                  .index = rec->array_index,
                                  .name = rec->name,
                                  .node = node,
                                  .user = rec->user};
    const char *out = text(spec, "stdout"), *err = text(spec, "stderr"),
               *workdir = text(spec, "workdir");

    if (stk_pattern_path(out ? out : stk_pattern_default(&p), &p, workdir, logs->out, PATH_MAX) ==
        0)
        rec->stdout_path = rec->stderr_path = logs->out;
    if (err && stk_pattern_path(err, &p, workdir, logs->err, PATH_MAX) == 0)
        rec->stderr_path = logs->err;
}

static bool has_node(const char *pattern)
{
    return pattern && strstr(pattern, "%N");
}

bool stk_live_logs_found(struct stk_live *l, const struct stk_job *j, struct stk_entry *e)
{
    const struct stk_state *s = stk_core_state(l->core);
    json_t *spec = e->text && strstr(e->text, "%N") ? stk_json_loads(e->text) : NULL;
    bool has =
        j->n_pieces > 0 && (has_node(text(spec, "stdout")) || has_node(text(spec, "stderr")));
    struct stk_live_logs *logs = has ? malloc(sizeof(*logs)) : NULL;

    if (logs) {
        stk_live_name_logs(&e->rec, spec, l->cfg.nodes[s->pieces[j->first_piece].node.i].name,
                           logs);
        free(e->logs);
        e->logs = logs;
    }
    json_decref(spec);
    return logs != NULL;
}
