/* SPDX-License-Identifier: Apache-2.0 */
/* test_gang.c - jobs with wishes of topology, on small random clusters, against a search that tries
 * every way to put their tasks on nodes and islands. If there is a way it must be found, at the
 * nearest level that has one; what was found must be one; and a job is refused at the door exactly
 * when an empty cluster has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/gang.h"
#include "core/place.h"
#include "core/shape.h"
#include "lib/fixture.h"

#define MAX_NODES 6
#define MAX_TASKS 6
#define N_LAYOUTS 3

/* Islands of all, of halves, and of pairs with one GPU alone. */
static const struct stk_layout layouts[] = {
    {.gpus = 4, .n_islands = 1, .island = {0xf}, .n_numa = 2, .numa = {0x5, 0xa}},
    {.gpus = 4, .n_islands = 2, .island = {0x9, 0x6}},
    {.gpus = 6, .n_islands = 2, .island = {0x7, 0x18}, .n_numa = 2, .numa = {0x7, 0x38}},
};

static uint32_t below(struct stk_rng *r, uint32_t n)
{
    return (uint32_t)stk_rng_below(r, n);
}

static bool percent(struct stk_rng *r, uint32_t p)
{
    return below(r, 100) < p;
}

static struct stk_state *writable(const struct fx *f)
{
    return (struct stk_state *)(uintptr_t)f->s;
}

/* ---- the plain rules ---- */

struct room { /* what is left of a node */
    bool up, idle;
    uint64_t mask;
    uint64_t cpu, mem; /* UINT64_MAX: not limited */
};

struct model {
    const struct stk_node_spec *nodes;
    uint32_t n, pool;
    struct room room[MAX_NODES];
    const struct stk_demand *d;
    const uint64_t *avoid;
    /* of the search */
    enum stk_level level;
    uint32_t place;
    uint32_t tasks[MAX_NODES];
    uint32_t free[MAX_NODES][STK_MAX_ISLANDS + 1];
};

/* The name of the place of a node: whose number it is, and the number. */
static uint32_t place_of(const struct stk_node_spec *nodes, uint32_t i, enum stk_level level)
{
    const struct stk_node_spec *n = &nodes[i];

    if (level == STK_AT_FAR)
        return 1;
    if (level == STK_AT_REGION && n->region)
        return 50000 + n->region;
    if (level >= STK_AT_ZONE && n->zone)
        return 40000 + n->zone;
    if (level >= STK_AT_RACK && n->rack)
        return 30000 + n->rack;
    if (level != STK_AT_NODE && n->domain)
        return 20000 + n->domain;
    return 10000 + i;
}

static uint32_t islands_of(const struct stk_node_spec *n)
{
    return n->layout && !n->domain ? layouts[n->layout - 1].n_islands : 0;
}

/* GPUs of one island; the last "island" is of those in none. */
static uint64_t island_mask(const struct stk_node_spec *n, uint32_t i)
{
    uint64_t all = 0;

    if (n->domain)
        return i == 0 ? UINT64_MAX : 0;
    if (i < islands_of(n))
        return layouts[n->layout - 1].island[i];
    for (uint32_t k = 0; k < islands_of(n); k++)
        all |= layouts[n->layout - 1].island[k];
    return ~all;
}

static bool usable(const struct model *m, uint32_t node)
{
    const struct stk_node_spec *n = &m->nodes[node];

    return m->room[node].up && n->pool.i == m->pool && ((m->d->gpu_types >> n->gpu_type) & 1) &&
           !(m->avoid && (m->avoid[0] >> node & 1)) && (!m->d->exclusive || m->room[node].idle);
}

static bool has(uint64_t room, uint64_t each, uint32_t times)
{
    return room == UINT64_MAX || each * times <= room;
}

static uint32_t gpus_left(const struct model *m, uint32_t node)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i <= islands_of(&m->nodes[node]); i++)
        sum += m->free[node][i];
    return sum;
}

