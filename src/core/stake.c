/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stake.h"

#include "core/shape.h"

#define MOST (INT64_C(2592000) * STK_SECOND) /* what is more is as bad */

enum stk_leave stk_stake_leave(const struct stk_state *s, const struct stk_job *j)
{
    enum stk_leave how = (enum stk_leave)s->stake_rule.leave[j->tier];

    if (how == STK_LEAVE_SUSPEND && (j->n_pieces != 1 || s->terms[j - s->jobs].no_sleep))
        how = STK_LEAVE_SIGNAL;
    return how;
}

static stk_time by_size(const struct stk_by_size *b, uint32_t gpus)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (b->upto[i] < 0 || gpus <= b->upto[i])
            return b->us[i];
    return b->n > 0 ? b->us[b->n - 1] : 0;
}

/* Work that would be done again. */
static stk_time unsaved(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    stk_time saved = s->stakes[j - s->jobs].saved;

    if (saved == 0)
        return s->stake_rule.unreported;
    return now - (saved > j->started ? saved : j->started);
}

/* By how much it would end later if it gave way and came back at once. */
static stk_time later(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const enum stk_leave how = stk_stake_leave(s, j);

    if (how == STK_LEAVE_SUSPEND && s->stake_rule.sleeps &&
        s->shapes[j->shape].demand.share != STK_SHARE_MPS)
        return by_size(&s->stake_rule.suspend, j->gpus);
    if (how != STK_LEAVE_KILL && s->terms[j - s->jobs].signals)
        return by_size(&s->stake_rule.restart, j->gpus);
    return by_size(&s->stake_rule.restart, j->gpus) + unsaved(s, j, now);
}

int64_t stk_stake_units(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    int64_t size = (int64_t)j->gpus * stk_demand_asked_milli(d);
    stk_time t = later(s, j, now);

    t = t > MOST ? MOST : t;
    t = t < STK_SECOND ? STK_SECOND : t;
    return (size ? size : 1) * (t / STK_SECOND);
}

bool stk_stake_in_time(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const stk_time deadline = s->terms[j - s->jobs].deadline;

    return deadline && j->tier > STK_TIER_BEST_EFFORT && j->estimate > 0 && j->expected_end > now &&
           j->expected_end <= deadline &&
           deadline - j->expected_end < later(s, j, now) + s->stake_rule.spare;
}

stk_time stk_stake_until(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const struct stk_stake *k = &s->stakes[j - s->jobs];
    stk_time least, until;

    if (!s->min_runs && !s->stake_rule.min_run && !s->stake_rule.per_day)
        return 0;
    least = s->terms[j - s->jobs].min_run;
    least = least ? least : s->stake_rule.min_run;
    until = least ? j->started + least : 0;
    if (s->stake_rule.per_day && k->times >= s->stake_rule.per_day && k->day + STK_DAY > until)
        until = k->day + STK_DAY;
    if (j->expected_end > until && stk_stake_in_time(s, j, now))
        until = j->expected_end;
    return until;
}

void stk_stake_spared(struct stk_state *s, uint32_t pool, stk_time until)
{
    if (until < s->pools[pool].protect_at)
        s->pools[pool].protect_at = until;
    if (until < s->protect_at)
        s->protect_at = until;
}

void stk_stake_look_again(struct stk_state *s, stk_time now)
{
    if (now < s->protect_at)
        return;
    s->protect_at = STK_NEVER_TIME;
    s->leave_look |= s->n_leaving > 0;
    for (uint32_t i = 0; i < s->n_pools; i++) {
        struct stk_pool *p = &s->pools[i];

        if (p->protect_at <= now) {
            p->protect_at = STK_NEVER_TIME;
            stk_shape_retry(s, i);
        }
        s->protect_at = p->protect_at < s->protect_at ? p->protect_at : s->protect_at;
    }
}

void stk_stake_count(struct stk_state *s, const struct stk_job *j)
{
    struct stk_stake *k = &s->stakes[j - s->jobs];

    if (k->times == 0 || s->now - k->day >= STK_DAY)
        *k = (struct stk_stake){.saved = k->saved, .day = s->now};
    k->times++;
}

/* ---- saved ---- */

void stk_stake_put(struct stk_bytes *b, const struct stk_stake *k)
{
    const bool any = k->saved || k->times || k->kill;

    stk_put_u(b, any);
    if (!any)
        return;
    stk_put_s(b, k->saved);
    stk_put_s(b, k->day);
    stk_put_u(b, k->times);
    stk_put_u(b, k->kill);
}

void stk_stake_get(struct stk_reader *r, struct stk_stake *ret, uint64_t version)
{
    *ret = (struct stk_stake){0};
    if (version < 5 || !stk_get_bool(r))
        return;
    ret->saved = stk_get_i(r, 0, STK_MAX_DURATION);
    ret->day = stk_get_i(r, 0, STK_MAX_DURATION);
    ret->times = stk_get_u32(r);
    ret->kill = stk_get_bool(r);
}
