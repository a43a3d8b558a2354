/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace_formats.c - what each trace format becomes, and every way in which one of its lines
 * can be malformed. The table 'malformed' is run strict (the error, with its line) and lenient (the
 * line is skipped and counted, and the good line after it is read). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/trace.h"
#include "sim/trace_sacct.h"

#define OPENB                                                                                      \
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"            \
    "deletion_time,scheduled_time\n"
#define GOOD_OPENB "p1,1,1,1,1000,,LS,Running,1,2,1\n"
#define GOOD_SWF "1 0 -1 100 4 -1 -1 8 200 -1 1 12 3 -1 1 2 -1 -1\n"
#define SACCT "JobIDRaw|JobID|User|Account|Submit|Start|ElapsedRaw|Timelimit|State|AllocTRES\n"
#define GOOD_SACCT                                                                                 \
    "7|7|ann|nlp|2026-10-05T08:00:00|2026-10-05T08:00:10|60|UNLIMITED|COMPLETED|gres/gpu=1\n"
#define GOOD_JSON "{\"id\":1,\"submit_s\":5,\"duration_s\":1}\n"
#define JSON(rest) "{\"id\":2,\"submit_s\":5,\"duration_s\":1," rest "}\n"
#define GAVEL(type, steps, scale, priority, slo, at)                                               \
    type "\tcommand\tdir\t--n\t1\t" steps "\t" scale "\t" priority "\t" slo "\t" at "\n"

static struct stk_err err;
static char table_path[] = "/tmp/stk-test-XXXXXX";

static int parse(struct stk_trace *t, const char *format, const char *text, bool lenient)
{
    struct stk_trace_options o = {.format = format, .lenient = lenient, .throughputs = table_path};

    err.text[0] = '\0';
    return stk_trace_parse(t, "jobs.csv", text, strlen(text), &o, &err);
}

static void philly_lines_become_jobs(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL,
                           "job_id,submit_s,gpus,duration_s,vc\r\n0,7,8,2240194,7f04ca\r\n"
                           "007,7,0,0.5,6214e9",
                           false),
                     0);
    assert_int_equal(t.n_jobs, 2);
    assert_int_equal(t.jobs[0].id, 0);
    assert_int_equal(t.jobs[0].gpus, 8);
    assert_int_equal(t.jobs[0].tasks, 0);
    assert_int_equal(t.jobs[0].duration, 2240194 * STK_SECOND);
    assert_int_equal(t.jobs[0].cause, STK_CAUSE_OK);
    assert_int_equal(t.jobs[0].tier, STK_TIER_STANDARD);
    assert_true(t.jobs[0].gpu_types == STK_ANY_GPU_TYPE);
    assert_string_equal(stk_names_get(&t.groups, t.jobs[1].group), "6214e9");
    assert_string_equal(stk_names_get(&t.tenants, t.jobs[1].tenant), "6214e9");
    assert_string_equal(stk_names_get(&t.ids, (uint32_t)t.jobs[1].id), "007");
    assert_int_equal(t.jobs[1].duration, 500000);
    stk_trace_done(&t);
}

static void venus_lines_become_jobs(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL,
                           "job_id,submit_s,vc,user,gpu_num,cpu_num,duration_s,state\n"
                           "765472,3,vcA,u1,1,6,97,COMPLETED\n765473,3,vcB,u1,16,1,92,CANCELLED\n"
                           "9,4,vcA,u2,1,1,1,FAILED\n8,4,vcA,,1,1,1,TIMEOUT\n"
                           "7,5,vcA,u2,1,1,1,NODE_FAIL\n",
                           false),
                     0);
    assert_int_equal(t.n_jobs, 5);
    assert_string_equal(stk_names_get(&t.groups, t.jobs[1].group), "vcB");
    assert_string_equal(stk_names_get(&t.tenants, t.jobs[1].tenant), "u1");
    assert_string_equal(stk_names_get(&t.tenants, t.jobs[3].tenant), "default");
    assert_int_equal(t.jobs[1].gpus, 16);
    assert_int_equal(t.jobs[0].cpu_milli, 0);
    assert_int_equal(t.jobs[0].cause, STK_CAUSE_OK);
    assert_int_equal(t.jobs[1].cause, STK_CAUSE_CANCELLED);
    assert_int_equal(t.jobs[2].id, 9); /* file order among equals */
    assert_int_equal(t.jobs[2].cause, STK_CAUSE_FAILED);
    assert_int_equal(t.jobs[3].cause, STK_CAUSE_TIMEOUT);
    assert_int_equal(t.jobs[4].cause, STK_CAUSE_NODE_LOST);
    stk_trace_done(&t);
}

