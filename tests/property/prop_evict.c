/* SPDX-License-Identifier: Apache-2.0 */
/* prop_evict.c - who gives way to whom, in random worlds: nobody in a circle, no standard job to a
 * plain one, and those who may preempt are tried before those whose place they could take.
 * STOKER_RUNS and STOKER_SEED as in prop_core.c. */
#include <stdio.h>

#include "core/cycles.h"
#include "core/evictable.h"
#include "core/lane.h"
#include "lib/prop.h"
#include "lib/world.h"

struct circles {
    const struct world *w;
    struct stk_cycles seen;
    uint32_t upto; /* of the journal */
    uint64_t evictions, by_plain;
};

/* A plain job takes the place of jobs of lower tiers only: but for what tenants give back to each
 * other, and where the order ranks running jobs. Whether it was a plain job that took a place. */
static bool check_plain(const struct fx *f, const struct stk_event *ev, const struct world *w)
{
    const struct stk_job *v, *j;

    if (ev->type != STK_EV_EVICT || ev->u.evict.for_job.i == STK_NONE || ev->u.evict.moved ||
        ev->u.evict.by_hand || f->s->ranked)
        return false;
    v = &f->s->jobs[ev->job.i];
    j = &f->s->jobs[ev->u.evict.for_job.i];
    if (!j->plain || (f->s->fair && v->tenant != j->tenant))
        return false;
    fx_must(v->tier < j->tier, "at %lld: plain job %u takes the place of job %u of its tier (%s)",
            (long long)ev->at, j->number, v->number, world_name(w));
    return true;
}

/* Whoever could take the place of another, if that ran, is tried before it. */
static void check_order(const struct fx *f, const struct world *w)
{
    const struct stk_state *s = f->s;

    if (!s->preempt->room || !s->order->levels)
        return;
    for (uint32_t i = 0; i < s->n_jobs; i++)
        for (uint32_t k = 0; k < s->n_jobs && s->jobs[i].state == STK_JOB_WAITING; k++) {
            const struct stk_job *j = &s->jobs[i], *o = &s->jobs[k];

            fx_must(o->state != STK_JOB_WAITING || o->level >= stk_evictable_below(s, j) ||
                        stk_rank(s, j) < stk_rank(s, o),
                    "job %u could take the place of job %u and is tried after it (%s)", j->number,
                    o->number, world_name(w));
        }
}

static void check_circles(struct fx *f, void *ctx)
{
    struct circles *c = ctx;

    for (; c->upto < f->n_log; c->upto++) {
        bool circle = stk_cycles_see(&c->seen, f->s, &f->log[c->upto].ev);

        c->evictions += f->log[c->upto].ev.type == STK_EV_EVICT;
        c->by_plain += check_plain(f, &f->log[c->upto].ev, c->w);
        fx_must(!circle, "at %lld: job %u gives way to job %u and the other way round (%s)",
                (long long)f->log[c->upto].ev.at, c->seen.last[0], c->seen.last[1],
                world_name(c->w));
    }
    check_order(f, c->w);
}

static void live(const struct world *w, struct fx *f, struct stk_rng *r, uint32_t actions)
{
    for (uint32_t i = 0; i < actions; i++) {
        world_act(w, f, r);
        if (stk_rng_below(r, 3) == 0)
            fx_run(f, f->now + (stk_time)stk_rng_below(r, 6000000));
        fx_turn(f);
    }
}

static uint64_t cycles_run(uint64_t seed, uint64_t *by_plain)
{
    static struct circles c;
    struct world w;
    struct stk_rng r;
    struct fx *f;

    world_make(&w, &r, seed);
    w.setup.forget = false; /* a slot has one job */
    f = fx_new(&w.setup);
    c = (struct circles){.w = &w};
    f->on_turn = check_circles;
    f->ctx = &c;
    live(&w, f, &r, 150);
    world_calm(f);
    fx_drain(f);
    fx_free(f);
    *by_plain += c.by_plain;
    return c.evictions;
}

int main(void)
{
    uint64_t runs = prop_number("STOKER_RUNS", 200), seed = prop_number("STOKER_SEED", 1);
    uint64_t evicted = 0, by_plain = 0;

    prop_watch("prop_evict");
    for (prop_seed = seed; prop_seed < seed + runs; prop_seed++) {
        prop_world = "cycles";
        evicted += cycles_run(prop_seed, &by_plain);
    }
    fx_must(evicted > runs || runs < 50, "many jobs give way");
    fx_must(by_plain > 0 || runs < 50, "some give way to plain jobs");
    (void)printf("%llu worlds; %llu jobs gave way, %llu of them to plain ones\n",
                 (unsigned long long)runs, (unsigned long long)evicted,
                 (unsigned long long)by_plain);
    return 0;
}
