/* SPDX-License-Identifier: Apache-2.0 */
/* sound.c - every invariant of the state, checked from scratch: GPUs conserved and never given
 * twice, gangs whole, counters and indexes in step with the tables. Slow on purpose: it trusts no
 * counter and no index. Reservations and plans are not checked here; the tests of backfill do that.
 */
#include "core/account.h"
#include "core/array.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/core.h"
#include "core/evictable.h"
#include "core/gang.h"
#include "core/index.h"
#include "core/leave.h"
#include "core/outrun.h"
#include "core/pair.h"
#include "core/part.h"
#include "core/power.h"
#include "core/resource.h"
#include "core/shape.h"
#include "core/tenant.h"
#include "core/usage.h"

#define BAD(...) (stk_err_set(err, -EINVAL, __VA_ARGS__), false)

/* A job that is stopping has a lease, or sleeps. */
static bool has_lease(const struct stk_job *j)
{
    return j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING ||
           (j->state == STK_JOB_STOPPING && (j->lease || !j->slept));
}

/* A job that sleeps has the shape of its GPUs, and no other has one. */
static bool sleep_sound(const struct stk_state *s, const struct stk_job *j, struct stk_err *err)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_node *n;

    if (d->nodes > s->n_sets)
        return BAD("job %u names set of nodes %u of %u", j->number, d->nodes, s->n_sets);
    if ((d->pin != 0) != (j->slept != 0))
        return BAD("job %u: lease %u slept under, node %u pinned to", j->number, j->slept, d->pin);
    if (!j->slept)
        return true;
    if (j->state != STK_JOB_HELD && j->state != STK_JOB_WAITING && j->state != STK_JOB_PLACED &&
        j->state != STK_JOB_STOPPING)
        return BAD("job %u sleeps and is %s", j->number,
                   stk_job_state_name((enum stk_job_state)j->state));
    if (d->pin > s->n_nodes || s->nodes[d->pin - 1].pool != j->pool)
        return BAD("job %u sleeps outside its pool", j->number);
    n = &s->nodes[d->pin - 1];
    if (n->aggregate ? d->pin_mask != 0
                     : (uint32_t)__builtin_popcountll(d->pin_mask) != j->gpus ||
                           (d->pin_mask & ~n->mask_all))
        return BAD("job %u sleeps on GPUs that are not its own", j->number);
    return true;
}

static bool job_sound(const struct stk_state *s, const struct stk_job *j, struct stk_err *err)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint64_t gpus = 0, tasks = 0;
    struct stk_err why;

    if (has_lease(j) != (j->lease != 0) || has_lease(j) != (j->n_pieces > 0))
        return BAD("job %u: state %s and lease %u disagree", j->number,
                   stk_job_state_name((enum stk_job_state)j->state), j->lease);
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];

        if (p->node.i >= s->n_nodes || s->nodes[p->node.i].pool != j->pool)
            return BAD("job %u has a piece outside its pool", j->number);
        if (!((d->gpu_types >> s->nodes[p->node.i].gpu_type) & 1))
            return BAD("job %u holds GPUs of a type it does not accept", j->number);
        gpus += p->gpus;
        tasks += p->tasks;
    }
    if (has_lease(j) && (gpus != j->gpus || (!d->cut && tasks != d->tasks)))
        return BAD("job %u: gang is not whole: %llu of %u GPUs", j->number,
                   (unsigned long long)gpus, j->gpus);
    if (has_lease(j) && stk_demand_near(d) &&
        stk_gang_check(s, d, &s->pieces[j->first_piece], j->n_pieces, &why) < 0)
        return BAD("job %u: %s", j->number, why.text);
    if (!sleep_sound(s, j, err))
        return false;
    if (j->state == STK_JOB_WAITING && j->unmet > 0)
        return BAD("job %u waits with %u dependencies unmet", j->number, j->unmet);
    if (j->served < 0 || j->started > s->now)
        return BAD("job %u: times out of range", j->number);
    return true;
}

/* Puts an instance onto the empty copy of its GPU. */
static bool instance_lease(const struct stk_state *s, const struct stk_job *j,
                           const struct stk_piece *p, uint32_t at, struct stk_err *err)
{
    const struct stk_node *n = &s->nodes[p->node.i];
    uint8_t slices = stk_mig_slices(n->mig, s->shapes[j->shape].demand.mig, p->slot);

    if (!slices)
        return BAD("node %u: an instance of job %u starts at slice %u", p->node.i, j->number,
                   p->slot);
    if (s->part_left[at] & slices)
        return BAD("node %u: two instances have the same slices of a GPU", p->node.i);
    s->part_left[at] |= slices;
    return true;
}

