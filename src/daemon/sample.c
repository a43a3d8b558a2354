/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - measurements over time. Every step (series.step, 10 s) everything is looked at once;
 * every minute what was seen is written in one transaction, and what is too old is forgotten. While
 * the disk is full, what cannot be written is lost: the daemon's memory does not grow. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "daemon/sample.h"
#include "sys/big.h"

#define LATE_MS 50u    /* after the step's end, so that a timer that is early does not matter */
#define AGAIN_MS 1000u /* nothing can be written now */

static void arm(struct stk_sampler *w);

static int write_usage(struct stk_sampler *w, struct stk_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < w->n && rc == 0; i++)
        if (w->list[i].usage.seen_s > 0)
            rc = stk_store_usage_add(w->d->store, w->list[i].number, &w->list[i].usage, err);
    return rc;
}

static int prune(const struct stk_sampler *w, stk_time now, struct stk_err *err)
{
    stk_time age[STK_SERIES_TIERS];
    int rc = 0;

    stk_series_keep(w->series, w->d->config.series.bytes, age);
    for (uint32_t t = 0; t < STK_SERIES_TIERS && rc >= 0; t++)
        rc = stk_store_series_prune(w->d->store, t, now - age[t], err);
    return rc < 0 ? rc : 0;
}

static int write_all(struct stk_sampler *w, stk_time now, struct stk_err *err)
{
    struct stk_store *st = w->d->store;
    int rc = stk_store_begin(st, err);

    if (rc < 0)
        return rc;
    rc = stk_series_flush(w->series, st, now, err);
    rc = rc < 0 ? rc : write_usage(w, err);
    rc = rc < 0 ? rc : prune(w, stk_live_age_now(w->d->live), err);
    rc = rc < 0 ? rc : stk_store_commit(st, err);
    if (rc < 0)
        stk_store_rollback(st);
    return rc;
}

static void flush(struct stk_sampler *w, stk_time now)
{
    struct stk_err err = {""};

    if (write_all(w, now, &err) < 0) {
        stk_log(STK_LOG_WARN, "measurements of the last minute are lost: %s", err.text);
        return;
    }
    stk_series_written(w->series);
    for (uint32_t i = 0; i < w->n; i++)
        w->list[i].usage = (struct stk_usage){0};
}

static void on_again(uv_timer_t *t)
{
    struct stk_sampler *w = t->data;
    stk_time now = stk_daemon_now(w->d);

    if (!stk_series_due(w->series, now))
        return;
    if (stk_daemon_may_write(w->d))
        flush(w, now);
    else
        (void)uv_timer_start(t, on_again, AGAIN_MS, 0);
}

/* The time has jumped since the last look: what was noted was as long ago as it really was. */
static void skip(struct stk_sampler *w, stk_time by)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->list[i].idle_since > 0)
            w->list[i].idle_since += by;
    stk_watchman_skip(w->d->watchman, by);
}

/* How much has passed since the last look, whatever was done to the machine's clock; microseconds.
 */
static stk_time since_last(struct stk_sampler *w, stk_time now)
{
    const stk_time by = stk_daemon_elapsed(w->d);
    const stk_time passed = w->looked ? by - w->looked_by : 0;

    if (w->looked && now - w->looked > passed + STK_SECOND)
        skip(w, now - w->looked - passed);
    w->looked = now;
    w->looked_by = by;
    return passed;
}

static void on_timer(uv_timer_t *t)
{
    struct stk_sampler *w = t->data;
    stk_time now = stk_daemon_now(w->d), step = stk_series_step(w->series);
    double dt;

    arm(w);
    if (!stk_live_core(w->d->live))
        return; /* the daemon is about to stop */
    dt = (double)since_last(w, now) / 1e6;
    stk_sample_jobs(w, dt);
    stk_sample_put_jobs(w, dt);
    stk_sample_put_gpus(w);
    stk_sample_put_tenants(w);
    stk_sample_put_cluster(w);
    stk_sample_count(w);
    stk_series_close(w->series, now - now % step - step);
    stk_watchman_look(w->d->watchman, w, now);
    on_again(&w->again);
}

