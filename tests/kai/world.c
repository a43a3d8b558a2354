/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - a core made of a case, and an engine that does at once what it is told.
 *
 * Jobs come in the order of their age. Those that run there are placed where the case says; then
 * the core decides until nothing is left to do. Jobs never end by themselves. Followers are held
 * while the gang they follow does not run.
 */
#include "kai.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "drive/setup.h"
#include "sys/big.h"

#define BATCH 64
#define MOST_STEPS 2000
#define RANKS 1000    /* of ours for one priority there: followers come behind gangs */
#define STEPS 2000000 /* of ours between priorities of queues */
#define STEP_WEIGHT 1000.0
#define DAY ((stk_time)86400 * STK_SECOND)

static int refused(struct kai_world *w, const char *what, const struct stk_err *why)
{
    return stk_err_set(&w->c->err, KAI_UNSUPPORTED, "%s: %.200s", what, why->text);
}

static int apply(struct kai_world *w, const struct stk_event *ev, struct stk_err *err)
{
    return stk_core_apply(w->core, ev, err);
}

static int job_event(struct kai_world *w, enum stk_event_type type, uint32_t slot)
{
    struct stk_event ev = {.at = w->now, .type = type, .job = {slot}};

    ev.lease = w->s->jobs[slot].lease;
    if (type == STK_EV_EXITED)
        ev.u.exit.cause = STK_CAUSE_EVICTED;
    if (type == STK_EV_EVICT) {
        ev.u.evict.for_job.i = STK_NONE;
        ev.u.evict.by_hand = true;
    }
    return apply(w, &ev, &w->c->err);
}

/* ---- making the core ---- */

static uint64_t milli(double gpus)
{
    return gpus < 0 ? STK_NO_LIMIT : (uint64_t)(gpus * 1000 + 0.5);
}

/* Nobody is guaranteed more than the one above it. */
static double guarantee_of(const struct kai_case *c, const struct kai_queue *q)
{
    double least = q->guarantee;

    for (; q; q = q->parent == KAI_NONE ? NULL : &c->queues[q->parent])
        least = q->guarantee >= 0 && (least < 0 || q->guarantee < least) ? q->guarantee : least;
    return least;
}

/* Where those below add up to more than their own, theirs is as much. */
static double guarantee_around(const struct kai_case *c, uint32_t queue)
{
    double own = guarantee_of(c, &c->queues[queue]), sum = 0;

    for (uint32_t i = 0; i < c->n_queues; i++)
        sum += c->queues[i].parent == queue ? guarantee_around(c, i) : 0;
    return sum > own ? sum : own;
}

/* Queues of higher priority get all they want of the rest first: they weigh far more. */
static uint32_t weight_of(const struct kai_queue *q)
{
    double w = q->weight < 0 ? STK_WEIGHT : q->weight * STK_WEIGHT;

    for (uint32_t i = 0; i < q->step; i++)
        w *= STEP_WEIGHT;
    return w < STK_MAX_WEIGHT ? (uint32_t)w : STK_MAX_WEIGHT;
}

static void fill_tenant(struct stk_tenant_spec *t, const struct kai_case *c, uint32_t queue)
{
    const struct kai_queue *q = &c->queues[queue];

    stk_tenant_spec_init(t, q->name, q->parent == KAI_NONE ? STK_NONE : c->queues[q->parent].row);
    t->limit = milli(q->limit);
    t->guarantee = q->guarantee < 0 ? STK_GUARANTEE_SUM : milli(guarantee_around(c, queue));
    t->weight = weight_of(q);
    if (q->cpu_limit >= 0)
        t->cpu_limit = (uint64_t)q->cpu_limit;
    if (q->mem_limit >= 0)
        t->mem_limit = (uint64_t)q->mem_limit;
}

/* Row 0 is for whoever belongs to no queue. Those above come before those below. */
static struct stk_tenant_spec *make_tenants(struct kai_case *c, uint32_t *ret_n)
{
    struct stk_tenant_spec *rows = kai_alloc(&c->mem, c->n_queues + 1, sizeof(*rows));
    uint32_t n = 1;

