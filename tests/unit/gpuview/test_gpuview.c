/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpuview.c - lines of the GPU helper into a table, and what is made of each GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpuview/gpuview.h"
#include "gpuview/text.h"
#include "gpuview/xid.h"

#define LIST                                                                                       \
    "{\"driver\":\"580.1\",\"cuda\":\"13.0\",\"suspend\":true,\"move\":true,\"gpus\":["            \
    "{\"index\":0,\"uuid\":\"GPU-a\",\"name\":\"NVIDIA H200\",\"mem_mib\":143771,\"minor\":3,"     \
    "\"pci\":\"0000:1b:00.0\",\"mig\":false,\"numa\":1},"                                          \
    "{\"index\":1,\"uuid\":\"GPU-b\",\"name\":\"NVIDIA H200\",\"mem_mib\":143771,\"mig\":false}]}"
#define MINUTE INT64_C(60000000)

static const struct stk_gpu_rule block = {
    .foreign = STK_FOREIGN_BLOCK, .stale_s = 600, .min_free_mib = 0};

static int list(struct stk_gpus *t, const char *line)
{
    return stk_gpuview_list(t, line, strlen(line), NULL);
}

static int setup(void **state)
{
    struct stk_gpus *t = malloc(sizeof(*t));

    stk_gpus_init(t);
    assert_int_equal(list(t, LIST), 0);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    stk_gpus_done(*state);
    free(*state);
    return 0;
}

/* A reading with these members for GPU 0 and nothing for GPU 1. */
static int sample(struct stk_gpus *t, int64_t at_us, const char *members)
{
    char line[8192];

    (void)snprintf(line, sizeof(line), "{\"at_us\":%lld,\"gpus\":[{\"index\":0%s%s}]}",
                   (long long)at_us, *members ? "," : "", members);
    return stk_gpuview_sample(t, line, strlen(line), NULL);
}

/* PIDs from 1000 on are of our jobs; those from 2000 on of one that was not given the GPU. */
static struct stk_gpu_owner owner(void *ctx, uint32_t gpu, const struct stk_gpu_proc *p)
{
    (void)ctx;
    (void)gpu;
    return (struct stk_gpu_owner){p->pid >= 1000 ? 7 : 0, p->pid >= 1000 && p->pid < 2000};
}

static struct stk_gpu_verdict judge(const struct stk_gpus *t, const struct stk_gpu_rule *rule)
{
    struct stk_gpu_verdict v;

    stk_gpuview_judge(t, 0, rule, owner, NULL, &v);
    return v;
}

static void a_list_is_read_whole(void **state)
{
    const struct stk_gpus *t = *state;

    assert_int_equal(t->n, 2);
    assert_true(t->suspend);
    assert_string_equal(t->driver, "580.1");
    assert_string_equal(t->gpu[0].uuid, "GPU-a");
    assert_int_equal(t->gpu[0].minor, 3);
    assert_int_equal(t->gpu[0].numa, 1);
    assert_int_equal(t->gpu[1].minor, -1); /* not said: not known */
    assert_int_equal(t->gpu[1].numa, -1);
    assert_int_equal(t->gpu[0].mem_mib, 143771);
}

static void half_a_list_of_cpus_is_none(void **state)
{
    struct stk_gpus *t = *state;
    char cpus[STK_GPUVIEW_CPUS + 8], line[sizeof(cpus) + 80];

    for (size_t i = 0; i < sizeof(cpus); i++)
        cpus[i] = i % 4 == 3 ? ',' : '1';
    for (size_t n = STK_GPUVIEW_CPUS - 1; n <= STK_GPUVIEW_CPUS; n++) {
        (void)snprintf(line, sizeof(line),
                       "{\"gpus\":[{\"index\":0,\"uuid\":\"GPU-a\",\"cpus\":\"%.*s\"}]}", (int)n,
                       cpus);
        assert_int_equal(list(t, line), 0);
        assert_int_equal(strlen(t->gpu[0].cpus), n < STK_GPUVIEW_CPUS ? n : 0);
    }
}

