/* SPDX-License-Identifier: Apache-2.0 */
/* trace_links.c - how jobs of a trace in JSON Lines name themselves and each other: ids, arrays,
 * dependencies. A job may refer only to jobs of earlier lines that were submitted no later. */
#include <stdlib.h>
#include <string.h>

#include "sim/trace_keys.h"

int stk_line_wrong(struct stk_line_reader *r, const struct stk_line_key *k, const char *want,
                   const json_t *v)
{
    char *got = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    struct stk_field f = {got ? got : "", got ? (uint32_t)strnlen(got, STK_TRACE_MAX_LINE) : 0};

    (void)stk_lines_bad(r->in, "\"%s\" must be %s, got %s", k->name, want, stk_field_show(f).text);
    free(got);
    return -EINVAL;
}

int stk_line_read_id(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    if (json_is_string(v))
        return stk_lines_id(r->in, r->t, stk_line_text(v), &r->j.id);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return stk_line_wrong(r, k, "a whole number or a string", v);
    r->j.id = (uint64_t)json_integer_value(v);
    return 0;
}

/* The id a reference names, without adding it: -ENOENT when no job read so far has it. */
static int known_id(const struct stk_line_reader *r, const json_t *v, uint64_t *ret)
{
    struct stk_field f = json_is_string(v) ? stk_line_text(v) : (struct stk_field){NULL, 0};
    int64_t number;

    if (json_is_integer(v) && json_integer_value(v) >= 0) {
        *ret = (uint64_t)json_integer_value(v);
        return 0;
    }
    if (f.len == 0)
        return -ENOENT;
    if ((f.len == 1 || f.s[0] != '0') && stk_field_whole(f, ret))
        return 0;
    number = stk_names_find(&r->t->ids, f.s, f.len);
    *ret = STK_TRACE_ID_NAME | (uint64_t)number;
    return number < 0 ? -ENOENT : 0;
}

static int refer(struct stk_line_reader *r, const struct stk_line_key *k, const json_t *v,
                 uint32_t *ret)
{
    uint64_t id;
    int64_t on = known_id(r, v, &id);

    if (on == 0)
        on = stk_id_map_get(&r->ids, id);
    if (on == -ENOTUNIQ)
        return stk_line_wrong(r, k, "about a job whose id is its own", v);
    if (on < 0)
        return stk_line_wrong(r, k, "about a job of an earlier line", v);
    if (r->t->jobs[on].submit > r->j.submit)
        return stk_line_wrong(r, k, "about a job that was not submitted later", v);
    *ret = (uint32_t)on;
    return 0;
}

int stk_line_read_array(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    json_t *of;
    json_int_t index = 0;
    uint64_t id;
    uint32_t first = r->t->n_jobs;
    int rc = 0;

    if (json_unpack_ex(v, NULL, JSON_STRICT, "{s:o,s:I}", "of", &of, "index", &index) < 0 ||
        index < 0 || index > UINT32_MAX)
        return stk_line_wrong(r, k, "{\"of\": id, \"index\": number}", v);
    if (known_id(r, of, &id) < 0 || id != r->j.id) /* not the array's first job itself */
        rc = refer(r, k, of, &first);
    r->j.array = first + 1;
    r->j.array_index = (uint32_t)index;
    return rc;
}

static int read_dep(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    const char *type = stk_dep_type_name(STK_DEP_AFTEROK);
    json_t *on;
    struct stk_trace_dep *dep, d = {0, STK_DEP_AFTEROK};
    int rc;

    if (json_unpack_ex(v, NULL, JSON_STRICT, "{s:o,s?s}", "on", &on, "type", &type) < 0)
        return stk_line_wrong(r, k, "a list of {\"on\": id, \"type\": \"afterok\"}", v);
    while (d.type < STK_DEP_TYPE_MAX && strcmp(type, stk_dep_type_name(d.type)) != 0)
        d.type++;
    if (d.type == STK_DEP_TYPE_MAX)
        return stk_line_wrong(r, k, "of type afterok, afterany or afternotok", v);
    rc = refer(r, k, on, &d.on);
    if (rc < 0)
        return rc;
    dep = stk_trace_push_dep(r->t);
    if (!dep)
        return -ENOMEM;
    *dep = d;
    return 0;
}

int stk_line_read_after(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    size_t i, n = json_array_size(v);
    json_t *item;

    if (!json_is_array(v) || n > STK_MAX_DEPS)
        return stk_line_wrong(r, k, "a list of at most 1024 jobs", v);
    r->j.first_dep = r->t->n_deps;
    r->j.n_deps = (uint16_t)n;
    json_array_foreach(v, i, item)
    {
        int rc = read_dep(r, k, item);

        if (rc < 0) {
            r->t->n_deps = r->j.first_dep;
            return rc;
        }
    }
    return 0;
}
