/* SPDX-License-Identifier: Apache-2.0 */
#include "core/array.h"

int stk_array_reserve(struct stk_state *s)
{
    int rc = stk_mem_grow(&s->mem, &s->arrays, &s->cap_arrays, s->n_arrays + 1, sizeof(*s->arrays));

    return rc < 0 ? rc : stk_map_reserve(&s->by_array, &s->mem, s->n_arrays + 1);
}

struct stk_array *stk_array_find(const struct stk_state *s, stk_job_number array)
{
    uint32_t at = array ? stk_map_get(&s->by_array, array) : UINT32_MAX;

    return at == UINT32_MAX ? NULL : &s->arrays[at];
}

void stk_array_join(struct stk_state *s, stk_job_number array)
{
    uint32_t at = array ? stk_map_get(&s->by_array, array) : UINT32_MAX;

    if (!array)
        return;
    if (at == UINT32_MAX) {
        if (s->free_array) {
            at = s->free_array - 1;
            s->free_array = s->arrays[at].first_edge[0];
        } else {
            at = s->n_arrays++;
        }
        s->arrays[at] = (struct stk_array){.number = array};
        stk_map_put(&s->by_array, array, at);
    }
    s->arrays[at].open++;
}

uint32_t stk_array_take(struct stk_array *a, enum stk_cause cause, bool *ret_met)
{
    for (uint32_t t = 0; t < STK_DEP_TYPE_MAX; t++) {
        uint32_t first = a->first_edge[t];

        *ret_met = stk_dep_met((enum stk_dep_type)t, cause);
        if (first && (!*ret_met || a->open == 1)) {
            a->first_edge[t] = 0;
            return first;
        }
    }
    return 0;
}

void stk_array_leave(struct stk_state *s, struct stk_array *a)
{
    if (--a->open > 0)
        return;
    stk_map_remove(&s->by_array, a->number);
    *a = (struct stk_array){.first_edge = {s->free_array}};
    s->free_array = (uint32_t)(a - s->arrays) + 1;
}
