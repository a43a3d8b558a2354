/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - see read.h. When a rule holds and until when, and files of rules. */
#include "rules/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/value.h"
#include "spec/words.h"
#include "spec/yaml_tree.h"
#include "sys/zones.h"

/* ---- when, and until ---- */

static int read_zone(struct stk_rules_reader *x, const json_t *v)
{
    struct stk_zone *z = malloc(sizeof(*z));
    char b[STK_MAX_ZONE_NAME];
    const char *name = v ? stk_rules_text(v, b, sizeof(b)) : x->w->zone ? x->w->zone : "local";
    struct stk_err why = {{0}};
    int rc;

    if (!name) {
        free(z);
        (void)stk_rules_bad(x, "zone must be the name of a time zone, such as Europe/Berlin");
        return -EBADMSG;
    }
    rc = z ? stk_zones_load(name, z, &why) : -ENOMEM;
    if (rc < 0 && why.text[0])
        rc = stk_rules_bad(x, why.text);
    else if (rc < 0 || stk_rules_zone(x->r, z, &x->rule.zone) < 0)
        rc = stk_err_set(x->err, -ENOMEM, "out of memory for rules");
    free(z);
    return rc;
}

static int read_hold(const struct stk_rules_reader *x, const json_t *v, stk_time *ret)
{
    char b[32];
    const char *s = v ? stk_rules_text(v, b, sizeof(b)) : "0";
    int64_t seconds = 0;

    if (!s || (strcmp(s, "0") != 0 && stk_words_duration(s, 1, &seconds) < 0))
        return stk_rules_bad(x, "for must be a time such as 10m");
    *ret = seconds * STK_SECOND;
    return 0;
}

/* "0.9" or "90%". */
static bool share_of(const char *s, int64_t *ret)
{
    char b[32];
    size_t len = strlen(s);
    bool percent = len > 1 && len < sizeof(b) && s[len - 1] == '%';

    if (!percent)
        return stk_rules_milli(s, 1, ret);
    memcpy(b, s, len - 1);
    b[len - 1] = '\0';
    if (!stk_rules_milli(b, 100, ret))
        return false;
    *ret /= 100;
    return true;
}

static int read_condition(struct stk_rules_reader *x, json_t *o)
{
    static const char *const keys[] = {
        "utilization_above", "utilization_below", "wait_above", "wait_below", "pool", "for", NULL};
    struct stk_rule *rule = &x->rule;
    int which = -1, rc = stk_rules_keys(x, o, keys);
    char b[32];
    const char *s;

    for (int i = 0; i < 4 && rc == 0; i++)
        if (json_object_get(o, keys[i])) {
            rc = which >= 0 ? stk_rules_bad(x, "takes one condition") : 0;
            which = i;
        }
    if (rc < 0)
        return rc;
    if (which < 0)
        return stk_rules_bad(
            x, "needs utilization_above, utilization_below, wait_above or wait_below");
    s = stk_rules_text(json_object_get(o, keys[which]), b, sizeof(b));
    rule->when = which < 2 ? STK_WHEN_UTILIZATION : STK_WHEN_WAIT;
    rule->above = which % 2 == 0;
    if (which < 2 && (!s || !share_of(s, &rule->bound)))
        return stk_rules_bad(x, "a utilization is 0 to 1, or 0% to 100%");
    if (which >= 2 && (!s || stk_words_duration(s, 1, &rule->bound) < 0))
        return stk_rules_bad(x, "a wait is a time such as 30m");
    rule->bound *= which < 2 ? 1 : STK_SECOND;
    rc = read_hold(x, json_object_get(o, "for"), &rule->hold);
    if (rc == 0 && json_object_get(o, "pool"))
        rc = stk_rules_named(x, STK_RULES_POOL, json_object_get(o, "pool"), &rule->pool);
    return rc;
}

static int read_cron(const struct stk_rules_reader *x, const char *text, struct stk_cron *ret)
{
    struct stk_err why = {{0}};

    if (!text || strlen(text) > STK_MAX_CRON)
        return stk_rules_bad(x, "must be five fields of cron");
    return stk_cron_parse(text, ret, &why) < 0 ? stk_rules_bad(x, why.text) : 0;
}

static int read_when(struct stk_rules_reader *x, json_t *v)
{
    int rc;

    (void)snprintf(x->where, sizeof(x->where), "when");
    x->rule.pool = STK_NONE;
    if (json_is_object(v))
        rc = read_condition(x, v);
    else if (json_is_string(v))
        rc = read_cron(x, json_string_value(v), &x->rule.cron);
    else
        rc = stk_rules_bad(x, "must be five fields of cron, or a condition");
    x->where[0] = '\0';
    return rc;
}

