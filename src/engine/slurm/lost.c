/* SPDX-License-Identifier: Apache-2.0 */
/* lost.c - jobs of ours that Slurm has no trace of.
 *
 * A slurmctld that is killed forgets what has happened in its last seconds: jobs that it had
 * acknowledged, and jobs that run. It ends processes that it knows nothing of when their nodes
 * report, but not where it has used their number again. So the nodes are asked first, and as long
 * as something of the job is there its GPUs are not given to anybody.
 *
 * Then: one that was not seen running is sent once more, under the same lease. One that was goes
 * back into the queue. If Slurm may have forgotten it because it ended long ago, accounting is
 * asked; where there is none, how it ended is not known.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/slurm/inner.h"
#include "sys/json.h"

#define ASK_MS 1000
#define TELL_MS 15000  /* processes that are still there then are told of */
#define PAST_MS 300000 /* so long accounting is waited for */
#define VERIFY_MS 4000
#define DOUBT_MS 60000 /* so long after slurmctld was back what it says is checked */
#define SETTLE_MS 3000 /* of one whose number is not known: nodes have reported by then */

/* An end would still be remembered: there was none. 0 seconds: Slurm forgets none. */
static bool surely_lost(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    int64_t now = m->cfg.now(m->cfg.ctx) / STK_SECOND;

    return j->seen_at > 0 && (m->remembers_s == 0 || now - j->seen_at < m->remembers_s);
}

static void settle(struct stk_slurm *m, struct stk_slurm_job *j)
{
    if (j->stopping) {
        stk_slurm_exited(m, j, j->stop.cause, 0, "");
    } else if (j->back[0]) {
        stk_slurm_exited(m, j, STK_CAUSE_EVICTED, 0, j->back);
    } else if (!j->told_started && !j->lost_once) {
        stk_slurm_log(m, true, "job %u: Slurm lost it; it is sent again", j->number);
        j->lost_once = true;
        j->slurm = 0;
        j->again_at = 0;
        stk_slurm_move(j, STK_S_UNSENT);
    } else if (!j->told_started || surely_lost(m, j)) {
        stk_slurm_log(m, true, "job %u: Slurm lost it; it waits for another start", j->number);
        stk_slurm_exited(m, j, STK_CAUSE_EVICTED, 0, "Slurm lost it");
    } else {
        stk_slurm_exited(m, j, STK_CAUSE_UNKNOWN, 0,
                         m->accounts
                             ? "Slurm and its accounting have no trace of its end; how it ended is "
                               "not known"
                             : "Slurm has forgotten it and keeps no accounting; how it ended is "
                               "not known (AccountingStorageType=accounting_storage/slurmdbd, or "
                               "a longer MinJobAge, would tell)");
    }
}

/* ---- accounting ---- */

/* slurmdbd may come back, and slurmctld tells it later what it could not tell meanwhile. */
static void past_later(struct stk_slurm_job *j, const char *trouble)
{
    struct stk_slurm *m = j->m;

    if (!j->past_at) {
        j->past_at = stk_slurm_ms();
        stk_slurm_log(m, true, "job %u: %s; it is asked again for up to %d s", j->number, trouble,
                      PAST_MS / 1000);
        if (m->cfg.warn)
            m->cfg.warn(m->cfg.ctx, j->number,
                        "it has ended, and Slurm's accounting cannot tell yet how");
    }
    j->again_at = stk_slurm_ms() + ASK_MS;
    if (stk_slurm_ms() - j->past_at > PAST_MS)
        settle(m, j);
}

static void on_past(struct stk_slurm_job *j, const json_t *answer)
{
    const json_t *past = json_object_get(answer, "past");
    const char *why = json_string_value(json_object_get(answer, "why"));
    char trouble[512];

    if (j->where != STK_S_LOST)
        return;
    if (!answer || !stk_yes(answer, "ok")) {
        (void)snprintf(trouble, sizeof(trouble), "accounting cannot be asked how it ended: %s",
                       why ? why : "no answer");
        past_later(j, trouble);
    } else if (json_is_object(past) && stk_slurm_job_ended(j->m, j, past)) {
        return;
    } else if (json_is_object(past) || j->past_at) {
        past_later(j, "accounting has not heard of its end yet");
    } else {
        settle(j->m, j);
    }
}

static void ask_past(struct stk_slurm *m, struct stk_slurm_job *j)
{
    json_t *o =
        json_pack("{s:s,s:o,s:I,s:I}", "op", "past", "comment", stk_slurm_comment(m, j), "uid",
                  (json_int_t)j->uid, "since", (json_int_t)(j->seen_at > 0 ? j->seen_at : 1));

    if (j->imported) {
        (void)json_object_set_new(o, "begins", json_sprintf("stoker %s ", m->cfg.mark));
        (void)json_object_set_new(o, "lease", json_sprintf("%u", j->lease));
    }
    j->again_at = INT64_MAX;
    if (stk_slurm_ask(m, o, j, on_past) < 0)
        j->again_at = stk_slurm_ms() + ASK_MS;
}

/* ---- processes ---- */

static void no_process(struct stk_slurm *m, struct stk_slurm_job *j)
{
    if (!j->stopping && !j->back[0] && j->told_started && m->accounts && !surely_lost(m, j))
        ask_past(m, j);
    else
        settle(m, j);
}

