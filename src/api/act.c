/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - things done to jobs: cancel, hold, release, suspend, resume, requeue, signal,
 * update. */
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "spec/spec.h"
#include "spec/words.h"

#define MAX_ACT 100000u /* jobs of one request */

static const char *const verbs[] = {"cancel", "hold",    "release", "suspend",
                                    "resume", "requeue", "signal",  "update"};

static bool known_verb(const char *v)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcmp(verbs[i], v) == 0)
            return true;
    return false;
}

/* "signal" may be a name; the scheduler takes numbers. */
static int check_signal(struct stk_request *r, json_t *args)
{
    json_t *s = json_object_get(args, "signal");
    int number = 0;

    if (json_is_integer(s) && json_integer_value(s) > 0 && json_integer_value(s) <= 64)
        number = (int)json_integer_value(s);
    else if (!json_is_string(s) || stk_words_signal(json_string_value(s), &number) < 0)
        number = 0;
    if (number < 1 || number > 64) {
        stk_request_error(r, 400, NULL,
                          "signal must be a name such as \"USR1\" or a number from 1 to 64");
        return -EINVAL;
    }
    (void)json_object_set_new(args, "signal", json_integer(number));
    return 0;
}

/* Only what the verb takes; of many jobs, beside "verb" and "ids". */
static int check_members(struct stk_request *r, const char *verb, json_t *args)
{
    const bool many = strchr(stk_request_route(r)->path, '{') == NULL;
    const char *key;
    json_t *v;

    json_object_foreach(args, key, v)
    {
        if ((many && (strcmp(key, "verb") == 0 || strcmp(key, "ids") == 0)) ||
            (strcmp(verb, "signal") == 0 && strcmp(key, "signal") == 0) ||
            (strcmp(verb, "update") == 0 && stk_live_may_change(key)))
            continue;
        stk_request_error(r, 400, NULL, "%s takes no \"%.40s\"", verb, key);
        return -EINVAL;
    }
    return 0;
}

/* Whether the members that an update changes are what a description may have, whatever the job. */
static int check_changes(struct stk_request *r, json_t *args)
{
    json_t *job = json_pack("{s:[s]}", "command", "-"), *v;
    struct stk_err err = {""};
    const char *key;
    int rc;

    json_object_foreach(args, key, v)
    {
        if (!json_is_null(v) && stk_live_may_change(key))
            (void)json_object_set(job, key, v);
    }
    rc = stk_spec_check(job, &err);
    json_decref(job);
    if (rc != -EBADMSG)
        return 0;
    stk_request_error(r, 400, "bad_job", "%s", err.text);
    return rc;
}

static void act(struct stk_api *a, struct stk_request *r, const char *verb,
                const stk_job_number *numbers, uint32_t n, json_t *take_args)
{
    const struct stk_asker by = {*stk_request_who(r), stk_api_reply, r};
    int rc;

    if (check_members(r, verb, take_args) < 0 ||
        (strcmp(verb, "signal") == 0 && check_signal(r, take_args) < 0) ||
        (strcmp(verb, "update") == 0 && check_changes(r, take_args) < 0)) {
        json_decref(take_args);
        return;
    }
    rc = stk_live_act(a->cfg.live, &by, verb, numbers, n, take_args);
    if (rc < 0)
        stk_request_error(r, 503, "busy", "cannot %s now: %s", verb, strerror(-rc));
}

void stk_do_verb(void *ctx, struct stk_request *r)
{
    const char *verb = strrchr(stk_request_route(r)->path, '/') + 1;
    stk_job_number number;
    json_t *args = NULL;

    if (stk_api_job_number(ctx, r, &number) < 0)
        return;
    if ((stk_request_has_body(r) || strcmp(stk_request_route(r)->takes, "Verb") != 0) &&
        stk_request_body(r, &args) < 0)
        return;
    if (!args)
        args = json_object();
    if (!json_is_object(args)) {
        json_decref(args);
        stk_request_error(r, 400, NULL, "the body must be an object");
        return;
    }
    act(ctx, r, verb, &number, 1, args);
}

/* The list of ids; answers when it is not one. */
static stk_job_number *read_ids(struct stk_request *r, const json_t *body, uint32_t *ret_n)
{
    const json_t *ids = json_object_get(body, "ids");
    size_t n = json_array_size(ids);
    stk_job_number *list;

    if (!json_is_array(ids) || n == 0 || n > MAX_ACT) {
        stk_request_error(r, 400, NULL, "\"ids\" must be a list of 1 to %u job numbers", MAX_ACT);
        return NULL;
    }
    list = calloc(n, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        json_int_t v = json_integer_value(json_array_get(ids, i));

        if (v < 1 || v >= UINT32_MAX) {
            free(list);
            stk_request_error(r, 400, NULL, "ids[%zu] is not a job number", i);
            return NULL;
        }
        list[i] = (stk_job_number)v;
    }
    if (!list)
        stk_request_error(r, 503, "busy", "out of memory");
    *ret_n = (uint32_t)n;
    return list;
}

void stk_do_act(void *ctx, struct stk_request *r)
{
    const char *verb;
    stk_job_number *ids;
    json_t *body;
    uint32_t n = 0;

    if (stk_request_body(r, &body) < 0)
        return;
    verb = json_string_value(json_object_get(body, "verb"));
    if (!verb || !known_verb(verb)) {
        stk_request_error(r, 400, NULL,
                          "\"verb\" must be cancel, hold, release, suspend, resume, requeue, "
                          "signal or update");
        json_decref(body);
        return;
    }
    ids = read_ids(r, body, &n);
    if (ids)
        act(ctx, r, verb, ids, n, json_incref(body));
    free(ids);
    json_decref(body);
}

void stk_do_adopt(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_err err = {"processes cannot be adopted here"};
    json_t *body;
    int rc = -EPROTO;

    if (!stk_api_may_run(r) || stk_request_body(r, &body) < 0)
        return;
    if (!json_is_object(body))
        rc = stk_err_set(&err, -EBADMSG, "the body must be an object with \"pid\"");
    else if (a->cfg.adopt)
        rc = a->cfg.adopt(a->cfg.ctx, stk_request_who(r), body, stk_api_reply, r, &err);
    json_decref(body);
    if (rc < 0)
        stk_api_fail(r, rc, &err);
}
