/* SPDX-License-Identifier: Apache-2.0 */
/* login.c - browsers come in and go.
 *
 * A browser logs in with a token, or with a code that works once and for some minutes: a link with
 * a code may be seen by others afterwards. It gets a session (cookie.c says why in two halves),
 * which never lasts longer nor may do more than what it was made with. Codes are kept in memory:
 * a restart ends them, and a new link is one command.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handlers.h"
#include "api/show.h"
#include "store/sha.h"

#define CODE_S 600u
#define CODES_PER_USER 8u
#define MAX_AGE_S (10 * INT64_C(31557600)) /* where the configuration has no bound */

/* ---- codes ---- */

/* A place for a new one: the oldest of a user who has many, else a free one, else the oldest. */
static struct stk_code *place_code(struct stk_api *a, uint32_t uid)
{
    struct stk_code *oldest = &a->codes[0], *of_user = NULL;
    uint64_t now = uv_now(a->cfg.loop);
    uint32_t n = 0;

    for (size_t i = 0; i < sizeof(a->codes) / sizeof(*a->codes); i++) {
        struct stk_code *c = &a->codes[i];

        if (c->until_ms < oldest->until_ms)
            oldest = c;
        if (c->until_ms <= now || c->who.uid != uid)
            continue;
        n++;
        if (!of_user || c->until_ms < of_user->until_ms)
            of_user = c;
    }
    return n >= CODES_PER_USER ? of_user : oldest;
}

static int make_code(struct stk_api *a, const struct stk_who *who, const struct stk_pass *pass,
                     char *code, size_t size, struct stk_err *err)
{
    struct stk_code *c = place_code(a, who->uid);
    int rc = stk_api_secret("", code, size, err);

    if (rc < 0)
        return rc;
    *c = (struct stk_code){
        .who = *who, .pass = *pass, .until_ms = uv_now(a->cfg.loop) + CODE_S * UINT64_C(1000)};
    stk_sha256(code, strlen(code), c->hash);
    return 0;
}

static void write_link(const struct stk_api *a, const char *code, char *buf, size_t size)
{
    const char *url = stk_http_url(a->http);

    buf[0] = '\0';
    if (*url)
        (void)snprintf(buf, size, "%s/#/login/%s", url, code);
}

void stk_api_login_link(struct stk_api *a, char *buf, size_t size)
{
    const struct stk_pass none = {0};
    struct stk_who who;
    char code[80] = "";

    stk_api_fill_who(a, geteuid(), getegid(), &who);
    if (make_code(a, &who, &none, code, sizeof(code), NULL) < 0)
        buf[0] = '\0';
    else
        write_link(a, code, buf, size);
    explicit_bzero(code, sizeof(code));
}

void stk_do_login_code(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_err err = {""};
    char code[80] = "", url[256];
    stk_time until = stk_api_now(a) + CODE_S * STK_SECOND;
    int rc = 0;

    if (!*stk_http_url(a->http))
        rc = stk_err_set(&err, -EPROTO,
                         "this daemon has no page: it does not listen on TCP (\"listen\" in its "
                         "configuration)");
    rc = rc < 0 ? rc
                : make_code(a, stk_request_who(r), stk_request_pass(r), code, sizeof(code), &err);
    if (rc < 0) {
        stk_api_fail(r, rc, &err);
        return;
    }
    write_link(a, code, url, sizeof(url));
    stk_request_json(
        r, 201,
        json_pack("{s:s,s:s,s:o}", "code", code, "url", url, "expires", stk_show_time(until)));
    explicit_bzero(code, sizeof(code));
    explicit_bzero(url, sizeof(url));
}

/* Uses a code up. */
static int take_code(struct stk_api *a, const char *code, struct stk_who *ret_who,
                     struct stk_pass *ret_pass)
{
    uint8_t hash[sizeof(a->codes[0].hash)];
    struct stk_token t;
    int rc = -EACCES;

