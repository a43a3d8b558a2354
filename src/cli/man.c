/* SPDX-License-Identifier: Apache-2.0 */
/* man.c - man pages in troff, from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Text in which troff sees nothing special: no escapes, no hyphens for minus signs, no requests. */
static void put(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (s[i]) {
        case '\\':
            (void)fputs("\\e", f);
            break;
        case '-':
            (void)fputs("\\-", f);
            break;
        case '.':
        case '\'':
            if (i == 0 || s[i - 1] == '\n')
                (void)fputs("\\&", f);
            (void)fputc(s[i], f);
            break;
        default:
            (void)fputc(s[i], f);
        }
}

static void puts_(FILE *f, const char *s)
{
    put(f, s, strlen(s));
}

static void option_man(const struct stk_option *o, FILE *f)
{
    (void)fputs(".TP\n.B ", f);
    if (o->letter)
        (void)fprintf(f, "\\-%c, ", o->letter);
    (void)fputs("\\-\\-", f);
    puts_(f, o->name);
    if (o->arg) {
        (void)fputs(" \\fI", f);
        puts_(f, o->arg);
        (void)fputs("\\fR", f);
    }
    (void)fputc('\n', f);
    puts_(f, o->help);
    (void)fputc('\n', f);
}

static void paragraphs(const char *s, FILE *f)
{
    while (*s != '\0') {
        size_t n = strcspn(s, "\n");

        if (n == 0)
            (void)fputs(".PP", f);
        else if (*s == ' ')
            (void)fputs(".br\n", f);
        put(f, s, n);
        (void)fputc('\n', f);
        s += n + (s[n] == '\n');
    }
}

void stk_command_man(const struct stk_command *cmd, FILE *f)
{
    const struct stk_options *g;
    const char *form = cmd->synopsis;

    (void)fprintf(f, ".TH STOKER\\-%s 1 \"\" \"stoker " STK_VERSION "\"\n.SH NAME\nstoker\\-",
                  cmd->name);
    puts_(f, cmd->name);
    (void)fputs(" \\- ", f);
    puts_(f, cmd->help);
    (void)fputs("\n.SH SYNOPSIS\n", f);
    for (bool more = true; more;) {
        size_t n = strcspn(form, "\n");

        (void)fprintf(f, ".B stoker %s\n", cmd->name);
        put(f, form, n);
        (void)fputs(n > 0 ? "\n.br\n" : ".br\n", f);
        more = form[n] == '\n';
        form += n + more;
    }
    if (cmd->about) {
        (void)fputs(".SH DESCRIPTION\n", f);
        paragraphs(cmd->about, f);
    }
    (void)fputs(".SH OPTIONS\n", f);
    for (int i = 0; (g = stk_options_of(cmd, i)) != NULL && !cmd->passes; i++) {
        if (*g->title != '\0') {
            (void)fputs(".SS ", f);
            puts_(f, g->title);
            (void)fputc('\n', f);
        }
        for (const struct stk_option *o = g->list; o->name; o++)
            option_man(o, f);
    }
    (void)fputs(".SH SEE ALSO\n.BR stoker (1)\n", f);
}

void stk_man(FILE *f)
{
    (void)fputs(".TH STOKER 1 \"\" \"stoker " STK_VERSION
                "\"\n.SH NAME\nstoker \\- schedules GPU jobs\n"
                ".SH SYNOPSIS\n.B stoker\n.I COMMAND\n[...]\n.SH COMMANDS\n",
                f);
    for (size_t i = 0; stk_commands[i]; i++) {
        (void)fputs(".TP\n.B ", f);
        puts_(f, stk_commands[i]->name);
        (void)fputc('\n', f);
        puts_(f, stk_commands[i]->help);
        (void)fputs(".\n", f);
    }
    (void)fputs(
        ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nthe request failed\n.TP\n2\nbad usage or bad "
        "input\n"
        ".TP\n3\ncannot reach the daemon\n.PP\n.B run\nand\n.B wait\nexit with the job's own "
        "code, 128 + signal, or 125 when stoker itself failed.\n"
        ".SH ENVIRONMENT\n.TP\n.B STOKER_SOCKET\nthe daemon's socket\n.TP\n.B NO_COLOR\n"
        "no colours\n",
        f);
}
