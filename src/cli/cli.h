/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the commands, one file each (or a few that are alike in one). A command is data and a
 * function: the table in commands.c drives usage, --help, errors with the nearest name, completion
 * and the man pages.
 *
 * Exit codes: 0 done, 1 the request failed, 2 bad usage or bad input, 3 cannot reach the daemon.
 * "run" and "wait" exit with the job's own code, 128 + signal, or 125 when stoker itself failed.
 */
#ifndef STK_CLI_CLI_H
#define STK_CLI_CLI_H

#include "cli/options.h"

#define STK_VERSION "0.1.0"

enum stk_exit {
    STK_EXIT_OK,
    STK_EXIT_FAILED,
    STK_EXIT_USAGE,
    STK_EXIT_UNREACHABLE,
    STK_EXIT_OURS = 125
};

enum stk_section { STK_SECTION_JOBS, STK_SECTION_LOOK, STK_SECTION_CHANGE, STK_SECTION_SITE };

struct stk_command {
    const char *name, *alias; /* alias: NULL when there is none */
    const char *synopsis;     /* what follows the name; a line for each form */
    const char *help;         /* one line */
    const char *about;        /* more, for --help and the man page; NULL: nothing */
    const char *complete; /* what words it takes: "@jobs", "@files", "@commands", or the words */
    const struct stk_options *options; /* ends with a NULL list; NULL: none */
    enum stk_section section;
    bool passes;  /* gets its arguments as they are: another program takes them */
    bool ends;    /* options end at the first word: what follows belongs to the job */
    bool offline; /* does not talk to the daemon: no --socket and --json */
    int (*run)(const struct stk_args *a);
    void (*more)(FILE *f); /* text after the options of --help; NULL: none */
};

extern const struct stk_command *const stk_commands[]; /* ends with NULL */

extern const struct stk_command stk_cmd_baseline, stk_cmd_export, stk_cmd_whatif;
extern const struct stk_command stk_cmd_slurm_leave, stk_cmd_login;
extern const struct stk_command stk_cmd_adopt, stk_cmd_attach, stk_cmd_cancel, stk_cmd_completion,
    stk_cmd_config, stk_cmd_demo, stk_cmd_drain, stk_cmd_gpus, stk_cmd_help, stk_cmd_history,
    stk_cmd_hold, stk_cmd_logs, stk_cmd_nodes, stk_cmd_quota, stk_cmd_tenants, stk_cmd_queue,
    stk_cmd_release, stk_cmd_reserve, stk_cmd_rule, stk_cmd_requeue, stk_cmd_resume, stk_cmd_run,
    stk_cmd_serve, stk_cmd_shell, stk_cmd_show, stk_cmd_sim, stk_cmd_slurm_shims, stk_cmd_store,
    stk_cmd_submit, stk_cmd_suspend, stk_cmd_token, stk_cmd_top, stk_cmd_undrain, stk_cmd_alerts,
    stk_cmd_report, stk_cmd_checkpointed, stk_cmd_defrag, stk_cmd_update, stk_cmd_version,
    stk_cmd_wait, stk_cmd_why;

/* The command of this name or alias, or NULL. */
const struct stk_command *stk_command_find(const char *word);

/* "stoker NAME: sentence" on standard error; returns STK_EXIT_USAGE. */
int stk_misused(const struct stk_args *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "stoker NAME --help". */
void stk_command_help(const struct stk_command *cmd, FILE *f);

/* "stoker help --man". */
void stk_command_man(const struct stk_command *cmd, FILE *f);
void stk_man(FILE *f);

/* "stoker help". */
void stk_usage(FILE *f);

#endif
