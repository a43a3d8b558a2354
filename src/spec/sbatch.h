/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch.h - requests in sbatch's words: #SBATCH lines, SBATCH_* variables, command lines of sbatch
 * and srun.
 *
 * The sources are given in the order in which they win, weakest first: script, environment, command
 * line. A flag that cannot be honoured is an error that names it and the line; one that asks for a
 * mere nicety is a note.
 *
 *     struct stk_sbatch s;
 *     stk_sbatch_init(&s, STK_TOOL_SBATCH, time(NULL));
 *     stk_sbatch_script(&s, text, len, "job.sh", &err);
 *     stk_sbatch_env(&s, environ, &err);
 *     stk_sbatch_args(&s, argc, argv, &rest, &err);
 *     json_t *job = stk_sbatch_job(&s, &err);
 *     stk_sbatch_done(&s);
 */
#ifndef STK_SPEC_SBATCH_H
#define STK_SPEC_SBATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum stk_sbatch_tool { STK_TOOL_SBATCH = 1, STK_TOOL_SRUN = 2 };

/* What was asked for; numbers are -1 and strings NULL when nothing was said. */
struct stk_sbatch {
    enum stk_sbatch_tool tool;
    int64_t now_s;
    int64_t nodes, ntasks, per_node, cpus, cpus_per_gpu;
    int64_t gpus, gpus_per_node, gpus_per_task; /* of which one is set */
    int64_t gpu_milli; /* part of a GPU, and that one is 1; 0: whole ones */
    int64_t mem_mib, mem_per_cpu_mib, mem_per_gpu_mib;
    int64_t nice, priority;
    bool nice_set, priority_set;
    bool wait, parsable, test_only, quiet;             /* sbatch */
    bool label, unbuffered, pty, kill_on_bad, no_kill; /* srun */
    char *export, *wrap, *jobid;
    json_t *job;   /* keys of the description that need no arithmetic */
    json_t *notes; /* strings: what was accepted and will not be done */
    char *script;  /* the whole text */
    size_t script_len;
    char where[64]; /* of the script */
};

void stk_sbatch_init(struct stk_sbatch *s, enum stk_sbatch_tool tool, int64_t now_s);
void stk_sbatch_done(struct stk_sbatch *s);

/* Reads the #SBATCH lines up to the first command and keeps the text. */
int stk_sbatch_script(struct stk_sbatch *s, const char *text, size_t len, const char *where,
                      struct stk_err *err);

/* SBATCH_PARTITION and the like; nothing for srun, whose variables are the job's own. */
int stk_sbatch_env(struct stk_sbatch *s, char *const *environment, struct stk_err *err);

/* argv[0] is the program. *ret_rest is the index of the first word that is no option. */
int stk_sbatch_args(struct stk_sbatch *s, int argc, char **argv, int *ret_rest,
                    struct stk_err *err);

/* The description, which passes the check. Its envs are only what sbatch tells a script about its
 * tasks (stk_sbatch_export() adds the rest), and without --chdir it has no workdir. A new
 * reference.
 */
json_t *stk_sbatch_job(struct stk_sbatch *s, struct stk_err *err);

/* How many tasks were asked for. */
int64_t stk_sbatch_tasks(const struct stk_sbatch *s);

/* Fills the job's envs as --export asks: "ALL" (also when nothing was said), "NONE", "NIL",
 * "ALL,A=1", "A,B=2". Variables of a job we are in ourselves are left out. */
int stk_sbatch_export(const struct stk_sbatch *s, json_t *job, char *const *environment,
                      struct stk_err *err);

#endif
