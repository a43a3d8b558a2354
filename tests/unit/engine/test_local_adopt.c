/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: the daemon ends and comes back, supervisors are killed, strays turn up. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/local.h"
#include "sys/procs.h"

/* A job that waits for a folder named go, then exits with 7. */
#define WAITS "echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 7"

static void restart(struct lw *w)
{
    lw_engine_close(w);
    lw_engine_open(w);
}

static void begin(struct lw *w, uint32_t number, uint32_t lease, const char *script,
                  const char *more)
{
    char name[64];

    lw_start(w, number, lease, lw_sh(w, script, more));
    (void)lw_wait(w, number, STK_EV_STARTED);
    (void)snprintf(name, sizeof(name), "stoker-%u.out", number);
    lw_until_text(w, name, "ready");
}

static void write_run_file(const struct lw *w, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/run/%s", w->dir, name);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static pid_t pid_in(const struct lw *w, const char *name)
{
    char *text = lw_read(w, name);
    pid_t pid = text ? (pid_t)strtol(text, NULL, 10) : 0;

    free(text);
    return pid;
}

static bool is_gone(void *ctx)
{
    struct stk_proc p;

    return stk_proc_read(*(pid_t *)ctx, &p) < 0 || p.state == 'Z';
}

static void a_running_job_goes_on(void **state)
{
    struct stk_event ev;
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    restart(&w);
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, lw_sh(&w, WAITS, ""));
    lw_spin(&w, 50);
    assert_false(lw_has(&w, 1, STK_EV_EXITED));
    assert_false(lw_has(&w, 1, STK_EV_STARTED));
    lw_say_go(&w);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.code, 7);
    assert_int_equal(ev.lease, 5);
    lw_settle(&w, 1, 5);
    assert_int_equal(lw_run_files(&w), 0);
    lw_close(&w);
}

static void news_of_the_start_that_was_lost_is_told_again(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    restart(&w);
    lw_adopt(&w, 1, 5, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, WAITS, ""));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_close(&w);
}

static void an_end_that_came_meanwhile_is_told(void **state)
{
    struct stk_event ev;
    struct lw w;
    pid_t shim;
    struct stk_local_info info;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    shim = info.shim;
    lw_engine_close(&w);
    lw_say_go(&w);
    assert_true(lw_until(&w, is_gone, &shim));
    lw_engine_open(&w);
    lw_adopt(&w, 1, 5, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, WAITS, ""));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    assert_int_equal(ev.u.exit.code, 7);
    lw_settle(&w, 1, 5);
    assert_int_equal(lw_run_files(&w), 0);
    lw_close(&w);
}

static void a_job_that_was_never_spawned_is_started(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_adopt(&w, 1, 5, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, "exit 3", ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.code, 3);
    lw_close(&w);
}

static void an_empty_run_file_that_nobody_holds_means_start_again(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    write_run_file(&w, "1.5", "");
    lw_adopt(&w, 1, 5, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, "exit 3", ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.code, 3);
    lw_close(&w);
}

static void a_job_of_another_boot_is_lost_with_its_node(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    write_run_file(&w, "1.5",
                   "{\"ev\":\"shim\",\"pid\":1,\"boot\":\"00000000-0000-0000-0000-000000000000\","
                   "\"mark\":\"m\",\"lease\":5}\n");
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, lw_sh(&w, "exit 3", ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_NODE_LOST);
    assert_string_equal(w.note, "the machine was restarted");
    lw_close(&w);
}

static void a_job_without_a_trace_is_reported_as_such(void **state)
{
    const struct stk_stop cancel = {{2}, 6, STK_CAUSE_CANCELLED, false, false};
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, lw_sh(&w, "exit 3", ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_UNKNOWN);
    lw_settle(&w, 1, 5);
    restart(&w);
    lw_adopt(&w, 2, 6, STK_JOB_STOPPING, false, false, &cancel, lw_sh(&w, "exit 3", ""));
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.cause, STK_CAUSE_CANCELLED);
    lw_close(&w);
}

static void a_stop_that_was_under_way_is_finished(void **state)
{
    const struct stk_stop evict = {{1}, 5, STK_CAUSE_EVICTED, false, false};
    struct stk_event ev;
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    restart(&w);
    lw_adopt(&w, 1, 5, STK_JOB_STOPPING, false, false, &evict, lw_sh(&w, WAITS, ""));
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_EVICTED);
    lw_close(&w);
}

static void a_torn_last_line_does_not_matter(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    write_run_file(
        &w, "1.5",
        "{\"ev\":\"shim\",\"pid\":1,\"boot\":\"x\",\"lease\":5}\n"
        "{\"ev\":\"exited\",\"lease\":5,\"cause\":\"failed\",\"code\":9,\"note\":\"n\"}\n{\"ev");
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, lw_sh(&w, "exit 3", ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.code, 9);
    lw_close(&w);
}

