/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - the life of one job: its events, as far as the journal has them. */
#include "api/handlers.h"
#include "api/show.h"
#include "model/wire.h"
#include "sys/big.h"

#define MAX_EVENTS 1000u
#define AFTER (60 * STK_SECOND) /* its end may be written down later than it was */

struct life {
    struct stk_api *api;
    struct stk_wire wire;
    json_t *list;
    bool more;
};

static int add(void *ctx, const struct stk_row *row)
{
    struct life *l = ctx;
    json_t *o;

    if (json_array_size(l->list) >= MAX_EVENTS) {
        l->more = true;
        return 1;
    }
    o = stk_api_event(l->api, row, &l->wire);
    if (o)
        (void)json_array_append_new(l->list, o);
    return 0;
}

struct times {
    stk_time submitted, ended;
};

static int read_times(void *ctx, const struct stk_record *rec)
{
    *(struct times *)ctx = (struct times){rec->submitted, rec->ended};
    return 1;
}

static int find_times(struct stk_api *a, stk_job_number number, struct times *ret,
                      struct stk_err *err)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, number);
    int rc;

    if (e) {
        (void)read_times(ret, &e->rec);
        return 0;
    }
    rc = stk_store_job_get(stk_live_store(a->cfg.live), number, read_times, ret, err);
    return rc == -ENOENT || (rc == 0 && ret->submitted == 0)
               ? stk_err_set(err, -ENOENT, "there is no job %u", number)
               : rc;
}

void stk_do_job_events(void *ctx, struct stk_request *r)
{
    struct life l = {.api = ctx};
    struct times t = {0};
    struct stk_err err = {""};
    stk_job_number number;
    int rc;

    if (stk_api_job_number(ctx, r, &number) < 0)
        return;
    rc = find_times(ctx, number, &t, &err);
    if (rc < 0) {
        stk_api_fail(r, rc, &err);
        return;
    }
    l.list = json_array();
    stk_wire_init(&l.wire, &stk_big_mem);
    rc = stk_store_read_job(
        stk_live_store(l.api->cfg.live),
        &(struct stk_job_span){number, t.submitted, t.ended ? t.ended + AFTER : INT64_MAX}, add, &l,
        &err);
    stk_wire_done(&l.wire);
    if (rc < 0) {
        json_decref(l.list);
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200, json_pack("{s:o,s:b}", "events", l.list, "more", l.more));
}
