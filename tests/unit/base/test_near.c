/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/near.h"

static const char *meant(const char *word)
{
    static const char *const names[] = {"fifo", "fifo-skip", "sjf", "srtf", "conservative", NULL};
    unsigned best = stk_near_limit(word);
    const char *near = NULL;

    for (int i = 0; names[i]; i++)
        if (stk_near(word, names[i], &best))
            near = names[i];
    return near;
}

static void typing_errors_are_recognised(void **state)
{
    (void)state;
    assert_string_equal(meant("fifo"), "fifo");
    assert_string_equal(meant("ffio"), "fifo");
    assert_string_equal(meant("sfj"), "sjf");
    assert_string_equal(meant("fifoskip"), "fifo-skip");
    assert_string_equal(meant("conservativ"), "conservative");
}

static void other_words_are_not(void **state)
{
    char longest[400];

    (void)state;
    assert_null(meant("zzzzz"));
    assert_null(meant("entirely different"));
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_null(meant(longest));
}

static void an_equal_word_is_nearest(void **state)
{
    unsigned best = 5;

    (void)state;
    assert_true(stk_near("abc", "abd", &best));
    assert_int_equal(best, 1);
    assert_false(stk_near("abc", "abe", &best));
    assert_true(stk_near("abc", "abc", &best));
    assert_int_equal(best, 0);
    assert_false(stk_near("abc", "abc", &best));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typing_errors_are_recognised),
        cmocka_unit_test(other_words_are_not),
        cmocka_unit_test(an_equal_word_is_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
