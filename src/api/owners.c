/* SPDX-License-Identifier: Apache-2.0 */
#include "api/owners.h"

#include <stdlib.h>
#include <string.h>

#include "api/show.h"
#include "core/part.h"
#include "core/state.h"

int stk_owners_look(struct stk_owners *v, struct stk_api *a, const struct stk_who *who)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    uint32_t left = s->n_leased;

    for (uint32_t p = 0; p < s->n_pools; p++)
        left += s->pools[p].n_stopping;
    *v = (struct stk_owners){
        .api = a,
        .who = who,
        .owner = calloc((size_t)s->n_nodes * STK_MAX_NODE_GPUS + 1, sizeof(*v->owner)),
        .leased = calloc((size_t)left + 1, sizeof(*v->leased))};
    if (!v->owner || !v->leased) {
        stk_owners_done(v);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < s->n_jobs && left > 0; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (!j->lease)
            continue;
        left--;
        v->leased[v->n_leased++] = i;
        for (uint32_t k = 0; k < j->n_pieces; k++) {
            const struct stk_piece *p = &s->pieces[j->first_piece + k];

            for (uint64_t m = p->mask; m; m &= m - 1)
                v->owner[(size_t)p->node.i * STK_MAX_NODE_GPUS + (uint32_t)__builtin_ctzll(m)] =
                    j->number;
        }
    }
    return 0;
}

void stk_owners_done(struct stk_owners *v)
{
    free(v->owner);
    free(v->leased);
    *v = (struct stk_owners){0};
}

/* GPUs that can be read are listed node after node, each with as many. */
static json_t *row_of(const struct stk_api *a, json_t *list, uint32_t node, uint32_t gpu)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const uint64_t index = (uint64_t)node * s->nodes[node].gpus + gpu;
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (json_integer_value(json_object_get(row, "index")) == (json_int_t)index)
            return row;
    }
    return NULL;
}

const json_t *stk_owners_sample(const struct stk_api *a, uint32_t node, uint32_t gpu)
{
    return row_of(a, json_object_get(a->sample, "gpus"), node, gpu);
}

const json_t *stk_owners_listed(const struct stk_api *a, uint32_t node, uint32_t gpu)
{
    return row_of(a, json_object_get(a->cfg.gpus, "gpus"), node, gpu);
}

double stk_owners_share(const struct stk_owners *v, uint32_t node, uint32_t gpu)
{
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));
    const struct stk_node *n = &s->nodes[node];

    if (n->mask_part >> gpu & 1)
        return 1 - stk_part_left(s, n, gpu) / 1000.0;
    return v->owner[(size_t)node * STK_MAX_NODE_GPUS + gpu] != 0;
}

static const char *state_of(const struct stk_owners *v, uint32_t node, uint32_t gpu)
{
    if (v->owner[(size_t)node * STK_MAX_NODE_GPUS + gpu])
        return "busy";
    if (stk_live_drained(v->api->cfg.live, node) >> gpu & 1)
        return "drained";
    if (json_object_get(stk_owners_sample(v->api, node, gpu), "off"))
        return "off";
    return "free";
}

void stk_owners_count(const struct stk_owners *v, struct stk_owner_counts *ret)
{
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));

    *ret = (struct stk_owner_counts){0};
    for (uint32_t n = 0; n < s->n_nodes; n++)
        for (uint32_t g = 0; g < s->nodes[n].gpus && g < STK_MAX_NODE_GPUS; g++) {
            const char *state = state_of(v, n, g);

            ret->total++;
            ret->busy += strcmp(state, "busy") == 0;
            ret->drained += strcmp(state, "drained") == 0;
            ret->off += strcmp(state, "off") == 0;
        }
}

/* Copies members that are there. */
static void copy(json_t *to, const json_t *from, const char *const *names)
{
    for (; from && *names; names++)
        if (json_object_get(from, *names))
            (void)json_object_set(to, *names, json_object_get(from, *names));
}

static json_t *tenant_of(const struct stk_entry *e)
{
    return e->rec.tenant && *e->rec.tenant ? json_string(e->rec.tenant) : json_null();
}

/* Who has part of it, and how much. */
static json_t *shares(const struct stk_owners *v, const struct stk_state *s, uint32_t node,
                      uint32_t gpu)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < v->n_leased; i++) {
        const struct stk_job *j = &s->jobs[v->leased[i]];
        const struct stk_demand *d = &s->shapes[j->shape].demand;
        const struct stk_entry *e;
        json_t *one;

        for (uint32_t k = 0; k < j->n_pieces; k++) {
            const struct stk_piece *p = &s->pieces[j->first_piece + k];

            if (p->node.i != node || !(p->mask >> gpu & 1))
                continue;
            e = stk_live_entry(v->api->cfg.live, j->number);
            one = json_pack("{s:I,s:s,s:f,s:o,s:s}", "job", (json_int_t)j->number, "user",
                            e ? e->rec.user : "", "gpus", d->gpu_milli / 1000.0, "mem_mib",
                            d->gpu_mem_mib ? json_integer(d->gpu_mem_mib) : json_null(), "share",
                            d->mig ? "mig" : stk_share_name((enum stk_share)d->share));
            if (e) {
                stk_show_element(one, &e->rec);
                (void)json_object_set_new(one, "tenant", tenant_of(e));
            }
            (void)json_array_append_new(list, one);
        }
    }
    return list;
}

json_t *stk_owners_show(const struct stk_owners *v, uint32_t node, uint32_t gpu)
{
    static const char *const fixed[] = {"uuid", "pci", "numa", "mem_mib", NULL};
    static const char *const measured[] = {
        "util", "mem_util", "mem_used_mib", "power_w", "energy_j", "temp_c", "off", "last", NULL};
    static const char *const named[] = {"foreign", "processes", "xids", NULL};
    const struct stk_live_config *cfg = stk_live_config(v->api->cfg.live);
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));
    const struct stk_node *n = &s->nodes[node];
    stk_job_number job = v->owner[(size_t)node * STK_MAX_NODE_GPUS + gpu];
    const struct stk_entry *e = job ? stk_live_entry(v->api->cfg.live, job) : NULL;
    json_t *o = json_pack(
        "{s:I,s:s,s:s,s:s,s:o,s:o,s:o}", "index", (json_int_t)gpu, "node", cfg->nodes[node].name,
        "name", cfg->nodes[node].gpu_type, "state", state_of(v, node, gpu), "mem_mib",
        n->gpu_mem_mib ? json_integer(n->gpu_mem_mib) : json_null(), "job",
        job ? json_integer(job) : json_null(), "user", e ? json_string(e->rec.user) : json_null());

    if (e) {
        stk_show_element(o, &e->rec);
        (void)json_object_set_new(o, "tenant", tenant_of(e));
        (void)json_object_set_new(o, "job_name", json_string(e->rec.name));
    }
    if (job && stk_live_drained(v->api->cfg.live, node) >> gpu & 1)
        (void)json_object_set_new(o, "draining", json_true());
    if (n->mask_part >> gpu & 1) {
        (void)json_object_set_new(o, "shares", shares(v, s, node, gpu));
        (void)json_object_set_new(o, "left", json_real(stk_part_left(s, n, gpu) / 1000.0));
    }
    copy(o, stk_owners_listed(v->api, node, gpu), fixed);
    copy(o, stk_owners_sample(v->api, node, gpu), measured);
    if (v->who)
        copy(o, stk_owners_sample(v->api, node, gpu), named);
    return o;
}