    stk_tenant_spec_init(&rows[0], "(nobody)", STK_NONE);
    rows[0].weight = 0;
    for (uint32_t i = 0; i < c->n_queues; i++)
        c->queues[i].row = 0;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < c->n_queues; i++) {
            struct kai_queue *q = &c->queues[i];

            if (q->row > 0 || (q->parent != KAI_NONE && c->queues[q->parent].row == 0))
                continue;
            q->row = n++;
            fill_tenant(&rows[q->row], c, i);
            more = true;
        }
    }
    *ret_n = n;
    return rows;
}

/* What is guaranteed at the top must be there, if only switched off. */
static int add_spare(struct kai_case *c, const struct stk_tenant_spec *rows, uint32_t n)
{
    uint64_t guaranteed = 0, have = 0;

    for (uint32_t i = 0; i < n; i++)
        guaranteed += rows[i].parent == STK_NONE && rows[i].guarantee != STK_GUARANTEE_SUM
                          ? rows[i].guarantee / 1000 + 1
                          : 0;
    for (uint32_t i = 0; i < c->n_parts; i++)
        have += c->parts[i].gpus;
    for (; have < guaranteed; have += STK_MAX_NODE_GPUS) {
        if (c->n_parts == c->first_spare + KAI_SPARE)
            return stk_err_set(&c->err, KAI_UNSUPPORTED, "far more is guaranteed than there is");
        c->part_node[c->n_parts] = 0;
        c->parts[c->n_parts++] = (struct stk_node_spec){.gpus = STK_MAX_NODE_GPUS};
    }
    return 0;
}

/* Where jobs of a queue differ in priority as well, ours says that, and not both. */
static void order_queues(struct kai_case *c)
{
    int first = 0;
    bool any = false, several = false;

    for (uint32_t i = 0; i < c->n_queues; i++)
        for (uint32_t k = 0; k < c->n_queues; k++) {
            uint32_t n = 0; /* distinct ones below */

            for (uint32_t m = 0; m < k; m++)
                n += c->queues[m].priority == c->queues[k].priority;
            c->queues[i].step += n == 0 && c->queues[k].priority < c->queues[i].priority;
        }
    for (uint32_t i = 0; i < c->n_jobs; i++) {
        if (c->jobs[i].critical)
            continue;
        several |= any && c->jobs[i].priority != first;
        first = c->jobs[i].priority;
        any = true;
    }
    c->queues_differ = !several;
}

static int32_t rank_of(const struct kai_case *c, const struct kai_unit *u)
{
    const struct kai_job *j = &c->jobs[u->job];
    int32_t rank = j->priority * RANKS - (int32_t)(u->rank < RANKS / 2 ? u->rank : RANKS / 2 - 1);

    if (c->queues_differ && j->queue != KAI_NONE && j->priority < STEPS / RANKS / 2)
        rank += (int32_t)(c->queues[j->queue].step * STEPS);
    return rank;
}

/* Between priorities of jobs that may be evicted: at most two bounds are taken. */
static int class_bounds(struct kai_case *c, char *buf, size_t size)
{
    int seen[3], n = 0;

    for (uint32_t i = 0; i < c->n_jobs; i++) {
        int p = c->jobs[i].priority, k = 0;

        while (k < n && seen[k] < p)
            k++;
        if (c->jobs[i].critical || (k < n && seen[k] == p))
            continue;
        if (n == 3)
            return stk_err_set(&c->err, KAI_UNSUPPORTED, "more than three priorities below 100");
        memmove(seen + k + 1, seen + k, (size_t)(n - k) * sizeof(*seen));
        seen[k] = p;
        n++;
    }
    (void)snprintf(buf, size, "tier.classes=");
    for (int k = 1; k < n; k++) {
        size_t used = strlen(buf);

        (void)snprintf(buf + used, size - used, "%s%d", k > 1 ? "," : "",
                       seen[k] * RANKS - RANKS / 2);
    }
    return 0;
}

