/* SPDX-License-Identifier: Apache-2.0 */
/* step_env.c - what the tasks of a step see; see step.h.
 *
 * GPUs of a step that asks for fewer than the job has are held by file locks, one file per GPU of
 * the job, so that steps started side by side get different ones. The locks go with the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "slurmcmd/slurm.h"
#include "slurmcmd/step.h"
#include "spec/words.h"

static const char *var(const char *name, const char *none)
{
    const char *s = getenv(name); // NOLINT(concurrency-mt-unsafe)

    return s && *s ? s : none;
}

static int set_number(const char *name, uint32_t n)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%u", n);
    return setenv(name, text, 1); // NOLINT(concurrency-mt-unsafe)
}

static int set_word(const char *name, const char *value)
{
    return setenv(name, value, 1); // NOLINT(concurrency-mt-unsafe)
}

/* --export=ALL,A=1: what is there already needs no copy. */
static int set_exported(const struct stk_sbatch *b)
{
    char *list = b->export ? strdup(b->export) : NULL, *save = NULL;
    int rc = 0;

    for (char *w = list ? strtok_r(list, ",", &save) : NULL; w && rc == 0;
         w = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(w, '=');

        if (!eq)
            continue;
        *eq = '\0';
        rc = set_word(w, eq + 1);
    }
    free(list);
    return rc;
}

static int set_gpus(const struct stk_step *p, uint32_t t)
{
    uint32_t first = p->per_task ? t * p->per_task : 0;
    uint32_t n = p->per_task ? p->per_task : p->n_gpus;
    char list[STK_STEP_MAX_GPUS * 25] = "";

    if (!p->chosen)
        return 0;
    for (uint32_t i = first; i < first + n && i < p->n_gpus; i++)
        (void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", *list ? "," : "",
                       p->gpus[i]);
    return set_word("CUDA_VISIBLE_DEVICES", list);
}

static int set_taken(const char *name, char *take)
{
    int rc = take ? set_word(name, take) : -1;

    free(take);
    return rc;
}

/* The task's node of several, its place there, and the GPUs that the job has there: all of them, or
 * as many as each of its tasks has. */
static int set_node(const struct stk_step *p, uint32_t t)
{
    uint32_t local, k = stk_jobnodes_find(&p->nodes, t, &local), i = 0;
    const struct stk_jobnode *node = &p->nodes.node[k];
    char list[STK_STEP_MAX_GPUS * 8] = "", *gpus = strdup(node->gpus), *save = NULL;
    int rc = gpus ? 0 : -1;

    for (char *g = gpus ? strtok_r(gpus, ",", &save) : NULL; g; g = strtok_r(NULL, ",", &save), i++)
        if (p->per_task == 0 || i / p->per_task == local)
            (void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%.6s",
                           *list ? "," : "", g);
    free(gpus);
    rc |= set_number("SLURM_LOCALID", local) | set_number("SLURM_NODEID", k);
    rc |= set_number("SLURM_STEP_NUM_NODES", p->nodes.n);
    rc |= set_taken("SLURM_TASKS_PER_NODE", stk_jobnodes_tasks(&p->nodes));
    rc |= set_taken("SLURM_STEP_TASKS_PER_NODE", stk_jobnodes_tasks(&p->nodes));
    if (p->n % p->nodes.n == 0)
        rc |= set_number("SLURM_NTASKS_PER_NODE", p->n / p->nodes.n);
    else
        rc |= unsetenv("SLURM_NTASKS_PER_NODE"); // NOLINT(concurrency-mt-unsafe)
    rc |= set_taken("SLURM_STEP_NODELIST", stk_jobnodes_names(&p->nodes));
    rc |= set_word("SLURMD_NODENAME", node->name) | set_word("STOKER_NODE", node->name);
    rc |= set_word("CUDA_VISIBLE_DEVICES", list) | set_word("STOKER_GPUS", list);
    return rc;
}

static int set_one_node(const struct stk_step *p, uint32_t t)
{
    const char *node = var("SLURM_JOB_NODELIST", "localhost");
    int rc = set_number("SLURM_LOCALID", t) | set_word("SLURM_NODEID", "0");

    rc |= set_number("SLURM_NTASKS_PER_NODE", p->n) | set_number("SLURM_TASKS_PER_NODE", p->n);
    rc |= set_number("SLURM_STEP_TASKS_PER_NODE", p->n) | set_word("SLURM_STEP_NUM_NODES", "1");
    rc |= set_word("SLURM_STEP_NODELIST", node) | set_word("SLURMD_NODENAME", node);
    return rc | set_gpus(p, t);
}

int stk_step_env(const struct stk_step *p, uint32_t t, struct stk_err *err)
{
    int rc = set_exported(p->b);

    rc |= set_number("SLURM_PROCID", t);
    rc |= set_number("SLURM_NTASKS", p->n) | set_number("SLURM_NPROCS", p->n);
    rc |= set_number("SLURM_STEP_NUM_TASKS", p->n);
    rc |= set_number("SLURM_TASK_PID", (uint32_t)getpid()) | set_number("SLURM_GTIDS", t);
    rc |= set_word("SLURM_STEP_ID", "0") | set_word("SLURM_STEPID", "0");
    rc |= p->nodes.n > 0 ? set_node(p, t) : set_one_node(p, t);
    rc |= set_word("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1");
    rc |= set_word("SLURM_SRUN_COMM_HOST", "127.0.0.1");
    if (p->b->cpus > 0)
        rc |= set_number("SLURM_CPUS_PER_TASK", (uint32_t)p->b->cpus);
    return rc ? stk_err_set(err, -ENOMEM, "out of memory") : 0;
}

