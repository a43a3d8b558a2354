/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - "stoker completion": scripts for bash, zsh and fish, made from the tables of
 * commands and options. Numbers of jobs are asked for when they are needed, through --ids. */
#include <string.h>

#include "cli/ask.h"
#include "cli/view.h"

/* Text between single quotes of a shell. */
static void quoted(const char *s)
{
    for (; *s != '\0'; s++)
        if (*s == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)putchar(*s == '\n' ? ' ' : *s);
}

static void names(void)
{
    for (size_t i = 0; stk_commands[i]; i++)
        (void)printf("%s%s%s%s", i > 0 ? " " : "", stk_commands[i]->name,
                     stk_commands[i]->alias ? " " : "",
                     stk_commands[i]->alias ? stk_commands[i]->alias : "");
}

/* Calls 'fn' for each option of a command. */
static void each_option(const struct stk_command *cmd,
                        void (*fn)(const struct stk_command *cmd, const struct stk_option *o))
{
    const struct stk_options *g;

    for (int i = 0; (g = stk_options_of(cmd, i)) != NULL && !cmd->passes; i++)
        for (const struct stk_option *o = g->list; o->name; o++)
            fn(cmd, o);
}

static void bash_option(const struct stk_command *cmd, const struct stk_option *o)
{
    (void)cmd;
    (void)printf(" --%s", o->name);
}

static void bash_words(const char *complete)
{
    if (strcmp(complete, "@files") == 0)
        (void)fputs("compgen -f -- \"$cur\"", stdout);
    else if (strcmp(complete, "@dirs") == 0)
        (void)fputs("compgen -d -- \"$cur\"", stdout);
    else if (strcmp(complete, "@jobs") == 0)
        (void)fputs("compgen -W \"$(stoker completion --ids 2>/dev/null | cut -f1)\" -- \"$cur\"",
                    stdout);
    else if (strcmp(complete, "@commands") == 0)
        (void)fputs("compgen -W \"$commands\" -- \"$cur\"", stdout);
    else
        (void)printf("compgen -W '%s' -- \"$cur\"", complete);
}

static void bash_value(const struct stk_command *cmd, const struct stk_option *o)
{
    if (!o->arg)
        return;
    (void)printf("    %s:--%s", cmd->name, o->name);
    if (o->letter)
        (void)printf("|%s:-%c", cmd->name, o->letter);
    (void)fputs(") COMPREPLY=($(", stdout);
    if (o->complete)
        bash_words(o->complete);
    else
        (void)fputs("true", stdout);
    (void)fputs(")); return ;;\n", stdout);
}

static void bash(void)
{
    (void)fputs("# stoker completion bash; use: source <(stoker completion bash)\n"
                "_stoker() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "    local cmd=${COMP_WORDS[1]} commands='",
                stdout);
    names();
    (void)fputs("'\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\")); return\n    fi\n",
                stdout);
    for (size_t i = 0; stk_commands[i]; i++)
        if (stk_commands[i]->alias)
            (void)printf("    [ \"$cmd\" = %s ] && cmd=%s\n", stk_commands[i]->alias,
                         stk_commands[i]->name);
    (void)fputs("    case $cmd:$prev in\n", stdout);
    for (size_t i = 0; stk_commands[i]; i++)
        each_option(stk_commands[i], bash_value);
    (void)fputs("    esac\n    case $cmd:$cur in\n", stdout);
    for (size_t i = 0; stk_commands[i]; i++) {
        (void)printf("    %s:-*) COMPREPLY=($(compgen -W '", stk_commands[i]->name);
        each_option(stk_commands[i], bash_option);
        (void)fputs("' -- \"$cur\")) ;;\n", stdout);
        if (stk_commands[i]->complete) {
            (void)printf("    %s:*) COMPREPLY=($(", stk_commands[i]->name);
            bash_words(stk_commands[i]->complete);
            (void)fputs(")) ;;\n", stdout);
        }
    }
    (void)fputs("    esac\n}\ncomplete -o filenames -o bashdefault -F _stoker stoker\n", stdout);
}

static void zsh_action(const char *complete)
{
    if (!complete)
        (void)fputs(" ", stdout);
    else if (strcmp(complete, "@files") == 0)
        (void)fputs("_files", stdout);
    else if (strcmp(complete, "@dirs") == 0)
        (void)fputs("_files -/", stdout);
    else if (strcmp(complete, "@jobs") == 0)
        (void)fputs("_stoker_jobs", stdout);
    else if (strcmp(complete, "@commands") == 0)
        (void)fputs("_stoker_commands", stdout);
    else
        (void)printf("(%s)", complete);
}

/* Help between brackets: brackets and colons inside would end it. */
static void zsh_help(const char *help)
{
    for (; *help != '\0'; help++)
        if (*help == '[' || *help == ']' || *help == ':' || *help == '\\')
            (void)printf("\\%c", *help);
        else if (*help == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)putchar(*help == '\n' ? ' ' : *help);
}

static void zsh_option(const struct stk_command *cmd, const struct stk_option *o)
{
    (void)cmd;
    (void)printf(" \\\n        '*--%s[", o->name);
    zsh_help(o->help);
    (void)putchar(']');
    if (o->arg) {
        (void)putchar(':');
        zsh_help(o->arg);
        (void)putchar(':');
        zsh_action(o->complete);
    }
    (void)putchar('\'');
}

