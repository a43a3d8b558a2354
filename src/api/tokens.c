/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c - secrets that stand for a user over TCP. The secret is shown once, when it is made;
 * the store keeps its hash. Sessions of browsers are listed and revoked beside them.
 *
 * What is made with a token or session expires no later than that and may do no more, and goes when
 * that is revoked. A token revokes its owner's tokens of its own role or below; on the Unix socket
 * an owner revokes all of theirs, an admin everybody's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"

#define MAX_TOKENS_SHOWN 1000u
#define MAX_EXPIRES_S (10 * INT64_C(31557600))

static const char *const role_names[] = {
    [STK_ROLE_USER] = "user", [STK_ROLE_OPERATOR] = "operator", [STK_ROLE_ADMIN] = "admin"};

const char *stk_role_name(uint32_t role)
{
    return role_names[role <= STK_ROLE_ADMIN ? role : 0];
}

struct listing {
    const struct stk_who *who;
    json_t *list;
    int64_t own; /* what the request came with */
    stk_time now;
};

static bool may(const struct stk_who *who, const struct stk_token *t)
{
    return who->role == STK_ROLE_ADMIN || who->uid == t->uid;
}

static int add(void *ctx, const struct stk_token *t)
{
    struct listing *l = ctx;

    bool is_session = t->kind == STK_TOKEN_SESSION;

    if (!may(l->who, t) || (is_session && t->expires <= l->now))
        return 0;
    if (json_array_size(l->list) < MAX_TOKENS_SHOWN)
        (void)json_array_append_new(
            l->list,
            json_pack("{s:I,s:s,s:s,s:s,s:I,s:s,s:o,s:o,s:o,s:o,s:o,s:b}", "id", (json_int_t)t->id,
                      "kind", is_session ? "session" : "token", "name", t->name, "user", t->user,
                      "uid", (json_int_t)t->uid, "role", stk_role_name(t->role), "created",
                      stk_show_time(t->created), "expires", stk_show_time(t->expires), "ends",
                      is_session ? stk_show_time(t->ends) : stk_show_time(t->expires), "used",
                      stk_show_time(t->used), "made_with",
                      t->parent ? json_integer(t->parent) : json_null(), "current",
                      (int)(t->id == l->own)));
    return 0;
}

void stk_do_tokens(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct listing l = {stk_request_who(r), json_array(), stk_request_pass(r)->id, stk_api_now(a)};
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
    bool too_long;

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
    too_long = strlen(name) >= sizeof(t->name);
    (void)snprintf(t->name, sizeof(t->name), "%s", name);
    t->expires = expires_s > 0 && expires_s <= MAX_EXPIRES_S ? expires_s * STK_SECOND : 0;
    key = role                                         ? "role must be user, operator or admin"
          : expires_s < 0 || expires_s > MAX_EXPIRES_S ? "expires_s is out of range"
                                                       : NULL;
    json_decref(body);
    if (key)
        stk_request_error(r, 400, NULL, "%s", key);
    else if (too_long)
        stk_request_error(r, 422, NULL, "name is too long; it has at most %zu bytes",
                          sizeof(t->name) - 1);
    else if (t->role > (uint32_t)who->role)
        stk_request_error(r, 403, NULL, "role is above your own");
    return key || too_long || t->role > (uint32_t)who->role ? -EINVAL : 0;
}

/* When it expires: as was asked, but not after what it is made with. */
static int bound_end(const struct stk_pass *by, struct stk_token *t, struct stk_err *err)
{
    stk_time asked = t->expires;

    t->parent = by->id;
    t->expires = asked > 0 ? t->created + asked : by->expires;
    if (by->expires == 0 || t->expires <= by->expires)
        return 0;
    return stk_err_set(err, -EPERM,
                       "expires_s is %lld, but the %s that you use expires in %lld s, and what is "
                       "made with it cannot last longer; \"stoker token create\" on the machine "
                       "itself can make one that does",
                       (long long)(asked / STK_SECOND), by->is_session ? "session" : "token",
                       (long long)((by->expires - t->created) / STK_SECOND));
}

static int keep_token(struct stk_api *a, const char *secret, struct stk_token *t,
                      struct stk_err *err)
{
    struct stk_store *st = stk_live_store(a->cfg.live);
    struct stk_token_count count = {0};
    int rc = stk_api_begin(a, err);

    if (rc < 0)
        return rc;
    rc = stk_store_token_tidy(st, t->uid, STK_TOKEN_BEARER, t->created, &count, err);
    if (rc == 0 && count.n >= a->logins.tokens_per_user)
        rc = stk_err_set(err, -EBUSY,
                         "%s has %u tokens, and %llu are the most (limits.tokens_per_user); revoke "
                         "one that is not needed: stoker token list, stoker token revoke ID",
                         t->user, count.n, (unsigned long long)a->logins.tokens_per_user);
    rc = rc < 0 ? rc : stk_store_token_put(st, secret, t, &t->id, err);
    return stk_api_end(a, rc, err);
}

void stk_do_token_new(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_who *who = stk_request_who(r);
    struct stk_token t = {.uid = who->uid, .created = stk_api_now(a)};
    struct stk_err err = {""};
    char secret[80];
    int rc;

    if (read_token(r, who, &t) < 0)
        return;
    (void)snprintf(t.user, sizeof(t.user), "%s", who->user);
    rc = bound_end(stk_request_pass(r), &t, &err);
    rc = rc < 0 ? rc : stk_api_secret("stk_", secret, sizeof(secret), &err);
    rc = rc < 0 ? rc : keep_token(a, secret, &t, &err);
    if (rc < 0) {
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 201,
                     json_pack("{s:I,s:s,s:s,s:s,s:o}", "id", (json_int_t)t.id, "token", secret,
                               "name", t.name, "role", stk_role_name(t.role), "expires",
                               stk_show_time(t.expires)));
    explicit_bzero(secret, sizeof(secret));
}

/* Whether the caller may revoke it. To a user, tokens of other users do not exist. */
static int check_revoke(struct stk_request *r, int rc, const struct stk_token *t, const char *id,
                        struct stk_err *err)
{
    const struct stk_who *who = stk_request_who(r);

    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc < 0 || !may(who, t))
        return stk_err_set(err, -ENOENT, "there is no token %.20s", id);
    if (stk_request_pass(r)->id == 0 || t->role <= (uint32_t)who->role)
        return 0;
    return stk_err_set(err, -EPERM,
                       "token %.20s has the role %s, which is above that of the one you use (%s); "
                       "revoke it on the machine itself: stoker token revoke %.20s",
                       id, stk_role_name(t->role), stk_role_name((uint32_t)who->role), id);
}

void stk_do_token_delete(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_store *st = stk_live_store(a->cfg.live);
    const char *text = stk_request_path(r, "id");
    struct stk_token t = {0};
    struct stk_err err = {""};
    int64_t id = strspn(text, "0123456789") == strlen(text) && strlen(text) < 18
                     ? strtoll(text, NULL, 10)
                     : 0;
    int rc = stk_store_token_get(st, id, &t, &err);

    rc = check_revoke(r, rc, &t, text, &err);
    rc = rc < 0 ? rc : stk_api_begin(a, &err);
    if (rc == 0)
        rc = stk_api_end(a, stk_store_token_delete(st, id, &err), &err);
    if (rc < 0) {
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200, json_pack("{s:I}", "deleted", (json_int_t)id));
    stk_pass_changed(a);
}
