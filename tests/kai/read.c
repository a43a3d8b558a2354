/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - one entry of the file as a kai_case. What the tests there leave out has the value that
 * their builders give it. */
#include "kai.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_CPU 20000.0 /* of a node that says nothing; in the units jobs ask in */
#define NODE_MEM 20e9
#define TASK_CPU 1.0
#define TASK_MEM 1e9
#define GPU_MEM 100
#define MEM_UNIT 1000.0 /* bytes in one of our MiB: what is asked for there is often less */
#define NO_EVICT 100    /* priorities from here on are never evicted */
#define MINUTE 60.0
#define MEGABYTE 1e6 /* what memory of queues is in there */
#define LARGEST 1e15 /* of limits */

struct kai_block {
    struct kai_block *next;
};

void *kai_alloc(struct kai_arena *a, size_t n, size_t size)
{
    struct kai_block *b =
        n <= SIZE_MAX / 2 / (size ? size : 1) ? calloc(1, sizeof(*b) + n * size) : NULL;

    if (!b) {
        (void)fprintf(stderr, "kai_replay: out of memory\n");
        exit(1);
    }
    b->next = a->first;
    a->first = b;
    return b + 1;
}

void kai_free_all(struct kai_arena *a)
{
    for (struct kai_block *b = a->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->first = NULL;
}

double kai_number(const json_t *o, const char *key, double absent)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : absent;
}

const char *kai_text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static int wrong(struct kai_case *c, const char *what, const char *name)
{
    return stk_err_set(&c->err, -EINVAL, "%s%s%.80s", what, name ? ": " : "", name ? name : "");
}

static int unsupported(struct kai_case *c, const char *what)
{
    return stk_err_set(&c->err, KAI_UNSUPPORTED, "%.100s", what);
}

/* A whole number from 0 to 'most'. */
static int whole(struct kai_case *c, const json_t *o, const char *key, uint32_t absent,
                 uint32_t most, uint32_t *ret)
{
    double v = kai_number(o, key, absent);

    if (!(v >= 0 && v <= most && v == floor(v)))
        return wrong(c, "not a whole number that makes sense", key);
    *ret = (uint32_t)v;
    return 0;
}

static bool says(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return v && !json_is_null(v) && !json_is_false(v) &&
           !(json_is_string(v) && !*json_string_value(v)) &&
           !(json_is_array(v) && json_array_size(v) == 0) &&
           !(json_is_object(v) && json_object_size(v) == 0);
}

/* ---- nodes ---- */

static uint32_t kind(struct kai_case *c, const char *profile, const char *host)
{
    uint32_t i;

    if (!c->hosts_differ)
        host = NULL;
    for (i = 0; i < c->n_kinds; i++)
        if (strcmp(c->kinds[i], profile) == 0 &&
            (c->kind_host[i] == host || (host && strcmp(c->kind_host[i], host) == 0)))
            return i;
    if (i == STK_MAX_GPU_TYPES)
        return KAI_NONE;
    c->kinds[i] = profile;
    c->kind_host[i] = host;
    c->n_kinds++;
    return i;
}

/* "nvidia.com/mig-1g.10gb": one slice. */
static uint32_t slices_of(const char *profile)
{
    const char *at = strstr(profile, "mig-");
    long n = at ? strtol(at + 4, NULL, 10) : 0;

    return n >= 1 && n <= 8 ? (uint32_t)n : 0;
}

static int read_mig(struct kai_case *c, struct kai_node *n, json_t *mig)
{
    const char *profile;
    json_t *count;

    n->mig = kai_alloc(&c->mem, json_object_size(mig) + 1, sizeof(*n->mig));
    json_object_foreach(mig, profile, count)
    {
        struct kai_mig *m = &n->mig[n->n_mig++];

        *m = (struct kai_mig){.profile = profile, .slices = slices_of(profile)};
        if (!m->slices || whole(c, mig, profile, 0, STK_MAX_NODE_GPUS, &m->count) < 0)
            return wrong(c, "MIG instances of a node", profile);
    }
    return 0;
}

