/* SPDX-License-Identifier: Apache-2.0 */
/* prop_remedy.c - what is said to start a job does start it, nothing smaller of its kind does, and
 * where something of a kind would, something is said. Tried on random worlds, with a loop of its
 * own around forks.
 *
 * STOKER_RUNS (default 150) worlds from STOKER_SEED (default 1) on, as prop_core.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/remedy.h"
#include "core/tenant.h"
#include "lib/prop.h"
#include "lib/world.h"

#define MAX_JOBS 6 /* asked about in a world */

static uint64_t asked, found, tried;
static uint64_t of_kind[STK_REMEDY_KINDS];

/* ---- whether a change starts it ---- */

static bool tell(struct stk_core *c, stk_time now, struct stk_event ev)
{
    ev.at = now;
    return stk_core_apply(c, &ev, NULL) == 0;
}

static void ends(struct stk_core *c, stk_time now, uint32_t job)
{
    const struct stk_job *j = &stk_core_state(c)->jobs[job];

    fx_must(tell(c, now,
                 (struct stk_event){.type = STK_EV_EXITED,
                                    .job = {job},
                                    .lease = j->lease ? j->lease : j->slept,
                                    .u.exit.cause = j->cancel_wanted ? STK_CAUSE_CANCELLED
                                                                     : STK_CAUSE_EVICTED}),
            "what is stopped ends");
}

/* The engine acts at once; whether the job is given GPUs. */
static bool decides(struct stk_core *c, stk_time now, uint32_t job)
{
    struct stk_event out[256];
    uint32_t n;

    if (stk_core_tick_due(c, now))
        (void)tell(c, now, (struct stk_event){.type = STK_EV_TICK});
    while ((n = stk_core_decide(c, now, out, 64)) > 0) {
        for (uint32_t i = 0; i < n; i++)
            fx_must(tell(c, now, out[i]), "a decision is accepted");
        for (uint32_t i = 0; i < n; i++) {
            if (out[i].type == STK_EV_PLACE && out[i].job.i == job)
                return true;
            if (out[i].type == STK_EV_EVICT)
                ends(c, now, out[i].job.i);
            else if (out[i].type == STK_EV_PLACE)
                (void)tell(c, now,
                           (struct stk_event){
                               .type = STK_EV_STARTED, .job = out[i].job, .lease = out[i].lease});
        }
    }
    return false;
}

/* TYPE_MAX: with no event at all. */
static bool starts(struct fx *f, uint32_t job, struct stk_event ev)
{
    const stk_time round = f->s->round,
                   now = round > 0 ? (f->now + round - 1) / round * round : f->now;
    const struct stk_state *s;
    struct stk_core *c;
    bool yes;

    tried++;
    fx_must(stk_core_fork(f->core, &c, &f->err) == 0, "forked: %s", f->err.text);
    s = stk_core_state(c);
    ev.job.i = job;
    yes = ev.type == STK_EV_TYPE_MAX || tell(c, now, ev);
    for (uint32_t i = 0; yes && i < s->n_jobs; i++)
        if (s->jobs[i].state == STK_JOB_STOPPING)
            ends(c, now, i);
        else if (s->jobs[i].state == STK_JOB_PLACED)
            (void)tell(
                c, now,
                (struct stk_event){.type = STK_EV_STARTED, .job = {i}, .lease = s->jobs[i].lease});
    yes = yes && decides(c, now, job);
    stk_core_free(c);
    return yes;
}

static bool starts_as(struct fx *f, uint32_t job, const struct stk_job_spec *spec)
{
    return starts(f, job, (struct stk_event){.type = STK_EV_UPDATE, .u.update.spec = spec});
}

/* ---- all changes of a kind, from the smallest on ---- */

static bool pool_has(const struct fx *f, uint32_t pool, uint32_t type)
{
    const struct stk_pool *p = &f->s->pools[pool];

    for (uint32_t i = 0; i < p->n_groups; i++)
        if (f->s->groups[p->first_group + i].gpu_type == type)
            return true;
    return false;
}

/* The i-th; false past the last. */
static bool change(const struct fx *f, enum stk_remedy_kind kind, uint32_t i,
                   struct stk_job_spec *spec)
{
    struct stk_demand *d = &spec->demand;

