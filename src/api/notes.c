/* SPDX-License-Identifier: Apache-2.0 */
/* notes.c - what was changed and when. The daemon writes most of it down itself (live/notes.c);
 * operators add what it cannot know of. */
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"

#define MAX_NOTES 500
#define MAX_TEXT 1000

static int add_note(void *ctx, const struct stk_note *n)
{
    json_t *o = json_pack("{s:o,s:s,s:o,s:s}", "at", stk_show_time(n->at), "kind", n->kind, "user",
                          *n->user ? json_string(n->user) : json_null(), "text", n->text);

    return json_array_append_new(ctx, o) < 0 ? -ENOMEM : 0;
}

json_t *stk_api_notes(struct stk_api *a, double since, double until, struct stk_err *err)
{
    const struct stk_note_query q = {(stk_time)(since * 1e6), (stk_time)(until * 1e6), MAX_NOTES};
    json_t *list = json_array();

    if (stk_store_notes(stk_live_store(a->cfg.live), &q, add_note, list, err) < 0) {
        json_decref(list);
        list = NULL;
    }
    return list;
}

void stk_do_notes(void *ctx, struct stk_request *r)
{
    struct stk_err err = {""};
    uint64_t since, until;
    json_t *list;

    if (stk_request_number(r, "since", 0, STK_API_MAX_TIME, &since) < 0 ||
        stk_request_number(r, "until", 0, STK_API_MAX_TIME, &until) < 0)
        return;
    list = stk_api_notes(ctx, (double)since, (double)until, &err);
    if (list)
        stk_request_json(r, 200, json_pack("{s:o}", "notes", list));
    else
        stk_api_fail(r, -EIO, &err);
}

/* 0, or the status of the refusal and its sentence. */
static int read_note(json_t *body, double now, struct stk_note *ret, const char **ret_wrong)
{
    const char *text = "";
    double at = now;

    *ret_wrong = NULL;
    if (json_unpack(body, "{s:s,s?F !}", "text", &text, "at", &at) < 0 || at < 0)
        *ret_wrong = "a note has text, and at (seconds since 1970; now when left out)";
    else if (*text == '\0')
        *ret_wrong = "the text of a note has 1 to 1000 bytes";
    if (*ret_wrong)
        return 400;
    if (strlen(text) > MAX_TEXT)
        *ret_wrong = "the text of a note has 1 to 1000 bytes";
    else if (at > now + 1)
        *ret_wrong = "a note is of now or of the past";
    if (*ret_wrong)
        return 422;
    *ret = (struct stk_note){.at = (stk_time)(at * 1e6), .kind = "note", .text = text, .world = ""};
    return 0;
}

static int put(struct stk_api *a, const struct stk_note *n, struct stk_err *err)
{
    int rc = stk_api_begin(a, err);

    return rc < 0 ? rc
                  : stk_api_end(a, stk_store_note_put(stk_live_store(a->cfg.live), n, err), err);
}

void stk_do_note_new(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_note n;
    struct stk_err err = {""};
    json_t *body = NULL, *list = json_array();
    const char *wrong;
    int rc, status;

    if (stk_request_body(r, &body) < 0) {
        json_decref(list);
        return;
    }
    status = read_note(body, (double)stk_api_now(a) / 1e6, &n, &wrong);
    if (status) {
        stk_request_error(r, status, NULL, "%s", wrong);
    } else {
        n.user = stk_request_who(r)->user;
        rc = put(a, &n, &err);
        rc = rc < 0 ? rc : add_note(list, &n);
        if (rc < 0)
            stk_api_fail(r, rc, &err);
        else
            stk_request_json(r, 201, json_incref(json_array_get(list, 0)));
    }
    json_decref(list);
    json_decref(body);
}
