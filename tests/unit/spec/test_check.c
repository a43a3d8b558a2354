/* SPDX-License-Identifier: Apache-2.0 */
/* test_check.c - which descriptions are accepted, what the sentence of a refusal is, and what is
 * read out of the accepted ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/topology.h"
#include "spec/keys.h"
#include "spec/spec.h"

static struct stk_err err;

static int check(const char *text)
{
    json_error_t why;
    json_t *o = json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    int rc;

    if (!o)
        fail_msg("%s: %s", text, why.text);
    rc = stk_spec_check(o, &err);
    json_decref(o);
    return rc;
}

static void good_descriptions(void **state)
{
    static const char *const good[] = {
        "{\"command\":[\"true\"]}",
        "{\"script\":\"#!/bin/sh\\ntrue\\n\",\"args\":[\"\",\"b\"]}",
        "{\"interactive\":true}",
        "{\"command\":[\"a\"],\"image\":\"repo.example/a_b/c-d:1.2@sha256:00ff\"}",
        "{\"command\":[\"a\"],\"image\":\"docker://debian:12\"}",
        "{\"command\":[\"a\"],\"image\":\"/srv/my images/a.sif\"}",
        "{\"command\":[\"a\"],\"image\":\"./a.sif\"}",
        "{\"command\":[\"a\"],\"gpus\":8,\"gpu_types\":[\"H100\"],\"tasks\":2,\"cpus\":1.5,"
        "\"mem_mib\":1024,\"time_limit_s\":60,\"estimate_s\":30,\"priority\":-5,"
        "\"tier\":\"best-effort\",\"queue\":\"batch\",\"pool\":\"main\",\"hold\":true}",
        "{\"command\":[\"a\"],\"gpus\":1,\"gpu_types\":{\"h100\":1,\"a100\":0.5},"
        "\"resources\":{\"licence\":1,\"x.y-z_0\":4294967295}}",
        "{\"command\":[\"a\"],\"depends\":[{\"type\":\"afterok\",\"job\":1},"
        "{\"type\":\"afterany\",\"job\":2,\"index\":0}],\"singleton\":true}",
        "{\"command\":[\"a\"],\"array\":{\"indices\":[3,1]},\"depends\":[{\"type\":\"aftercorr\","
        "\"job\":1}]}",
        "{\"command\":[\"a\"],\"array\":{\"first\":0,\"last\":99999,\"limit\":2}}",
        "{\"command\":[\"a\"],\"retry\":{\"error\":3,\"oom\":\"always\",\"exit_codes\":[33]},"
        "\"requeue\":false,\"signal\":{\"signal\":\"USR1\"},\"grace_s\":0,\"suspend\":\"never\"}",
        "{\"command\":[\"a\"],\"items\":[\"x\",\"\"],\"workers\":2}",
        "{\"command\":[\"a\"],\"envs\":{\"A\":\"\",\"BASH_FUNC_x%%\":\"() { :\\n}\"},"
        "\"secrets\":{\"TOKEN\":\"/root/t\"},\"idle\":{\"warn_s\":60,\"below_pct\":5}}",
        "{\"command\":[\"a\"],\"stdout\":\"out/%x-%j.log\",\"open_mode\":\"append\",\"umask\":18}",
        "{\"command\":[\"a\"],\"name\":\"gr\\u00fcn und blau\",\"launch\":\"once\",\"slurm\":true}",
        "{\"command\":[\"a\"],\"interactive\":false,\"array\":{\"last\":1}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        if (check(good[i]) < 0)
            fail_msg("%s: %s", good[i], err.text);
}

#define NOT_FOR_PARTS                                                                              \
    "parts of GPUs may ask for one node, rack, zone or region, but not for links, subgroups, "     \
    "tasks per node or whole nodes"
#define WITH(more) "{\"command\":[\"a\"]," more "}"

static void refusals_name_the_key(void **state)
{
    static const struct {
        const char *text, *sentence;
    } bad[] = {
        {"[]", "a job description must be a JSON object"},
        {"{}", "a job needs a command or a script"},
        {"{\"script\":\"\"}", "script: must not be empty"},
        {"{\"command\":[]}", "command: must not be empty"},
        {"{\"command\":[\"\"]}", "command: must begin with a program"},
        {"{\"command\":\"a b\"}", "command: must be a list of strings, got \"a b\""},
        {"{\"command\":[\"a\",1]}", "command[1]: must be a string, got 1"},
        {"{\"command\":[\"a\\u0000b\"]}", "command[0]: must not hold a NUL byte"},
        {WITH("\"script\":\"x\""), "script: cannot be given together with command"},
        {WITH("\"args\":[]"), "args: cannot be given together with command"},
        {"{\"interactive\":true,\"args\":[]}", "args: has no meaning without script"},
        {WITH("\"gpu\":1"), "gpu: is not a known key; did you mean \"gpus\"?"},
        {WITH("\"zebra\":1"), "zebra: is not a known key"},
        {WITH("\"uid\":0"), "uid: is set by the server and cannot be asked for"},
        {WITH("\"gpus\":-1"), "gpus: must be a number from 0 to 1000000, got -1"},
        {WITH("\"gpus\":\"x\""), "gpus: must be a number from 0 to 1000000, got \"x\""},
        {WITH("\"gpus\":1.5"), "gpus: must be a whole number, or part of one GPU below 1, got 1.5"},
        {WITH("\"gpus\":0.0005"),
         "gpus: part of a GPU must be 0.001 to 0.999, in thousandths, got 0.0005"},
        {WITH("\"gpus\":0.3333"),
         "gpus: part of a GPU must be 0.001 to 0.999, in thousandths, got 0.3333"},
        {WITH("\"gpus\":0,\"gpu_mem_mib\":5"), "gpu_mem_mib: has no meaning with 0 GPUs"},
        {WITH("\"gpus\":2,\"share\":\"mps\""),
         "share: has a meaning only for part of a GPU, such as gpus 0.5"},
        {WITH("\"gpus\":2,\"share_max\":2"),
         "share_max: has a meaning only for part of a GPU, such as gpus 0.5"},
        {WITH("\"gpus\":2,\"share\":\"time\""),
         "share: time is for one GPU: gpus 1, or part of it such as 0.5, got 2"},
        {WITH("\"gpus\":0,\"share\":\"time\""),
         "share: time is for one GPU: gpus 1, or part of it such as 0.5, got 0"},
        {WITH("\"share\":\"time\",\"tasks\":2"),
         "share: time takes one task: those of a gang would not have their turns together, got "
         "tasks 2"},
        {WITH("\"share\":\"time\",\"suspend\":\"never\""),
         "share: time suspends the job between its turns; suspend is never"},
        {WITH("\"gpus\":0.5,\"share\":\"mig\""),
         "share: mig needs mig: which profile, such as 1g.10gb"},
        {WITH("\"mig\":\"small\""), "mig: must be a MIG profile such as 1g.10gb, got \"small\""},
        {WITH("\"mig\":\"1g.10gb\",\"gpus\":2"), "mig: is one instance per task; leave gpus out"},
        {WITH("\"mig\":\"1g.10gb\",\"share\":\"mps\""),
         "share: of a MIG instance is mig, got \"mps\""},
        {WITH("\"gpus\":1000000,\"tasks\":2"),
         "gpus: times tasks must be at most 1000000, got 1000000 times 2"},
        {WITH("\"gpu_types\":[\"a\"]"), "gpu_types: has no meaning without gpus"},
        {WITH("\"gpus\":1,\"gpu_types\":3"), "gpu_types: must be a list of strings, got 3"},
        {WITH("\"gpus\":1,\"gpu_types\":{}"), "gpu_types: must not be empty"},
        {WITH("\"gpus\":1,\"gpu_types\":{\"a\":0.0004}"),
         "gpu_types.a: must be a speed from 0.001 to 65.535, got 0.0004"},
        {WITH("\"gpus\":1,\"gpu_types\":{\"a\":\"x\"}"),
         "gpu_types.a: must be a speed from 0.001 to 65.535, got \"x\""},
        {WITH("\"resources\":[1]"),
         "resources: must be an object such as {\"licence\": 1}, got a list"},
        {WITH("\"resources\":{\"x y\":1}"),
         "resources.x y: must be a name of at most 63 letters, digits, _ - and ."},
        {WITH("\"resources\":{\"x\":-1}"),
         "resources.x: must be a whole number from 0 to 4294967295, got -1"},
        {WITH("\"gpus\":1,\"gpu_types\":[\"\"]"), "gpu_types[0]: must not be empty"},
        {WITH("\"cpus\":true"), "cpus: must be a number from 0 to 1048576, got true"},
        {WITH("\"name\":\"a/b\""), "name: must not hold '/', got \"a/b\""},
        {WITH("\"name\":\"\""), "name: must not be empty"},
        {WITH("\"name\":\"a\\nb\""), "name: must be one line without control characters"},
        {WITH("\"name\":null"), "name: must be a string, got null"},
        {WITH("\"workdir\":\"here\""), "workdir: must be an absolute path, got \"here\""},
        {WITH("\"stdout\":\"%q\""), "stdout: does not know %q; there are %j %A %a %x %t %N %u %%"},
        {WITH("\"kind\":\"service\""), "kind: service is not supported yet"},
        {WITH("\"kind\":\"job\""), "kind: must be one of train|batch|shell, got \"job\""},
        {WITH("\"kind\":\"train\",\"items\":[\"a\"]"),
         "kind: must be batch when there are items, got \"train\""},
        {WITH("\"workers\":2"), "workers: has no meaning without items"},
        {WITH("\"image_runtime\":\"auto\""), "image_runtime: has no meaning without image"},
        {WITH("\"image\":\"--privileged\""),
         "image: must be an absolute path, or a name of letters, digits and ._:/@+~%=- that begins "
         "with a letter or digit, got \"--privileged\""},
        {WITH("\"image\":\"a b\""),
         "image: must be an absolute path, or a name of letters, digits and ._:/@+~%=- that begins "
         "with a letter or digit, got \"a b\""},
        {WITH("\"image\":\"/root/fs\",\"workdir\":\"/tmp:/etc\""),
         "workdir: must not hold ':' or ',' when there is an image, got \"/tmp:/etc\""},
        {WITH("\"items\":[\"a\"],\"array\":{\"last\":1}"),
         "items: cannot be given together with array"},
        {WITH("\"interactive\":true,\"array\":{\"last\":1}"),
         "interactive: cannot be given together with array"},
        {WITH("\"topology\":\"island\""),
         "topology: must be one of link|node|rack|zone|region, got \"island\""},
        {WITH("\"topology\":\"rack\",\"prefer\":\"zone\""),
         "prefer: the level preferred (zone) must be nearer than the one required (rack)"},
        {WITH("\"tasks\":4,\"group\":{\"tasks\":3,\"level\":\"link\"}"),
         "group: 4 tasks are not a multiple of subgroups of 3 inside one link"},
        {WITH("\"gpus\":0.5,\"exclusive\":true"), "exclusive: " NOT_FOR_PARTS},
        {WITH("\"gpus\":0.5,\"topology\":\"link\""), "topology: " NOT_FOR_PARTS},
        {WITH("\"gpus\":0.5,\"prefer\":\"link\""), "prefer: " NOT_FOR_PARTS},
        {WITH("\"gpus\":0.5,\"group\":{\"tasks\":1,\"level\":\"node\"}"), "group: " NOT_FOR_PARTS},
        {WITH("\"group\":{\"tasks\":3}"), "group: needs \"level\""},
        {WITH("\"hold\":1"), "hold: must be true or false, got 1"},
        {WITH("\"depends\":[{\"type\":\"after\",\"job\":1}]"),
         "depends[0].type: must be one of afterok|afterany|afternotok|aftercorr, got \"after\""},
        {WITH("\"depends\":[{\"type\":\"afterok\"}]"), "depends[0]: needs \"job\""},
        {WITH("\"depends\":[{\"type\":\"afterok\",\"job\":0}]"),
         "depends[0].job: must be a whole number from 1 to 4294967294, got 0"},
        {WITH("\"depends\":[{\"type\":\"aftercorr\",\"job\":3}]"),
         "depends[0]: aftercorr has a meaning only for an array"},
        {WITH("\"depends\":{}"), "depends: must be a list of objects, got an object"},
        {WITH("\"array\":{}"), "array: needs indices, or first and last"},
        {WITH("\"array\":{\"indices\":[1,2,1]}"), "array.indices: has 1 twice"},
        {WITH("\"array\":{\"indices\":[]}"), "array.indices: must not be empty"},
        {WITH("\"array\":{\"indices\":[1],\"last\":2}"),
         "array: has either indices or first, last and step"},
        {WITH("\"array\":{\"first\":3,\"last\":2}"),
         "array.last: must not be below first (3), got 2"},
        {WITH("\"array\":{\"last\":100000}"), "array: has at most 100000 elements, got 100001"},
        {WITH("\"retry\":{\"oom\":255}"),
         "retry.oom: must be a whole number from 0 to 254, or \"always\", got 255"},
        {WITH("\"retry\":{\"ooms\":1}"), "retry.ooms: is not a known key; did you mean \"oom\"?"},
        {WITH("\"retry\":{\"exit_codes\":[256]}"),
         "retry.exit_codes[0]: must be a whole number from 0 to 255, got 256"},
        {WITH("\"retry\":{\"exit_codes\":[1]}"),
         "retry.exit_codes: has no meaning without retry.error: how often"},
        {WITH("\"signal\":{\"signal\":\"USR9\"}"),
         "signal.signal: must be a signal such as \"USR1\", got \"USR9\""},
        {WITH("\"signal\":{}"), "signal: needs \"signal\""},
        {WITH("\"envs\":{\"A=\":\"x\"}"), "envs.A=: is not a name for an environment variable"},
        {WITH("\"envs\":{\"A\":1}"), "envs.A: must be a string, got 1"},
        {WITH("\"envs\":[]"), "envs: must be an object of NAME: \"value\", got a list"},
        {WITH("\"secrets\":{\"a-b\":\"/x\"}"),
         "secrets.a-b: is not a name for an environment variable"},
        {WITH("\"secrets\":{\"A\":\"x\"}"), "secrets.A: must be an absolute path, got \"x\""},
        {WITH("\"secrets\":{\"A\":\"/x\"},\"envs\":{\"A\":\"\"}"), "secrets: A is in envs too"},
        {WITH("\"begin\":10,\"deadline\":5"), "deadline: is before begin"},
        {WITH("\"time_limit_s\":3155760001"),
         "time_limit_s: must be a whole number from 0 to 3155760000, got 3155760001"},
        {WITH("\"priority\":1000000001"),
         "priority: must be a whole number from -1000000000 to 1000000000, got 1000000001"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        int rc = check(bad[i].text);

        if (rc != -EINVAL && rc != -EBADMSG)
            fail_msg("accepted: %s", bad[i].text);
        if (strcmp(err.text, bad[i].sentence) != 0)
            fail_msg("%s:\n  %s\n  expected %s", bad[i].text, err.text, bad[i].sentence);
    }
    assert_int_equal(stk_spec_check(NULL, NULL), -EBADMSG);
}

/* A list of n strings of len bytes. */
static json_t *strings(size_t n, size_t len)
{
    json_t *list = json_array();
    char *s = malloc(len + 1);

    assert_non_null(s);
    memset(s, 'x', len);
    s[len] = '\0';
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, json_string(s));
    free(s);
    return list;
}

