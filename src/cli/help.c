/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - usage and --help, from the tables of commands and options; "stoker help", "stoker
 * version". The man pages are in man.c. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char *const sections[] = {
    [STK_SECTION_JOBS] = "jobs",
    [STK_SECTION_LOOK] = "what is going on",
    [STK_SECTION_CHANGE] = "changing jobs",
    [STK_SECTION_SITE] = "this machine",
};

void stk_usage(FILE *f)
{
    (void)fprintf(f, "stoker " STK_VERSION ": schedules GPU jobs\n\nusage: stoker COMMAND ...\n");
    for (int s = 0; s <= STK_SECTION_SITE; s++) {
        (void)fprintf(f, "\n%s\n", sections[s]);
        for (size_t i = 0; stk_commands[i]; i++)
            if ((int)stk_commands[i]->section == s)
                (void)fprintf(f, "  %-12s %s\n", stk_commands[i]->name, stk_commands[i]->help);
    }
    (void)fprintf(f, "\nstoker COMMAND --help says more. stoker serve starts the daemon.\n");
}

static void option_help(const struct stk_option *o, FILE *f)
{
    char left[64];
    const char *help = o->help;

    (void)snprintf(left, sizeof(left), o->letter ? "-%c, --%s%s%s" : "%c   --%s%s%s",
                   o->letter ? o->letter : ' ', o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    if (strlen(left) > 26)
        (void)fprintf(f, "  %s\n%-31s", left, "");
    else
        (void)fprintf(f, "  %-28s ", left);
    for (; *help != '\0'; help++)
        if (*help == '\n')
            (void)fprintf(f, "\n%-31s", "");
        else
            (void)fputc(*help, f);
    (void)fputc('\n', f);
}

void stk_command_help(const struct stk_command *cmd, FILE *f)
{
    const struct stk_options *g;
    const char *form = cmd->synopsis, *lead = "usage: stoker";

    for (bool more = true; more; lead = "       stoker") {
        size_t n = strcspn(form, "\n");

        (void)fprintf(f, "%s %s%s%.*s\n", lead, cmd->name, n > 0 ? " " : "", (int)n, form);
        more = form[n] == '\n';
        form += n + more;
    }
    (void)fprintf(f, "\n%c%s.\n", cmd->help[0] - ('a' - 'A') * (cmd->help[0] >= 'a'),
                  cmd->help + 1);
    if (cmd->alias)
        (void)fprintf(f, "Also called \"stoker %s\".\n", cmd->alias);
    if (cmd->about)
        (void)fprintf(f, "\n%s\n", cmd->about);
    for (int i = 0; (g = stk_options_of(cmd, i)) != NULL && !cmd->passes; i++) {
        if (*g->title != '\0' || i == 0)
            (void)fprintf(f, "\n%s\n", *g->title != '\0' ? g->title : "options");
        for (const struct stk_option *o = g->list; o->name; o++)
            option_help(o, f);
    }
    if (cmd->more)
        cmd->more(f);
}

static int run_help(const struct stk_args *a)
{
    const struct stk_command *cmd = NULL;

    if (a->n_words > 1) {
        (void)fprintf(stderr, "stoker help: one command at a time\n");
        return STK_EXIT_USAGE;
    }
    if (a->n_words == 1 && !(cmd = stk_command_find(a->words[0]))) {
        (void)fprintf(stderr, "stoker help: there is no command \"%.40s\"\n", a->words[0]);
        return STK_EXIT_USAGE;
    }
    if (stk_arg_is(a, "man") && cmd)
        stk_command_man(cmd, stdout);
    else if (stk_arg_is(a, "man"))
        stk_man(stdout);
    else if (cmd)
        stk_command_help(cmd, stdout);
    else
        stk_usage(stdout);
    return STK_EXIT_OK;
}

static const struct stk_option help_options[] = {
    {"man", 0, NULL, "as a man page (troff): stoker help --man run | man -l -", NULL},
    {0},
};
static const struct stk_options help_groups[] = {{"options", help_options}, {0}};

const struct stk_command stk_cmd_help = {
    .name = "help",
    .synopsis = "[COMMAND] [--man]",
    .help = "what the commands are and do",
    .complete = "@commands",
    .options = help_groups,
    .section = STK_SECTION_SITE,
    .offline = true,
    .run = run_help,
};

static int run_version(const struct stk_args *a)
{
    (void)puts(stk_arg_is(a, "json") ? "{\"version\":\"" STK_VERSION "\"}" : "stoker " STK_VERSION);
    return STK_EXIT_OK;
}

static const struct stk_option version_options[] = {{"json", 0, NULL, "JSON for programs", NULL},
                                                    {0}};
static const struct stk_options version_groups[] = {{"options", version_options}, {0}};

const struct stk_command stk_cmd_version = {
    .name = "version",
    .synopsis = "",
    .help = "which version this is",
    .options = version_groups,
    .section = STK_SECTION_SITE,
    .offline = true,
    .run = run_version,
};
