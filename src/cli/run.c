/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - "stoker run": sends a job and stays with it; "stoker shell": a shell as a job. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/attach.h"
#include "cli/describe.h"
#include "cli/follow.h"
#include "cli/input.h"
#include "cli/submit.h"
#include "cli/view.h"

#define MAX_OUTPUTS 1000u /* workers whose output is shown */

static const struct stk_option run_own[] = {
    {"interactive", 'i', NULL, "with a terminal; -it is the same", NULL},
    {"tty", 't', NULL, "the same as --interactive", NULL},
    {"detach", 0, NULL, "submit only; \"stoker attach\" gets back to it", NULL},
    {"dry-run", 0, NULL, "check it and say when it would start; submit nothing", NULL},
    {"quiet", 0, NULL, "say nothing about its state", NULL},
    {"no-stdin", 0, NULL, "leave standard input alone; the job gets none", NULL},
    {0},
};
static const struct stk_options run_groups[] = {
    {"options", run_own},
    {"what it needs", stk_describe_resources},
    {"when it runs", stk_describe_when},
    {"how it runs", stk_describe_how},
    {"output", stk_describe_output},
    {0},
};

static void want_terminal(json_t *spec)
{
    const char *term = getenv("TERM");
    struct winsize w = {.ws_row = 24, .ws_col = 80};

    (void)ioctl(STDIN_FILENO, TIOCGWINSZ, &w);
    (void)json_object_set_new(spec, "interactive", json_true());
    (void)json_object_set_new(spec, "term", json_string(term && *term != '\0' ? term : "xterm"));
    (void)json_object_set_new(spec, "rows", json_integer(w.ws_row));
    (void)json_object_set_new(spec, "cols", json_integer(w.ws_col));
}

/* Each job writes into a file of its own unless the pattern names neither job nor index. */
static bool own_file(const json_t *spec, const char *key)
{
    const char *pattern = json_string_value(json_object_get(spec, key));
    bool own = pattern == NULL;

    for (const char *p = pattern ? strchr(pattern, '%') : NULL; p && !own; p = strchr(p, '%')) {
        p += 1 + strspn(p + 1, "0123456789");
        own = *p == 'j' || *p == 'J' || *p == 'a';
    }
    return own;
}

enum input { INPUT_NONE, INPUT_SENT, INPUT_LOST };

/* What becomes of our standard input: the job's, nothing, or (with the reason) it cannot be sent. A
 * gang's goes to its task 0. */
static enum input plan_input(struct stk_ask *k, const json_t *spec, const char **ret_why)
{
    static const char *const others[][2] = {
        {"array", "an array is many jobs"},
        {"items", "a batch is many commands"},
        {"schedule", "a schedule sends its jobs later"},
    };
    json_t *health = NULL;
    bool local;

    if (json_object_get(spec, "stdin") || stk_arg_is(k->a, "no-stdin") ||
        stk_arg_is(k->a, "dry-run") || !stk_input_there())
        return INPUT_NONE;
    *ret_why = stk_arg_is(k->a, "detach") ? "with --detach nobody stays to send it" : NULL;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (json_object_get(spec, others[i][0]))
            *ret_why = others[i][1];
    if (*ret_why)
        return INPUT_LOST;
    if (stk_client_get(k->c, &health, NULL, "/v1/health") != 0)
        return INPUT_NONE; /* nor can the job be sent */
    local = strcmp(stk_str(health, "engine"), "local") == 0;
    json_decref(health);
    *ret_why = "Slurm runs the jobs, perhaps on another machine";
    return local ? INPUT_SENT : INPUT_LOST;
}

/* Sends it and stays. */
static int submit_and_stay(struct stk_ask *k, const json_t *spec, bool interactive,
                           struct stk_input *input)
{
    const struct stk_args *a = k->a;
    bool dry_run = stk_arg_is(a, "dry-run"), detach = stk_arg_is(a, "detach");
    struct stk_follow f = {.output = true,
                           .errors = json_object_get(spec, "stderr") != NULL,
                           .cancel = true,
                           .input = input,
                           .quiet = stk_arg_is(a, "quiet")};
    json_t *reply = NULL;
    int rc = stk_ask_submit(k, spec, stk_arg(a, "key"), dry_run, &reply);

