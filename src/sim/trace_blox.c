/* SPDX-License-Identifier: Apache-2.0 */
/* trace_blox.c - what the workload generator of Blox writes. Durations are fractions of a second
 * and are kept to the nearest microsecond.
 *
 * See: Agarwal et al., "Blox: A Modular Toolkit for Deep Learning Schedulers", EuroSys 2024.
 */
#include "sim/trace_formats.h"
#include "sim/trace_lines.h"

#define COLUMNS "job,arrival_s,duration_s,gpus"
enum { JOB, ARRIVAL, DURATION, GPUS, N_FIELDS };

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct stk_trace *t = ctx;
    struct stk_trace_job j = stk_lines_job();
    struct stk_field f[N_FIELDS], none = {"", 0};
    uint32_t n = stk_lines_split(in, ',', f, N_FIELDS);
    int rc = 0;

    if (n != N_FIELDS)
        return stk_lines_bad_count(in, COLUMNS, N_FIELDS, n);
    if ((rc = stk_lines_seconds(in, f[ARRIVAL], ARRIVAL + 1, &j.submit)) < 0 ||
        (rc = stk_lines_seconds(in, f[DURATION], DURATION + 1, &j.duration)) < 0 ||
        (rc = stk_lines_gpus(in, f[GPUS], GPUS + 1, &j.gpus)) < 0 ||
        (rc = stk_lines_id(in, t, f[JOB], &j.id)) < 0 ||
        (rc = stk_lines_name(in, &t->groups, STK_TRACE_MAX_NAMES, none, NULL, &j.group)) < 0 ||
        (rc = stk_lines_name(in, &t->tenants, STK_TRACE_MAX_NAMES, none, NULL, &j.tenant)) < 0)
        return rc;
    return stk_lines_push(t, &j);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    int rc = stk_lines_header(in, COLUMNS, err);

    return rc < 0 ? rc : stk_lines_each(in, one, t, err);
}

static bool detect(const char *data, size_t len)
{
    return stk_text_begins(data, len, COLUMNS);
}

const struct stk_trace_format stk_trace_blox = {
    .name = "blox",
    .help = "Blox generator as CSV: " COLUMNS,
    .detect = detect,
    .parse = parse,
};
