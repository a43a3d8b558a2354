/* SPDX-License-Identifier: Apache-2.0 */
#include "core/settings.h"

#include <string.h>

#include "core/leave.h"
#include "core/save.h"
#include "core/tenant.h"
#include "core/usage.h"
#include "core/verbs.h"

static int no_memory(struct stk_err *err)
{
    return stk_err_set(err, -ENOMEM, "out of memory for settings");
}

static void *copy(const struct stk_mem *m, const void *from, size_t n, size_t size)
{
    void *to = m->resize(m->ctx, NULL, 0, (n + 1) * size);

    if (to && n > 0)
        memcpy(to, from, n * size);
    return to;
}

static void drop(const struct stk_mem *m, void *p, size_t n, size_t size)
{
    if (p)
        (void)m->resize(m->ctx, p, (n + 1) * size, 0);
}

int stk_settings_keep(struct stk_state *s, const struct stk_core_config *cfg, struct stk_err *err)
{
    const struct stk_mem *m = &s->mem;
    struct stk_settings *t = m->resize(m->ctx, NULL, 0, sizeof(*t));

    if (!t)
        return no_memory(err);
    s->settings = t;
    t->cfg = *cfg;
    t->params = *cfg->params;
    t->nodes = copy(m, cfg->nodes, cfg->n_nodes, sizeof(*t->nodes));
    t->tenants = copy(m, cfg->tenants, cfg->n_tenants, sizeof(*t->tenants));
    t->queues = copy(m, cfg->queues, cfg->n_queues, sizeof(*t->queues));
    return t->nodes && t->tenants && t->queues ? 0 : no_memory(err);
}

void stk_settings_memory(struct stk_state *s, struct stk_visit *v)
{
    struct stk_settings *t;

    if (v->copies)
        STK_BLOCK(v, s->settings, 1);
    t = s->settings;
    if (!t)
        return;
    STK_BLOCK(v, t->nodes, t->cfg.n_nodes + 1);
    STK_BLOCK(v, t->tenants, t->cfg.n_tenants + 1);
    STK_BLOCK(v, t->queues, t->cfg.n_queues + 1);
    STK_BLOCK(v, t->set, t->cap);
    if (!v->copies)
        STK_BLOCK(v, s->settings, 1);
}

int32_t stk_settings_shift(const struct stk_state *s, uint32_t job)
{
    const uint32_t of[] = {
        [STK_SET_OF_KIND] = s->jobs[job].kind, [STK_SET_OF_QUEUE] = s->terms[job].queue};
    const struct stk_settings *t = s->settings;
    int32_t sum = 0;

    for (uint32_t i = 0; t && i < t->n; i++)
        if (t->set[i].kind == STK_SET_PRIORITY && t->set[i].row == of[t->set[i].column])
            sum += (int32_t)t->set[i].value;
    return sum;
}

static stk_time ahead_of(const struct stk_set *set, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (set[i].kind == STK_SET_CLOCK)
            return set[i].value;
    return 0;
}

stk_time stk_settings_ahead(const struct stk_state *s)
{
    return ahead_of(s->settings->set, s->settings->n);
}

int64_t stk_settings_utilization(const struct stk_state *s, uint32_t pool)
{
    uint64_t up = 0, used = 0;

    for (uint32_t p = 0; p < s->n_pools; p++) {
        const struct stk_pool *q = &s->pools[p];

        if (pool != STK_NONE && p != pool)
            continue;
        up += q->gpus_up;
        used += q->gpus_up - q->gpus_free - q->gpus_idle_off;
    }
    return up > 0 ? (int64_t)(used * 1000 / up) : 0;
}

stk_time stk_settings_wait(const struct stk_state *s, uint32_t pool, stk_time now)
{
    stk_time first = now;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_WAITING && (pool == STK_NONE || j->pool == pool) &&
            j->queued < first)
            first = j->queued;
    }
    return now - first;
}

/* ---- a core with what is in force ---- */