    stk_sha256(code, strlen(code), hash);
    for (size_t i = 0; i < sizeof(a->codes) / sizeof(*a->codes); i++) {
        struct stk_code *c = &a->codes[i];

        if (c->until_ms <= uv_now(a->cfg.loop) || memcmp(c->hash, hash, sizeof(hash)) != 0)
            continue;
        stk_api_fill_who(a, c->who.uid, c->who.gid, ret_who);
        if (c->who.role < ret_who->role)
            ret_who->role = c->who.role;
        *ret_pass = c->pass;
        *c = (struct stk_code){0};
        rc = 0;
    }
    if (rc == 0 && ret_pass->id != 0) /* what it was made with may be gone */
        rc = stk_store_token_get(stk_live_store(a->cfg.live), ret_pass->id, &t, NULL);
    return rc;
}

/* ---- sessions ---- */

/* What the browser calls itself, as far as it can be shown. */
static void name_session(const struct stk_request *r, char *buf, size_t size)
{
    const char *agent = stk_request_header(r, "User-Agent");
    size_t n = 0;

    for (const char *p = agent ? agent : "browser"; *p && n + 1 < size && n < 100; p++)
        buf[n++] = (char)(*p >= ' ' && *p < 127 ? *p : '?');
    buf[n] = '\0';
}

/* In a transaction: room for one more session of a user. */
static int make_room(struct stk_api *a, uint32_t uid, stk_time now, struct stk_err *err)
{
    struct stk_store *st = stk_live_store(a->cfg.live);
    struct stk_token_count count = {0};
    int rc = stk_store_token_tidy(st, uid, STK_TOKEN_SESSION, now, &count, err);

    while (rc == 0 && count.n >= a->logins.sessions_per_user && count.oldest) {
        rc = stk_store_token_delete(st, count.oldest, err);
        if (rc == 0)
            rc = stk_store_token_tidy(st, uid, STK_TOKEN_SESSION, now, &count, err);
    }
    if (rc == 0 && a->logins.sessions_per_user == 0)
        rc =
            stk_err_set(err, -EPERM, "browsers cannot log in here (limits.sessions_per_user is 0)");
    return rc;
}

/* 1 when 'id' is 'above' or was made with it, directly or not; else 0 or an error. */
static int is_made_with(struct stk_store *st, int64_t id, int64_t above, struct stk_err *err)
{
    while (id != 0 && id != above) {
        struct stk_token t;
        int rc = stk_store_token_get(st, id, &t, err);

        if (rc < 0)
            return rc == -ENOENT ? 0 : rc;
        id = t.parent < id ? t.parent : 0; /* a parent is older */
    }
    return id != 0;
}

/* Deletes the last session of a browser that logs in again, unless the new one depends on it. */
static int drop_last(struct stk_store *st, const struct stk_pass *last, int64_t parent,
                     struct stk_err *err)
{
    int rc = last->is_session ? is_made_with(st, parent, last->id, err) : 1;

    rc = rc == 0 ? stk_store_token_delete(st, last->id, err) : rc;
    return rc < 0 && rc != -ENOENT ? rc : 0;
}

/* After the deletions: what the session is made with must still be there. */
static int check_parent(struct stk_store *st, int64_t parent, struct stk_err *err)
{
    struct stk_token t;
    int rc = parent == 0 ? 0 : stk_store_token_get(st, parent, &t, err);

    if (rc == -ENOENT)
        rc = stk_err_set(err, -EKEYREVOKED,
                         "this login would end the session that its token was made with: there is "
                         "no room for more (limits.sessions_per_user); log out there, or use the "
                         "link that \"stoker login\" prints");
    return rc;
}

static int keep_session(struct stk_api *a, struct stk_request *r, const char *page,
                        const char *cookie, struct stk_token *t, struct stk_err *err)
{
    struct stk_store *st = stk_live_store(a->cfg.live);
    int rc = stk_api_begin(a, err);

    if (rc < 0)
        return rc;
    rc = drop_last(st, stk_request_pass(r), t->parent, err);
    rc = rc < 0 ? rc : make_room(a, t->uid, t->created, err);
    rc = rc < 0 ? rc : check_parent(st, t->parent, err);
    rc = rc < 0 ? rc : stk_store_session_put(st, page, cookie, t, &t->id, err);
    return stk_api_end(a, rc, err);
}

