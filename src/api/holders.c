/* SPDX-License-Identifier: Apache-2.0 */
/* holders.c - who has what a waiting job needs, and when it comes back: the jobs, what keeps each
 * of them, and what the job is entitled to.
 *
 * When it comes back: what is being stopped comes at once, what others borrowed when nothing
 * protects it any more, the rest when it ends. */
#include "api/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/show.h"
#include "core/claim.h"
#include "core/share.h"
#include "core/state.h"
#include "core/tenant.h"
#include "model/queue.h"

#define MAX_HOLDERS 8u
#define MAX_BORROWERS 8u

#define NOT_KNOWN INT64_MAX

struct holder {
    uint32_t slot;
    uint32_t amount; /* of what is short: GPUs, or a named resource */
    stk_time end;    /* NOT_KNOWN: nobody knows, or it should be over by now */
    stk_time back;   /* when it may be had; NOT_KNOWN, likewise */
    struct stk_hold how;
};

struct asking {
    struct stk_api *a;
    struct stk_core *core;
    const struct stk_state *s;
    uint32_t job;
    struct stk_say *say;
    struct stk_claim claim;
};

static int by(stk_time a, stk_time b, uint32_t x, uint32_t y)
{
    if (a != b)
        return a < b ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int by_end(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;

    return by(x->end, y->end, x->slot, y->slot);
}

static int by_back(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;

    return by(x->back, y->back, x->slot, y->slot);
}

/* How much it has of what is short. */
static uint32_t amount_of(const struct stk_state *s, const struct stk_job *j,
                          const struct stk_reason *w)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    return w->code == STK_WHY_RESOURCE ? d->resource[w->resource] * d->tasks : j->gpus;
}

/* Whether this tenant is the one of that name, or below it. */
static bool below(const struct stk_state *s, uint32_t tenant, const char *name)
{
    for (uint32_t at = tenant; at < s->n_tenants; at = s->tenants[at].parent - 1)
        if (name && strcmp(s->tenants[at].name, name) == 0)
            return true;
    return false;
}

/* Whether what job 'i' has counts against what holds 'job' back: a limit, or the pool's room. */
static bool in_the_way(const struct stk_state *s, uint32_t i, uint32_t job,
                       const struct stk_reason *w)
{
    const struct stk_terms *a = &s->terms[i], *b = &s->terms[job];

    if (w->code == STK_WHY_LIMIT)
        return below(s, s->jobs[i].tenant, w->tenant);
    if (w->code != STK_WHY_QUEUE)
        return s->jobs[i].pool == s->jobs[job].pool;
    return a->queue == b->queue && (w->of != STK_OF_USER || a->user == b->user) &&
           (w->of != STK_OF_TENANT || s->jobs[i].tenant == s->jobs[job].tenant);
}

static struct holder look_at(const struct asking *q, uint32_t slot)
{
    const struct stk_job *j = &q->s->jobs[slot];
    struct holder h = {.slot = slot, .amount = amount_of(q->s, j, &q->say->why)};

    stk_core_hold(q->core, (stk_job_id){q->job}, (stk_job_id){slot}, q->say->now, &h.how);
    h.end = h.back = j->expected_end > q->say->now ? j->expected_end : NOT_KNOWN;
    if (h.how.stopping)
        h.back = q->say->now;
    else if (h.how.borrowed && h.how.until > q->say->now && h.how.until < h.back)
        h.back = h.how.until;
    return h;
}

/* The jobs that have some of it, those that should end first first. */
static struct holder *holders(const struct asking *q, uint32_t *ret_n)
{
    const struct stk_state *s = q->s;
    struct holder *list = calloc(s->n_jobs + (size_t)1, sizeof(*list));
    uint32_t n = 0;

    for (uint32_t i = 0; list && i < s->n_jobs; i++)
        if (s->jobs[i].lease && amount_of(s, &s->jobs[i], &q->say->why) > 0 &&
            in_the_way(s, i, q->job, &q->say->why))
            list[n++] = look_at(q, i);
    if (n > 1)
        qsort(list, n, sizeof(*list), by_end);
    *ret_n = n;
    return list;
}