    if (rc != STK_EXIT_OK)
        return dry_run || detach || rc == STK_EXIT_USAGE || rc == STK_EXIT_UNREACHABLE
                   ? rc
                   : STK_EXIT_OURS;
    f.id = (uint32_t)stk_ask_submitted(reply);
    f.count = (uint32_t)stk_int(reply, "count", 1);
    f.outputs = !own_file(spec, "stdout") || !own_file(spec, "stderr") ? 1
                : f.count < MAX_OUTPUTS                                ? f.count
                                                                       : MAX_OUTPUTS;
    if (dry_run || detach) {
        stk_ask_submit_say(k, reply, dry_run);
    } else {
        if (!f.quiet)
            (void)fprintf(stderr, "stoker: job %u\n", f.id);
        rc = interactive ? stk_attach(k, f.id, true) : stk_follow(k, &f);
    }
    json_decref(reply);
    return rc;
}

static int run_job(const struct stk_args *a, bool shell)
{
    bool interactive = shell || stk_arg_is(a, "interactive") || stk_arg_is(a, "tty");
    struct stk_err err = {""};
    struct stk_input input = {.fd = -1};
    enum input plan = INPUT_NONE;
    json_t *spec = NULL;
    struct stk_ask k;
    int rc = stk_ask_open(&k, a);

    if (rc == STK_EXIT_OK && stk_describe(a, shell, &spec, &err) < 0)
        rc = stk_misused(a, "%s", err.text);
    if (rc == STK_EXIT_OK && !stk_arg_is(a, "detach") && json_object_get(spec, "array"))
        rc = stk_misused(a, "an array is many jobs: stoker submit, then stoker wait");
    if (rc == STK_EXIT_OK && interactive && !stk_arg_is(a, "detach") && !stk_arg_is(a, "dry-run") &&
        isatty(STDIN_FILENO) != 1)
        rc = stk_misused(a, "standard input is not a terminal");
    if (rc == STK_EXIT_OK && interactive)
        want_terminal(spec);
    if (rc == STK_EXIT_OK && !interactive)
        plan = plan_input(&k, spec, &input.lost);
    if (plan == INPUT_SENT && stk_input_open(&input, spec, &err) < 0)
        rc = stk_ask_fail(&k, -EIO, &err);
    if (plan == INPUT_LOST)
        stk_input_warn(&input);
    if (rc == STK_EXIT_OK)
        rc = submit_and_stay(&k, spec, interactive, plan != INPUT_NONE ? &input : NULL);
    if (plan == INPUT_SENT)
        stk_input_done(&input);
    json_decref(spec);
    stk_ask_close(&k);
    return rc;
}

static int run_run(const struct stk_args *a)
{
    return run_job(a, false);
}

static int run_shell(const struct stk_args *a)
{
    return run_job(a, true);
}

const struct stk_command stk_cmd_run = {
    .name = "run",
    .synopsis = "[options] FILE [args...]\n[options] -- CMD...",
    .help = "send a job, show its output, exit with its code",
    .about =
        "Takes what \"stoker submit\" takes. While the job waits, the reason is shown on standard\n"
        "error. Ctrl-C cancels the job, a second one leaves it to itself. The exit code is the\n"
        "job's own, 128 + signal, or 125 when stoker itself failed.\n"
        "\n"
        "Standard input goes to the job (as with ssh: in a loop that reads lines, give\n"
        "--no-stdin or </dev/null), with several tasks to task 0. It is sent once: a job that\n"
        "has read some of it and must start again fails instead.",
    .complete = "@files",
    .options = run_groups,
    .section = STK_SECTION_JOBS,
    .ends = true,
    .run = run_run,
};

const struct stk_command stk_cmd_shell = {
    .name = "shell",
    .synopsis = "[options] [CMD...]",
    .help = "a shell with GPUs, as a job",
    .about = "Ctrl-P Ctrl-Q leaves it running; \"stoker attach\" gets back to it.",
    .options = run_groups,
    .section = STK_SECTION_JOBS,
    .ends = true,
    .run = run_shell,
};
