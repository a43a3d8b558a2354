/* SPDX-License-Identifier: Apache-2.0 */
/* trace_equal.h - are two traces the same workload? Names are compared as text: their numbers are
 * in order of first sight, which writing and reading may change. Returns what differs, or NULL. */
#ifndef STK_TEST_TRACE_EQUAL_H
#define STK_TEST_TRACE_EQUAL_H

#include <string.h>

#include "sim/trace.h"

static inline bool same_name(const struct stk_names *a, uint32_t x, const struct stk_names *b,
                             uint32_t y)
{
    return strcmp(stk_names_get(a, x), stk_names_get(b, y)) == 0;
}

static inline bool same_id(const struct stk_trace *a, uint64_t x, const struct stk_trace *b,
                           uint64_t y)
{
    if ((x & STK_TRACE_ID_NAME) && (y & STK_TRACE_ID_NAME))
        return same_name(&a->ids, (uint32_t)x, &b->ids, (uint32_t)y);
    return x == y;
}

static inline bool types_within(const struct stk_trace *a, uint64_t x, const struct stk_trace *b,
                                uint64_t y)
{
    if (x == STK_ANY_GPU_TYPE || y == STK_ANY_GPU_TYPE)
        return x == y;
    for (uint32_t i = 0; i < a->gpu_types.n; i++) {
        const char *name = stk_names_get(&a->gpu_types, i);
        int64_t j = stk_names_find(&b->gpu_types, name, strlen(name));

        if ((x >> i & 1) && (j < 0 || !(y >> j & 1)))
            return false;
    }
    return true;
}

static inline uint32_t resource_of(const struct stk_trace *t, const struct stk_trace_job *j,
                                   const char *name)
{
    int64_t i = stk_names_find(&t->resources, name, strlen(name));

    return j->extra && i >= 0 ? t->extras[j->extra - 1].resource[i] : 0;
}

static inline uint32_t speed_of(const struct stk_trace *t, const struct stk_trace_job *j,
                                const char *name)
{
    int64_t type = stk_names_find(&t->gpu_types, name, strlen(name));
    const struct stk_trace_extra *x = j->extra ? &t->extras[j->extra - 1] : NULL;

    for (uint32_t i = 0; x && i < x->n_speeds; i++)
        if (x->speed_type[i] == type)
            return x->speed_milli[i];
    return STK_SPEED;
}

static inline bool extra_within(const struct stk_trace *a, const struct stk_trace_job *x,
                                const struct stk_trace *b, const struct stk_trace_job *y)
{
    for (uint32_t i = 0; i < a->resources.n; i++) {
        const char *name = stk_names_get(&a->resources, i);

        if (resource_of(a, x, name) != resource_of(b, y, name))
            return false;
    }
    for (uint32_t i = 0; i < a->gpu_types.n; i++) {
        const char *name = stk_names_get(&a->gpu_types, i);

        if (speed_of(a, x, name) != speed_of(b, y, name))
            return false;
    }
    return true;
}

static inline bool same_terms(const struct stk_trace *a, const struct stk_trace_job *x,
                              const struct stk_trace *b, const struct stk_trace_job *y)
{
    static const struct stk_trace_extra none;
    const struct stk_trace_extra *p = x->extra ? &a->extras[x->extra - 1] : &none;
    const struct stk_trace_extra *q = y->extra ? &b->extras[y->extra - 1] : &none;

    if (!p->keep_group != !q->keep_group ||
        (p->keep_group &&
         !same_name(&a->keep_groups, p->keep_group - 1, &b->keep_groups, q->keep_group - 1)))
        return false;
    return p->deadline == q->deadline && p->min_run == q->min_run &&
           p->checkpoint == q->checkpoint && p->keep_min == q->keep_min &&
           p->movable == q->movable && p->no_sleep == q->no_sleep && p->no_save == q->no_save;
}

static inline const char *links_differ(const struct stk_trace *a, const struct stk_trace_job *x,
                                       const struct stk_trace *b, const struct stk_trace_job *y)
{
    if (x->array != y->array || x->array_index != y->array_index)
        return "array";
    if (x->n_deps != y->n_deps)
        return "number of dependencies";
    for (uint32_t i = 0; i < x->n_deps; i++) {
        const struct stk_trace_dep *p = &a->deps[x->first_dep + i], *q = &b->deps[y->first_dep + i];

        if (p->on != q->on || p->type != q->type)
            return "dependency";
    }
    return NULL;
}

static inline const char *job_differs(const struct stk_trace *a, const struct stk_trace_job *x,
                                      const struct stk_trace *b, const struct stk_trace_job *y)
{
    if (!same_id(a, x->id, b, y->id))
        return "id";
    if (x->steps != y->steps || x->speed_row != y->speed_row || x->submit != y->submit ||
        x->duration != y->duration || x->estimate != y->estimate || x->begin != y->begin)
        return "a time";
    if (x->gpus != y->gpus || x->tasks != y->tasks || x->cpu_milli != y->cpu_milli ||
        x->mem_mib != y->mem_mib || x->gpu_milli != y->gpu_milli ||
        x->gpu_mem_mib != y->gpu_mem_mib || x->mig != y->mig || x->share_max != y->share_max ||
        x->slo_milli != y->slo_milli)
        return "demand";
    if (x->level != y->level || x->prefer != y->prefer || x->subgroup != y->subgroup ||
        x->subgroup_level != y->subgroup_level || x->per_node != y->per_node ||
        x->exclusive != y->exclusive)
        return "topology";
    if (!types_within(a, x->gpu_types, b, y->gpu_types) ||
        !types_within(b, y->gpu_types, a, x->gpu_types))
        return "GPU types";
    if (!extra_within(a, x, b, y) || !extra_within(b, y, a, x))
        return "resources or speeds";
    if (!same_terms(a, x, b, y))
        return "terms";
    if (!x->queue != !y->queue || !x->user != !y->user ||
        (x->queue && !same_name(&a->queues, x->queue - 1, &b->queues, y->queue - 1)) ||
        (x->user && !same_name(&a->users, x->user - 1, &b->users, y->user - 1)))
        return "queue or user";
    if (!same_name(&a->tenants, x->tenant, &b->tenants, y->tenant) ||
        !same_name(&a->groups, x->group, &b->groups, y->group))
        return "tenant or group";
    if (x->priority != y->priority || x->kind != y->kind || x->tier != y->tier ||
        x->cause != y->cause || x->held != y->held)
        return "priority, kind, tier, cause or held";
    return links_differ(a, x, b, y);
}

static inline const char *traces_differ(const struct stk_trace *a, const struct stk_trace *b)
{
    if (a->n_jobs != b->n_jobs)
        return "number of jobs";
    for (uint32_t i = 0; i < a->n_jobs; i++) {
        const char *what = job_differs(a, &a->jobs[i], b, &b->jobs[i]);

        if (what)
            return what;
    }
    return NULL;
}

#endif
