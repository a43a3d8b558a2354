/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - tokens and sessions while they are in use.
 *
 * A session lasts as long as it is used, up to an end that was set when it was made. Its last use
 * is written down ten times in the time for which it may lie idle, not for every request. A stream
 * or a wait that is open is use. When a token or session is deleted or its time is over, the
 * requests that wait or stream with it end: at once, and within a tick.
 */
#include "api/handlers.h"

#define USED_EVERY (3600 * STK_SECOND) /* how often a last use is written down */

static stk_time use_step(const struct stk_api *a, bool is_session)
{
    stk_time idle = (stk_time)a->logins.idle_s * STK_SECOND;

    return is_session && idle > 0 && idle / 10 < USED_EVERY ? idle / 10 : USED_EVERY;
}

stk_time stk_pass_until(const struct stk_api *a, stk_time now, stk_time ends)
{
    stk_time until = now + (stk_time)a->logins.idle_s * STK_SECOND;

    return a->logins.idle_s == 0 || until > ends ? ends : until;
}

void stk_pass_note_use(struct stk_api *a, struct stk_token *t, stk_time now)
{
    struct stk_store *st = stk_live_store(a->cfg.live);
    bool is_session = t->kind == STK_TOKEN_SESSION;
    stk_time expires = is_session ? stk_pass_until(a, now, t->ends) : t->expires;

    if ((t->used > 0 && now - t->used < use_step(a, is_session)) || stk_api_begin(a, NULL) < 0)
        return;
    if (stk_store_token_used(st, t->id, now, expires, NULL) == 0)
        t->expires = expires;
    (void)stk_store_commit(st, NULL); /* what is lost is only a date */
}

/* Looks whether it is still valid; one that is becomes used. */
static void check_request(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_pass *p = stk_request_pass(r);
    stk_time now = stk_api_now(a);
    struct stk_token t;
    int rc = stk_store_token_get(stk_live_store(a->cfg.live), p->id, &t, NULL);

    if (rc == -ENOENT || (rc == 0 && t.expires > 0 && t.expires <= now)) {
        stk_request_revoke(r);
    } else if (rc == 0 && p->is_session) {
        stk_pass_note_use(a, &t, now);
        p->expires = t.expires;
    }
}

static void check_if_due(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_pass *p = stk_request_pass(r);
    stk_time before = p->is_session && p->expires < p->ends ? 5 * use_step(a, true) : 0;

    if (p->expires > 0 && p->expires - before <= stk_api_now(a))
        check_request(ctx, r);
}

void stk_pass_tick(struct stk_api *a)
{
    stk_http_each(a->http, check_if_due, a);
}

void stk_pass_changed(struct stk_api *a)
{
    stk_http_each(a->http, check_request, a);
}

void stk_api_set_logins(struct stk_api *a, const struct stk_api_logins *l)
{
    a->logins = *l;
}

bool stk_api_may_run(struct stk_request *r)
{
    const struct stk_who *who = stk_request_who(r);

    if (who->uid != 0 || who->role == STK_ROLE_ADMIN)
        return true;
    stk_request_error(r, 403, NULL,
                      "jobs of this token would run as root, and it is not one of an admin; make a "
                      "token as the user who is to run them, or one of root with the role admin");
    return false;
}
