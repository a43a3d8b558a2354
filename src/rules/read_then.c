/* SPDX-License-Identifier: Apache-2.0 */
/* read_then.c - what a rule changes: limits of tenants and queues, priorities of kinds of jobs,
 * parameters of policies, nodes of pools. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/job.h"
#include "model/node.h"
#include "model/tenant.h"
#include "rules/value.h"
#include "spec/words.h"

static bool yes(const json_t *v)
{
    char b[8];
    const char *s = v ? stk_rules_text(v, b, sizeof(b)) : NULL;

    return s && (strcmp(s, "yes") == 0 || strcmp(s, "true") == 0);
}

static int add(struct stk_rules_reader *x, const struct stk_set *e)
{
    struct stk_rule *rule = &x->rule;

    if (rule->n_set == STK_MAX_RULE_SETS)
        return stk_rules_bad(x, "changes more than a rule may");
    for (uint32_t i = 0; i < rule->n_set; i++)
        if (stk_set_same(&rule->set[i], e))
            return stk_rules_bad(x, "sets the same thing twice");
    if (stk_mem_grow(&x->r->mem, &rule->set, &rule->cap_set, rule->n_set + 1, sizeof(*rule->set)) <
        0)
        return stk_err_set(x->err, -ENOMEM, "out of memory for rules");
    rule->set[rule->n_set++] = *e;
    return 0;
}
/* GPUs or jobs or a time; "none" is -1. */
static int read_value(const struct stk_rules_reader *x, const char *key, const json_t *v,
                      int64_t *ret)
{
    char b[64], what[120];
    const char *s = stk_rules_text(v, b, sizeof(b));
    bool ok = s != NULL;

    if (ok && strcmp(s, "none") == 0)
        *ret = -1;
    else if (ok && strstr(key, "jobs"))
        ok = stk_words_whole(s, INT32_MAX, ret) == 0;
    else if (ok && strstr(key, "time"))
        ok = stk_words_duration(s, 1, ret) == 0 && *ret > 0;
    else
        ok = ok && stk_rules_milli(s, 10000000, ret);
    (void)snprintf(what, sizeof(what), "%s must be %s, or none", key,
                   strstr(key, "jobs")   ? "a number of jobs"
                   : strstr(key, "time") ? "a time such as 2h"
                   : strstr(key, "cpus") ? "a number of CPUs, in thousandths"
                   : strstr(key, "mem")  ? "a number of GiB, in thousandths"
                                         : "a number of GPUs, in thousandths");
    return ok ? 0 : stk_rules_bad(x, what);
}

/* A limit on CPUs or memory. */
static int read_means(struct stk_rules_reader *x, const char *key, uint32_t column, uint32_t tenant,
                      const json_t *v)
{
    struct stk_set e = {.kind = STK_SET_LIMIT, .row = tenant, .column = column};
    int rc = read_value(x, key, v, &e.value);

    if (column == STK_SET_MEM && e.value > 0)
        e.value = e.value * 1024 / 1000;
    return rc < 0 ? rc : add(x, &e);
}

/* Jobs of a tenant that stay up. */
static int read_keep_up(struct stk_rules_reader *x, const json_t *v, struct stk_set *e)
{
    char b[32];
    const char *s = stk_rules_text(v, b, sizeof(b));

    e->value = 0;
    if (s && strcmp(s, "none") == 0)
        return 0;
    if (e->column)
        return stk_rules_bad(x, "keep_up is not by GPU type");
    if (!s || stk_words_whole(s, STK_MAX_KEEP_UP, &e->value) < 0)
        return stk_rules_bad(x, "keep_up must be a number of jobs (0 to 1000000), or none");
    return 0;
}

static int read_tenant(struct stk_rules_reader *x, json_t *o)
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
    int rc = stk_rules_keys(x, o, keys);

    rc = rc < 0 ? rc : stk_rules_named(x, STK_RULES_TENANT, json_object_get(o, "tenant"), &e.row);
    if (rc == 0 && type) {
        rc = stk_rules_named(x, STK_RULES_GPU_TYPE, type, &number);
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
            return stk_rules_bad(x, "a weight is not by GPU type");
        if (rc == 0 && e.kind == STK_SET_WEIGHT && e.value < 0)
            return stk_rules_bad(x, "a weight is a number from 0 on");
        rc = rc < 0 ? rc : add(x, &e);
    }
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        const json_t *v = json_object_get(o, means[i].key);

        if (v)
            rc = read_means(x, means[i].key, means[i].column, e.row, v);
    }
    return rc < 0 || x->rule.n_set > before
               ? rc
               : stk_rules_bad(x, "needs limit, guarantee, weight, keep_up, cpus or mem_gib");
}

/* "+400", "-50". */
static int read_shift(struct stk_rules_reader *x, const json_t *v, struct stk_set *e)
{
    char b[32];
    const char *s = stk_rules_text(v, b, sizeof(b));

    e->kind = STK_SET_PRIORITY;
    if (!s ||
        stk_words_signed(s[0] == '+' ? s + 1 : s, -STK_MAX_SHIFT, STK_MAX_SHIFT, &e->value) < 0)
        return stk_rules_bad(x, "priority must be what is added to it, such as +400 or -50");
    return add(x, e);
}

