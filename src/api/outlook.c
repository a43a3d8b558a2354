/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.c - what is expected of a job: when and where it starts, and whether it keeps its
 * deadline. */
#include "api/show.h"
#include "core/state.h"
#include "forecast/deadline.h"

static json_t *time_or_null(stk_time t)
{
    return t == STK_NEVER_TIME ? json_null() : stk_show_time(t);
}

static void set_where(struct stk_api *a, json_t *o, stk_job_number number)
{
    uint32_t n;
    const struct stk_piece *at = stk_live_expected_where(a->cfg.live, number, &n);

    if (n > 0)
        (void)json_object_set_new(o, "start_pieces", stk_show_pieces(a, at, n));
}

json_t *stk_show_outlook(struct stk_api *a, stk_job_number number)
{
    struct stk_live *l = a->cfg.live;
    const struct stk_state *s = stk_core_state(stk_live_core(l));
    const uint32_t slot = stk_core_find(stk_live_core(l), number);
    struct stk_deadline deadline;
    struct stk_expected when;
    json_t *o = NULL;

    if (slot == STK_NONE)
        return NULL;
    if (!s->jobs[slot].lease && stk_live_expected(l, number, &when)) {
        o = json_object();
        (void)json_object_set_new(o, "start_p50", time_or_null(when.p50));
        (void)json_object_set_new(o, "start_p90", time_or_null(when.p90));
        (void)json_object_set_new(o, "end_p50", time_or_null(when.end_p50));
        set_where(a, o, number);
    }
    if (!stk_live_deadline(l, number, &deadline))
        return o;
    if (!o)
        o = json_object();
    (void)json_object_set_new(o, "deadline", stk_live_show_deadline(&deadline));
    return o;
}