static int make_core(struct kai_case *c, struct kai_world *w)
{
    static const char *const names[] = {"pods"};
    char classes[64];
    const char *params[] = {"defrag.most=1000",     "defrag.jobs=all",     "reclaim.levels=tenant",
                            "preempt.first=latest", "reclaim.cpu_jobs=on", classes};
    const struct stk_setup_words words = {.order = "priority",
                                          .backfill = "skip",
                                          .place = "pack",
                                          .preempt = "reclaim",
                                          .params = params,
                                          .n_params = 6};
    struct stk_core_config cfg = {.nodes = c->parts,
                                  .n_nodes = c->n_parts,
                                  .n_pools = 1,
                                  .n_resources = 1,
                                  .resource_names = names,
                                  .retain_done = UINT32_MAX};
    struct stk_setup setup;
    int rc = class_bounds(c, classes, sizeof(classes));

    order_queues(c);
    rc = rc < 0 ? rc : stk_setup_resolve(&words, &setup, &c->err);
    if (rc < 0)
        return rc;
    cfg.order = setup.order;
    cfg.backfill = setup.backfill;
    cfg.place = setup.place;
    cfg.preempt = setup.preempt;
    cfg.admit = setup.admit;
    cfg.params = &setup.params;
    cfg.tenants = make_tenants(c, &cfg.n_tenants);
    rc = add_spare(c, cfg.tenants, cfg.n_tenants);
    if (rc < 0)
        return rc;
    cfg.n_nodes = c->n_parts;
    rc = stk_core_new(&cfg, &stk_big_mem, &w->core, &c->err);
    if (rc == 0)
        w->s = stk_core_state(w->core);
    return rc;
}

/* ---- jobs ---- */

static void wish(const struct kai_job *j, struct stk_demand *d)
{
    const struct kai_set *root = j->groups.n > 0 ? &j->groups.sets[0] : NULL;

    for (uint32_t i = 0; i < j->groups.n; i++)
        if (j->groups.sets[i].parent == KAI_NONE)
            root = &j->groups.sets[i];
    if (root) {
        d->level_required = (uint8_t)root->level;
        d->level_preferred = (uint8_t)root->preferred;
    }
    if (j->demand.tasks > 1 && !d->level_required) { /* the devices of a task are on one node */
        d->group = j->demand.tasks;
        d->group_level = STK_AT_NODE;
    }
}

static int submit(struct kai_world *w, uint32_t unit)
{
    struct kai_unit *u = &w->c->units[unit];
    const struct kai_job *j = &w->c->jobs[u->job];
    struct stk_job_spec spec = {.demand = j->demand, .estimate = DAY};
    struct stk_event ev = {.at = w->now, .type = STK_EV_SUBMIT, .u.spec = &spec};
    int rc;

    spec.demand.tasks = u->n_tasks * j->demand.tasks;
    spec.tier = j->critical ? STK_TIER_CRITICAL : STK_TIER_STANDARD;
    spec.priority = rank_of(w->c, u);
    spec.tenant = j->queue == KAI_NONE ? 0 : w->c->queues[j->queue].row;
    spec.held = j->barred || u->leader != KAI_NONE;
    spec.terms.movable = !j->critical;
    if (u->leader == KAI_NONE)
        wish(j, &spec.demand);
    ev.job = stk_core_next_job(w->core);
    rc = apply(w, &ev, &w->c->err);
    if (rc == -ERANGE)
        return 0; /* it can never run: refused here, pending for ever there */
    u->slot = rc == 0 ? ev.job.i : KAI_NONE;
    return rc < 0 ? refused(w, j->name, &w->c->err) : 0;
}

/* ---- what runs at the beginning ---- */

struct seats { /* which GPUs of the core's nodes are taken, and by which group */
    uint64_t *taken;
    struct seat {
        const char *group;
        uint32_t part, gpu;
    } * named;
    uint32_t n_named;
};

