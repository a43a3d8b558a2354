/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - "stoker COMMAND ...": finds the command, or says which there are. */
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "cli/cli.h"

static int unknown(const char *word)
{
    const struct stk_command *meant = NULL, *begins = NULL;
    unsigned best = stk_near_limit(word);

    for (size_t i = 0; stk_commands[i]; i++) {
        const struct stk_command *c = stk_commands[i];

        if (stk_near(word, c->name, &best) || (c->alias && stk_near(word, c->alias, &best)))
            meant = c;
        if (!begins && strncmp(word, c->name, strlen(word)) == 0)
            begins = c;
    }
    meant = meant ? meant : begins;
    (void)fprintf(stderr, "stoker: there is no command \"%.40s\"", word);
    if (meant)
        (void)fprintf(stderr, "; did you mean \"%s\"?\n", meant->name);
    else
        (void)fprintf(stderr, " (stoker help lists them)\n");
    return STK_EXIT_USAGE;
}

static int run(const struct stk_command *cmd, int argc, char **argv)
{
    struct stk_args a = {.cmd = cmd, .words = argv + 1, .n_words = argc - 1};
    struct stk_err err = {""};
    int rc;

    if (cmd->passes)
        return cmd->run(&a);
    if (stk_args_parse(cmd, argc, argv, &a, &err) < 0) {
        (void)fprintf(stderr, "stoker %s: %s\n", cmd->name, err.text);
        return STK_EXIT_USAGE;
    }
    if (stk_arg_is(&a, "help")) {
        stk_command_help(cmd, stdout);
        rc = STK_EXIT_OK;
    } else {
        rc = cmd->run(&a);
    }
    stk_args_done(&a);
    /* What was not written was not shown: a full disk must not look like success. */
    if (fflush(stdout) != 0 && rc == STK_EXIT_OK) {
        perror("stoker: cannot write");
        rc = STK_EXIT_FAILED;
    }
    return rc;
}

/* "--socket PATH" and "--json" may come before the command: how many words these are. */
static int leading(int argc, char **argv)
{
    int i = 1;

    while (i < argc) {
        if (strcmp(argv[i], "--json") == 0 || strncmp(argv[i], "--socket=", 9) == 0)
            i++;
        else if (strcmp(argv[i], "--socket") == 0 && i + 1 < argc)
            i += 2;
        else
            break;
    }
    return i - 1;
}

int main(int argc, char **argv)
{
    int n = leading(argc, argv);
    const char *word = argc > 1 + n ? argv[1 + n] : "";
    const struct stk_command *cmd;
    char *name = argv[1 + n];

    if (*word == '\0') {
        stk_usage(stderr);
        return STK_EXIT_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    cmd = stk_command_find(word);
    memmove(argv + 2, argv + 1, (size_t)n * sizeof(*argv)); /* options follow the command */
    argv[1] = name;
    return cmd ? run(cmd, argc - 1, argv + 1) : unknown(word);
}
