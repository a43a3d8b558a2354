/* SPDX-License-Identifier: Apache-2.0 */
#include "core/budget.h"

#include <assert.h>

#include "base/hash.h"
#include "core/shape.h"

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

void stk_budget_up(struct stk_state *s, uint32_t job, bool up)
{
    struct stk_budget *b = of(s, job);

    if (!b)
        return;
    b->up += up ? 1 : UINT32_MAX;
    if (up && b->least > 0)
        stk_shape_retry(s, s->jobs[job].pool); /* another of them may go now */
}

bool stk_budget_take(struct stk_state *s, uint32_t job)
{
    struct stk_budget *b = of(s, job);

    if (!b)
        return true;
    if (b->least > 0 && b->up <= b->least + b->taken)
        return false;
    b->taken++;
    return true;
}

void stk_budget_give(struct stk_state *s, uint32_t job)
{
    struct stk_budget *b = of(s, job);

    if (b)
        b->taken--;
}

bool stk_budget_spares(const struct stk_state *s, uint32_t job, uint32_t n)
{
    const struct stk_budget *b = of(s, job);

    return !b || b->least == 0 || b->up >= b->least + n;
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
    return true;
}
