/* SPDX-License-Identifier: Apache-2.0 */
/* trace_jsonl.c - our own trace format: one JSON object per line, with everything a trace job
 * knows.
 *
 *     {"id": 7, "submit_s": 12.5, "duration_s": 3600, "gpus": 8, "tenant": "vision",
 *      "after": [{"on": 3, "type": "afterok"}]}
 *
 * id, submit_s and duration_s must be there; the rest has defaults. A key that is not known is an
 * error: a typing mistake must not silently become a default. A job may refer only to jobs of
 * earlier lines that were submitted no later, so references stay valid in submit order. The keys
 * are read in the order of the table below, names last, so that a malformed line leaves none
 * behind.
 *
 * See: trace_write.c, which writes this format.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/mig.h"
#include "model/nodes.h"
#include "model/topology.h"
#include "sim/demand.h"
#include "sim/speeds.h"
#include "sim/trace_formats.h"
#include "sim/trace_keys.h"

#define MAX_NODELIST 1000 /* bytes */
#define MOST_UP 1000000   /* jobs of a group that may have to stay up */
#define AT(m) offsetof(struct stk_line_reader, j.m)
#define EXTRA(m) offsetof(struct stk_line_reader, x.m)

static void *member(struct stk_line_reader *r, const struct stk_line_key *k)
{
    return (char *)r + k->member;
}

static int read_time(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    double s = json_number_value(v), whole = floor(s);

    if (!json_is_number(v) || !(s >= 0 && s <= (double)STK_MAX_DURATION / 1e6))
        return stk_line_wrong(r, k, "a number of seconds (0 to 3155760000)", v);
    /* the parts apart: seconds since 1970 and a microsecond do not fit in a double together */
    *(stk_time *)member(r, k) = (stk_time)whole * STK_SECOND + llround((s - whole) * 1e6);
    return 0;
}

static int read_waited(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    r->j.recorded = true;
    return read_time(r, k, v);
}

static int read_u32(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    json_int_t n = json_integer_value(v);
    char want[64];

    if (!json_is_integer(v) || n < 0 || (uint64_t)n > k->max) {
        (void)snprintf(want, sizeof(want), "a whole number (0 to %llu)",
                       (unsigned long long)k->max);
        return stk_line_wrong(r, k, want, v);
    }
    *(uint32_t *)member(r, k) = (uint32_t)n;
    return 0;
}

static int read_priority(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < -STK_MAX_PRIORITY || n > STK_MAX_PRIORITY)
        return stk_line_wrong(r, k, "a whole number (-1000000000 to 1000000000)", v);
    r->j.priority = (int32_t)n;
    return 0;
}

static int read_cpus(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    double n = json_number_value(v);

    if (!json_is_number(v) || !(n >= 0 && n * 1000 < UINT32_MAX + 0.5))
        return stk_line_wrong(r, k, "a number of CPUs (0 to 4294967.295)", v);
    r->j.cpu_milli = (uint32_t)llround(n * 1000);
    return 0;
}

static int read_slo(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    double n = json_number_value(v);

    if (!json_is_number(v) || !(n >= 0 && n <= 1))
        return stk_line_wrong(r, k, "a share of its speed (0 to 1)", v);
    r->j.slo_milli = (uint32_t)llround(n * 1000);
    return 0;
}

static int read_mig(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    const char *s = json_string_value(v);

    r->j.mig = s ? stk_mig_parse(s, json_string_length(v)) : 0;
    return r->j.mig ? 0 : stk_line_wrong(r, k, "the name of a MIG profile such as \"1g.10gb\"", v);
}

