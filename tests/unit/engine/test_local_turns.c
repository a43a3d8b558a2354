/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: jobs that share a GPU in turns. All the time the processes of all jobs are
 * looked at: those of one job at most may be able to run. And each job writes its number into one
 * file at every step, so two that ran at once would show by more changes than there were turns. */
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

#define GPU 4

/* Steps of job N into steps.N, and its number into "all" at each: so many, or, with 0, until it is
 * told to go (lw_say_go). How many it has made is in last.N at its end. */
static const char *counts(const struct lw *w, uint32_t number, uint32_t steps, const char *more)
{
    char script[512];

    (void)snprintf(script, sizeof(script),
                   "i=0; while [ $i -lt %u -o %u = 0 -a ! -e go ]; do i=$((i+1)); "
                   "echo $i >>steps.%u; echo %u >>all; sleep 0.01; done; echo $i >last.%u",
                   steps, steps, number, number, number);
    return lw_sh(w, script, more);
}

static void seat_of(struct lw *w, uint32_t number, uint32_t lease, uint16_t milli, const char *spec)
{
    const struct stk_piece piece = {.gpus = 1, .tasks = 1, .mask = GPU};
    const struct stk_start s = {.job = {number},
                                .number = number,
                                .lease = lease,
                                .gpus = 1,
                                .pieces = &piece,
                                .n_pieces = 1,
                                .share = STK_SHARE_TIME,
                                .gpu_milli = milli,
                                .spec = spec};

    assert_int_equal(w->e->ops->start(w->e, 0, &s), 0);
}

static void seat(struct lw *w, uint32_t number, uint32_t lease, const char *spec)
{
    seat_of(w, number, lease, 333, spec);
}

