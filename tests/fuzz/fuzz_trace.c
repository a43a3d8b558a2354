/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace.c - any bytes as a trace, in the format STK_FUZZ_FORMAT (a string, one target each).
 *
 * What was read must be valid, strict and lenient must agree on good input, and writing and reading
 * it back must give the same trace.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/require.h"
#include "sim/trace.h"
#include "unit/sim/trace_equal.h"

#ifndef STK_FUZZ_FORMAT
#define STK_FUZZ_FORMAT NULL /* detect */
#endif

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char table_path[64], trace_path[64];

/* A file that is gone when the process is. */
static void scratch_file(char *path, size_t cap, const char *text)
{
    FILE *f = tmpfile();

    if (!f || fputs(text, f) < 0 || fflush(f) != 0)
        abort();
    (void)snprintf(path, cap, "/proc/self/fd/%d", fileno(f));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    scratch_file(table_path, sizeof(table_path),
                 "{\"v100\": {\"('A3C', 1)\": {\"null\": 7.5}, \"('LM', 2)\": {\"null\": 1e-9}}}");
    scratch_file(trace_path, sizeof(trace_path), "");
    return 0;
}

static void check_job(const struct stk_trace *t, uint32_t i)
{
    const struct stk_trace_job *j = &t->jobs[i];

    require(j->submit >= 0 && j->submit <= STK_MAX_DURATION, "submit in range");
    require(j->duration >= 0 && j->duration <= STK_MAX_DURATION, "duration in range");
    require(j->estimate >= 0 && j->estimate <= STK_MAX_DURATION, "estimate in range");
    require(j->begin >= 0 && j->begin <= STK_MAX_DURATION, "begin in range");
    require(j->gpus <= STK_MAX_GPUS && j->tasks <= STK_MAX_TASKS, "demand in range");
    require(j->tenant < t->tenants.n && j->group < t->groups.n, "names known");
    require(j->gpu_types == STK_ANY_GPU_TYPE || t->gpu_types.n == 64 ||
                j->gpu_types >> t->gpu_types.n == 0,
            "GPU types known");
    require(j->gpu_types != 0, "some GPU type");
    require(j->kind < STK_KIND_MAX && j->tier < STK_TIER_MAX && j->cause < STK_CAUSE_MAX, "enums");
    require(abs(j->priority) <= STK_MAX_PRIORITY, "priority in range");
    require(!(j->id & STK_TRACE_ID_NAME) || (uint32_t)j->id < t->ids.n, "id known");
    require(i == 0 || t->jobs[i - 1].submit <= j->submit, "in order");
    require(j->array <= i + 1, "array begins before");
    require(j->n_deps <= STK_MAX_DEPS && j->first_dep + j->n_deps <= t->n_deps, "deps in table");
    for (uint32_t d = 0; d < j->n_deps; d++)
        require(t->deps[j->first_dep + d].on < i, "depends on an earlier job");
}

static void check_round_trip(const struct stk_trace *t)
{
    struct stk_trace_options o = {.format = "jsonl", .throughputs = table_path};
    struct stk_trace back = {0};
    struct stk_err err;
    const char *what;

    if (stk_trace_write_jsonl(t, trace_path, &err) < 0)
        return; /* ids that are not unique */
    require(stk_trace_read(&back, trace_path, &o, &err) == 0, err.text);
    what = traces_differ(t, &back);
    require(!what, what ? what : "");
    stk_trace_done(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_trace_options o = {.format = STK_FUZZ_FORMAT, .throughputs = table_path};
    struct stk_trace strict = {0}, lenient = {0};
    struct stk_err err = {""};
    int rc = stk_trace_parse(&strict, "fuzz", (const char *)data, size, &o, &err);

    require(rc == 0 || err.text[0], "an error has a sentence");
    o.lenient = true;
    if (stk_trace_parse(&lenient, "fuzz", (const char *)data, size, &o, &err) == 0) {
        for (uint32_t i = 0; i < lenient.n_jobs; i++)
            check_job(&lenient, i);
        require((lenient.n_skipped > 0) == (rc < 0), "strict fails exactly when lenient skips");
        require(rc < 0 || !traces_differ(&strict, &lenient), "strict and lenient agree");
        check_round_trip(&lenient);
    } else {
        require(rc < 0, "what lenient refuses, strict does");
    }
    stk_trace_done(&strict);
    stk_trace_done(&lenient);
    return 0;
}
