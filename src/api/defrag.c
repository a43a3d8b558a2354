/* SPDX-License-Identifier: Apache-2.0 */
/* defrag.c - what could be moved so that a job that waits can start, or so that a node is empty;
 * and doing it. */
#include "core/defrag.h"

#include <string.h>

#include "api/handlers.h"
#include "api/show.h"
#include "core/state.h"

static json_t *job_of(const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    return json_pack("{s:I,s:o}", "id", (json_int_t)j->number, "gpus",
                     stk_show_gpus(j->gpus, s->shapes[j->shape].demand.gpu_milli));
}

/* The part of what is free that lies on nodes that others use, too. */
static double fragments(const struct stk_whole *w)
{
    return w->free > 0 ? 1.0 - (double)w->whole / (double)w->free : 0;
}

static json_t *gain_of(const struct stk_whole *before, const struct stk_whole *after,
                       json_t *take_starts)
{
    return json_pack("{s:I,s:o,s:f,s:f}", "gpus_whole",
                     (json_int_t)after->whole - (json_int_t)before->whole, "starts", take_starts,
                     "fragmentation_before", fragments(before), "fragmentation_after",
                     fragments(after));
}

static json_t *move_of(const struct stk_state *s, uint32_t job, json_t *take_to, int64_t units)
{
    json_t *o = job_of(s, job);

    (void)json_object_set_new(o, "to", take_to);
    (void)json_object_set_new(o, "cost_gpu_s", json_real((double)units / 1000.0));
    return o;
}

/* ---- room for a job ---- */

static json_t *room_plan(const struct stk_state *s, const struct stk_defrag_plan *p)
{
    json_t *moves = json_array(), *starts = json_array();

    for (uint32_t i = 0; i < p->n; i++)
        (void)json_array_append_new(moves, move_of(s, p->moves[i], json_null(), p->units_of[i]));
    (void)json_array_append_new(starts, job_of(s, p->for_job));
    return json_pack("{s:o,s:n,s:b,s:o,s:[],s:f,s:o}", "for", job_of(s, p->for_job), "empty",
                     "possible", true, "moves", moves, "stays", "cost_gpu_s",
                     (double)p->units / 1000.0, "gain", gain_of(&p->before, &p->after, starts));
}

static void answer_room(struct stk_api *a, struct stk_request *r, bool act)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    struct stk_defrag_plan plan;
    bool any = stk_core_defrag(core, stk_api_now(a), &plan);
    json_t *plans = json_array();

    if (any)
        (void)json_array_append_new(plans, room_plan(stk_core_state(core), &plan));
    if (act && any)
        stk_live_defrag(a->cfg.live);
    stk_request_json(r, 200, json_pack("{s:o,s:b}", "plans", plans, "doing", act && any));
}

/* ---- an empty node ---- */

static json_t *empty_plan(struct stk_api *a, const struct stk_empty_plan *p)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);
    json_t *moves = json_array(), *stays = json_array(), *starts = json_array();

    for (uint32_t i = 0; i < p->n; i++) {
        json_t *o;

        if (p->possible) {
            o = move_of(s, p->move[i], json_string(cfg->nodes[p->to[i]].name), p->units[i]);
            (void)json_array_append_new(moves, o);
        } else if (p->stay[i] != STK_STAY_MAX) {
            o = job_of(s, p->move[i]);
            (void)json_object_set_new(o, "why",
                                      json_string(stk_stay_name((enum stk_stay)p->stay[i])));
            (void)json_array_append_new(stays, o);
        }
    }
    for (uint32_t i = 0; i < p->n_starts; i++)
        (void)json_array_append_new(starts, job_of(s, p->starts[i]));
    return json_pack("{s:n,s:s,s:b,s:o,s:o,s:f,s:o}", "for", "empty", cfg->nodes[p->node].name,
                     "possible", p->possible, "moves", moves, "stays", stays, "cost_gpu_s",
                     (double)p->cost / 1000.0, "gain", gain_of(&p->before, &p->after, starts));
}

/* The node that is named, or STK_NONE for the best; false: there is none such, and that was said.
 */
static bool find_node(struct stk_api *a, struct stk_request *r, const char *name, uint32_t *ret)
{
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);

    *ret = STK_NONE;
    for (uint32_t i = 0; i < cfg->core.n_nodes; i++)
        if (strcmp(cfg->nodes[i].name, name) == 0)
            *ret = i;
    if (*ret != STK_NONE || strcmp(name, "best") == 0)
        return true;
    stk_request_error(r, 404, NULL, "there is no node \"%.60s\"; best chooses one", name);
    return false;
}

static void answer_empty(struct stk_api *a, struct stk_request *r, const char *name, bool act)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    struct stk_empty_plan plan;
    json_t *plans = json_array();
    uint32_t node;
    bool any;

    if (!find_node(a, r, name, &node)) {
        json_decref(plans);
        return;
    }
    any = stk_core_empty(core, stk_api_now(a), node, &plan);
    if (any)
        (void)json_array_append_new(plans, empty_plan(a, &plan));
    any = any && plan.possible;
    if (act && any)
        stk_live_empty(a->cfg.live, plan.node);
    stk_request_json(r, 200, json_pack("{s:o,s:b}", "plans", plans, "doing", act && any));
}

static void answer(struct stk_api *a, struct stk_request *r, bool act)
{
    const char *empty = stk_request_query(r, "empty");

    if (empty)
        answer_empty(a, r, empty, act);
    else
        answer_room(a, r, act);
}

void stk_do_defrag_plan(void *ctx, struct stk_request *r)
{
    answer(ctx, r, false);
}

void stk_do_defrag(void *ctx, struct stk_request *r)
{
    answer(ctx, r, true);
}