static uint32_t part_of(const struct kai_case *c, const struct kai_job *j, uint32_t node)
{
    const struct kai_node *n = &c->nodes[node];

    for (uint32_t p = n->first_part; p < n->first_part + n->n_parts; p++)
        if (j->demand.gpu_types >> c->parts[p].gpu_type & 1)
            return p;
    return KAI_NONE;
}

static uint32_t free_gpu(const struct kai_case *c, struct seats *s, uint32_t part)
{
    for (uint32_t g = 0; g < c->parts[part].gpus; g++)
        if (!(s->taken[part] >> g & 1)) {
            s->taken[part] |= UINT64_C(1) << g;
            return g;
        }
    return KAI_NONE;
}

static uint32_t named_gpu(const struct kai_case *c, struct seats *s, uint32_t part,
                          const char *group)
{
    for (uint32_t i = 0; i < s->n_named; i++)
        if (s->named[i].part == part && strcmp(s->named[i].group, group) == 0)
            return s->named[i].gpu;
    s->named[s->n_named] = (struct seat){group, part, free_gpu(c, s, part)};
    return s->named[s->n_named++].gpu;
}

/* The GPUs of a task on its node; 0: there is no room. */
static uint64_t seat(const struct kai_case *c, struct seats *s, const struct kai_job *j,
                     const struct kai_task *t, uint32_t part)
{
    uint32_t n = j->demand.gpus * j->demand.tasks;
    bool named = json_array_size(t->gpu_groups) == n;
    uint64_t mask = 0;

    for (uint32_t i = 0; i < n; i++) {
        const char *group = named ? json_string_value(json_array_get(t->gpu_groups, i)) : NULL;
        uint32_t g = group ? named_gpu(c, s, part, group) : free_gpu(c, s, part);

        if (g == KAI_NONE)
            return 0;
        mask |= UINT64_C(1) << g;
    }
    return mask;
}

static int add_piece(struct kai_world *w, struct seats *s, const struct kai_job *j,
                     const struct kai_task *t, struct stk_piece *pieces, uint32_t *n)
{
    uint32_t part = t->node == KAI_NONE ? KAI_NONE : part_of(w->c, j, t->node), i = 0;
    uint64_t mask = part == KAI_NONE ? 0 : seat(w->c, s, j, t, part);

    if (part == KAI_NONE || (j->demand.gpus > 0 && !mask))
        return stk_err_set(&w->c->err, KAI_UNSUPPORTED, "%.60s runs where it has no room", j->name);
    while (i < *n && pieces[i].node.i != part)
        i++;
    *n += i == *n;
    pieces[i].node.i = part;
    if (pieces[i].mask & mask)
        return stk_err_set(&w->c->err, KAI_UNSUPPORTED, "tasks of %.60s share a GPU", j->name);
    pieces[i].mask |= mask;
    pieces[i].gpus += j->demand.gpus * j->demand.tasks;
    pieces[i].tasks += j->demand.tasks;
    return 0;
}

static int start(struct kai_world *w, struct seats *s, struct kai_unit *u)
{
    const struct kai_job *j = &w->c->jobs[u->job];
    struct stk_piece *pieces = kai_alloc(&w->c->mem, u->n_tasks, sizeof(*pieces));
    struct stk_event ev = {.at = w->now, .type = STK_EV_PLACE, .job = {u->slot}};
    uint32_t n = 0;
    int rc = 0;

    for (uint32_t i = 0; i < u->n_tasks && rc == 0; i++)
        rc = add_piece(w, s, j, &j->tasks[u->tasks[i]], pieces, &n);
    if (rc < 0)
        return rc;
    if (u->slot == KAI_NONE)
        return stk_err_set(&w->c->err, KAI_UNSUPPORTED, "%.60s runs and never could", j->name);
    if (w->s->jobs[u->slot].state == STK_JOB_HELD && job_event(w, STK_EV_RELEASE, u->slot) < 0)
        return refused(w, j->name, &w->c->err);
    ev.lease = stk_core_next_lease(w->core);
    ev.u.place.pieces = pieces;
    ev.u.place.n = n;
    rc = apply(w, &ev, &w->c->err);
    rc = rc < 0 ? rc : job_event(w, STK_EV_STARTED, u->slot);
    if (rc == 0 && j->deleted)
        rc = job_event(w, STK_EV_CANCEL, u->slot);
    return rc < 0 ? refused(w, j->name, &w->c->err) : 0;
}

