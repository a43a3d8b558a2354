/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace.c - the workload in memory, reading files of any kind, writing and reading back. What
 * each format accepts and refuses is in test_trace_formats.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "model/mig.h"
#include "sim/trace.h"
#include "sim/trace_ids.h"
#include "sim/trace_lines.h"
#include "unit/sim/trace_equal.h"

#define PHILLY "job_id,submit_s,gpus,duration_s,vc\n"

static struct stk_err err;

static int parse(struct stk_trace *t, const char *format, const char *text)
{
    struct stk_trace_options o = {.format = format};

    err.text[0] = '\0';
    return stk_trace_parse(t, "jobs", text, strlen(text), &o, &err);
}

static void temp_file(char *path, size_t cap, const void *data, size_t len)
{
    int fd;

    (void)snprintf(path, cap, "/tmp/stk-test-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static void names_get_numbers_in_order_of_first_sight(void **state)
{
    struct stk_names t = {0};
    char name[16];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            int len = snprintf(name, sizeof(name), "n%d", i);

            assert_int_equal(stk_names_add(&t, name, (size_t)len, 5000), i);
        }
    }
    assert_string_equal(stk_names_get(&t, 4321), "n4321");
    assert_string_equal(stk_names_get(&t, 5000), "");
    assert_int_equal(stk_names_find(&t, "n77", 3), 77);
    assert_int_equal(stk_names_find(&t, "n77x", 4), -ENOENT);
    assert_int_equal(stk_names_add(&t, "one more", 8, 5000), -E2BIG);
    stk_names_done(&t);
    stk_names_done(&t);
}

static void a_prefix_of_a_name_is_another_name(void **state)
{
    struct stk_names t = {0};

    (void)state;
    assert_int_equal(stk_names_add(&t, "abc", 3, 9), 0);
    assert_int_equal(stk_names_add(&t, "ab", 2, 9), 1);
    assert_int_equal(stk_names_add(&t, "", 0, 9), 2);
    assert_int_equal(stk_names_add(&t, "abcabc", 3, 9), 0);
    assert_int_equal(stk_names_find(&t, "abc\0ab", 6), -ENOENT);
    stk_names_done(&t);
}

static void an_id_of_two_jobs_is_not_unique(void **state)
{
    struct stk_id_map m = {0};

    (void)state;
    assert_int_equal(stk_id_map_get(&m, 7), -ENOENT);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(stk_id_map_put(&m, (uint64_t)i * 1024, i), 0);
    assert_int_equal(stk_id_map_get(&m, 999 * 1024), 999);
    assert_int_equal(stk_id_map_put(&m, 1024, 5), 0);
    assert_int_equal(stk_id_map_get(&m, 1024), -ENOTUNIQ);
    stk_id_map_done(&m);
}

static struct stk_field field(const char *s)
{
    return (struct stk_field){s, (uint32_t)strlen(s)};
}

static void fractions_of_a_second_are_rounded_exactly(void **state)
{
    static const struct {
        const char *text;
        uint64_t us;
    } good[] = {
        {"0", 0},
        {"1", 1000000},
        {"1.", 1000000},
        {".5", 500000},
        {"35424.3471980879", 35424347198},
        {"0.0000004999999999999999999999999", 0},
        {"0.0000005", 1},
        {"0.9999995", 1000000},
        {"4578.832840173429", 4578832840},
    };
    static const char *const bad[] = {"",    ".",  "-1",  "+1", "1e3", "1.2.3",
                                      "1,2", " 1", "0x1", "1 ", "nan", "99999999999999999999",
                                      "1.x", "inf"};
    uint64_t us;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_true(stk_field_micro(field(good[i].text), &us));
        assert_int_equal(us, good[i].us);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(stk_field_micro(field(bad[i]), &us));
}

static void whole_numbers_end_below_two_to_the_63(void **state)
{
    uint64_t v;

    (void)state;
    assert_true(stk_field_whole(field("9223372036854775807"), &v));
    assert_int_equal(v, INT64_MAX);
    assert_false(stk_field_whole(field("9223372036854775808"), &v));
    assert_false(stk_field_whole(field("99999999999999999999999"), &v));
}

static void names_are_printable_utf8(void **state)
{
    static const char *const bad[] = {"",
                                      "a\tb",
                                      "a\x01",
                                      "\x7f",
                                      "\xff",
                                      "\xc0\xaf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf4\x90\x80\x80"};

    (void)state;
    assert_true(stk_field_is_name(field("Zürich \"A\" \xf0\x9f\x98\x80")));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(stk_field_is_name(field(bad[i])));
}

