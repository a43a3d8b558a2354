/* SPDX-License-Identifier: Apache-2.0 */
/* script.c - what Slurm runs for a description.
 *
 * A script goes as it is. A command, and a script that wants more than Slurm does (setup lines, a
 * Python environment, one process for each task), becomes a script around it, whose last line runs
 * it:
 *
 *     exec COMMAND                                one process
 *     exec srun ... COMMAND                       one for each task, on all nodes
 *     exec BASH /dev/fd/9 ARGS 9<<'END'           a script: it is read from there
 *
 * Every last line begins with exec, so that signals for the batch script are the job's own. For
 * tasks srun hands the script to each as its input; a task keeps it in a file that has no name any
 * more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "sys/json.h"

#define FIRST_PORT 15000u
#define N_PORTS 10000u

bool stk_slurm_one_each(const json_t *spec)
{
    return stk_int(spec, "tasks", 1) > 1 && strcmp(stk_str(spec, "launch"), "once") != 0;
}

/* ---- words for a shell ---- */

/* In quotes, whatever it holds. */
static void quote_n(FILE *f, const char *s, size_t n)
{
    (void)fputc('\'', f);
    for (size_t i = 0; i < n; i++)
        if (s[i] == '\'')
            (void)fputs("'\\''", f);
        else
            (void)fputc(s[i], f);
    (void)fputc('\'', f);
}

static void quote(FILE *f, const char *s)
{
    quote_n(f, s, strlen(s));
}

static void put_option(FILE *f, const char *name, const char *value)
{
    if (!*value)
        return;
    (void)fprintf(f, " --%s=", name);
    quote(f, value);
}

static void put_words(FILE *f, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *w = json_array_get(list, i);

        (void)fputc(' ', f);
        quote(f, json_string_value(w) ? json_string_value(w) : "");
    }
}

