/* SPDX-License-Identifier: Apache-2.0 */
/* trace_gavel.c - the traces of Gavel: tab separated, work given in training steps.
 *
 * Steps become time through Gavel's table of measured throughputs, which comes with its traces: the
 * simulator advances a job at the speed of where it is. The duration is the one the job has alone
 * on V100s: what the scheduler expects, and all there is on a cluster of GPUs that are not in the
 * table. Without the table the reader says which file it wants. Jobs have no id there; they are
 * numbered from 0 in file order. The SLO is checked but has no member in a trace yet.
 *
 * See: Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning
 * Workloads", OSDI 2020.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "sim/speeds.h"
#include "sim/trace_formats.h"
#include "sim/trace_lines.h"

#define COLUMNS                                                                                    \
    "job_type, command, workdir, steps_arg, needs_data_dir, total_steps, scale_factor, priority, " \
    "SLO, arrival_s"
#define GPU "v100"

enum { TYPE, STEPS = 5, SCALE, PRIORITY, SLO, ARRIVAL, N_FIELDS };

struct reader {
    struct stk_trace *t;
    uint32_t usual; /* column of the GPU that durations are for */
    uint64_t next_id;
};

/* Steps, and the time they take alone on the usual GPU: what the scheduler expects. */
static int get_work(struct stk_trace_lines *in, const struct reader *r, const struct stk_field *f,
                    struct stk_trace_job *j)
{
    char key[160];
    uint64_t steps;
    double us;
    int64_t row;
    int rc = stk_lines_whole(in, f[STEPS], STEPS + 1, "steps", STK_MAX_STEPS, &steps);

    if (rc < 0)
        return rc;
    (void)snprintf(key, sizeof(key), "('%.*s', %" PRIu32 ")",
                   f[TYPE].len < 100 ? (int)f[TYPE].len : 100, f[TYPE].s, j->gpus);
    row = stk_speed_table_row(r->t->speeds, key);
    us = row < 0 ? 0 : stk_speed_alone(&r->t->speeds->s, (uint32_t)row, r->usual, false);
    if (!(us > 0))
        return stk_lines_bad(
            in, "the throughputs have no \"" GPU "\" entry for job type \"%s\" on %" PRIu32 " GPUs",
            stk_field_show(f[TYPE]).text, j->gpus);
    us = (double)steps / us * (double)STK_SECOND;
    if (!(us <= (double)STK_MAX_DURATION))
        return stk_lines_bad(in, "the job would run longer than %" PRId64 " s",
                             STK_MAX_DURATION / STK_SECOND);
    j->duration = llround(us);
    j->steps = steps;
    j->speed_row = (uint32_t)row;
    return 0;
}

/* Written as "1" or "1.000000". */
static int get_priority(struct stk_trace_lines *in, struct stk_field f, int32_t *ret)
{
    uint64_t micro;

    if (!stk_field_micro(f, &micro) || micro % 1000000 != 0 || micro / 1000000 > STK_MAX_PRIORITY)
        return stk_lines_bad(in, "expected a whole priority (0 to %d) in field %d, got \"%s\"",
                             STK_MAX_PRIORITY, PRIORITY + 1, stk_field_show(f).text);
    *ret = (int32_t)(micro / 1000000);
    return 0;
}

static int check_slo(struct stk_trace_lines *in, struct stk_field f)
{
    struct stk_field positive = f;
    uint64_t micro;

    if (f.len > 0 && f.s[0] == '-') {
        positive.s++;
        positive.len--;
    }
    if (!stk_field_micro(positive, &micro))
        return stk_lines_bad(
            in, "expected an SLO (a number, negative for none) in field %d, got \"%s\"", SLO + 1,
            stk_field_show(f).text);
    return 0;
}

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct reader *r = ctx;
    struct stk_trace *t = r->t;
    struct stk_trace_job j = stk_lines_job();
    struct stk_field f[N_FIELDS], none = {"", 0};
    uint32_t n = stk_lines_split(in, '\t', f, N_FIELDS);
    int rc;

    if (n != N_FIELDS)
        return stk_lines_bad_count(in, COLUMNS, N_FIELDS, n);
    if ((rc = stk_lines_gpus(in, f[SCALE], SCALE + 1, &j.gpus)) < 0 ||
        (rc = get_work(in, r, f, &j)) < 0 ||
        (rc = get_priority(in, f[PRIORITY], &j.priority)) < 0 || (rc = check_slo(in, f[SLO])) < 0 ||
        (rc = stk_lines_seconds(in, f[ARRIVAL], ARRIVAL + 1, &j.submit)) < 0 ||
        (rc = stk_lines_name(in, &t->groups, STK_TRACE_MAX_NAMES, none, NULL, &j.group)) < 0 ||
        (rc = stk_lines_name(in, &t->tenants, STK_TRACE_MAX_NAMES, none, NULL, &j.tenant)) < 0)
        return rc;
    j.id = r->next_id++;
    return stk_lines_push(t, &j);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    struct reader r = {.t = t};
    int rc = stk_speed_table_for(t, in, "a gavel trace", err);
    int64_t usual;

    if (rc < 0)
        return rc;
    usual = stk_names_find(&t->speeds->types, GPU, sizeof(GPU) - 1);
    if (usual < 0)
        return stk_err_set(err, -EINVAL, "%s: the throughputs have no GPU type \"" GPU "\"",
                           in->name);
    r.usual = (uint32_t)usual;
    return stk_lines_each(in, one, &r, err);
}

static bool detect(const char *data, size_t len)
{
    struct stk_trace_lines in;

    stk_lines_init(&in, "", data, len);
    return stk_lines_next(&in) && in.text.s[0] != ';' &&
           stk_lines_split(&in, '\t', NULL, 0) == N_FIELDS;
}

const struct stk_trace_format stk_trace_gavel = {
    .name = "gavel",
    .help = "Gavel, tab separated: " COLUMNS "; needs " STK_THROUGHPUTS,
    .detect = detect,
    .parse = parse,
};
