/* SPDX-License-Identifier: Apache-2.0 */
#include "core/share.h"

#include <string.h>

#include "core/limit.h"
#include "core/tenant.h"

__extension__ typedef unsigned __int128 wide;

int stk_share_init(struct stk_state *s)
{
    const struct stk_mem *m = &s->mem;

    s->tenant_waiting = m->resize(m->ctx, NULL, 0, (size_t)2 * s->n_tenants * sizeof(uint64_t));
    s->tenant_due = m->resize(m->ctx, NULL, 0, (size_t)2 * s->n_tenants * sizeof(uint64_t));
    s->share_sort = m->resize(m->ctx, NULL, 0, (size_t)2 * s->n_tenants * sizeof(*s->share_sort));
    return s->tenant_waiting && s->tenant_due && s->share_sort ? 0 : -ENOMEM;
}

void stk_share_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->tenant_waiting, 2 * (size_t)s->n_tenants);
    STK_BLOCK(v, s->tenant_due, 2 * (size_t)s->n_tenants);
    STK_BLOCK(v, s->share_sort, 2 * (size_t)s->n_tenants);
}

/* What the tenant wants was so much and is that now: what all are due stays if it is less. */
static void note(struct stk_state *s, uint32_t tenant, uint64_t before, uint64_t after)
{
    if ((before < after ? before : after) <= s->tenant_due[tenant])
        s->due_valid = false;
}

void stk_share_waits(struct stk_state *s, const struct stk_job *j, bool waits)
{
    const uint64_t milli = stk_limit_milli(s, &s->shapes[j->shape].demand, j->pool);

    for (uint32_t at = s->n_tenants ? j->tenant + 1 : 0; at; at = s->tenants[at - 1].parent) {
        const uint64_t used = *stk_tenant_used(s, at - 1, STK_ALL_TYPES);
        uint64_t *w = &s->tenant_waiting[at - 1], before = *w;

        *w = waits ? before + milli : before - milli;
        note(s, at - 1, used + before, used + *w);
    }
}

void stk_share_uses(struct stk_state *s, uint32_t tenant, int64_t milli)
{
    for (uint32_t at = tenant + 1; at; at = s->tenants[at - 1].parent) {
        const uint64_t want =
            *stk_tenant_used(s, at - 1, STK_ALL_TYPES) + s->tenant_waiting[at - 1];

        note(s, at - 1, want, want + (uint64_t)milli);
    }
}

void stk_share_changed(struct stk_state *s)
{
    s->due_valid = false;
}

#define WHOLE UINT64_C(1000) /* a GPU */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What each wants, from the leaves up; the second half of 'due' is scratch. */
static void find_wishes(struct stk_state *s, uint64_t *wish)
{
    memset(wish, 0, s->n_tenants * sizeof(*wish));
    for (uint32_t i = s->n_tenants; i-- > 0;) {
        const struct stk_tenant *t = &s->tenants[i];

        if (t->leaf)
            wish[i] = *stk_tenant_used(s, i, STK_ALL_TYPES) + s->tenant_waiting[i];
        wish[i] = least(wish[i], *stk_tenant_limit(s, i, STK_ALL_TYPES));
        if (t->parent)
            wish[t->parent - 1] += wish[i];
    }
}

/* Guarantees first, as far as they are wanted; what is left. Where nodes are missing they do not
 * all fit, and each is cut in proportion. */
static uint64_t give_guarantees(struct stk_state *s, uint32_t first, uint64_t have,
                                const uint64_t *wish)
{
    uint64_t sum = 0, given = 0;

    for (uint32_t at = first; at; at = s->tenants[at - 1].sibling) {
        s->tenant_due[at - 1] =
            least(wish[at - 1], *stk_tenant_guarantee(s, at - 1, STK_ALL_TYPES));
        sum += s->tenant_due[at - 1];
    }
    for (uint32_t at = first; at; at = s->tenants[at - 1].sibling) {
        if (sum > have)
            s->tenant_due[at - 1] = (uint64_t)((wide)s->tenant_due[at - 1] * have / sum);
        given += s->tenant_due[at - 1];
    }
    return have - given;
}

