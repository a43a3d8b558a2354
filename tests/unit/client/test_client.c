/* SPDX-License-Identifier: Apache-2.0 */
/* test_client.c - the client against a daemon of canned answers: one thread that listens on a Unix
 * socket and gives the next answer of a list for every request. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/client.h"

/* One connection of the fake daemon: answers are given in order; then it closes. "-" closes
 * without an answer. */
struct canned {
    const char *answers[4];
};

struct fake {
    char dir[64], path[96];
    int fd;
    pthread_t thread;
    const struct canned *connections;
    size_t n;
    char seen[8192]; /* all requests, one after the other */
};

static void read_request(struct fake *f, int fd)
{
    size_t from = strlen(f->seen), n = from;
    const char *length;
    char *end;

    do {
        ssize_t k = read(fd, f->seen + n, sizeof(f->seen) - 1 - n);

        if (k <= 0)
            return;
        n += (size_t)k;
        f->seen[n] = '\0';
        end = strstr(f->seen + from, "\r\n\r\n");
        length = strstr(f->seen + from, "Content-Length: ");
    } while (!end || (length && n < (size_t)(end + 4 - f->seen) + (size_t)atoi(length + 16)));
}

static void *serve(void *ctx)
{
    struct fake *f = ctx;

    for (size_t i = 0; i < f->n; i++) {
        int fd = accept(f->fd, NULL, NULL);

        for (const char *const *a = f->connections[i].answers; fd >= 0 && *a; a++) {
            read_request(f, fd);
            if (strcmp(*a, "-") != 0 && write(fd, *a, strlen(*a)) < 0)
                break;
        }
        (void)close(fd);
    }
    return NULL;
}

static void start(struct fake *f, const struct canned *connections, size_t n)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    memset(f, 0, sizeof(*f));
    (void)strcpy(f->dir, "/tmp/stk-client-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
    (void)strcpy(at.sun_path, f->path);
    f->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(f->fd, 4), 0);
    f->connections = connections;
    f->n = n;
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void stop(struct fake *f)
{
    (void)pthread_join(f->thread, NULL);
    (void)close(f->fd);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
}

#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"id\": 12 }"

static void calls_share_a_connection(void **state)
{
    const struct canned c[] = {{{OK_JSON, OK_JSON}}};
    json_t *ask = json_pack("{s:i}", "gpus", 2), *body = NULL;
    struct fake f;
    struct stk_client *cl;

    (void)state;
    start(&f, c, 1);
    cl = stk_client_new(f.path);
    assert_int_equal(stk_client_get(cl, &body, NULL, "/v1/jobs/%d", 12), 0);
    assert_int_equal(json_integer_value(json_object_get(body, "id")), 12);
    json_decref(body);
    assert_int_equal(
        stk_client_call(
            cl, &(struct stk_call){.method = "POST", .path = "/v1/jobs", .body = ask, .key = "k1"},
            NULL, NULL),
        0);
    stk_client_free(cl);
    stop(&f);
    json_decref(ask);
    assert_non_null(strstr(f.seen, "GET /v1/jobs/12 HTTP/1.1\r\nHost: stoker\r\n\r\n"));
    assert_non_null(strstr(f.seen, "POST /v1/jobs HTTP/1.1\r\n"));
    assert_non_null(strstr(f.seen, "Idempotency-Key: k1\r\n"));
    assert_non_null(strstr(f.seen, "\r\n\r\n{\"gpus\":2}"));
}

static void a_dead_kept_connection_is_made_anew_only_when_safe(void **state)
{
    const struct canned c[] = {{{OK_JSON}}, {{OK_JSON}}};
    struct stk_call rq = {.path = "/v1/x"};
    struct fake f;
    struct stk_client *cl;

    (void)state;
    start(&f, c, 2);
    cl = stk_client_new(f.path);
    assert_int_equal(stk_client_call(cl, &rq, NULL, NULL), 0);
    assert_int_equal(stk_client_call(cl, &rq, NULL, NULL), 0); /* closed by the fake, or soon */
    stop(&f);                                                  /* now it is closed */
    rq.method = "POST";
    assert_int_equal(stk_client_call(cl, &rq, NULL, NULL), -EPIPE);
    stk_client_free(cl);
}

