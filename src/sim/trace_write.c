/* SPDX-License-Identifier: Apache-2.0 */
/* trace_write.c - a trace as JSON Lines, such that reading it back gives the same trace.
 *
 * What has its default value is left out. Jobs refer to each other by id, so a trace in which a job
 * depends on one of two jobs with the same id cannot be written, and is refused before the file is
 * touched.
 *
 * See: trace_jsonl.c, which reads this format.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/mig.h"
#include "model/topology.h"
#include "sim/emit.h"
#include "sim/speeds.h"
#include "sim/trace_extra.h"
#include "sim/trace_ids.h"

static void key(struct stk_emit *e, const char *name)
{
    stk_emit_text(e, ",\"");
    stk_emit_text(e, name);
    stk_emit_text(e, "\":");
}

static void put_id(struct stk_emit *e, const struct stk_trace *t, uint64_t id)
{
    if (id & STK_TRACE_ID_NAME)
        stk_emit_json(e, stk_names_get(&t->ids, (uint32_t)id));
    else
        stk_emit_u64(e, id);
}

static void put_u32(struct stk_emit *e, const char *name, uint32_t v)
{
    if (v != 0) {
        key(e, name);
        stk_emit_u64(e, v);
    }
}

static void put_time(struct stk_emit *e, const char *name, stk_time v)
{
    if (v != 0) {
        key(e, name);
        stk_emit_us(e, v);
    }
}

static void put_text(struct stk_emit *e, const char *name, const char *v)
{
    key(e, name);
    stk_emit_json(e, v);
}

static void put_work(struct stk_emit *e, const struct stk_trace *t, const struct stk_trace_job *j)
{
    if (j->steps == 0 || !t->speeds)
        return;
    key(e, "steps");
    stk_emit_u64(e, j->steps);
    put_text(e, "job_type", stk_names_get(&t->speeds->rows, j->speed_row));
}

/* ["a","b"], or {"a":1,"b":0.5} when they differ in speed. */
static void put_types(struct stk_emit *e, const struct stk_trace *t, const struct stk_trace_job *j)
{
    const struct stk_trace_extra *x = j->extra ? &t->extras[j->extra - 1] : NULL;
    bool speeds = x && x->n_speeds > 0;
    const char *sep = speeds ? "{" : "[";

    for (uint32_t i = 0; i < t->gpu_types.n && i < STK_MAX_GPU_TYPES; i++) {
        if (!(j->gpu_types >> i & 1))
            continue;
        stk_emit_text(e, sep);
        stk_emit_json(e, stk_names_get(&t->gpu_types, i));
        if (speeds) {
            stk_emit_text(e, ":");
            stk_emit_us(e, (stk_time)stk_extra_speed(x, i) * 1000); /* thousandths */
        }
        sep = ",";
    }
    stk_emit_text(e, speeds ? "}" : "]");
}

static void put_resources(struct stk_emit *e, const struct stk_trace *t,
                          const struct stk_trace_job *j)
{
    const struct stk_trace_extra *x = j->extra ? &t->extras[j->extra - 1] : NULL;
    bool any = false;

    for (uint32_t i = 0; x && i < STK_MAX_RESOURCES; i++)
        any |= x->resource[i] > 0;
    if (!any)
        return;
    key(e, "resources");
    stk_extra_put_resources(e, t, x);
}

static void put_level(struct stk_emit *e, const char *name, uint8_t level)
{
    if (level)
        put_text(e, name, stk_level_name((enum stk_level)level));
}

/* What it says about giving way, and its deadline. */
static void put_terms(struct stk_emit *e, const struct stk_trace *t, const struct stk_trace_job *j)
{
    const struct stk_trace_extra *x = j->extra ? &t->extras[j->extra - 1] : NULL;

    if (!x)
        return;
    put_time(e, "deadline_s", x->deadline);
    put_time(e, "min_run_s", x->min_run);
    put_time(e, "checkpoint_s", x->checkpoint);
    stk_emit_text(e, x->movable ? ",\"movable\":true" : "");
    stk_emit_text(e, x->no_sleep ? ",\"suspend\":\"never\"" : "");
    stk_emit_text(e, x->plain ? ",\"plain\":true" : "");
    stk_emit_text(e, x->no_save ? ",\"saves\":false" : "");
    if (x->nodes)
        put_text(e, "nodelist", stk_names_get(&t->node_lists, x->nodes - 1));
    if (x->reservation)
        put_text(e, "reservation", stk_names_get(&t->reservations, x->reservation - 1));
    if (!x->keep_group)
        return;
    stk_emit_text(e, ",\"keep_up\":{\"group\":");
    stk_emit_json(e, stk_names_get(&t->keep_groups, x->keep_group - 1));
    key(e, "min");
    stk_emit_u64(e, x->keep_min);
    stk_emit_text(e, "}");
}

static void put_near(struct stk_emit *e, const struct stk_trace_job *j)
{
    put_level(e, "level", j->level);
    put_level(e, "prefer", j->prefer);
    put_u32(e, "subgroup", j->subgroup);
    put_level(e, "subgroup_level", j->subgroup_level);
    put_u32(e, "per_node", j->per_node);
    if (j->exclusive)
        stk_emit_text(e, ",\"exclusive\":true");
}

