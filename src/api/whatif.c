/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - questions "what if": taken, put to stoker-whatif one after the other, and their
 * answers kept.
 *
 * The daemon does nothing of the work itself. A question waits until the one before it is done;
 * there are few places in the line, and a user who is no operator has one. What came of it is kept
 * in the store (the newest STK_STORE_KEEP_ANSWERS), so that it is there after a restart; a question
 * that a restart interrupts is gone.
 */
#include <stdlib.h>
#include <string.h>

#include "api/child.h"
#include "api/handlers.h"
#include "api/question.h"
#include "api/show.h"
#include "sys/json.h"

#define MAX_LINE 16 /* questions that wait or run */

struct stk_question {
    struct stk_question *next;
    struct stk_api *api;
    int64_t id;
    stk_time at;
    struct stk_who who;
    json_t *ask;   /* for the child, until it was asked */
    json_t *shown; /* without what was imported */
    struct stk_child *child;
    double progress;
    char step[64];
};

/* ---- answers ---- */

static json_t *show_question(const struct stk_question *q)
{
    return json_pack("{s:I,s:o,s:s,s:s,s:f,s:s,s:O,s:n,s:n}", "id", (json_int_t)q->id, "at",
                     stk_show_time(q->at), "user", q->who.user, "state",
                     q->child ? "running" : "waiting", "progress", q->progress, "step", q->step,
                     "question", q->shown, "error", "result");
}

struct listing {
    json_t *list;
    bool results;
    uint32_t uid; /* of the last */
    int64_t newest;
};

static json_t *parsed(const char *text)
{
    json_t *o = *text ? stk_json_load(text, strlen(text), JSON_DECODE_ANY, NULL) : NULL;

    return o ? o : json_null();
}

static int add_answer(void *ctx, const struct stk_answer *a)
{
    struct listing *l = ctx;
    bool done = strcmp(a->state, "done") == 0;
    json_t *question = parsed(a->question), *sum = json_object_get(question, "summary");
    json_t *o = json_pack("{s:I,s:o,s:s,s:s,s:f,s:s,s:O,s:O?}", "id", (json_int_t)a->id, "at",
                          stk_show_time(a->at), "user", a->user, "state", a->state, "progress", 1.0,
                          "step", "", "question", question, "summary", sum);

    (void)json_object_del(question, "summary");
    json_decref(question);

    l->uid = a->uid;
    l->newest = a->id > l->newest ? a->id : l->newest;
    (void)json_object_set_new(o, "error", done ? json_null() : parsed(a->result));
    if (l->results)
        (void)json_object_set_new(o, "result", done ? parsed(a->result) : json_null());
    return json_array_append_new(l->list, o) < 0 ? -ENOMEM : 0;
}

/* The most important of what came out, so that a list can say it; kept with the question. */
static json_t *summary(json_t *result)
{
    static const char *const sides[] = {"recorded", "before", "after"}, *const figures[] = {
                                                                            "avg_wait_s",
                                                                            "avg_jct_s",
                                                                            "utilization"};
    json_t *o = json_object();

    for (size_t i = 0; i < sizeof(sides) / sizeof(*sides); i++) {
        json_t *from = json_object_get(result, sides[i]), *side = json_object();

        for (size_t k = 0; k < sizeof(figures) / sizeof(*figures); k++)
            (void)json_object_set(side, figures[k], json_object_get(from, figures[k]));
        (void)json_object_set_new(o, sides[i], side);
    }
    return o;
}

static int keep(struct stk_question *q, const char *state, json_t *result)
{
    struct stk_store *st = stk_live_store(q->api->cfg.live);
    char *ask = json_dumps(q->shown, JSON_COMPACT),
         *text = json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
    const struct stk_answer a = {q->id, q->at, q->who.uid, q->who.user, state, ask, text};
    struct stk_err err = {""};
    int rc = ask && text ? stk_api_begin(q->api, &err) : -ENOMEM;

    if (rc == 0)
        rc = stk_api_end(q->api, stk_store_answer_put(st, &a, &err), &err);
    free(ask);
    free(text);
    return rc;
}

/* ---- the line ---- */

static void question_free(struct stk_question *q)
{
    if (!q)
        return;
    stk_child_stop(q->child);
    json_decref(q->ask);
    json_decref(q->shown);
    free(q);
}

