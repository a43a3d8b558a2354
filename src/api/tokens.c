/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c - secrets that stand for a user over TCP. The secret is shown once, when it is made;
 * the store keeps its hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"

#define MAX_TOKENS_SHOWN 1000u
#define MAX_EXPIRES_S (10 * INT64_C(31557600))

static const char *const role_names[] = {
    [STK_ROLE_USER] = "user", [STK_ROLE_OPERATOR] = "operator", [STK_ROLE_ADMIN] = "admin"};

struct listing {
    const struct stk_who *who;
    json_t *list;
    int64_t find; /* -1: all */
    bool found;
};

static bool may(const struct stk_who *who, const struct stk_token *t)
{
    return who->role == STK_ROLE_ADMIN || who->uid == t->uid;
}

static int add(void *ctx, const struct stk_token *t)
{
    struct listing *l = ctx;

    if (!may(l->who, t) || (l->find >= 0 && l->find != t->id))
        return 0;
    l->found = true;
    if (l->list && json_array_size(l->list) < MAX_TOKENS_SHOWN)
        (void)json_array_append_new(
            l->list, json_pack("{s:I,s:s,s:s,s:I,s:s,s:o,s:o,s:o}", "id", (json_int_t)t->id, "name",
                               t->name, "user", t->user, "uid", (json_int_t)t->uid, "role",
                               role_names[t->role <= STK_ROLE_ADMIN ? t->role : 0], "created",
                               stk_show_time(t->created), "expires", stk_show_time(t->expires),
                               "used", stk_show_time(t->used)));
    return 0;
}

void stk_do_tokens(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct listing l = {stk_request_who(r), json_array(), -1, false};
    struct stk_err err = {""};
    int rc = stk_store_token_list(stk_live_store(a->cfg.live), add, &l, &err);

    if (rc < 0) {
        json_decref(l.list);
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200, json_pack("{s:o}", "tokens", l.list));
}

/* Fills the token from the body; answers when something is not right. */
static int read_token(struct stk_request *r, const struct stk_who *who, struct stk_token *t)
{
    json_t *body = NULL;
    const char *name = "", *role = NULL, *key;
    json_int_t expires_s = 0;
    json_error_t why;

    if (stk_request_has_body(r) && stk_request_body(r, &body) < 0)
        return -EINVAL;
    if (body && json_unpack_ex(body, &why, JSON_STRICT, "{s?s,s?s,s?I}", "name", &name, "role",
                               &role, "expires_s", &expires_s) < 0) {
        stk_request_error(r, 400, NULL, "a token has name, role and expires_s: %s", why.text);
        json_decref(body);
        return -EINVAL;
    }
    t->role = (uint32_t)who->role;
    for (uint32_t i = 0; role && i <= STK_ROLE_ADMIN; i++)
        if (strcmp(role, role_names[i]) == 0) {
            t->role = i;
            role = NULL;
        }
    (void)snprintf(t->name, sizeof(t->name), "%s", name);
    t->expires = expires_s > 0 && expires_s <= MAX_EXPIRES_S ? expires_s * STK_SECOND : 0;
    key = strlen(name) >= sizeof(t->name)              ? "name is too long"
          : role                                       ? "role must be user, operator or admin"
          : t->role > (uint32_t)who->role              ? "role is above your own"
          : expires_s < 0 || expires_s > MAX_EXPIRES_S ? "expires_s is out of range"
                                                       : NULL;
    json_decref(body);
    if (key)
        stk_request_error(r, 400, NULL, "%s", key);
    return key ? -EINVAL : 0;
}

void stk_do_token_new(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_store *st = stk_live_store(a->cfg.live);
    const struct stk_who *who = stk_request_who(r);
    struct stk_token t = {.uid = who->uid, .created = stk_api_now(a)};
    struct stk_err err = {""};
    char secret[80], url[256] = "";
    int64_t id = 0;
    int rc;

    if (read_token(r, who, &t) < 0)
        return;
    (void)snprintf(t.user, sizeof(t.user), "%s", who->user);
    t.expires = t.expires > 0 ? t.created + t.expires : 0;
    rc = stk_api_secret(secret, sizeof(secret), &err);
    rc = rc < 0 ? rc : stk_api_begin(a, &err);
    if (rc == 0)
        rc = stk_api_end(a, stk_store_token_put(st, secret, &t, &id, &err), &err);
    if (rc < 0) {
        stk_api_fail(r, rc, &err);
        return;
    }
    if (*stk_http_url(a->http))
        (void)snprintf(url, sizeof(url), "%s/?token=%s", stk_http_url(a->http), secret);
    stk_request_json(r, 201,
                     json_pack("{s:I,s:s,s:s,s:s,s:o,s:o}", "id", (json_int_t)id, "token", secret,
                               "name", t.name, "role", role_names[t.role], "expires",
                               stk_show_time(t.expires), "url",
                               *url ? json_string(url) : json_null()));
    explicit_bzero(secret, sizeof(secret));
}

void stk_do_token_delete(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_store *st = stk_live_store(a->cfg.live);
    const char *text = stk_request_path(r, "id");
    struct listing l = {stk_request_who(r), NULL, 0, false};
    struct stk_err err = {""};
    int rc = 0;

    l.find = strspn(text, "0123456789") == strlen(text) && strlen(text) < 18
                 ? strtoll(text, NULL, 10)
                 : 0;
    rc = stk_store_token_list(st, add, &l, &err);
    if (rc == 0 && !l.found) /* somebody else's: not there, as far as this user can see */
        rc = stk_err_set(&err, -ENOENT, "there is no token %.20s", text);
    rc = rc < 0 ? rc : stk_api_begin(a, &err);
    if (rc == 0)
        rc = stk_api_end(a, stk_store_token_delete(st, l.find, &err), &err);
    if (rc < 0)
        stk_api_fail(r, rc, &err);
    else
        stk_request_json(r, 200, json_pack("{s:I}", "deleted", (json_int_t)l.find));
}