static int read_node(struct kai_case *c, const char *name, const json_t *o, struct kai_node *n)
{
    int rc;

    *n = (struct kai_node){.name = name, .labels = json_object_get(o, "Labels")};
    n->cpu = kai_number(o, "CPUMillis", 0) > 0 ? kai_number(o, "CPUMillis", 0) : NODE_CPU;
    n->mem = kai_number(o, "CPUMemory", 0) > 0 ? kai_number(o, "CPUMemory", 0) : NODE_MEM;
    rc = whole(c, o, "GPUs", 0, STK_MAX_NODE_GPUS, &n->gpus);
    rc = rc < 0 ? rc : whole(c, o, "GPUMemory", 0, STK_MAX_GPU_MEM_MIB, &n->gpu_mem);
    rc = rc < 0 ? rc : whole(c, o, "MaxTaskNum", 0, 1000000, &n->pods);
    if (rc < 0)
        return rc;
    n->gpu_mem = n->gpu_mem ? n->gpu_mem : GPU_MEM;
    return read_mig(c, n, json_object_get(o, "MigInstances"));
}

static void add_part(struct kai_case *c, uint32_t node, uint32_t type, uint32_t gpus)
{
    const struct kai_node *n = &c->nodes[node];
    double cpu = n->cpu * 1000, mem = n->mem / MEM_UNIT;

    c->part_node[c->n_parts] = node;
    c->parts[c->n_parts++] = (struct stk_node_spec){
        .gpu_type = type,
        .gpus = gpus,
        .gpu_mem_mib = n->gpu_mem,
        .cpu_milli = cpu < UINT32_MAX ? (uint32_t)cpu : UINT32_MAX,
        .mem_mib = mem < UINT32_MAX ? (uint32_t)mem : UINT32_MAX,
        .resource = {n->pods ? n->pods : 110},
        .rack = n->place[0],
        .zone = n->place[1],
        .region = n->place[2],
    };
}

/* A node of the core for its GPUs, and one for each profile of MIG instances. */
static int make_parts(struct kai_case *c)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < c->n_nodes; i++)
        most += c->nodes[i].n_mig + 1;
    most += KAI_SPARE;
    c->parts = kai_alloc(&c->mem, most, sizeof(*c->parts));
    c->part_node = kai_alloc(&c->mem, most, sizeof(*c->part_node));
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        struct kai_node *n = &c->nodes[i];

        n->first_part = c->n_parts;
        for (uint32_t k = 0; k <= n->n_mig; k++) {
            const struct kai_mig *m = k > 0 ? &n->mig[k - 1] : NULL;
            uint32_t gpus = m ? m->count * m->slices : n->gpus;
            uint32_t type = kind(c, m ? m->profile : "", n->name);

            if (type == KAI_NONE || gpus > STK_MAX_NODE_GPUS)
                return unsupported(c, "too many kinds of GPUs, or GPUs on a node");
            if (gpus > 0 || !m)
                add_part(c, i, type, gpus);
        }
        n->n_parts = c->n_parts - n->first_part;
    }
    c->first_spare = c->n_parts;
    return 0;
}

/* ---- topology ---- */

static const char *const host_label = "kubernetes.io/hostname";

uint32_t kai_level(const struct kai_case *c, const char *label)
{
    if (strcmp(label, host_label) == 0)
        return STK_AT_NODE;
    for (uint32_t i = 0; i < c->n_levels; i++)
        if (strcmp(c->levels[i], label) == 0)
            return STK_AT_RACK + i;
    return 0;
}

/* By the names of the domains they are in, from the largest to this one. Two nodes are in one
 * domain when they are in one of all domains around it, too. */
static int compare_domains(const struct kai_case *c, const struct kai_node *a,
                           const struct kai_node *b, uint32_t level)
{
    for (uint32_t i = c->n_levels; i-- > level;) {
        int by = strcmp(kai_text(a->labels, c->levels[i]), kai_text(b->labels, c->levels[i]));

        if (by != 0)
            return by;
    }
    return 0;
}

static bool has_domain(const struct kai_case *c, const struct kai_node *n, uint32_t level)
{
    for (uint32_t i = level; i < c->n_levels; i++)
        if (!kai_text(n->labels, c->levels[i]))
            return false;
    return true;
}

static bool before(const struct kai_case *c, const struct kai_node *a, const struct kai_node *b)
{
    if (!has_domain(c, a, 0) || !has_domain(c, b, 0))
        return has_domain(c, a, 0) && !has_domain(c, b, 0);
    return compare_domains(c, a, b, 0) < 0;
}

