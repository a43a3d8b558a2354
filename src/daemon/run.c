/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the daemon's loop.
 *
 * Everything that happens (requests, news from the engine, timers) is collected while the loop
 * polls; before it polls again one turn of the scheduler takes all of it in. So a burst of requests
 * is one transaction. A request that takes long is worked on in slices, between which the loop
 * polls (live/take.c); the turn is over when it is done. A turn that could not be committed is
 * tried again a second later; until then requests are refused as they come.
 *
 * Stopping: no new requests, one last turn, a moment for the answers to be sent. Jobs go on.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/state.h"
#include "daemon/daemon.h"

#define RETRY_MS 1000u
#define LINGER_MS 2000u
#define STATUS_MS 5000u

stk_time stk_daemon_now(void *ctx)
{
    struct stk_daemon *d = ctx;
    struct timespec wall, mono;

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    (void)clock_gettime(CLOCK_BOOTTIME, &mono);
    return stk_clock_read(&d->clock, wall.tv_sec * STK_SECOND + wall.tv_nsec / 1000,
                          mono.tv_sec * STK_SECOND + mono.tv_nsec / 1000);
}

stk_time stk_daemon_ahead(void *ctx)
{
    const struct stk_daemon *d = ctx;

    return d->clock.ahead;
}

stk_time stk_daemon_elapsed(void *ctx)
{
    struct stk_daemon *d = ctx;

    (void)stk_daemon_now(d);
    return d->clock.elapsed;
}

stk_time stk_daemon_behind(void *ctx)
{
    const struct stk_daemon *d = ctx;

    return d->clock.behind;
}

/* Called at the beginning of each turn, so people hear of it when it happens. */
stk_time stk_daemon_skip(void *ctx)
{
    struct stk_daemon *d = ctx;
    const stk_time skipped = stk_clock_skip(&d->clock);

    if (skipped)
        stk_log(STK_LOG_WARN,
                "the clock was set forward by %.1f s; run times do not count it, and for a day "
                "nothing is deleted because of its age that was not too old before",
                (double)skipped / 1e6);
    if (d->clock.set_back)
        stk_log(
            STK_LOG_WARN,
            "the clock was set back by %.1f s: stoker's time is %.1f s ahead of it, and runs 5%% "
            "slower until both agree; times that people named follow the clock",
            (double)d->clock.set_back / 1e6, (double)d->clock.ahead / 1e6);
    d->clock.set_back = 0;
    return skipped;
}

void stk_daemon_clock_raise(void *ctx, stk_time least)
{
    struct stk_daemon *d = ctx;

    (void)stk_daemon_now(d);
    if (least > d->clock.now + STK_SECOND)
        stk_log(
            STK_LOG_WARN,
            "the store's last event is %.1f s ahead of the clock: was the clock wrong then, or is "
            "it now? stoker's time goes on from there, 5%% slower until both agree; times that "
            "people named follow the clock",
            (double)(least - d->clock.wall) / 1e6);
    stk_clock_raise(&d->clock, least);
}

static void on_wake(uv_timer_t *t)
{
    (void)t; /* the turn comes before the next poll */
}

static void on_idle(uv_idle_t *h)
{
    (void)h; /* keeps the loop from sleeping */
}

static void tell_status(struct stk_daemon *d)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));
    uint64_t now = uv_now(&d->loop);
    char text[160];

    if (now - d->status_ms < STATUS_MS && d->status_ms != 0)
        return;
    d->status_ms = now;
    (void)snprintf(text, sizeof(text), "STATUS=%u %sGPUs, %u jobs run, %u wait",
                   d->machine.n_gpus * (d->slurm ? 1 : d->machine.n_nodes), /* of Slurm's: in all */
                   d->machine.is_virtual ? "virtual " : "", s->n_leased, s->n_waiting);
    stk_notify(text);
}

void stk_daemon_try_later(struct stk_daemon *d, const struct stk_err *err)
{
    if (d->retry_ms == 0)
        stk_log(STK_LOG_ERROR, "nothing can be written down: %s", err->text);
    d->trouble = *err;
    stk_api_set_trouble(d->api, err->text);
    d->retry_ms = uv_now(&d->loop) + RETRY_MS;
}

/* Workers that were told to wait for their next item ask again. */
static void wake_workers(struct stk_daemon *d)
{
    for (const struct stk_entry *e = stk_live_next(d->live, 0); e && !d->slurm;
         e = stk_live_next(d->live, e->number))
        if (e->rec.kind == STK_KIND_BATCH)
            stk_local_items_ready(d->engine, e->number);
}

