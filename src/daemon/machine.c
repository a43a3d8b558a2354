/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - this machine as the scheduler sees it: one node, with the GPUs that the helper
 * program finds, or with virtual ones where there are none. It can also pretend to be many nodes,
 * to try things out; each then has all of its CPUs and memory, and the virtual GPUs or an equal
 * part of those that were found: the first of them the first so many, and so on. */
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/daemon.h"

#define LIST_MS 30000 /* a driver that must be loaded takes its time */
#define VIRTUAL_GPUS 8u
#define NODE_NAME 224u
#define RACK 8u /* pretended machines in one */
#define MPS_CONTROL "nvidia-cuda-mps-control"

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Reads until the end or until the time is over. */
static size_t read_all(int fd, char *buf, size_t size)
{
    int64_t until = now_ms() + LIST_MS, left;
    size_t len = 0;

    while (len < size - 1 && (left = until - now_ms()) > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&p, 1, (int)left) > 0 ? read(fd, buf + len, size - 1 - len) : -1;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    buf[len] = '\0';
    return len;
}

/* The first line "stoker-gpu list" prints; malloc'ed, NULL: it does not. */
static char *ask_helper(const char *helper, size_t *ret_len)
{
    char name[] = "stoker-gpu", verb[] = "list";
    char *const argv[] = {name, verb, NULL};
    posix_spawn_file_actions_t files;
    char *text = malloc(STK_GPUVIEW_LINE);
    int fds[2];
    pid_t pid = 0;

    if (!text || pipe2(fds, O_CLOEXEC) < 0) {
        free(text);
        return NULL;
    }
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, fds[1], STDOUT_FILENO);
    if (posix_spawn(&pid, helper, &files, NULL, argv, environ) != 0)
        pid = 0;
    (void)posix_spawn_file_actions_destroy(&files);
    (void)close(fds[1]);
    *ret_len = pid > 0 ? read_all(fds[0], text, STK_GPUVIEW_LINE) : 0;
    (void)close(fds[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL); /* it has said all, or never will */
        (void)waitpid(pid, NULL, 0);
    }
    *ret_len = strcspn(text, "\n");
    return text;
}

static void find_gpus(struct stk_machine *m)
{
    struct stk_err err = {""};
    size_t len = 0;
    char *line;

    if (stk_daemon_program("stoker-gpu", m->helper, sizeof(m->helper), &err) < 0) {
        (void)snprintf(m->gpus.why, sizeof(m->gpus.why), "%.255s", err.text);
        return;
    }
    line = ask_helper(m->helper, &len);
    if (!line || len == 0 || stk_gpuview_list(&m->gpus, line, len, &err) < 0)
        stk_log(STK_LOG_WARN, "stoker-gpu list: %s", err.text[0] ? err.text : "no answer");
    else
        m->shown = json_loadb(line, len, 0, NULL);
    free(line);
}

/* MPS needs real GPUs and the program that comes with NVIDIA's driver. */
static void find_mps(struct stk_machine *m)
{
    const char *dirs = getenv("PATH");

    m->mps[0] = '\0';
    for (dirs = dirs ? dirs : "/usr/bin:/bin"; !m->is_virtual && *dirs;) {
        size_t n = strcspn(dirs, ":");

        (void)snprintf(m->mps, sizeof(m->mps), "%.*s/" MPS_CONTROL, (int)n, dirs);
        if (n > 0 && dirs[0] == '/' && access(m->mps, X_OK) == 0)
            return;
        m->mps[0] = '\0';
        dirs += n + (dirs[n] == ':');
    }
    (void)snprintf(m->no_mps, sizeof(m->no_mps), "%s",
                   m->is_virtual ? "the GPUs are virtual"
                                 : MPS_CONTROL " is not in the daemon's PATH");
}

/* Where the driver does not tell us where an instance starts: any place that is left will do, as
 * long as no two are the same. */
static uint32_t start_of(const struct stk_gpu_instance *i, uint8_t model, uint16_t profile,
                         uint8_t used)
{
    uint8_t starts = stk_mig_starts(model, profile, used);

    if (i->start < 0)
        return stk_mig_choose(model, profile, used);
    return starts >> i->start & 1 ? (uint32_t)i->start : STK_MIG_ANY;
}