static void refusals_carry_the_daemons_sentence(void **state)
{
    const struct canned c[] = {{{"HTTP/1.1 404 Not Found\r\nContent-Length: 48\r\n\r\n"
                                 "{\"error\":{\"code\":\"x\",\"message\":\"no job 9 here\"}}",
                                 "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops"}},
                               {{"HTTP/1.1 400 Bad\r\nContent-Length: "
                                 "34\r\n\r\n{\"error\":{\"message\":\"gpus: -1 ?\"}}"}},
                               {{"nonsense\r\n"}}};
    struct stk_stream *s = NULL;
    struct stk_err err = {""};
    json_t *body = NULL;
    struct fake f;
    struct stk_client *cl;

    (void)state;
    start(&f, c, 3);
    cl = stk_client_new(f.path);
    assert_int_equal(stk_client_get(cl, &body, &err, "/v1/jobs/9"), -ENOENT);
    assert_non_null(strstr(err.text, "no job 9 here"));
    assert_int_equal(stk_client_get(cl, &body, &err, "/v1/jobs/9"), -EREMOTEIO);
    assert_non_null(strstr(err.text, "500"));
    stk_client_free(cl);
    cl = stk_client_new(f.path);
    assert_int_equal(stk_stream_open(cl, &(struct stk_call){.path = "/v1/x"}, NULL, NULL, &s, &err),
                     0);
    assert_int_equal(stk_stream_run(s, &err), -EINVAL);
    assert_string_equal(err.text, "gpus: -1 ?");
    stk_stream_free(s);
    assert_int_equal(stk_client_get(cl, &body, &err, "/v1/jobs/9"), -EPROTO);
    assert_null(body);
    stk_client_free(cl);
    stop(&f);
}

static int count(void *ctx, const char *data, size_t n)
{
    (void)data;
    *(size_t *)ctx += n;
    return 0;
}

