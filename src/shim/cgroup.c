/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - a control group for a job that asks for a limit: memory, CPUs, processes, or only its
 * own GPUs. There are two kinds of systems: all controllers in one tree (v2), or a tree for each
 * (v1). Where neither can be written to, the job runs without limits unless the daemon insists. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/shim.h"

#define ROOT "/sys/fs/cgroup"
#define PERIOD_US 100000

enum { MEMORY, CPU, DEVICES, PIDS, CPUSET, N_CONTROLLERS };
static const char *const names[] = {"memory", "cpu", "devices", "pids", "cpuset"};

struct stk_cgroup {
    bool v2, fenced;
    int fence;              /* v2: the program around it; -1: none */
    bool in[N_CONTROLLERS]; /* v1: which trees it is in */
    char name[96];          /* below a root */
    uint64_t limit_mib;
};

static void path_of(const struct stk_cgroup *cg, int c, const char *file, char *buf, size_t size)
{
    if (cg->v2)
        (void)snprintf(buf, size, ROOT "/%s/%s", cg->name, file);
    else
        (void)snprintf(buf, size, ROOT "/%s/%s/%s", names[c], cg->name, file);
}

static int write_path(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

    if (fd < 0)
        return -errno;
    if (write(fd, text, strlen(text)) < 0)
        rc = -errno;
    (void)close(fd);
    return rc;
}

static int put(const struct stk_cgroup *cg, int c, const char *file, const char *text)
{
    char path[256];

    path_of(cg, c, file, path, sizeof(path));
    return write_path(path, text);
}

static int put_number(const struct stk_cgroup *cg, int c, const char *file, uint64_t v)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    return put(cg, c, file, text);
}

static ssize_t get(const struct stk_cgroup *cg, int c, const char *file, char *buf, size_t size)
{
    char path[256];
    ssize_t n;
    int fd;

    path_of(cg, c, file, path, sizeof(path));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, buf, size - 1);
    (void)close(fd);
    buf[n > 0 ? n : 0] = 0;
    return n;
}

static int make_dirs(const char *root, const struct stk_launch *l, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", root, l->cgroup);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_v2(struct stk_cgroup *cg, const struct stk_launch *l)
{
    char path[256];
    int rc = make_dirs(ROOT, l, cg->name);

    for (int c = 0; c < N_CONTROLLERS && rc == 0; c++) {
        char text[32];

        if (c == DEVICES)
            continue;
        (void)snprintf(text, sizeof(text), "+%s", names[c]);
        (void)write_path(ROOT "/cgroup.subtree_control", text);
        (void)snprintf(path, sizeof(path), ROOT "/%s/cgroup.subtree_control", l->cgroup);
        (void)write_path(path, text);
    }
    return rc;
}

static int make_v1(struct stk_cgroup *cg, const struct stk_launch *l)
{
    int made = 0, rc = -ENOENT;

    for (int c = 0; c < CPUSET; c++) {
        char root[64];

        (void)snprintf(root, sizeof(root), ROOT "/%s", names[c]);
        rc = make_dirs(root, l, cg->name);
        cg->in[c] = rc == 0;
        made += rc == 0;
    }
    return made > 0 ? 0 : rc;
}

static void set_memory(struct stk_cgroup *cg, uint64_t mib)
{
    uint64_t bytes = mib << 20;

    cg->limit_mib = mib;
    if (cg->v2) {
        (void)put_number(cg, MEMORY, "memory.max", bytes);
        (void)put(cg, MEMORY, "memory.swap.max", "0");
    } else {
        (void)put_number(cg, MEMORY, "memory.limit_in_bytes", bytes);
        (void)put_number(cg, MEMORY, "memory.memsw.limit_in_bytes", bytes);
    }
}

static void set_cpus(const struct stk_cgroup *cg, double cpus)
{
    uint64_t quota = (uint64_t)(cpus * PERIOD_US);
    char text[64];

    quota = quota < 1000 ? 1000 : quota;
    (void)snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota, PERIOD_US);
    if (cg->v2)
        (void)put(cg, CPU, "cpu.max", text);
    else
        (void)put_number(cg, CPU, "cpu.cfs_quota_us", quota);
}

