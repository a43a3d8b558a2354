/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: how jobs start and end. Real shims, real processes. */
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

static void a_job_runs_and_its_output_is_in_the_log(void **state)
{
    struct lw w;
    struct stk_event ev;
    struct stat st;
    char *log, path[256];

    (void)state;
    lw_open(&w);
    ev = lw_run(&w, 1, lw_sh(&w, "echo out; echo err >&2; id -u; pwd", ""));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_OK);
    log = lw_log(&w, 1);
    assert_non_null(log);
    assert_non_null(strstr(log, "out\nerr\n"));
    assert_non_null(strstr(log, w.home));
    (void)snprintf(path, sizeof(path), "%s/stoker-1.out", w.home);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, w.uid);
    assert_int_equal(st.st_mode & 0777, 0644);
    free(log);
    assert_int_equal(lw_run_files(&w), 0);
    lw_close(&w);
}

static void an_exit_code_is_reported(void **state)
{
    struct lw w;
    struct stk_event ev;

    (void)state;
    lw_open(&w);
    ev = lw_run(&w, 1, lw_sh(&w, "exit 3", ""));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    assert_int_equal(ev.u.exit.code, 3);
    assert_false(ev.u.exit.final);
    assert_string_equal(w.note, "exit code 3");
    ev = lw_run(&w, 2, lw_sh(&w, "exit 75", "\"retry\":{\"exit_codes\":[74,75]}"));
    assert_false(ev.u.exit.final);
    ev = lw_run(&w, 3, lw_sh(&w, "exit 3", "\"retry\":{\"exit_codes\":[74,75]}"));
    assert_true(ev.u.exit.final);
    ev = lw_run(&w, 4, lw_sh(&w, "kill -KILL $$", "\"retry\":{\"exit_codes\":[137]}"));
    assert_false(ev.u.exit.final);
    lw_close(&w);
}

static void a_signal_is_reported(void **state)
{
    struct lw w;
    struct stk_event ev;

    (void)state;
    lw_open(&w);
    ev = lw_run(&w, 1, lw_sh(&w, "kill -SEGV $$", ""));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_SIGNAL);
    assert_int_equal(ev.u.exit.code, SIGSEGV);
    assert_string_equal(w.note, "killed by SIGSEGV");
    lw_close(&w);
}

static void a_stopped_job_is_evicted_or_cancelled(void **state)
{
    struct lw w;
    struct stk_event ev;

    (void)state;
    lw_open(&w);
    lw_start(&w, 1, 5, lw_sh(&w, "sleep 1000", ""));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, false);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_EVICTED);
    assert_int_equal(ev.lease, 5);
    lw_settle(&w, 1, 5);
    lw_start(&w, 1, 6, lw_sh(&w, "sleep 1000", ""));
    lw_stop(&w, 1, 6, STK_CAUSE_CANCELLED, false);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_CANCELLED);
    lw_settle(&w, 1, 6);
    lw_close(&w);
}

static void the_checkpoint_signal_comes_before_term_and_kill(void **state)
{
    struct lw w;
    struct stk_event ev;
    char *log;

    (void)state;
    lw_open(&w);
    lw_start(
        &w, 1, 5,
        lw_sh(&w,
              "trap 'echo usr1' USR1; trap 'echo term' TERM; echo ready;"
              "while :; do sleep 1000 & wait; done",
              "\"signal\":{\"signal\":\"USR1\",\"seconds\":1,\"who\":\"batch\"},\"grace_s\":1"));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_until_text(&w, "stoker-1.out", "ready");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, false);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_EVICTED);
    assert_int_equal(ev.u.exit.code, SIGKILL);
    log = lw_log(&w, 1);
    assert_non_null(strstr(log, "usr1\n"));
    assert_non_null(strstr(strstr(log, "usr1\n"), "term\n"));
    free(log);
    lw_settle(&w, 1, 5);
    lw_close(&w);
}

static void a_job_that_saves_and_exits_on_the_signal_is_evicted(void **state)
{
    struct lw w;
    struct stk_event ev;

    (void)state;
    lw_open(&w);
    lw_start(&w, 1, 5,
             lw_sh(&w, "trap 'exit 0' USR1; echo ready; while :; do sleep 0.01; done",
                   "\"signal\":{\"signal\":\"USR1\",\"seconds\":60}"));
    lw_until_text(&w, "stoker-1.out", "ready");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, false);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_EVICTED);
    assert_int_equal(ev.u.exit.code, 0);
    lw_close(&w);
}

static void a_cancel_after_an_eviction_is_harder(void **state)
{
    struct lw w;
    struct stk_event ev;

    (void)state;
    lw_open(&w);
    lw_start(&w, 1, 5,
             lw_sh(&w, "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.01; done",
                   "\"signal\":{\"signal\":\"USR1\",\"seconds\":1000,\"who\":\"batch\"}"));
    lw_until_text(&w, "stoker-1.out", "ready");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, false);
    lw_until_text(&w, "stoker-1.out", "usr1");
    lw_stop(&w, 1, 5, STK_CAUSE_CANCELLED, false);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_CANCELLED);
    lw_close(&w);
}