/* Takes GPUs for a task, from one island (or from anywhere: STK_MAX_ISLANDS). */
static bool take(struct model *m, uint32_t node, uint32_t island)
{
    const struct stk_demand *d = m->d;
    uint32_t left = d->gpus;

    if (!has(m->room[node].cpu, d->cpu_milli, m->tasks[node] + 1) ||
        !has(m->room[node].mem, d->mem_mib, m->tasks[node] + 1))
        return false;
    if (island < STK_MAX_ISLANDS) {
        if (m->free[node][island] < d->gpus)
            return false;
        m->free[node][island] -= d->gpus;
        m->tasks[node]++;
        return true;
    }
    if (gpus_left(m, node) < d->gpus)
        return false;
    for (uint32_t i = 0; i <= islands_of(&m->nodes[node]); i++) {
        uint32_t n = m->free[node][i] < left ? m->free[node][i] : left;

        m->free[node][i] -= n;
        left -= n;
    }
    m->tasks[node]++;
    return true;
}

static bool per_node_kept(const struct model *m)
{
    for (uint32_t i = 0; m->d->per_node && i < m->n; i++)
        if (m->tasks[i] && m->tasks[i] != m->d->per_node)
            return false;
    return true;
}

/* A link domain may be wider than a node, and a node is required. */
static enum stk_level widest(const struct model *m)
{
    return m->level == STK_AT_LINK && m->d->level_required == STK_AT_NODE ? STK_AT_NODE : m->level;
}

/* Task 't' and all behind it. 'option' is where the one before went: equal tasks of one subgroup
 * are put in order. 'home' and 'all': where the subgroup, and the job, must stay. */
static bool search(struct model *m, uint32_t t, uint32_t option, uint32_t home, uint32_t all,
                   uint32_t first)
{
    const struct stk_demand *d = m->d;
    uint32_t q = d->group ? d->group : 1;
    bool all_linked = m->level == STK_AT_LINK && d->tasks * d->gpus > 1;
    bool group_linked = d->group_level == STK_AT_LINK && d->group * d->gpus > 1;
    bool linked = all_linked || group_linked;

    if (t == d->tasks)
        return per_node_kept(m);
    if (t % q == 0 && d->group) { /* subgroups begin in order, too */
        option = t ? first : 0;
        home = STK_NONE;
    }
    for (; option < m->n * (STK_MAX_ISLANDS + 1); option++) {
        uint32_t node = option / (STK_MAX_ISLANDS + 1), island = option % (STK_MAX_ISLANDS + 1);
        struct model saved = *m;
        uint32_t at, link;

        if (!usable(m, node) || place_of(m->nodes, node, widest(m)) != m->place)
            continue;
        if (linked ? island > islands_of(&m->nodes[node]) : island != STK_MAX_ISLANDS)
            continue;
        if (linked && !m->nodes[node].domain && island == islands_of(&m->nodes[node]))
            continue; /* linked to nothing */
        link = m->nodes[node].domain ? 100000 + m->nodes[node].domain : option;
        at = group_linked ? link : place_of(m->nodes, node, (enum stk_level)d->group_level);
        if ((d->group && home != STK_NONE && at != home) ||
            (all_linked && all != STK_NONE && link != all))
            continue;
        if (take(m, node, island) &&
            search(m, t + 1, option, at, link, t % q == 0 ? option : first))
            return true;
        *m = saved;
    }
    return false;
}