static void openb_pods_become_jobs(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL,
                           OPENB "p0,12000,16384,1,1000,,LS,Running,10,100,40\n"
                                 "p1,6000,12288,1,460,V100M16|V100M32,BE,Failed,20,50,\n"
                                 "p2,1,1,0,0,,Burstable,Succeeded,30,30,30\n",
                           false),
                     0);
    assert_int_equal(t.n_jobs, 3);
    assert_int_equal(t.jobs[0].gpu_milli, 0);
    assert_int_equal(t.jobs[1].gpu_milli, 460);
    assert_int_equal(t.jobs[2].gpu_milli, 0);
    assert_int_equal(t.jobs[0].submit, 10 * STK_SECOND);
    assert_int_equal(t.jobs[0].duration, 60 * STK_SECOND);
    assert_int_equal(t.jobs[0].tasks, 1);
    assert_int_equal(t.jobs[0].cpu_milli, 12000);
    assert_int_equal(t.jobs[0].mem_mib, 16384);
    assert_int_equal(t.jobs[0].tier, STK_TIER_STANDARD);
    assert_true(t.jobs[0].gpu_types == STK_ANY_GPU_TYPE);
    assert_int_equal(t.jobs[1].gpus, 1);
    assert_int_equal(t.jobs[1].gpu_types, 3);
    assert_int_equal(t.jobs[1].duration, 30 * STK_SECOND);
    assert_int_equal(t.jobs[1].tier, STK_TIER_BEST_EFFORT);
    assert_int_equal(t.jobs[1].cause, STK_CAUSE_FAILED);
    assert_string_equal(stk_names_get(&t.gpu_types, 1), "V100M32");
    assert_int_equal(t.jobs[2].gpus, 0);
    stk_trace_done(&t);
}

static void blox_durations_keep_their_microseconds(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(
        parse(&t, NULL, "job,arrival_s,duration_s,gpus\n0,1793,35424.3471980879,1\n", false), 0);
    assert_int_equal(t.jobs[0].duration, INT64_C(35424347198));
    assert_int_equal(t.jobs[0].submit, 1793 * STK_SECOND);
    assert_string_equal(stk_names_get(&t.groups, t.jobs[0].group), "default");
    stk_trace_done(&t);
}

static void gavel_steps_become_time_on_v100(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL,
                           GAVEL("A3C", "75", "1", "1", "-1.000000", "0")
                               GAVEL("A3C", "75", "2", "3.000", "1.5", "577.164256"),
                           false),
                     0);
    assert_int_equal(t.n_jobs, 2);
    assert_int_equal(t.jobs[0].id, 0);
    assert_int_equal(t.jobs[0].duration, 10 * STK_SECOND); /* 7.5 steps per second */
    assert_int_equal(t.jobs[1].duration, 5 * STK_SECOND);
    assert_int_equal(t.jobs[1].gpus, 2);
    assert_int_equal(t.jobs[1].priority, 3);
    assert_int_equal(t.jobs[1].submit, 577164256);
    stk_trace_done(&t);
}

