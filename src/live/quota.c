/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - other numbers for a tenant while the daemon runs: events SET, which hold over restarts
 * until they are put back. All of a request, or nothing of it: it is tried in a fork first.
 *
 * A number that was set hides the one of the configuration, also when that is changed. So whoever
 * looks is shown both, and the log says it when a configuration is read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/settings.h"
#include "core/state.h"
#include "live/state.h"

#define MAX_SETS 6
#define MAX_TOLD 16

static const struct {
    const char *key;
    enum stk_set_kind kind;
    uint32_t column; /* 0: that of the GPU type */
} numbers[MAX_SETS] = {
    {"limit", STK_SET_LIMIT, 0},           {"guarantee", STK_SET_GUARANTEE, 0},
    {"weight", STK_SET_WEIGHT, 0},         {"keep_up", STK_SET_KEEP_UP, 0},
    {"cpus", STK_SET_LIMIT, STK_SET_CPUS}, {"mem_gib", STK_SET_LIMIT, STK_SET_MEM}};

/* null: none; "config": as the configuration says; else a number. */
static int read_number(const char *key, const json_t *v, struct stk_set *s, struct stk_err *err)
{
    double milli = json_number_value(v) * 1000;

    if (json_is_string(v) && strcmp(json_string_value(v), "config") == 0) {
        s->clear = true;
        return 0;
    }
    if (json_is_null(v) && s->kind != STK_SET_WEIGHT) {
        s->value = s->kind == STK_SET_KEEP_UP ? 0 : -1;
        return 0;
    }
    if (s->kind == STK_SET_KEEP_UP) {
        s->value = json_integer_value(v);
        if (json_is_integer(v) && s->value >= 0 && s->value <= STK_MAX_KEEP_UP)
            return 0;
        return stk_err_set(err, -EBADMSG,
                           "%s: must be a number of jobs (0 to %d), null for none, or \"config\"",
                           key, STK_MAX_KEEP_UP);
    }
    if (!json_is_number(v) || milli < 0 || milli > 1e10)
        return stk_err_set(err, -EBADMSG,
                           "%s: must be a number from 0 to 10000000, null for none, or \"config\"",
                           key);
    if (fabs(milli - round(milli)) > 1e-6)
        return stk_err_set(err, -EINVAL, "%s: must be in thousandths, got %g", key, milli / 1000);
    s->value = s->column == STK_SET_MEM ? llround(milli * 1.024) : llround(milli);
    return 0;
}

static int find_type(const struct stk_live *l, const json_t *body, uint32_t *ret,
                     struct stk_err *err)
{
    const char *type = json_string_value(json_object_get(body, "gpu_type"));

    *ret = 0;
    for (uint32_t i = 0; type && i < l->cfg.n_gpu_types; i++)
        if (strcasestr(l->cfg.gpu_types[i], type))
            *ret = i + 1;
    if (json_object_get(body, "gpu_type") && *ret == 0)
        return stk_err_set(err, -EINVAL, "gpu_type: there are no GPUs of type \"%.60s\" here",
                           type ? type : "?");
    return 0;
}

static bool by_type(enum stk_set_kind k)
{
    return k == STK_SET_LIMIT || k == STK_SET_GUARANTEE;
}

/* How many there are. -EBADMSG: the body breaks the schema; -EINVAL: it cannot be set here. */
static int read_sets(const struct stk_live *l, const struct stk_live_request *r,
                     struct stk_set sets[MAX_SETS], struct stk_err *err)
{
    const char *key;
    json_t *v;
    uint32_t type;
    int n = 0, rc = find_type(l, r->body, &type, err);

    json_object_foreach(r->body, key, v)
    {
        size_t i = 0;

        while (i < MAX_SETS && strcmp(key, numbers[i].key) != 0)
            i++;
        if (rc < 0 || strcmp(key, "gpu_type") == 0)
            continue;
        if (i == MAX_SETS)
            return stk_err_set(
                err, -EBADMSG,
                "\"%.40s\" is not known; a tenant has limit, guarantee, weight, keep_up, cpus and "
                "mem_gib, and gpu_type says of which GPUs",
                key);
        sets[n] = (struct stk_set){.kind = numbers[i].kind,
                                   .row = r->node,
                                   .column = numbers[i].column          ? numbers[i].column
                                             : by_type(numbers[i].kind) ? type
                                                                        : 0};
        rc = read_number(key, v, &sets[n++], err);
    }
    if (rc == 0 && n == 0)
        rc = stk_err_set(err, -EINVAL,
                         "nothing to set: say limit, guarantee, weight, keep_up, cpus or mem_gib");
    return rc < 0 ? rc : n;
}

static int try_sets(struct stk_live *l, const struct stk_set *sets, int n, struct stk_err *err)
{
    struct stk_core *fork = NULL;
    int rc = stk_core_fork(l->core, &fork, err);

    for (int i = 0; i < n && rc == 0; i++) {
        const struct stk_event ev = {.at = l->now, .type = STK_EV_SET, .u.set = &sets[i]};

        rc = stk_core_apply(fork, &ev, err);
    }
    stk_core_free(fork);
    return rc;
}

static int refuse(struct stk_live_request *r, int status, const char *code, const char *text)
{
    r->status = status;
    r->answer = stk_live_error(code, text);
    return 0;
}