static int check_with(const char *key, json_t *take_value)
{
    json_t *o = json_pack("{s:[s], s:o}", "command", "a", key, take_value);
    int rc = stk_spec_check(o, &err);

    json_decref(o);
    return rc;
}

static void everything_has_a_bound(void **state)
{
    json_t *envs = json_object();

    (void)state;
    assert_int_equal(check_with("command", strings(4096, 200)), 0);
    assert_int_equal(check_with("command", strings(4097, 1)), -EBADMSG);
    assert_int_equal(check_with("command", strings(4096, 256)), -EINVAL);
    assert_string_equal(err.text, "command: must have at most 1048576 bytes in all, got 1052672");
    assert_int_equal(check_with("command", strings(1, 131072)), -EBADMSG);
    assert_int_equal(check_with("items", strings(100000, 50)), 0);
    assert_int_equal(check_with("items", strings(100001, 1)), -EBADMSG);
    assert_int_equal(check_with("items", strings(100000, 90)), -EINVAL);
    for (int i = 0; i < 4097; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "V%d", i);
        (void)json_object_set_new(envs, name, json_string(""));
    }
    assert_int_equal(check_with("envs", json_incref(envs)), -EBADMSG);
    (void)json_object_del(envs, "V0");
    assert_int_equal(check_with("envs", envs), 0);
}

