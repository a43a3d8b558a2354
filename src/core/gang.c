/* SPDX-License-Identifier: Apache-2.0 */
/* gang.c - see gang.h.
 *
 * A node takes whole *units*: one task; or a subgroup that must lie on one node or in one island;
 * or, with per_node, that many tasks, once. How many units a node has room for depends on this node
 * alone, so a place has room for the sum of its nodes, and taking from its nodes in any order finds
 * that much. Subgroups that may span nodes make it a sum of sums: of each place of their level only
 * whole subgroups count. That is why looking once at each candidate place is exact.
 *
 * Order, to leave few fragments: the tightest place that has room; in it, emptiest nodes first, so
 * that few are used, but for the last units the fullest node that has room for them. A large place
 * is filled rack by rack, again the tightest that has room for what is left, else the emptiest.
 * With per_node the fullest nodes that fit are taken. 'spread' takes the emptiest of all.
 *
 * Nothing is changed on the way: nodes that were used are stamped.
 */
#include "core/gang.h"

#include "core/index.h"
#include "core/place.h"
#include "core/resource.h"
#include "core/sets.h"

struct gang {
    struct stk_state *s;
    const struct stk_demand *d;
    const uint64_t *avoid;
    uint32_t pool;
    uint64_t accepts;  /* GPU types */
    uint32_t gpus;     /* of one task */
    uint64_t cpu, mem; /* likewise */
    struct stk_amounts resources;
    uint32_t tasks; /* in all; of a cut job its whole pieces */
    uint32_t rest;  /* GPUs of the rest of a cut job; 0: there is none */
    uint32_t unit;  /* tasks of one unit */
    uint32_t linked,
        links;           /* a unit has so many parts of so many GPUs, each in one island; 0: no */
    bool once;           /* one unit per node */
    uint32_t batch;      /* a place of the tier 'batch_tier' takes multiples of so many tasks */
    uint32_t batch_tier; /* STK_TIERS: no such */
    uint32_t key;        /* by which places are compared; STK_NONE: by their nodes */
    uint32_t per_count;  /* tasks for each that it counts */
    uint32_t n;          /* pieces found */
};

/* ---- one node ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Units that the node has room for. */
static uint32_t units_on(const struct gang *q, uint32_t node)
{
    const struct stk_state *s = q->s;
    const struct stk_node *n = &s->nodes[node];
    uint64_t tasks = q->gpus ? n->gpus_free / q->gpus : q->tasks, units;

    if (n->held || (n->closed && q->gpus == 0) || s->node_stamp[node] == s->stamp ||
        (q->avoid && stk_bits_test(q->avoid, node)) || !stk_sets_allow(s, q->d, node) ||
        (q->d->exclusive && n->n_uses > 0) ||
        (q->gpus && n->gpu_mem_mib && q->d->gpu_mem_mib > n->gpu_mem_mib))
        return 0;
    if (n->cpu_limited && q->cpu)
        tasks = least(tasks, n->cpu_free / q->cpu);
    if (n->mem_limited && q->mem)
        tasks = least(tasks, n->mem_free / q->mem);
    tasks = stk_resource_times(s, s->resource_free, node, &q->resources, tasks);
    units = tasks / q->unit;
    if (q->linked > 1 && units > 0)
        units = least(units, stk_topo_linked(s, node, q->linked) / q->links);
    return (uint32_t)least(units, q->once ? 1 : q->tasks);
}

static void use(struct gang *q, uint32_t node, uint32_t tasks, uint32_t gpus)
{
    q->s->node_stamp[node] = q->s->stamp;
    q->s->try_pieces[q->n++] = (struct stk_piece){{node}, gpus, tasks, 0, 0};
}

/* ---- a row of nodes ---- */

/* Nodes of the group by free GPUs, or by those in one island where that is asked for. */
struct row {
    const struct stk_group *g;
    uint32_t group, from, to;
    bool by_link;
    uint32_t least; /* bucket from which on a unit may fit */
};

static const uint64_t *set_of(const struct gang *q, const struct row *r, uint32_t bucket)
{
    if (r->by_link)
        return stk_topo_link_set(q->s, r->group, bucket);
    return q->s->words + r->g->words + (size_t)bucket * r->g->nodes_layout.n_words;
}

