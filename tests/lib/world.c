/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/world.h"
#include "core/account.h"
#include "core/array.h"
#include "core/defrag.h"
#include "core/means.h"
#include "core/place.h"
#include "core/tenant.h"

#include <stdio.h>
#include <string.h>

#include "model/mig.h"
#include "policy/registry.h"

static uint32_t below(struct stk_rng *r, uint32_t n)
{
    return (uint32_t)stk_rng_below(r, n);
}

static bool percent(struct stk_rng *r, uint32_t p)
{
    return below(r, 100) < p;
}

static void choose(struct world *w, const struct stk_order_ops *o, const struct stk_backfill_ops *b,
                   const struct stk_place_ops *p, const struct stk_preempt_ops *e)
{
    w->setup.order = o->name;
    w->setup.backfill = b->name;
    w->setup.place = p->name;
    w->setup.preempt = e->name;
}

bool world_combination(struct world *w, uint32_t i)
{
    for (size_t o = 0; stk_orders[o]; o++)
        for (size_t b = 0; stk_backfills[b]; b++)
            for (size_t p = 0; stk_places[p]; p++)
                for (size_t e = 0; stk_preempts[e]; e++) {
                    if (stk_preempts[e]->pass && !stk_orders[o]->preemptive)
                        continue;
                    if (stk_preempts[e]->pass && stk_places[p]->mate)
                        continue; /* refused by drive/setup.c */
                    if (stk_orders[o]->advised || stk_preempts[e] == &stk_preempt_advised)
                        continue; /* nobody advises here: tests/unit/policy/test_advised.c */
                    if (i-- > 0)
                        continue;
                    choose(w, stk_orders[o], stk_backfills[b], stk_places[p], stk_preempts[e]);
                    return true;
                }
    return false;
}

/* ---- how fast jobs are: some pairs get on well, some do not, some were not measured ---- */

#define TYPES 6
static double alone[WORLD_ROWS * TYPES * 2], beside[WORLD_ROWS * WORLD_ROWS * TYPES];
const struct stk_speeds world_speeds = {
    .rows = WORLD_ROWS, .types = TYPES, .alone = alone, .beside = beside};

__attribute__((constructor)) static void make_speeds(void)
{
    struct stk_rng r;

    stk_rng_init(&r, 1759);
    for (uint32_t i = 0; i < WORLD_ROWS * TYPES * 2; i++)
        alone[i] = 1 + below(&r, 50);
    for (uint32_t i = 0; i < WORLD_ROWS * WORLD_ROWS * TYPES; i++) {
        double v = alone[(i / TYPES / WORLD_ROWS * TYPES + i % TYPES) * 2];

        beside[i] = percent(&r, 20) ? -1 : v * (0.3 + below(&r, 70) / 100.0);
    }
}

void world_policies(struct world *w, struct stk_rng *r)
{
    static const char *const share[] = {"", " share.all=true", " share.all=true share.unknown=true",
                                        " share.floor=0.8 share.gain=1.5",
                                        " share.all=true share.first=join share.floor=0.4"};
    static const char *const las[] = {"las.thresholds=4,16", "las.round_s=5",
                                      "las.thresholds=10 las.promote=2",
                                      "las.round_s=3 las.promote=1 las.thresholds=7", "round_s=4"};
    static const char *const any[] = {"", "", "", "", "round_s=2"};
    static const char *const tier[] = {"", "", " tier.classes=", " tier.classes=1",
                                       " tier.classes=-2,2"};
    static const char *const reclaim[] = {"",
                                          " reclaim.due=off",
                                          " reclaim.levels=tenant",
                                          " reclaim.move=on",
                                          " reclaim.levels=tenant reclaim.move=on tier.classes=1",
                                          " reclaim.due=off reclaim.move=on tier.classes="};
    uint32_t n = 0;

    while (world_combination(w, n))
        n++;
    (void)world_combination(w, below(r, n));
    if (stk_order_find(w->setup.order) == &stk_order_las)
        (void)snprintf(w->params, sizeof(w->params), "%s", las[below(r, 5)]);
    else
        (void)snprintf(w->params, sizeof(w->params), "%s", any[below(r, 5)]);
    if (stk_preempt_find(w->setup.preempt) == &stk_preempt_tier) {
        const char *classes = tier[below(r, 5)];

        (void)snprintf(w->params + strlen(w->params), sizeof(w->params) - strlen(w->params), "%s",
                       classes);
    }
    if (stk_preempt_find(w->setup.preempt) == &stk_preempt_reclaim)
        (void)snprintf(w->params + strlen(w->params), sizeof(w->params) - strlen(w->params), "%s%s",
                       reclaim[below(r, 6)],
                       strstr(w->params, "thresholds") && percent(r, 60) ? " reclaim.rank=on" : "");
    if (stk_place_find(w->setup.place)->mate)
        (void)snprintf(w->params + strlen(w->params), sizeof(w->params) - strlen(w->params), "%s",
                       share[below(r, 5)]);
    if (stk_defrag_goes(stk_preempt_find(w->setup.preempt), stk_backfill_find(w->setup.backfill)) &&
        percent(r, 30))
        (void)snprintf(w->params + strlen(w->params), sizeof(w->params) - strlen(w->params), "%s",
                       " defrag.most=400 defrag.jobs=all");
    if (strcmp(w->setup.preempt, "tier") == 0) {
        struct stk_rng side = *r;

        if (percent(&side, 40))
            (void)snprintf(w->params + strlen(w->params), sizeof(w->params) - strlen(w->params),
                           " preempt.min_run_s=%u preempt.per_day=%u preempt.best_effort=kill",
                           below(&side, 5), below(&side, 4));
        w->terms = percent(&side, 50);
    }
    if (strcmp(w->setup.preempt, "reclaim") == 0) {
        struct stk_rng side = *r;

        w->terms = percent(&side, 50);
    }
    if (stk_preempt_find(w->setup.preempt)->room) {
        struct stk_rng side = *r;

        stk_rng_init(&side, stk_rng_next(&side) + 7);
        w->no_class = percent(&side, 50);
    }
    w->setup.params = w->params;
    w->setup.forget = percent(r, 30);
    w->setup.retain = below(r, 4);
    w->exact = percent(r, 40);
}

#define MIG_TYPE 3 /* types from here on are in MIG mode */
static const char *const mig_gpus[] = {"A100-40GB", "A30", "B200"};
#define N_MIG_GPUS 3

static uint8_t mig_model(uint32_t i)
{
    return stk_mig_model(mig_gpus[i], strlen(mig_gpus[i]), 0);
}

