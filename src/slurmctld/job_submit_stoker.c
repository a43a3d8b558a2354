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

static bool begins_with_stoker(const char *s)
{
    return s && strncmp(s, "stoker ", 7) == 0;
}

/* One that stoker sends itself: it says where it runs. */
static bool is_stokers(const job_desc_msg_t *d, uint32_t uid)
{
    return is_admin(uid) && d->req_nodes &&
           (begins_with_stoker(d->comment) || begins_with_stoker(d->admin_comment));
}

static void set_text(char **p, const char *text)
{
    if (*p)
        slurm_xfree((void **)p);
    *p = slurm_xstrdup(text);
}

/* Of several partitions those that are stoker's: Slurm tells us only the first of a job's, and
 * would start it in the others by itself. True: some were taken away. */
static bool keep_ours(char **partitions)
{
    char kept[STK_MANAGED_SIZE];

    if (!*partitions || !strchr(*partitions, ','))
        return false;
    (void)pthread_mutex_lock(&lock);
    stk_managed_only(&managed, *partitions, kept);
    (void)pthread_mutex_unlock(&lock);
    if (!kept[0] || strcmp(kept, *partitions) == 0)
        return false;
    set_text(partitions, kept);
    return true;
}

/* What a user who sends it is told. */
static void say(char **err_msg, const char *words)
{
    if (err_msg)
        set_text(err_msg, words);
}

/* A reservation of Slurm's is for Slurm to fill: who may use it, it knows. */
static bool is_reserved(const job_desc_msg_t *d)
{
    return d->reservation && *d->reservation;
}

int job_submit(job_desc_msg_t *d, uint32_t uid, char **err_msg)
{
    char text[64] = "stoker", words[512];

    if (!is_managed(wanted_partition(d)) || is_stokers(d, uid) || is_reserved(d))
        return SLURM_SUCCESS;
    if (d->het_job_offset != NO_VAL) {
        say(err_msg, HET_TEXT);
        return ESLURM_NOT_SUPPORTED;
    }
    if (keep_ours(&d->partition)) {
        (void)snprintf(words, sizeof(words), "stoker: of its partitions it waits in %.400s alone",
                       d->partition);
        say(err_msg, words);
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

/* Where the job is, as Slurm would tell a prolog: its records are not for plugins to read. */
static void find(void *job, bool *ret_managed, bool *ret_reserved)
{
    static const char partition[] = "SLURM_JOB_PARTITION=",
                      reservation[] = "SLURM_JOB_RESERVATION=";
    char **env = job_common_env_vars ? job_common_env_vars(job, false) : NULL;

    *ret_managed = *ret_reserved = false;
    for (uint32_t i = 0; env && env[i]; i++) {
        if (strncmp(env[i], partition, sizeof(partition) - 1) == 0)
            *ret_managed = is_managed(env[i] + sizeof(partition) - 1);
        *ret_reserved |= strncmp(env[i], reservation, sizeof(reservation) - 1) == 0;
        slurm_xfree((void **)&env[i]);
    }
    slurm_xfree((void **)&env);
}

/* A job that is held for stoker stays so. Slurm takes the hold away from one whose 'nice' is
 * changed (priority/basic). */
static int change_ours(job_desc_msg_t *d)
{
    if (d->req_nodes || d->nice != NO_VAL)
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

/* Slurm may refuse one of these when the job is in its new partition, and not held yet. */
static bool may_fail(const job_desc_msg_t *d)
{
    return d->time_limit != NO_VAL || d->time_min != NO_VAL || d->end_time || d->deadline ||
           d->min_cpus != NO_VAL || d->max_cpus != NO_VAL || d->pn_min_cpus != NO_VAL16 ||
           d->cpus_per_task != NO_VAL16 || d->min_nodes != NO_VAL || d->max_nodes != NO_VAL ||
           d->num_tasks != NO_VAL;
}

/* One that comes to us: it is moved into our partition, or out of its reservation. */
static int take_in(job_desc_msg_t *d)
{
    if (d->nice != NO_VAL || may_fail(d))
        return ESLURM_ACCESS_DENIED;
    d->priority = 0;
    return SLURM_SUCCESS;
}

int job_modify(job_desc_msg_t *d, void *job, uint32_t uid)
{
    bool managed_now, reserved, ours;

    if (is_admin(uid) || (d->priority == NO_VAL && d->nice == NO_VAL && !d->req_nodes &&
                          !d->partition && !d->reservation))
        return SLURM_SUCCESS;
    find(job, &managed_now, &reserved);
    ours = managed_now && !reserved;
    if (d->partition)
        managed_now = is_managed(d->partition);
    if (d->reservation)
        reserved = is_reserved(d);
    if (ours && !managed_now)
        return ESLURM_ACCESS_DENIED;
    if (ours || (managed_now && !reserved))
        (void)keep_ours(&d->partition);
    if (ours)
        return change_ours(d);
    return managed_now && !reserved ? take_in(d) : SLURM_SUCCESS;
}