/* The next node of the bucket that has room for so many units at least, from a position on. */
static uint32_t next_in(const struct gang *q, const struct row *r, uint32_t bucket, uint32_t units,
                        uint32_t *io_pos, uint32_t *ret_units)
{
    const uint64_t *set = set_of(q, r, bucket);

    while ((*io_pos = stk_bits_next(&r->g->nodes_layout, set, *io_pos)) < r->to) {
        uint32_t node = q->s->group_nodes[r->g->first + (*io_pos)++];

        *ret_units = units_on(q, node);
        if (*ret_units >= units)
            return node;
    }
    return STK_NONE;
}

static struct row row_of(const struct gang *q, uint32_t group, uint32_t from, uint32_t n)
{
    struct row r = {&q->s->groups[group], group, from, from + n, false, q->unit * q->gpus};

    if (q->linked > 1) {
        r.by_link = true;
        r.least = q->linked;
    }
    return r;
}

/* All that is left, on the fullest node that has room for it. */
static bool take_rest(struct gang *q, const struct row *r, uint32_t units)
{
    uint32_t from = r->by_link ? r->least : units * r->least, got;

    for (uint32_t b = from; b <= r->g->max_gpus; b++) {
        uint32_t pos = r->from, node = next_in(q, r, b, units, &pos, &got);

        if (node == STK_NONE)
            continue;
        use(q, node, units * q->unit, units * q->unit * q->gpus);
        return true;
    }
    return false;
}

/* Units from nodes of one bucket, at most 'left'. Returns those that are still wanted. */
static uint32_t take_bucket(struct gang *q, const struct row *r, uint32_t bucket, uint32_t left)
{
    uint32_t pos = r->from, node, units;

    while (left > 0 && (node = next_in(q, r, bucket, 1, &pos, &units)) != STK_NONE) {
        if (units >= left && !q->s->place->apart && take_rest(q, r, left))
            return 0;
        units = units < left ? units : left;
        use(q, node, units * q->unit, units * q->unit * q->gpus);
        left -= units;
    }
    return left;
}

/* Tasks from a row of nodes, at most 'want' of them. Returns how many it got. */
static uint32_t take_row(struct gang *q, uint32_t group, uint32_t from, uint32_t n, uint32_t want)
{
    const struct row r = row_of(q, group, from, n);
    const bool tight = q->once && !q->s->place->apart;
    uint32_t left = want / q->unit;

    if (r.by_link && !q->s->topo->linked[group])
        return 0;
    for (uint32_t i = r.least; i <= r.g->max_gpus && left > 0; i++)
        left = take_bucket(q, &r, tight ? i : r.g->max_gpus - (i - r.least), left);
    return (want / q->unit - left) * q->unit;
}

/* ---- places ---- */

static bool takes_cell(const struct gang *q, const struct stk_cell *c)
{
    const struct stk_group *g = &q->s->groups[c->group];

    return g->pool == q->pool && stk_group_accepts(g, q->accepts);
}

/* The first cell of a place that counts, from this one on (cell + 1). */
static uint32_t first_cell(const struct gang *q, uint32_t at)
{
    const struct stk_topo *t = q->s->topo;

    while (at && !takes_cell(q, &t->cells[at - 1]))
        at = t->cells[at - 1].next;
    return at;
}

/* What a place has by the job's key, over all its cells. */
static uint64_t cap_of(const struct gang *q, uint32_t cell)
{
    const struct stk_topo *t = q->s->topo;
    uint64_t sum = 0;

    for (uint32_t at = cell + 1; at; at = first_cell(q, t->cells[at - 1].next))
        sum += q->key == STK_NONE ? t->cells[at - 1].n : stk_topo_cap(q->s, at - 1, q->key);
    return sum;
}

static bool is_first(const struct gang *q, uint32_t cell)
{
    const struct stk_cell *c = &q->s->topo->cells[cell];

    return first_cell(q, q->s->topo->head[c->tier][c->id]) == cell + 1;
}

/* Of the places below that were not visited: the tightest that has enough, else the one that has
 * most. Only those with anything count. */
