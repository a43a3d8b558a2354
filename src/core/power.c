/* SPDX-License-Identifier: Apache-2.0 */
#include "core/power.h"

#include "core/gang.h"
#include "core/index.h"
#include "core/place.h"
#include "core/score.h"
#include "core/shape.h"

int stk_power_init(struct stk_state *s, struct stk_err *err)
{
    s->cap_w = s->place->cap_w ? s->place->cap_w(s->place_st) : 0;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        struct stk_node *n = &s->nodes[i];

        if (!stk_power_known(&n->power))
            continue;
        s->power = true;
        n->off = s->place->saves;
        s->watts += stk_power_of(n);
        s->watts_off += n->power.off_w;
        s->n_on += !n->off;
    }
    if (s->cap_w && !s->power)
        return stk_err_set(err, -EINVAL,
                           "a power cap (energy.cap_w) needs nodes whose power is known (power: in "
                           "the cluster file of the simulator)");
    return 0;
}

void stk_power_set(struct stk_state *s, uint32_t node, bool off)
{
    struct stk_node *n = &s->nodes[node];

    s->watts -= stk_power_of(n);
    s->n_on -= stk_power_on(n);
    n->off = off;
    s->n_on += stk_power_on(n);
    s->watts += stk_power_of(n);
    stk_score_changed(s, node);
}

/* Whether an earlier piece is on the same node: of MIG instances there may be several. */
static bool seen(const struct stk_state *s, const struct stk_piece *pieces, uint32_t i)
{
    for (uint32_t k = 0; s->any_mig && k < i; k++)
        if (pieces[k].node.i == pieces[i].node.i)
            return true;
    return false;
}

int64_t stk_power_added(const struct stk_state *s, const struct stk_piece *pieces, uint32_t n)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct stk_node *k = &s->nodes[pieces[i].node.i];
        uint32_t gpus = k->aggregate
                            ? pieces[i].gpus
                            : (uint32_t)__builtin_popcountll(pieces[i].mask & ~k->mask_used);

        sum += (int64_t)k->power.gpu_w * gpus;
        if (!stk_power_on(k) && !seen(s, pieces, i))
            sum += (int64_t)k->power.idle_w - k->power.off_w;
    }
    return sum;
}

/* Some other pool is being cleared for a job. */
static bool promised_elsewhere(const struct stk_state *s, uint32_t pool)
{
    for (uint32_t i = 0; i < s->n_pools; i++)
        if (i != pool && s->pools[i].claim != STK_NONE && s->pools[i].n_stopping > 0)
            return true;
    return false;
}

bool stk_power_fits(const struct stk_state *s, const struct stk_piece *pieces, uint32_t n)
{
    int64_t more = s->cap_w ? stk_power_added(s, pieces, n) : 0;

    return s->cap_w == 0 ||
           ((int64_t)s->watts + more <= (int64_t)s->cap_w &&
            (more <= 0 || !promised_elsewhere(s, s->nodes[pieces[0].node.i].pool)));
}

/* ---- jobs that can never be had ---- */

/* The most that all nodes draw with this job alone on nodes of these types, all others off;
 * UINT64_MAX: it cannot be there. */
static uint64_t alone_on(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                         uint64_t types)
{
    const struct stk_pool *p = &s->pools[pool];
    struct stk_demand here = *d;
    uint32_t whole, size, rest, idle_w = 0, gpu_w = 0;
    uint64_t per = d->tasks, nodes;

    here.gpu_types &= types;
    if (here.gpu_types == 0 || stk_place_possible(s, &here, pool, NULL) < 0)
        return UINT64_MAX;
    stk_place_cut(s, &here, pool, &whole, &size, &rest);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];
        uint64_t fit = stk_place_holds(s, &here, node, here.gpus);

        if (!((here.gpu_types >> n->gpu_type) & 1))
            continue;
        if (fit > 0 && fit < per)
            per = fit;
        if (n->power.idle_w > n->power.off_w && n->power.idle_w - n->power.off_w > idle_w)
            idle_w = n->power.idle_w - n->power.off_w;
        gpu_w = n->power.gpu_w > gpu_w ? n->power.gpu_w : gpu_w;
    }
    nodes = whole > 0 ? whole + (rest > 0) : per > 0 ? (here.tasks + per - 1) / per : 1;
    if (stk_demand_near(&here)) /* who is where then is not foreseen */
        nodes = (uint64_t)here.tasks * (here.gpus ? here.gpus : 1);
    nodes = nodes < p->n_nodes ? nodes : p->n_nodes;
    return s->watts_off + nodes * idle_w + (uint64_t)gpu_w * here.gpus * here.tasks;
}

int stk_power_check(const struct stk_state *s, const struct stk_job_spec *spec, struct stk_err *err)
{
    const struct stk_pool *p = &s->pools[spec->pool.i];
    struct stk_demand d; /* one answer for all of a shape */
    uint64_t least;

    if (!s->cap_w || stk_shape_known(s, spec))
        return 0;
    d = stk_shape_relevant(s, &spec->demand, spec->pool.i);
    least = alone_on(s, &d, spec->pool.i, STK_ANY_GPU_TYPE);
    for (uint32_t i = 0; i < p->n_groups && least > s->cap_w; i++) {
        uint64_t w =
            alone_on(s, &d, spec->pool.i, UINT64_C(1) << s->groups[p->first_group + i].gpu_type);

        least = w < least ? w : least;
    }
    if (least <= s->cap_w)
        return 0;
    return stk_err_set(err, -ERANGE,
                       "needs %.1f kW with all other nodes off; the power cap is %.1f kW",
                       (double)least / 1000, (double)s->cap_w / 1000);
}

void stk_power_freed(struct stk_state *s)
{
    if (!s->power_short)
        return;
    s->power_short = false;
    for (uint32_t i = 0; i < s->n_pools; i++) {
        struct stk_pool *p = &s->pools[i];

        if (!p->power_short)
            continue;
        p->power_short = false;
        if (p->n_waiting == 0)
            continue;
        p->blocked = false;
        stk_shape_wake_all(s, p);
        stk_shape_mark_dirty(s, i);
    }
}
