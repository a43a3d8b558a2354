/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - what Slurm says of jobs, and what that means for ours.
 *
 * A job of ours is known by its administrator's comment, "stoker MARK NUMBER LEASE": its comment
 * any user could have written. Slurm uses its own numbers again when it has lost its state, and
 * remembers ended jobs for a while, also such of an earlier lease: only what is about the lease
 * that a job has counts, and only of a job of the same user. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

#define NEW_MS 1000
#define MOST_ODD 3u

bool stk_slurm_is(const json_t *job, const char *state)
{
    return stk_str_is(job, "state", state);
}

bool stk_slurm_runs(const json_t *job)
{
    return stk_slurm_is(job, "running") && !stk_yes(job, "completing");
}

bool stk_slurm_pending(const json_t *job)
{
    return stk_slurm_is(job, "pending") && !stk_yes(job, "completing");
}

bool stk_slurm_owned(const struct stk_slurm *m, stk_job_number number, const json_t *job)
{
    const json_t *uid = json_object_get(job, "uid");

    return !m->cfg.owns || !json_is_integer(uid) ||
           m->cfg.owns(m->cfg.ctx, number, (uint32_t)json_integer_value(uid));
}

/* Number and lease of a job with our mark; number 0: it is not ours. */
static stk_job_number read_mark(const struct stk_slurm *m, const json_t *job,
                                stk_lease_id *ret_lease)
{
    stk_job_number number;

    return stk_slurm_sent_read(stk_str(job, "admin_comment"), m->cfg.mark, &number, ret_lease) &&
                   stk_slurm_owned(m, number, job)
               ? number
               : 0;
}

stk_job_number stk_slurm_number(const struct stk_slurm *m, const json_t *job)
{
    stk_lease_id lease;

    return read_mark(m, job, &lease);
}

stk_lease_id stk_slurm_lease_of(const struct stk_slurm *m, const json_t *job)
{
    stk_lease_id lease;

    return read_mark(m, job, &lease) ? lease : stk_slurm_import_lease(m, job);
}

json_t *stk_slurm_comment(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    return json_sprintf("stoker %s %u %u", m->cfg.mark, j->number, j->lease);
}

json_t *stk_slurm_id(const json_t *job)
{
    char id[24];

    if (!json_is_integer(json_object_get(job, "array_task")))
        return json_incref(json_object_get(job, "job"));
    (void)snprintf(id, sizeof(id), "%u_%u", (unsigned)stk_whole(job, "array_job"),
                   (unsigned)stk_whole(job, "array_task"));
    return json_string(id);
}

void stk_slurm_exited(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause,
                      int32_t code, const char *sentence)
{
    struct stk_event ev = {.at = m->cfg.now(m->cfg.ctx),
                           .type = STK_EV_EXITED,
                           .job = j->id,
                           .lease = j->lease,
                           .u.exit = {.cause = cause, .code = code}};
    struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

    if (j->where == STK_S_ENDED)
        return;
    if (j->told_left && m->cfg.warn)
        m->cfg.warn(m->cfg.ctx, j->number, NULL);
    stk_slurm_move(j, STK_S_ENDED);
    if (s)
        s->left_at = cause == STK_CAUSE_EVICTED ? stk_slurm_ms() : 0;
    if (m->cfg.note && *sentence)
        m->cfg.note(m->cfg.ctx, j->number, sentence);
    m->base.emit(m->base.emit_ctx, &ev);
    stk_slurm_rest_exited(m, j, cause, sentence);
    stk_slurm_use_tell(m);
}

static void started(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const struct stk_event ev = {
        .at = m->cfg.now(m->cfg.ctx), .type = STK_EV_STARTED, .job = j->id, .lease = j->lease};

    stk_slurm_move(j, STK_S_RUNNING);
    j->began_at = stk_slurm_ms();
    if (!j->told_started)
        m->base.emit(m->base.emit_ctx, &ev);
    j->told_started = true;
    j->rest_ms = 0;
    stk_slurm_rest_over(m, j);
    j->doubted = false;
    stk_slurm_verify(j);
    if (j->stopping)
        stk_slurm_do_stop(m, j);
}

/* ---- ends ---- */

static enum stk_cause cause_of(const json_t *job)
{
    static const struct {
        const char *state;
        enum stk_cause cause;
    } ends[] = {{"completed", STK_CAUSE_OK},        {"cancelled", STK_CAUSE_CANCELLED},
                {"timeout", STK_CAUSE_TIMEOUT},     {"deadline", STK_CAUSE_TIMEOUT},
                {"node_fail", STK_CAUSE_NODE_LOST}, {"boot_fail", STK_CAUSE_NODE_LOST},
                {"preempted", STK_CAUSE_EVICTED},   {"out_of_memory", STK_CAUSE_OOM}};

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (stk_slurm_is(job, ends[i].state))
            return ends[i].cause;
    if (stk_slurm_is(job, "failed"))
        return stk_whole(job, "signal") > 0 ? STK_CAUSE_SIGNAL : STK_CAUSE_FAILED;
    return STK_CAUSE_NONE;
}