/* A part of a GPU: a MIG instance, or thousandths of one. */
static int check_part(struct stk_line_reader *r, json_t *o)
{
    const json_t *milli = json_object_get(o, "gpu_milli");

    if (r->j.mig && (milli || json_object_get(o, "gpu_mem_mib")))
        return stk_lines_bad(r->in, "\"mig\" says it all: no \"gpu_milli\", no \"gpu_mem_mib\"");
    if (r->j.mig)
        r->j.gpu_milli = stk_mig_milli((uint16_t)r->j.mig);
    if (milli && r->j.gpu_milli == 0)
        return stk_lines_bad(r->in, "\"gpu_milli\" must be 1 to 1000");
    r->j.gpu_milli %= 1000;
    if (r->j.gpu_milli && r->j.gpus != 1)
        return stk_lines_bad(r->in, r->j.mig ? "with \"mig\", \"gpus\" must be 1"
                                             : "with \"gpu_milli\" below 1000, \"gpus\" must be 1");
    if (r->j.share_max && (r->j.mig || (!r->j.gpu_milli && (r->j.share_max != 2 || !r->j.gpus))))
        return stk_lines_bad(r->in, r->j.mig ? "with \"mig\" there is no \"share_max\""
                                             : "\"share_max\" of whole GPUs must be 2");
    return 0;
}

static int read_bool(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    if (!json_is_boolean(v))
        return stk_line_wrong(r, k, "true or false", v);
    *(bool *)member(r, k) = json_is_true(v);
    return 0;
}

/* What the job has not, where the key says that it has it. */
static int read_not(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    int rc = read_bool(r, k, v);

    if (rc == 0)
        *(bool *)member(r, k) = json_is_false(v);
    return rc;
}

static const char *suspend_name(unsigned i)
{
    return i ? "never" : "auto";
}

static const char *level_name(unsigned i)
{
    return i == STK_AT_GPU ? NULL : stk_level_name((enum stk_level)i);
}

/* Wishes of topology that contradict each other; the core has the rules. */
static int check_near(struct stk_line_reader *r)
{
    const struct stk_demand d = stk_trace_plain(&r->j);
    struct stk_err why;

    return stk_demand_near_check(&d, &why) < 0 ? stk_lines_bad(r->in, "%s", why.text) : 0;
}

static const char *kind_name(unsigned i)
{
    return stk_kind_name((enum stk_job_kind)i);
}

static const char *tier_name(unsigned i)
{
    return stk_tier_name((enum stk_tier)i);
}

/* How a job may end by itself; other causes are the scheduler's. */
static const char *cause_name(unsigned i)
{
    if (i == STK_CAUSE_NONE || i == STK_CAUSE_EVICTED || i == STK_CAUSE_DEPENDENCY)
        return NULL;
    return stk_cause_name((enum stk_cause)i);
}

/* One of 'max' names; NULL: not to be chosen. */
static int read_choice(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    const char *s = json_string_value(v);
    char want[160] = "one of";
    size_t len;

    for (unsigned i = 0; s && i < k->max; i++) {
        if (k->choice(i) && strcmp(s, k->choice(i)) == 0) {
            *(uint8_t *)member(r, k) = (uint8_t)i;
            return 0;
        }
    }
    for (unsigned i = 0; i < k->max; i++) {
        len = strlen(want);
        if (k->choice(i))
            (void)snprintf(want + len, sizeof(want) - len, "%s%s", len > 6 ? ", " : " ",
                           k->choice(i));
    }
    return stk_line_wrong(r, k, want, v);
}

static int read_name(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    struct stk_names *names = k->member == AT(tenant) ? &r->t->tenants : &r->t->groups;

    if (!json_is_string(v) || json_string_length(v) == 0)
        return stk_line_wrong(r, k, "a name", v);
    return stk_lines_name(r->in, names, STK_TRACE_MAX_NAMES, stk_line_text(v), NULL, member(r, k));
}

/* Queue or user: its number + 1. */
static int read_place(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    struct stk_names *names = k->member == AT(queue) ? &r->t->queues : &r->t->users;
    uint32_t *at = member(r, k);
    int rc;

    if (!json_is_string(v) || json_string_length(v) == 0)
        return stk_line_wrong(r, k, "a name", v);
    rc = stk_lines_name(r->in, names, STK_TRACE_MAX_NAMES, stk_line_text(v), NULL, at);
    *at += rc == 0;
    return rc;
}

