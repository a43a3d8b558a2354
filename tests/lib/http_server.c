/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c - the HTTP layer with a handful of made-up routes, for tests/e2e/test_http.py:
 *
 *     http_server SOCKET HOST:PORT [CERT KEY]
 *
 * Prints the address it listens on and "ready"; SIGTERM ends it. On TCP the token "good" is user 1,
 * "boss" is an admin; the page's half "half" and the cookie's half "other" are a session of
 * user 1. HTTP_MS in the environment: how long a request may take to arrive; HTTP_STALL_S: how long
 * a client may read nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http.h"

static int identify(void *ctx, const struct stk_peer *peer, struct stk_who *ret,
                    struct stk_pass *ret_pass)
{
    (void)ctx;
    (void)ret_pass;
    *ret = (struct stk_who){.uid = peer->is_unix ? peer->uid : 1, .user = "somebody"};
    if (peer->page) {
        for (uint32_t i = 0; i < peer->cookies.n; i++)
            if (strcmp(peer->page, "half") == 0 && strcmp(peer->cookies.value[i], "other") == 0)
                return 0;
        return -EACCES;
    }
    if (!peer->is_unix && strcmp(peer->token, "good") != 0 && strcmp(peer->token, "boss") != 0)
        return -EACCES;
    ret->role = peer->is_unix || strcmp(peer->token, "boss") == 0 ? STK_ROLE_ADMIN : STK_ROLE_USER;
    return 0;
}

static void do_hello(void *ctx, struct stk_request *r)
{
    const struct stk_who *who = stk_request_who(r);

    (void)ctx;
    stk_request_json(r, 200, json_pack("{s:o}", "uid", who ? json_integer(who->uid) : json_null()));
}

static void do_echo(void *ctx, struct stk_request *r)
{
    json_t *body;

    (void)ctx;
    if (stk_request_body(r, &body) == 0)
        stk_request_json(r, 200, body);
}

/* Works for so long, and says how many did before it. */
static void do_work(void *ctx, struct stk_request *r)
{
    static int n;
    const uint64_t begun = uv_hrtime();
    uint64_t ms = 0;

    (void)ctx;
    if (stk_request_number(r, "ms", 0, 1000, &ms) < 0)
        return;
    while (uv_hrtime() - begun < ms * 1000000)
        ;
    stk_request_json(r, 200, json_pack("{s:i}", "before", n++));
}

static void on_later(uv_timer_t *t)
{
    stk_request_json(t->data, 200, json_pack("{s:b}", "later", 1));
    uv_close((uv_handle_t *)t, (uv_close_cb)(void (*)(void))free);
}

static void do_later(void *ctx, struct stk_request *r)
{
    uv_timer_t *t = calloc(1, sizeof(*t));
    uint64_t ms = 0;

    if (stk_request_number(r, "ms", 0, 60000, &ms) < 0) {
        free(t);
        return;
    }
    (void)uv_timer_init(ctx, t);
    t->data = r;
    (void)uv_timer_start(t, on_later, ms, 0);
}

static void gone(void *ctx, struct stk_request *r)
{
    (void)ctx;
    (void)r;
    (void)printf("gone\n");
    (void)fflush(stdout);
}

static void do_never(void *ctx, struct stk_request *r)
{
    stk_request_on_gone(r, gone, ctx);
}

struct count {
    struct stk_request *req;
    uint64_t at, to;
    uv_timer_t *timer;
    bool slept, said_bye;
};

static ssize_t fill(void *ctx, char *buf, size_t max, bool stopping)
{
    struct count *c = ctx;

    if (stopping && c->said_bye)
        return STK_STREAM_END;
    if (stopping) {
        c->said_bye = true;
        return snprintf(buf, max, "stopping\n");
    }
    if (c->at >= c->to)
        return STK_STREAM_END;
    c->slept = c->at % 10 == 5 && !c->slept;
    if (c->slept)
        return 0; /* sleeps; the timer wakes it */
    return snprintf(buf, max, "%llu\n", (unsigned long long)c->at++);
}

static void done(void *ctx)
{
    struct count *c = ctx;

    uv_close((uv_handle_t *)c->timer, (uv_close_cb)(void (*)(void))free);
    free(c);
    (void)printf("done\n");
    (void)fflush(stdout);
}

