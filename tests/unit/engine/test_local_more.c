/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: logs that grow, batch items, terminals, processes started by hand. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/local.h"
#include "sys/procs.h"

static bool is_cut(void *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_blocks * 512 > 1 << 18 &&
           st.st_blocks * 512 <= (1 << 20) + (1 << 17) + 65536;
}

/* At most 'most' bytes, all of them text, from "first" to "last". */
static void check_text(struct lw *w, const char *name, size_t most)
{
    char *text = lw_read(w, name);
    struct stat st;
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", w->home, name);
    assert_int_equal(stat(path, &st), 0);
    assert_true((size_t)st.st_size <= most);
    assert_int_equal(strlen(text), st.st_size); /* no zeros */
    assert_memory_equal(text, "first\n", 6);
    assert_string_equal(text + st.st_size - 5, "last\n");
    assert_non_null(strstr(text, "\n[stoker: the log reached its size limit, left out:"));
    free(text);
}

static void a_log_over_its_cap_loses_its_middle(void **state)
{
    struct lw w;
    char path[256];

    (void)state;
    lw_open(&w);
    (void)snprintf(path, sizeof(path), "%s/stoker-1.out", w.home);
    lw_start(&w, 1, 5,
             lw_sh(&w,
                   "echo first; yes 'some words' | head -c 4194304; while [ ! -e go ]; do "
                   "sleep 0.05; done; echo last",
                   "\"log_max_mib\":1"));
    assert_true(lw_until(&w, is_cut, path));
    lw_say_go(&w);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    check_text(&w, "stoker-1.out", 1 << 20);
    lw_close(&w);
}

/* It is over before anybody looks. */
static void the_cap_holds_for_short_jobs(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    assert_int_equal(lw_run(&w, 1,
                            lw_sh(&w, "echo first; yes 'some words' | head -c 8000000; echo last",
                                  "\"log_max_mib\":1"))
                         .u.exit.cause,
                     STK_CAUSE_OK);
    check_text(&w, "stoker-1.out", 1 << 20);
    lw_close(&w);
}

static void every_item_is_run_once(void **state)
{
    struct stk_event ev;
    struct lw w;
    char *text;

    (void)state;
    lw_open(&w);
    w.n_items = 5;
    ev = lw_run(
        &w, 1,
        lw_spec(&w, "\"kind\":\"batch\",\"items\":[\"a\",\"b\",\"c c\",\"d\",\"e\"],\"workers\":2,"
                    "\"stdout\":\"out.%%t\",\"command\":[\"sh\",\"-c\",\"echo $STOKER_ITEM_INDEX "
                    "$STOKER_ITEM $0 >>all; [ $STOKER_ITEM_INDEX != 3 ]\",\"<{}>\"]"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    assert_string_equal(w.note, "1 of 5 items failed");
    assert_int_equal(w.items_done, 5);
    assert_int_equal(w.item_code[0], 0);
    assert_int_equal(w.item_code[3], 1);
    text = lw_read(&w, "all");
    assert_non_null(strstr(text, "0 a <a>\n"));
    assert_non_null(strstr(text, "2 c c <c c>\n"));
    assert_non_null(strstr(text, "4 e <e>\n"));
    free(text);
    lw_close(&w);
}

static void items_go_on_after_a_restart(void **state)
{
    const char *more = "\"items\":[\"a\",\"b\",\"c\"]";
    const char *script = "echo $STOKER_ITEM >>all; while [ ! -e go ]; do sleep 0.01; done";
    struct lw w;
    char *text;

    (void)state;
    lw_open(&w);
    w.n_items = 3;
    lw_start(&w, 1, 5, lw_sh(&w, script, more));
    lw_until_text(&w, "all", "a\n");
    lw_engine_close(&w);
    lw_say_go(&w);
    (void)usleep(200000); /* the first item ends, and nobody is there to hand out the next */
    lw_engine_open(&w);
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, lw_sh(&w, script, more));
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    text = lw_read(&w, "all");
    assert_string_equal(text, "a\nb\nc\n");
    free(text);
    assert_true(w.items_done >= 3);
    lw_close(&w);
}

static void a_batch_job_can_be_stopped(void **state)
{
    struct lw w;

    (void)state;
    lw_open(&w);
    w.n_items = 3;
    lw_start(&w, 1, 5, lw_sh(&w, "echo ready; exec sleep 1000", "\"items\":[\"a\",\"b\",\"c\"]"));
    lw_until_text(&w, "stoker-1.out", "ready");
    lw_stop(&w, 1, 5, STK_CAUSE_EVICTED, false);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_EVICTED);
    assert_int_equal(w.items_done, 0); /* it is still to be done */
    lw_close(&w);
}