static int read_reservation(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    int rc;

    if (!json_is_string(v) || json_string_length(v) == 0)
        return stk_line_wrong(r, k, "the name of a reservation", v);
    rc = stk_lines_name(r->in, &r->t->reservations, STK_TRACE_MAX_NAMES, stk_line_text(v), NULL,
                        &r->x.reservation);
    r->x.reservation += rc == 0;
    return rc;
}

/* "0-3,7": numbers of nodes; or 7. */
static int read_nodelist(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    const char *s = json_string_value(v);
    char one[24];
    int rc;

    if (json_is_integer(v)) {
        (void)snprintf(one, sizeof(one), "%lld", (long long)json_integer_value(v));
        s = one;
    }

    if (!s || !*s || s[strspn(s, "0123456789,-")] != '\0' || strlen(s) > MAX_NODELIST)
        return stk_line_wrong(r, k, "numbers of nodes such as \"0-3,7\"", v);
    rc = stk_lines_name(r->in, &r->t->node_lists, STK_MAX_NODE_SETS,
                        (struct stk_field){s, (uint32_t)strlen(s)}, NULL, &r->x.nodes);
    r->x.nodes += rc == 0;
    return rc;
}

/* {"group": NAME, "min": NUMBER}: of the jobs of this group so many stay up. */
static int read_keep_up(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    json_t *group;
    json_int_t least = 0;
    int rc;

    if (json_unpack_ex(v, NULL, JSON_STRICT, "{s:o,s?I}", "group", &group, "min", &least) < 0 ||
        !json_is_string(group) || json_string_length(group) == 0 || least < 0 || least > MOST_UP)
        return stk_line_wrong(r, k, "{\"group\": name, \"min\": number (0 to 1000000)}", v);
    rc = stk_lines_name(r->in, &r->t->keep_groups, STK_TRACE_MAX_NAMES, stk_line_text(group), NULL,
                        &r->x.keep_group);
    r->x.keep_group += rc == 0;
    r->x.keep_min = (uint32_t)least;
    return rc;
}

static int read_gpu_types(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    const json_t *item;
    uint64_t types = 0;
    size_t i;

    if (json_is_object(v))
        return stk_extra_read_speeds(r->in, r->t, v, &r->x, &r->j.gpu_types);
    if (!json_is_array(v) || json_array_size(v) == 0)
        return stk_line_wrong(r, k, "a list of names", v);
    json_array_foreach(v, i, item)
    {
        uint32_t number = 0;
        int rc;

        if (!json_is_string(item) || json_string_length(item) == 0)
            return stk_line_wrong(r, k, "a list of names", v);
        rc = stk_lines_name(r->in, &r->t->gpu_types, STK_MAX_GPU_TYPES, stk_line_text(item), NULL,
                            &number);
        if (rc < 0)
            return rc;
        types |= UINT64_C(1) << number;
    }
    r->j.gpu_types = types;
    return 0;
}

static int read_resources(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    (void)k;
    return stk_extra_read_resources(r->in, r->t, v, &r->x);
}

static int read_steps(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < 1 || (uint64_t)n > STK_MAX_STEPS)
        return stk_line_wrong(r, k, "a whole number (1 to 1000000000000000)", v);
    r->j.steps = (uint64_t)n;
    return 0;
}

/* Its row in the speeds, which are read when the first job needs them. */
static int read_job_type(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v)
{
    const char *name = json_string_value(v);
    struct stk_err why = {{0}};
    int64_t row;

    if (!name)
        return stk_line_wrong(r, k, "a name", v);
    if (stk_speed_table_for(r->t, r->in, "this trace", &why) < 0)
        return stk_lines_bad(r->in, "\"job_type\": %.200s", why.text);
    row = stk_speed_table_row(r->t->speeds, name);
    if (row < 0)
        return stk_line_wrong(r, k, "a kind of job that the throughputs have", v);
    r->j.speed_row = (uint32_t)row;
    return 0;
}

