/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_news.c - what Slurm says of jobs: whose each of them is, and which have gone.
 *
 * One that has our mark is a job of ours (jobs.c); one that a user sent to our partitions becomes
 * one (import_news.c); of others' jobs those are kept that have GPUs. When all was told, what was
 * not is gone. What runs there and has no lease that says so, a stray, is put back or ended. */
#include "engine/slurm/import.h"
#include "sys/json.h"

#define NEW_MS 1000

/* Of two with our number the later one counts: Slurm had lost the first, or it had ended. Slurm
 * may use numbers again, so when they were submitted comes first. */
static bool later(const json_t *a, const json_t *b)
{
    json_int_t at = stk_whole(a, "submitted"), bt = stk_whole(b, "submitted");

    return at != bt ? at > bt : stk_whole(a, "job") > stk_whole(b, "job");
}

void stk_slurm_drop(struct stk_slurm *m, const json_t *job)
{
    if (stk_slurm_cause(job) == STK_CAUSE_NONE && stk_slurm_number(m, job)) /* never a user's own */
        stk_slurm_ask_cancel(m, job);
}

/* Others' jobs matter while they have GPUs: also while they are suspended. */
static void theirs_news(struct stk_slurm *m, json_t *job, uint32_t slurm)
{
    struct stk_slurm_seen *s = stk_slurm_seen(m, slurm);

    if (stk_slurm_is(job, "running") || stk_slurm_is(job, "suspended") ||
        stk_yes(job, "completing"))
        (void)stk_slurm_see(m, job, 0);
    else if (s)
        stk_slurm_unsee(m, s);
}

/* Held, in Slurm's queue. */
static void put_away(struct stk_slurm *m, const struct stk_slurm_seen *s)
{
    if (stk_slurm_is(s->job, "running"))
        stk_slurm_import_requeue(m, s->job);
    else
        (void)stk_slurm_ask(
            m, json_pack("{s:s,s:o,s:b}", "op", "update", "job", stk_slurm_id(s->job), "hold", 1),
            NULL, NULL);
}

bool stk_slurm_still_there(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);
    bool waits = s && stk_slurm_is(s->job, "pending") && !j->imported,
         runs = s && stk_slurm_is(s->job, "running"), late;

    if (!s || stk_slurm_lease_of(m, s->job) == j->lease ||
        (j->imported && runs && !stk_slurm_import_back(m, s->job, j->number)))
        return false;
    if (stk_slurm_is(s->job, "completed")) {
        stk_slurm_log(m, true,
                      "job %u has run to its end in Slurm (its job %u), which had forgotten that "
                      "it was put back",
                      j->number, s->slurm);
        (void)stk_slurm_job_ended(m, j, s->job);
        return true;
    }
    if (!runs && !(waits && !stk_yes(s->job, "held")) && !stk_yes(s->job, "completing"))
        return false;
    late = stk_slurm_ms() >= j->again_at;
    if (late && (runs || waits)) {
        j->again_at = stk_slurm_ms() + NEW_MS;
        put_away(m, s);
    }
    return true;
}

/* It runs in Slurm, or may start any moment, and has no lease that says so: somebody released it,
 * its end crossed its start, or a slurmctld that was killed forgot that it was put back. It is, or
 * is ended when nobody waits for it. */
static void stray(struct stk_slurm *m, const struct stk_slurm_seen *s)
{
    if (m->adopted && stk_slurm_is(s->job, "pending") && stk_slurm_number(m, s->job) &&
        !stk_yes(s->job, "held"))
        put_away(m, s);
    if (!m->adopted || !stk_slurm_is(s->job, "running"))
        return;
    stk_slurm_log(m, true, "job %u runs in Slurm (its job %u) though it was not started; it is %s",
                  s->number, s->slurm,
                  m->cfg.lives && m->cfg.lives(m->cfg.ctx, s->number) ? "put back" : "ended");
    if (m->cfg.lives && m->cfg.lives(m->cfg.ctx, s->number))
        put_away(m, s);
    else
        stk_slurm_ask_cancel(m, s->job);
}

/* It has our mark, and is another user's than our job with that number. */
static void say_not_owned(const struct stk_slurm *m, const json_t *job)
{
    stk_job_number number;
    stk_lease_id lease;

    if (stk_slurm_cause(job) == STK_CAUSE_NONE && !stk_yes(job, "completing") &&
        stk_slurm_sent_read(stk_str(job, "admin_comment"), m->cfg.mark, &number, &lease))
        stk_slurm_log(m, true,
                      "Slurm job %lld says that it is job %u, and is another user's: it is left "
                      "alone; is the state folder an old copy?",
                      (long long)stk_whole(job, "job"), number);
}

