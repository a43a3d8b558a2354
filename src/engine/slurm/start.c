/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - a job is started: a first start sends it to Slurm, pinned to its nodes; one that was
 * stopped to make room waits in Slurm, held, and is started there again, so that its number, its
 * accounting and its log go on. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/slurm/inner.h"

/* "n1,n2", and how many GPUs of each. */
static int set_place(const struct stk_slurm *m, const struct stk_slurm_job *j, json_t *o)
{
    uint32_t tasks = 0;
    bool even = true;
    char *nodes = NULL, gres[64];
    size_t size = 0;
    FILE *f = open_memstream(&nodes, &size);

    for (uint32_t i = 0; f && i < j->n_pieces; i++) {
        (void)fprintf(f, "%s%s", i ? "," : "", m->nodes[j->pieces[i].node.i].name);
        tasks += j->pieces[i].tasks;
        even = even && j->pieces[i].gpus == j->pieces[0].gpus &&
               j->pieces[i].tasks == j->pieces[0].tasks;
    }
    if (!f || fclose(f) != 0 || !nodes) {
        free(nodes);
        return -ENOMEM;
    }
    (void)json_object_set_new(o, "nodes", json_string(nodes));
    (void)json_object_set_new(o, "n_nodes", json_integer(j->n_pieces));
    (void)json_object_set_new(o, "tasks", json_integer(tasks));
    if (even) {
        (void)json_object_set_new(o, "tasks_per_node", json_integer(j->pieces[0].tasks));
        (void)snprintf(gres, sizeof(gres), "gres:gpu:%u", j->pieces[0].gpus);
    } else {
        (void)snprintf(gres, sizeof(gres), "gres:gpu:%u",
                       j->pieces[0].tasks ? j->pieces[0].gpus / j->pieces[0].tasks : 0);
    }
    if (j->pieces[0].gpus > 0)
        (void)json_object_set_new(o, even ? "tres_per_node" : "tres_per_task", json_string(gres));
    free(nodes);
    return 0;
}

/* < 0: Slurm could not be asked, or said no. */
static bool refused(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *answer)
{
    const char *why = json_string_value(json_object_get(answer, "why"));
    char sentence[512];

    if (answer && json_is_true(json_object_get(answer, "ok")))
        return false;
    if (!answer) { /* what Slurm has made of it shows when all is told anew */
        stk_slurm_move(j, STK_S_SENT);
        return true;
    }
    (void)snprintf(sentence, sizeof(sentence), "Slurm refused it: %.400s", why ? why : "no reason");
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_NOT_STARTED, 0, sentence);
    return true;
}

/* Until more is told of it: that it is gone can be told, too. */
static void see_sent(struct stk_slurm *m, const struct stk_slurm_job *j)
{
    json_t *o = json_pack("{s:I,s:s}", "job", (json_int_t)j->slurm, "state", "pending");

    if (o)
        (void)stk_slurm_see(m, o, j->number);
    json_decref(o);
}

static void on_sent(struct stk_slurm_job *j, const json_t *answer)
{
    struct stk_slurm *m = j->m;

    if (refused(m, j, answer))
        return;
    if (json_is_integer(json_object_get(answer, "job")))
        j->slurm = (uint32_t)json_integer_value(json_object_get(answer, "job"));
    if (!stk_slurm_seen(m, j->slurm))
        see_sent(m, j);
    stk_slurm_move(j, STK_S_SENT);
    stk_slurm_job_look(m, j);
    if (j->stopping && j->where == STK_S_SENT)
        stk_slurm_do_stop(m, j);
}

void stk_slurm_send(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const json_t *there = stk_slurm_waits_there(m, j->number);
    struct stk_err err = {""};
    json_t *o;

    if (!m->running || m->away || stk_slurm_ms() < j->not_before)
        return;
    if (there)
        o = json_pack("{s:s,s:O}", "op", "start", "job", json_object_get(there, "job"));
    else
        o = stk_slurm_describe(m, j, &err);
    if (!o || set_place(m, j, o) < 0) {
        json_decref(o);
        stk_slurm_exited(m, j, STK_CAUSE_NOT_STARTED, 0, err.text[0] ? err.text : "out of memory");
        return;
    }
    if (there)
        j->slurm = (uint32_t)json_integer_value(json_object_get(there, "job"));
    j->sent_at = stk_slurm_ms();
    if (stk_slurm_ask(m, o, j, on_sent) == 0)
        stk_slurm_move(j, STK_S_ASKED);
}

void stk_slurm_give_up(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);
    const char *reason = s ? json_string_value(json_object_get(s->job, "reason")) : NULL;
    char sentence[256];

    (void)snprintf(sentence, sizeof(sentence), "Slurm did not start it: %.200s",
                   reason && *reason ? reason : "it does not say why");
    stk_slurm_log(m, true, "job %u: %s", j->number, sentence);
    stk_slurm_put_back(m, j);
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_EVICTED, 0, sentence);
}