static const struct stk_line_key keys[] = {
    {"submit_s", read_time, AT(submit), 0, NULL, true},
    {"duration_s", read_time, AT(duration), 0, NULL, true},
    {"estimate_s", read_time, AT(estimate), 0, NULL, false},
    {"begin_s", read_time, AT(begin), 0, NULL, false},
    {"waited_s", read_waited, AT(waited), 0, NULL, false},
    {"deadline_s", read_time, EXTRA(deadline), 0, NULL, false},
    {"min_run_s", read_time, EXTRA(min_run), 0, NULL, false},
    {"checkpoint_s", read_time, EXTRA(checkpoint), 0, NULL, false},
    {"movable", read_bool, EXTRA(movable), 0, NULL, false},
    {"suspend", read_choice, EXTRA(no_sleep), 2, suspend_name, false},
    {"plain", read_bool, EXTRA(plain), 0, NULL, false},
    {"saves", read_not, EXTRA(no_save), 0, NULL, false},
    {"gpus", read_u32, AT(gpus), STK_MAX_GPUS, NULL, false},
    {"tasks", read_u32, AT(tasks), STK_MAX_TASKS, NULL, false},
    {"cpus", read_cpus, 0, 0, NULL, false},
    {"mem_mib", read_u32, AT(mem_mib), UINT32_MAX, NULL, false},
    {"gpu_milli", read_u32, AT(gpu_milli), 1000, NULL, false},
    {"gpu_mem_mib", read_u32, AT(gpu_mem_mib), UINT32_MAX, NULL, false},
    {"share_max", read_u32, AT(share_max), UINT8_MAX, NULL, false},
    {"slo", read_slo, 0, 0, NULL, false},
    {"mig", read_mig, 0, 0, NULL, false},
    {"priority", read_priority, 0, 0, NULL, false},
    {"kind", read_choice, AT(kind), STK_KIND_MAX, kind_name, false},
    {"tier", read_choice, AT(tier), STK_TIER_MAX, tier_name, false},
    {"ends", read_choice, AT(cause), STK_CAUSE_MAX, cause_name, false},
    {"held", read_bool, AT(held), 0, NULL, false},
    {"level", read_choice, AT(level), STK_AT_FAR, level_name, false},
    {"prefer", read_choice, AT(prefer), STK_AT_FAR, level_name, false},
    {"subgroup", read_u32, AT(subgroup), STK_MAX_TASKS, NULL, false},
    {"subgroup_level", read_choice, AT(subgroup_level), STK_AT_FAR, level_name, false},
    {"per_node", read_u32, AT(per_node), STK_MAX_TASKS, NULL, false},
    {"exclusive", read_bool, AT(exclusive), 0, NULL, false},
    {"steps", read_steps, 0, 0, NULL, false},
    {"job_type", read_job_type, 0, 0, NULL, false},
    {"id", stk_line_read_id, 0, 0, NULL, true},
    {"gpu_types", read_gpu_types, 0, 0, NULL, false},
    {"resources", read_resources, 0, 0, NULL, false},
    {"tenant", read_name, AT(tenant), 0, NULL, false},
    {"group", read_name, AT(group), 0, NULL, false},
    {"pool", read_name, AT(group), 0, NULL, false}, /* another word for group */
    {"keep_up", read_keep_up, 0, 0, NULL, false},
    {"queue", read_place, AT(queue), 0, NULL, false},
    {"user", read_place, AT(user), 0, NULL, false},
    {"reservation", read_reservation, 0, 0, NULL, false},
    {"nodelist", read_nodelist, 0, 0, NULL, false},
    {"array", stk_line_read_array, 0, 0, NULL, false},
    {"after", stk_line_read_after, 0, 0, NULL, false},
};
#define N_KEYS (sizeof(keys) / sizeof(*keys))