static void jobs_come_out_in_submit_order_with_ties_in_file_order(void **state)
{
    struct stk_trace t = {0};
    uint64_t last = 0;
    char *text = malloc(1 << 20), *p = text;

    (void)state;
    for (int i = 0; i < 5000; i++)
        p += sprintf(p, "%d,%d,1,1,v\n", i, (i * 7919) % 100);
    assert_int_equal(parse(&t, "philly", text), 0);
    assert_int_equal(t.n_jobs, 5000);
    for (uint32_t i = 1; i < t.n_jobs; i++) {
        assert_true(t.jobs[i - 1].submit <= t.jobs[i].submit);
        if (t.jobs[i - 1].submit == t.jobs[i].submit)
            assert_true(last < t.jobs[i].id || i == 1);
        last = t.jobs[i].id;
    }
    stk_trace_done(&t);
    free(text);
}

static void sorting_keeps_dependencies_and_arrays_on_the_same_jobs(void **state)
{
    static const char text[] =
        "{\"id\":\"z\",\"submit_s\":9,\"duration_s\":1}\n"
        "{\"id\":\"a\",\"submit_s\":5,\"duration_s\":1,\"array\":{\"of\":\"a\",\"index\":0}}\n"
        "{\"id\":\"b\",\"submit_s\":7,\"duration_s\":1,\"array\":{\"of\":\"a\",\"index\":1},"
        "\"after\":[{\"on\":\"a\",\"type\":\"afternotok\"}]}\n";
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL, text), 0);
    assert_int_equal(t.jobs[0].submit, 5 * STK_SECOND);
    assert_int_equal(t.jobs[0].array, 1);
    assert_int_equal(t.jobs[1].array, 1);
    assert_int_equal(t.jobs[1].array_index, 1);
    assert_int_equal(t.jobs[1].n_deps, 1);
    assert_int_equal(t.deps[t.jobs[1].first_dep].on, 0);
    assert_int_equal(t.deps[t.jobs[1].first_dep].type, STK_DEP_AFTERNOTOK);
    stk_trace_done(&t);
}

static void a_second_file_is_merged_by_submit_time(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, NULL, PHILLY "1,10,1,1,a\n2,30,1,1,b\n"), 0);
    assert_int_equal(parse(&t, NULL, PHILLY "3,20,1,1,b\n"), 0);
    assert_int_equal(t.n_jobs, 3);
    assert_int_equal(t.jobs[1].id, 3);
    assert_string_equal(stk_names_get(&t.groups, t.jobs[1].group), "b");
    assert_true(t.times_in_trace);
    stk_trace_done(&t);
}

static void every_format_is_told_from_its_first_line(void **state)
{
    static const struct {
        const char *text, *format;
    } cases[] = {
        {PHILLY, "philly"},
        {"# a note\n\n" PHILLY, "philly"},
        {"\xef\xbb\xbf" PHILLY, "philly"},
        {"job_id,submit_s,vc,user,gpu_num,cpu_num,duration_s,state\n", "venus"},
        {"name,cpu_milli,memory_mib,num_gpu,gpu_milli,x\n", "openb"},
        {"job,arrival_s,duration_s,gpus\n", "blox"},
        {"a\tb\tc\td\t1\t2\t1\t1\t-1\t0\n", "gavel"},
        {"; Version: 2.2\n", "swf"},
        {"  1 0 -1 100 4 -1 -1 8 200 -1 1 12 3 -1 1 2 -1 -1\n", "swf"},
        {"{\"id\":1}\n", "jsonl"},
        {"User|jobid|State\n", "sacct"},
        {"User|State\n", NULL},
        {"what is this\n", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *found = NULL;

        for (size_t k = 0; stk_trace_formats[k] && !found; k++)
            if (stk_trace_formats[k]->detect(cases[i].text, strlen(cases[i].text)))
                found = stk_trace_formats[k]->name;
        if (cases[i].format)
            assert_string_equal(found, cases[i].format);
        else
            assert_null(found);
    }
}

static void an_unknown_format_is_answered_with_the_list(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, "phily", ""), -EINVAL);
    assert_string_equal(err.text, "there is no trace format \"phily\"; there are philly, venus, "
                                  "openb, blox, jsonl, gavel, swf, sacct");
    assert_int_equal(parse(&t, NULL, "what is this\n"), -EINVAL);
    assert_string_equal(err.text,
                        "jobs:1: cannot tell the format from the first line; pass one of philly, "
                        "venus, openb, blox, jsonl, gavel, swf, sacct");
    assert_int_equal(parse(&t, NULL, ""), -EINVAL);
    assert_string_equal(err.text, "jobs: the file is empty");
    stk_trace_done(&t);
}

