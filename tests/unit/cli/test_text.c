/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c - text made safe, widths, bars, tables, times and sizes in words, job states and exit
 * codes, and the filter for output on a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/logfilter.h"
#include "cli/table.h"
#include "cli/view.h"

static const char *clean(const char *s)
{
    static char buf[64];

    return stk_text_clean(buf, sizeof(buf), s, false);
}

static void control_characters_do_not_get_through(void **state)
{
    char small[6];

    (void)state;
    assert_string_equal(clean("plain text"), "plain text");
    assert_string_equal(clean("\033[2Jx\033]0;title\007"), "?[2Jx?]0;title?");
    assert_string_equal(clean("a\nb\tc\rd"), "a b c d");
    assert_string_equal(clean("del\177 c1\302\233m"), "del? c1?m");
    assert_string_equal(clean("bidi \342\200\256x\342\201\246y"), "bidi ?x?y");
    assert_string_equal(clean("bad \377\300\257 utf8 \355\240\200"), "bad ??? utf8 ???");
    assert_string_equal(clean("über 日本 🙂"), "über 日本 🙂");
    assert_string_equal(stk_text_clean(small, sizeof(small), "abcdé", false), "abcd");
    assert_string_equal(stk_text_clean(small, sizeof(small), "a\nb", true), "a\nb");
}

static void widths_count_columns(void **state)
{
    (void)state;
    assert_int_equal(stk_text_width("abc"), 3);
    assert_int_equal(stk_text_width("über"), 4);
    assert_int_equal(stk_text_width("日本"), 4);
    assert_int_equal(stk_text_width("e\314\201"), 1);
    assert_int_equal(stk_text_fit("日本", 3), 3);
    assert_int_equal(stk_text_fit("abc", 9), 3);
}

static void bars_fill_from_the_left(void **state)
{
    struct stk_term t = {.utf8 = false};
    char buf[64];

    (void)state;
    assert_string_equal(stk_term_bar(&t, 0, 4, buf, sizeof(buf)), "....");
    assert_string_equal(stk_term_bar(&t, 0.5, 4, buf, sizeof(buf)), "##..");
    assert_string_equal(stk_term_bar(&t, 0.625, 4, buf, sizeof(buf)), "##-.");
    assert_string_equal(stk_term_bar(&t, 7, 4, buf, sizeof(buf)), "####");
    t.utf8 = true;
    assert_string_equal(stk_term_bar(&t, 0.625, 4, buf, sizeof(buf)), "██▌░");
    assert_string_equal(stk_term_bar(&t, -1, 2, buf, sizeof(buf)), "░░");
}

static const struct stk_column columns[] = {{"ID", true, 0}, {"NAME", false, 4}, {"WHY", false, 6}};

static const char *print_table(int width, bool utf8, const char *name, const char *why)
{
    static char text[512];
    struct stk_term t = {.width = width, .utf8 = utf8};
    struct stk_table *table = stk_table_new(columns, 3);

    memset(text, 0, sizeof(text));
    t.f = fmemopen(text, sizeof(text) - 1, "w");
    stk_table_cell(table, STK_RED, "%d", 7);
    stk_table_cell(table, STK_PLAIN, "%s", name);
    stk_table_cell(table, STK_PLAIN, "%s", why);
    assert_int_equal(stk_table_print(table, &t, 0), 0);
    (void)fclose(t.f);
    stk_table_free(table);
    return text;
}

static void tables_fit_the_terminal(void **state)
{
    (void)state;
    assert_string_equal(print_table(0, true, "a-long-name", "a long reason"),
                        "ID  NAME         WHY\n 7  a-long-name  a long reason\n");
    assert_string_equal(print_table(20, true, "a-long-name", "a long reason"),
                        "ID  NAME     WHY\n 7  a-long…  a long…\n");
    assert_string_equal(print_table(20, false, "a-long-name", "a long reason"),
                        "ID  NAME     WHY\n 7  a-lon..  a lon..\n");
    assert_string_equal(print_table(3, true, "a-long-name", "a long reason"),
                        "ID  NAME  WHY\n 7  a-l…  a lon…\n");
    assert_string_equal(print_table(0, true, "x\033[31m\ny", "é"),
                        "ID  NAME      WHY\n 7  x?[31m y  é\n");
}

static void times_and_sizes_are_short(void **state)
{
    char buf[32];

    (void)state;
    assert_string_equal(stk_text_duration(7, buf, sizeof(buf)), "0:07");
    assert_string_equal(stk_text_duration(3723, buf, sizeof(buf)), "1:02:03");
    assert_string_equal(stk_text_duration(90061, buf, sizeof(buf)), "1-01:01:01");
    assert_string_equal(stk_text_duration(-1, buf, sizeof(buf)), "-");
    assert_string_equal(stk_text_time(0, buf, sizeof(buf)), "-");
    assert_string_equal(stk_text_mib(512, buf, sizeof(buf)), "512 MiB");
    assert_string_equal(stk_text_mib(3584, buf, sizeof(buf)), "3.5 GiB");
    assert_string_equal(stk_text_mib(143771, buf, sizeof(buf)), "140 GiB");
}