/* A client of a session: what it has been shown. */
struct client {
    int fd;
    char seen[65536];
    size_t n;
    const char *want;
    bool over;
};

static void attach(struct client *c, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    *c = (struct client){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
}

static void type(const struct client *c, char letter, const void *data, size_t n)
{
    unsigned char f[256] = {(unsigned char)letter, 0, 0, 0, (unsigned char)n};

    memcpy(f + 5, data, n);
    assert_int_equal(send(c->fd, f, n + 5, 0), (ssize_t)(n + 5));
}

static bool shown(void *ctx)
{
    struct client *c = ctx;
    ssize_t n = recv(c->fd, c->seen + c->n, sizeof(c->seen) - 1 - c->n, 0);

    c->n += n > 0 ? (size_t)n : 0;
    c->over = c->over || n == 0;
    for (size_t i = 0; i + strlen(c->want) <= c->n; i++) /* frames have zeros in them */
        if (memcmp(c->seen + i, c->want, strlen(c->want)) == 0)
            return true;
    return false;
}

static void sees(struct lw *w, struct client *c, const char *want)
{
    c->want = want;
    if (!lw_until(w, shown, c))
        fail_msg("was not shown '%s'", want);
}

static void a_session_is_attached_to_and_left(void **state)
{
    static const unsigned char size[4] = {0, 50, 0, 132};
    struct stk_local_info info;
    struct stk_event ev;
    struct client a, b;
    struct stat st;
    struct lw w;
    char path[256];

    (void)state;
    lw_open(&w);
    lw_start(&w, 1, 5,
             lw_spec(&w, "\"kind\":\"shell\",\"interactive\":true,\"rows\":30,\"cols\":90,\"envs\":"
                         "{\"PS1\":\"prompt> \"}"));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    (void)snprintf(path, sizeof(path), "%s", info.attach);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, w.uid);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(info.idle_s >= 0);
    attach(&a, path);
    type(&a, 'D', "stty size; tty >/dev/null && echo is-a-tty $SLURM_JOB_NAME\n", 59);
    sees(&w, &a, "30 90");
    sees(&w, &a, "is-a-tty interactive");
    type(&a, 'W', size, sizeof(size));
    type(&a, 'D', "stty size\n", 10);
    sees(&w, &a, "50 132");
    (void)close(a.fd); /* the session goes on, also over a restart */
    lw_engine_close(&w);
    lw_engine_open(&w);
    lw_adopt(&w, 1, 5, STK_JOB_RUNNING, false, false, NULL, lw_spec(&w, "\"interactive\":true"));
    attach(&a, path);
    attach(&b, path);
    sees(&w, &a, "is-a-tty"); /* the last of what was shown comes again */
    sees(&w, &b, "50 132");
    type(&b, 'D', "echo shared-$((40+2))\n", 22);
    sees(&w, &a, "shared-42");
    sees(&w, &b, "shared-42");
    type(&a, 'D', "exit 6\n", 7);
    sees(&w, &a, "exit code 6");
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.code, 6);
    assert_int_equal(access(path, F_OK), -1);
    (void)close(a.fd);
    (void)close(b.fd);
    lw_settle(&w, 1, 5);
    lw_close(&w);
}