/* GPUs of tasks that never go away belong to nobody. */
static int block_stuck(struct kai_world *w, struct seats *s)
{
    const struct kai_case *c = w->c;
    uint64_t *off = kai_alloc(&w->c->mem, c->n_parts, sizeof(*off));
    int rc = 0;

    for (uint32_t i = 0; i < c->n_jobs; i++)
        for (uint32_t k = 0; k < c->jobs[i].n_tasks; k++) {
            const struct kai_task *t = &c->jobs[i].tasks[k];
            uint32_t part = t->state != KAI_STUCK || t->node == KAI_NONE
                                ? KAI_NONE
                                : part_of(c, &c->jobs[i], t->node);

            if (part != KAI_NONE)
                off[part] |= seat(c, s, &c->jobs[i], t, part);
        }
    for (uint32_t p = 0; p < c->n_parts && rc == 0; p++) {
        const struct stk_event ev = {
            .at = w->now, .type = STK_EV_GPUS_OFF, .u.off = {.node = {p}, .mask = off[p]}};

        if (off[p])
            rc = apply(w, &ev, &w->c->err);
    }
    return rc;
}

static int switch_off(struct kai_world *w)
{
    int rc = 0;

    for (uint32_t i = w->c->first_spare; i < w->c->n_parts && rc == 0; i++) {
        const struct stk_event ev = {.at = w->now, .type = STK_EV_NODE_DOWN, .u.node = {i}};

        rc = apply(w, &ev, &w->c->err);
    }
    return rc;
}

static int begin(struct kai_world *w)
{
    struct kai_case *c = w->c;
    struct seats s = {.taken = kai_alloc(&c->mem, c->n_parts, sizeof(uint64_t))};
    uint32_t groups = 0;
    int rc = switch_off(w);

    for (uint32_t i = 0; i < c->n_jobs; i++)
        for (uint32_t k = 0; k < c->jobs[i].n_tasks; k++)
            groups += (uint32_t)json_array_size(c->jobs[i].tasks[k].gpu_groups);
    s.named = kai_alloc(&c->mem, groups + 1, sizeof(*s.named));
    for (uint32_t i = 0; i < c->n_units && rc == 0; i++) {
        w->now += STK_SECOND;
        rc = submit(w, i);
    }
    for (uint32_t i = 0; i < c->n_units && rc == 0; i++) {
        w->now += STK_SECOND;
        rc = c->units[i].runs ? start(w, &s, &c->units[i]) : 0;
    }
    rc = rc < 0 ? rc : block_stuck(w, &s);
    w->now += 60 * STK_SECOND;
    return rc;
}

int kai_world_new(struct kai_case *c, struct kai_world *w)
{
    int rc;

    *w = (struct kai_world){.c = c, .now = STK_SECOND};
    rc = make_core(c, w);
    return rc < 0 ? rc : begin(w);
}

void kai_world_free(struct kai_world *w)
{
    stk_core_free(w->core);
    w->core = NULL;
}

/* ---- running ---- */

static bool leased(const struct kai_world *w, uint32_t unit)
{
    uint32_t slot = w->c->units[unit].slot;

    return slot != KAI_NONE && w->s->jobs[slot].lease && w->s->jobs[slot].state != STK_JOB_STOPPING;
}

