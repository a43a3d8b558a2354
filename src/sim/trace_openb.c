/* SPDX-License-Identifier: Apache-2.0 */
/* trace_openb.c - the pods of Alibaba's 2023 GPU-sharing trace.
 *
 * Columns are found by their header, as the trace's variants leave some out. A pod lives on one
 * node. A pod runs from its scheduled time (creation time where it was never scheduled) to its
 * deletion.
 *
 * See: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
 * Gradient Descent", ATC 2023.
 */
#include <string.h>

#include "sim/trace_formats.h"
#include "sim/trace_lines.h"

enum { NAME, CPU, MEM, GPUS, MILLI, SPEC, QOS, PHASE, CREATED, DELETED, SCHEDULED, N_COLUMNS };

static const char *const columns[N_COLUMNS] = {
    [NAME] = "name",
    [CPU] = "cpu_milli",
    [MEM] = "memory_mib",
    [GPUS] = "num_gpu",
    [MILLI] = "gpu_milli",
    [SPEC] = "gpu_spec",
    [QOS] = "qos",
    [PHASE] = "pod_phase",
    [CREATED] = "creation_time",
    [DELETED] = "deletion_time",
    [SCHEDULED] = "scheduled_time",
};

struct reader {
    struct stk_trace *t;
    uint32_t place[N_COLUMNS]; /* in the line, from 1; 0: the file has no such column */
    uint32_t n_fields;
};

/* The fields of one line, by column; a column the file has not is an empty field. */
struct pod {
    struct stk_field f[N_COLUMNS];
};

static int read_header(struct reader *r, struct stk_trace_lines *in, struct stk_err *err)
{
    struct stk_field f[N_COLUMNS];
    uint32_t n;

    if (!stk_lines_next(in))
        return 0;
    n = stk_lines_split(in, ',', f, N_COLUMNS);
    for (uint32_t i = 0; i < n && i < N_COLUMNS; i++)
        for (uint32_t c = 0; c < N_COLUMNS; c++)
            if (stk_field_is(f[i], columns[c]))
                r->place[c] = i + 1;
    r->n_fields = n;
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        bool needed = c == NAME || c == GPUS || (!in->untimed && (c == CREATED || c == DELETED));

        if (needed && !r->place[c])
            return stk_err_set(err, -EINVAL, "%s:%u: the header has no column \"%s\"", in->name,
                               in->number, columns[c]);
    }
    return n <= N_COLUMNS ? 0
                          : stk_err_set(err, -EINVAL, "%s:%u: expected at most %d columns, got %u",
                                        in->name, in->number, N_COLUMNS, n);
}

static int get_fields(struct stk_trace_lines *in, const struct reader *r, struct pod *p)
{
    struct stk_field f[N_COLUMNS];
    uint32_t n = stk_lines_split(in, ',', f, N_COLUMNS);

    if (n != r->n_fields)
        return stk_lines_bad_count(in, "as the header has", r->n_fields, n);
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        p->f[c] = r->place[c] ? f[r->place[c] - 1] : (struct stk_field){"", 0};
    return 0;
}

static int optional(struct stk_trace_lines *in, const struct reader *r, const struct pod *p,
                    uint32_t c, const char *what, uint32_t *ret)
{
    return p->f[c].len == 0 ? 0 : stk_lines_u32(in, p->f[c], r->place[c], what, ret);
}

static int get_demand(struct stk_trace_lines *in, const struct reader *r, struct pod *p,
                      struct stk_trace_job *j)
{
    uint64_t milli = 1000;
    int rc;

    j->tasks = 1;
    if ((rc = stk_lines_gpus(in, p->f[GPUS], r->place[GPUS], &j->gpus)) < 0 ||
        (rc = optional(in, r, p, CPU, "CPU thousandths", &j->cpu_milli)) < 0 ||
        (rc = optional(in, r, p, MEM, "MiB", &j->mem_mib)) < 0)
        return rc;
    if (p->f[MILLI].len > 0)
        rc = stk_lines_whole(in, p->f[MILLI], r->place[MILLI], "GPU thousandths", 1000, &milli);
    j->gpu_milli = (uint32_t)(milli % 1000);
    if (rc == 0 && milli < 1000 && j->gpus > 1)
        rc = stk_lines_bad(in, "expected parts of one GPU, got parts of %u", j->gpus);
    if (rc == 0 && milli == 0 && j->gpus > 0)
        rc = stk_lines_bad(in, "expected some of the GPU in field %u, got 0", r->place[MILLI]);
    if (j->gpus == 0)
        j->gpu_milli = 0;
    return rc;
}

static int get_times(struct stk_trace_lines *in, const struct reader *r, const struct pod *p,
                     struct stk_trace_job *j)
{
    stk_time deleted, start;
    int rc;

