/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c - nodes and GPUs: looking, and taking them out of use and back. */
#include <stdlib.h>
#include <string.h>

#include "api/owners.h"
#include "core/state.h"

/* Named things: how many there are, and how many are free. */
static json_t *show_resources(const struct stk_state *s, uint32_t node)
{
    json_t *o = json_object();

    for (uint32_t k = 0; k < s->n_resources; k++) {
        size_t at = (size_t)node * s->n_resources + k;

        (void)json_object_set_new(o, s->resource_names[k],
                                  json_pack("{s:I,s:I}", "total", (json_int_t)s->resource_all[at],
                                            "free", (json_int_t)s->resource_free[at]));
    }
    return o;
}

static json_t *show_node(const struct stk_owners *v, uint32_t i)
{
    const struct stk_live_config *cfg = stk_live_config(v->api->cfg.live);
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));
    const struct stk_node *n = &s->nodes[i];
    uint32_t busy = 0, drained = 0;
    char pools[STK_POOLS_TEXT];

    for (uint32_t g = 0; g < n->gpus && g < STK_MAX_NODE_GPUS; g++)
        busy += v->owner[(size_t)i * STK_MAX_NODE_GPUS + g] != 0;
    drained = (uint32_t)__builtin_popcountll(stk_live_drained(v->api->cfg.live, i));
    return json_pack(
        "{s:s,s:s,s:s,s:o,s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "name", cfg->nodes[i].name,
        "state",
        !n->up                              ? "down"
        : n->gpus > 0 && drained >= n->gpus ? "drained"
                                            : "up",
        "pool", stk_live_node_pools(cfg, i, n->pool, pools), "rack",
        cfg->nodes[i].rack ? json_integer(cfg->nodes[i].rack) : json_null(), "gpu_type",
        cfg->nodes[i].gpu_type, "features", cfg->nodes[i].features ? cfg->nodes[i].features : "",
        "gpus", (json_int_t)n->gpus, "gpus_busy", (json_int_t)busy, "gpus_free",
        (json_int_t)n->gpus_free, "gpus_drained", (json_int_t)drained, "cpus",
        n->cpu_limited ? json_real((double)n->cpu_milli / 1000) : json_null(), "cpus_free",
        n->cpu_limited ? json_real((double)n->cpu_free / 1000) : json_null(), "mem_mib",
        n->mem_limited ? json_integer((json_int_t)n->mem_mib) : json_null(), "mem_free_mib",
        n->mem_limited ? json_integer((json_int_t)n->mem_free) : json_null(), "resources",
        show_resources(s, i));
}

struct page {
    struct stk_owners v;
    uint64_t after; /* counts rows */
    uint32_t limit;
    json_t *list;
};

/* < 0: the request has been answered. */
static int open_page(struct stk_api *a, struct stk_request *r, struct page *p)
{
    int rc = stk_api_limit(r, &p->limit);

    rc = rc < 0 ? rc : stk_request_number(r, "after", 0, UINT32_MAX - 1, &p->after);
    if (rc < 0)
        return rc;
    rc = stk_owners_look(&p->v, a, stk_request_who(r));
    if (rc < 0)
        stk_request_error(r, 503, "busy", "out of memory");
    else
        p->list = json_array();
    return rc;
}

static void answer_page(struct stk_request *r, const char *name, struct page *p, uint64_t rows)
{
    uint64_t at = p->after + p->limit;

    stk_owners_done(&p->v);
    stk_request_json(r, 200,
                     json_pack("{s:o,s:o}", name, p->list, "next",
                               rows > at ? json_integer((json_int_t)at) : json_null()));
}

void stk_do_nodes(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    uint32_t n = stk_core_state(stk_live_core(a->cfg.live))->n_nodes;
    struct page p;

    if (open_page(a, r, &p) < 0)
        return;
    for (uint64_t i = p.after; i < n && i < p.after + p.limit; i++)
        (void)json_array_append_new(p.list, show_node(&p.v, (uint32_t)i));
    answer_page(r, "nodes", &p, n);
}

