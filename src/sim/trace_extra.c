/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trace_extra.h"

#include <math.h>
#include <string.h>

int stk_extra_read_resources(struct stk_trace_lines *in, struct stk_trace *t, json_t *v,
                             struct stk_trace_extra *x)
{
    if (!json_is_object(v))
        return stk_lines_bad(in, "\"resources\" must be an object such as {\"nvme_gib\": 100}");
    for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
        const char *name = json_object_iter_key(it);
        const json_t *n = json_object_iter_value(it);
        struct stk_field f = {name, (uint32_t)strnlen(name, STK_TRACE_MAX_LINE)};
        uint32_t number;
        int rc;

        if (!stk_resource_name_ok(name, f.len))
            return stk_lines_bad(in,
                                 "the name of a resource must be 1 to %d letters, digits, _ - or "
                                 "., got \"%s\"",
                                 STK_MAX_RESOURCE_NAME - 1, stk_field_show(f).text);
        if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) > UINT32_MAX)
            return stk_lines_bad(in, "resource \"%s\" must be a whole number (0 to %u)",
                                 stk_field_show(f).text, UINT32_MAX);
        rc = stk_lines_name(in, &t->resources, STK_MAX_RESOURCES, f, NULL, &number);
        if (rc < 0)
            return rc;
        x->resource[number] = (uint32_t)json_integer_value(n);
    }
    return 0;
}

static int add_speed(struct stk_trace_lines *in, struct stk_trace_extra *x, uint32_t type,
                     double speed)
{
    double milli = round(speed * STK_SPEED);

    if (!(milli >= 1 && milli <= STK_MAX_SPEED))
        return stk_lines_bad(in, "a speed in \"gpu_types\" must be 0.001 to 65.535");
    if (milli == STK_SPEED)
        return 0;
    if (x->n_speeds == STK_MAX_SPEEDS)
        return stk_lines_bad(in, "at most %d \"gpu_types\" may have a speed other than 1",
                             STK_MAX_SPEEDS);
    x->speed_type[x->n_speeds] = (uint8_t)type;
    x->speed_milli[x->n_speeds++] = (uint16_t)milli;
    return 0;
}

int stk_extra_read_speeds(struct stk_trace_lines *in, struct stk_trace *t, json_t *v,
                          struct stk_trace_extra *x, uint64_t *ret_types)
{
    uint64_t types = 0;

    if (json_object_size(v) == 0)
        return stk_lines_bad(in, "\"gpu_types\" must name at least one type");
    for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
        const char *name = json_object_iter_key(it);
        const json_t *n = json_object_iter_value(it);
        struct stk_field f = {name, (uint32_t)strnlen(name, STK_TRACE_MAX_LINE)};
        uint32_t type = 0;
        int rc = 0;

        if (f.len == 0 || !json_is_number(n))
            return stk_lines_bad(in, "\"gpu_types\" must be a list of names, or an object of names "
                                     "and speeds such as {\"h100\": 1, \"a100\": 0.5}");
        rc = stk_lines_name(in, &t->gpu_types, STK_MAX_GPU_TYPES, f, NULL, &type);
        rc = rc < 0 ? rc : add_speed(in, x, type, json_number_value(n));
        if (rc < 0)
            return rc;
        types |= UINT64_C(1) << type;
    }
    *ret_types = types;
    return 0;
}

int stk_extra_keep(struct stk_trace *t, const struct stk_trace_extra *x, struct stk_trace_job *j)
{
    bool any = x->n_speeds > 0 || x->deadline || x->min_run || x->checkpoint || x->keep_group ||
               x->reservation || x->nodes || x->movable || x->no_sleep || x->plain || x->no_save;

    for (uint32_t i = 0; i < STK_MAX_RESOURCES; i++)
        any |= x->resource[i] > 0;
    j->extra = any ? stk_trace_push_extra(t, x) : 0;
    return any && j->extra == 0 ? -ENOMEM : 0;
}

void stk_extra_put_resources(struct stk_emit *e, const struct stk_trace *t,
                             const struct stk_trace_extra *x)
{
    const char *sep = "{";

    for (uint32_t i = 0; i < t->resources.n && i < STK_MAX_RESOURCES; i++) {
        if (x->resource[i] == 0)
            continue;
        stk_emit_text(e, sep);
        stk_emit_json(e, stk_names_get(&t->resources, i));
        stk_emit_text(e, ":");
        stk_emit_u64(e, x->resource[i]);
        sep = ",";
    }
    stk_emit_text(e, *sep == '{' ? "{}" : "}");
}

uint32_t stk_extra_speed(const struct stk_trace_extra *x, uint32_t type)
{
    for (uint32_t i = 0; i < x->n_speeds; i++)
        if (x->speed_type[i] == type)
            return x->speed_milli[i];
    return STK_SPEED;
}