static struct stk_spec parse(const char *text)
{
    json_t *o = json_loads(text, 0, NULL);
    struct stk_spec s;

    assert_non_null(o);
    assert_int_equal(stk_spec_check(o, &err), 0);
    assert_int_equal(stk_spec_parse(o, &s, &err), 0);
    assert_int_equal(stk_spec_enqueue(&s, &stk_spec_standard, &err), 0);
    json_decref(o);
    return s;
}

static void plain_job_gets_the_standard_values(void **state)
{
    struct stk_spec s = parse("{\"command\":[\"/usr/bin/python3\",\"x.py\"]}");

    (void)state;
    assert_string_equal(s.name, "python3");
    assert_int_equal(s.job.demand.tasks, 1);
    assert_int_equal(s.job.demand.gpus, 0);
    assert_true(s.job.demand.gpu_types == STK_ANY_GPU_TYPE);
    assert_false(s.job.demand.cut);
    assert_int_equal(s.job.kind, STK_KIND_TRAIN);
    assert_int_equal(s.job.tier, STK_TIER_STANDARD);
    assert_int_equal(s.job.priority, 500);
    assert_int_equal(s.job.estimate, 0);
    assert_null(s.pool);
    assert_null(s.err);
    assert_string_equal(s.out, "stoker-%j.out");
    assert_true(s.requeue && s.may_suspend && !s.singleton && !s.interactive && !s.job.held);
    assert_int_equal(s.n_indices + s.n_deps + s.n_gpu_types + s.n_items, 0);
    assert_int_equal(s.workers, 1);
    stk_spec_done(&s);
    stk_spec_done(&s);
}