static long steps(const struct lw *w, uint32_t number)
{
    char name[32], *text, *p;
    long n = 0;

    (void)snprintf(name, sizeof(name), "steps.%u", number);
    text = p = lw_read(w, name);
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

/* How often the turn went from one job to another. */
static long switches(const struct lw *w)
{
    char *text = lw_read(w, "all"), *p = text;
    long n = 0, last = 0;

    while (p && *p) {
        long v = strtol(p, &p, 10);

        n += last && v != last;
        last = v;
        p += *p == '\n';
    }
    free(text);
    return n;
}

/* Not one process of the job could run. 'D': its child was stopped between vfork() and exec(). */
static bool stopped(const struct lw *w, uint32_t number)
{
    struct stk_local_info info;
    struct stk_proc *list;
    bool all = true;
    size_t n;

    if (stk_local_info(w->e, number, &info) < 0 || info.shim <= 0)
        return true;
    assert_int_equal(stk_proc_list(&list, &n), 0);
    n = stk_proc_below(list, n, info.shim);
    for (size_t i = 0; i < n; i++)
        all = all && strchr("TDZX", list[i].state);
    free(list);
    return all;
}

struct watch { /* jobs 1 to n */
    struct lw *w;
    uint32_t n;
    long both; /* looks at which more than one could run */
    long looks;
    uint32_t killed; /* job that may be on its way out: the kernel runs it for that. 0: none */
    uint32_t done;   /* job that is waited for */
    long steps;      /* 0: its end */
};

static bool look(void *ctx)
{
    struct watch *x = ctx;
    uint32_t awake = 0;

    for (uint32_t i = 1; i <= x->n; i++)
        awake += i != x->killed && !stopped(x->w, i);
    x->both += awake > 1;
    x->looks++;
    if (x->steps)
        return steps(x->w, x->done) >= x->steps;
    return lw_has(x->w, x->done, STK_EV_EXITED);
}

static void say_where(const struct lw *w, uint32_t number)
{
    struct stk_local_info info = {0};
    struct stk_local_turn t;
    bool has = stk_local_turn(w->e, number, &t);

    (void)stk_local_info(w->e, number, &info);
    print_error("job %u: state %d, supervisor %d, stopped %d, step %ld, %s: %s\n", number,
                (int)info.state, (int)info.shim, stopped(w, number), steps(w, number),
                has ? "a turn" : "no turn", t.text);
}

static void until(struct watch *x, uint32_t job, long n)
{
    x->done = job;
    x->steps = n;
    if (!lw_until(x->w, look, x)) {
        for (uint32_t i = 1; i <= x->n; i++)
            say_where(x->w, i);
        fail_msg("job %u did not come to step %ld: %ld; %s", job, n, steps(x->w, job), x->w->note);
    }
    assert_int_equal(x->both, 0);
}

static void ends(struct watch *x, uint32_t job, enum stk_cause cause)
{
    until(x, job, 0);
    assert_int_equal(lw_wait(x->w, job, STK_EV_EXITED).u.exit.cause, cause);
}

/* And it has made each step that it says. */
static void ends_well(struct watch *x, uint32_t job)
{
    char name[32], *last;

    ends(x, job, STK_CAUSE_OK);
    (void)snprintf(name, sizeof(name), "last.%u", job);
    last = lw_read(x->w, name);
    assert_non_null(last);
    assert_int_equal(strtol(last, NULL, 10), steps(x->w, job));
    free(last);
}

static void open_turns(struct lw *w, uint32_t quantum_ms)
{
    lw_open(w);
    w->quantum_ms = quantum_ms;
    w->switch_pct = 90;
    lw_engine_close(w);
    lw_engine_open(w);
}

static void turn_of(const struct lw *w, uint32_t number, struct stk_local_turn *ret)
{
    assert_true(stk_local_turn(w->e, number, ret));
}

static bool has_turn(void *ctx)
{
    struct watch *x = ctx;
    struct stk_local_turn t;

    (void)look(x);
    turn_of(x->w, x->done, &t);
    return t.has && t.place == 0 && t.left_s >= 0;
}

/* From here on turns last for as long as the test takes. */
static void hold_turns(const struct watch *x)
{
    stk_local_turns_set(x->w->e, 3600000, 90);
}

static bool has_turn_and_keeps_it(void *ctx)
{
    if (!has_turn(ctx))
        return false;
    hold_turns(ctx);
    return true;
}

static bool switched_often(void *ctx)
{
    struct watch *x = ctx;

    (void)look(x);
    return switches(x->w) >= 4;
}

static void never_two_at_once_and_every_step_is_done(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 3, .done = 3};
    uint64_t turns;
    double s;

    (void)state;
    open_turns(&w, 100);
    for (uint32_t i = 1; i <= 3; i++)
        seat(&w, i, i, counts(&w, i, 0, ""));
    assert_true(lw_until(&w, has_turn, &x));
    assert_true(lw_until(&w, switched_often, &x));
    lw_say_go(&w);
    for (uint32_t i = 1; i <= 3; i++)
        ends_well(&x, i);
    for (uint32_t i = 1; i <= 3; i++) {
        (void)lw_wait(&w, i, STK_EV_STARTED);
        assert_false(lw_has(&w, i, STK_EV_STARTED)); /* once, whatever it slept */
        assert_false(lw_has(&w, i, STK_EV_SUSPENDED));
    }
    stk_local_turns_total(w.e, &turns, &s);
    assert_true(switches(&w) < (long)turns && s > 0);
    lw_close(&w);
}

/* Its turn, when it has it, lasts for as long as the test takes: how many seconds. */
static int64_t seconds_of(struct watch *x, uint32_t job)
{
    struct stk_local_turn t;

    x->done = job;
    stk_local_turns_set(x->w->e, 1, 90);
    assert_true(lw_until(x->w, has_turn_and_keeps_it, x));
    assert_int_equal(x->both, 0);
    turn_of(x->w, job, &t);
    return t.left_s;
}

/* Four times as long. */
static void who_has_more_of_the_gpu_has_it_for_longer(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    int64_t more, less;

    (void)state;
    open_turns(&w, 3600000);
    seat_of(&w, 1, 1, 800, counts(&w, 1, 0, ""));
    seat_of(&w, 2, 2, 200, counts(&w, 2, 0, ""));
    less = seconds_of(&x, 2);
    more = seconds_of(&x, 1);
    assert_true(more > 5700 && more <= 5760);
    assert_true(less > 1380 && less <= 1440);
    lw_close(&w);
}

static void a_lone_job_is_left_alone(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 1};
    struct stk_local_turn t;

    (void)state;
    open_turns(&w, 20);
    seat(&w, 1, 1, counts(&w, 1, 0, ""));
    until(&x, 1, 30);
    turn_of(&w, 1, &t);
    assert_int_equal(t.turns, 1);
    assert_int_equal(t.sleep_ms, 0);
    assert_non_null(strstr(t.text, "nobody waits"));
    lw_say_go(&w);
    ends_well(&x, 1);
    lw_close(&w);
}

