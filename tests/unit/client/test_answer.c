/* SPDX-License-Identifier: Apache-2.0 */
/* test_answer.c - what the response parser takes and what it refuses, whole and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/answer.h"

struct text {
    char s[8192];
    size_t n;
};

static int keep(void *ctx, const char *data, size_t n)
{
    struct text *t = ctx;

    assert_true(t->n + n < sizeof(t->s));
    memcpy(t->s + t->n, data, n);
    t->n += n;
    t->s[t->n] = '\0';
    return 0;
}

/* Reads 'in' in steps; the result of the last feed, or of the end when it used all. */
static int read_all(struct stk_answer *h, const char *in, size_t n, size_t step, struct text *body)
{
    size_t at = 0;

    stk_answer_init(h, 4096);
    memset(body, 0, sizeof(*body));
    while (at < n && !stk_answer_done(h)) {
        size_t take = n - at < step ? n - at : step;
        ssize_t used = stk_answer_feed(h, in + at, take, keep, body, NULL);

        if (used < 0)
            return (int)used;
        at += (size_t)used;
    }
    return stk_answer_end(h, NULL);
}

static void check(const char *in, int rc, int status, const char *body)
{
    const size_t steps[] = {1, 2, 7, 8192};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct stk_answer h;
        struct text t;

        assert_int_equal(read_all(&h, in, strlen(in), steps[i], &t), rc);
        if (rc < 0)
            continue;
        assert_int_equal(h.status, status);
        assert_string_equal(t.s, body);
    }
}

static void bodies_of_all_three_kinds(void **state)
{
    (void)state;
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0, 200, "hello");
    check("HTTP/1.1 200 OK\r\ncontent-length:5  \r\n\r\nhelloHTTP/1.1", 0, 200, "hello");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: "
          "chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n"
          "Trailer: 1\r\n\r\n",
          0, 200, "abc0123456789");
    check("HTTP/1.0 404 Not Found\r\n\r\nto the end", 0, 404, "to the end");
    check("HTTP/1.1 204 No Content\r\n\r\n", 0, 204, "");
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0, 201,
          "");
    check("HTTP/1.1 200\nContent-Length: 1\n\nx", 0, 200, "x");
}

static void cut_answers_are_told_from_whole_ones(void **state)
{
    (void)state;
    check("", -EPIPE, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", -EPIPE, 0, "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", -EPIPE, 0, "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", -EPIPE, 0, "");
}

static void what_is_not_http_is_refused(void **state)
{
    (void)state;
    check("SSH-2.0-OpenSSH\r\n", -EPROTO, 0, "");
    check("HTTP/2.0 200 OK\r\n\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 20 OK\r\n\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 2000 OK\r\n\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx", -EPROTO, 0,
          "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", -EPROTO, 0, "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", -EPROTO, 0,
          "");
}

static void sizes_are_bounded(void **state)
{
    static char in[STK_ANSWER_MAX_HEAD + 4096];
    struct stk_answer h;
    struct text t;
    size_t n;

    (void)state;
    check("HTTP/1.1 200 OK\r\nContent-Length: 4097\r\n\r\n", -EPIPE, 0, "");
    n = (size_t)snprintf(in, sizeof(in), "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
    memset(in + n, 'x', 5000);
    assert_int_equal(read_all(&h, in, n + 5000, 4096, &t), -E2BIG);
    memset(in, 'x', sizeof(in));
    assert_int_equal(read_all(&h, in, STK_ANSWER_MAX_LINE + 10, 100, &t), -E2BIG);
    n = (size_t)snprintf(in, sizeof(in), "HTTP/1.1 200 OK\r\n");
    while (n < sizeof(in) - 20)
        n += (size_t)snprintf(in + n, sizeof(in) - n, "a: %08zu\r\n", n);
    assert_int_equal(read_all(&h, in, n, 8192, &t), -E2BIG);
    assert_int_equal(read_all(&h, in, n, 3, &t), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_of_all_three_kinds),
        cmocka_unit_test(cut_answers_are_told_from_whole_ones),
        cmocka_unit_test(what_is_not_http_is_refused),
        cmocka_unit_test(sizes_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
