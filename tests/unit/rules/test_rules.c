/* SPDX-License-Identifier: Apache-2.0 */
/* test_rules.c - when rules are in force, which values follow, and what is no rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/read.h"
#include "sys/big.h"

#define MINUTE (60 * STK_SECOND)
#define HOUR (60 * MINUTE)

static struct stk_rules rules;
static int64_t use, waits; /* what conditions see */
static char told[400];     /* what was applied, in short */
static bool refuses;

static uint32_t find(void *ctx, enum stk_rules_noun noun, const char *name)
{
    (void)ctx;
    if (noun == STK_RULES_NODE)
        return name[0] >= '0' && name[0] <= '9' && !name[1] ? (uint32_t)(name[0] - '0') : STK_NONE;
    return strcmp(name, "a") == 0 ? 0 : strcmp(name, "b") == 0 ? 1 : STK_NONE;
}

static int64_t utilization(void *ctx, uint32_t pool)
{
    (void)ctx;
    (void)pool;
    return use;
}

static int64_t wait_of(void *ctx, uint32_t pool, stk_time now)
{
    (void)ctx;
    (void)pool;
    (void)now;
    return waits;
}

static int apply(void *ctx, const struct stk_set *e, struct stk_err *err)
{
    size_t len = strlen(told);

    (void)ctx;
    if (refuses)
        return stk_err_set(err, -EINVAL, "not today");
    (void)snprintf(told + len, sizeof(told) - len, "%s%u%s%lld ", stk_set_kind_name(e->kind),
                   e->row, e->clear ? "!" : "=", e->clear ? 0LL : (long long)e->value);
    return 0;
}

static const struct stk_rules_world world = {NULL, find, "UTC"};
static const struct stk_rules_view view = {NULL, utilization, wait_of, apply};

static int parse(const char *text, struct stk_err *err)
{
    stk_rules_done(&rules);
    rules = (struct stk_rules){.mem = stk_big_mem};
    use = waits = 0;
    refuses = false;
    return stk_rules_parse(&rules, "r.yaml", text, strlen(text), &world, err);
}

static void read_rules(const char *text)
{
    struct stk_err err = {{0}};

    if (parse(text, &err) < 0)
        fail_msg("%s", err.text);
}

/* What a step at that time applies. */
static const char *step(stk_time now)
{
    told[0] = '\0';
    assert_int_equal(stk_rules_step(&rules, now, &view, NULL), 0);
    return told;
}

static void by_the_clock_from_the_middle_and_over_days(void **state)
{
    (void)state;
    read_rules("rules: [{name: day, when: 0 8 * * *, until: 0 20 * * *, then: [{tenant: a, limit: "
               "4}]}]");
    stk_rules_begin(&rules, 10 * HOUR); /* 1970-01-01 10:00 */
    assert_string_equal(step(10 * HOUR), "limit0=4000 ");
    assert_int_equal(stk_rules_wake(&rules), 20 * HOUR);
    assert_string_equal(step(11 * HOUR), "");
    assert_string_equal(step(20 * HOUR), "limit0!0 ");
    assert_int_equal(stk_rules_wake(&rules), 32 * HOUR);
    assert_string_equal(step(32 * HOUR), "limit0=4000 ");
    assert_string_equal(step(100 * HOUR),
                        "limit0!0 "); /* 04:00: times that passed are gone through */
    stk_rules_begin(&rules, 3 * HOUR);
    assert_false(rules.rule[0].on);
}

static void for_a_while(void **state)
{
    (void)state;
    read_rules("rules: [{name: x, when: 0 8 * * *, until: 90m, then: [{kind: train, priority: "
               "-5}]}]");
    stk_rules_begin(&rules, 9 * HOUR);
    assert_true(rules.rule[0].on);
    assert_int_equal(stk_rules_wake(&rules), 9 * HOUR + 30 * MINUTE);
    assert_string_equal(step(9 * HOUR), "priority0=-5 ");
    assert_string_equal(step(9 * HOUR + 30 * MINUTE), "priority0!0 ");
    stk_rules_begin(&rules, 10 * HOUR);
    assert_false(rules.rule[0].on);
}

static void one_that_begins_again_lasts_from_then_on(void **state)
{
    (void)state;
    read_rules("rules: [{name: x, when: 0 0 * * *, until: 24h, then: [{tenant: a, weight: 2}]}, "
               "{name: y, when: 0 0 * * *, until: 30h, then: [{tenant: b, weight: 2}]}]");
    stk_rules_begin(&rules, 9 * HOUR);
    assert_string_equal(step(9 * HOUR), "weight0=2000 weight1=2000 ");
    for (int64_t t = 10; t < 100; t++)
        assert_string_equal(step(t * HOUR), "");
}

static void of_two_the_later_holds_and_then_the_other(void **state)
{
    (void)state;
    read_rules(
        "rules:\n"
        "  - {name: day, when: 0 8 * * *, until: 0 20 * * *, then: [{tenant: a, limit: 4}]}\n"
        "  - {name: noon, when: 0 12 * * *, until: 1h, then: [{tenant: a, limit: 9}]}\n");
    stk_rules_begin(&rules, 8 * HOUR);
    assert_string_equal(step(8 * HOUR), "limit0=4000 ");
    assert_string_equal(step(12 * HOUR), "limit0=9000 ");
    assert_string_equal(step(13 * HOUR), "limit0=4000 ");
    stk_rules_remove(&rules, stk_rules_find(&rules, "day"));
    assert_string_equal(step(13 * HOUR), "limit0!0 ");
}