static void ended(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job,
                  enum stk_cause cause)
{
    int64_t sig = stk_whole(job, "signal");
    int32_t code = (int32_t)(sig > 0 ? sig : stk_whole(job, "exit_code"));
    char sentence[256] = "";

    if (!j->told_started && stk_whole(job, "started") > 0)
        started(m, j); /* it was too quick to be seen */
    if (cause == STK_CAUSE_CANCELLED && !j->stopping)
        (void)snprintf(sentence, sizeof(sentence), "was cancelled in Slurm");
    else if (cause == STK_CAUSE_NODE_LOST)
        (void)snprintf(sentence, sizeof(sentence), "Slurm lost a node of it");
    /* A user's own job cannot be sent anew: what is over in Slurm is over. */
    if (j->stopping && cause != STK_CAUSE_OK && cause != STK_CAUSE_TIMEOUT &&
        (!j->imported || j->stop.cause == STK_CAUSE_CANCELLED))
        cause = j->stop.cause;
    stk_slurm_exited(m, j, cause, code, sentence);
}

bool stk_slurm_job_ended(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    enum stk_cause cause = cause_of(job);

    if (cause == STK_CAUSE_NONE)
        return false;
    ended(m, j, job, cause);
    return true;
}

/* It waits in Slurm, although we had it started. It is held, and once nothing of it is left on its
 * nodes (a slurmctld that was killed may have forgotten that it runs) it is for the core to decide.
 */
static void is_back(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    if (stk_yes(job, "completing"))
        return;
    if (!stk_yes(job, "held")) { /* Slurm requeued it: it is ours to start */
        json_t *o = stk_slurm_request("update", j);

        (void)json_object_set_new(o, "hold", json_true());
        (void)stk_slurm_ask(m, o, NULL, NULL);
        return; /* until it is; or runs again, where it was */
    }
    if (j->stopping && j->stop.cause == STK_CAUSE_CANCELLED)
        return; /* that is under way */
    if (j->stopping) {
        stk_slurm_exited(m, j, STK_CAUSE_EVICTED, 0, j->odd ? j->back : "");
        if (j->odd)
            m->cfg.hold(m->cfg.ctx, &j->number, 1, j->back);
        return;
    }
    if (!j->back[0] && j->told_started)
        (void)snprintf(j->back, sizeof(j->back), "Slurm stopped it and put it back into its queue");
    else if (!j->back[0]) {
        (void)snprintf(j->back, sizeof(j->back), "Slurm did not start it: %.150s",
                       stk_str(job, "reason"));
        stk_slurm_failed(m, j, stk_slurm_own_reason(stk_str(job, "reason")), false);
    }
    stk_slurm_lost(m, j);
}

static void note_id(struct stk_slurm_job *j, const json_t *job)
{
    json_t *id = stk_slurm_id(job);

    j->slurm = (uint32_t)stk_whole(job, "job");
    if (json_is_string(id))
        (void)snprintf(j->element, sizeof(j->element), "%s", json_string_value(id));
    json_decref(id);
}

bool stk_slurm_is_odd(struct stk_slurm *m, const struct stk_slurm_job *j)
{
    uint32_t n = stk_map_get(&m->odd, j->number);

    if (!j->imported || stk_map_reserve(&m->odd, &m->mem, m->odd.n + 1) < 0)
        return false;
    n = n == UINT32_MAX ? 1 : n + 1;
    stk_map_put(&m->odd, j->number, n);
    return n >= MOST_ODD;
}

/* It runs, and not where it was to: it goes back, and is decided anew. What Slurm cannot put back
 * (srun, salloc, --no-requeue) is ended. */
static void misplaced(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    bool stays = j->imported && (json_is_false(json_object_get(job, "requeue")) ||
                                 json_is_false(json_object_get(job, "batch")));
    char sentence[260];

    j->odd = stk_slurm_is_odd(m, j);
    (void)snprintf(sentence, sizeof(sentence),
                   "Slurm started it elsewhere, or with other GPUs, than was decided: it is %s",
                   stays    ? "ended, as Slurm cannot put it back"
                   : j->odd ? "stopped and held; mend what it asks for with scontrol update, then "
                              "let it go on with stoker release"
                            : "stopped and goes back to the queue");
    stk_slurm_log(m, true, "job %u: %s", j->number, sentence);
    if (m->cfg.note)
        m->cfg.note(m->cfg.ctx, j->number, sentence);
    if (j->odd)
        (void)snprintf(j->back, sizeof(j->back), "%s", sentence);
    stk_slurm_stopping(j,
                       &(struct stk_stop){.job = j->id,
                                          .lease = j->lease,
                                          .cause = stays ? STK_CAUSE_CANCELLED : STK_CAUSE_EVICTED,
                                          .kill = true});
    stk_slurm_do_stop(m, j);
}

