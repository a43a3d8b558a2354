/* SPDX-License-Identifier: Apache-2.0 */
/* save.c - writes the state; core/load.c reads it, member by member in the same order.
 *
 *     "stkC" version, what was set (core/settings.h), order policy, its settings
 *     time, next numbers, history, events
 *     nodes: up, GPUs off, switched off           pools: claim           resources: name tenants:
 * name queues: name moves so far; what was asked for lately slots: a state each; a job's members
 * where it is not free; what a live job has besides free slots in the order in which they are used
 * again; finished jobs, oldest first; arrays; what tenants have had
 */
#include "core/save.h"

#include <string.h>

#include "base/hash.h"
#include "core/account.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/resource.h"
#include "core/sets.h"
#include "core/settings.h"
#include "core/stake.h"
#include "core/tenant.h"
#include "core/usage.h"
#include "model/wire.h"

#define MAX_WORD (STK_MAX_DURATION / 1000 * STK_MAX_GPUS)        /* more service nobody has had */
#define MAX_AHEAD (STK_MAX_DURATION / STK_SPEED * STK_MAX_SPEED) /* done faster than at speed 1 */

uint64_t stk_save_settings(const struct stk_state *s)
{
    const unsigned char *p = s->order_st;
    uint64_t h = s->order->state_size;

    for (size_t i = 0; i < s->order->state_size; i++)
        h = stk_hash_mix(h, p[i]);
    return h;
}

static void put_head(struct stk_bytes *b, const struct stk_state *s)
{
    uint32_t len = (uint32_t)strlen(s->order->name);

    stk_put_raw(b, "stkC", 4);
    stk_put_u(b, STK_SAVE_VERSION);
    stk_settings_put(b, s);
    stk_put_u(b, len);
    stk_put_raw(b, s->order->name, len);
    stk_put_u(b, stk_save_settings(s));
    stk_put_s(b, s->now);
    stk_put_u(b, s->next_number);
    stk_put_u(b, s->next_lease);
    stk_put_u(b, s->next_queue_seq);
    stk_put_u(b, s->history);
    stk_put_u(b, s->n_events);
    stk_put_u(b, s->n_nodes);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        stk_put_u(b, s->nodes[i].said_up);
        stk_put_u(b, s->nodes[i].mask_off);
        stk_put_u(b, s->nodes[i].mask_last);
        stk_put_u(b, s->nodes[i].off);
        stk_put_u(b, s->nodes[i].closed);
    }
    stk_put_u(b, s->n_pools);
    for (uint32_t i = 0; i < s->n_pools; i++)
        stk_put_u(b, s->pools[i].claim == STK_NONE ? 0 : (uint64_t)s->pools[i].claim + 1);
    stk_resource_put_names(b, s);
    stk_tenant_put_names(b, s);
    stk_account_put_names(b, s);
}

static void put_seen(struct stk_bytes *b, const struct stk_seen *e)
{
    stk_put_u(b, e ? e->n : 0);
    stk_put_u(b, e ? e->jobs : 0);
    stk_put_u(b, e ? e->next : 0);
    for (uint32_t i = 0; e && i < e->n; i++) {
        const struct stk_seen_kind *k = &e->kind[i];

        stk_put_u(b, k->cpu_milli);
        stk_put_u(b, k->gpus);
        stk_put_u(b, k->gpu_milli);
        stk_put_u(b, ~k->gpu_types);
        stk_put_u(b, k->n);
        stk_put_u(b, k->told);
    }
}

static void put_common(struct stk_bytes *b, const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    stk_put_u(b, j->number);
    stk_put_u(b, j->tag);
    stk_put_u(b, j->cause);
    stk_put_u(b, j->kind);
    stk_put_u(b, j->tier);
    stk_put_u(b, (uint64_t)j->cancel_wanted | (uint64_t)j->hold_wanted << 1 |
                     (uint64_t)j->suspend_wanted << 2 | (uint64_t)j->by_hand << 3 |
                     (uint64_t)j->moving << 4);
    for (int i = 0; i < STK_RETRY_MAX; i++)
        stk_put_u(b, j->retry[i]);
    stk_put_s(b, j->priority - stk_settings_shift(s, job)); /* its own */
    stk_put_u(b, j->pool);
    stk_put_u(b, j->gpus);
    stk_put_u(b, j->tenant);
    stk_put_u(b, j->array);
    stk_put_u(b, j->array_index);
    stk_put_u(b, j->preemptions);
    stk_put_u(b, j->restarts);
    stk_put_s(b, j->exit_code);
    stk_put_s(b, j->submitted);
    stk_put_s(b, j->started);
    stk_put_s(b, j->ended);
    stk_put_s(b, j->estimate);
    stk_put_s(b, j->served);
    stk_put_s(b, j->lost);
    stk_put_s(b, j->word);
    stk_put_s(b, j->begin);
    stk_put_s(b, j->queued);
    stk_put_u(b, j->queue_seq);
    stk_put_u(b, j->unmet);
}