void stk_do_gpus(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    uint64_t at = 0;
    struct page p;

    if (open_page(a, r, &p) < 0)
        return;
    for (uint32_t n = 0; n < s->n_nodes; n++)
        for (uint32_t g = 0; g < s->nodes[n].gpus && g < STK_MAX_NODE_GPUS; g++, at++)
            if (at >= p.after && at < p.after + p.limit)
                (void)json_array_append_new(p.list, stk_owners_show(&p.v, n, g));
    answer_page(r, "gpus", &p, at);
}

void stk_do_topology(void *ctx, struct stk_request *r)
{
    const struct stk_api *a = ctx;
    json_t *nodes = json_array();

    if (a->cfg.topology)
        (void)json_array_append(nodes, a->cfg.topology);
    stk_request_json(r, 200, json_pack("{s:o}", "nodes", nodes));
}

/* ---- out of use and back ---- */

static void drain(struct stk_api *a, struct stk_request *r, uint32_t node, uint64_t mask, bool on)
{
    const struct stk_asker by = {*stk_request_who(r), stk_api_reply, r};
    int rc = stk_live_drain(a->cfg.live, &by, node, mask, on);

    if (rc < 0)
        stk_request_error(r, 503, "busy", "cannot do that now: %s", strerror(-rc));
}

static uint64_t all_gpus(const struct stk_node *n)
{
    return n->gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << n->gpus) - 1;
}

/* n_nodes: there is none of that name, and the request was answered. */
static uint32_t find_node(struct stk_api *a, struct stk_request *r, const char *name, size_t len)
{
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);
    uint32_t n = cfg->core.n_nodes;

    for (uint32_t i = 0; i < n; i++)
        if (strlen(cfg->nodes[i].name) == len && memcmp(cfg->nodes[i].name, name, len) == 0)
            return i;
    stk_request_error(r, 404, NULL, "there is no node \"%.*s\"", len < 60 ? (int)len : 60, name);
    return n;
}

static void node_drain(struct stk_api *a, struct stk_request *r, bool on)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const char *name = stk_request_path(r, "name");
    uint32_t i = find_node(a, r, name, strlen(name));

    if (i < s->n_nodes)
        drain(a, r, i, all_gpus(&s->nodes[i]), on);
}

/* "3", where there is one node, or "NODE:3". */
static void gpu_drain(struct stk_api *a, struct stk_request *r, bool on)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const char *text = stk_request_path(r, "index"), *colon = strrchr(text, ':');
    uint32_t node = colon ? find_node(a, r, text, (size_t)(colon - text)) : 0;
    unsigned long g;

    if (node >= s->n_nodes)
        return;
    if (!colon && s->n_nodes > 1) {
        stk_request_error(r, 422, NULL, "there are %u nodes; say which: NODE:%.20s", s->n_nodes,
                          text);
        return;
    }
    text = colon ? colon + 1 : text;
    g = strspn(text, "0123456789") == strlen(text) && strlen(text) < 4 ? strtoul(text, NULL, 10)
                                                                       : STK_MAX_NODE_GPUS;
    if (g >= s->nodes[node].gpus || g >= STK_MAX_NODE_GPUS) {
        stk_request_error(r, 404, NULL, "there is no GPU %.20s; there are %u, counted from 0", text,
                          s->nodes[node].gpus);
        return;
    }
    drain(a, r, node, UINT64_C(1) << g, on);
}

void stk_do_node_drain(void *ctx, struct stk_request *r)
{
    node_drain(ctx, r, true);
}

void stk_do_node_resume(void *ctx, struct stk_request *r)
{
    node_drain(ctx, r, false);
}

void stk_do_gpu_drain(void *ctx, struct stk_request *r)
{
    gpu_drain(ctx, r, true);
}

void stk_do_gpu_resume(void *ctx, struct stk_request *r)
{
    gpu_drain(ctx, r, false);
}