static void links_are_the_same_both_ways_and_what_is_none_is_left_out(void **state)
{
    struct stk_gpus *t = *state;

    assert_int_equal(t->link[1].nvlinks, 0); /* not said */
    assert_int_equal(t->link[1].path, STK_PATH_UNKNOWN);
    assert_int_equal(t->gpu[0].nvlinks, -1);
    assert_int_equal(
        list(t, "{\"gpus\":[{\"index\":0,\"uuid\":\"GPU-a\",\"nvlinks\":6,\"cpus\":\"0-3\"},"
                "{\"index\":1,\"uuid\":\"GPU-b\"},{\"index\":2,\"uuid\":\"GPU-c\"}],"
                "\"links\":[{\"a\":0,\"b\":1,\"nvlinks\":6,\"switch\":true,\"path\":\"phb\"},"
                "{\"a\":1,\"b\":2,\"nvlinks\":256,\"path\":\"far\"},{\"a\":0,\"b\":3},{\"a\":2,"
                "\"b\":2,\"nvlinks\":1},{\"a\":-1,\"b\":0},3,null]}"),
        0);
    assert_string_equal(t->gpu[0].cpus, "0-3");
    assert_int_equal(t->gpu[0].nvlinks, 6);
    assert_int_equal(t->link[0 * 3 + 1].nvlinks, 6);
    assert_int_equal(t->link[1 * 3 + 0].nvlinks, 6);
    assert_true(t->link[1 * 3 + 0].through_switch);
    assert_string_equal(stk_gpu_path_name(t->link[0 * 3 + 1].path), "phb");
    assert_int_equal(t->link[1 * 3 + 2].nvlinks, 0); /* too many to be true */
    assert_int_equal(t->link[1 * 3 + 2].path, STK_PATH_UNKNOWN);
    assert_int_equal(t->link[2 * 3 + 2].nvlinks, 0);
}

static void no_driver_is_a_table_without_gpus(void **state)
{
    struct stk_gpus *t = *state;

    assert_int_equal(list(t, "{\"gpus\":[],\"suspend\":false,\"why\":\"no NVIDIA driver: x\"}"), 0);
    assert_int_equal(t->n, 0);
    assert_string_equal(t->why, "no NVIDIA driver: x");
}

static void wrong_lines_change_nothing(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "null",
        "{}",
        "{\"gpus\":{}}",
        "{\"gpus\":[1]}",
        "{\"gpus\":[{\"index\":1}]}",
        "{\"gpus\":[{\"index\":\"0\"}]}",
        "{\"ok\":false,\"gpus\":[],\"why\":\"hung\"}",
        "{\"gpus\":[],\"gpus\":[]}",
        "{\"gpus\":[{\"index\":0},{\"index\":0}]}",
    };
    struct stk_gpus *t = *state;
    char *many = malloc(65536);
    size_t at = 0;

    assert_int_equal(sample(t, 5, "\"util\":7"), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_true(list(t, wrong[i]) < 0);
    at += (size_t)sprintf(many, "{\"gpus\":[");
    for (int i = 0; i <= STK_GPUVIEW_MAX; i++)
        at += (size_t)sprintf(many + at, "%s{\"index\":%d}", i ? "," : "", i);
    (void)sprintf(many + at, "]}");
    assert_int_equal(list(t, many), -E2BIG);
    free(many);
    assert_int_equal(stk_gpuview_list(t, LIST, (size_t)STK_GPUVIEW_LINE + 1, NULL), -E2BIG);

    assert_true(sample(t, 0, "") < 0);                         /* no time */
    assert_true(sample(t, 9, "\"util\":8},{\"index\":0") < 0); /* twice */
    assert_true(sample(t, 9, "\"util\":8},{\"index\":2") < 0); /* not listed */
    assert_true(sample(t, 9, "\"util\":8},{\"index\":-1") < 0);
    assert_int_equal(t->n, 2);
    assert_int_equal(t->at_us, 5);
    assert_true(t->gpu[0].now.value[STK_GPU_UTIL].v == 7);
}

static void a_helper_that_gave_up_is_quoted(void **state)
{
    static const char line[] = "{\"ok\":false,\"gpus\":[],\"why\":\"the driver did not answer\"}";
    struct stk_err err;

    assert_int_equal(stk_gpuview_sample(*state, line, strlen(line), &err), -EIO);
    assert_non_null(strstr(err.text, "the driver did not answer"));
}

static void absent_values_are_not_known(void **state)
{
    struct stk_gpus *t = *state;
    const struct stk_gpu_value *v = t->gpu[0].now.value;

    assert_int_equal(sample(t, 1, "\"util\":0,\"power_w\":120.5,\"rows_failed\":false"), 0);
    assert_true(v[STK_GPU_UTIL].known && v[STK_GPU_UTIL].v == 0);
    assert_true(v[STK_GPU_POWER_W].known && v[STK_GPU_POWER_W].v == 120.5);
    assert_true(v[STK_GPU_ROWS_FAILED].known);
    assert_false(v[STK_GPU_ENERGY_J].known);
    assert_false(t->gpu[0].now.procs_known);
    assert_int_equal(t->gpu[1].now.at_us, 0);
    /* what was known is not carried over, and nonsense is not taken */
    assert_int_equal(sample(t, 2, "\"power_w\":-1,\"util\":\"9\",\"temp_c\":1e300"), 0);
    for (unsigned m = 0; m < STK_GPU_METRIC_MAX; m++)
        assert_false(v[m].known);
}