static void full_job_is_read_whole(void **state)
{
    struct stk_spec s = parse(
        "{\"name\":\"n\",\"script\":\"x\",\"gpus\":2,\"gpu_types\":[\"A\",\"B\"],\"tasks\":3,"
        "\"cpus\":1.5,\"mem_mib\":10,\"time_limit_s\":60,\"estimate_s\":30,\"queue\":"
        "\"preemptible\","
        "\"begin\":5,\"hold\":true,\"pool\":\"p\",\"singleton\":true,\"suspend\":\"never\","
        "\"array\":{\"indices\":[5,1],\"limit\":1},\"retry\":{\"error\":3,\"node\":\"always\"},"
        "\"depends\":[{\"type\":\"afternotok\",\"job\":7,\"index\":2},"
        "{\"type\":\"aftercorr\",\"job\":8}],\"stderr\":\"e\",\"deadline\":9,"
        "\"tasks_per_node\":2}");

    (void)state;
    assert_int_equal(s.job.demand.gpus, 2);
    assert_int_equal(s.job.demand.tasks, 3);
    assert_int_equal(s.job.demand.cpu_milli, 1500);
    assert_int_equal(s.job.demand.mem_mib, 10);
    assert_int_equal(s.job.tier, STK_TIER_BEST_EFFORT);
    assert_int_equal(s.job.priority, 100);
    assert_true(s.time_limit == 60 * STK_SECOND && s.job.estimate == 30 * STK_SECOND);
    assert_true(s.job.begin == 5 * STK_SECOND && s.job.terms.deadline == 9 * STK_SECOND);
    assert_true(s.job.held && s.singleton && !s.may_suspend);
    assert_int_equal(s.job.retry[STK_RETRY_ERROR], 3);
    assert_int_equal(s.job.retry[STK_RETRY_OOM], 0);
    assert_int_equal(s.job.retry[STK_RETRY_NODE], STK_RETRY_ALWAYS);
    assert_int_equal(s.n_indices, 2);
    assert_true(s.indices[0] == 1 && s.indices[1] == 5 && s.array_limit == 1);
    assert_int_equal(s.n_deps, 2);
    assert_true(s.deps[0].type == STK_DEP_AFTERNOTOK && s.deps[0].job == 7 &&
                s.deps[0].index == 2 && !s.deps[0].corresponding);
    assert_true(s.deps[1].type == STK_DEP_AFTEROK && s.deps[1].job == 8 && s.deps[1].index == -1 &&
                s.deps[1].corresponding);
    assert_string_equal(s.gpu_types[1], "B");
    assert_string_equal(s.pool, "p");
    assert_string_equal(s.out, "stoker-%A_%a.out");
    assert_string_equal(s.err, "e");
    assert_int_equal(s.tasks_per_node, 2);
    stk_spec_done(&s);
}

