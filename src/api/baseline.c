/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.c - periods that were marked, to compare others with.
 *
 * The figures of a period are counted by stoker-whatif, beside the daemon: a request for them waits
 * until it has answered. Those of a baseline are kept with it, because its jobs may be forgotten
 * one day.
 */
#include <stdlib.h>
#include <string.h>

#include "api/child.h"
#include "api/handlers.h"
#include "api/show.h"

#define MAX_COUNTING 8 /* at once */
#define MAX_NAME 64
#define MAX_NOTE 1000

/* ---- baselines ---- */

/* Of a period without capacity nothing is known; baselines from earlier have 0 there. */
static json_t *read_figures(const char *text)
{
    static const char *const unknown[] = {"utilization", "jobs_per_day", "preemptions_per_day"};
    json_t *f = json_loads(text, 0, NULL);
    const json_t *capacity = json_object_get(f, "capacity_gpu_hours");

    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
        if (capacity && json_number_value(capacity) <= 0)
            (void)json_object_set_new(f, unknown[i], json_null());
    return f;
}

static json_t *show(const struct stk_baseline *b)
{
    return json_pack("{s:s,s:o,s:o,s:s,s:s,s:o,s:o}", "name", b->name, "since",
                     stk_show_time(b->since), "until", stk_show_time(b->until), "note", b->note,
                     "user", b->user, "created", stk_show_time(b->created), "figures",
                     read_figures(b->figures));
}

static int add_baseline(void *ctx, const struct stk_baseline *b)
{
    return json_array_append_new(ctx, show(b)) < 0 ? -ENOMEM : 0;
}

void stk_do_baselines(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_err err = {""};
    json_t *list = json_array();
    int rc = stk_store_baselines(stk_live_store(a->cfg.live), NULL, add_baseline, list, &err);

    if (rc == 0) {
        stk_request_json(r, 200, json_pack("{s:o}", "baselines", list));
        return;
    }
    json_decref(list);
    stk_api_fail(r, rc, &err);
}

/* One change of the store, in a transaction of its own. */
static int change(struct stk_api *a, const struct stk_baseline *put, const char *drop,
                  struct stk_err *err)
{
    struct stk_store *st = stk_live_store(a->cfg.live);
    int rc = stk_api_begin(a, err);

    if (rc < 0)
        return rc;
    rc = put ? stk_store_baseline_put(st, put, err) : stk_store_baseline_delete(st, drop, err);
    return stk_api_end(a, rc, err);
}

void stk_do_baseline_delete(void *ctx, struct stk_request *r)
{
    const char *name = stk_request_path(r, "name");
    struct stk_err err = {""};
    int rc = change(ctx, NULL, name, &err);

    if (rc < 0)
        stk_api_fail(r, rc, &err);
    else
        stk_request_json(r, 200, json_pack("{s:s}", "name", name));
}

/* ---- counting ---- */

struct counting {
    struct stk_api *api;
    struct stk_request *req; /* NULL: its client is gone */
    struct stk_child *child;
    json_t *baseline; /* that is compared with; NULL: one is being made: */
    struct stk_baseline made;
    char name[MAX_NAME + 1], note[MAX_NOTE + 1], user[64];
    double since, until;
};

static void counting_free(struct counting *c)
{
    c->api->counting--;
    json_decref(c->baseline);
    free(c);
}

static void on_gone(void *ctx, struct stk_request *r)
{
    struct counting *c = ctx;

    (void)r;
    stk_child_stop(c->child);
    counting_free(c);
}

static int finish_new(struct counting *c, json_t *figures, json_t **ret, struct stk_err *err)
{
    char *text = json_dumps(figures, JSON_COMPACT);
    int rc = text ? 0 : stk_err_set(err, -ENOMEM, "out of memory");

    c->made.figures = text;
    rc = rc < 0 ? rc : change(c->api, &c->made, NULL, err);
    if (rc == 0)
        *ret = show(&c->made);
    free(text);
    return rc;
}

static int finish_compare(struct counting *c, json_t *figures, json_t **ret, struct stk_err *err)
{
    json_t *notes = stk_api_notes(c->api, json_number_value(json_object_get(c->baseline, "since")),
                                  c->until, err);

    if (!notes)
        return -EIO;
    *ret = json_pack("{s:O,s:O,s:o}", "baseline", c->baseline, "period", figures, "notes", notes);
    return *ret ? 0 : stk_err_set(err, -ENOMEM, "out of memory");
}

static void on_counted(void *ctx, json_t *result, const char *error)
{
    struct counting *c = ctx;
    struct stk_err err = {""};
    json_t *answer = NULL;
    bool made = c->baseline == NULL;
    int rc;

    if (error)
        rc = stk_err_set(&err, -EIO, "%s", error);
    else
        rc = made ? finish_new(c, result, &answer, &err) : finish_compare(c, result, &answer, &err);
    stk_request_on_gone(c->req, NULL, NULL);
    if (rc < 0)
        stk_api_fail(c->req, rc, &err);
    else
        stk_request_json(c->req, made ? 201 : 200, answer);
    counting_free(c);
}

