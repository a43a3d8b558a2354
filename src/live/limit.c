/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - how long a job that has started may run is changed.
 *
 * Shorter: its user may, but not below what it has run: that would end it, and there are other
 * words for that. Longer: its user may as far as nobody who was promised a start, and no
 * reservation, has to wait for it (core/delay.h), and as far as the engine lets its own users;
 * operators may in any case. What the engine says is so already, whoever did it there. */
#include "base/span.h"
#include "core/delay.h"
#include "core/state.h"
#include "live/state.h"

/* How long its processes have run; of ones that slept and were started anew before, at least. */
static stk_time ran(const struct stk_job *j, stk_time now)
{
    return j->restarts == 0 ? stk_job_served(j, now) : j->lease ? now - j->started : 0;
}

static int refuse_delay(struct stk_live *l, const struct stk_delay *d, struct stk_err *err)
{
    const char *name = d->booking ? stk_live_reservation_name(l, d->booking) : NULL;
    char at[64];

    stk_live_say_time(d->at, at, sizeof(at));
    if (d->number)
        return stk_err_set(err, -EPROTO,
                           "time_limit_s: job %u is promised a start at %s and would have to wait "
                           "for this one; a shorter time may do, or ask an operator",
                           d->number, at);
    return stk_err_set(err, -EPROTO,
                       "time_limit_s: GPUs are reserved from %s on%s%.60s, and this job would have "
                       "some of them; a shorter time may do, or ask an operator",
                       at, name ? ", for " : "", name ? name : "");
}

int stk_live_limit_allowed(const struct stk_live *l, const struct stk_who *who,
                           const struct stk_live_last *ask, struct stk_err *err)
{
    if (!l->cfg.may_last || who->uid == STK_NOBODY || who->role >= STK_ROLE_OPERATOR)
        return 0;
    return l->cfg.may_last(l->cfg.ctx, ask, err);
}

/* 'was' and 'is': time limits, 0: none. */
int stk_live_limit_check(struct stk_live *l, const struct stk_live_request *r, uint32_t slot,
                         stk_time was, stk_time is, struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];
    const bool has_gpus = j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
    struct stk_delay d;
    char text[32];
    int rc;

    if (r->who.uid == STK_NOBODY)
        return 0;
    if (is > 0 && is <= ran(j, l->now)) {
        (void)stk_span(ran(j, l->now) / STK_SECOND, text, sizeof(text));
        return stk_err_set(err, -EINVAL,
                           "time_limit_s: it has run for %s already; to end it now: stoker cancel "
                           "%u",
                           text, j->number);
    }
    if (r->who.role >= STK_ROLE_OPERATOR || !has_gpus || was == 0 || (is > 0 && is <= was))
        return 0;
    rc = stk_core_delays(
        l->core, l->now,
        &(struct stk_longer){{slot}, .was = was, .longest = is > 0 ? is : STK_MAX_DURATION}, &d,
        err);
    return rc < 0 ? rc : d.number || d.booking ? refuse_delay(l, &d, err) : 0;
}

/* A guess stays what it has become, within the new limit. */
stk_time stk_live_limit_estimate(const struct stk_job *j, const struct stk_job_spec *spec)
{
    stk_time t = spec->estimate;

    if (spec->terms.limit == 0)
        return t;
    t = j->estimate > t ? j->estimate : t;
    return t < spec->terms.limit ? t : spec->terms.limit;
}