static void wishes_of_topology_are_read(void **state)
{
    struct stk_spec s = parse("{\"command\":[\"a\"],\"gpus\":1,\"tasks\":8,\"tasks_per_node\":4,"
                              "\"topology\":\"zone\",\"prefer\":\"rack\",\"exclusive\":true,"
                              "\"group\":{\"tasks\":2,\"level\":\"link\"}}");
    const struct stk_demand *d = &s.job.demand;

    (void)state;
    assert_int_equal(d->level_required, STK_AT_ZONE);
    assert_int_equal(d->level_preferred, STK_AT_RACK);
    assert_int_equal(d->group, 2);
    assert_int_equal(d->group_level, STK_AT_LINK);
    assert_int_equal(d->per_node, 4);
    assert_true(d->exclusive);
    stk_spec_done(&s);
    s = parse("{\"command\":[\"a\"],\"tasks\":3,\"tasks_per_node\":2}");
    assert_int_equal(s.job.demand.per_node, 0);
    stk_spec_done(&s);
}

static void some_keys_change_the_standard_of_others(void **state)
{
    struct stk_spec s = parse("{\"command\":[\"a\"],\"items\":[\"x\"],\"workers\":4,\"queue\":"
                              "\"express\",\"priority\":7,\"tier\":\"critical\"}");

    (void)state;
    assert_int_equal(s.job.kind, STK_KIND_BATCH);
    assert_true(s.n_items == 1 && s.workers == 4);
    assert_true(s.job.priority == 7 && s.job.tier == STK_TIER_CRITICAL);
    stk_spec_done(&s);
    s = parse("{\"interactive\":true,\"retry\":{\"error\":9},\"requeue\":false}");
    assert_int_equal(s.job.kind, STK_KIND_SHELL);
    assert_string_equal(s.name, "interactive");
    assert_int_equal(s.job.retry[STK_RETRY_ERROR], 0);
    stk_spec_done(&s);
    s = parse("{\"command\":[\"a\"],\"time_limit_s\":60,\"array\":{\"first\":2,\"last\":8,"
              "\"step\":3}}");
    assert_true(s.job.estimate == 60 * STK_SECOND && s.n_indices == 3 && s.indices[2] == 8);
    stk_spec_done(&s);
}

