/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - what a job has of its GPUs: which, how much of each, and how its supervisor is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/local/inner.h"

static json_t *show_gpu(const struct stk_local_gpu *g)
{
    return json_pack("{s:i,s:i,s:s}", "index", (int)g->index, "minor", (int)g->minor, "uuid",
                     g->uuid);
}

/* The GPUs of a piece, as places in the table. */
static uint64_t places_of(const struct stk_local *m, const struct stk_piece *p)
{
    const uint32_t shift = p->node.i * m->cfg.per_node;

    return shift < 64 ? p->mask << shift : 0;
}

/* Tasks take their GPUs in this order, and the core counts tasks by the order of its pieces. */
static json_t *list_spread(const struct stk_local *m, const struct stk_start *s)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < s->n_pieces; i++)
        for (uint64_t left = places_of(m, &s->pieces[i]); left; left &= left - 1)
            (void)json_array_append_new(list, show_gpu(&m->gpus[__builtin_ctzll(left)]));
    return list;
}

/* sys/jobnodes.h: pieces of one node that follow each other are one. */
static json_t *list_nodes(const struct stk_local *m, const struct stk_start *s)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    json_t *v = NULL;

    for (uint32_t i = 0, next; f && i < s->n_pieces; i = next) {
        const char *comma = "";
        uint32_t tasks = 0;

        for (next = i; next < s->n_pieces && s->pieces[next].node.i == s->pieces[i].node.i; next++)
            tasks += s->pieces[next].tasks;
        (void)fprintf(f, "%s%s:%u:", i ? ";" : "", m->cfg.nodes(m->cfg.ctx, s->pieces[i].node.i),
                      tasks);
        for (uint32_t k = i; k < next; k++)
            for (uint64_t left = places_of(m, &s->pieces[k]); left; left &= left - 1) {
                (void)fprintf(f, "%s%d", comma, __builtin_ctzll(left));
                comma = ",";
            }
    }
    if (f && fclose(f) == 0)
        v = json_string(text);
    free(text);
    return v;
}

void stk_local_set_mask(struct stk_local_job *j, const struct stk_start *s)
{
    json_decref(j->nodes);
    j->nodes = j->m->cfg.nodes && s->n_pieces > 1 ? list_nodes(j->m, s) : NULL;
    json_decref(j->spread);
    j->spread = j->m->cfg.nodes && s->n_pieces > 1 ? list_spread(j->m, s) : NULL;
    j->node = s->n_pieces > 0 ? s->pieces[0].node.i : 0;
    j->mask = 0;
    j->real_gpus = false;
    j->seat = s->share == STK_SHARE_TIME && (!j->m->cfg.nodes || j->m->cfg.per_node);
    j->tasks = 0;
    j->milli = s->gpu_milli;
    j->mig = s->mig;
    j->share = s->share;
    j->gpu_mem_mib = s->gpu_mem_mib;
    for (uint32_t i = 0; i < s->n_pieces; i++) {
        const uint64_t mask = places_of(j->m, &s->pieces[i]);

        j->mask |= mask;
        j->tasks += s->pieces[i].tasks;
        for (uint64_t left = mask; left; left &= left - 1)
            j->slot[__builtin_ctzll(left)] = (uint8_t)s->pieces[i].slot;
    }
    for (uint32_t i = 0; i < j->m->cfg.n_gpus; i++)
        if (j->mask >> i & 1 && !j->m->gpus[i].is_virtual)
            j->real_gpus = true;
}

/* The instance of the job on this GPU; "": it has none there. */
static const char *instance(const struct stk_local_job *j, uint32_t gpu)
{
    const struct stk_local_gpu *g = &j->m->gpus[gpu];

    for (uint32_t i = 0; j->mig && i < g->n_instances; i++)
        if (g->instances[i].profile == j->mig && g->instances[i].slot == j->slot[gpu])
            return g->instances[i].uuid;
    return "";
}

json_t *stk_local_gpu_list(const struct stk_local_job *j)
{
    json_t *list = j->spread ? json_incref(j->spread) : json_array();

    for (uint32_t i = 0; i < j->m->cfg.n_gpus && !j->spread; i++) {
        const struct stk_local_gpu *g = &j->m->gpus[i];
        json_t *one;

        if (!(j->mask >> i & 1))
            continue;
        one = show_gpu(g);
        if (g->cpus[0]) {
            (void)json_object_set_new(one, "cpus", json_string(g->cpus));
            (void)json_object_set_new(one, "numa", json_integer(g->numa));
        }
        if (instance(j, i)[0])
            (void)json_object_set_new(one, "mig", json_string(instance(j, i)));
        if (j->share == STK_SHARE_MPS)
            (void)json_object_set_new(one, "mps", json_string(stk_local_mps_dir(j->m, i)));
        (void)json_array_append_new(list, one);
    }
    return list;
}

const char *stk_local_node(const struct stk_local_job *j)
{
    const struct stk_local_config *c = &j->m->cfg;

    return c->nodes ? c->nodes(c->ctx, j->node) : c->node;
}

json_t *stk_local_part(const struct stk_local_job *j)
{
    return json_pack("{s:i,s:I,s:s}", "milli", (int)j->milli, "mem_mib", (json_int_t)j->gpu_mem_mib,
                     "share", j->mig ? "mig" : stk_share_name((enum stk_share)j->share));
}