static void on_left(struct stk_slurm_job *j, const json_t *answer)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    const char *first = json_string_value(json_array_get(nodes, 0));

    if (j->where != STK_S_LOST)
        return;
    j->again_at = stk_slurm_ms() + ASK_MS;
    if (!answer || !stk_yes(answer, "ok"))
        return;
    if (!first) {
        no_process(j->m, j);
        return;
    }
    if (stk_slurm_ms() - j->lost_at < TELL_MS || j->told_left)
        return;
    j->told_left = true;
    stk_slurm_log(
        j->m, true,
        "job %u: Slurm has lost it (its job %u), and processes of it are left on %s; they "
        "keep their GPUs until they end, or somebody ends them there",
        j->number, j->slurm, first);
    if (j->m->cfg.warn)
        j->m->cfg.warn(j->m->cfg.ctx, j->number,
                       "Slurm has lost it, and processes of it are left on its nodes");
}

static void ask_left(struct stk_slurm *m, struct stk_slurm_job *j)
{
    char *nodes = stk_slurm_node_list(m, j, true);
    const struct stk_slurm_seen *s = stk_slurm_seen(m, j->slurm);
    bool reused = s && s->number != j->number; /* what runs there is another's */

    if (j->slurm == 0 || !nodes || !*nodes || reused) {
        if (stk_slurm_ms() - j->lost_at > SETTLE_MS || !nodes || !*nodes)
            no_process(m, j);
        else
            j->again_at = stk_slurm_ms() + ASK_MS;
        free(nodes);
        return;
    }
    j->again_at = INT64_MAX;
    if (stk_slurm_ask(
            m,
            json_pack("{s:s,s:I,s:s}", "op", "left", "job", (json_int_t)j->slurm, "nodes", nodes),
            j, on_left) < 0)
        j->again_at = stk_slurm_ms() + ASK_MS;
    free(nodes);
}

/* ---- running, Slurm says ---- */

static void on_verified(struct stk_slurm_job *j, const json_t *answer)
{
    if (j->where != STK_S_RUNNING || j->requeued)
        return;
    if (!stk_yes(answer, "ok")) { /* a node did not answer: that is no no */
        stk_slurm_verify(j);
        return;
    }
    if (json_array_size(json_object_get(answer, "nodes")) > 0)
        return;
    if (json_array_size(json_object_get(answer, "steps")) > 0) { /* its end is still to be told */
        j->doubted = false;
        stk_slurm_verify_at(j, stk_slurm_ms() + VERIFY_MS);
        return;
    }
    if (!j->doubted) { /* it may just have ended */
        j->doubted = true;
        stk_slurm_verify_at(j, stk_slurm_ms() + VERIFY_MS);
        return;
    }
    (void)snprintf(j->back, sizeof(j->back), "Slurm lost its processes");
    stk_slurm_log(j->m, true,
                  "job %u: Slurm says that it runs, its nodes know nothing of it; it "
                  "is put back",
                  j->number);
    stk_slurm_put_back(j->m, j);
}

/* Slurm itself sees to a job of which a node is down. */
static bool all_up(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    for (uint32_t i = 0; i < j->n_pieces; i++)
        if (!m->nodes[j->pieces[i].node.i].up)
            return false;
    return true;
}

static void verify(struct stk_slurm *m, struct stk_slurm_job *j)
{
    char *nodes = stk_slurm_node_list(m, j, true);

    stk_slurm_verify_at(j, 0);
    if (!all_up(m, j))
        stk_slurm_verify(j);
    else if (nodes && *nodes && j->slurm)
        (void)stk_slurm_ask(
            m,
            json_pack("{s:s,s:I,s:s}", "op", "left", "job", (json_int_t)j->slurm, "nodes", nodes),
            j, on_verified);
    free(nodes);
}

void stk_slurm_verify(struct stk_slurm_job *j)
{
    if (j->m->back_at && stk_slurm_ms() - j->m->back_at < DOUBT_MS && j->where == STK_S_RUNNING)
        stk_slurm_verify_at(j, stk_slurm_ms() + VERIFY_MS);
}

void stk_slurm_verify_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now)
{
    if (j->verify_at && now >= j->verify_at)
        verify(m, j);
}

void stk_slurm_lost_tick(struct stk_slurm *m, struct stk_slurm_job *j)
{
    if (stk_slurm_ms() >= j->again_at)
        ask_left(m, j);
}

void stk_slurm_unwarn(struct stk_slurm *m, struct stk_slurm_job *j)
{
    if ((j->told_left || j->past_at) && m->cfg.warn)
        m->cfg.warn(m->cfg.ctx, j->number, NULL);
    j->told_left = false;
    j->past_at = 0;
}

void stk_slurm_lost(struct stk_slurm *m, struct stk_slurm_job *j)
{
    if (j->where == STK_S_UNSENT || j->where == STK_S_ASKED || j->where == STK_S_ENDED ||
        j->where == STK_S_LOST)
        return;
    j->lost_at = stk_slurm_ms();
    j->seen_at = m->contact_s;
    j->again_at = j->past_at = 0;
    stk_slurm_move(j, STK_S_LOST);
}

bool stk_slurm_unknown(struct stk_slurm_job *j, const json_t *answer)
{
    struct stk_slurm_seen *s = stk_slurm_seen(j->m, j->slurm);

    if (!stk_yes(answer, "unknown"))
        return false;
    if (s && s->number == j->number)
        stk_slurm_unsee(j->m, s);
    stk_slurm_lost(j->m, j);
    return true;
}