/* "gone", a duration, or five fields. */
static int read_until(struct stk_rules_reader *x, const json_t *v)
{
    char b[STK_MAX_CRON + 1];
    const char *s = v ? stk_rules_text(v, b, sizeof(b)) : "gone";
    int64_t seconds;

    (void)snprintf(x->where, sizeof(x->where), "until");
    if (!s)
        return stk_rules_bad(x, "must be five fields of cron, a time such as 12h, or gone");
    if (strcmp(s, "gone") == 0) {
        x->rule.until = STK_UNTIL_GONE;
        if (x->rule.when == STK_WHEN_CRON)
            return stk_rules_bad(
                x, "a rule by the clock needs an end: five fields of cron, or a time such "
                   "as 12h");
    } else if (!strchr(s, ' ') && s[0] != '@' && stk_words_duration(s, 1, &seconds) == 0 &&
               seconds > 0) {
        x->rule.until = STK_UNTIL_WHILE;
        x->rule.lasts = seconds * STK_SECOND;
    } else if (read_cron(x, s, &x->rule.end) < 0) {
        return -EINVAL;
    }
    x->where[0] = '\0';
    return 0;
}

static bool name_ok(const char *s)
{
    size_t len = s ? strlen(s) : 0;

    return len > 0 && len < STK_MAX_RULE_NAME &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

int stk_rules_read(struct stk_rules *r, json_t *o, const struct stk_rules_world *w,
                   struct stk_err *err)
{
    static const char *const keys[] = {"name", "when", "zone", "until", "then", NULL};
    struct stk_rules_reader x = {.r = r, .w = w, .err = err};
    const char *name = json_string_value(json_object_get(o, "name"));
    int rc;

    if (!json_is_object(o) || !name_ok(name))
        return stk_err_set(err, -EBADMSG,
                           "a rule needs a name of letters, digits and _.- (at most %d)",
                           STK_MAX_RULE_NAME - 1);
    (void)snprintf(x.rule.name, sizeof(x.rule.name), "%s", name);
    rc = stk_rules_keys(&x, o, keys);
    rc = rc < 0 ? rc : read_zone(&x, json_object_get(o, "zone"));
    rc = rc < 0 ? rc : read_when(&x, json_object_get(o, "when"));
    rc = rc < 0 ? rc : read_until(&x, json_object_get(o, "until"));
    rc = rc < 0 ? rc : stk_rules_read_then(&x, json_object_get(o, "then"));
    rc = rc < 0 ? rc : stk_rules_add(r, &x.rule, err);
    stk_mem_drop(&r->mem, &x.rule.set, &x.rule.cap_set, sizeof(*x.rule.set));
    return rc;
}

/* ---- files ---- */

static int file_keys(const char *name, json_t *root, struct stk_err *err)
{
    const char *key;
    json_t *v;

    json_object_foreach(root, key, v)
    {
        if (strcmp(key, "zone") != 0 && strcmp(key, "every") != 0 && strcmp(key, "rules") != 0)
            return stk_err_set(err, -EINVAL, "%s: \"%.40s\" is not known: zone, every, rules", name,
                               key);
    }
    if (!json_is_array(json_object_get(root, "rules")))
        return stk_err_set(err, -EINVAL, "%s: rules must be a list", name);
    return 0;
}

int stk_rules_tree(const char *name, const char *text, size_t len, json_t **ret_list,
                   int64_t *ret_every_s, struct stk_err *err)
{
    struct stk_yaml y = {0};
    const char *every;
    json_t *zone, *list, *rule;
    size_t i;
    int rc = len > STK_MAX_RULES_FILE
                 ? stk_err_set(err, -E2BIG, "%s: larger than %d bytes", name, STK_MAX_RULES_FILE)
                 : stk_yaml_read(&y, text, len, name, err);

    rc = rc < 0 ? rc : file_keys(name, y.root, err);
    *ret_every_s = 0;
    every = json_string_value(json_object_get(y.root, "every"));
    if (rc == 0 && json_object_get(y.root, "every") &&
        (!every || stk_words_duration(every, 1, ret_every_s) < 0 || *ret_every_s < 1))
        rc = stk_err_set(err, -EINVAL, "%s: every must be a time of a second or more", name);
    if (rc == 0) {
        zone = json_object_get(y.root, "zone");
        list = json_object_get(y.root, "rules");
        json_array_foreach(list, i, rule)
        {
            if (zone && json_is_object(rule) && !json_object_get(rule, "zone"))
                (void)json_object_set(rule, "zone", zone);
        }
        *ret_list = json_incref(list);
    }
    stk_yaml_done(&y);
    return rc;
}

int stk_rules_parse(struct stk_rules *r, const char *name, const char *text, size_t len,
                    const struct stk_rules_world *w, struct stk_err *err)
{
    json_t *list = NULL;
    int64_t every = 0;
    struct stk_err why = {{0}};
    int rc = stk_rules_tree(name, text, len, &list, &every, err);

    r->every = every * STK_SECOND;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        rc = stk_rules_read(r, json_array_get(list, i), w, &why);
        if (rc < 0)
            (void)stk_err_set(err, rc, "%s: %s", name, why.text);
    }
    json_decref(list);
    return rc;
}
