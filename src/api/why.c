/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - why a job waits: the reasons as data and as sentences, who holds what it needs
 * (holders.c), and the smallest changes that would start it now, which whys.c has found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/holders.h"
#include "api/owners.h"
#include "api/remedy.h"
#include "api/say.h"
#include "api/show.h"
#include "core/array.h"
#include "core/state.h"
#include "core/tenant.h"

/* Jobs it depends on that have not ended. */
static json_t *show_waits_for(struct stk_api *a, const struct stk_entry *e)
{
    json_t *spec = stk_live_spec(a->cfg.live, e->rec.spec), *dep;
    json_t *out = json_array();
    size_t i;

    json_array_foreach(json_object_get(spec, "depends"), i, dep)
    {
        json_int_t on = json_integer_value(json_object_get(dep, "job"));

        if (on > 0 && on < UINT32_MAX &&
            (stk_live_entry(a->cfg.live, (stk_job_number)on) ||
             stk_array_find(stk_core_state(stk_live_core(a->cfg.live)), (stk_job_number)on)))
            (void)json_array_append_new(out, json_integer(on));
    }
    json_decref(spec);
    return out;
}

static bool has_default_cpus(const struct stk_api *a, const struct stk_entry *e)
{
    json_t *spec = stk_live_spec(a->cfg.live, e->rec.spec);
    bool is = json_object_get(spec, "cpu_share") != NULL;

    json_decref(spec);
    return is;
}

/* Why a GPU is not to be used: the first of them says it for all. */
static const char *why_off(const struct stk_api *a)
{
    const struct stk_live_config *c = stk_live_config(a->cfg.live);

    for (uint32_t n = 0; n < c->core.n_nodes && a->sample; n++)
        for (uint32_t i = 0; i < c->core.nodes[n].gpus; i++) {
            const char *off = json_string_value(json_object_get(stk_owners_sample(a, n, i), "off"));

            if (off)
                return off;
        }
    for (uint32_t n = 0; n < c->core.n_nodes; n++)
        if (stk_live_drained(a->cfg.live, n))
            return "drained";
    return NULL;
}

static void set_limit(json_t *o, const struct stk_reason *w)
{
    json_t *limit = stk_show_limit(w);

    if (limit)
        (void)json_object_set_new(o, "limit", limit);
}

/* All reasons, each with its sentence; the first is what 'say' has. */
static json_t *show_reasons(struct stk_api *a, const struct stk_state *s, const struct stk_say *say,
                            const struct stk_reasons *all)
{
    json_t *out = json_array();
    char sentence[640], other[32];

    for (uint32_t i = 0; i < all->n; i++) {
        struct stk_say one = {.why = all->list[i],
                              .number = say->number,
                              .now = say->now,
                              .ahead = say->ahead,
                              .at_once = i == 0 ? say->at_once : 0,
                              .besides = i > 0,
                              .asleep = say->asleep,
                              .lent = say->lent,
                              .cpus_default = say->cpus_default,
                              .demand = say->demand,
                              .next = say->next,
                              .other = other};
        const struct stk_reason *w = &one.why;
        json_t *o;

        (void)stk_show_name(a, w->other, other, sizeof(other));
        one.resource = w->code == STK_WHY_RESOURCE ? s->resource_names[w->resource] : NULL;
        one.booking = stk_live_reservation_name(a->cfg.live, w->booking);
        stk_say_why(&one, sentence, sizeof(sentence));
        o = json_pack("{s:s,s:s,s:I,s:I,s:I,s:o,s:o}", "code", stk_say_code(&one), "sentence",
                      sentence, "need", (json_int_t)w->need, "have", (json_int_t)w->have, "missing",
                      (json_int_t)w->missing, "other",
                      w->other ? json_integer(w->other) : json_null(), "until",
                      stk_show_time(w->until));
        set_limit(o, w);
        (void)json_array_append_new(out, o);
    }
    return out;
}

/* What would start it now and who asks may do, each with the command that does it. */
static json_t *show_changes(struct stk_api *a, const struct stk_entry *e,
                            const struct stk_remedies *all)
{
    const struct stk_live_config *c = stk_live_config(a->cfg.live);
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    struct stk_remedy_names names = {.pools = c->pools,
                                     .n_pools = c->core.n_pools,
                                     .gpu_types = c->gpu_types,
                                     .n_gpu_types = c->n_gpu_types,
                                     .resources = c->core.resource_names};
    json_t *out = json_array();
    char sentence[320], command[320], job[32];

    (void)stk_show_name(a, e->number, job, sizeof(job));
    for (uint32_t i = 0; i < all->n; i++) {
        const struct stk_remedy *r = &all->list[i];

        names.queue = r->kind == STK_REMEDY_QUEUE ? s->queues[r->to].name : NULL;
        names.tenant = r->kind == STK_REMEDY_TENANT ? s->tenants[r->to].name : NULL;
        stk_remedy_say(r, &names, sentence, sizeof(sentence));
        stk_remedy_command(r, &names, job, command, sizeof(command));
        (void)json_array_append_new(
            out, json_pack("{s:s,s:s,s:s,s:I,s:I,s:I}", "kind", stk_remedy_name(r->kind),
                           "sentence", sentence, "command", command, "from", (json_int_t)r->from,
                           "to", (json_int_t)r->to, "evicts", (json_int_t)r->evicts));
    }
    return out;
}