static void only_the_user_may_attach(void **state)
{
    struct stk_local_info info;
    struct lw w;
    char path[100];
    int status = 0;
    pid_t pid;

    (void)state;
    if (geteuid() != 0) {
        skip();
        return;
    }
    lw_open(&w);
    lw_start(&w, 1, 5, lw_spec(&w, "\"interactive\":true"));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    assert_int_equal(stk_local_info(w.e, 1, &info), 0);
    (void)snprintf(path, sizeof(path), "%s", info.attach);
    assert_int_equal(chmod(path, 0666), 0); /* even if the file let them in */
    pid = fork();
    if (pid == 0) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char c;

        (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
        if (setuid(12345) < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
            _exit(2);
        _exit(recv(fd, &c, 1, 0) <= 0 ? 0 : 1); /* shown the door, and nothing else */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
    lw_close(&w);
}

static bool is_named(pid_t pid, const char *name)
{
    char path[64], text[32] = "";
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    (void)fgets(text, sizeof(text), f);
    (void)fclose(f);
    return strcmp(text, name) == 0;
}

static pid_t by_hand(const struct lw *w)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)close_range(0, ~0U, 0);
        if (geteuid() == 0 && setuid(w->uid) < 0)
            _exit(1);
        (void)execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    for (int i = 0; i < 600 && !is_named(pid, "sleep\n"); i++)
        (void)usleep(50000); /* it must be what and whose it will be */
    return pid;
}

static void a_process_started_by_hand_becomes_a_job(void **state)
{
    struct stk_err err = {0};
    struct stk_event ev;
    struct lw w;
    uint64_t start = 0;
    pid_t pid;

    (void)state;
    lw_open(&w);
    pid = by_hand(&w);
    assert_int_equal(stk_local_adopt_pid(w.e, 1, w.uid, &start, &err), -ESRCH);
    if (geteuid() == 0)
        assert_int_equal(stk_local_adopt_pid(w.e, pid, 12345, &start, &err), -EPERM);
    assert_int_equal(stk_local_adopt_pid(w.e, pid, w.uid, &start, &err), 0);
    lw_start(
        &w, 1, 5,
        lw_spec(&w, "\"adopt\":{\"pid\":%d,\"start\":%llu}", (int)pid, (unsigned long long)start));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    assert_int_equal(stk_local_adopt_pid(w.e, pid, w.uid, &start, &err), -EEXIST);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    ev = lw_wait(&w, 1, STK_EV_EXITED);
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_UNKNOWN);
    assert_non_null(strstr(w.note, "its exit code is not known"));
    lw_settle(&w, 1, 5);
    lw_start(&w, 2, 6, lw_spec(&w, "\"adopt\":{\"pid\":%d,\"start\":1}", (int)getpid()));
    assert_int_equal(lw_wait(&w, 2, STK_EV_EXITED).u.exit.cause, STK_CAUSE_NOT_STARTED);
    lw_close(&w);
}

static void an_adopted_process_can_be_stopped(void **state)
{
    struct stk_err err = {0};
    struct lw w;
    uint64_t start = 0;
    pid_t pid;

    (void)state;
    lw_open(&w);
    pid = by_hand(&w);
    assert_int_equal(stk_local_adopt_pid(w.e, pid, w.uid, &start, &err), 0);
    lw_start(
        &w, 1, 5,
        lw_spec(&w, "\"adopt\":{\"pid\":%d,\"start\":%llu}", (int)pid, (unsigned long long)start));
    (void)lw_wait(&w, 1, STK_EV_STARTED);
    lw_stop(&w, 1, 5, STK_CAUSE_CANCELLED, false);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_CANCELLED);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    lw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_over_its_cap_loses_its_middle),
        cmocka_unit_test(the_cap_holds_for_short_jobs),
        cmocka_unit_test(every_item_is_run_once),
        cmocka_unit_test(items_go_on_after_a_restart),
        cmocka_unit_test(a_batch_job_can_be_stopped),
        cmocka_unit_test(a_session_is_attached_to_and_left),
        cmocka_unit_test(only_the_user_may_attach),
        cmocka_unit_test(a_process_started_by_hand_becomes_a_job),
        cmocka_unit_test(an_adopted_process_can_be_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
