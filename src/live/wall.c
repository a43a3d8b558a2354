/* SPDX-License-Identifier: Apache-2.0 */
/* wall.c - what people named by the wall clock, while the scheduler's time is ahead of it.
 *
 * Schedules, rules and reservations that repeat are the daemon's: it looks at the wall clock for
 * them. Begin, deadline and windows are in the core, in the scheduler's time; when that is ahead by
 * more or less than the core knows, an event says so, and moves them (core/named.h). The scheduler
 * works off what it is ahead, so they would come late by and by: the event comes before the next of
 * them is late by more than SLACK, and before all are off by FAR. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"
#include "core/skipped.h"
#include "core/state.h"
#include "live/state.h"
#include "sys/procs.h"

#define SLACK STK_SECOND
#define FAR (60 * STK_SECOND)
#define META "clock"
#define DOUBT_META "skipped"

stk_time stk_live_ahead(const struct stk_live *l)
{
    return l->cfg.ahead ? l->cfg.ahead(l->cfg.ctx) : 0;
}

stk_time stk_live_wall(const struct stk_live *l)
{
    return l->cfg.clock(l->cfg.ctx) - stk_live_ahead(l);
}

stk_time stk_live_due_at(const struct stk_live *l, stk_time wall)
{
    return wall >= STK_NEVER_TIME ? STK_NEVER_TIME : wall + stk_live_ahead(l);
}

stk_time stk_live_named(const struct stk_live *l, stk_time wall)
{
    return wall + stk_settings_ahead(stk_core_state(l->core));
}

stk_time stk_live_unnamed(const struct stk_live *l, stk_time named)
{
    return named - stk_settings_ahead(stk_core_state(l->core));
}

/* By how much named times come late; below 0: early. */
static stk_time late_by(const struct stk_live *l)
{
    return stk_settings_ahead(stk_core_state(l->core)) - stk_live_ahead(l);
}

stk_time stk_live_core_wake(const struct stk_live *l)
{
    const stk_time late = late_by(l);

    return stk_core_wake(l->core, l->now) - (late > SLACK ? late : 0);
}

bool stk_live_clock_moved(const struct stk_live *l)
{
    const stk_time late = late_by(l);

    return late < -SLACK || late > FAR ||
           (late > SLACK && stk_live_core_wake(l) <= l->cfg.clock(l->cfg.ctx));
}

bool stk_live_behind(const struct stk_live *l)
{
    return l->skipped > 0 || (l->cfg.behind && l->cfg.behind(l->cfg.ctx) > 0);
}

/* What the engine has reported was before the jump: it is taken in first. */
void stk_live_jump(struct stk_live *l)
{
    (void)l->cfg.clock(l->cfg.ctx);
    if (l->cfg.skip && l->loop && !l->open && !stk_loop_pending(l->loop))
        l->skipped += l->cfg.skip(l->cfg.ctx);
}

static void skip_entry(struct stk_entry *e, stk_time by, stk_time now)
{
    struct stk_record *r = &e->rec;

    r->submitted = stk_skipped(r->submitted, by, now);
    r->first_started = stk_skipped(r->first_started, by, now);
    r->started = stk_skipped(r->started, by, now);
    r->lease.from = stk_skipped(r->lease.from, by, now);
    r->lease.to = stk_skipped(r->lease.to, by, now);
    e->wait_since = stk_skipped(e->wait_since, by, now);
    e->queued = stk_skipped(e->queued, by, now);
}

static int keep_doubt(struct stk_live *l, struct stk_err *err)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "[%lld,%lld]", (long long)l->doubt.by,
                   (long long)l->doubt.since);
    return stk_store_meta_set(l->cfg.store, DOUBT_META, text, strlen(text), err);
}

/* If that cannot be written down, the next daemon does not know of it. */
static void doubt_start(struct stk_live *l, stk_time by)
{
    struct stk_err err;

    stk_doubt_add(&l->doubt, by, l->now);
    if (l->cfg.log)
        l->cfg.log(l->cfg.ctx, "the store's last event is more than a day ago: is the clock right? "
                               "For a day nothing is deleted because of its age that was not too "
                               "old then");
    if (stk_store_begin(l->cfg.store, &err) < 0)
        return;
    if (keep_doubt(l, &err) < 0 || stk_store_commit(l->cfg.store, &err) < 0)
        stk_store_rollback(l->cfg.store);
}

