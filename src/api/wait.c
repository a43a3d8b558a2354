/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - long polls: a request that is answered when its job has ended, or when its time is over,
 * with the job as it then is. */
#include <stdlib.h>

#include "api/handlers.h"
#include "api/show.h"

#define WAIT_S 3600u
#define MAX_WAIT_S 86400u

struct stk_wait {
    struct stk_wait *prev, *next;
    struct stk_api *api;
    struct stk_request *req;
    stk_job_number number;
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

static void answer(struct stk_api *a, struct stk_request *r, stk_job_number number)
{
    struct stk_show view = {a, stk_request_who(r), true};
    struct stk_err err = {""};
    int rc;
    json_t *job = stk_show_number(&view, number, &rc, &err);

    if (job)
        stk_request_json(r, 200, job);
    else
        stk_api_fail(r, rc, &err);
}

static void finish(struct stk_wait *w)
{
    struct stk_api *a = w->api;
    struct stk_request *r = w->req;
    stk_job_number number = w->number;

    unlink_wait(w);
    answer(a, r, number);
}

/* A batch has ended when all of its workers have; their numbers follow each other. */
static bool lives(const struct stk_api *a, stk_job_number number)
{
    const struct stk_entry *next;

    if (stk_live_entry(a->cfg.live, number))
        return true;
    next = stk_live_next(a->cfg.live, number);
    return next && next->rec.array == number && next->rec.kind == STK_KIND_BATCH;
}

void stk_wait_turn(struct stk_api *a)
{
    struct stk_wait *next;

    for (struct stk_wait *w = a->waits; w; w = next) {
        next = w->next;
        if (!lives(a, w->number))
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
    struct stk_wait *w;
    stk_job_number number;
    uint64_t timeout_s;

    if (stk_api_job_number(ctx, r, &number) < 0 ||
        stk_request_number(r, "timeout_s", WAIT_S, MAX_WAIT_S, &timeout_s) < 0)
        return;
    w = lives(a, number) && timeout_s > 0 ? calloc(1, sizeof(*w)) : NULL;
    if (!w) {
        answer(a, r, number);
        return;
    }
    *w = (struct stk_wait){.next = a->waits,
                           .api = a,
                           .req = r,
                           .number = number,
                           .until_ms = uv_now(a->cfg.loop) + timeout_s * 1000};
    if (a->waits)
        a->waits->prev = w;
    a->waits = w;
    stk_request_on_gone(r, on_gone, w);
    stk_api_need_tick(a);
}