/* Nodes and domains stand in the order of the domains' names. */
static void find_places(struct kai_case *c)
{
    for (uint32_t i = 1; i < c->n_nodes; i++)
        for (uint32_t k = i; k > 0 && before(c, &c->nodes[k], &c->nodes[k - 1]); k--) {
            struct kai_node t = c->nodes[k];

            c->nodes[k] = c->nodes[k - 1];
            c->nodes[k - 1] = t;
        }
    for (uint32_t level = 0; level < c->n_levels; level++)
        for (uint32_t i = 0; i < c->n_nodes; i++) {
            struct kai_node *n = &c->nodes[i];

            n->place[level] = has_domain(c, n, level);
            for (uint32_t k = 0; k < c->n_nodes && n->place[level]; k++)
                n->place[level] += has_domain(c, &c->nodes[k], level) &&
                                   compare_domains(c, &c->nodes[k], n, level) < 0;
        }
}

static int read_topology(struct kai_case *c)
{
    const json_t *all = json_object_get(c->scenario, "Topologies");
    const json_t *levels =
        json_object_get(json_object_get(json_array_get(all, 0), "Spec"), "Levels");
    size_t n = json_array_size(levels);

    if (json_array_size(all) > 1)
        return unsupported(c, "several topologies");
    for (size_t i = n; i-- > 0;) {
        const char *label = kai_text(json_array_get(levels, i), "NodeLabel");

        if (!label)
            return wrong(c, "a level of the topology without NodeLabel", NULL);
        if (strcmp(label, host_label) == 0)
            continue;
        if (c->n_levels == KAI_MAX_LEVELS)
            return unsupported(c, "a topology of more than three levels");
        c->levels[c->n_levels++] = label;
    }
    return 0;
}

static int read_nodes(struct kai_case *c)
{
    json_t *nodes = json_object_get(c->scenario, "Nodes");
    const char *name;
    json_t *o;
    int rc = 0;

    if (json_object_size(nodes) < 1 || json_object_size(nodes) > KAI_MAX_NODES)
        return wrong(c, "Nodes: 1 to 512 must be there", NULL);
    c->nodes = kai_alloc(&c->mem, json_object_size(nodes), sizeof(*c->nodes));
    json_object_foreach(nodes, name, o)
    {
        rc = rc < 0 ? rc : read_node(c, name, o, &c->nodes[c->n_nodes++]);
    }
    rc = rc < 0 ? rc : read_topology(c);
    if (rc < 0)
        return rc;
    find_places(c);
    return make_parts(c);
}

/* ---- queues ---- */

static uint32_t find_queue(const struct kai_case *c, const char *name)
{
    for (uint32_t i = 0; name && i < c->n_queues; i++)
        if (strcmp(c->queues[i].name, name) == 0)
            return i;
    return KAI_NONE;
}

static double seconds_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    if (json_is_object(v)) /* {"Duration": nanoseconds} */
        return kai_number(v, "Duration", 0) / 1e9;
    return json_is_number(v) ? json_number_value(v) / 1e9 : 0;
}

static void read_queue(struct kai_queue *q, const json_t *o, bool department)
{
    double limit = kai_number(o, "MaxAllowedGPUs", 0), own = kai_number(o, "DeservedGPUs", 0);

    *q = (struct kai_queue){
        .name = kai_text(o, "Name"),
        .parent_name = kai_text(o, "ParentQueue"),
        .parent = KAI_NONE,
        .guarantee = own,
        .limit = limit > 0 ? limit : -1,
        .weight = department ? own : kai_number(o, "GPUOverQuotaWeight", 0),
        .cpu_guarantee = kai_number(o, "DeservedCPUs", -1),
        .cpu_limit = kai_number(o, "MaxAllowedCPUs", -1),
        .mem_guarantee = kai_number(o, "DeservedMemory", -1),
        .mem_limit = kai_number(o, "MaxAllowedMemory", -1) * MEGABYTE / MEM_UNIT,
        .priority = (int)kai_number(o, "Priority", 100),
        .reclaim_min_s = seconds_of(o, "ReclaimMinRuntime"),
        .preempt_min_s = seconds_of(o, "PreemptMinRuntime"),
        .leaf = true,
    };
    if (q->cpu_guarantee == 0 || q->mem_guarantee == 0)
        q->guarantee = 0; /* guarantees are of GPUs, and every job needs CPU and memory, too */
}

