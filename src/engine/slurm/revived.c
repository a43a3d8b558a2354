/* SPDX-License-Identifier: Apache-2.0 */
/* revived.c - jobs that have ended, and that a slurmctld which was killed believes to run.
 *
 * It had heard of the end, and had not written that down. Slurm itself notices when the node
 * registers anew, which may be hours later; until then nobody else gets the GPUs. Those that the
 * core has are looked after by lost.c. Here are the others, users' own jobs that have ended in our
 * books and jobs that were never ours: when all is told anew their nodes are asked, twice. What no
 * node knows of is ended in Slurm where it has our mark; of others' jobs people are told.
 *
 * A few at a time are asked about: starts wait for their answers. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

#define LOOK_MS 5000 /* an end that crosses a restart is told within */
#define AT_A_TIME 4

static bool has_gpus_of_ours(const struct stk_slurm *m, const json_t *job)
{
    json_t *piece;
    size_t i;

    json_array_foreach(json_object_get(job, "pieces"), i, piece)
    {
        if (stk_slurm_find_node(m, json_string_value(json_object_get(piece, "node"))) < m->n_nodes)
            return true;
    }
    return false;
}

static void look_at(struct stk_slurm *m, struct stk_slurm_seen *s)
{
    s->doubted = false;
    s->look_at = !s->number && stk_slurm_is(s->job, "running") ? stk_slurm_ms() + LOOK_MS : 0;
    m->looks |= s->look_at != 0;
}

void stk_slurm_revived_told_all(struct stk_slurm *m)
{
    for (uint32_t i = 0; i < m->n_seen; i++)
        look_at(m, &m->seen[i]);
}

void stk_slurm_revived_theirs(struct stk_slurm *m, json_t *job)
{
    struct stk_slurm_seen *s;

    (void)json_incref(job);
    s = stk_slurm_see(m, job, 0);
    json_decref(job);
    if (s)
        look_at(m, s);
}

/* "n1,n2"; malloc'ed. NULL: none, or no memory. */
static char *nodes_of(const json_t *job)
{
    char *list = NULL;
    size_t size = 0, i;
    FILE *f = open_memstream(&list, &size);
    json_t *piece;

    if (!f)
        return NULL;
    json_array_foreach(json_object_get(job, "pieces"), i, piece)
    {
        (void)fprintf(f, "%s%s", i ? "," : "", json_string_value(json_object_get(piece, "node")));
    }
    (void)fclose(f);
    return list;
}

static void end(struct stk_slurm *m, const struct stk_slurm_seen *s)
{
    struct stk_slurm_mark mk;
    char *nodes = nodes_of(s->job);

    if (stk_slurm_import_mark_of(m, s->job, &mk) && mk.pinned && m->cfg.lives &&
        !m->cfg.lives(m->cfg.ctx, stk_slurm_import_number(&mk, s->job))) {
        stk_slurm_log(m, true,
                      "job %u has ended, Slurm says that it runs (its job %u), and %.100s knows "
                      "nothing of it; it is ended there, too",
                      stk_slurm_import_number(&mk, s->job), s->slurm, nodes ? nodes : "?");
        stk_slurm_ask_cancel(m, s->job);
    } else {
        stk_slurm_log(m, true,
                      "Slurm says that its job %u runs, and %.100s knows nothing of it; its GPUs "
                      "are given to nobody until it is ended (scancel %u)",
                      s->slurm, nodes ? nodes : "?", s->slurm);
    }
    free(nodes);
}

static void on_looked(struct stk_slurm *m, uint32_t slurm, const json_t *answer)
{
    struct stk_slurm_seen *s = stk_slurm_seen(m, slurm);
    const bool ok = stk_yes(answer, "ok");

    if (!s || s->number || !stk_slurm_is(s->job, "running"))
        return;
    if (ok && json_array_size(json_object_get(answer, "nodes")) > 0)
        return;
    if (ok && json_array_size(json_object_get(answer, "steps")) == 0) {
        if (s->doubted) {
            end(m, s);
            return;
        }
        s->doubted = true;
    }
    s->look_at = stk_slurm_ms() + LOOK_MS;
    m->looks = true;
}

void stk_slurm_revived_tick(struct stk_slurm *m, int64_t now)
{
    uint32_t asked = 0;

    if (!m->looks)
        return;
    m->looks = false;
    for (uint32_t i = 0; i < m->n_seen; i++) {
        struct stk_slurm_seen *s = &m->seen[i];
        char *nodes = NULL;

        if (s->look_at && now >= s->look_at && !has_gpus_of_ours(m, s->job))
            s->look_at = 0; /* nodes were not known when it was told of */
        if (s->look_at && now >= s->look_at && asked < AT_A_TIME && (nodes = nodes_of(s->job))) {
            s->look_at = 0;
            asked++;
            (void)stk_slurm_ask_of(m,
                                   json_pack("{s:s,s:I,s:s}", "op", "left", "job",
                                             (json_int_t)s->slurm, "nodes", nodes),
                                   s->slurm, on_looked);
            free(nodes);
        }
        m->looks |= s->look_at != 0;
    }
}
