/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_booked.c - Slurm's reservations that have not begun: reservations of ours, of the same
 * nodes and time, so that nothing is started there that would run into them; Slurm would not start
 * it. When one begins its nodes take nothing (the engine says so), whatever becomes of ours.
 *
 * Ours has the name "slurm:NAME", or "slurm:NAME@POOL" where it has nodes of several pools. What
 * Slurm changes or deletes is made anew or removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"
#include "sys/json.h"

static const struct stk_who root = {.role = STK_ROLE_ADMIN, .user = "root"};

static void on_reply(void *ctx, int status, json_t *take_body)
{
    const char *why =
        json_string_value(json_object_get(json_object_get(take_body, "error"), "message"));

    (void)ctx;
    if (status >= 400)
        stk_log(STK_LOG_WARN, "a reservation of Slurm's is not heeded: %s", why ? why : "?");
    json_decref(take_body);
}

static void ask(struct stk_daemon *d, bool on, json_t *take_body)
{
    const struct stk_asker by = {.who = root, .reply = on_reply};

    (void)stk_live_reserve(d->live, &by, on, take_body);
}

/* Its nodes with GPUs, by pool, in the order of pools and nodes. */
static json_t *nodes_by_pool(const struct stk_machine *m, const json_t *r)
{
    json_t *names = json_object(), *pools = json_array(), *name;
    size_t i;

    for (uint32_t p = 0; p < m->n_pools; p++)
        (void)json_array_append_new(pools, json_array());
    json_array_foreach(json_object_get(r, "nodes"), i, name)
    {
        (void)json_object_set_new(names, json_string_value(name), json_true());
    }
    for (uint32_t k = 0; k < m->n_nodes; k++)
        if (m->nodes[k].gpus > 0 && json_object_get(names, m->live_nodes[k].name))
            (void)json_array_append_new(json_array_get(pools, m->nodes[k].pool.i),
                                        json_string(m->live_nodes[k].name));
    json_decref(names);
    return pools;
}

/* What we want to have: by name. */
static json_t *wanted(const struct stk_machine *m, const json_t *list, int64_t now_s)
{
    json_t *out = json_object(), *r, *nodes;
    size_t i, p;

    json_array_foreach(list, i, r)
    {
        json_t *pools = stk_whole(r, "end") > now_s ? nodes_by_pool(m, r) : NULL;
        bool first = true;

        json_array_foreach(pools, p, nodes)
        {
            char name[61];

            if (json_array_size(nodes) == 0)
                continue;
            (void)snprintf(name, sizeof(name), "slurm:%.38s%s%.14s", stk_str(r, "name"),
                           first ? "" : "@", first ? "" : m->pools[p]);
            first = false;
            (void)json_object_set_new(out, name,
                                      json_pack("{s:s,s:O,s:I,s:I,s:b}", "name", name, "nodes",
                                                nodes, "start", stk_whole(r, "start"), "for_s",
                                                stk_whole(r, "end") - stk_whole(r, "start"),
                                                "slurm", 1));
        }
        json_decref(pools);
    }
    return out;
}

static bool same(const json_t *is, const json_t *want)
{
    return want && stk_whole(is, "start") == stk_whole(want, "start") &&
           stk_whole(is, "for_s") == stk_whole(want, "for_s") &&
           json_equal(json_object_get(is, "nodes"), json_object_get(want, "nodes"));
}

void stk_daemon_slurm_booked(void *ctx, const json_t *list)
{
    struct stk_daemon *d = ctx;
    const stk_time now = stk_daemon_now(d);
    const int64_t now_s = (now - stk_daemon_ahead(d)) / STK_SECOND; /* Slurm's clock */
    json_t *want, *o;
    const char *name;
    size_t i;

    if (!d->live)
        return;
    want = wanted(&d->machine, list, now_s);
    json_array_foreach(stk_live_reservations(d->live), i, o)
    {
        const json_t *w = json_object_get(want, stk_str(o, "name"));

        if (!json_is_true(json_object_get(o, "slurm")) || stk_whole(o, "window") == 0)
            continue;
        if (!same(o, w))
            ask(d, false, json_pack("{s:I}", "id", stk_whole(o, "id")));
        else
            (void)json_object_del(want, stk_str(o, "name"));
    }
    json_object_foreach(want, name, o)
    {
        if (stk_whole(o, "start") > now_s) /* those that have begun are seen by their nodes */
            ask(d, true, json_incref(o));
    }
    json_decref(want);
}