/* The GPUs of a node are divided already, each in its own way. */
static void divide(struct stk_node_spec *n, uint16_t *table, struct stk_rng *r)
{
    memset(table, 0, sizeof(uint16_t) * STK_MAX_NODE_GPUS * STK_MIG_SLICES);
    for (uint32_t g = 0; g < n->gpus; g++) {
        uint8_t used = 0;

        for (uint32_t i = 0; i < 6; i++) {
            uint16_t profile = stk_mig_profile(n->mig, below(r, 6));
            uint32_t start = profile ? stk_mig_choose(n->mig, profile, used) : STK_MIG_ANY;

            if (start == STK_MIG_ANY)
                continue;
            table[g * STK_MIG_SLICES + start] = profile;
            used |= stk_mig_slices(n->mig, profile, start);
        }
    }
    n->instances = table;
}

/* From a stream of its own: worlds without MIG stay what they were. */
static void some_mig_nodes(struct world *w, struct stk_rng *r)
{
    struct stk_rng side = *r;

    r = &side;
    w->mig = percent(r, 25) && !stk_place_find(w->setup.place)->aggregate;
    for (uint32_t i = 0; w->mig && i < w->setup.n_nodes; i++) {
        uint32_t type = below(r, N_MIG_GPUS);

        if (percent(r, 40))
            continue;
        w->nodes[i].gpu_type = MIG_TYPE + type;
        w->nodes[i].mig = mig_model(type);
        if (percent(r, 30))
            divide(&w->nodes[i], w->instances[i], r);
    }
}

static void some_resources(struct world *w, const struct stk_rng *r)
{
    struct stk_rng side = *r;

    stk_rng_init(&side, stk_rng_next(&side) + 1);
    w->resources = percent(&side, 25);
    w->speeds = w->types && percent(&side, 60);
    w->setup.n_resources = w->resources ? 1 + below(&side, 3) : 0;
    for (uint32_t i = 0; i < w->setup.n_nodes; i++)
        for (uint32_t k = 0; k < STK_MAX_RESOURCES; k++)
            w->nodes[i].resource[k] =
                k < w->setup.n_resources && percent(&side, 80) ? below(&side, 8) : 0;
}

static const struct stk_layout layouts[] = {
    {.gpus = 4, .n_islands = 2, .island = {0x3, 0xc}},
    {.gpus = 8, .n_islands = 2, .island = {0x0f, 0xf0}, .n_numa = 2, .numa = {0x33, 0xcc}},
    {.gpus = 8, .n_islands = 3, .island = {0x03, 0x54, 0x08}},
};

/* Racks in zones, nodes that know no rack, islands, link domains. From a stream of its own, too. */
static void some_racks(struct world *w, struct stk_rng *r)
{
    struct stk_rng side = *r;
    bool domains, links;

    r = &side;
    w->topology = percent(r, 50) && !stk_place_find(w->setup.place)->aggregate;
    domains = percent(r, 25);
    links = percent(r, 70);
    w->exclusive = percent(r, 25);
    w->setup.layouts = layouts;
    w->setup.n_layouts = 3;
    for (uint32_t i = 0; w->topology && i < w->setup.n_nodes; i++) {
        struct stk_node_spec *n = &w->nodes[i];

        n->rack = percent(r, 15) ? 0 : 1 + below(r, 3);
        n->zone = n->rack ? 1 + n->rack / 2 : 0;
        n->region = n->zone ? 1 : 0;
        if (domains && n->rack && percent(r, 50))
            n->domain = n->rack;
        else if (links && (n->gpus == 4 || n->gpus == 8))
            n->layout = n->gpus == 4 ? 1 : 2 + below(r, 2);
    }
}

/* Whether the policies, which may not be chosen yet, go with limits. */
static bool limits_go(const struct world *w)
{
    return w->setup.preempt && w->setup.backfill && !stk_preempt_find(w->setup.preempt)->pass &&
           !stk_backfill_find(w->setup.backfill)->reserve_all &&
           !(w->setup.params && strstr(w->setup.params, "energy.cap_w"));
}

/* Queues with limits of all kinds; some have none. A stream of its own, too. */
static void some_queues(struct world *w, const struct stk_rng *r)
{
    static const char *const names[WORLD_MAX_QUEUES] = {"q0", "q1", "q2"};
    struct stk_rng side = *r;
    uint32_t n = 0;

    stk_rng_init(&side, stk_rng_next(&side) + 4);
    w->queued = percent(&side, 40) && limits_go(w);
    w->setup.queues = w->queues;
    for (; w->queued && n < WORLD_MAX_QUEUES; n++) {
        struct stk_queue_spec *q = &w->queues[n];

        *q = (struct stk_queue_spec){.name = names[n],
                                     .lowest = -STK_MAX_PRIORITY,
                                     .most = STK_MAX_PRIORITY,
                                     .job_milli = STK_NO_LIMIT};
        for (int of = 0; of < STK_QUEUE_OF_MAX; of++)
            q->limit[of] = (struct stk_queue_limit){
                percent(&side, 30) ? 500 * (uint64_t)(1 + below(&side, 40)) : STK_NO_LIMIT,
                percent(&side, 25) ? 1 + below(&side, 3) : STK_NO_JOB_LIMIT};
    }
    w->setup.n_queues = n;
}

static bool is_leaf(const struct world *w, uint32_t n, uint32_t tenant)
{
    for (uint32_t i = 0; i < n; i++)
        if (w->tenants[i].parent == tenant)
            return false;
    return true;
}

/* Some have guarantees, half of the cluster together at most, and weights. */
static void some_guarantees(struct world *w, struct stk_rng *side)
{
    const uint32_t n = w->setup.n_tenants;
    uint64_t gpus = 0;

    for (uint32_t i = 0; i < w->setup.n_nodes; i++)
        gpus += w->setup.nodes[i].gpus;
    for (uint32_t i = 0; i < n; i++) {
        bool free = is_leaf(w, n, i);

        for (uint32_t at = i; at != STK_NONE; at = w->tenants[at].parent)
            free &= w->tenants[at].limit == STK_NO_LIMIT;
        if (free && percent(side, 60))
            w->tenants[i].guarantee = 500 * (uint64_t)below(side, (uint32_t)(gpus / n) + 1);
        if (percent(side, 30))
            w->tenants[i].weight = 500 * below(side, 8);
    }
}