static void gavel_without_throughputs_says_what_to_pass(void **state)
{
    static const char text[] = GAVEL("A3C", "75", "1", "1", "-1", "0");
    struct stk_trace_options o = {.format = "gavel"};
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(stk_trace_parse(&t, "x.trace", text, strlen(text), &o, &err), -EINVAL);
    assert_string_equal(err.text, "x.trace: a gavel trace counts steps; pass the throughputs file "
                                  "(simulation_throughputs.json) that turns them into time");
    o.throughputs = "/nonexistent.json";
    assert_int_equal(stk_trace_parse(&t, "x.trace", text, strlen(text), &o, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent.json: No such file"));
    o.throughputs = "/dev/null";
    assert_int_equal(stk_trace_parse(&t, "x.trace", text, strlen(text), &o, &err), -EINVAL);
    assert_non_null(strstr(err.text, "/dev/null:1: expected a JSON object"));
    stk_trace_done(&t);
}

static void sacct_rows_become_jobs(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(
        parse(&t, NULL,
              "JobIDRaw|JobID|User|Account|Partition|Submit|Eligible|Start|End|ElapsedRaw|"
              "TimelimitRaw|State|NNodes|ReqTRES|AllocTRES\n"
              "101|101|ann|vision|gpu|2026-10-05T08:00:00|2026-10-05T08:00:00|2026-10-05T08:00:10|"
              "2026-10-05T10:00:10|7200|240|COMPLETED|1|billing=8,cpu=8,gres/gpu=8,mem=64G,node=1|"
              "billing=8,cpu=8,gres/gpu:a100=8,gres/gpu=8,mem=64G,node=1\n"
              "101.batch|101.batch||vision||2026-10-05T08:00:10|2026-10-05T08:00:10|"
              "2026-10-05T08:00:10|2026-10-05T10:00:10|7200||COMPLETED|1||cpu=8,mem=64G,node=1\n"
              "103|102_1|bob|nlp|gpu|2026-10-05T08:01:00|2026-10-05T08:02:00|2026-10-05T10:00:10|"
              "2026-10-05T11:00:10|3600|UNLIMITED|CANCELLED by 1000|2|cpu=8,gres/gpu=16,node=2|"
              "cpu=8,gres/gpu:a100=16,gres/gpu=16,node=2\n"
              "102|102_2|bob|nlp|gpu|2026-10-05T08:01:00|2026-10-05T08:02:00|2026-10-05T10:00:10|"
              "Unknown|60|60|RUNNING|2|cpu=8,gres/gpu:h100=3,node=2|gres/gpu:h100=3\n"
              "104|104|bob|nlp|gpu|2026-10-05T08:02:00|2026-10-05T08:02:00|None|"
              "2026-10-05T08:03:00|0|60|CANCELLED by 1000|1|cpu=8,gres/gpu=1,node=1|\n"
              "105|105|cid|cpu|cpu|2026-10-05T08:02:00|2026-10-05T08:02:00|2026-10-05T08:02:00|"
              "2026-10-05T08:03:00|60|60|COMPLETED|1|cpu=8,node=1|cpu=8,node=1\n"
              "106|107_[3-9%2]|cid|cpu|gpu|2026-10-05T08:02:00|Unknown|Unknown|Unknown|0|60|"
              "PENDING|1|cpu=8,node=1,gres/gpu=1|\n",
              false),
        0);
    assert_int_equal(t.n_jobs, 3);
    assert_int_equal(t.n_left_out, 3);
    assert_int_equal(t.jobs[0].submit, INT64_C(1791187200) * STK_SECOND);
    assert_int_equal(t.jobs[0].duration, 7200 * STK_SECOND);
    assert_int_equal(t.jobs[0].estimate, 240 * 60 * STK_SECOND);
    assert_int_equal(t.jobs[0].gpus, 8);
    assert_int_equal(t.jobs[0].tasks, 1);
    assert_int_equal(t.jobs[0].cpu_milli, 8000);
    assert_int_equal(t.jobs[0].mem_mib, 65536);
    assert_true(t.jobs[0].recorded);
    assert_int_equal(t.jobs[0].waited, 10 * STK_SECOND);
    assert_string_equal(stk_names_get(&t.tenants, t.jobs[0].tenant), "vision");
    assert_string_equal(stk_names_get(&t.users, t.jobs[0].user - 1), "ann");
    assert_string_equal(stk_names_get(&t.groups, t.jobs[0].group), "gpu");
    assert_string_equal(stk_names_get(&t.gpu_types, 0), "a100");
    assert_int_equal(t.jobs[1].id, 103);
    assert_int_equal(t.jobs[1].submit, INT64_C(1791187320) * STK_SECOND); /* when it could run */
    assert_int_equal(t.jobs[1].gpus, 8);
    assert_int_equal(t.jobs[1].tasks, 2);
    assert_int_equal(t.jobs[1].per_node, 1);
    assert_int_equal(t.jobs[1].estimate, 0);
    assert_int_equal(t.jobs[1].cause, STK_CAUSE_CANCELLED);
    assert_int_equal(t.jobs[1].array, 2);
    assert_int_equal(t.jobs[1].array_index, 1);
    assert_int_equal(t.jobs[2].array, 2);
    assert_int_equal(t.jobs[2].gpus, 3); /* cannot be shared out over two nodes */
    assert_int_equal(t.jobs[2].tasks, 0);
    assert_int_equal(t.jobs[2].gpu_types, 2);
    stk_trace_done(&t);
}

static void sacct_columns_may_stand_in_any_order(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(
        parse(&t, NULL,
              "\xef\xbb\xbfstate|JobName|End|Start|ELIGIBLE|ReqGRES|NNodes|User|JobID|\r\n"
              "FAILED|x|1791187260|1791187200|1791187190|gpu:v100:2(S:0)|2|ann|8|\r\n"
              "TIMEOUT|x|1791187260|1791187200|1791187190|gres:gpu:1|1||8+1\r\n",
              false),
        0);
    assert_int_equal(t.n_jobs, 2);
    assert_int_equal(t.jobs[0].duration, 60 * STK_SECOND);
    assert_int_equal(t.jobs[0].waited, 10 * STK_SECOND);
    assert_int_equal(t.jobs[0].gpus, 2);
    assert_int_equal(t.jobs[0].tasks, 2);
    assert_int_equal(t.jobs[0].cause, STK_CAUSE_FAILED);
    assert_string_equal(stk_names_get(&t.tenants, t.jobs[0].tenant), "ann");
    assert_string_equal(stk_names_get(&t.gpu_types, 0), "v100");
    assert_true(t.jobs[1].gpu_types == STK_ANY_GPU_TYPE);
    assert_string_equal(stk_names_get(&t.ids, (uint32_t)t.jobs[1].id), "8+1");
    stk_trace_done(&t);
}

static void sacct_without_a_column_says_which_command_makes_a_good_file(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL, "JobID|State|Elapsed|AllocTRES\n", true), -EINVAL);
    assert_non_null(strstr(err.text, "jobs.csv:1: there is no column Submit or Eligible; make the "
                                     "file with: sacct -aXP -S 2026-10-01 -o JobIDRaw,"));
    assert_non_null(strstr(err.text, ",AllocTRES")); /* whole */
    assert_int_equal(parse(&t, NULL, "JobID|Submit|AllocTRES\n", false), -EINVAL);
    assert_non_null(strstr(err.text, "no column ElapsedRaw, or Elapsed, or Start and End"));
    assert_int_equal(parse(&t, NULL, "JobID|Submit|Elapsed\n", false), -EINVAL);
    assert_non_null(strstr(err.text, "no column AllocTRES or ReqTRES"));
    assert_int_equal(parse(&t, NULL,
                           "JobID|Submit|Elapsed|AllocTRES\n1|2026-10-05T08:00:00|01:00|cpu=1\n",
                           false),
                     -EINVAL);
    assert_non_null(strstr(err.text, "AccountingStorageTRES=gres/gpu"));
    stk_trace_done(&t);
}