/* Followers are free to run while their gang does. Whether anything changed. */
static bool lead(struct kai_world *w)
{
    bool changed = false;

    for (uint32_t i = 0; i < w->c->n_units; i++) {
        const struct kai_unit *u = &w->c->units[i];
        enum stk_job_state state;

        if (u->leader == KAI_NONE || u->slot == KAI_NONE || w->c->jobs[u->job].barred)
            continue;
        state = w->s->jobs[u->slot].state;
        if (leased(w, u->leader) && state == STK_JOB_HELD) {
            changed |= job_event(w, STK_EV_RELEASE, u->slot) == 0;
        } else if (!leased(w, u->leader) && state == STK_JOB_WAITING) {
            changed |= job_event(w, STK_EV_HOLD, u->slot) == 0;
        } else if (!leased(w, u->leader) && leased(w, i)) {
            changed |= job_event(w, STK_EV_EVICT, u->slot) == 0 &&
                       job_event(w, STK_EV_EXITED, u->slot) == 0;
            w->moves++;
        }
    }
    return changed;
}

static int tick(struct kai_world *w)
{
    const struct stk_event ev = {.at = w->now, .type = STK_EV_TICK};

    return stk_core_tick_due(w->core, w->now) ? apply(w, &ev, &w->c->err) : 0;
}

/* One call of decide(), done at once; how much there was to do. */
static int step(struct kai_world *w)
{
    struct stk_event out[BATCH];
    uint32_t slots[BATCH];
    uint32_t n = stk_core_decide(w->core, w->now, out, BATCH);

    for (uint32_t i = 0; i < n; i++) {
        slots[i] = out[i].job.i;
        if (apply(w, &out[i], &w->c->err) < 0)
            return -EPROTO;
    }
    for (uint32_t i = 0; i < n; i++) {
        enum stk_event_type then = out[i].type == STK_EV_PLACE ? STK_EV_STARTED : STK_EV_EXITED;

        w->moves++;
        if (job_event(w, then, slots[i]) < 0)
            return -EPROTO;
    }
    return (int)n;
}

int kai_world_settle(struct kai_world *w)
{
    for (uint32_t i = 0; i < MOST_STEPS; i++) {
        bool led;
        int n;

        w->now += STK_SECOND;
        if (tick(w) < 0)
            return -EPROTO;
        led = lead(w);
        n = step(w);
        if (n < 0)
            return n;
        if (n == 0 && !led)
            return stk_core_sound(w->core, &w->c->err) ? 0 : -EPROTO;
    }
    return -ELOOP;
}

/* ---- looking ---- */

/* Where the task with this number in its unit is, by the pieces of its lease. */
static void find(const struct kai_world *w, const struct stk_job *job, uint32_t index,
                 uint32_t each, struct kai_task_now *now)
{
    for (uint32_t i = 0; i < job->n_pieces; i++) {
        const struct stk_piece *p = &w->s->pieces[job->first_piece + i];
        uint32_t tasks = p->tasks / (each ? each : 1);

        if (index >= tasks) {
            index -= tasks;
            continue;
        }
        now->node = w->c->part_node[p->node.i];
        now->mask = p->mask;
        return;
    }
}

struct kai_task_now kai_world_task(const struct kai_world *w, uint32_t job, uint32_t task)
{
    const struct kai_job *j = &w->c->jobs[job];
    const struct kai_task *t = &j->tasks[task];
    struct kai_task_now now = {.state = KAI_PENDING, .node = KAI_NONE};
    const struct kai_unit *u = t->unit == KAI_NONE ? NULL : &w->c->units[t->unit];
    uint32_t index = 0;

    if (t->state == KAI_STUCK)
        return (struct kai_task_now){.state = KAI_STUCK, .node = t->node};
    if (!u || u->slot == KAI_NONE || !w->s->jobs[u->slot].lease)
        return now;
    while (u->tasks[index] != task)
        index++;
    now.state = w->s->jobs[u->slot].state == STK_JOB_STOPPING ? KAI_RELEASING : KAI_RUNNING;
    find(w, &w->s->jobs[u->slot], index, j->demand.tasks, &now);
    return now;
}
