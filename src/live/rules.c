/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - rules in the daemon: those of the configuration's file, and those that operators added,
 * which the store keeps.
 *
 * What is set is in the journal (core/settings.h); which of it rules have set is kept in the store
 * beside it, so that after a restart what no rule wants any more is cleared, and what others have
 * set is not. Rules by the clock are in force when the clock says so. Of conditions the store keeps
 * which have begun. A rule
 * that names what is not there any more stays in the list, says so, and does nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"
#include "core/state.h"
#include "live/state.h"
#include "rules/read.h"

#define META_BEGUN "rules_begun"
#define META_SET "rules_set"
#define MAX_DAYS 366
#define MAX_TIMES 200

static uint32_t in_list(const char *const *names, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return STK_NONE;
}

static uint32_t find(void *ctx, enum stk_rules_noun noun, const char *name)
{
    const struct stk_live *l = ctx;
    const struct stk_core_config *c = &l->cfg.core;

    if (noun == STK_RULES_POOL)
        return in_list(l->cfg.pools, c->n_pools, name);
    if (noun == STK_RULES_GPU_TYPE)
        return in_list(l->cfg.gpu_types, l->cfg.n_gpu_types, name);
    if (noun == STK_RULES_QUEUE)
        return stk_queue_find(c->queues, c->n_queues, name);
    if (noun == STK_RULES_TENANT)
        return stk_tenant_find(c->tenants, c->n_tenants, name);
    for (uint32_t i = 0; noun == STK_RULES_NODE && i < c->n_nodes; i++)
        if (strcmp(l->cfg.nodes[i].name, name) == 0)
            return i;
    return STK_NONE;
}

static struct stk_rules_world world(struct stk_live *l)
{
    return (struct stk_rules_world){l, find, NULL};
}

static void tell(struct stk_live *l, const char *text)
{
    if (l->cfg.log)
        l->cfg.log(l->cfg.ctx, text);
}

/* ---- what there is ---- */

static void take(struct stk_live *l, json_t *rule, const char *source)
{
    const struct stk_rules_world w = world(l);
    struct stk_err err = {{0}};
    int rc = stk_rules_read(&l->rules, rule, &w, &err);

    if (rc < 0)
        tell(l, err.text);
    (void)json_array_append_new(l->rule_list, json_pack("{s:O,s:s,s:s}", "rule", rule, "source",
                                                        source, "error", rc < 0 ? err.text : ""));
}

static int keep_list(struct stk_live *l, const char *name, json_t *take_value, struct stk_err *err)
{
    int rc = stk_live_keep(l, name, take_value, err);

    json_decref(take_value);
    return rc;
}

static int keep_added(struct stk_live *l, struct stk_err *err)
{
    json_t *list = json_array(), *e;
    size_t i;

    json_array_foreach(l->rule_list, i, e)
    {
        if (strcmp(json_string_value(json_object_get(e, "source")), "added") == 0)
            (void)json_array_append(list, json_object_get(e, "rule"));
    }
    return keep_list(l, STK_LIVE_RULES, list, err);
}

/* Conditions that have begun, with the time since when. */
static int keep_begun(struct stk_live *l, struct stk_err *err)
{
    json_t *o = json_object();

    for (uint32_t i = 0; i < l->rules.n; i++)
        if (l->rules.rule[i].on && l->rules.rule[i].when != STK_WHEN_CRON)
            (void)json_object_set_new(o, l->rules.rule[i].name,
                                      json_integer(l->rules.rule[i].since));
    return keep_list(l, META_BEGUN, o, err);
}

static void load_begun(struct stk_live *l)
{
    json_t *o = stk_live_kept(l, META_BEGUN);

    for (uint32_t i = 0; i < l->rules.n; i++) {
        struct stk_rule *r = &l->rules.rule[i];
        const json_t *since = json_object_get(o, r->name);

        if (r->when == STK_WHEN_CRON || !since)
            continue;
        r->on = true;
        r->since = json_integer_value(since);
    }
    json_decref(o);
}

void stk_live_rules_forget(struct stk_live *l)
{
    stk_rules_done(&l->rules);
    json_decref(l->rule_list);
    l->rule_list = NULL;
    l->rules_wake = STK_NEVER_TIME;
}

