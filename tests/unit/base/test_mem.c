/* SPDX-License-Identifier: Apache-2.0 */
/* test_mem.c - growing arrays, and the error sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "lib/fixture.h"

static void grows_keeps_and_zeroes(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    uint64_t *a = NULL;
    uint32_t cap = 0;

    (void)state;
    assert_int_equal(stk_mem_grow(&m, &a, &cap, 0, sizeof(*a)), 0);
    assert_null(a);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t before = cap;

        assert_int_equal(stk_mem_grow(&m, &a, &cap, i + 1, sizeof(*a)), 0);
        assert_true(cap > i && (before == 0 || cap == before || cap >= 2 * before));
        assert_int_equal(a[i], 0);
        a[i] = i + 1;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(a[i], i + 1);
    assert_true(mem.calls < 12); /* doubling */
    stk_mem_drop(&m, &a, &cap, sizeof(*a));
    assert_null(a);
    assert_int_equal(cap, 0);
    stk_mem_drop(&m, &a, &cap, sizeof(*a));
    assert_int_equal(mem.live, 0);
}

static void without_memory_nothing_changes(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    uint8_t *a = NULL, *was;
    uint32_t cap = 0, had;

    (void)state;
    assert_int_equal(stk_mem_grow(&m, &a, &cap, 3, 1), 0);
    was = a;
    had = cap;
    mem.fail_at = 1;
    assert_int_equal(stk_mem_grow(&m, &a, &cap, had + 1, 1), -ENOMEM);
    assert_ptr_equal(a, was);
    assert_int_equal(cap, had);
    assert_int_equal(stk_mem_grow(&m, &a, &cap, had, 1), 0);
    stk_mem_drop(&m, &a, &cap, 1);
}

static void an_error_is_a_code_and_a_sentence(void **state)
{
    struct stk_err err = {{0}};
    char long_word[600];

    (void)state;
    memset(long_word, 'x', sizeof(long_word));
    long_word[599] = '\0';
    assert_int_equal(stk_err_set(NULL, -EINVAL, "nobody reads %s", "this"), -EINVAL);
    assert_int_equal(stk_err_set(&err, -ERANGE, "%d of %s", 3, "four"), -ERANGE);
    assert_string_equal(err.text, "3 of four");
    assert_int_equal(stk_err_set(&err, -EINVAL, "%s", long_word), -EINVAL);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_keeps_and_zeroes),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(an_error_is_a_code_and_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