static void count(struct counting *c)
{
    const struct stk_child_to to = {c, NULL, on_counted};
    json_t *ask = stk_api_ask(c->api, "figures", c->since, c->until);
    struct stk_err err = {""};
    int rc = ask ? stk_child_start(c->api->cfg.loop, c->api->cfg.whatif, ask, &to, &c->child, &err)
                 : stk_err_set(&err, -ENOMEM, "out of memory");

    json_decref(ask);
    if (rc < 0) {
        stk_api_fail(c->req, rc, &err);
        counting_free(c);
        return;
    }
    stk_request_on_gone(c->req, on_gone, c);
}

/* NULL: the request has been answered. */
static struct counting *begin(struct stk_api *a, struct stk_request *r)
{
    struct counting *c = NULL;

    if (!a->cfg.whatif) {
        stk_request_error(r, 501, NULL, "the program stoker-whatif is missing beside the daemon");
        return NULL;
    }
    if (a->counting < MAX_COUNTING)
        c = calloc(1, sizeof(*c));
    if (!c) {
        stk_request_error(r, 503, "busy", "too much is being counted already; try again");
        return NULL;
    }
    c->api = a;
    c->req = r;
    a->counting++;
    return c;
}

static bool name_ok(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

    return n > 0 && s[n] == '\0' && n <= MAX_NAME;
}

/* 0, or the status of the refusal and its sentence. */
static int read_baseline(struct counting *c, json_t *body, double now, const char **ret_wrong)
{
    const char *name = "", *note = "";
    double since = 0, until = now;

    *ret_wrong = NULL;
    if (json_unpack(body, "{s:s,s:F,s?F,s?s !}", "name", &name, "since", &since, "until", &until,
                    "note", &note) < 0)
        *ret_wrong = "a baseline has name, since and until (seconds since 1970), and note";
    else if (!name_ok(name))
        *ret_wrong = "a name is 1 to 64 letters, digits, _ - or .";
    else if (since < 0 || until < 0)
        *ret_wrong = "since and until are seconds since 1970, from 0 on";
    if (*ret_wrong)
        return 400;
    if (strlen(note) > MAX_NOTE)
        *ret_wrong = "a note is at most 1000 bytes";
    else if (since >= until || until > now + 1)
        *ret_wrong = "since must be before until, and until not in the future";
    if (*ret_wrong)
        return 422;
    (void)snprintf(c->name, sizeof(c->name), "%s", name);
    (void)snprintf(c->note, sizeof(c->note), "%s", note);
    c->since = since;
    c->until = until;
    return 0;
}

static int is_there(void *ctx, const struct stk_baseline *b)
{
    (void)b;
    *(bool *)ctx = true;
    return 1;
}

void stk_do_baseline_new(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const char *wrong;
    struct counting *c;
    json_t *body = NULL;
    bool there = false;
    int status;

    if (stk_request_body(r, &body) < 0)
        return;
    c = begin(a, r);
    if (!c) {
        json_decref(body);
        return;
    }
    status = read_baseline(c, body, (double)stk_api_now(a) / 1e6, &wrong);
    json_decref(body);
    if (!status)
        (void)stk_store_baselines(stk_live_store(a->cfg.live), c->name, is_there, &there, NULL);
    if (status || there) {
        stk_request_error(r, there ? 409 : status, NULL, "%s",
                          there ? "there is a baseline of this name already" : wrong);
        counting_free(c);
        return;
    }
    (void)snprintf(c->user, sizeof(c->user), "%s", stk_request_who(r)->user);
    c->made = (struct stk_baseline){.name = c->name,
                                    .since = (stk_time)(c->since * 1e6),
                                    .until = (stk_time)(c->until * 1e6),
                                    .note = c->note,
                                    .user = c->user,
                                    .created = stk_api_now(a)};
    count(c);
}

void stk_do_baseline_compare(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    uint64_t now = (uint64_t)(stk_api_now(a) / STK_SECOND) + 1, since, until;
    json_t *list = json_array();
    struct stk_err err = {""};
    struct counting *c;
    int rc = stk_store_baselines(stk_live_store(a->cfg.live), stk_request_path(r, "name"),
                                 add_baseline, list, &err);

    if (rc < 0) {
        json_decref(list);
        stk_api_fail(r, rc, &err);
        return;
    }
    since = (uint64_t)json_number_value(json_object_get(json_array_get(list, 0), "until"));
    if (stk_request_number(r, "since", since, STK_API_MAX_TIME, &since) < 0 ||
        stk_request_number(r, "until", now, STK_API_MAX_TIME, &until) < 0) {
        json_decref(list);
        return;
    }
    if (since >= until) {
        stk_request_error(r, 422, NULL, "since must be before until");
        json_decref(list);
        return;
    }
    c = begin(a, r);
    if (c) {
        c->baseline = json_incref(json_array_get(list, 0));
        c->since = (double)since;
        c->until = (double)until;
        count(c);
    }
    json_decref(list);
}
