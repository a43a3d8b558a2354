/* SPDX-License-Identifier: Apache-2.0 */
/* policies.c - what there is to choose from: bundles, single policies and their parameters, out of
 * the tables of policy/registry.h; and what is chosen now. What only the simulator can do is left
 * out: it is there to compare with what others have published. */
#include <string.h>

#include "api/handlers.h"
#include "core/core.h"
#include "policy/registry.h"

static bool simulated_only(const char *name)
{
    static const char *const names[] = {"advised", "lucid", "count"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static json_t *show_param(const struct stk_param *p)
{
    static const char *const types[] = {
        [STK_PARAM_INT] = "int",   [STK_PARAM_SECONDS] = "seconds", [STK_PARAM_MILLI] = "number",
        [STK_PARAM_LIST] = "list", [STK_PARAM_SIZES] = "sizes",     [STK_PARAM_WORD] = "word"};
    double scale = p->type == STK_PARAM_MILLI ? 1000 : 1;

    return json_pack("{s:s,s:s,s:s,s:f,s:f,s:s,s:s}", "name", p->name, "type", types[p->type],
                     "default", p->def, "min", (double)p->min / scale, "max",
                     (double)p->max / scale, "words", p->words ? p->words : "", "help", p->help);
}

/* Declared once, however many policies take it. */
static void add_params(json_t *params, const struct stk_param *p, json_t *names)
{
    for (; p && p->name; p++) {
        if (!json_object_get(params, p->name))
            (void)json_object_set_new(params, p->name, show_param(p));
        if (names)
            (void)json_array_append_new(names, json_string(p->name));
    }
}

static void add_policy(json_t *o, const char *kind, const char *name, const char *help,
                       json_t *take_names)
{
    json_t *list = json_object_get(o, kind);

    if (simulated_only(name))
        json_decref(take_names);
    else
        (void)json_array_append_new(
            list, json_pack("{s:s,s:s,s:o}", "name", name, "help", help, "params", take_names));
}

static void add_policies(json_t *o, json_t *params)
{
    for (size_t i = 0; stk_orders[i]; i++) {
        json_t *names = json_array();

        add_params(params, stk_orders[i]->params, names);
        add_params(params, stk_orders[i]->shared, names);
        add_policy(o, "order", stk_orders[i]->name, stk_orders[i]->help, names);
    }
    for (size_t i = 0; stk_backfills[i]; i++) {
        json_t *names = json_array();

        add_params(params, stk_backfills[i]->params, names);
        add_policy(o, "backfill", stk_backfills[i]->name, stk_backfills[i]->help, names);
    }
    for (size_t i = 0; stk_places[i]; i++) {
        json_t *names = json_array();

        add_params(params, stk_places[i]->params, names);
        add_policy(o, "place", stk_places[i]->name, stk_places[i]->help, names);
    }
    for (size_t i = 0; stk_preempts[i]; i++) {
        json_t *names = json_array();

        add_params(params, stk_preempts[i]->params, names);
        add_params(params, stk_preempts[i]->shared, names);
        add_policy(o, "preempt", stk_preempts[i]->name, stk_preempts[i]->help, names);
    }
}

static json_t *show_bundles(void)
{
    json_t *list = json_array();

    for (const struct stk_bundle *b = stk_bundles; b->name; b++)
        if (!simulated_only(b->order) && !simulated_only(b->place) && !simulated_only(b->preempt))
            (void)json_array_append_new(
                list, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "name", b->name, "order", b->order,
                                "backfill", b->backfill, "place", b->place, "preempt", b->preempt,
                                "params", b->params, "help", b->help));
    return list;
}

void stk_do_policies(void *ctx, struct stk_request *r)
{
    const struct stk_live_config *cfg = stk_live_config(((struct stk_api *)ctx)->cfg.live);
    json_t *params = json_object(), *any = json_array(),
           *o = json_pack("{s:s,s:o,s:[],s:[],s:[],s:[],s:o}", "present", cfg->policy, "bundles",
                          show_bundles(), "order", "backfill", "place", "preempt", "words",
                          cfg->policy_words ? json_incref(cfg->policy_words) : json_object());

    add_params(params, stk_core_params, any);
    add_policies(o, params);
    (void)json_object_set_new(o, "any", any);
    (void)json_object_set_new(o, "params", params);
    stk_request_json(r, 200, o);
}
