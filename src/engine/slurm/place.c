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
#include "sys/json.h"

#define AGAIN_MS 500
#define MOST_AGAIN 20u

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
        if (!type || strcmp(type, want) != 0 || stk_whole(g, "count") != 1)
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

struct stk_slurm_real { /* what it has of a node, as Slurm says */
    struct stk_piece *piece;
    uint32_t gpus;
    uint64_t mask; /* 0: Slurm does not say which */
};

static struct stk_piece *piece_on(const struct stk_slurm_job *j, uint32_t node)
{
    for (uint32_t i = 0; i < j->n_pieces; i++)
        if (j->pieces[i].node.i == node)
            return &j->pieces[i];
    return NULL;
}

uint64_t stk_slurm_indices(const json_t *gpus)
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
                                            .to = p->node,
                                            .had = had,
                                            .has = has,
                                            .with = other ? other->id : (stk_job_id){STK_NONE}}};

    if (other)
        piece_on(other, p->node.i)->mask ^= had | has;
    else
        m->use[p->node.i].taken ^= had | has;
    p->mask ^= had | has;
    stk_slurm_use_changed(m, p->node.i);
    m->base.emit(m->base.emit_ctx, &ev);
}

/* GPUs of 'from', those of 'first' before the others; 0: there are not so many. */
static uint64_t some_of(uint64_t from, uint64_t first, uint32_t n)
{
    uint64_t mask = 0;

    for (uint64_t left = from & first; left && n > 0; n--, left &= left - 1)
        mask |= left & -left;
    for (uint64_t left = from & ~first; left && n > 0; n--, left &= left - 1)
        mask |= left & -left;
    return n > 0 ? 0 : mask;
}

/* So many GPUs of tasks lie on another of its nodes. False: none are free there in the books. */
static bool shift(struct stk_slurm *m, struct stk_slurm_job *j, const struct stk_slurm_real *a,
                  const struct stk_slurm_real *b, uint32_t n)
{
    struct stk_slurm_use *from = &m->use[a->piece->node.i], *to = &m->use[b->piece->node.i];
    uint32_t gpus = m->nodes[b->piece->node.i].gpus,
             tasks = n / (a->piece->gpus / (a->piece->tasks ? a->piece->tasks : 1));
    uint64_t all = gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << gpus) - 1,
             had = some_of(a->piece->mask, ~a->mask, n),
             has = some_of(all & ~to->taken, b->mask, n);
    const struct stk_event ev = {.at = m->cfg.now(m->cfg.ctx),
                                 .type = STK_EV_SWAPPED,
                                 .job = j->id,
                                 .lease = j->lease,
                                 .u.swap = {.node = a->piece->node,
                                            .to = b->piece->node,
                                            .had = had,
                                            .has = has,
                                            .with = {STK_NONE}}};

    if (!had || !has || tasks >= a->piece->tasks)
        return false;
    from->taken &= ~had;
    to->taken |= has;
    a->piece->mask &= ~had;
    b->piece->mask |= has;
    a->piece->gpus -= n;
    b->piece->gpus += n;
    a->piece->tasks -= tasks;
    b->piece->tasks += tasks;
    stk_slurm_use_changed(m, a->piece->node.i);
    stk_slurm_use_changed(m, b->piece->node.i);
    m->base.emit(m->base.emit_ctx, &ev);
    return true;
}

/* How many tasks of a gang lie on which of its nodes is Slurm's to choose where it is not the same
 * for all. */
static bool lay_out(struct stk_slurm *m, struct stk_slurm_job *j, const struct stk_slurm_real *r,
                    uint32_t n)
{
    uint32_t a = 0, b = 0, less, more;

    for (;;) {
        while (a < n && r[a].piece->gpus <= r[a].gpus)
            a++;
        while (b < n && r[b].piece->gpus >= r[b].gpus)
            b++;
        if (a == n || b == n)
            return a == n && b == n;
        less = r[a].piece->gpus - r[a].gpus;
        more = r[b].gpus - r[b].piece->gpus;
        if (!shift(m, j, &r[a], &r[b], less < more ? less : more))
            return false;
    }
}

/* Its pieces as Slurm has them; false: they are on other nodes. */
static bool read_real(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *job,
                      struct stk_slurm_real *ret)
{
    const json_t *pieces = json_object_get(job, "pieces"), *o;
    size_t i;

