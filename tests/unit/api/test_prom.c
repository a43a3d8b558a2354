/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/prom.h"

static void expect(struct stk_prom *p, const char *text)
{
    assert_false(p->failed);
    assert_int_equal(p->len, strlen(text));
    assert_memory_equal(p->s, text, p->len);
    free(p->s);
    *p = (struct stk_prom){0};
}

static void labels_are_escaped_and_cut(void **state)
{
    struct stk_prom p = {0};
    char longer[400];

    (void)state;
    stk_prom_put(&p, "x", "a", "\\ \" \n \xff \xc3\xa4", 1);
    expect(&p, "x{a=\"\\\\ \\\" \\n ? \xc3\xa4\"} 1\n");
    memset(longer, 'y', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    stk_prom_put(&p, "x", "a", longer, 1);
    assert_int_equal(p.len, strlen("x{a=\"\"} 1\n") + 200);
    free(p.s);
}

static void numbers_are_short_and_whole(void **state)
{
    struct stk_prom p = {0};

    (void)state;
    stk_prom_line(&p, "a", NULL, 0);
    stk_prom_line(&p, "a", NULL, 123456789012345);
    stk_prom_line(&p, "a", NULL, 0.25);
    stk_prom_line(&p, "a", NULL, -3);
    stk_prom_line(&p, "a", NULL, 1e18);
    expect(&p, "a 0\na 123456789012345\na 0.25\na -3\na 1e+18\n");
}

static void a_histogram_counts_what_is_not_above_each_bound(void **state)
{
    static const double le[] = {0.5, 1, 0};
    struct stk_histogram h = {.le = le};
    struct stk_prom p = {0};

    (void)state;
    stk_histogram_add(&h, 0.5);
    stk_histogram_add(&h, 0.75);
    stk_histogram_add(&h, 7);
    stk_prom_histogram(&p, "h", "Help.", &h);
    expect(&p, "# HELP h Help.\n# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\nh_bucket{le=\"1\"} 2\n"
               "h_bucket{le=\"+Inf\"} 3\nh_sum 8.25\nh_count 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_escaped_and_cut),
        cmocka_unit_test(numbers_are_short_and_whole),
        cmocka_unit_test(a_histogram_counts_what_is_not_above_each_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