static uint32_t count(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

/* A job that is cut: whole nodes of the largest size, and the rest on another. */
static bool search_cut(const struct model *m, uint32_t size)
{
    const struct stk_demand *d = m->d;
    uint32_t whole = d->gpus / size, rest = d->gpus % size, large = 0, small = 0;

    for (uint32_t i = 0; i < m->n; i++) {
        const struct room *k = &m->room[i];
        uint64_t c = ((uint64_t)d->cpu_milli * size + d->gpus - 1) / d->gpus;
        uint64_t e = ((uint64_t)d->mem_mib * size + d->gpus - 1) / d->gpus;
        uint64_t c2 = ((uint64_t)d->cpu_milli * rest + d->gpus - 1) / d->gpus;
        uint64_t e2 = ((uint64_t)d->mem_mib * rest + d->gpus - 1) / d->gpus;

        if (!usable(m, i) || place_of(m->nodes, i, widest(m)) != m->place ||
            (m->level == STK_AT_LINK && !m->nodes[i].domain))
            continue;
        large += count(k->mask) >= size && has(k->cpu, c, 1) && has(k->mem, e, 1);
        small += count(k->mask) >= rest && has(k->cpu, c2, 1) && has(k->mem, e2, 1);
    }
    return large >= whole && (rest == 0 || small > whole);
}

/* There is a way at this level. */
static bool feasible(struct model *m, enum stk_level level)
{
    uint32_t size = 0;

    m->level = level;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->nodes[i].pool.i == m->pool && ((m->d->gpu_types >> m->nodes[i].gpu_type) & 1) &&
            m->nodes[i].gpus > size)
            size = m->nodes[i].gpus;
    for (uint32_t i = 0; i < m->n; i++) {
        m->place = place_of(m->nodes, i, widest(m));
        memset(m->tasks, 0, sizeof(m->tasks));
        for (uint32_t k = 0; k < m->n; k++)
            for (uint32_t l = 0; l <= islands_of(&m->nodes[k]); l++)
                m->free[k][l] = count(m->room[k].mask & island_mask(&m->nodes[k], l));
        if (m->d->cut && size && m->d->gpus > size ? search_cut(m, size)
                                                   : search(m, 0, 0, STK_NONE, STK_NONE, 0))
            return true;
    }
    return false;
}

/* ---- the cluster ---- */

static void random_nodes(struct stk_rng *r, struct stk_node_spec *nodes, uint32_t n)
{
    bool racks = percent(r, 70), zones = percent(r, 50), regions = percent(r, 30);
    bool domains = percent(r, 30), limits = percent(r, 30), types = percent(r, 30);
    bool pools = percent(r, 20);

    for (uint32_t i = 0; i < n; i++) {
        struct stk_node_spec *k = &nodes[i];
        uint32_t domain = below(r, 4), rack = percent(r, 20) ? 0 : 1 + below(r, 3);

        *k = (struct stk_node_spec){.gpus = percent(r, 80) ? 4 : 6, .pool = {pools && i == 0}};
        k->gpu_type = types ? below(r, 2) : 0;
        if (percent(r, 60))
            k->layout = k->gpus == 6 ? 3 : 1 + below(r, 2);
        if (domains && domain) { /* each in one rack */
            k->domain = domain;
            k->layout = 0;
            rack = domain == 3 ? 0 : domain;
        }
        k->rack = racks ? rack : 0;
        k->zone = zones ? (k->rack ? 1 + k->rack / 3 : k->domain ? 1 : below(r, 3)) : 0;
        k->region = regions ? (k->zone || k->rack || k->domain ? 7 : below(r, 2)) : 0;
        k->cpu_milli = limits && percent(r, 80) ? 1000 * (1 + below(r, 8)) : 0;
        k->mem_mib = limits && percent(r, 50) ? 1000 * (1 + below(r, 8)) : 0;
    }
}

static struct stk_job_spec random_job(struct stk_rng *r)
{
    static const uint32_t tasks[] = {1, 2, 2, 3, 4, 4, 5, 6};
    static const uint32_t gpus[] = {0, 1, 1, 1, 2, 2, 3, 4};
    struct stk_job_spec spec = fx_job(gpus[below(r, 8)], 10);
    struct stk_demand *d = &spec.demand;