    if (in->untimed)
        return 0;
    if ((rc = stk_lines_seconds(in, p->f[CREATED], r->place[CREATED], &j->submit)) < 0 ||
        (rc = stk_lines_seconds(in, p->f[DELETED], r->place[DELETED], &deleted)) < 0)
        return rc;
    start = j->submit;
    if (p->f[SCHEDULED].len > 0 &&
        (rc = stk_lines_seconds(in, p->f[SCHEDULED], r->place[SCHEDULED], &start)) < 0)
        return rc;
    if (deleted < start)
        return stk_lines_bad(in, "expected a deletion_time not before the pod's start, got \"%s\"",
                             stk_field_show(p->f[DELETED]).text);
    j->duration = deleted - start;
    return 0;
}

/* Best-effort pods are what the cluster fills up with; all other classes hold what they have. */
static int get_class(struct stk_trace_lines *in, const struct reader *r, const struct pod *p,
                     struct stk_trace_job *j)
{
    static const char *const standard[] = {"", "LS", "Guaranteed", "Burstable"};

    if (stk_field_is(p->f[PHASE], "Failed"))
        j->cause = STK_CAUSE_FAILED;
    if (stk_field_is(p->f[QOS], "BE") || stk_field_is(p->f[QOS], "BestEffort")) {
        j->tier = STK_TIER_BEST_EFFORT;
        return 0;
    }
    for (size_t i = 0; i < sizeof(standard) / sizeof(*standard); i++)
        if (stk_field_is(p->f[QOS], standard[i]))
            return 0;
    return stk_lines_bad(in, "expected LS, BE, Burstable or Guaranteed in field %u, got \"%s\"",
                         r->place[QOS], stk_field_show(p->f[QOS]).text);
}

/* "V100M16|V100M32": any of these; nothing: any at all, and so is a pod without GPUs. */
static int get_types(struct stk_trace_lines *in, struct stk_trace *t, struct stk_field spec,
                     struct stk_trace_job *j)
{
    const char *end = spec.s + spec.len;
    uint64_t types = 0;

    uint32_t text = 0;
    int rc;

    if (spec.len == 0 || j->gpus == 0)
        return 0;
    rc = stk_lines_name(in, &t->types_texts, STK_TRACE_MAX_NAMES, spec, NULL, &text);
    if (rc < 0)
        return rc;
    j->types_text = text + 1;
    for (const char *p = spec.s; p <= end;) {
        const char *bar = memchr(p, '|', (size_t)(end - p));
        struct stk_field name = {p, (uint32_t)((bar ? bar : end) - p)};
        uint32_t number = 0;

        if (name.len == 0)
            return stk_lines_bad(in, "expected GPU types joined by |, got \"%s\"",
                                 stk_field_show(spec).text);
        rc = stk_lines_name(in, &t->gpu_types, STK_MAX_GPU_TYPES, name, NULL, &number);
        if (rc < 0)
            return rc;
        types |= UINT64_C(1) << number;
        p += name.len + 1;
    }
    j->gpu_types = types;
    return 0;
}

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct reader *r = ctx;
    struct stk_trace *t = r->t;
    struct stk_trace_job j = stk_lines_job();
    struct stk_field none = {"", 0};
    struct pod p = {{{0}}};
    int rc;

    if ((rc = get_fields(in, r, &p)) < 0 || (rc = get_demand(in, r, &p, &j)) < 0 ||
        (rc = get_times(in, r, &p, &j)) < 0 || (rc = get_class(in, r, &p, &j)) < 0 ||
        (rc = stk_lines_id(in, t, p.f[NAME], &j.id)) < 0 ||
        (rc = get_types(in, t, p.f[SPEC], &j)) < 0 ||
        (rc = stk_lines_name(in, &t->groups, STK_TRACE_MAX_NAMES, none, NULL, &j.group)) < 0 ||
        (rc = stk_lines_name(in, &t->tenants, STK_TRACE_MAX_NAMES, none, NULL, &j.tenant)) < 0)
        return rc;
    return stk_lines_push(t, &j);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    struct reader r = {.t = t};
    int rc = read_header(&r, in, err);

    return rc < 0 ? rc : stk_lines_each(in, one, &r, err);
}

static bool detect(const char *data, size_t len)
{
    return stk_text_begins(data, len, "name,cpu_milli,memory_mib,num_gpu,gpu_milli");
}

const struct stk_trace_format stk_trace_openb = {
    .name = "openb",
    .help = "Alibaba 2023 pods as CSV: name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,"
            "pod_phase,creation_time,deletion_time,scheduled_time",
    .detect = detect,
    .parse = parse,
};
