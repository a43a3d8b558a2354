/* SPDX-License-Identifier: Apache-2.0 */
/* afresh.c - preempt: choose afresh at each instant.
 *
 * All active jobs of the pool, running and waiting alike, are walked in rank order; each that fits
 * into what is left of the pool's GPUs is chosen, others are passed over. Running and not chosen
 * gives way, chosen and waiting starts. Running gives no advantage, and a waiting job that does not
 * fit displaces nobody.
 *
 * The walk counts GPUs. Whether the chosen really fit on nodes is then tried in a transaction: the
 * jobs that would give way are taken off, the chosen placed in rank order, and every job whose
 * place nobody needed is put back. So a job is evicted only if one that was chosen starts on its
 * GPUs.
 *
 * A job that sleeps can wake on its own GPUs only. It is chosen unless a job ranked before it has
 * them; one ranked behind it that has them must go, if the sleeping one then really starts.
 *
 * A job that gave way at this very instant and came back at it does not give way again: where parts
 * of GPUs, CPU or links decide, the count can choose a set that does not fit on nodes, and two jobs
 * would take turns for ever. The next event, of whatever pool, has it looked at again.
 *
 * A job that was chosen and fits on no nodes waits while GPUs are free, in fragments; with
 * defrag.most running jobs move for it (core/defrag.h), whatever their rank: they were chosen, too,
 * and find room elsewhere. Without that large jobs are late, and the last ends later.
 *
 * Cost: O(jobs chosen that rank behind the first waiting one) per instant at which anything
 * happened; nothing when nobody waits. With moves, O(jobs) where nobody who was chosen fits.
 */
#include "policy/registry.h"

#include "core/decide.h"
#include "core/defrag.h"
#include "core/place.h"
#include "core/txn.h"
#include "core/walk.h"

static bool on_its_gpus(const struct stk_state *s, const struct stk_job *j,
                        const struct stk_demand *d)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];

        if (p->node.i + 1 == d->pin && (d->exclusive || (stk_index_blocks(s, j, p) & d->pin_mask)))
            return true;
    }
    return false;
}

/* A sleeping job cannot wake: its node is down, its GPUs are off, or a job that ranks before it has
 * its GPUs. */
static bool cannot_wake(const struct stk_state *s, const struct stk_pool *p, uint32_t job,
                        stk_time now)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    if (p->n_asleep == 0 || !d->pin)
        return false;
    if (!s->nodes[d->pin - 1].up || (s->nodes[d->pin - 1].mask_off & d->pin_mask))
        return true;
    for (uint32_t i = 1; i < p->n_rated; i++)
        for (struct stk_ocursor c = stk_otree_begin(&s->trees, &p->rated[i].tree);
             c.block != UINT32_MAX; stk_ocursor_next(&s->trees, &c)) {
            const struct stk_oent *e = stk_ocursor_get(&s->trees, c);
            int64_t rank = e->key + p->rated[i].rate * (now / s->order->tick);

            if ((rank < j->rank || (rank == j->rank && e->tie < j->number)) &&
                on_its_gpus(s, &s->jobs[e->id], d))
                return true;
        }
    return false;
}

/* A running job lies on GPUs that a sleeping job among the picks, ranked before it, wakes on. */
static bool in_the_way(const struct stk_state *s, const struct stk_pool *p, uint32_t job,
                       uint32_t picks)
{
    for (uint32_t i = 0; p->n_asleep > 0 && i < picks; i++) {
        const struct stk_demand *d = &s->shapes[s->jobs[s->list_a[i]].shape].demand;

        if (d->pin && on_its_gpus(s, &s->jobs[job], d))
            return true;
    }
    return false;
}

/* GPUs that a running job holds and that are off: nobody gets them when it goes. */
static uint32_t held_off(const struct stk_state *s, const struct stk_pool *p, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    uint32_t off = 0;

    for (uint32_t i = 0; p->gpus_off > 0 && i < j->n_pieces; i++) {
        const struct stk_piece *k = &s->pieces[j->first_piece + i];

        off += k->gpus - stk_index_back(s, k);
    }
    return off;
}

/* The same of all leases from the walk's start on. */
static uint64_t all_held_off(const struct stk_state *s, const struct stk_pool *p)
{
    uint64_t off = 0;

    for (uint32_t i = 1; p->gpus_off > 0 && i < p->n_rated; i++)
        for (struct stk_ocursor c = p->rated[i].at; c.block != UINT32_MAX;
             stk_ocursor_next(&s->trees, &c))
            off += held_off(s, p, stk_ocursor_get(&s->trees, c)->id);
    return off;
}

