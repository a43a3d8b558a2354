/* SPDX-License-Identifier: Apache-2.0 */
#include "model/set.h"

#include <string.h>

const char *stk_set_kind_name(enum stk_set_kind k)
{
    static const char *const names[STK_SET_KIND_MAX] = {
        [STK_SET_PARAM] = "param",   [STK_SET_LIMIT] = "limit", [STK_SET_GUARANTEE] = "guarantee",
        [STK_SET_WEIGHT] = "weight", [STK_SET_QUEUE] = "queue", [STK_SET_PRIORITY] = "priority",
        [STK_SET_POOL] = "pool",     [STK_SET_MOVE] = "move",   [STK_SET_KEEP_UP] = "keep_up",
        [STK_SET_CLOCK] = "clock",   [STK_SET_SKIP] = "skip",
    };

    return (unsigned)k < STK_SET_KIND_MAX ? names[k] : "?";
}

bool stk_set_same(const struct stk_set *a, const struct stk_set *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == STK_SET_PARAM)
        return strcmp(a->name, b->name) == 0;
    return a->row == b->row && a->column == b->column;
}
