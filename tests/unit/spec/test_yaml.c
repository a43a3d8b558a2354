/* SPDX-License-Identifier: Apache-2.0 */
/* test_yaml.c - job files in SkyPilot's and dstack's words, and the line in each refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spec/spec.h"

static struct stk_err err;

/* libfyaml 0.7 loses a buffer on some of its own error paths; our leaks are still reported. */
const char *__lsan_default_suppressions(void); // NOLINT(bugprone-reserved-identifier,cert-dcl37-c)
const char *__lsan_default_suppressions(void)  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c)
{
    return "leak:libfyaml";
}

static void expect(const char *yaml, const char *json)
{
    json_t *job = stk_spec_from_yaml(yaml, strlen(yaml), "job.yaml", &err);
    json_t *want = json_loads(json, 0, NULL);

    assert_non_null(want);
    if (!job)
        fail_msg("%s\n%s", yaml, err.text);
    if (!json_equal(job, want))
        fail_msg("%s\n%s", yaml, json_dumps(job, JSON_SORT_KEYS));
    json_decref(job);
    json_decref(want);
}

#define RUN "\"script\":\"#!/usr/bin/env bash\\npython x.py\""

static void skypilot_words(void **state)
{
    (void)state;
    expect("name: train\n"
           "workdir: /data/project\n"
           "num_nodes: 2\n"
           "resources:\n"
           "  accelerators: H100:8\n"
           "  cpus: 4+\n"
           "  memory: 32+\n"
           "  job_recovery: {max_restarts_on_errors: 3, recover_on_exit_codes: [33, 34]}\n"
           "  image_id: docker:repo/image:tag\n"
           "envs:\n"
           "  A: 1\n"
           "  YES: yes\n"
           "  EMPTY: ''\n"
           "setup: |\n"
           "  pip install .\n"
           "run: |\n"
           "  cd x\n"
           "  python x.py\n",
           "{\"name\":\"train\",\"workdir\":\"/data/project\",\"tasks\":2,\"gpus\":8,"
           "\"gpu_types\":[\"H100\"],\"cpus\":4.0,\"mem_mib\":32768,\"retry\":{\"error\":3,"
           "\"exit_codes\":[33,34]},\"image\":\"repo/image:tag\",\"envs\":{\"A\":\"1\",\"YES\":"
           "\"yes\",\"EMPTY\":\"\"},\"setup\":\"pip install .\\n\",\"script\":"
           "\"#!/usr/bin/env bash\\ncd x\\npython x.py\\n\"}");
}

static void schedules(void **state)
{
    (void)state;
    expect("schedule: {cron: '0 8 * * mon-fri'}\nrun: x\n",
           "{\"schedule\":{\"cron\":\"0 8 * * mon-fri\"},\"script\":\"#!/usr/bin/env bash\\nx\"}");
}

static void dstack_words(void **state)
{
    (void)state;
    expect("type: task\n"
           "name: t\n"
           "nodes: 1\n"
           "env:\n"
           "  - A=1\n"
           "  - B=c=d\n"
           "commands:\n"
           "  - pip install x\n"
           "  - python x.py\n"
           "resources:\n"
           "  gpu: {name: [A100, H100], count: 2}\n"
           "  memory: 64GB..\n"
           "  cpu: 8..16\n"
           "max_duration: 2h\n"
           "retry:\n"
           "  on_events: [error, interruption, no-capacity]\n"
           "utilization_policy:\n"
           "  min_gpu_utilization: 30\n"
           "  time_window: 15m\n"
           "priority: 20\n",
           "{\"name\":\"t\",\"tasks\":1,\"envs\":{\"A\":\"1\",\"B\":\"c=d\"},\"script\":"
           "\"#!/usr/bin/env bash\\nset -e\\npip install x\\npython x.py\\n\",\"gpus\":2,"
           "\"gpu_types\":[\"A100\",\"H100\"],\"mem_mib\":65536,\"cpus\":8.0,\"time_limit_s\":7200,"
           "\"retry\":{\"error\":3,\"node\":\"always\"},\"idle\":{\"below_pct\":30,\"end_s\":900},"
           "\"priority\":20}");
}

static void accelerators_of_every_form(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"8", "\"gpus\":8"},
        {"H100", "\"gpus\":1,\"gpu_types\":[\"H100\"]"},
        {"H100:8", "\"gpus\":8,\"gpu_types\":[\"H100\"]"},
        {"{H100: 8}", "\"gpus\":8,\"gpu_types\":[\"H100\"]"},
        {"{H100: 2, A100: 2}", "\"gpus\":2,\"gpu_types\":[\"H100\",\"A100\"]"},
        {"[H100:2, A100:2]", "\"gpus\":2,\"gpu_types\":[\"H100\",\"A100\"]"},
        {"{count: 3}", "\"gpus\":3"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char yaml[200], json[300];

        (void)snprintf(yaml, sizeof(yaml), "run: python x.py\nresources:\n  accelerators: %s\n",
                       cases[i].text);
        (void)snprintf(json, sizeof(json), "{" RUN ",%s}", cases[i].json);
        expect(yaml, json);
    }
}