static void an_older_launch_of_the_same_job_is_not_taken_for_this_one(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    write_run_file(
        &w, "1.4",
        "{\"ev\":\"shim\",\"pid\":1,\"boot\":\"x\",\"lease\":4}\n"
        "{\"ev\":\"exited\",\"lease\":4,\"cause\":\"evicted\",\"code\":9,\"note\":\"n\"}\n");
    lw_adopt(&w, 1, 5, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, "exit 3", ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.code, 3);
    lw_settle(&w, 1, 5);
    assert_int_equal(lw_run_files(&w), 0);
    lw_close(&w);
}

static bool is_orphaned(void *ctx)
{
    struct stk_local_info info;

    return stk_local_info(((struct lw *)ctx)->e, 1, &info) == 0 && info.state == STK_LOCAL_ORPHANED;
}

/* The shim is killed: its processes live on, and only when they are gone is the job's end told. */
static void processes_outlive_a_killed_supervisor(void **state)
{
    struct stk_local_info info;
    struct lw w;
    pid_t pid;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, "echo $$ >pid; (setsid sleep 1000 & echo $! >pid2); " WAITS, "");
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    pid = info.tasks[0].pid;
    assert_int_equal(kill(info.shim, SIGKILL), 0);
    assert_true(lw_until(&w, is_orphaned, &w));
    lw_spin(&w, 600);
    assert_true(is_orphaned(&w));
    assert_false(lw_has(&w, 1, STK_EV_EXITED));
    assert_int_equal(kill(pid, 0), 0);
    lw_say_go(&w);
    assert_true(lw_until(&w, is_gone, &pid));
    lw_spin(&w, 600); /* one of them is in a session of its own: it counts too */
    assert_false(lw_has(&w, 1, STK_EV_EXITED));
    assert_int_equal(kill(pid_in(&w, "pid2"), SIGKILL), 0);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_UNKNOWN);
    lw_settle(&w, 1, 5);
    assert_int_equal(lw_run_files(&w), 0);
    lw_close(&w);
}

static void a_supervisor_killed_while_nobody_looked(void **state)
{
    struct stk_local_info info;
    struct lw w;
    pid_t shim;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    shim = info.shim;
    lw_engine_close(&w);
    assert_int_equal(kill(shim, SIGKILL), 0);
    assert_true(lw_until(&w, is_gone, &shim));
    lw_engine_open(&w);
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, lw_sh(&w, WAITS, ""));
    lw_spin(&w, 400);
    assert_false(lw_has(&w, 1, STK_EV_EXITED));
    lw_say_go(&w);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_UNKNOWN);
    lw_close(&w);
}

static void orphans_can_be_stopped(void **state)
{
    struct stk_local_info info;
    struct stk_event ev;
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, "trap '' TERM; " WAITS, "\"grace_s\":1");
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    assert_int_equal(kill(info.shim, SIGKILL), 0);
    lw_spin(&w, 50);
    lw_stop(&w, 1, 5, STK_CAUSE_CANCELLED, false);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_CANCELLED);
    lw_close(&w);
}

/* Nobody but the engine is left to see to the time limit; time asleep does not count. */
static void orphans_keep_their_time_limit(void **state)
{
    struct stk_local_info info;
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, 2, 6, WAITS, "\"time_limit_s\":3");
    lw_stop(&w, 2, 6, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 2, STK_EV_SUSPENDED);
    begin(&w, 1, 5, WAITS, "\"time_limit_s\":3");
    for (uint32_t n = 1; n <= 2; n++) {
        assert_int_equal(stk_local_info(w.e, n, &info), 0);
        assert_int_equal(kill(info.shim, SIGKILL), 0);
    }
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_TIMEOUT);
    assert_false(lw_has(&w, 2, STK_EV_EXITED));
    lw_resume(&w, 2, 7, 0);
    (void)lw_wait(&w, 2, STK_EV_STARTED);
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.cause, STK_CAUSE_TIMEOUT);
    lw_close(&w);
}

static void strays_end_before_anything_starts(void **state)
{
    struct lw w;
    char *log;
    pid_t pid;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, "trap 'sleep 0.3; echo bye >>order; exit' TERM; echo $$ >pid; " WAITS, "");
    pid = pid_in(&w, "pid");
    restart(&w);
    lw_adopt(&w, 2, 6, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, "echo hello >>order", ""));
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    assert_true(is_gone(&pid));
    log = lw_read(&w, "order");
    assert_string_equal(log, "bye\nhello\n");
    free(log);
    assert_false(lw_has(&w, 1, STK_EV_EXITED)); /* nobody asked */
    lw_settle(&w, 2, 6);
    assert_int_equal(lw_run_files(&w), 0);
    lw_close(&w);
}

