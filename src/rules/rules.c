/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/rules.h"

#include <string.h>

static int no_memory(struct stk_err *err)
{
    return stk_err_set(err, -ENOMEM, "out of memory for rules");
}

static void drop_rule(struct stk_rules *r, struct stk_rule *rule)
{
    stk_mem_drop(&r->mem, &rule->set, &rule->cap_set, sizeof(*rule->set));
}

void stk_rules_done(struct stk_rules *r)
{
    if (!r->mem.resize)
        return;
    for (uint32_t i = 0; i < r->n; i++)
        drop_rule(r, &r->rule[i]);
    for (uint32_t i = 0; i < r->n_zones; i++)
        (void)r->mem.resize(r->mem.ctx, r->zone[i], sizeof(*r->zone[i]), 0);
    stk_mem_drop(&r->mem, &r->rule, &r->cap, sizeof(*r->rule));
    stk_mem_drop(&r->mem, &r->zone, &r->cap_zones, sizeof(struct stk_zone *));
    stk_mem_drop(&r->mem, &r->set, &r->cap_set, sizeof(*r->set));
    stk_mem_drop(&r->mem, &r->want, &r->cap_want, sizeof(*r->want));
    stk_mem_drop(&r->mem, &r->by, &r->cap_by, sizeof(*r->by));
    *r = (struct stk_rules){.mem = r->mem};
}

int stk_rules_zone(struct stk_rules *r, const struct stk_zone *z, uint32_t *ret)
{
    struct stk_zone *copy;

    for (uint32_t i = 0; i < r->n_zones; i++)
        if (strcmp(r->zone[i]->name, z->name) == 0) {
            *ret = i;
            return 0;
        }
    if (stk_mem_grow(&r->mem, &r->zone, &r->cap_zones, r->n_zones + 1, sizeof(struct stk_zone *)) <
        0)
        return -ENOMEM;
    copy = r->mem.resize(r->mem.ctx, NULL, 0, sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    *copy = *z;
    *ret = r->n_zones;
    r->zone[r->n_zones++] = copy;
    return 0;
}

struct stk_rule *stk_rules_find(const struct stk_rules *r, const char *name)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (strcmp(r->rule[i].name, name) == 0)
            return &r->rule[i];
    return NULL;
}

int stk_rules_add(struct stk_rules *r, const struct stk_rule *rule, struct stk_err *err)
{
    struct stk_rule copy = *rule;

    if (stk_rules_find(r, rule->name))
        return stk_err_set(err, -EEXIST, "there is a rule \"%s\" already", rule->name);
    if (r->n == STK_MAX_RULES)
        return stk_err_set(err, -ENOSPC, "at most %d rules", STK_MAX_RULES);
    copy.set = NULL;
    copy.cap_set = 0;
    if (stk_mem_grow(&r->mem, &r->rule, &r->cap, r->n + 1, sizeof(*r->rule)) < 0 ||
        stk_mem_grow(&r->mem, &copy.set, &copy.cap_set, rule->n_set + 1, sizeof(*copy.set)) < 0)
        return no_memory(err);
    if (rule->n_set > 0 && copy.set)
        memcpy(copy.set, rule->set, rule->n_set * sizeof(*copy.set));
    r->rule[r->n++] = copy;
    return 0;
}

void stk_rules_remove(struct stk_rules *r, struct stk_rule *rule)
{
    uint32_t at = (uint32_t)(rule - r->rule);

    drop_rule(r, rule);
    memmove(rule, rule + 1, (r->n - at - 1) * sizeof(*rule));
    r->n--;
}

/* ---- time ---- */

static int64_t unix_s(const struct stk_rules *r, stk_time t)
{
    int64_t us = r->epoch_us + t;

    return us / STK_SECOND - (us % STK_SECOND < 0);
}

static stk_time from_unix(const struct stk_rules *r, int64_t s)
{
    if (s == INT64_MAX || s > STK_MAX_DURATION / STK_SECOND)
        return STK_NEVER_TIME;
    return s == INT64_MIN ? INT64_MIN / 2 : s * STK_SECOND - r->epoch_us;
}

stk_time stk_rule_next_begin(const struct stk_rules *r, const struct stk_rule *rule, stk_time after)
{
    return from_unix(r, stk_cron_next(&rule->cron, r->zone[rule->zone], unix_s(r, after)));
}