static void zsh(void)
{
    (void)fputs("#compdef stoker\n# stoker completion zsh; use: source <(stoker completion zsh)\n"
                "_stoker_jobs() {\n"
                "    local -a jobs; jobs=(${(f)\"$(stoker completion --ids 2>/dev/null | tr '\\t' "
                "':')\"})\n"
                "    _describe job jobs\n}\n_stoker_commands() {\n    local -a commands=(\n",
                stdout);
    for (size_t i = 0; stk_commands[i]; i++) {
        (void)printf("        '%s:", stk_commands[i]->name);
        quoted(stk_commands[i]->help);
        (void)fputs("'\n", stdout);
    }
    (void)fputs("    )\n    _describe command commands\n}\n_stoker() {\n"
                "    if (( CURRENT == 2 )); then _stoker_commands; return; fi\n"
                "    local cmd=$words[2]\n    shift words; (( CURRENT-- ))\n    case $cmd in\n",
                stdout);
    for (size_t i = 0; stk_commands[i]; i++) {
        (void)printf("    %s%s%s) _arguments", stk_commands[i]->name,
                     stk_commands[i]->alias ? "|" : "",
                     stk_commands[i]->alias ? stk_commands[i]->alias : "");
        each_option(stk_commands[i], zsh_option);
        (void)fputs(" \\\n        '*: :", stdout);
        zsh_action(stk_commands[i]->complete ? stk_commands[i]->complete : "@files");
        (void)fputs("' ;;\n", stdout);
    }
    (void)fputs("    esac\n}\ncompdef _stoker stoker\n", stdout);
}

static void fish_option(const struct stk_command *cmd, const struct stk_option *o)
{
    (void)printf("complete -c stoker -n '__fish_seen_subcommand_from %s%s%s' -l %s", cmd->name,
                 cmd->alias ? " " : "", cmd->alias ? cmd->alias : "", o->name);
    if (o->letter)
        (void)printf(" -s %c", o->letter);
    if (o->arg && o->complete && o->complete[0] == '@')
        (void)fputs(strcmp(o->complete, "@jobs") == 0
                        ? " -x -a '(stoker completion --ids 2>/dev/null)'"
                        : " -r -F",
                    stdout);
    else if (o->arg)
        (void)printf(" -x -a '%s'", o->complete ? o->complete : "");
    (void)fputs(" -d '", stdout);
    for (const char *h = o->help; *h != '\0'; h++)
        if (*h == '\'')
            (void)fputs("\\'", stdout);
        else
            (void)putchar(*h == '\n' ? ' ' : *h);
    (void)fputs("'\n", stdout);
}

static void fish(void)
{
    (void)fputs("# stoker completion fish; use: stoker completion fish | source\n"
                "complete -c stoker -f\n",
                stdout);
    for (size_t i = 0; stk_commands[i]; i++) {
        const struct stk_command *c = stk_commands[i];

        (void)printf("complete -c stoker -n __fish_use_subcommand -a %s -d '", c->name);
        quoted(c->help);
        (void)fputs("'\n", stdout);
        each_option(c, fish_option);
        if (!c->complete)
            continue;
        (void)printf("complete -c stoker -n '__fish_seen_subcommand_from %s%s%s'", c->name,
                     c->alias ? " " : "", c->alias ? c->alias : "");
        if (strcmp(c->complete, "@jobs") == 0)
            (void)fputs(" -a '(stoker completion --ids 2>/dev/null)'\n", stdout);
        else if (strcmp(c->complete, "@commands") == 0) {
            (void)fputs(" -a '", stdout);
            names();
            (void)fputs("'\n", stdout);
        } else if (c->complete[0] == '@')
            (void)fputs(" -F\n", stdout);
        else
            (void)printf(" -a '%s'\n", c->complete);
    }
}

/* "12<tab>name, state" for each job, for the scripts; says nothing when it cannot. */
static int print_ids(const struct stk_args *a)
{
    struct stk_err err = {""};
    char path[256], clean[160], id[40];
    json_t *page = NULL;
    struct stk_client *c;

    (void)a;
    if (stk_client_find(NULL, path, sizeof(path), &err) < 0 || !(c = stk_client_new(path)))
        return STK_EXIT_FAILED;
    (void)stk_client_get(c, &page, &err, "/v1/jobs?user=me&limit=200");
    for (size_t i = 0; i < json_array_size(json_object_get(page, "jobs")); i++) {
        const json_t *job = json_array_get(json_object_get(page, "jobs"), i);

        (void)printf("%s\t%s, %s\n", stk_view_id(job, id, sizeof(id)),
                     stk_text_clean(clean, sizeof(clean), stk_str(job, "name"), false),
                     stk_view_state(job));
    }
    json_decref(page);
    stk_client_free(c);
    return STK_EXIT_OK;
}

static int run_completion(const struct stk_args *a)
{
    const char *shell = a->n_words == 1 ? a->words[0] : "";

    if (stk_arg_is(a, "ids"))
        return print_ids(a);
    if (strcmp(shell, "bash") == 0)
        bash();
    else if (strcmp(shell, "zsh") == 0)
        zsh();
    else if (strcmp(shell, "fish") == 0)
        fish();
    else
        return stk_misused(a, "bash, zsh or fish");
    return STK_EXIT_OK;
}

static const struct stk_option own[] = {
    {"ids", 0, NULL, "print my jobs, for these scripts", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_completion = {
    .name = "completion",
    .synopsis = "bash\nzsh\nfish",
    .help = "completion for a shell: source <(stoker completion bash)",
    .complete = "bash zsh fish",
    .options = groups,
    .section = STK_SECTION_SITE,
    .offline = true,
    .run = run_completion,
};
