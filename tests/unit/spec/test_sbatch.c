/* SPDX-License-Identifier: Apache-2.0 */
/* test_sbatch.c - #SBATCH lines, SBATCH_* variables and command lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/sbatch.h"
#include "spec/spec.h"

static struct stk_err err;

static const char *const told[] = {"SLURM_NTASKS",          "SLURM_NPROCS", "SLURM_PROCID",
                                   "SLURM_LOCALID",         "SLURM_NODEID", "SLURM_OPEN_MODE",
                                   "SLURM_NTASKS_PER_NODE", "SLURM_GPUS",   "SLURM_GPUS_PER_NODE",
                                   "SLURM_GPUS_PER_TASK"};

/* The description of a script with this header, without the keys every one of them has. */
static json_t *job_of(const char *header)
{
    char text[2000];
    json_t *job;

    (void)snprintf(text, sizeof(text), "#!/bin/bash\n%s\necho hello\n", header);
    job = stk_spec_from_sbatch(text, strlen(text), "dir/job.sh", NULL, &err);
    if (!job)
        return NULL;
    assert_string_equal(json_string_value(json_object_get(job, "script")), text);
    assert_string_equal(json_string_value(json_object_get(job, "launch")), "once");
    assert_true(json_is_true(json_object_get(job, "slurm")));
    (void)json_object_del(job, "script");
    (void)json_object_del(job, "launch");
    (void)json_object_del(job, "slurm");
    (void)json_object_del(json_object_get(job, "envs"), "SLURM_TASKS_PER_NODE");
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
        (void)json_object_del(json_object_get(job, "envs"), told[i]);
    if (json_object_size(json_object_get(job, "envs")) == 0)
        (void)json_object_del(job, "envs");
    return job;
}

static void expect(const char *header, const char *json)
{
    json_t *job = job_of(header), *want = json_loads(json, 0, NULL);

    assert_non_null(want);
    if (!job)
        fail_msg("%s: %s", header, err.text);
    if (!json_object_get(want, "name"))
        (void)json_object_set_new(want, "name", json_string("job.sh"));
    if (!json_object_get(want, "stdout"))
        (void)json_object_set_new(want, "stdout", json_string("slurm-%j.out"));
    if (!json_object_get(want, "open_mode"))
        (void)json_object_set_new(want, "open_mode", json_string("truncate"));
    if (!json_object_get(want, "tasks"))
        (void)json_object_set_new(want, "tasks", json_integer(1));
    if (!json_object_get(want, "gpus"))
        (void)json_object_set_new(want, "gpus", json_integer(0));
    if (!json_equal(job, want))
        fail_msg("%s\n got %s", header, json_dumps(job, JSON_SORT_KEYS));
    json_decref(job);
    json_decref(want);
}

