/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - the state there is, against the one that is expected, up to symmetry.
 *
 * Nodes that are equal may change places, if racks and zones stay together, and with them equal
 * jobs that ran on them; GPUs of a node may change places; so may equal tasks of a job. All ways
 * of exchanging nodes are tried, the given one first, up to a bound.
 */
#include "kai.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_TRIES 100000

struct matcher {
    const struct kai_world *w;
    struct kai_case *c;
    uint32_t *to;   /* node there -> node here; KAI_NONE */
    uint32_t *from; /* the other way */
    uint32_t *as;   /* job there -> job here */
    uint32_t tries;
    char *expected, *got;
    size_t size;
    bool bad;
};

static const char *const state_names[] = {"Pending", "Running", "Releasing", "StuckInReleasing"};

static void tell(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(char *buf, size_t size, const char *fmt, ...)
{
    size_t used = strlen(buf);
    va_list ap;

    if (size - used < 2)
        return;
    if (used > 0)
        used += (size_t)snprintf(buf + used, size - used, "; ");
    va_start(ap, fmt);
    if (used < size)
        (void)vsnprintf(buf + used, size - used, fmt, ap);
    va_end(ap);
}

/* ---- one expectation ---- */

struct want {
    const char *status, *node;
};

static struct want want_of(const json_t *o)
{
    struct want w = {kai_text(o, "Status"), kai_text(o, "NodeName")};

    if (w.node && !*w.node)
        w.node = NULL;
    return w;
}

static uint32_t node_named(const struct kai_case *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (strcmp(c->nodes[i].name, name) == 0)
            return i;
    return KAI_NONE;
}

/* "Binding" and the like are on the way to "Running". */
static bool status_is(const char *want, enum kai_state now)
{
    if (!want)
        return true;
    if (strcmp(want, "Bound") == 0 || strcmp(want, "Binding") == 0)
        return now == KAI_RUNNING;
    if (strcmp(want, "Pipelined") == 0)
        return now == KAI_PENDING;
    return strcmp(want, state_names[now]) == 0;
}

static bool is(const struct matcher *m, const struct want *want, const struct kai_task_now *now)
{
    uint32_t node = want->node ? node_named(m->c, want->node) : KAI_NONE;

    if (!status_is(want->status, now->state))
        return false;
    if (!want->node || now->state == KAI_PENDING)
        return true;
    return node != KAI_NONE && m->to[node] == now->node;
}

static void differ(struct matcher *m, const char *what, const struct want *want,
                   const struct kai_task_now *now)
{
    m->bad = true;
    tell(m->expected, m->size, "%s %s%s%s", what, want->status ? want->status : "?",
         want->node ? " on " : "", want->node ? want->node : "");
    tell(m->got, m->size, "%s %s%s%s", what, state_names[now->state],
         now->node != KAI_NONE ? " on " : "",
         now->node != KAI_NONE ? m->c->nodes[now->node].name : "");
}

static void match_job(struct matcher *m, const char *name, const json_t *o)
{
    const struct want want = want_of(o);
    uint32_t job = 0;

    while (job < m->c->n_jobs && strcmp(m->c->jobs[job].name, name) != 0)
        job++;
    if (job == m->c->n_jobs) {
        m->bad = true;
        tell(m->expected, m->size, "%s", name);
        tell(m->got, m->size, "no such job");
        return;
    }
    for (uint32_t i = 0; i < m->c->jobs[job].n_tasks; i++) {
        struct kai_task_now now = kai_world_task(m->w, m->as[job], i);

        if (!is(m, &want, &now)) {
            differ(m, name, &want, &now);
            return;
        }
    }
}

/* ---- tasks: equal ones of a job are exchanged ---- */

static bool same_set(const struct kai_task *a, const struct kai_task *b)
{
    const char *x = a->subgroup ? a->subgroup : "", *y = b->subgroup ? b->subgroup : "";

    return strcmp(x, y) == 0 && a->order == b->order &&
           (a->state == KAI_STUCK) == (b->state == KAI_STUCK);
}

static void match_tasks(struct matcher *m, uint32_t job, const json_t *all)
{
    const struct kai_job *j = &m->c->jobs[job];
    bool used[KAI_MAX_TASKS] = {false};
    char name[512];

    for (uint32_t pass = 0; pass < 2; pass++) /* those with a node first */
        for (uint32_t i = 0; i < j->n_tasks; i++) {
            struct kai_task_now now;
            struct want want;
            uint32_t k = 0;

            (void)snprintf(name, sizeof(name), "%s-%u", j->name, i);
            if (!json_object_get(all, name))
                continue;
            want = want_of(json_object_get(all, name));
            if ((want.node != NULL) != (pass == 0))
                continue;
            for (; k < j->n_tasks; k++) {
                now = kai_world_task(m->w, m->as[job], k);
                if (!used[k] && same_set(&j->tasks[i], &j->tasks[k]) && is(m, &want, &now))
                    break;
            }
            if (k < j->n_tasks) {
                used[k] = true;
                continue;
            }
            now = kai_world_task(m->w, m->as[job], i);
            differ(m, name, &want, &now);
        }
}

/* ---- GPUs that are shared ---- */

struct shared {
    const char *group;
    uint32_t node; /* there */
    uint64_t gpu;
};

static uint64_t gpu_of(const struct matcher *m, uint32_t job)
{
    struct kai_task_now now = kai_world_task(m->w, m->as[job], 0);

    return now.state == KAI_RUNNING ? now.mask : 0;
}

/* Who is expected to share a GPU does, and no others. */
static void match_groups(struct matcher *m, const json_t *expected)
{
    struct shared *list = kai_alloc(&m->c->mem, m->c->n_jobs + 1, sizeof(*list));
    uint32_t n = 0;

    for (uint32_t j = 0; j < m->c->n_jobs; j++) {
        const json_t *o = json_object_get(expected, m->c->jobs[j].name);
        const char *group = json_string_value(json_array_get(json_object_get(o, "GPUGroups"), 0));
        const char *node = kai_text(o, "NodeName");
        uint64_t gpu;

        if (!group || !node || json_is_true(json_object_get(o, "DontValidateGPUGroup")) ||
            m->c->jobs[j].demand.gpu_milli == 0 || m->c->jobs[j].n_tasks != 1)
            continue;
        gpu = gpu_of(m, j);
        if (!gpu)
            continue;
        for (uint32_t i = 0; i < n; i++) {
            bool same = strcmp(list[i].group, group) == 0;

            if (list[i].node != node_named(m->c, node) || same == (list[i].gpu == gpu))
                continue;
            m->bad = true;
            tell(m->expected, m->size, "%s on GPU \"%s\"", m->c->jobs[j].name, group);
            tell(m->got, m->size, "%s on %s GPU than others of that name", m->c->jobs[j].name,
                 same ? "another" : "the same");
        }
        list[n++] = (struct shared){group, node_named(m->c, node), gpu};
    }
}

/* ---- nodes ---- */

static void match_node(struct matcher *m, const char *name, const json_t *o)
{
    uint32_t node = node_named(m->c, name);
    uint64_t busy = 0, going = 0, all;
    double idle = kai_number(o, "IdleGPUs", 0), releasing = kai_number(o, "ReleasingGPUs", 0);
    int n_idle, n_going;

    if (node == KAI_NONE || m->c->nodes[node].gpus == 0)
        return;
    for (uint32_t j = 0; j < m->c->n_jobs; j++)
        for (uint32_t i = 0; i < m->c->jobs[j].n_tasks; i++) {
            struct kai_task_now now = kai_world_task(m->w, j, i);

            if (now.node == m->to[node])
                *(now.state == KAI_RELEASING ? &going : &busy) |= now.mask;
        }
    all = ~UINT64_C(0) >> (64 - m->c->nodes[node].gpus);
    n_idle = __builtin_popcountll(all & ~busy & ~going);
    n_going = __builtin_popcountll(going & ~busy);
    if (n_idle == (int)idle && n_going == (int)releasing)
        return;
    m->bad = true;
    tell(m->expected, m->size, "%s idle %g releasing %g", name, idle, releasing);
    tell(m->got, m->size, "%s idle %d releasing %d", name, n_idle, n_going);
}

static bool compare(struct matcher *m)
{
    json_t *jobs = json_object_get(m->c->scenario, "JobExpectedResults");
    const json_t *tasks = json_object_get(m->c->scenario, "TaskExpectedResults");
    json_t *nodes = json_object_get(m->c->scenario, "ExpectedNodesResources");
    const char *name;
    json_t *o;

    m->bad = false;
    m->expected[0] = m->got[0] = '\0';
    json_object_foreach(jobs, name, o) match_job(m, name, o);
    if (json_object_size(tasks) > 0)
        for (uint32_t j = 0; j < m->c->n_jobs; j++)
            match_tasks(m, j, tasks);
    match_groups(m, jobs);
    json_object_foreach(nodes, name, o) match_node(m, name, o);
    return !m->bad;
}

/* ---- exchanging nodes ---- */

static bool is_level(const struct kai_case *c, const char *label)
{
    for (uint32_t i = 0; i < c->n_levels; i++)
        if (strcmp(c->levels[i], label) == 0)
            return true;
    return false;
}

static bool equal_labels(const struct kai_case *c, json_t *a, const json_t *b)
{
    const char *label;
    json_t *v;

    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach(a, label, v)
    {
        const json_t *w = json_object_get(b, label);

        if (!w || (!is_level(c, label) && !json_equal(v, w)))
            return false;
    }
    return true;
}

static bool equal_nodes(const struct kai_case *c, uint32_t a, uint32_t b)
{
    const struct kai_node *x = &c->nodes[a], *y = &c->nodes[b];

    if (a == b)
        return true;
    if (c->hosts_differ || x->gpus != y->gpus || x->gpu_mem != y->gpu_mem || x->pods != y->pods ||
        x->cpu != y->cpu || x->mem != y->mem || x->n_mig != y->n_mig)
        return false;
    for (uint32_t i = 0; i < x->n_mig; i++)
        if (strcmp(x->mig[i].profile, y->mig[i].profile) != 0 || x->mig[i].count != y->mig[i].count)
            return false;
    return equal_labels(c, x->labels, y->labels);
}

/* Who is together there is together here. */
static bool keeps_places(const struct matcher *m, uint32_t node)
{
    const struct kai_node *n = m->c->nodes;

    for (uint32_t i = 0; i < node; i++)
        for (uint32_t l = 0; l < m->c->n_levels; l++) {
            bool there = n[i].place[l] && n[i].place[l] == n[node].place[l];
            uint32_t a = n[m->to[i]].place[l], b = n[m->to[node]].place[l];

            if (there != (a && a == b))
                return false;
        }
    return true;
}

static bool equal_demands(const struct stk_demand *a, const struct stk_demand *b)
{
    return a->tasks == b->tasks && a->gpus == b->gpus && a->gpu_types == b->gpu_types &&
           a->gpu_milli == b->gpu_milli && a->gpu_mem_mib == b->gpu_mem_mib &&
           a->cpu_milli == b->cpu_milli && a->mem_mib == b->mem_mib;
}

static bool equal_jobs(const struct kai_job *a, const struct kai_job *b)
{
    return a->queue == b->queue && a->priority == b->priority && a->critical == b->critical &&
           a->n_tasks == b->n_tasks && a->groups.n == b->groups.n &&
           equal_demands(&a->demand, &b->demand);
}

/* Whether b runs at the beginning where a does when nodes are exchanged. */
static bool stands_for(const struct matcher *m, const struct kai_job *a, const struct kai_job *b)
{
    if (!equal_jobs(a, b))
        return false;
    for (uint32_t i = 0; i < a->n_tasks; i++) {
        const struct kai_task *x = &a->tasks[i], *y = &b->tasks[i];

        if (x->state != y->state ||
            (x->state == KAI_RUNNING && x->node != KAI_NONE && m->to[x->node] != y->node))
            return false;
    }
    return true;
}

static bool exchange_jobs(struct matcher *m)
{
    bool used[KAI_MAX_JOBS] = {false};

    for (uint32_t j = 0; j < m->c->n_jobs; j++) {
        const struct kai_job *job = &m->c->jobs[j];
        uint32_t k = j;

        if (used[j] || !stands_for(m, job, job))
            for (k = 0; k < m->c->n_jobs; k++)
                if (!used[k] && stands_for(m, job, &m->c->jobs[k]))
                    break;
        if (k == m->c->n_jobs)
            return false;
        used[k] = true;
        m->as[j] = k;
    }
    return true;
}

static bool exchange(struct matcher *m, uint32_t node)
{
    if (node == m->c->n_nodes) {
        m->tries++;
        for (uint32_t j = 0; j < m->c->n_jobs; j++)
            m->as[j] = j;
        return compare(m) || (exchange_jobs(m) && compare(m));
    }
    for (uint32_t i = 0; i < m->c->n_nodes && m->tries < MOST_TRIES; i++) {
        uint32_t to = (node + i) % m->c->n_nodes;

        if (m->from[to] != KAI_NONE || !equal_nodes(m->c, node, to))
            continue;
        m->to[node] = to;
        m->from[to] = node;
        if (keeps_places(m, node) && exchange(m, node + 1))
            return true;
        m->from[to] = KAI_NONE;
    }
    return false;
}

bool kai_match(struct kai_world *w, char *expected, char *got, size_t size)
{
    struct kai_arena *mem = &w->c->mem;
    struct matcher m = {.w = w, .c = w->c, .expected = expected, .got = got, .size = size};
    char first_expected[4096], first_got[4096];

    m.to = kai_alloc(mem, m.c->n_nodes, sizeof(*m.to));
    m.from = kai_alloc(mem, m.c->n_nodes, sizeof(*m.from));
    m.as = kai_alloc(mem, m.c->n_jobs + 1, sizeof(*m.as));
    for (uint32_t i = 0; i < m.c->n_nodes; i++)
        m.to[i] = i;
    for (uint32_t i = 0; i < m.c->n_jobs; i++)
        m.as[i] = i;
    if (compare(&m))
        return true;
    (void)snprintf(first_expected, sizeof(first_expected), "%s", expected);
    (void)snprintf(first_got, sizeof(first_got), "%s", got);
    memset(m.from, 0xff, m.c->n_nodes * sizeof(*m.from));
    if (exchange(&m, 0))
        return true;
    (void)snprintf(expected, size, "%s", first_expected);
    (void)snprintf(got, size, "%s", first_got);
    return false;
}
