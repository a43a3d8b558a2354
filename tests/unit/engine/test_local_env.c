/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: what a job finds when it starts. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/local.h"

/* Lines of `env`, of task 't' of job 'number' (files env.NUMBER.TASK). */
static char *env_of(const struct lw *w, uint32_t number, uint32_t t)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "env.%u.%u", number, t);
    return lw_read(w, name);
}

static void has(const char *env, const char *line)
{
    char want[512];

    (void)snprintf(want, sizeof(want), "\n%s\n", line);
    if (!strstr(env, want))
        fail_msg("no '%s' in:\n%s", line, env);
}

static void has_not(const char *env, const char *name)
{
    char want[512];

    (void)snprintf(want, sizeof(want), "\n%s=", name);
    if (strstr(env, want))
        fail_msg("there is '%s' in:\n%s", name, env);
}

static void run_env(struct lw *w, uint32_t number, const char *more, uint64_t mask, uint32_t tasks,
                    uint32_t restarts)
{
    lw_start_on(w, number, number + 1000,
                lw_sh(w, "(echo; env; echo) >env.$STOKER_JOB_ID.$STOKER_TASK", more), mask, tasks,
                restarts);
    assert_int_equal(lw_wait(w, number, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    lw_settle(w, number, number + 1000);
}

static void a_plain_job_sees_its_gpus_and_no_ranks(void **state)
{
    static const char *const absent[] = {"RANK",         "WORLD_SIZE", "SLURM_NTASKS",
                                         "SLURM_JOB_ID", "LOCAL_RANK", "SLURM_PROCID",
                                         "MASTER_PORT",  "TF_CONFIG",  "STOKER_ARRAY_ID"};
    struct lw w;
    char *env, home[128];

    (void)state;
    (void)setenv("LEAKED_FROM_THE_DAEMON", "1", 1);
    lw_open(&w);
    run_env(
        &w, 1,
        "\"envs\":{\"MINE\":\"a b\",\"STOKER_LEASE\":\"3\",\"RANK\":\"7\",\"SLURM_NTASKS\":\"4\","
        "\"CUDA_VISIBLE_DEVICES\":\"6\"}",
        4, 1, 2);
    env = env_of(&w, 1, 0);
    has(env, "CUDA_VISIBLE_DEVICES=2");
    has(env, "STOKER_GPUS=2");
    has(env, "STOKER_JOB_ID=1");
    has(env, "STOKER_JOB_NAME=test job");
    has(env, "STOKER_LEASE=1001");
    has(env, "STOKER_RESTARTS=2");
    has(env, "STOKER_NODE=n1");
    has(env, "STOKER_SOCKET=/run/test.sock");
    has(env, "MINE=a b");
    has(env, "USER=tester");
    has(env, "LOGNAME=tester");
    has(env, "SHELL=/bin/sh");
    (void)snprintf(home, sizeof(home), "HOME=%s", w.home);
    has(env, home);
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        has_not(env, absent[i]);
    has_not(env, "LEAKED_FROM_THE_DAEMON");
    free(env);
    run_env(&w, 2, "", 0, 1, 0);
    env = env_of(&w, 2, 0);
    has(env, "CUDA_VISIBLE_DEVICES=");
    free(env);
    lw_close(&w);
}

static void each_task_of_a_gang_knows_its_rank_and_its_gpus(void **state)
{
    struct lw w;
    char *env, line[64];

    (void)state;
    lw_open(&w);
    run_env(&w, 43, "\"tasks\":3,\"gpus\":2,\"cpus\":2,\"cgroup\":0", 0x3f, 3, 0);
    for (uint32_t t = 0; t < 3; t++) {
        env = env_of(&w, 43, t);
        (void)snprintf(line, sizeof(line), "CUDA_VISIBLE_DEVICES=%u,%u", 2 * t, 2 * t + 1);
        has(env, line);
        (void)snprintf(line, sizeof(line), "RANK=%u", t);
        has(env, line);
        (void)snprintf(line, sizeof(line), "LOCAL_RANK=%u", t);
        has(env, line);
        (void)snprintf(line, sizeof(line), "SLURM_PROCID=%u", t);
        has(env, line);
        (void)snprintf(line, sizeof(line), "JAX_PROCESS_ID=%u", t);
        has(env, line);
        has(env, "WORLD_SIZE=3");
        has(env, "LOCAL_WORLD_SIZE=3");
        has(env, "GROUP_RANK=0");
        has(env, "NODE_RANK=0");
        has(env, "NUM_NODES=1");
        has(env, "NODE_IPS=127.0.0.1");
        has(env, "GPUS_PER_NODE=6");
        has(env, "MASTER_ADDR=127.0.0.1");
        has(env, "MASTER_PORT=15043");
        has(env, "JAX_COORDINATOR_ADDRESS=127.0.0.1:15043");
        has(env, "JAX_NUM_PROCESSES=3");
        has(env, "JAX_LOCAL_DEVICE_IDS=0,1"); /* of those that it sees */
        has(env, "SLURM_STEP_NODELIST=n1");
        has(env, "SLURM_NTASKS=3");
        has(env, "SLURM_NTASKS_PER_NODE=3");
        has(env, "SLURM_JOB_ID=43");
        has(env, "SLURM_JOB_NUM_NODES=1");
        has(env, "SLURM_JOB_NODELIST=n1");
        has(env, "SLURM_CPUS_PER_TASK=2");
        has(env, "SLURM_GPUS_ON_NODE=6");
        (void)snprintf(line, sizeof(line), "\"task\":{\"type\":\"worker\",\"index\":%u}", t);
        assert_non_null(strstr(env, line));
        assert_non_null(strstr(env, "TF_CONFIG={\"cluster\":{\"worker\":[\"127.0.0.1:15043\","));
        free(env);
    }
    lw_close(&w);
}

static void a_job_that_starts_its_own_ranks_sees_its_node_alone(void **state)
{
    struct lw w;
    char *env;

    (void)state;
    lw_open(&w);
    run_env(&w, 44, "\"tasks\":4,\"gpus\":1,\"launch\":\"once\",\"slurm\":true", 0xf, 4, 1);
    env = env_of(&w, 44, 0);
    has(env, "CUDA_VISIBLE_DEVICES=0,1,2,3");
    has(env, "MASTER_PORT=15044");
    has(env, "NODE_RANK=0");
    has(env, "SLURM_JOB_ID=44");
    has(env, "SLURM_JOBID=44");
    has(env, "SLURM_JOB_NAME=test job");
    has(env, "SLURM_RESTART_COUNT=1");
    has(env, "SLURM_JOB_GPUS=0,1,2,3");
    has_not(env, "RANK");
    has_not(env, "LOCAL_RANK");
    has_not(env, "SLURM_NTASKS");
    has_not(env, "SLURM_PROCID");
    has_not(env, "WORLD_SIZE");
    free(env);
    lw_close(&w);
}

static void two_gangs_do_not_meet_at_one_port(void **state)
{
    struct lw w;
    char *a, *b;

    (void)state;
    lw_open(&w);
    lw_start_on(&w, 43, 1, lw_sh(&w, "echo $MASTER_PORT; sleep 1000", "\"tasks\":2"), 0, 2, 0);
    lw_start_on(&w, 10043, 2, lw_sh(&w, "echo $MASTER_PORT; sleep 1000", "\"tasks\":2"), 0, 2, 0);
    lw_until_text(&w, "stoker-43.out", "15043\n15043\n");
    lw_until_text(&w, "stoker-10043.out", "15045\n15045\n");
    a = lw_log(&w, 43);
    b = lw_log(&w, 10043);
    assert_string_not_equal(a, b);
    free(a);
    free(b);
    lw_close(&w);
}

static void the_first_failure_of_a_gang_is_the_jobs(void **state)
{
    struct lw w;
    struct stk_event ev;

    (void)state;
    lw_open(&w);
    lw_start_on(&w, 1, 5, lw_sh(&w, "[ $RANK = 1 ] && exit 6; exec sleep 1000", "\"tasks\":3"), 0,
                3, 0);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    assert_int_equal(ev.u.exit.code, 6);
    assert_string_equal(w.note, "task 1: exit code 6");
    lw_settle(&w, 1, 5);
    lw_start_on(&w, 2, 6, lw_spec(&w, "\"command\":[\"true\"],\"tasks\":2,\"stdout\":\"x%%t/y\""),
                0, 2, 0);
    ev = lw_wait(&w, 2, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_NOT_STARTED);
    lw_close(&w);
}

static void array_elements_know_their_index(void **state)
{
    struct lw w;
    char *env, *log;

    (void)state;
    lw_open(&w);
    run_env(&w, 902, "\"array\":{\"first\":3,\"last\":10,\"step\":2},\"slurm\":true", 0, 1, 0);
    env = env_of(&w, 902, 0);
    has(env, "STOKER_ARRAY_ID=900");
    has(env, "STOKER_ARRAY_INDEX=5");
    has(env, "SLURM_ARRAY_JOB_ID=900");
    has(env, "SLURM_ARRAY_TASK_ID=5");
    has(env, "SLURM_ARRAY_TASK_COUNT=4");
    has(env, "SLURM_ARRAY_TASK_MIN=3");
    has(env, "SLURM_ARRAY_TASK_MAX=9");
    free(env);
    log = lw_read(&w, "stoker-900_5.out");
    assert_non_null(log);
    free(log);
    lw_close(&w);
}

static void patterns_name_the_log(void **state)
{
    struct lw w;
    char *log;

    (void)state;
    lw_open(&w);
    lw_start_on(&w, 905, 5,
                lw_sh(&w, "echo out $RANK; echo err $RANK >&2",
                      "\"tasks\":2,\"stdout\":\"%A_%a-%x-%t-%N-%u-%4j-%%-%q.o\","
                      "\"stderr\":\"e%t\""),
                0, 2, 0);
    assert_int_equal(lw_wait(&w, 905, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    for (int t = 0; t < 2; t++) {
        char name[128], want[16];

        (void)snprintf(name, sizeof(name), "900_8-test job-%d-n1-tester-0905-%%-%%q.o", t);
        (void)snprintf(want, sizeof(want), "out %d\n", t);
        log = lw_read(&w, name);
        assert_non_null(log);
        assert_string_equal(log, want);
        free(log);
        (void)snprintf(name, sizeof(name), "e%d", t);
        log = lw_read(&w, name);
        assert_non_null(log);
        free(log);
    }
    lw_close(&w);
}

static void a_restart_appends_even_when_asked_to_truncate(void **state)
{
    const char *spec;
    struct lw w;
    char *log;

    (void)state;
    lw_open(&w);
    spec = lw_sh(&w, "echo run $STOKER_RESTARTS", "\"open_mode\":\"truncate\",\"stdout\":\"log\"");
    (void)lw_run(&w, 1, spec);
    lw_start_on(&w, 1, 2, spec, 0, 1, 0);
    (void)lw_wait(&w, 1, STK_EV_EXITED);
    lw_settle(&w, 1, 2);
    lw_start_on(&w, 1, 3, spec, 0, 1, 1);
    (void)lw_wait(&w, 1, STK_EV_EXITED);
    log = lw_read(&w, "log");
    assert_string_equal(log, "run 0\nrun 1\n");
    free(log);
    lw_close(&w);
}

static void a_script_runs_by_its_first_line(void **state)
{
    struct lw w;
    char *log;

    (void)state;
    lw_open(&w);
    assert_int_equal(
        lw_run(&w, 1,
               lw_spec(&w, "\"script\":\"echo $1 $2; basename $0\",\"args\":[\"a\",\"b c\"]"))
            .u.exit.cause,
        STK_CAUSE_OK);
    log = lw_log(&w, 1);
    assert_string_equal(log, "a b c\nstoker-1.1\n");
    free(log);
    assert_int_equal(lw_run(&w, 2,
                            lw_spec(&w, "\"script\":\"#!/usr/bin/python3\\nimport os,sys\\n"
                                        "print(sys.argv[1], oct(os.stat(__file__).st_mode), "
                                        "os.stat(__file__).st_uid)\",\"args\":[\"x\"]"))
                         .u.exit.cause,
                     STK_CAUSE_OK);
    log = lw_log(&w, 2);
    assert_non_null(strstr(log, "x 0o100700"));
    free(log);
    { /* nothing is left of them */
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/script", w.dir);
        assert_int_equal(rmdir(path), 0);
    }
    lw_close(&w);
}

static void setup_lines_run_in_the_same_environment(void **state)
{
    struct lw w;
    struct stk_event ev;
    char *log;

    (void)state;
    lw_open(&w);
    ev = lw_run(
        &w, 1, lw_sh(&w, "echo $FROM_SETUP; exit 5", "\"setup\":\"export FROM_SETUP=yes\\ncd /\""));
    assert_int_equal(ev.u.exit.code, 5);
    log = lw_log(&w, 1);
    assert_string_equal(log, "yes\n");
    free(log);
    ev = lw_run(&w, 2, lw_sh(&w, "echo never", "\"setup\":\"false\\ntrue\""));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    log = lw_log(&w, 2);
    assert_string_equal(log, "");
    free(log);
    lw_close(&w);
}

static void a_venv_is_active(void **state)
{
    struct lw w;
    char *env, line[256];

    (void)state;
    lw_open(&w);
    run_env(&w, 1,
            "\"venv\":\"/opt/v\",\"envs\":{\"PATH\":\"/usr/bin:/bin\",\"PYTHONHOME\":\"/x\"}", 0, 1,
            0);
    env = env_of(&w, 1, 0);
    (void)snprintf(line, sizeof(line), "PATH=/opt/v/bin:/usr/bin:/bin");
    has(env, line);
    has(env, "VIRTUAL_ENV=/opt/v");
    has_not(env, "PYTHONHOME");
    free(env);
    lw_close(&w);
}

static void put_secret(const struct lw *w, const char *name, mode_t mode, uid_t uid)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", w->home, name);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs("hunter2-xyzzy\n", f);
    (void)fclose(f);
    assert_int_equal(chmod(path, mode), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(path, uid, (gid_t)uid), 0);
}

static void secrets_are_in_the_environment_and_nowhere_else(void **state)
{
    struct lw w;
    char *log, cmd[512];

    (void)state;
    lw_open(&w);
    put_secret(&w, "key", 0600, w.uid);
    lw_start(
        &w, 1, 5,
        lw_spec(&w,
                "\"command\":[\"sh\",\"-c\",\"echo ${#API_KEY}; exec sleep 1000\"],\"secrets\":"
                "{\"API_KEY\":\"%s/key\"}",
                w.home));
    lw_until_text(&w, "stoker-1.out", "13");
    (void)snprintf(cmd, sizeof(cmd), "grep -rq xyzzy %s/run %s/script %s/attach %s/stoker-1.out",
                   w.dir, w.dir, w.dir, w.home);
    assert_int_not_equal(system(cmd), 0); /* NOLINT(cert-env33-c) */
    lw_stop(&w, 1, 5, STK_CAUSE_CANCELLED, false);
    (void)lw_wait(&w, 1, STK_EV_EXITED);
    assert_null(strstr(w.notes, "xyzzy"));
    log = lw_log(&w, 1);
    assert_null(strstr(log, "xyzzy"));
    free(log);
    lw_close(&w);
}

static void a_secret_that_is_none_is_refused(void **state)
{
    static const struct {
        const char *file, *why;
    } cases[] = {{"open", "others may read"},
                 {"none", "cannot read its file"},
                 {"link", "cannot read its file"},
                 {"dir", "not a regular file"},
                 {"theirs", "cannot read its file"}};
    struct lw w;
    char path[256];

    (void)state;
    lw_open(&w);
    put_secret(&w, "open", 0640, w.uid);
    put_secret(&w, "theirs", 0600, 12345);
    (void)snprintf(path, sizeof(path), "%s/link", w.home);
    assert_int_equal(symlink("key", path), 0);
    (void)snprintf(path, sizeof(path), "%s/dir", w.home);
    assert_int_equal(mkdir(path, 0700), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(path, w.uid, (gid_t)w.uid), 0);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (geteuid() != 0 && strcmp(cases[i].file, "theirs") == 0)
            continue;
        assert_int_equal(lw_run(&w, i + 1,
                                lw_spec(&w, "\"command\":[\"true\"],\"secrets\":{\"K\":\"%s/%s\"}",
                                        w.home, cases[i].file))
                             .u.exit.cause,
                         STK_CAUSE_NOT_STARTED);
        if (!strstr(w.note, cases[i].why))
            fail_msg("%s: '%s'", cases[i].file, w.note);
    }
    lw_close(&w);
}

static void umask_limits_and_groups_are_the_jobs(void **state)
{
    struct lw w;
    char *log;

    (void)state;
    lw_open(&w);
    assert_int_equal(lw_run(&w, 1,
                            lw_sh(&w, "umask; ulimit -n; id -G; ls /proc/self/fd | wc -l",
                                  "\"umask\":63,\"rlimits\":{\"nofile\":[333,444]}"))
                         .u.exit.cause,
                     STK_CAUSE_OK);
    log = lw_log(&w, 1);
    assert_non_null(strstr(log, "0077\n333\n"));
    if (geteuid() == 0)
        assert_non_null(strstr(log, "\n65534\n"));
    assert_non_null(strstr(log, "\n4\n")); /* three and the folder itself: none of ours */
    free(log);
    lw_close(&w);
}

/* A stand-in for what runs images, which says what it was told. */
static void stand_in(const struct lw *w, const char *name)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", w->home, name);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs("#!/bin/sh\necho \"$@\" $CUDA_VISIBLE_DEVICES\n", f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

/* What it was told about job 'number', which has the GPUs of 'mask'. */
static char *told(struct lw *w, uint32_t number, const char *image, const char *more, uint64_t mask,
                  uint32_t tasks)
{
    lw_start_on(w, number, 5,
                lw_spec(w,
                        "\"command\":[\"train\",\"--lr\",\"1\"],\"image\":\"%s\",\"envs\":{"
                        "\"PATH\":\"%s\",\"TOKEN\":\"abc\"}%s",
                        image, w->home, more),
                mask, tasks, 0);
    if (lw_wait(w, number, STK_EV_EXITED).u.exit.cause != STK_CAUSE_OK)
        fail_msg("job %u: %s", number, w->note);
    lw_settle(w, number, 5);
    return lw_log(w, number);
}

static void an_image_is_run_by_the_users_runtime(void **state)
{
    struct lw w;
    char words[256], *log;

    (void)state;
    lw_open(&w);
    stand_in(&w, "podman");
    log = told(&w, 1, w.home, "", 1, 1);
    assert_non_null(strstr(log, "run --rm --name stoker-1-5-0 --network=host --ipc=host "));
    assert_non_null(strstr(log, "--cgroups=disabled --ulimit nofile="));
    assert_non_null(strstr(log, "--env=TOKEN "));
    assert_non_null(strstr(log, "--env=CUDA_VISIBLE_DEVICES "));
    assert_non_null(strstr(log, "--volume=/run:/run ")); /* the daemon's socket */
    assert_null(strstr(log, "abc"));
    assert_null(strstr(log, "--device")); /* virtual GPUs are numbers */
    (void)snprintf(words, sizeof(words), "--workdir=%s --rootfs -- %s:O train --lr 1 0\n", w.home,
                   w.home);
    assert_non_null(strstr(log, words));
    free(log);
    assert_int_equal(lw_run(&w, 2,
                            lw_spec(&w, "\"command\":[\"true\"],\"image\":\"x\",\"envs\":{\"PATH\":"
                                        "\"/nowhere\"}"))
                         .u.exit.cause,
                     STK_CAUSE_NOT_STARTED);
    lw_close(&w);
}

static void each_runtime_is_given_the_tasks_gpus_in_its_own_way(void **state)
{
    struct lw w;
    char *log;

    (void)state;
    lw_open(&w);
    w.real_gpus = true;
    lw_engine_close(&w);
    lw_engine_open(&w);
    stand_in(&w, "apptainer");
    log = told(&w, 1, "a.sif", "", 0xc, 1);
    assert_non_null(strstr(log, "exec --nv --bind="));
    assert_non_null(strstr(log, " -- a.sif train --lr 1 "));
    free(log);
    stand_in(&w, "docker"); /* is looked for first */
    log = told(&w, 2, "repo/name:tag", "", 0xc, 1);
    assert_non_null(strstr(log, "--init --user="));
    assert_non_null(strstr(log, "--gpus \"device=GPU-2,GPU-3\" --env=CUDA_VISIBLE_DEVICES=0,1 "));
    assert_null(strstr(log, "--env=CUDA_VISIBLE_DEVICES "));
    assert_non_null(strstr(log, " -- repo/name:tag train --lr 1 "));
    free(log);
    /* descriptions from before names were checked: never an option of the program */
    log = told(&w, 4, "--privileged", "", 0xc, 1);
    assert_non_null(strstr(log, " -- --privileged train --lr 1 "));
    free(log);
    stand_in(&w, "podman");
    log = told(&w, 3, "repo/name:tag", ",\"tasks\":2,\"gpus\":1,\"stdout\":\"log.%t\"", 0xc, 2);
    free(log);
    for (uint32_t t = 0; t < 2; t++) { /* each container has its own alone */
        char words[128];

        log = lw_read(&w, t ? "log.1" : "log.0");
        (void)snprintf(words, sizeof(words),
                       "--device=nvidia.com/gpu=GPU-%u --env=CUDA_VISIBLE_DEVICES=0 ", 2 + t);
        assert_non_null(strstr(log, words));
        (void)snprintf(words, sizeof(words), "gpu=GPU-%u", 3 - t);
        assert_null(strstr(log, words));
        free(log);
    }
    log = told(&w, 4, "x", ",\"image_runtime\":\"docker\"", 1, 1);
    assert_non_null(strstr(log, "--gpus \"device=GPU-0\""));
    assert_null(strstr(log, "--cpuset-cpus"));
    free(log);
    lw_close(&w);
}

/* Its containers are another daemon's children. */
static void docker_is_told_the_cpus_near_the_gpus(void **state)
{
    char cpu[2][8];
    struct lw w;
    char *log;

    (void)state;
    if (!lw_two_cpus(cpu))
        skip();
    lw_open(&w);
    w.real_gpus = true;
    w.cgroup_mode = "never";
    w.cpus[1] = cpu[1];
    lw_engine_close(&w);
    lw_engine_open(&w);
    stand_in(&w, "docker");
    log = told(&w, 1, "x", "", 0x10, 1);
    assert_non_null(strstr(log, cpu[1]));
    assert_non_null(strstr(log, " --cpuset-cpus="));
    assert_non_null(strstr(log, " --env=STOKER_CPUS "));
    free(log);
    log = told(&w, 2, "x", "", 0x11, 1); /* one of them does not say */
    assert_null(strstr(log, "--cpuset-cpus"));
    free(log);
    lw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_job_sees_its_gpus_and_no_ranks),
        cmocka_unit_test(each_task_of_a_gang_knows_its_rank_and_its_gpus),
        cmocka_unit_test(a_job_that_starts_its_own_ranks_sees_its_node_alone),
        cmocka_unit_test(two_gangs_do_not_meet_at_one_port),
        cmocka_unit_test(the_first_failure_of_a_gang_is_the_jobs),
        cmocka_unit_test(array_elements_know_their_index),
        cmocka_unit_test(patterns_name_the_log),
        cmocka_unit_test(a_restart_appends_even_when_asked_to_truncate),
        cmocka_unit_test(a_script_runs_by_its_first_line),
        cmocka_unit_test(setup_lines_run_in_the_same_environment),
        cmocka_unit_test(a_venv_is_active),
        cmocka_unit_test(secrets_are_in_the_environment_and_nowhere_else),
        cmocka_unit_test(a_secret_that_is_none_is_refused),
        cmocka_unit_test(umask_limits_and_groups_are_the_jobs),
        cmocka_unit_test(an_image_is_run_by_the_users_runtime),
        cmocka_unit_test(each_runtime_is_given_the_tasks_gpus_in_its_own_way),
        cmocka_unit_test(docker_is_told_the_cpus_near_the_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