static int code_of(const char *json)
{
    json_t *job = json_loads(json, 0, NULL);
    int code;

    assert_non_null(job);
    assert_true(stk_view_ended(job));
    code = stk_view_code(job);
    json_decref(job);
    return code;
}

static void exit_codes_follow_the_job(void **state)
{
    (void)state;
    assert_int_equal(code_of("{\"state\":\"done\",\"cause\":\"completed\",\"exit_code\":0}"), 0);
    assert_int_equal(code_of("{\"state\":\"done\",\"cause\":\"failed\",\"exit_code\":3}"), 3);
    assert_int_equal(code_of("{\"state\":\"done\",\"cause\":\"failed\",\"exit_code\":256}"), 1);
    assert_int_equal(code_of("{\"state\":\"done\",\"cause\":\"killed\",\"signal\":9}"), 137);
    assert_int_equal(code_of("{\"state\":\"done\",\"cause\":\"cancelled\",\"exit_code\":null}"),
                     143);
    assert_int_equal(code_of("{\"state\":\"done\",\"cause\":\"not_started\"}"), 125);
    assert_int_equal(code_of("{\"state\":\"done\",\"cause\":\"dependency_failed\"}"), 125);
}

static void jobs_say_where_they_are(void **state)
{
    json_t *job = json_pack("{s:s, s:s, s:[{s:s, s:[iiiii]}], s:i, s:i, s:i}", "state", "running",
                            "node", "n1", "pieces", "node", "n1", "gpu_indices", 0, 2, 3, 4, 6,
                            "id", 12, "array_id", 10, "array_index", 2);
    json_t *pieces = json_object_get(job, "pieces");
    char buf[64], small[16];

    (void)state;
    assert_string_equal(stk_view_where(job, buf, sizeof(buf)), "n1 gpu 0,2-4,6");
    assert_string_equal(stk_view_id(job, buf, sizeof(buf)), "10_2");
    for (int i = 2; i <= 5; i++) {
        char node[8];

        (void)snprintf(node, sizeof(node), "n%d", i);
        (void)json_array_append_new(pieces,
                                    json_pack("{s:s, s:[ii]}", "node", node, "gpu_indices", 0, 1));
    }
    assert_string_equal(stk_view_where(job, buf, sizeof(buf)),
                        "n1 gpu 0,2-4,6, n2 gpu 0,1, n3 gpu 0,1 and 2 more nodes");
    (void)json_array_remove(pieces, 4);
    assert_string_equal(stk_view_where(job, buf, sizeof(buf)),
                        "n1 gpu 0,2-4,6, n2 gpu 0,1, n3 gpu 0,1 and 1 more node");
    assert_string_equal(stk_view_where(job, small, sizeof(small)), "n1 gpu 0,2-4,6,");
    (void)json_object_set_new(job, "state", json_string("waiting"));
    (void)json_object_set_new(job, "state_text", json_string("needs 4 GPUs"));
    assert_string_equal(stk_view_where(job, buf, sizeof(buf)), "needs 4 GPUs");
    assert_false(stk_view_ended(job));
    json_decref(job);
}

/* The filter must not depend on how the bytes are cut. */
static void check_filter(const char *in, const char *want)
{
    for (size_t step = 1; step <= strlen(in); step++) {
        struct stk_logfilter f = {0};
        char out[256] = "";
        size_t n = 0;

        for (size_t at = 0; at < strlen(in); at += step)
            n += stk_logfilter(&f, in + at, strlen(in) - at < step ? strlen(in) - at : step,
                               out + n);
        out[n] = '\0';
        assert_string_equal(out, want);
    }
}

static void output_keeps_colours_and_loses_the_rest(void **state)
{
    (void)state;
    check_filter("a\033[1;31mred\033[0m\r\n\tb\b", "a\033[1;31mred\033[0m\r\n\tb\b");
    check_filter("x\033[2J\033[1;1Hy", "xy");
    check_filter("\033]0;title\007z\033]8;;u\033\\w", "zw");
    check_filter("\033Pq#0\033\\k\033(Bl\033cm", "klm");
    check_filter("n\033[?25lo\033[>4;1mp", "nop");
    check_filter("\001\002q\177", "q");
    check_filter("é日", "é日");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_do_not_get_through),
        cmocka_unit_test(widths_count_columns),
        cmocka_unit_test(bars_fill_from_the_left),
        cmocka_unit_test(tables_fit_the_terminal),
        cmocka_unit_test(times_and_sizes_are_short),
        cmocka_unit_test(exit_codes_follow_the_job),
        cmocka_unit_test(jobs_say_where_they_are),
        cmocka_unit_test(output_keeps_colours_and_loses_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
