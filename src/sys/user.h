/* SPDX-License-Identifier: Apache-2.0 */
/* user.h - who a user id is: name, home, shell, groups, from the system's databases. */
#ifndef STK_SYS_USER_H
#define STK_SYS_USER_H

#include <stdint.h>

#include "base/err.h"

#define STK_MAX_GROUPS 256

struct stk_user {
    uint32_t uid, gid;
    uint32_t groups[STK_MAX_GROUPS];
    uint32_t n_groups;
    char name[64], home[512], shell[256];
};

/* -ENOENT: no such user; -EAGAIN: the system's databases do not answer; then name is the number,
 * home "/", shell "/bin/sh", and its group has the user's number. */
int stk_user_by_id(uint32_t uid, struct stk_user *ret);
/* The number of a user. -ENOENT. */
int stk_user_id(const char *name, uint32_t *ret);
/* The number of a group. -ENOENT. */
int stk_group_id(const char *name, uint32_t *ret);

#endif
