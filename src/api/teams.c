/* SPDX-License-Identifier: Apache-2.0 */
/* teams.c - tenants and queues: who may have how much, and who has it. */
#include "api/show.h"
#include "model/queue.h"
#include "model/reason.h"

void stk_show_limit(json_t *reason, const struct stk_reason *w)
{
    double unit = w->of_jobs ? 1 : 1000;
    json_t *limit;

    if (w->code != STK_WHY_LIMIT && w->code != STK_WHY_QUEUE)
        return;
    limit =
        json_pack("{s:s,s:s?,s:s?,s:s,s:f,s:f}", "of",
                  w->code == STK_WHY_LIMIT ? "tenant" : stk_queue_of_name((enum stk_queue_of)w->of),
                  "tenant", w->tenant, "queue", w->queue, "unit", w->of_jobs ? "jobs" : "gpus",
                  "used", (double)w->used / unit, "limit", (double)w->limit / unit);
    (void)json_object_set_new(reason, "limit", limit);
}