static const struct stk_param *find_in(const struct stk_param *table, const char *name)
{
    for (const struct stk_param *p = table; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

static const struct stk_param *find_param(const struct stk_core_config *c, const char *name)
{
    const struct stk_param *const tables[] = {
        c->order->params,   c->order->shared,   c->backfill->params, c->place->params,
        c->preempt->params, c->preempt->shared, c->admit->params,    stk_core_params};
    const struct stk_param *p = NULL;

    for (size_t i = 0; !p && i < sizeof(tables) / sizeof(*tables); i++)
        p = find_in(tables[i], name);
    return p;
}

/* What a core is made from, and what may be changed in it. */
struct making {
    struct stk_core_config cfg;
    struct stk_params params;
    struct stk_node_spec *nodes;
    struct stk_tenant_spec *tenants;
    struct stk_queue_spec *queues;
};

static void put_tenant(struct stk_tenant_spec *t, const struct stk_set *e)
{
    uint64_t value = (uint64_t)e->value;

    if (e->column == STK_SET_CPUS)
        t->cpu_limit = value;
    else if (e->column == STK_SET_MEM)
        t->mem_limit = value;
    else if (e->kind == STK_SET_LIMIT)
        *(e->column ? &t->type_limit[e->column - 1] : &t->limit) = value;
    else if (e->kind == STK_SET_GUARANTEE)
        *(e->column ? &t->type_guarantee[e->column - 1] : &t->guarantee) = value;
    else if (e->kind == STK_SET_WEIGHT)
        t->weight = (uint32_t)value;
    else
        t->keep_up = (uint32_t)value;
}

/* -1 is no limit, in each of their ways. */
static void put_queue(struct stk_queue_spec *q, const struct stk_set *e)
{
    struct stk_queue_limit *of = &q->limit[e->column / 2 % STK_QUEUE_OF_MAX];

    if (e->column == STK_SET_JOB_MILLI)
        q->job_milli = (uint64_t)e->value;
    else if (e->column == STK_SET_JOB_SECONDS)
        q->job_time = e->value < 0 ? 0 : e->value * STK_SECOND;
    else if (e->column % 2)
        of->jobs = (uint32_t)e->value;
    else
        of->milli = (uint64_t)e->value;
}

static int put_one(struct making *k, const struct stk_set *e, struct stk_err *err)
{
    const struct stk_param *p;

    switch (e->kind) {
    case STK_SET_PARAM:
        p = find_param(&k->cfg, e->name);
        if (!p)
            return stk_err_set(err, -EINVAL, "no policy in use has a parameter \"%.40s\"", e->name);
        return stk_params_set(&k->params, p, e->text, err);
    case STK_SET_LIMIT:
    case STK_SET_GUARANTEE:
    case STK_SET_WEIGHT:
    case STK_SET_KEEP_UP:
        put_tenant(&k->tenants[e->row], e);
        return 0;
    case STK_SET_QUEUE:
        put_queue(&k->queues[e->row], e);
        return 0;
    case STK_SET_PRIORITY:
    case STK_SET_POOL:
    case STK_SET_MOVE:
    case STK_SET_CLOCK:
    case STK_SET_SKIP:
    case STK_SET_KIND_MAX:
        break;
    }
    return 0;
}

/* Nodes are where they are; those that are to be somewhere else and are empty are there. */
static void put_pools(const struct stk_state *s, const struct stk_set *set, uint32_t n, bool loads,
                      struct stk_node_spec *nodes)
{
    for (uint32_t i = 0; i < n; i++)
        if (set[i].kind == STK_SET_POOL)
            nodes[set[i].row].pool.i = (uint32_t)set[i].value;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (nodes[i].pool.i != s->nodes[i].pool && (loads || !stk_leave_ready(s, i)))
            nodes[i].pool.i = s->nodes[i].pool;
}

/* A core without jobs, made as the first was but for what is set. It has no settings yet. 'loads':
 * what is on its nodes will be loaded. */
static int make(const struct stk_state *s, const struct stk_set *set, uint32_t n, bool loads,
                struct stk_core **ret, struct stk_err *err)
{
    const struct stk_settings *t = s->settings;
    const struct stk_mem *m = &s->mem;
    struct making k = {.cfg = t->cfg, .params = t->params};
    int rc = 0;

    k.nodes = copy(m, t->nodes, t->cfg.n_nodes, sizeof(*k.nodes));
    k.tenants = copy(m, t->tenants, t->cfg.n_tenants, sizeof(*k.tenants));
    k.queues = copy(m, t->queues, t->cfg.n_queues, sizeof(*k.queues));
    if (!k.nodes || !k.tenants || !k.queues)
        rc = no_memory(err);
    k.cfg.queues = k.queues;
    k.cfg.nodes = k.nodes;
    k.cfg.tenants = k.tenants;
    k.cfg.params = &k.params;
    k.cfg.layouts = s->layouts;
    k.cfg.mix = s->mix_given ? s->mix : NULL;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = put_one(&k, &set[i], err);
    if (rc == 0)
        put_pools(s, set, n, loads, k.nodes);
    rc = rc < 0 ? rc : stk_core_make(&k.cfg, m, ret, err);
    drop(m, k.nodes, t->cfg.n_nodes, sizeof(*k.nodes));
    drop(m, k.tenants, t->cfg.n_tenants, sizeof(*k.tenants));
    drop(m, k.queues, t->cfg.n_queues, sizeof(*k.queues));
    return rc;
}

/* The made core takes the place of the first, settings included; the first goes. */
static void replace(struct stk_core *c, struct stk_core *made)
{
    struct stk_state old = c->s;

    c->s = made->s;
    made->s = old;
    made->s.settings = NULL;
    stk_core_free(made);
}

/* ---- the event ---- */

static int check_tenant(const struct stk_state *s, const struct stk_set *e, struct stk_err *err)
{
    bool means =
        e->kind == STK_SET_LIMIT && (e->column == STK_SET_CPUS || e->column == STK_SET_MEM);
    static const int64_t most[STK_SET_KIND_MAX] = {
        [STK_SET_WEIGHT] = STK_MAX_WEIGHT, [STK_SET_KEEP_UP] = STK_MAX_KEEP_UP};

    if (e->row >= s->n_tenants)
        return stk_err_set(err, -EINVAL, "there is no tenant %u (there are %u)", e->row,
                           s->n_tenants);
    if (e->column >= s->n_tenant_cols && !means)
        return stk_err_set(err, -EINVAL, "there are no GPUs of type %u", e->column - 1);
    if (most[e->kind] ? e->column || e->value < 0 || e->value > most[e->kind]
                      : e->value < -1 || e->value > (int64_t)STK_MAX_QUOTA)
        return stk_err_set(err, -EINVAL, "a tenant's %s of %lld is out of range",
                           stk_set_kind_name(e->kind), (long long)e->value);
    return 0;
}

static int check_queue(const struct stk_state *s, const struct stk_set *e, struct stk_err *err)
{
    int64_t most = e->column == STK_SET_JOB_SECONDS                 ? STK_MAX_DURATION / STK_SECOND
                   : e->column < STK_SET_JOB_MILLI && e->column % 2 ? INT32_MAX
                                                                    : (int64_t)STK_MAX_QUOTA;

    if (e->row >= s->n_queues)
        return stk_err_set(err, -EINVAL, "there is no queue %u (there are %u)", e->row,
                           s->n_queues);
    if (e->column >= STK_SET_QUEUE_MAX || e->value < -1 || e->value > most)
        return stk_err_set(err, -EINVAL, "a queue's limit of %lld is out of range",
                           (long long)e->value);
    return 0;
}

static int check_priority(const struct stk_state *s, const struct stk_set *e, struct stk_err *err)
{
    bool of_queue = e->column == STK_SET_OF_QUEUE;

    if (e->column > STK_SET_OF_QUEUE || (of_queue ? e->row >= s->n_queues : e->row >= STK_KIND_MAX))
        return stk_err_set(err, -EINVAL, "there is no kind of jobs, or queue, %u", e->row);
    if (e->value < -STK_MAX_SHIFT || e->value > STK_MAX_SHIFT)
        return stk_err_set(err, -EINVAL, "priorities are shifted by at most %d, got %lld",
                           STK_MAX_SHIFT, (long long)e->value);
    return 0;
}

static int check_pool(const struct stk_state *s, const struct stk_set *e, struct stk_err *err)
{
    if (e->row >= s->n_nodes)
        return stk_err_set(err, -EINVAL, "there is no node %u", e->row);
    if (e->column || e->value < 0 || e->value >= s->n_pools)
        return stk_err_set(err, -EINVAL, "node %u: there is no pool %lld", e->row,
                           (long long)e->value);
    if (s->nodes[e->row].aggregate || s->pools[e->value].aggregate)
        return stk_err_set(err, -EINVAL,
                           "node %u: where GPUs are only counted, nodes do not change pools",
                           e->row);
    return 0;
}

static int check_move(const struct stk_state *s, const struct stk_set *e, struct stk_err *err)
{
    bool plain = !e->row && !e->column && !e->value && !e->clear && !e->evict;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (plain && s->nodes[i].leaving && stk_leave_ready(s, i))
            return 0;
    return stk_err_set(err, -EINVAL, "no node is ready to go to another pool");
}

static int check_clock(const struct stk_set *e, struct stk_err *err)
{
    if (e->row || e->column || e->value < 0 || e->value > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "time is 0 s to 100 years ahead of the wall clock");
    return 0;
}

static int check_skip(const struct stk_state *s, const struct stk_set *e, struct stk_err *err)
{
    if (e->row || e->column || e->clear || e->value < 0 || e->value > s->now)
        return stk_err_set(err, -EINVAL, "time jumps ahead, and not by more than it is");
    return 0;
}

int stk_settings_check(const struct stk_state *s, const struct stk_set *e, struct stk_err *err)
{
    bool named = e->kind == STK_SET_PARAM;
    bool text = memchr(e->name, '\0', sizeof(e->name)) && memchr(e->text, '\0', sizeof(e->text));

    if (named ? !text || e->row || e->column || e->value : e->name[0] || e->text[0])
        return stk_err_set(err, -EINVAL, "a parameter has a name and a value of at most %d bytes",
                           STK_MAX_PARAM_TEXT - 1);
    if (e->evict && e->kind != STK_SET_POOL)
        return stk_err_set(err, -EINVAL, "only nodes are cleared of jobs");
    switch (e->kind) {
    case STK_SET_PARAM:
        return 0;
    case STK_SET_LIMIT:
    case STK_SET_GUARANTEE:
    case STK_SET_WEIGHT:
    case STK_SET_KEEP_UP:
        return check_tenant(s, e, err);
    case STK_SET_QUEUE:
        return check_queue(s, e, err);
    case STK_SET_PRIORITY:
        return check_priority(s, e, err);
    case STK_SET_POOL:
        return check_pool(s, e, err);
    case STK_SET_MOVE:
        return check_move(s, e, err);
    case STK_SET_CLOCK:
        return check_clock(e, err);
    case STK_SET_SKIP:
        return check_skip(s, e, err);
    case STK_SET_KIND_MAX:
        break;
    }
    return stk_err_set(err, -EINVAL, "there is no setting %u", (unsigned)e->kind);
}

/* A node that is to be where it was at first, and is there, or goes there with this change. */
static bool at_home(const struct stk_state *s, const struct stk_set *e)
{
    uint32_t home = s->settings->nodes[e->row].pool.i;

    return e->value == home && (s->nodes[e->row].pool == home || stk_leave_ready(s, e->row));
}

/* What is in force with this one; 'to' has room for one more. A node whose pool is cleared goes
 * back in the way it came, with evictions or without: until then that is remembered. */
static uint32_t with(const struct stk_state *s, const struct stk_set *e, struct stk_set *to)
{
    const struct stk_settings *t = s->settings;
    struct stk_set last = *e;
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n; i++)
        if (!stk_set_same(&t->set[i], e) &&
            !(t->set[i].kind == STK_SET_POOL && at_home(s, &t->set[i])))
            to[n++] = t->set[i];
    if (e->kind == STK_SET_POOL && e->clear) {
        last.clear = false;
        last.value = t->nodes[e->row].pool.i;
    }
    if (last.kind == STK_SET_MOVE || last.kind == STK_SET_SKIP || last.clear ||
        (e->clear && at_home(s, &last)))
        return n;
    to[n++] = last;
    return n;
}

static int change(struct stk_core *c, struct stk_set *set, uint32_t n, uint32_t cap,
                  stk_time skipped, struct stk_err *err)
{
    struct stk_settings *t = c->s.settings;
    const struct stk_settings old = *t;
    struct stk_bytes bytes = {.mem = &c->s.mem};
    struct stk_core *made = NULL;
    stk_time faded;
    int rc;

    faded = stk_usage_skip(&c->s, skipped);
    rc = stk_core_save(c, &bytes, err);
    (void)stk_usage_skip(&c->s, -faded);
    rc = rc < 0 ? rc : make(&c->s, set, n, false, &made, err);
    if (rc == 0) {
        made->s.settings = t;
        t->set = set;
        t->n = n;
        t->cap = cap;
        rc = stk_load_again(made, bytes.data, bytes.n, ahead_of(set, n) - ahead_of(old.set, old.n),
                            skipped, err);
    }
    stk_bytes_done(&bytes);
    if (rc == 0) {
        replace(c, made);
        return 0;
    }
    *t = old;
    if (made)
        made->s.settings = NULL;
    stk_core_free(made);
    return rc;
}

int stk_settings_set(struct stk_core *c, const struct stk_set *e, struct stk_err *err)
{
    const struct stk_mem mem = c->s.mem;
    struct stk_settings *t = c->s.settings;
    struct stk_set *was = t->set, *set;
    uint32_t cap = t->n + 1, was_cap = t->cap;
    int rc = stk_settings_check(&c->s, e, err);

    if (rc == 0 && t->n >= STK_MAX_SETS)
        rc = stk_err_set(err, -EINVAL, "at most %d settings at a time", STK_MAX_SETS);
    if (rc < 0)
        return rc;
    set = mem.resize(mem.ctx, NULL, 0, cap * sizeof(*set));
    if (!set)
        return no_memory(err);
    rc = change(c, set, with(&c->s, e, set), cap, e->kind == STK_SET_SKIP ? e->value : 0, err);
    if (rc < 0)
        (void)mem.resize(mem.ctx, set, cap * sizeof(*set), 0);
    else if (was)
        (void)mem.resize(mem.ctx, was, was_cap * sizeof(*was), 0);
    return rc;
}

int stk_settings_remake(struct stk_core *c, uint32_t n, struct stk_err *err)
{
    struct stk_settings *t = c->s.settings;
    struct stk_core *made = NULL;
    int rc = make(&c->s, t->set, n, true, &made, err);

    if (rc < 0)
        return rc;
    t->n = n;
    made->s.settings = t;
    replace(c, made);
    return 0;
}