static void flags_become_keys(void **state)
{
    (void)state;
    expect("", "{}");
    expect("#SBATCH -J test --time=1:30:00 -p gpu", "{\"name\":\"test\",\"time_limit_s\":5400,"
                                                    "\"pool\":\"gpu\"}");
    expect("#SBATCH -t 90\n#SBATCH -t 1-12", "{\"time_limit_s\":129600}");
    expect("#SBATCH --gres=gpu:2", "{\"gpus\":2}");
    expect("#SBATCH --gres=gpu:a100:2", "{\"gpus\":2,\"gpu_types\":[\"a100\"]}");
    expect("#SBATCH --gres=gpu", "{\"gpus\":1}");
    expect("#SBATCH --gres=mps:50", "{\"gpus\":0.5,\"share\":\"mps\"}");
    expect("#SBATCH --gres=mps:100", "{\"gpus\":1}");
    expect("#SBATCH --gres=mps:50\n#SBATCH -G 2", "{\"gpus\":2}");
    expect("#SBATCH --gpus-per-task=0.25 -n 2", "{\"gpus\":0.25,\"tasks\":2}");
    expect("#SBATCH --gres=gpu:1g.10gb:1", "{\"gpus\":1,\"mig\":\"1g.10gb\"}");
    expect("#SBATCH -L a:2,b", "{\"resources\":{\"a\":2,\"b\":1}}");
    expect("#SBATCH --licenses=a:4 -n 2", "{\"tasks\":2,\"resources\":{\"a\":2}}");
    expect("#SBATCH -G h100:4", "{\"gpus\":4,\"gpu_types\":[\"h100\"]}");
    expect("#SBATCH --gpus=4 --ntasks=2", "{\"gpus\":2,\"tasks\":2}");
    expect("#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -c 8",
           "{\"gpus\":1,\"tasks\":8,\"tasks_per_node\":4,\"cpus\":8}");
    expect("#SBATCH -N1 -n4 --gpus-per-task=2", "{\"gpus\":2,\"tasks\":4,\"tasks_per_node\":4}");
    expect("#SBATCH --exclusive --switches=1@10:00", "{\"exclusive\":true,\"topology\":\"rack\"}");
    expect("#SBATCH --gpus=2 --constraint='a100|h100'",
           "{\"gpus\":2,\"constraint\":\"a100|h100\"}");
    expect("#SBATCH -w 'n[1-4],m7' -x n9",
           "{\"nodelist\":[\"n[1-4]\",\"m7\"],\"exclude\":[\"n9\"]}");
    expect("#SBATCH --mem=64G -n 4", "{\"tasks\":4,\"mem_mib\":16384}");
    expect("#SBATCH --mem-per-cpu=4G -c 4", "{\"cpus\":4,\"mem_mib\":16384}");
    expect("#SBATCH --mem-per-gpu=10G --gpus=2 --cpus-per-gpu=6",
           "{\"gpus\":2,\"cpus\":12,\"mem_mib\":20480}");
    expect("#SBATCH --gpus=1 -n 4 -c 2 --mem-per-cpu=1G",
           "{\"gpus\":1,\"cpus\":8,\"mem_mib\":8192}");
    expect("#SBATCH --mem=0", "{}");
    expect("#SBATCH -a 0-9%2 -o logs/%A_%a.out -e logs/%A_%a.err",
           "{\"array\":{\"first\":0,\"last\":9,\"limit\":2},\"stdout\":\"logs/%A_%a.out\","
           "\"stderr\":\"logs/%A_%a.err\"}");
    expect("#SBATCH --array=1,5", "{\"array\":{\"indices\":[1,5]},\"stdout\":\"slurm-%A_%a.out\"}");
    expect("#SBATCH -d afterok:12:13,singleton",
           "{\"depends\":[{\"type\":\"afterok\",\"job\":12},{\"type\":\"afterok\",\"job\":13}],"
           "\"singleton\":true}");
    expect("#SBATCH --signal=B:USR1@90 --requeue --open-mode=append",
           "{\"signal\":{\"signal\":\"USR1\",\"seconds\":90,\"who\":\"batch\"},\"requeue\":true,"
           "\"open_mode\":\"append\"}");
    expect("#SBATCH --no-requeue --nice=50 --hold", "{\"requeue\":false,\"nice\":50,"
                                                    "\"hold\":true}");
    expect("#SBATCH --nice", "{\"nice\":100}");
    expect("#SBATCH --priority=70 --nice=-5", "{\"priority\":70,\"nice\":-5}");
    expect("#SBATCH -q preemptible --nice=1", "{\"qos\":\"preemptible\",\"nice\":1}");
    expect("#SBATCH -A lab --wckey=submitit -q long --comment=\"two words\"",
           "{\"account\":\"lab\",\"wckey\":\"submitit\",\"qos\":\"long\",\"comment\":\"two "
           "words\"}");
    expect("#SBATCH -D /data -i in.txt", "{\"workdir\":\"/data\",\"stdin\":\"in.txt\"}");
    expect("#SBATCH --begin=2030-01-02 --deadline=2030-01-03",
           "{\"begin\":1893542400,\"deadline\":1893628800}");
    expect("#SBATCH --mail-type=END --mail-user=a@b # why not", "{}");
    expect("# a comment\n\n##SBATCH --gpus=9\n#SBATCH --gpus=1\n#SBATCHX", "{\"gpus\":1}");
    expect("#SBATCH -J \"a b\"'c' --comment=a\\ b", "{\"name\":\"a bc\",\"comment\":\"a b\"}");
    expect("true\n#SBATCH --gpus=1", "{}");
    expect("#SBATCH -p batch", "{\"pool\":\"batch\"}");
    expect("#SBATCH --export=ALL,A=1,B", "{\"envs\":{\"A\":\"1\"}}");
}

