/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.c - the daemon on a Slurm cluster: nodes, pools (the partitions, of which some may share
 * nodes) and GPU types are what Slurm says they are, and Slurm runs the jobs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/state.h"
#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"

#define MARK_BYTES 16
#define MARK_LEN ((size_t)2 * MARK_BYTES)

static void on_note(void *ctx, stk_job_number number, const char *sentence)
{
    struct stk_daemon *d = ctx;

    stk_log(STK_LOG_DEBUG, "job %u: %s", number, sentence);
    if (d->live)
        stk_live_note(d->live, number, sentence);
}

static void on_log(void *ctx, bool trouble, const char *line)
{
    (void)ctx;
    stk_log(trouble ? STK_LOG_WARN : STK_LOG_INFO, "%s", line);
}

static void on_off(void *ctx, uint32_t node, uint64_t mask, bool shut)
{
    struct stk_daemon *d = ctx;

    if (d->live)
        stk_live_gpus_off(d->live, node, mask, 0, shut);
}

static bool on_lives(void *ctx, stk_job_number number)
{
    const struct stk_daemon *d = ctx;

    return !d->live || stk_live_entry(d->live, number) != NULL;
}

static stk_time on_began(void *ctx, stk_job_number number)
{
    const struct stk_daemon *d = ctx;
    struct stk_core *core = d->live ? stk_live_core(d->live) : NULL;
    const uint32_t slot = core ? stk_core_find(core, number) : STK_NONE;
    const struct stk_job *j = slot != STK_NONE ? &stk_core_state(core)->jobs[slot] : NULL;

    return j && (j->state == STK_JOB_RUNNING || j->state == STK_JOB_STOPPING) ? j->started : 0;
}

static bool on_owns(void *ctx, stk_job_number number, uint32_t uid)
{
    const struct stk_daemon *d = ctx;
    const struct stk_entry *e = d->live ? stk_live_entry(d->live, number) : NULL;

    return !e || e->rec.uid == uid;
}

static void on_warn(void *ctx, stk_job_number number, const char *sentence)
{
    struct stk_daemon *d = ctx;

    if (d->live)
        stk_live_warn(d->live, number, STK_WARN_STRAY, sentence);
}

static void mark_path(const struct stk_daemon *d, char path[4200])
{
    (void)snprintf(path, 4200, "%s/slurm-mark", d->state);
}

/* The mark's file is as old as our last contact with Slurm. */
static void on_contact(void *ctx)
{
    char path[4200];

    mark_path(ctx, path);
    (void)utimensat(AT_FDCWD, path, NULL, 0);
}

static int64_t last_contact(const struct stk_daemon *d)
{
    struct stat st;
    char path[4200];

    mark_path(d, path);
    return stat(path, &st) == 0 ? (int64_t)st.st_mtime : 0;
}

/* What tells our jobs in Slurm from those of another stoker: made once, kept in the state folder.
 */
static int read_mark(const struct stk_daemon *d, char mark[MARK_LEN + 1], struct stk_err *err)
{
    unsigned char bytes[MARK_BYTES];
    char path[4200];
    ssize_t n = -1;
    int fd;

    mark_path(d, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, mark, MARK_LEN);
        (void)close(fd);
    }
    mark[MARK_LEN] = '\0';
    if (n == (ssize_t)MARK_LEN)
        return 0;
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return stk_err_set(err, -EIO, "no random numbers");
    for (uint32_t i = 0; i < MARK_BYTES; i++)
        (void)snprintf(mark + 2 * (size_t)i, 3, "%02x", bytes[i]);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, mark, MARK_LEN) != (ssize_t)MARK_LEN || fsync(fd) < 0)
        n = -2;
    if (fd >= 0)
        (void)close(fd);
    return n == -2 ? stk_err_set(err, -EIO, "cannot write %s", path) : 0;
}

