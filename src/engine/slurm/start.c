/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - a job is started: a first start sends it to Slurm, pinned to its nodes; one that was
 * stopped to make room waits in Slurm, held, and is started there again, so that its number, its
 * accounting and its log go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

#define START_MS 30000 /* Slurm has started what it was told to within */
#define OWN_MS 3000    /* ... unless it says by then that it will not, whatever the nodes */
#define KICK_MS 2000   /* how often Slurm is asked to look at what it has not started */
#define MOST_REFUSED 3 /* in a row */
#define REST_MS 1100   /* Slurm kills a job that starts again in the second in which it left */
#define LATE_MS                                                                                    \
    12000 /* a node is back: until then Slurm may end there what it has started anew               \
           */

char *stk_slurm_node_list(const struct stk_slurm *m, const struct stk_slurm_job *j, bool up)
{
    char *nodes = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&nodes, &size);

    for (uint32_t i = 0; f && i < j->n_pieces; i++) {
        const struct stk_slurm_node *n = &m->nodes[j->pieces[i].node.i];

        if (!up || n->up)
            (void)fprintf(f, "%s%s", ftell(f) > 0 ? "," : "", n->name);
    }
    if (!f || fclose(f) != 0) {
        free(nodes);
        return NULL;
    }
    return nodes;
}

/* The job that waits in Slurm is ended: another takes its place, and counts its restarts on. */
static void send_anew(struct stk_slurm *m, struct stk_slurm_job *j, struct stk_slurm_seen *s)
{
    j->before = s->before + (uint32_t)stk_whole(s->job, "restarts");
    stk_slurm_ask_cancel(m, s->job);
    stk_slurm_unsee(m, s);
}

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
    const char *s = json_string_value(json_object_get(a, key)),
               *t = json_string_value(json_object_get(b, key));

    return strcmp(s ? s : "", t ? t : "") == 0;
}

/* A job that waits in Slurm can be moved to other nodes. Another number of nodes, tasks or GPUs of
 * each cannot be told it: Slurm keeps some of what was before, and never starts it. */
static bool same_shape(const json_t *there, const json_t *place)
{
    return stk_whole(there, "nodes_wanted") == stk_whole(place, "n_nodes") &&
           stk_whole(there, "tasks") == stk_whole(place, "tasks") &&
           (stk_yes(place, "anew") ||
            (same_text(there, place, "tres_per_node") && same_text(there, place, "tres_per_task")));
}

/* Slurm does not do it now: the job rests. */
static void refuse_now(struct stk_slurm *m, struct stk_slurm_job *j, const char *sentence)
{
    stk_slurm_failed(m, j, true, false);
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_EVICTED, 0, sentence);
}

/* Slurm said no. To a start of a job that waits there: it is sent anew, and that one ended. Else
 * the core decides anew, a few times: what Slurm refuses for good is not tried for ever. */
static void refuse(struct stk_slurm *m, struct stk_slurm_job *j, const char *why, bool passes)
{
    struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);
    struct stk_slurm_rest *r;
    char sentence[512];

    (void)snprintf(sentence, sizeof(sentence), "Slurm refused it: %.400s", why ? why : "no reason");
    stk_slurm_log(m, true, "job %u: %s", j->number, sentence);
    if (passes) {
        refuse_now(m, j, sentence);
        return;
    }
    if (s && j->slurm && j->slurm == s->slurm && !j->stopping && !j->imported) {
        send_anew(m, j, s);
        j->slurm = 0;
        stk_slurm_move(j, STK_S_UNSENT);
        return;
    }
    r = stk_slurm_rest_add(m, j);
    if (!r || ++r->refused >= MOST_REFUSED) {
        if (r)
            r->refused = 0;
        stk_slurm_exited(m, j,
                         j->stopping   ? j->stop.cause
                         : j->imported ? STK_CAUSE_EVICTED
                                       : STK_CAUSE_NOT_STARTED,
                         0, sentence);
        if (j->imported) /* it is its user's to mend or to cancel */
            m->cfg.hold(m->cfg.ctx, &j->number, 1, sentence);
        return;
    }
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_EVICTED, 0, sentence);
}

/* True: it was not started. */
static bool refused(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *answer)
{
    if (answer && stk_yes(answer, "ok")) {
        struct stk_slurm_rest *r = stk_slurm_rest_find(m, j->number);

        if (r)
            r->refused = 0;
        return false;
    }
    if (!answer || stk_yes(answer, "unanswered"))
        stk_slurm_move(j, STK_S_SENT); /* what Slurm made of it shows when all is told anew */
    else
        refuse(m, j, json_string_value(json_object_get(answer, "why")), stk_yes(answer, "passes"));
    return true;
}