static void one_that_ends_hands_over_at_once(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    struct stk_local_turn t;

    (void)state;
    open_turns(&w, 3600000);
    seat(&w, 1, 1, counts(&w, 1, 0, ""));
    seat(&w, 2, 2, counts(&w, 2, 20, ""));
    until(&x, 1, 5);
    turn_of(&w, 2, &t);
    assert_true(!t.has && t.place == 1);
    assert_string_equal(t.text, "is started in its turn, 1st");
    assert_false(lw_has(&w, 2, STK_EV_STARTED));
    lw_say_go(&w);
    ends(&x, 1, STK_CAUSE_OK);
    ends(&x, 2, STK_CAUSE_OK);
    assert_int_equal(switches(&w), 1);
    lw_close(&w);
}

static bool sleeps(void *ctx)
{
    const struct watch *x = ctx;
    struct stk_local_turn t;

    if (!stk_local_turn(x->w->e, x->done, &t) || t.has || steps(x->w, x->done) == 0)
        return false;
    hold_turns(x);
    return true;
}

/* Jobs 1 and 2; job 'n' has run and sleeps, the other has its turn for as long as the test takes.
 */
static void until_sleeps(struct lw *w, struct watch *x, uint32_t n)
{
    seat(w, 1, 1, counts(w, 1, 4000, ""));
    seat(w, 2, 2, counts(w, 2, 4000, ""));
    x->done = n;
    assert_true(lw_until(w, sleeps, x));
    until(x, 3 - n, 1);
}

static void the_sleeping_one_can_be_cancelled_and_does_nothing_more(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    long before;

    (void)state;
    open_turns(&w, 100);
    until_sleeps(&w, &x, 1);
    before = steps(&w, 1);
    lw_stop(&w, 1, 1, STK_CAUSE_CANCELLED, false);
    x.killed = 1;
    ends(&x, 1, STK_CAUSE_CANCELLED);
    assert_int_equal(steps(&w, 1), before);
    until(&x, 2, steps(&w, 2) + 5); /* the other has not noticed */
    lw_stop(&w, 2, 2, STK_CAUSE_CANCELLED, false);
    ends(&x, 2, STK_CAUSE_CANCELLED);
    lw_close(&w);
}

static void one_that_has_not_begun_can_be_cancelled(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};

    (void)state;
    open_turns(&w, 3600000);
    seat(&w, 1, 1, counts(&w, 1, 4000, ""));
    seat(&w, 2, 2, counts(&w, 2, 4000, ""));
    until(&x, 1, 3);
    lw_stop(&w, 2, 2, STK_CAUSE_CANCELLED, false);
    ends(&x, 2, STK_CAUSE_CANCELLED);
    assert_int_equal(steps(&w, 2), 0);
    lw_close(&w);
}