void stk_save_get_job(struct stk_reader *r, const struct stk_state *s, struct stk_job *j)
{
    uint32_t wishes;

    j->number = (uint32_t)stk_get_u(r, s->next_number - 1);
    j->tag = stk_get_u32(r);
    j->cause = (uint8_t)stk_get_u(r, STK_CAUSE_MAX - 1);
    j->kind = (unsigned)stk_get_u(r, STK_KIND_MAX - 1) & 15;
    j->tier = (unsigned)stk_get_u(r, STK_TIER_MAX - 1) & 7;
    wishes = (uint32_t)stk_get_u(r, 31);
    j->cancel_wanted = wishes & 1;
    j->hold_wanted = wishes & 2;
    j->suspend_wanted = wishes & 4;
    j->by_hand = wishes & 8;
    j->moving = wishes & 16;
    for (int i = 0; i < STK_RETRY_MAX; i++)
        j->retry[i] = (uint8_t)stk_get_u(r, UINT8_MAX);
    j->priority = (int32_t)stk_get_i(r, -STK_MAX_PRIORITY, STK_MAX_PRIORITY);
    j->pool = stk_get_u32(r);
    j->gpus = (uint32_t)stk_get_u(r, STK_MAX_GPUS);
    j->tenant = stk_get_u32(r);
    j->array = stk_get_u32(r);
    j->array_index = stk_get_u32(r);
    j->preemptions = stk_get_u32(r);
    j->restarts = stk_get_u32(r);
    j->exit_code = (int32_t)stk_get_i(r, INT32_MIN, INT32_MAX);
    j->submitted = stk_get_i(r, 0, s->now);
    j->started = stk_get_i(r, 0, s->now);
    j->ended = stk_get_i(r, 0, s->now);
    j->estimate = stk_get_i(r, 0, STK_MAX_DURATION);
    j->served = stk_get_i(r, 0, s->now);
    j->lost = stk_get_i(r, -MAX_AHEAD, STK_MAX_DURATION - j->estimate);
    j->word = stk_get_i(r, 0, MAX_WORD);
    j->begin = stk_get_i(r, 0, STK_MAX_DURATION);
    j->queued = stk_get_i(r, 0, s->now);
    j->queue_seq = stk_get_u32(r);
    j->unmet = (uint32_t)stk_get_u(r, STK_MAX_DEPS);
    r->bad |= j->number == 0;
    r->bad |= j->moving && j->state != STK_JOB_STOPPING && j->state != STK_JOB_WAITING;
}

static bool edge_holds(const struct stk_state *s, const struct stk_edge *e)
{
    const struct stk_job *c = &s->jobs[e->child];

    return c->number == e->child_number && c->state != STK_JOB_DONE && c->state != STK_JOB_NONE;
}

/* The jobs in a list of edges (first + 1), in the order in which they are told. */
static void put_edges(struct stk_bytes *b, const struct stk_state *s, uint32_t first)
{
    uint32_t n = 0;

    for (uint32_t e = first; e; e = s->edges[e - 1].next)
        n += edge_holds(s, &s->edges[e - 1]);
    stk_put_u(b, n);
    for (uint32_t e = first; e; e = s->edges[e - 1].next) {
        if (!edge_holds(s, &s->edges[e - 1]))
            continue;
        stk_put_u(b, s->edges[e - 1].child);
        stk_put_u(b, s->edges[e - 1].type);
    }
}

static void put_live(struct stk_bytes *b, const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint32_t timer = s->timer_pos[job];

    stk_wire_put_demand(b, d);
    stk_put_u(b, d->nodes);
    stk_put_u(b, j->lease);
    stk_put_u(b, j->slept);
    if (j->slept) {
        stk_put_u(b, d->pin);
        stk_put_u(b, d->pin_mask);
        stk_put_u(b, d->pin_slot);
    }
    stk_put_u(b, j->n_pieces);
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];

        stk_put_u(b, p->node.i);
        stk_put_u(b, p->gpus);
        stk_put_u(b, p->tasks);
        stk_put_u(b, p->slot);
        stk_put_u(b, p->mask);
    }
    put_edges(b, s, j->first_edge);
    stk_put_u(b, timer != STK_HEAP_OUT);
    if (timer != STK_HEAP_OUT)
        stk_put_s(b, s->timers.item[timer - 1].key);
}

/* A row of slots linked by 'link' from 'first' (slot + 1) on. */
static void put_row(struct stk_bytes *b, const struct stk_state *s, uint32_t first)
{
    uint32_t n = 0;

    for (uint32_t at = first; at; at = s->jobs[at - 1].link)
        n++;
    stk_put_u(b, n);
    for (uint32_t at = first; at; at = s->jobs[at - 1].link)
        stk_put_u(b, at - 1);
}

void stk_save_put_job(struct stk_bytes *b, const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    stk_put_u(b, j->state);
    if (j->state == STK_JOB_NONE)
        return;
    put_common(b, s, job);
    if (j->state != STK_JOB_DONE)
        put_live(b, s, job);
    stk_wire_put_terms(b, &s->terms[job]);
    stk_stake_put(b, &s->stakes[job]);
}

void stk_save_put_array(struct stk_bytes *b, const struct stk_state *s, uint32_t array)
{
    stk_put_u(b, s->arrays[array].number);
    for (uint32_t t = 0; t < STK_DEP_TYPE_MAX; t++)
        put_edges(b, s, s->arrays[array].first_edge[t]);
}

/* Who waits for all of an array. */
static void put_arrays(struct stk_bytes *b, const struct stk_state *s)
{
    stk_put_u(b, s->by_array.n);
    for (uint32_t i = 0; i < s->n_arrays; i++)
        if (s->arrays[i].open > 0)
            stk_save_put_array(b, s, i);
}

int stk_core_save(const struct stk_core *core, struct stk_bytes *out, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(core);

    put_head(out, s);
    stk_put_u(out, s->n_moved);
    put_seen(out, s->seen);
    stk_put_u(out, s->n_jobs);
    for (uint32_t i = 0; i < s->n_jobs && !out->failed; i++)
        stk_save_put_job(out, s, i);
    put_row(out, s, s->free_job);
    put_row(out, s, s->done_head);
    put_arrays(out, s);
    stk_budgets_put(out, s);
    stk_booking_put(out, s);
    stk_usage_put(out, s);
    stk_sets_put(out, s);
    if (out->failed)
        return stk_err_set(err, out->failed, "out of memory for the state of %u jobs", s->n_jobs);
    return 0;
}