static void a_line_that_is_too_long_is_refused_or_skipped(void **state)
{
    struct stk_trace_options o = {.format = "philly", .lenient = true};
    size_t len = 2 * STK_TRACE_MAX_LINE;
    char *text = malloc(len + 64);
    struct stk_trace t = {0};

    (void)state;
    memset(text, 'x', len);
    (void)snprintf(text + len, 64, "\n1,2,3,4,v\n");
    assert_int_equal(parse(&t, "philly", text), -EINVAL);
    assert_string_equal(err.text, "jobs:1: the line is longer than 65536 bytes");
    assert_int_equal(stk_trace_parse(&t, "jobs", text, strlen(text), &o, &err), 0);
    assert_int_equal(t.n_jobs, 1);
    assert_int_equal(t.n_skipped, 1);
    stk_trace_done(&t);
    free(text);
}

static void a_gzip_file_is_unpacked_whatever_its_name(void **state)
{
    static const char text[] = PHILLY "1,10,1,1,a\n", more[] = "2,20,1,1,a\n";
    char path[64];
    struct stk_trace t = {0};
    gzFile z;

    (void)state;
    temp_file(path, sizeof(path), "", 0);
    z = gzopen(path, "w");
    assert_int_equal(gzwrite(z, text, sizeof(text) - 1), sizeof(text) - 1);
    assert_int_equal(gzclose(z), Z_OK);
    z = gzopen(path, "a"); /* a second member */
    assert_int_equal(gzwrite(z, more, sizeof(more) - 1), sizeof(more) - 1);
    assert_int_equal(gzclose(z), Z_OK);
    assert_int_equal(stk_trace_read(&t, path, NULL, &err), 0);
    assert_int_equal(t.n_jobs, 2);
    stk_trace_done(&t);
    assert_int_equal(truncate(path, 30), 0);
    assert_int_equal(stk_trace_read(&t, path, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "damaged or cut short gzip data"));
    assert_int_equal(unlink(path), 0);
}

static void files_that_cannot_be_read_say_so(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(stk_trace_read(&t, "/nonexistent/x.csv", NULL, &err), -ENOENT);
    assert_string_equal(err.text, "/nonexistent/x.csv: No such file or directory");
    assert_int_equal(stk_trace_read(&t, "/tmp", NULL, &err), -EISDIR);
    stk_trace_done(&t);
}

static const char everything[] =
    "{\"id\":7,\"submit_s\":0,\"duration_s\":0,\"gpus\":2,\"tasks\":8,\"level\":\"zone\","
    "\"prefer\":\"rack\",\"subgroup\":4,\"subgroup_level\":\"link\",\"per_node\":4,"
    "\"exclusive\":true}\n"
    "{\"id\":4,\"submit_s\":0,\"duration_s\":0,\"resources\":{\"nic\":4294967295,\"x.y\":0},"
    "\"gpu_types\":{\"A100\":0.001,\"H<100>\":1,\"mi\":65.535}}\n"
    "{\"id\":5,\"submit_s\":0,\"duration_s\":0,\"resources\":{\"x.y\":3,\"nic\":1}}\n"
    "{\"id\":8,\"submit_s\":0,\"duration_s\":9,\"deadline_s\":3155760000,\"min_run_s\":1.5,"
    "\"checkpoint_s\":0.000001,\"movable\":true,\"suspend\":\"never\",\"saves\":false,"
    "\"keep_up\":{\"group\":\"web <1>\",\"min\":1000000}}\n"
    "{\"id\":9,\"submit_s\":0,\"duration_s\":9,\"suspend\":\"auto\",\"saves\":true,"
    "\"nodelist\":\"0-3,7\",\"keep_up\":{\"group\":\"web <1>\"}}\n"
    "{\"id\":2,\"submit_s\":0,\"duration_s\":0,\"gpu_milli\":250,\"gpu_mem_mib\":1000}\n"
    "{\"id\":3,\"submit_s\":0,\"duration_s\":0,\"mig\":\"3g.40gb\",\"tasks\":2}\n"
    "{\"id\":6,\"submit_s\":0,\"duration_s\":0,\"gpus\":4,\"share_max\":2,\"slo\":0.9}\n"
    "{\"id\":1,\"submit_s\":0,\"duration_s\":0,\"array\":{\"of\":1,\"index\":7}}\n"
    "{\"id\":9223372036854775807,\"submit_s\":0.000001,\"duration_s\":3155760000,\"gpus\":0}\n"
    "{\"id\":\"a \\\"b\\\" \\\\ <\\u00fc>\",\"submit_s\":3155759999.999999,\"duration_s\":1.5,"
    "\"estimate_s\":7200.25,\"gpus\":8,\"tasks\":2,\"gpu_types\":[\"A100\",\"H<100>\"],"
    "\"cpus\":4294967.295,\"mem_mib\":4294967295,\"tenant\":\"vision\",\"pool\":\"p\","
    "\"priority\":-1000000000,\"kind\":\"service\",\"tier\":\"critical\",\"ends\":\"failed\","
    "\"held\":true,\"begin_s\":99.125,\"array\":{\"of\":1,\"index\":4294967295},"
    "\"after\":[{\"on\":1,\"type\":\"afterany\"},{\"on\":9223372036854775807}]}\n"
    "{\"id\":\"007\",\"submit_s\":3155759999.999999,\"duration_s\":1,\"kind\":\"shell\","
    "\"tier\":\"best-effort\",\"ends\":\"timeout\",\"priority\":5,\"gpu_types\":[\"H<100>\"],"
    "\"after\":[{\"on\":\"a \\\"b\\\" \\\\ <\\u00fc>\",\"type\":\"afternotok\"}]}\n";

