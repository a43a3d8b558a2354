/* SPDX-License-Identifier: Apache-2.0 */
/* remedy.c - see remedy.h. A kind of change is a range to search for the value that is closest to
 * what is asked for; remedy_edit.c makes the change. A search in slices begins anew with each of
 * them: what earlier slices found of a try is known, so no fork is made twice. */
#include "core/remedy.h"

#include "core/ahead.h"
#include "core/evictable.h"
#include "core/tenant.h"
#include "core/verbs.h"

struct search {
    const struct stk_remedy_ask *ask;
    const struct stk_state *s;
    struct stk_job_spec base;
    struct stk_ahead a;
    struct stk_remedies *ret;
    struct stk_err *err;
    enum stk_remedy_kind kind;
    uint32_t resource;
    int64_t unit;           /* of the values below, in those of the remedy */
    struct stk_remedy last; /* that started it */
    bool found;
    uint32_t made, evicts; /* forks of this slice; who had to give way at the latest try */
    bool paused;           /* the slice is over */
    int rc;                /* -ENOMEM: no more tries */
};

const char *stk_remedy_name(enum stk_remedy_kind k)
{
    static const char *const names[STK_REMEDY_KINDS] = {
        "release",   "begin",       "gpu_type",    "topology", "tasks_per_node",
        "exclusive", "pool",        "queue",       "tenant",   "cpus",
        "memory",    "resource",    "preemptible", "time",     "gpus",
        "tasks",     "part_of_gpu", "priority",    "tier"};

    return (unsigned)k < STK_REMEDY_KINDS ? names[k] : "?";
}

/* ---- one try ---- */

static bool has_started(const struct stk_ahead *a)
{
    const struct search *k = a->ctx;

    return stk_ahead_has(a, k->ask->job.i);
}

static const struct stk_ahead_ops ops = {.holds = stk_ahead_expected, .enough = has_started};

/* The time at which there is something to decide: now, or the next round. */
static stk_time decided_at(const struct search *k)
{
    stk_time round = k->s->round, now = k->ask->now;

    return round > 0 ? (now + round - 1) / round * round : now;
}

/* What came of this try in a slice before; false: it was not made. */
static bool was_tried(struct search *k, struct stk_remedy_try *io)
{
    const struct stk_remedy_tries *t = k->ask->tries;
    const struct stk_remedy_try *o = t && k->ret->forks < t->n ? &t->of[k->ret->forks] : NULL;

    if (!o || o->kind != io->kind || o->to != io->to || o->resource != io->resource)
        return false;
    *io = *o;
    return true;
}

/* What comes of it, for later slices. Tries behind it were of another path. */
static void keep_try(struct search *k, const struct stk_remedy_try *one)
{
    struct stk_remedy_tries *t = k->ask->tries;

    if (!t || k->ret->forks >= STK_REMEDY_FORKS)
        return;
    t->of[k->ret->forks] = *one;
    t->n = k->ret->forks + 1;
}

/* Whether the job starts in a fork that is told this; NULL: nothing. */
static bool try_fork(struct search *k, const struct stk_event *ev)
{
    k->rc = stk_ahead_fork(&k->a, decided_at(k), k->err);
    if (k->rc == 0 && ev)
        stk_ahead_tell(&k->a, *ev);
    if (k->rc == 0 && k->a.rc == 0)
        stk_ahead_settle(&k->a);
    k->rc = k->a.rc == -ENOMEM ? -ENOMEM : k->rc;
    return k->rc == 0 && k->a.rc == 0 && has_started(&k->a); /* else it cannot be changed so */
}

/* Whether the job starts when the core is told this, by a fork or by what a slice before found. */
static bool starts_with(struct search *k, const struct stk_event *ev, int64_t to)
{
    struct stk_remedy_try one = {.kind = k->kind, .to = to, .resource = k->resource};

    if (k->ret->forks >= k->ask->most_forks)
        k->ret->cut = true;
    if (k->ret->cut || k->paused || k->rc < 0)
        return false;
    if (!was_tried(k, &one)) {
        k->paused = k->ask->tries && k->made == k->ask->slice;
        if (k->paused)
            return false;
        k->made++;
        one.started = try_fork(k, ev);
        one.evicts = k->a.evicts;
        keep_try(k, &one);
    }
    k->ret->forks++;
    k->evicts = one.evicts;
    return one.started;
}

