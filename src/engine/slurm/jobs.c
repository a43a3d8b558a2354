/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - jobs of ours in Slurm: which they are there, and what it means for them that Slurm says
 * that they wait, run or have ended. How that is told is in jobs_news.c.
 *
 * A job of ours is known by its administrator's comment, "stoker MARK NUMBER LEASE": its comment
 * any user could have written. Slurm uses its own numbers again when it has lost its state, and
 * remembers ended jobs for a while, also such of an earlier lease: only what is about the lease
 * that a job has counts, and only of a job of the same user. */
#include <stdio.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

#define MOST_ODD 3u
#define LATE                                                                                       \
    (5 * STK_SECOND) /* an end that is told sooner is of now: Slurm tells whole seconds            \
                      */

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

int64_t stk_slurm_wall_s(const struct stk_slurm *m)
{
    return (m->cfg.now(m->cfg.ctx) - (m->cfg.ahead ? m->cfg.ahead(m->cfg.ctx) : 0)) / STK_SECOND;
}

/* When it ended, by our time, where Slurm tells of it late; 0: now. Slurm's two times are of a
 * clock that people set: how long it ran counts, and where that cannot be, how long ago it ended.
 */
static stk_time end_of(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *job)
{
    const stk_time now = m->cfg.now(m->cfg.ctx),
                   began = m->cfg.began ? m->cfg.began(m->cfg.ctx, j->number) : 0;
    const int64_t started = stk_whole(job, "started"), ended = stk_whole(job, "ended");
    stk_time end = began + (ended - started) * STK_SECOND;

    if (began == 0 || started <= 0 || ended <= 0)
        return 0;
    if (end < began || end > now)
        end = now - (stk_slurm_wall_s(m) - ended) * STK_SECOND;
    return end >= began && now - end > LATE ? end : 0;
}

void stk_slurm_exited(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause,
                      int32_t code, const char *sentence)
{
    struct stk_event ev = {.at = m->cfg.now(m->cfg.ctx),
                           .type = STK_EV_EXITED,
                           .job = j->id,
                           .lease = j->lease,
                           .u.exit = {.cause = cause, .code = code, .ended = j->ended}};
    struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

    if (j->where == STK_S_ENDED)
        return;
    stk_slurm_unwarn(m, j);
    stk_slurm_move(j, STK_S_ENDED);
    if (cause != STK_CAUSE_EVICTED)
        stk_map_remove(&m->odd, j->number);
    else if (s)
        s->left_at = stk_slurm_ms();
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

enum stk_cause stk_slurm_cause(const json_t *job)
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
    j->ended = end_of(m, j, job);
    stk_slurm_exited(m, j, cause, code, sentence);
}

bool stk_slurm_job_ended(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    enum stk_cause cause = stk_slurm_cause(job);

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

bool stk_slurm_is_odd(struct stk_slurm *m, struct stk_slurm_job *j)
{
    uint32_t n = stk_map_get(&m->odd, j->number);

    if (stk_map_reserve(&m->odd, &m->mem, m->odd.n + 1) < 0)
        return false;
    n = n == UINT32_MAX ? 1 : n + 1;
    stk_map_put(&m->odd, j->number, n);
    if (!j->imported && n > 1)
        stk_slurm_rest_odd(m, j, n - 1);
    return j->imported && n >= MOST_ODD;
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
    if (!stk_slurm_is(job, "running") && stk_slurm_cause(job) == STK_CAUSE_NONE &&
        (j->told_started || !starts))
        return;
    stk_slurm_unwarn(m, j);
    j->again_at = 0;
    j->sent_at = j->kicked_at = stk_slurm_ms();
    note_id(j, job);
    stk_slurm_move(j, j->told_started ? STK_S_RUNNING : STK_S_SENT);
    if (j->stopping && stk_slurm_cause(job) == STK_CAUSE_NONE)
        stk_slurm_do_stop(m, j);
}

/* 'fresh': Slurm has said so since it was told to start the job. */
static void look(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job, bool fresh)
{
    enum stk_cause cause = stk_slurm_cause(job);
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

void stk_slurm_job_told(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    look(m, j, job, true);
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