/* The reason, and what its sentence names. */
static void set_reason(struct stk_api *a, const struct stk_entry *e, const struct stk_reason *why,
                       struct stk_say *say)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    stk_job_number last;

    say->why = *why;
    say->cpus_default = has_default_cpus(a, e);
    (void)stk_live_schedule(a->cfg.live, e->number, &say->next, &last);
    say->at_once = stk_show_at_once(a, e, why);
    if (why->code == STK_WHY_RESOURCE)
        say->resource = s->resource_names[why->resource];
    say->booking = stk_live_reservation_name(a->cfg.live, why->booking);
}

static void explain(struct stk_api *a, struct stk_request *r, const struct stk_entry *e,
                    const struct stk_remedies *remedies)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    const struct stk_state *s = stk_core_state(core);
    uint32_t slot = stk_core_find(core, e->number);
    char other[32];
    struct stk_say say = {.number = e->number,
                          .tasks = e->rec.tasks,
                          .now = stk_api_now(a),
                          .ahead = stk_api_ahead(a),
                          .asleep = slot != STK_NONE && s->jobs[slot].slept != 0,
                          .lent = e->lent && slot != STK_NONE && s->jobs[slot].slept != 0,
                          .demand =
                              slot == STK_NONE ? NULL : &s->shapes[s->jobs[slot].shape].demand,
                          .off = why_off(a),
                          .other = other};
    const struct stk_reason *w = &say.why;
    char sentence[640], change[320], first[32];
    json_t *held, *out, *turn, *changes, *claim;
    struct stk_err err = {""};
    struct stk_reasons all;
    int rc = slot == STK_NONE ? stk_err_set(&err, -ENOENT, "there is no job %u", e->number)
                              : stk_core_reasons(core, (stk_job_id){slot}, &all, &err);

    if (rc < 0) {
        stk_api_fail(r, rc, &err);
        return;
    }
    set_reason(a, e, &all.list[0], &say);
    (void)stk_show_name(a, w->other, other, sizeof(other));
    turn = stk_show_turn(a, &s->jobs[slot]);
    say.turn = json_string_value(json_object_get(turn, "text"));
    held = stk_show_holders(a, slot, &say, first, &claim);
    stk_say_why(&say, sentence, sizeof(sentence));
    stk_say_change(&say, change, sizeof(change));
    changes = say.next ? json_array() : show_changes(a, e, remedies);
    if (!*change && json_array_size(changes) > 0)
        (void)snprintf(change, sizeof(change), "%s",
                       json_string_value(json_object_get(json_array_get(changes, 0), "sentence")));
    json_decref(turn);
    out = json_pack(
        "{s:I,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "id",
        (json_int_t)e->number, "state", stk_show_state(&s->jobs[slot]), "code", stk_say_code(&say),
        "sentence", sentence, "change", change, "need", (json_int_t)w->need, "have",
        (json_int_t)w->have, "missing", (json_int_t)w->missing, "off", (json_int_t)w->off, "other",
        w->other ? json_integer(w->other) : json_null(), "resource",
        say.resource ? json_string(say.resource) : json_null(), "until", stk_show_time(w->until),
        "expected", stk_show_time(say.room_at), "holders", held, "waits_for", show_waits_for(a, e));
    stk_show_element(out, &e->rec);
    set_limit(out, w);
    (void)json_object_set_new(out, "claim", claim);
    (void)json_object_set_new(out, "reasons", show_reasons(a, s, &say, &all));
    (void)json_object_set_new(out, "changes", changes);
    (void)json_object_update_new(out, stk_show_outlook(a, e->number));
    stk_request_json(r, 200, out);
}

/* A job that has ended: how. */
static void explain_ended(struct stk_api *a, struct stk_request *r, stk_job_number number)
{
    struct stk_show view = {.api = a, .who = stk_request_who(r), .detail = false};
    struct stk_err err = {""};
    struct stk_writer text = {0};
    int rc = stk_show_number(&view, &text, number, &err);
    json_t *job = rc == 0 ? stk_show_tree(&text) : NULL;

    if (!job) {
        stk_writer_done(&text);
        stk_api_fail(r, rc < 0 ? rc : -ENOMEM, &err);
        return;
    }
    stk_request_json(
        r, 200,
        json_pack(
            "{s:I,s:O,s:O,s:s,s:s,s:O,s:s,s:i,s:i,s:i,s:i,s:n,s:n,s:n,s:n,s:n,s:[],s:[],s:[],s:[]}",
            "id", (json_int_t)number, "array_id", json_object_get(job, "array_id"), "array_index",
            json_object_get(job, "array_index"), "state", "done", "code", "ended", "sentence",
            json_object_get(job, "state_text"), "change", "", "need", 0, "have", 0, "missing", 0,
            "off", 0, "other", "resource", "until", "expected", "claim", "holders", "waits_for",
            "reasons", "changes"));
    json_decref(job);
}

void stk_why_answer(struct stk_api *a, struct stk_request *r, stk_job_number number,
                    const struct stk_remedies *all)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, number);

    if (e)
        explain(a, r, e, all);
    else
        explain_ended(a, r, number);
}