int stk_live_do_quota(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_set sets[MAX_SETS];
    struct stk_err why = {""};
    int n, rc;

    if (r->who.role < STK_ROLE_OPERATOR)
        return refuse(r, 403, "not_allowed", "changing quotas needs the role operator");
    n = read_sets(l, r, sets, &why);
    if (n < 0)
        return refuse(r, n == -EBADMSG ? 400 : 422, n == -EBADMSG ? "bad_quota" : "unprocessable",
                      why.text);
    rc = try_sets(l, sets, n, &why);
    if (rc == -ENOMEM)
        return stk_err_set(err, rc, "out of memory");
    if (rc < 0)
        return refuse(r, 409, "not_possible", why.text);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct stk_event ev = {.at = l->now, .type = STK_EV_SET, .u.set = &sets[i]};

        rc = stk_loop_apply(l->loop, &ev, err);
    }
    if (rc == 0)
        rc = stk_live_note_quota(l, r->who.user, stk_live_tenant_name(l, r->node), r->body, err);
    r->status = 200;
    r->answer = json_pack("{s:s,s:i}", "tenant", stk_live_tenant_name(l, r->node), "set", n);
    return rc;
}

/* ---- what was set, and what the configuration says ---- */

static const char *key_of(const struct stk_set *e)
{
    for (size_t i = 0; i < MAX_SETS; i++)
        if (numbers[i].kind == e->kind && (!numbers[i].column || numbers[i].column == e->column) &&
            (numbers[i].column || e->column < STK_SET_CPUS))
            return numbers[i].key;
    return NULL; /* it is not of a tenant */
}

/* What the configuration has in its place; -1: nothing. */
static int64_t configured(const struct stk_state *s, const struct stk_set *e)
{
    const struct stk_tenant_spec *t = &s->settings->tenants[e->row];

    if (e->kind == STK_SET_WEIGHT)
        return t->weight;
    if (e->kind == STK_SET_KEEP_UP)
        return t->keep_up;
    if (e->column == STK_SET_CPUS)
        return (int64_t)t->cpu_limit;
    if (e->column == STK_SET_MEM)
        return (int64_t)t->mem_limit;
    if (e->kind == STK_SET_GUARANTEE)
        return (int64_t)(e->column ? t->type_guarantee[e->column - 1] : t->guarantee);
    return (int64_t)(e->column ? t->type_limit[e->column - 1] : t->limit);
}

static double one(const struct stk_set *e)
{
    return e->kind == STK_SET_KEEP_UP ? 1 : e->column == STK_SET_MEM ? 1024 : 1000;
}

static json_t *amount(const struct stk_set *e, int64_t value)
{
    return value < 0 ? json_null() : json_real((double)value / one(e));
}

static bool of_rule(const struct stk_live *l, const struct stk_set *e)
{
    for (uint32_t i = 0; i < l->rules.n_set; i++)
        if (stk_set_same(&l->rules.set[i], e))
            return true;
    return false;
}

json_t *stk_live_quota_set(const struct stk_live *l, uint32_t tenant)
{
    const struct stk_state *s = stk_core_state(l->core);
    json_t *list = json_array();

    for (uint32_t i = 0; i < s->settings->n; i++) {
        const struct stk_set *e = &s->settings->set[i];
        const char *key = key_of(e);
        const bool type = e->column > 0 && e->column <= l->cfg.n_gpu_types;

        if (!key || (tenant != STK_NONE && e->row != tenant))
            continue;
        (void)json_array_append_new(
            list,
            json_pack("{s:s,s:s,s:s?,s:o,s:o,s:s}", "tenant", s->settings->tenants[e->row].name,
                      "what", key, "gpu_type", type ? l->cfg.gpu_types[e->column - 1] : NULL,
                      "value", amount(e, e->value), "config", amount(e, configured(s, e)), "by",
                      of_rule(l, e) ? "rule" : "quota"));
    }
    return list;
}

static const char *in_words(const json_t *v, char *buf, size_t size)
{
    if (json_is_number(v))
        (void)snprintf(buf, size, "%.10g", json_number_value(v));
    else
        (void)snprintf(buf, size, "none");
    return buf;
}

/* "tenant vision: limit is 6, as it was set; the configuration has 4" */
static void tell_one(const struct stk_live *l, const json_t *e)
{
    const char *tenant = json_string_value(json_object_get(e, "tenant"));
    const char *what = json_string_value(json_object_get(e, "what"));
    const char *type = json_string_value(json_object_get(e, "gpu_type"));
    char line[600], value[32], config[32];

    (void)snprintf(
        line, sizeof(line),
        "tenant %.100s: %s%s%.60s is %s, as it was set; the configuration has %s (stoker "
        "quota set %.100s %s=config)",
        tenant, what, type ? " of " : "", type ? type : "",
        in_words(json_object_get(e, "value"), value, sizeof(value)),
        in_words(json_object_get(e, "config"), config, sizeof(config)), tenant, what);
    if (l->cfg.log)
        l->cfg.log(l->cfg.ctx, line);
}

void stk_live_quota_tell(const struct stk_live *l)
{
    json_t *list = l->cfg.log ? stk_live_quota_set(l, STK_NONE) : NULL, *e;
    size_t i, told = 0;
    char line[80];

    json_array_foreach(list, i, e)
    {
        if (strcmp(json_string_value(json_object_get(e, "by")), "quota") != 0 ||
            json_equal(json_object_get(e, "value"), json_object_get(e, "config")))
            continue;
        if (told++ < MAX_TOLD)
            tell_one(l, e);
    }
    (void)snprintf(line, sizeof(line), "%zu more numbers of tenants are set: stoker quota",
                   told > MAX_TOLD ? told - MAX_TOLD : 0);
    if (told > MAX_TOLD)
        l->cfg.log(l->cfg.ctx, line);
    json_decref(list);
}
