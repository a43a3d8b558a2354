/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - "stoker-gpu COMMAND ...": what the scheduler needs of NVIDIA's driver, in a process of
 * its own, so that a driver that crashes or hangs takes nobody with it.
 *
 * Answers are JSON lines on standard output. Exit: 0 done, 1 refused (the line says why), 2 used
 * wrongly. See docs/spec/gpu-helper.md.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/args.h"

static const struct command {
    const char *name;
    int (*work)(struct stk_guard *g, void *args);
    const char *help;
} commands[] = {
    {"list", stk_gpu_list, "the GPUs of this machine"},
    {"watch", stk_gpu_watch, "[--interval-ms N] [--count N]: a line of readings per interval"},
    {"suspend", stk_gpu_suspend,
     "[--lock-timeout-ms N] [--host-reserve-mib N] PID...: frees the GPU memory of the processes"},
    {"resume", stk_gpu_resume,
     "[--gpu UUID --need-mib N]... [--wait-ms N] [--move OLD=NEW]... PID...: puts it back"},
    {"state", stk_gpu_state, "PID...: what is suspended"},
};

static int usage(FILE *f)
{
    (void)fprintf(f, "stoker-gpu " STK_VERSION ": what stoker needs of the GPU driver\n\n"
                     "usage: stoker-gpu COMMAND ... [--timeout-ms N]\n\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        (void)fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].help);
    return f == stdout ? 0 : 2;
}

/* The worker never said how it ended: the guard does. */
static int tell(const struct command *c, const char *why)
{
    json_t *line = json_pack("{s:b, s:s}", "ok", 0, "why", why);

    if (strcmp(c->name, "list") == 0 || strcmp(c->name, "watch") == 0)
        (void)json_object_set_new(line, "gpus", json_array());
    (void)stk_guard_print(line);
    return 1;
}

static int run(const struct command *c, struct stk_gpu_args *a)
{
    struct stk_guard_result r, undone;
    struct stk_gpu_undo undo = {.args = a, .why = r.why};

    (void)stk_guard_run(c->work, a, &r);
    if (r.end == STK_GUARD_ENDED)
        return r.code;
    if (c->work != stk_gpu_suspend)
        return tell(c, r.why);
    (void)stk_guard_run(stk_gpu_undo, &undo, &undone);
    return undone.end == STK_GUARD_ENDED ? 1 : tell(c, r.why);
}

/* The environment is that of whoever called: it must not hide GPUs from us, nor make us a client of
 * MPS, which could not suspend anything. */
static void clean_environment(void)
{
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    struct stk_gpu_args args;
    struct stk_err err;
    int code;

    if (strcmp(word, "--help") == 0 || strcmp(word, "help") == 0 || strcmp(word, "-h") == 0)
        return usage(stdout);
    if (strcmp(word, "--version") == 0) {
        (void)puts("stoker-gpu " STK_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(word, commands[i].name) != 0)
            continue;
        if (stk_gpu_args_parse(&args, argc - 1, argv + 1, &err) < 0) {
            (void)fprintf(stderr, "stoker-gpu: %s\n", err.text);
            return 2;
        }
        (void)signal(SIGPIPE, SIG_IGN);
        clean_environment();
        code = run(&commands[i], &args);
        stk_gpu_args_done(&args);
        return code;
    }
    return usage(stderr);
}