    d->cut = false;
    d->tasks = tasks[below(r, 8)];
    if (percent(r, 15)) {
        d->cut = true;
        d->tasks = 1;
        d->gpus = 1 + below(r, 16);
    }
    d->level_required = (uint8_t)(percent(r, 30) ? 0 : STK_AT_LINK + below(r, 5));
    if (percent(r, 30))
        d->level_preferred =
            (uint8_t)(d->level_required ? below(r, d->level_required) : below(r, STK_AT_FAR));
    if (!d->cut && percent(r, 40)) {
        do
            d->group = 1 + below(r, d->tasks);
        while (d->tasks % d->group);
        d->group_level =
            (uint8_t)(STK_AT_LINK + below(r, d->level_required ? d->level_required : 5));
    }
    if (!d->cut && percent(r, 30))
        do
            d->per_node = 1 + below(r, d->tasks);
        while (d->tasks % d->per_node);
    d->exclusive = percent(r, 15);
    d->gpu_types = percent(r, 70) ? STK_ANY_GPU_TYPE : 1 + below(r, 2);
    d->cpu_milli = percent(r, 60) ? 0 : 500 * (1 + below(r, 5));
    d->mem_mib = percent(r, 80) ? 0 : 500 * (1 + below(r, 5));
    return spec;
}

/* Small jobs here and there, a node that is down, GPUs that are off. */
static void fill(struct fx *f, struct stk_rng *r, uint32_t pools)
{
    uint32_t n = below(r, 10);

    for (uint32_t i = 0; i < n; i++) {
        struct stk_job_spec spec = fx_job(percent(r, 20) ? 0 : 1 + below(r, 3), 10);

        spec.demand.cut = false;
        spec.demand.exclusive = percent(r, 10);
        spec.demand.cpu_milli = percent(r, 50) ? 0 : 500;
        spec.pool.i = below(r, pools);
        (void)fx_try_submit(f, &spec);
    }
    (void)fx_decide(f);
    for (uint32_t i = 0; i < f->s->n_jobs; i++) /* holes */
        if (f->s->jobs[i].lease && percent(r, 30))
            (void)fx_exit(f, i, STK_CAUSE_OK);
    if (percent(r, 20))
        (void)fx_node(f, below(r, f->s->n_nodes), false);
    if (percent(r, 20))
        (void)fx_gpus_off(f, below(r, f->s->n_nodes), below(r, 16));
}

static struct model look(const struct fx *f, const struct stk_job_spec *spec,
                         const struct stk_node_spec *nodes, bool empty)
{
    struct model m = {.nodes = nodes, .n = f->s->n_nodes, .pool = spec->pool.i, .d = &spec->demand};

    for (uint32_t i = 0; i < m.n; i++) {
        const struct stk_node *n = &f->s->nodes[i];
        uint32_t pieces = 0;

        for (uint32_t j = 0; j < f->s->n_jobs; j++)
            for (uint32_t k = 0; f->s->jobs[j].lease && k < f->s->jobs[j].n_pieces; k++)
                pieces += f->s->pieces[f->s->jobs[j].first_piece + k].node.i == i;
        m.room[i] =
            (struct room){.up = empty || (n->up && !n->held),
                          .idle = empty || pieces == 0,
                          .mask = empty ? n->mask_all : n->mask_free,
                          .cpu = n->cpu_limited ? (empty ? n->cpu_milli : n->cpu_free) : UINT64_MAX,
                          .mem = n->mem_limited ? (empty ? n->mem_mib : n->mem_free) : UINT64_MAX};
    }
    return m;
}

/* ---- what was found ---- */

static void assert_piece(const struct model *m, const struct stk_piece *p, uint32_t i)
{
    const struct stk_demand *d = m->d;
    const struct stk_piece *q = &p[i];

    assert_true(usable(m, q->node.i));
    assert_int_equal(q->mask & ~m->room[q->node.i].mask, 0);
    assert_int_equal(count(q->mask), q->gpus);
    assert_true(d->cut || q->gpus == q->tasks * d->gpus);
    assert_true(d->per_node == 0 || q->tasks == d->per_node);
    assert_true(d->cut || (has(m->room[q->node.i].cpu, d->cpu_milli, q->tasks) &&
                           has(m->room[q->node.i].mem, d->mem_mib, q->tasks)));
    for (uint32_t k = 0; k < i; k++)
        assert_int_not_equal(p[k].node.i, q->node.i);
}

