/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/array.h"

#include "sys/json.h"

struct stk_array_bounds stk_array_bounds(const json_t *array)
{
    struct stk_array_bounds b = {.first = stk_int(array, "first", 0),
                                 .step = stk_int(array, "step", 1)};
    const json_t *list = json_object_get(array, "indices"), *v;
    size_t i;

    b.count = b.step > 0 ? (stk_int(array, "last", b.first) - b.first) / b.step + 1 : 1;
    b.last = b.first + (b.count - 1) * b.step;
    json_array_foreach(list, i, v)
    {
        int64_t x = json_integer_value(v);

        b.first = i == 0 || x < b.first ? x : b.first;
        b.last = i == 0 || x > b.last ? x : b.last;
        b.count = (int64_t)json_array_size(list);
    }
    return b;
}