/* The instances of a GPU that can be scheduled. */
static void fill_instances(struct stk_machine *m, uint32_t gpu, uint8_t model)
{
    const struct stk_gpu *g = &m->gpus.gpu[gpu];
    struct stk_local_instance *list = &m->known[(size_t)gpu * STK_MIG_SLICES];
    uint8_t used = 0;

    m->table[gpu].instances = list;
    for (uint32_t i = 0; i < g->n_instances && i < STK_GPUVIEW_INSTANCES; i++) {
        const struct stk_gpu_instance *of = &g->instance[i];
        uint16_t profile = stk_mig_parse(of->profile, strlen(of->profile));
        uint32_t start = start_of(of, model, profile, used);

        if (!profile || start == STK_MIG_ANY) {
            stk_log(STK_LOG_WARN, "GPU %u: its MIG instance %s (%s) is not used: %s", gpu, of->uuid,
                    of->profile, profile ? "it does not fit the model" : "unknown profile");
            continue;
        }
        used |= stk_mig_slices(model, profile, start);
        m->instances[gpu * STK_MIG_SLICES + start] = profile;
        list[m->table[gpu].n_instances++] =
            (struct stk_local_instance){profile, (uint8_t)start, of->uuid};
    }
}

/* A machine whose GPUs are all in MIG mode gives out the instances that are there. The mode, and
 * how the cards are divided, is never changed by us. */
static void find_instances(struct stk_machine *m)
{
    const struct stk_gpu *first = m->gpus.gpu;
    uint32_t n = 0;
    uint8_t model;

    for (uint32_t i = 0; i < m->n_table && !m->is_virtual; i++)
        n += m->gpus.gpu[i].mig;
    if (n == 0)
        return;
    model = stk_mig_model(first->name, strlen(first->name), (uint32_t)first->mem_mib);
    if (n < m->n_table || !model) {
        stk_log(STK_LOG_WARN, "GPUs in MIG mode are not used: %s",
                model ? "others of this machine are not in MIG mode" : "their model is not known");
        return;
    }
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        m->nodes[i].mig = model;
        m->nodes[i].instances = &m->instances[(size_t)i * m->n_gpus * STK_MIG_SLICES];
    }
    for (uint32_t i = 0; i < m->n_table; i++)
        fill_instances(m, i, model);
}

static int fill_table(struct stk_machine *m, bool bind_cpus, struct stk_err *err)
{
    m->n_table = m->is_virtual ? m->n_gpus : m->n_gpus * m->n_nodes;
    m->table = calloc(m->n_table + 1, sizeof(*m->table));
    if (!m->table)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < m->n_table; i++) {
        const struct stk_gpu *g = m->is_virtual ? NULL : &m->gpus.gpu[i];

        m->table[i] = (struct stk_local_gpu){.index = i,
                                             .minor = g && g->minor >= 0 ? (uint32_t)g->minor : i,
                                             .mem_mib = g ? (uint32_t)g->mem_mib : 0,
                                             .uuid = g ? g->uuid : "",
                                             .cpus = g && bind_cpus ? m->topo.gpu[i].cpus : "",
                                             .numa = g ? m->topo.gpu[i].numa : -1,
                                             .is_virtual = m->is_virtual};
        if (g && strcmp(g->name, m->gpus.gpu[0].name) != 0)
            stk_log(STK_LOG_WARN, "GPU %u is a %s; all are scheduled as %s", i, g->name,
                    m->gpus.gpu[0].name);
    }
    return 0;
}

static int lay_out(struct stk_machine *m, struct stk_err *err)
{
    m->weight = calloc((size_t)m->topo.n * m->topo.n + 1, sizeof(*m->weight));
    if (!m->weight)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_hwtopo_layout(&m->topo, m->weight, &m->layout);
    m->nodes[0].layout = 1;
    return 0;
}

/* How it is built. A machine that cannot tell is scheduled all the same. */
static int look_inside(struct stk_machine *m, struct stk_err *err)
{
    struct stk_err why = {""};

    if (stk_hwtopo_look(&m->topo, &m->gpus, &why) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (why.text[0])
        stk_log(STK_LOG_WARN, "%s; jobs are not bound to CPUs", why.text);
    (void)json_object_set_new(m->topo.shown, "name", json_string(m->name));
    if (!m->is_virtual) /* of one node; parts of it are not told apart */
        return m->n_nodes == 1 ? lay_out(m, err) : 0;
    (void)json_object_set_new(m->topo.shown, "virtual_gpus", json_integer(m->n_gpus));
    return 0;
}

/* "vm-0001" and so on, where there are several; else the machine's own name. */
static void name_nodes(struct stk_machine *m)
{
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        char *name = m->names ? m->names + (size_t)i * NODE_NAME : m->name;

        if (m->names)
            (void)snprintf(name, NODE_NAME, "%.200s-%04u", m->name, i + 1);
        m->live_nodes[i] =
            (struct stk_live_node){.name = name, .gpu_type = m->gpu_type, .rack = m->nodes[i].rack};
    }
    for (uint32_t i = 0; m->names && i < m->gpus.n; i++) {
        struct stk_gpu *g = &m->gpus.gpu[i];
        uint32_t gpu, node = stk_machine_node_of(m, i, &gpu);

        if (node < m->n_nodes)
            (void)snprintf(g->label, sizeof(g->label), "%.224s:%u", m->live_nodes[node].name, gpu);
    }
}