static stk_time sacct_at(const char *text)
{
    stk_time t = -1;
    int rc = stk_sacct_time((struct stk_field){text, (uint32_t)strlen(text)}, &t);

    return rc == 0 ? t / STK_SECOND : rc;
}

static stk_time sacct_long(const char *text)
{
    stk_time t = -1;
    int rc = stk_sacct_duration((struct stk_field){text, (uint32_t)strlen(text)}, &t);

    return rc == 0 ? t / (STK_SECOND / 1000) : rc;
}

static void sacct_times_and_durations_are_read_as_slurm_writes_them(void **state)
{
    (void)state;
    assert_int_equal(sacct_at("2026-10-05T08:00:00"), 1791187200);
    assert_int_equal(sacct_at("2026-10-05T08:00:00.25"), 1791187200);
    assert_int_equal(sacct_at("2026-10-05T08:00:00Z"), 1791187200);
    assert_int_equal(sacct_at("2026-10-05T10:00:00+02:00"), 1791187200);
    assert_int_equal(sacct_at("2026-10-05T03:30:00-0430"), 1791187200);
    assert_int_equal(sacct_at("1791187200"), 1791187200);
    assert_int_equal(sacct_at("Unknown"), 1);
    assert_int_equal(sacct_at("None"), 1);
    assert_int_equal(sacct_at("2026-10-05"), -EINVAL);
    assert_int_equal(sacct_at("2026-10-05T25:00:00"), -EINVAL);
    assert_int_equal(sacct_at("2026-10-05T08:00:00+"), -EINVAL);
    assert_int_equal(sacct_at("99999999999999"), -EINVAL);
    assert_int_equal(sacct_at("1969-10-05T08:00:00"), -EINVAL);
    assert_int_equal(sacct_long("1-02:03:04"), 93784000);
    assert_int_equal(sacct_long("02:03:04"), 7384000);
    assert_int_equal(sacct_long("03:04.567"), 184567);
    assert_int_equal(sacct_long("UNLIMITED"), 1);
    assert_int_equal(sacct_long("Partition_Limit"), 1);
    assert_int_equal(sacct_long("4"), -EINVAL);
    assert_int_equal(sacct_long("1-2-3:4"), -EINVAL);
    assert_int_equal(sacct_long("99999999-00:00:00"), -EINVAL);
    assert_int_equal(sacct_long("1:-2"), -EINVAL);
}

static void swf_lines_become_jobs(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL,
                           "; UnixStartTime: 0\n; MaxJobs: 5\n" GOOD_SWF
                           "\t2 5 1 50 4 -1 -1 -1 -1 -1 0 -1 3 -1 6 -1 1 10\n"
                           "3 5 1 -1 4 -1 -1 -1 -1 -1 5 1 1 1 1 1 -1 -1\n" /* never started */
                           "1 6 1 20 4 -1 -1 -1 -1 -1 3 1 1 1 1 1 -1 -1\n" /* a part of job 1 */
                           "4 7 1 20.5 4 -1 -1 2 -1 -1 5 1 1 1 -1 -1 99 -1\n",
                           false),
                     0);
    assert_int_equal(t.n_jobs, 3);
    assert_int_equal(t.jobs[0].gpus, 8); /* requested, not the 4 allocated */
    assert_int_equal(t.jobs[0].estimate, 200 * STK_SECOND);
    assert_string_equal(stk_names_get(&t.tenants, t.jobs[0].tenant), "user-12");
    assert_string_equal(stk_names_get(&t.groups, t.jobs[0].group), "partition-2");
    assert_int_equal(t.jobs[1].gpus, 4);
    assert_int_equal(t.jobs[1].estimate, 0);
    assert_int_equal(t.jobs[1].cause, STK_CAUSE_FAILED);
    assert_string_equal(stk_names_get(&t.tenants, t.jobs[1].tenant), "default");
    assert_string_equal(stk_names_get(&t.groups, t.jobs[1].group), "queue-6");
    assert_int_equal(t.jobs[1].n_deps, 1);
    assert_int_equal(t.deps[0].on, 0);
    assert_int_equal(t.deps[0].type, STK_DEP_AFTERANY);
    assert_int_equal(t.jobs[2].cause, STK_CAUSE_CANCELLED);
    assert_int_equal(t.jobs[2].duration, 20500000);
    assert_int_equal(t.jobs[2].n_deps, 0); /* job 99 is not known */
    assert_string_equal(stk_names_get(&t.groups, t.jobs[2].group), "default");
    stk_trace_done(&t);
}