static void orphaned_strays_are_ended_too(void **state)
{
    struct stk_local_info info;
    struct lw w;
    pid_t shim, pid;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    shim = info.shim;
    pid = info.tasks[0].pid;
    lw_engine_close(&w);
    assert_int_equal(kill(shim, SIGKILL), 0);
    assert_true(lw_until(&w, is_gone, &shim));
    lw_engine_open(&w);
    lw_adopt(&w, 2, 6, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, "true", ""));
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    assert_true(is_gone(&pid));
    lw_close(&w);
}

/* Somebody else connects, and ours is the older connection: the shim closes it. */
static void a_lost_connection_is_made_again(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct lw w;
    int fd;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/run/1.5.sock", w.dir);
    for (int i = 0; i < 500 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0; i++)
        lw_spin(&w, 20); /* it opens it after the start */
    lw_spin(&w, 20);
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, false); /* said into the void, and said again */
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_EVICTED);
    (void)close(fd);
    lw_close(&w);
}

static void the_maker_of_supervisors_is_made_again(void **state)
{
    struct stk_local_info info;
    struct stk_proc p;
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, 1, 5, WAITS, "");
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    assert_int_equal(stk_proc_read(info.shim, &p), 0);
    assert_int_equal(kill(p.ppid, SIGKILL), 0);
    lw_spin(&w, 50);
    begin(&w, 2, 6, WAITS, "");
    lw_say_go(&w);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.code, 7);
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.code, 7);
    lw_close(&w);
}

/* Links and files of others in the run folder are not followed, not read, not removed. */
static void tricks_in_the_run_folder_do_nothing(void **state)
{
    struct lw w;
    char path[256], *text;

    (void)state;
    lw_open(&w);
    (void)snprintf(path, sizeof(path), "%s/run/1.5", w.dir);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    (void)snprintf(path, sizeof(path), "%s/run/notes", w.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    lw_adopt(&w, 2, 6, STK_JOB_PLACED, false, false, NULL, lw_sh(&w, "true", ""));
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    lw_start(&w, 1, 5, lw_sh(&w, "true", "")); /* its run file cannot be made */
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_NOT_STARTED);
    text = lw_read(&w, "/etc/passwd");
    assert_null(strstr(text, "\"ev\""));
    free(text);
    assert_int_equal(rmdir(path), 0);
    lw_settle(&w, 1, 5);
    lw_settle(&w, 2, 6);
    lw_close(&w);
}

static void a_state_folder_with_a_link_in_it_is_refused(void **state)
{
    struct stk_local_config cfg = {.state_dir = "/tmp/stoker-test-link"};
    struct stk_engine *e = NULL;
    struct stk_err err = {0};

    (void)state;
    (void)mkdir(cfg.state_dir, 0700);
    (void)symlink("/etc", "/tmp/stoker-test-link/run");
    assert_true(stk_engine_local_new(&cfg, &e, &err) < 0);
    (void)unlink("/tmp/stoker-test-link/run");
    (void)rmdir(cfg.state_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_job_goes_on),
        cmocka_unit_test(news_of_the_start_that_was_lost_is_told_again),
        cmocka_unit_test(an_end_that_came_meanwhile_is_told),
        cmocka_unit_test(a_job_that_was_never_spawned_is_started),
        cmocka_unit_test(an_empty_run_file_that_nobody_holds_means_start_again),
        cmocka_unit_test(a_job_of_another_boot_is_lost_with_its_node),
        cmocka_unit_test(a_job_without_a_trace_is_reported_as_such),
        cmocka_unit_test(a_stop_that_was_under_way_is_finished),
        cmocka_unit_test(a_torn_last_line_does_not_matter),
        cmocka_unit_test(an_older_launch_of_the_same_job_is_not_taken_for_this_one),
        cmocka_unit_test(processes_outlive_a_killed_supervisor),
        cmocka_unit_test(a_supervisor_killed_while_nobody_looked),
        cmocka_unit_test(orphans_can_be_stopped),
        cmocka_unit_test(orphans_keep_their_time_limit),
        cmocka_unit_test(strays_end_before_anything_starts),
        cmocka_unit_test(orphaned_strays_are_ended_too),
        cmocka_unit_test(a_lost_connection_is_made_again),
        cmocka_unit_test(the_maker_of_supervisors_is_made_again),
        cmocka_unit_test(tricks_in_the_run_folder_do_nothing),
        cmocka_unit_test(a_state_folder_with_a_link_in_it_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
