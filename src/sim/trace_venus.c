/* SPDX-License-Identifier: Apache-2.0 */
/* trace_venus.c - the Helios traces of SenseTime (Venus and its sisters), one line per job.
 *
 * The number of CPUs is checked but not asked for: the published experiments place by GPUs alone,
 * and the trace does not say how many CPUs a node has. Jobs of one second keep the file's order.
 *
 * See: Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
 * Datacenters", SC 2021.
 */
#include "sim/trace_formats.h"
#include "sim/trace_lines.h"

#define COLUMNS "job_id,submit_s,vc,user,gpu_num,cpu_num,duration_s,state"
enum { JOB_ID, SUBMIT, VC, USER, GPUS, CPUS, DURATION, STATE, N_FIELDS };

struct reader {
    struct stk_trace *t;
    struct stk_last_name group, tenant;
};

static const struct {
    const char *name;
    enum stk_cause cause;
} states[] = {
    {"COMPLETED", STK_CAUSE_OK},        {"CANCELLED", STK_CAUSE_CANCELLED},
    {"FAILED", STK_CAUSE_FAILED},       {"TIMEOUT", STK_CAUSE_TIMEOUT},
    {"NODE_FAIL", STK_CAUSE_NODE_LOST}, {"OUT_OF_MEMORY", STK_CAUSE_OOM},
    {"PREEMPTED", STK_CAUSE_CANCELLED}, {"BOOT_FAIL", STK_CAUSE_NOT_STARTED},
};

static int cause_of(struct stk_trace_lines *in, struct stk_field f, uint8_t *ret)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        if (stk_field_is(f, states[i].name)) {
            *ret = (uint8_t)states[i].cause;
            return 0;
        }
    }
    return stk_lines_bad(
        in, "expected a state such as COMPLETED, CANCELLED, FAILED in field %d, got \"%s\"",
        STATE + 1, stk_field_show(f).text);
}

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct reader *r = ctx;
    struct stk_trace_job j = stk_lines_job();
    struct stk_field f[N_FIELDS];
    uint32_t n = stk_lines_split(in, ',', f, N_FIELDS), cpus;
    int rc = 0;

    if (n != N_FIELDS)
        return stk_lines_bad_count(in, COLUMNS, N_FIELDS, n);
    if ((rc = stk_lines_seconds(in, f[SUBMIT], SUBMIT + 1, &j.submit)) < 0 ||
        (rc = stk_lines_gpus(in, f[GPUS], GPUS + 1, &j.gpus)) < 0 ||
        (rc = stk_lines_u32(in, f[CPUS], CPUS + 1, "CPUs", &cpus)) < 0 ||
        (rc = stk_lines_seconds(in, f[DURATION], DURATION + 1, &j.duration)) < 0 ||
        (rc = cause_of(in, f[STATE], &j.cause)) < 0 ||
        (rc = stk_lines_id(in, r->t, f[JOB_ID], &j.id)) < 0 ||
        (rc = stk_lines_name(in, &r->t->groups, STK_TRACE_MAX_NAMES, f[VC], &r->group, &j.group)) <
            0 ||
        (rc = stk_lines_name(in, &r->t->tenants, STK_TRACE_MAX_NAMES, f[USER], &r->tenant,
                             &j.tenant)) < 0)
        return rc;
    return stk_lines_push(r->t, &j);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    struct reader r = {.t = t};
    int rc = stk_lines_header(in, COLUMNS, err);

    return rc < 0 ? rc : stk_lines_each(in, one, &r, err);
}

static bool detect(const char *data, size_t len)
{
    return stk_text_begins(data, len, COLUMNS);
}

const struct stk_trace_format stk_trace_venus = {
    .name = "venus",
    .help = "Helios (Venus, Saturn, ...) as CSV: " COLUMNS,
    .detect = detect,
    .parse = parse,
};