static void refusals_name_line_and_flag(void **state)
{
    static const struct {
        const char *header, *sentence;
    } bad[] = {
        {"#SBATCH --gpux=1", "job.sh:2: unknown flag --gpux; did you mean --gpus?"},
        {"\n#SBATCH --exclusive=user",
         "job.sh:3: --exclusive: takes no value here: nobody else is on its nodes; got \"user\""},
        {"#SBATCH --gpus=x.5:y",
         "job.sh:2: --gpus: must be a number of GPUs such as 4, a100:4 or 0.5, got \"x.5:y\""},
        {"#SBATCH --gpus=a100:4,h100:2", "job.sh:2: --gpus: must be a number of GPUs such as 4, "
                                         "a100:4 or 0.5, got \"a100:4,h100:2\""},
        {"#SBATCH --gpus=1.5",
         "job.sh:2: --gpus: must be a number of GPUs such as 4, a100:4 or 0.5, got \"1.5\""},
        {"#SBATCH --gres=shard:1",
         "job.sh:2: --gres: shards have no size here; ask for part of a GPU with "
         "--gres=mps:PERCENT or --gpus=0.25"},
        {"#SBATCH --gres=mps:150",
         "job.sh:2: --gres: mps is a percentage of one GPU, 1 to 100, got \"150\""},
        {"#SBATCH -t soon",
         "job.sh:2: -t: must be a time such as 90 (minutes), 1:30:00 or 1-12, got \"soon\""},
        {"#SBATCH --mem=many",
         "job.sh:2: --mem: must be a size such as 32G or 4000M, got \"many\""},
        {"#SBATCH -n 0", "job.sh:2: -n: must be a whole number from 1 to 65536, got \"0\""},
        {"#SBATCH -N 1-x", "job.sh:2: -N: must be a number of nodes such as 2 or 2-4, got \"1-x\""},
        {"#SBATCH --nodefile=n1",
         "job.sh:2: --nodefile: is not supported: -w, -x and -C say which nodes, -p which pool"},
        {"#SBATCH --constraint=a&b|c",
         "job.sh:2: --constraint: at \"|c\": where & and | are mixed parentheses must say what "
         "belongs together"},
        {"#SBATCH --gpus=3 -N 2", "job.sh: 3 GPUs cannot be shared evenly by 2 tasks"},
        {"#SBATCH -J a/b", "job.sh: name: must not hold '/', got \"a/b\""},
        {"#SBATCH -o %q", "job.sh:2: -o: does not know %q; there are %j %A %a %x %t %N %u %%"},
        {"#SBATCH hetjob", "job.sh:2: expected flags, got \"hetjob\""},
        {"#SBATCH -J 'open", "job.sh:2: a quote is not closed, or there are too many words"},
        {"#SBATCH --wait", "job.sh: --wait belongs on a command line"},
        {"#SBATCH --export=NONE",
         "job.sh: --export: only sbatch can leave the environment behind; here it is ALL or "
         "ALL,NAME=value"},
        {"#SBATCH --time", "job.sh:2: --time needs a value"},
        {"#SBATCH -d afterok:1?afterok:2",
         "job.sh:2: -d: dependencies joined by '?' (any one of them) are not supported; ',' means "
         "all of them"},
        {"#SBATCH --kill-on-invalid-dep=no",
         "job.sh:2: --kill-on-invalid-dep: only yes is supported: a job whose dependency failed "
         "ends"},
        {"#SBATCH -p a,b", "job.sh:2: -p: takes one pool, got \"a,b\""},
        {"#SBATCH --comment=\x01", "job.sh:2: --comment: must be text in UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[400], want[400];
        json_t *job;

        (void)snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", bad[i].header);
        (void)snprintf(want, sizeof(want), "%s", bad[i].sentence);
        job = stk_spec_from_sbatch(text, strlen(text), "job.sh", NULL, &err);
        if (job)
            fail_msg("accepted: %s", bad[i].header);
        assert_string_equal(err.text, want);
    }
}

static void scripts_must_be_scripts(void **state)
{
    (void)state;
    assert_null(stk_spec_from_sbatch("echo\n", 5, "j", NULL, &err));
    assert_string_equal(err.text, "j:1: a batch script must begin with #! and the path of an "
                                  "interpreter, such as #!/bin/bash");
    assert_null(stk_spec_from_sbatch("#!/bin/sh\r\necho\r\n", 17, "j", NULL, &err));
    assert_non_null(strstr(err.text, "DOS line ends"));
    assert_null(stk_spec_from_sbatch("#!/bin/sh\n\0", 11, "j", NULL, &err));
    assert_null(stk_spec_from_sbatch("#!/bin/sh\n\xff", 11, "j", NULL, &err));
    assert_null(stk_spec_from_sbatch("", 0, "j", NULL, &err));
}

static void command_line_beats_environment_beats_script(void **state)
{
    static const char script[] = "#!/bin/sh\n#SBATCH --gpus=1 -p a -J s --time=1\n";
    char *const env[] = {(char[]){"SBATCH_PARTITION=b"}, (char[]){"SBATCH_TIMELIMIT=2"},
                         (char[]){"PATH=/bin"}, (char[]){"SBATCH_NO_REQUEUE="}, NULL};
    char *argv[] = {(char[]){"sbatch"}, (char[]){"--time=3"}, (char[]){"--parsable"},
                    (char[]){"-W"},     (char[]){"job.sh"},   (char[]){"-x"}};
    struct stk_sbatch s;
    json_t *job;
    int rest = 0;

    (void)state;
    stk_sbatch_init(&s, STK_TOOL_SBATCH, 0);
    assert_int_equal(stk_sbatch_script(&s, script, strlen(script), "job.sh", &err), 0);
    assert_int_equal(stk_sbatch_env(&s, env, &err), 0);
    assert_int_equal(stk_sbatch_args(&s, 6, argv, &rest, &err), 0);
    assert_int_equal(rest, 4);
    assert_true(s.parsable && s.wait && !s.test_only);
    job = stk_sbatch_job(&s, &err);
    assert_non_null(job);
    assert_string_equal(json_string_value(json_object_get(job, "pool")), "b");
    assert_string_equal(json_string_value(json_object_get(job, "name")), "s");
    assert_int_equal(json_integer_value(json_object_get(job, "time_limit_s")), 180);
    assert_true(json_is_false(json_object_get(job, "requeue")));
    json_decref(job);
    stk_sbatch_done(&s);
}

static void notes_say_what_is_not_done(void **state)
{
    static const char script[] = "#!/bin/sh\n#SBATCH --mail-type=ALL\ntrue\n#SBATCH --gpus=1\n";
    struct stk_sbatch s;

    (void)state;
    stk_sbatch_init(&s, STK_TOOL_SBATCH, 0);
    assert_int_equal(stk_sbatch_script(&s, script, strlen(script), "job.sh", &err), 0);
    assert_int_equal(json_array_size(s.notes), 2);
    assert_string_equal(json_string_value(json_array_get(s.notes, 0)),
                        "--mail-type: no mail is sent");
    assert_string_equal(json_string_value(json_array_get(s.notes, 1)),
                        "job.sh:4: #SBATCH after the first command is not read");
    stk_sbatch_done(&s);
}

static void wrap_makes_a_script(void **state)
{
    char *argv[] = {(char[]){"sbatch"}, (char[]){"--wrap"}, (char[]){"echo a b"}};
    struct stk_sbatch s;
    json_t *job;
    int rest;

    (void)state;
    stk_sbatch_init(&s, STK_TOOL_SBATCH, 0);
    assert_int_equal(stk_sbatch_args(&s, 3, argv, &rest, &err), 0);
    job = stk_sbatch_job(&s, &err);
    assert_non_null(job);
    assert_string_equal(json_string_value(json_object_get(job, "script")), "#!/bin/sh\necho a b\n");
    assert_string_equal(json_string_value(json_object_get(job, "name")), "wrap");
    json_decref(job);
    stk_sbatch_done(&s);
}

static void script_is_told_of_tasks_it_asked_for(void **state)
{
    static const char with[] = "#!/bin/sh\n#SBATCH --ntasks-per-node=3 --gpus=1\n";
    static const char without[] = "#!/bin/sh\n#SBATCH --gpus=1\n";
    json_t *job = stk_spec_from_sbatch(with, strlen(with), "j", NULL, &err), *envs;

    (void)state;
    assert_non_null(job);
    envs = json_object_get(job, "envs");
    assert_string_equal(json_string_value(json_object_get(envs, "SLURM_NTASKS")), "3");
    assert_string_equal(json_string_value(json_object_get(envs, "SLURM_NTASKS_PER_NODE")), "3");
    assert_string_equal(json_string_value(json_object_get(envs, "SLURM_PROCID")), "0");
    assert_int_equal(json_integer_value(json_object_get(job, "tasks")), 1); /* they share a GPU */
    json_decref(job);
    job = stk_spec_from_sbatch(without, strlen(without), "j", NULL, &err);
    envs = json_object_get(job, "envs");
    assert_null(json_object_get(envs, "SLURM_NTASKS"));
    assert_null(json_object_get(envs, "SLURM_PROCID"));
    json_decref(job);
}

static void srun_has_flags_of_its_own(void **state)
{
    char *argv[] = {(char[]){"srun"}, (char[]){"-ul"},         (char[]){"-K0"}, (char[]){"-W"},
                    (char[]){"0"},    (char[]){"--exclusive"}, (char[]){"-n2"}, (char[]){"cmd"}};
    char *no[] = {(char[]){"srun"}, (char[]){"--array=1"}};
    struct stk_sbatch s;
    int rest;

    (void)state;
    stk_sbatch_init(&s, STK_TOOL_SRUN, 0);
    assert_int_equal(stk_sbatch_args(&s, 8, argv, &rest, &err), 0);
    assert_int_equal(rest, 7);
    assert_true(s.label && s.unbuffered && s.no_kill && s.ntasks == 2);
    assert_int_equal(stk_sbatch_args(&s, 2, no, &rest, &err), -EINVAL);
    assert_string_equal(err.text, "unknown flag --array");
    stk_sbatch_done(&s);
}

static json_t *exported(const char *what)
{
    char *const env[] = {(char[]){"A=1"},
                         (char[]){"B=x=y"},
                         (char[]){"SLURM_JOB_ID=7"},
                         (char[]){"RANK=3"},
                         (char[]){"STOKER_LEASE=9"},
                         (char[]){"BAD=\xff"},
                         NULL};
    json_t *job = json_object(), *envs;
    char flag[256], program[] = "sbatch", *argv[] = {program, flag, NULL};
    struct stk_sbatch s;
    int rest;

    stk_sbatch_init(&s, STK_TOOL_SBATCH, 0);
    (void)snprintf(flag, sizeof(flag), "--export=%s", what ? what : "");
    if (what)
        assert_int_equal(stk_sbatch_args(&s, 2, argv, &rest, &err), 0);
    assert_int_equal(stk_sbatch_export(&s, job, env, &err), 0);
    envs = json_incref(json_object_get(job, "envs"));
    json_decref(job);
    stk_sbatch_done(&s);
    return envs;
}

static void export_chooses_variables(void **state)
{
    static const struct {
        const char *what, *json;
    } cases[] = {
        {NULL, "{\"A\":\"1\",\"B\":\"x=y\"}"},
        {"ALL", "{\"A\":\"1\",\"B\":\"x=y\"}"},
        {"NONE", "{}"},
        {"ALL,C=3", "{\"A\":\"1\",\"B\":\"x=y\",\"C\":\"3\"}"},
        {"B,C=3,D", "{\"B\":\"x=y\",\"C\":\"3\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *envs = exported(cases[i].what), *want = json_loads(cases[i].json, 0, NULL);

        assert_true(json_equal(envs, want));
        json_decref(envs);
        json_decref(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_become_keys),
        cmocka_unit_test(refusals_name_line_and_flag),
        cmocka_unit_test(scripts_must_be_scripts),
        cmocka_unit_test(command_line_beats_environment_beats_script),
        cmocka_unit_test(notes_say_what_is_not_done),
        cmocka_unit_test(wrap_makes_a_script),
        cmocka_unit_test(script_is_told_of_tasks_it_asked_for),
        cmocka_unit_test(srun_has_flags_of_its_own),
        cmocka_unit_test(export_chooses_variables),
    };

    if (setenv("TZ", "UTC", 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
