/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/demand.h"

#include <string.h>

/* A type of the cluster is of this name, also where it is in MIG mode. */
static bool is_type(const char *type, const char *name)
{
    size_t len = strlen(name);

    return strncmp(type, name, len) == 0 &&
           (type[len] == '\0' ||
            strncmp(type + len, STK_GPU_TYPE_MIG, strlen(STK_GPU_TYPE_MIG)) == 0);
}

static void map_types(const struct stk_trace *t, const struct stk_cluster *c,
                      struct stk_trace_map *m)
{
    for (uint32_t i = 0; i < t->gpu_types.n && i < STK_MAX_GPU_TYPES; i++)
        for (uint32_t n = 0; n < c->gpu_types.n; n++)
            if (is_type(stk_names_get(&c->gpu_types, n), stk_names_get(&t->gpu_types, i)))
                m->types[i] |= UINT64_C(1) << n;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        m->mig |= (uint64_t)(c->nodes[i].mig != 0) << c->nodes[i].gpu_type;
}

/* Jobs that ask for what no node has are refused like others that ask for too much. */
static int map_resources(const struct stk_trace *t, const struct stk_cluster *c,
                         struct stk_trace_map *m, struct stk_err *err)
{
    m->n_resources = c->resources.n;
    for (uint32_t i = 0; i < c->resources.n; i++)
        m->names[i] = stk_names_get(&c->resources, i);
    for (uint32_t i = 0; i < t->resources.n; i++) {
        const char *name = stk_names_get(&t->resources, i);
        int64_t n = stk_names_find(&c->resources, name, strlen(name));

        if (n < 0 && m->n_resources == STK_MAX_RESOURCES)
            return stk_err_set(err, -E2BIG,
                               "the cluster and the trace name more than %d resources, \"%s\" is "
                               "one too many",
                               STK_MAX_RESOURCES, name);
        if (n < 0) {
            n = m->n_resources;
            m->names[m->n_resources++] = name;
        }
        m->resource[i] = (uint32_t)n;
    }
    return 0;
}

int stk_trace_map(const struct stk_trace *t, const struct stk_cluster *c, struct stk_trace_map *ret,
                  struct stk_err *err)
{
    *ret = (struct stk_trace_map){.n_resources = 0};
    map_types(t, c, ret);
    return map_resources(t, c, ret, err);
}

/* A type that has several forms here may be too much for the list: those are not used. */
static void add_extra(struct stk_demand *d, const struct stk_trace_extra *x,
                      const struct stk_trace_map *m)
{
    for (uint32_t i = 0; i < STK_MAX_RESOURCES; i++)
        if (x->resource[i])
            stk_demand_set_resource(d, m->resource[i], x->resource[i]);
    for (uint32_t i = 0; i < x->n_speeds; i++)
        for (uint64_t b = m->types[x->speed_type[i]] & (d->mig ? m->mig : ~m->mig); b; b &= b - 1)
            if (stk_demand_set_speed(d, (uint32_t)__builtin_ctzll(b), x->speed_milli[i]) < 0)
                d->gpu_types &= ~(b & -b);
}

struct stk_demand stk_trace_plain(const struct stk_trace_job *j)
{
    return (struct stk_demand){.tasks = j->tasks ? j->tasks : 1,
                               .gpus = j->gpus,
                               .gpu_types = j->gpu_types,
                               .cpu_milli = j->cpu_milli,
                               .mem_mib = j->mem_mib,
                               .level_required = j->level,
                               .level_preferred = j->prefer,
                               .group = j->subgroup,
                               .group_level = j->subgroup_level,
                               .per_node = j->per_node,
                               .exclusive = j->exclusive,
                               .gpu_mem_mib = j->gpu_mem_mib,
                               .gpu_milli = (uint16_t)j->gpu_milli,
                               .mig = (uint16_t)j->mig,
                               .share_max = (uint8_t)j->share_max,
                               .slo_milli = (uint16_t)j->slo_milli,
                               .cut = j->tasks == 0 && j->gpu_milli == 0};
}

struct stk_demand stk_trace_demand(const struct stk_trace *t, const struct stk_trace_job *j,
                                   const struct stk_trace_map *m)
{
    struct stk_demand d = stk_trace_plain(j);

    if (j->gpu_types != STK_ANY_GPU_TYPE) {
        d.gpu_types = 0;
        for (uint64_t b = j->gpu_types; b; b &= b - 1)
            d.gpu_types |= m->types[__builtin_ctzll(b)];
    }
    if (j->extra)
        add_extra(&d, &t->extras[j->extra - 1], m);
    return d;
}

void stk_trace_terms(const struct stk_trace *t, const struct stk_trace_job *j, bool saves,
                     struct stk_terms *terms)
{
    const struct stk_trace_extra *x = j->extra ? &t->extras[j->extra - 1] : NULL;

    terms->signals = saves && !(x && x->no_save);
    if (!x)
        return;
    terms->deadline = x->deadline;
    terms->min_run = x->min_run;
    terms->group = x->keep_group;
    terms->group_min = x->keep_min;
    terms->movable = x->movable;
    terms->no_sleep = x->no_sleep;
    terms->plain = x->plain;
}