static int check_keys(struct stk_line_reader *r, json_t *o)
{
    const char *name;
    json_t *v;

    json_object_foreach(o, name, v)
    {
        size_t i = 0;

        while (i < N_KEYS && strcmp(keys[i].name, name) != 0)
            i++;
        if (i == N_KEYS) {
            struct stk_field f = {name, (uint32_t)strnlen(name, STK_TRACE_MAX_LINE)};

            return stk_lines_bad(r->in, "unknown key \"%s\"", stk_field_show(f).text);
        }
    }
    if (json_object_get(o, "group") && json_object_get(o, "pool"))
        return stk_lines_bad(r->in, "\"group\" and \"pool\" are two words for one thing");
    if (!json_object_get(o, "steps") != !json_object_get(o, "job_type"))
        return stk_lines_bad(r->in, "\"steps\" and \"job_type\" go together");
    return 0;
}

static int read_object(struct stk_line_reader *r, json_t *o)
{
    struct stk_field none = {"", 0};
    int rc;

    r->j = stk_lines_job();
    r->x = (struct stk_trace_extra){.n_speeds = 0};
    r->j.gpus = 1;
    rc = check_keys(r, o);
    for (size_t i = 0; rc == 0 && i < N_KEYS; i++) {
        json_t *v = json_object_get(o, keys[i].name);

        if (v)
            rc = keys[i].read(r, &keys[i], v);
        else if (keys[i].needed)
            rc = stk_lines_bad(r->in, "there is no \"%s\"", keys[i].name);
    }
    if (rc == 0 && (uint64_t)r->j.gpus * r->j.tasks > STK_MAX_GPUS)
        rc = stk_lines_bad(r->in, "\"gpus\" times \"tasks\" must be at most %d", STK_MAX_GPUS);
    rc = rc < 0 ? rc : check_part(r, o);
    if (rc == 0 && r->x.n_speeds > 0 && r->j.gpus == 0)
        rc = stk_lines_bad(r->in, "speeds in \"gpu_types\" have no meaning without \"gpus\"");
    rc = rc < 0 ? rc : check_near(r);
    if (rc == 0 && !json_object_get(o, "tenant"))
        rc = stk_lines_name(r->in, &r->t->tenants, STK_TRACE_MAX_NAMES, none, NULL, &r->j.tenant);
    if (rc == 0 && !json_object_get(o, "group") && !json_object_get(o, "pool"))
        rc = stk_lines_name(r->in, &r->t->groups, STK_TRACE_MAX_NAMES, none, NULL, &r->j.group);
    return rc;
}

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct stk_line_reader *r = ctx;
    uint32_t n_deps = r->t->n_deps;
    json_error_t e;
    json_t *o = json_loadb(in->text.s, in->text.len, JSON_REJECT_DUPLICATES, &e);
    int rc;

    if (!o)
        return stk_lines_bad(in, "expected a JSON object, but at column %d: %.120s", e.column,
                             e.text);
    rc = json_is_object(o) ? read_object(r, o) : stk_lines_bad(in, "expected a JSON object");
    json_decref(o);
    if (rc == 0)
        rc = stk_extra_keep(r->t, &r->x, &r->j);
    if (rc == 0)
        rc = stk_lines_push(r->t, &r->j);
    if (rc < 0) {
        r->t->n_deps = n_deps;
        return rc;
    }
    return stk_id_map_put(&r->ids, r->j.id, r->t->n_jobs - 1);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    struct stk_line_reader r = {.t = t, .in = in};
    int rc = stk_lines_each(in, one, &r, err);

    stk_id_map_done(&r.ids);
    return rc;
}

static bool detect(const char *data, size_t len)
{
    return stk_text_begins(data, len, "{");
}

const struct stk_trace_format stk_trace_jsonl = {
    .name = "jsonl",
    .help = "stoker's own: one JSON object per line with id, submit_s, duration_s, gpus, ...",
    .detect = detect,
    .parse = parse,
};
