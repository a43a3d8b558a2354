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
    assert_false(ev.u.exit.requeue);
    assert_string_equal(w.note, "exit code 3");
    ev = lw_run(&w, 2, lw_sh(&w, "exit 75", "\"retry\":{\"exit_codes\":[74,75]}"));
    assert_true(ev.u.exit.requeue);
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

static void a_running_job_survives_a_restart(void **state)
{
    struct lw w;
    struct stk_event ev;
    const char *spec;

    (void)state;
    lw_open(&w);
    spec = lw_sh(&w, "while [ ! -e go ]; do sleep 0.01; done; exit 7", "");
    lw_start(&w, 1, 5, spec);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_engine_close(&w);
    lw_engine_open(&w);
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, spec);
    lw_spin(&w, 50);
    assert_false(lw_has(&w, 1, STK_EV_EXITED));
    {
        char path[256];

        (void)snprintf(path, sizeof(path), "%s/go", w.home);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    assert_int_equal(ev.u.exit.code, 7);
    lw_settle(&w, 1, 5);
    lw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_and_its_output_is_in_the_log),
        cmocka_unit_test(an_exit_code_is_reported),
        cmocka_unit_test(a_signal_is_reported),
        cmocka_unit_test(a_stopped_job_is_evicted_or_cancelled),
        cmocka_unit_test(a_running_job_survives_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
