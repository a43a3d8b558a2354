/* SPDX-License-Identifier: Apache-2.0 */
#include "core/budget.h"

#include <assert.h>

#include "base/hash.h"
#include "core/shape.h"
#include "core/tenant.h"

int stk_budget_reserve(struct stk_state *s)
{
    if (stk_mem_grow(&s->mem, &s->budgets, &s->cap_budgets, s->n_budgets + 1, sizeof(*s->budgets)) <
        0)
        return -ENOMEM;
    return stk_map_reserve(&s->by_group, &s->mem, s->n_budgets + 1);
}

void stk_budget_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->budgets, s->cap_budgets);
    STK_BLOCK(v, s->by_group.slot, s->by_group.cap);
}

static struct stk_budget *of(const struct stk_state *s, uint32_t job)
{
    uint32_t group = s->terms[job].group;
    uint32_t row = group ? stk_map_get(&s->by_group, group) : UINT32_MAX;

    return row == UINT32_MAX ? NULL : &s->budgets[row];
}

static struct stk_budget *make(struct stk_state *s, uint32_t group)
{
    uint32_t row = s->free_budget ? s->free_budget - 1 : s->n_budgets++;

    assert(s->budgets && row < s->cap_budgets);
    if (s->free_budget)
        s->free_budget = s->budgets[row].next;
    s->budgets[row] = (struct stk_budget){.group = group};
    stk_map_put(&s->by_group, group, row);
    return &s->budgets[row];
}

void stk_budget_join(struct stk_state *s, uint32_t job)
{
    const struct stk_terms *t = &s->terms[job];
    struct stk_budget *b = of(s, job);

    if (!t->group)
        return;
    b = b ? b : make(s, t->group);
    b->members++;
    b->least = t->group_min > b->least ? t->group_min : b->least;
}

void stk_budget_leave(struct stk_state *s, uint32_t job)
{
    struct stk_budget *b = of(s, job);

    if (!b || --b->members > 0)
        return;
    stk_map_remove(&s->by_group, b->group);
    b->next = s->free_budget;
    s->free_budget = (uint32_t)(b - s->budgets) + 1;
}

/* Whoever waits for somebody of these to go may look again, in whatever pool. */
static void look_again(struct stk_state *s, bool *spared)
{
    if (!*spared)
        return;
    *spared = false;
    s->leave_look |= s->n_leaving > 0;
    for (uint32_t i = 0; i < s->n_pools; i++) {
        struct stk_pool *p = &s->pools[i];

        if (p->n_waiting == 0)
            continue;
        p->blocked = false;
        stk_shape_wake_all(s, p);
        stk_shape_wake_titles(s, p);
        stk_shape_mark_dirty(s, i);
    }
}

/* The first tenant from the job's own up, + 1; 0: nobody counts. */
static uint32_t first_tenant(const struct stk_state *s, uint32_t job)
{
    return s->n_tenants ? s->jobs[job].tenant + 1 : 0;
}

void stk_budget_up(struct stk_state *s, uint32_t job, bool up)
{
    struct stk_budget *b = of(s, job);

    if (b) {
        b->up += up ? 1 : UINT32_MAX;
        if (up)
            look_again(s, &b->spared);
    }
    for (uint32_t at = first_tenant(s, job); at; at = s->tenants[at - 1].parent) {
        s->tenants[at - 1].up += up ? 1 : UINT32_MAX;
        if (up)
            look_again(s, &s->tenants[at - 1].spared);
    }
}

/* With n more gone, so many of 'up' are left as must be. */
static bool enough(uint32_t up, uint32_t least, uint64_t gone)
{
    return least == 0 || up >= least + gone;
}

bool stk_budget_spares(struct stk_state *s, uint32_t job, uint32_t n)
{
    struct stk_budget *b = of(s, job);

    if (b && !enough(b->up, b->least, (uint64_t)b->taken + n)) {
        b->spared = true;
        return false;
    }
    for (uint32_t at = s->keep_up ? first_tenant(s, job) : 0; at; at = s->tenants[at - 1].parent) {
        struct stk_tenant *t = &s->tenants[at - 1];

        if (!enough(t->up, t->keep_up, (uint64_t)t->taken + n)) {
            t->spared = true;
            return false;
        }
    }
    return true;
}

