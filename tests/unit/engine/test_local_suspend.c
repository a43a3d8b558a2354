/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: jobs that sleep and wake. A script stands in for stoker-gpu. */
#include <sched.h>
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
#include "sys/procs.h"

/* Counts into a file, one line per step, in a child of the task's own process. */
#define COUNTS                                                                                     \
    "(i=0; while :; do i=$((i+1)); echo $i >>steps; sleep 0.005; done) & echo ready; wait"

static void begin(struct lw *w, const char *more)
{
    lw_start_on(w, 1, 5, lw_sh(w, COUNTS, more), 3, 1, 0);
    (void)lw_wait(w, 1, STK_EV_STARTED);
    lw_until_text(w, "steps", "10\n");
}

static long steps(const struct lw *w)
{
    char *text = lw_read(w, "steps"), *p = text;
    long n = 0;

    while (p && *p) { /* none is missing, none comes twice */
        long v = strtol(p, &p, 10);

        if (*p != '\n')
            break; /* being written */
        p++;
        assert_int_equal(v, n + 1);
        n = v;
    }
    free(text);
    return n;
}

static void sleeps(struct lw *w)
{
    struct stk_local_info info;
    long before, after;

    assert_int_equal(stk_local_info(w->e, 1, &info), 0);
    assert_int_equal(info.state, STK_LOCAL_ASLEEP);
    before = steps(w);
    lw_spin(w, 100);
    after = steps(w);
    assert_int_equal(before, after);
}

static void runs(struct lw *w)
{
    long before = steps(w);
    char text[32];

    (void)snprintf(text, sizeof(text), "\n%ld\n", before + 5);
    lw_until_text(w, "steps", text);
}

static void end(struct lw *w, uint32_t lease)
{
    lw_stop(w, 1, lease, STK_CAUSE_CANCELLED, false);
    assert_int_equal(lw_wait(w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_CANCELLED);
    lw_settle(w, 1, lease);
    lw_close(w);
}

static void no_step_is_lost_or_done_twice(void **state)
{
    struct stk_event ev;
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, "");
    for (uint32_t round = 0; round < 3; round++) {
        lw_stop(&w, 1, 5 + round, STK_CAUSE_EVICTED, true);
        ev = lw_wait(&w, 1, STK_EV_SUSPENDED);
        assert_int_equal(ev.lease, 5 + round);
        sleeps(&w);
        lw_resume(&w, 1, 6 + round, 0xc);
        ev = lw_wait(&w, 1, STK_EV_STARTED);
        assert_int_equal(ev.lease, 6 + round);
        runs(&w);
    }
    end(&w, 8);
}

static void a_job_that_must_not_sleep_is_stopped(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, "\"suspend\":\"never\"");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_EVICTED);
    assert_non_null(strstr(w.notes, "not suspended: its description says"));
    assert_false(lw_has(&w, 1, STK_EV_SUSPENDED));
    lw_close(&w);
}

static void a_sleeping_job_can_be_cancelled(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    end(&w, 5);
}

static bool sleeps_or_is_over(void *ctx)
{
    const struct lw *w = ctx;

    return lw_has(w, 1, STK_EV_SUSPENDED) || lw_has(w, 1, STK_EV_EXITED);
}

/* It is told to sleep at about the time of its end: one or the other, not both. */
static void one_that_has_ended_is_not_said_to_sleep(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct lw w;

        (void)state;
        lw_open(&w);
        lw_start(&w, 1, 5, lw_sh(&w, "exec sleep 0.02", ""));
        (void)lw_wait(&w, 1, STK_EV_STARTED);
        lw_spin(&w, round % 20);
        lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
        assert_true(lw_until(&w, sleeps_or_is_over, &w));
        if (lw_has(&w, 1, STK_EV_SUSPENDED)) {
            lw_spin(&w, 30);
            assert_false(lw_has(&w, 1, STK_EV_EXITED));
            lw_resume(&w, 1, 6, 0);
        }
        (void)lw_wait(&w, 1, STK_EV_EXITED);
        lw_close(&w);
    }
}

static void time_asleep_is_not_counted(void **state)
{
    struct lw w;
    long before;

    (void)state;
    lw_open(&w);
    lw_start_on(&w, 1, 5, lw_sh(&w, COUNTS, "\"time_limit_s\":8"), 3, 1, 0);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    lw_spin(&w, 8500);
    assert_false(lw_has(&w, 1, STK_EV_EXITED));
    before = steps(&w);
    lw_resume(&w, 1, 6, 3);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_TIMEOUT);
    assert_true(steps(&w) > before);
    lw_close(&w);
}

