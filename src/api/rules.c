/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - rules: shown to all, changed by operators, and tried out without changing anything. */
#include <string.h>

#include "api/handlers.h"

#define DAYS 7

void stk_do_rules(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;

    stk_request_json(r, 200, stk_live_rules(a->cfg.live, NULL));
}

void stk_do_rule(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const char *name = stk_request_path(r, "name");
    json_t *rule = stk_live_rules(a->cfg.live, name);

    if (rule)
        stk_request_json(r, 200, rule);
    else
        stk_request_error(r, 404, NULL, "there is no rule \"%.60s\"", name);
}

static void change(struct stk_api *a, struct stk_request *r, json_t *take_rule, bool on)
{
    const struct stk_asker by = {*stk_request_who(r), stk_api_reply, r};
    int rc = stk_live_rule(a->cfg.live, &by, take_rule, on);

    if (rc < 0)
        stk_request_error(r, 503, "busy", "cannot do that now: %s", strerror(-rc));
}

void stk_do_rule_new(void *ctx, struct stk_request *r)
{
    json_t *body = NULL;

    if (stk_request_body(r, &body) == 0)
        change(ctx, r, body, true);
}

void stk_do_rule_delete(void *ctx, struct stk_request *r)
{
    change(ctx, r, json_pack("{s:s}", "name", stk_request_path(r, "name")), false);
}

/* {"rule"} or {"name"} of one there is, and "days". */
void stk_do_rule_test(void *ctx, struct stk_request *r)
{
    static const char *const ours[] = {"source", "in_force", "since", "next", "error"};
    struct stk_api *a = ctx;
    json_t *body = NULL, *rule, *answer = NULL;
    const json_t *days;
    const char *name;
    struct stk_err err = {""};
    int rc;

    if (stk_request_body(r, &body) < 0)
        return;
    name = json_string_value(json_object_get(body, "name"));
    days = json_object_get(body, "days");
    rule = name ? stk_live_rules(a->cfg.live, name) : json_incref(json_object_get(body, "rule"));
    for (size_t i = 0; name && i < sizeof(ours) / sizeof(*ours); i++)
        (void)json_object_del(rule, ours[i]);
    if (name && !rule)
        rc = stk_err_set(&err, -ENOENT, "there is no rule \"%.60s\"", name);
    else
        rc = stk_live_rules_test(a->cfg.live, rule, days ? json_integer_value(days) : DAYS, &answer,
                                 &err);
    json_decref(rule);
    json_decref(body);
    if (rc < 0)
        stk_api_fail(r, rc, &err);
    else
        stk_request_json(r, 200, answer);
}