static void our_own_words(void **state)
{
    (void)state;
    expect("run: |-\n  #!/bin/sh\n  true\n"
           "array: 0-9%2\n"
           "depends: [afterok:12, 'afterany:13,singleton']\n"
           "signal: USR1@60\n"
           "time: 1:30:00\n"
           "estimate: 1h\n"
           "queue: batch\n"
           "tier: best-effort\n"
           "hold: yes\n"
           "requeue: off\n"
           "stdout: out-%j.log\n"
           "comment:\n"
           "begin: 2030-01-02T00:00:00\n",
           "{\"script\":\"#!/bin/sh\\ntrue\",\"array\":{\"first\":0,\"last\":9,\"limit\":2},"
           "\"depends\":[{\"type\":\"afterok\",\"job\":12},{\"type\":\"afterany\",\"job\":13}],"
           "\"singleton\":true,\"signal\":{\"signal\":\"USR1\",\"seconds\":60,\"who\":\"all\"},"
           "\"time_limit_s\":5400,\"estimate_s\":3600,\"queue\":\"batch\",\"tier\":"
           "\"best-effort\",\"hold\":true,\"requeue\":false,\"stdout\":\"out-%j.log\","
           "\"begin\":1893542400}");
    expect("command: [python, x.py]\ngpus: 2\nitems: [a, b]\nworkers: 3\n"
           "retry: {error: 2, oom: always}\ndepends: [{type: afterok, job: 3}]\n"
           "array:\nidle: {warn_s: 60}\ncpus: 1.5\nsecrets: {TOKEN: /root/token}\n",
           "{\"command\":[\"python\",\"x.py\"],\"gpus\":2,\"items\":[\"a\",\"b\"],\"workers\":3,"
           "\"retry\":{\"error\":2,\"oom\":\"always\"},\"depends\":[{\"type\":\"afterok\",\"job\":"
           "3}],\"idle\":{\"warn_s\":60},\"cpus\":1.5,\"secrets\":{\"TOKEN\":\"/root/token\"}}");
    expect("run: python x.py\ndepends: 12\nretry: true\n",
           "{" RUN ",\"depends\":[{\"type\":\"afterok\",\"job\":12}],\"retry\":{\"error\":3,"
           "\"node\":\"always\"}}");
}

static void folders_become_absolute(void **state)
{
    const char *yaml = "run: x\nworkdir: sub\nsecrets: {A: ~/token}\n";
    json_t *job = stk_spec_from_yaml(yaml, strlen(yaml), "j", &err);
    char cwd[4096], want[5000];

    (void)state;
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    (void)snprintf(want, sizeof(want), "%s/sub", cwd);
    assert_non_null(job);
    assert_string_equal(json_string_value(json_object_get(job, "workdir")), want);
    assert_string_equal(json_string_value(json_object_get(json_object_get(job, "secrets"), "A")),
                        "/home/ada/token");
    json_decref(job);
}