static void a_process_that_was_stopped_before_stays_stopped(void **state)
{
    struct stk_proc p = {0};
    struct lw w;
    char *text;
    pid_t pid;

    (void)state;
    lw_open(&w);
    lw_start(&w, 1, 5, lw_sh(&w, "sleep 1000 & kill -STOP $!; echo $! >pid; " COUNTS, ""));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_until_text(&w, "steps", "5\n");
    text = lw_read(&w, "pid");
    pid = (pid_t)strtol(text, NULL, 10);
    free(text);
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    lw_resume(&w, 1, 6, 0);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    runs(&w);
    assert_int_equal(stk_proc_read(pid, &p), 0);
    assert_int_equal(p.state, 'T');
    end(&w, 6);
}

static void restart(struct lw *w)
{
    lw_engine_close(w);
    lw_engine_open(w);
}

static void a_sleeping_job_survives_a_restart(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    restart(&w);
    lw_adopt(&w, 1, 5, STK_JOB_WAITING, true, true, NULL, lw_sh(&w, COUNTS, ""));
    lw_spin(&w, 50);
    sleeps(&w);
    lw_resume(&w, 1, 9, 3);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    runs(&w);
    restart(&w); /* awake, under a lease that is not in the name of its run file */
    lw_adopt(&w, 1, 9, STK_JOB_RUNNING, false, false, NULL, lw_sh(&w, COUNTS, ""));
    lw_spin(&w, 50);
    runs(&w);
    end(&w, 9);
}

static void a_suspend_that_was_under_way_is_finished(void **state)
{
    const struct stk_stop stop = {{1}, 5, STK_CAUSE_EVICTED, true, false};
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, "");
    restart(&w); /* it was decided, and nobody has told the shim */
    lw_adopt(&w, 1, 5, STK_JOB_STOPPING, false, false, &stop, lw_sh(&w, COUNTS, ""));
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    sleeps(&w);
    restart(&w); /* it sleeps, and nobody has heard of it */
    lw_adopt(&w, 1, 5, STK_JOB_STOPPING, false, false, &stop, lw_sh(&w, COUNTS, ""));
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    sleeps(&w);
    while (lw_has(&w, 1, STK_EV_STARTED))
        (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_stop(&w, 1, 5, STK_CAUSE_CANCELLED, false);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_CANCELLED);
    assert_false(lw_has(&w, 1, STK_EV_STARTED)); /* that was told before it slept, or never */
    lw_close(&w);
}

static void a_resume_that_was_under_way_is_finished(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    restart(&w); /* it was decided, and nobody has told the shim */
    lw_adopt(&w, 1, 6, STK_JOB_PLACED, true, false, NULL, lw_sh(&w, COUNTS, ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_STARTED).lease, 6);
    runs(&w);
    restart(&w); /* it is awake, and nobody has heard of it */
    lw_adopt(&w, 1, 6, STK_JOB_PLACED, true, false, NULL, lw_sh(&w, COUNTS, ""));
    assert_int_equal(lw_wait(&w, 1, STK_EV_STARTED).lease, 6);
    runs(&w);
    end(&w, 6);
}

static void a_sleeping_job_whose_processes_are_gone_cannot_be_woken(void **state)
{
    struct stk_local_info info;
    struct lw w;

    (void)state;
    lw_open(&w);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    assert_int_equal(kill(info.tasks[0].pid, SIGKILL), 0);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_SIGNAL);
    lw_close(&w);
}

#define OK_HELPER                                                                                  \
    "echo "                                                                                        \
    "'{\"ok\":true,\"gpus\":[{\"uuid\":\"GPU-1\",\"held_mib\":744}]}'"

static void what_is_on_a_gpu_is_saved_first_and_restored_last(void **state)
{
    struct lw w;
    char *log;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, OK_HELPER);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    sleeps(&w);
    restart(&w); /* what was saved is remembered */
    lw_adopt(&w, 1, 5, STK_JOB_WAITING, true, true, NULL, lw_sh(&w, COUNTS, ""));
    lw_spin(&w, 50);
    lw_resume(&w, 1, 6, 6);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    runs(&w);
    log = lw_read(&w, "helper.log");
    assert_non_null(strstr(log, "suspend --lock-timeout-ms 10000 "));
    assert_non_null(strstr(log, "resume --gpu GPU-2 --need-mib 744 --move GPU-0=GPU-1 "
                                "--move GPU-1=GPU-2 --wait-ms 60000 "));
    free(log);
    end(&w, 6);
}

