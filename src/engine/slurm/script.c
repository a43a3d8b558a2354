/* SPDX-License-Identifier: Apache-2.0 */
/* script.c - what Slurm runs for a description. A script goes as it is; a command becomes a script
 * of one line; a gang of which each task is a process of its own is started by srun. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"

#define FIRST_PORT 15000u
#define N_PORTS 10000u

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static int64_t number(const json_t *o, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? (int64_t)json_number_value(v) : otherwise;
}

/* For a shell: in quotes, whatever it holds. */
static void quote(FILE *f, const char *s)
{
    (void)fputc('\'', f);
    for (; *s; s++)
        if (*s == '\'')
            (void)fputs("'\\''", f);
        else
            (void)fputc(*s, f);
    (void)fputc('\'', f);
}

static void put_words(FILE *f, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *w = json_array_get(list, i);

        (void)fputc(' ', f);
        quote(f, json_string_value(w) ? json_string_value(w) : "");
    }
}

/* Where its processes meet. */
static void put_gang(FILE *f, const struct stk_slurm_job *j)
{
    (void)fprintf(f,
                  "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                  "export MASTER_ADDR MASTER_PORT=%u WORLD_SIZE=\"$SLURM_NTASKS\" "
                  "NUM_NODES=\"$SLURM_JOB_NUM_NODES\"\n",
                  FIRST_PORT + j->number % N_PORTS);
}

static const char each[] =
    "exec srun --kill-on-bad-exit=1 /bin/sh -c 'export RANK=\"$SLURM_PROCID\" "
    "LOCAL_RANK=\"$SLURM_LOCALID\" NODE_RANK=\"$SLURM_NODEID\" STOKER_TASK=\"$SLURM_PROCID\" "
    "STOKER_NODE=\"$SLURMD_NODENAME\" STOKER_GPUS=\"$CUDA_VISIBLE_DEVICES\"; exec \"$0\" \"$@\"'";

static char *wrap(const struct stk_slurm_job *j, const json_t *spec, bool one_each)
{
    const char *venv = text(spec, "venv"), *setup = text(spec, "setup");
    char *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    if (!f)
        return NULL;
    (void)fputs("#!/bin/sh\n"
                "export STOKER_NODE=\"$SLURMD_NODENAME\" STOKER_GPUS=\"$CUDA_VISIBLE_DEVICES\" "
                "STOKER_RESTARTS=\"${SLURM_RESTART_COUNT:-0}\"\n",
                f);
    if (j->n_pieces > 1 || number(spec, "tasks", 1) > 1)
        put_gang(f, j);
    if (*venv) {
        (void)fputs(". ", f);
        quote(f, venv);
        (void)fputs("/bin/activate\n", f);
    }
    if (*setup)
        (void)fprintf(f, "%s\n", setup);
    (void)fputs(one_each ? each : "exec", f);
    put_words(f, json_object_get(spec, "command"));
    (void)fputc('\n', f);
    if (fclose(f) != 0) {
        free(out);
        return NULL;
    }
    return out;
}

/* As it is, with a first line that says what runs it. */
static char *plain(const json_t *spec)
{
    const char *script = text(spec, "script");
    char *out = NULL;

    return asprintf(&out, "%s%s", strncmp(script, "#!", 2) == 0 ? "" : "#!/bin/sh\n", script) < 0
               ? NULL
               : out;
}

char *stk_slurm_script_of(const struct stk_slurm_job *j, const json_t *spec, struct stk_err *err)
{
    bool gang = number(spec, "tasks", 1) > 1;
    const char *launch = text(spec, "launch");
    bool one_each = gang && strcmp(launch, "once") != 0;
    char *out;

    if (json_object_get(spec, "script") &&
        (one_each || *text(spec, "setup") || *text(spec, "venv"))) {
        (void)stk_err_set(err, -EOPNOTSUPP,
                          "a script with setup, venv or several tasks of its own cannot be run by "
                          "Slurm: call srun in it, or send a command");
        return NULL;
    }
    out = json_object_get(spec, "script") ? plain(spec) : wrap(j, spec, one_each);
    if (!out)
        (void)stk_err_set(err, -ENOMEM, "out of memory");
    return out;
}