/* Whoever is above another comes before it. */
static int link_queues(struct kai_case *c)
{
    for (uint32_t i = 0; i < c->n_queues; i++) {
        struct kai_queue *q = &c->queues[i];

        if (!q->name)
            return wrong(c, "a queue without Name", NULL);
        if (find_queue(c, q->name) != i)
            return wrong(c, "two queues have the same name", q->name);
        if (q->cpu_limit > LARGEST || q->mem_limit > LARGEST)
            return wrong(c, "MaxAllowedCPUs, MaxAllowedMemory", q->name);
        if (q->parent_name && *q->parent_name)
            q->parent = find_queue(c, q->parent_name);
        if (q->parent != KAI_NONE)
            c->queues[q->parent].leaf = false;
    }
    for (uint32_t i = 0; i < c->n_queues; i++) {
        uint32_t depth = 0;

        for (uint32_t at = i; at != KAI_NONE; at = c->queues[at].parent)
            if (++depth > STK_MAX_TENANT_DEPTH)
                return unsupported(c, "more than 8 levels of queues, or a circle of them");
    }
    return 0;
}

static int read_queues(struct kai_case *c)
{
    const json_t *queues = json_object_get(c->scenario, "Queues");
    const json_t *departments = json_object_get(c->scenario, "Departments");
    size_t n = json_array_size(queues), m = json_array_size(departments);

    if (n + m < 1 || n + m > KAI_MAX_QUEUES)
        return wrong(c, "Queues: 1 to 512 must be there", NULL);
    c->queues = kai_alloc(&c->mem, n + m, sizeof(*c->queues));
    for (size_t i = 0; i < m; i++)
        read_queue(&c->queues[c->n_queues++], json_array_get(departments, i), true);
    for (size_t i = 0; i < n; i++)
        read_queue(&c->queues[c->n_queues++], json_array_get(queues, i), false);
    return link_queues(c);
}

/* ---- jobs ---- */

static uint32_t find_node(const struct kai_case *c, const char *name)
{
    for (uint32_t i = 0; name && *name && i < c->n_nodes; i++)
        if (strcmp(c->nodes[i].name, name) == 0)
            return i;
    return KAI_NONE;
}

static int read_state(struct kai_case *c, const char *s, enum kai_state *ret)
{
    static const struct {
        const char *name;
        enum kai_state state;
    } all[] = {{"Pending", KAI_PENDING},     {"Running", KAI_RUNNING},
               {"Bound", KAI_RUNNING},       {"Binding", KAI_RUNNING},
               {"Releasing", KAI_RELEASING}, {"StuckInReleasing", KAI_STUCK},
               {"Gated", KAI_PENDING},       {"Pipelined", KAI_PENDING}};

    for (size_t i = 0; s && i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i].name, s) == 0) {
            *ret = all[i].state;
            return 0;
        }
    return stk_err_set(&c->err, KAI_UNSUPPORTED, "tasks in state %.40s", s ? s : "(none)");
}

static int read_task(struct kai_case *c, struct kai_job *j, const json_t *o, struct kai_task *t)
{
    static const char *const unknown[] = {"ResourceClaimNames", "ResourceClaimTemplates",
                                          "PodAffinityLabels", "PodAffinityTopologyKey",
                                          "PodAntiAffinityTopologyKey"};

    *t = (struct kai_task){.unit = KAI_NONE};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        if (says(o, unknown[i]))
            return unsupported(c, unknown[i]);
    t->node = find_node(c, kai_text(o, "NodeName"));
    t->gpu_groups = json_object_get(o, "GPUGroups");
    t->subgroup = kai_text(o, "SubGroupName");
    t->order = (int)kai_number(o, "Priority", 0);
    j->barred |= says(o, "IsLegacyMigTask");
    if (t->subgroup && !*t->subgroup)
        t->subgroup = NULL;
    return read_state(c, kai_text(o, "State"), &t->state);
}

/* MIG instances: so many slices of a kind of GPU of their own. */
static int ask_mig(struct kai_case *c, struct kai_job *j, json_t *mig, uint64_t *types)
{
    const char *profile;
    uint32_t n = 0;
    json_t *v;

    if (json_object_size(mig) > 1)
        return unsupported(c, "a task with MIG instances of several profiles");
    json_object_foreach(mig, profile, v)
    {
        uint32_t slices = slices_of(profile);

        if (!slices || whole(c, mig, profile, 0, STK_MAX_NODE_GPUS, &n) < 0)
            return wrong(c, "RequiredMigInstances", profile);
        j->demand.gpus = n * slices;
        *types = 0;
        for (uint32_t k = 0; k < c->n_kinds; k++)
            *types |= strcmp(c->kinds[k], profile) == 0 ? UINT64_C(1) << k : 0;
    }
    return 0;
}