static void arm(struct stk_sampler *w)
{
    stk_time now = stk_daemon_now(w->d), step = stk_series_step(w->series);
    stk_time next = now - now % step + step;

    (void)uv_timer_start(&w->timer, on_timer, (uint64_t)(next - now) / 1000 + LATE_MS, 0);
}

static void catch_up(struct stk_sampler *w)
{
    struct stk_err err = {""};
    int rc = stk_store_begin(w->d->store, &err);

    rc = rc < 0 ? rc : stk_series_catch_up(w->d->store, stk_daemon_now(w->d), &err);
    rc = rc < 0 ? rc : stk_store_commit(w->d->store, &err);
    if (rc == 0)
        return;
    stk_store_rollback(w->d->store);
    stk_log(STK_LOG_WARN, "measurements: %s", err.text);
}

int stk_sampler_nodes(struct stk_sampler *w, uint32_t n)
{
    void *more = realloc(w->gpus, (size_t)n * STK_MAX_NODE_GPUS * sizeof(*w->gpus));

    if (!more)
        return -ENOMEM;
    w->gpus = more;
    memset(w->gpus, 0, (size_t)n * STK_MAX_NODE_GPUS * sizeof(*w->gpus));
    return 0;
}

int stk_sampler_new(struct stk_daemon *d, struct stk_sampler **ret, struct stk_err *err)
{
    struct stk_sampler *w = calloc(1, sizeof(*w));
    stk_time step = (stk_time)d->config.series.step_s * STK_SECOND;
    int rc = 0;

    if (!w)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = stk_series_new(step, &w->series, err);
    if (rc == 0) {
        rc = stk_sampler_nodes(w, stk_core_state(stk_live_core(d->live))->n_nodes);
        rc = rc < 0 ? stk_err_set(err, rc, "out of memory") : 0;
    }
    if (rc < 0) {
        stk_series_free(w->series);
        free(w);
        return rc;
    }
    w->d = d;
    w->mem = stk_big_mem;
    (void)uv_timer_init(&d->loop, &w->timer);
    (void)uv_timer_init(&d->loop, &w->again);
    w->timer.data = w->again.data = w;
    catch_up(w);
    stk_sample_count(w);
    arm(w);
    *ret = w;
    return 0;
}

struct stk_series *stk_sampler_series(struct stk_sampler *w)
{
    return w->series;
}

void stk_sampler_usage(void *ctx, stk_job_number number, struct stk_usage *u)
{
    const struct stk_daemon *d = ctx;
    uint32_t at = d->sampler ? stk_map_get(&d->sampler->by_number, number) : UINT32_MAX;

    if (at != UINT32_MAX)
        stk_usage_add(u, &d->sampler->list[at].usage);
}

static void on_closed(uv_handle_t *h)
{
    struct stk_sampler *w = h->data;

    stk_map_done(&w->by_number, &w->mem);
    stk_mem_drop(&w->mem, &w->list, &w->cap, sizeof(*w->list));
    stk_series_free(w->series);
    free(w->seen.tenant);
    free(w->gpus);
    free(w);
}

/* Both timers lie in the sampler, which goes with the last: one after the other. */
static void on_again_closed(uv_handle_t *h)
{
    struct stk_sampler *w = h->data;

    uv_close((uv_handle_t *)&w->timer, on_closed);
}

void stk_sampler_free(struct stk_sampler *w)
{
    if (!w)
        return;
    if (w->d->retry_ms == 0 && !stk_live_pending(w->d->live))
        flush(w, stk_daemon_now(w->d)); /* what there is of this minute */
    (void)uv_timer_stop(&w->timer);
    uv_close((uv_handle_t *)&w->again, on_again_closed);
}