/* What its first line says runs it, with one word after it, as the kernel does. */
static void put_interpreter(FILE *f, const char *script)
{
    const char *s = strncmp(script, "#!", 2) == 0 ? script + 2 : "\n";
    size_t n = strcspn(s += strspn(s, " \t"), "\r\n"), len = strcspn(s, " \t\r\n"), gap;

    (void)fputc(' ', f);
    if (len == 0) {
        (void)fputs("/bin/sh", f);
        return;
    }
    quote_n(f, s, len);
    gap = strspn(s + len, " \t");
    while (n > len + gap && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        n--;
    if (n > len + gap) {
        (void)fputc(' ', f);
        quote_n(f, s + len + gap, n - len - gap);
    }
}

/* A line that the script does not have, to end it with. */
static void end_of(const char *script, char *buf, size_t size)
{
    unsigned n = 0;

    do
        (void)snprintf(buf, size, "STOKER_END_%u", n++);
    while (strstr(script, buf));
}

/* ---- before it runs ---- */

/* Where its processes meet. */
static void put_gang(FILE *f, const struct stk_slurm_job *j)
{
    (void)fprintf(f,
                  "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                  "export MASTER_ADDR MASTER_PORT=%u WORLD_SIZE=\"$SLURM_NTASKS\" "
                  "NUM_NODES=\"$SLURM_JOB_NUM_NODES\"\n",
                  FIRST_PORT + j->number % N_PORTS);
}

/* What was in its files before; a restart goes on. */
static void put_empty(FILE *f, const struct stk_slurm_job *j, const struct stk_slurm_files *files)
{
    if (!files->empty || j->restarts > 0 || j->before > 0)
        return;
    for (int i = 0; i < 2; i++)
        if (*files->path[i]) {
            (void)fputs("[ \"${SLURM_RESTART_COUNT:-0}\" -gt 0 ] || : >", f);
            quote(f, files->path[i]);
            (void)fputc('\n', f);
        }
}

static void put_head(FILE *f, const struct stk_slurm_job *j, const json_t *spec,
                     const struct stk_slurm_files *files)
{
    const char *venv = stk_str(spec, "venv"), *setup = stk_str(spec, "setup");

    (void)fprintf(f,
                  "#!/bin/%s\n"
                  "export STOKER_NODE=\"$SLURMD_NODENAME\" STOKER_GPUS=\"$CUDA_VISIBLE_DEVICES\" "
                  "STOKER_RESTARTS=\"${SLURM_RESTART_COUNT:-0}\"\n",
                  *setup ? "bash" : "sh");
    put_empty(f, j, files);
    if (j->n_pieces > 1 || stk_int(spec, "tasks", 1) > 1)
        put_gang(f, j);
    if (*venv) {
        (void)fputs(". ", f);
        quote(f, venv);
        (void)fputs("/bin/activate\n", f);
    }
    if (*setup)
        (void)fprintf(f, "set -e\n%s\nset +e\n", setup);
}

/* ---- what runs ---- */

static const char each[] =
    " /bin/sh -c 'export RANK=\"$SLURM_PROCID\" LOCAL_RANK=\"$SLURM_LOCALID\" "
    "NODE_RANK=\"$SLURM_NODEID\" STOKER_TASK=\"$SLURM_PROCID\" "
    "STOKER_NODE=\"$SLURMD_NODENAME\" STOKER_GPUS=\"$CUDA_VISIBLE_DEVICES\"; ";
static const char run[] = "exec \"$0\" \"$@\"'";
static const char run_script[] = "f=$(mktemp \"${TMPDIR:-/tmp}/stoker.XXXXXX\") && cat >\"$f\" && "
                                 "exec 9<\"$f\" && rm -f \"$f\" || "
                                 "exit 126; exec \"$0\" \"$@\" <\"${STOKER_STDIN:-/dev/null}\"'";

static void put_last(FILE *f, const json_t *spec, const struct stk_slurm_files *files)
{
    const char *script = stk_str(spec, "script");
    bool one_each = stk_slurm_one_each(spec);
    char end[32];

    if (one_each && *script && *files->path[2]) {
        (void)fputs("export STOKER_STDIN=", f);
        quote(f, files->path[2]);
        (void)fputc('\n', f);
    }
    (void)fputs(one_each ? "exec srun --kill-on-bad-exit=1"
                           "${SLURM_CPUS_PER_TASK:+ --cpus-per-task=$SLURM_CPUS_PER_TASK}"
                         : "exec",
                f);
    if (one_each && (*files->each[0] || *files->each[1])) {
        put_option(f, "open-mode", "append");
        put_option(f, "output", files->each[0]);
        put_option(f, "error", files->each[1]);
    }
    if (one_each)
        (void)fprintf(f, "%s%s", each, *script ? run_script : run);
    if (!*script) {
        put_words(f, json_object_get(spec, "command"));
        (void)fputc('\n', f);
        return;
    }
    end_of(script, end, sizeof(end));
    put_interpreter(f, script);
    (void)fputs(" /dev/fd/9", f);
    put_words(f, json_object_get(spec, "args"));
    (void)fprintf(f, " %s<<'%s'\n%s%s%s\n", one_each ? "" : "9", end, script,
                  script[strlen(script) - 1] == '\n' ? "" : "\n", end);
}

static char *wrap(const struct stk_slurm_job *j, const json_t *spec,
                  const struct stk_slurm_files *files)
{
    char *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    if (!f)
        return NULL;
    put_head(f, j, spec, files);
    put_last(f, spec, files);
    if (fclose(f) != 0) {
        free(out);
        return NULL;
    }
    return out;
}

bool stk_slurm_as_it_is(const json_t *spec)
{
    return *stk_str(spec, "script") && !*stk_str(spec, "setup") && !*stk_str(spec, "venv") &&
           !stk_slurm_one_each(spec);
}

/* With a first line that says what runs it. */
static char *plain(const char *script)
{
    char *out = NULL;

    return asprintf(&out, "%s%s", strncmp(script, "#!", 2) == 0 ? "" : "#!/bin/sh\n", script) < 0
               ? NULL
               : out;
}

char *stk_slurm_script_of(const struct stk_slurm_job *j, const json_t *spec,
                          const struct stk_slurm_files *files, struct stk_err *err)
{
    char *out = stk_slurm_as_it_is(spec) ? plain(stk_str(spec, "script")) : wrap(j, spec, files);

    if (!out)
        (void)stk_err_set(err, -ENOMEM, "out of memory");
    return out;
}