static json_t *show_shield(const struct stk_hold *h)
{
    return h->shield == STK_SHIELD_NONE ? json_null()
                                        : json_pack("{s:s,s:o}", "by", stk_shield_name(h->shield),
                                                    "until", stk_show_time(h->until));
}

static json_t *show_holder(const struct asking *q, const struct holder *h)
{
    const struct stk_job *j = &q->s->jobs[h->slot];
    const struct stk_entry *e = stk_live_entry(q->a->cfg.live, j->number);
    json_t *o = json_pack(
        "{s:I,s:s?,s:s,s:s,s:o,s:I,s:o,s:o,s:b,s:b,s:o}", "id", (json_int_t)j->number, "tenant",
        j->tenant < q->s->n_tenants ? q->s->tenants[j->tenant].name : NULL, "name",
        e ? e->rec.name : "", "user", e ? e->rec.user : "", "gpus",
        stk_show_gpus(j->gpus, q->s->shapes[j->shape].demand.gpu_milli), "amount",
        (json_int_t)h->amount, "estimate_s",
        j->estimate > 0 ? json_real((double)j->estimate / 1e6) : json_null(), "expected_end",
        h->end != NOT_KNOWN ? stk_show_time(h->end) : json_null(), "borrowed", h->how.borrowed,
        "stopping", h->how.stopping, "protected", show_shield(&h->how));

    if (e)
        stk_show_element(o, &e->rec);
    return o;
}

/* Whether it would run if others gave back GPUs. */
static bool wants_room(enum stk_reason_code code)
{
    return code == STK_WHY_GPUS || code == STK_WHY_FRAGMENTS || code == STK_WHY_CPU_MEM ||
           code == STK_WHY_CLAIMED || code == STK_WHY_BEHIND || code == STK_WHY_RESERVED ||
           code == STK_WHY_RANK || code == STK_WHY_PINNED || code == STK_WHY_RESOURCE ||
           code == STK_WHY_TOPOLOGY || code == STK_WHY_POWER || code == STK_WHY_LIMIT ||
           code == STK_WHY_QUEUE;
}

/* When so much of what is short has come back; 0: not known. */
static stk_time back_at(struct holder *list, uint32_t n, uint64_t missing)
{
    uint64_t freed = 0;

    if (n > 1)
        qsort(list, n, sizeof(*list), by_back);
    for (uint32_t i = 0; i < n && list[i].back != NOT_KNOWN; i++) {
        freed += list[i].amount;
        if (freed >= missing)
            return list[i].back;
    }
    return 0;
}

/* ---- what it is entitled to ---- */

static double gpus(uint64_t milli)
{
    return (double)milli / 1000;
}

static uint64_t borrowed_by(const struct stk_state *s, uint32_t tenant)
{
    const uint64_t used = *stk_tenant_used(s, tenant, STK_ALL_TYPES);
    const uint64_t sure = *stk_tenant_guarantee(s, tenant, STK_ALL_TYPES);

    return s->tenants[tenant].leaf && used > sure ? used - sure : 0;
}

/* Of the tenants that have jobs, those that are most over their guarantees. */
static json_t *show_borrowers(const struct asking *q)
{
    const struct stk_state *s = q->s;
    uint32_t first[MAX_BORROWERS], n = 0;
    json_t *out = json_array();

    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const uint64_t over = borrowed_by(s, i);
        uint32_t at = n;

        while (at > 0 && over > borrowed_by(s, first[at - 1]))
            at--;
        if (over == 0 || at == MAX_BORROWERS)
            continue;
        n += n < MAX_BORROWERS;
        memmove(&first[at + 1], &first[at], (n - 1 - at) * sizeof(first[0]));
        first[at] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(
            out, json_pack("{s:s,s:f,s:f,s:f,s:f}", "tenant", s->tenants[first[i]].name, "used",
                           gpus(*stk_tenant_used(s, first[i], STK_ALL_TYPES)), "guarantee",
                           gpus(*stk_tenant_guarantee(s, first[i], STK_ALL_TYPES)), "due",
                           gpus(stk_core_due(q->core, first[i])), "borrowed",
                           gpus(borrowed_by(s, first[i]))));
    return out;
}

