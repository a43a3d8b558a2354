/* SPDX-License-Identifier: Apache-2.0 */
/* items.c - the items of a batch, for those who may see its command line. */
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"

static const char *const states[STK_ITEM_STATE_MAX] = {"todo", "given", "done", "failed"};

struct page {
    json_t *list;
    uint32_t limit;
    json_int_t next; /* -1: this is the last */
};

static int add(void *ctx, const struct stk_item *it)
{
    struct page *p = ctx;
    json_t *text = json_string(it->text);

    if (json_array_size(p->list) == p->limit) {
        json_decref(text);
        p->next = (json_int_t)it->index - 1;
        return 1;
    }
    (void)json_array_append_new(
        p->list, json_pack("{s:I,s:o,s:s,s:o,s:I,s:o,s:o,s:o}", "index", (json_int_t)it->index,
                           "text", text ? text : json_string("?"), "state",
                           (unsigned)it->state < STK_ITEM_STATE_MAX ? states[it->state] : "?",
                           "code", it->ended > 0 ? json_integer(it->code) : json_null(), "attempts",
                           (json_int_t)it->attempts, "worker",
                           it->worker >= 0 ? json_integer(it->worker) : json_null(), "given",
                           stk_show_time(it->given), "ended", stk_show_time(it->ended)));
    return 0;
}

static void answer(struct stk_api *a, struct stk_request *r, const struct stk_record *rec,
                   const struct stk_item_query *q, uint32_t limit)
{
    json_t *counts = stk_show_items(a->cfg.live, rec);
    struct page p = {.limit = limit, .next = -1};
    struct stk_err err = {""};
    int rc;

    if (!counts) {
        stk_request_error(r, 404, NULL, "job %u has no items", rec->number);
        return;
    }
    p.list = json_array();
    rc = stk_store_items(stk_live_store(a->cfg.live), q, add, &p, &err);
    if (rc < 0) {
        json_decref(counts);
        json_decref(p.list);
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200,
                     json_pack("{s:I,s:o,s:o,s:o}", "batch", (json_int_t)q->job, "counts", counts,
                               "items", p.list, "next",
                               p.next >= 0 ? json_integer(p.next) : json_null()));
}

struct asked {
    struct stk_api *api;
    struct stk_request *req;
    struct stk_item_query q;
    uint32_t limit;
    bool done;
};

static int on_record(void *ctx, const struct stk_record *rec)
{
    struct asked *k = ctx;

    k->done = true;
    k->q.job = stk_live_batch(rec);
    if (!stk_live_may(stk_request_who(k->req), rec->uid))
        stk_request_error(k->req, 403, NULL, "job %u belongs to %s", rec->number, rec->user);
    else
        answer(k->api, k->req, rec, &k->q, k->limit);
    return 1;
}

static int read_state(struct stk_request *r, enum stk_item_state *ret)
{
    const char *word = stk_request_query(r, "state");

    *ret = STK_ITEM_STATE_MAX;
    if (!word)
        return 0;
    for (int i = 0; i < STK_ITEM_STATE_MAX; i++)
        if (strcmp(states[i], word) == 0) {
            *ret = (enum stk_item_state)i;
            return 0;
        }
    stk_request_error(r, 400, NULL, "state must be todo, given, done or failed, got \"%.40s\"",
                      word);
    return -EINVAL;
}

void stk_do_items(void *ctx, struct stk_request *r)
{
    struct asked k = {.api = ctx, .req = r};
    const struct stk_entry *e;
    struct stk_err err = {""};
    stk_job_number number;
    uint64_t after = 0;
    int rc;

    if (stk_api_job_number(ctx, r, &number) < 0 || read_state(r, &k.q.state) < 0 ||
        stk_api_limit(r, &k.limit) < 0 ||
        stk_request_number(r, "after", UINT32_MAX, UINT32_MAX - 1, &after) < 0)
        return;
    k.q.from = after == UINT32_MAX ? 0 : (uint32_t)after + 1;
    e = stk_live_entry(k.api->cfg.live, number);
    if (e) {
        (void)on_record(&k, &e->rec);
        return;
    }
    rc = stk_store_job_get(stk_live_store(k.api->cfg.live), number, on_record, &k, &err);
    if (!k.done)
        stk_api_fail(r, rc < 0 ? rc : -ENOENT, &err);
}
