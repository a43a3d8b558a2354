/* SPDX-License-Identifier: Apache-2.0 */
/* teams.c - tenants and queues: who may have how much, and who has it. */
#include <stdlib.h>
#include <string.h>

#include "api/show.h"
#include "api/spent.h"
#include "core/account.h"
#include "core/means.h"
#include "core/share.h"
#include "core/state.h"
#include "core/tenant.h"
#include "model/reason.h"

#define MAX_TEAMS 16u

json_t *stk_show_limit(const struct stk_reason *w)
{
    static const struct {
        const char *name;
        double one;
    } units[] = {[STK_UNIT_GPUS] = {"gpus", 1000},
                 [STK_UNIT_JOBS] = {"jobs", 1},
                 [STK_UNIT_CPUS] = {"cpus", 1000},
                 [STK_UNIT_MEM] = {"gib", 1024}};
    const double unit = units[w->unit].one;

    if (w->code != STK_WHY_LIMIT && w->code != STK_WHY_QUEUE)
        return NULL;
    return json_pack("{s:s,s:s?,s:s?,s:s,s:f,s:f}", "of",
                     w->code == STK_WHY_LIMIT ? "tenant"
                                              : stk_queue_of_name((enum stk_queue_of)w->of),
                     "tenant", w->tenant, "queue", w->queue, "unit", units[w->unit].name, "used",
                     (double)w->used / unit, "limit", (double)w->limit / unit);
}

static void set(json_t *o, const char *key, json_t *take)
{
    (void)json_object_set_new(o, key, take);
}

static json_t *gpus(uint64_t milli, uint64_t none)
{
    return milli == none ? json_null() : json_real((double)milli / 1000);
}

static uint64_t over(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- tenants ---- */

static json_t *show_types(const struct stk_live_config *c, const struct stk_state *s,
                          uint32_t tenant)
{
    json_t *o = json_object();

    for (uint32_t i = 0; i < c->n_gpu_types && STK_OF_TYPE(i) < s->n_tenant_cols; i++)
        set(o, c->gpu_types[i],
            json_pack("{s:o,s:o,s:o,s:o}", "limit",
                      gpus(*stk_tenant_limit(s, tenant, STK_OF_TYPE(i)), STK_NO_LIMIT), "guarantee",
                      gpus(*stk_tenant_guarantee(s, tenant, STK_OF_TYPE(i)), UINT64_MAX), "used",
                      gpus(*stk_tenant_used(s, tenant, STK_OF_TYPE(i)), UINT64_MAX), "borrowed",
                      gpus(over(*stk_tenant_used(s, tenant, STK_OF_TYPE(i)),
                                *stk_tenant_guarantee(s, tenant, STK_OF_TYPE(i))),
                           UINT64_MAX)));
    return o;
}

/* CPUs and memory: null where no tenant has a limit on them, and they are not counted. */
static void show_means(json_t *o, const struct stk_state *s, uint32_t tenant)
{
    static const struct {
        const char *used, *limit;
        double one;
    } of[STK_MEANS] = {{"cpus_used", "cpus", 1000}, {"mem_gib_used", "mem_gib", 1024}};

    for (int k = 0; k < STK_MEANS; k++) {
        const struct stk_means *m = s->tenant_means ? &s->tenant_means[tenant] : NULL;

        set(o, of[k].limit,
            m && m->limit[k] != STK_NO_LIMIT ? json_real((double)m->limit[k] / of[k].one)
                                             : json_null());
        set(o, of[k].used, m ? json_real((double)m->used[k] / of[k].one) : json_null());
    }
}

struct tally {
    uint32_t running, waiting;
};

/* Jobs of each tenant and of all below it; NULL: out of memory. */
static struct tally *count_jobs(const struct stk_state *s)
{
    struct tally *n = calloc(s->n_tenants + 1u, sizeof(*n));

    for (uint32_t i = 0; n && i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE || j->tenant >= s->n_tenants)
            continue;
        for (uint32_t at = j->tenant + 1; at; at = s->tenants[at - 1].parent) {
            n[at - 1].running += j->lease != 0;
            n[at - 1].waiting += j->state == STK_JOB_WAITING;
        }
    }
    return n;
}

static json_t *show_tenant(struct stk_api *a, const struct tally *n, uint32_t i)
{
    const struct stk_live_config *c = stk_live_config(a->cfg.live);
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const struct stk_tenant *t = &s->tenants[i];
    uint64_t used = *stk_tenant_used(s, i, STK_ALL_TYPES);
    uint64_t sure = *stk_tenant_guarantee(s, i, STK_ALL_TYPES);
    json_t *o = json_pack("{s:s,s:o,s:b,s:o}", "name", t->name, "parent",
                          t->parent ? json_string(s->tenants[t->parent - 1].name) : json_null(),
                          "leaf", t->leaf, "users", stk_live_members(a->cfg.live, i));

    set(o, "limit", gpus(*stk_tenant_limit(s, i, STK_ALL_TYPES), STK_NO_LIMIT));
    set(o, "guarantee", gpus(sure, UINT64_MAX));
    set(o, "weight", json_real(t->weight / 1000.0));
    set(o, "keep_up", json_integer(t->keep_up));
    set(o, "jobs_up", json_integer(t->up));
    set(o, "used", gpus(used, UINT64_MAX));
    set(o, "borrowed", gpus(over(used, sure), UINT64_MAX));
    set(o, "idle", gpus(over(sure, used), UINT64_MAX));
    set(o, "due", gpus(stk_core_due(stk_live_core(a->cfg.live), i), UINT64_MAX));
    set(o, "waiting", gpus(stk_share_waiting(s, i), UINT64_MAX));
    set(o, "jobs_running", json_integer(n[i].running));
    set(o, "jobs_waiting", json_integer(n[i].waiting));
    show_means(o, s, i);
    set(o, "set", stk_live_quota_set(a->cfg.live, i));
    set(o, "types", show_types(c, s, i));
    return o;
}