static void a_gpu_without_reading_is_off_unless_ignored(void **state)
{
    static const struct stk_gpu_rule ignore = {
        .foreign = STK_FOREIGN_IGNORE, .stale_s = 600, .min_free_mib = 0};
    struct stk_gpu_verdict v = judge(*state, &block);

    assert_int_equal(v.state, STK_GPU_UNKNOWN);
    assert_true(v.off);
    assert_false(judge(*state, &ignore).off);
}

static void our_own_processes_are_managed(void **state)
{
    struct stk_gpus *t = *state;
    struct stk_gpu_verdict v;

    assert_int_equal(sample(t, 1, "\"processes\":[]"), 0);
    v = judge(t, &block);
    assert_int_equal(v.state, STK_GPU_FREE);
    assert_false(v.off);
    assert_int_equal(sample(t, 1, "\"processes\":[{\"pid\":1000,\"mem_mib\":5,\"sm\":3}]"), 0);
    v = judge(t, &block);
    assert_int_equal(v.state, STK_GPU_MANAGED);
    assert_false(v.off);
    assert_int_equal(v.n_ours, 1);
}

#define ALICE                                                                                      \
    "{\"pid\":42,\"uid\":1001,\"user\":\"alice\",\"name\":\"python3\",\"mem_mib\":642,\"sm\":%s,"  \
    "\"age_s\":%d}"

static int alice(struct stk_gpus *t, int64_t at_us, const char *sm, int age_s)
{
    char p[512];

    (void)snprintf(p, sizeof(p), "\"mem_total_mib\":1642,\"processes\":[" ALICE "]", sm, age_s);
    return sample(t, at_us, p);
}

static void a_foreign_process_is_named_with_the_command_that_ends_it(void **state)
{
    struct stk_gpus *t = *state;
    struct stk_gpu_verdict v;

    assert_int_equal(alice(t, MINUTE, "12", 183600), 0);
    v = judge(t, &block);
    assert_int_equal(v.state, STK_GPU_FOREIGN_BUSY);
    assert_true(v.off);
    assert_string_equal(v.release, "kill 42");
    assert_string_equal(v.text,
                        "GPU 0 is used by alice: process 42 (python3) holds 642 MiB, started "
                        "2 d 3 h ago; alice or root can release it with: kill 42");
}

static void idle_for_long_is_stale_and_activity_ends_that(void **state)
{
    struct stk_gpus *t = *state;

    assert_int_equal(alice(t, MINUTE, "0", 100), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FOREIGN_BUSY); /* idle, but not for long */
    assert_int_equal(alice(t, 11 * MINUTE, "0", 700), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FOREIGN_IDLE);
    assert_non_null(strstr(judge(t, &block).text, "no GPU activity for 10 min"));
    assert_int_equal(alice(t, 12 * MINUTE, "1", 760), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FOREIGN_BUSY);
    assert_int_equal(alice(t, 13 * MINUTE, "0", 820), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FOREIGN_BUSY); /* counted from anew */
}

static void another_process_with_the_same_pid_starts_anew(void **state)
{
    struct stk_gpus *t = *state;

    assert_int_equal(alice(t, MINUTE, "0", 100), 0);
    assert_int_equal(alice(t, 20 * MINUTE, "0", 5), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FOREIGN_BUSY);
}

static void without_any_sign_of_activity_nothing_is_called_stale(void **state)
{
    static const char p[] = "\"processes\":[{\"pid\":42,\"mem_mib\":9}]";
    struct stk_gpus *t = *state;

    assert_int_equal(sample(t, MINUTE, p), 0);
    assert_int_equal(sample(t, 100 * MINUTE, p), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FOREIGN_BUSY);
}