/* A tree of tenants; some have limits, over all types or of one. A stream of its own, too. */
static void some_tenants(struct world *w, const struct stk_rng *r)
{
    static const char *const names[] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"};
    struct stk_rng side = *r, means;
    uint32_t n = 0;

    stk_rng_init(&side, stk_rng_next(&side) + 2);
    means = side;
    stk_rng_init(&means, stk_rng_next(&means) + 6);
    w->limits = percent(&side, 40) && limits_go(w);
    w->setup.tenants = w->tenants;
    for (; w->limits && n < WORLD_MAX_TENANTS; n++) {
        struct stk_tenant_spec *t = &w->tenants[n];

        stk_tenant_spec_init(t, names[n], STK_NONE);
        t->parent = n < 2 || percent(&side, 30) ? STK_NONE : 1 + below(&side, n - 1);
        if (percent(&side, 40))
            t->limit = 500 * (1 + below(&side, 40));
        for (uint32_t k = 0; k < STK_MAX_GPU_TYPES; k++)
            t->type_limit[k] =
                percent(&side, 20) ? 500 * (uint64_t)(1 + below(&side, 30)) : STK_NO_LIMIT;
        if (percent(&means, 15))
            t->cpu_limit = 1000 * (uint64_t)(6 + below(&means, 40));
        if (percent(&means, 15))
            t->mem_limit = 1024 * (uint64_t)(8 + below(&means, 60));
    }
    w->setup.n_tenants = n;
    for (uint32_t i = 0; i < n && !stk_preempt_find(w->setup.preempt)->pass; i++)
        w->tenants[i].keep_up = percent(&side, 15) ? below(&side, 4) : 0;
    if (n > 0 && stk_preempt_find(w->setup.preempt)->fair)
        some_guarantees(w, &side);
}

/* Reservations come and go, where they go with the policies. A stream of its own, too. */
static void some_bookings(struct world *w, const struct stk_rng *r)
{
    struct stk_rng side = *r;

    stk_rng_init(&side, stk_rng_next(&side) + 4);
    w->booked = percent(&side, 35) && w->setup.preempt &&
                !stk_preempt_find(w->setup.preempt)->pass &&
                !(w->setup.params && strstr(w->setup.params, "energy.cap_w"));
}

static struct stk_booking_spec some_booking(const struct world *w, const struct fx *f,
                                            struct stk_rng *r)
{
    struct stk_booking_spec k = fx_booking(1 + below(r, percent(r, 70) ? 8 : 24), 0, 0);

    k.number = stk_core_next_booking(f->core);
    k.holder = (enum stk_holder)below(r, STK_HOLDER_MAX);
    k.holder_id = k.holder == STK_HOLDER_TENANT ? below(r, w->setup.n_tenants + 1)
                  : k.holder == STK_HOLDER_JOB  ? f->s->next_number - below(r, 4)
                                                : 1 + below(r, 3);
    k.pool.i = below(r, w->setup.n_pools);
    k.gpu_types = w->types && percent(r, 30) ? 1 + below(r, 7) : STK_ANY_GPU_TYPE;
    k.start = f->now + (percent(r, 25) ? 0 : (stk_time)below(r, 40) * STK_SECOND);
    k.end = k.start + (stk_time)(1 + below(r, 40)) * STK_SECOND;
    k.grace = percent(r, 40) ? (stk_time)(1 + below(r, 20)) * STK_SECOND : 0;
    k.evict = percent(r, 30);
    return k;
}

static void book(const struct world *w, struct fx *f, const struct stk_rng *r)
{
    struct stk_rng side = *r;

    stk_rng_init(&side, stk_rng_next(&side) + 5);
    if (percent(&side, 8))
        (void)fx_reserve(f, some_booking(w, f, &side));
    else if (percent(&side, 3) && f->s->book.n > 0)
        (void)fx_unreserve(f, f->s->book.row[below(&side, f->s->book.n)].number);
}

/* One that may have jobs. */
static uint32_t some_tenant(const struct world *w, const struct stk_rng *r)
{
    struct stk_rng side = *r;
    uint32_t at;
    bool leaf;

    stk_rng_init(&side, stk_rng_next(&side) + 3);
    do {
        at = below(&side, w->setup.n_tenants);
        leaf = true;
        for (uint32_t i = 0; i < w->setup.n_tenants; i++)
            leaf &= w->tenants[i].parent != at;
    } while (!leaf);
    return at;
}

void world_within_limits(const struct fx *f)
{
    const struct stk_state *s = f->s;

    for (uint32_t t = 0; t < s->n_tenants; t++)
        for (uint32_t k = 0; k < s->n_tenant_cols; k++)
            fx_must(*stk_tenant_used(s, t, k) <= *stk_tenant_limit(s, t, k),
                    "tenant %u has %llu of at most %llu milli-GPU", t,
                    (unsigned long long)*stk_tenant_used(s, t, k),
                    (unsigned long long)*stk_tenant_limit(s, t, k));
    for (uint32_t t = 0; s->tenant_means && t < s->n_tenants; t++)
        for (int of = 0; of < STK_MEANS; of++)
            fx_must(s->tenant_means[t].used[of] <= s->tenant_means[t].limit[of],
                    "tenant %u has more CPUs or memory than it may", t);
    for (uint32_t i = 0; i < s->n_accounts; i++) {
        const struct stk_account *a = &s->accounts[i];
        const struct stk_queue_limit *l = &s->queues[a->queue].limit[a->of];

        fx_must((a->of == STK_OF_USER && a->who == 0) ||
                    (a->milli <= l->milli && a->jobs <= l->jobs),
                "queue %u, account %u has %u jobs and %llu milli-GPU", a->queue, i, a->jobs,
                (unsigned long long)a->milli);
    }
}

void world_no_topology(struct world *w)
{
    w->topology = w->exclusive = false;
    for (uint32_t i = 0; i < w->setup.n_nodes; i++)
        w->nodes[i].rack = w->nodes[i].zone = w->nodes[i].region = w->nodes[i].domain =
            w->nodes[i].layout = 0;
}

void world_cluster(struct world *w, struct stk_rng *r)
{
    static const uint32_t sizes[] = {0, 1, 2, 4, 8, 8, 8, 64};
    uint32_t pools = percent(r, 60) ? 1 : 2 + below(r, 2);
    bool limits = percent(r, 30), mixed = percent(r, 30);
    uint32_t n = pools + below(r, WORLD_MAX_NODES - pools + 1), same = sizes[1 + below(r, 6)];

    if (stk_place_find(w->setup.place)->aggregate)
        n = pools;
    w->cpu_jobs = limits;
    w->types = percent(r, 25);
    w->parts = percent(r, 40);
    for (uint32_t i = 0; i < n; i++) {
        struct stk_node_spec *k = &w->nodes[i];

        *k = (struct stk_node_spec){.pool = {i < pools ? i : below(r, pools)}};
        k->gpus = mixed ? sizes[below(r, 8)] : same;
        k->gpu_type = w->types ? below(r, 3) : 0;
        k->gpu_mem_mib = percent(r, 50) ? 0 : 8192u << below(r, 3);
        k->cpu_milli = limits && percent(r, 80) ? 1000 * (1 + below(r, 16)) : 0;
        k->mem_mib = limits && percent(r, 80) ? 1024 * (1 + below(r, 64)) : 0;
        if (stk_place_find(w->setup.place)->aggregate) {
            k->aggregate = true;
            k->gpus = 1 + below(r, 100);
        }
    }
    w->setup.nodes = w->nodes;
    w->setup.n_nodes = n;
    w->setup.n_pools = pools;
    w->setup.speeds = &world_speeds;
    if (stk_place_find(w->setup.place)->saves || percent(r, 10)) {
        struct stk_rng side = *r;

        world_power(w, &side);
    }
    w->pairs = stk_place_find(w->setup.place)->mate || percent(r, 20);
    some_mig_nodes(w, r);
    some_resources(w, r);
    some_racks(w, r);
    some_tenants(w, r);
    some_queues(w, r);
    some_bookings(w, r);
    {
        struct stk_rng side = *r;

        w->sets = percent(&side, 30);
    }
}

