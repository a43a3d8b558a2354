/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - a job is stopped: cancelled, or, to make room, warned, then requeued and held.
 *
 * For Slurm a job runs before its script does: a signal that comes in between is lost, or refused.
 * So one that has just begun is warned again until it is some seconds old; and any other as long as
 * it is not known whether it was.
 *
 * One that dies of its warning has ended for Slurm, with an error. That is no end of its own: Slurm
 * is asked to requeue it all the same. */

#include "engine/slurm/inner.h"
#include "spec/words.h"
#include "sys/json.h"

#define NO_SIGNAL (-1)
#define FRESH_MS 10000 /* its script has begun by then */
#define WARN_MS 1000
#define AGAIN_MS 1000

struct warning {
    int sig; /* NO_SIGNAL: it wants none */
    int64_t seconds;
    const char *to; /* batch, steps or all */
};

/* For Slurm all that is not the batch script alone is its steps, and the script itself hears
 * nothing: so it is of what users sent there, and of scripts made for it. What srun starts for us
 * are steps, too, and srun would hand on what it hears. */
static const char *whom(const struct stk_slurm_job *j, const json_t *spec)
{
    if (stk_str_is(json_object_get(spec, "signal"), "who", "batch"))
        return "batch";
    return j->imported || stk_yes(spec, "slurm") || stk_slurm_one_each(spec) ? "steps" : "all";
}

static struct warning warning_of(const struct stk_slurm_job *j)
{
    json_t *spec = j->spec ? stk_json_loads(j->spec) : NULL, *o = json_object_get(spec, "signal");
    const char *name = json_string_value(json_object_get(o, "signal"));
    const json_t *s = json_object_get(o, "seconds");
    struct warning w = {.sig = NO_SIGNAL,
                        .seconds = json_is_integer(s) ? json_integer_value(s) : 60,
                        .to = whom(j, spec)};

    if (name && (stk_words_signal(name, &w.sig) < 0 || w.sig <= 0))
        w.sig = NO_SIGNAL;
    json_decref(spec);
    return w;
}

json_t *stk_slurm_request(const char *op, const struct stk_slurm_job *j)
{
    if (j->element[0])
        return json_pack("{s:s,s:s}", "op", op, "job", j->element);
    return json_pack("{s:s,s:I}", "op", op, "job", (json_int_t)j->slurm);
}

/* What could not be done is tried again: Slurm was away, or the job is just starting or ending. */
static void on_stopped(struct stk_slurm_job *j, const json_t *answer)
{
    if (stk_slurm_unknown(j, answer))
        return;
    if (!answer || !stk_yes(answer, "ok"))
        j->again_at = stk_slurm_ms() + AGAIN_MS;
}

static void ask(struct stk_slurm *m, struct stk_slurm_job *j, json_t *take_request)
{
    j->again_at = 0;
    if (stk_slurm_ask(m, take_request, j, on_stopped) < 0)
        j->again_at = stk_slurm_ms() + AGAIN_MS;
}

/* Out of Slurm's hands, and held there. */
void stk_slurm_put_back(struct stk_slurm *m, struct stk_slurm_job *j)
{
    json_t *o = stk_slurm_request(j->where == STK_S_RUNNING ? "requeue" : "update", j);

    j->harder_at = 0;
    stk_slurm_requeued(j);
    if (j->where != STK_S_RUNNING)
        (void)json_object_set_new(o, "hold", json_true());
    ask(m, j, o);
}

void stk_slurm_set_warning(const struct stk_slurm_job *j, json_t *o)
{
    const struct warning w = warning_of(j);

    if (w.sig == NO_SIGNAL)
        return;
    (void)json_object_set_new(o, "signal", json_integer(w.sig));
    (void)json_object_set_new(o, "signal_s", json_integer(w.seconds));
    (void)json_object_set_new(o, "to", json_string(w.to));
}

/* Better twice than never. */
static void on_warned(struct stk_slurm_job *j, const json_t *answer)
{
    if (j->harder_at && (!answer || stk_yes(answer, "unanswered")))
        j->warn_at = stk_slurm_ms() + WARN_MS;
}

void stk_slurm_warn(struct stk_slurm *m, struct stk_slurm_job *j)
{
    int64_t now = stk_slurm_ms();
    json_t *o = stk_slurm_request("signal", j);
    bool again = now - j->began_at < FRESH_MS;

    stk_slurm_set_warning(j, o);
    again |= stk_slurm_ask(m, o, j, on_warned) < 0;
    j->warn_at = again ? now + WARN_MS : 0;
}

void stk_slurm_do_stop(struct stk_slurm *m, struct stk_slurm_job *j)
{
    struct warning w;

    if (j->where == STK_S_UNSENT) {
        stk_slurm_exited(m, j, j->stop.cause, 0, "stopped before it was started");
        return;
    }
    if (j->where == STK_S_ASKED || j->where == STK_S_ENDED || j->where == STK_S_LOST)
        return; /* when the answer comes */
    if (j->stop.cause == STK_CAUSE_CANCELLED) {
        ask(m, j, stk_slurm_request("cancel", j));
        return;
    }
    w = warning_of(j);
    if (j->stop.kill || j->where != STK_S_RUNNING || w.sig == NO_SIGNAL) {
        stk_slurm_put_back(m, j);
        return;
    }
    stk_slurm_warn(m, j);
    j->harder_at = stk_slurm_ms() + w.seconds * 1000;
}

/* Without an answer it is asked for again when all was told anew. */
static void on_revived(struct stk_slurm_job *j, const json_t *answer)
{
    if (!answer || stk_yes(answer, "unanswered"))
        j->revive = STK_R_NOT;
    else if (!stk_yes(answer, "ok"))
        j->revive = STK_R_REFUSED;
    if (j->revive == STK_R_REFUSED)
        stk_slurm_job_look(j->m, j);
}

bool stk_slurm_revive(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause)
{
    json_t *o;

    if (!j->stopping || j->stop.cause != STK_CAUSE_EVICTED || j->stop.kill ||
        (cause != STK_CAUSE_FAILED && cause != STK_CAUSE_SIGNAL) || j->revive == STK_R_REFUSED ||
        warning_of(j).sig == NO_SIGNAL)
        return false;
    if (j->revive == STK_R_ASKED)
        return true;
    o = stk_slurm_request("requeue", j);
    (void)json_object_set_new(o, "ended", json_true());
    j->harder_at = j->warn_at = j->again_at = 0;
    j->revive = stk_slurm_ask(m, o, j, on_revived) < 0 ? STK_R_NOT : STK_R_ASKED;
    return true;
}

void stk_slurm_stop_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now)
{
    bool again = j->again_at && now >= j->again_at && j->revive != STK_R_ASKED;
    bool harder = j->harder_at && now >= j->harder_at && j->where == STK_S_RUNNING;

    if (harder || (again && j->requeued)) {
        stk_slurm_put_back(m, j);
    } else if (again) {
        j->harder_at = 0;
        stk_slurm_do_stop(m, j);
    } else if (j->harder_at && j->warn_at && now >= j->warn_at && j->where == STK_S_RUNNING) {
        stk_slurm_warn(m, j);
    }
}