/* A default share is no limit: while CPUs are idle the job may use them; when all are wanted it
 * gets its part beside the other jobs. */
static void set_cpu_weight(const struct stk_cgroup *cg, double cpus)
{
    uint64_t weight = (uint64_t)(cpus * (cg->v2 ? 100 : 1024)), most = cg->v2 ? 10000 : 262144;

    weight = weight < 2 ? 2 : weight > most ? most : weight;
    (void)put_number(cg, CPU, cg->v2 ? "cpu.weight" : "cpu.shares", weight);
}

/* In v1 a cpuset can be entered only when it has CPUs and memory nodes, and the one above it, too.
 */
static bool fill_cpuset(const char *above, const char *path)
{
    static const char *const files[] = {"cpuset.mems", "cpuset.cpus"};

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char from[256], to[256], text[STK_SHIM_CPUS];
        ssize_t n = -1;
        int fd;

        (void)snprintf(from, sizeof(from), "%s/%s", above, files[i]);
        (void)snprintf(to, sizeof(to), "%s/%s", path, files[i]);
        fd = open(from, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            n = read(fd, text, sizeof(text) - 1);
            (void)close(fd);
        }
        text[n > 0 ? n : 0] = '\0';
        if (n <= 0 || write_path(to, text) < 0)
            return false;
    }
    return true;
}

static void enter_cpuset(struct stk_cgroup *cg, const struct stk_launch *l)
{
    char parent[256], path[256];

    (void)snprintf(parent, sizeof(parent), ROOT "/cpuset/%s", l->cgroup);
    (void)snprintf(path, sizeof(path), ROOT "/cpuset/%s", cg->name);
    if (make_dirs(ROOT "/cpuset", l, cg->name) < 0)
        return;
    cg->in[CPUSET] = fill_cpuset(ROOT "/cpuset", parent) && fill_cpuset(parent, path);
    if (!cg->in[CPUSET])
        (void)rmdir(path);
}

void stk_cgroup_cpus(struct stk_cgroup *cg, const char *list)
{
    if (cg && (cg->v2 || cg->in[CPUSET]))
        (void)put(cg, CPUSET, "cpuset.cpus", list);
}

/* All other GPUs are out of reach: by the devices controller, or where there is none (v2) by a
 * program (fence.c). */
static bool fence(struct stk_cgroup *cg, const struct stk_launch *l)
{
    bool ok = cg->in[DEVICES];
    char text[256];

    if (cg->v2) {
        path_of(cg, 0, "", text, sizeof(text));
        return stk_fence(text, l, &cg->fence) == 0;
    }
    for (uint32_t minor = 0; minor < STK_NVIDIA_GPUS && ok; minor++) {
        bool ours = stk_launch_has_minor(l, minor);

        (void)snprintf(text, sizeof(text), "c %d:%u rwm", STK_NVIDIA_MAJOR, minor);
        ok = put(cg, DEVICES, ours ? "devices.allow" : "devices.deny", text) == 0;
    }
    return ok;
}

void stk_cgroup_fence(struct stk_cgroup *cg, const struct stk_launch *l)
{
    if (cg && cg->fenced)
        (void)fence(cg, l);
}