static void what_is_written_reads_back_the_same(void **state)
{
    char path[64];
    struct stk_trace t = {0}, back = {0};

    (void)state;
    assert_int_equal(parse(&t, "jsonl", everything), 0);
    temp_file(path, sizeof(path), "", 0);
    assert_int_equal(stk_trace_write_jsonl(&t, path, &err), 0);
    assert_int_equal(stk_trace_read(&back, path, NULL, &err), 0);
    assert_null(traces_differ(&t, &back));
    assert_int_equal(back.jobs[6].mig, STK_MIG(3, 40));
    assert_int_equal(back.jobs[6].gpu_milli, 375);
    assert_int_equal(back.jobs[7].share_max, 2);
    assert_int_equal(back.jobs[7].slo_milli, 900);
    assert_int_equal(back.jobs[10].submit, STK_MAX_DURATION - 1);
    assert_int_equal(back.jobs[10].cpu_milli, UINT32_MAX);
    assert_int_equal(back.jobs[10].n_deps, 2);
    assert_int_equal(back.extras[back.jobs[3].extra - 1].deadline, STK_MAX_DURATION);
    assert_int_equal(back.extras[back.jobs[3].extra - 1].checkpoint, 1);
    assert_int_equal(back.extras[back.jobs[3].extra - 1].keep_min, 1000000);
    assert_true(back.extras[back.jobs[3].extra - 1].no_save);
    assert_false(back.extras[back.jobs[4].extra - 1].no_save);
    assert_int_equal(back.keep_groups.n, 1);
    stk_trace_done(&t);
    stk_trace_done(&back);
    assert_int_equal(unlink(path), 0);
}

static void a_reference_to_an_id_of_two_jobs_cannot_be_written(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(parse(&t, "swf",
                           "1 0 0 9 1 0 0 1 9 0 1 1 1 1 1 1 -1 -1\n"
                           "2 1 0 9 1 0 0 1 9 0 1 1 1 1 1 1 1 -1\n"
                           "1 2 0 9 1 0 0 1 9 0 1 1 1 1 1 1 -1 -1\n"),
                     0);
    assert_int_equal(t.jobs[1].n_deps, 1);
    assert_int_equal(stk_trace_write_jsonl(&t, "/nonexistent/x", &err), -EINVAL);
    assert_string_equal(err.text,
                        "job 2 of the trace refers to a job whose id another job has too");
    stk_trace_done(&t);
}

static void writing_where_one_cannot_says_so(void **state)
{
    struct stk_trace t = {0};

    (void)state;
    assert_int_equal(stk_trace_write_jsonl(&t, "/nonexistent/x", &err), -ENOENT);
    assert_int_equal(parse(&t, NULL, PHILLY "1,1,1,1,a\n"), 0);
    assert_int_equal(stk_trace_write_jsonl(&t, "/dev/full", &err), -ENOSPC);
    stk_trace_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_get_numbers_in_order_of_first_sight),
        cmocka_unit_test(a_prefix_of_a_name_is_another_name),
        cmocka_unit_test(an_id_of_two_jobs_is_not_unique),
        cmocka_unit_test(fractions_of_a_second_are_rounded_exactly),
        cmocka_unit_test(whole_numbers_end_below_two_to_the_63),
        cmocka_unit_test(names_are_printable_utf8),
        cmocka_unit_test(jobs_come_out_in_submit_order_with_ties_in_file_order),
        cmocka_unit_test(sorting_keeps_dependencies_and_arrays_on_the_same_jobs),
        cmocka_unit_test(a_second_file_is_merged_by_submit_time),
        cmocka_unit_test(every_format_is_told_from_its_first_line),
        cmocka_unit_test(an_unknown_format_is_answered_with_the_list),
        cmocka_unit_test(a_line_that_is_too_long_is_refused_or_skipped),
        cmocka_unit_test(a_gzip_file_is_unpacked_whatever_its_name),
        cmocka_unit_test(files_that_cannot_be_read_say_so),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(a_reference_to_an_id_of_two_jobs_cannot_be_written),
        cmocka_unit_test(writing_where_one_cannot_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
