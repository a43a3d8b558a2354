/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - where a job is to run, in Slurm's words, and whether Slurm has put it there.
 *
 * Slurm pins nodes by name. It pins GPUs only by type: where gres.conf gives each GPU of a node a
 * type of its own (g0, g1, ...) exactly those that the core chose are asked for; elsewhere a
 * number of them, and Slurm chooses. What a gang has is the same on all its nodes for Slurm: with
 * other GPUs on each, it is asked for by number, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"

/* Each type has one GPU, and they are a word and the numbers from 0 on; *ret_len is of the word. */
static bool numbered(const json_t *gpus, size_t *ret_len)
{
    const char *first = json_string_value(json_object_get(json_array_get(gpus, 0), "type"));
    size_t n = json_array_size(gpus), len = first ? strlen(first) : 0;
    char want[STK_SLURM_WORD + 16];

    if (n < 2 || len < 2 || len > STK_SLURM_WORD || first[len - 1] != '0')
        return false;
    *ret_len = --len;
    for (size_t i = 0; i < n; i++) {
        const json_t *g = json_array_get(gpus, i);
        const char *type = json_string_value(json_object_get(g, "type"));

        (void)snprintf(want, sizeof(want), "%.*s%zu", (int)len, first, i);
        if (!type || strcmp(type, want) != 0 ||
            json_integer_value(json_object_get(g, "count")) != 1)
            return false;
    }
    return true;
}

char *stk_slurm_numbered(const json_t *gpus)
{
    size_t len = 0;

    return numbered(gpus, &len)
               ? strndup(json_string_value(json_object_get(json_array_get(gpus, 0), "type")), len)
               : NULL;
}

char *stk_slurm_model(const char *features)
{
    static const char key[] = "gpu_";

    while (features && *features) {
        size_t len = strcspn(features, ",");

        if (len > sizeof(key) - 1 && strncmp(features, key, sizeof(key) - 1) == 0)
            return strndup(features + sizeof(key) - 1, len - sizeof(key) + 1);
        features += len + (features[len] == ',');
    }
    return NULL;
}

/* The word of its nodes' types, when exact GPUs can be asked for; NULL: a number of them. */
static const char *exact(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    const char *word = j->imported ? NULL : m->nodes[j->pieces[0].node.i].numbered;

    for (uint32_t i = 0; i < j->n_pieces && word; i++) {
        const char *its = m->nodes[j->pieces[i].node.i].numbered;

        if (!its || strcmp(its, word) != 0 || j->pieces[i].mask != j->pieces[0].mask)
            return NULL;
    }
    return word;
}

/* By what Slurm says that it asks for: "gres:gpu:g0:1,gres:gpu:g3:1". */
static uint64_t asked_by_type(const struct stk_slurm *m, uint32_t node, const json_t *job)
{
    const char *word = m->nodes[node].numbered,
               *s = json_string_value(json_object_get(job, "tres_per_node"));
    uint64_t mask = 0;

    while (word && s && (s = strstr(s, "gpu:"))) {
        s += 4;
        if (strncmp(s, word, strlen(word)) == 0)
            mask |= UINT64_C(1) << (strtoul(s + strlen(word), NULL, 10) & 63);
    }
    return mask;
}

/* Slurm keeps a type that a job was pinned to, with a number of none, when it is pinned to others,
 * and then wants a GPU of it free where the job starts. */
bool stk_slurm_stuck(const struct stk_slurm *m, const struct stk_slurm_job *j,
                     const struct stk_slurm_seen *s)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &j->pieces[i];
        const struct stk_slurm_use *u = &m->use[p->node.i];
        uint64_t left = (s->typed | asked_by_type(m, p->node.i, s->job)) & ~p->mask,
                 busy = u->taken & ~p->mask;

        for (uint32_t k = 0; k < 64; k++)
            busy |= (uint64_t)(u->index[k] > 0) << k;
        if (m->nodes[p->node.i].numbered && (left & busy))
            return true;
    }
    return false;
}

uint64_t stk_slurm_typed(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    return exact(m, j) ? j->pieces[0].mask : 0;
}

static void put_gpus(FILE *f, const char *word, const struct stk_piece *p, uint32_t n)
{
    const char *sep = "";

    if (!word)
        (void)fprintf(f, "gres:gpu:%u", n);
    for (uint64_t left = word ? p->mask : 0; left; left &= left - 1) {
        (void)fprintf(f, "%sgres:gpu:%s%d:1", sep, word, __builtin_ctzll(left));
        sep = ",";
    }
}

static uint32_t tasks_of(const struct stk_slurm_job *j, bool *ret_even)
{
    uint32_t tasks = 0;

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        tasks += j->pieces[i].tasks;
        *ret_even = *ret_even && j->pieces[i].gpus == j->pieces[0].gpus &&
                    j->pieces[i].tasks == j->pieces[0].tasks;
    }
    return tasks;
}

