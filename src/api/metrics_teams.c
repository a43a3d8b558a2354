/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_teams.c - tenants in /metrics: what each has, may have and wants. */
#include <stdlib.h>

#include "api/metrics.h"
#include "core/share.h"
#include "core/state.h"
#include "core/tenant.h"

#define MAX_TENANTS 1000u /* rows */

struct family {
    const char *name, *help;
    uint64_t (*of)(struct stk_core *core, uint32_t tenant);
    uint64_t none; /* is not shown */
};

static uint64_t used(struct stk_core *core, uint32_t t)
{
    return *stk_tenant_used(stk_core_state(core), t, STK_ALL_TYPES);
}

static uint64_t limit(struct stk_core *core, uint32_t t)
{
    return *stk_tenant_limit(stk_core_state(core), t, STK_ALL_TYPES);
}

static uint64_t guarantee(struct stk_core *core, uint32_t t)
{
    return *stk_tenant_guarantee(stk_core_state(core), t, STK_ALL_TYPES);
}

static uint64_t due(struct stk_core *core, uint32_t t)
{
    return stk_core_due(core, t);
}

static uint64_t waiting(struct stk_core *core, uint32_t t)
{
    return stk_share_waiting(stk_core_state(core), t);
}

static const struct family families[] = {
    {"stoker_tenant_used_gpus", "GPUs that the tenant has.", used, UINT64_MAX},
    {"stoker_tenant_guarantee_gpus", "GPUs that it can always have.", guarantee, UINT64_MAX},
    {"stoker_tenant_limit_gpus", "GPUs that it may have; absent: no limit.", limit, STK_NO_LIMIT},
    {"stoker_tenant_due_gpus", "Its fair share now.", due, UINT64_MAX},
    {"stoker_tenant_waiting_gpus", "GPUs that its waiting jobs ask for.", waiting, UINT64_MAX},
};

static void put_counts(struct stk_prom *p, const struct stk_state *s,
                       const struct stk_live_counts *c, uint32_t n)
{
    stk_prom_head(p, "stoker_tenant_jobs_started_total", "counter", "Jobs of the tenant started.");
    for (uint32_t i = 0; i < n && i < c->n_tenants; i++)
        stk_prom_put(p, "stoker_tenant_jobs_started_total", "tenant", s->tenants[i].name,
                     (double)c->tenant[i].started);
    stk_prom_head(p, "stoker_tenant_wait_seconds_total", "counter",
                  "Time its jobs waited before their starts, restarts included.");
    for (uint32_t i = 0; i < n && i < c->n_tenants; i++)
        stk_prom_put(p, "stoker_tenant_wait_seconds_total", "tenant", s->tenants[i].name,
                     (double)c->tenant[i].waited / 1e6);
    stk_prom_head(p, "stoker_tenant_preemptions_total", "counter",
                  "Times that jobs of the tenant were preempted.");
    for (uint32_t i = 0; i < n && i < c->n_tenants; i++)
        stk_prom_put(p, "stoker_tenant_preemptions_total", "tenant", s->tenants[i].name,
                     (double)c->tenant[i].preempted);
}

void stk_metrics_teams(struct stk_prom *p, struct stk_api *a)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    const struct stk_state *s = stk_core_state(core);
    uint32_t n = s->n_tenants < MAX_TENANTS ? s->n_tenants : MAX_TENANTS;

    for (size_t f = 0; n > 0 && f < sizeof(families) / sizeof(*families); f++) {
        stk_prom_head(p, families[f].name, "gauge", families[f].help);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t v = families[f].of(core, i);

            if (v != families[f].none)
                stk_prom_put(p, families[f].name, "tenant", s->tenants[i].name, (double)v / 1000);
        }
    }
    if (n > 0)
        put_counts(p, s, stk_live_counts(a->cfg.live), n);
}