/* The core has its own reasons: whoever it suspends is out of the line until it says otherwise. */
static void who_is_suspended_takes_no_turns(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    struct stk_local_turn t;
    long before;

    (void)state;
    open_turns(&w, 100);
    until_sleeps(&w, &x, 1);
    lw_stop(&w, 1, 1, STK_CAUSE_EVICTED, true); /* it sleeps already */
    assert_int_equal(lw_wait(&w, 1, STK_EV_SUSPENDED).lease, 1);
    assert_false(stk_local_turn(w.e, 1, &t));
    stk_local_turns_set(w.e, 50, 90);
    before = steps(&w, 1);
    until(&x, 2, steps(&w, 2) + 30); /* many turns, were there another */
    assert_int_equal(steps(&w, 1), before);
    lw_stop(&w, 2, 2, STK_CAUSE_EVICTED, true); /* it has its turn */
    assert_int_equal(lw_wait(&w, 2, STK_EV_SUSPENDED).lease, 2);
    before = steps(&w, 2);
    while (lw_has(&w, 1, STK_EV_STARTED))
        (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_resume_seat(&w, 1, 3, GPU);
    assert_int_equal(lw_wait(&w, 1, STK_EV_STARTED).lease, 3);
    until(&x, 1, steps(&w, 1) + 10);
    assert_int_equal(steps(&w, 2), before);
    lw_resume_seat(&w, 2, 4, GPU);
    until(&x, 2, before + 20);
    until(&x, 1, steps(&w, 1) + 10);
    lw_close(&w);
}

/* Both together take as long as one after the other; by the clock on the wall each would be over
 * after 2 seconds. */
static void time_limits_count_a_jobs_own_turns(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    uint64_t from;

    (void)state;
    open_turns(&w, 100);
    from = uv_hrtime();
    seat(&w, 1, 1, counts(&w, 1, 4000, "\"time_limit_s\":2"));
    seat(&w, 2, 2, counts(&w, 2, 4000, "\"time_limit_s\":2"));
    ends(&x, 1, STK_CAUSE_TIMEOUT);
    ends(&x, 2, STK_CAUSE_TIMEOUT);
    assert_true(uv_hrtime() - from > 3500000000U);
    assert_true(steps(&w, 1) > 0 && steps(&w, 2) > 0);
    lw_close(&w);
}

struct kept { /* what job 1 says of its turn */
    const struct lw *w;
    const char *text;
};

static bool is_kept(void *ctx)
{
    const struct kept *k = ctx;
    struct stk_local_turn t;

    turn_of(k->w, 1, &t);
    return strncmp(t.text, k->text, strlen(k->text)) == 0;
}

/* Job 1 says so between two tries. */
static void keeps_its_turn(struct lw *w, const char *text)
{
    struct kept k = {w, text};

    assert_true(lw_until(w, is_kept, &k));
}

static void supervisor_gets(const struct lw *w, uint32_t number, int sig)
{
    struct stk_local_info info;

    assert_int_equal(stk_local_info(w->e, number, &info), 0);
    assert_int_equal(kill(info.shim, sig), 0);
}

/* The core does not know of turns: it may want one to sleep that is just being woken. The
 * supervisor is made to take its time, so that it is seen on every machine. */
static void one_that_is_just_woken_can_be_told_to_sleep(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    long before;

    (void)state;
    open_turns(&w, 100);
    until_sleeps(&w, &x, 1);
    supervisor_gets(&w, 1, SIGSTOP);
    stk_local_turns_set(w.e, 50, 90);
    keeps_its_turn(&w, "has its turn, it is being resumed");
    lw_stop(&w, 1, 1, STK_CAUSE_EVICTED, true);
    supervisor_gets(&w, 1, SIGCONT);
    (void)lw_wait(&w, 1, STK_EV_SUSPENDED);
    before = steps(&w, 1);
    until(&x, 2, steps(&w, 2) + 10);
    assert_int_equal(steps(&w, 1), before);
    lw_resume_seat(&w, 1, 3, GPU);
    until(&x, 1, before + 10); /* it has lost nothing */
    lw_close(&w);
}

static void one_that_cannot_sleep_keeps_its_turn_and_says_so(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    struct stk_local_turn t;

    (void)state;
    open_turns(&w, 50);
    seat(&w, 1, 1, counts(&w, 1, 0, "\"suspend\":\"never\""));
    seat(&w, 2, 2, counts(&w, 2, 20, ""));
    keeps_its_turn(&w, "keeps its turn, it cannot be suspended: its description");
    turn_of(&w, 2, &t);
    assert_string_equal(t.text,
                        "is started in its turn, 1st; the one that has it cannot be suspended");
    assert_non_null(strstr(w.notes, "cannot be suspended: its description says"));
    lw_say_go(&w);
    ends_well(&x, 1);
    ends_well(&x, 2);
    assert_int_equal(switches(&w), 1);
    lw_close(&w);
}

static bool many_turns(void *ctx)
{
    const struct watch *x = ctx;
    struct stk_local_turn t;

    return stk_local_turn(x->w->e, 1, &t) && t.turns > 15;
}

static void the_run_file_does_not_grow_with_the_turns(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    struct stat st;
    char path[128];

    (void)state;
    open_turns(&w, 1);
    seat(&w, 1, 1, counts(&w, 1, 4000, ""));
    seat(&w, 2, 2, counts(&w, 2, 4000, ""));
    assert_true(lw_until(&w, many_turns, &x));
    (void)snprintf(path, sizeof(path), "%s/run/1.1", w.dir);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 4096);
    lw_close(&w);
}

static bool orphaned(void *ctx)
{
    const struct watch *x = ctx;
    struct stk_local_info info;

    return stk_local_info(x->w->e, x->done, &info) == 0 && info.state == STK_LOCAL_ORPHANED;
}

static void a_sleeping_one_without_supervisor_gets_its_turn(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    long before;

    (void)state;
    open_turns(&w, 100);
    until_sleeps(&w, &x, 1);
    before = steps(&w, 1);
    supervisor_gets(&w, 1, SIGKILL);
    x.done = 1;
    assert_true(lw_until(&w, orphaned, &x));
    lw_spin(&w, 300);
    assert_int_equal(steps(&w, 1), before);
    lw_stop(&w, 2, 2, STK_CAUSE_CANCELLED, false);
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.cause, STK_CAUSE_CANCELLED);
    x.n = 0;
    until(&x, 1, before + 5);
    lw_stop(&w, 1, 1, STK_CAUSE_CANCELLED, false);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_CANCELLED);
    lw_close(&w);
}