/* Out of the line; NULL: it is not in it. */
static struct stk_question *take_out(struct stk_api *a, int64_t id)
{
    for (struct stk_question **at = &a->questions; *at; at = &(*at)->next) {
        struct stk_question *q = *at;

        if (q->id != id)
            continue;
        *at = q->next;
        return q;
    }
    return NULL;
}

static void ask_next(struct stk_api *a);

static void on_progress(void *ctx, double done, const char *step)
{
    struct stk_question *q = ctx;

    q->progress = done;
    (void)snprintf(q->step, sizeof(q->step), "%s", step);
}

/* What came of it is kept; the line goes on. */
static void finish(struct stk_question *q, json_t *result, const char *error)
{
    json_t *text = error ? json_string(error) : NULL;

    if (!error)
        (void)json_object_set_new(q->shown, "summary", summary(result));
    (void)keep(q, error ? "failed" : "done", error ? text : result);
    json_decref(text);
    question_free(q);
}

static void on_done(void *ctx, json_t *result, const char *error)
{
    struct stk_question *q = ctx;
    struct stk_api *a = q->api;

    q->child = NULL;
    a->questions = q->next; /* only the first of the line runs */
    finish(q, result, error);
    ask_next(a);
}

/* The first in the line, when it does not run yet. */
static void ask_next(struct stk_api *a)
{
    struct stk_question *q;

    while ((q = a->questions) != NULL && !q->child) {
        const struct stk_child_to to = {q, on_progress, on_done};
        struct stk_err err = {""};
        int rc = stk_child_start(a->cfg.loop, a->cfg.whatif, q->ask, &to, &q->child, &err);

        json_decref(q->ask);
        q->ask = NULL;
        if (rc == 0)
            return;
        a->questions = q->next;
        finish(q, NULL, err.text);
    }
}

void stk_api_questions_free(struct stk_api *a)
{
    while (a->questions) {
        struct stk_question *q = a->questions;

        a->questions = q->next;
        question_free(q);
    }
}

/* ---- asking ---- */

/* Room in the line for this user. */
static int check_line(struct stk_api *a, struct stk_request *r, const struct stk_who *who)
{
    uint32_t n = 0, own = 0;

    for (const struct stk_question *q = a->questions; q; q = q->next) {
        n++;
        own += q->who.uid == who->uid;
    }
    if (n >= MAX_LINE || (own > 0 && who->role < STK_ROLE_OPERATOR)) {
        stk_request_error(r, 429, NULL,
                          own && n < MAX_LINE ? "you have a question that is not answered yet; "
                                                "only operators may have several"
                                              : "too many questions wait already; try again later");
        return -EBUSY;
    }
    if (!a->cfg.whatif) {
        stk_request_error(r, 501, NULL, "the program stoker-whatif is missing beside the daemon");
        return -ENOENT;
    }
    return 0;
}

static int next_id(struct stk_api *a, int64_t *ret)
{
    struct listing l = {.list = json_array()};
    struct stk_err err;
    int rc = 0;

    if (a->last_question == 0) {
        rc = stk_store_answers(stk_live_store(a->cfg.live), 0, add_answer, &l, &err);
        a->last_question = l.newest;
    }
    json_decref(l.list);
    *ret = ++a->last_question;
    return rc;
}

json_t *stk_api_ask(struct stk_api *a, const char *task, double since, double until)
{
    json_t *world = stk_live_configured(a->cfg.live);

    return json_pack("{s:s,s:s,s:f,s:f,s:f,s:o}", "task", task, "state", a->cfg.state_dir, "since",
                     since, "until", until, "now", (double)stk_api_now(a) / 1e6, "world", world);
}

static struct stk_question *make(struct stk_api *a, const struct stk_who *who, json_t *body)
{
    struct stk_question *q = calloc(1, sizeof(*q));
    double now = (double)stk_api_now(a) / 1e6;
    json_t *until = json_object_get(body, "until");

    if (!q)
        return NULL;
    q->api = a;
    q->at = stk_api_now(a);
    q->who = *who;
    q->shown = stk_question_shown(body, now);
    q->ask = stk_api_ask(a, "whatif", json_number_value(json_object_get(body, "since")),
                         until ? json_number_value(until) : now);
    (void)json_object_set(q->ask, "changes", json_object_get(body, "changes"));
    (void)json_object_set(q->ask, "import", json_object_get(body, "import"));
    if (q->ask && q->shown && next_id(a, &q->id) == 0)
        return q;
    question_free(q);
    return NULL;
}