/* Puts parts onto the empty copies of their GPUs. */
static bool part_lease(const struct stk_state *s, const struct stk_job *j,
                       const struct stk_piece *p, const struct stk_use *u, struct stk_err *err)
{
    const struct stk_node *n = &s->nodes[p->node.i];

    for (uint64_t m = u->milli ? p->mask : 0; m; m &= m - 1) {
        uint32_t at = n->first_part + (uint32_t)__builtin_ctzll(m);
        const struct stk_part *part = &s->parts[at];

        if (!(n->mask_part & m & -m))
            return BAD("node %u: a GPU that job %u shares is not shared", p->node.i, j->number);
        if (part->share != u->share || part->share_max != u->share_max ||
            part->with != u->share_with || (part->share_max && part->n > part->share_max))
            return BAD("node %u: job %u shares a GPU in another way", p->node.i, j->number);
        if ((n->mig != 0) != (u->mig != 0))
            return BAD("node %u: job %u has a MIG instance where there are none", p->node.i,
                       j->number);
        if (u->mig) {
            if (!instance_lease(s, j, p, at, err))
                return false;
            continue;
        }
        if (n->gpu_mem_mib && u->gpu_mem > n->gpu_mem_mib)
            return BAD("node %u: job %u has more memory of a GPU than that has", p->node.i,
                       j->number);
        s->part_mem[at] += n->gpu_mem_mib && u->share != STK_SHARE_TIME ? u->gpu_mem : 0;
        s->part_left[at] += u->milli;
        if (s->part_left[at] > 1000 || s->part_left[at] + part->milli > 1000)
            return BAD("node %u: more than one GPU is given away in parts", p->node.i);
    }
    return true;
}

/* What is left of shared GPUs is what their jobs leave. */
static bool parts_sound(const struct stk_state *s, uint32_t node, struct stk_err *err)
{
    const struct stk_node *n = &s->nodes[node];

    for (uint64_t m = n->mask_part; m; m &= m - 1) {
        uint32_t at = n->first_part + (uint32_t)__builtin_ctzll(m);

        if (n->mig ? s->part_left[at] != s->parts[at].slices ||
                         s->parts[at].milli != stk_mig_left(n->mig, s->parts[at].slices)
                   : s->part_left[at] + s->parts[at].milli != 1000)
            return BAD("node %u: %u of a GPU used and %u left", node, s->part_left[at],
                       s->parts[at].milli);
        if (s->parts[at].n == 0)
            return BAD("node %u: a GPU is shared by nobody", node);
        if (s->part_mem[at] + s->parts[at].mem_mib != n->gpu_mem_mib)
            return BAD("node %u: %u MiB of a GPU used and %u left of %u", node, s->part_mem[at],
                       s->parts[at].mem_mib, n->gpu_mem_mib);
    }
    return true;
}

/* Puts the lease onto the empty copies of its nodes. */
static bool add_lease(const struct stk_state *s, const struct stk_job *j, struct stk_err *err)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_demand *d = &s->shapes[j->shape].demand;
        struct stk_use u = stk_use_of(d, p);
        struct stk_tally *t = &s->tally[p->node.i];

        stk_resource_add(s, p->node.i, &u.resources);
        if (u.whole) {
            if (s->nodes[p->node.i].mask_own != p->mask)
                return BAD("node %u: job %u holds it for other GPUs", p->node.i, j->number);
            if (p->mask & ~s->nodes[p->node.i].mask_all || t->uses > 0)
                return BAD("node %u: job %u is not alone there", p->node.i, j->number);
            u = stk_index_all(s, p->node.i);
        }
        t->uses++;
        t->held |= d->exclusive;
        if ((u.milli ? t->mask & ~t->part : t->mask) & u.mask)
            return BAD("node %u: a GPU of job %u has another owner", p->node.i, j->number);
        if (!part_lease(s, j, p, &u, err))
            return false;
        t->gpus += (uint32_t)__builtin_popcountll(u.mask & ~t->mask);
        t->gpus += s->nodes[p->node.i].aggregate ? p->gpus : 0;
        t->part |= u.milli ? p->mask : 0;
        t->mask |= u.mask;
        t->cpu += u.cpu;
        t->mem += u.mem;
        for (uint32_t k = 0; !u.milli && j->state != STK_JOB_STOPPING && k <= j->level; k++)
            t->fast[k] += stk_index_back_of(s, d, p);
    }
    return true;
}