stk_time stk_rule_next_end(const struct stk_rules *r, const struct stk_rule *rule, stk_time begun)
{
    if (rule->until == STK_UNTIL_WHILE)
        return begun + rule->lasts;
    if (rule->until == STK_UNTIL_CRON)
        return from_unix(r, stk_cron_next(&rule->end, r->zone[rule->zone], unix_s(r, begun)));
    return STK_NEVER_TIME;
}

/* When one that is in force since 'since' ends, or begins once more before that. */
static stk_time next_turn(const struct stk_rules *r, const struct stk_rule *rule, stk_time since)
{
    stk_time end = stk_rule_next_end(r, rule, since), again = STK_NEVER_TIME;

    if (rule->until == STK_UNTIL_WHILE)
        again = stk_rule_next_begin(r, rule, since);
    return again < end ? again : end;
}

/* In force when it began since it last ended. */
static void begin_by_clock(const struct stk_rules *r, struct stk_rule *rule, stk_time now)
{
    int64_t at = unix_s(r, now);
    stk_time began = from_unix(r, stk_cron_last(&rule->cron, r->zone[rule->zone], at));
    stk_time ended = began + rule->lasts;

    if (rule->until == STK_UNTIL_CRON)
        ended = from_unix(r, stk_cron_last(&rule->end, r->zone[rule->zone], at));
    rule->on = rule->until == STK_UNTIL_CRON ? began > ended : ended > now;
    rule->since = rule->on ? began : now;
    rule->next = rule->on ? next_turn(r, rule, rule->until == STK_UNTIL_CRON ? now : began)
                          : stk_rule_next_begin(r, rule, now);
}

void stk_rule_begin(const struct stk_rules *r, struct stk_rule *rule, stk_time now)
{
    rule->turning = STK_NEVER_TIME;
    rule->tried = rule->told = false;
    rule->sorry.text[0] = '\0';
    if (rule->when == STK_WHEN_CRON) {
        begin_by_clock(r, rule, now);
        return;
    }
    rule->since = now;
    rule->next = now;
}

void stk_rules_begin(struct stk_rules *r, stk_time now)
{
    for (uint32_t i = 0; i < r->n; i++)
        stk_rule_begin(r, &r->rule[i], now);
}

void stk_rules_set_back(struct stk_rules *r, stk_time now)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct stk_rule *rule = &r->rule[i];

        if (rule->when == STK_WHEN_CRON) {
            stk_rule_begin(r, rule, now);
            continue;
        }
        rule->since = rule->since < now ? rule->since : now;
        if (rule->turning != STK_NEVER_TIME && rule->turning > now)
            rule->turning = now;
        rule->next = now;
    }
}

stk_time stk_rules_wake(const struct stk_rules *r)
{
    stk_time t = STK_NEVER_TIME;

    for (uint32_t i = 0; i < r->n; i++)
        t = r->rule[i].next < t ? r->rule[i].next : t;
    return t;
}

/* ---- what is due ---- */

static void turn(struct stk_rule *rule, bool on, stk_time at)
{
    rule->on = on;
    rule->since = at;
    rule->turning = STK_NEVER_TIME;
    rule->tried = rule->told = false;
    rule->sorry.text[0] = '\0';
}

/* Several times may have passed: all are gone through. One that lasts for a while and begins once
 * more lasts as long from then on. */
static void step_by_clock(const struct stk_rules *r, struct stk_rule *rule, stk_time now)
{
    while (rule->next <= now) {
        stk_time at = rule->next;

        if (rule->on && rule->until == STK_UNTIL_WHILE &&
            stk_rule_next_begin(r, rule, at - 1) == at)
            rule->since = at;
        else
            turn(rule, !rule->on, at);
        rule->next = rule->on ? next_turn(r, rule, at) : stk_rule_next_begin(r, rule, at);
    }
}

static bool holds(const struct stk_rule *rule, const struct stk_rules_view *v, stk_time now)
{
    int64_t x = rule->when == STK_WHEN_WAIT ? v->wait(v->ctx, rule->pool, now)
                                            : v->utilization(v->ctx, rule->pool);

    return rule->above ? x > rule->bound : x < rule->bound;
}

/* A condition begins when it has held for long enough. It ends when it has been gone for as long,
 * or by the clock. */