static void turn(struct stk_daemon *d)
{
    struct stk_err err = {""};
    int rc = stk_live_turn(d->live, &err);

    if (rc == 0 && stk_live_is_open(d->live))
        return; /* the loop polls, and it goes on */
    if (d->opt.paranoid && rc == 0 && !stk_core_sound(stk_live_core(d->live), &err))
        rc = -ENOTRECOVERABLE;
    if (rc == -ENOTRECOVERABLE) {
        stk_log(STK_LOG_ERROR, "cannot go on: %s", err.text);
        d->failed = true;
        uv_stop(&d->loop);
        return;
    }
    if (rc < 0) {
        stk_daemon_try_later(d, &err);
    } else if (d->retry_ms != 0) {
        stk_log(STK_LOG_INFO, "writing works again");
        stk_api_set_trouble(d->api, NULL);
        d->retry_ms = 0;
        wake_workers(d);
    }
    if (stk_live_asked_for(d->live))
        wake_workers(d);
    stk_api_after_turn(d->api);
    tell_status(d);
    stk_daemon_forget_after_turn(d);
}

/* When the loop must not sleep longer. */
static void arm(struct stk_daemon *d)
{
    stk_time wake = stk_live_wake(d->live), now = stk_daemon_now(d);
    uint64_t ms = RETRY_MS;

    if (d->foresees || stk_live_is_open(d->live) || d->forget.due ||
        (d->retry_ms == 0 && stk_live_pending(d->live))) {
        (void)uv_idle_start(&d->idle, on_idle);
        return;
    }
    (void)uv_idle_stop(&d->idle);
    if (d->retry_ms == 0 && wake == STK_NEVER_TIME) {
        (void)uv_timer_stop(&d->wake);
        return;
    }
    if (d->retry_ms == 0)
        ms = wake > now ? (uint64_t)(wake - now) / 1000 + 1 : 0;
    (void)uv_timer_start(&d->wake, on_wake, ms < 3600000 ? ms : 3600000, 0);
}

static void on_prepare(uv_prepare_t *h)
{
    struct stk_daemon *d = h->data;

    if (d->retry_ms != 0 && uv_now(&d->loop) < d->retry_ms) {
        stk_live_refuse(d->live, -ENOSPC, &d->trouble);
        arm(d);
        return;
    }
    if (d->retry_ms == 0 && !stk_live_is_open(d->live) && stk_daemon_forget(d)) {
        arm(d); /* as many old rows go as new ones came, before there are more */
        return;
    }
    if (d->retry_ms != 0 || stk_live_pending(d->live))
        turn(d);
    else
        stk_store_idle(d->store); /* what was put off when there were replies to send */
    d->foresees = !d->failed && stk_live_outlook_step(d->live);
    if (!d->failed)
        arm(d);
}

bool stk_daemon_may_write(struct stk_daemon *d)
{
    if (d->retry_ms == 0 && !d->failed && stk_live_pending(d->live))
        turn(d);
    return d->retry_ms == 0 && !d->failed && !stk_live_is_open(d->live);
}

/* ---- stopping ---- */

static void on_linger(uv_timer_t *t)
{
    struct stk_daemon *d = t->data;

    if (stk_http_busy(stk_api_http(d->api)) == 0 || uv_now(&d->loop) >= d->status_ms)
        uv_stop(&d->loop);
}

static void stop(struct stk_daemon *d)
{
    if (d->stopping)
        return;
    d->stopping = true;
    stk_notify("STOPPING=1");
    stk_log(STK_LOG_INFO, "stopping; jobs go on");
    stk_api_stop(d->api);
    if (d->retry_ms == 0 && stk_live_pending(d->live))
        turn(d);
    d->status_ms = uv_now(&d->loop) + LINGER_MS;
    (void)uv_timer_start(&d->linger, on_linger, 10, 10);
}

static void on_signal(uv_signal_t *s, int number)
{
    struct stk_daemon *d = s->data;

    if (number == SIGHUP)
        stk_daemon_reload(d);
    else
        stop(d);
}

/* ---- */

json_t *stk_daemon_policy(const struct stk_config *c)
{
    json_t *params = json_array();

    for (uint32_t i = 0; i < c->policy.n_params; i++)
        (void)json_array_append_new(params, json_string(c->policy.params[i]));
    return json_pack("{s:s*,s:s*,s:s*,s:s*,s:s*,s:o}", "bundle", c->policy.bundle, "order",
                     c->policy.order, "backfill", c->policy.backfill, "place", c->policy.place,
                     "preempt", c->policy.preempt, "params", params);
}