static int lock_folder(char *path, size_t size, struct stk_err *err)
{
    struct stat st;

    (void)snprintf(path, size, "/tmp/stoker-steps-%u", (unsigned)getuid());
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return stk_err_set(err, -errno, "cannot make %s: %s", path, strerror(errno));
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
        return stk_err_set(err, -EPERM, "%s is not a folder of ours", path);
    return 0;
}

/* Locks 'want' of the GPUs and moves them to the front; false: there are not enough. */
static bool hold(struct stk_step *p, const char *folder, uint32_t want)
{
    int fds[STK_STEP_MAX_GPUS];
    uint32_t got = 0;

    for (uint32_t i = 0; i < p->n_gpus && got < want; i++) {
        char path[200], gpu[24];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/%.20s.%s", folder, var("SLURM_JOB_ID", "0"),
                       p->gpus[i]);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
            if (fd >= 0)
                (void)close(fd);
            continue;
        }
        memcpy(gpu, p->gpus[got], sizeof(gpu));
        memcpy(p->gpus[got], p->gpus[i], sizeof(gpu));
        memcpy(p->gpus[i], gpu, sizeof(gpu));
        fds[got++] = fd; /* held until this process ends */
    }
    for (uint32_t i = 0; got < want && i < got; i++)
        (void)close(fds[i]);
    if (got < want)
        return false;
    p->n_gpus = got;
    return true;
}

static void read_visible(struct stk_step *p)
{
    const char *s = var("CUDA_VISIBLE_DEVICES", "");

    while (*s != '\0' && p->n_gpus < STK_STEP_MAX_GPUS) {
        size_t n = strcspn(s, ",");

        if (n > 0 && n < sizeof(p->gpus[0]) && !memchr(s, '/', n)) {
            memcpy(p->gpus[p->n_gpus], s, n);
            p->gpus[p->n_gpus++][n] = '\0';
        }
        s += n + (s[n] == ',');
    }
}

/* The nodes of the job, where it has several, with the step's tasks on them. */
static int read_nodes(struct stk_step *p)
{
    const char *text = var(STK_JOBNODES_NAME, NULL);
    int rc = text ? stk_jobnodes_read(text, &p->nodes) : 0;

    if (rc < 0)
        return rc;
    if (p->b->nodes > 0 && p->b->nodes < p->nodes.n)
        p->nodes.n = (uint32_t)p->b->nodes;
    if (p->nodes.n > p->n)
        p->nodes.n = p->n;
    stk_jobnodes_spread(&p->nodes, p->n);
    return 0;
}

static int check_node_gpus(const struct stk_step *p, struct stk_err *err)
{
    for (uint32_t i = 0; i < p->nodes.n; i++) {
        const struct stk_jobnode *n = &p->nodes.node[i];

        if ((uint64_t)p->per_task * n->tasks > n->n_gpus)
            return stk_err_set(err, -EINVAL,
                               "Unable to create step: it asks for %u GPUs on %.200s, where the "
                               "job has %u",
                               p->per_task * n->tasks, n->name, n->n_gpus);
    }
    return 0;
}

int stk_step_gpus(struct stk_step *p, struct stk_err *err)
{
    const struct stk_sbatch *b = p->b;
    int64_t each = b->gpus_per_task, want;
    char folder[64];
    bool said = false;

    if (each < 0 && b->gpus < 0 && b->gpus_per_node < 0) {
        int64_t n;

        if (stk_words_whole(var("SLURM_GPUS_PER_TASK", ""), STK_STEP_MAX_GPUS, &n) == 0)
            each = n;
    }
    want = each >= 0 ? each * p->n : b->gpus >= 0 ? b->gpus : b->gpus_per_node;
    if (read_nodes(p) < 0)
        return stk_err_set(err, -EINVAL, STK_JOBNODES_NAME " is not what stoker has set");
    if (p->nodes.n > 0) {
        p->per_task = each > 0 ? (uint32_t)each : 0;
        return check_node_gpus(p, err);
    }
    read_visible(p);
    if (want < 0)
        return 0;
    if (want > p->n_gpus)
        return stk_err_set(err, -EINVAL,
                           "Unable to create step: it asks for %lld GPUs, the job has %u",
                           (long long)want, p->n_gpus);
    p->chosen = true;
    p->per_task = each > 0 ? (uint32_t)each : 0;
    if (want == p->n_gpus && b->gpus < 0 && b->gpus_per_node < 0)
        return 0; /* the job's own share for each task */
    if (want == 0) {
        p->n_gpus = 0;
        return 0;
    }
    if (lock_folder(folder, sizeof(folder), err) < 0)
        return -EPERM;
    while (!hold(p, folder, (uint32_t)want)) {
        if (!said)
            stk_slurm_say(p->name, "Job step creation temporarily disabled, retrying (GPUs are in "
                                   "use by other steps)");
        said = true;
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    return 0;
}