/* Few jobs ask for parts of GPUs: those that do not have what they want are due whole ones. What
 * they have beyond that goes to those who miss least for one more; ties to the first. */
static void round_up(struct stk_state *s, uint32_t n, uint64_t rest, const uint64_t *wish)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t over = (uint64_t)-s->share_sort[i].key;

        s->tenant_due[s->share_sort[i].id] -= over;
        rest += over;
    }
    stk_sort(s->share_sort, n, s->share_sort + s->n_tenants);
    for (uint32_t i = 0; i < n && rest > 0; i++) {
        const uint32_t t = s->share_sort[i].id;
        const uint64_t more = least(least(rest, WHOLE), wish[t] - s->tenant_due[t]);

        s->tenant_due[t] += more;
        rest -= more;
    }
}

/* The rest by weight, to those that want more. Who is satisfied first, per weight, goes first: what
 * it leaves is for the others. */
static void give_rest(struct stk_state *s, uint32_t first, uint64_t rest, const uint64_t *wish)
{
    uint64_t weights = 0;
    uint32_t n = 0, wanting = 0;

    for (uint32_t at = first; at; at = s->tenants[at - 1].sibling) {
        const uint64_t more = wish[at - 1] - s->tenant_due[at - 1];
        const uint32_t weight = s->tenants[at - 1].weight;

        if (more == 0 || weight == 0)
            continue;
        s->share_sort[n++] = (struct stk_sort_item){
            (int64_t)least((uint64_t)((wide)more * 1000000 / weight), INT64_MAX), at - 1, 0};
        weights += weight;
    }
    stk_sort(s->share_sort, n, s->share_sort + s->n_tenants);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = s->share_sort[i].id;
        const uint64_t part = (uint64_t)((wide)rest * s->tenants[t].weight / weights);
        const uint64_t more = least(wish[t] - s->tenant_due[t], part);

        s->tenant_due[t] += more;
        rest -= more;
        weights -= s->tenants[t].weight;
        if (more < part || more == wish[t] - (s->tenant_due[t] - more))
            continue; /* it has what it wants */
        s->share_sort[wanting++] = (struct stk_sort_item){-(int64_t)(more % WHOLE), t, 0};
    }
    round_up(s, wanting, rest, wish);
}

static void make_due(struct stk_state *s)
{
    uint64_t *wish = s->tenant_due + s->n_tenants, have = 0;

    find_wishes(s, wish);
    for (uint32_t i = 0; i < s->n_pools; i++)
        have += 1000 * (s->pools[i].gpus_up - s->pools[i].gpus_idle_off);
    give_rest(s, s->first_tenant, give_guarantees(s, s->first_tenant, have, wish), wish);
    for (uint32_t i = 0; i < s->n_tenants; i++) { /* those above come before those below */
        const uint32_t first = s->tenants[i].child;

        if (first)
            give_rest(s, first, give_guarantees(s, first, s->tenant_due[i], wish), wish);
    }
    s->due_valid = true;
    s->due_made++;
}

uint64_t stk_share_due(struct stk_state *s, uint32_t tenant)
{
    if (!s->due_valid)
        make_due(s);
    return s->tenant_due[tenant];
}

bool stk_share_sound(const struct stk_state *s, struct stk_err *err)
{
    uint64_t *sum = s->tenant_waiting + s->n_tenants; /* scratch */

    memset(sum, 0, s->n_tenants * sizeof(*sum));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        for (uint32_t at = j->state == STK_JOB_WAITING ? j->tenant + 1 : 0; at;
             at = s->tenants[at - 1].parent)
            sum[at - 1] += stk_limit_milli(s, &s->shapes[j->shape].demand, j->pool);
    }
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (sum[i] != s->tenant_waiting[i]) {
            (void)stk_err_set(err, -EINVAL, "tenant %.60s: %llu milli-GPU wait, counted %llu",
                              s->tenants[i].name, (unsigned long long)sum[i],
                              (unsigned long long)s->tenant_waiting[i]);
            return false;
        }
    return true;
}
