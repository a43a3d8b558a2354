/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - submitting jobs and looking at those that have not ended. */
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/listing.h"
#include "core/state.h"

#define MAX_SCAN 100000u /* jobs looked at for one page */
#define MAX_KEY 128u
#define MAX_HELD ((size_t)128 << 20)     /* bytes of descriptions that wait, */
#define MAX_HELD_USER ((size_t)32 << 20) /* of one user, */
#define SMALL 65536u                     /* beside requests as small as this */

/* Whether its descriptions may wait, too; else it is answered. */
static bool has_room(struct stk_api *a, struct stk_request *r, const struct stk_many *jobs)
{
    const struct stk_who *who = stk_request_who(r);
    const size_t most = who->role >= STK_ROLE_OPERATOR ? MAX_HELD : MAX_HELD_USER;

    if (jobs->bytes > SMALL && stk_live_held(a->cfg.live, who->uid) + jobs->bytes > most) {
        stk_request_error(r, 429, NULL,
                          "job descriptions of %s with %zu MiB wait to be taken in; wait for "
                          "answers",
                          who->user, stk_live_held(a->cfg.live, who->uid) >> 20);
        return false;
    }
    if (stk_live_held(a->cfg.live, STK_NONE) + jobs->bytes > MAX_HELD) {
        stk_request_error(r, 503, "busy", "too many large requests at once; try again");
        return false;
    }
    return true;
}

void stk_do_submit(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const char *key = stk_request_header(r, "Idempotency-Key");
    struct stk_asker by;
    struct stk_many jobs;
    uint64_t dry = 0;
    int rc;

    if (!stk_api_may_run(r) || stk_request_number(r, "dry_run", 0, 1, &dry) < 0)
        return;
    if (key && (strlen(key) > MAX_KEY || !*key)) {
        stk_request_error(r, 400, NULL, "an Idempotency-Key has 1 to %u characters", MAX_KEY);
        return;
    }
    if (stk_request_jobs(r, &jobs) < 0)
        return;
    if (!has_room(a, r, &jobs)) {
        stk_many_done(&jobs);
        return;
    }
    by = (struct stk_asker){*stk_request_who(r), stk_api_reply, r};
    rc = stk_live_submit(a->cfg.live, &by, &jobs, key, dry != 0);
    if (rc < 0)
        stk_request_error(r, 503, "no_memory", "the jobs cannot be taken: %s", strerror(-rc));
}

void stk_do_job(void *ctx, struct stk_request *r)
{
    struct stk_show view = {.api = ctx, .who = stk_request_who(r), .detail = true};
    struct stk_err err = {""};
    stk_job_number number;
    uint64_t env;
    struct stk_writer job = {0};
    int rc;

    if (stk_api_job_number(ctx, r, &number) < 0 || stk_request_number(r, "env", 0, 1, &env) < 0)
        return;
    view.env = env != 0;
    rc = stk_show_number(&view, &job, number, &err);
    if (rc == 0)
        stk_request_written(r, &job);
    else
        stk_api_fail(r, rc, &err);
    stk_writer_done(&job);
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

struct page {
    struct stk_listing list;
    struct filter filter;
    uint32_t looked; /* jobs */
};

static int add_jobs(struct stk_listing *l, struct stk_err *err)
{
    struct page *p = (struct page *)l;
    const struct stk_api *a = l->view.api;
    const struct stk_entry *e = stk_live_next(a->cfg.live, l->last);

    (void)err;
    while (e && !stk_listing_full(l) && p->looked < MAX_SCAN) {
        if (wanted(a, &p->filter, l->view.who, e))
            stk_show_live(&l->view, stk_listing_row(l), e);
        p->looked++;
        l->last = e->number;
        e = stk_live_next(a->cfg.live, e->number);
        if (e && stk_listing_due(l))
            return 1;
    }
    l->more = e != NULL;
    return 0;
}

void stk_do_jobs(void *ctx, struct stk_request *r)
{
    uint64_t after, detail;
    struct filter f;
    uint32_t limit;
    struct page *p;

    if (read_filter(r, &f) < 0 || stk_api_limit(r, &limit) < 0 ||
        stk_request_number(r, "after", 0, UINT32_MAX - 1, &after) < 0 ||
        stk_request_number(r, "detail", 0, 1, &detail) < 0)
        return;
    p = calloc(1, sizeof(*p));
    if (p)
        *p = (struct page){
            .list = {.view = {.api = ctx, .who = stk_request_who(r), .detail = detail != 0},
                     .limit = limit,
                     .last = (stk_job_number)after,
                     .add_rows = add_jobs},
            .filter = f};
    stk_listing_start(p ? &p->list : NULL, r);
}