static const struct {
    const char *format, *head, *bad, *good, *message;
} malformed[] = {
    {"philly", "", "1,2,x,4,v\n", "1,2,3,4,v\n",
     "expected a whole number of GPUs (0 to 1000000) in field 3, got \"x\""},
    {"philly", "", "1,2,1000001,4,v\n", "1,2,3,4,v\n",
     "expected a whole number of GPUs (0 to 1000000) in field 3, got \"1000001\""},
    {"philly", "", "1,-2,3,4,v\n", "1,2,3,4,v\n",
     "expected a number of seconds (0 to 3155760000) in field 2, got \"-2\""},
    {"philly", "", "1,2,3,3155760001,v\n", "1,2,3,4,v\n",
     "expected a number of seconds (0 to 3155760000) in field 4, got \"3155760001\""},
    {"philly", "", "1,2,3\n", "1,2,3,4,v\n",
     "expected 5 fields (job_id,submit_s,gpus,duration_s,vc), got 3"},
    {"philly", "", ",2,3,4,v\n", "1,2,3,4,v\n", "expected a job id, got nothing"},
    {"philly", "", "1,2,3,4,v\x01w\n", "1,2,3,4,v\n",
     "expected a name of 1 to 255 printable characters, got \"v?w\""},
    {"venus", "", "1,2,v,u,1,1,5,DONE\n", "1,2,v,u,1,1,5,FAILED\n",
     "expected a state such as COMPLETED, CANCELLED, FAILED in field 8, got \"DONE\""},
    {"venus", "", "1,2,v,u,1,x,5,FAILED\n", "1,2,v,u,1,1,5,FAILED\n",
     "expected a whole number of CPUs (0 to 4294967295) in field 6, got \"x\""},
    {"venus", "", "1,2\n", "1,2,v,u,1,1,5,FAILED\n",
     "expected 8 fields (job_id,submit_s,vc,user,gpu_num,cpu_num,duration_s,state), got 2"},
    {"openb", OPENB, "p,1,1,1,1001,,LS,Running,1,2,1\n", GOOD_OPENB,
     "expected a whole number of GPU thousandths (0 to 1000) in field 5, got \"1001\""},
    {"openb", OPENB, "p,1,1,1,1,a||b,LS,Running,1,2,1\n", GOOD_OPENB,
     "expected GPU types joined by |, got \"a||b\""},
    {"openb", OPENB, "p,1,1,1,1,,XX,Running,1,2,1\n", GOOD_OPENB,
     "expected LS, BE, Burstable or Guaranteed in field 7, got \"XX\""},
    {"openb", OPENB, "p,1,1,1,1,,LS,Running,3,2,\n", GOOD_OPENB,
     "expected a deletion_time not before the pod's start, got \"2\""},
    {"openb", OPENB, "p,1,1\n", GOOD_OPENB, "expected 11 fields (as the header has), got 3"},
    {"blox", "", "0,1,1e5,1\n", "0,1,1.5,1\n",
     "expected a number of seconds (0 to 3155760000) in field 3, got \"1e5\""},
    {"gavel", "", GAVEL("A3C", "x", "1", "1", "-1", "0"), GAVEL("A3C", "1", "1", "1", "-1", "0"),
     "expected a whole number of steps (0 to 1000000000000000) in field 6, got \"x\""},
    {"gavel", "", GAVEL("BERT", "1", "1", "1", "-1", "0"), GAVEL("A3C", "1", "1", "1", "-1", "0"),
     "the throughputs have no \"v100\" entry for job type \"BERT\" on 1 GPUs"},
    {"gavel", "", GAVEL("LM", "99999999", "2", "1", "-1", "0"),
     GAVEL("A3C", "1", "1", "1", "-1", "0"), "the job would run longer than 3155760000 s"},
    {"gavel", "", GAVEL("A3C", "1", "1", "1.5", "-1", "0"), GAVEL("A3C", "1", "1", "1", "-1", "0"),
     "expected a whole priority (0 to 1000000000) in field 8, got \"1.5\""},
    {"gavel", "", GAVEL("A3C", "1", "1", "1", "?", "0"), GAVEL("A3C", "1", "1", "1", "-1", "0"),
     "expected an SLO (a number, negative for none) in field 9, got \"?\""},
    {"swf", "", "1 0 -1 -1 4 -1 -1 8 200 -1 1 12 3 -1 1 2 -1 -1\n", GOOD_SWF,
     "expected a run time in field 4, got \"-1\""},
    {"swf", "", "1 0 -1 9 -1 -1 -1 0 200 -1 1 12 3 -1 1 2 -1 -1\n", GOOD_SWF,
     "expected a number of processors in field 8 or 5, got \"0\""},
    {"swf", "", "1 -1 -1 9 4 -1 -1 8 200 -1 1 12 3 -1 1 2 -1 -1\n", GOOD_SWF,
     "expected a submit time in field 2, got \"-1\""},
    {"swf", "", "1 0 -1 x 4 -1 -1 8 200 -1 1 12 3 -1 1 2 -1 -1\n", GOOD_SWF,
     "expected a number (-1 to 3155760000) in field 4, got \"x\""},
    {"swf", "", "1 2 3\n", GOOD_SWF, "expected 18 fields (Standard Workload Format), got 3"},
    {"sacct", SACCT, "1|1|ann\n", GOOD_SACCT, "expected 10 fields, as the header has, got 3"},
    {"sacct", SACCT, "1|1|ann|a|yesterday|Unknown|60|1|COMPLETED|gres/gpu=1\n", GOOD_SACCT,
     "column 5 (Submit): expected a time such as 2026-11-15T08:30:00, got \"yesterday\""},
    {"sacct", SACCT, "1|1|ann|a|2026-10-05T08:00:00|2026-13-01T00:00:00|60|1|OK|gres/gpu=1\n",
     GOOD_SACCT,
     "column 6 (Start): expected a time such as 2026-11-15T08:30:00, got \"2026-13-01T00:00:00\""},
    {"sacct", SACCT, "1|1|ann|a|2026-10-05T08:00:00|Unknown|60|1:2:3:4|COMPLETED|gres/gpu=1\n",
     GOOD_SACCT, "column 8 (Timelimit): expected a duration such as 1-02:03:04, got \"1:2:3:4\""},
    {"sacct", SACCT, "1|1|ann|a|2026-10-05T08:00:00|Unknown|60||WEIRD|gres/gpu=1\n", GOOD_SACCT,
     "column 9 (State): expected a state such as COMPLETED, CANCELLED, FAILED, got \"WEIRD\""},
    {"sacct", SACCT, "1|1|ann|a|2026-10-05T08:00:00|Unknown|60||COMPLETED|gres/gpu=x\n", GOOD_SACCT,
     "column 10 (AllocTRES): expected resources such as cpu=8,gres/gpu:a100=2,node=1, got "
     "\"gres/gpu=x\""},
    {"sacct", SACCT, "1|1|ann|a|2026-10-05T08:00:00|Unknown|60||COMPLETED|gres/gpu=1000001\n",
     GOOD_SACCT, "a job has at most 1000000 GPUs"},
    {"sacct", SACCT, "1|1|ann|a||2026-10-05T08:00:00|60||COMPLETED|gres/gpu=1\n", GOOD_SACCT,
     "column 5 (Submit): expected when it was submitted, got \"\""},
    {"jsonl", "", "nonsense\n", GOOD_JSON,
     "expected a JSON object, but at column 8: '[' or '{' expected near 'nonsense'"},
    {"jsonl", "", "[1]\n", GOOD_JSON, "expected a JSON object"},
    {"jsonl", "", "{\"id\":1,\"submit_s\":0}\n", GOOD_JSON, "there is no \"duration_s\""},
    {"jsonl", "", JSON("\"gpu\":1"), GOOD_JSON, "unknown key \"gpu\""},
    {"jsonl", "", JSON("\"gpus\":1.5"), GOOD_JSON,
     "\"gpus\" must be a whole number (0 to 1000000), got 1.5"},
    {"jsonl", "", JSON("\"gpus\":1000,\"tasks\":1001"), GOOD_JSON,
     "\"gpus\" times \"tasks\" must be at most 1000000"},
    {"jsonl", "", JSON("\"level\":\"gpu\""), GOOD_JSON,
     "\"level\" must be one of link, node, rack, zone, region, got \"gpu\""},
    {"jsonl", "", JSON("\"level\":\"rack\",\"prefer\":\"zone\""), GOOD_JSON,
     "the level preferred (zone) must be nearer than the one required (rack)"},
    {"jsonl", "", JSON("\"tasks\":4,\"per_node\":3"), GOOD_JSON,
     "4 tasks are not a multiple of 3 on each node"},
    {"jsonl", "", JSON("\"tasks\":4,\"subgroup\":3,\"subgroup_level\":\"link\""), GOOD_JSON,
     "4 tasks are not a multiple of subgroups of 3 inside one link"},
    {"jsonl", "", JSON("\"gpu_milli\":500,\"exclusive\":true"), GOOD_JSON,
     "parts of GPUs may ask for one node, rack, zone or region, but not for links, subgroups, "
     "tasks per node or whole nodes"},
    {"jsonl", "", JSON("\"nodelist\":\"n1\""), GOOD_JSON,
     "\"nodelist\" must be numbers of nodes such as \"0-3,7\", got \"n1\""},
    {"jsonl", "", JSON("\"share_max\":3"), GOOD_JSON, "\"share_max\" of whole GPUs must be 2"},
    {"jsonl", "", JSON("\"slo\":1.5"), GOOD_JSON,
     "\"slo\" must be a share of its speed (0 to 1), got 1.5"},
    {"jsonl", "", JSON("\"deadline_s\":\"noon\""), GOOD_JSON,
     "\"deadline_s\" must be a number of seconds (0 to 3155760000), got \"noon\""},
    {"jsonl", "", JSON("\"min_run_s\":-1"), GOOD_JSON,
     "\"min_run_s\" must be a number of seconds (0 to 3155760000), got -1"},
    {"jsonl", "", JSON("\"movable\":1"), GOOD_JSON, "\"movable\" must be true or false, got 1"},
    {"jsonl", "", JSON("\"suspend\":\"no\""), GOOD_JSON,
     "\"suspend\" must be one of auto, never, got \"no\""},
    {"jsonl", "", JSON("\"saves\":0"), GOOD_JSON, "\"saves\" must be true or false, got 0"},
    {"jsonl", "", JSON("\"keep_up\":\"web\""), GOOD_JSON,
     "\"keep_up\" must be {\"group\": name, \"min\": number (0 to 1000000)}, got \"web\""},
    {"jsonl", "", JSON("\"keep_up\":{\"group\":\"web\",\"min\":1000001}"), GOOD_JSON,
     "\"keep_up\" must be {\"group\": name, \"min\": number (0 to 1000000)}, got "
     "{\"group\":\"web\",\"min\":1000001}"},
    {"jsonl", "", JSON("\"begin_s\":-1"), GOOD_JSON,
     "\"begin_s\" must be a number of seconds (0 to 3155760000), got -1"},
    {"jsonl", "", JSON("\"cpus\":\"2\""), GOOD_JSON,
     "\"cpus\" must be a number of CPUs (0 to 4294967.295), got \"2\""},
    {"jsonl", "", JSON("\"priority\":1e3"), GOOD_JSON,
     "\"priority\" must be a whole number (-1000000000 to 1000000000), got 1000.0"},
    {"jsonl", "", JSON("\"kind\":\"tran\""), GOOD_JSON,
     "\"kind\" must be one of train, batch, service, sweep, shell, got \"tran\""},
    {"jsonl", "", JSON("\"tier\":3"), GOOD_JSON,
     "\"tier\" must be one of best-effort, standard, critical, got 3"},
    {"jsonl", "", JSON("\"held\":1"), GOOD_JSON, "\"held\" must be true or false, got 1"},
    {"jsonl", "", JSON("\"tenant\":\"\""), GOOD_JSON, "\"tenant\" must be a name, got \"\""},
    {"jsonl", "", JSON("\"pool\":\"a\",\"group\":\"a\""), GOOD_JSON,
     "\"group\" and \"pool\" are two words for one thing"},
    {"jsonl", "", JSON("\"gpu_types\":{}"), GOOD_JSON, "\"gpu_types\" must name at least one type"},
    {"jsonl", "", JSON("\"gpu_types\":{\"a\":0}"), GOOD_JSON,
     "a speed in \"gpu_types\" must be 0.001 to 65.535"},
    {"jsonl", "", JSON("\"gpu_types\":{\"a\":\"fast\"}"), GOOD_JSON,
     "\"gpu_types\" must be a list of names, or an object of names and speeds such as {\"h100\": "
     "1, "
     "\"a100\": 0.5}"},
    {"jsonl", "", JSON("\"gpus\":0,\"gpu_types\":{\"a\":0.5}"), GOOD_JSON,
     "speeds in \"gpu_types\" have no meaning without \"gpus\""},
    {"jsonl", "", JSON("\"resources\":[]"), GOOD_JSON,
     "\"resources\" must be an object such as {\"nvme_gib\": 100}"},
    {"jsonl", "", JSON("\"resources\":{\"nvme gib\":1}"), GOOD_JSON,
     "the name of a resource must be 1 to 63 letters, digits, _ - or ., got \"nvme gib\""},
    {"jsonl", "", JSON("\"resources\":{\"nic\":-1}"), GOOD_JSON,
     "resource \"nic\" must be a whole number (0 to 4294967295)"},
    {"jsonl", "", JSON("\"gpu_types\":[]"), GOOD_JSON,
     "\"gpu_types\" must be a list of names, got []"},
    {"jsonl", "", JSON("\"after\":[{\"on\":2}]"), GOOD_JSON,
     "\"after\" must be about a job of an earlier line, got 2"},
    {"jsonl", "", JSON("\"after\":[{\"on\":2,\"typ\":1}]"), GOOD_JSON,
     "\"after\" must be a list of {\"on\": id, \"type\": \"afterok\"}, got {\"on\":2,\"typ\":1}"},
    {"jsonl", GOOD_JSON, JSON("\"after\":[{\"on\":1,\"type\":\"later\"}]"), "",
     "\"after\" must be of type afterok, afterany or afternotok, got "
     "{\"on\":1,\"type\":\"later\"}"},
    {"jsonl", GOOD_JSON, "{\"id\":2,\"submit_s\":4,\"duration_s\":1,\"after\":[{\"on\":1}]}\n", "",
     "\"after\" must be about a job that was not submitted later, got 1"},
    {"jsonl", "", JSON("\"array\":{\"of\":7,\"index\":1}"), GOOD_JSON,
     "\"array\" must be about a job of an earlier line, got 7"},
    {"jsonl", "", JSON("\"array\":3"), GOOD_JSON,
     "\"array\" must be {\"of\": id, \"index\": number}, got 3"},
    {"jsonl", "", "{\"id\":-2,\"submit_s\":5,\"duration_s\":1}\n", GOOD_JSON,
     "\"id\" must be a whole number or a string, got -2"},
};
#define N_MALFORMED (sizeof(malformed) / sizeof(*malformed))