/* The row of a GPU type; added when it is new. */
static uint32_t type_row(struct stk_machine *m, const char *name)
{
    uint32_t i = 0;

    name = *name ? name : "gpu";
    while (i < m->n_gpu_types && strcmp(m->gpu_types[i], name) != 0)
        i++;
    if (i == m->n_gpu_types && m->n_gpu_types < STK_MAX_GPU_TYPES)
        m->gpu_types[m->n_gpu_types++] = name;
    return i < STK_MAX_GPU_TYPES ? i : 0;
}

static void free_tables(struct stk_machine *m)
{
    free(m->nodes);
    free(m->live_nodes);
    free(m->gpu_types);
}

/* Nodes, pools and types as the engine has them now, into tables of their own. */
static int fill_machine(const struct stk_daemon *d, struct stk_machine *m, struct stk_err *err)
{
    const struct stk_slurm_node *nodes = stk_slurm_nodes(d->engine, &m->n_nodes);

    m->nodes = calloc(m->n_nodes, sizeof(*m->nodes));
    m->live_nodes = calloc(m->n_nodes, sizeof(*m->live_nodes));
    m->gpu_types = calloc(STK_MAX_GPU_TYPES, sizeof(*m->gpu_types));
    m->n_gpu_types = m->n_gpus = 0;
    if (!m->nodes || !m->live_nodes || !m->gpu_types) {
        free_tables(m);
        m->nodes = NULL;
        m->live_nodes = NULL;
        m->gpu_types = NULL;
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    m->pools = stk_slurm_partitions(d->engine, &m->n_pools);
    m->pool_of = stk_slurm_pools(d->engine);
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        uint32_t type = type_row(m, nodes[i].gpu_type);

        m->nodes[i] = (struct stk_node_spec){
            .pool = {nodes[i].pool},
            .gpu_type = type,
            .gpus = nodes[i].gpus,
            .cpu_milli = nodes[i].cpus < 1000000 ? nodes[i].cpus * 1000 : 0,
            .mem_mib = nodes[i].mem_mib < UINT32_MAX ? (uint32_t)nodes[i].mem_mib : 0};
        m->live_nodes[i] =
            (struct stk_live_node){.name = nodes[i].name,
                                   .gpu_type = m->gpu_types[type],
                                   .features = nodes[i].features ? nodes[i].features : "",
                                   .pools = nodes[i].in};
        m->n_gpus += nodes[i].gpus;
    }
    (void)snprintf(m->no_mps, sizeof(m->no_mps), "Slurm runs the jobs, and gives whole GPUs");
    (void)snprintf(m->gpu_type, sizeof(m->gpu_type), "%s", m->gpu_types[0]);
    return 0;
}

/* Slurm has other nodes: the scheduler goes on with these, from the state it is in. */
static int take_nodes(struct stk_daemon *d, struct stk_err *err)
{
    struct stk_live_config live = *stk_live_config(d->live);
    struct stk_machine *before = malloc(sizeof(*before));
    int rc;

    if (!before)
        return stk_err_set(err, -ENOMEM, "out of memory");
    *before = d->machine;
    rc = fill_machine(d, &d->machine, err);
    if (rc == 0 && d->sampler && stk_sampler_nodes(d->sampler, d->machine.n_nodes) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0 && stk_live_pending(d->live)) /* nothing may be half done */
        rc = stk_live_turn(d->live, err);
    if (rc == 0) {
        live.nodes = d->machine.live_nodes;
        live.pools = d->machine.pools;
        live.gpu_types = d->machine.gpu_types;
        live.n_gpu_types = d->machine.n_gpu_types;
        stk_daemon_live_config(d, &d->setup, &d->config, &live);
        rc = stk_live_reload(d->live, &live, err);
    }
    free_tables(rc < 0 ? &d->machine : before);
    if (rc < 0)
        d->machine = *before;
    free(before);
    return rc;
}