/* Two jobs that share a whole GPU share all of theirs; one that is alone can be found. */
static bool pair_sound(const struct stk_state *s, uint32_t job, struct stk_err *err)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_shape *sh = &s->shapes[j->shape];
    const struct stk_piece *mine = &s->pieces[j->first_piece], *other;
    uint32_t mate = stk_pair_mate(s, job), type;
    const struct stk_oent *e;

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_node *n = &s->nodes[mine[i].node.i];
        uint32_t at = n->first_part + (uint32_t)__builtin_ctzll(mine[i].mask);

        other = mate == STK_NONE ? mine : &s->pieces[s->jobs[mate].first_piece];
        if (s->parts[at].n != (mate == STK_NONE ? 1 : 2) ||
            (s->parts[at].holder[0] != job + 1 && s->parts[at].holder[1] != job + 1) ||
            other[i].node.i != mine[i].node.i || other[i].mask != mine[i].mask)
            return BAD("node %u: job %u shares some of its GPUs with another", mine[i].node.i,
                       j->number);
    }
    if (mate != STK_NONE && stk_pair_mate(s, mate) != job)
        return BAD("job %u shares GPUs with one that does not share them", j->number);
    type = s->nodes[mine[0].node.i].gpu_type;
    e = stk_ocursor_get(&s->trees, stk_otree_seek(&s->trees, &sh->alone, type, j->number));
    if ((e && e->id == job) != (mate == STK_NONE && s->place->mate))
        return BAD("job %u %s company", j->number, mate == STK_NONE ? "cannot get" : "has got");
    return true;
}

static uint32_t idle_off(const struct stk_node *n)
{
    return (uint32_t)__builtin_popcountll(n->mask_off & ~n->mask_used);
}

/* What is counted of the node elsewhere. */
static bool indexes_sound(const struct stk_state *s, uint32_t node, struct stk_err *err)
{
    const struct stk_tally *t = &s->tally[node];
    const struct stk_node *n = &s->nodes[node];
    const struct stk_group *g = &s->groups[n->group];

    for (uint32_t k = 0; s->evictable && k < s->n_levels; k++)
        if (*stk_evictable_on(s, node, k) + t->fast[k] +
                (uint32_t)__builtin_popcountll(n->mask_off) !=
            n->gpus)
            return BAD("node %u: %u GPUs to be had by evictions", node,
                       *stk_evictable_on(s, node, k));
    for (uint32_t b = 0; b <= g->max_gpus; b++) {
        const uint64_t *set = s->words + g->words + (size_t)b * g->nodes_layout.n_words;

        if (stk_bits_test(set, n->pos) != (n->up && b == n->gpus_free))
            return BAD("node %u is in the wrong bucket", node);
    }
    return true;
}

static bool node_sound(const struct stk_state *s, uint32_t node, struct stk_err *err)
{
    const struct stk_tally *t = &s->tally[node];
    const struct stk_node *n = &s->nodes[node];
    uint64_t all = n->aggregate || n->gpus == 0 ? 0 : ~UINT64_C(0) >> (64 - n->gpus);

    if (t->gpus + n->gpus_free + idle_off(n) != n->gpus)
        return BAD("node %u: %llu GPUs leased and %u free of %u", node, (unsigned long long)t->gpus,
                   n->gpus_free, n->gpus);
    if (!n->aggregate && (n->mask_free != (all & ~t->mask & ~n->mask_off) ||
                          n->mask_used != t->mask || (n->mask_off & ~all) != 0))
        return BAD("node %u: free GPUs are wrong", node);
    if (n->n_uses != t->uses || n->held != t->held || (t->held && t->uses != 1))
        return BAD("node %u: %u pieces there, counted %u%s", node, t->uses, n->n_uses,
                   n->held ? ", held" : "");
    if (n->mask_part != t->part || !parts_sound(s, node, err))
        return n->mask_part != t->part ? BAD("node %u: other GPUs are shared", node) : false;
    if (n->mask_wake != stk_shape_pinned(s, node))
        return BAD("node %u: jobs sleep on other GPUs", node);
    if (n->cpu_limited && t->cpu + n->cpu_free != n->cpu_milli)
        return BAD("node %u: CPU is not conserved", node);
    if (n->mem_limited && t->mem + n->mem_free != n->mem_mib)
        return BAD("node %u: memory is not conserved", node);
    return stk_resource_sound(s, node, err) && indexes_sound(s, node, err);
}