static void pack_blocks_only_when_memory_is_short(void **state)
{
    struct stk_gpu_rule pack = {.foreign = STK_FOREIGN_PACK, .stale_s = 600, .min_free_mib = 1000};
    struct stk_gpus *t = *state;

    assert_int_equal(alice(t, MINUTE, "12", 5), 0);
    assert_true(judge(t, &pack).last && !judge(t, &pack).off);
    pack.min_free_mib = 1001;
    assert_true(judge(t, &pack).off);
    assert_int_equal(sample(t, 2 * MINUTE, "\"processes\":[{\"pid\":42}]"), 0);
    pack.min_free_mib = 0;
    assert_true(judge(t, &pack).off); /* how much there is is not known */
}

static void a_gpu_that_nobody_has_used_for_long_is_used_last(void **state)
{
    struct stk_gpu_rule rule = block;
    struct stk_gpus *t = *state;

    rule.min_free_mib = 100;
    assert_int_equal(alice(t, MINUTE, "0", 100), 0);
    assert_int_equal(alice(t, 11 * MINUTE, "0", 700), 0);
    assert_true(judge(t, &rule).last && !judge(t, &rule).off);
    rule.min_free_mib = 100000;
    assert_true(judge(t, &rule).off);
}

static void a_job_on_a_gpu_that_it_was_not_given_is_foreign(void **state)
{
    struct stk_gpus *t = *state;
    struct stk_gpu_verdict v;

    assert_int_equal(sample(t, 1, "\"processes\":[{\"pid\":1000},{\"pid\":2000,\"uid\":5}]"), 0);
    v = judge(t, &block);
    assert_int_equal(v.state, STK_GPU_FOREIGN_BUSY);
    assert_int_equal(v.stray, 7);
    assert_true(v.off && v.n_ours == 1 && v.n_foreign == 1);
    assert_non_null(strstr(v.text, "job 7 uses it and was not given it"));
    assert_null(strstr(v.text, "release"));
}

static void a_gpu_is_well_after_a_quiet_time(void **state)
{
    struct stk_gpu_rule rule = block;
    struct stk_gpus *t = *state;

    rule.quiet_s = 60;
    assert_int_equal(sample(t, 1, "\"recovery\":\"reset\",\"xid\":[{\"code\":62,\"at_us\":1}]"), 0);
    assert_non_null(strstr(judge(t, &rule).text, "used again after 1 min"));
    assert_false(stk_gpuview_is_well(t, 0, 60));
    assert_int_equal(sample(t, 2 * MINUTE, "\"recovery\":\"reset\""), 0);
    assert_false(stk_gpuview_is_well(t, 0, 60)); /* not reset yet */
    assert_int_equal(sample(t, 3 * MINUTE, "\"rows_pending\":true"), 0);
    assert_false(stk_gpuview_is_well(t, 0, 60));
    assert_int_equal(sample(t, 4 * MINUTE, "\"recovery\":\"none\""), 0);
    assert_false(stk_gpuview_is_well(t, 0, 600));
    assert_true(stk_gpuview_is_well(t, 0, 60));
    assert_int_equal(sample(t, 5 * MINUTE, "\"xid\":[{\"code\":62,\"at_us\":299000000}]"), 0);
    assert_false(stk_gpuview_is_well(t, 0, 60)); /* once more */
    assert_int_equal(sample(t, 6 * MINUTE, "\"xid\":[{\"code\":79,\"at_us\":300000000}]"), 0);
    assert_int_equal(t->gpu[0].fault_xid, 79); /* the worse one counts */
    assert_int_equal(sample(t, 90 * MINUTE, "\"recovery\":\"none\""), 0);
    assert_false(stk_gpuview_is_well(t, 0, 60));
    assert_null(strstr(judge(t, &rule).text, "used again after"));
}

static void a_display_is_not_foreign_work(void **state)
{
    struct stk_gpus *t = *state;

    assert_int_equal(
        sample(t, 1, "\"processes\":[{\"pid\":5,\"type\":\"graphics\",\"mem_mib\":90}]"), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FREE);
}

static void memory_nobody_accounts_for_counts_after_three_readings(void **state)
{
    static const char s[] = "\"mem_used_mib\":9000,\"processes\":[{\"pid\":1000,\"mem_mib\":4000}]";
    struct stk_gpus *t = *state;

    assert_int_equal(sample(t, 1, s), 0);
    assert_int_equal(sample(t, 2, s), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_MANAGED);
    assert_int_equal(sample(t, 3, s), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FOREIGN_BUSY);
    assert_true(judge(t, &block).foreign_mib == 5000);
}