static void a_malformed_line_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MALFORMED; i++) {
        struct stk_trace t = {0};
        char text[1024], expected[512];

        (void)snprintf(text, sizeof(text), "%s%s%s", malformed[i].head, malformed[i].bad,
                       malformed[i].good);
        (void)snprintf(expected, sizeof(expected), "jobs.csv:%d: %s", malformed[i].head[0] ? 2 : 1,
                       malformed[i].message);
        assert_int_equal(parse(&t, malformed[i].format, text, false), -EINVAL);
        assert_string_equal(err.text, expected);
        stk_trace_done(&t);
    }
}

static void a_malformed_line_is_skipped_and_counted_when_lenient(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MALFORMED; i++) {
        struct stk_trace t = {0};
        char text[1024];

        (void)snprintf(text, sizeof(text), "%s%s%s%s", malformed[i].head, malformed[i].bad,
                       malformed[i].bad, malformed[i].good);
        assert_int_equal(parse(&t, malformed[i].format, text, true), 0);
        assert_int_equal(t.n_skipped, 2);
        assert_int_equal(t.n_jobs, 1);
        assert_int_equal(t.n_deps, 0);
        assert_true(t.groups.n <= 1 && t.gpu_types.n <= 1);
        assert_non_null(strstr(t.first_skip.text, malformed[i].message));
        assert_non_null(strstr(t.first_skip.text, malformed[i].head[0] ? ":2: " : ":1: "));
        stk_trace_done(&t);
    }
}

