/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - whose members users are, by name and by the groups of the system. */
#include <string.h>

#include "teams/teams.h"

bool stk_teams_is_user(const struct stk_user *u, const char *name)
{
    uint32_t gid;

    if (name[0] != '@')
        return strcmp(u->name, name) == 0;
    if (stk_group_id(name + 1, &gid) < 0)
        return false;
    for (uint32_t i = 0; i < u->n_groups; i++)
        if (u->groups[i] == gid)
            return true;
    return u->gid == gid;
}

uint32_t stk_teams_of(const struct stk_teams *t, const struct stk_user *u, uint32_t *ret,
                      uint32_t max)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n_members; i++) {
        uint32_t tenant = t->members[i].tenant, k = 0;

        if (!stk_teams_is_user(u, stk_names_get(&t->users, t->members[i].user)))
            continue;
        while (k < n && k < max && ret[k] != tenant)
            k++;
        if (k < n)
            continue; /* as a user, and as one of a group */
        if (n < max)
            ret[n] = tenant;
        n++;
    }
    return n;
}
