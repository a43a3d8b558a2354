/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - submitting jobs and looking at those that have not ended. */
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"
#include "core/state.h"

#define MAX_SCAN 100000u /* jobs looked at for one page */
#define MAX_KEY 128u

void stk_do_submit(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const char *key = stk_request_header(r, "Idempotency-Key");
    struct stk_asker by;
    uint64_t dry = 0;
    json_t *body, *jobs;
    int rc;

    if (stk_request_number(r, "dry_run", 0, 1, &dry) < 0)
        return;
    if (key && (strlen(key) > MAX_KEY || !*key)) {
        stk_request_error(r, 400, NULL, "an Idempotency-Key has 1 to %u characters", MAX_KEY);
        return;
    }
    if (stk_request_body(r, &body) < 0)
        return;
    jobs = json_object_get(body, "jobs");
    if (jobs && json_object_size(body) == 1) {
        json_incref(jobs);
        json_decref(body);
    } else {
        jobs = json_pack("[o]", body);
    }
    if (!json_is_array(jobs) || json_array_size(jobs) == 0) {
        json_decref(jobs);
        stk_request_error(r, 400, NULL, "\"jobs\" must be a list of at least one description");
        return;
    }
    by = (struct stk_asker){*stk_request_who(r), stk_api_reply, r};
    rc = stk_live_submit(a->cfg.live, &by, jobs, key, dry != 0);
    if (rc < 0)
        stk_request_error(r, rc == -ENOMEM ? 503 : 400, NULL, "the jobs cannot be taken: %s",
                          strerror(-rc));
}

void stk_do_job(void *ctx, struct stk_request *r)
{
    struct stk_show view = {.api = ctx, .who = stk_request_who(r), .detail = true};
    struct stk_err err = {""};
    stk_job_number number;
    uint64_t env;
    json_t *job;
    int rc;

    if (stk_api_job_number(ctx, r, &number) < 0 || stk_request_number(r, "env", 0, 1, &env) < 0)
        return;
    view.env = env != 0;
    job = stk_show_number(&view, number, &rc, &err);
    if (job)
        stk_request_json(r, 200, job);
    else
        stk_api_fail(r, rc, &err);
}

struct filter {
    const char *state, *user, *name, *queue, *tenant;
    bool mine;
};

static bool wanted(const struct stk_api *a, const struct filter *f, const struct stk_who *who,
                   const struct stk_entry *e)
{
    const struct stk_core *core = stk_live_core(a->cfg.live);
    uint32_t slot;

    if (f->user && strcmp(f->user, e->rec.user) != 0)
        return false;
    if (f->mine && (!who || who->uid != e->rec.uid))
        return false;
    if (f->name && strcmp(f->name, e->rec.name) != 0)
        return false;
    if ((f->queue && strcmp(f->queue, e->rec.queue) != 0) ||
        (f->tenant && strcmp(f->tenant, e->rec.tenant) != 0))
        return false;
    if (!f->state)
        return true;
    slot = stk_core_find(core, e->number);
    return slot != STK_NONE &&
           strcmp(f->state, stk_show_state(&stk_core_state(core)->jobs[slot])) == 0;
}

static int read_filter(struct stk_request *r, struct filter *f)
{
    *f = (struct filter){.state = stk_request_query(r, "state"),
                         .user = stk_request_query(r, "user"),
                         .name = stk_request_query(r, "name"),
                         .queue = stk_request_query(r, "queue"),
                         .tenant = stk_request_query(r, "tenant")};
    if (f->user && strcmp(f->user, "me") == 0) {
        f->user = NULL;
        f->mine = true;
    }
    if (f->state && !stk_show_is_state(f->state)) {
        stk_request_error(r, 400, NULL,
                          "state must be held, blocked, waiting, starting, running, suspended or "
                          "stopping, got \"%.40s\"; jobs that have ended are in the history",
                          f->state);
        return -EINVAL;
    }
    return 0;
}

void stk_do_jobs(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_show view = {.api = a, .who = stk_request_who(r), .detail = false};
    const struct stk_entry *e;
    struct filter f;
    json_t *list;
    uint64_t after, detail;
    uint32_t limit, looked = 0;
    size_t bytes = 0;
    bool full = false;

    if (read_filter(r, &f) < 0 || stk_api_limit(r, &limit) < 0 ||
        stk_request_number(r, "after", 0, UINT32_MAX - 1, &after) < 0 ||
        stk_request_number(r, "detail", 0, 1, &detail) < 0)
        return;
    view.detail = detail != 0;
    list = json_array();
    for (e = stk_live_next(a->cfg.live, (stk_job_number)after);
         e && json_array_size(list) < limit && looked < MAX_SCAN && !full; looked++) {
        if (wanted(a, &f, view.who, e)) {
            json_t *job = stk_show_live(&view, e);

            full = stk_show_full(&view, job, &bytes);
            (void)json_array_append_new(list, job);
        }
        after = e->number;
        e = stk_live_next(a->cfg.live, e->number);
    }
    stk_request_json(r, 200,
                     json_pack("{s:o,s:o}", "jobs", list, "next",
                               e ? json_integer((json_int_t)after) : json_null()));
}