void world_power(struct world *w, struct stk_rng *r)
{
    bool alike = percent(r, 60);
    uint64_t sum = 0;
    char *cap;

    if (w->setup.params != w->params)
        (void)snprintf(w->params, sizeof(w->params), "%s", w->setup.params ? w->setup.params : "");
    cap = strstr(w->params, " energy.cap_w");
    if (cap) /* of another cluster */
        *cap = '\0';
    for (uint32_t i = 0; i < w->setup.n_nodes; i++) {
        struct stk_power *p = &w->nodes[i].power;

        *p = (struct stk_power){800, 700, 20, 30};
        if (!alike)
            *p = (struct stk_power){100 * below(r, 10), 100 * below(r, 9), 10 * below(r, 4),
                                    below(r, 60)};
        p->off_w = p->off_w < p->idle_w ? p->off_w : p->idle_w;
        sum += p->idle_w + (uint64_t)p->gpu_w * w->nodes[i].gpus;
    }
    w->setup.off_after = (stk_time)(1 + below(r, 10)) * STK_SECOND;
    if (sum > 0 && stk_place_find(w->setup.place)->cap_w && percent(r, 70))
        (void)snprintf(w->params + strlen(w->params), sizeof(w->params) - strlen(w->params),
                       " energy.cap_w=%llu",
                       (unsigned long long)(1 + sum * (20 + below(r, 90)) / 100));
    w->setup.params = w->params;
}

void world_no_mig(struct world *w)
{
    w->mig = false;
    for (uint32_t i = 0; i < w->setup.n_nodes; i++)
        if (w->nodes[i].mig) {
            w->nodes[i].mig = 0;
            w->nodes[i].instances = NULL;
            w->nodes[i].gpu_type = 0;
        }
}

void world_plain(struct world *w)
{
    w->limits = w->queued = w->booked = false;
    w->setup.n_tenants = w->setup.n_queues = 0;
    w->resources = w->speeds = false;
    w->setup.n_resources = 0;
    for (uint32_t i = 0; i < w->setup.n_nodes; i++)
        memset(w->nodes[i].resource, 0, sizeof(w->nodes[i].resource));
}

void world_delays(struct world *w, struct stk_rng *r)
{
    w->setup.late_start = percent(r, 50) ? 0 : (stk_time)below(r, 5) * STK_SECOND;
    w->setup.slow_stop = percent(r, 40) ? 0 : (stk_time)below(r, 8) * STK_SECOND;
    w->setup.crash_pct = percent(r, 70) ? 0 : 10;
    w->setup.final_pct = percent(r, 70) ? 0 : 10;
    w->setup.sleep_pct = percent(r, 40) ? 0 : percent(r, 50) ? 100 : 60;
    w->setup.cap = percent(r, 70) ? 0 : 1 + below(r, 3);
    w->setup.patient = percent(r, 30);
    w->setup.seed = stk_rng_next(r);
}

/* Where GPUs are reserved they are also kept free for jobs that have waited. */
static void some_drains(struct world *w, const struct stk_rng *r)
{
    struct stk_rng side = *r;
    const uint32_t after = below(&side, 20);
    const uint32_t limit = 1 + below(&side, 60);
    const uint32_t most = 1 + below(&side, 3);

    if (w->booked && w->setup.params == w->params)
        (void)snprintf(w->params + strlen(w->params), sizeof(w->params) - strlen(w->params),
                       " drain.after_s=%u drain.limit_s=%u drain.most=%u drain.share=%s", after,
                       limit, most, limit % 3 ? "1" : "0.4");
}

void world_make(struct world *w, struct stk_rng *r, uint64_t seed)
{
    *w = (struct world){.exact = false};
    stk_rng_init(r, seed);
    world_policies(w, r);
    world_cluster(w, r);
    world_delays(w, r);
    some_drains(w, r);
}

const char *world_name(const struct world *w)
{
    static char text[256];

    (void)snprintf(text, sizeof(text), "%s/%s/%s/%s %s", w->setup.order, w->setup.backfill,
                   w->setup.place, w->setup.preempt, w->setup.params ? w->setup.params : "");
    return text;
}

static uint32_t random_slot(const struct fx *f, struct stk_rng *r)
{
    return f->s->n_jobs ? below(r, f->s->n_jobs) : 0;
}

#define BLOCK 8 /* numbers of an array: every third block is one */

static stk_job_number array_of(stk_job_number n)
{
    return (n - 1) / BLOCK % 3 == 0 ? (n - 1) / BLOCK * BLOCK + 1 : 0;
}

static void random_deps(const struct fx *f, struct stk_rng *r, struct stk_job_spec *spec,
                        struct stk_dep *deps)
{
    uint32_t n = percent(r, 15) ? 1 + below(r, 3) : 0;

    for (uint32_t i = 0; i < n && f->s->n_jobs > 0; i++) {
        uint32_t on = random_slot(f, r);

        if (f->s->jobs[on].state == STK_JOB_NONE)
            continue;
        deps[spec->n_deps++] = (struct stk_dep){
            f->s->jobs[on].number, (enum stk_dep_type)below(r, STK_DEP_TYPE_MAX), false};
    }
    if (percent(r, 5)) { /* on an array that grows no more */
        uint32_t on = 1 + 3 * BLOCK * below(r, 1 + f->s->next_number / (3 * BLOCK));

        if (stk_array_find(f->s, on) && array_of(f->s->next_number) != on)
            deps[spec->n_deps++] =
                (struct stk_dep){on, (enum stk_dep_type)below(r, STK_DEP_TYPE_MAX), true};
    }
    spec->deps = deps;
    spec->array = array_of(f->s->next_number);
}

