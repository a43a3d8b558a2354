/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/mix.h"

#include <stdlib.h>
#include <string.h>

struct counted {
    struct stk_kind kind;
    const char *text; /* the types as the trace wrote them */
    uint32_t n;
    uint64_t weight;
};

static int by_kind(const struct counted *x, const struct counted *y)
{
    if (x->kind.cpu_milli != y->kind.cpu_milli)
        return x->kind.cpu_milli > y->kind.cpu_milli ? -1 : 1;
    if (x->kind.gpu_milli != y->kind.gpu_milli)
        return x->kind.gpu_milli > y->kind.gpu_milli ? -1 : 1;
    if (x->kind.gpus != y->kind.gpus)
        return x->kind.gpus > y->kind.gpus ? -1 : 1;
    if (strcmp(x->text, y->text) != 0)
        return -strcmp(x->text, y->text);
    return (x->kind.gpu_types < y->kind.gpu_types) - (x->kind.gpu_types > y->kind.gpu_types);
}

static int order_kind(const void *a, const void *b)
{
    return by_kind(a, b);
}

/* The most frequent first; the order of the rest makes sums come out the same everywhere. */
static int order_count(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return by_kind(x, y);
}

static uint32_t join(struct counted *list, uint32_t n)
{
    uint32_t kinds = 0;

    qsort(list, n, sizeof(*list), order_kind);
    for (uint32_t i = 0; i < n; i++) {
        if (kinds > 0 && by_kind(&list[kinds - 1], &list[i]) == 0)
            list[kinds - 1].n++;
        else
            list[kinds++] = list[i];
    }
    return kinds;
}

int stk_mix_of(const struct stk_trace *t, const struct stk_trace_map *m, bool by_demand,
               struct stk_mix *ret, struct stk_err *err)
{
    struct counted *list = calloc(t->n_jobs + 1u, sizeof(*list));
    uint64_t all = 0, sum = 0;
    uint32_t kinds, n = 0;

    if (!list)
        return stk_err_set(err, -ENOMEM, "out of memory for %u jobs", t->n_jobs);
    for (uint32_t i = 0; i < t->n_jobs; i++) {
        const struct stk_trace_job *j = &t->jobs[i];
        const struct stk_demand d = stk_trace_demand(t, j, m);

        list[i] = (struct counted){
            .kind = {.cpu_milli = d.cpu_milli,
                     .gpus = d.gpus,
                     .gpu_milli = d.gpus == 0 ? 0 : stk_demand_asked_milli(&d),
                     .gpu_types = d.gpus ? d.gpu_types : STK_ANY_GPU_TYPE},
            .text = j->types_text ? stk_names_get(&t->types_texts, j->types_text - 1) : "",
            .n = 1};
    }
    kinds = join(list, t->n_jobs);
    for (uint32_t i = 0; i < kinds; i++) {
        list[i].weight = stk_kind_weight(&list[i].kind, list[i].n, by_demand);
        all += list[i].weight;
    }
    qsort(list, kinds, sizeof(*list), order_count);
    ret->n = 0;
    while (ret->n < kinds && ret->n < STK_MAX_MIX &&
           sum * 100 < all * (by_demand ? STK_MIX_COVER_DEMAND_PCT : STK_MIX_COVER_PCT)) {
        ret->kind[ret->n] = list[ret->n].kind;
        ret->kind[ret->n].share = list[ret->n].n / (double)t->n_jobs;
        sum += list[ret->n].weight;
        n += list[ret->n++].n;
    }
    for (uint32_t i = 0; ret->n < kinds && i < ret->n; i++)
        ret->kind[i].share /= (double)n / t->n_jobs;
    free(list);
    return 0;
}