static void only_hardware_errors_make_a_gpu_faulty(void **state)
{
    static const struct stk_gpu_rule ignore = {
        .foreign = STK_FOREIGN_IGNORE, .stale_s = 600, .min_free_mib = 0};
    struct stk_gpus *t = *state;

    assert_int_equal(sample(t, 1,
                            "\"processes\":[],\"xid\":[{\"code\":31,\"at_us\":1},"
                            "{\"code\":94,\"at_us\":1},{\"code\":7777,\"at_us\":1}]"),
                     0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FREE);
    assert_int_equal(t->gpu[0].n_xids, 3);
    assert_int_equal(sample(t, 2, "\"processes\":[],\"xid\":[{\"code\":79,\"at_us\":2}]"), 0);
    assert_int_equal(sample(t, 3, "\"processes\":[]"), 0); /* stays */
    assert_int_equal(judge(t, &block).state, STK_GPU_FAULTY);
    assert_non_null(strstr(judge(t, &block).text, "XID 79"));
    assert_true(judge(t, &ignore).off);
    stk_gpuview_clear(t, 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_FREE);
}

static void health_readings_make_a_gpu_faulty(void **state)
{
    static const struct {
        const char *members;
        enum stk_gpu_state want;
    } cases[] = {
        {"\"lost\":\"GPU is lost\"", STK_GPU_FAULTY},
        {"\"recovery\":\"reset\"", STK_GPU_FAULTY},
        {"\"recovery\":\"none\"", STK_GPU_FREE},
        {"\"rows_failed\":true", STK_GPU_FAULTY},
        {"\"rows_pending\":true", STK_GPU_FREE},
        {"\"ecc_volatile_uncorrected\":1", STK_GPU_FAULTY},
        {"\"ecc_volatile_uncorrected\":1,\"recovery\":\"none\"", STK_GPU_FREE},
        {"\"ecc_aggregate_uncorrected\":5", STK_GPU_FREE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(sample(*state, (int64_t)i + 1, cases[i].members), 0);
        assert_int_equal(judge(*state, &block).state, cases[i].want);
    }
}

static void a_split_gpu_is_off(void **state)
{
    struct stk_gpus *t = *state;

    assert_int_equal(list(t, "{\"gpus\":[{\"index\":0,\"uuid\":\"GPU-a\",\"mig\":true,"
                             "\"instances\":[{},{}]}]}"),
                     0);
    assert_int_equal(sample(t, 1, ""), 0);
    assert_int_equal(judge(t, &block).state, STK_GPU_MIG);
    assert_true(judge(t, &block).off);
}

static void a_hostile_name_cannot_write_to_the_terminal(void **state)
{
    struct stk_gpus *t = *state;
    struct stk_gpu_verdict v;

    assert_int_equal(sample(t, 1,
                            "\"processes\":[{\"pid\":42,\"user\":\"eve\\n\",\"name\":"
                            "\"\\u001b[2J\\u202e\\u009b\\\\x\\r\\n\"}]"),
                     0);
    v = judge(t, &block);
    for (const char *s = v.text; *s; s++)
        assert_true((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f);
    assert_non_null(strstr(v.text, "\\x1b[2J\\u{202e}\\u{9b}\\x5cx\\x0d\\x0a"));
}

static void many_processes_are_counted_and_long_text_is_cut(void **state)
{
    struct stk_gpus *t = *state;
    size_t size = 400000, at = 0;
    char *line = malloc(size);
    struct stk_gpu_verdict v;

    at += (size_t)sprintf(line, "{\"at_us\":1,\"gpus\":[{\"index\":0,\"processes\":[");
    for (int i = 0; i < 500; i++)
        at += (size_t)sprintf(line + at, "%s{\"pid\":%d,\"uid\":1,\"name\":\"%0600d\"}",
                              i ? "," : "", i + 1, i);
    (void)sprintf(line + at, "]}]}");
    assert_int_equal(stk_gpuview_sample(t, line, strlen(line), NULL), 0);
    assert_int_equal(t->gpu[0].now.n_procs, STK_GPUVIEW_PROCS);
    assert_int_equal(t->gpu[0].now.more_procs, 500 - STK_GPUVIEW_PROCS);
    v = judge(t, &block);
    assert_string_equal(v.release, "kill 1 2 3 4 5 6 7 8");
    assert_non_null(strstr(v.text, "and 499 more"));
    free(line);
}

static void text_is_cut_between_characters(void **state)
{
    char out[8];

    (void)state;
    stk_gpu_text_clean(out, sizeof(out), "abcd\xc3\xa9\xc3\xa9");
    assert_string_equal(out, "abcd\xc3\xa9");
    stk_gpu_text_clean(out, sizeof(out), "abcd\x01");
    assert_string_equal(out, "abcd"); /* not half of an escape */
    stk_gpu_text_clean(out, sizeof(out), "\xff\xc3");
    assert_string_equal(out, "\\xff");
    stk_gpu_text_clean(out, 1, "abc");
    assert_string_equal(out, "");
}

static void ages_have_two_units(void **state)
{
    static const struct {
        double s;
        const char *text;
    } cases[] = {{0, "0 s"},    {59.9, "59 s"},      {60, "1 min"},          {61, "1 min 1 s"},
                 {7200, "2 h"}, {183600, "2 d 3 h"}, {86400 * 400, "400 d"}, {-1, "0 s"},
                 {1e300, "0 s"}};
    char out[48];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        stk_gpu_text_age(out, sizeof(out), cases[i].s);
        assert_string_equal(out, cases[i].text);
    }
}

static void words_have_names(void **state)
{
    (void)state;
    assert_string_equal(stk_gpu_state_name(STK_GPU_FOREIGN_IDLE), "foreign-idle");
    assert_string_equal(stk_gpu_state_name(STK_GPU_STATE_MAX), "?");
    assert_string_equal(stk_gpu_metric_name(STK_GPU_RETIRED_PAGES), "retired_pages");
    assert_int_equal(stk_xid_find(13)->kind, STK_XID_APP);
    assert_int_equal(stk_xid_find(63)->kind, STK_XID_TRANSIENT);
    assert_int_equal(stk_xid_find(48)->kind, STK_XID_HARDWARE);
    assert_int_equal(stk_xid_find(130)->kind, STK_XID_APP); /* of a range */
    assert_int_equal(stk_xid_find(0)->kind, STK_XID_TRANSIENT);
}

static void shown_is_what_is_known(void **state)
{
    struct stk_gpus *t = *state;
    struct stk_gpu_verdict v;
    json_t *o;

    assert_int_equal(
        sample(t, MINUTE,
               "\"util\":5,\"processes\":[{\"pid\":42,\"mem_mib\":7,\"sm\":0},{\"pid\":1000}],"
               "\"xid\":[{\"code\":13,\"at_us\":9}]"),
        0);
    v = judge(t, &block);
    o = stk_gpuview_show(t, 0, &v, owner, NULL);
    assert_int_equal(json_integer_value(json_object_get(o, "util")), 5);
    assert_null(json_object_get(o, "power_w"));
    assert_string_equal(json_string_value(json_object_get(o, "state")), "foreign-busy");
    assert_int_equal(json_array_size(json_object_get(o, "processes")), 2);
    assert_int_equal(json_array_size(json_object_get(o, "foreign")), 1);
    assert_string_equal(json_string_value(json_object_get(o, "off")), v.text);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(o, "xids"), 0), "class")),
        "app");
    json_decref(o);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_list_is_read_whole),
        TEST(half_a_list_of_cpus_is_none),
        TEST(links_are_the_same_both_ways_and_what_is_none_is_left_out),
        TEST(no_driver_is_a_table_without_gpus),
        TEST(wrong_lines_change_nothing),
        TEST(a_helper_that_gave_up_is_quoted),
        TEST(absent_values_are_not_known),
        TEST(a_gpu_without_reading_is_off_unless_ignored),
        TEST(our_own_processes_are_managed),
        TEST(a_foreign_process_is_named_with_the_command_that_ends_it),
        TEST(idle_for_long_is_stale_and_activity_ends_that),
        TEST(another_process_with_the_same_pid_starts_anew),
        TEST(without_any_sign_of_activity_nothing_is_called_stale),
        TEST(pack_blocks_only_when_memory_is_short),
        TEST(a_gpu_that_nobody_has_used_for_long_is_used_last),
        TEST(a_job_on_a_gpu_that_it_was_not_given_is_foreign),
        TEST(a_gpu_is_well_after_a_quiet_time),
        TEST(a_display_is_not_foreign_work),
        TEST(memory_nobody_accounts_for_counts_after_three_readings),
        TEST(only_hardware_errors_make_a_gpu_faulty),
        TEST(health_readings_make_a_gpu_faulty),
        TEST(a_split_gpu_is_off),
        TEST(a_hostile_name_cannot_write_to_the_terminal),
        TEST(many_processes_are_counted_and_long_text_is_cut),
        cmocka_unit_test(text_is_cut_between_characters),
        cmocka_unit_test(ages_have_two_units),
        cmocka_unit_test(words_have_names),
        TEST(shown_is_what_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