void stk_live_doubt_load(struct stk_live *l)
{
    const stk_time last = stk_core_state(l->core)->now;
    json_int_t by = 0, since = 0;
    char *text = NULL;
    json_t *kept = NULL;
    size_t len;

    l->doubt = (struct stk_doubt){0};
    if (stk_store_meta_get(l->cfg.store, DOUBT_META, &text, &len, NULL) == 0)
        kept = json_loadb(text, len, 0, NULL);
    if (kept && json_unpack(kept, "[I,I]", &by, &since) == 0)
        l->doubt = (struct stk_doubt){by, since};
    json_decref(kept);
    free(text);
    if (last > 0 && l->now - last > STK_DOUBT)
        doubt_start(l, l->now - last);
}

stk_time stk_live_age_now(const struct stk_live *l)
{
    return stk_doubt_now(&l->doubt, l->cfg.clock(l->cfg.ctx)) - stk_live_ahead(l);
}

int stk_live_skip(struct stk_live *l, struct stk_err *err)
{
    const stk_time by = l->skipped;
    const struct stk_set set = {.kind = STK_SET_SKIP, .value = by};
    const struct stk_event ev = {.at = l->now, .type = STK_EV_SET, .u.set = &set};
    int rc = stk_loop_apply(l->loop, &ev, err);

    rc = rc < 0 ? rc : stk_live_begin(l, err);
    rc = rc < 0 ? rc : stk_store_jobs_skip(l->cfg.store, by, l->now, err);
    if (rc < 0)
        return rc;
    for (struct stk_entry *e = stk_entries_next(&l->entries, 0); e;
         e = stk_entries_next(&l->entries, e->number))
        skip_entry(e, by, l->now);
    for (uint32_t i = 0; i < l->n_waiting; i++) {
        l->waiting[i].until += by;
        l->waiting[i].ev.u.exit.ended = stk_skipped(l->waiting[i].ev.u.exit.ended, by, l->now);
    }
    l->counts.since = stk_skipped(l->counts.since, by, l->now);
    stk_doubt_add(&l->doubt, by, l->now);
    rc = keep_doubt(l, err);
    if (rc < 0)
        return rc;
    l->skipping += by;
    l->skipped = 0;
    return 0;
}

/* While the time is ahead, how much of it passes without a daemon the wall clock cannot tell. */
static int keep_elapsed(struct stk_live *l, struct stk_err *err)
{
    char text[128], boot[STK_BOOT_ID_LEN];
    int rc;

    if (!l->cfg.elapsed || stk_boot_id(boot) < 0)
        return 0;
    (void)snprintf(text, sizeof(text), "[\"%s\",%lld,%lld]", boot,
                   (long long)l->cfg.elapsed(l->cfg.ctx), (long long)l->now);
    rc = stk_live_begin(l, err);
    return rc < 0 ? rc : stk_store_meta_set(l->cfg.store, META, text, strlen(text), err);
}

stk_time stk_live_clock_least(struct stk_live *l)
{
    const stk_time last = stk_core_state(l->core)->now;
    char *text = NULL, boot[STK_BOOT_ID_LEN];
    const char *was = NULL;
    json_int_t elapsed = 0, then = 0;
    stk_time least = last;
    json_t *kept = NULL;
    size_t len;

    if (l->cfg.elapsed && stk_store_meta_get(l->cfg.store, META, &text, &len, NULL) == 0)
        kept = json_loadb(text, len, 0, NULL);
    if (kept && json_unpack(kept, "[s,I,I]", &was, &elapsed, &then) == 0 &&
        stk_boot_id(boot) == 0 && strcmp(was, boot) == 0 && l->cfg.elapsed(l->cfg.ctx) > elapsed)
        least = then + (l->cfg.elapsed(l->cfg.ctx) - elapsed) / 20 * 19; /* it may have run slow */
    json_decref(kept);
    free(text);
    return least > last ? least : last;
}

int stk_live_clock_follow(struct stk_live *l, struct stk_err *err)
{
    const stk_time ahead = stk_live_ahead(l);
    const bool set_back = late_by(l) < -SLACK;
    const struct stk_set set = {
        .kind = STK_SET_CLOCK, .value = ahead > SLACK ? ahead : 0, .clear = ahead <= SLACK};
    const struct stk_event ev = {.at = l->now, .type = STK_EV_SET, .u.set = &set};
    int rc = stk_loop_apply(l->loop, &ev, err);

    rc = rc < 0 ? rc : keep_elapsed(l, err);
    if (rc < 0 || !set_back)
        return rc;
    stk_live_cron_set_back(l);
    stk_live_rules_set_back(l);
    return stk_live_reserve_set_back(l, err);
}