void stk_daemon_live_config(const struct stk_daemon *d, const struct stk_setup *setup,
                            const struct stk_config *c, struct stk_live_config *ret)
{
    ret->core = (struct stk_core_config){.nodes = d->machine.nodes,
                                         .n_nodes = d->machine.n_nodes,
                                         .n_pools = d->machine.n_pools,
                                         .pool_names = d->machine.pools,
                                         .layouts = &d->machine.layout,
                                         .n_layouts = d->machine.nodes[0].layout,
                                         .n_resources = d->machine.n_resources,
                                         .resource_names = d->machine.resources,
                                         .order = setup->order,
                                         .backfill = setup->backfill,
                                         .place = setup->place,
                                         .preempt = setup->preempt,
                                         .admit = setup->admit,
                                         .params = &setup->params,
                                         .sleeps = !d->slurm,
                                         .tenants = c->teams->tenants,
                                         .n_tenants = c->teams->n_tenants,
                                         .queues = c->teams->queues,
                                         .n_queues = c->teams->n_queues,
                                         .retain_done = 10000};
    ret->teams = c->teams;
    ret->policy = setup->name;
    ret->policy_words = d->policy_words;
    ret->rules = d->rules;
    ret->rules_every = d->rules_every_s * STK_SECOND;
    ret->no_mps = d->machine.no_mps[0] ? d->machine.no_mps : NULL;
    ret->predict = c->policy.predict != 0;
    ret->share =
        c->gpus.share == 2 || (c->gpus.share == 0 && !ret->no_mps) ? STK_SHARE_MPS : STK_SHARE_NONE;
    ret->default_cpu_milli = d->slurm ? 0 : (uint32_t)(c->defaults.cpus / 1000);
    ret->limits =
        (struct stk_live_limits){(uint32_t)c->limits.jobs, (uint32_t)c->limits.jobs_per_user,
                                 (uint32_t)c->limits.schedules_per_user};
}

void stk_daemon_cost(struct stk_daemon *d)
{
    const struct stk_config *c = &d->config;

    stk_api_set_cost(d->api,
                     &(struct stk_api_cost){c->cost.gpu_hour, c->cost.kwh, c->cost.currency});
}

void stk_daemon_logins(struct stk_daemon *d)
{
    const struct stk_config *c = &d->config;

    stk_api_set_logins(d->api, &(struct stk_api_logins){c->sessions.idle_s, c->sessions.age_s,
                                                        c->limits.tokens_per_user,
                                                        c->limits.sessions_per_user});
}

void stk_daemon_turns(const struct stk_config *c, uint32_t *ret_quantum_ms,
                      uint32_t *ret_switch_pct)
{
    uint64_t ms = c->gpus.quantum_s * 1000;

    /* 0 is for the engine: as it likes */
    *ret_quantum_ms = ms == 0 ? 1 : ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
    *ret_switch_pct = c->gpus.switch_pct == 0 ? 1 : (uint32_t)c->gpus.switch_pct;
}

static void watch_signal(struct stk_daemon *d, uv_signal_t *s, int number)
{
    (void)uv_signal_init(&d->loop, s);
    s->data = d;
    (void)uv_signal_start(s, on_signal, number);
}

static void close_all(struct stk_daemon *d)
{
    uv_handle_t *const handles[] = {(uv_handle_t *)&d->prepare, (uv_handle_t *)&d->idle,
                                    (uv_handle_t *)&d->wake,    (uv_handle_t *)&d->forget.timer,
                                    (uv_handle_t *)&d->linger,  (uv_handle_t *)&d->on_term,
                                    (uv_handle_t *)&d->on_int,  (uv_handle_t *)&d->on_hup};

    for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++)
        uv_close(handles[i], NULL);
}

void stk_daemon_prepare(struct stk_daemon *d)
{
    (void)uv_prepare_init(&d->loop, &d->prepare);
    (void)uv_idle_init(&d->loop, &d->idle);
    (void)uv_timer_init(&d->loop, &d->wake);
    (void)uv_timer_init(&d->loop, &d->linger);
    d->prepare.data = d->linger.data = d;
    (void)uv_prepare_start(&d->prepare, on_prepare);
    stk_daemon_forget_init(d);
    watch_signal(d, &d->on_term, SIGTERM);
    watch_signal(d, &d->on_int, SIGINT);
    watch_signal(d, &d->on_hup, SIGHUP);
}

int stk_daemon_run(struct stk_daemon *d, struct stk_err *err)
{
    stk_notify("READY=1");
    (void)uv_run(&d->loop, UV_RUN_DEFAULT);
    close_all(d);
    return d->failed ? stk_err_set(err, -EIO, "stopped for the reason above") : 0;
}
