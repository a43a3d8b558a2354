/* SPDX-License-Identifier: Apache-2.0 */
/* config_teams.c - tenants, queues and classes as a file would say them, in YAML's flow style. */
#include "cli/config_teams.h"

#include <stdio.h>
#include <string.h>

#include "cli/config_text.h"

static void gpus(const char *key, uint64_t milli)
{
    (void)printf("%s: %llu.%03llu", key, (unsigned long long)(milli / 1000),
                 (unsigned long long)(milli % 1000));
}

static void by_type(const struct stk_teams *t, const char *key, const uint64_t *of, uint64_t none)
{
    const char *sep = "";

    for (uint32_t i = 0; i < t->types.n; i++) {
        if (of[i] == none)
            continue;
        (void)printf("%s", *sep ? sep : ", ");
        if (!*sep)
            (void)printf("%s: {", key);
        stk_config_print_quoted(stk_names_get(&t->types, i));
        gpus("", of[i]); /* its name, and then ": 16" */
        sep = ", ";
    }
    if (*sep)
        (void)putchar('}');
}

static void users(const struct stk_teams *t, uint32_t row)
{
    bool some = false;

    for (uint32_t i = 0; i < t->n_members; i++)
        if (t->members[i].tenant == row) {
            (void)printf("%s", some ? ", " : ", users: [");
            stk_config_print_quoted(stk_names_get(&t->users, t->members[i].user));
            some = true;
        }
    if (some)
        (void)putchar(']');
}

static void print_tiers(uint32_t tiers)
{
    const char *sep = "tiers: [";

    for (uint32_t i = 0; i < STK_TIER_MAX; i++)
        if (tiers >> i & 1) {
            (void)printf("%s%s", sep, stk_tier_name((enum stk_tier)i));
            sep = ", ";
        }
    (void)putchar(']');
}

static void print_allow(const struct stk_teams *t, const struct stk_allow *a)
{
    const char *sep = "";

    if (!a->tiers && !a->has_classes && !a->has_preempt && !a->has_users)
        return;
    (void)printf(", allow: {");
    if (a->tiers) {
        print_tiers(a->tiers);
        sep = ", ";
    }
    if (a->has_classes) {
        (void)printf("%sclasses: [%d, %d]", sep, a->lowest, a->most);
        sep = ", ";
    }
    if (a->has_preempt) {
        (void)printf("%spreempt: %s", sep, a->preempt ? "yes" : "no");
        sep = ", ";
    }
    if (a->has_users) {
        (void)printf("%susers: [", sep);
        for (uint32_t i = 0; i < a->n_users; i++) {
            (void)printf("%s", i ? ", " : "");
            stk_config_print_quoted(stk_names_get(&t->users, a->users[i]));
        }
        (void)putchar(']');
    }
    (void)putchar('}');
}

static void tenant(const struct stk_teams *t, uint32_t row)
{
    const struct stk_tenant_spec *s = &t->tenants[row];

    (void)printf("{name: ");
    stk_config_print_quoted(s->name);
    if (s->was) {
        (void)printf(", was: ");
        stk_config_print_quoted(s->was);
    }
    if (s->limit != STK_NO_LIMIT)
        gpus(", limit", s->limit);
    by_type(t, "limits", s->type_limit, STK_NO_LIMIT);
    if (s->guarantee != STK_GUARANTEE_SUM)
        gpus(", guarantee", s->guarantee);
    by_type(t, "guarantees", s->type_guarantee, STK_GUARANTEE_SUM);
    if (s->weight != STK_WEIGHT)
        gpus(", weight", s->weight);
    if (s->cpu_limit != STK_NO_LIMIT)
        gpus(", cpus", s->cpu_limit);
    if (s->mem_limit != STK_NO_LIMIT)
        gpus(", mem_gib", (s->mem_limit * 1000 + 1023) / 1024); /* read back as the same MiB */
    if (s->keep_up)
        (void)printf(", keep_up: %u", s->keep_up);
    users(t, row);
    print_allow(t, &t->tenant_allow[row]);
}

// NOLINTNEXTLINE(misc-no-recursion): at most STK_MAX_TENANT_DEPTH deep
static void below(const struct stk_teams *t, uint32_t parent)
{
    bool some = false;

    for (uint32_t i = 0; i < t->n_tenants; i++) {
        if (t->tenants[i].parent != parent)
            continue;
        (void)printf("%s", some ? ", " : parent == STK_NONE ? "[" : ", tenants: [");
        tenant(t, i);
        below(t, i);
        (void)putchar('}');
        some = true;
    }
    if (some)
        (void)putchar(']');
}

static void limit(const char *key, const struct stk_queue_limit *l)
{
    const char *sep = "";

    if (l->milli == STK_NO_LIMIT && l->jobs == STK_NO_JOB_LIMIT)
        return;
    (void)printf(", %s: {", key);
    if (l->milli != STK_NO_LIMIT) {
        gpus("gpus", l->milli);
        sep = ", ";
    }
    if (l->jobs != STK_NO_JOB_LIMIT)
        (void)printf("%sjobs: %u", sep, l->jobs);
    (void)putchar('}');
}

static void job(const struct stk_queue_spec *q)
{
    if (q->job_milli == STK_NO_LIMIT && q->job_time == 0)
        return;
    (void)printf(", job: {");
    if (q->job_milli != STK_NO_LIMIT)
        gpus("gpus", q->job_milli);
    if (q->job_time > 0)
        (void)printf("%stime: %lld", q->job_milli != STK_NO_LIMIT ? ", " : "",
                     (long long)(q->job_time / STK_SECOND));
    (void)putchar('}');
}

static bool has_queue(const struct stk_teams *t, const char *name)
{
    uint32_t at = stk_queue_find(t->queues, t->n_queues, name);

    return at != STK_NONE && strcmp(t->queues[at].name, name) == 0;
}

static void queues(const struct stk_teams *t)
{
    for (uint32_t i = 0; i < t->n_queues; i++) {
        const struct stk_queue_spec *q = &t->queues[i];

        (void)printf("%s\"%s\": {class: %d, classes: [%d, %d], tier: %s", i ? ", " : "{", q->name,
                     q->priority, q->lowest, q->most, stk_tier_name(q->tier));
        if (q->was)
            (void)printf(", was: \"%s\"", q->was);
        if (q->pool) {
            (void)printf(", pool: ");
            stk_config_print_quoted(stk_names_get(&t->pools, q->pool - 1));
        }
        job(q);
        for (int of = 0; of < STK_QUEUE_OF_MAX; of++)
            limit(stk_queue_of_name((enum stk_queue_of)of), &q->limit[of]);
        print_allow(t, &t->queue_allow[i]);
        (void)putchar('}');
    }
    for (uint32_t i = 0; i < stk_n_default_queues; i++)
        if (!has_queue(t, stk_default_queues[i].name))
            (void)printf(", %s: off", stk_default_queues[i].name);
    (void)putchar('}');
}

static void classes(const struct stk_teams *t)
{
    for (uint32_t i = 0; i < t->n_classes; i++)
        (void)printf("%s\"%s\": %d", i ? ", " : "{", t->classes[i].name, t->classes[i].priority);
    (void)putchar('}');
}

void stk_config_print_teams(const struct stk_teams *t, const char *key)
{
    if (strcmp(key, "tenants") == 0)
        below(t, STK_NONE);
    else if (strcmp(key, "queues") == 0)
        queues(t);
    else if (strcmp(key, "classes") == 0)
        classes(t);
    else
        stk_config_print_quoted(t->queues[0].name);
}
