/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an array are told where it begins and ends, however it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spec/array.h"

static void goes(const char *array, struct stk_array_bounds want)
{
    json_t *o = json_loads(array, 0, NULL);
    struct stk_array_bounds b = stk_array_bounds(o);

    assert_int_equal(b.first, want.first);
    assert_int_equal(b.last, want.last);
    assert_int_equal(b.step, want.step);
    assert_int_equal(b.count, want.count);
    json_decref(o);
}

static void a_range_ends_at_its_last_element(void **state)
{
    (void)state;
    goes("{\"first\":2,\"last\":7,\"step\":2}", (struct stk_array_bounds){2, 6, 2, 3});
    goes("{\"first\":0,\"last\":3}", (struct stk_array_bounds){0, 3, 1, 4});
    goes("{\"first\":5,\"last\":5}", (struct stk_array_bounds){5, 5, 1, 1});
    goes("{\"last\":3}", (struct stk_array_bounds){0, 3, 1, 4});
}

static void a_list_ends_at_its_largest_index_in_any_order(void **state)
{
    (void)state;
    goes("{\"indices\":[9,1]}", (struct stk_array_bounds){1, 9, 1, 2});
    goes("{\"indices\":[4,12,7]}", (struct stk_array_bounds){4, 12, 1, 3});
    goes("{\"indices\":[0]}", (struct stk_array_bounds){0, 0, 1, 1});
}

static void without_a_description_it_is_one_element(void **state)
{
    (void)state;
    goes("", (struct stk_array_bounds){0, 0, 1, 1});
    goes("{\"first\":4,\"step\":0}", (struct stk_array_bounds){4, 4, 0, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_ends_at_its_last_element),
        cmocka_unit_test(a_list_ends_at_its_largest_index_in_any_order),
        cmocka_unit_test(without_a_description_it_is_one_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