void stk_do_whatif_new(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_who *who = stk_request_who(r);
    struct stk_question *q = NULL, **at = &a->questions;
    json_t *body = NULL;
    int64_t id;

    if (stk_request_body(r, &body) < 0)
        return;
    if (stk_question_check(r, body, (double)stk_api_now(a) / 1e6) < 0 ||
        check_line(a, r, who) < 0) {
        json_decref(body);
        return;
    }
    q = make(a, who, body);
    json_decref(body);
    if (!q) {
        stk_request_error(r, 503, "busy", "out of memory");
        return;
    }
    id = q->id;
    while (*at)
        at = &(*at)->next;
    *at = q;
    stk_request_json(r, 201, json_pack("{s:I}", "id", (json_int_t)id));
    ask_next(a);
}

/* ---- looking ---- */

static int64_t path_id(struct stk_request *r)
{
    const char *text = stk_request_path(r, "id");

    return strspn(text, "0123456789") == strlen(text) && *text && strlen(text) < 18
               ? strtoll(text, NULL, 10)
               : -1;
}

static struct stk_question *find(const struct stk_api *a, int64_t id)
{
    for (struct stk_question *q = a->questions; q; q = q->next)
        if (q->id == id)
            return q;
    return NULL;
}

void stk_do_whatifs(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct listing l = {.list = json_array()};
    struct stk_err err = {""};
    json_t *line = json_array();
    int rc;

    for (const struct stk_question *q = a->questions; q; q = q->next)
        (void)json_array_insert_new(line, 0, show_question(q));
    rc = stk_store_answers(stk_live_store(a->cfg.live), 0, add_answer, &l, &err);
    (void)json_array_extend(line, l.list);
    json_decref(l.list);
    if (rc < 0) {
        json_decref(line);
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200, json_pack("{s:o}", "questions", line));
}

void stk_do_whatif(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    int64_t id = path_id(r);
    struct listing l = {.list = json_array(), .results = true};
    const struct stk_question *q = find(a, id);
    struct stk_err err = {""};
    int rc = 0;

    if (!q && id > 0)
        rc = stk_store_answers(stk_live_store(a->cfg.live), id, add_answer, &l, &err);
    if (rc < 0)
        stk_api_fail(r, rc, &err);
    else if (q)
        stk_request_json(r, 200, show_question(q));
    else if (json_array_size(l.list) == 1)
        stk_request_json(r, 200, json_incref(json_array_get(l.list, 0)));
    else
        stk_request_error(r, 404, NULL, "there is no question %.20s; the newest %d are kept",
                          stk_request_path(r, "id"), STK_STORE_KEEP_ANSWERS);
    json_decref(l.list);
}

static int forget(struct stk_api *a, int64_t id, struct stk_err *err)
{
    int rc = stk_api_begin(a, err);

    if (rc < 0)
        return rc;
    return stk_api_end(a, stk_store_answer_delete(stk_live_store(a->cfg.live), id, err), err);
}

void stk_do_whatif_delete(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_who *who = stk_request_who(r);
    int64_t id = path_id(r);
    struct listing l = {.list = json_array(), .uid = UINT32_MAX};
    struct stk_question *q = find(a, id);
    struct stk_err err = {""};
    int rc = 0;

    if (!q && id > 0)
        rc = stk_store_answers(stk_live_store(a->cfg.live), id, add_answer, &l, &err);
    if (rc == 0 && !q && json_array_size(l.list) == 0)
        rc = stk_err_set(&err, -ENOENT, "there is no question %.20s", stk_request_path(r, "id"));
    if (rc == 0 && !stk_live_may(who, q ? q->who.uid : l.uid))
        rc = stk_err_set(&err, -EACCES, "it is somebody else's");
    if (rc == 0 && q) {
        question_free(take_out(a, id));
        ask_next(a);
    } else if (rc == 0) {
        rc = forget(a, id, &err);
    }
    json_decref(l.list);
    if (rc < 0)
        stk_api_fail(r, rc, &err);
    else
        stk_request_json(r, 200, json_pack("{s:I}", "deleted", (json_int_t)id));
}
