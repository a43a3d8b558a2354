/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tenants.h"

#include <stdlib.h>
#include <string.h>

#include "sim/slurp.h"

/* The cluster's GPU types by name; it has one pool for every group of the trace, and none has a
 * name. */
static int resolve(struct stk_tenants *t, const char *name, const struct stk_cluster *c,
                   struct stk_err *err)
{
    const char *types[STK_MAX_GPU_TYPES];
    struct stk_teams_world w = {.name = name, .types = types};

    for (; w.n_types < c->gpu_types.n && w.n_types < STK_MAX_GPU_TYPES; w.n_types++)
        types[w.n_types] = stk_names_get(&c->gpu_types, w.n_types);
    return stk_teams_resolve(&t->teams, &w, err);
}

int stk_tenants_parse(struct stk_tenants *t, const char *name, const char *data, size_t len,
                      const struct stk_cluster *c, struct stk_err *err)
{
    int rc = stk_teams_parse(&t->teams, name, data, len, err);

    return rc < 0 ? rc : resolve(t, name, c, err);
}

int stk_tenants_read(struct stk_tenants *t, const char *path, const struct stk_cluster *c,
                     struct stk_err *err)
{
    char *data = NULL;
    size_t len = 0;
    int rc = stk_slurp(path, &data, &len, err);

    rc = rc < 0 ? rc : stk_tenants_parse(t, path, data, len, c, err);
    free(data);
    return rc;
}

/* The tenant of this name, or of this user. */
static uint32_t find(const struct stk_teams *t, const char *name)
{
    uint32_t row = stk_teams_find(t, name);
    int64_t user = stk_names_find(&t->users, name, strlen(name));

    for (uint32_t i = 0; row == STK_NONE && user >= 0 && i < t->n_members; i++)
        if (t->members[i].user == (uint32_t)user)
            row = t->members[i].tenant;
    return row == STK_NONE ? 0 : row;
}

/* The rows of these names of the trace. */
static int match_names(const struct stk_tenants *t, const struct stk_names *names, uint32_t *ret,
                       struct stk_err *err)
{
    for (uint32_t i = 0; i < names->n && t->teams.n_tenants > 0; i++) {
        const char *name = stk_names_get(names, i);
        uint32_t row = find(&t->teams, name);

        if (row > 0 && !stk_teams_leaf(&t->teams, row))
            return stk_err_set(err, -EINVAL,
                               "the trace has jobs of tenant \"%.60s\", which has others below it: "
                               "put it among those, under a name of its own",
                               name);
        ret[i] = row;
    }
    return 0;
}

static int match_queues(struct stk_tenants *t, const struct stk_trace *trace, struct stk_err *err)
{
    for (uint32_t i = 0; i < trace->queues.n; i++) {
        const char *name = stk_names_get(&trace->queues, i);

        t->queue_of[i] = stk_queue_find(t->teams.queues, t->teams.n_queues, name);
        if (t->queue_of[i] == STK_NONE)
            return stk_err_set(err, -EINVAL,
                               "the trace has jobs of queue \"%.60s\", which the file "
                               "of tenants and queues does not have",
                               name);
    }
    return 0;
}

int stk_tenants_match(struct stk_tenants *t, const struct stk_trace *trace, struct stk_err *err)
{
    int rc;

    t->of_trace = calloc(trace->tenants.n + 1u, sizeof(*t->of_trace));
    t->of_group = calloc(trace->groups.n + 1u, sizeof(*t->of_group));
    t->queue_of = calloc(trace->queues.n + 1u, sizeof(*t->queue_of));
    t->users = trace->users.n;
    if (!t->of_trace || !t->of_group || !t->queue_of)
        return stk_err_set(err, -ENOMEM, "out of memory for %u tenants", trace->tenants.n);
    for (uint32_t i = 0; t->teams.n_tenants == 0 && i < trace->tenants.n; i++)
        t->of_trace[i] = i; /* the trace's own */
    rc = match_names(t, &trace->tenants, t->of_trace, err);
    rc = rc < 0 ? rc : match_names(t, &trace->groups, t->of_group, err);
    return rc < 0 ? rc : match_queues(t, trace, err);
}

void stk_tenants_place(const struct stk_tenants *t, const struct stk_trace_job *j,
                       struct stk_job_spec *spec)
{
    const struct stk_queue_spec *q;

    spec->tenant = t ? t->of_trace[j->tenant] : j->tenant;
    if (!t)
        return;
    if (spec->tenant == 0 && t->teams.n_tenants > 0)
        spec->tenant = t->of_group[j->group];
    spec->terms.queue = j->queue ? t->queue_of[j->queue - 1] : 0;
    spec->terms.user = j->user ? j->user : t->users + j->tenant + 1;
    if (!j->queue)
        return;
    q = &t->teams.queues[spec->terms.queue];
    if (spec->priority == 0)
        spec->priority = q->priority;
    if (spec->tier == STK_TIER_STANDARD)
        spec->tier = q->tier;
    if (q->pool)
        spec->pool.i = q->pool - 1;
}

void stk_tenants_free(struct stk_tenants *t)
{
    stk_teams_done(&t->teams);
    free(t->of_trace);
    free(t->of_group);
    free(t->queue_of);
    *t = (struct stk_tenants){0};
}

int stk_flat_tenants_make(struct stk_flat_tenants *t, const struct stk_trace *trace,
                          struct stk_err *err)
{
    uint32_t n = trace->tenants.n < STK_MAX_TENANTS - 1 ? trace->tenants.n : STK_MAX_TENANTS - 1;

    t->rows = calloc(n + 1u, sizeof(*t->rows));
    t->of_trace = calloc(trace->tenants.n + 1u, sizeof(*t->of_trace));
    if (!t->rows || !t->of_trace)
        return stk_err_set(err, -ENOMEM, "out of memory for %u tenants", n);
    stk_tenant_spec_init(&t->rows[t->n++], STK_TENANT_DEFAULT, STK_NONE);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = stk_names_get(&trace->tenants, i);

        if (strcmp(name, STK_TENANT_DEFAULT) == 0)
            continue;
        t->of_trace[i] = t->n;
        stk_tenant_spec_init(&t->rows[t->n++], name, STK_NONE);
    }
    return 0;
}

void stk_flat_tenants_free(struct stk_flat_tenants *t)
{
    free(t->rows);
    free(t->of_trace);
    *t = (struct stk_flat_tenants){0};
}
