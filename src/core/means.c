/* SPDX-License-Identifier: Apache-2.0 */
#include "core/means.h"

#include "base/hash.h"
#include "core/settings.h"
#include "core/tenant.h"

static const uint64_t *stated(const struct stk_tenant_spec *t, int of)
{
    return of == STK_MEANS_CPU ? &t->cpu_limit : &t->mem_limit;
}

int stk_means_init(struct stk_state *s, const struct stk_tenant_spec *specs)
{
    const struct stk_mem *m = &s->mem;
    bool any = false;

    for (uint32_t i = 0; i < s->n_tenants; i++)
        any |= specs[i].cpu_limit != STK_NO_LIMIT || specs[i].mem_limit != STK_NO_LIMIT;
    if (!any)
        return 0;
    s->tenant_means = m->resize(m->ctx, NULL, 0, s->n_tenants * sizeof(*s->tenant_means));
    if (!s->tenant_means)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        for (int of = 0; of < STK_MEANS; of++)
            s->tenant_means[i].limit[of] = *stated(&specs[i], of);
    return 0;
}

void stk_means_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->tenant_means, s->n_tenants);
}

bool stk_means_limited(const struct stk_state *s, uint32_t tenant)
{
    const struct stk_means *m = s->tenant_means ? &s->tenant_means[tenant] : NULL;

    return m &&
           (m->limit[STK_MEANS_CPU] != STK_NO_LIMIT || m->limit[STK_MEANS_MEM] != STK_NO_LIMIT);
}

static bool within(uint64_t limit, uint64_t used, uint64_t more)
{
    return limit == STK_NO_LIMIT || more == 0 || (used <= limit && more <= limit - used);
}

/* Of what there is too little left; STK_MEANS: of nothing. */
static int over(const struct stk_means *m, const struct stk_wants *more)
{
    int of = 0;

    while (of < STK_MEANS && within(m->limit[of], m->used[of], more->of[of]))
        of++;
    return of;
}

bool stk_means_within(const struct stk_state *s, uint32_t tenant, const struct stk_wants *more)
{
    return over(&s->tenant_means[tenant], more) == STK_MEANS;
}

void stk_means_count(struct stk_state *s, const struct stk_job *j, bool add)
{
    const struct stk_wants w = stk_wants_of(&s->shapes[j->shape].demand);

    for (uint32_t at = s->tenant_means ? j->tenant + 1 : 0; at; at = s->tenants[at - 1].parent)
        for (int of = 0; of < STK_MEANS; of++)
            s->tenant_means[at - 1].used[of] += add ? w.of[of] : -w.of[of];
}

static const char *const units[STK_MEANS] = {"CPUs", "GiB of memory"};
static const double unit[STK_MEANS] = {1000, 1024};

/* As the limits are now, or as the core was made: one that was set is not there for ever. */
int stk_means_ever(const struct stk_state *s, uint32_t tenant, const struct stk_demand *d,
                   struct stk_err *err)
{
    const struct stk_wants w = stk_wants_of(d);

    for (int of = 0; s->tenant_means && of < STK_MEANS; of++) {
        const uint64_t limit = s->tenant_means[tenant].limit[of];

        if (!within(limit, 0, w.of[of]) &&
            !within(*stated(&s->settings->tenants[tenant], of), 0, w.of[of]))
            return stk_err_set(err, -ERANGE, "needs %g %s; the limit of tenant %.60s is %g",
                               (double)w.of[of] / unit[of], units[of], s->tenants[tenant].name,
                               (double)limit / unit[of]);
    }
    return 0;
}

bool stk_means_why(const struct stk_state *s, uint32_t tenant, const struct stk_wants *more,
                   struct stk_reason *r)
{
    const struct stk_means *m = s->tenant_means ? &s->tenant_means[tenant] : NULL;
    const int of = m ? over(m, more) : STK_MEANS;

    if (of == STK_MEANS)
        return false;
    r->unit = of == STK_MEANS_CPU ? STK_UNIT_CPUS : STK_UNIT_MEM;
    r->need = more->of[of];
    r->used = m->used[of];
    r->limit = m->limit[of];
    return true;
}

uint64_t stk_means_digest(const struct stk_state *s, uint64_t h)
{
    for (uint32_t i = 0; s->tenant_means && i < s->n_tenants; i++)
        for (int of = 0; of < STK_MEANS; of++)
            h = stk_hash_mix(stk_hash_mix(h, s->tenant_means[i].limit[of]),
                             s->tenant_means[i].used[of]);
    return h;
}

static void see(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_wants w = stk_wants_of(&s->shapes[j->shape].demand);

    for (uint32_t at = j->tenant + 1; at; at = s->tenants[at - 1].parent)
        for (int of = 0; of < STK_MEANS; of++)
            s->tenant_means[at - 1].seen[of] += w.of[of];
}

bool stk_means_sound(const struct stk_state *s, struct stk_err *err)
{
    struct stk_means *m = s->tenant_means;

    for (uint32_t i = 0; m && i < s->n_tenants; i++)
        m[i].seen[STK_MEANS_CPU] = m[i].seen[STK_MEANS_MEM] = 0;
    for (uint32_t i = 0; m && i < s->n_jobs; i++)
        if (s->jobs[i].state != STK_JOB_NONE && s->jobs[i].lease)
            see(s, &s->jobs[i]);
    for (uint32_t i = 0; m && i < s->n_tenants; i++)
        for (int of = 0; of < STK_MEANS; of++)
            if (m[i].seen[of] != m[i].used[of]) {
                (void)stk_err_set(err, -EINVAL,
                                  "tenant %.60s: leases have %llu of %s, counted %llu",
                                  s->tenants[i].name, (unsigned long long)m[i].seen[of], units[of],
                                  (unsigned long long)m[i].used[of]);
                return false;
            }
    return true;
}
