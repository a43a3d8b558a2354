/* SPDX-License-Identifier: Apache-2.0 */
/* users.h - who a user id is. To ask the system may be slow where a directory service is behind it,
 * so an answer is remembered for a minute; that there was none for the moment only. */
#ifndef STK_LIVE_USERS_H
#define STK_LIVE_USERS_H

#include "model/time.h"
#include "sys/user.h"

#define STK_LIVE_USERS 32

struct stk_live_known {
    struct stk_user user;
    stk_time until;
};

struct stk_live_users { /* all zero: nobody is known */
    struct stk_live_known list[STK_LIVE_USERS];
    uint32_t n, next;
    struct stk_user stranger; /* the last one who could not be looked up, when, and why not */
    stk_time strange_at;
    int strange;
    int (*look_up)(uint32_t uid, struct stk_user *ret); /* NULL: the system is asked */
};

/* *ret is somebody in every case, and lives until the next call. -ENOENT, -EAGAIN: the system does
 * not say who it is; then *ret is who it was, where that is known, else as in stk_user_by_id(). */
int stk_live_users_get(struct stk_live_users *t, uint32_t uid, stk_time now,
                       const struct stk_user **ret);

#endif