/* Until more is told of it: that it is gone can be told, too. An earlier one in its place, of which
 * we did not know whether Slurm has it, is ended. */
static void see_sent(struct stk_slurm *m, const struct stk_slurm_job *j)
{
    const struct stk_slurm_seen *old = stk_slurm_seen_of(m, j->number);
    json_t *o =
        json_pack("{s:I,s:s,s:o,s:I}", "job", (json_int_t)j->slurm, "state", "pending",
                  "admin_comment", stk_slurm_comment(m, j), "submitted", (json_int_t)INT32_MAX);

    if (old)
        stk_slurm_drop(m, old->job);
    if (o)
        (void)stk_slurm_see(m, o, j->number);
    json_decref(o);
}

static void on_sent(struct stk_slurm_job *j, const json_t *answer)
{
    struct stk_slurm *m = j->m;
    struct stk_slurm_seen *s;

    if (refused(m, j, answer))
        return;
    if (json_is_integer(json_object_get(answer, "job")))
        j->slurm = (uint32_t)stk_whole(answer, "job");
    if (!j->imported && !stk_slurm_seen(m, j->slurm))
        see_sent(m, j);
    s = stk_slurm_seen(m, j->slurm);
    if (s) {
        s->typed |= stk_slurm_typed(m, j);
        s->before = j->before;
    }
    j->sent_at = j->kicked_at = stk_slurm_ms(); /* it has waited for other requests */
    j->sent_by = stk_whole(answer, "id");
    stk_slurm_move(j, STK_S_SENT);
    stk_slurm_job_look(m, j);
    if (j->stopping && j->where == STK_S_SENT)
        stk_slurm_do_stop(m, j);
}

const json_t *stk_slurm_there(const struct stk_slurm *m, const struct stk_slurm_job *j,
                              json_t **ret_id)
{
    const json_t *there;

    if (j->imported)
        return stk_slurm_import_there(m, j, ret_id);
    there = stk_slurm_waits_there(m, j->number);
    *ret_id = json_incref(json_object_get(there, "job"));
    return there;
}

/* A user's own job. */
static json_t *start_theirs(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *there,
                            json_t *take_id)
{
    json_t *o = json_pack("{s:s,s:o}", "op", "start", "job", take_id);
    const char *partition = json_string_value(json_object_get(there, "partition"));
    char mark[STK_SLURM_MARK_LEN];

    stk_slurm_import_mark(m, there, j->lease, mark, sizeof(mark));
    (void)json_object_set_new(o, "admin_comment", json_string(mark));
    if (partition && strchr(partition, ','))
        (void)json_object_set_new(o, "partition",
                                  json_string(m->names[stk_slurm_import_partition(m, there)]));
    if (json_is_string(take_id))
        (void)snprintf(j->element, sizeof(j->element), "%s", json_string_value(take_id));
    return o;
}

/* The job that waits for it in Slurm can be started where it is to run. */
static bool can_start(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *there,
                      const json_t *place)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

    return j->imported ||
           (s && s->before == 0 && same_shape(there, place) && !stk_slurm_stuck(m, j, s));
}

/* Slurm goes on for ten seconds to tell a node that failed to end what ran there. What it starts
 * there under the same number as soon as the node is back would be ended. True: not yet. */
static bool too_soon(const struct stk_slurm *m, struct stk_slurm_job *j)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const int64_t back = m->use[j->pieces[i].node.i].back_at;

        if (back && stk_slurm_ms() < back + LATE_MS && j->not_before < back + LATE_MS)
            j->not_before = back + LATE_MS;
    }
    return stk_slurm_ms() < j->not_before;
}

/* One that waits in Slurm and has run before can be started there again. True: not yet. */
static bool rests(const struct stk_slurm *m, struct stk_slurm_job *j)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

    return (s && s->left_at && stk_slurm_ms() < s->left_at + REST_MS) ||
           (j->restarts > 0 && too_soon(m, j));
}