static void schema_has_every_key(void **state)
{
    json_t *schema = stk_spec_schema(), *all = json_object_get(schema, "properties");

    (void)state;
    for (const struct stk_key *k = stk_spec_keys(); k->name; k++) {
        assert_non_null(json_object_get(json_object_get(all, k->name), "description"));
        assert_true(json_object_size(json_object_get(all, k->name)) >= 2);
    }
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(all, "gpus"), "maximum")),
                     1000000);
    json_decref(schema);
}

/* The form is what the schema says; rules about values are answered otherwise. */
static void the_form_is_told_from_what_values_mean(void **state)
{
    static const char *const form[] = {"{}",
                                       "[]",
                                       "{\"command\":[\"a\"],\"gpus\":\"many\"}",

                                       "{\"command\":[\"a\"],\"workers\":2}",
                                       "{\"command\":[\"a\"],\"array\":{\"first\":1}}",
                                       "{\"command\":[\"a\"],\"array\":{\"indices\":[1,1]}}"};
    static const char *const meaning[] = {
        "{\"command\":[\"a\"],\"script\":\"b\"}",
        "{\"command\":[\"a\"],\"gpus\":1.5}",
        "{\"command\":[\"a\"],\"begin\":10,\"deadline\":5}",
        "{\"command\":[\"a\"],\"array\":{\"first\":3,\"last\":1}}",
        "{\"command\":[\"a\"],\"schedule\":{\"cron\":\"soon\"}}",
        "{\"command\":[\"a\"],\"mig\":\"\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\"}"};

    (void)state;
    for (size_t i = 0; i < sizeof(form) / sizeof(*form); i++)
        assert_int_equal(check(form[i]), -EBADMSG);
    for (size_t i = 0; i < sizeof(meaning) / sizeof(*meaning); i++)
        assert_int_equal(check(meaning[i]), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_descriptions),
        cmocka_unit_test(refusals_name_the_key),
        cmocka_unit_test(everything_has_a_bound),
        cmocka_unit_test(the_form_is_told_from_what_values_mean),
        cmocka_unit_test(plain_job_gets_the_standard_values),
        cmocka_unit_test(full_job_is_read_whole),
        cmocka_unit_test(wishes_of_topology_are_read),
        cmocka_unit_test(some_keys_change_the_standard_of_others),
        cmocka_unit_test(schema_has_every_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