/* ---- the daemon goes and comes back ---- */

static void adopt(struct lw *w, uint32_t n)
{
    static const struct stk_piece piece = {.gpus = 1, .tasks = 1, .mask = GPU};
    static char spec[8][4096];
    struct stk_adopt list[8];
    struct stk_err err = {0};
    uint32_t k = 0;

    for (uint32_t i = 1; i <= n; i++) {
        bool started = steps(w, i) > 0;

        (void)snprintf(spec[k], sizeof(spec[k]), "%s", counts(w, i, 40, ""));
        list[k] = (struct stk_adopt){.start = {.job = {i},
                                               .number = i,
                                               .lease = i,
                                               .gpus = 1,
                                               .pieces = &piece,
                                               .n_pieces = 1,
                                               .share = STK_SHARE_TIME,
                                               .spec = spec[k]},
                                     .state = started ? STK_JOB_RUNNING : STK_JOB_PLACED,
                                     .stop = {{i}, i, STK_CAUSE_EVICTED, false, false}};
        k++;
    }
    if (w->e->ops->adopt(w->e, 0, list, k, &err) < 0)
        fail_msg("%s", err.text);
}

/* The engine is gone at any moment, also in the middle of a switch, and comes back to whatever is
 * there then. */
static void a_restart_at_any_time_leaves_exactly_one_running(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        struct lw w;
        struct watch x = {.w = &w, .n = 3};

        open_turns(&w, 30);
        for (uint32_t i = 1; i <= 3; i++)
            seat(&w, i, i, counts(&w, i, 40, ""));
        until(&x, 1, 1);
        for (int k = 0; k < 4; k++) {
            lw_spin(&w, 7 * (round + 1) + 31 * k);
            lw_engine_close(&w);
            lw_engine_open(&w);
            adopt(&w, 3);
        }
        for (uint32_t i = 1; i <= 3; i++) {
            ends(&x, i, STK_CAUSE_OK);
            assert_int_equal(steps(&w, i), 40);
        }
        lw_close(&w);
    }
}

/* ---- with a stoker-gpu ---- */

#define OK_HELPER                                                                                  \
    "echo "                                                                                        \
    "'{\"ok\":true,\"gpus\":[{\"uuid\":\"GPU-2\",\"held_mib\":744}]}'"

static bool second_turn(void *ctx)
{
    const struct watch *x = ctx;
    struct stk_local_turn t;

    return stk_local_turn(x->w->e, 1, &t) && t.turns >= 2 && t.wake_ms > 0;
}

/* A switch takes 0.4 s here and may take a quarter of the time: a turn lasts 1.2 s, whatever the
 * quantum is. */
static void a_turn_is_no_shorter_than_switching_is_worth(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    struct stk_local_turn t;
    uint64_t before, after;
    double s;

    (void)state;
    open_turns(&w, 1);
    lw_gpu_helper(&w, "sleep 0.2; " OK_HELPER);
    stk_local_turns_set(w.e, 1, 25);
    seat(&w, 1, 1, counts(&w, 1, 4000, ""));
    seat(&w, 2, 2, counts(&w, 2, 4000, ""));
    assert_true(lw_until(&w, second_turn, &x));
    turn_of(&w, 1, &t);
    assert_true(t.sleep_ms >= 200 && t.wake_ms >= 200);
    stk_local_turns_total(w.e, &before, &s);
    lw_spin(&w, 2500);
    stk_local_turns_total(w.e, &after, &s);
    assert_true(after - before <= 2); /* else it would be six */
    lw_close(&w);
}

static void what_is_on_the_gpu_is_saved_and_put_back_each_turn(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};
    char *log;

    (void)state;
    open_turns(&w, 100);
    lw_gpu_helper(&w, OK_HELPER);
    seat(&w, 1, 1, counts(&w, 1, 0, ""));
    seat(&w, 2, 2, counts(&w, 2, 0, ""));
    assert_true(lw_until(&w, switched_often, &x));
    lw_say_go(&w);
    ends_well(&x, 1);
    ends_well(&x, 2);
    log = lw_read(&w, "helper.log");
    assert_non_null(strstr(log, "suspend --lock-timeout-ms 10000 "));
    assert_non_null(strstr(log, "resume --gpu GPU-2 --need-mib 744 --wait-ms 60000 "));
    free(log);
    lw_close(&w);
}