static uint32_t best_kid(const struct gang *q, uint32_t cell, uint64_t stamp, uint64_t enough)
{
    const struct stk_topo *t = q->s->topo;
    uint64_t best_cap = 0;
    uint32_t best = STK_NONE;

    for (uint32_t at = cell + 1; at; at = first_cell(q, t->cells[at - 1].next)) {
        const struct stk_cell *c = &t->cells[at - 1];

        for (uint32_t k = c->kids; k < c->kids + c->n_kids; k++) {
            uint64_t cap;
            bool better;

            if (t->cells[k].stamp == stamp || !is_first(q, k))
                continue;
            cap = cap_of(q, k);
            better = best_cap < enough ? cap > best_cap : cap >= enough && cap < best_cap;
            if (cap > 0 && better) {
                best = k;
                best_cap = cap;
            }
        }
    }
    return best;
}

/* Drops tasks from the last pieces. */
static void drop(struct gang *q, uint32_t tasks)
{
    while (tasks > 0) {
        struct stk_piece *p = &q->s->try_pieces[q->n - 1];
        uint32_t n = p->tasks < tasks ? p->tasks : tasks;

        p->tasks -= n;
        p->gpus -= n * q->gpus;
        tasks -= n;
        q->n -= p->tasks == 0;
    }
}

/* A node of a cluster with link domains that is in none: subgroups lie in its islands. */
static uint32_t take_alone(struct gang *q, const struct stk_cell *c, uint32_t want)
{
    const struct stk_demand *d = q->d;
    struct gang alone = *q;
    uint32_t got;

    if (d->per_node % d->group != 0)
        return 0;
    alone.unit = d->per_node ? d->per_node : d->group;
    alone.linked = d->group * q->gpus;
    alone.links = alone.unit / d->group;
    got = take_row(&alone, c->group, c->first, c->n, want);
    q->n = alone.n;
    return got;
}

/* Tasks from one place, at most 'want': whole subgroups of it. 'cell' is its first. */
static uint32_t take_place(struct gang *q, uint32_t cell, uint64_t stamp, uint32_t want);

static uint32_t take_kids(struct gang *q, uint32_t cell, uint64_t stamp, uint32_t want)
{
    uint32_t left = want, kid;

    while (left > 0 &&
           (kid = best_kid(q, cell, stamp, (left + q->per_count - 1) / q->per_count)) != STK_NONE) {
        q->s->topo->cells[kid].stamp = stamp;
        left -= take_place(q, kid, stamp, left);
    }
    return want - left;
}

static uint32_t take_place(struct gang *q, uint32_t cell, uint64_t stamp, uint32_t want)
{
    const struct stk_topo *t = q->s->topo;
    const struct stk_cell *c = &t->cells[cell];
    const uint32_t low = c->n_kids > 0 ? t->cells[c->kids].tier : STK_TIERS;
    uint32_t got = 0;

    if (low != STK_TIERS && (low >= STK_TIER_RACK || low == q->batch_tier)) {
        got = take_kids(q, cell, stamp, want);
    } else if (c->tier == STK_TIER_DOMAIN && q->batch_tier == c->tier && !c->known &&
               q->d->group_level == STK_AT_LINK) {
        got = take_alone(q, c, want);
    } else {
        for (uint32_t at = cell + 1; at && got < want; at = first_cell(q, t->cells[at - 1].next))
            got += take_row(q, t->cells[at - 1].group, t->cells[at - 1].first, t->cells[at - 1].n,
                            want - got);
    }
    if (c->tier == q->batch_tier && got % q->batch) {
        drop(q, got % q->batch);
        got -= got % q->batch;
    }
    return got;
}

/* What is left of a job that was cut: on the fullest node of the place that has room. */
static bool take_cut_rest(struct gang *q, uint32_t cell)
{
    const struct stk_topo *t = q->s->topo;
    const struct stk_piece piece = {.gpus = q->rest, .tasks = 1};
    const struct stk_use u = stk_use_of(q->d, &piece);
    struct gang one = *q;
    bool ok = false;

    one.gpus = q->rest;
    one.cpu = u.cpu;
    one.mem = u.mem;
    one.resources = u.resources;
    for (uint32_t at = cell + 1; at && !ok; at = first_cell(q, t->cells[at - 1].next)) {
        const struct stk_cell *c = &t->cells[at - 1];
        const struct row r = row_of(&one, c->group, c->first, c->n);

        ok = take_rest(&one, &r, 1);
    }
    q->n = one.n;
    return ok;
}

/* The whole job inside one place. */
static bool fits_place(struct gang *q, uint32_t cell)
{
    uint64_t stamp = ++q->s->topo->stamp;

    q->s->stamp++;
    q->n = 0;
    return take_place(q, cell, stamp, q->tasks) == q->tasks &&
           (q->rest == 0 || take_cut_rest(q, cell));
}