static void ask_instance(struct stk_demand *d, struct stk_rng *r)
{
    uint8_t model = mig_model(below(r, N_MIG_GPUS));

    do
        d->mig = stk_mig_profile(model, below(r, 6));
    while (!d->mig);
    d->cut = false;
    d->gpus = 1;
    d->gpu_milli = (uint16_t)stk_mig_milli(d->mig);
    d->gpu_mem_mib = d->share = d->share_max = 0;
    d->share_with = 0;
    d->gpu_types = percent(r, 80) ? STK_ANY_GPU_TYPE : below(r, 8) << MIG_TYPE | 1;
}

static void ask_more(const struct world *w, struct stk_demand *d, struct stk_rng *r)
{
    for (uint32_t k = 0; k < w->setup.n_resources; k++)
        if (percent(r, 40))
            stk_demand_set_resource(d, k, below(r, 4));
    for (uint32_t t = 0; w->speeds && t < 3; t++)
        if (d->gpus > 0 && (d->gpu_types >> t & 1) && percent(r, 60))
            (void)stk_demand_set_speed(d, t, 250 * (1 + below(r, 6)));
}

static uint32_t divisor(struct stk_rng *r, uint32_t n)
{
    uint32_t d = 1 + below(r, n);

    while (n % d)
        d--;
    return d;
}

static void ask_place(struct stk_demand *d, struct stk_rng *r)
{
    if (percent(r, 60))
        d->level_required = (uint8_t)(STK_AT_LINK + below(r, 5));
    if (percent(r, 30))
        d->level_preferred = (uint8_t)below(r, d->level_required ? d->level_required : STK_AT_FAR);
    if (d->gpu_milli) { /* of parts little can be asked */
        d->level_required = d->level_required == STK_AT_LINK ? 0 : d->level_required;
        d->level_preferred = d->level_preferred == STK_AT_LINK ? 0 : d->level_preferred;
        return;
    }
    d->exclusive = percent(r, 20);
    if (d->cut)
        return;
    if (percent(r, 40)) {
        d->group = divisor(r, d->tasks);
        d->group_level =
            (uint8_t)(STK_AT_LINK + below(r, d->level_required ? d->level_required : 5));
    }
    if (percent(r, 30))
        d->per_node = divisor(r, d->tasks);
    if (d->group_level == STK_AT_NODE && d->per_node % d->group)
        d->per_node = 0;
}

struct stk_job_spec world_job(const struct world *w, const struct fx *f, struct stk_rng *r,
                              struct stk_dep *deps)
{
    static const uint32_t sizes[] = {0, 1, 1, 1, 2, 3, 4, 8, 8, 12, 16, 20};
    static const int32_t classes[] = {0, 0, 100, 300, 500, 800}; /* and about their bounds */
    uint32_t gpus = sizes[below(r, 12)]; /* in this order with every compiler */
    struct stk_job_spec spec = fx_job(gpus, 1 + (int64_t)below(r, 30));
    struct stk_demand *d = &spec.demand;

    if (percent(r, 25)) {
        d->cut = false;
        d->tasks = 1 + below(r, 4);
        d->gpus = d->gpus > 8 ? 8 : d->gpus;
    }
    if (w->cpu_jobs && percent(r, 60)) {
        d->cpu_milli = 500 * below(r, 12);
        d->mem_mib = 512 * below(r, 24);
    }
    if (w->types && percent(r, 50))
        d->gpu_types = 1 + below(r, 7);
    if (w->parts && percent(r, 50)) {
        d->cut = false;
        d->gpus = 1;
        d->gpu_milli = (uint16_t)(percent(r, 50) ? 250 * (1 + below(r, 3)) : 1 + below(r, 999));
        d->share = (uint8_t)(percent(r, 80) ? STK_SHARE_NONE : below(r, STK_SHARE_MAX));
        d->share_max = (uint8_t)(percent(r, 80) ? 0 : 2 + below(r, 2));
        d->tasks = d->share == STK_SHARE_TIME ? 1 : d->tasks;
        d->share_with = d->share == STK_SHARE_MPS ? below(r, 2) : 0;
    }
    if (percent(r, 15))
        d->gpu_mem_mib = 1024 * below(r, 20);
    if (w->mig && percent(r, 60))
        ask_instance(d, r);
    ask_more(w, d, r);
    if (w->pairs && !d->gpu_milli && d->gpus > 0 && percent(r, 80)) {
        d->share_max = percent(r, 60) ? 2 : 0;
        d->row = below(r, WORLD_ROWS + 1);
        d->slo_milli = (uint16_t)(percent(r, 70) ? 0 : 500 + below(r, 501));
    }
    spec.tier = (enum stk_tier)below(r, STK_TIER_MAX);
    spec.priority = classes[below(r, 6)];
    spec.priority += percent(r, 50) ? 0 : (int32_t)below(r, 7) - 3;
    spec.pool.i = below(r, w->setup.n_pools);
    spec.held = percent(r, 4);
    spec.begin = percent(r, 8) ? f->now + (stk_time)below(r, 20) * STK_SECOND : 0;
    for (uint32_t i = 0; i < STK_RETRY_MAX && percent(r, 30); i++)
        spec.retry[i] = percent(r, 10) ? STK_RETRY_ALWAYS : (uint8_t)below(r, 3);
    random_deps(f, r, &spec, deps);
    if (w->limits)
        spec.tenant = some_tenant(w, r);
    if (w->queued) {
        struct stk_rng side = *r;

        spec.terms.queue = below(&side, w->setup.n_queues);
        spec.terms.user = below(&side, 4);
    }
    if (w->terms) {
        struct stk_rng side = *r;

        spec.terms.group = percent(&side, 30) ? 1 + below(&side, 4) : 0;
        spec.terms.group_min = spec.terms.group && percent(&side, 60) ? below(&side, 4) : 0;
        spec.terms.min_run = percent(&side, 10) ? (stk_time)below(&side, 9) * STK_SECOND : 0;
        spec.terms.no_sleep = percent(&side, 20);
        spec.terms.signals = percent(&side, 20);
        spec.terms.asked = percent(&side, 40) ? (stk_time)below(&side, 60) * STK_SECOND : 0;
        spec.terms.limit = percent(&side, 40) ? (stk_time)below(&side, 200) * STK_SECOND : 0;
        spec.terms.limit = percent(&side, 5) ? STK_MAX_DURATION : spec.terms.limit;
    }
    if (w->no_class) {
        struct stk_rng side = *r; /* worlds without stay what they were */

        stk_rng_init(&side, stk_rng_next(&side) + 8);
        spec.terms.plain = percent(&side, 50);
    }
    if (w->booked) {
        struct stk_rng side = *r; /* worlds without stay what they were */

        spec.terms.user = below(&side, 4);
        spec.terms.reservation = percent(&side, 50) ? below(&side, 4) : 0;
    }
    if (w->sets && f->s->n_sets > 0) {
        struct stk_rng side = *r; /* worlds without stay what they were */

        d->nodes = (uint16_t)(percent(&side, 30) ? 1 + below(&side, f->s->n_sets) : 0);
    }
    if (w->topology || w->exclusive) {
        struct stk_rng side = *r; /* worlds without stay what they were */

        if (w->topology && percent(&side, 50))
            ask_place(d, &side);
        else if (w->exclusive && !d->gpu_milli && !d->share_max)
            d->exclusive = percent(&side, 20);
    }
    return spec;
}

