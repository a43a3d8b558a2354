/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - jobs that have ended, the latest first. */
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/listing.h"

struct page {
    struct stk_listing list;
    struct stk_history_query query;
    bool due; /* others are to be served before the next row */
};

static int add(void *ctx, const struct stk_record *rec)
{
    struct page *p = ctx;

    stk_show_record(&p->list.view, stk_listing_row(&p->list), rec);
    p->list.last = rec->number;
    p->list.more = stk_listing_full(&p->list);
    p->due = !p->list.more && stk_listing_due(&p->list);
    return p->list.more || p->due;
}

static int add_ended(struct stk_listing *l, struct stk_err *err)
{
    struct page *p = (struct page *)l;
    int rc;

    p->due = false;
    p->query.before = l->last;
    p->query.limit = l->limit - l->n;
    rc = stk_store_history(stk_live_store(l->view.api->cfg.live), &p->query, add, p, err);
    return rc < 0 ? rc : p->due;
}

static int read_states(struct stk_request *r, uint32_t *ret)
{
    const char *word = stk_request_query(r, "state");
    enum stk_cause c;

    *ret = 0;
    if (!word || strcmp(word, "done") == 0)
        return 0;
    c = stk_show_cause_of(word);
    if (c == STK_CAUSE_NONE) {
        stk_request_error(
            r, 400, NULL,
            "state must be completed, failed, killed, out_of_memory, timeout, "
            "node_lost, gpu_error, not_started, evicted, cancelled, dependency_failed or lost, "
            "got \"%.40s\"; jobs that have not ended are under /v1/jobs",
            word);
        return -EINVAL;
    }
    *ret = 1u << c;
    return 0;
}

void stk_do_history(void *ctx, struct stk_request *r)
{
    const struct stk_who *who = stk_request_who(r);
    struct stk_history_query q = {.user = stk_request_query(r, "user"),
                                  .name = stk_request_query(r, "name"),
                                  .queue = stk_request_query(r, "queue"),
                                  .tenant = stk_request_query(r, "tenant")};
    uint64_t since, until, before, detail;
    struct page *p;
    uint32_t limit;

    if (stk_api_limit(r, &limit) < 0 || read_states(r, &q.causes) < 0 ||
        stk_request_number(r, "since", 0, STK_API_MAX_TIME, &since) < 0 ||
        stk_request_number(r, "until", 0, STK_API_MAX_TIME, &until) < 0 ||
        stk_request_number(r, "before", 0, UINT32_MAX - 1, &before) < 0 ||
        stk_request_number(r, "detail", 0, 1, &detail) < 0)
        return;
    if (q.user && strcmp(q.user, "me") == 0) {
        q.user = NULL;
        q.uid = &who->uid;
    }
    q.since = (stk_time)since * STK_SECOND;
    q.until = (stk_time)until * STK_SECOND;
    p = calloc(1, sizeof(*p));
    if (p)
        *p = (struct page){.list = {.view = {.api = ctx, .who = who, .detail = detail != 0},
                                    .limit = limit,
                                    .last = (stk_job_number)before,
                                    .add_rows = add_ended},
                           .query = q};
    stk_listing_start(p ? &p->list : NULL, r);
}
