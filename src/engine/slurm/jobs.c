/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - what Slurm says of jobs, and what that means for ours.
 *
 * A job of ours is known by its comment: "stoker MARK NUMBER". Slurm can lose a job that it has
 * acknowledged when its controller is killed soon after; such a job is sent once more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"

#define LOST_MS 120000 /* one that Slurm has no trace of so soon after was never kept */

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static bool is(const json_t *job, const char *state)
{
    return strcmp(text(job, "state"), state) == 0;
}

stk_job_number stk_slurm_number(const struct stk_slurm *m, const json_t *job)
{
    static const char word[] = "stoker ";
    const char *s = text(job, "comment");
    size_t len = strlen(m->cfg.mark);
    unsigned long number;

    if (strncmp(s, word, sizeof(word) - 1) != 0)
        return 0;
    s += sizeof(word) - 1;
    if (strncmp(s, m->cfg.mark, len) != 0 || s[len] != ' ')
        return 0;
    number = strtoul(s + len + 1, NULL, 10);
    return number < UINT32_MAX ? (stk_job_number)number : 0;
}

void stk_slurm_exited(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause,
                      int32_t code, const char *sentence)
{
    struct stk_event ev = {.at = m->cfg.now(m->cfg.ctx),
                           .type = STK_EV_EXITED,
                           .job = j->id,
                           .lease = j->lease,
                           .u.exit = {.cause = cause, .code = code}};
    char key[16];

    if (j->where == STK_S_ENDED)
        return;
    j->where = STK_S_ENDED;
    (void)snprintf(key, sizeof(key), "%u", j->number);
    if (cause == STK_CAUSE_EVICTED)
        (void)json_object_set_new(m->left, key, json_integer(stk_slurm_ms()));
    else
        (void)json_object_del(m->left, key);
    if (m->cfg.note && *sentence)
        m->cfg.note(m->cfg.ctx, j->number, sentence);
    m->base.emit(m->base.emit_ctx, &ev);
    stk_slurm_cluster_off(m);
}

static void started(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const struct stk_event ev = {
        .at = m->cfg.now(m->cfg.ctx), .type = STK_EV_STARTED, .job = j->id, .lease = j->lease};

    j->where = STK_S_RUNNING;
    if (!j->told_started)
        m->base.emit(m->base.emit_ctx, &ev);
    j->told_started = true;
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
        if (is(job, ends[i].state))
            return ends[i].cause;
    if (is(job, "failed"))
        return json_integer_value(json_object_get(job, "signal")) > 0 ? STK_CAUSE_SIGNAL
                                                                      : STK_CAUSE_FAILED;
    return STK_CAUSE_NONE;
}

static void ended(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job,
                  enum stk_cause cause)
{
    int64_t sig = json_integer_value(json_object_get(job, "signal"));
    int32_t code = (int32_t)(sig > 0 ? sig : json_integer_value(json_object_get(job, "exit_code")));
    char sentence[256] = "";

    if (!j->told_started && json_integer_value(json_object_get(job, "started")) > 0)
        started(m, j); /* it was too quick to be seen */
    if (cause == STK_CAUSE_CANCELLED && !j->stopping)
        (void)snprintf(sentence, sizeof(sentence), "was cancelled in Slurm");
    else if (cause == STK_CAUSE_NODE_LOST)
        (void)snprintf(sentence, sizeof(sentence), "Slurm lost a node of it");
    if (j->stopping && cause != STK_CAUSE_OK && cause != STK_CAUSE_TIMEOUT)
        cause = j->stop.cause;
    stk_slurm_exited(m, j, cause, code, sentence);
}

/* It waits in Slurm, although we had it started. */
static void is_back(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    if (json_is_true(json_object_get(job, "completing")))
        return;
    if (!json_is_true(json_object_get(job, "held"))) { /* Slurm requeued it: it is ours to start */
        json_t *o =
            json_pack("{s:s,s:I,s:b}", "op", "update", "job", (json_int_t)j->slurm, "hold", 1);

        (void)stk_slurm_ask(m, o, NULL, NULL);
        return; /* until it is; or runs again, where it was */
    }
    if (j->stopping && j->stop.cause == STK_CAUSE_CANCELLED)
        return; /* that is under way */
    stk_slurm_exited(m, j, STK_CAUSE_EVICTED, 0,
                     j->stopping ? "" : "Slurm stopped it and put it back into its queue");
}

