/* SPDX-License-Identifier: Apache-2.0 */
/* teams.c - tenants and queues as the live part knows them: whose a job is. */
#include <stdio.h>
#include <string.h>

#include "live/state.h"

#define MAX_TEAMS 16 /* of one user, that are told apart */

const char *stk_live_queue_name(const struct stk_live *l, uint32_t queue)
{
    return queue < l->cfg.core.n_queues ? l->cfg.core.queues[queue].name : "";
}

const char *stk_live_tenant_name(const struct stk_live *l, uint32_t tenant)
{
    return tenant < l->cfg.core.n_tenants ? l->cfg.core.tenants[tenant].name : "";
}

struct membership {
    const struct stk_live *l;
    const struct stk_user *u;
    uint32_t of[MAX_TEAMS], n; /* tenants */
};

/* "vision, speech" */
static void list(const struct membership *m, char *buf, size_t size)
{
    size_t len = 0;

    (void)snprintf(buf, size, "none but the default");
    for (uint32_t i = 0; i < m->n && i < MAX_TEAMS && len < size; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? ", " : "",
                                stk_live_tenant_name(m->l, m->of[i]));
}

/* The tenant that the job names. */
static int named(const struct membership *m, const char *name, uint32_t *ret, struct stk_err *err)
{
    uint32_t row = stk_teams_find(m->l->cfg.teams, name);
    bool mine = m->n == 0 && row == 0; /* the default, where one is anyway */
    char names[160];

    for (uint32_t i = 0; i < m->n && i < MAX_TEAMS; i++)
        mine |= m->of[i] == row;
    mine |= m->l->trusted && row != STK_NONE && stk_teams_leaf(m->l->cfg.teams, row);
    if (mine) {
        *ret = row;
        return 0;
    }
    list(m, names, sizeof(names));
    if (row == STK_NONE)
        return stk_err_set(err, -EINVAL,
                           "tenant: there is no tenant \"%.60s\"; %s is a member of %s", name,
                           m->u->name, names);
    if (!stk_teams_leaf(m->l->cfg.teams, row))
        return stk_err_set(err, -EINVAL,
                           "tenant: %.60s has others below it; jobs belong to one of those", name);
    return stk_err_set(err, -EINVAL, "tenant: %s is not a member of %.60s, but of %s", m->u->name,
                       name, names);
}

int stk_live_tenant(const struct stk_live *l, const struct stk_user *u, struct stk_spec *s,
                    struct stk_err *err)
{
    const struct stk_teams *t = l->cfg.teams;
    struct membership m = {.l = l, .u = u};
    const char *means;

    if (!t || t->n_tenants == 0) {
        s->job.tenant = u->uid;
        return s->tenant ? stk_err_set(err, -EINVAL,
                                       "tenant: there are no tenants here (tenants: in the "
                                       "configuration)")
                         : 0;
    }
    m.n = stk_teams_of(t, u, m.of, MAX_TEAMS);
    s->job.tenant = m.n > 0 ? m.of[0] : 0;
    if (s->tenant)
        return named(&m, s->tenant, &s->job.tenant, err);
    means = s->account && l->cfg.tenant_of ? l->cfg.tenant_of(l->cfg.ctx, s->account) : NULL;
    if (means)
        return named(&m, means, &s->job.tenant, err);
    if (s->account && stk_teams_find(t, s->account) != STK_NONE)
        return named(&m, s->account, &s->job.tenant, err);
    return 0;
}

uint32_t stk_live_teams_of(struct stk_live *l, uint32_t uid, uint32_t *ret, uint32_t max)
{
    return l->cfg.teams ? stk_teams_of(l->cfg.teams, stk_live_user(l, uid), ret, max) : 0;
}

json_t *stk_live_members(const struct stk_live *l, uint32_t tenant)
{
    const struct stk_teams *t = l->cfg.teams;
    json_t *list = json_array();

    for (uint32_t i = 0; t && list && i < t->n_members; i++)
        if (t->members[i].tenant == tenant)
            (void)json_array_append_new(list,
                                        json_string(stk_names_get(&t->users, t->members[i].user)));
    return list;
}