int stk_cgroup_new(const struct stk_launch *l, struct stk_cgroup **ret_cg, struct stk_err *err)
{
    double share = json_number_value(json_object_get(l->spec, "cpu_share"));
    double cpus = share > 0 ? 0 : json_number_value(json_object_get(l->spec, "cpus"));
    int64_t mem = stk_int(l->spec, "mem_mib", 0), pids = stk_int(l->spec, "pids", 0);
    bool always = strcmp(l->cgroup_mode, "always") == 0, gpus = l->n_gpus > 0 && !l->virtual_gpus;
    bool limited = mem > 0 || pids > 0 || cpus > 0 || share > 0 || gpus;
    char near[STK_SHIM_CPUS];
    struct stk_cgroup *cg;
    int rc;

    *ret_cg = NULL;
    if (strcmp(l->cgroup_mode, "never") == 0 || (!always && !limited))
        return 0;
    cg = calloc(1, sizeof(*cg));
    if (!cg)
        return stk_err_set(err, -ENOMEM, "out of memory");
    cg->fence = -1;
    cg->v2 = access(ROOT "/cgroup.controllers", F_OK) == 0;
    (void)snprintf(cg->name, sizeof(cg->name), "%.20s/%u.%u-%.16s", l->cgroup, l->number, l->launch,
                   l->label);
    rc = cg->v2 ? make_v2(cg, l) : make_v1(cg, l);
    if (rc < 0) {
        free(cg);
        return always ? stk_err_set(err, rc, "cannot make a cgroup: %s", strerror(-rc)) : 0;
    }
    if (mem > 0)
        set_memory(cg, (uint64_t)mem * l->tasks);
    if (cpus > 0)
        set_cpus(cg, cpus * l->tasks);
    if (share > 0)
        set_cpu_weight(cg, share * l->tasks);
    if (pids > 0)
        (void)put_number(cg, PIDS, "pids.max", (uint64_t)pids);
    cg->fenced = gpus && fence(cg, l);
    if (stk_near_job(l, near, sizeof(near))) {
        if (!cg->v2)
            enter_cpuset(cg, l);
        stk_cgroup_cpus(cg, near);
    }
    *ret_cg = cg;
    return 0;
}

int stk_cgroup_join(const struct stk_cgroup *cg)
{
    int rc = 0;

    for (int c = 0; c < N_CONTROLLERS && rc == 0; c++)
        if (cg->v2 ? c == 0 : cg->in[c])
            rc = put(cg, c, "cgroup.procs", "0");
    if (rc < 0)
        errno = -rc;
    return rc;
}

bool stk_cgroup_fenced(const struct stk_cgroup *cg)
{
    return cg && cg->fenced;
}

const char *stk_cgroup_name(const struct stk_cgroup *cg)
{
    return cg->name;
}

bool stk_cgroup_oom(const struct stk_cgroup *cg, uint64_t *ret_mib)
{
    char text[512];
    const char *at;

    if (!cg || cg->limit_mib == 0 ||
        get(cg, MEMORY, cg->v2 ? "memory.events" : "memory.oom_control", text, sizeof(text)) <= 0)
        return false;
    at = strstr(text, "oom_kill ");
    while (at && at != text && at[-1] != '\n')
        at = strstr(at + 1, "oom_kill ");
    *ret_mib = cg->limit_mib;
    return at && strtoull(at + 9, NULL, 10) > 0;
}

/* Whatever is in it that is not ours to find otherwise. */
void stk_cgroup_kill(const struct stk_cgroup *cg)
{
    char text[8192], *p = text;

    if (!cg || (cg->v2 && put(cg, 0, "cgroup.kill", "1") == 0))
        return;
    for (int c = 0; c < N_CONTROLLERS; c++)
        if ((cg->v2 || cg->in[c]) && get(cg, c, "cgroup.procs", text, sizeof(text)) > 0)
            break;
    for (pid_t pid; (pid = (pid_t)strtol(p, &p, 10)) > 0;)
        (void)kill(pid, SIGKILL);
}

void stk_cgroup_free(struct stk_cgroup *cg)
{
    char path[256];

    if (!cg)
        return;
    if (cg->fence >= 0)
        (void)close(cg->fence);
    for (int c = 0; c < N_CONTROLLERS; c++) {
        if (cg->v2 ? c != 0 : !cg->in[c])
            continue;
        path_of(cg, c, "", path, sizeof(path));
        for (int tries = 0; rmdir(path) < 0 && errno == EBUSY && tries < 50; tries++)
            (void)usleep(1000); /* the last process has been waited for; its entry lingers */
    }
    free(cg);
}