/* What a setting is of, in words that hold when tables are changed: "limit 0 vision". 'before': by
 * the name that its tenant or queue had before. */
static const char *key_of(const struct stk_live *l, const struct stk_set *e, bool before, char *buf,
                          size_t size)
{
    const struct stk_state *s = stk_core_state(l->core);
    bool queue =
        e->kind == STK_SET_QUEUE || (e->kind == STK_SET_PRIORITY && e->column == STK_SET_OF_QUEUE);
    const struct stk_queue_spec *q = queue ? &s->settings->queues[e->row] : NULL;
    const struct stk_tenant_spec *t =
        stk_set_of_tenant(e->kind) ? &s->settings->tenants[e->row] : NULL;
    const char *was = q ? q->was : t ? t->was : NULL;
    char row[24];

    (void)snprintf(row, sizeof(row), "%u", e->row);
    (void)snprintf(buf, size, "%s %u %s%s", stk_set_kind_name(e->kind), e->column, e->name,
                   before && was ? was
                   : q           ? q->name
                   : t           ? t->name
                                 : row);
    return buf;
}

/* Others set values, too: the store keeps which are the rules'. */
int stk_live_rules_keep_sets(struct stk_live *l, struct stk_err *err)
{
    json_t *list = json_array();
    char key[400];

    for (uint32_t i = 0; i < l->rules.n_set; i++)
        (void)json_array_append_new(
            list, json_string(key_of(l, &l->rules.set[i], false, key, sizeof(key))));
    return keep_list(l, META_SET, list, err);
}

static bool among(const json_t *list, const char *key)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));

        if (s && strcmp(s, key) == 0)
            return true;
    }
    return false;
}

static int adopt_sets(struct stk_live *l)
{
    const struct stk_settings *t = stk_core_state(l->core)->settings;
    struct stk_rules *r = &l->rules;
    json_t *mine = stk_live_kept(l, META_SET);
    char key[400];
    int rc = stk_mem_grow(&r->mem, &r->set, &r->cap_set, t->n, sizeof(*r->set));

    for (uint32_t i = 0; i < t->n && rc == 0; i++) {
        const struct stk_set *e = &t->set[i];

        if (e->kind == STK_SET_POOL && e->value == t->nodes[e->row].pool.i)
            continue; /* on its way home */
        if (among(mine, key_of(l, e, false, key, sizeof(key))) ||
            among(mine, key_of(l, e, true, key, sizeof(key))))
            r->set[r->n_set++] = *e;
    }
    json_decref(mine);
    return rc;
}

int stk_live_rules_load(struct stk_live *l, struct stk_err *err)
{
    json_t *added = stk_live_kept(l, STK_LIVE_RULES), *rule;
    size_t i;

    stk_live_rules_forget(l);
    l->rules.mem = l->mem;
    l->rules.every = l->cfg.rules_every;
    l->rule_list = json_array();
    json_array_foreach(l->cfg.rules, i, rule)
    {
        take(l, rule, "file");
    }
    json_array_foreach(added, i, rule)
    {
        take(l, rule, "added");
    }
    json_decref(added);
    if (!l->rule_list || adopt_sets(l) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for rules");
    stk_rules_begin(&l->rules, stk_live_wall(l));
    load_begun(l);
    l->rules_wake = l->rules.n > 0 || l->rules.n_set > 0 ? 0 : STK_NEVER_TIME;
    return 0;
}

/* ---- what is due ---- */

static int64_t utilization(void *ctx, uint32_t pool)
{
    const struct stk_live *l = ctx;

    return stk_settings_utilization(stk_core_state(l->core), stk_live_pool_of(&l->cfg, pool));
}

static int64_t longest_wait(void *ctx, uint32_t pool, stk_time now)
{
    const struct stk_live *l = ctx;

    (void)now; /* the wall clock */
    return stk_settings_wait(stk_core_state(l->core), stk_live_pool_of(&l->cfg, pool), l->now);
}

static int apply(void *ctx, const struct stk_set *set, struct stk_err *err)
{
    struct stk_live *l = ctx;
    const struct stk_event ev = {.at = l->now, .type = STK_EV_SET, .u.set = set};

    l->rules_changed = true;
    return stk_loop_apply(l->loop, &ev, err);
}

static uint32_t n_on(const struct stk_rules *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n; i++)
        n += r->rule[i].on;
    return n;
}