/* All pairs of GPUs of these pieces are as near as this. */
static void assert_near(const struct model *m, const struct stk_piece *p, uint32_t n,
                        enum stk_level level)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            if (level != STK_AT_LINK || p[i].node.i != p[k].node.i)
                assert_int_equal(place_of(m->nodes, p[i].node.i, level),
                                 place_of(m->nodes, p[k].node.i, level));
            for (uint64_t a = level == STK_AT_LINK ? p[i].mask : 0; a; a &= a - 1)
                for (uint64_t b = p[k].mask; b; b &= b - 1)
                    assert_true(stk_level_between(
                                    m->nodes, layouts,
                                    (struct stk_gpu_at){p[i].node.i, (uint32_t)__builtin_ctzll(a)},
                                    (struct stk_gpu_at){
                                        p[k].node.i, (uint32_t)__builtin_ctzll(b)}) <= STK_AT_LINK);
        }
}

/* Subgroup by subgroup, in the order of tasks; islands of one piece in any order. */
static void assert_groups(const struct model *m, const struct stk_piece *p, uint32_t n)
{
    const struct stk_demand *d = m->d;
    uint32_t in = 0, first = 0;

    for (uint32_t i = 0; d->group && i < n; i++) {
        bool islands = d->group_level == STK_AT_LINK && !m->nodes[p[i].node.i].domain &&
                       d->group * d->gpus > 1;

        first = in > 0 ? first : i;
        if (in > 0)
            assert_int_equal(place_of(m->nodes, p[first].node.i, (enum stk_level)d->group_level),
                             place_of(m->nodes, p[i].node.i, (enum stk_level)d->group_level));
        if (d->group_level <= STK_AT_NODE &&
            (d->group_level == STK_AT_NODE || !m->nodes[p[i].node.i].domain))
            assert_int_equal(p[i].tasks % d->group, 0);
        for (uint32_t l = 0; islands && l < islands_of(&m->nodes[p[i].node.i]); l++)
            assert_int_equal(count(p[i].mask & island_mask(&m->nodes[p[i].node.i], l)) %
                                 (d->group * d->gpus),
                             0);
        if (islands)
            assert_int_equal(
                p[i].mask & island_mask(&m->nodes[p[i].node.i], islands_of(&m->nodes[p[i].node.i])),
                0);
        in += p[i].tasks;
        if (in >= d->group)
            first = i;
        in %= d->group;
    }
    assert_int_equal(in, 0);
}

static void show(const struct model *m, const struct fx *f)
{
    const struct stk_demand *d = m->d;

    print_error("%s: %u tasks of %u GPUs, required %u, preferred %u, group %u:%u, per_node %u, "
                "exclusive %d, cut %d, cpu %u, mem %u, pool %u\n",
                f->s->place->name, d->tasks, d->gpus, d->level_required, d->level_preferred,
                d->group, d->group_level, d->per_node, d->exclusive, d->cut, d->cpu_milli,
                d->mem_mib, m->pool);
    for (uint32_t i = 0; i < m->n; i++)
        print_error("node %u: up %d, idle %d, free %llx of %u, type %u, pool %u, layout %u, domain "
                    "%u, rack %u, zone %u, region %u, cpu %llu, mem %llu\n",
                    i, m->room[i].up, m->room[i].idle, (unsigned long long)m->room[i].mask,
                    m->nodes[i].gpus, m->nodes[i].gpu_type, m->nodes[i].pool.i, m->nodes[i].layout,
                    m->nodes[i].domain, m->nodes[i].rack, m->nodes[i].zone, m->nodes[i].region,
                    (unsigned long long)m->room[i].cpu, (unsigned long long)m->room[i].mem);
}

