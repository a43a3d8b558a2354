/* SPDX-License-Identifier: Apache-2.0 */
/* defrag.c - what could be moved so that a job that waits can start, and doing it. */
#include "core/defrag.h"

#include "api/handlers.h"
#include "api/show.h"
#include "core/state.h"

static json_t *job_of(const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    return json_pack("{s:I,s:o}", "id", (json_int_t)j->number, "gpus",
                     stk_show_gpus(j->gpus, s->shapes[j->shape].demand.gpu_milli));
}

/* The plan, or none, as the answer has it. */
static json_t *show(const struct stk_state *s, const struct stk_defrag_plan *p, bool any)
{
    json_t *plans = json_array(), *moves;

    if (any) {
        moves = json_array();
        for (uint32_t i = 0; i < p->n; i++)
            (void)json_array_append_new(moves, job_of(s, p->moves[i]));
        (void)json_array_append_new(plans, json_pack("{s:o,s:o,s:f}", "for", job_of(s, p->for_job),
                                                     "moves", moves, "cost_gpu_s",
                                                     (double)p->units / 1000.0));
    }
    return plans;
}

static void answer(struct stk_api *a, struct stk_request *r, bool act)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    struct stk_defrag_plan plan;
    bool any = stk_core_defrag(core, stk_api_now(a), &plan);
    json_t *plans = show(stk_core_state(core), &plan, any);

    if (act && any)
        stk_live_defrag(a->cfg.live);
    stk_request_json(r, 200, json_pack("{s:o,s:b}", "plans", plans, "doing", act && any));
}

void stk_do_defrag_plan(void *ctx, struct stk_request *r)
{
    answer(ctx, r, false);
}

void stk_do_defrag(void *ctx, struct stk_request *r)
{
    answer(ctx, r, true);
}