static void the_time_limit_ends_a_job(void **state)
{
    struct lw w;
    struct stk_event ev;
    char *log;

    (void)state;
    lw_open(&w);
    ev = lw_run(&w, 1,
                lw_sh(&w,
                      "trap 'echo usr2' USR2; trap 'echo term' TERM;"
                      "while :; do sleep 1000 & wait; done",
                      "\"time_limit_s\":2,\"grace_s\":1,"
                      "\"signal\":{\"signal\":\"USR2\",\"seconds\":1,\"who\":\"batch\"}"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_TIMEOUT);
    assert_string_equal(w.note, "over its time limit of 2s");
    log = lw_log(&w, 1);
    assert_non_null(strstr(log, "usr2\n"));
    assert_non_null(strstr(strstr(log, "usr2\n"), "term\n"));
    free(log);
    lw_close(&w);
}

static void everything_a_job_started_is_gone_before_its_end_is_told(void **state)
{
    struct lw w;
    struct stk_event ev;
    char *pid;

    (void)state;
    lw_open(&w);
    ev = lw_run(
        &w, 1,
        lw_sh(&w,
              "setsid sh -c 'trap \"\" TERM HUP; echo $$ >pid; while :; do sleep 0.01; done' &"
              "while [ ! -s pid ]; do sleep 0.01; done; exit 4",
              "\"grace_s\":1"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    assert_int_equal(ev.u.exit.code, 4);
    pid = lw_read(&w, "pid");
    assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), 0), -1);
    free(pid);
    lw_close(&w);
}

static void not_started(struct lw *w, uint32_t number, const char *spec, const char *why)
{
    struct stk_event ev = lw_run(w, number, spec);

    assert_int_equal(ev.u.exit.cause, STK_CAUSE_NOT_STARTED);
    if (!strstr(w->note, why))
        fail_msg("'%s' says nothing about '%s'", w->note, why);
}

static void a_job_that_cannot_start_says_why(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    not_started(&w, 1, lw_spec(&w, "\"command\":[\"no-such-program\"]"),
                "no command no-such-program in its PATH");
    not_started(&w, 2, lw_spec(&w, "\"command\":[\"/etc/passwd\"]"), "may not be executed");
    not_started(&w, 3, lw_spec(&w, "\"command\":[\"true\"],\"workdir\":\"/no/where\""),
                "the working directory /no/where does not exist");
    not_started(&w, 4, lw_spec(&w, "\"command\":[\"true\"],\"stdout\":\"no/such/%%j.out\""),
                "the folder of the output file");
    not_started(&w, 5, lw_spec(&w, "\"command\":[\"true\"],\"stdin\":\"/no/input\""),
                "cannot read its input");
    not_started(&w, 6, lw_spec(&w, "\"setup\":\"\""), "neither a command nor a script");
    not_started(&w, 7, "{\"command\":[\"true\"]}", "does not say whose job it is");
    not_started(&w, 8, "[]", "no description");
    not_started(&w, 9, lw_spec(&w, "\"command\":[\"true\"],\"signal\":{\"signal\":\"NOPE\"}"),
                "not a signal");
    not_started(&w, 10, lw_spec(&w, "\"command\":[\"true\"],\"stdout\":\"/proc/version\""),
                "cannot write the output file");
    lw_close(&w);
}

/* Only root can start jobs of others; root's own jobs are no exception to the log's rules. */
static void the_log_is_opened_with_the_rights_of_the_user(void **state)
{
    struct lw w;
    char path[256], *text;

    (void)state;
    lw_open(&w);
    (void)snprintf(path, sizeof(path), "%s/secret", w.dir); /* ours, not the job's */
    assert_int_equal(symlink("target", path), 0);
    (void)snprintf(path, sizeof(path), "%s/link.out", w.home);
    assert_int_equal(symlink("victim", path), 0);
    not_started(&w, 1, lw_spec(&w, "\"command\":[\"true\"],\"stdout\":\"link.out\""),
                "is a symbolic link");
    (void)snprintf(path, sizeof(path), "%s/victim", w.home);
    assert_int_equal(access(path, F_OK), -1);
    if (geteuid() == 0) {
        not_started(&w, 2, lw_spec(&w, "\"command\":[\"true\"],\"stdout\":\"%s/run/evil\"", w.dir),
                    "cannot write the output file");
        not_started(&w, 3, lw_spec(&w, "\"command\":[\"true\"],\"workdir\":\"%s/run\"", w.dir),
                    "cannot enter the working directory");
    }
    (void)snprintf(path, sizeof(path), "%s/fifo", w.home);
    assert_int_equal(mkfifo(path, 0666), 0);
    not_started(&w, 4, lw_spec(&w, "\"command\":[\"true\"],\"stdout\":\"fifo\""),
                "cannot write the output file");
    text = lw_read(&w, "victim");
    assert_null(text);
    lw_close(&w);
}