static void streams_end_by_themselves_or_by_the_wake_up(void **state)
{
    const struct canned c[] = {
        {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}},
        {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", "-"}}};
    struct stk_stream *s = NULL;
    size_t n = 0;
    int wake[2];
    struct fake f;
    struct stk_client *cl;

    (void)state;
    assert_int_equal(pipe(wake), 0);
    start(&f, c, 2);
    cl = stk_client_new(f.path);
    assert_int_equal(
        stk_stream_open(cl, &(struct stk_call){.path = "/v1/log"}, count, &n, &s, NULL), 0);
    assert_int_equal(stk_stream_run(s, NULL), 0);
    assert_int_equal(n, 5);
    stk_stream_free(s);
    assert_int_equal(write(wake[1], "x", 1), 1);
    assert_int_equal(stk_stream_open(cl, &(struct stk_call){.path = "/v1/log", .wake_fd = wake[0]},
                                     count, &n, &s, NULL),
                     0);
    assert_int_equal(stk_stream_run(s, NULL), -EINTR);
    stk_stream_free(s);
    stk_client_free(cl);
    stop(&f);
    (void)close(wake[0]);
    (void)close(wake[1]);
}

static void a_missing_daemon_is_a_sentence(void **state)
{
    struct stk_client *cl = stk_client_new("/tmp/stk-no-such-socket");
    struct stk_err err = {""};
    json_t *body = NULL;

    (void)state;
    assert_int_equal(stk_client_get(cl, &body, &err, "/v1/health"), -EHOSTDOWN);
    assert_non_null(strstr(err.text, "stoker serve"));
    stk_client_free(cl);
}

static void time_limits_hold(void **state)
{
    const struct canned c[] = {{{"-", "-"}}};
    struct fake f;
    struct stk_client *cl;

    (void)state;
    start(&f, c, 1);
    cl = stk_client_new(f.path);
    assert_int_equal(
        stk_client_call(cl, &(struct stk_call){.path = "/v1/x", .timeout_ms = 30}, NULL, NULL),
        -ETIMEDOUT);
    stk_client_free(cl);
    stop(&f);
}

static void the_socket_is_looked_for_in_order(void **state)
{
    char path[108], tight[8], longer[200];
    struct stk_err err = {""};

    (void)state;
    (void)setenv("STOKER_SOCKET", "/tmp/env.sock", 1);
    assert_int_equal(stk_client_find("/tmp/option.sock", path, sizeof(path), NULL), 0);
    assert_string_equal(path, "/tmp/option.sock");
    assert_int_equal(stk_client_find(NULL, path, sizeof(path), NULL), 0);
    assert_string_equal(path, "/tmp/env.sock");
    assert_int_equal(stk_client_find(NULL, tight, sizeof(tight), NULL), -EINVAL);
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(stk_client_find(longer, path, sizeof(path), &err), -EINVAL);
    assert_non_null(strstr(err.text, "199"));
    (void)unsetenv("STOKER_SOCKET");
}

static void advice_is_what_is_right_on_the_machine(void **state)
{
    char root[] = "/tmp/stk-root-XXXXXX", buf[256], path[128];
    static const char *const folders[] = {"/lib", "/lib/systemd", "/lib/systemd/system"};

    (void)state;
    assert_non_null(mkdtemp(root));
    assert_false(stk_client_has_service(root));
    assert_string_equal(stk_client_advice(root, STK_CLIENT_ROOT_SOCKET, buf, sizeof(buf)),
                        "start one, as root, with: stoker serve");
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    (void)snprintf(path, sizeof(path), "%s/lib/systemd/system/stoker.service", root);
    assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    assert_true(stk_client_has_service(root));
    assert_string_equal(
        stk_client_advice(root, STK_CLIENT_ROOT_SOCKET, buf, sizeof(buf)),
        "start the service with: systemctl start stoker (its state: systemctl status stoker)");
    assert_string_equal(stk_client_advice(root, "/tmp/mine.sock", buf, sizeof(buf)),
                        "start one there with: stoker serve --socket /tmp/mine.sock");
    (void)setenv("STOKER_SOCKET", "/tmp/mine.sock", 1);
    assert_string_equal(stk_client_advice(root, "/tmp/mine.sock", buf, sizeof(buf)),
                        "start one there with: stoker serve --socket /tmp/mine.sock "
                        "(STOKER_SOCKET names this place)");
    (void)unsetenv("STOKER_SOCKET");
    (void)unlink(path);
    for (size_t i = 3; i-- > 0;) {
        (void)snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        (void)rmdir(path);
    }
    (void)rmdir(root);
}

static void words_are_escaped(void **state)
{
    char buf[32], small[6];

    (void)state;
    assert_string_equal(stk_client_escape(buf, sizeof(buf), "a b/c&\n"), "a%20b%2Fc%26%0A");
    assert_string_equal(stk_client_escape(small, sizeof(small), "ab cd"), "ab%20");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_share_a_connection),
        cmocka_unit_test(a_dead_kept_connection_is_made_anew_only_when_safe),
        cmocka_unit_test(refusals_carry_the_daemons_sentence),
        cmocka_unit_test(streams_end_by_themselves_or_by_the_wake_up),
        cmocka_unit_test(a_missing_daemon_is_a_sentence),
        cmocka_unit_test(time_limits_hold),
        cmocka_unit_test(the_socket_is_looked_for_in_order),
        cmocka_unit_test(advice_is_what_is_right_on_the_machine),
        cmocka_unit_test(words_are_escaped),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