/* The whole job on one node of the groups it takes. */
static bool fits_node(const struct gang *q, enum stk_level level, uint32_t *ret_n)
{
    const struct stk_pool *p = &q->s->pools[q->pool];
    const struct stk_demand *d = q->d;
    struct gang one = *q;

    if (q->rest || (d->cut && q->tasks > 1) || (d->per_node && d->per_node != d->tasks))
        return false;
    q->s->stamp++;
    one.unit = d->tasks;
    one.linked = level == STK_AT_LINK            ? d->tasks * q->gpus
                 : d->group_level == STK_AT_LINK ? d->group * q->gpus
                                                 : 0;
    one.links = level == STK_AT_LINK || !d->group ? 1 : d->tasks / d->group;
    for (uint32_t i = 0; i < p->n_groups && one.n == 0; i++) {
        const struct stk_group *g = &q->s->groups[p->first_group + i];
        const struct row r = row_of(&one, p->first_group + i, 0, g->n);

        if (!stk_group_accepts(g, q->accepts) || (r.by_link && !q->s->topo->linked[r.group]))
            continue;
        if (q->s->place->apart)
            (void)take_row(&one, r.group, 0, g->n, d->tasks);
        else
            (void)take_rest(&one, &r, 1);
    }
    *ret_n = one.n;
    return one.n > 0;
}

/* ---- the job ---- */

