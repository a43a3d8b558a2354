/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"

static int parse(const char *text, struct stk_config *c, struct stk_err *err)
{
    stk_config_init(c);
    return stk_config_parse("stoker.yaml", text, strlen(text), c, err);
}

static void refused(const char *text, const char *sentence)
{
    struct stk_config c;
    struct stk_err err = {""};

    assert_true(parse(text, &c, &err) < 0);
    assert_string_equal(err.text, sentence);
    stk_config_done(&c);
}

static void every_key_is_read(void **state)
{
    static const char text[] =
        "listen: 0.0.0.0:80\n"
        "socket: /run/x.sock\n"
        "state: /var/x\n"
        "virtual_gpus: 3\n"
        "resources: {licence: 2, nvme_gib: 4294967295}\n"
        "hosts: [gpu.example, other.example]\n"
        "insecure: yes\n"
        "tls: {cert: /a.pem, key: /b.pem}\n"
        "admins: root\n"
        "operators:\n  - alice\n  - bob\n"
        "policy:\n  order: las\n  params: {las.round_s: 60}\n"
        "limits: {jobs: 10, jobs_per_user: 5}\n"
        "retention: {age: 2w, size: 20G}\n"
        "gpus: {foreign: ignore, idle: 30m, interval_ms: 100}\n"
        "cost: {gpu_hour: 2.5, kwh: 0.000123, currency: EUR}\n"
        "alerts: {idle: 1h, gpu: no, preemptions: 7, webhook: \"http://x/\"}\n"
        "series: {step: 5s, size: 2G}\n"
        "idle: {warn: 10m, suspend: 1h, end: 2d}\n";
    struct stk_config c;
    struct stk_setup setup;
    struct stk_err err = {""};

    (void)state;
    if (parse(text, &c, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(c.listen, "0.0.0.0:80");
    assert_string_equal(c.socket, "/run/x.sock");
    assert_int_equal(c.virtual_gpus, 3);
    assert_int_equal(c.resources.n, 2);
    assert_string_equal(c.resources.names[0], "licence");
    assert_int_equal(c.resources.amounts[1], UINT32_MAX);
    assert_string_equal(c.hosts[1], "other.example");
    assert_null(c.hosts[2]);
    assert_int_equal(c.insecure, 1);
    assert_string_equal(c.tls.key, "/b.pem");
    assert_string_equal(c.admins[0], "root");
    assert_string_equal(c.operators[1], "bob");
    assert_string_equal(c.policy.params[0], "las.round_s=60");
    assert_int_equal(c.limits.jobs_per_user, 5);
    assert_int_equal(c.retention.age_s, 14 * 86400);
    assert_int_equal(c.retention.bytes, UINT64_C(20) << 30);
    assert_int_equal(c.gpus.foreign, 2);
    assert_int_equal(c.gpus.idle_s, 1800);
    assert_int_equal(c.idle.end_s, 2 * 86400);
    assert_int_equal(c.cost.gpu_hour, 2500000);
    assert_int_equal(c.cost.kwh, 123);
    assert_string_equal(c.cost.currency, "EUR");
    assert_int_equal(c.alerts.idle_s, 3600);
    assert_int_equal(c.alerts.gpu, 0);
    assert_int_equal(c.alerts.preemptions, 7);
    assert_string_equal(c.alerts.webhook, "http://x/");
    assert_int_equal(c.series.step_s, 5);
    assert_int_equal(stk_config_setup(&c, &setup, &err), 0);
    assert_string_equal(setup.order->name, "las");
    stk_config_done(&c);
}

/* GPUs are kept free for jobs that have waited, unless the file says otherwise or policies do not
 * go with it. */
static void gpus_are_kept_free_for_gangs(void **state)
{
    static const struct {
        const char *text, *after;
    } all[] = {{"", STK_SETUP_DRAIN_AFTER},
               {"policy: {params: {drain.after_s: 0}}\n", "0"},
               {"policy: {preempt: reclaim}\n", NULL},
               {"policy: {preempt: reclaim, params: {drain.after_s: 9}}\n", "9"},
               {"policy: {bundle: las}\n", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct stk_setup setup;
        struct stk_config c;
        struct stk_err err = {""};
        const char *found = NULL;

        assert_int_equal(parse(all[i].text, &c, &err), 0);
        assert_int_equal(stk_config_setup(&c, &setup, &err), 0);
        for (uint32_t k = 0; k < setup.params.n; k++)
            if (strcmp(setup.params.set[k].decl->name, "drain.after_s") == 0)
                found = setup.params.set[k].text;
        assert_int_equal(found == NULL, all[i].after == NULL);
        if (found)
            assert_string_equal(found, all[i].after);
        stk_config_done(&c);
    }
}

static void nothing_said_means_the_defaults(void **state)
{
    static const char *const texts[] = {"", "# only a comment\n", "---\n", "{}\n"};
    struct stk_config c;
    struct stk_err err = {""};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        if (parse(texts[i], &c, &err) < 0)
            fail_msg("%zu: %s", i, err.text);
        assert_null(c.listen);
        assert_int_equal(c.virtual_gpus, STK_CONFIG_NO_GPUS);
        assert_int_equal(c.limits.jobs, 2000000);
        assert_int_equal(c.gpus.interval_ms, 5000);
        assert_int_equal(c.gpus.pack_mib, 8192);
        assert_int_equal(c.gpus.quiet_s, 600);
        assert_int_equal(c.idle.shell_suspend_s, 1800);
        assert_int_equal(c.bind_cpus, 1);
        assert_int_equal(c.insecure, 0);
        assert_int_equal(c.retention.bytes, UINT64_C(10) << 30);
        stk_config_done(&c);
    }
}

static void mistakes_are_named_with_their_line(void **state)
{
    (void)state;
    refused("listen: x\n\npolicy:\n  bundle: sfj\n",
            "stoker.yaml:4: policy.bundle: there is no bundle \"sfj\"; did you mean \"sjf\"?");
    refused("policy: lass\n",
            "stoker.yaml:1: policy.bundle: there is no bundle \"lass\"; did you mean \"las\"?");
    refused("polcy: las\n", "stoker.yaml:1: polcy: is not known; did you mean \"policy\"?");
    refused("limits:\n  jobz: 3\n",
            "stoker.yaml:2: limits.jobz: is not known; did you mean \"limits.jobs\"?");
    refused("wholly_unlike: 3\n",
            "stoker.yaml:1: wholly_unlike: is not known (stokerd --help-config lists the keys)");
    refused("limits:\n  jobs: many\n",
            "stoker.yaml:2: limits.jobs: expected a whole number (at most 10000000), got \"many\"");
    refused("retention: {age: 3y}\n",
            "stoker.yaml:1: retention.age: expected a time such as 90, 30m, "
            "12h or 30d (at most 3155760000), got \"3y\"");
    refused("gpus: {foreign: maybe}\n",
            "stoker.yaml:1: gpus.foreign: expected block|pack|ignore, got \"maybe\"");
    refused("insecure: perhaps\n", "stoker.yaml:1: insecure: expected yes or no, got \"perhaps\"");
    refused("state: /a\nstate: /b\n", "stoker.yaml:2: not valid YAML: duplicate key");
    refused("resources: 3\n",
            "stoker.yaml:1: resources: expected names and numbers such as {licence: 2}");
    refused("resources:\n  a/b: 3\n",
            "stoker.yaml:2: resources: a name is 1 to 63 letters, digits, _ - or .");
    refused("resources: {a: 1k}\n",
            "stoker.yaml:1: resources: a: expected a whole number (at most 4294967295)");
    refused("resources: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}\n",
            "stoker.yaml:1: resources: more than 8 names");
    refused("limits: 3\n", "stoker.yaml:1: limits: expected keys below it");
    refused("- a\n- b\n",
            "stoker.yaml:1: expected keys and values such as \"listen: 127.0.0.1:8470\"");
    refused(
        "policy:\n  params:\n    las.nonsense: 3\n",
        "stoker.yaml:3: policy.params: there is no parameter \"las.nonsense\" (stoker sim --list "
        "shows all)");
    refused("tls: {cert: /a.pem}\n",
            "stoker.yaml:1: tls.cert: TLS needs both tls.cert and tls.key");
    refused("%YAML 1.2\n---\n", "stoker.yaml:1: YAML directives are not supported");
    refused("a: \x01\n", "stoker.yaml:1: expected text in UTF-8");
}

static void a_price_is_a_decimal_number(void **state)
{
    static const char *const bad[] = {"-1",    "x",         "1.", ".5",
                                      "1.2.3", "1.1234567", "2k", "99999999999"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[64], sentence[160];

        (void)snprintf(text, sizeof(text), "cost: {gpu_hour: \"%s\"}\n", bad[i]);
        (void)snprintf(sentence, sizeof(sentence),
                       "stoker.yaml:1: cost.gpu_hour: expected a number such as 2.5, got \"%s\"",
                       bad[i]);
        refused(text, sentence);
    }
}

static void aliases_and_nests_are_refused(void **state)
{
    struct stk_config c;
    struct stk_err err = {""};

    (void)state;
    assert_true(parse("state: &a /x\nsocket: *a\n", &c, &err) < 0);
    stk_config_done(&c);
    assert_true(parse("policy: {bundle: {a: {b: {c: 1}}}}\n", &c, &err) < 0);
    stk_config_done(&c);
    assert_true(parse("{{{{{{{{[[[[[[\n", &c, &err) < 0);
    stk_config_done(&c);
}

static void a_refusal_changes_nothing(void **state)
{
    struct stk_config c;
    struct stk_err err = {""};

    (void)state;
    assert_int_equal(parse("state: /first\n", &c, &err), 0);
    assert_true(stk_config_parse("f", "state: /second\nx: 1\n", 20, &c, &err) < 0);
    assert_string_equal(c.state, "/first");
    assert_true(stk_config_load("/nonexistent", &c, &err) == -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent"));
    stk_config_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(nothing_said_means_the_defaults),
        cmocka_unit_test(gpus_are_kept_free_for_gangs),
        cmocka_unit_test(mistakes_are_named_with_their_line),
        cmocka_unit_test(a_price_is_a_decimal_number),
        cmocka_unit_test(aliases_and_nests_are_refused),
        cmocka_unit_test(a_refusal_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