static void a_driver_that_refuses_leaves_the_turn_where_it_is(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};

    (void)state;
    open_turns(&w, 50);
    lw_gpu_helper(&w, "echo '{\"ok\":false,\"code\":801,\"why\":\"a client of MPS\"}'; exit 1");
    seat(&w, 1, 1, counts(&w, 1, 0, ""));
    seat(&w, 2, 2, counts(&w, 2, 10, ""));
    keeps_its_turn(&w, "keeps its turn, it cannot be suspended: a client of MPS");
    until(&x, 1, 40);
    assert_int_equal(steps(&w, 2), 0);
    lw_say_go(&w);
    ends(&x, 1, STK_CAUSE_OK);
    ends(&x, 2, STK_CAUSE_OK);
    lw_close(&w);
}

/* A driver that gives up half way may leave a process that waits for ever. */
static void what_was_left_half_saved_is_put_back(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};

    (void)state;
    open_turns(&w, 50);
    lw_gpu_helper(&w,
                  "case $1 in suspend) echo '{\"ok\":false,\"why\":\"no host memory\",\"left\":"
                  "[{\"pid\":1,\"state\":\"checkpointed\"}]}';; *) echo '{\"ok\":true}';; esac");
    seat(&w, 1, 1, counts(&w, 1, 0, ""));
    seat(&w, 2, 2, counts(&w, 2, 10, ""));
    lw_until_text(&w, "helper.log", "\nresume --wait-ms 60000 "); /* whatever it holds */
    lw_say_go(&w);
    ends_well(&x, 1);
    ends_well(&x, 2);
    lw_close(&w);
}

static void no_room_for_the_one_is_room_for_the_next(void **state)
{
    struct lw w;
    struct watch x = {.w = &w, .n = 2};

    (void)state;
    open_turns(&w, 200);
    lw_gpu_helper(&w,
                  "case $1 in suspend) " OK_HELPER ";; *) test -e $0.full && echo "
                  "'{\"ok\":false,\"no_room\":true,\"why\":\"no room\"}' || " OK_HELPER ";; esac");
    until_sleeps(&w, &x, 1);
    {
        char path[160];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s.full", w.gpu_helper);
        f = fopen(path, "we");
        assert_non_null(f);
        (void)fclose(f);
        seat(&w, 3, 3, counts(&w, 3, 10, "")); /* needs no resume */
        stk_local_turns_set(w.e, 50, 90);
        ends(&x, 3, STK_CAUSE_OK);
        assert_int_equal(unlink(path), 0);
    }
    until(&x, 1, steps(&w, 1) + 3);
    until(&x, 2, steps(&w, 2) + 3);
    assert_non_null(strstr(w.notes, "not resumed yet: no room"));
    lw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_two_at_once_and_every_step_is_done),
        cmocka_unit_test(who_has_more_of_the_gpu_has_it_for_longer),
        cmocka_unit_test(a_lone_job_is_left_alone),
        cmocka_unit_test(one_that_ends_hands_over_at_once),
        cmocka_unit_test(the_sleeping_one_can_be_cancelled_and_does_nothing_more),
        cmocka_unit_test(one_that_has_not_begun_can_be_cancelled),
        cmocka_unit_test(who_is_suspended_takes_no_turns),
        cmocka_unit_test(time_limits_count_a_jobs_own_turns),
        cmocka_unit_test(one_that_is_just_woken_can_be_told_to_sleep),
        cmocka_unit_test(one_that_cannot_sleep_keeps_its_turn_and_says_so),
        cmocka_unit_test(a_turn_is_no_shorter_than_switching_is_worth),
        cmocka_unit_test(the_run_file_does_not_grow_with_the_turns),
        cmocka_unit_test(a_sleeping_one_without_supervisor_gets_its_turn),
        cmocka_unit_test(a_restart_at_any_time_leaves_exactly_one_running),
        cmocka_unit_test(what_is_on_the_gpu_is_saved_and_put_back_each_turn),
        cmocka_unit_test(a_driver_that_refuses_leaves_the_turn_where_it_is),
        cmocka_unit_test(what_was_left_half_saved_is_put_back),
        cmocka_unit_test(no_room_for_the_one_is_room_for_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
