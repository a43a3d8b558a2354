/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers put into files: exact bytes where scripts read them, and that no name from a
 * trace gets out of the field it belongs in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/emit.h"
#include "sim/human.h"
#include "sim/out_csv.h"
#include "sim/out_html.h"
#include "sim/out_json.h"
#include "sim/out_table.h"
#include "sim/progress.h"
#include "sim/stats.h"

#define S STK_SECOND
#define HOSTILE "</script><script>alert(1)</script>"

/* What 'emit' wrote; free() it. */
static char *emitted(void (*emit)(struct stk_emit *e, const char *s), const char *s)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct stk_emit e;

    assert_non_null(f);
    stk_emit_init(&e, f);
    emit(&e, s);
    assert_int_equal(stk_emit_end(&e), 0);
    (void)fclose(f);
    return text;
}

static void expect(void (*emit)(struct stk_emit *e, const char *s), const char *s, const char *want)
{
    char *got = emitted(emit, s);

    assert_string_equal(got, want);
    free(got);
}

static void json_strings_are_escaped_and_valid_utf8(void **state)
{
    (void)state;
    expect(stk_emit_json, "plain", "\"plain\"");
    expect(stk_emit_json, "a\"b\\c\n", "\"a\\u0022b\\u005cc\\u000a\"");
    expect(stk_emit_json, "</script>&", "\"\\u003c/script\\u003e\\u0026\"");
    expect(stk_emit_json, "gr\xC3\xBC\xC3\x9F \xF0\x9F\x90\x9F",
           "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x90\x9F\"");
    expect(stk_emit_json, "\xE2\x80\xA8\xE2\x80\xA9", "\"\\u2028\\u2029\"");
    expect(stk_emit_json, "\xFF", "\"\xEF\xBF\xBD\"");
    expect(stk_emit_json, "\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""); /* overlong */
    expect(stk_emit_json, "\xE2\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""); /* cut short */
    expect(stk_emit_json, "\xED\xA0\x80",
           "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""); /* surrogate */
}

static void html_text_is_escaped(void **state)
{
    (void)state;
    expect(stk_emit_html, "<b a='1' c=\"2\">&", "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
    expect(stk_emit_html, "a\x01\xFE", "a \xEF\xBF\xBD");
}

static void csv_fields_are_quoted_only_when_needed(void **state)
{
    (void)state;
    expect(stk_emit_csv, "job-7", "job-7");
    expect(stk_emit_csv, "a,b", "\"a,b\"");
    expect(stk_emit_csv, "say \"hi\"", "\"say \"\"hi\"\"\"");
    expect(stk_emit_csv, "two\nlines", "\"two\nlines\"");
    expect(stk_emit_csv, " edge", "\" edge\"");
}

static void emit_numbers(struct stk_emit *e, const char *s)
{
    (void)s;
    stk_emit_us(e, 3 * S);
    stk_emit_text(e, " ");
    stk_emit_us(e, 3 * S + 250000);
    stk_emit_text(e, " ");
    stk_emit_us(e, 1);
    stk_emit_text(e, " ");
    stk_emit_us(e, -1500000);
    stk_emit_text(e, " ");
    stk_emit_u64(e, UINT64_MAX);
    stk_emit_text(e, " ");
    stk_emit_real(e, 0.1 + 0.2, 6);
    stk_emit_text(e, " ");
    stk_emit_real(e, 2.9999999, 6);
    stk_emit_text(e, " ");
    stk_emit_real(e, -0.0000001, 6);
    stk_emit_text(e, " ");
    stk_emit_real(e, 1e20, 6);
    stk_emit_text(e, " ");
    stk_emit_real(e, (double)NAN, 6);
}

static void numbers_have_no_needless_digits(void **state)
{
    (void)state;
    expect(emit_numbers, "",
           "3 3.25 0.000001 -1.5 18446744073709551615 0.3 3 0 100000000000000000000 null");
}

static void a_full_disk_is_reported(void **state)
{
    FILE *f = fopen("/dev/full", "w");
    struct stk_run_result r = {.bundle = "fifo"};
    struct stk_err err;

    (void)state;
    if (!f)
        skip();
    assert_int_equal(stk_out_json(f, &r, 1, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "JSON"));
    (void)fclose(f);
}

static void json_has_the_agreed_members_in_order(void **state)
{
    static const char *const names[] = {"bundle",
                                        "jobs",
                                        "finished",
                                        "sum_jct_s",
                                        "avg_jct_s",
                                        "p50_jct_s",
                                        "p90_jct_s",
                                        "p99_jct_s",
                                        "avg_wait_s",
                                        "p999_wait_s",
                                        "avg_bounded_slowdown",
                                        "makespan_s",
                                        "utilization",
                                        "gpu_hours",
                                        "preemptions",
                                        "cycles",
                                        "migrations",
                                        "migrated_gpus",
                                        "restarts_cost_gpu_s",
                                        "max_waiting",
                                        "events",
                                        "decisions",
                                        "cpu_s",
                                        "rss_mib",
                                        "digest",
                                        "policies",
                                        "p50_wait_s",
                                        "p90_wait_s",
                                        "p99_wait_s"};
    struct stk_run_result r = {.bundle = "a\"b", .sum_jct_us = 7 * S, .digest = 0xAB};
    char *text = NULL;
    size_t len = 0, i = 0;
    FILE *f = open_memstream(&text, &len);
    const char *key;
    json_t *root, *run, *value;

    (void)state;
    r.p50_jct_s = (double)NAN;
    assert_int_equal(stk_out_json(f, &r, 1, NULL), 0);
    (void)fclose(f);
    root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    run = json_array_get(json_object_get(root, "runs"), 0);
    assert_int_equal(json_object_size(run), sizeof(names) / sizeof(names[0]));
    json_object_foreach(run, key, value) assert_string_equal(key, names[i++]);
    assert_string_equal(json_string_value(json_object_get(run, "bundle")), "a\"b");
    assert_string_equal(json_string_value(json_object_get(run, "digest")), "00000000000000ab");
    assert_true(json_is_integer(json_object_get(run, "sum_jct_s")));
    assert_true(json_is_null(json_object_get(run, "p50_jct_s")));
    json_decref(root);
    free(text);
}

/* Three jobs, one with a name as id and one that never ran; two tenants with bad names. */
static void fill(struct stk_trace *t, struct stk_run_result *r)
{
    struct stk_trace_job *j = calloc(3, sizeof(*j));

    assert_non_null(j);
    *t = (struct stk_trace){.jobs = j, .n_jobs = 3, .cap_jobs = 3};
    assert_int_equal(stk_names_add(&t->ids, "a,\"b\"", 5, 10), 0);
    assert_int_equal(stk_names_add(&t->tenants, HOSTILE, strlen(HOSTILE), 10), 0);
    assert_int_equal(stk_names_add(&t->tenants, "\"><img src=x onerror=alert(2)>", 30, 10), 1);
    j[0] = (struct stk_trace_job){.id = 12, .gpus = 1, .submit = S, .duration = 2 * S};
    j[1] = (struct stk_trace_job){.id = STK_TRACE_ID_NAME, .submit = S, .duration = S, .tenant = 1};
    j[2] = (struct stk_trace_job){.id = 14, .submit = S + 500000, .duration = S};
    *r = (struct stk_run_result){.bundle = "fifo", .jobs = calloc(3, sizeof(*r->jobs)), .gpus = 4};
    assert_non_null(r->jobs);
    r->jobs[0] = (struct stk_job_result){.first_start = S, .end = 3 * S, .nodes = 1};
    r->jobs[1] = (struct stk_job_result){
        .first_start = 3 * S, .end = 4 * S + 1, .wait = 2 * S, .preemptions = 5, .nodes = 2};
    r->jobs[2] = (struct stk_job_result){.first_start = -1, .end = -1};
    stk_run_result_sum(r, t, 0, UINT32_MAX);
}

static void drop(struct stk_trace *t, struct stk_run_result *r)
{
    stk_run_result_done(r);
    stk_names_done(&t->ids);
    stk_names_done(&t->tenants);
    free(t->jobs);
}

/* The whole of a file, which is then removed; free() it. */
static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    assert_non_null(f);
    assert_non_null(text);
    text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
    (void)fclose(f);
    (void)unlink(path);
    return text;
}

static void temp_path(char path[32])
{
    int fd;

    (void)snprintf(path, 32, "/tmp/stk-output-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void csv_has_a_row_per_job_and_a_bundle_column_for_several_runs(void **state)
{
    struct stk_trace t;
    struct stk_run_result r[2];
    char path[32];
    char *text;

    (void)state;
    fill(&t, &r[0]);
    temp_path(path);
    assert_int_equal(stk_out_csv(path, &t, r, 1, NULL), 0);
    text = slurp(path);
    assert_string_equal(text, "id,submit_s,first_start_s,end_s,wait_s,preemptions,nodes\n"
                              "12,1,1,3,0,0,1\n"
                              "\"a,\"\"b\"\"\",1,3,4.000001,2,5,2\n"
                              "14,1.5,,,,0,0\n");
    free(text);
    r[1] = r[0];
    assert_int_equal(stk_out_csv(path, &t, r, 2, NULL), 0);
    text = slurp(path);
    assert_non_null(strstr(text, "bundle,id,"));
    assert_non_null(strstr(text, "\nfifo,12,1,1,3,0,0,1\n"));
    free(text);
    drop(&t, &r[0]);
}

static void csv_of_a_run_without_rows_is_refused(void **state)
{
    struct stk_run_result r = {.bundle = "srtf"};
    struct stk_trace t = {0};
    struct stk_err err;

    (void)state;
    assert_int_equal(stk_out_csv("/nowhere/x", &t, &r, 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, "srtf"));
    assert_int_equal(stk_out_csv("/nowhere/x", &t, &r, 0, &err), -ENOENT);
}

static size_t occurrences(const char *text, const char *what)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

static void hostile_names_stay_text_in_the_report(void **state)
{
    static const char open_data[] = "<script type=\"application/json\" id=\"data\">";
    struct stk_trace t;
    struct stk_run_result r;
    char path[32];
    char *text, *data;
    json_t *root, *tenants;

    (void)state;
    fill(&t, &r);
    temp_path(path);
    assert_int_equal(stk_out_html(path, &t, &r, 1, HOSTILE "'@@DATA@@", NULL), 0);
    text = slurp(path);
    assert_int_equal(occurrences(text, "</script>"), 2); /* the page's own */
    assert_null(strstr(text, "<script>alert"));
    assert_null(strstr(text, "<img"));
    assert_non_null(strstr(text, "<title>&lt;/script&gt;"));
    assert_int_equal(occurrences(text, "\"trace_jobs\""), 1);
    data = strstr(text, open_data);
    assert_non_null(data);
    data += sizeof(open_data) - 1;
    *strstr(data, "</script>") = '\0';
    root = json_loads(data, JSON_REJECT_DUPLICATES, NULL);
    tenants = json_object_get(root, "tenants");
    assert_string_equal(json_string_value(json_array_get(tenants, 0)), HOSTILE);
    json_decref(root);
    free(text);
    drop(&t, &r);
}

static void the_report_copes_with_runs_that_kept_nothing(void **state)
{
    struct stk_run_result r = {.bundle = "fifo"};
    struct stk_trace t = {0};
    char path[32];
    char *text;

    (void)state;
    temp_path(path);
    assert_int_equal(stk_out_html(path, &t, &r, 1, "empty", NULL), 0);
    text = slurp(path);
    assert_non_null(strstr(text, "\"jct\":[],\"wait\":[],\"util\":[],\"queue\":[],\"tenants\":[]"));
    free(text);
    assert_int_equal(stk_out_html("/nowhere/x", &t, &r, 1, "x", NULL), -ENOENT);
}

static void the_table_marks_the_best_and_uses_no_colour_in_files(void **state)
{
    struct stk_run_result r[2] = {
        {.bundle = "fifo", .n_jobs = 9, .finished = 12345, .avg_jct_s = 17520, .cpu_s = 1},
        {.bundle = "a\033[31m",
         .n_jobs = 9,
         .finished = 12345,
         .avg_jct_s = 60,
         .utilization = .5}};
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    assert_int_equal(stk_out_table(f, r, 2, NULL), 0);
    (void)fclose(f);
    assert_non_null(strstr(text, " 12,345  ")); /* equal: not marked */
    assert_non_null(strstr(text, " 4h 52m  "));
    assert_non_null(strstr(text, " 1m* "));
    assert_non_null(strstr(text, " 50.0%* "));
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, "a?[31m"));
    free(text);
}

static void expect_duration(double s, const char *want)
{
    char text[STK_HUMAN_LEN];

    stk_human_duration(text, sizeof(text), s);
    assert_string_equal(text, want);
}

static void durations_use_two_units_at_most(void **state)
{
    (void)state;
    expect_duration(0, "0s");
    expect_duration(0.45, "450ms");
    expect_duration(0.9997, "1s");
    expect_duration(12.34, "12.3s");
    expect_duration(59.97, "1m");
    expect_duration(250, "4m 10s");
    expect_duration(3599.6, "1h");
    expect_duration(17520, "4h 52m");
    expect_duration(86399, "1d");
    expect_duration(284400, "3d 7h");
    expect_duration(1234.0 * 86400, "1,234d");
    expect_duration(-1, "-");
    expect_duration((double)NAN, "-");
}

static void the_progress_line_fits_the_terminal(void **state)
{
    struct stk_progress p = {.label = "srtf", .total = 2000000};
    struct stk_progress_line l;

    (void)state;
    stk_progress_line(&p, 500000, 5, 120, &l);
    assert_true(strlen(l.text) < 120);
    assert_int_equal(l.filled, 10);
    assert_non_null(strstr(l.text, "srtf  25% [=========>  "));
    assert_non_null(strstr(l.text, "500,000 of 2,000,000  100,000/s  15s left"));
    for (size_t width = 1; width < 300; width++) {
        stk_progress_line(&p, 1999999, 5, width, &l);
        assert_true(strlen(l.text) < width);
    }
    p.total = 0;
    stk_progress_line(&p, 1000, 2, 80, &l);
    assert_string_equal(l.text, "srtf  1,000  500/s");
}

static void progress_is_silent_when_it_is_not_on_a_terminal(void **state)
{
    struct stk_progress p = {.label = "x", .total = 1, .on = false};

    (void)state;
    stk_progress_update(&p, 1);
    stk_progress_done(&p);
    assert_false(p.drawn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_strings_are_escaped_and_valid_utf8),
        cmocka_unit_test(html_text_is_escaped),
        cmocka_unit_test(csv_fields_are_quoted_only_when_needed),
        cmocka_unit_test(numbers_have_no_needless_digits),
        cmocka_unit_test(a_full_disk_is_reported),
        cmocka_unit_test(json_has_the_agreed_members_in_order),
        cmocka_unit_test(csv_has_a_row_per_job_and_a_bundle_column_for_several_runs),
        cmocka_unit_test(csv_of_a_run_without_rows_is_refused),
        cmocka_unit_test(hostile_names_stay_text_in_the_report),
        cmocka_unit_test(the_report_copes_with_runs_that_kept_nothing),
        cmocka_unit_test(the_table_marks_the_best_and_uses_no_colour_in_files),
        cmocka_unit_test(durations_use_two_units_at_most),
        cmocka_unit_test(the_progress_line_fits_the_terminal),
        cmocka_unit_test(progress_is_silent_when_it_is_not_on_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