static void a_job_of_somebody_else_is_refused_without_root(void **state)
{
    struct lw w;

    (void)state;
    if (geteuid() == 0) {
        skip();
        return;
    }
    lw_open(&w);
    w.uid += 1;
    not_started(&w, 1, lw_spec(&w, "\"command\":[\"true\"]"), "is not root");
    lw_close(&w);
}

static void a_large_description_arrives_whole(void **state)
{
    struct lw w;
    struct stk_event ev;
    char *big = malloc(3 << 20), *spec = malloc(4 << 20);

    (void)state;
    lw_open(&w);
    memset(big, 'x', (3 << 20) - 1);
    big[(3 << 20) - 1] = 0;
    (void)snprintf(spec, 4 << 20,
                   "{\"uid\":%u,\"gid\":%u,\n\"workdir\":\"%s\",\n\"comment\":\"%s\",\"command\":"
                   "[\"sh\",\"-c\",\"echo hi\"]}",
                   (unsigned)w.uid, (unsigned)w.uid, w.home, big);
    ev = lw_run(&w, 1, spec);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_OK);
    free(big);
    free(spec);
    lw_close(&w);
}

static void starting_twice_and_stopping_what_is_gone_do_nothing(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_start(&w, 1, 5, lw_sh(&w, "echo once; sleep 0.2", ""));
    lw_start(&w, 1, 5, lw_sh(&w, "echo twice", ""));
    lw_stop(&w, 1, 4, STK_CAUSE_EVICTED, false); /* an older lease */
    lw_stop(&w, 7, 4, STK_CAUSE_EVICTED, false); /* no such job */
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, false);
    lw_settle(&w, 1, 5);
    lw_settle(&w, 1, 5);
    {
        char *log = lw_log(&w, 1);

        assert_string_equal(log, "once\n");
        free(log);
    }
    lw_close(&w);
}

static void many_jobs_at_once(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    for (uint32_t i = 1; i <= 200; i++)
        lw_start(&w, i, i, lw_spec(&w, "\"command\":[\"true\"],\"stdout\":\"all.out\""));
    for (uint32_t i = 1; i <= 200; i++) {
        assert_int_equal(lw_wait(&w, i, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
        lw_settle(&w, i, i);
    }
    assert_int_equal(lw_run_files(&w), 0);
    lw_close(&w);
}

static void info_tells_pids_paths_and_codes(void **state)
{
    struct lw w;
    struct stk_local_info info;
    char path[256];

    (void)state;
    lw_open(&w);
    assert_int_equal(stk_local_info(w.e, 1, &info), -ESRCH);
    lw_start(&w, 1, 5,
             lw_sh(&w, "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done", ""));
    lw_until_text(&w, "stoker-1.out", "ready");
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    assert_int_equal(info.state, STK_LOCAL_RUNNING);
    assert_int_equal(info.n_tasks, 1);
    assert_int_equal(kill(info.tasks[0].pid, 0), 0);
    assert_int_equal(kill(info.shim, 0), 0);
    (void)snprintf(path, sizeof(path), "%s/stoker-1.out", w.home);
    assert_string_equal(info.stdout_path, path);
    assert_string_equal(info.stderr_path, path);
    assert_int_equal(info.idle_s, -1);
    assert_int_equal(stk_local_signal(w.e, 1, SIGUSR1, true), 0);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.code, 9);
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    assert_int_equal(info.state, STK_LOCAL_ENDED);
    assert_true(info.tasks[0].ended);
    assert_int_equal(info.tasks[0].code, 9);
    assert_string_equal(info.sentence, "exit code 9");
    lw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_and_its_output_is_in_the_log),
        cmocka_unit_test(an_exit_code_is_reported),
        cmocka_unit_test(a_signal_is_reported),
        cmocka_unit_test(a_stopped_job_is_evicted_or_cancelled),
        cmocka_unit_test(the_checkpoint_signal_comes_before_term_and_kill),
        cmocka_unit_test(a_job_that_saves_and_exits_on_the_signal_is_evicted),
        cmocka_unit_test(a_cancel_after_an_eviction_is_harder),
        cmocka_unit_test(the_time_limit_ends_a_job),
        cmocka_unit_test(everything_a_job_started_is_gone_before_its_end_is_told),
        cmocka_unit_test(a_job_that_cannot_start_says_why),
        cmocka_unit_test(the_log_is_opened_with_the_rights_of_the_user),
        cmocka_unit_test(a_job_of_somebody_else_is_refused_without_root),
        cmocka_unit_test(a_large_description_arrives_whole),
        cmocka_unit_test(starting_twice_and_stopping_what_is_gone_do_nothing),
        cmocka_unit_test(many_jobs_at_once),
        cmocka_unit_test(info_tells_pids_paths_and_codes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
