/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alert/alert.h"

#define S STK_SECOND
#define NOW (INT64_C(1700000000) * S)
#define CALM (30 * S)

static const struct stk_alert_rule rules[STK_ALERT_MAX] = {
    [STK_ALERT_IDLE] = {true, 0},
    [STK_ALERT_QUOTA] = {true, 60 * S},
    [STK_ALERT_GPU] = {true, 0},
};

static void see(struct stk_alerts *a, enum stk_alert_kind kind, const char *of, stk_time now)
{
    stk_alerts_see(
        a, &(struct stk_alert_seen){.kind = kind, .of = of, .text = "so it is", .gpu = -1}, now);
}

static size_t send(struct stk_alerts *a, const char *state)
{
    json_t *list = stk_alerts_send(a);
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, i), "state")),
                            state);
    json_decref(list);
    return n;
}

static void it_is_said_once_and_once_when_it_is_over(void **state)
{
    struct stk_alerts a = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        see(&a, STK_ALERT_IDLE, "job 1", NOW + i * 10 * S);
        assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW + i * 10 * S), i == 0);
        assert_int_equal(send(&a, "firing"), i == 0);
        stk_alerts_sent(&a, true);
    }
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW + 1000 * S), 0); /* 10 s not seen */
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW + 1020 * S), 1);
    assert_int_equal(send(&a, "resolved"), 1);
    stk_alerts_sent(&a, true);
    assert_int_equal(a.n, 1); /* still shown */
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW + 1021 * S), 0);
    (void)stk_alerts_look(&a, rules, CALM, NOW + 1030 * S + STK_ALERT_SHOWN);
    assert_int_equal(a.n, 0);
    stk_alerts_done(&a);
}

static void the_job_is_the_one_of_the_text(void **state)
{
    struct stk_alerts a = {0};
    struct stk_alert_seen s = {.kind = STK_ALERT_IDLE,
                               .of = "",
                               .text = "job 60 has waited",
                               .job = 60,
                               .node = "n1",
                               .tenant = "red",
                               .gpu = 1};
    json_t *saved;

    (void)state;
    stk_alerts_see(&a, &s, NOW);
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW), 1);
    saved = stk_alerts_save(&a);
    json_decref(saved);
    a.changed = false;
    s.text = "job 64 has waited";
    s.job = 64;
    s.node = "n2";
    s.tenant = "blue";
    s.gpu = 2;
    stk_alerts_see(&a, &s, NOW + S);
    assert_int_equal(a.n, 1);
    assert_string_equal(a.list[0].text, "job 64 has waited");
    assert_int_equal(a.list[0].job, 64);
    assert_string_equal(a.list[0].node, "n2");
    assert_string_equal(a.list[0].tenant, "blue");
    assert_int_equal(a.list[0].gpu, 2);
    assert_true(a.changed);  /* to be kept over restarts */
    assert_true(a.reworded); /* to be shown again */
    stk_alerts_done(&a);
}

static void since_when_is_known_over_restarts_until_it_is_over(void **state)
{
    struct stk_alerts a = {0}, b = {0};
    json_t *saved;

    (void)state;
    assert_int_equal(stk_alerts_since(&a, STK_ALERT_IDLE, "job 1"), 0);
    see(&a, STK_ALERT_IDLE, "job 1", NOW);
    assert_int_equal(stk_alerts_since(&a, STK_ALERT_IDLE, "job 1"), 0); /* not said yet */
    (void)stk_alerts_look(&a, rules, CALM, NOW);
    assert_int_equal(stk_alerts_since(&a, STK_ALERT_IDLE, "job 1"), NOW);
    saved = stk_alerts_save(&a);
    stk_alerts_load(&b, saved, NOW + 100 * S);
    json_decref(saved);
    assert_int_equal(stk_alerts_since(&b, STK_ALERT_IDLE, "job 1"), NOW);
    (void)stk_alerts_look(&b, rules, CALM, NOW + 200 * S);
    assert_int_equal(stk_alerts_since(&b, STK_ALERT_IDLE, "job 1"), 0);
    stk_alerts_done(&a);
    stk_alerts_done(&b);
}

static void what_must_hold_for_a_while_is_not_said_before(void **state)
{
    struct stk_alerts a = {0};

    (void)state;
    see(&a, STK_ALERT_QUOTA, "tenant x", NOW);
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW), 0);
    see(&a, STK_ALERT_QUOTA, "tenant x", NOW + 59 * S);
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW + 59 * S), 0);
    see(&a, STK_ALERT_QUOTA, "tenant x", NOW + 60 * S);
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW + 60 * S), 1);
    /* and one that goes before is forgotten without a word */
    see(&a, STK_ALERT_QUOTA, "tenant y", NOW);
    assert_int_equal(stk_alerts_look(&a, rules, CALM, NOW + 61 * S), 0);
    assert_int_equal(a.n, 1);
    stk_alerts_done(&a);
}

