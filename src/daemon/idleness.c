/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/idleness.h"

void stk_idle_begin(struct stk_idle *i, stk_time now)
{
    *i = (struct stk_idle){.since = now};
}

static bool gpu_works(struct stk_idle *i, const struct stk_idle_rule *r,
                      const struct stk_idle_reading *s)
{
    if (s->gpu_known)
        return s->gpu_pct > r->below_pct;
    if (!s->power_known)
        return true; /* not known: as if it did */
    if (i->power_low <= 0 || s->power_w < i->power_low)
        i->power_low = s->power_w;
    return s->power_w > i->power_low * STK_IDLE_POWER;
}

/* The first reading is only what later ones are compared with. */
static bool cpu_works(struct stk_idle *i, const struct stk_idle_reading *s, stk_time now)
{
    double used = s->cpu_s - i->cpu_s, span = (double)(now - i->cpu_at) / STK_SECOND;
    bool first = i->cpu_at == 0;

    if (!s->cpu_known)
        return true;
    i->cpu_s = s->cpu_s;
    i->cpu_at = now;
    return !first && span > 0 && used > span * STK_IDLE_CPU;
}

void stk_idle_see(struct stk_idle *i, const struct stk_idle_rule *r,
                  const struct stk_idle_reading *s, stk_time now)
{
    bool works = s->on_gpus ? gpu_works(i, r, s) : cpu_works(i, s, now);
    stk_time typed = now - s->pty_idle_s * STK_SECOND;

    if (works)
        i->since = now;
    else if (s->pty_known && typed > i->since)
        i->since = typed;
}

static bool over(const struct stk_idle *i, int64_t limit_s, stk_time now)
{
    return limit_s > 0 && now - i->since >= limit_s * STK_SECOND;
}

bool stk_idle_due(const struct stk_idle *i, const struct stk_idle_rule *r, stk_time now)
{
    return over(i, r->suspend_s, now);
}

static enum stk_idle_step next_asleep(struct stk_idle *i, const struct stk_idle_rule *r,
                                      const struct stk_idle_around *a, stk_time now)
{
    if (a->typed)
        return STK_IDLE_WAKE;
    if (over(i, r->end_s, now))
        return STK_IDLE_END;
    if (a->wanted || !a->gpus_free) {
        i->calm_since = 0;
        return STK_IDLE_NOTHING;
    }
    if (i->calm_since == 0)
        i->calm_since = now;
    return now - i->calm_since >= STK_IDLE_CALM ? STK_IDLE_WAKE : STK_IDLE_NOTHING;
}

enum stk_idle_step stk_idle_next(struct stk_idle *i, const struct stk_idle_rule *r,
                                 const struct stk_idle_around *a, stk_time now)
{
    bool suspend = over(i, r->suspend_s, now) && a->may_suspend && a->wanted;
    bool end = over(i, r->end_s, now);
    bool warn = over(i, r->warn_s, now) || suspend || end;

    if (a->asleep)
        return next_asleep(i, r, a, now);
    i->calm_since = 0;
    if (!i->warned && warn) {
        i->warned = true;
        return STK_IDLE_WARN;
    }
    if (end)
        return STK_IDLE_END;
    if (suspend)
        return STK_IDLE_SUSPEND;
    if (i->warned && !warn) {
        i->warned = false;
        return STK_IDLE_CLEAR;
    }
    return STK_IDLE_NOTHING;
}