enum special { NOTHING, CANNOT_WAKE, IN_THE_WAY };

/* What is special about a job in the walk, where jobs sleep or GPUs are off. */
static enum special look(const struct stk_state *s, const struct stk_pool *p, stk_time now,
                         const struct stk_oent *e, uint32_t picks, uint64_t *gpus)
{
    if (!(e->aux & 1))
        return cannot_wake(s, p, e->id, now) ? CANNOT_WAKE : NOTHING;
    *gpus -= held_off(s, p, e->id);
    return in_the_way(s, p, e->id, picks) ? IN_THE_WAY : NOTHING;
}

#define AFTER_ALL UINT32_MAX

/* What the walk has chosen: picks are in list_a, running jobs that were not chosen in list_b, both
 * in rank order. s->sort has, for one that was chosen but is in the way of a sleeping job, how many
 * picks rank before it. */
struct choice {
    stk_time now;
    uint64_t left; /* GPUs */
    uint32_t leases, least;
    uint32_t picks, victims;
    bool spared; /* one that was not chosen need not go at this instant */
};

static void add_victim(struct stk_state *s, struct choice *c, uint32_t job, uint32_t picks)
{
    const struct stk_job *j = &s->jobs[job];

    if (j->preemptions > 0 && j->queued == c->now && j->started == c->now) {
        c->spared = true;
        return;
    }
    s->sort[c->victims].data = picks;
    s->list_b[c->victims++] = job;
}

/* A job that does not fit into what is left. */
static void pass_over(struct stk_state *s, struct stk_pool *p, const struct stk_oent *e,
                      struct choice *c)
{
    if (e->aux & 1)
        add_victim(s, c, e->id, AFTER_ALL);
    else if (!s->backfill->pass)
        c->left = 0; /* nobody passes a job that does not fit */
    else
        stk_walk_skip(s, p, c->left);
}

static void walk(struct stk_state *s, struct stk_pool *p, struct choice *c)
{
    const struct stk_oent *run;
    uint32_t len;

    while ((c->leases > 0 || c->left >= c->least) && (len = stk_walk_run(s, p, &run)) > 0)
        for (uint32_t i = 0; i < len; i++) {
            uint64_t gpus = (uint64_t)run[i].aux / 2;
            bool runs = run[i].aux & 1;

            c->leases -= runs;
            if (gpus > c->left) {
                pass_over(s, p, &run[i], c);
                continue;
            }
            c->left -= gpus;
            if (!runs)
                s->list_a[c->picks++] = run[i].id;
        }
}

/* The same where jobs sleep or GPUs are off. */
static void walk_special(struct stk_state *s, struct stk_pool *p, stk_time now, struct choice *c)
{
    const struct stk_oent *run;
    uint32_t len;

    while ((c->leases > 0 || c->left >= c->least) && (len = stk_walk_run(s, p, &run)) > 0)
        for (uint32_t i = 0; i < len; i++) {
            uint64_t gpus = (uint64_t)run[i].aux / 2;
            enum special sp = look(s, p, now, &run[i], c->picks, &gpus);

            c->leases -= run[i].aux & 1;
            if (gpus > c->left || sp == CANNOT_WAKE) {
                pass_over(s, p, &run[i], c);
                continue;
            }
            c->left -= gpus;
            if (!(run[i].aux & 1))
                s->list_a[c->picks++] = run[i].id;
            if (sp == IN_THE_WAY)
                add_victim(s, c, run[i].id, c->picks);
        }
}

static struct choice choose(struct stk_state *s, struct stk_pool *p, stk_time now)
{
    /* what is left when all that rank before the first waiting job run on */
    struct choice c = {
        .now = now, .left = p->gpus_up - p->gpus_idle_off, .least = stk_walk_least(s, p)};
    uint64_t held = 0;

    c.left += stk_walk_begin_waiting(s, p, now, &c.leases);
    for (uint32_t k = 0; k < s->n_levels; k++)
        held += p->level_gpus_leased[k];
    held += all_held_off(s, p);
    /* leases on a node that went down may exceed what is up */
    c.left = c.left > held ? c.left - held : 0;
    if (p->n_asleep == 0 && p->gpus_off == 0)
        walk(s, p, &c);
    else
        walk_special(s, p, now, &c);
    return c;
}

