/* SPDX-License-Identifier: Apache-2.0 */
/* Lines come out as they went in, whatever the pieces were; one that is too long does not keep the
 * next from being read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sys/lines.h"

static void feed(struct stk_lines *l, const char *s, size_t n)
{
    while (n > 0) {
        size_t size = 0, some;
        char *room = stk_lines_room(l, &size);

        assert_non_null(room);
        some = n < size ? n : size;
        memcpy(room, s, some);
        stk_lines_filled(l, some);
        s += some;
        n -= some;
    }
}

/* "line" or "line!": the head of one that was too long. NULL: there is none. */
static const char *next(struct stk_lines *l)
{
    static char text[256];
    const char *line;
    size_t len = 0;
    enum stk_lines_what what = stk_lines_next(l, &line, &len);

    if (what == STK_LINES_NONE)
        return NULL;
    assert_true(len < sizeof(text) - 1);
    (void)snprintf(text, sizeof(text), "%.*s%s", (int)len, line, what == STK_LINES_LONG ? "!" : "");
    return text;
}

static void lines_come_whole_whatever_the_pieces(void **state)
{
    static const char all[] = "one\n\ntwo three\nfo";
    struct stk_lines l = {0};

    (void)state;
    for (size_t piece = 1; piece < sizeof(all); piece++) {
        char got[1024] = "";

        for (size_t at = 0; at < sizeof(all) - 1; at += piece) {
            const char *line;

            feed(&l, all + at, piece < sizeof(all) - 1 - at ? piece : sizeof(all) - 1 - at);
            while ((line = next(&l)))
                (void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "[%.60s]", line);
        }
        assert_string_equal(got, "[one][][two three]");
        feed(&l, "ur\n", 3);
        assert_string_equal(next(&l), "four");
        assert_null(next(&l));
    }
    stk_lines_done(&l);
}

static void one_that_is_too_long_is_passed_over(void **state)
{
    struct stk_lines l = {.max = 10};
    char *much = malloc(300000);

    (void)state;
    memset(much, 'x', 300000);
    feed(&l, "0123456789\n0123456789a\nb\n", 25);
    assert_string_equal(next(&l), "0123456789");
    assert_string_equal(next(&l), "0123456789a!");
    assert_string_equal(next(&l), "b");
    feed(&l, "head ", 5);
    for (int i = 0; i < 10; i++) {
        feed(&l, much, 300000);
        assert_null(next(&l));
    }
    assert_true(l.cap < 1u << 20); /* and is not kept */
    feed(&l, "x\nnext\n", 7);
    assert_memory_equal(next(&l), "head xxx", 8);
    assert_string_equal(next(&l), "next");
    assert_null(next(&l));
    stk_lines_done(&l);
    free(much);
}

static void a_long_line_is_read_and_its_room_given_back(void **state)
{
    const size_t n = 20u << 20;
    struct stk_lines l = {0};
    char *much = malloc(n);
    const char *line;
    size_t len = 0;

    (void)state;
    memset(much, 'y', n);
    much[n - 1] = '\n';
    feed(&l, much, n);
    assert_int_equal(stk_lines_next(&l, &line, &len), STK_LINES_LINE);
    assert_int_equal(len, n - 1);
    assert_memory_equal(line, much, n - 1);
    feed(&l, "z\n", 2);
    assert_true(l.cap < 1u << 20);
    assert_string_equal(next(&l), "z");
    stk_lines_done(&l);
    free(much);
}

static void another_stream_begins_anew(void **state)
{
    struct stk_lines l = {.max = 4};

    (void)state;
    feed(&l, "half", 4);
    stk_lines_clear(&l);
    feed(&l, "ab\n", 3);
    assert_string_equal(next(&l), "ab");
    feed(&l, "too long", 8);
    feed(&l, "!", 1);
    stk_lines_clear(&l);
    feed(&l, "cd\n", 3);
    assert_string_equal(next(&l), "cd");
    stk_lines_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_whatever_the_pieces),
        cmocka_unit_test(one_that_is_too_long_is_passed_over),
        cmocka_unit_test(a_long_line_is_read_and_its_room_given_back),
        cmocka_unit_test(another_stream_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