static void begin_session(struct stk_api *a, struct stk_request *r, const struct stk_who *who,
                          const struct stk_pass *by)
{
    stk_time now = stk_api_now(a);
    int64_t age_s = a->logins.age_s ? (int64_t)a->logins.age_s : MAX_AGE_S;
    struct stk_token t = {.uid = who->uid,
                          .role = (uint32_t)who->role,
                          .created = now,
                          .used = now,
                          .parent = by->id,
                          .ends = now + age_s * STK_SECOND};
    struct stk_err err = {""};
    char page[80] = "", cookie[80] = "";
    int rc = stk_api_secret("stp_", page, sizeof(page), &err);

    rc = rc < 0 ? rc : stk_api_secret("stc_", cookie, sizeof(cookie), &err);
    (void)snprintf(t.user, sizeof(t.user), "%s", who->user);
    name_session(r, t.name, sizeof(t.name));
    if (by->expires > 0 && by->expires < t.ends)
        t.ends = by->expires;
    t.expires = stk_pass_until(a, now, t.ends);
    rc = rc < 0 ? rc : keep_session(a, r, page, cookie, &t, &err);
    if (rc == -EKEYREVOKED)
        stk_request_error(r, 401, NULL, "%s", err.text);
    else if (rc < 0)
        stk_api_fail(r, rc, &err);
    if (rc < 0)
        return;
    stk_request_json(r, 201,
                     json_pack("{s:I,s:s,s:s,s:s,s:o,s:o}", "id", (json_int_t)t.id, "session", page,
                               "user", who->user, "role", stk_role_name(t.role), "expires",
                               stk_show_time(t.expires), "ends", stk_show_time(t.ends)));
    stk_request_set_cookie(r, cookie, (t.ends - now) / STK_SECOND);
    explicit_bzero(page, sizeof(page));
    explicit_bzero(cookie, sizeof(cookie));
    stk_pass_changed(a);
}

static bool from_browser(struct stk_request *r)
{
    if (!stk_request_is_unix(r) && stk_request_from_own_page(r))
        return true;
    stk_request_error(r, 403, NULL,
                      "browsers log in and out here, on the daemon's own page; programs send a "
                      "token with each request (Authorization: Bearer ...)");
    return false;
}

void stk_do_login(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const char *token = NULL, *code = NULL;
    struct stk_pass pass = {0};
    struct stk_who who;
    json_t *body;
    int rc;

    if (!from_browser(r) || stk_request_body(r, &body) < 0)
        return;
    if (json_unpack_ex(body, NULL, JSON_STRICT, "{s?s,s?s}", "token", &token, "code", &code) < 0 ||
        !token == !code) {
        stk_request_error(r, 400, NULL, "a login has a token or a code");
    } else {
        rc = token ? stk_api_identify(a, &(struct stk_peer){.token = token}, &who, &pass)
                   : take_code(a, code, &who, &pass);
        if (rc == 0)
            begin_session(a, r, &who, &pass);
        else
            stk_request_error(r, 401, NULL,
                              token ? "this token is not, or no longer, valid"
                                    : "this link was used already, or is older than %u minutes; "
                                      "\"stoker login\" prints a new one",
                              CODE_S / 60);
    }
    json_decref(body);
}

void stk_do_logout(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_pass *p = stk_request_pass(r);
    struct stk_err err = {""};
    int rc = 0;

    if (!from_browser(r))
        return;
    if (p->is_session) {
        rc = stk_api_begin(a, &err);
        if (rc == 0)
            rc = stk_api_end(a, stk_store_token_delete(stk_live_store(a->cfg.live), p->id, &err),
                             &err);
    }
    if (rc < 0 && rc != -ENOENT) {
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200, json_pack("{s:b}", "done", 1));
    stk_request_set_cookie(r, "", 0);
    stk_pass_changed(a);
}
