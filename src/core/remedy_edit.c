/* SPDX-License-Identifier: Apache-2.0 */
/* remedy_edit.c - a description with one thing changed, for remedy.c. */
#include "core/remedy.h"
#include "core/state.h"
#include "model/queue.h"

static bool edit_part(const struct stk_remedy_ask *ask, struct stk_job_spec *spec, int64_t to)
{
    spec->demand.gpu_milli = (uint16_t)to;
    spec->demand.cut = false;
    return !ask->part || ask->part(ask->ctx, spec) == 0;
}

static bool edit_queue(const struct stk_remedy_ask *ask, const struct stk_state *s,
                       struct stk_job_spec *spec, uint32_t to)
{
    const struct stk_queue_spec *q = &s->queues[to];

    if (ask->queue)
        return ask->queue(ask->ctx, to, spec) == 0;
    spec->terms.queue = to;
    spec->priority = q->priority;
    spec->tier = q->tier;
    return true;
}

static void edit_level(struct stk_demand *d, int64_t to)
{
    if (!d->level_preferred) /* near if it can be */
        d->level_preferred = d->level_required;
    d->level_required = (uint8_t)to;
}

static void edit_time(struct stk_job_spec *spec, stk_time to)
{
    spec->estimate = to;
    spec->terms.asked = spec->terms.asked ? to : 0;
    spec->terms.limit = spec->terms.limit ? to : 0;
}

/* CPUs, memory or a named resource. */
static void edit_besides(struct stk_demand *d, const struct stk_remedy *r)
{
    if (r->kind == STK_REMEDY_CPU)
        d->cpu_milli = (uint32_t)r->to;
    else if (r->kind == STK_REMEDY_MEM)
        d->mem_mib = (uint32_t)r->to;
    else
        stk_demand_set_resource(d, r->resource, (uint32_t)r->to);
}

bool stk_remedy_edit(const struct stk_remedy_ask *ask, const struct stk_state *s,
                     const struct stk_job_spec *base, struct stk_remedy *io)
{
    struct stk_job_spec *spec = &io->spec;
    struct stk_demand *d = &spec->demand;
    const int64_t to = io->to;

    *spec = *base;
    switch (io->kind) {
    case STK_REMEDY_BEGIN:
        spec->begin = to;
        break;
    case STK_REMEDY_TYPE:
        d->gpu_types |= UINT64_C(1) << to;
        break;
    case STK_REMEDY_LEVEL:
        edit_level(d, to);
        break;
    case STK_REMEDY_SPREAD:
        d->per_node = (uint32_t)to;
        break;
    case STK_REMEDY_EXCLUSIVE:
        d->exclusive = to;
        break;
    case STK_REMEDY_POOL:
        spec->pool.i = (uint32_t)to;
        break;
    case STK_REMEDY_QUEUE:
        return edit_queue(ask, s, spec, (uint32_t)to);
    case STK_REMEDY_TENANT:
        spec->tenant = (uint32_t)to;
        return !ask->tenant || ask->tenant(ask->ctx, (uint32_t)to, spec) == 0;
    case STK_REMEDY_CPU:
    case STK_REMEDY_MEM:
    case STK_REMEDY_RESOURCE:
        edit_besides(d, io);
        break;
    case STK_REMEDY_PREEMPTIBLE:
    case STK_REMEDY_TIER:
        spec->tier = (enum stk_tier)to;
        break;
    case STK_REMEDY_TIME:
        edit_time(spec, to);
        break;
    case STK_REMEDY_GPUS:
        d->gpus = (uint32_t)to;
        break;
    case STK_REMEDY_TASKS:
        d->tasks = (uint32_t)to;
        break;
    case STK_REMEDY_PART:
        return edit_part(ask, spec, to);
    case STK_REMEDY_PRIORITY:
        spec->priority = (int32_t)to;
        break;
    case STK_REMEDY_RELEASE:
    case STK_REMEDY_KINDS:
        return false;
    }
    return true;
}
