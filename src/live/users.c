/* SPDX-License-Identifier: Apache-2.0 */
#include "live/users.h"

#include <stddef.h>

#define KEEP (60 * STK_SECOND)

static struct stk_live_known *find(struct stk_live_users *t, uint32_t uid)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->list[i].user.uid == uid)
            return &t->list[i];
    return NULL;
}

/* In place of the one that has been there longest. */
static struct stk_live_known *add(struct stk_live_users *t)
{
    struct stk_live_known *k = &t->list[t->next];

    t->next = (t->next + 1) % STK_LIVE_USERS;
    t->n += t->n < STK_LIVE_USERS;
    return k;
}

int stk_live_users_get(struct stk_live_users *t, uint32_t uid, stk_time now,
                       const struct stk_user **ret)
{
    struct stk_live_known *k = find(t, uid);
    int rc;

    if (k && now < k->until && k->until <= now + KEEP) {
        *ret = &k->user;
        return 0;
    }
    if (t->strange < 0 && t->strange_at == now && t->stranger.uid == uid)
        rc = t->strange;
    else
        rc = (t->look_up ? t->look_up : stk_user_by_id)(uid, &t->stranger);
    t->strange = rc;
    t->strange_at = now;
    if (rc < 0) {
        *ret = k && rc == -EAGAIN ? &k->user : &t->stranger;
        return rc;
    }
    if (!k)
        k = add(t);
    *k = (struct stk_live_known){.user = t->stranger, .until = now + KEEP};
    *ret = &k->user;
    return 0;
}
