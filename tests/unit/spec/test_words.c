/* SPDX-License-Identifier: Apache-2.0 */
/* test_words.c - durations, sizes, times, arrays, dependencies, signals, job ids, hosts, flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spec/opts.h"
#include "spec/words.h"

static struct stk_err err;

static void durations_of_every_form(void **state)
{
    static const struct {
        const char *text;
        uint32_t unit;
        int64_t seconds; /* -1: refused */
    } cases[] = {
        {"90", 60, 5400},       {"90", 1, 90},
        {"0", 60, 0},           {"30:15", 60, 1815},
        {"1:30:00", 1, 5400},   {"1-12", 60, 129600},
        {"1-12:30", 1, 131400}, {"1-12:30:15", 1, 131415},
        {"1-0", 1, 86400},      {"1h30m", 1, 5400},
        {"2d", 60, 172800},     {"45s", 60, 45},
        {"1w2d", 1, 777600},    {"UNLIMITED", 60, 0},
        {"infinite", 60, 0},    {"off", 1, 0},
        {"none", 1, 0},         {"", 1, -1},
        {"abc", 1, -1},         {"1h30", 1, -1},
        {"30m1h", 1, -1},       {"1m2m", 1, -1},
        {"1:2:3:4", 1, -1},     {"-1", 1, -1},
        {"1-", 1, -1},          {":30", 1, -1},
        {"1.5h", 1, -1},        {"99999999999", 60, -1},
        {"4000000000s", 1, -1}, {"1-2-3", 1, -1},
        {"200w", 1, 120960000}, {"99999w", 1, -1},
        {" 5", 1, -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int64_t s = -1;

        if ((stk_words_duration(cases[i].text, cases[i].unit, &s) == 0) !=
                (cases[i].seconds >= 0) ||
            s != cases[i].seconds)
            fail_msg("%s: %lld", cases[i].text, (long long)s);
    }
}

