/* SPDX-License-Identifier: Apache-2.0 */
/* users.c - who asks, and what they may do.
 *
 * On the Unix socket it is the user the kernel names; over TCP the owner of the token or session.
 * The role is the same either way: root and the user the daemon runs as are admins, others as
 * configured; a token may have been made for less. Looking a user up can be slow where a directory
 * service is asked, so names are remembered for a minute.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/handlers.h"

#define REMEMBER_MS 60000u

static void look_up(uint32_t uid, uint32_t gid, struct stk_user *u)
{
    char buf[4096];
    struct passwd pw, *found = NULL;

    u->uid = uid;
    u->gid = gid;
    if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) == 0 && found) {
        u->gid = found->pw_gid;
        (void)snprintf(u->name, sizeof(u->name), "%s", found->pw_name);
    } else {
        (void)snprintf(u->name, sizeof(u->name), "%u", uid);
    }
}

static bool listed(const char *const *names, const char *user)
{
    for (; names && *names; names++)
        if (strcmp(*names, user) == 0)
            return true;
    return false;
}

static enum stk_role role_of(const struct stk_api *a, const struct stk_user *u)
{
    if (u->uid == 0 || u->uid == geteuid() || listed(a->cfg.admins, u->name))
        return STK_ROLE_ADMIN;
    return listed(a->cfg.operators, u->name) ? STK_ROLE_OPERATOR : STK_ROLE_USER;
}

void stk_api_fill_who(struct stk_api *a, uint32_t uid, uint32_t gid, struct stk_who *ret)
{
    struct stk_user *u = &a->users[uid % (sizeof(a->users) / sizeof(*a->users))];
    uint64_t now = uv_now(a->cfg.loop);

    if (u->uid != uid || u->until_ms <= now) {
        look_up(uid, gid, u);
        u->until_ms = now + REMEMBER_MS;
    }
    *ret = (struct stk_who){.uid = uid, .gid = u->gid, .role = role_of(a, u)};
    memcpy(ret->user, u->name, sizeof(ret->user));
}

enum stk_role stk_api_role(struct stk_api *a, uint32_t uid)
{
    struct stk_who who;

    stk_api_fill_who(a, uid, uid, &who);
    return who.role;
}

int stk_api_identify(void *ctx, const struct stk_peer *peer, struct stk_who *ret,
                     struct stk_pass *ret_pass)
{
    struct stk_api *a = ctx;
    struct stk_store *st = stk_live_store(a->cfg.live);
    struct stk_token t;
    stk_time now = stk_api_now(a);
    int rc;

    *ret_pass = (struct stk_pass){0};
    if (peer->is_unix) {
        stk_api_fill_who(a, peer->uid, peer->gid, ret);
        return 0;
    }
    if (peer->page)
        rc = stk_store_session_find(st, peer->page, &peer->cookies, now, &t, NULL);
    else
        rc = strlen(peer->token) > 200 ? -EACCES
                                       : stk_store_token_find(st, peer->token, now, &t, NULL);
    if (rc < 0)
        return -EACCES;
    stk_api_fill_who(a, t.uid, t.uid, ret);
    if (t.role < (uint32_t)ret->role)
        ret->role = (enum stk_role)t.role;
    stk_pass_note_use(a, &t, now);
    *ret_pass = (struct stk_pass){t.id, t.kind == STK_TOKEN_SESSION, t.expires, t.ends};
    return 0;
}

int stk_api_secret(const char *prefix, char *buf, size_t size, struct stk_err *err)
{
    unsigned char raw[32];
    size_t used;

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return stk_err_set(err, -EIO, "the system gives no random numbers");
    used = (size_t)snprintf(buf, size, "%s", prefix);
    for (size_t i = 0; i < sizeof(raw) && used + 2 < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%02x", raw[i]);
    return 0;
}