/* There are three of them, which become others now and then. */
static void some_set(const struct world *w, struct fx *f, const struct stk_rng *r)
{
    struct stk_rng side = *r;
    uint32_t number = 1 + below(&side, 3);
    uint64_t mask = stk_rng_next(&side);

    if (f->s->n_sets < 3 || percent(&side, 3))
        (void)fx_nodes(f, f->s->n_sets < 3 ? f->s->n_sets + 1 : number,
                       mask & ((UINT64_C(1) << w->setup.n_nodes) - 1));
}

void world_submit(const struct world *w, struct fx *f, struct stk_rng *r)
{
    struct stk_dep deps[4];
    struct stk_job_spec spec;
    uint32_t job;
    int64_t off; /* percent of the estimate */

    if (w->sets)
        some_set(w, f, r);
    spec = world_job(w, f, r, deps);
    job = stk_core_next_job(f->core).i;
    off = w->exact ? 100 : 10 + (int64_t)below(r, 240);
    if (fx_try_submit(f, &spec) < 0)
        return;
    f->work[job].left = spec.estimate / 100 * off;
    if (percent(r, 10))
        f->work[job].ends = (enum stk_cause)(STK_CAUSE_FAILED + below(r, 3));
}

/* Whether one that has just come in finds room. */
static void look_for(struct fx *f, uint32_t job, struct world_look *look)
{
    uint32_t shape = fx_of(f, job)->shape, n = 0;
    const struct stk_demand *d = &f->s->shapes[shape].demand;
    bool fits = look->fits(f, d, fx_of(f, job)->pool);

    fx_must(stk_place_try((struct stk_state *)(uintptr_t)f->s, shape, NULL, &n) == fits,
            "job %u: there is %s", fx_of(f, job)->number, fits ? "room" : "none");
    look->yes += fits;
    look->no += !fits;
}

void world_look(const struct world *w, struct stk_rng *r, struct world_look *look)
{
    struct fx *f = fx_new(&w->setup);

    for (uint32_t i = 0; i < look->jobs; i++) {
        struct stk_dep deps[4];
        struct stk_job_spec spec = world_job(w, f, r, deps);
        uint32_t job = stk_core_next_job(f->core).i;

        spec.n_deps = 0;
        spec.held = false;
        spec.begin = 0;
        if (fx_try_submit(f, &spec) < 0)
            continue;
        if (spec.demand.gpu_milli && (!w->mig || spec.demand.mig))
            look_for(f, job, look);
        fx_turn(f);
        fx_sound(f);
        fx_run(f, f->now + (stk_time)stk_rng_below(r, (uint64_t)look->gap));
    }
    fx_free(f);
}

/* Another priority and estimate, or another job in its place. */
static void random_update(const struct world *w, struct fx *f, struct stk_rng *r, uint32_t job)
{
    struct stk_dep deps[4];
    struct stk_rng side = *r;
    struct stk_job_spec spec;

    if (percent(&side, 50)) {
        (void)fx_update(f, job, (int32_t)below(r, 1200), (stk_time)below(r, 5000) * STK_SECOND);
        return;
    }
    spec = world_job(w, f, r, deps);
    spec.n_deps = 0;
    (void)fx_change(f, job, &spec);
}

void world_act(const struct world *w, struct fx *f, struct stk_rng *r)
{
    uint32_t what = below(r, 100), job = random_slot(f, r);

    if (w->booked)
        book(w, f, r);
    if (what < 67)
        world_submit(w, f, r);
    else if (what < 71)
        (void)fx_suspend(f, job);
    else if (what < 73)
        (void)fx_wake_anew(f, job);
    else if (what < 75)
        (void)fx_kill(f, job, percent(r, 50) ? STK_CAUSE_SIGNAL : STK_CAUSE_UNKNOWN);
    else if (what < 83)
        (void)fx_cancel(f, job);
    else if (what < 88)
        (void)fx_job_event(f, STK_EV_HOLD, job);
    else if (what < 94)
        (void)fx_job_event(f, STK_EV_RELEASE, job);
    else if (what < 96)
        random_update(w, f, r, job);
    else if (what < 98)
        (void)fx_node(f, below(r, w->setup.n_nodes), percent(r, 60));
    else
        (void)fx_gpus_off(f, below(r, w->setup.n_nodes), percent(r, 40) ? 0 : below(r, 256));
}

void world_calm(struct fx *f)
{
    for (uint32_t i = 0; i < f->s->n_nodes; i++)
        fx_must(fx_node(f, i, true) == 0, "node up");
    for (uint32_t i = 0; i < f->s->n_nodes; i++)
        if (f->s->nodes[i].mask_off)
            fx_must(fx_gpus_off(f, i, 0) == 0, "GPUs on");
    for (uint32_t i = 1; i <= f->s->n_sets; i++)
        fx_must(fx_nodes(f, i, (UINT64_C(1) << f->s->n_nodes) - 1) == 0, "any node");
    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        if (fx_state(f, i) == STK_JOB_HELD || fx_of(f, i)->hold_wanted)
            (void)fx_job_event(f, STK_EV_RELEASE, i);
}

/* ---- hostile ---- */

static uint32_t odd_number(struct stk_rng *r, uint32_t usual)
{
    switch (below(r, 8)) {
    case 0:
        return UINT32_MAX;
    case 1:
        return (uint32_t)stk_rng_next(r);
    case 2:
        return 0;
    default:
        return usual;
    }
}