int stk_slurm_set_place(const struct stk_slurm *m, const struct stk_slurm_job *j, json_t *o)
{
    const struct stk_piece *p = &j->pieces[0];
    char *nodes = stk_slurm_node_list(m, j, false), *gres = NULL;
    size_t n_gres = 0;
    FILE *g = open_memstream(&gres, &n_gres);
    bool even = true, failed = !g || !nodes;
    uint32_t tasks = tasks_of(j, &even);

    if (g && even)
        put_gpus(g, exact(m, j), p, p->gpus);
    else if (g)
        put_gpus(g, NULL, p, p->tasks ? p->gpus / p->tasks : 0);
    failed = (g && fclose(g) != 0) || failed;
    if (!failed) {
        (void)json_object_set_new(o, "nodes", json_string(nodes));
        (void)json_object_set_new(o, "n_nodes", json_integer(j->n_pieces));
    }
    if (!failed && !j->imported) { /* else the rest is as its user has it */
        (void)json_object_set_new(o, "tasks", json_integer(tasks));
        if (even)
            (void)json_object_set_new(o, "tasks_per_node", json_integer(p->tasks));
        if (p->gpus > 0)
            (void)json_object_set_new(o, even ? "tres_per_node" : "tres_per_task",
                                      json_string(gres));
        if (exact(m, j)) /* what it asked for before would be added */
            (void)json_object_set_new(o, "anew", json_true());
    }
    free(nodes);
    free(gres);
    return failed ? -ENOMEM : 0;
}

/* ---- where it is ---- */

static struct stk_piece *piece_on(const struct stk_slurm_job *j, uint32_t node)
{
    for (uint32_t i = 0; i < j->n_pieces; i++)
        if (j->pieces[i].node.i == node)
            return &j->pieces[i];
    return NULL;
}

static uint64_t indices_of(const json_t *gpus)
{
    uint64_t mask = 0;

    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *list = json_object_get(json_array_get(gpus, i), "indices");

        for (size_t k = 0; k < json_array_size(list); k++)
            mask |= UINT64_C(1) << (json_integer_value(json_array_get(list, k)) & 63);
    }
    return mask;
}

/* Who of ours has the GPU in the books; NULL: nobody. O(jobs with GPUs), where they are not as
 * Slurm has them. */
static struct stk_slurm_job *holder(const struct stk_slurm *m, uint32_t node, uint64_t bit)
{
    for (uint32_t i = 0; i < m->n_jobs && (m->use[node].taken & bit); i++) {
        const struct stk_piece *p = piece_on(m->jobs[i], node);

        if (p && (p->mask & bit) && m->jobs[i]->where != STK_S_ENDED)
            return m->jobs[i];
    }
    return NULL;
}

static void swap(struct stk_slurm *m, struct stk_slurm_job *j, struct stk_piece *p, uint64_t had,
                 uint64_t has)
{
    struct stk_slurm_job *other = holder(m, p->node.i, has);
    const struct stk_event ev = {.at = m->cfg.now(m->cfg.ctx),
                                 .type = STK_EV_SWAPPED,
                                 .job = j->id,
                                 .lease = j->lease,
                                 .u.swap = {.node = p->node,
                                            .had = (uint32_t)__builtin_ctzll(had),
                                            .has = (uint32_t)__builtin_ctzll(has),
                                            .with = other ? other->id : (stk_job_id){STK_NONE}}};

    if (other)
        piece_on(other, p->node.i)->mask ^= had | has;
    else
        m->use[p->node.i].taken ^= had | has;
    p->mask ^= had | has;
    stk_slurm_use_changed(m, p->node.i);
    m->base.emit(m->base.emit_ctx, &ev);
}

void stk_slurm_take_over(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    const json_t *o;
    size_t i;

    json_array_foreach(json_object_get(job, "pieces"), i, o)
    {
        struct stk_piece *p =
            piece_on(j, stk_slurm_find_node(m, json_string_value(json_object_get(o, "node"))));
        uint64_t real = indices_of(json_object_get(o, "gpus"));

        if (!p || (uint32_t)__builtin_popcountll(real) != p->gpus ||
            (m->nodes[p->node.i].gpus < 64 && real >> m->nodes[p->node.i].gpus))
            continue; /* Slurm does not say which */
        while (p->mask & ~real)
            swap(m, j, p, (p->mask & ~real) & -(p->mask & ~real),
                 (real & ~p->mask) & -(real & ~p->mask));
    }
}

bool stk_slurm_is_there(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *job)
{
    const json_t *pieces = json_object_get(job, "pieces"), *o;
    size_t i;

    json_array_foreach(pieces, i, o)
    {
        const struct stk_piece *p =
            piece_on(j, stk_slurm_find_node(m, json_string_value(json_object_get(o, "node"))));

        if (!p ||
            (!j->imported && stk_slurm_count_gpus(json_object_get(o, "gpus"), NULL) != p->gpus))
            return false;
    }
    return json_array_size(pieces) == j->n_pieces;
}