static void job_news(struct stk_slurm *m, json_t *job)
{
    stk_job_number number = stk_slurm_number(m, job);
    json_int_t slurm = stk_whole(job, "job");
    const struct stk_slurm_seen *old;
    struct stk_slurm_job *j;

    if (slurm <= 0 || slurm >= UINT32_MAX)
        return;
    if (!number) {
        say_not_owned(m, job);
        stk_slurm_import_last(m, job);
    }
    if (!number && stk_slurm_import_news(m, job, &number))
        return;
    old = stk_slurm_seen_of(m, number);
    j = number ? stk_slurm_find(m, number) : NULL;
    if (!number) {
        theirs_news(m, job, (uint32_t)slurm);
        return;
    }
    if (old && old->slurm != slurm && later(old->job, job)) {
        stk_slurm_drop(m, job);
        return;
    }
    if (old && old->slurm != slurm)
        stk_slurm_drop(m, old->job);
    old = stk_slurm_see(m, job, number);
    if (old && (!j || j->where == STK_S_ENDED || j->where == STK_S_UNSENT))
        stray(m, old);
    else if (old)
        stk_slurm_job_told(m, j, job);
}

void stk_slurm_jobs_recheck(struct stk_slurm *m)
{
    for (uint32_t i = m->n_seen; i-- > 0;) {
        struct stk_slurm_seen *s = &m->seen[i];
        json_t *job = s->job;

        if (!s->number || stk_slurm_owned(m, s->number, job))
            continue;
        json_incref(job);
        stk_slurm_unsee(m, s);
        job_news(m, job);
        json_decref(job);
    }
}

static void forget(struct stk_slurm *m, struct stk_slurm_seen *s)
{
    struct stk_slurm_job *j = s->number ? stk_slurm_find(m, s->number) : NULL;
    bool gone = j && j->slurm == s->slurm;

    stk_slurm_unsee(m, s);
    if (gone)
        stk_slurm_lost(m, j);
}

/* It was started after the answer was asked for (a request later than 'after'), which does not know
 * of that yet; that it is gone would be told by itself. */
static bool is_new(const struct stk_slurm_job *j, json_int_t after)
{
    return j && after > 0 && j->sent_by > after;
}

/* All was told anew: what was not is gone. */
static void told_all(struct stk_slurm *m, json_int_t after)
{
    for (uint32_t i = m->n_seen; i-- > 0;)
        if (m->seen[i].round != m->round && !is_new(stk_slurm_find(m, m->seen[i].number), after))
            stk_slurm_unsee(m, &m->seen[i]);
    for (uint32_t i = 0; i < m->n_jobs; i++) {
        struct stk_slurm_job *j = m->jobs[i];
        const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

        stk_slurm_verify(j);
        if (is_new(j, after))
            continue;
        if (!s || stk_slurm_lease_of(m, s->job) != j->lease) {
            stk_slurm_lost(m, j);
        } else if (j->stopping && !j->harder_at) { /* a killed slurmctld may have forgotten */
            j->requeued = false;
            j->again_at = 1;
        }
    }
    stk_slurm_revived_told_all(m);
    stk_slurm_import_told_all(m);
}

/* By which requests about it know it: of an element that of its array. */
static uint32_t number_of(const json_t *job)
{
    return (uint32_t)stk_whole(
        job, json_is_integer(json_object_get(job, "array_task")) ? "array_job" : "job");
}

void stk_slurm_jobs_news(struct stk_slurm *m, const json_t *message)
{
    const bool all = stk_yes(message, "all");
    const int64_t boot = stk_whole(message, "boot");
    struct stk_slurm_seen *s;
    json_t *job;
    size_t i;

    if (all && !m->telling) { /* the first line of it */
        m->round++;
        if (boot != m->boot) /* it would not do what is for the one before; it shows what is left */
            stk_slurm_later_forget(m);
    }
    m->telling = all;
    json_array_foreach(json_object_get(message, "jobs"), i, job)
    {
        m->told = all ? number_of(job) : 0;
        m->told_boot = boot;
        job_news(m, job);
    }
    m->told = 0;
    json_array_foreach(json_object_get(message, "gone"), i, job)
    {
        s = stk_slurm_seen(m, (uint32_t)json_integer_value(job));
        if (s)
            forget(m, s);
        stk_slurm_import_forget(m, (uint32_t)json_integer_value(job));
    }
    if (stk_yes(message, "last"))
        stk_slurm_import_told(m);
    if (all && stk_yes(message, "last")) {
        m->telling = false;
        m->away = false;
        m->why[0] = '\0';
        m->back_at = stk_slurm_ms();
        m->boot = boot;
        told_all(m, stk_whole(message, "after"));
        m->ready = true;
    }
    stk_slurm_use_tell(m);
}