/* How many nodes are pretended. Real GPUs are divided among them, and some may be left over. */
static void count_nodes(struct stk_machine *m, const struct stk_config *c)
{
    m->n_nodes = c->virtual_nodes > 1 ? (uint32_t)c->virtual_nodes : 1;
    if (m->is_virtual || m->n_gpus == 0)
        return;
    if (m->n_nodes > m->n_gpus) {
        stk_log(STK_LOG_WARN, "virtual_nodes: there are %u GPUs, so there are as many nodes",
                m->n_gpus);
        m->n_nodes = m->n_gpus;
    }
    if (m->n_gpus % m->n_nodes)
        stk_log(STK_LOG_WARN, "virtual_nodes: the last %u of %u GPUs are not used",
                m->n_gpus % m->n_nodes, m->n_gpus);
    m->n_gpus /= m->n_nodes;
}

uint64_t stk_machine_read_mask(const struct stk_machine *m, uint32_t node, uint64_t mask)
{
    const uint32_t shift = node * m->n_gpus;

    return m->is_virtual || node >= m->n_nodes || shift >= 64 ? 0 : mask << shift;
}

uint32_t stk_machine_node_of(const struct stk_machine *m, uint32_t read, uint32_t *ret_gpu)
{
    *ret_gpu = read % m->n_gpus;
    return read / m->n_gpus;
}

static int make_nodes(struct stk_machine *m, const struct stk_config *c, struct stk_err *err)
{
    struct sysinfo si;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct stk_node_spec like = {
        .gpu_mem_mib = m->is_virtual ? 0 : (uint32_t)m->gpus.gpu[0].mem_mib,
        .cpu_milli = cpus > 0 && cpus < 1000000 ? (uint32_t)cpus * 1000 : 0,
        .mem_mib = sysinfo(&si) == 0 ? (uint32_t)((uint64_t)si.totalram * si.mem_unit >> 20) : 0};

    count_nodes(m, c);
    like.gpus = m->n_gpus;
    for (uint32_t i = 0; i < c->resources.n; i++) {
        (void)snprintf(m->resource[i], sizeof(m->resource[i]), "%s", c->resources.names[i]);
        m->resources[i] = m->resource[i];
        like.resource[i] = c->resources.amounts[i];
    }
    m->n_resources = c->resources.n;
    m->nodes = calloc(m->n_nodes, sizeof(*m->nodes));
    m->live_nodes = calloc(m->n_nodes, sizeof(*m->live_nodes));
    m->names = m->n_nodes > 1 ? calloc(m->n_nodes, NODE_NAME) : NULL;
    if (!m->nodes || !m->live_nodes || (m->n_nodes > 1 && !m->names))
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        m->nodes[i] = like;
        m->nodes[i].rack = m->n_nodes > 1 ? i / RACK + 1 : 0;
    }
    name_nodes(m);
    return 0;
}

int stk_machine_look(struct stk_machine *m, const struct stk_config *c, struct stk_err *err)
{
    int rc;

    *m = (struct stk_machine){.own_pool = {"default"}};
    m->pools = m->own_pool;
    m->gpu_types = m->own_type;
    m->n_pools = m->n_gpu_types = 1;
    stk_gpus_init(&m->gpus);
    if (gethostname(m->name, sizeof(m->name) - 1) < 0 || !m->name[0])
        (void)snprintf(m->name, sizeof(m->name), "localhost");
    if (c->virtual_gpus == STK_CONFIG_NO_GPUS)
        find_gpus(m);
    m->is_virtual = m->gpus.n == 0;
    find_mps(m);
    m->n_gpus = !m->is_virtual                          ? m->gpus.n
                : c->virtual_gpus == STK_CONFIG_NO_GPUS ? VIRTUAL_GPUS
                                                        : (uint32_t)c->virtual_gpus;
    if (m->n_gpus > STK_MAX_NODE_GPUS)
        m->n_gpus = STK_MAX_NODE_GPUS;
    (void)snprintf(m->gpu_type, sizeof(m->gpu_type), "%s",
                   m->is_virtual ? "virtual" : m->gpus.gpu[0].name);
    m->own_type[0] = m->gpu_type;
    rc = make_nodes(m, c, err);
    rc = rc < 0 ? rc : look_inside(m, err);
    rc = rc < 0 ? rc : fill_table(m, c->bind_cpus != 0, err);
    if (rc == 0)
        find_instances(m);
    return rc;
}

void stk_machine_done(struct stk_machine *m)
{
    free(m->table);
    free(m->nodes);
    free(m->live_nodes);
    free(m->names);
    if (m->gpu_types != m->own_type)
        free(m->gpu_types);
    json_decref(m->shown);
    stk_hwtopo_done(&m->topo);
    free(m->weight);
    stk_gpus_done(&m->gpus);
}