/* Whether it starts with this value, in units. */
static bool starts(struct search *k, int64_t value)
{
    struct stk_remedy r = {.kind = k->kind, .to = value * k->unit, .resource = k->resource};
    const struct stk_event ev = {
        .type = STK_EV_UPDATE, .job = k->ask->job, .u.update.spec = &r.spec};

    if (!stk_remedy_edit(k->ask, k->s, &k->base, &r) ||
        (k->ask->allow && k->ask->allow(k->ask->ctx, &r.spec) < 0) ||
        stk_submit_check(k->s, &r.spec, NULL) < 0 || !starts_with(k, &ev, r.to))
        return false;
    r.evicts = k->evicts;
    k->last = r;
    k->found = true;
    return true;
}

/* ---- searches ---- */

static void begin(struct search *k, enum stk_remedy_kind kind, int64_t unit)
{
    k->kind = kind;
    k->unit = unit;
    k->found = false;
}

static void keep(struct search *k, int64_t from)
{
    if (!k->found)
        return;
    k->last.from = from;
    k->ret->list[k->ret->n++] = k->last;
}

/* One by one, from the closest on. */
static void each_down(struct search *k, int64_t from, int64_t to)
{
    for (int64_t v = from; v >= to && !starts(k, v); v--)
        ;
}

/* It starts with 'good'; does it closer to 'bad', with which it does not? */
static void between(struct search *k, int64_t good, int64_t bad)
{
    while (good - bad > 1 || bad - good > 1) {
        int64_t mid = good + (bad - good) / 2;

        if (starts(k, mid))
            good = mid;
        else
            bad = mid;
    }
}

/* The largest below 'now' that is at least 'least', all in units. */
static void less(struct search *k, int64_t now, int64_t least)
{
    if (now > least && starts(k, least))
        between(k, least, now);
}

/* ---- kinds ---- */

static void other_types(struct search *k)
{
    const struct stk_pool *p = &k->s->pools[k->base.pool.i];

    begin(k, STK_REMEDY_TYPE, 1);
    for (uint32_t i = 0; i < p->n_groups && !k->found && k->base.demand.gpus > 0; i++) {
        uint32_t type = k->s->groups[p->first_group + i].gpu_type;

        if (!(k->base.demand.gpu_types >> type & 1))
            (void)starts(k, type);
    }
    keep(k, 0);
}

static void looser_level(struct search *k)
{
    uint32_t now = k->base.demand.level_required;

    begin(k, STK_REMEDY_LEVEL, 1);
    for (uint32_t level = now + 1; now && level <= STK_AT_REGION && !starts(k, level); level++)
        ;
    if (now && !k->found)
        (void)starts(k, 0);
    keep(k, now);
}

static void looser_nodes(struct search *k)
{
    const struct stk_demand *d = &k->base.demand;

    begin(k, STK_REMEDY_SPREAD, 1);
    if (d->per_node)
        (void)starts(k, 0);
    keep(k, d->per_node);
    begin(k, STK_REMEDY_EXCLUSIVE, 1);
    if (d->exclusive)
        (void)starts(k, 0);
    keep(k, 1);
}

static void other_pools(struct search *k)
{
    begin(k, STK_REMEDY_POOL, 1);
    for (uint32_t i = 0; i < k->s->n_pools && !k->found; i++)
        if (i != k->base.pool.i)
            (void)starts(k, i);
    keep(k, k->base.pool.i);
}

static void other_queues(struct search *k)
{
    begin(k, STK_REMEDY_QUEUE, 1);
    for (uint32_t i = 0; i < k->s->n_queues && !k->found; i++)
        if (i != k->base.terms.queue)
            (void)starts(k, i);
    keep(k, k->base.terms.queue);
}