static void a_message_that_failed_is_sent_again(void **state)
{
    struct stk_alerts a = {0};

    (void)state;
    see(&a, STK_ALERT_GPU, "gpu 0", NOW);
    (void)stk_alerts_look(&a, rules, CALM, NOW);
    assert_int_equal(send(&a, "firing"), 1);
    assert_int_equal(send(&a, "firing"), 0);
    stk_alerts_sent(&a, false);
    assert_true(stk_alerts_untold(&a));
    assert_int_equal(send(&a, "firing"), 1);
    stk_alerts_sent(&a, true);
    assert_false(stk_alerts_untold(&a));
    stk_alerts_done(&a);
}

static void a_restart_says_nothing_twice(void **state)
{
    struct stk_alerts a = {0}, b = {0};
    json_t *saved;

    (void)state;
    see(&a, STK_ALERT_GPU, "gpu 0", NOW);
    see(&a, STK_ALERT_GPU, "gpu 1", NOW);
    (void)stk_alerts_look(&a, rules, CALM, NOW);
    assert_int_equal(send(&a, "firing"), 2); /* killed while it was being sent */
    saved = stk_alerts_save(&a);
    stk_alerts_load(&b, saved, NOW + 100 * S);
    json_decref(saved);
    assert_int_equal(b.n, 2);
    assert_false(stk_alerts_untold(&b));
    see(&b, STK_ALERT_GPU, "gpu 0", NOW + 110 * S);
    assert_int_equal(stk_alerts_look(&b, rules, CALM, NOW + 110 * S), 0);
    see(&b, STK_ALERT_GPU, "gpu 0", NOW + 130 * S);
    assert_int_equal(stk_alerts_look(&b, rules, CALM, NOW + 130 * S), 1); /* gpu 1 is well */
    assert_int_equal(send(&b, "resolved"), 1);
    see(&b, STK_ALERT_GPU, "gpu 1", NOW + 131 * S);
    assert_int_equal(b.list[b.n - 1].id, 3);
    stk_alerts_done(&a);
    stk_alerts_done(&b);
}

static void a_rule_that_is_switched_off_ends_what_it_said(void **state)
{
    const struct stk_alert_rule off[STK_ALERT_MAX] = {{0}};
    struct stk_alerts a = {0};

    (void)state;
    see(&a, STK_ALERT_GPU, "gpu 0", NOW);
    (void)stk_alerts_look(&a, rules, CALM, NOW);
    see(&a, STK_ALERT_GPU, "gpu 0", NOW + S);
    assert_int_equal(stk_alerts_look(&a, off, CALM, NOW + S), 1);
    stk_alerts_done(&a);
}

static void there_are_never_more_than_so_many(void **state)
{
    struct stk_alerts a = {0};
    char of[32];

    (void)state;
    for (unsigned i = 0; i < 2 * STK_ALERTS_MAX; i++) {
        (void)snprintf(of, sizeof(of), "job %u", i);
        see(&a, STK_ALERT_IDLE, of, NOW);
    }
    assert_int_equal(a.n, STK_ALERTS_MAX);
    stk_alerts_done(&a);
}

static void what_is_not_whole_is_not_read(void **state)
{
    static const char *const texts[] = {"{}", "[]", "{\"alerts\": 3}",
                                        "{\"alerts\": [1, {}, null, {\"kind\": 99}]}",
                                        "{\"next\": -7, \"alerts\": [{\"kind\": \"x\"}]}"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct stk_alerts a = {0};
        json_t *j = json_loads(texts[i], 0, NULL);

        stk_alerts_load(&a, j, NOW);
        assert_int_equal(a.n, 0);
        json_decref(j);
        stk_alerts_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_said_once_and_once_when_it_is_over),
        cmocka_unit_test(the_job_is_the_one_of_the_text),
        cmocka_unit_test(since_when_is_known_over_restarts_until_it_is_over),
        cmocka_unit_test(what_must_hold_for_a_while_is_not_said_before),
        cmocka_unit_test(a_message_that_failed_is_sent_again),
        cmocka_unit_test(a_restart_says_nothing_twice),
        cmocka_unit_test(a_rule_that_is_switched_off_ends_what_it_said),
        cmocka_unit_test(there_are_never_more_than_so_many),
        cmocka_unit_test(what_is_not_whole_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
