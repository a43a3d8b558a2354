/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/scan.h"

static const struct stk_scan_limits limits = {
    .bytes = 1000, .values = 20, .depth = 5, .jobs = 3, .who = "users"};

/* In pieces of 'step' bytes; the scan is left for looking at. */
static int scan(struct stk_scan *s, const char *text, size_t step, struct stk_err *err)
{
    size_t len = strlen(text);
    int rc = 0;

    stk_scan_init(s, &limits);
    for (size_t at = 0; at < len && rc == 0; at += step)
        rc = stk_scan_feed(s, text + at, len - at < step ? len - at : step, err);
    return rc < 0 ? rc : stk_scan_end(s, err);
}

static int verdict(const char *text, char *says, size_t size)
{
    struct stk_err err = {""};
    struct stk_scan s;
    int rc = scan(&s, text, 1000, &err);

    (void)strncpy(says, err.text, size - 1);
    says[size - 1] = '\0';
    stk_scan_done(&s);
    for (size_t step = 1; step < 8; step++) { /* the pieces make no difference */
        assert_int_equal(scan(&s, text, step, &err), rc);
        stk_scan_done(&s);
    }
    return rc;
}

static void json_is_taken(void **state)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " { \"a\" : [1, -2.5e3, true, null, \"x\\\"]}\"] }\n",
                                       "{\"jobs\":[{},{}]}",
                                       "[[[[[]]]]]",
                                       "{\"a\":\"\\\\\"}"};
    char says[256];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_int_equal(verdict(good[i], says, sizeof(says)), 0);
}

static void what_is_not_json_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"{", "ends too early"},
               {"{\"a\":1,\n \"b\": }", "line 2, column 7: expected a value, got \"}\""},
               {"[1,]", "expected a value, got \"]\""},
               {"[1 2]", "expected a comma or the end"},
               {"{\"jobs\":[{},,{}]}", "expected a value"},
               {"{\"a\" 1}", "expected a colon"},
               {"{1:2}", "expected a name"},
               {"[}", "expected a value"},
               {"{]", "expected a name"},
               {"{} {}", "expected nothing more"},
               {"12", "an object or a list"},
               {"", "ends too early"},
               {"[\"abc", "ends too early"},
               {"[[[[[[1]]]]]]", "deeper than 5"}};
    char says[256];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(verdict(bad[i].text, says, sizeof(says)), -EINVAL);
        if (!strstr(says, bad[i].says))
            fail_msg("%s: %s", bad[i].text, says);
    }
}

static void limits_are_found_while_it_is_read(void **state)
{
    struct stk_err err = {""};
    struct stk_scan s;
    char much[2000];

    (void)state;
    /* the twenty-first value */
    assert_int_equal(scan(&s, "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20", 1, &err),
                     -EFBIG);
    assert_non_null(strstr(err.text, "more than 20 values, the most that users may send"));
    assert_int_equal(stk_scan_feed(&s, "]", 1, &err), -EFBIG); /* and so it stays */
    stk_scan_done(&s);
    /* each description may have as many */
    assert_int_equal(
        scan(&s, "{\"jobs\":[[1,2,3,4,5,6,7,8,9],[1,2,3,4,5,6,7,8,9],[1,2,3,4,5,6,7,8,9]]}", 7,
             &err),
        0);
    assert_int_equal(s.n_jobs, 3);
    stk_scan_done(&s);
    assert_int_equal(scan(&s, "{\"jobs\":[{},{},{},{", 1, &err), -EFBIG);
    assert_non_null(strstr(err.text, "more than 3 job descriptions"));
    assert_non_null(strstr(err.text, "split it into several requests"));
    stk_scan_done(&s);
    memset(much, ' ', sizeof(much));
    stk_scan_init(&s, &limits);
    assert_int_equal(stk_scan_feed(&s, much, 1000, &err), 0);
    assert_int_equal(stk_scan_feed(&s, much, 1, &err), -EFBIG);
    assert_non_null(strstr(err.text, "larger than 1000 bytes"));
}

static void descriptions_are_cut(void **state)
{
    static const char text[] = "{ \"jobs\" : [ {\"a\":[1,2]} ,\n[],3 ] }";
    static const char *const want[] = {"{\"a\":[1,2]}", "[]", "3"};
    struct stk_err err = {""};
    struct stk_scan s;

    (void)state;
    for (size_t step = 1; step < sizeof(text); step++) {
        assert_int_equal(scan(&s, text, step, &err), 0);
        assert_int_equal(s.n_jobs, 3);
        assert_int_equal(s.members, 1);
        assert_true(s.ended);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(s.jobs[i].len, strlen(want[i]));
            assert_memory_equal(text + s.jobs[i].from, want[i], s.jobs[i].len);
        }
        stk_scan_done(&s);
    }
    /* only the outermost object's list of that name */
    assert_int_equal(scan(&s, "{\"a\":{\"jobs\":[1]},\"jobsy\":[2],\"jobs\":{}}", 3, &err), 0);
    assert_int_equal(s.n_jobs, 0);
    assert_false(s.ended);
    stk_scan_done(&s);
    assert_int_equal(scan(&s, "{\"jobs\":[1],\"b\":[2]}", 3, &err), 0);
    assert_int_equal(s.n_jobs, 1);
    assert_int_equal(s.members, 2);
    stk_scan_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_taken),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(limits_are_found_while_it_is_read),
        cmocka_unit_test(descriptions_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