static int read_queue(struct stk_rules_reader *x, json_t *o)
{
    static const char *const keys[] = {"user_gpus", "user_jobs", "tenant_gpus", "tenant_jobs",
                                       "all_gpus",  "all_jobs",  "job_gpus",    "job_time",
                                       "queue",     "priority",  NULL};
    uint32_t row, before = x->rule.n_set;
    int rc = stk_rules_keys(x, o, keys);

    rc = rc < 0 ? rc : stk_rules_named(x, STK_RULES_QUEUE, json_object_get(o, "queue"), &row);
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
    return rc < 0 || x->rule.n_set > before ? rc : stk_rules_bad(x, "says nothing that changes");
}

static int read_kind(struct stk_rules_reader *x, json_t *o)
{
    static const char *const keys[] = {"kind", "priority", NULL};
    struct stk_set e = {.column = STK_SET_OF_KIND};
    char b[32];
    const char *s = stk_rules_text(json_object_get(o, "kind"), b, sizeof(b));
    int rc = stk_rules_keys(x, o, keys);

    while (rc == 0 && e.row < STK_KIND_MAX &&
           (!s || strcmp(s, stk_kind_name((enum stk_job_kind)e.row)) != 0))
        e.row++;
    if (rc == 0 && e.row == STK_KIND_MAX)
        return stk_rules_no_such(x, "kind of jobs", s ? s : "?");
    return rc < 0 ? rc : read_shift(x, json_object_get(o, "priority"), &e);
}

static int read_param(struct stk_rules_reader *x, json_t *o)
{
    static const char *const keys[] = {"param", "value", NULL};
    struct stk_set e = {.kind = STK_SET_PARAM};
    int rc = stk_rules_keys(x, o, keys);

    if (rc == 0 && (!stk_rules_text(json_object_get(o, "param"), e.name, sizeof(e.name)) ||
                    !stk_rules_text(json_object_get(o, "value"), e.text, sizeof(e.text))))
        return stk_rules_bad(x, "needs param, the name of a parameter, and its value");
    return rc < 0 ? rc : add(x, &e);
}

static int add_node(struct stk_rules_reader *x, struct stk_set *e, const char *name)
{
    e->row = x->w->find(x->w->ctx, STK_RULES_NODE, name);
    return e->row == STK_NONE ? stk_rules_no_such(x, "node", name) : add(x, e);
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
static int add_nodes(struct stk_rules_reader *x, struct stk_set *e, const json_t *v)
{
    char b[128], one[16];
    const char *s = stk_rules_text(v, b, sizeof(b));
    int64_t first, last;
    int rc = 0;

    if (!s)
        return stk_rules_bad(x, "nodes are names, or numbers such as 2-7");
    if (!range_of(s, &first, &last))
        return add_node(x, e, s);
    for (int64_t i = first; i <= last && rc == 0; i++) {
        (void)snprintf(one, sizeof(one), "%" PRId64, i);
        rc = add_node(x, e, one);
    }
    return rc;
}

static int read_pool(struct stk_rules_reader *x, json_t *o)
{
    static const char *const keys[] = {"pool", "nodes", "evict", NULL};
    const json_t *nodes = json_object_get(o, "nodes");
    struct stk_set e = {.kind = STK_SET_POOL, .evict = yes(json_object_get(o, "evict"))};
    uint32_t pool;
    int rc = stk_rules_keys(x, o, keys);

    rc = rc < 0 ? rc : stk_rules_named(x, STK_RULES_POOL, json_object_get(o, "pool"), &pool);
    if (rc == 0)
        e.value = pool;
    if (rc == 0 && !json_is_array(nodes))
        return add_nodes(x, &e, nodes);
    for (size_t i = 0; i < json_array_size(nodes) && rc == 0; i++)
        rc = add_nodes(x, &e, json_array_get(nodes, i));
    return rc;
}

static int read_change(struct stk_rules_reader *x, json_t *o)
{
    static const struct {
        const char *key;
        int (*read)(struct stk_rules_reader *x, json_t *o);
    } kinds[] = {{"tenant", read_tenant},
                 {"queue", read_queue},
                 {"kind", read_kind},
                 {"param", read_param},
                 {"pool", read_pool}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (json_object_get(o, kinds[i].key))
            return kinds[i].read(x, o);
    return stk_rules_bad(x, "needs one of tenant, queue, kind, param and pool");
}

int stk_rules_read_then(struct stk_rules_reader *x, const json_t *then)
{
    int rc = 0;

    (void)snprintf(x->where, sizeof(x->where), "then");
    if (!json_is_array(then) || json_array_size(then) == 0)
        return stk_rules_bad(x, "must be a list of changes, at least one");
    for (size_t i = 0; i < json_array_size(then) && rc == 0; i++) {
        (void)snprintf(x->where, sizeof(x->where), "then, change %zu", i + 1);
        rc = read_change(x, json_array_get(then, i));
    }
    x->where[0] = '\0';
    return rc;
}