    switch (kind) {
    case STK_REMEDY_GPUS:
        if (d->gpu_milli || d->gpus <= i + 1 || d->gpus > STK_REMEDY_EACH)
            return false;
        d->gpus -= i + 1;
        return true;
    case STK_REMEDY_TASKS:
        if (d->tasks <= i + 1 || d->tasks > STK_REMEDY_EACH)
            return false;
        d->tasks -= i + 1;
        return true;
    case STK_REMEDY_TYPE:
        if (i >= 8 || d->gpus == 0)
            return false;
        d->gpu_types |= (uint64_t)pool_has(f, spec->pool.i, i) << i;
        return true;
    case STK_REMEDY_POOL:
        spec->pool.i = i;
        return i < f->s->n_pools;
    case STK_REMEDY_QUEUE:
        if (i >= f->s->n_queues)
            return false;
        if (spec->terms.queue != i) {
            spec->priority = f->s->queues[i].priority;
            spec->tier = f->s->queues[i].tier;
        }
        spec->terms.queue = i;
        return true;
    case STK_REMEDY_TENANT:
        if (i >= f->s->n_tenants)
            return false;
        spec->tenant = f->s->tenants[i].leaf ? i : spec->tenant;
        return true;
    case STK_REMEDY_EXCLUSIVE:
        d->exclusive = false;
        return i == 0;
    case STK_REMEDY_SPREAD:
        d->per_node = 0;
        return i == 0;
    case STK_REMEDY_LEVEL:
        if (!d->level_required || d->level_required + i > STK_AT_REGION)
            return false;
        d->level_preferred = d->level_preferred ? d->level_preferred : d->level_required;
        d->level_required =
            d->level_required + i == STK_AT_REGION ? 0 : (uint8_t)(d->level_required + i + 1);
        return true;
    case STK_REMEDY_PREEMPTIBLE:
        spec->tier = STK_TIER_BEST_EFFORT;
        return i == 0;
    case STK_REMEDY_TIER:
        spec->tier += i + 1;
        return spec->tier < STK_TIER_MAX;
    case STK_REMEDY_CPU:
        if (d->cpu_milli <= 1000 * (i + 1))
            return false;
        d->cpu_milli = (d->cpu_milli + 999) / 1000 * 1000 - 1000 * (i + 1);
        return d->cpu_milli > 0;
    case STK_REMEDY_MEM:
        if (d->mem_mib <= 1024 * (i + 1))
            return false;
        d->mem_mib = (d->mem_mib + 1023) / 1024 * 1024 - 1024 * (i + 1);
        return d->mem_mib > 0;
    default:
        return false;
    }
}

static bool same(const struct stk_job_spec *a, const struct stk_job_spec *b)
{
    return memcmp(&a->demand, &b->demand, sizeof(a->demand)) == 0 && a->tier == b->tier &&
           a->pool.i == b->pool.i && a->tenant == b->tenant && a->terms.queue == b->terms.queue &&
           a->priority == b->priority && a->estimate == b->estimate;
}

static void check_kind(const struct world *w, struct fx *f, uint32_t job,
                       const struct stk_job_spec *base, enum stk_remedy_kind kind,
                       const struct stk_remedy *said)
{
    struct stk_job_spec spec = *base;

    for (uint32_t i = 0; change(f, kind, i, &spec); i++, spec = *base) {
        if (said && same(&spec, &said->spec))
            return;
        if (same(&spec, base))
            continue;
        fx_must(!starts_as(f, job, &spec), "job %u: a %s %s, change %u of it starts it (%s)",
                f->s->jobs[job].number, said ? "smaller" : "overlooked", stk_remedy_name(kind), i,
                world_name(w));
    }
    fx_must(!said || kind == STK_REMEDY_RESOURCE || said->from > STK_REMEDY_EACH ||
                kind == STK_REMEDY_TIME || kind == STK_REMEDY_PRIORITY || kind == STK_REMEDY_PART,
            "job %u: %s is none of the changes there are", f->s->jobs[job].number,
            stk_remedy_name(kind));
}

/* ---- priorities, times and parts: any that is smaller, at random ---- */

static void check_number(const struct world *w, struct fx *f, struct stk_rng *r, uint32_t job,
                         const struct stk_job_spec *base, enum stk_remedy_kind kind,
                         const struct stk_remedy *said)
{
    struct stk_job_spec spec = *base;
    int64_t all;

    for (int i = 0; i < 3; i++) {
        if (kind == STK_REMEDY_PRIORITY) {
            all = said ? said->to - base->priority - 1 : STK_MAX_PRIORITY - base->priority;
            spec.priority = (int32_t)(base->priority + 1 +
                                      (int64_t)stk_rng_below(r, (uint64_t)(all > 0 ? all : 1)));
        } else {
            int64_t from = said ? said->to / STK_SECOND + 1 : STK_REMEDY_LEAST_TIME;

            all = base->estimate / STK_SECOND - from;
            spec.estimate =
                (from + (int64_t)stk_rng_below(r, (uint64_t)(all > 0 ? all : 1))) * STK_SECOND;
        }
        if (all > 0)
            fx_must(!starts_as(f, job, &spec), "job %u: a %s %s (%s)", f->s->jobs[job].number,
                    said ? "smaller" : "overlooked", stk_remedy_name(kind), world_name(w));
    }
}

