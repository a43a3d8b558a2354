/* SPDX-License-Identifier: Apache-2.0 */
/* past.c - how a job ended that slurmctld has forgotten: its accounting knows, where there is one
 * (slurmdbd). Our jobs are known there by their administrator's comment; users' own, which have
 * more in it, by whose it is and the lease. */
#include <slurm/slurmdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libslurm/helper.h"

extern slurm_conf_t slurm_conf; /* exported by libslurm, declared nowhere */

#define EARLIER_S 60 /* clocks differ */

bool stk_slurm_accounts(void)
{
    return slurm_conf.accounting_storage_type &&
           strcmp(slurm_conf.accounting_storage_type, "accounting_storage/slurmdbd") == 0;
}

struct wanted {
    const char *comment, *begins, *lease; /* the latter two: NULL, or those of a user's own job */
};

/* "stoker MARK NUMBER FLAGSpLEASE ...": by its beginning and the end of its fourth word. */
static bool is_wanted(const char *comment, const struct wanted *w)
{
    size_t n, pin;
    const char *s;

    if (!comment || strcmp(comment, w->comment) == 0 || !w->begins || !w->lease)
        return comment && strcmp(comment, w->comment) == 0;
    if (strncmp(comment, w->begins, strlen(w->begins)) != 0)
        return false;
    s = strchr(comment + strlen(w->begins), ' ');
    n = s ? strcspn(++s, " ") : 0;
    pin = strlen(w->lease);
    return n > pin && s[n - pin - 1] == 'p' && strncmp(s + n - pin, w->lease, pin) == 0;
}

/* Of several records (it was requeued) the last one counts. */
static const slurmdb_job_rec_t *find(struct xlist *jobs, const struct wanted *w)
{
    struct listIterator *it = slurm_list_iterator_create(jobs);
    const slurmdb_job_rec_t *j, *best = NULL;

    while ((j = slurm_list_next(it)))
        if (is_wanted(j->admin_comment, w) &&
            (!best || j->submit > best->submit ||
             (j->submit == best->submit && j->db_index > best->db_index)))
            best = j;
    slurm_list_iterator_destroy(it);
    return best;
}

static json_t *show(const slurmdb_job_rec_t *j)
{
    return json_pack("{s:I,s:s,s:b,s:I,s:I,s:I,s:I,s:I}", "job", (json_int_t)j->jobid, "state",
                     stk_slurm_state_name(j->state), "completing", 0, "submitted",
                     (json_int_t)j->submit, "started", (json_int_t)j->start, "ended",
                     (json_int_t)j->end, "exit_code",
                     (json_int_t)(j->exitcode == NO_VAL ? 0 : (j->exitcode >> 8) & 0xff), "signal",
                     (json_int_t)(j->exitcode == NO_VAL ? 0 : j->exitcode & 0x7f));
}

static struct xlist *ask(void *db, const char *uid, time_t since)
{
    union {
        const char *in;
        char *out;
    } u = {.in = uid};
    slurmdb_job_cond_t cond;
    struct xlist *jobs;

    memset(&cond, 0, sizeof(cond));
    cond.flags = JOBCOND_FLAG_DUP | JOBCOND_FLAG_NO_STEP | JOBCOND_FLAG_NO_TRUNC;
    cond.db_flags = SLURMDB_JOB_FLAG_NOTSET;
    cond.usage_start = since;
    cond.usage_end = time(NULL);
    cond.userid_list = slurm_list_create(NULL);
    (void)slurm_list_append(cond.userid_list, u.out);
    jobs = slurmdb_jobs_get(db, &cond);
    slurm_list_destroy(cond.userid_list);
    return jobs;
}

json_t *stk_slurm_past(json_t *o)
{
    const struct wanted w = {json_string_value(json_object_get(o, "comment")),
                             json_string_value(json_object_get(o, "begins")),
                             json_string_value(json_object_get(o, "lease"))};
    json_int_t since = json_integer_value(json_object_get(o, "since"));
    const slurmdb_job_rec_t *found;
    uint16_t flags = 0;
    char uid[24];
    json_t *out;
    void *db;
    struct xlist *jobs;

    if (!w.comment || !json_is_integer(json_object_get(o, "uid")) || since <= 0)
        return json_pack("{s:b,s:s}", "ok", 0, "why", "past needs comment, uid and since");
    if (!stk_slurm_accounts())
        return json_pack("{s:b,s:s}", "ok", 0, "why", "Slurm has no accounting here (slurmdbd)");
    db = slurmdb_connection_get(&flags);
    if (!db)
        return json_pack("{s:b,s:s}", "ok", 0, "why", "slurmdbd cannot be reached");
    (void)snprintf(uid, sizeof(uid), "%lld",
                   (long long)json_integer_value(json_object_get(o, "uid")));
    jobs = ask(db, uid, (time_t)since - EARLIER_S);
    found = jobs ? find(jobs, &w) : NULL;
    if (!jobs)
        out = json_pack("{s:b,s:s}", "ok", 0, "why", "slurmdbd does not answer");
    else
        out = json_pack("{s:b,s:o}", "ok", 1, "past", found ? show(found) : json_null());
    if (jobs)
        slurm_list_destroy(jobs);
    (void)slurmdb_connection_close(&db);
    return out;
}