static void tell_sorry(struct stk_live *l)
{
    char text[320];

    for (uint32_t i = 0; i < l->rules.n; i++) {
        struct stk_rule *r = &l->rules.rule[i];

        if (!r->sorry.text[0] || r->told)
            continue;
        r->told = true;
        (void)snprintf(text, sizeof(text), "rule \"%s\" is not followed: %.200s", r->name,
                       r->sorry.text);
        tell(l, text);
    }
}

int stk_live_rules_step(struct stk_live *l, struct stk_err *err)
{
    const struct stk_rules_view v = {l, utilization, longest_wait, apply};
    uint32_t before = n_on(&l->rules);
    int rc;

    l->rules_changed = false;
    rc = stk_rules_step(&l->rules, stk_live_wall(l), &v, err);
    l->rules_wake = stk_rules_wake(&l->rules);
    tell_sorry(l);
    if (rc == 0 && n_on(&l->rules) != before)
        rc = keep_begun(l, err);
    if (rc == 0 && l->rules_changed)
        rc = stk_live_rules_keep_sets(l, err);
    return rc;
}

void stk_live_rules_set_back(struct stk_live *l)
{
    stk_rules_set_back(&l->rules, stk_live_wall(l));
    l->rules_wake = l->rules.n > 0 || l->rules.n_set > 0 ? 0 : STK_NEVER_TIME;
}

/* ---- requests ---- */

static json_t *entry(const struct stk_live *l, const char *name, size_t *ret_at)
{
    json_t *e;
    size_t i;

    json_array_foreach(l->rule_list, i, e)
    {
        const char *n = json_string_value(json_object_get(json_object_get(e, "rule"), "name"));

        if (n && strcmp(n, name) == 0) {
            *ret_at = i;
            return e;
        }
    }
    return NULL;
}

static int refuse(struct stk_live_request *r, int status, const char *code, const char *why)
{
    r->status = status;
    r->answer = stk_live_error(code, why);
    return 0;
}

static int add_rule(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    const struct stk_rules_world w = world(l);
    struct stk_err why = {{0}};
    int rc = stk_rules_read(&l->rules, r->body, &w, &why);

    if (rc < 0)
        return rc == -EEXIST    ? refuse(r, 409, "conflict", why.text)
               : rc == -EBADMSG ? refuse(r, 400, "bad_request", why.text)
                                : refuse(r, 422, "unprocessable", why.text);
    (void)json_array_append_new(
        l->rule_list, json_pack("{s:O,s:s,s:s}", "rule", r->body, "source", "added", "error", ""));
    stk_rule_begin(&l->rules, &l->rules.rule[l->rules.n - 1], stk_live_wall(l));
    l->rules_wake = 0;
    r->status = 201;
    r->answer = json_pack("{s:O}", "name", json_object_get(r->body, "name"));
    rc = keep_added(l, err);
    return rc < 0
               ? rc
               : stk_live_note_rule(l, r->who.user,
                                    json_string_value(json_object_get(r->body, "name")), true, err);
}

static int remove_rule(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    const char *name = json_string_value(json_object_get(r->body, "name"));
    struct stk_rule *rule = stk_rules_find(&l->rules, name);
    char text[200];
    size_t at = 0;
    json_t *e = entry(l, name, &at);
    int rc;

    (void)snprintf(text, sizeof(text), "there is no rule \"%.60s\"", name);
    if (!e)
        return refuse(r, 404, "not_found", text);
    (void)snprintf(text, sizeof(text),
                   "rule \"%.60s\" is in the configuration's file of rules: take it out there",
                   name);
    if (strcmp(json_string_value(json_object_get(e, "source")), "added") != 0)
        return refuse(r, 409, "conflict", text);
    (void)json_array_remove(l->rule_list, at);
    if (rule)
        stk_rules_remove(&l->rules, rule);
    l->rules_wake = 0;
    r->status = 200;
    r->answer = json_pack("{s:s}", "name", name);
    rc = keep_added(l, err);
    return rc < 0 ? rc : stk_live_note_rule(l, r->who.user, name, false, err);
}