/* Nodes are counted, for each level, by the GPUs to be had there. */
static bool group_sound(const struct stk_state *s, uint32_t group, uint32_t level,
                        struct stk_err *err)
{
    const struct stk_group *g = &s->groups[group];

    for (uint32_t b = 0; b <= g->max_gpus; b++) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < g->n; i++) {
            uint32_t node = s->group_nodes[g->first + i];

            n += s->nodes[node].up && *stk_evictable_on(s, node, level) == b;
        }
        if (n != *stk_evictable_nodes(s, g, level, b))
            return BAD("group %u: %u nodes with %u GPUs for level %u, counted %u", group, n, b,
                       level, *stk_evictable_nodes(s, g, level, b));
    }
    return true;
}

/* What all nodes draw, and how many are on. */
static bool power_sound(const struct stk_state *s, struct stk_err *err)
{
    uint64_t watts = 0;
    uint32_t on = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct stk_node *n = &s->nodes[i];

        if (n->off && (n->n_uses > 0 || !stk_power_known(&n->power)))
            return BAD("node %u is off, with %u pieces", i, n->n_uses);
        watts += stk_power_of(n);
        on += stk_power_known(&n->power) && stk_power_on(n);
    }
    if (watts != s->watts || (s->power && on != s->n_on))
        return BAD("%llu W on %u nodes, counted %llu on %u", (unsigned long long)watts, on,
                   (unsigned long long)s->watts, s->n_on);
    return true;
}

static bool nodes_sound(const struct stk_state *s, struct stk_err *err)
{
    for (uint32_t node = 0; node < s->n_nodes; node++)
        s->tally[node] = (struct stk_tally){0};
    for (uint32_t i = 0; i < s->n_parts; i++)
        s->part_left[i] = s->part_mem[i] = 0;
    for (size_t i = 0; i < (size_t)s->n_nodes * s->n_resources; i++)
        s->resource_tally[i] = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (has_lease(&s->jobs[i]) &&
            (!add_lease(s, &s->jobs[i], err) ||
             (stk_demand_pairs(&s->shapes[s->jobs[i].shape].demand) && !pair_sound(s, i, err))))
            return false;
    if (!stk_booking_sound(s, err))
        return false;
    for (uint32_t node = 0; node < s->n_nodes; node++)
        if (!node_sound(s, node, err))
            return false;
    for (uint32_t g = 0; s->evictable && g < s->n_groups; g++)
        for (uint32_t k = 0; k < s->n_levels; k++)
            if (!group_sound(s, g, k, err))
                return false;
    return true;
}

static bool levels_sound(const struct stk_state *s, uint32_t pool, struct stk_err *err)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t waiting[STK_LEVEL_MAX] = {0}, leased[STK_LEVEL_MAX] = {0}, gpus[STK_LEVEL_MAX] = {0};

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        bool runs = j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE || j->pool != pool)
            continue;
        if (j->plain != s->terms[i].plain)
            return BAD("job %u is plain: %d, its terms say %d", j->number, j->plain,
                       s->terms[i].plain);
        if (s->shapes[j->shape].plain != (s->preempt->room && j->plain))
            return BAD("job %u is plain: %d, its shape is not", j->number, j->plain);
        if (j->level != stk_evictable_level(s, j) || j->level >= s->n_levels)
            return BAD("job %u is at level %u of %u", j->number, j->level, s->n_levels);
        waiting[j->level] += j->state == STK_JOB_WAITING;
        leased[j->level] += runs;
        gpus[j->level] += runs ? j->gpus : 0;
    }
    for (uint32_t k = 0; k < STK_LEVEL_MAX; k++)
        if (waiting[k] != p->level_waiting[k] || leased[k] != p->level_leased[k] ||
            gpus[k] != p->level_gpus_leased[k])
            return BAD("pool %u, level %u: counts %u/%u/%u, jobs say %u/%u/%u", pool, k,
                       p->level_waiting[k], p->level_leased[k], p->level_gpus_leased[k], waiting[k],
                       leased[k], gpus[k]);
    return true;
}