/* Where it runs, once: as soon as Slurm knows the GPUs of its nodes. */
static void judge(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    if (j->judged || j->stopping || !stk_slurm_nodes_known(m, j))
        return;
    stk_slurm_judged(j, true);
    if (stk_slurm_take_over(m, j, job))
        stk_map_remove(&m->odd, j->number);
    else
        misplaced(m, j, job);
}

static void runs(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    if (j->where == STK_S_SENT && !j->stopping) { /* should it have been given up: it is not */
        j->back[0] = '\0';
        j->requeued = false;
        j->again_at = 0;
    }
    if (j->where == STK_S_SENT)
        started(m, j);
    if (j->where == STK_S_RUNNING)
        judge(m, j, job);
}

/* Whether what is told is about this lease. */
static bool is_about(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *job)
{
    return stk_slurm_lease_of(m, job) == j->lease && j->where != STK_S_ENDED &&
           j->where != STK_S_UNSENT && j->where != STK_S_ASKED && j->where != STK_S_LOST;
}

/* Slurm has it after all, and says what has become of it. One that it put back into its queue stays
 * lost until nothing of it is left. */
static void find_again(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    uint32_t slurm = (uint32_t)stk_whole(job, "job");
    bool starts = stk_slurm_is(job, "pending") && !stk_yes(job, "held");

    if (j->where != STK_S_LOST || j->back[0] || stk_slurm_lease_of(m, job) != j->lease ||
        (j->slurm && j->slurm != slurm))
        return;
    if (!stk_slurm_is(job, "running") && cause_of(job) == STK_CAUSE_NONE &&
        (j->told_started || !starts))
        return;
    if (j->told_left && m->cfg.warn)
        m->cfg.warn(m->cfg.ctx, j->number, NULL);
    j->told_left = false;
    j->again_at = 0;
    j->sent_at = j->kicked_at = stk_slurm_ms();
    note_id(j, job);
    stk_slurm_move(j, j->told_started ? STK_S_RUNNING : STK_S_SENT);
    if (j->stopping && cause_of(job) == STK_CAUSE_NONE)
        stk_slurm_do_stop(m, j);
}

/* 'fresh': Slurm has said so since it was told to start the job. */
static void look(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job, bool fresh)
{
    enum stk_cause cause = cause_of(job);
    uint32_t slurm = (uint32_t)stk_whole(job, "job");

    if (fresh)
        find_again(m, j, job);
    if (!is_about(m, j, job))
        return;
    if (j->slurm && j->slurm != slurm)
        return; /* how an earlier launch of it ended, that Slurm still remembers */
    note_id(j, job);
    if (cause != STK_CAUSE_NONE) {
        if (!stk_yes(job, "completing") && !stk_slurm_revive(m, j, cause))
            ended(m, j, job, cause);
    } else if (stk_slurm_is(job, "running")) {
        runs(m, j, job);
        stk_slurm_limit_look(m, j, job);
    } else if (stk_slurm_is(job, "pending") &&
               (j->where == STK_S_RUNNING || j->requeued || (fresh && stk_yes(job, "held")))) {
        is_back(m, j, job);
    }
}

void stk_slurm_job_look(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

    if (s)
        look(m, j, s->job, false);
}

const json_t *stk_slurm_waits_there(const struct stk_slurm *m, stk_job_number number)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, number);

    return s && stk_slurm_is(s->job, "pending") && stk_yes(s->job, "held") ? s->job : NULL;
}

/* ---- news ---- */

/* Of two with our number the later one counts: Slurm had lost the first, or it had ended. Slurm
 * may use numbers again, so when they were submitted comes first. */
static bool later(const json_t *a, const json_t *b)
{
    json_int_t at = stk_whole(a, "submitted"), bt = stk_whole(b, "submitted");

    return at != bt ? at > bt : stk_whole(a, "job") > stk_whole(b, "job");
}

void stk_slurm_drop(struct stk_slurm *m, const json_t *job)
{
    if (cause_of(job) == STK_CAUSE_NONE && stk_slurm_number(m, job)) /* never a user's own */
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
        ended(m, j, s->job, STK_CAUSE_OK);
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

    if (cause_of(job) == STK_CAUSE_NONE && !stk_yes(job, "completing") &&
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
        look(m, j, job, true);
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

void stk_slurm_jobs_news(struct stk_slurm *m, const json_t *message)
{
    bool all = stk_yes(message, "all");
    struct stk_slurm_seen *s;
    json_t *job;
    size_t i;

    if (all && !m->telling) /* the first line of it */
        m->round++;
    m->telling = all;
    json_array_foreach(json_object_get(message, "jobs"), i, job)
    {
        job_news(m, job);
    }
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
        m->boot = stk_whole(message, "boot");
        told_all(m, stk_whole(message, "after"));
        m->ready = true;
    }
    stk_slurm_use_tell(m);
}