static void look(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    enum stk_cause cause = cause_of(job);

    if (j->where == STK_S_ENDED || j->where == STK_S_UNSENT || j->where == STK_S_ASKED)
        return;
    j->slurm = (uint32_t)json_integer_value(json_object_get(job, "job"));
    if (cause != STK_CAUSE_NONE) {
        if (!json_is_true(json_object_get(job, "completing")))
            ended(m, j, job, cause);
    } else if (is(job, "running")) {
        if (j->where == STK_S_SENT)
            started(m, j);
    } else if (is(job, "pending") && (j->where == STK_S_RUNNING || j->requeued)) {
        is_back(m, j, job);
    }
}

void stk_slurm_job_look(struct stk_slurm *m, struct stk_slurm_job *j)
{
    char key[16];
    const json_t *job;

    (void)snprintf(key, sizeof(key), "%u", j->number);
    job = json_object_get(m->ours, key);
    if (job)
        look(m, j, job);
}

/* ---- news ---- */

static void lost(struct stk_slurm *m, struct stk_slurm_job *j)
{
    if (j->where == STK_S_UNSENT || j->where == STK_S_ASKED || j->where == STK_S_ENDED)
        return;
    if (j->stopping) {
        stk_slurm_exited(m, j, j->stop.cause, 0, "");
    } else if (!j->lost_once && !j->told_started && stk_slurm_ms() - j->sent_at < LOST_MS) {
        stk_slurm_log(m, true, "job %u: Slurm lost it; it is sent again", j->number);
        j->lost_once = true;
        j->slurm = 0;
        j->where = STK_S_UNSENT;
    } else {
        stk_slurm_exited(m, j, STK_CAUSE_UNKNOWN, 0,
                         "Slurm has no trace of it; how it ended is not known");
    }
}

/* Of two with our number the later one counts: Slurm had lost the first, or it had ended. */
static void drop(struct stk_slurm *m, const json_t *job)
{
    if (cause_of(job) == STK_CAUSE_NONE)
        (void)stk_slurm_ask(
            m, json_pack("{s:s,s:O}", "op", "cancel", "job", json_object_get(job, "job")), NULL,
            NULL);
}

static void job_news(struct stk_slurm *m, json_t *job)
{
    stk_job_number number = stk_slurm_number(m, job);
    struct stk_slurm_job *j = number ? stk_slurm_find(m, number) : NULL;
    json_int_t id = json_integer_value(json_object_get(job, "job"));
    const json_t *old;
    char key[24];

    (void)snprintf(key, sizeof(key), "%lld", (long long)(number ? number : id));
    if (!number) {
        if (is(job, "running") || json_is_true(json_object_get(job, "completing")))
            (void)json_object_set(m->theirs, key, job);
        else
            (void)json_object_del(m->theirs, key);
        return;
    }
    old = json_object_get(m->ours, key);
    if (old && json_integer_value(json_object_get(old, "job")) > id) {
        drop(m, job);
        return;
    }
    if (old && json_integer_value(json_object_get(old, "job")) != id)
        drop(m, old);
    (void)json_object_set(m->ours, key, job);
    if (j)
        look(m, j, job);
}

static void forget(struct stk_slurm *m, json_int_t id)
{
    char key[24];
    const char *number;
    json_t *job;
    void *next;

    (void)snprintf(key, sizeof(key), "%lld", (long long)id);
    (void)json_object_del(m->theirs, key);
    json_object_foreach_safe(m->ours, next, number, job)
    {
        if (json_integer_value(json_object_get(job, "job")) == id) {
            struct stk_slurm_job *j = stk_slurm_find(m, (stk_job_number)strtoul(number, NULL, 10));

            (void)json_object_del(m->ours, number);
            if (j && j->slurm == id)
                lost(m, j);
            return;
        }
    }
}

/* All was told anew: those of ours that were not are gone. */
static void told_all(struct stk_slurm *m)
{
    for (struct stk_slurm_job *j = m->jobs, *next; j; j = next) {
        char key[16];

        next = j->next;
        (void)snprintf(key, sizeof(key), "%u", j->number);
        if (!json_object_get(m->ours, key))
            lost(m, j);
    }
}

void stk_slurm_jobs_news(struct stk_slurm *m, const json_t *message)
{
    bool all = json_is_true(json_object_get(message, "all"));
    json_t *job;
    size_t i;

    if (all && !m->told_away) { /* the first line of it */
        (void)json_object_clear(m->ours);
        (void)json_object_clear(m->theirs);
        m->told_away = true;
    }
    json_array_foreach(json_object_get(message, "jobs"), i, job)
    {
        job_news(m, job);
    }
    json_array_foreach(json_object_get(message, "gone"), i, job)
    {
        forget(m, json_integer_value(job));
    }
    if (all && json_is_true(json_object_get(message, "last"))) {
        m->told_away = false;
        m->away = false;
        m->why[0] = '\0';
        told_all(m);
        m->ready = true;
    }
    if (m->nodes && m->off)
        stk_slurm_cluster_off(m);
}