static const struct stk_stream_ops count_ops = {fill, done};

static void on_wake(uv_timer_t *t)
{
    struct count *c = t->data;

    stk_request_wake(c->req);
}

static void do_count(void *ctx, struct stk_request *r)
{
    struct count *c = calloc(1, sizeof(*c));

    c->req = r;
    c->timer = calloc(1, sizeof(*c->timer));
    (void)uv_timer_init(ctx, c->timer);
    c->timer->data = c;
    if (stk_request_number(r, "to", 10, UINT32_MAX, &c->to) < 0)
        c->to = 0;
    stk_request_stream(r, "text/plain", &count_ops, c);
    (void)uv_timer_start(c->timer, on_wake, 5, 5);
}

static const struct stk_route routes[] = {
    {"GET", "/hello", do_hello, STK_NEED_NONE, "", NULL, "Any", NULL, 200, "says hello"},
    {"GET", "/local", do_hello, STK_NEED_LOCAL, "", NULL, "Any", NULL, 200, "on this machine"},
    {"GET", "/mine", do_hello, STK_NEED_USER, "", NULL, "Any", NULL, 200, "for users"},
    {"POST", "/mine", do_hello, STK_NEED_USER, "", NULL, "Any", NULL, 200, "likewise"},
    {"GET", "/boss", do_hello, STK_NEED_ADMIN, "", NULL, "Any", NULL, 200, "for admins"},
    {"POST", "/echo", do_echo, STK_NEED_NONE, "", "Any", "Any", NULL, 200, "says it again"},
    {"GET", "/later/{name}", do_later, STK_NEED_NONE, "ms", NULL, "Any", NULL, 200, "later"},
    {"GET", "/work", do_work, STK_NEED_NONE, "ms", NULL, "Any", NULL, 200, "takes long"},
    {"GET", "/never", do_never, STK_NEED_NONE, "", NULL, "Any", NULL, 200, "never"},
    {"GET", "/count", do_count, STK_NEED_NONE, "to", NULL, NULL, "text/plain", 200, "counts"},
    {0},
};

static void on_linger(uv_timer_t *t)
{
    if (stk_http_busy(t->data) == 0)
        uv_stop(t->loop);
}

static void on_signal(uv_signal_t *s, int number)
{
    static uv_timer_t linger;

    (void)number;
    stk_http_stop(s->data);
    (void)uv_timer_init(s->loop, &linger);
    linger.data = s->data;
    (void)uv_timer_start(&linger, on_linger, 10, 10);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct stk_http_config cfg = {
        .loop = loop, .routes = routes, .ctx = loop, .identify = identify};
    struct stk_http_tcp tcp = {.address = argc > 2 ? argv[2] : "127.0.0.1:0"};
    struct stk_http *h = NULL;
    struct stk_err err = {""};
    uv_signal_t term;
    int rc;

    (void)signal(SIGPIPE, SIG_IGN);
    if (getenv("HTTP_MS"))
        cfg.head_ms = cfg.body_ms = (uint32_t)strtoul(getenv("HTTP_MS"), NULL, 10);
    if (getenv("HTTP_STALL_S"))
        cfg.stall_s = (uint32_t)strtoul(getenv("HTTP_STALL_S"), NULL, 10);
    if (argc > 4) {
        tcp.cert = argv[3];
        tcp.key = argv[4];
    }
    rc = stk_http_raise_files(&err);
    rc = rc == 0 && argc > 1 ? stk_http_new(&cfg, &h, &err) : -EINVAL;
    rc = rc < 0 ? rc : stk_http_listen_unix(h, argv[1], &err);
    rc = rc < 0 ? rc : stk_http_listen_tcp(h, &tcp, &err);
    if (rc < 0) {
        (void)fprintf(stderr, "http_server: %s\n", err.text);
        return 1;
    }
    (void)uv_signal_init(loop, &term);
    term.data = h;
    (void)uv_signal_start(&term, on_signal, SIGTERM);
    (void)printf("%s\nready\n", stk_http_url(h));
    (void)fflush(stdout);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    stk_http_free(h);
    return 0;
}
