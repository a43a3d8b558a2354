/* SPDX-License-Identifier: Apache-2.0 */
/* prop_disrupt.c - nobody who is needed gives way: whatever makes a job go (preemption, moves,
 * reservations that evict, nodes that change pools), of its group and of its tenants so many stay
 * up as must, in random worlds.
 *
 * STOKER_RUNS (default 200) worlds from STOKER_SEED (default 1) on; one that fails prints its seed,
 * and STOKER_RUNS=1 STOKER_SEED=that repeats it alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tenant.h"
#include "lib/prop.h"
#include "lib/world.h"
#include "policy/registry.h"

static struct count {
    uint64_t evictions, of_groups, of_tenants, moved, nobodys; /* nobodys: for no job */
    uint64_t tight; /* evictions after which nobody else of them may go */
} count;

static bool is_up(const struct stk_job *j)
{
    return j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
}

static bool is_below(const struct stk_state *s, uint32_t tenant, uint32_t top)
{
    for (uint32_t at = tenant + 1; at; at = s->tenants[at - 1].parent)
        if (at - 1 == top)
            return true;
    return false;
}

/* Counted afresh, from the rows of jobs alone. */
static void check_group(const struct fx *f, uint32_t job)
{
    const struct stk_state *s = f->s;
    const uint32_t group = s->terms[job].group;
    uint32_t up = 0, least = 0;

    for (uint32_t i = 0; group && i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (s->terms[i].group != group || j->state == STK_JOB_NONE || j->state == STK_JOB_DONE)
            continue;
        up += is_up(j);
        least = s->terms[i].group_min > least ? s->terms[i].group_min : least;
    }
    fx_must(least == 0 || up > least, "job %u goes, and of group %u %u are up of at least %u",
            s->jobs[job].number, group, up - 1, least);
    count.of_groups += least > 0;
    count.tight += least > 0 && up == least + 1;
}

static void check_tenants(const struct fx *f, uint32_t job)
{
    const struct stk_state *s = f->s;

    for (uint32_t at = s->n_tenants ? s->jobs[job].tenant + 1 : 0; at;
         at = s->tenants[at - 1].parent) {
        const uint32_t least = s->tenants[at - 1].keep_up;
        uint32_t up = 0;

        for (uint32_t i = 0; i < s->n_jobs; i++)
            up += is_up(&s->jobs[i]) && is_below(s, s->jobs[i].tenant, at - 1);
        fx_must(least == 0 || up > least, "job %u goes, and of tenant %s %u are up of at least %u",
                s->jobs[job].number, s->tenants[at - 1].name, up - 1, least);
        count.of_tenants += least > 0;
        count.tight += least > 0 && up == least + 1;
    }
}

static void check_eviction(struct fx *f, const struct stk_event *ev)
{
    if (ev->type != STK_EV_EVICT || ev->u.evict.by_hand || ev->job.i >= f->s->n_jobs ||
        !is_up(&f->s->jobs[ev->job.i]) || f->s->jobs[ev->job.i].lease != ev->lease)
        return;
    check_group(f, ev->job.i);
    check_tenants(f, ev->job.i);
    count.evictions++;
    count.moved += ev->u.evict.moved;
    count.nobodys += ev->u.evict.for_job.i == STK_NONE;
}

/* A world in which jobs give way, and tenants keep jobs up. */
static void make(struct world *w, struct stk_rng *r, uint64_t seed)
{
    uint64_t at = seed << 20;

    do {
        *w = (struct world){.exact = false};
        stk_rng_init(r, at++);
        world_policies(w, r);
    } while (!stk_preempt_find(w->setup.preempt)->room);
    world_cluster(w, r);
    world_delays(w, r);
    w->terms = true;
    for (uint32_t i = 0; i < w->setup.n_tenants; i++) {
        const bool keeps = stk_rng_below(r, 3) == 0;

        w->tenants[i].keep_up = keeps ? 1 + (uint32_t)stk_rng_below(r, 4) : 0;
    }
}

/* Sometimes a node goes to another pool, and what is on it gives way; or a tenant gets another
 * number. */
static void set_something(struct fx *f, struct stk_rng *r)
{
    struct stk_set set;

    do
        world_set(f, r, &set);
    while (set.kind != STK_SET_POOL && set.kind != STK_SET_KEEP_UP);
    (void)fx_set(f, &set);
}

/* Small jobs of few groups and all levels: many could go, and many are needed. */
static void submit_some(const struct world *w, struct fx *f, struct stk_rng *r)
{
    for (uint32_t n = 1 + (uint32_t)stk_rng_below(r, 3); n > 0; n--) {
        struct stk_dep deps[4];
        struct stk_job_spec spec = world_job(w, f, r, deps);

        spec.n_deps = 0;
        spec.begin = 0;
        spec.tier = (enum stk_tier)stk_rng_below(r, STK_TIER_MAX);
        spec.estimate = (stk_time)(5 + stk_rng_below(r, 60)) * STK_SECOND;
        spec.terms.group = (uint32_t)stk_rng_below(r, 4);
        spec.terms.group_min = spec.terms.group ? (uint32_t)stk_rng_below(r, 4) : 0;
        spec.terms.movable = true;
        (void)fx_try_submit(f, &spec);
    }
}

static void budget_run(uint64_t seed)
{
    struct world w;
    struct stk_rng r;
    struct fx *f;

    make(&w, &r, seed);
    f = fx_new(&w.setup);
    f->before = check_eviction;
    for (int i = 0; i < 150; i++) {
        world_act(&w, f, &r);
        submit_some(&w, f, &r);
        if (stk_rng_below(&r, 12) == 0)
            set_something(f, &r);
        if (stk_rng_below(&r, 3) == 0)
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 6000000));
        fx_turn(f);
        fx_sound(f);
    }
    fx_free(f);
}

/* ---- running them ---- */

#define GATHERS_TWICE                                                                              \
    5211 /* a search whose first candidates were tried as a gang and do not suffice */

int main(void)
{
    uint64_t runs = prop_number("STOKER_RUNS", 200), seed = prop_number("STOKER_SEED", 1);

    prop_watch("prop_disrupt");
    prop_seed = GATHERS_TWICE;
    budget_run(prop_seed);
    for (prop_seed = seed; prop_seed < seed + runs; prop_seed++)
        budget_run(prop_seed);
    (void)printf("%llu worlds, %llu evictions (%llu moves, %llu for no job); %llu of groups, %llu "
                 "of tenants that keep jobs up; %llu leave nothing to spare\n",
                 (unsigned long long)runs, (unsigned long long)count.evictions,
                 (unsigned long long)count.moved, (unsigned long long)count.nobodys,
                 (unsigned long long)count.of_groups, (unsigned long long)count.of_tenants,
                 (unsigned long long)count.tight);
    fx_must(runs < 100 || (count.of_groups > 20 && count.of_tenants > 20 && count.tight > 20 &&
                           count.moved > 0 && count.nobodys > 20),
            "all ways to go are seen");
    return 0;
}