static void a_header_of_another_kind_is_an_error_even_when_lenient(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, "philly", "job_id,gpus,submit_s,duration_s,vc\n", true), -EINVAL);
    assert_string_equal(err.text, "jobs.csv:1: expected the header "
                                  "\"job_id,submit_s,gpus,duration_s,vc\", got "
                                  "\"job_id,gpus,submit_s,duration_s,vc\"");
    assert_int_equal(parse(&t, "openb", "name,num_gpu\n", true), -EINVAL);
    assert_string_equal(err.text, "jobs.csv:1: the header has no column \"creation_time\"");
    stk_trace_done(&t);
}

static void a_long_path_leaves_room_for_the_sentence(void **state)
{
    struct stk_trace_options o = {.format = "philly"};
    struct stk_trace t = {0};
    char name[300];

    (void)state;
    memset(name, 'd', sizeof(name));
    (void)snprintf(name + 290, 10, "/x.csv");
    assert_int_equal(stk_trace_parse(&t, name, "1,2,x,4,v", 9, &o, &err), -EINVAL);
    assert_non_null(strstr(err.text, "/x.csv:1: expected a whole number of GPUs"));
    assert_non_null(strstr(err.text, "got \"x\""));
    stk_trace_done(&t);
}

static void the_public_traces_read_whole(void **state)
{
    static const struct {
        const char *file;
        uint32_t jobs, groups;
    } files[] = {
        {"philly/philly.csv", 82247, 15},
        {"venus/jobs.csv", 23859, 15},
        {"openb/pods_default.csv", 8152, 1},
        {"gavel/gen_single.trace", 300, 1},
    };
    const char *dir = getenv("STOKER_DATA");

    (void)state;
    if (!dir) {
        print_message("STOKER_DATA is not set: public traces not read\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct stk_trace t = {0};
        char path[1024];

        (void)snprintf(path, sizeof(path), "%s/%s", dir, files[i].file);
        assert_int_equal(stk_trace_read(&t, path, NULL, &err), 0);
        assert_int_equal(t.n_jobs, files[i].jobs);
        assert_int_equal(t.groups.n, files[i].groups);
        stk_trace_done(&t);
    }
}

static int write_table(void **state)
{
    static const char table[] =
        "{\"v100\": {\"('A3C', 1)\": {\"null\": 7.5}, \"('A3C', 2)\": {\"null\": 15},"
        "\"('LM', 2)\": {\"null\": 1e-9}}}";
    int fd = mkstemp(table_path);

    (void)state;
    return fd >= 0 && write(fd, table, sizeof(table) - 1) > 0 && close(fd) == 0 ? 0 : -1;
}

static int remove_table(void **state)
{
    (void)state;
    return unlink(table_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philly_lines_become_jobs),
        cmocka_unit_test(venus_lines_become_jobs),
        cmocka_unit_test(openb_pods_become_jobs),
        cmocka_unit_test(blox_durations_keep_their_microseconds),
        cmocka_unit_test(gavel_steps_become_time_on_v100),
        cmocka_unit_test(gavel_without_throughputs_says_what_to_pass),
        cmocka_unit_test(swf_lines_become_jobs),
        cmocka_unit_test(sacct_rows_become_jobs),
        cmocka_unit_test(sacct_columns_may_stand_in_any_order),
        cmocka_unit_test(sacct_without_a_column_says_which_command_makes_a_good_file),
        cmocka_unit_test(sacct_times_and_durations_are_read_as_slurm_writes_them),
        cmocka_unit_test(a_malformed_line_is_refused_with_its_place),
        cmocka_unit_test(a_malformed_line_is_skipped_and_counted_when_lenient),
        cmocka_unit_test(a_header_of_another_kind_is_an_error_even_when_lenient),
        cmocka_unit_test(a_long_path_leaves_room_for_the_sentence),
        cmocka_unit_test(the_public_traces_read_whole),
    };

    return cmocka_run_group_tests(tests, write_table, remove_table);
}