static void odd_spec(const struct fx *f, struct stk_rng *r, struct stk_job_spec *spec)
{
    switch (below(r, 12)) {
    case 0:
        spec->pool.i = odd_number(r, f->s->n_pools);
        break;
    case 1:
        spec->demand.tasks = odd_number(r, STK_MAX_TASKS + 1);
        break;
    case 2:
        spec->demand.gpus = odd_number(r, STK_MAX_GPUS + 1);
        break;
    case 3:
        spec->estimate = (stk_time)stk_rng_next(r);
        break;
    case 4:
        spec->begin = (stk_time)stk_rng_next(r);
        break;
    case 5:
        spec->tier = (enum stk_tier)below(r, 20);
        break;
    case 6:
        spec->priority = (int32_t)stk_rng_next(r);
        break;
    case 7:
        spec->kind = (enum stk_job_kind)below(r, 20);
        break;
    case 8:
        spec->demand.gpu_types = percent(r, 50) ? 0 : stk_rng_next(r);
        break;
    case 10:
        spec->demand.gpu_milli = (uint16_t)stk_rng_next(r);
        spec->demand.share = (uint8_t)stk_rng_next(r);
        spec->demand.share_max = (uint8_t)stk_rng_next(r);
        spec->demand.gpu_mem_mib = odd_number(r, 100);
        spec->demand.mig = percent(r, 50) ? (uint16_t)stk_rng_next(r) : spec->demand.mig;
        break;
    case 11:
        spec->demand.level_required = (uint8_t)odd_number(r, below(r, 8));
        spec->demand.level_preferred = (uint8_t)odd_number(r, below(r, 8));
        spec->demand.group_level = (uint8_t)odd_number(r, below(r, 8));
        spec->demand.group = odd_number(r, below(r, 5));
        spec->demand.per_node = odd_number(r, below(r, 5));
        spec->demand.exclusive = percent(r, 50);
        break;
    case 9:
        spec->demand.cpu_milli = odd_number(r, 100);
        spec->demand.mem_mib = odd_number(r, 100);
        break;
    default:
        break;
    }
}

static void odd_piece(const struct fx *f, struct stk_rng *r, const struct stk_job *j,
                      struct stk_piece *p)
{
    const struct stk_demand *d = f->s->shapes ? &f->s->shapes[j->shape].demand : NULL;
    bool instances = d && d->mig, shares = instances || (d && stk_demand_pairs(d));
    const struct stk_node *n;
    uint64_t mask = 0, left;

    p->node.i = odd_number(r, below(r, f->s->n_nodes));
    p->gpus = percent(r, 80) ? j->gpus : below(r, 9);
    p->tasks = percent(r, 60) ? 1 : odd_number(r, below(r, 5));
    n = &f->s->nodes[p->node.i < f->s->n_nodes ? p->node.i : 0];
    p->slot = instances ? below(r, 9) : percent(r, 5);
    left = percent(r, 70) ? n->mask_free | (shares ? n->mask_part : 0) : stk_rng_next(r);
    for (uint32_t i = 0; i < p->gpus && left; i++, left &= left - 1)
        mask |= left & (~left + 1);
    p->mask = percent(r, 10) ? stk_rng_next(r) : n->aggregate ? 0 : mask;
}

void world_set(const struct fx *f, struct stk_rng *r, struct stk_set *ret)
{
    static const char *const params[][2] = {
        {"round_s", "2"},          {"round_s", "0"},        {"backfill.depth", "3"},
        {"las.thresholds", "2,9"}, {"tier.classes", "500"}, {"tier.classes", "300,800"},
        {"defrag.most", "100"},    {"share.all", "true"},   {"nothing", "1"},
    };
    uint32_t p = below(r, sizeof(params) / sizeof(*params));

    *ret = (struct stk_set){.kind = (enum stk_set_kind)below(r, STK_SET_KIND_MAX),
                            .clear = percent(r, 30)};
    switch (ret->kind) {
    case STK_SET_PARAM:
        (void)snprintf(ret->name, sizeof(ret->name), "%s", params[p][0]);
        (void)snprintf(ret->text, sizeof(ret->text), "%s", params[p][1]);
        break;
    case STK_SET_WEIGHT:
        ret->row = below(r, f->s->n_tenants + 1);
        ret->value = below(r, 5000);
        break;
    case STK_SET_KEEP_UP:
        ret->row = below(r, f->s->n_tenants + 1);
        ret->value = below(r, 4);
        break;
    case STK_SET_QUEUE:
        ret->row = below(r, f->s->n_queues + 1);
        ret->column = below(r, STK_SET_QUEUE_MAX);
        ret->value = percent(r, 30) ? -1 : (int64_t)below(r, 20) * (ret->column % 2 ? 1 : 1000);
        break;
    case STK_SET_LIMIT:
    case STK_SET_GUARANTEE:
        ret->row = below(r, f->s->n_tenants + 1);
        ret->column = percent(r, 60) ? 0 : below(r, 4);
        ret->value = percent(r, 30) ? -1 : (int64_t)below(r, 20) * 1000;
        break;
    case STK_SET_PRIORITY:
        ret->column = percent(r, 30) ? STK_SET_OF_QUEUE : STK_SET_OF_KIND;
        ret->row = below(r, ret->column ? f->s->n_queues + 1 : STK_KIND_MAX);
        ret->value = (int64_t)below(r, 1000) - 500;
        break;
    case STK_SET_POOL:
        ret->row = below(r, f->s->n_nodes);
        ret->value = below(r, f->s->n_pools);
        ret->evict = percent(r, 60);
        break;
    case STK_SET_CLOCK:
        ret->value = (int64_t)below(r, 100) * STK_SECOND;
        break;
    case STK_SET_SKIP:
        ret->value = (int64_t)below(r, 100) * STK_SECOND;
        break;
    case STK_SET_MOVE:
    case STK_SET_KIND_MAX:
        break;
    }
}

static void odd_booking(const struct fx *f, struct stk_rng *r, struct stk_booking_spec *k,
                        struct stk_piece *nodes)
{
    switch (below(r, 10)) {
    case 0:
        k->pool.i = odd_number(r, f->s->n_pools);
        break;
    case 1:
        k->gpus = odd_number(r, 3);
        break;
    case 2:
        k->start = (stk_time)stk_rng_next(r);
        break;
    case 3:
        k->end = (stk_time)stk_rng_next(r) >> below(r, 64);
        break;
    case 4:
        k->holder = (enum stk_holder)below(r, 20);
        break;
    case 5:
        k->number = odd_number(r, k->number);
        break;
    case 6:
        k->n_nodes = 1 + below(r, 3);
        k->gpus = 0;
        for (uint32_t i = 0; i < k->n_nodes; i++) {
            nodes[i] = (struct stk_piece){.node = {odd_number(r, i)}, .gpus = 1 + below(r, 9)};
            k->gpus += nodes[i].gpus;
        }
        k->nodes = nodes;
        break;
    default:
        break;
    }
}

static void odd_set(const struct fx *f, struct stk_rng *r, struct stk_set *ret)
{
    world_set(f, r, ret);
    ret->row = odd_number(r, ret->row);
    ret->column = odd_number(r, ret->column);
    if (percent(r, 10))
        ret->kind = (enum stk_set_kind)below(r, STK_SET_KIND_MAX + 2);
    if (percent(r, 10))
        ret->value = (int64_t)stk_rng_next(r);
    if (percent(r, 5))
        memset(ret->text, 'x', sizeof(ret->text));
}

