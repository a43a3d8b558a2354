/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - long polls: a request that is answered when its job has ended, when it is no longer in
 * the state that was named, or when its time is over, with the job as it then is.
 *
 * The number of an array means all of it: one of its jobs speaks for it, the first that has not
 * ended, and when all have, the one that ended worst. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"
#include "core/state.h"

#define WAIT_S 3600u
#define MAX_WAIT_S 86400u

struct stk_wait {
    struct stk_wait *prev, *next;
    struct stk_api *api;
    struct stk_request *req;
    stk_job_number number;
    bool one;       /* an element of an array was named, not the array */
    char state[16]; /* answered when it is in another one; "": at its end */
    uint64_t until_ms;
};

static void unlink_wait(struct stk_wait *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        w->api->waits = w->next;
    if (w->next)
        w->next->prev = w->prev;
    free(w);
}

static void on_gone(void *ctx, struct stk_request *r)
{
    (void)r;
    unlink_wait(ctx);
}

/* The first job that has not ended of what is waited for; NULL: there is none. */
static const struct stk_entry *living(const struct stk_wait *w)
{
    const struct stk_entry *e = stk_live_entry(w->api->cfg.live, w->number);

    if (e || w->one)
        return e;
    e = stk_live_next(w->api->cfg.live, w->number);
    return e && e->rec.array == w->number ? e : NULL;
}

struct worst {
    stk_job_number number;
    int code;
};

/* How badly it ended: well, with a code, by a signal, or in a way that has none of these. */
static int see_end(void *ctx, const struct stk_record *rec)
{
    struct worst *w = ctx;
    int code = rec->cause == STK_CAUSE_OK       ? 0
               : rec->cause == STK_CAUSE_FAILED ? rec->code & 255
               : rec->cause == STK_CAUSE_SIGNAL ? 128 + (rec->code & 127)
                                                : 256;

    if (code > w->code)
        *w = (struct worst){rec->number, code};
    return 0;
}

static void answer(struct stk_wait *w)
{
    struct stk_show view = {.api = w->api, .who = stk_request_who(w->req), .detail = true};
    const struct stk_entry *e = living(w);
    struct worst worst = {e ? e->number : w->number, 0};
    struct stk_err err = {""};
    struct stk_writer job = {0};
    int rc;

    if (!e && !w->one)
        (void)stk_store_array(stk_live_store(w->api->cfg.live), w->number, see_end, &worst, NULL);
    rc = stk_show_number(&view, &job, worst.number, &err);
    if (rc == 0)
        stk_request_written(w->req, &job);
    else
        stk_api_fail(w->req, rc, &err);
    stk_writer_done(&job);
}

static void finish(struct stk_wait *w)
{
    struct stk_wait copy = *w;

    unlink_wait(w);
    answer(&copy);
}

static bool over(const struct stk_wait *w)
{
    const struct stk_entry *e = living(w);
    const struct stk_core *core = stk_live_core(w->api->cfg.live);
    uint32_t slot = e && w->state[0] ? stk_core_find(core, e->number) : STK_NONE;

    if (!e || slot == STK_NONE)
        return !e;
    return strcmp(w->state, stk_show_state(&stk_core_state(core)->jobs[slot])) != 0;
}

void stk_wait_turn(struct stk_api *a)
{
    struct stk_wait *next;

    for (struct stk_wait *w = a->waits; w; w = next) {
        next = w->next;
        if (over(w))
            finish(w);
    }
}

void stk_wait_tick(struct stk_api *a)
{
    uint64_t now = uv_now(a->cfg.loop);
    struct stk_wait *next;

    for (struct stk_wait *w = a->waits; w; w = next) {
        next = w->next;
        if (w->until_ms <= now)
            finish(w);
    }
}

void stk_do_wait(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const char *state = stk_request_query(r, "while");
    struct stk_wait *w, asked = {.api = a, .req = r, .one = strchr(stk_request_path(r, "id"), '_')};
    uint64_t timeout_s;

    if (stk_api_job_number(ctx, r, &asked.number) < 0 ||
        stk_request_number(r, "timeout_s", WAIT_S, MAX_WAIT_S, &timeout_s) < 0)
        return;
    if (state && !stk_show_is_state(state) && strcmp(state, "done") != 0) {
        stk_request_error(r, 400, NULL, "while must be a state of a job, got \"%.40s\"", state);
        return;
    }
    (void)snprintf(asked.state, sizeof(asked.state), "%s", state ? state : "");
    w = timeout_s > 0 && !over(&asked) ? malloc(sizeof(*w)) : NULL;
    if (!w) {
        answer(&asked);
        return;
    }
    *w = asked;
    w->next = a->waits;
    w->until_ms = uv_now(a->cfg.loop) + timeout_s * 1000;
    if (a->waits)
        a->waits->prev = w;
    a->waits = w;
    stk_request_on_gone(r, on_gone, w);
    stk_api_need_tick(a);
}