static int on_changed(void *ctx)
{
    struct stk_daemon *d = ctx;
    struct stk_err err = {""}, why = {""};
    int rc = take_nodes(d, &err);

    if (rc < 0) {
        stk_log(STK_LOG_WARN, "Slurm: other nodes: %s", err.text);
        return rc;
    }
    stk_daemon_slurm_ready(d);
    stk_log(STK_LOG_INFO, "Slurm: %u GPUs on %u nodes from now on", d->machine.n_gpus,
            d->machine.n_nodes);
    if (stk_live_note_config(d->live, &why) < 0)
        stk_log(STK_LOG_WARN, "what was changed is not written down: %s", why.text);
    return 0;
}

int stk_daemon_slurm_open(struct stk_daemon *d, struct stk_err *err)
{
    char program[4096], rows[4200], mark[MARK_LEN + 1];
    struct stk_slurm_config cfg = {.loop = &d->loop,
                                   .program = program,
                                   .conf = d->config.slurm.conf,
                                   .mark = mark,
                                   .rows = rows,
                                   .changed = on_changed,
                                   .partitions = (const char *const *)d->config.slurm.partitions,
                                   .gpu_type = d->config.slurm.gpu_type,
                                   .now = stk_daemon_now,
                                   .ahead = stk_daemon_ahead,
                                   .began = on_began,
                                   .ctx = d,
                                   .note = on_note,
                                   .log = on_log,
                                   .off = on_off,
                                   .bring = stk_daemon_slurm_bring,
                                   .hold = stk_daemon_slurm_hold,
                                   .rest = stk_daemon_slurm_rest,
                                   .wishes = stk_daemon_slurm_changed,
                                   .gone = stk_daemon_slurm_gone,
                                   .missing = stk_daemon_slurm_missing,
                                   .limit = stk_daemon_slurm_limit,
                                   .groups = stk_daemon_slurm_groups,
                                   .booked = stk_daemon_slurm_booked,
                                   .array = stk_daemon_array,
                                   .names = stk_daemon_slurm_names,
                                   .lives = on_lives,
                                   .owns = on_owns,
                                   .warn = on_warn,
                                   .contact = on_contact,
                                   .contact_s = last_contact(d)};
    int rc;

    (void)snprintf(rows, sizeof(rows), "%s/slurm-nodes", d->state);
    stk_gpus_init(&d->machine.gpus);
    if (gethostname(d->machine.name, sizeof(d->machine.name) - 1) < 0)
        (void)snprintf(d->machine.name, sizeof(d->machine.name), "localhost");
    rc = stk_daemon_program("stoker-libslurm", program, sizeof(program), err);
    if (rc < 0)
        return stk_err_set(err, rc,
                           "engine: slurm needs stoker-libslurm, which is built where "
                           "libslurm-dev is installed");
    rc = read_mark(d, mark, err);
    rc = rc < 0 ? rc : stk_engine_slurm_new(&cfg, &d->engine, err);
    if (rc == 0 && d->config.slurm.accounts && d->config.slurm.accounts[0] &&
        !stk_slurm_enforces(d->engine, "associations"))
        stk_log(STK_LOG_WARN, "slurm.accounts: Slurm lets anybody use any account here "
                              "(AccountingStorageEnforce has no associations), so a job counts for "
                              "a tenant only if its user is a member of it");
    return rc < 0 ? rc : fill_machine(d, &d->machine, err);
}

static bool was_up(void *ctx, uint32_t node)
{
    const struct stk_daemon *d = ctx;

    return stk_core_state(stk_live_core(d->live))->nodes[node].up;
}

void stk_daemon_slurm_ready(struct stk_daemon *d)
{
    stk_slurm_retell(d->engine, was_up, d);
    stk_daemon_slurm_know(d);
    stk_daemon_slurm_missing(d);
    stk_daemon_slurm_confine(d);
    stk_slurm_open(d->engine);
}