/* GPUs of 'n' in the mask, the lowest first; fewer if there are no more. */
static uint64_t some_of(uint64_t mask, uint32_t n)
{
    uint64_t left = mask;

    while (n-- > 0)
        left &= left - 1;
    return mask & ~left;
}

/* So many of its tasks lie on another of its nodes. */
static void odd_move(const struct fx *f, struct stk_rng *r, const struct stk_job *j,
                     struct stk_event *ev)
{
    const struct stk_piece *pieces = &f->s->pieces[j->first_piece], *from, *to;
    uint32_t n, a = below(r, j->n_pieces), b = below(r, j->n_pieces);

    from = &pieces[a];
    to = &pieces[b];
    n = from->tasks > 1 ? from->gpus / from->tasks * (1 + below(r, from->tasks - 1))
                        : from->gpus / 2;
    ev->u.swap.node = from->node;
    ev->u.swap.to = to->node;
    ev->u.swap.had = some_of(from->mask, n);
    ev->u.swap.has = some_of(f->s->nodes[to->node.i].mask_free, n);
    ev->u.swap.with.i = STK_NONE;
}

/* One of its GPUs for one that is anybody's, who may be said to be somebody else. */
static void odd_swap(const struct fx *f, struct stk_rng *r, const struct stk_job *j,
                     struct stk_event *ev)
{
    const struct stk_piece *p = j->lease ? &f->s->pieces[j->first_piece] : NULL;
    uint32_t with = random_slot(f, r), has = below(r, 8);

    if (j->lease && j->n_pieces > 1 && percent(r, 80)) {
        odd_move(f, r, j, ev);
        return;
    }
    ev->u.swap.node.i = odd_number(r, p ? p->node.i : 0);
    ev->u.swap.to = ev->u.swap.node;
    if (percent(r, 5))
        ev->u.swap.to.i = odd_number(r, 1);
    ev->u.swap.had =
        UINT64_C(1) << (odd_number(r, p && p->mask ? (uint32_t)__builtin_ctzll(p->mask) : 0) & 63);
    ev->u.swap.has = UINT64_C(1) << (odd_number(r, has) & 63);
    ev->u.swap.with.i = percent(r, 50) ? STK_NONE : with;
}

bool world_hostile(const struct world *w, struct fx *f, struct stk_rng *r)
{
    static const struct stk_job nobody = {.gpus = 1};
    struct stk_dep deps[4];
    struct stk_job_spec spec = world_job(w, f, r, deps);
    struct stk_piece pieces[3];
    struct stk_node_range range = {0, 0};
    struct stk_node_set nodes = {.range = &range};
    struct stk_set set;
    struct stk_booking_spec booking;
    uint32_t slot = random_slot(f, r);
    const struct stk_job *j = slot < f->s->n_jobs ? &f->s->jobs[slot] : &nobody;
    struct stk_event ev = {.at = f->now,
                           .type = (enum stk_event_type)below(r, STK_EV_TYPE_MAX + 1)};
    uint64_t before = fx_digest(f);

    if (percent(r, 10))
        ev.at += (stk_time)stk_rng_next(r) >> below(r, 64);
    ev.job.i = odd_number(r, slot);
    ev.lease = odd_number(r, j->lease ? j->lease : j->slept);
    if (ev.type == STK_EV_SUBMIT) {
        odd_spec(f, r, &spec);
        ev.job.i = odd_number(r, stk_core_next_job(f->core).i);
        ev.u.spec = &spec;
    } else if (ev.type == STK_EV_UPDATE && percent(r, 60)) {
        spec.n_deps = percent(r, 95) ? 0 : spec.n_deps;
        odd_spec(f, r, &spec);
        ev.u.update.spec = &spec;
    } else if (ev.type == STK_EV_PLACE) {
        ev.lease = odd_number(r, stk_core_next_lease(f->core));
        for (uint32_t i = 0; i < 3; i++)
            odd_piece(f, r, j, &pieces[i]);
        ev.u.place.pieces = pieces;
        ev.u.place.n = percent(r, 70) ? 1 : below(r, 4);
    } else if (ev.type == STK_EV_EXITED) {
        ev.u.exit.cause = (enum stk_cause)below(r, STK_CAUSE_MAX + 2);
        ev.u.exit.lost = percent(r, 20) ? (stk_time)stk_rng_next(r) >> below(r, 64) : 0;
        ev.u.exit.final = percent(r, 10);
    } else if (ev.type == STK_EV_EVICT) {
        ev.u.evict.for_job.i = percent(r, 50) ? random_slot(f, r) : odd_number(r, STK_NONE);
        ev.u.evict.suspend = percent(r, 60);
        ev.u.evict.moved = percent(r, 20);
        ev.u.evict.kill = !ev.u.evict.suspend && percent(r, 20);
    } else if (ev.type == STK_EV_SET) {
        odd_set(f, r, &set);
        ev.u.set = &set;
    } else if (ev.type == STK_EV_NODE_DOWN || ev.type == STK_EV_NODE_UP ||
               ev.type == STK_EV_NODE_OFF) {
        ev.u.node.i = odd_number(r, below(r, f->s->n_nodes));
    } else if (ev.type == STK_EV_GPUS_OFF) {
        ev.u.off.node.i = odd_number(r, below(r, f->s->n_nodes));
        ev.u.off.mask = percent(r, 60) ? below(r, 256) : odd_number(r, 0);
        ev.u.off.last = percent(r, 30) ? below(r, 256) : 0;
        ev.u.off.closed = (ev.u.off.mask & 0xf) == 0xf;
    } else if (ev.type == STK_EV_RESERVE) {
        booking = some_booking(w, f, r);
        odd_booking(f, r, &booking, pieces);
        ev.u.booking = &booking;
    } else if (ev.type == STK_EV_UNRESERVE) {
        ev.u.unreserve.number = odd_number(r, 1 + below(r, f->s->book.next));
        ev.u.unreserve.why = (enum stk_over_why)below(r, STK_OVER_MAX + 1);
    } else if (ev.type == STK_EV_NODES) {
        nodes.number = odd_number(r, 1 + below(r, 4));
        nodes.n = below(r, 2);
        range.first = odd_number(r, below(r, f->s->n_nodes));
        range.last = odd_number(r, below(r, f->s->n_nodes));
        ev.u.nodes = &nodes;
    } else if (ev.type == STK_EV_SWAPPED) {
        odd_swap(f, r, j, &ev);
    }
    if (fx_apply(f, &ev) == 0)
        return true;
    fx_must(fx_digest(f) == before, "a refused %s changes nothing", stk_event_type_name(ev.type));
    return false;
}