static void other_tenants(struct search *k)
{
    begin(k, STK_REMEDY_TENANT, 1);
    for (uint32_t i = 0; i < k->s->n_tenants && !k->found; i++)
        if (i != k->base.tenant && k->s->tenants[i].leaf)
            (void)starts(k, i);
    keep(k, k->base.tenant);
}

static void fewer_beside(struct search *k)
{
    const struct stk_demand *d = &k->base.demand;

    begin(k, STK_REMEDY_CPU, STK_REMEDY_CPU_STEP);
    less(k, (d->cpu_milli + k->unit - 1) / k->unit, 1);
    keep(k, d->cpu_milli);
    begin(k, STK_REMEDY_MEM, STK_REMEDY_MEM_STEP);
    less(k, (d->mem_mib + k->unit - 1) / k->unit, 1);
    keep(k, d->mem_mib);
    for (uint32_t i = 0; i < d->n_resources; i++) {
        begin(k, STK_REMEDY_RESOURCE, 1);
        k->resource = i;
        less(k, d->resource[i], 0);
        keep(k, d->resource[i]);
        if (k->found)
            return;
    }
}

static void shorter(struct search *k)
{
    stk_time now = k->base.estimate / STK_SECOND;

    begin(k, STK_REMEDY_TIME, STK_SECOND);
    if (k->base.estimate == 0) /* it has none: as good as for ever */
        now = STK_MAX_DURATION / STK_SECOND;
    less(k, now, STK_REMEDY_LEAST_TIME);
    keep(k, k->base.estimate);
}

static void fewer_gpus(struct search *k)
{
    const struct stk_demand *d = &k->base.demand;

    begin(k, STK_REMEDY_GPUS, 1);
    if (d->gpus > STK_REMEDY_EACH)
        less(k, d->gpus, 1);
    else
        each_down(k, (int64_t)d->gpus - 1, 1);
    keep(k, d->gpus);
}

static void fewer_tasks(struct search *k)
{
    const struct stk_demand *d = &k->base.demand;
    uint32_t unit = d->group ? d->group : 1;

    if (d->per_node && unit % d->per_node) /* both divide it */
        unit *= d->per_node;
    begin(k, STK_REMEDY_TASKS, unit);
    if (d->tasks / unit > STK_REMEDY_EACH)
        less(k, d->tasks / unit, 1);
    else
        each_down(k, (int64_t)d->tasks / unit - 1, 1);
    keep(k, d->tasks);
}

static void part_of_gpu(struct search *k)
{
    const struct stk_demand *d = &k->base.demand;
    int64_t now = stk_demand_asked_milli(d);

    begin(k, STK_REMEDY_PART, STK_REMEDY_PART_STEP);
    if (d->gpus == 1 && !d->mig && !stk_demand_pairs(d) && !d->exclusive && !d->level_required &&
        !k->s->pools[k->base.pool.i].aggregate)
        less(k, (now + k->unit - 1) / k->unit, 1);
    keep(k, now);
}

/* A priority above which nothing changes: no job has a higher one, nor is there a higher class. */
static int64_t highest_priority(const struct search *k)
{
    struct stk_job j = k->s->jobs[k->ask->job.i];
    int64_t most = j.priority, low = most, high = STK_MAX_PRIORITY;
    uint32_t level;

    for (uint32_t i = 0; i < k->s->n_jobs; i++)
        if (k->s->jobs[i].pool == k->base.pool.i && k->s->jobs[i].state != STK_JOB_NONE &&
            k->s->jobs[i].state != STK_JOB_DONE && k->s->jobs[i].priority > most)
            most = k->s->jobs[i].priority;
    j.priority = STK_MAX_PRIORITY;
    level = stk_evictable_level(k->s, &j);
    while (low < high) {
        int64_t mid = low + (high - low) / 2;

        j.priority = (int32_t)mid;
        if (stk_evictable_level(k->s, &j) == level)
            high = mid;
        else
            low = mid + 1;
    }
    most = most < STK_MAX_PRIORITY ? most + 1 : most;
    most = most > high ? most : high;
    return k->ask->allow && most > k->ask->most_priority ? k->ask->most_priority : most;
}

