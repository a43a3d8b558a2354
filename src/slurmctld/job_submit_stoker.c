/* SPDX-License-Identifier: Apache-2.0 */
/* job_submit_stoker.c - a plugin of slurmctld's: jobs that users send to a partition of stoker's
 * are held, so that they start when stoker says so. stoker.conf beside slurm.conf names the
 * partitions. docs/spec/slurm-plugins.md has what it does; docs/guide/slurm.md how it is set up.
 *
 * Slurm knows one hold, and that one is ours. A user's own hold is kept as a begin time that never
 * comes, which users may set and Slurm writes down: "scontrol hold" and "release" do so here, so
 * they work as users know them, and neither starts a job. What Slurm does not tell others, the
 * signal of --signal, is put into the administrator's comment for stoker to read.
 *
 * slurmctld is under the GNU GPL, and so is this plugin as it is loaded; its source is ours.
 */
#include <fcntl.h>
#include <pthread.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "slurmctld/managed.h"
#include "slurmctld/teller.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT const char plugin_name[] = "jobs wait for stoker";
EXPORT const char plugin_type[] = "job_submit/stoker";
EXPORT const uint32_t plugin_version = SLURM_VERSION_NUMBER;
EXPORT const uint32_t min_plug_version = 100;

#define HELD_UNTIL ((time_t)4102444799) /* the end of 2099: it never comes */
#define HET_TEXT "stoker: heterogeneous jobs (sbatch ... : ...) cannot be run in its partitions"

/* Of slurmctld and its library; no header declares them. */
extern slurm_conf_t slurm_conf;
extern char *slurm_xstrdup(const char *s);
extern void slurm_xfree(void **p);
extern void slurm_error(const char *fmt, ...);
extern char *default_part_name __attribute__((weak));
extern char **job_common_env_vars(void *job, bool is_complete) __attribute__((weak));

EXPORT int init(void);
EXPORT int fini(void);
EXPORT int job_submit(job_desc_msg_t *d, uint32_t uid, char **err_msg);
EXPORT int job_modify(job_desc_msg_t *d, void *job, uint32_t uid);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stk_managed managed;
static struct timespec read_at; /* when the file had been changed last */
static bool missing;
static struct stk_teller *teller;

/* "stoker.conf" in the folder of slurm.conf. */
static bool conf_path(char *path, size_t size)
{
    const char *conf = slurm_conf.slurm_conf ? slurm_conf.slurm_conf : getenv("SLURM_CONF");
    const char *slash = conf ? strrchr(conf, '/') : NULL;

    return slash && snprintf(path, size, "%.*s/stoker.conf", (int)(slash - conf), conf) < (int)size;
}

static void read_conf(const char *path)
{
    char text[STK_MANAGED_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

    if (fd >= 0)
        (void)close(fd);
    if (n < 0 || n == (ssize_t)sizeof(text) || !stk_managed_read(text, (size_t)n, &managed))
        slurm_error("job_submit/stoker: %s is not understood: it has lines such as "
                    "Partitions=gpu,gpu-long",
                    path);
}

/* Reads the file when it has changed. */
static void look(void)
{
    struct stat st;
    char path[4096];

    if (!conf_path(path, sizeof(path)) || stat(path, &st) < 0) {
        if (!missing)
            slurm_error("job_submit/stoker: there is no stoker.conf beside slurm.conf: no job is "
                        "held for stoker");
        missing = true;
        managed.names[0] = '\0';
        return;
    }
    if (!missing && st.st_mtim.tv_sec == read_at.tv_sec && st.st_mtim.tv_nsec == read_at.tv_nsec)
        return;
    missing = false;
    read_at = st.st_mtim;
    read_conf(path);
}

static bool is_managed(const char *partitions)
{
    bool is;

    (void)pthread_mutex_lock(&lock);
    look();
    is = stk_managed_any(&managed, partitions);
    (void)pthread_mutex_unlock(&lock);
    return is;
}

static bool is_admin(uint32_t uid)
{
    return uid == 0 || uid == slurm_conf.slurm_user_id;
}

int init(void)
{
    teller = stk_teller_new();
    (void)is_managed(NULL);
    return SLURM_SUCCESS;
}

int fini(void)
{
    stk_teller_free(teller);
    teller = NULL;
    return SLURM_SUCCESS;
}

/* ---- submission ---- */

static const char *wanted_partition(const job_desc_msg_t *d)
{
    if (d->partition && *d->partition)
        return d->partition;
    return &default_part_name ? default_part_name : NULL;
}

/* One that stoker sends itself: it says where it runs. */
static bool is_stokers(const job_desc_msg_t *d, uint32_t uid)
{
    return is_admin(uid) && d->comment && strncmp(d->comment, "stoker ", 7) == 0 && d->req_nodes;
}

static void set_text(char **p, const char *text)
{
    if (*p)
        slurm_xfree((void **)p);
    *p = slurm_xstrdup(text);
}

int job_submit(job_desc_msg_t *d, uint32_t uid, char **err_msg)
{
    char text[64] = "stoker";

    if (!is_managed(wanted_partition(d)) || is_stokers(d, uid))
        return SLURM_SUCCESS;
    if (d->het_job_offset != NO_VAL) {
        if (err_msg)
            set_text(err_msg, HET_TEXT);
        return ESLURM_NOT_SUPPORTED;
    }
    if (d->priority == 0)
        d->begin_time = HELD_UNTIL;
    if (d->warn_signal > 0 && d->warn_signal != NO_VAL16)
        (void)snprintf(text, sizeof(text), "stoker signal=%u@%u%s", (unsigned)d->warn_signal,
                       (unsigned)(d->warn_time == NO_VAL16 ? 60 : d->warn_time),
                       d->warn_flags & KILL_JOB_BATCH ? "B" : "");
    set_text(&d->admin_comment, text);
    d->priority = 0;
    stk_teller_say(teller, slurm_conf.sched_params, slurm_conf.state_save_location, "new");
    return SLURM_SUCCESS;
}

/* ---- changes ---- */

/* The job's partition, as Slurm would tell a prolog: its records are not for plugins to read. */
static bool is_ours(void *job)
{
    static const char name[] = "SLURM_JOB_PARTITION=";
    char **env = job_common_env_vars ? job_common_env_vars(job, false) : NULL;
    bool is = false;

    for (uint32_t i = 0; env && env[i]; i++) {
        is |= strncmp(env[i], name, sizeof(name) - 1) == 0 && is_managed(env[i] + sizeof(name) - 1);
        slurm_xfree((void **)&env[i]);
    }
    slurm_xfree((void **)&env);
    return is;
}

int job_modify(job_desc_msg_t *d, void *job, uint32_t uid)
{
    bool in = d->partition && is_managed(d->partition);

    if (is_admin(uid))
        return SLURM_SUCCESS;
    if (d->priority == NO_VAL && !d->req_nodes && !d->partition)
        return SLURM_SUCCESS;
    if (!is_ours(job)) {
        if (in) /* it comes to us */
            d->priority = 0;
        return SLURM_SUCCESS;
    }
    if (d->req_nodes || (d->partition && !in))
        return ESLURM_ACCESS_DENIED;
    if (d->priority == 0)
        d->begin_time = HELD_UNTIL;
    else if (d->priority == INFINITE)
        d->begin_time = time(NULL);
    else if (d->priority != NO_VAL)
        return ESLURM_ACCESS_DENIED;
    d->priority = NO_VAL;
    return SLURM_SUCCESS;
}
