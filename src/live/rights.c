/* SPDX-License-Identifier: Apache-2.0 */
/* rights.c - who may ask for which queue, tier and priority (docs/spec/rights.md). Everything that
 * makes or changes a job asks here: submit, dry run, update, adopt, jobs of schedules, jobs that
 * users brought with the engine's tools, and what "why" offers.
 *
 * Operators may ask for everything. Of others the tables of the configuration (teams/allow.c) say
 * it. A job of a user who may not preempt by class is plain: its priority orders it, and its
 * class is that of the default queue (policy/preempt/levels.h). */
#include <stdio.h>
#include <string.h>

#include "live/state.h"

struct stk_rights stk_live_rights(struct stk_live *l, const struct stk_who *who, uint32_t owner,
                                  const struct stk_job_spec *job)
{
    if (who->role >= STK_ROLE_OPERATOR)
        return (struct stk_rights){.queue = true,
                                   .tiers = UINT32_MAX,
                                   .lowest = -STK_MAX_PRIORITY,
                                   .most = STK_MAX_PRIORITY,
                                   .preempt = true,
                                   .tiers_of = "",
                                   .classes_of = ""};
    return stk_teams_rights(l->cfg.teams, stk_live_user(l, owner), job->tenant, job->terms.queue);
}

/* Which setting forbids it: "allow.tiers of tenant vision". 'of' is "queue", "tenant" or "". */
static void name_setting(struct stk_live *l, const char *of, const char *key, uint32_t tenant,
                         uint32_t queue, char buf[80])
{
    const bool by_tenant = strcmp(of, "tenant") == 0;
    const char *name = stk_live_noun_name(l, by_tenant ? STK_RULES_TENANT : STK_RULES_QUEUE,
                                          by_tenant ? tenant : queue);

    if (*of)
        (void)snprintf(buf, 80, "allow.%s of %s %.40s", key, of, name ? name : "");
    else
        (void)snprintf(buf, 80, "the default; a queue or tenant may allow more");
}

static void list_tiers(uint32_t tiers, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (uint32_t t = 0; t < STK_TIER_MAX && len < size; t++)
        if (tiers >> t & 1)
            len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
                                    stk_tier_name((enum stk_tier)t));
}

/* Names of the queues that are open to the user. */
static void list_queues(struct stk_live *l, uint32_t owner, uint32_t tenant, char *buf, size_t size)
{
    size_t len = 0;

    (void)snprintf(buf, size, "none");
    for (uint32_t i = 0; i < l->cfg.core.n_queues && len < size; i++)
        if (stk_teams_rights(l->cfg.teams, stk_live_user(l, owner), tenant, i).queue)
            len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
                                    stk_live_queue_name(l, i));
}

static int refuse_queue(struct stk_live *l, uint32_t owner, const struct stk_job_spec *job,
                        struct stk_err *err)
{
    char open[120];

    list_queues(l, owner, job->tenant, open, sizeof(open));
    return stk_err_set(
        err, -EPERM, "queue: %.40s is not open to %.32s (allow.users of the queue); open are: %s",
        stk_live_queue_name(l, job->terms.queue), stk_live_user(l, owner)->name, open);
}

static int refuse_tier(struct stk_live *l, uint32_t owner, const struct stk_job_spec *job,
                       const struct stk_rights *may, struct stk_err *err)
{
    char tiers[48], setting[80];

    list_tiers(may->tiers, tiers, sizeof(tiers));
    name_setting(l, may->tiers_of, "tiers", may->tiers_tenant, job->terms.queue, setting);
    return stk_err_set(
        err, -EPERM, "tier: %.32s may not use %s in queue %.40s, only %s (%s); or ask an operator",
        stk_live_user(l, owner)->name, stk_tier_name(job->tier),
        stk_live_queue_name(l, job->terms.queue), tiers, setting);
}

static int refuse_priority(struct stk_live *l, uint32_t owner, const struct stk_job_spec *job,
                           const struct stk_rights *may, struct stk_err *err)
{
    char setting[80], range[40];

    if (may->lowest == -STK_MAX_PRIORITY)
        (void)snprintf(range, sizeof(range), "at most %d", may->most);
    else
        (void)snprintf(range, sizeof(range), "only %d to %d", may->lowest, may->most);
    name_setting(l, may->classes_of, "classes", may->classes_tenant, job->terms.queue, setting);
    return stk_err_set(err, -EPERM,
                       "priority: %.32s may not use %d in queue %.40s, %s (%s); or ask an operator",
                       stk_live_user(l, owner)->name, job->priority,
                       stk_live_queue_name(l, job->terms.queue), range, setting);
}

int stk_live_allow(struct stk_live *l, const struct stk_who *who, uint32_t owner,
                   struct stk_job_spec *io, struct stk_err *err)
{
    const struct stk_rights may = stk_live_rights(l, who, owner, io);

    if (!may.queue)
        return refuse_queue(l, owner, io, err);
    if (!(may.tiers >> io->tier & 1))
        return refuse_tier(l, owner, io, &may, err);
    if (io->priority < may.lowest || io->priority > may.most)
        return refuse_priority(l, owner, io, &may, err);
    io->terms.plain = !may.preempt;
    return 0;
}

struct stk_who stk_live_owner(struct stk_live *l, uint32_t uid)
{
    const struct stk_user *u = stk_live_user(l, uid);
    struct stk_who who = {.uid = uid, .gid = u->gid};

    who.role = l->cfg.role_of ? l->cfg.role_of(l->cfg.ctx, uid) : STK_ROLE_USER;
    (void)snprintf(who.user, sizeof(who.user), "%s", u->name);
    return who;
}

json_t *stk_live_show_rights(struct stk_live *l, const struct stk_who *who, uint32_t tenant,
                             uint32_t queue)
{
    const struct stk_queue_spec *q = &l->cfg.core.queues[queue];
    const struct stk_job_spec job = {.tenant = tenant, .terms.queue = queue};
    const struct stk_rights may = stk_live_rights(l, who, who->uid, &job);
    const int32_t least = may.lowest > q->lowest ? may.lowest : q->lowest,
                  most = may.most < q->most ? may.most : q->most;
    const bool open = may.queue && least <= most; /* else every priority is refused */
    json_t *tiers = json_array();

    for (uint32_t t = 0; tiers && t < STK_TIER_MAX; t++)
        if (open && may.tiers >> t & 1)
            (void)json_array_append_new(tiers, json_string(stk_tier_name((enum stk_tier)t)));
    return json_pack("{s:b,s:o,s:i,s:i,s:b}", "open", open, "tiers", tiers, "priority_min", least,
                     "priority_max", most, "preempt", may.preempt);
}