static uint32_t common(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* Units and batches when the job lies in a place of this tier. False: it cannot. */
static bool divide(struct gang *q, uint32_t tier)
{
    const struct stk_demand *d = q->d;
    uint32_t low = d->group ? stk_topo_tier(q->s, (enum stk_level)d->group_level) : tier;
    bool in_node = d->group && low == STK_TIERS;

    q->once = d->per_node || d->cut;
    q->unit = d->per_node ? d->per_node : in_node ? d->group : 1;
    q->linked = 0;
    q->links = 1;
    q->batch_tier = STK_TIERS;
    if (in_node && d->per_node % d->group != 0)
        return false;
    if (in_node && d->group_level == STK_AT_LINK) {
        q->linked = d->group * q->gpus;
        q->links = q->unit / d->group;
    }
    /* a place may be one node that is in no domain: there links are those of its islands */
    if (d->group && (low < tier || (low == tier && d->group_level == STK_AT_LINK))) {
        q->batch_tier = low;
        q->batch = d->per_node ? d->per_node / common(d->per_node, d->group) * d->group : d->group;
    }
    return true;
}

/* By what places are compared. */
static void choose_key(struct gang *q)
{
    const struct stk_state *s = q->s;
    uint32_t most = s->pools[q->pool].max_gpus;

    q->per_count = q->unit;
    if (q->d->exclusive) {
        q->key = stk_topo_key(s, STK_COUNT_IDLE, 0);
        q->per_count = q->once ? q->unit : q->gpus ? most / q->gpus : q->tasks;
        q->per_count = q->per_count ? q->per_count : 1;
    } else if (q->gpus == 0) {
        q->key = STK_NONE;
    } else if (q->once) {
        q->key = stk_topo_key(s, STK_COUNT_NODES, q->unit * q->gpus);
    } else if (q->linked > 1) {
        q->key = stk_topo_key(s, STK_COUNT_LINKED, q->linked);
        q->per_count = q->unit / q->links;
    } else {
        q->key = stk_topo_key(s, STK_COUNT_UNITS, q->unit * q->gpus);
    }
}

/* Places of one group, tightest first. */
static bool try_group(struct gang *q, uint32_t group, uint32_t tier, bool known)
{
    const struct stk_cells *row = &q->s->topo->of[(size_t)group * STK_TIERS + tier];
    struct stk_topo_walk w = {.group = group,
                              .tier = tier,
                              .key = q->key,
                              .need = (q->tasks + q->per_count - 1) / q->per_count,
                              .emptiest = q->s->place->apart};

    q->accepts = UINT64_C(1) << q->s->groups[group].gpu_type;
    if (tier == STK_TIER_ALL)
        return fits_place(q, row->first);
    for (uint32_t i = 0; q->key == STK_NONE && i < row->n; i++)
        if ((!known || q->s->topo->cells[row->first + i].known) && fits_place(q, row->first + i))
            return true;
    for (uint32_t cell; q->key != STK_NONE && (cell = stk_topo_next(q->s, &w)) != STK_NONE;)
        if ((!known || q->s->topo->cells[cell].known) && fits_place(q, cell))
            return true;
    return false;
}

/* Places that have nodes of several groups, one after the other. */
static bool try_mixed(struct gang *q, uint32_t tier, bool known)
{
    const struct stk_topo *t = q->s->topo;
    uint64_t need = (q->tasks + q->per_count - 1) / q->per_count;

    q->accepts = q->d->gpu_types;
    for (uint32_t id = 0; id < t->n_ids[tier]; id++) {
        uint32_t at = first_cell(q, t->head[tier][id]);

        if (!at || !first_cell(q, t->cells[at - 1].next) || (known && !t->cells[at - 1].known))
            continue;
        if (tier != STK_TIER_ALL && q->key != STK_NONE && cap_of(q, at - 1) < need)
            continue;
        if (fits_place(q, at - 1))
            return true;
    }
    return false;
}

static bool try_tier(struct gang *q, uint32_t tier, bool known)
{
    const struct stk_pool *p = &q->s->pools[q->pool];
    uint32_t groups = 0;

    if (!divide(q, tier))
        return false;
    choose_key(q);
    for (uint32_t i = 0; i < p->n_groups; i++) {
        if (!stk_group_accepts(&q->s->groups[p->first_group + i], q->d->gpu_types))
            continue;
        groups++;
        if (try_group(q, p->first_group + i, tier, known))
            return true;
    }
    return groups > 1 && try_mixed(q, tier, known);
}

static bool try_level(struct gang *q, enum stk_level level, uint32_t *io_tier)
{
    uint32_t tier = stk_topo_tier(q->s, level), last = *io_tier;

    *io_tier = tier;
    q->accepts = q->d->gpu_types;
    if (level == STK_AT_LINK && fits_node(q, level, &q->n))
        return true;
    if (level == STK_AT_LINK) {
        *io_tier = STK_TIER_ALL + 2; /* of nodes, and of places of one node, more is possible */
        return tier == STK_TIER_DOMAIN && q->d->level_required != STK_AT_NODE &&
               try_tier(q, tier, true);
    }
    if (tier == last)
        return false; /* wider, but not known to be: looked at already */
    if (tier == STK_TIERS)
        return fits_node(q, level, &q->n);
    return try_tier(q, tier, false);
}

/* Which GPUs. */
static void choose_gpus(const struct gang *q, enum stk_level level)
{
    const struct stk_demand *d = q->d;

    for (uint32_t i = 0; i < q->n; i++) {
        struct stk_piece *p = &q->s->try_pieces[i];
        const struct stk_layout *l = stk_topo_layout(q->s, p->node.i);
        const struct stk_node *n = &q->s->nodes[p->node.i];
        uint32_t unit = level == STK_AT_LINK            ? p->gpus
                        : d->group_level == STK_AT_LINK ? d->group * q->gpus
                                                        : 0;

        p->mask =
            l && l->n_islands && unit > 1
                ? stk_layout_choose_units(l, n->mask_free, stk_node_shy(n), unit, p->gpus / unit)
                : stk_index_lowest(q->s, p->node.i, p->gpus);
    }
}

bool stk_gang_try(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                  const uint64_t *avoid, uint32_t *ret_n)
{
    struct gang q = {.s = s, .d = d, .pool = pool, .avoid = avoid, .tasks = d->tasks};
    uint32_t whole, size, rest, tier = STK_TIER_ALL + 2;
    enum stk_level level = stk_gang_first(s, d), last = stk_gang_last(d);
    struct stk_use u;

    if (s->pools[pool].gpus_free < (uint64_t)d->gpus * d->tasks)
        return false;
    stk_place_cut(s, d, pool, &whole, &size, &rest);
    q.gpus = whole ? size : d->gpus;
    q.tasks = whole ? whole : d->tasks;
    q.rest = whole ? rest : 0;
    u = stk_use_of(d, &(struct stk_piece){.gpus = q.gpus, .tasks = 1});
    q.cpu = u.cpu;
    q.mem = u.mem;
    q.resources = u.resources;
    for (; level <= last; level++) {
        q.n = 0;
        if (try_level(&q, level, &tier)) {
            choose_gpus(&q, level);
            *ret_n = q.n;
            return true;
        }
    }
    return false;
}