static void a_condition_must_hold_and_be_gone_for_as_long(void **state)
{
    (void)state;
    read_rules("every: 10s\nrules: [{name: busy, when: {utilization_above: 90%, for: 1m, pool: b}, "
               "then: [{queue: a, all_jobs: 3}]}]");
    assert_int_equal(rules.rule[0].pool, 1);
    stk_rules_begin(&rules, 0);
    use = 901;
    assert_string_equal(step(0), "");
    assert_string_equal(step(50 * STK_SECOND), "");
    use = 900; /* not above */
    assert_string_equal(step(MINUTE), "");
    use = 950;
    assert_string_equal(step(2 * MINUTE), "");
    assert_string_equal(step(3 * MINUTE), "queue0=3 ");
    use = 0;
    assert_string_equal(step(4 * MINUTE), "");
    assert_string_equal(step(5 * MINUTE), "queue0!0 ");
    assert_int_equal(stk_rules_wake(&rules), 5 * MINUTE + 10 * STK_SECOND);
}

static void a_wait_begins_it_and_a_time_ends_it(void **state)
{
    (void)state;
    read_rules("rules: [{name: slow, when: {wait_above: 30m}, until: 1h, then: [{pool: b, nodes: "
               "[0, 2-3], evict: yes}]}]");
    stk_rules_begin(&rules, 0);
    waits = 31 * MINUTE;
    assert_string_equal(step(0), "pool0=1 pool2=1 pool3=1 ");
    assert_true(rules.rule[0].set[1].evict);
    waits = 0; /* it is gone, and that does not matter */
    assert_string_equal(step(30 * MINUTE), "");
    assert_string_equal(step(HOUR), "pool0!0 pool2!0 pool3!0 ");
}

static void what_is_refused_is_not_tried_all_the_time(void **state)
{
    (void)state;
    read_rules("rules: [{name: x, when: 0 8 * * *, until: 2h, then: [{tenant: a, limit: none}]}]");
    stk_rules_begin(&rules, 8 * HOUR);
    refuses = true;
    assert_string_equal(step(8 * HOUR), "");
    assert_string_equal(rules.rule[0].sorry.text, "not today");
    refuses = false;
    assert_string_equal(step(9 * HOUR), "");
    assert_string_equal(step(10 * HOUR), "");
    assert_string_equal(step(32 * HOUR), "limit0=-1 "); /* the next day */
    assert_string_equal(rules.rule[0].sorry.text, "");
}

static void what_is_no_rule_is_refused(void **state)
{
#define OK "name: x, when: 0 8 * * *, until: 1h"
    static const char *const bad[][2] = {
        {"{}", "rules must be a list"},
        {"{rulez: []}", "\"rulez\" is not known"},
        {"{rules: [{name: a b}]}", "needs a name"},
        {"{rules: [{name: x}]}", "when: must be five fields"},
        {"{rules: [{name: x, when: 0 8 * * *, then: []}]}", "needs an end"},
        {"{rules: [{name: x, when: 0 8 * *, until: 1h, then: []}]}", "needs five fields"},
        {"{rules: [{" OK ", then: []}]}", "at least one"},
        {"{rules: [{" OK ", then: [{}]}]}", "needs one of tenant"},
        {"{rules: [{" OK ", then: [{tenant: c, limit: 1}]}]}", "there is no tenant \"c\""},
        {"{rules: [{" OK ", then: [{tenant: a}]}]}", "needs limit, guarantee, weight"},
        {"{rules: [{" OK ", then: [{tenant: a, limit: many}]}]}", "limit must be a number of GPUs"},
        {"{rules: [{" OK ", then: [{tenant: a, limit: 1}, {tenant: a, limit: 2}]}]}", "twice"},
        {"{rules: [{" OK ", then: [{queue: a}]}]}", "says nothing"},
        {"{rules: [{" OK ", then: [{queue: a, priority: high}]}]}", "such as +400"},
        {"{rules: [{" OK ", then: [{pool: a, nodes: 3-x}]}]}", "there is no node"},
        {"{rules: [{" OK ", then: [{pool: a, nodes: 0-9999999}]}]}", "there is no node"},
        {"{rules: [{" OK ", then: [{param: a}]}]}", "needs param"},
        {"{rules: [{" OK ", zone: Mars, then: [{tenant: a, limit: 1}]}]}", "no time zone"},
        {"{rules: [{" OK ", zone: ../x, then: [{tenant: a, limit: 1}]}]}", "is no time zone"},
        {"{rules: [{name: x, when: {}, then: []}]}", "needs utilization_above"},
        {"{rules: [{name: x, when: {wait_above: 1h, wait_below: 1h}, then: []}]}", "one condition"},
        {"{rules: [{name: x, when: {utilization_above: 2}, then: []}]}", "0 to 1"},
        {"{rules: [{name: x, when: {wait_abov: 1h}, then: []}]}", "did you mean \"wait_above\""},
        {"{every: never, rules: []}", "every must be"},
        {"{rules: [{" OK ", then: [{tenant: a, limit: 1}]}, {" OK ", then: [{tenant: a, limit: "
         "1}]}]}",
         "already"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stk_err err = {{0}};

        if (parse(bad[i][0], &err) == 0 || !strstr(err.text, bad[i][1]))
            fail_msg("%s: \"%s\" and not \"%s\"", bad[i][0], err.text, bad[i][1]);
    }
    stk_rules_done(&rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_clock_from_the_middle_and_over_days),
        cmocka_unit_test(for_a_while),
        cmocka_unit_test(one_that_begins_again_lasts_from_then_on),
        cmocka_unit_test(of_two_the_later_holds_and_then_the_other),
        cmocka_unit_test(a_condition_must_hold_and_be_gone_for_as_long),
        cmocka_unit_test(a_wait_begins_it_and_a_time_ends_it),
        cmocka_unit_test(what_is_refused_is_not_tried_all_the_time),
        cmocka_unit_test(what_is_no_rule_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
