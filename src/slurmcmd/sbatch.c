/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch.c - submits a script: a file, standard input, or --wrap. The environment and the current
 * folder go along, as sbatch does it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "slurmcmd/submit.h"
#include "spec/keys.h"
#include "spec/spec.h"
#include "spec/words.h"

static int read_all(FILE *f, const char *where, char **ret, size_t *ret_len, struct stk_err *err)
{
    size_t cap = STK_MAX_TEXT + 1;
    char *text = malloc(cap);

    if (!text)
        return stk_err_set(err, -ENOMEM, "out of memory");
    *ret_len = fread(text, 1, cap, f);
    if (ferror(f)) {
        free(text);
        return stk_err_set(err, -EIO, "cannot read %.120s: %s", where, strerror(errno));
    }
    *ret = text;
    return 0;
}

static int read_script(struct stk_sbatch *b, const char *path, struct stk_err *err)
{
    FILE *f = path ? fopen(path, "re") : stdin;
    char *text = NULL;
    size_t len = 0;
    int rc;

    if (!f)
        return stk_err_set(err, -errno, "Unable to open file %.160s: %s", path, strerror(errno));
    rc = read_all(f, path ? path : "standard input", &text, &len, err);
    if (path)
        (void)fclose(f);
    if (rc == 0)
        rc = stk_sbatch_script(b, text, len, path ? path : "sbatch", err);
    free(text);
    return rc;
}

int stk_slurm_context(const struct stk_sbatch *b, json_t *job, struct stk_err *err)
{
    char cwd[PATH_MAX];
    mode_t mask = umask(0);
    int rc = stk_sbatch_export(b, job, environ, err);

    (void)umask(mask);
    if (rc < 0)
        return rc;
    if (!json_object_get(job, "workdir")) {
        if (!getcwd(cwd, sizeof(cwd)))
            return stk_err_set(err, -errno, "cannot tell the current folder: %s", strerror(errno));
        if (json_object_set_new(job, "workdir", json_string(cwd)) < 0)
            return stk_err_set(err, -EINVAL, "the current folder's name is not UTF-8");
    }
    if (!json_object_get(job, "umask"))
        (void)json_object_set_new(job, "umask", json_integer(mask));
    stk_spec_add_rlimits(job);
    return stk_spec_check(job, err);
}

void stk_slurm_notes(const char *name, const struct stk_sbatch *b)
{
    for (size_t i = 0; !b->quiet && i < json_array_size(b->notes); i++)
        stk_slurm_say(name, "%s", json_string_value(json_array_get(b->notes, i)));
}

int stk_slurm_submit(struct stk_slurm *s, const json_t *job, bool dry, json_t **ret,
                     struct stk_err *err)
{
    struct stk_call call = {
        .method = "POST", .path = dry ? "/v1/jobs?dry_run=1" : "/v1/jobs", .body = job};

    return stk_client_call(s->c, &call, ret, err);
}

/* The whole request: script, then environment, then command line. */
static json_t *make_job(struct stk_sbatch *b, int argc, char **argv, struct stk_err *err)
{
    struct stk_sbatch first; /* only to find the script */
    json_t *job = NULL;
    bool wrap;
    int rest = 0, rc;

    stk_sbatch_init(&first, STK_TOOL_SBATCH, b->now_s);
    rc = stk_sbatch_args(&first, argc, argv, &rest, err);
    wrap = first.wrap != NULL;
    stk_sbatch_done(&first);
    if (rc == 0 && wrap && rest < argc)
        rc = stk_err_set(err, -EINVAL, "Script arguments are not permitted with --wrap");
    if (rc == 0 && !wrap)
        rc = read_script(b, rest < argc ? argv[rest] : NULL, err);
    if (rc == 0)
        rc = stk_sbatch_env(b, environ, err);
    if (rc == 0)
        rc = stk_sbatch_args(b, argc, argv, &rest, err);
    if (rc == 0)
        job = stk_sbatch_job(b, err);
    if (!job)
        return NULL;
    for (int i = rest + 1; i < argc; i++) {
        json_t *args = json_object_get(job, "args");

        if (!args) {
            args = json_array();
            (void)json_object_set_new(job, "args", args);
        }
        (void)json_array_append_new(args, json_string(argv[i]));
    }
    if (stk_slurm_context(b, job, err) == 0)
        return job;
    json_decref(job);
    return NULL;
}