int stk_live_do_rule(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    if (r->who.role < STK_ROLE_OPERATOR)
        return refuse(r, 403, "not_allowed", "rules need the role operator");
    return r->on ? add_rule(l, r, err) : remove_rule(l, r, err);
}

/* ---- shown ---- */

static json_t *show_time(stk_time t)
{
    return t >= STK_NEVER_TIME || t < 0 ? json_null() : json_real((double)t / 1e6);
}

static json_t *changes(struct stk_live *l, const struct stk_rule *rule)
{
    json_t *list = json_array();
    char text[256];

    for (uint32_t i = 0; i < rule->n_set; i++) {
        stk_rules_describe(&rule->set[i], stk_live_noun_name, l, text, sizeof(text));
        (void)json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *show(const struct stk_live *l, const json_t *e)
{
    json_t *o = json_deep_copy(json_object_get(e, "rule"));
    const char *error = json_string_value(json_object_get(e, "error"));
    const struct stk_rule *rule =
        *error ? NULL : stk_rules_find(&l->rules, json_string_value(json_object_get(o, "name")));

    (void)json_object_set(o, "source", json_object_get(e, "source"));
    (void)json_object_set_new(o, "in_force", json_boolean(rule && rule->on));
    (void)json_object_set_new(o, "since", rule && rule->on ? show_time(rule->since) : json_null());
    (void)json_object_set_new(
        o, "next", rule && rule->when == STK_WHEN_CRON ? show_time(rule->next) : json_null());
    (void)json_object_set_new(o, "error",
                              json_string(rule && rule->sorry.text[0] ? rule->sorry.text : error));
    return o;
}

json_t *stk_live_rules(const struct stk_live *l, const char *name)
{
    json_t *list, *e;
    size_t i = 0;

    if (name) {
        e = entry(l, name, &i);
        return e ? show(l, e) : NULL;
    }
    list = json_array();
    json_array_foreach(l->rule_list, i, e)
    {
        (void)json_array_append_new(list, show(l, e));
    }
    return json_pack("{s:o}", "rules", list);
}

static json_t *times(const struct stk_rules *r, const struct stk_rule *rule, stk_time now,
                     stk_time until)
{
    json_t *list = json_array();
    stk_time at = rule->on ? rule->since : stk_rule_next_begin(r, rule, now);

    while (at < until && json_array_size(list) < MAX_TIMES) {
        stk_time end = stk_rule_next_end(r, rule, at), again = at;

        while (rule->until == STK_UNTIL_WHILE && end < until &&
               (again = stk_rule_next_begin(r, rule, again)) <= end)
            end = stk_rule_next_end(r, rule, again);
        (void)json_array_append_new(
            list, json_pack("{s:o,s:o}", "begin", show_time(at), "end", show_time(end)));
        if (end >= until || end == STK_NEVER_TIME)
            break;
        at = stk_rule_next_begin(r, rule, end - 1);
    }
    return list;
}

int stk_live_rules_test(struct stk_live *l, json_t *rule, int64_t days, json_t **ret,
                        struct stk_err *err)
{
    const struct stk_rules_world w = world(l);
    struct stk_rules r = {.mem = l->mem};
    stk_time now = stk_live_wall(l);
    int rc;

    if (days < 1 || days > MAX_DAYS)
        return stk_err_set(err, -EBADMSG, "days must be 1 to %d", MAX_DAYS);
    rc = stk_rules_read(&r, rule, &w, err);
    if (rc == 0) {
        stk_rules_begin(&r, now);
        *ret = json_pack("{s:s,s:o,s:b,s:s,s:o}", "name", r.rule[0].name, "times",
                         r.rule[0].when == STK_WHEN_CRON
                             ? times(&r, &r.rule[0], now, now + days * 86400 * STK_SECOND)
                             : json_array(),
                         "condition", r.rule[0].when != STK_WHEN_CRON, "zone",
                         r.zone[r.rule[0].zone]->name, "changes", changes(l, &r.rule[0]));
        rc = *ret ? 0 : stk_err_set(err, -ENOMEM, "out of memory");
    }
    stk_rules_done(&r);
    return rc;
}