static void put_demand(struct stk_emit *e, const struct stk_trace *t, const struct stk_trace_job *j)
{
    char mig[STK_MIG_NAME_LEN];

    key(e, "gpus");
    stk_emit_u64(e, j->gpus);
    put_u32(e, "tasks", j->tasks);
    put_time(e, "cpus", (stk_time)j->cpu_milli * 1000); /* thousandths, as microseconds are */
    put_u32(e, "mem_mib", j->mem_mib);
    if (j->mig)
        put_text(e, "mig", stk_mig_name((uint16_t)j->mig, mig));
    else
        put_u32(e, "gpu_milli", j->gpu_milli);
    put_u32(e, "gpu_mem_mib", j->gpu_mem_mib);
    put_u32(e, "share_max", j->share_max);
    put_time(e, "slo", (stk_time)j->slo_milli * 1000);
    put_resources(e, t, j);
    put_near(e, j);
    if (j->gpu_types == STK_ANY_GPU_TYPE)
        return;
    key(e, "gpu_types");
    put_types(e, t, j);
}

static void put_links(struct stk_emit *e, const struct stk_trace *t, const struct stk_trace_job *j)
{
    if (j->array) {
        key(e, "array");
        stk_emit_text(e, "{\"of\":");
        put_id(e, t, t->jobs[j->array - 1].id);
        key(e, "index");
        stk_emit_u64(e, j->array_index);
        stk_emit_text(e, "}");
    }
    if (j->n_deps == 0)
        return;
    key(e, "after");
    for (uint32_t i = 0; i < j->n_deps; i++) {
        const struct stk_trace_dep *d = &t->deps[j->first_dep + i];

        stk_emit_text(e, i ? ",{\"on\":" : "[{\"on\":");
        put_id(e, t, t->jobs[d->on].id);
        put_text(e, "type", stk_dep_type_name(d->type));
        stk_emit_text(e, "}");
    }
    stk_emit_text(e, "]");
}

static void put_job(struct stk_emit *e, const struct stk_trace *t, const struct stk_trace_job *j)
{
    stk_emit_text(e, "{\"id\":");
    put_id(e, t, j->id);
    key(e, "submit_s");
    stk_emit_us(e, j->submit);
    key(e, "duration_s");
    stk_emit_us(e, j->duration);
    put_time(e, "estimate_s", j->estimate);
    put_time(e, "begin_s", j->begin);
    if (j->recorded) {
        key(e, "waited_s");
        stk_emit_us(e, j->waited);
    }
    put_work(e, t, j);
    put_demand(e, t, j);
    if (j->tenant < t->tenants.n)
        put_text(e, "tenant", stk_names_get(&t->tenants, j->tenant));
    if (j->group < t->groups.n)
        put_text(e, "group", stk_names_get(&t->groups, j->group));
    if (j->queue)
        put_text(e, "queue", stk_names_get(&t->queues, j->queue - 1));
    if (j->user)
        put_text(e, "user", stk_names_get(&t->users, j->user - 1));
    if (j->priority != 0) {
        key(e, "priority");
        stk_emit_text(e, j->priority < 0 ? "-" : "");
        stk_emit_u64(e, (uint64_t)llabs((long long)j->priority));
    }
    if (j->kind != STK_KIND_TRAIN)
        put_text(e, "kind", stk_kind_name((enum stk_job_kind)j->kind));
    if (j->tier != STK_TIER_STANDARD)
        put_text(e, "tier", stk_tier_name((enum stk_tier)j->tier));
    if (j->cause != STK_CAUSE_OK)
        put_text(e, "ends", stk_cause_name((enum stk_cause)j->cause));
    if (j->held)
        stk_emit_text(e, ",\"held\":true");
    put_terms(e, t, j);
    put_links(e, t, j);
    stk_emit_text(e, "}\n");
}

static bool links_resolve(const struct stk_trace *t, const struct stk_id_map *ids,
                          const struct stk_trace_job *j)
{
    if (j->array && stk_id_map_get(ids, t->jobs[j->array - 1].id) != (int64_t)j->array - 1)
        return false;
    for (uint32_t i = 0; i < j->n_deps; i++) {
        uint32_t on = t->deps[j->first_dep + i].on;

        if (stk_id_map_get(ids, t->jobs[on].id) != (int64_t)on)
            return false;
    }
    return true;
}

/* Can every reference be written as an id? */
static int check_links(const struct stk_trace *t, struct stk_err *err)
{
    struct stk_id_map ids = {0};
    bool linked = false;
    int rc = 0;

    for (uint32_t i = 0; i < t->n_jobs && !linked; i++)
        linked = t->jobs[i].array || t->jobs[i].n_deps;
    for (uint32_t i = 0; linked && rc == 0 && i < t->n_jobs; i++)
        if (stk_id_map_put(&ids, t->jobs[i].id, i) < 0)
            rc = stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; linked && rc == 0 && i < t->n_jobs; i++)
        if (!links_resolve(t, &ids, &t->jobs[i]))
            rc = stk_err_set(
                err, -EINVAL,
                "job %" PRIu32 " of the trace refers to a job whose id another job has too", i + 1);
    stk_id_map_done(&ids);
    return rc;
}

int stk_trace_write_jsonl(const struct stk_trace *t, const char *path, struct stk_err *err)
{
    struct stk_emit e;
    FILE *f;
    int rc = check_links(t, err);

    if (rc < 0)
        return rc;
    f = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!f)
        return stk_err_set(err, -errno, "%s: %s", path, strerror(errno));
    stk_emit_init(&e, f);
    for (uint32_t i = 0; i < t->n_jobs; i++)
        put_job(&e, t, &t->jobs[i]);
    rc = stk_emit_end(&e);
    if (f != stdout && fclose(f) != 0 && rc == 0)
        rc = -errno;
    return rc < 0 ? stk_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}