static void step_condition(const struct stk_rules *r, struct stk_rule *rule,
                           const struct stk_rules_view *v, stk_time now)
{
    stk_time every = r->every ? r->every : STK_RULES_EVERY;
    bool is = holds(rule, v, now);

    rule->next = (now / every + 1) * every;
    if (rule->on && rule->until != STK_UNTIL_GONE) {
        if (stk_rule_next_end(r, rule, rule->since) <= now)
            turn(rule, false, now);
        return;
    }
    if (is == rule->on) {
        rule->turning = STK_NEVER_TIME;
        return;
    }
    if (rule->turning == STK_NEVER_TIME)
        rule->turning = now;
    if (now - rule->turning >= rule->hold)
        turn(rule, is, now);
}

/* ---- values ---- */

/* What is in force, into 'want': of those that say the same thing the last. */
static int gather(struct stk_rules *r, uint32_t *ret, struct stk_err *err)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n; i++) {
        const struct stk_rule *rule = &r->rule[i];

        if (!rule->on)
            continue;
        if (stk_mem_grow(&r->mem, &r->want, &r->cap_want, n + rule->n_set, sizeof(*r->want)) < 0 ||
            stk_mem_grow(&r->mem, &r->by, &r->cap_by, n + rule->n_set, sizeof(*r->by)) < 0)
            return no_memory(err);
        for (uint32_t k = 0; k < rule->n_set; k++) {
            uint32_t at = 0;

            while (at < n && !stk_set_same(&r->want[at], &rule->set[k]))
                at++;
            r->want[at] = rule->set[k];
            r->by[at] = i;
            n += at == n;
        }
    }
    *ret = n;
    return 0;
}

static struct stk_set *same_in(struct stk_set *list, uint32_t n, const struct stk_set *e)
{
    for (uint32_t i = 0; i < n; i++)
        if (stk_set_same(&list[i], e))
            return &list[i];
    return NULL;
}

static bool equal(const struct stk_set *a, const struct stk_set *b)
{
    return a->value == b->value && a->evict == b->evict && strcmp(a->text, b->text) == 0;
}

/* What nobody wants any more goes. One that cannot go stays, and is tried again next time. */
static int clear_old(struct stk_rules *r, uint32_t n_want, const struct stk_rules_view *v,
                     struct stk_err *err)
{
    uint32_t kept = 0;
    int rc = 0;

    for (uint32_t i = 0; i < r->n_set; i++) {
        struct stk_set e = r->set[i];

        e.clear = true;
        if (rc == 0 && !same_in(r->want, n_want, &e))
            rc = v->apply(v->ctx, &e, err);
        else if (rc == 0)
            rc = -EINVAL; /* kept */
        if (rc != 0)
            r->set[kept++] = r->set[i];
        rc = rc == -EINVAL ? 0 : rc;
    }
    r->n_set = kept;
    return rc;
}

static int set_new(struct stk_rules *r, uint32_t n_want, const struct stk_rules_view *v,
                   struct stk_err *err)
{
    for (uint32_t i = 0; i < n_want; i++) {
        struct stk_set *was = same_in(r->set, r->n_set, &r->want[i]);
        struct stk_err why = {{0}};
        int rc;

        if (was ? equal(was, &r->want[i]) : r->rule[r->by[i]].tried)
            continue; /* it is so, or was refused */
        if (stk_mem_grow(&r->mem, &r->set, &r->cap_set, r->n_set + 1, sizeof(*r->set)) < 0)
            return no_memory(err);
        rc = v->apply(v->ctx, &r->want[i], &why);
        if (rc == -EINVAL) {
            r->rule[r->by[i]].sorry = why;
            continue;
        }
        if (rc < 0) {
            if (err)
                *err = why;
            return rc;
        }
        was = same_in(r->set, r->n_set, &r->want[i]);
        *(was ? was : &r->set[r->n_set++]) = r->want[i];
    }
    return 0;
}

int stk_rules_step(struct stk_rules *r, stk_time now, const struct stk_rules_view *v,
                   struct stk_err *err)
{
    uint32_t n_want = 0;
    int rc;

    for (uint32_t i = 0; i < r->n; i++) {
        struct stk_rule *rule = &r->rule[i];

        if (rule->next > now)
            continue;
        if (rule->when == STK_WHEN_CRON)
            step_by_clock(r, rule, now);
        else
            step_condition(r, rule, v, now);
    }
    rc = gather(r, &n_want, err);
    rc = rc < 0 ? rc : clear_old(r, n_want, v, err);
    rc = rc < 0 ? rc : set_new(r, n_want, v, err);
    for (uint32_t i = 0; i < r->n && rc == 0; i++)
        r->rule[i].tried = r->rule[i].on;
    return rc;
}
