/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/booked_run.h"

#include <stdlib.h>
#include <string.h>

static uint32_t number(const struct stk_names *names, const char *name)
{
    int64_t n = stk_names_find(names, name, strlen(name));

    return n < 0 ? STK_NONE : (uint32_t)n;
}

#define ABSENT (STK_NONE - 1) /* one of whom the trace has no job: it may lapse */

static uint32_t tenant(const struct stk_booked_run *x, const char *name)
{
    if (x->n_tenants == 0)
        return number(&x->trace->tenants, name) == STK_NONE ? ABSENT
                                                            : number(&x->trace->tenants, name);
    for (uint32_t i = 0; i < x->n_tenants; i++)
        if (strcmp(x->tenants[i].name, name) == 0)
            return i;
    return STK_NONE;
}

/* Nodes have numbers here, from 0 on; users are known by theirs + 1. */
static uint32_t find(void *ctx, enum stk_booked_noun noun, const char *name)
{
    const struct stk_booked_run *x = ctx;
    uint32_t n = STK_NONE;

    switch (noun) {
    case STK_BOOKED_TENANT:
        return tenant(x, name);
    case STK_BOOKED_USER:
        n = number(&x->trace->users, name);
        return n == STK_NONE ? ABSENT : n + 1;
    case STK_BOOKED_POOL:
        return number(&x->cluster->pools, name);
    case STK_BOOKED_GPU_TYPE:
        return number(&x->cluster->gpu_types, name);
    case STK_BOOKED_NODE:
        n = (uint32_t)strtoul(name, NULL, 10);
        return n < x->cluster->n_nodes ? n : STK_NONE;
    }
    return n;
}

static uint32_t gpus(void *ctx, uint32_t node, uint32_t *ret_pool)
{
    const struct stk_booked_run *x = ctx;

    *ret_pool = x->cluster->nodes[node].pool.i;
    return x->cluster->nodes[node].gpus;
}

int stk_booked_of_run(const struct stk_run_rules *f, const struct stk_booked_run *x,
                      struct stk_booked **ret, struct stk_err *err)
{
    struct stk_booked_run names = *x;
    const struct stk_booked_world w = {
        &names, f->zone ? f->zone : "UTC", f->start_s, stk_ruled_start, find, gpus};

    return stk_booked_new(f->name, f->text, f->len, &w, ret, err);
}
