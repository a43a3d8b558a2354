/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - see read.h. In YAML every value is text, in JSON numbers are numbers too: both are taken
 * as text here, and what it means follows from the key. */
#include "rules/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "model/job.h"
#include "model/node.h"
#include "model/tenant.h"
#include "spec/words.h"
#include "spec/yaml_tree.h"
#include "sys/zones.h"

struct reader {
    struct stk_rules *r;
    const struct stk_rules_world *w;
    struct stk_rule rule;
    struct stk_err *err;
    char where[96]; /* in it */
};

static int bad(const struct reader *x, const char *what)
{
    return stk_err_set(x->err, -EINVAL, "rule \"%s\": %s%s%s", x->rule.name, x->where,
                       x->where[0] ? ": " : "", what);
}

/* A plain value as text; NULL: it is none, or longer than any. */
static const char *text_of(const json_t *v, char *buf, size_t size)
{
    int n = 0;

    if (json_is_string(v))
        n = snprintf(buf, size, "%s", json_string_value(v));
    else if (json_is_integer(v))
        n = snprintf(buf, size, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        n = snprintf(buf, size, "%.6g", json_real_value(v));
    else if (json_is_boolean(v))
        n = snprintf(buf, size, "%s", json_is_true(v) ? "yes" : "no");
    else
        return NULL;
    return n >= 0 && (size_t)n < size ? buf : NULL;
}

static bool yes(const json_t *v)
{
    char b[8];
    const char *s = v ? text_of(v, b, sizeof(b)) : NULL;

    return s && (strcmp(s, "yes") == 0 || strcmp(s, "true") == 0);
}

bool stk_rules_known(json_t *o, const char *const *keys, char *what, size_t size)
{
    const char *key;
    json_t *v;

    json_object_foreach(o, key, v)
    {
        unsigned best = stk_near_limit(key);
        const char *near = NULL;
        bool known = false;

        for (size_t i = 0; keys[i]; i++) {
            known |= strcmp(keys[i], key) == 0;
            if (stk_near(key, keys[i], &best))
                near = keys[i];
        }
        if (known)
            continue;
        (void)snprintf(what, size, "\"%.40s\" is not known%s%s%s", key,
                       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return false;
    }
    return true;
}

static int check_keys(const struct reader *x, json_t *o, const char *const *keys)
{
    char what[160];

    return stk_rules_known(o, keys, what, sizeof(what)) ? 0 : bad(x, what);
}

/* ---- numbers ---- */

/* Thousandths of a decimal number; false: it is none. */
static bool milli_of(const char *s, int64_t most, int64_t *ret)
{
    char *end = NULL;
    double v;

    if (*s < '0' || *s > '9')
        return false;
    v = strtod(s, &end);
    if (*end != '\0' || v < 0 || v > (double)most)
        return false;
    *ret = (int64_t)(v * 1000 + 0.5);
    return true;
}

static int no_such(const struct reader *x, const char *noun, const char *name)
{
    char what[160];

    (void)snprintf(what, sizeof(what), "there is no %s \"%.60s\" here", noun, name);
    return bad(x, what);
}

static int find(const struct reader *x, enum stk_rules_noun noun, const json_t *v, uint32_t *ret)
{
    static const char *const nouns[] = {"tenant", "queue", "pool", "node", "GPU type"};
    char b[256];
    const char *name = text_of(v, b, sizeof(b));

    *ret = name ? x->w->find(x->w->ctx, noun, name) : STK_NONE;
    return *ret == STK_NONE ? no_such(x, nouns[noun], name ? name : "?") : 0;
}

static int add(struct reader *x, const struct stk_set *e)
{
    struct stk_rule *rule = &x->rule;

    if (rule->n_set == STK_MAX_RULE_SETS)
        return bad(x, "changes more than a rule may");
    for (uint32_t i = 0; i < rule->n_set; i++)
        if (stk_set_same(&rule->set[i], e))
            return bad(x, "sets the same thing twice");
    if (stk_mem_grow(&x->r->mem, &rule->set, &rule->cap_set, rule->n_set + 1, sizeof(*rule->set)) <
        0)
        return stk_err_set(x->err, -ENOMEM, "out of memory for rules");
    rule->set[rule->n_set++] = *e;
    return 0;
}

/* ---- what it changes ---- */

/* GPUs or jobs or a time; "none" is -1. */
static int read_value(const struct reader *x, const char *key, const json_t *v, int64_t *ret)
{
    char b[64], what[120];
    const char *s = text_of(v, b, sizeof(b));
    bool ok = s != NULL;

    if (ok && strcmp(s, "none") == 0)
        *ret = -1;
    else if (ok && strstr(key, "jobs"))
        ok = stk_words_whole(s, INT32_MAX, ret) == 0;
    else if (ok && strstr(key, "time"))
        ok = stk_words_duration(s, 1, ret) == 0 && *ret > 0;
    else
        ok = ok && milli_of(s, 10000000, ret);
    (void)snprintf(what, sizeof(what), "%s must be %s, or none", key,
                   strstr(key, "jobs")   ? "a number of jobs"
                   : strstr(key, "time") ? "a time such as 2h"
                   : strstr(key, "cpus") ? "a number of CPUs, in thousandths"
                   : strstr(key, "mem")  ? "a number of GiB, in thousandths"
                                         : "a number of GPUs, in thousandths");
    return ok ? 0 : bad(x, what);
}

/* A limit on CPUs or memory. */
static int read_means(struct reader *x, const char *key, uint32_t column, uint32_t tenant,
                      const json_t *v)
{
    struct stk_set e = {.kind = STK_SET_LIMIT, .row = tenant, .column = column};
    int rc = read_value(x, key, v, &e.value);

    if (column == STK_SET_MEM && e.value > 0)
        e.value = e.value * 1024 / 1000;
    return rc < 0 ? rc : add(x, &e);
}

/* Jobs of a tenant that stay up. */
static int read_keep_up(struct reader *x, const json_t *v, struct stk_set *e)
{
    char b[32];
    const char *s = text_of(v, b, sizeof(b));

    e->value = 0;
    if (s && strcmp(s, "none") == 0)
        return 0;
    if (e->column)
        return bad(x, "keep_up is not by GPU type");
    if (!s || stk_words_whole(s, STK_MAX_KEEP_UP, &e->value) < 0)
        return bad(x, "keep_up must be a number of jobs (0 to 1000000), or none");
    return 0;
}

static int read_tenant(struct reader *x, json_t *o)
{
    static const char *const keys[] = {"tenant", "limit",   "guarantee", "weight", "gpu_type",
                                       "cpus",   "mem_gib", "keep_up",   NULL};
    static const struct {
        const char *key;
        enum stk_set_kind kind;
    } values[] = {{"limit", STK_SET_LIMIT},
                  {"guarantee", STK_SET_GUARANTEE},
                  {"weight", STK_SET_WEIGHT},
                  {"keep_up", STK_SET_KEEP_UP}};
    static const struct {
        const char *key;
        uint32_t column;
    } means[] = {{"cpus", STK_SET_CPUS}, {"mem_gib", STK_SET_MEM}};
    const json_t *type = json_object_get(o, "gpu_type");
    struct stk_set e = {.kind = STK_SET_LIMIT};
    uint32_t number, before = x->rule.n_set;
    int rc = check_keys(x, o, keys);

    rc = rc < 0 ? rc : find(x, STK_RULES_TENANT, json_object_get(o, "tenant"), &e.row);
    if (rc == 0 && type) {
        rc = find(x, STK_RULES_GPU_TYPE, type, &number);
        e.column = rc < 0 ? 0 : number + 1;
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(*values) && rc == 0; i++) {
        const json_t *v = json_object_get(o, values[i].key);

        if (!v)
            continue;
        e.kind = values[i].kind;
        rc = e.kind == STK_SET_KEEP_UP ? read_keep_up(x, v, &e)
                                       : read_value(x, values[i].key, v, &e.value);
        if (rc == 0 && e.kind == STK_SET_WEIGHT && e.column)
            return bad(x, "a weight is not by GPU type");
        if (rc == 0 && e.kind == STK_SET_WEIGHT && e.value < 0)
            return bad(x, "a weight is a number from 0 on");
        rc = rc < 0 ? rc : add(x, &e);
    }
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        const json_t *v = json_object_get(o, means[i].key);

        if (v)
            rc = read_means(x, means[i].key, means[i].column, e.row, v);
    }
    return rc < 0 || x->rule.n_set > before
               ? rc
               : bad(x, "needs limit, guarantee, weight, keep_up, cpus or mem_gib");
}

/* "+400", "-50". */
static int read_shift(struct reader *x, const json_t *v, struct stk_set *e)
{
    char b[32];
    const char *s = text_of(v, b, sizeof(b));

    e->kind = STK_SET_PRIORITY;
    if (!s ||
        stk_words_signed(s[0] == '+' ? s + 1 : s, -STK_MAX_SHIFT, STK_MAX_SHIFT, &e->value) < 0)
        return bad(x, "priority must be what is added to it, such as +400 or -50");
    return add(x, e);
}

static int read_queue(struct reader *x, json_t *o)
{
    static const char *const keys[] = {"user_gpus", "user_jobs", "tenant_gpus", "tenant_jobs",
                                       "all_gpus",  "all_jobs",  "job_gpus",    "job_time",
                                       "queue",     "priority",  NULL};
    uint32_t row, before = x->rule.n_set;
    int rc = check_keys(x, o, keys);

    rc = rc < 0 ? rc : find(x, STK_RULES_QUEUE, json_object_get(o, "queue"), &row);
    for (uint32_t i = 0; i < STK_SET_QUEUE_MAX && rc == 0; i++) {
        const json_t *v = json_object_get(o, keys[i]);
        struct stk_set e = {.kind = STK_SET_QUEUE, .row = row, .column = i};

        if (!v)
            continue;
        rc = read_value(x, keys[i], v, &e.value);
        rc = rc < 0 ? rc : add(x, &e);
    }
    if (rc == 0 && json_object_get(o, "priority"))
        rc = read_shift(x, json_object_get(o, "priority"),
                        &(struct stk_set){.row = row, .column = STK_SET_OF_QUEUE});
    return rc < 0 || x->rule.n_set > before ? rc : bad(x, "says nothing that changes");
}

static int read_kind(struct reader *x, json_t *o)
{
    static const char *const keys[] = {"kind", "priority", NULL};
    struct stk_set e = {.column = STK_SET_OF_KIND};
    char b[32];
    const char *s = text_of(json_object_get(o, "kind"), b, sizeof(b));
    int rc = check_keys(x, o, keys);

    while (rc == 0 && e.row < STK_KIND_MAX &&
           (!s || strcmp(s, stk_kind_name((enum stk_job_kind)e.row)) != 0))
        e.row++;
    if (rc == 0 && e.row == STK_KIND_MAX)
        return no_such(x, "kind of jobs", s ? s : "?");
    return rc < 0 ? rc : read_shift(x, json_object_get(o, "priority"), &e);
}

static int read_param(struct reader *x, json_t *o)
{
    static const char *const keys[] = {"param", "value", NULL};
    struct stk_set e = {.kind = STK_SET_PARAM};
    int rc = check_keys(x, o, keys);

    if (rc == 0 && (!text_of(json_object_get(o, "param"), e.name, sizeof(e.name)) ||
                    !text_of(json_object_get(o, "value"), e.text, sizeof(e.text))))
        return bad(x, "needs param, the name of a parameter, and its value");
    return rc < 0 ? rc : add(x, &e);
}

static int add_node(struct reader *x, struct stk_set *e, const char *name)
{
    e->row = x->w->find(x->w->ctx, STK_RULES_NODE, name);
    return e->row == STK_NONE ? no_such(x, "node", name) : add(x, e);
}

/* "2-7" */
static bool range_of(const char *s, int64_t *ret_first, int64_t *ret_last)
{
    const char *dash = strchr(s, '-');
    char first[16] = "";

    if (!dash || (size_t)(dash - s) >= sizeof(first))
        return false;
    memcpy(first, s, (size_t)(dash - s));
    return stk_words_whole(first, STK_MAX_NODES, ret_first) == 0 &&
           stk_words_whole(dash + 1, STK_MAX_NODES, ret_last) == 0 && *ret_first <= *ret_last &&
           *ret_last - *ret_first < STK_MAX_RULE_SETS;
}

/* A name, or a range of numbers: "2-7". */
static int add_nodes(struct reader *x, struct stk_set *e, const json_t *v)
{
    char b[128], one[16];
    const char *s = text_of(v, b, sizeof(b));
    int64_t first, last;
    int rc = 0;

    if (!s)
        return bad(x, "nodes are names, or numbers such as 2-7");
    if (!range_of(s, &first, &last))
        return add_node(x, e, s);
    for (int64_t i = first; i <= last && rc == 0; i++) {
        (void)snprintf(one, sizeof(one), "%" PRId64, i);
        rc = add_node(x, e, one);
    }
    return rc;
}

static int read_pool(struct reader *x, json_t *o)
{
    static const char *const keys[] = {"pool", "nodes", "evict", NULL};
    const json_t *nodes = json_object_get(o, "nodes");
    struct stk_set e = {.kind = STK_SET_POOL, .evict = yes(json_object_get(o, "evict"))};
    uint32_t pool;
    int rc = check_keys(x, o, keys);

    rc = rc < 0 ? rc : find(x, STK_RULES_POOL, json_object_get(o, "pool"), &pool);
    if (rc == 0)
        e.value = pool;
    if (rc == 0 && !json_is_array(nodes))
        return add_nodes(x, &e, nodes);
    for (size_t i = 0; i < json_array_size(nodes) && rc == 0; i++)
        rc = add_nodes(x, &e, json_array_get(nodes, i));
    return rc;
}

static int read_change(struct reader *x, json_t *o)
{
    static const struct {
        const char *key;
        int (*read)(struct reader *x, json_t *o);
    } kinds[] = {{"tenant", read_tenant},
                 {"queue", read_queue},
                 {"kind", read_kind},
                 {"param", read_param},
                 {"pool", read_pool}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (json_object_get(o, kinds[i].key))
            return kinds[i].read(x, o);
    return bad(x, "needs one of tenant, queue, kind, param and pool");
}

static int read_then(struct reader *x, const json_t *then)
{
    int rc = 0;

    (void)snprintf(x->where, sizeof(x->where), "then");
    if (!json_is_array(then) || json_array_size(then) == 0)
        return bad(x, "must be a list of changes, at least one");
    for (size_t i = 0; i < json_array_size(then) && rc == 0; i++) {
        (void)snprintf(x->where, sizeof(x->where), "then, change %zu", i + 1);
        rc = read_change(x, json_array_get(then, i));
    }
    x->where[0] = '\0';
    return rc;
}

/* ---- when, and until ---- */

static int read_zone(struct reader *x, const json_t *v)
{
    struct stk_zone *z = malloc(sizeof(*z));
    char b[STK_MAX_ZONE_NAME];
    const char *name = v ? text_of(v, b, sizeof(b)) : x->w->zone ? x->w->zone : "local";
    struct stk_err why = {{0}};
    int rc = z && name ? stk_zones_load(name, z, &why) : -ENOMEM;

    if (rc < 0 && why.text[0])
        rc = bad(x, why.text);
    else if (rc < 0 || stk_rules_zone(x->r, z, &x->rule.zone) < 0)
        rc = stk_err_set(x->err, -ENOMEM, "out of memory for rules");
    free(z);
    return rc;
}

static int read_hold(const struct reader *x, const json_t *v, stk_time *ret)
{
    char b[32];
    const char *s = v ? text_of(v, b, sizeof(b)) : "0";
    int64_t seconds = 0;

    if (!s || (strcmp(s, "0") != 0 && stk_words_duration(s, 1, &seconds) < 0))
        return bad(x, "for must be a time such as 10m");
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
        return milli_of(s, 1, ret);
    memcpy(b, s, len - 1);
    b[len - 1] = '\0';
    if (!milli_of(b, 100, ret))
        return false;
    *ret /= 100;
    return true;
}

static int read_condition(struct reader *x, json_t *o)
{
    static const char *const keys[] = {
        "utilization_above", "utilization_below", "wait_above", "wait_below", "pool", "for", NULL};
    struct stk_rule *rule = &x->rule;
    int which = -1, rc = check_keys(x, o, keys);
    char b[32];
    const char *s;

    for (int i = 0; i < 4 && rc == 0; i++)
        if (json_object_get(o, keys[i])) {
            rc = which >= 0 ? bad(x, "takes one condition") : 0;
            which = i;
        }
    if (rc < 0)
        return rc;
    if (which < 0)
        return bad(x, "needs utilization_above, utilization_below, wait_above or wait_below");
    s = text_of(json_object_get(o, keys[which]), b, sizeof(b));
    rule->when = which < 2 ? STK_WHEN_UTILIZATION : STK_WHEN_WAIT;
    rule->above = which % 2 == 0;
    if (which < 2 && (!s || !share_of(s, &rule->bound)))
        return bad(x, "a utilization is 0 to 1, or 0% to 100%");
    if (which >= 2 && (!s || stk_words_duration(s, 1, &rule->bound) < 0))
        return bad(x, "a wait is a time such as 30m");
    rule->bound *= which < 2 ? 1 : STK_SECOND;
    rc = read_hold(x, json_object_get(o, "for"), &rule->hold);
    if (rc == 0 && json_object_get(o, "pool"))
        rc = find(x, STK_RULES_POOL, json_object_get(o, "pool"), &rule->pool);
    return rc;
}

static int read_cron(const struct reader *x, const char *text, struct stk_cron *ret)
{
    struct stk_err why = {{0}};

    if (!text || strlen(text) > STK_MAX_CRON)
        return bad(x, "must be five fields of cron");
    return stk_cron_parse(text, ret, &why) < 0 ? bad(x, why.text) : 0;
}

static int read_when(struct reader *x, json_t *v)
{
    int rc;

    (void)snprintf(x->where, sizeof(x->where), "when");
    x->rule.pool = STK_NONE;
    if (json_is_object(v))
        rc = read_condition(x, v);
    else if (json_is_string(v))
        rc = read_cron(x, json_string_value(v), &x->rule.cron);
    else
        rc = bad(x, "must be five fields of cron, or a condition");
    x->where[0] = '\0';
    return rc;
}

/* "gone", a duration, or five fields. */
static int read_until(struct reader *x, const json_t *v)
{
    char b[STK_MAX_CRON + 1];
    const char *s = v ? text_of(v, b, sizeof(b)) : "gone";
    int64_t seconds;

    (void)snprintf(x->where, sizeof(x->where), "until");
    if (!s)
        return bad(x, "must be five fields of cron, a time such as 12h, or gone");
    if (strcmp(s, "gone") == 0) {
        x->rule.until = STK_UNTIL_GONE;
        if (x->rule.when == STK_WHEN_CRON)
            return bad(x, "a rule by the clock needs an end: five fields of cron, or a time such "
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
    struct reader x = {.r = r, .w = w, .err = err};
    const char *name = json_string_value(json_object_get(o, "name"));
    int rc;

    if (!json_is_object(o) || !name_ok(name))
        return stk_err_set(err, -EINVAL,
                           "a rule needs a name of letters, digits and _.- (at most %d)",
                           STK_MAX_RULE_NAME - 1);
    (void)snprintf(x.rule.name, sizeof(x.rule.name), "%s", name);
    rc = check_keys(&x, o, keys);
    rc = rc < 0 ? rc : read_zone(&x, json_object_get(o, "zone"));
    rc = rc < 0 ? rc : read_when(&x, json_object_get(o, "when"));
    rc = rc < 0 ? rc : read_until(&x, json_object_get(o, "until"));
    rc = rc < 0 ? rc : read_then(&x, json_object_get(o, "then"));
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