/* What is known of its deadline, on standard error. */
static void say_deadline(const struct stk_slurm *s, const json_t *answer)
{
    const json_t *d = json_object_get(answer, "deadline");
    const char *word = stk_str(d, "answer");
    char when[40];

    if (strcmp(word, "late") == 0)
        stk_slurm_say(s->name, "warning: its deadline is over");
    else if (strcmp(word, "infeasible") == 0 || strcmp(word, "at_risk") == 0)
        stk_slurm_say(
            s->name, "warning: deadline %s; it should have ended by %s",
            strcmp(word, "at_risk") == 0 ? "at risk" : "cannot be met",
            stk_slurm_when(stk_num(d, "earliest", 0), "a time nobody knows", when, sizeof(when)));
}

/* sbatch --test-only: whether and when it would start, on standard error. */
static int test_only(struct stk_slurm *s, const json_t *job)
{
    struct stk_err err = {""};
    json_t *answer = NULL;
    const char *word;
    char when[40];
    int rc = 0;

    if (stk_slurm_submit(s, job, true, &answer, &err) < 0) {
        stk_slurm_say(s->name, "error: allocation failure: %s", err.text);
        return 1;
    }
    word = stk_str(answer, "answer");
    if (strcmp(word, "never") == 0) {
        stk_slurm_say(s->name, "error: allocation failure: it could never start");
        rc = 1;
    } else if (strcmp(word, "now") == 0) {
        stk_slurm_say(s->name, "Job would start now");
    } else {
        stk_slurm_say(s->name, "Job would start at %s",
                      stk_slurm_when(stk_num(answer, "expected_start", 0), "a time nobody knows",
                                     when, sizeof(when)));
    }
    say_deadline(s, answer);
    json_decref(answer);
    return rc;
}

static int wait_all(struct stk_slurm *s, uint32_t first, uint32_t count)
{
    struct stk_err err = {""};
    int worst = 0;

    for (uint32_t i = 0; i < count; i++) {
        json_t *job = NULL;
        int code;

        if (stk_slurm_wait(s, first + i, &job, &err) < 0)
            return stk_slurm_fail(s, &err);
        code = stk_slurm_exit_code(job);
        worst = code > worst ? code : worst;
        json_decref(job);
    }
    return worst;
}

static int submit(struct stk_slurm *s, const struct stk_sbatch *b, const json_t *job)
{
    struct stk_err err = {""};
    json_t *answer = NULL;
    uint32_t first, count;

    if (stk_slurm_submit(s, job, false, &answer, &err) < 0) {
        stk_slurm_say(s->name, "error: Batch job submission failed: %s", err.text);
        return 1;
    }
    first = (uint32_t)stk_int(answer, "id", 0);
    count = (uint32_t)stk_int(answer, "count", 1);
    say_deadline(s, answer);
    json_decref(answer);
    if (b->parsable)
        (void)printf("%u\n", first);
    else
        (void)printf("Submitted batch job %u\n", first);
    if (fflush(stdout) != 0)
        return 1;
    return b->wait ? wait_all(s, first, count) : 0;
}

static bool only_version(int argc, char **argv)
{
    return argc == 2 && stk_words_among(argv[1], "--version|-V");
}

int stk_sbatch_main(int argc, char **argv)
{
    struct stk_sbatch b;
    struct stk_slurm s = {.name = argv[0]};
    struct stk_err err = {""};
    json_t *job;
    int rc;

    if (only_version(argc, argv)) {
        (void)puts(STK_SLURM_VERSION);
        return 0;
    }
    stk_sbatch_init(&b, STK_TOOL_SBATCH, (int64_t)time(NULL));
    job = make_job(&b, argc, argv, &err);
    if (!job) {
        stk_sbatch_done(&b);
        return stk_slurm_misuse(argv[0], "%s", err.text);
    }
    stk_slurm_notes(argv[0], &b);
    rc = stk_slurm_open(&s, argv[0]);
    if (rc == 0)
        rc = b.test_only ? test_only(&s, job) : submit(&s, &b, job);
    stk_slurm_close(&s);
    stk_sbatch_done(&b);
    json_decref(job);
    return rc;
}