void stk_slurm_send(struct stk_slurm *m, struct stk_slurm_job *j)
{
    json_t *o = NULL, *id = NULL;
    const json_t *there;
    struct stk_err err = {""};
    int rc;

    if (!m->running || m->away || stk_slurm_ms() < j->not_before || stk_slurm_still_there(m, j))
        return;
    there = stk_slurm_there(m, j, &id);
    if ((there && rests(m, j)) || (j->imported && stk_slurm_import_stays(m, j, there))) {
        json_decref(id);
        return;
    }
    if (there)
        o = j->imported ? start_theirs(m, j, there, id)
                        : json_pack("{s:s,s:o}", "op", "start", "job", id);
    if (there)
        stk_slurm_limit_start(j, there, o);
    if (there && stk_slurm_set_place(m, j, o) == 0 && !can_start(m, j, there, o)) {
        send_anew(m, j, stk_slurm_seen_of(m, j->number));
        json_decref(o);
        there = NULL;
    }
    if (!there)
        o = stk_slurm_describe(m, j, &err);
    if (!o || stk_slurm_set_place(m, j, o) < 0) {
        json_decref(o);
        stk_slurm_exited(m, j, STK_CAUSE_NOT_STARTED, 0, err.text[0] ? err.text : "out of memory");
        return;
    }
    if (!j->imported) {
        (void)json_object_set_new(o, "comment", stk_slurm_comment(m, j));
        (void)json_object_set_new(o, "admin_comment", stk_slurm_comment(m, j));
    }
    j->slurm = there && !j->element[0] ? (uint32_t)stk_whole(there, "job") : 0;
    j->sent_at = j->kicked_at = stk_slurm_ms();
    rc = stk_slurm_ask(m, o, j, on_sent);
    if (rc == 0)
        stk_slurm_move(j, STK_S_ASKED);
    else if (rc == -E2BIG)
        stk_slurm_exited(m, j, STK_CAUSE_NOT_STARTED, 0,
                         "its description is too large to be sent to Slurm: keep what is long in "
                         "files, and name these");
}

/* Why Slurm has not started it, as it says; NULL: it does not say. */
static const char *reason_of(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);

    return s ? json_string_value(json_object_get(s->job, "reason")) : NULL;
}

/* Slurm was told to start it, and does not: it is held there, and then the core decides anew. */
static void give_up(struct stk_slurm *m, struct stk_slurm_job *j)
{
    struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);
    const char *reason = reason_of(m, j);

    if (!j->back[0]) {
        (void)snprintf(j->back, sizeof(j->back), "Slurm did not start it: %.150s",
                       reason && *reason ? reason : "it does not say why");
        stk_slurm_failed(m, j, stk_slurm_own_reason(reason), true);
        if (s && stk_slurm_typed(m, j))
            s->typed = UINT64_MAX; /* that may be why */
    }
    stk_slurm_log(m, true, "job %u: %s", j->number, j->back);
    stk_slurm_put_back(m, j);
}

void stk_slurm_starts_on(struct stk_slurm *m, uint32_t node)
{
    for (struct stk_slurm_job *j = m->timed; j; j = j->next)
        for (uint32_t i = 0; i < j->n_pieces; i++)
            if (j->pieces[i].node.i == node && j->where == STK_S_SENT && !j->back[0])
                (void)snprintf(j->back, sizeof(j->back), "%.100s takes no jobs any more",
                               m->nodes[node].name);
}

static void on_kicked(struct stk_slurm_job *j, const json_t *answer)
{
    (void)stk_slurm_unknown(j, answer);
}

/* How long Slurm is given to start it. */
static int64_t patience(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    if (stk_slurm_own_reason(reason_of(m, j)))
        return OWN_MS;
    return m->cfg.start_ms ? m->cfg.start_ms : START_MS;
}

void stk_slurm_start_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now)
{
    if (j->where == STK_S_UNSENT) {
        stk_slurm_send(m, j);
    } else if (now - j->sent_at > patience(m, j) || j->back[0]) {
        give_up(m, j);
    } else if (now - j->kicked_at > KICK_MS && j->slurm) {
        j->kicked_at = now;
        (void)stk_slurm_ask(m, stk_slurm_request("release", j), j, on_kicked);
    }
}

void stk_slurm_asked_again(struct stk_slurm *m)
{
    for (uint32_t i = m->first_ask; i < m->n_asks; i++) {
        struct stk_slurm_job *j = stk_slurm_find(m, m->asks[i].number);

        if (m->asks[i].fn == on_sent && !m->asks[i].done && j && j->lease == m->asks[i].lease &&
            j->where == STK_S_UNSENT)
            stk_slurm_move(j, STK_S_ASKED);
    }
}