void stk_do_tenants(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    uint32_t mine[MAX_TEAMS];
    uint32_t n_mine = stk_live_teams_of(a->cfg.live, stk_request_who(r)->uid, mine, MAX_TEAMS);
    struct tally *n = count_jobs(s);
    json_t *list = json_array(), *out;
    json_t *groups = a->cfg.groups ? a->cfg.groups(a->cfg.ctx) : NULL;

    for (uint32_t i = 0; n && i < s->n_tenants; i++) {
        json_t *o = show_tenant(a, n, i);
        bool member = n_mine == 0 && i == 0;

        for (uint32_t k = 0; k < n_mine && k < MAX_TEAMS; k++)
            member |= mine[k] == i;
        set(o, "mine", json_boolean(member));
        (void)json_array_append_new(list, o);
    }
    free(n);
    out = json_pack("{s:o,s:o}", "tenants", list, "price", stk_spent_price(a));
    stk_show_lending(a, list, out);
    set(out, "slurm", groups ? groups : json_null());
    stk_request_json(r, 200, out);
}

void stk_do_quota_set(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_asker by = {*stk_request_who(r), stk_api_reply, r};
    const char *name = stk_request_path(r, "name");
    json_t *body;
    int rc;

    if (stk_request_body(r, &body) < 0)
        return;
    rc = stk_live_quota(a->cfg.live, &by, name, body);
    if (rc == -ENOENT)
        stk_request_error(r, 404, "no_such_tenant", "there is no tenant \"%.60s\"", name);
    else if (rc < 0)
        stk_request_error(r, 503, "busy", "out of memory");
}

/* ---- queues ---- */

static json_t *show_use(const struct stk_state *s, uint32_t queue, enum stk_queue_of of,
                        uint32_t account)
{
    const struct stk_queue_limit *l = &s->queues[queue].limit[of];
    const struct stk_account *at =
        account && account != STK_NONE ? &s->accounts[account - 1] : NULL;

    return json_pack("{s:o,s:o,s:o,s:o}", "gpus", gpus(l->milli, STK_NO_LIMIT), "jobs",
                     l->jobs == STK_NO_JOB_LIMIT ? json_null() : json_integer(l->jobs), "gpus_used",
                     at || of == STK_OF_QUEUE || account == STK_NONE
                         ? json_real(at ? (double)at->milli / 1000 : 0)
                         : json_null(),
                     "jobs_used",
                     at || of == STK_OF_QUEUE || account == STK_NONE
                         ? json_integer(at ? at->jobs : 0)
                         : json_null());
}

static json_t *show_queue(struct stk_api *a, const struct stk_who *who, uint32_t tenant, uint32_t i)
{
    const struct stk_live_config *c = stk_live_config(a->cfg.live);
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const struct stk_queue_spec *q = &s->queues[i];
    const struct stk_terms mine = {.queue = i, .user = who->uid + 1};
    uint32_t on[STK_QUEUE_OF_MAX], pool = stk_live_queue_pool(c, i);
    json_t *o = json_pack("{s:s,s:b,s:i,s:i,s:i,s:s,s:o}", "name", q->name, "default", i == 0,
                          "priority", q->priority, "priority_min", q->lowest, "priority_max",
                          q->most, "tier", stk_tier_name(q->tier), "pool",
                          pool ? json_string(c->pools[pool - 1]) : json_null());

    stk_account_find(s, &mine, tenant, on);
    set(o, "may", stk_live_show_rights(a->cfg.live, who, tenant, i));
    set(o, "job",
        json_pack("{s:o,s:o}", "gpus", gpus(q->job_milli, STK_NO_LIMIT), "time_s",
                  q->job_time ? json_integer(q->job_time / STK_SECOND) : json_null()));
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++)
        set(o, stk_queue_of_name((enum stk_queue_of)of),
            show_use(s, i, (enum stk_queue_of)of, on[of]));
    return o;
}

void stk_do_quota(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const struct stk_who *who = stk_request_who(r);
    uint32_t mine[MAX_TEAMS] = {0};
    uint32_t n = stk_live_teams_of(a->cfg.live, who->uid, mine, MAX_TEAMS);
    json_t *queues = json_array(), *teams = json_array();

    for (uint32_t i = 0; i < s->n_queues; i++)
        (void)json_array_append_new(queues,
                                    show_queue(a, who, s->n_tenants ? mine[0] : who->uid, i));
    for (uint32_t i = 0; i < n && i < MAX_TEAMS; i++)
        (void)json_array_append_new(teams, json_string(s->tenants[mine[i]].name));
    if (n == 0 && s->n_tenants > 0)
        (void)json_array_append_new(teams, json_string(s->tenants[0].name));
    stk_request_json(r, 200,
                     json_pack("{s:s,s:o,s:o,s:o}", "user", who->user, "tenants", teams, "queues",
                               queues, "set", stk_live_quota_set(a->cfg.live, STK_NONE)));
}