/* Tries one job; true when it was found a place. */
static bool try_one(struct fx *f, struct stk_rng *r, const struct stk_node_spec *nodes,
                    struct stk_job_spec spec)
{
    struct model m, empty = look(f, &spec, nodes, true);
    const struct stk_demand *d = &spec.demand;
    enum stk_level first = d->level_preferred  ? (enum stk_level)d->level_preferred
                           : d->level_required ? (enum stk_level)d->level_required
                                               : STK_AT_FAR,
                   last = d->level_required ? (enum stk_level)d->level_required : STK_AT_FAR;
    uint64_t avoid[1] = {percent(r, 30) ? stk_rng_next(r) & stk_rng_next(r) : 0};
    uint32_t job = stk_core_next_job(f->core).i, n = 0;
    bool found, there = false;

    spec.held = true;
    if (fx_try_submit(f, &spec) < 0) {
        if (feasible(&empty, last)) {
            show(&empty, f);
            fail_msg("refused, and possible: %s", f->err.text);
        }
        return false;
    }
    if (!feasible(&empty, last)) {
        show(&empty, f);
        fail_msg("accepted, and never possible");
    }
    m = look(f, &spec, nodes, false);
    m.avoid = avoid;
    found = stk_place_try(writable(f), f->s->jobs[job].shape, avoid, &n);
    for (enum stk_level level = first; level <= last && !there; level++) {
        there = feasible(&m, level);
        if (there != found && (there || level == last)) {
            print_error("level %u there %d found %d\n", level, there, found);
            show(&m, f);
            fail_msg("found and there disagree");
        }
        if (there)
            assert_near(&m, f->s->try_pieces, n, level);
    }
    assert_int_equal(found, there);
    for (uint32_t i = 0; i < n && found; i++)
        assert_piece(&m, f->s->try_pieces, i);
    if (found) {
        struct stk_piece *p = malloc(n * sizeof(*p));

        memcpy(p, f->s->try_pieces, n * sizeof(*p));
        assert_groups(&m, p, n);
        if (d->level_required)
            assert_near(&m, p, n, last);
        assert_int_equal(fx_job_event(f, STK_EV_RELEASE, job), 0);
        assert_int_equal(fx_place(f, job, p, n), 0); /* the core's own check agrees */
        free(p);
        fx_sound(f);
        if (percent(r, 50))
            assert_int_equal(fx_exit(f, job, STK_CAUSE_OK), 0);
    } else {
        assert_int_equal(fx_cancel(f, job), 0);
    }
    return found;
}

static void what_there_is_is_found(void **state)
{
    static const char *const places[] = {"pack", "spread", "first_fit", "topology", "stoker"};
    const char *rounds = getenv("STOKER_ROUNDS");
    uint32_t n_rounds = rounds ? (uint32_t)atoi(rounds) : 3000, found = 0, tried = 0;

    (void)state;
    for (uint32_t round = 0; round < n_rounds; round++) {
        struct stk_node_spec nodes[MAX_NODES];
        struct stk_rng r;
        struct fx *f;
        uint32_t n, pools = 1;

        stk_rng_init(&r, 1000 + round);
        n = 1 + below(&r, MAX_NODES);
        random_nodes(&r, nodes, n);
        pools += nodes[0].pool.i;
        f = fx_new(&(struct fx_setup){.nodes = nodes,
                                      .n_nodes = n,
                                      .n_pools = pools,
                                      .layouts = layouts,
                                      .n_layouts = N_LAYOUTS,
                                      .place = places[below(&r, 4)]});
        fill(f, &r, pools);
        for (uint32_t i = 0; i < 6; i++) {
            struct stk_job_spec spec = random_job(&r);

            spec.pool.i = below(&r, pools);
            if (strcmp(f->s->place->name, "topology") == 0 && !spec.demand.level_preferred &&
                spec.demand.level_required != STK_AT_LINK)
                spec.demand.level_preferred = STK_AT_LINK; /* what it makes of it anyhow */
            tried++;
            found += try_one(f, &r, nodes, spec);
        }
        fx_sound(f);
        fx_free(f);
    }
    assert_true(found > tried / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_there_is_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
