/* SPDX-License-Identifier: Apache-2.0 */
/* renamed.c - other tables of tenants and queues than the jobs were submitted under.
 *
 * Jobs know their tenant and their queue by name, reservations their tenant. A table in which the
 * name of a job that has not ended, or of a reservation that is not over, is missing is refused, at
 * a start and at a reload: the job would be counted for another tenant from then on, and nothing
 * would tell where it belonged. A tenant or queue that says what it "was" before takes them over
 * (carry.c). Jobs that have ended keep the name that they ended under. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"
#include "sys/json.h"

/* "tenant vision has 3 jobs that have not ended", and why and what to do. */
static int refuse_rename(struct stk_err *err, const char *noun, const char *name, uint32_t jobs)
{
    return stk_err_set(
        err, -EINVAL,
        "%s %.40s has %u job%s that %s not ended and is not in the configuration any "
        "more: put it back, or add \"was: %.40s\" to the %s that takes %s over, or "
        "cancel %s first",
        noun, name, jobs, jobs == 1 ? "" : "s", jobs == 1 ? "has" : "have", name, noun,
        jobs == 1 ? "it" : "them", jobs == 1 ? "it" : "them");
}

static bool has_children(const struct stk_core_config *c, uint32_t row)
{
    for (uint32_t i = row + 1; i < c->n_tenants; i++)
        if (c->tenants[i].parent == row)
            return true;
    return false;
}

static int check_tenants(const struct stk_live *l, const struct stk_live_tables *old,
                         const uint32_t *jobs, struct stk_err *err)
{
    const struct stk_core_config *c = &l->cfg.core;

    for (uint32_t i = 0; i < old->n_tenants; i++) {
        const char *name = old->tenants[i].name;
        uint32_t row = jobs[i] ? stk_tenant_find(c->tenants, c->n_tenants, name) : 0;

        if (jobs[i] && row == STK_NONE)
            return refuse_rename(err, "tenant", name, jobs[i]);
        if (jobs[i] && has_children(c, row))
            return stk_err_set(err, -EINVAL,
                               "tenant %.60s has %u job%s that %s not ended, and tenants below it "
                               "now: jobs belong to one of those. Cancel %s first",
                               name, jobs[i], jobs[i] == 1 ? "" : "s",
                               jobs[i] == 1 ? "has" : "have", jobs[i] == 1 ? "it" : "them");
    }
    return 0;
}

static int check_queues(const struct stk_live *l, const struct stk_live_tables *old,
                        const uint32_t *jobs, struct stk_err *err)
{
    const struct stk_core_config *c = &l->cfg.core;

    for (uint32_t i = 0; i < old->n_queues; i++)
        if (jobs[i] && stk_queue_find(c->queues, c->n_queues, old->queues[i].name) == STK_NONE)
            return refuse_rename(err, "queue", old->queues[i].name, jobs[i]);
    return 0;
}

/* A reservation whose tenant the old table lacks, too, keeps nothing from changing. */
static int check_reservations(const struct stk_live *l, const struct stk_live_tables *old,
                              struct stk_err *err)
{
    const struct stk_core_config *c = &l->cfg.core;

    for (size_t i = 0; i < json_array_size(l->reservations); i++) {
        const json_t *o = json_array_get(l->reservations, i);
        const char *tenant = stk_str(o, "tenant");

        if (!*tenant || json_object_get(o, "over") ||
            stk_tenant_find(old->tenants, old->n_tenants, tenant) == STK_NONE ||
            stk_tenant_find(c->tenants, c->n_tenants, tenant) != STK_NONE)
            continue;
        return stk_err_set(err, -EINVAL,
                           "reservation %.60s is for tenant %.40s, which is not in the "
                           "configuration any more: put the tenant back, or add \"was: %.40s\" to "
                           "the tenant that takes the reservation over, or remove the reservation "
                           "first (stoker reserve rm)",
                           stk_str(o, "name"), tenant, tenant);
    }
    return 0;
}

int stk_live_renamed_check(const struct stk_live *l, const struct stk_live_tables *old,
                           struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t *of_tenant = calloc(old->n_tenants + 1u, sizeof(*of_tenant)),
             of_queue[STK_MAX_QUEUES] = {0};
    int rc;

    if (!of_tenant)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE)
            continue;
        if (j->tenant < old->n_tenants)
            of_tenant[j->tenant]++;
        if (s->terms[i].queue < old->n_queues)
            of_queue[s->terms[i].queue]++;
    }
    rc = check_tenants(l, old, of_tenant, err);
    rc = rc < 0 ? rc : check_queues(l, old, of_queue, err);
    rc = rc < 0 ? rc : check_reservations(l, old, err);
    free(of_tenant);
    return rc;
}