static void refusals_name_line_and_key(void **state)
{
    static const struct {
        const char *yaml, *sentence;
    } bad[] = {
        {"run: x\n\nresources:\n  # how many\n  gpus: x\n",
         "job.yaml:5: resources.gpus: must be a number from 0 to 1000000, got \"x\""},
        {"run: x\nresources:\n  gpus: 1.5\n", "job.yaml:3: resources.gpus: must be a whole number, "
                                              "or part of one GPU below 1, got 1.5"},
        {"run: x\nnum_nodes: 0\n",
         "job.yaml:2: num_nodes: must be a whole number from 1 to 65536, got 0"},
        {"run: x\nresorces: {}\n",
         "job.yaml:2: resorces: is not a known key; did you mean \"resources\"?"},
        {"run: x\nresources:\n  accelerator: 1\n",
         "job.yaml:3: resources.accelerator: is not a known key; did you mean "
         "\"resources.accelerators\"?"},
        {"run: x\npriorty: 1\n",
         "job.yaml:2: priorty: is not a known key; did you mean \"priority\"?"},
        {"run: x\nresources: 5\n", "job.yaml:2: resources: must be a mapping"},
        {"run: x\nresources:\n  cloud: aws\n",
         "job.yaml:3: resources.cloud: is not supported: jobs run on the machines of this cluster"},
        {"run: x\nschedule:\n  cron: '0 8 30 2 *'\n",
         "job.yaml:3: schedule.cron: names a day that never comes"},
        {"run: x\ntime: 90\n", "job.yaml:2: time: needs a unit, as in 90m or 90s"},
        {"run: x\ntime: soon\n",
         "job.yaml:2: time: must be a time such as 90m, 1h30m, 1:30:00 or 2d, got \"soon\""},
        {"run: x\nscript: y\n", "job.yaml:2: script: says the same as run"},
        {"gpus: 1\n", "job.yaml:1: a job file needs run"},
        {"run: x\ncommand: [a]\n", "job.yaml:1: run: cannot be given together with command"},
        {"run: [a]\n", "job.yaml:1: run: must be text, got a list"},
        {"run: x\nenvs: {A: }\n", "job.yaml:2: envs.A: must be a string, got null"},
        {"run: x\nenvs:\n  A: [1]\n", "job.yaml:3: envs.A: must be a string, got a list"},
        {"run: x\nenv: [A]\n", "job.yaml:2: env: entry 1 must be NAME=value"},
        {"run: x\nsecrets:\n  T: hunter2\n",
         "job.yaml:2: secrets: T must be the path of a file with the value (a value written in a "
         "job file is no secret)"},
        {"run: x\nretry:\n  oom: many\n", "job.yaml:3: retry.oom: must be a whole number from 0 to "
                                          "254, or \"always\", got \"many\""},
        {"run: x\nretry: {on_events: [sun]}\n",
         "job.yaml:2: retry: has the events error, interruption and no-capacity, got \"sun\""},
        {"run: x\ntype: service\n", "job.yaml:2: type: only task is supported, got \"service\""},
        {"run: x\nresources: {gpu: 24GB}\n",
         "job.yaml:2: resources.gpu: GPUs are chosen by their memory with gpu_mem: 40GB"},
        {"run: x\nresources: {gpu: '1.5'}\n", "job.yaml:2: resources.gpu: must be whole GPUs, or "
                                              "part of one from 0.001 to 0.999, got \"1.5\""},
        {"run: x\nresources: {accelerators: [H100:1, A100:2]}\n",
         "job.yaml:2: resources.accelerators: must ask for the same number of each type"},
        {"run: x\nresources: {memory: lots}\n",
         "job.yaml:2: resources.memory: must be a size such as 32 (GiB), 32+ or 512MB"},
        {"run: x\narray: 9-1\n",
         "job.yaml:2: array: expected an array such as 0-9%2 or 1,3,5-9:2, got \"9-1\""},
        {"run: x\ndepends: after:1\n",
         "job.yaml:2: depends: there is no dependency \"after\"; there are afterok, afterany, "
         "afternotok, aftercorr and singleton"},
        {"run: x\na: *b\n", "job.yaml:2: aliases (*name) are not supported"},
        {"run: &a x\nname: *a\n", "job.yaml:2: aliases (*name) are not supported"},
        {"a: 1\n---\nb: 2\n", "job.yaml:2: a job file describes one job"},
        {"%YAML 1.1\n---\nrun: x\n", "job.yaml:1: YAML directives are not supported"},
        {"run: \x01\n", "job.yaml:1: expected text in UTF-8"},
        {"", "job.yaml:1: the job file is empty"},
        {"# nothing\n", "job.yaml:1: the job file is empty"},
        {"- a\n", "job.yaml:1: a job file must be a mapping such as \"run: python train.py\""},
        {"run: x\nresources: {gpus: 1, gpus: 2}\n", "job.yaml:2: not valid YAML: duplicate key"},
        {"run: x\na: [[[[[[[[[[1]]]]]]]]]]\n", "job.yaml:2: the values are nested too deeply"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *job = stk_spec_from_yaml(bad[i].yaml, strlen(bad[i].yaml), "job.yaml", &err);

        if (job)
            fail_msg("accepted: %s", bad[i].yaml);
        if (strcmp(err.text, bad[i].sentence) != 0)
            print_error("%s\n  got      %s\n  expected %s\n", bad[i].yaml, err.text,
                        bad[i].sentence);
        assert_string_equal(err.text, bad[i].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skypilot_words),
        cmocka_unit_test(schedules),
        cmocka_unit_test(dstack_words),
        cmocka_unit_test(accelerators_of_every_form),
        cmocka_unit_test(our_own_words),
        cmocka_unit_test(folders_become_absolute),
        cmocka_unit_test(refusals_name_line_and_key),
    };

    if (setenv("TZ", "UTC", 1) < 0 || setenv("HOME", "/home/ada", 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