static const struct stk_remedy *of(const struct stk_remedies *all, enum stk_remedy_kind kind)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->list[i].kind == kind)
            return &all->list[i];
    return NULL;
}

static struct stk_job_spec spec_of(const struct fx *f, uint32_t job)
{
    const struct stk_job *j = &f->s->jobs[job];

    return (struct stk_job_spec){.demand = f->s->shapes[j->shape].demand,
                                 .kind = (enum stk_job_kind)j->kind,
                                 .tier = (enum stk_tier)j->tier,
                                 .priority = j->priority,
                                 .pool = {j->pool},
                                 .tenant = j->tenant,
                                 .tag = j->tag,
                                 .estimate = j->estimate,
                                 .begin = j->begin,
                                 .terms = f->s->terms[job]};
}

static void check_said(struct fx *f, uint32_t job, const struct stk_remedies *all)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const struct stk_remedy *m = &all->list[i];

        found++;
        of_kind[m->kind]++;
        fx_must(i == 0 || !m[-1].evicts || m->evicts, "who evicts nobody comes first");
        fx_must(i == 0 || !m[-1].evicts != !m->evicts || m[-1].kind < m->kind,
                "in order, each kind once");
        fx_must(m->kind == STK_REMEDY_RELEASE
                    ? starts(f, job, (struct stk_event){.type = STK_EV_RELEASE})
                    : starts_as(f, job, &m->spec),
                "job %u: %s does not start it", f->s->jobs[job].number, stk_remedy_name(m->kind));
    }
}

static void check_job(const struct world *w, struct fx *f, struct stk_rng *r, uint32_t job)
{
    const struct stk_job_spec base = spec_of(f, job);
    const struct stk_remedy_ask ask = {.job = {job}, .now = f->now, .most_forks = STK_REMEDY_FORKS};
    struct stk_remedies all;
    uint64_t before = fx_digest(f);
    int rc = stk_core_remedies(f->core, &ask, &all, &f->err);

    fx_must(rc == 0, "remedies: %s", f->err.text);
    fx_must(fx_digest(f) == before, "asking changes nothing");
    fx_must(all.forks <= STK_REMEDY_FORKS, "work is bounded");
    asked++;
    check_said(f, job, &all);
    if (f->s->jobs[job].state != STK_JOB_WAITING || f->s->jobs[job].slept)
        return;
    fx_must(all.soon == starts(f, job, (struct stk_event){.type = STK_EV_TYPE_MAX}),
            "it starts without a change, or does not");
    if (all.soon || all.cut)
        return;
    for (unsigned kind = 0; kind < STK_REMEDY_KINDS; kind++)
        check_kind(w, f, job, &base, (enum stk_remedy_kind)kind,
                   of(&all, (enum stk_remedy_kind)kind));
    check_number(w, f, r, job, &base, STK_REMEDY_PRIORITY, of(&all, STK_REMEDY_PRIORITY));
    check_number(w, f, r, job, &base, STK_REMEDY_TIME, of(&all, STK_REMEDY_TIME));
}

static void run(uint64_t seed)
{
    struct world w = {.exact = false};
    struct stk_rng r;
    struct fx *f;
    uint32_t n = 0;

    stk_rng_init(&r, seed);
    world_policies(&w, &r);
    world_cluster(&w, &r);
    world_delays(&w, &r);
    f = fx_new(&w.setup);
    for (int i = 0; i < 60; i++) {
        world_act(&w, f, &r);
        if (stk_rng_below(&r, 3) == 0)
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 6000000));
        fx_turn(f);
    }
    for (uint32_t i = 0; i < f->s->n_jobs && n < MAX_JOBS; i++)
        if (fx_state(f, i) == STK_JOB_WAITING || fx_state(f, i) == STK_JOB_HELD ||
            fx_state(f, i) == STK_JOB_BLOCKED) {
            check_job(&w, f, &r, i);
            n++;
        }
    fx_free(f);
}

int main(void)
{
    uint64_t runs = prop_number("STOKER_RUNS", 150), seed = prop_number("STOKER_SEED", 1);

    prop_watch("prop_remedy");
    for (prop_seed = seed; prop_seed < seed + runs; prop_seed++)
        run(prop_seed);
    (void)printf("%llu jobs, %llu remedies, %llu tries\n", (unsigned long long)asked,
                 (unsigned long long)found, (unsigned long long)tried);
    for (unsigned k = 0; k < STK_REMEDY_KINDS; k++)
        (void)printf("  %s %llu\n", stk_remedy_name((enum stk_remedy_kind)k),
                     (unsigned long long)of_kind[k]);
    return 0;
}
