/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - jobs that have ended, the latest first. */
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"

struct page {
    struct stk_show view;
    json_t *list;
    stk_job_number last;
    size_t bytes;
    bool full;
};

static int add(void *ctx, const struct stk_record *rec)
{
    struct page *p = ctx;
    json_t *job = stk_show_record(&p->view, rec);

    p->last = rec->number;
    p->full = stk_show_full(&p->view, job, &p->bytes);
    return json_array_append_new(p->list, job) < 0 ? -ENOMEM : p->full;
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
            "node_lost, gpu_error, not_started, cancelled, dependency_failed or lost, "
            "got \"%.40s\"; jobs that have not ended are under /v1/jobs",
            word);
        return -EINVAL;
    }
    *ret = 1u << c;
    return 0;
}

void stk_do_history(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_who *who = stk_request_who(r);
    struct stk_history_query q = {.user = stk_request_query(r, "user"),
                                  .name = stk_request_query(r, "name"),
                                  .queue = stk_request_query(r, "queue"),
                                  .tenant = stk_request_query(r, "tenant")};
    struct page p = {.view = {.api = a, .who = who}};
    struct stk_err err = {""};
    uint64_t since, until, before, detail;
    int rc;

    if (stk_api_limit(r, &q.limit) < 0 || read_states(r, &q.causes) < 0 ||
        stk_request_number(r, "since", 0, INT32_MAX * UINT64_C(4), &since) < 0 ||
        stk_request_number(r, "until", 0, INT32_MAX * UINT64_C(4), &until) < 0 ||
        stk_request_number(r, "before", 0, UINT32_MAX - 1, &before) < 0 ||
        stk_request_number(r, "detail", 0, 1, &detail) < 0)
        return;
    if (q.user && strcmp(q.user, "me") == 0) {
        q.user = NULL;
        q.uid = &who->uid;
    }
    q.since = (stk_time)since * STK_SECOND;
    q.until = (stk_time)until * STK_SECOND;
    q.before = (stk_job_number)before;
    p.view.detail = detail != 0;
    p.list = json_array();
    rc = stk_store_history(stk_live_store(a->cfg.live), &q, add, &p, &err);
    if (rc < 0) {
        json_decref(p.list);
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200,
                     json_pack("{s:o,s:o}", "jobs", p.list, "next",
                               p.full || json_array_size(p.list) == q.limit ? json_integer(p.last)
                                                                            : json_null()));
}