static void sizes_of_every_unit(void **state)
{
    static const struct {
        const char *text;
        char unit;
        int64_t mib;
    } cases[] = {
        {"32G", 'M', 32768},
        {"512", 'M', 512},
        {"4", 'G', 4096},
        {"1.5T", 'M', 1572864},
        {"64GiB", 'M', 65536},
        {"64GB", 'M', 65536},
        {"100K", 'M', 1},
        {"2048k", 'M', 2},
        {"0", 'M', 0},
        {"1.25G", 'M', 1280},
        {"", 'M', -1},
        {"G", 'M', -1},
        {"1X", 'M', -1},
        {"1.G", 'M', -1},
        {"1GG", 'M', -1},
        {"-1G", 'M', -1},
        {"99999999999T", 'M', -1},
        {"1 G", 'M', -1},
        {"1Gi", 'M', -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int64_t mib = -1;

        if ((stk_words_size(cases[i].text, cases[i].unit, &mib) == 0) != (cases[i].mib >= 0) ||
            mib != cases[i].mib)
            fail_msg("%s: %lld", cases[i].text, (long long)mib);
    }
}

static void times_of_every_form(void **state)
{
    /* Wednesday 2026-03-04 10:00:00 UTC */
    static const int64_t now = 1772618400;
    static const struct {
        const char *text;
        int64_t at; /* -1: refused */
    } cases[] = {
        {"now", 1772618400},
        {"now+90", 1772618490},
        {"now+1hour", 1772622000},
        {"now+2days", 1772618400 + 172800},
        {"now+5minutes", 1772618700},
        {"now+1week", 1772618400 + 604800},
        {"16:30", 1772641800},
        {"16:30:15", 1772641815},
        {"4:30pm", 1772641800},
        {"09:00", 1772614800 + 86400},
        {"9:00am", 1772614800 + 86400},
        {"12:30am", 1772582400 + 1800 + 86400},
        {"midnight", 1772582400 + 86400},
        {"noon", 1772625600},
        {"teatime", 1772640000},
        {"today", 1772582400},
        {"tomorrow", 1772668800},
        {"2026-03-05", 1772668800},
        {"2026-03-05T08:00", 1772697600},
        {"2026-03-05T08:00:01", 1772697601},
        {"030526", 1772668800},
        {"03/05/26", 1772668800},
        {"03/05", 1772668800},
        {"1772618401", 1772618401},
        {"yesterday", -1},
        {"now+", -1},
        {"now+1fortnight", -1},
        {"25:00", -1},
        {"13:00pm", -1},
        {"16:60", -1},
        {"2026-13-01", -1},
        {"2027-02-30", -1},
        {"2027-02-29", -1},
        {"2028-02-29", 1835395200},
        {"2100-02-29", -1},
        {"2026-04-31", -1},
        {"2026-06-31T12:00", -1},
        {"2026-01-32", -1},
        {"2026-00-10", -1},
        {"2026-03-00", -1},
        {"022926", -1},
        {"02/30/26", -1},
        {"02/29", -1},
        {"04.31.26", -1},
        {"03/05/xx", -1},
        {"2026-03-05T24:00", -1},
        {"2026-03-05T25:00", -1},
        {"2026-03-05T08:61", -1},
        {"", -1},
        {"T", -1},
        {"2026-03-05Tnever", -1},
        {"16:30:99", -1},
        {"now-1", -1},
        {"99999999999999", -1},
    };

    (void)state;
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int64_t at = -1;

        if ((stk_words_time(cases[i].text, now, &at, NULL) == 0) != (cases[i].at >= 0) ||
            at != cases[i].at)
            fail_msg("%s: %lld", cases[i].text, (long long)at);
    }
    /* Europe/Berlin, 29 March 2026: 02:00 is followed by 03:00 */
    assert_int_equal(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
    tzset();
    {
        int64_t at = -1;

        assert_int_equal(stk_words_time("2026-03-29T02:30", now, &at, NULL), -ERANGE);
        assert_int_equal(stk_words_time("2026-03-29T03:00", now, &at, NULL), 0);
        assert_int_equal(at, 1774746000);
        assert_int_equal(stk_words_time("2026-03-29T01:59:59", now, &at, NULL), 0);
        assert_int_equal(at, 1774745999);
    }
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
}

static char *dump(json_t *take)
{
    static char text[1024];
    char *s = json_dumps(take, JSON_COMPACT | JSON_SORT_KEYS);

    assert_non_null(s);
    (void)snprintf(text, sizeof(text), "%s", s);
    free(s);
    json_decref(take);
    return text;
}

static void arrays_of_every_form(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"0-9%2", "{\"first\":0,\"last\":9,\"limit\":2}"},
        {"0-99:10", "{\"first\":0,\"last\":99,\"step\":10}"},
        {"1,3,5-9:2", "{\"indices\":[1,3,5,7,9]}"},
        {"9,1,1-2", "{\"indices\":[1,2,9]}"},
        {"7", "{\"first\":7,\"last\":7}"},
        {"", NULL},
        {"a", NULL},
        {"5-1", NULL},
        {"0-9%", NULL},
        {"0-9%0", NULL},
        {"0-9:0", NULL},
        {"1,,2", NULL},
        {"0-9x", NULL},
        {"1-", NULL},
        {"-1", NULL},
        {"0-100000", NULL},
        {"0-99999,100000", NULL},
        {"99999999999", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *a = NULL;
        int rc = stk_words_array(cases[i].text, &a, &err);

        if ((rc == 0) != (cases[i].json != NULL))
            fail_msg("%s: %d %s", cases[i].text, rc, err.text);
        if (rc == 0)
            assert_string_equal(dump(a), cases[i].json);
    }
    {
        json_t *a = NULL;

        assert_int_equal(stk_words_array("0-99999", &a, &err), 0);
        json_decref(a);
    }
}

