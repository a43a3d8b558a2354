/* SPDX-License-Identifier: Apache-2.0 */
/* jobcomp_stoker.c - jobcomp/stoker: slurmctld calls it for every job that has ended or was
 * requeued, and stoker hears of it within a millisecond. With many jobs waiting, asking Slurm what
 * has changed takes a tenth of a second and more, as it answers with all of them; that one job is
 * asked for alone.
 *
 * It writes no records. Where a site keeps them with another jobcomp plugin, JobCompParams=
 * stoker_then=filetxt names it: it is loaded here and gets every call. That of a job's number is
 * all that is needed of it, and Slurm's own way to print a job ("%pJ") has it: no private header of
 * Slurm's is used. The word goes to the socket of sched/stoker, which passes it on; a thread waits
 * for room there, so that slurmctld, which calls with its locks held, does not.
 *
 * As loaded by slurmctld it is under Slurm's licence (GPL); this source is ours (Apache-2.0). */
#include <dlfcn.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "slurmctld/other.h"
#include "slurmctld/teller.h"
#include "slurmctld/where.h"

#define EXPORT __attribute__((visibility("default")))

extern slurm_conf_t slurm_conf; /* exported by slurmctld, declared nowhere */
extern int slurm_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
extern void slurm_xfree(void **p);

/* What Slurm asks of a jobcomp plugin; newer ones use the last two in place of log_record. */
extern const char plugin_name[], plugin_type[];
extern const uint32_t plugin_version;
int init(void);
int fini(void);
int jobcomp_p_set_location(void);
int jobcomp_p_log_record(void *job);
void *jobcomp_p_get_jobs(void *condition);
int jobcomp_p_record_job_start(void *job, uint32_t event);
int jobcomp_p_record_job_end(void *job, uint32_t event);

EXPORT const char plugin_name[] = "stoker hears of ends";
EXPORT const char plugin_type[] = "jobcomp/stoker";
EXPORT const uint32_t plugin_version = SLURM_VERSION_NUMBER;

static struct {
    struct stk_teller *teller;
    char *(*print)(const char *fmt, va_list ap);
    void *then; /* the other plugin */
    int (*then_location)(void);
    int (*then_record)(void *job);
    void *(*then_jobs)(void *condition);
    int (*then_start)(void *job, uint32_t event);
    int (*then_end)(void *job, uint32_t event);
} self;

static void start_then(void)
{
    char kind[64], name[80];

    if (!stk_slurmctld_value(slurm_conf.job_comp_params, "stoker_then=", kind, sizeof(kind)))
        return;
    (void)snprintf(name, sizeof(name), "jobcomp_%s", kind);
    self.then = stk_other_start(slurm_conf.plugindir, name, plugin_version);
    if (!self.then) {
        (void)slurm_error("jobcomp/stoker: there is no jobcomp/%s of this Slurm in PluginDir: "
                          "records are not kept (JobCompParams=stoker_then)",
                          kind);
        return;
    }
    stk_other_find(self.then, "jobcomp_p_set_location", &self.then_location);
    stk_other_find(self.then, "jobcomp_p_log_record", &self.then_record);
    stk_other_find(self.then, "jobcomp_p_get_jobs", &self.then_jobs);
    stk_other_find(self.then, "jobcomp_p_record_job_start", &self.then_start);
    stk_other_find(self.then, "jobcomp_p_record_job_end", &self.then_end);
}

EXPORT int init(void)
{
    self.teller = stk_teller_new();
    stk_other_find(RTLD_DEFAULT, "vxstrfmt", &self.print);
    if (!self.print || !self.teller)
        (void)slurm_error("jobcomp/stoker: this Slurm does not say which job has ended: stoker "
                          "sees it when it looks");
    start_then();
    return SLURM_SUCCESS;
}

EXPORT int fini(void)
{
    stk_teller_free(self.teller);
    self.teller = NULL;
    stk_other_stop(self.then);
    self.then = NULL;
    return SLURM_SUCCESS;
}

static char *__attribute__((format(printf, 1, 0))) print(const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = self.print(fmt, ap);
    va_end(ap);
    return text;
}

static void tell(void *job)
{
    static const char as[] = "%pJ"; /* Slurm's own */
    char word[STK_SLURMCTLD_WORD];
    void *text = self.print ? print(as, job) : NULL;
    uint32_t id = stk_slurmctld_job(text);

    slurm_xfree(&text);
    (void)snprintf(word, sizeof(word), "end %u", id);
    if (id > 0)
        stk_teller_say(self.teller, slurm_conf.sched_params, slurm_conf.state_save_location, word);
}

EXPORT int jobcomp_p_set_location(void)
{
    return self.then_location ? self.then_location() : SLURM_SUCCESS;
}

EXPORT int jobcomp_p_log_record(void *job)
{
    tell(job);
    return self.then_record ? self.then_record(job) : SLURM_SUCCESS;
}

EXPORT void *jobcomp_p_get_jobs(void *condition)
{
    return self.then_jobs ? self.then_jobs(condition) : NULL;
}

EXPORT int jobcomp_p_record_job_start(void *job, uint32_t event)
{
    return self.then_start ? self.then_start(job, event) : SLURM_SUCCESS;
}

EXPORT int jobcomp_p_record_job_end(void *job, uint32_t event)
{
    tell(job);
    return self.then_end ? self.then_end(job, event) : SLURM_SUCCESS;
}