static bool pool_sound(const struct stk_state *s, uint32_t pool, struct stk_err *err)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t waiting = 0, leased = 0, stopping = 0, asleep = 0, in_trees = 0;
    uint64_t free_gpus = 0, off = 0, idle = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE || j->pool != pool)
            continue;
        waiting += j->state == STK_JOB_WAITING;
        leased += j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
        stopping += j->state == STK_JOB_STOPPING && j->lease;
        asleep += j->slept != 0;
    }
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const struct stk_node *n = &s->nodes[s->pool_nodes[p->first_node + i]];

        free_gpus += n->up ? n->gpus_free : 0;
        off += (uint64_t)__builtin_popcountll(n->mask_off);
        idle += n->up ? (uint64_t)__builtin_popcountll(stk_node_idle_off(n)) : 0;
    }
    for (uint32_t i = 0; i < s->n_shapes; i++)
        in_trees += s->shapes[i].pool == pool ? s->shapes[i].waiting.count : 0;
    for (uint32_t i = 0; i < p->n_rated; i++)
        in_trees += p->rated[i].tree.count;
    if (waiting != p->n_waiting || leased != p->n_leased || stopping != p->n_stopping)
        return BAD("pool %u: counts %u/%u/%u, jobs say %u/%u/%u", pool, p->n_waiting, p->n_leased,
                   p->n_stopping, waiting, leased, stopping);
    if (asleep != p->n_asleep)
        return BAD("pool %u: %u jobs sleep, not %u", pool, asleep, p->n_asleep);
    if (in_trees != (s->whole_pool ? waiting + leased : waiting))
        return BAD("pool %u: %u jobs in its trees", pool, in_trees);
    if (free_gpus != p->gpus_free)
        return BAD("pool %u: %llu GPUs free, nodes say %llu", pool,
                   (unsigned long long)p->gpus_free, (unsigned long long)free_gpus);
    if (off != p->gpus_off || idle != p->gpus_idle_off)
        return BAD("pool %u: %llu GPUs off, %llu of them idle; nodes say %llu and %llu", pool,
                   (unsigned long long)p->gpus_off, (unsigned long long)p->gpus_idle_off,
                   (unsigned long long)off, (unsigned long long)idle);
    if (p->claim != STK_NONE && s->jobs[p->claim].state != STK_JOB_WAITING)
        return BAD("pool %u is cleared for a job that does not wait", pool);
    return true;
}

/* Who moves is on its way: stopping, or waiting for its new place. */
static bool moves_sound(const struct stk_state *s, struct stk_err *err)
{
    uint32_t moving = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        moving += j->moving;
        if (j->moving && j->state != STK_JOB_STOPPING && j->state != STK_JOB_WAITING)
            return BAD("job %u moves and is neither stopping nor waiting", j->number);
    }
    return moving == s->n_moving || BAD("%u jobs move, not %u", moving, s->n_moving);
}

/* Arrays count those of their jobs that have not ended. */
static bool arrays_sound(const struct stk_state *s, struct stk_err *err)
{
    uint64_t jobs = 0, counted = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE || j->array == 0)
            continue;
        jobs++;
        if (!stk_array_find(s, j->array))
            return BAD("job %u: its array is not known", j->number);
    }
    for (uint32_t i = 0; i < s->n_arrays; i++)
        counted += s->arrays[i].open;
    if (jobs != counted)
        return BAD("%llu jobs of arrays have not ended, counted %llu", (unsigned long long)jobs,
                   (unsigned long long)counted);
    return true;
}

bool stk_core_sound(const struct stk_core *c, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(c);
    uint32_t live = 0, done = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE)
            continue;
        live += j->state != STK_JOB_DONE;
        done += j->state == STK_JOB_DONE;
        if (stk_map_get(&s->by_number, j->number) != i)
            return BAD("job %u is not found by its number", j->number);
        if (j->state != STK_JOB_DONE && !job_sound(s, j, err))
            return false;
    }
    if (live != s->n_live || done != s->n_done || s->n_undo != 0)
        return BAD("%u live and %u finished jobs, counters say %u and %u", live, done, s->n_live,
                   s->n_done);
    if (!nodes_sound(s, err) || !stk_topo_sound(s, err) || !power_sound(s, err) ||
        !arrays_sound(s, err) || !moves_sound(s, err) || !stk_tenants_sound(s, err) ||
        !stk_budgets_sound(s, err) || !stk_leave_sound(s, err) || !stk_accounts_sound(s, err) ||
        !stk_usages_sound(s, err) || !stk_outruns_sound(s, err))
        return false;
    for (uint32_t p = 0; p < s->n_pools; p++)
        if (!pool_sound(s, p, err) || !levels_sound(s, p, err))
            return false;
    return true;
}
