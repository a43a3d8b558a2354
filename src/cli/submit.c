/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - "stoker submit": sends a job and returns at once. */
#include "cli/submit.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/describe.h"
#include "cli/view.h"

/* A key nobody else has: a submission cut off half-way can be sent again without a second job. */
static void make_key(char *buf, size_t size)
{
    unsigned char r[16] = {0};
    size_t n = (size_t)snprintf(buf, size, "cli-%d-", (int)getpid());

    (void)getrandom(r, sizeof(r), 0);
    for (size_t i = 0; i < sizeof(r) && n + 3 <= size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%02x", (unsigned)r[i]);
}

int stk_ask_submit(struct stk_ask *k, const json_t *spec, const char *key, bool dry_run,
                   json_t **ret_reply)
{
    char made[64];
    struct stk_call call = {.method = "POST",
                            .path = dry_run ? "/v1/jobs?dry_run=1" : "/v1/jobs",
                            .body = spec,
                            .key = key};
    struct stk_err err = {""};
    int rc;

    make_key(made, sizeof(made));
    if (!key && !dry_run)
        call.key = made;
    rc = stk_client_call(k->c, &call, ret_reply, &err);
    if (rc == -EPIPE && call.key) /* the daemon went away: it may be back, and knows the key */
        rc = stk_client_call(k->c, &call, ret_reply, &err);
    return rc < 0 ? stk_ask_fail(k, rc, &err) : STK_EXIT_OK;
}

int64_t stk_ask_submitted(const json_t *reply)
{
    int64_t id = stk_int(reply, "id", 0);

    return id > 0 ? id : stk_int(reply, "first", 0);
}

/* What a dry run found: when it would start. */
static void say_dry_run(const json_t *reply)
{
    const char *answer = stk_str(reply, "answer");
    int64_t evicts = stk_int(reply, "evicts", 0);
    char time[64];

    (void)printf("Not submitted. ");
    if (strcmp(answer, "now") == 0 && evicts > 0)
        (void)printf("It would start at once; %lld running job%s would make room.\n",
                     (long long)evicts, evicts == 1 ? "" : "s");
    else if (strcmp(answer, "now") == 0)
        (void)printf("It would start at once.\n");
    else if (strcmp(answer, "later") == 0 && stk_num(reply, "expected_start", 0) > 0)
        (void)printf("It would wait, and is expected to start at %s.\n",
                     stk_text_time(stk_num(reply, "expected_start", 0), time, sizeof(time)));
    else
        (void)printf("It would be accepted%s.\n",
                     strcmp(answer, "unknown") == 0 ? "; when it would start is not known" : "");
}

/* Whether it will keep its deadline. */
static void say_deadline(const json_t *reply)
{
    const char *answer = stk_str(json_object_get(reply, "deadline"), "answer");
    char text[160];

    if (*stk_view_deadline(reply, text, sizeof(text)) != '\0')
        (void)printf("%s %s\n", strcmp(answer, "feasible") == 0 ? "Deadline:" : "Warning: deadline",
                     text);
}

void stk_ask_submit_say(const struct stk_ask *k, const json_t *reply, bool dry_run)
{
    int64_t count =
        stk_int(reply, "count", (int64_t)json_array_size(json_object_get(reply, "ids")));
    const char *out = stk_str(reply, "stdout");
    char clean[4096];

    if (k->json) {
        stk_print_json(reply);
        return;
    }
    if (dry_run) {
        say_dry_run(reply);
        say_deadline(reply);
        return;
    }
    if (count > 1)
        (void)printf("Submitted job %lld, an array of %lld\n", (long long)stk_ask_submitted(reply),
                     (long long)count);
    else
        (void)printf("Submitted job %lld\n", (long long)stk_ask_submitted(reply));
    say_deadline(reply);
    if (*out != '\0' && k->out.tty)
        (void)printf("Output: %s\n", stk_text_clean(clean, sizeof(clean), out, false));
}

static int run_submit(const struct stk_args *a)
{
    bool dry_run = stk_arg_is(a, "dry-run");
    struct stk_err err = {""};
    json_t *spec = NULL, *reply = NULL;
    struct stk_ask k;
    int rc = stk_ask_open(&k, a);

    if (rc == STK_EXIT_OK && stk_describe(a, false, &spec, &err) < 0)
        rc = stk_misused(a, "%s", err.text);
    if (rc == STK_EXIT_OK)
        rc = stk_ask_submit(&k, spec, stk_arg(a, "key"), dry_run, &reply);
    if (rc == STK_EXIT_OK)
        stk_ask_submit_say(&k, reply, dry_run);
    json_decref(reply);
    json_decref(spec);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"dry-run", 0, NULL, "check it and say when it would start; submit nothing", NULL},
    {0},
};
const struct stk_options stk_submit_groups[] = {
    {"options", own},
    {"what it needs", stk_describe_resources},
    {"when it runs", stk_describe_when},
    {"how it runs", stk_describe_how},
    {"output", stk_describe_output},
    {0},
};

const struct stk_command stk_cmd_submit = {
    .name = "submit",
    .synopsis = "[options] FILE [args...]\n[options] -- CMD...",
    .help = "send a job to the queue",
    .about =
        "FILE is a job file (.yaml), a script with #SBATCH lines, any other script, or a program;\n"
        "\"-\" reads a script from standard input. Options here win over what the file says.\n"
        "The environment, the current folder and the umask go along.",
    .complete = "@files",
    .options = stk_submit_groups,
    .section = STK_SECTION_JOBS,
    .ends = true,
    .run = run_submit,
};