static int ask_gpus(struct kai_case *c, struct kai_job *j, const json_t *o, const json_t *task)
{
    double gpus = kai_number(task, "RequiredGPUs", kai_number(o, "RequiredGPUsPerTask", 0));
    double mem = kai_number(o, "RequiredGpuMemory", 0);
    double devices = kai_number(o, "RequiredMultiFractionDevicesPerTask", 1);
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < c->n_nodes; i++)
        least = c->nodes[i].gpus && c->nodes[i].gpu_mem < least ? c->nodes[i].gpu_mem : least;
    if (!(gpus >= 0 && gpus <= 1000 && mem >= 0 && mem < 1e9 && devices >= 1 && devices <= 64))
        return wrong(c, "RequiredGPUsPerTask and the like", j->name);
    j->demand.tasks = (uint32_t)devices;
    if (mem > 0 && least < UINT32_MAX) {
        gpus = ceil(mem * 1000 / least) / 1000;
        j->demand.gpu_mem_mib = (uint32_t)mem;
    }
    if (gpus > 1 && gpus != floor(gpus))
        return unsupported(c, "more than one GPU, and part of another");
    if (gpus == floor(gpus) && devices > 1)
        return unsupported(c, "several devices of whole GPUs");
    j->demand.gpus = gpus > 0 && gpus < 1 ? 1 : (uint32_t)gpus;
    j->demand.gpu_milli = gpus > 0 && gpus < 1 ? (uint16_t)lround(gpus * 1000) : 0;
    return 0;
}

/* Kinds of GPUs, by the nodes it may be on. */
static int ask_kinds(struct kai_case *c, struct kai_job *j, const json_t *task)
{
    const json_t *names = json_object_get(task, "NodeAffinityNames");
    json_t *mig = json_object_get(task, "RequiredMigInstances");
    uint64_t types = 0, hosts = 0;
    int rc = 0;

    for (uint32_t k = 0; k < c->n_kinds; k++) {
        bool may = json_array_size(names) == 0;

        for (size_t i = 0; i < json_array_size(names); i++) {
            const char *name = json_string_value(json_array_get(names, i));

            may |= name && c->kind_host[k] && strcmp(name, c->kind_host[k]) == 0;
        }
        hosts |= may ? UINT64_C(1) << k : 0;
        types |= *c->kinds[k] == '\0' ? UINT64_C(1) << k : 0;
    }
    if (json_object_size(mig) > 0)
        rc = ask_mig(c, j, mig, &types);
    j->demand.gpu_types = types & hosts;
    j->barred |= j->demand.gpu_types == 0; /* no node could ever have it */
    return rc;
}

static int ask_rest(struct kai_case *c, struct kai_job *j, const json_t *o)
{
    double cpu = kai_number(o, "RequiredCPUsPerTask", 0);
    double mem = kai_number(o, "RequiredMemoryPerTask", 0);
    bool nothing = says(o, "IsBestEffortJob");

    cpu = (nothing ? 0 : cpu > 0 ? cpu : TASK_CPU) * 1000 / j->demand.tasks;
    mem = ceil((nothing ? 0 : mem > 0 ? mem : TASK_MEM) / MEM_UNIT / j->demand.tasks);
    if (!(cpu >= 0 && cpu < UINT32_MAX && mem >= 0 && mem < UINT32_MAX))
        return wrong(c, "RequiredCPUsPerTask, RequiredMemoryPerTask", j->name);
    j->demand.cpu_milli = (uint32_t)cpu;
    j->demand.mem_mib = (uint32_t)mem;
    stk_demand_set_resource(&j->demand, 0, 1);
    return 0;
}

static bool alike(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"RequiredMigInstances", "NodeAffinityNames", "RequiredGPUs"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);

        if (x != y && !(x && y && json_equal(x, y)))
            return false;
    }
    return true;
}

static int read_tasks(struct kai_case *c, struct kai_job *j, const json_t *o)
{
    const json_t *tasks = json_object_get(o, "Tasks"), *t;
    size_t i;
    int rc;

    j->n_tasks = (uint32_t)json_array_size(tasks);
    if (j->n_tasks > KAI_MAX_TASKS)
        return wrong(c, "more than 1024 tasks", j->name);
    j->tasks = kai_alloc(&c->mem, j->n_tasks + 1, sizeof(*j->tasks));
    json_array_foreach(tasks, i, t)
    {
        rc = read_task(c, j, t, &j->tasks[i]);
        if (rc < 0)
            return rc;
        if (!alike(t, json_array_get(tasks, 0)))
            return unsupported(c, "tasks of one job that ask for different things");
    }
    rc = ask_gpus(c, j, o, json_array_get(tasks, 0));
    rc = rc < 0 ? rc : ask_kinds(c, j, json_array_get(tasks, 0));
    return rc < 0 ? rc : ask_rest(c, j, o);
}