/* The only CPU of the job's process. */
static void runs_on(struct lw *w, const char *cpu)
{
    struct stk_local_info info;
    cpu_set_t set;

    assert_int_equal(stk_local_info(w->e, 1, &info), 0);
    assert_int_equal(sched_getaffinity(info.tasks[0].pid, sizeof(set), &set), 0);
    assert_int_equal(CPU_COUNT(&set), 1);
    assert_true(CPU_ISSET((size_t)strtoul(cpu, NULL, 10), &set));
}

static void on_other_gpus_it_runs_on_the_cpus_near_those(void **state)
{
    char cpu[2][8];
    struct lw w;

    (void)state;
    if (!lw_two_cpus(cpu))
        skip();
    lw_open(&w);
    w.cpus[0] = cpu[0];
    w.cpus[1] = cpu[1];
    restart(&w);
    begin(&w, "");
    runs_on(&w, cpu[0]);
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    lw_resume(&w, 1, 6, 0x30);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    runs(&w);
    runs_on(&w, cpu[1]);
    end(&w, 6);
}

static void what_cannot_be_saved_is_stopped_instead(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, "echo '{\"ok\":false,\"code\":801,\"why\":\"not supported\"}'; exit 1");
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_EVICTED);
    assert_non_null(strstr(w.notes, "not suspended: not supported; stopped instead"));
    lw_close(&w);
}

static void memory_is_counted_before_a_suspend(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, OK_HELPER);
    w.gpu_used_mib = 1ULL << 40;
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_EVICTED);
    assert_non_null(strstr(w.notes, "do not fit into"));
    assert_null(lw_read(&w, "helper.log"));
    lw_close(&w);
}

/* It goes on when the daemon is killed; two at work on one process would get in each other's way.
 */
static void a_stoker_gpu_of_an_earlier_daemon_is_let_finish(void **state)
{
    const struct stk_stop stop = {{1}, 5, STK_CAUSE_EVICTED, true, false};
    struct lw w;
    char *log;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, "mkdir $0.busy || echo two at once >>$0.log; echo begin >>$0.log; sleep 0.5; "
                      "rmdir $0.busy; echo end >>$0.log; " OK_HELPER);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    lw_until_text(&w, "../gpu-helper.log", "begin\n");
    w.adopt_mask = 3;
    restart(&w);
    lw_adopt(&w, 1, 5, STK_JOB_STOPPING, false, false, &stop, lw_sh(&w, COUNTS, ""));
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    log = lw_read(&w, "../gpu-helper.log");
    assert_string_equal(log, "begin\nend\nbegin\nend\n");
    free(log);
    sleeps(&w);
    lw_close(&w);
}

static void a_restore_that_the_driver_refuses_queues_it_again(void **state)
{
    struct stk_event ev;
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, "case $1 in suspend) " OK_HELPER
                      ";; *) echo '{\"ok\":false,\"why\":\"no memory on the GPU\"}';; esac");
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    lw_resume(&w, 1, 6, 3);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_EVICTED);
    assert_int_equal(ev.lease, 6);
    assert_string_equal(w.note, "could not be resumed: no memory on the GPU; it starts anew");
    lw_close(&w);
}

#define NO_ROOM                                                                                    \
    "case $1 in suspend) " OK_HELPER ";; *) [ $(grep -c resume $0.log) -gt %d ] && " OK_HELPER     \
    " || echo '{\"ok\":false,\"no_room\":true,\"why\":\"no room\"}';; esac"

static bool was_noted(void *ctx)
{
    const struct lw *w = ctx;

    return strstr(w->notes, "not resumed yet") != NULL;
}

