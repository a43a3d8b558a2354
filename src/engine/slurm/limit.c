/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - time limits: of a job that runs they are changed in Slurm, and heard of from there.
 *
 * Slurm ends jobs, so what its record says is so: where that differs from what we have, the books
 * take it over, whoever changed it there. A change of ours is told to Slurm first, and what its
 * record says is not looked at until it has answered and had time to tell the record anew; one
 * that Slurm refuses is taken back in the same way. Slurm counts minutes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

#define SETTLE_MS 3000 /* a record that is told later is not from before the change */

/* As Slurm has it; 0: none. */
static int64_t minutes(int64_t s)
{
    return (s + 59) / 60;
}

static int64_t there(const json_t *job)
{
    return stk_whole(job, "time_limit_s");
}

static void set(json_t *o, int64_t limit)
{
    (void)json_object_set_new(o, "time_limit_s", limit > 0 ? json_integer(limit) : json_null());
}

int64_t stk_slurm_longest(const struct stk_engine *e, const char *partition)
{
    return stk_whole(stk_slurm_find_partition((const struct stk_slurm *)e, partition),
                     "max_time_s");
}

void stk_slurm_limit_start(const struct stk_slurm_job *j, const json_t *job, json_t *o)
{
    if (j->limit_s > 0 && minutes(j->limit_s) != minutes(there(job)))
        set(o, j->limit_s);
}

/* ---- told ---- */

static void refused(struct stk_slurm *m, struct stk_slurm_job *j, const char *why)
{
    char sentence[400];

    (void)snprintf(sentence, sizeof(sentence),
                   "Slurm refused another time limit: %.250s; it keeps the one that it has there",
                   why ? why : "no reason");
    stk_slurm_log(m, true, "job %u: %s", j->number, sentence);
    if (m->cfg.warn)
        m->cfg.warn(m->cfg.ctx, j->number, sentence);
    j->limit_warned = true;
}

static void on_told(struct stk_slurm_job *j, const json_t *answer)
{
    struct stk_slurm *m = j->m;

    j->limit_asked = false;
    j->limit_at = stk_slurm_ms() + SETTLE_MS;
    if (!answer || stk_yes(answer, "unanswered")) {
        j->limit_tell = true; /* it is told again when Slurm is back */
    } else if (!stk_yes(answer, "ok")) {
        refused(m, j, json_string_value(json_object_get(answer, "why")));
    } else if (j->limit_warned) {
        j->limit_warned = false;
        if (m->cfg.warn)
            m->cfg.warn(m->cfg.ctx, j->number, NULL);
    }
    stk_slurm_limit_due(j, true);
}

static void tell(struct stk_slurm *m, struct stk_slurm_job *j)
{
    json_t *o;

    if (!m->running || m->away || j->limit_asked || j->where != STK_S_RUNNING)
        return;
    j->limit_tell = false;
    o = stk_slurm_request("update", j);
    set(o, j->limit_s);
    if (stk_slurm_ask(m, o, j, on_told) == 0)
        j->limit_asked = true;
    else
        j->limit_tell = true;
}

/* One of a user's own that waits: its record says from now on what it will run with. An element of
 * an array that has no record of its own hears of it when it starts. */
static void tell_waiting(struct stk_slurm *m, stk_job_number number)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, number);
    struct stk_slurm_mark mk;
    int64_t limit;
    json_t *o;

    if (!s || !m->cfg.limit || !stk_slurm_import_mark_of(m, s->job, &mk) ||
        strcmp(json_string_value(json_object_get(s->job, "state")), "pending") != 0)
        return;
    limit = m->cfg.limit(m->cfg.ctx, number);
    if (limit == 0 || minutes(limit) == minutes(there(s->job)))
        return;
    o = json_pack("{s:s,s:o}", "op", "update", "job", stk_slurm_id(s->job));
    set(o, limit);
    (void)stk_slurm_ask(m, o, NULL, NULL);
}

void stk_slurm_update(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find(m, s->number);
    const struct stk_slurm_seen *seen = stk_slurm_seen_of(m, s->number);
    char *spec;

    (void)now;
    if (s->lease == 0)
        tell_waiting(m, s->number);
    if (!j || j->lease != s->lease || j->where == STK_S_ENDED)
        return;
    spec = s->spec ? strdup(s->spec) : NULL;
    if (!spec)
        return;
    free(j->spec);
    j->spec = spec;
    stk_slurm_read_spec(j);
    if (j->where == STK_S_RUNNING && seen && minutes(there(seen->job)) == minutes(j->limit_s))
        return; /* that is where it comes from */
    j->limit_tell = true;
    tell(m, j);
    stk_slurm_limit_due(j, true);
}

/* ---- heard ---- */

void stk_slurm_limit_look(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    json_t *wish;

    if (j->where != STK_S_RUNNING || !m->cfg.wishes || j->stopping ||
        minutes(there(job)) == minutes(j->limit_s))
        return;
    if (j->limit_tell || j->limit_asked || stk_slurm_ms() < j->limit_at) {
        stk_slurm_limit_due(j, true); /* it is looked at again */
        return;
    }
    j->limit_s = there(job);
    wish = json_object();
    if (j->limit_s > 0)
        set(wish, j->limit_s);
    m->cfg.wishes(m->cfg.ctx, &j->number, 1, wish);
    json_decref(wish);
}

void stk_slurm_limit_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

    if (!j->limit_due || j->where != STK_S_RUNNING || j->limit_asked)
        return;
    if (j->limit_tell) {
        tell(m, j);
    } else if (now >= j->limit_at) {
        stk_slurm_limit_due(j, false);
        if (s)
            stk_slurm_limit_look(m, j, s->job);
    }
}