static int read_job(struct kai_case *c, const json_t *o, struct kai_job *j)
{
    const char *may = kai_text(o, "Preemptibility");
    int rc;

    *j = (struct kai_job){.name = kai_text(o, "Name"),
                          .queue = find_queue(c, kai_text(o, "QueueName")),
                          .age_min = kai_number(o, "JobAgeInMinutes", 0)};
    if (!j->name)
        return wrong(c, "a job without Name", NULL);
    if (!(fabs(kai_number(o, "Priority", 0)) < 1e6))
        return wrong(c, "Priority", j->name);
    j->priority = (int)kai_number(o, "Priority", 0);
    j->critical = may && *may ? strcmp(may, "non-preemptible") == 0 : j->priority >= NO_EVICT;
    j->deleted = says(o, "DeleteJobInTest");
    j->barred = j->queue == KAI_NONE || !c->queues[j->queue].leaf || says(o, "JobNotReadyForSsn");
    rc = read_tasks(c, j, o);
    return rc < 0 ? rc : kai_read_groups(c, j, json_object_get(o, "RootSubGroupSet"));
}

/* High priority first, then as they stand; one minute apart, the first oldest. */
static void sort_jobs(struct kai_case *c)
{
    for (uint32_t i = 1; i < c->n_jobs; i++)
        for (uint32_t k = i; k > 0 && c->jobs[k].priority > c->jobs[k - 1].priority; k--) {
            struct kai_job t = c->jobs[k];

            c->jobs[k] = c->jobs[k - 1];
            c->jobs[k - 1] = t;
        }
    for (uint32_t i = 0; i < c->n_jobs; i++)
        if (c->jobs[i].age_min <= 0)
            c->jobs[i].age_min = c->n_jobs - i;
    for (uint32_t i = 1; i < c->n_jobs; i++)
        for (uint32_t k = i; k > 0 && c->jobs[k].age_min > c->jobs[k - 1].age_min; k--) {
            struct kai_job t = c->jobs[k];

            c->jobs[k] = c->jobs[k - 1];
            c->jobs[k - 1] = t;
        }
}

static int read_jobs(struct kai_case *c)
{
    const json_t *jobs = json_object_get(c->scenario, "Jobs"), *o;
    size_t i;
    int rc;

    if (json_array_size(jobs) > KAI_MAX_JOBS)
        return wrong(c, "more than 4096 jobs", NULL);
    c->jobs = kai_alloc(&c->mem, json_array_size(jobs) + 1, sizeof(*c->jobs));
    json_array_foreach(jobs, i, o)
    {
        rc = read_job(c, o, &c->jobs[c->n_jobs++]);
        if (rc < 0)
            return rc;
    }
    sort_jobs(c);
    kai_make_units(c);
    return 0;
}

static bool names_hosts(const json_t *scenario)
{
    const json_t *jobs = json_object_get(scenario, "Jobs"), *j, *t;
    size_t i, k;

    json_array_foreach(jobs, i, j)
    {
        json_array_foreach(json_object_get(j, "Tasks"), k, t)
        {
            if (json_array_size(json_object_get(t, "NodeAffinityNames")) > 0)
                return true;
        }
    }
    return false;
}

int kai_read(struct kai_case *c, const json_t *entry)
{
    const char *outer = kai_text(entry, "Name"), *inner;
    int rc;

    c->scenario = json_object_get(entry, "scenario");
    inner = kai_text(c->scenario, "Name");
    c->name = inner ? inner : outer ? outer : "(no name)";
    c->rounds_after = (uint32_t)kai_number(entry, "RoundsAfterMatch", 5);
    c->rounds_after = c->rounds_after < 5 ? 5 : c->rounds_after < 100 ? c->rounds_after : 100;
    if (!json_is_object(c->scenario))
        return wrong(c, "an entry without a scenario", NULL);
    if (says(c->scenario, "TestDRAObjects"))
        return unsupported(c, "resource claims (DRA)");
    c->hosts_differ = names_hosts(c->scenario);
    rc = read_nodes(c);
    rc = rc < 0 ? rc : read_queues(c);
    return rc < 0 ? rc : read_jobs(c);
}
