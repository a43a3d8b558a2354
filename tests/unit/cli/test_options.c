/* SPDX-License-Identifier: Apache-2.0 */
/* test_options.c - the option parser, and that the tables of all commands make sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"

static const struct stk_option list[] = {
    {"gpus", 'g', "N", "how many", NULL},
    {"env", 'E', "NAME", "again and again", NULL},
    {"hold", 'H', NULL, "a flag", NULL},
    {"interactive", 'i', NULL, "a flag", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", list}, {0}};
static const struct stk_command mixed = {.name = "mixed", .options = groups},
                                ends = {.name = "ends", .options = groups, .ends = true};

#define PARSE(cmd, a, err, ...)                                                                    \
    stk_args_parse(cmd, (int)(sizeof((const char *[]){"x", __VA_ARGS__}) / sizeof(char *)),        \
                   (char **)(uintptr_t)(const char *[]){"x", __VA_ARGS__}, a, err)

static void values_come_in_every_form(void **state)
{
    struct stk_args a;
    int at = 0;

    (void)state;
    assert_int_equal(PARSE(&mixed, &a, NULL, "--gpus", "2", "one", "--env=A=1", "-EB=2", "-E",
                           "C=3", "-Hi", "two", "--json"),
                     0);
    assert_string_equal(stk_arg(&a, "gpus"), "2");
    assert_string_equal(stk_arg_next(&a, "env", &at), "A=1");
    assert_string_equal(stk_arg_next(&a, "env", &at), "B=2");
    assert_string_equal(stk_arg_next(&a, "env", &at), "C=3");
    assert_null(stk_arg_next(&a, "env", &at));
    assert_true(stk_arg_is(&a, "hold") && stk_arg_is(&a, "interactive") && stk_arg_is(&a, "json"));
    assert_false(stk_arg_is(&a, "help"));
    assert_int_equal(a.n_words, 2);
    assert_string_equal(a.words[1], "two");
    stk_args_done(&a);
}

static void the_last_of_several_counts(void **state)
{
    struct stk_args a;

    (void)state;
    assert_int_equal(PARSE(&mixed, &a, NULL, "-g1", "--gpus=2"), 0);
    assert_string_equal(stk_arg(&a, "gpus"), "2");
    stk_args_done(&a);
}

static void options_end_at_the_first_word_or_at_dashes(void **state)
{
    struct stk_args a;

    (void)state;
    assert_int_equal(PARSE(&ends, &a, NULL, "-g", "1", "train.sh", "--gpus", "9", "-H"), 0);
    assert_string_equal(stk_arg(&a, "gpus"), "1");
    assert_int_equal(a.n_words, 4);
    assert_false(a.dashes || stk_arg_is(&a, "hold"));
    stk_args_done(&a);
    assert_int_equal(PARSE(&ends, &a, NULL, "-g", "1", "--", "--gpus", "9"), 0);
    assert_true(a.dashes);
    assert_int_equal(a.n_words, 2);
    assert_string_equal(a.words[0], "--gpus");
    stk_args_done(&a);
    assert_int_equal(PARSE(&ends, &a, NULL, "-"), 0);
    assert_int_equal(a.n_words, 1);
    assert_false(a.dashes);
    stk_args_done(&a);
}

static void mistakes_get_sentences(void **state)
{
    struct stk_err err = {""};
    struct stk_args a;

    (void)state;
    assert_int_equal(PARSE(&mixed, &a, &err, "--gpu", "1"), -EINVAL);
    assert_non_null(strstr(err.text, "did you mean --gpus?"));
    assert_int_equal(PARSE(&mixed, &a, &err, "--zzzzzz"), -EINVAL);
    assert_non_null(strstr(err.text, "stoker mixed --help"));
    assert_int_equal(PARSE(&mixed, &a, &err, "--gpus"), -EINVAL);
    assert_non_null(strstr(err.text, "--gpus N"));
    assert_int_equal(PARSE(&mixed, &a, &err, "--hold=1"), -EINVAL);
    assert_non_null(strstr(err.text, "takes no value"));
    assert_int_equal(PARSE(&mixed, &a, &err, "-x"), -EINVAL);
    assert_int_equal(PARSE(&mixed, &a, &err, "-g"), -EINVAL);
}

/* No name or letter twice in one command: the second would never be reached. */
static void check_command(const struct stk_command *cmd)
{
    const struct stk_option *seen[128];
    const struct stk_options *g;
    int n = 0;

    assert_true(cmd->name && cmd->help && cmd->synopsis && cmd->run);
    assert_ptr_equal(stk_command_find(cmd->name), cmd);
    for (int i = 0; (g = stk_options_of(cmd, i)) != NULL; i++)
        for (const struct stk_option *o = g->list; o->name; o++) {
            for (int k = 0; k < n; k++) {
                assert_string_not_equal(o->name, seen[k]->name);
                assert_true(o->letter == 0 || o->letter != seen[k]->letter);
            }
            assert_true(n < 128);
            seen[n++] = o;
            assert_non_null(o->help);
        }
}

static void the_tables_of_all_commands_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; stk_commands[i]; i++)
        check_command(stk_commands[i]);
    assert_ptr_equal(stk_command_find("ls"), stk_command_find("queue"));
    assert_null(stk_command_find("nope"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_in_every_form),
        cmocka_unit_test(the_last_of_several_counts),
        cmocka_unit_test(options_end_at_the_first_word_or_at_dashes),
        cmocka_unit_test(mistakes_get_sentences),
        cmocka_unit_test(the_tables_of_all_commands_are_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