/* Jobs in the way of a sleeping one that rank before the next pick stay where they can. */
static void put_back(struct stk_state *s, uint32_t picks, uint32_t *v, uint32_t victims)
{
    for (; *v < victims && (s->sort[*v].data == AFTER_ALL || s->sort[*v].data <= picks); ++*v)
        if (s->sort[*v].data != AFTER_ALL)
            s->sort[*v].key = stk_txn_take_job(s, &s->jobs[s->list_b[*v]]);
}

/* Which victims the picks really need; the others are dropped from list_b. */
static uint32_t needed(struct stk_state *s, uint32_t picks, uint32_t victims)
{
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n, k = 0, v = 0, held = 0;

    for (uint32_t i = 0; i < victims; i++)
        stk_txn_give_job(s, &s->jobs[s->list_b[i]]);
    for (uint32_t i = 0; i < picks; i++) {
        const struct stk_shape *sh = &s->shapes[s->jobs[s->list_a[i]].shape];

        put_back(s, i, &v, victims);
        if (!stk_place_try(s, s->jobs[s->list_a[i]].shape, NULL, &n)) {
            held += held < STK_BATCH ? stk_walk_hold(s, &s->jobs[s->list_a[i]]) : 0;
            continue;
        }
        for (uint32_t m = 0; m < n; m++) {
            const struct stk_use u = stk_use_of(&sh->demand, &s->try_pieces[m]);

            stk_txn_take(s, s->try_pieces[m].node.i, &u);
        }
    }
    put_back(s, picks, &v, victims);
    for (uint32_t i = 0; i < victims; i++) {
        bool kept = s->sort[i].data == AFTER_ALL ? stk_txn_take_job(s, &s->jobs[s->list_b[i]])
                                                 : s->sort[i].key != 0;

        if (kept)
            continue;
        s->sort[k].data = s->sort[i].data;
        s->list_b[k++] = s->list_b[i];
    }
    stk_txn_rollback(s, mark);
    return k;
}

/* Those in the way of a sleeping job go last: if not all can go at once, the next look finds them
 * again, while one that had gone too early would be the first to come back. */
static uint32_t evict(struct stk_ask *ask, uint32_t victims)
{
    struct stk_state *s = ask->s;
    uint32_t n = 0;

    for (int in_the_way = 0; in_the_way < 2; in_the_way++)
        for (uint32_t i = 0; i < victims && n < ask->cap; i++)
            if ((s->sort[i].data != AFTER_ALL) == in_the_way)
                ask->out[n++] = stk_decide_evict(s, ask->now, s->list_b[i], STK_NONE);
    return n;
}

#define MOVED_FOR 4 /* shapes of jobs, at each instant */

/* None of the picks found its place: others move for one of them, the best-ranked that this helps.
 */
static uint32_t move(struct stk_ask *ask, uint32_t picks)
{
    struct stk_state *s = ask->s;
    uint32_t n = 0, shapes = 0, last = STK_NONE;

    if (s->defrag == 0 || s->pools[ask->pool].n_stopping > 0)
        return 0;
    for (uint32_t i = 0; i < picks && n == 0 && shapes < MOVED_FOR; i++) {
        const struct stk_job *j = &s->jobs[s->list_a[i]];

        if (j->shape == last)
            continue;
        last = j->shape;
        shapes++;
        n = stk_defrag_room(ask, s->list_a[i]);
    }
    return n;
}

static uint32_t pass(const void *st, struct stk_ask *ask)
{
    struct stk_state *s = ask->s;
    const struct choice c = choose(s, &s->pools[ask->pool], ask->now);
    uint32_t victims = c.victims, before, n;

    (void)st;
    ask->again = c.spared;
    if (c.picks == 0)
        return 0;
    do { /* with fewer gone, picks may find other places: until each is needed */
        before = victims;
        victims = victims > 0 ? needed(s, c.picks, victims) : 0;
    } while (victims < before);
    if (victims > 0)
        return evict(ask, victims);
    n = stk_walk_place(ask, s->list_a, c.picks);
    if (n == 0 && (n = move(ask, c.picks)) > 0)
        ask->done = false;
    return n;
}

const struct stk_preempt_ops stk_preempt_afresh = {
    .name = "afresh",
    .help = "at each instant the best-ranked jobs run, others give way",
    .pass = pass,
    .moves = true,
};