    for (uint32_t k = 0; k < j->n_pieces; k++)
        ret[k].piece = &j->pieces[k];
    json_array_foreach(pieces, i, o)
    {
        const json_t *gpus = json_object_get(o, "gpus");
        const struct stk_piece *p =
            piece_on(j, stk_slurm_find_node(m, json_string_value(json_object_get(o, "node"))));

        if (!p)
            return false;
        ret[p - j->pieces].gpus = stk_slurm_count_gpus(gpus, NULL);
        ret[p - j->pieces].mask = stk_slurm_indices(gpus);
    }
    return json_array_size(pieces) == j->n_pieces;
}

static void swap_all(struct stk_slurm *m, struct stk_slurm_job *j, const struct stk_slurm_real *r)
{
    struct stk_piece *p = r->piece;

    if ((uint32_t)__builtin_popcountll(r->mask) != p->gpus ||
        (m->nodes[p->node.i].gpus < 64 && r->mask >> m->nodes[p->node.i].gpus))
        return; /* Slurm does not say which */
    while (p->mask & ~r->mask)
        swap(m, j, p, (p->mask & ~r->mask) & -(p->mask & ~r->mask),
             (r->mask & ~p->mask) & -(r->mask & ~p->mask));
}

/* A user's own job has what its user asked Slurm for: as much as was decided, or less. One that has
 * its nodes for itself has all there is on them. */
static bool is_within(const struct stk_slurm_job *j, const struct stk_slurm_real *r)
{
    bool less = true;

    for (uint32_t i = 0; i < j->n_pieces; i++)
        less = less && r[i].gpus <= r[i].piece->gpus;
    return j->exclusive || (j->imported && less);
}

bool stk_slurm_take_over(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job)
{
    struct stk_slurm_real *r = calloc(j->n_pieces + 1, sizeof(*r));
    uint32_t has = 0, had = 0;
    bool same = r && read_real(m, j, job, r);

    for (uint32_t i = 0; same && i < j->n_pieces; i++) {
        has += r[i].gpus;
        had += j->pieces[i].gpus;
    }
    if (same && has == had)
        same = lay_out(m, j, r, j->n_pieces);
    else
        same = same && is_within(j, r);
    for (uint32_t i = 0; same && i < j->n_pieces; i++)
        swap_all(m, j, &r[i]);
    free(r);
    return same;
}

/* What our jobs have of a node, from scratch. O(jobs with leases). */
static void count_taken(struct stk_slurm *m, uint32_t node)
{
    uint64_t taken = 0;

    for (uint32_t i = 0; i < m->n_jobs; i++) {
        const struct stk_piece *p =
            m->jobs[i]->where == STK_S_ENDED ? NULL : piece_on(m->jobs[i], node);

        taken |= p ? p->mask : 0;
    }
    m->use[node].taken = taken;
    stk_slurm_use_changed(m, node);
}

static struct stk_slurm_job *find_id(const struct stk_slurm *m, stk_job_id id)
{
    for (uint32_t i = 0; i < m->n_jobs; i++)
        if (m->jobs[i]->id.i == id.i)
            return m->jobs[i];
    return NULL;
}

void stk_slurm_not_taken(struct stk_slurm *m, const struct stk_event *ev)
{
    struct stk_slurm_job *j = stk_slurm_find_lease(m, ev->lease), *with;
    uint32_t from = ev->u.swap.node.i, to = ev->u.swap.to.i,
             n = (uint32_t)__builtin_popcountll(ev->u.swap.had);
    struct stk_piece *a = j ? piece_on(j, from) : NULL, *b = j ? piece_on(j, to) : NULL, *other;

    if (!a || !b || j->where == STK_S_ENDED)
        return;
    with = find_id(m, ev->u.swap.with);
    other = with ? piece_on(with, from) : NULL;
    a->mask ^= ev->u.swap.had;
    b->mask ^= ev->u.swap.has;
    if (other)
        other->mask ^= ev->u.swap.had | ev->u.swap.has;
    if (a != b) {
        uint32_t tasks = n / (b->gpus / (b->tasks ? b->tasks : 1));

        a->gpus += n;
        b->gpus -= n;
        a->tasks += tasks;
        b->tasks -= tasks;
    }
    count_taken(m, from);
    count_taken(m, to);
    j->judge_at = stk_slurm_ms() + AGAIN_MS;
    if (j->where == STK_S_RUNNING && j->judged_again++ < MOST_AGAIN)
        stk_slurm_judged(j, false);
}

bool stk_slurm_nodes_known(const struct stk_slurm *m, const struct stk_slurm_job *j)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const json_t *o = json_object_get(m->news, m->nodes[j->pieces[i].node.i].name);
        const char *state = json_string_value(json_object_get(o, "state"));

        if (state && strcmp(state, "joining") == 0)
            return false;
    }
    return true;
}
