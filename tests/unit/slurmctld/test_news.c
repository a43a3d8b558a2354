/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be told waits until there is room, and none of it is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "slurmctld/news.h"
#include "slurmctld/teller.h"

static void assert_next(struct stk_news *n, const char *word)
{
    char got[STK_SLURMCTLD_WORD] = "";

    assert_int_equal(stk_news_take(n, got), word != NULL);
    assert_string_equal(got, word ? word : "");
}

static void ends_are_told_in_order(void **state)
{
    struct stk_news n = {.n = 0};

    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 1; i <= STK_NEWS_ENDS; i++)
            stk_news_end(&n, i);
        for (uint32_t i = 1; i <= STK_NEWS_ENDS; i++) {
            char word[STK_SLURMCTLD_WORD];

            (void)snprintf(word, sizeof(word), "end %u", i);
            assert_next(&n, word);
        }
        assert_next(&n, NULL);
    }
}

static void for_more_than_there_is_room_for_a_look_stands(void **state)
{
    struct stk_news n = {.n = 0};

    (void)state;
    for (uint32_t i = 1; i <= STK_NEWS_ENDS + 2; i++)
        stk_news_end(&n, 1000 + i);
    assert_next(&n, "look");
    assert_next(&n, "end 1257");
    assert_next(&n, "end 1258");
    assert_next(&n, NULL);
}

static void words_are_taken_once(void **state)
{
    struct stk_news n = {.n = 0};

    (void)state;
    assert_true(stk_news_word(&n, "end 7"));
    for (int i = 0; i < 2; i++) {
        assert_true(stk_news_word(&n, "new"));
        assert_true(stk_news_word(&n, "look"));
        assert_true(stk_news_word(&n, "hear"));
    }
    assert_next(&n, "hear");
    assert_next(&n, "look");
    assert_next(&n, "new");
    assert_next(&n, "end 7");
    assert_next(&n, NULL);
}

static void strange_words_are_none(void **state)
{
    static const char *const strange[] = {"",       "end",
                                          "end ",   "end 0",
                                          "end 1x", "end 4294967295",
                                          "end -1", "pass",
                                          "looks",  "end 99999999999999999999"};
    struct stk_news n = {.n = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++)
        assert_false(stk_news_word(&n, strange[i]));
    assert_next(&n, NULL);
}

/* A socket that words are told to, in a folder that is made from 'folder'. */
static int hearer(char *folder, struct sockaddr_un *ret_addr)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    assert_non_null(mkdtemp(folder));
    assert_int_equal(stk_slurmctld_address(NULL, folder, ret_addr), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)ret_addr, sizeof(*ret_addr)), 0);
    return fd;
}

/* The kernel keeps about ten datagrams for a socket. */
static void what_there_was_no_room_for_comes_when_there_is(void **state)
{
    char folder[] = "/tmp/stoker-news-XXXXXX", got[STK_SLURMCTLD_WORD], word[STK_SLURMCTLD_WORD];
    struct stk_teller *t = stk_teller_new();
    struct sockaddr_un addr;
    int fd = hearer(folder, &addr);

    (void)state;
    assert_non_null(t);
    for (uint32_t i = 1; i <= 100; i++) {
        (void)snprintf(word, sizeof(word), "end %u", i);
        stk_teller_say(t, NULL, folder, word);
    }
    for (uint32_t i = 1; i <= 100; i++) {
        ssize_t n = recv(fd, got, sizeof(got) - 1, 0);

        assert_true(n > 0);
        got[n] = '\0';
        (void)snprintf(word, sizeof(word), "end %u", i);
        assert_string_equal(got, word);
    }
    (void)close(fd);
    (void)unlink(addr.sun_path);
    stk_teller_say(t, NULL, folder, "look"); /* nobody is there */
    stk_teller_free(t);
    (void)rmdir(folder);
}

static void a_teller_ends_though_nobody_reads(void **state)
{
    char folder[] = "/tmp/stoker-news-XXXXXX";
    struct stk_teller *t = stk_teller_new();
    struct sockaddr_un addr;
    int fd = hearer(folder, &addr);

    (void)state;
    assert_non_null(t);
    for (uint32_t i = 1; i <= 1000; i++)
        stk_teller_say(t, NULL, folder, "end 5");
    stk_teller_free(t);
    stk_teller_free(NULL);
    (void)close(fd);
    (void)unlink(addr.sun_path);
    (void)rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_told_in_order),
        cmocka_unit_test(for_more_than_there_is_room_for_a_look_stands),
        cmocka_unit_test(words_are_taken_once),
        cmocka_unit_test(strange_words_are_none),
        cmocka_unit_test(what_there_was_no_room_for_comes_when_there_is),
        cmocka_unit_test(a_teller_ends_though_nobody_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
