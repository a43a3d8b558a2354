/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - "stoker COMMAND ...": finds the command, or says which there are. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"sim", stk_cmd_sim, "replay or generate a workload in virtual time and compare policies"},
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static void usage(FILE *f)
{
    (void)fprintf(f, "stoker " STK_VERSION ": schedules GPU jobs\n\nusage: stoker COMMAND ...\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].help);
    (void)fprintf(f, "\nstoker COMMAND --help says more.\n");
}

/* Edits (insert, delete, replace) from a to b; words are short. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[33], n = (unsigned)strnlen(b, 32);

    for (unsigned k = 0; k <= n; k++)
        row[k] = k;
    for (unsigned i = 0; i < 32 && a[i] != '\0'; i++) {
        unsigned diagonal = row[0];

        row[0] = i + 1;
        for (unsigned k = 1; k <= n; k++) {
            unsigned best = diagonal + (a[i] != b[k - 1]);

            diagonal = row[k];
            best = row[k] + 1 < best ? row[k] + 1 : best;
            best = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
            row[k] = best;
        }
    }
    return row[n];
}

static int unknown(const char *word)
{
    size_t near = 0;

    for (size_t i = 1; i < N_COMMANDS; i++)
        if (distance(word, commands[i].name) < distance(word, commands[near].name))
            near = i;
    (void)fprintf(stderr, "stoker: there is no command \"%.40s\"", word);
    if (distance(word, commands[near].name) <= 2)
        (void)fprintf(stderr, "; did you mean \"%s\"?\n", commands[near].name);
    else
        (void)fprintf(stderr, " (stoker help lists them)\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(word, "--version") == 0) {
        (void)puts("stoker " STK_VERSION);
        return 0;
    }
    if (*word != '\0')
        return unknown(word);
    usage(stderr);
    return 2;
}
