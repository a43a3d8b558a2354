/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ruled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"
#include "sys/big.h"
#include "sys/zones.h"

struct stk_ruled {
    struct stk_rules rules;
    const struct stk_cluster *c;
    const struct stk_tenants *t;
    bool begun;
    /* of the step that is being made */
    struct stk_loop *loop;
    const struct stk_state *s;
    stk_time now;
};

static uint32_t number(const struct stk_names *names, const char *name)
{
    int64_t n = stk_names_find(names, name, strlen(name));

    return n < 0 ? STK_NONE : (uint32_t)n;
}

/* Nodes have numbers here, from 0 on. */
static uint32_t find(void *ctx, enum stk_rules_noun noun, const char *name)
{
    const struct stk_ruled *x = ctx;
    char *end = NULL;
    unsigned long n;

    switch (noun) {
    case STK_RULES_POOL:
        return number(&x->c->pools, name);
    case STK_RULES_GPU_TYPE:
        return number(&x->c->gpu_types, name);
    case STK_RULES_NODE:
        n = strtoul(name, &end, 10);
        return *name >= '0' && *name <= '9' && *end == '\0' && n < x->c->n_nodes ? (uint32_t)n
                                                                                 : STK_NONE;
    case STK_RULES_TENANT:
        return x->t ? stk_teams_find(&x->t->teams, name) : STK_NONE;
    case STK_RULES_QUEUE:
        return x->t ? stk_queue_find(x->t->teams.queues, x->t->teams.n_queues, name) : STK_NONE;
    }
    return STK_NONE;
}

int stk_ruled_new(const struct stk_run_rules *f, const struct stk_cluster *c,
                  const struct stk_tenants *t, struct stk_ruled **ret, struct stk_err *err)
{
    struct stk_ruled *x = calloc(1, sizeof(*x));
    const struct stk_rules_world w = {x, find, f->zone ? f->zone : "UTC"};
    int rc;

    if (!x)
        return stk_err_set(err, -ENOMEM, "out of memory");
    x->c = c;
    x->t = t;
    x->rules.mem = stk_big_mem;
    x->rules.epoch_us = f->start_s * STK_SECOND;
    rc = stk_rules_parse(&x->rules, f->name, f->text, f->len, &w, err);
    if (rc < 0) {
        stk_ruled_free(x);
        return rc;
    }
    *ret = x;
    return 0;
}

void stk_ruled_free(struct stk_ruled *x)
{
    if (!x)
        return;
    stk_rules_done(&x->rules);
    free(x);
}

bool stk_ruled_moves_nodes(const struct stk_ruled *x)
{
    for (uint32_t i = 0; i < x->rules.n; i++)
        for (uint32_t k = 0; k < x->rules.rule[i].n_set; k++)
            if (x->rules.rule[i].set[k].kind == STK_SET_POOL)
                return true;
    return false;
}

stk_time stk_ruled_next(const struct stk_ruled *x)
{
    return x->begun ? stk_rules_wake(&x->rules) : 0;
}

/* ---- what conditions ask ---- */

static int64_t utilization(void *ctx, uint32_t pool)
{
    const struct stk_ruled *x = ctx;

    return stk_settings_utilization(x->s, pool);
}

static int64_t longest_wait(void *ctx, uint32_t pool, stk_time now)
{
    const struct stk_ruled *x = ctx;

    return stk_settings_wait(x->s, pool, now);
}

static int apply(void *ctx, const struct stk_set *set, struct stk_err *err)
{
    struct stk_ruled *x = ctx;
    const struct stk_event ev = {.at = x->now, .type = STK_EV_SET, .u.set = set};

    return stk_loop_apply(x->loop, &ev, err);
}

int stk_ruled_feed(struct stk_ruled *x, struct stk_loop *loop, const struct stk_state *s,
                   stk_time now, struct stk_err *err)
{
    const struct stk_rules_view v = {x, utilization, longest_wait, apply};
    int rc;

    if (!x->begun)
        stk_rules_begin(&x->rules, now);
    x->begun = true;
    x->loop = loop;
    x->s = s;
    x->now = now;
    rc = stk_rules_step(&x->rules, now, &v, err);
    for (uint32_t i = 0; i < x->rules.n && rc == 0; i++)
        if (x->rules.rule[i].sorry.text[0])
            rc = stk_err_set(err, -EINVAL, "rule \"%s\": %.180s", x->rules.rule[i].name,
                             x->rules.rule[i].sorry.text);
    return rc;
}

/* So many digits at most, and what must follow them; '\0': anything. */
static const char *digits(const char *s, int most, char then, int32_t *ret)
{
    int n = 0;

    *ret = 0;
    for (; s && n < most && *s >= '0' && *s <= '9'; s++, n++)
        *ret = *ret * 10 + (*s - '0');
    if (!s || n == 0 || (then && *s != then))
        return NULL;
    return s + (then ? 1 : 0);
}

int stk_ruled_start(const char *text, const char *zone, int64_t *ret, struct stk_err *err)
{
    struct stk_zone *z = malloc(sizeof(*z));
    int32_t y, m, d, hour = 0, minute = 0;
    const char *s = digits(digits(digits(text, 4, '-', &y), 2, '-', &m), 2, 0, &d);
    int rc = z ? stk_zones_load(zone ? zone : "UTC", z, err)
               : stk_err_set(err, -ENOMEM, "out of memory");

    if (s && (*s == ' ' || *s == 'T'))
        s = digits(digits(s + 1, 2, ':', &hour), 2, 0, &minute);
    if (rc == 0 &&
        (!s || *s || y < 1970 || m < 1 || m > 12 || d < 1 || d > 31 || hour > 23 || minute > 59))
        rc = stk_err_set(err, -EINVAL, "a date is 2026-11-16, or 2026-11-16 08:00; got \"%.40s\"",
                         text);
    if (rc == 0)
        *ret = stk_zone_moment(z, stk_days_from(y, m, d), hour * 3600 + minute * 60);
    free(z);
    return rc;
}