static void more_urgent(struct search *k)
{
    int64_t now = k->base.priority, most = highest_priority(k);

    begin(k, STK_REMEDY_PRIORITY, 1);
    if (most > now && starts(k, most))
        between(k, most, now);
    keep(k, now);
    begin(k, STK_REMEDY_TIER, 1);
    for (int64_t t = k->base.tier + 1; t < STK_TIER_MAX && !k->found; t++)
        (void)starts(k, t);
    keep(k, k->base.tier);
}

static void preemptible(struct search *k)
{
    begin(k, STK_REMEDY_PREEMPTIBLE, 1);
    if (k->base.tier > STK_TIER_BEST_EFFORT)
        (void)starts(k, STK_TIER_BEST_EFFORT);
    keep(k, k->base.tier);
}

/* ---- all ---- */

static void search_all(struct search *k)
{
    other_types(k);
    looser_level(k);
    looser_nodes(k);
    other_pools(k);
    other_queues(k);
    other_tenants(k);
    fewer_beside(k);
    preemptible(k);
    shorter(k);
    fewer_gpus(k);
    fewer_tasks(k);
    part_of_gpu(k);
    more_urgent(k);
}

static void search(struct search *k)
{
    const struct stk_job *j = &k->s->jobs[k->ask->job.i];
    const struct stk_event ev = {.type = STK_EV_RELEASE, .job = k->ask->job};

    if (j->slept)
        return;
    if (j->state == STK_JOB_HELD) {
        begin(k, STK_REMEDY_RELEASE, 1);
        k->last = (struct stk_remedy){.kind = k->kind, .spec = k->base};
        k->found = starts_with(k, &ev, 0);
        k->last.evicts = k->evicts;
        keep(k, 1);
    } else if (j->state == STK_JOB_BLOCKED && j->unmet == 0) {
        begin(k, STK_REMEDY_BEGIN, 1);
        (void)starts(k, 0);
        keep(k, k->base.begin);
    } else if (j->state == STK_JOB_WAITING) {
        k->ret->soon = starts_with(k, NULL, 0);
        if (!k->ret->soon)
            search_all(k);
    }
}

/* Those that nobody has to give way for come first. */
static void order(struct stk_remedies *all)
{
    for (uint32_t i = 1; i < all->n; i++)
        for (uint32_t k = i; k > 0 && all->list[k - 1].evicts && !all->list[k].evicts; k--) {
            const struct stk_remedy r = all->list[k];

            all->list[k] = all->list[k - 1];
            all->list[k - 1] = r;
        }
}

static struct stk_job_spec spec_of(const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    return (struct stk_job_spec){.demand = s->shapes[j->shape].demand,
                                 .kind = (enum stk_job_kind)j->kind,
                                 .tier = (enum stk_tier)j->tier,
                                 .priority = j->priority,
                                 .pool = {j->pool},
                                 .tenant = j->tenant,
                                 .tag = j->tag,
                                 .estimate = j->estimate,
                                 .begin = j->begin,
                                 .terms = s->terms[job]};
}

int stk_core_remedies(const struct stk_core *core, const struct stk_remedy_ask *ask,
                      struct stk_remedies *ret, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(core);
    struct search k = {.ask = ask, .s = s, .ret = ret, .err = err};
    int rc;

    *ret = (struct stk_remedies){.n = 0};
    if (ask->job.i >= s->n_jobs || s->jobs[ask->job.i].state == STK_JOB_NONE)
        return stk_err_set(err, -ENOENT, "there is no job in slot %u", ask->job.i);
    k.base = ask->spec ? *ask->spec : spec_of(s, ask->job.i);
    k.base.deps = NULL;
    k.base.n_deps = 0;
    rc = stk_ahead_init(&k.a, core, &ops, &k);
    if (rc == 0) {
        stk_ahead_only(&k.a, &ask->job.i, 1);
        search(&k);
        order(ret);
        rc = k.rc;
    }
    stk_ahead_done(&k.a);
    return rc < 0 ? stk_err_set(err, rc, "out of memory") : k.paused;
}
