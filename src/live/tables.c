/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - tables of tenants and queues as bytes.
 *
 *     2
 *     tenants: name, parent + 1, weight, jobs that stay up, limit and guarantee over all types,
 * then of each type that has one: type + 1, limit, guarantee; 0; limits on CPUs and memory queues:
 * name, priorities, tier, pool, sizes, limits
 *
 * What has no limit is written as 0, everything else one larger. Format 1, which is read, too,
 * has no limits on CPUs and memory, and nobody stays up.
 */
#include <stdlib.h>
#include <string.h>

#include "live/state.h"

#define FORMAT 2

static void put_name(struct stk_bytes *b, const char *name)
{
    uint32_t len = (uint32_t)strlen(name);

    stk_put_u(b, len);
    stk_put_raw(b, name, len);
}

static void put_number(struct stk_bytes *b, uint64_t v, uint64_t none)
{
    stk_put_u(b, v == none ? 0 : v + 1);
}

static void put_tenant(struct stk_bytes *b, const struct stk_tenant_spec *t)
{
    put_name(b, t->name);
    stk_put_u(b, t->parent == STK_NONE ? 0 : (uint64_t)t->parent + 1);
    stk_put_u(b, t->weight);
    stk_put_u(b, t->keep_up);
    put_number(b, t->limit, STK_NO_LIMIT);
    put_number(b, t->guarantee, STK_GUARANTEE_SUM);
    for (uint32_t i = 0; i < STK_MAX_GPU_TYPES; i++) {
        if (t->type_limit[i] == STK_NO_LIMIT && t->type_guarantee[i] == STK_GUARANTEE_SUM)
            continue;
        stk_put_u(b, i + 1);
        put_number(b, t->type_limit[i], STK_NO_LIMIT);
        put_number(b, t->type_guarantee[i], STK_GUARANTEE_SUM);
    }
    stk_put_u(b, 0);
    put_number(b, t->cpu_limit, STK_NO_LIMIT);
    put_number(b, t->mem_limit, STK_NO_LIMIT);
}

static void put_queue(struct stk_bytes *b, const struct stk_queue_spec *q)
{
    put_name(b, q->name);
    stk_put_s(b, q->priority);
    stk_put_s(b, q->lowest);
    stk_put_s(b, q->most);
    stk_put_u(b, q->tier);
    stk_put_u(b, q->pool);
    put_number(b, q->job_milli, STK_NO_LIMIT);
    stk_put_s(b, q->job_time);
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        put_number(b, q->limit[of].milli, STK_NO_LIMIT);
        put_number(b, q->limit[of].jobs, STK_NO_JOB_LIMIT);
    }
}

void stk_live_tables_put(const struct stk_core_config *c, struct stk_bytes *b)
{
    stk_put_u(b, FORMAT);
    stk_put_u(b, c->n_tenants);
    for (uint32_t i = 0; i < c->n_tenants; i++)
        put_tenant(b, &c->tenants[i]);
    stk_put_u(b, c->n_queues);
    for (uint32_t i = 0; i < c->n_queues; i++)
        put_queue(b, &c->queues[i]);
}

/* Into the block of names, which is as large as all bytes are. */
static const char *get_name(struct stk_reader *r, char **at)
{
    uint32_t len = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
    const unsigned char *s = stk_get_raw(r, len);
    char *name = *at;

    if (!s)
        return "";
    memcpy(name, s, len);
    name[len] = '\0';
    *at += len + 1;
    return name;
}

static uint64_t get_number(struct stk_reader *r, uint64_t none)
{
    uint64_t v = stk_get_u(r, UINT64_MAX);

    return v ? v - 1 : none;
}

static void get_tenant(struct stk_reader *r, uint64_t format, char **names,
                       struct stk_tenant_spec *t)
{
    uint32_t type;

    stk_tenant_spec_init(t, get_name(r, names), STK_NONE);
    t->parent = (uint32_t)stk_get_u(r, STK_MAX_TENANTS) - 1;
    t->weight = (uint32_t)stk_get_u(r, STK_MAX_WEIGHT);
    t->keep_up = format < 2 ? 0 : (uint32_t)stk_get_u(r, STK_MAX_KEEP_UP);
    t->limit = get_number(r, STK_NO_LIMIT);
    t->guarantee = get_number(r, STK_GUARANTEE_SUM);
    while (!r->bad && (type = (uint32_t)stk_get_u(r, STK_MAX_GPU_TYPES))) {
        t->type_limit[type - 1] = get_number(r, STK_NO_LIMIT);
        t->type_guarantee[type - 1] = get_number(r, STK_GUARANTEE_SUM);
    }
    if (format < 2)
        return;
    t->cpu_limit = get_number(r, STK_NO_LIMIT);
    t->mem_limit = get_number(r, STK_NO_LIMIT);
}

static void get_queue(struct stk_reader *r, char **names, struct stk_queue_spec *q)
{
    q->name = get_name(r, names);
    q->priority = (int32_t)stk_get_i(r, -STK_MAX_PRIORITY, STK_MAX_PRIORITY);
    q->lowest = (int32_t)stk_get_i(r, -STK_MAX_PRIORITY, STK_MAX_PRIORITY);
    q->most = (int32_t)stk_get_i(r, -STK_MAX_PRIORITY, STK_MAX_PRIORITY);
    q->tier = (enum stk_tier)stk_get_u(r, STK_TIER_MAX - 1);
    q->pool = stk_get_u32(r);
    q->job_milli = get_number(r, STK_NO_LIMIT);
    q->job_time = stk_get_i(r, 0, STK_MAX_DURATION);
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        q->limit[of].milli = get_number(r, STK_NO_LIMIT);
        q->limit[of].jobs = (uint32_t)get_number(r, STK_NO_JOB_LIMIT);
    }
}

int stk_live_tables_get(const unsigned char *bytes, size_t len, struct stk_live_tables *ret)
{
    struct stk_reader r = {bytes, bytes + len, false};
    char *names = ret->names = malloc(2 * len + 1);
    uint64_t format;

    if (!names)
        return -ENOMEM;
    format = stk_get_u(&r, FORMAT);
    r.bad |= format == 0;
    ret->n_tenants = (uint32_t)stk_get_u(&r, STK_MAX_TENANTS);
    ret->tenants = calloc(ret->n_tenants + 1u, sizeof(*ret->tenants));
    for (uint32_t i = 0; ret->tenants && i < ret->n_tenants && !r.bad; i++)
        get_tenant(&r, format, &names, &ret->tenants[i]);
    ret->n_queues = (uint32_t)stk_get_u(&r, STK_MAX_QUEUES);
    ret->queues = calloc(ret->n_queues + 1u, sizeof(*ret->queues));
    for (uint32_t i = 0; ret->queues && i < ret->n_queues && !r.bad; i++)
        get_queue(&r, &names, &ret->queues[i]);
    if (!ret->tenants || !ret->queues)
        return -ENOMEM;
    return r.bad || r.at != r.end ? -EBADMSG : 0;
}

void stk_live_tables_done(struct stk_live_tables *t)
{
    free(t->tenants);
    free(t->queues);
    free(t->names);
    *t = (struct stk_live_tables){0};
}

void stk_live_tables_free_of_limits(struct stk_live_tables *t)
{
    for (uint32_t i = 0; i < t->n_tenants; i++)
        stk_tenant_spec_init(&t->tenants[i], t->tenants[i].name, t->tenants[i].parent);
    for (uint32_t i = 0; i < t->n_queues; i++) {
        const char *name = t->queues[i].name;

        t->queues[i] = stk_default_queues[0];
        t->queues[i].name = name;
    }
}
