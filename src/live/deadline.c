/* SPDX-License-Identifier: Apache-2.0 */
/* deadline.c - whether a job will have ended in time. Of one that is only about to be submitted:
 * answer.c. */
#include <stdio.h>
#include <time.h>

#include "core/state.h"
#include "forecast/deadline.h"
#include "live/state.h"

struct stk_deadline stk_live_judge_deadline(const struct stk_live *l, stk_time deadline,
                                            stk_time now, const struct stk_expected *when)
{
    struct stk_deadline d = stk_deadline_judge(deadline, now, when);

    d.at = stk_live_unnamed(l, d.at);
    if (d.earliest > 0)
        d.earliest = stk_live_unnamed(l, d.earliest);
    return d;
}

bool stk_live_deadline(struct stk_live *l, stk_job_number number, struct stk_deadline *ret)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t slot = stk_core_find(l->core, number);
    struct stk_expected when;

    if (slot == STK_NONE || s->terms[slot].deadline == 0)
        return false;
    *ret = stk_live_judge_deadline(l, s->terms[slot].deadline, l->cfg.clock(l->cfg.ctx),
                                   stk_live_expected(l, number, &when) ? &when : NULL);
    return true;
}

void stk_live_say_time(stk_time at, char *buf, size_t size)
{
    const time_t s = (time_t)(at / STK_SECOND);
    struct tm tm;

    if (at <= 0 || !localtime_r(&s, &tm) || strftime(buf, size, "%F %H:%M:%S", &tm) == 0)
        (void)snprintf(buf, size, "not known");
}

json_t *stk_live_show_deadline(const struct stk_deadline *d)
{
    const bool known = d->answer != STK_DEADLINE_UNKNOWN;

    return json_pack("{s:f,s:s,s:o,s:o}", "at", (double)d->at / 1e6, "answer",
                     stk_deadline_name(d->answer), "margin_s",
                     known ? json_real((double)d->margin / 1e6) : json_null(), "earliest",
                     d->earliest > 0 ? json_real((double)d->earliest / 1e6) : json_null());
}