/* So many more, or fewer, of the job's group and tenants are taken. */
static void take(struct stk_state *s, uint32_t job, uint32_t n)
{
    struct stk_budget *b = of(s, job);

    if (b)
        b->taken += n;
    for (uint32_t at = s->keep_up ? first_tenant(s, job) : 0; at; at = s->tenants[at - 1].parent)
        s->tenants[at - 1].taken += n;
}

bool stk_budget_take(struct stk_state *s, uint32_t job)
{
    if (!stk_budget_spares(s, job, 1))
        return false;
    take(s, job, 1);
    return true;
}

void stk_budget_give(struct stk_state *s, uint32_t job)
{
    take(s, job, UINT32_MAX);
}

void stk_budgets_put(struct stk_bytes *b, const struct stk_state *s)
{
    stk_put_u(b, s->by_group.n);
    for (uint32_t i = 0; i < s->n_budgets; i++)
        if (s->budgets[i].members > 0) {
            stk_put_u(b, s->budgets[i].group);
            stk_put_u(b, s->budgets[i].least);
        }
}

void stk_budgets_get(struct stk_reader *r, struct stk_state *s, uint64_t version)
{
    uint32_t n = version < 5 ? 0 : stk_get_u32(r);

    r->bad |= n > s->n_budgets;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        uint32_t row = stk_map_get(&s->by_group, stk_get_u32(r)), least = stk_get_u32(r);

        if (row == UINT32_MAX)
            r->bad = true;
        else if (least > s->budgets[row].least) /* a member that has ended said so */
            s->budgets[row].least = least;
    }
}

uint64_t stk_budgets_digest(const struct stk_state *s, uint64_t h)
{
    uint64_t sum = 0; /* rows may lie in another order */

    for (uint32_t i = 0; i < s->n_budgets; i++)
        if (s->budgets[i].members > 0)
            sum += stk_hash_mix(stk_hash_mix(s->budgets[i].group, s->budgets[i].least),
                                s->budgets[i].up);
    return sum ? stk_hash_mix(h, sum) : h;
}

/* Jobs that are up, of each tenant and all below it. */
static bool tenants_sound(const struct stk_state *s, struct stk_err *err)
{
    for (uint32_t i = 0; i < s->n_tenants; i++)
        s->tenants[i].seen = 0;
    for (uint32_t i = 0; s->n_tenants && i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state != STK_JOB_PLACED && j->state != STK_JOB_RUNNING)
            continue;
        for (uint32_t at = j->tenant + 1; at; at = s->tenants[at - 1].parent)
            s->tenants[at - 1].seen++;
    }
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (s->tenants[i].seen != s->tenants[i].up || s->tenants[i].taken != 0)
            return stk_err_set(err, -EINVAL, "tenant %.60s: %u of its jobs are up, %u are counted",
                               s->tenants[i].name, s->tenants[i].seen, s->tenants[i].up) == 0;
    return true;
}

bool stk_budgets_sound(const struct stk_state *s, struct stk_err *err)
{
    for (uint32_t i = 0; i < s->n_budgets; i++)
        s->budgets[i].seen = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        struct stk_budget *b;

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE || !s->terms[i].group)
            continue;
        b = of(s, i);
        if (!b || b->least < s->terms[i].group_min)
            return stk_err_set(err, -EINVAL, "job %u: its group has no budget, or too small a one",
                               j->number) == 0;
        b->seen += j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
    }
    for (uint32_t i = 0; i < s->n_budgets; i++)
        if (s->budgets[i].members > 0 &&
            (s->budgets[i].seen != s->budgets[i].up || s->budgets[i].taken != 0))
            return stk_err_set(err, -EINVAL, "group %u: %u are up, %u are counted",
                               s->budgets[i].group, s->budgets[i].seen, s->budgets[i].up) == 0;
    return tenants_sound(s, err);
}