/* The first resumes find the GPU full. */
static void full(struct lw *w, int times)
{
    char body[1024];

    (void)snprintf(body, sizeof(body), "echo $1 >>$0.log; " NO_ROOM, times);
    lw_gpu_helper(w, body);
    begin(w, "");
    lw_stop(w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(w, 1, STK_EV_SUSPENDED);
    lw_resume(w, 1, 6, 3);
}

static void a_restore_without_room_is_tried_again(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    full(&w, 2);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    assert_non_null(strstr(w.notes, "not resumed yet: no room"));
    runs(&w);
    end(&w, 6);
}

static void a_job_that_waits_for_room_sleeps_and_can_be_told_to_sleep(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    full(&w, 3);
    assert_true(lw_until(&w, was_noted, &w));
    lw_stop(&w, 1, 6, STK_CAUSE_EVICTED, true);
    assert_int_equal(lw_wait(&w, 1, STK_EV_SUSPENDED).lease, 6);
    sleeps(&w);
    lw_resume(&w, 1, 7, 3);
    w.notes[0] = '\0';
    assert_true(lw_until(&w, was_noted, &w));
    end(&w, 7);
}

static void a_cancel_while_saving_waits_for_the_helper(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, "while [ ! -e ${0%/*}/home/go ]; do sleep 0.01; done; " OK_HELPER);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    lw_until_text(&w, "helper.log", "suspend");
    lw_stop(&w, 1, 5, STK_CAUSE_CANCELLED, false);
    lw_spin(&w, 100);
    assert_false(lw_has(&w, 1, STK_EV_EXITED));
    lw_say_go(&w);
    end(&w, 5);
}

static void a_restart_while_saving_does_it_again(void **state)
{
    const struct stk_stop stop = {{1}, 5, STK_CAUSE_EVICTED, true, false};
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, "sleep 0.3; " OK_HELPER);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    lw_until_text(&w, "helper.log", "suspend");
    w.adopt_mask = 3;
    restart(&w);
    lw_adopt(&w, 1, 5, STK_JOB_STOPPING, false, false, &stop, lw_sh(&w, COUNTS, ""));
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    sleeps(&w);
    end(&w, 5);
}

/* Nothing is lost with it: what it has done half can be done again. */
static void a_helper_that_is_killed_is_run_again(void **state)
{
    struct lw w;
    char body[512];

    (void)state;
    lw_open(&w);
    (void)snprintf(body, sizeof(body),
                   "[ -e %s/$1.killed ] || { >%s/$1.killed; kill -9 $$; }; " OK_HELPER, w.dir,
                   w.dir);
    lw_gpu_helper(&w, body);
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    sleeps(&w);
    lw_resume(&w, 1, 6, 3);
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    runs(&w);
    end(&w, 6);
}

static void a_helper_that_always_dies_is_given_up(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    lw_gpu_helper(&w, "kill -9 $$");
    begin(&w, "");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, true);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_EVICTED);
    assert_non_null(strstr(w.notes, "not suspended: stoker-gpu gave no answer"));
    lw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_is_lost_or_done_twice),
        cmocka_unit_test(a_job_that_must_not_sleep_is_stopped),
        cmocka_unit_test(a_sleeping_job_can_be_cancelled),
        cmocka_unit_test(one_that_has_ended_is_not_said_to_sleep),
        cmocka_unit_test(time_asleep_is_not_counted),
        cmocka_unit_test(a_process_that_was_stopped_before_stays_stopped),
        cmocka_unit_test(a_sleeping_job_survives_a_restart),
        cmocka_unit_test(a_suspend_that_was_under_way_is_finished),
        cmocka_unit_test(a_resume_that_was_under_way_is_finished),
        cmocka_unit_test(a_sleeping_job_whose_processes_are_gone_cannot_be_woken),
        cmocka_unit_test(what_is_on_a_gpu_is_saved_first_and_restored_last),
        cmocka_unit_test(on_other_gpus_it_runs_on_the_cpus_near_those),
        cmocka_unit_test(what_cannot_be_saved_is_stopped_instead),
        cmocka_unit_test(memory_is_counted_before_a_suspend),
        cmocka_unit_test(a_stoker_gpu_of_an_earlier_daemon_is_let_finish),
        cmocka_unit_test(a_restore_that_the_driver_refuses_queues_it_again),
        cmocka_unit_test(a_restore_without_room_is_tried_again),
        cmocka_unit_test(a_job_that_waits_for_room_sleeps_and_can_be_told_to_sleep),
        cmocka_unit_test(a_cancel_while_saving_waits_for_the_helper),
        cmocka_unit_test(a_restart_while_saving_does_it_again),
        cmocka_unit_test(a_helper_that_is_killed_is_run_again),
        cmocka_unit_test(a_helper_that_always_dies_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