static void dependencies_of_every_form(void **state)
{
    json_t *d = json_array();
    bool singleton = false;

    (void)state;
    assert_int_equal(stk_words_depend("afterok:12:13,afterany:14_3", d, &singleton, &err), 0);
    assert_false(singleton);
    assert_int_equal(stk_words_depend("singleton,aftercorr:9", d, &singleton, &err), 0);
    assert_true(singleton);
    assert_int_equal(stk_words_depend("77", d, &singleton, &err), 0);
    assert_int_equal(stk_words_depend("78:79_2:80", d, &singleton, &err), 0);
    assert_int_equal(stk_words_depend("78:x", d, &singleton, &err), -EINVAL);
    assert_int_equal(stk_words_depend("singleton:5", d, &singleton, &err), -EINVAL);
    assert_non_null(strstr(err.text, "takes no job number"));
    assert_int_equal(stk_words_depend("afterok:1?afterok:2", d, &singleton, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'?'"));
    assert_int_equal(stk_words_depend("after:1", d, &singleton, &err), -EINVAL);
    assert_int_equal(stk_words_depend("afterok:1,afterok", d, &singleton, &err), -EINVAL);
    assert_int_equal(stk_words_depend("afterok:x", d, &singleton, &err), -EINVAL);
    assert_int_equal(stk_words_depend("afterok:0", d, &singleton, &err), -EINVAL);
    assert_int_equal(stk_words_depend("", d, &singleton, &err), -EINVAL);
    assert_string_equal(dump(d), "[{\"job\":12,\"type\":\"afterok\"},"
                                 "{\"job\":13,\"type\":\"afterok\"},"
                                 "{\"index\":3,\"job\":14,\"type\":\"afterany\"},"
                                 "{\"job\":9,\"type\":\"aftercorr\"},"
                                 "{\"job\":77,\"type\":\"afterok\"},"
                                 "{\"job\":78,\"type\":\"afterok\"},"
                                 "{\"index\":2,\"job\":79,\"type\":\"afterok\"},"
                                 "{\"job\":80,\"type\":\"afterok\"}]");
}

static void signals_by_name_and_number(void **state)
{
    json_t *a;
    int n = 0;

    (void)state;
    assert_int_equal(stk_words_signal("USR1", &n), 0);
    assert_int_equal(n, 10);
    assert_int_equal(stk_words_signal("sigterm", &n), 0);
    assert_int_equal(n, 15);
    assert_int_equal(stk_words_signal("9", &n), 0);
    assert_int_equal(n, 9);
    assert_int_equal(stk_words_signal("0", &n), -EINVAL);
    assert_int_equal(stk_words_signal("65", &n), -EINVAL);
    assert_int_equal(stk_words_signal("SIG", &n), -EINVAL);
    assert_string_equal(stk_signal_name(12), "USR2");
    assert_null(stk_signal_name(64));
    assert_int_equal(stk_words_signal_ahead("USR2@90", &a, &err), 0);
    assert_string_equal(dump(a), "{\"seconds\":90,\"signal\":\"USR2\",\"who\":\"all\"}");
    assert_int_equal(stk_words_signal_ahead("B:TERM@300", &a, &err), 0);
    assert_string_equal(dump(a), "{\"seconds\":300,\"signal\":\"TERM\",\"who\":\"batch\"}");
    assert_int_equal(stk_words_signal_ahead("RB:10", &a, &err), 0);
    assert_string_equal(dump(a), "{\"seconds\":60,\"signal\":\"USR1\",\"who\":\"batch\"}");
    assert_int_equal(stk_words_signal_ahead("X:USR1", &a, &err), -EINVAL);
    assert_int_equal(stk_words_signal_ahead("USR1@", &a, &err), -EINVAL);
    assert_int_equal(stk_words_signal_ahead("USR9@5", &a, &err), -EINVAL);
    assert_int_equal(stk_words_signal_ahead("@5", &a, &err), -EINVAL);
}

static void job_ids_as_slurm_writes_them(void **state)
{
    struct stk_job_ref r;

    (void)state;
    assert_int_equal(stk_words_job("12", &r), 0);
    assert_true(r.job == 12 && r.index == -1);
    assert_int_equal(stk_words_job("12_4", &r), 0);
    assert_true(r.job == 12 && r.index == 4);
    assert_int_equal(stk_words_job("12_[0-4%2]", &r), 0);
    assert_true(r.job == 12 && r.index == -1);
    assert_int_equal(stk_words_job("12_", &r), -EINVAL);
    assert_int_equal(stk_words_job("12_[]", &r), -EINVAL);
    assert_int_equal(stk_words_job("12.0", &r), -EINVAL);
    assert_int_equal(stk_words_job("0", &r), -EINVAL);
    assert_int_equal(stk_words_job("4294967295", &r), -EINVAL);
}

static int append(void *ctx, const char *name)
{
    char *all = ctx;

    if (strlen(all) + strlen(name) + 2 > 400)
        return -E2BIG;
    (void)strcat(strcat(all, name), " ");
    return 0;
}

static void host_lists_are_expanded(void **state)
{
    char all[400] = "";

    (void)state;
    assert_int_equal(stk_words_hosts("n[1-3,07-09],gpu2,a-b[5]", append, all), 0);
    assert_string_equal(all, "n1 n2 n3 n07 n08 n09 gpu2 a-b5 ");
    all[0] = '\0';
    assert_int_equal(stk_words_hosts("n[1-", append, all), -EINVAL);
    assert_int_equal(stk_words_hosts("n[3-1]", append, all), -EINVAL);
    assert_int_equal(stk_words_hosts("n[1]x", append, all), -EINVAL);
    assert_int_equal(stk_words_hosts("", append, all), -EINVAL);
    assert_int_equal(stk_words_hosts("a,,b", append, all), -EINVAL);
    assert_int_equal(stk_words_hosts("n[1-999999999]", append, all), -EINVAL);
}

static void text_patterns_and_slips(void **state)
{
    (void)state;
    assert_true(stk_words_is_text("gr\xc3\xbc\xc3\x9f", 6, false));
    assert_false(stk_words_is_text("\xc3", 1, false));
    assert_false(stk_words_is_text("\xc0\x80", 2, false));
    assert_false(stk_words_is_text("\xed\xa0\x80", 3, false));
    assert_false(stk_words_is_text("\xf8\x88\x80\x80\x80", 5, false));
    assert_false(stk_words_is_text("a\nb", 3, false));
    assert_true(stk_words_is_text("a\nb\t", 4, true));
    assert_false(stk_words_is_text("a\x1b[0m", 5, true));
    assert_int_equal(stk_words_bad_pattern("%j_%A_%a.%x-%t%N%u%%"), 0);
    assert_int_equal(stk_words_bad_pattern("log.%q"), 'q');
    assert_int_equal(stk_words_bad_pattern("log%"), '%');
    assert_true(stk_words_among("b", "a|b|c"));
    assert_false(stk_words_among("", "a|b|c"));
    assert_false(stk_words_among("a|b", "a|b|c"));
    assert_string_equal(stk_words_show("a\nb").text, "a?b");
    assert_string_equal(stk_words_show("0123456789012345678901234567890123456789012345678").text,
                        "01234567890123456789012345678901234567890123...");
}

static const struct stk_opt table[] = {
    {"name", 'n', STK_OPT_NEEDS, 1}, {"long", 'l', STK_OPT_NONE, 2},  {"nice", 0, STK_OPT_MAYBE, 3},
    {"", 'K', STK_OPT_MAYBE, 4},     {"quiet", 'q', STK_OPT_NONE, 5}, {0},
};

/* "id=value" of each flag and operand, then what is left. */
static const char *parse(bool permute, int argc, char **argv)
{
    static char out[400];
    struct stk_opts o = {.table = table, .argc = argc, .argv = argv, .permute = permute};
    int rc;

    out[0] = '\0';
    while ((rc = stk_opts_next(&o, &err)) > 0)
        (void)snprintf(out + strlen(out), sizeof(out) - strlen(out), "%d=%s ",
                       rc == 2 ? 0 : o.opt->id, o.value ? o.value : "-");
    if (rc < 0)
        return err.text;
    for (int i = o.at; i < argc; i++)
        (void)snprintf(out + strlen(out), sizeof(out) - strlen(out), "[%s]", argv[i]);
    return out;
}

#define PARSE(permute, ...)                                                                        \
    parse(permute, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                  \
          (char **)(uintptr_t)(const char *[]){__VA_ARGS__})

static void flags_in_every_form(void **state)
{
    (void)state;
    assert_string_equal(PARSE(false, "--name=x", "--name", "y", "-n", "z", "-nw", "-n=v", "rest"),
                        "1=x 1=y 1=z 1=w 1=v [rest]");
    assert_string_equal(PARSE(false, "-lq", "-lnx", "--nice", "--nice=3", "-K", "-K0"),
                        "2=- 5=- 2=- 1=x 3=- 3=3 4=- 4=0 ");
    assert_string_equal(PARSE(false, "-l", "--", "-q"), "2=- [-q]");
    assert_string_equal(PARSE(true, "12", "--name=x", "13", "--", "-q", "-"),
                        "0=12 1=x 0=13 0=-q 0=- ");
    assert_string_equal(PARSE(false, "-l", "cmd", "-q"), "2=- [cmd][-q]");
    assert_string_equal(PARSE(false, "--lon"), "unknown flag --lon; did you mean --long?");
    assert_string_equal(PARSE(false, "--zzzzzz=1"), "unknown flag --zzzzzz");
    assert_string_equal(PARSE(false, "-lz"), "unknown flag -z");
    assert_string_equal(PARSE(false, "--name"), "--name needs a value");
    assert_string_equal(PARSE(false, "--long=1"), "--long takes no value, got \"1\"");
    assert_string_equal(PARSE(false, "--="), "unknown flag --");
}

static void a_time_that_is_none_says_which_part_is_wrong(void **state)
{
    static const char *const cases[][2] = {
        {"2027-02-30", "2027-02-30: February 2027 has 28 days"},
        {"2028-02-30T10:00", "2028-02-30: February 2028 has 29 days"},
        {"04/31/27", "04/31/27: April 2027 has 30 days"},
        {"2027-13-01", "2027-13-01: there is no month 13"},
        {"2027-00-01", "2027-00-01: there is no month 0"},
        {"2027-01-00", "2027-01-00: days begin with 1"},
        {"1969-12-31", "1969-12-31: years begin with 1970"},
        {"2027-01-01T25:00", "25:00: hours are 0 to 23"},
        {"2027-01-01T10:60", "10:60: minutes are 0 to 59"},
        {"16:30:99", "16:30:99: seconds are 0 to 59"},
        {"13:00pm", "13:00pm: hours with am and pm are 1 to 12"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stk_err why = {""};
        int64_t at;

        assert_int_equal(stk_words_time(cases[i][0], 1772000000, &at, &why), -ERANGE);
        assert_string_equal(why.text, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_that_is_none_says_which_part_is_wrong),
        cmocka_unit_test(durations_of_every_form),
        cmocka_unit_test(sizes_of_every_unit),
        cmocka_unit_test(times_of_every_form),
        cmocka_unit_test(arrays_of_every_form),
        cmocka_unit_test(dependencies_of_every_form),
        cmocka_unit_test(signals_by_name_and_number),
        cmocka_unit_test(job_ids_as_slurm_writes_them),
        cmocka_unit_test(host_lists_are_expanded),
        cmocka_unit_test(text_patterns_and_slips),
        cmocka_unit_test(flags_in_every_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