/* "is within the guarantee of vision, which uses 2 of 4 GPUs" */
static json_t *say_claim(const struct asking *q, stk_time back)
{
    const struct stk_claim *c = &q->claim;
    const bool sure = c->title == STK_TITLE_GUARANTEE;
    char text[320], when[80] = "";

    if (back > 0)
        stk_say_when(q->say, back, when, sizeof(when));
    (void)snprintf(text, sizeof(text), "is within %s%.60s, which uses %g of %g GPUs%s%s%s",
                   sure ? "the guarantee of " : "what is due to ", q->s->tenants[c->tenant].name,
                   gpus(c->used), gpus(c->amount), c->gpu_type ? " of a type" : "",
                   *when ? "; what it needs comes back " : "", when);
    return json_string(text);
}

static json_t *show_claim(const struct asking *q, stk_time back)
{
    const struct stk_live_config *cfg = stk_live_config(q->a->cfg.live);
    const struct stk_claim *c = &q->claim;

    if (c->title == STK_TITLE_NONE || c->tenant == STK_NONE)
        return json_null();
    return json_pack("{s:s,s:s,s:o,s:f,s:f,s:o,s:o,s:o}", "title",
                     c->title == STK_TITLE_GUARANTEE ? "guarantee" : "due", "tenant",
                     q->s->tenants[c->tenant].name, "gpu_type",
                     c->gpu_type && c->gpu_type <= cfg->n_gpu_types
                         ? json_string(cfg->gpu_types[c->gpu_type - 1])
                         : json_null(),
                     "used", gpus(c->used), "amount", gpus(c->amount), "back", stk_show_time(back),
                     "borrowers", show_borrowers(q), "sentence", say_claim(q, back));
}

/* ---- both ---- */

/* Notes when enough should be free, and who ends first. */
static void note_ends(const struct asking *q, const struct holder *list, uint32_t n, char first[32])
{
    struct stk_say *say = q->say;
    const struct stk_state *s = q->s;
    const bool counts =
        (say->why.code == STK_WHY_GPUS && !s->shapes[s->jobs[q->job].shape].demand.gpu_milli) ||
        say->resource;
    uint64_t freed = 0;

    for (uint32_t i = 0; i < n; i++) {
        const bool part = s->shapes[s->jobs[list[i].slot].shape].demand.gpu_milli != 0;

        freed += part && !say->resource ? 0 : list[i].amount; /* of it the rest may stay in use */
        if (counts && !say->room_at && freed >= say->why.missing)
            say->room_at = list[i].end;
    }
    if (n > 0 && list[0].end != NOT_KNOWN) {
        say->first_out = stk_show_name(q->a, s->jobs[list[0].slot].number, first, 32);
        say->first_out_at = list[0].end;
    }
    if (say->room_at == NOT_KNOWN)
        say->room_at = 0;
}

json_t *stk_show_holders(struct stk_api *a, uint32_t job, struct stk_say *say, char first[32],
                         json_t **ret_claim)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    struct asking q = {a, core, stk_core_state(core), job, say, {.title = STK_TITLE_NONE}};
    uint32_t n = 0;
    struct holder *list = wants_room(say->why.code) ? holders(&q, &n) : NULL;
    json_t *out = json_array();

    for (uint32_t i = 0; i < n && i < MAX_HOLDERS; i++)
        (void)json_array_append_new(out, show_holder(&q, &list[i]));
    note_ends(&q, list, n, first);
    if (list && say->why.code != STK_WHY_LIMIT && say->why.code != STK_WHY_QUEUE)
        stk_core_claim(core, (stk_job_id){job}, &q.claim);
    *ret_claim = show_claim(&q, back_at(list, n, say->why.missing ? say->why.missing : 1));
    free(list);
    return out;
}
