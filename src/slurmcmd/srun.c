/* SPDX-License-Identifier: Apache-2.0 */
/* srun.c - inside a job it starts the tasks (step.c). Outside it submits the command as a job,
 * copies its output here and exits as it did; an interrupt cancels the job. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "slurmcmd/submit.h"
#include "spec/spec.h"
#include "spec/words.h"
#include "sys/signals.h"

struct stream {
    struct stk_stream *s;
    uint64_t offset;
    int fd;
    bool came;   /* something, since it was opened */
    bool inside; /* the last byte was not the end of a line */
};

static int copy(void *ctx, const char *data, size_t n)
{
    struct stream *st = ctx;

    st->inside = data[n - 1] != '\n';
    st->came = true;
    while (n > 0) {
        ssize_t k = write(st->fd, data, n);

        if (k < 0 && errno != EINTR)
            return -ECANCELED;
        data += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return 0;
}

static int open_stream(struct stk_slurm *s, uint32_t number, struct stream *st, const char *which,
                       struct stk_err *err)
{
    char path[128];
    struct stk_call call = {.path = path, .timeout_ms = -1};

    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/log?follow=1&stream=%s&offset=%llu&counts=%s",
                   number, which, (unsigned long long)st->offset, st->inside ? "inside" : "line");
    return stk_stream_open(s->c, &call, copy, st, &st->s, err);
}

/* A signal cancels the job. While the daemon is away it cannot: srun then leaves, and says so. */
static void on_signal(struct stk_slurm *s, uint32_t number, int signals)
{
    char path[64];
    struct stk_call call = {.method = "POST", .path = path};
    struct stk_err err = {""};
    int sig = stk_signal_read(signals);

    if (sig <= 0)
        return;
    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/cancel", number);
    if (stk_client_call(s->c, &call, NULL, &err) == 0) {
        stk_slurm_say(s->name, "Cancelled by a signal: job %u is being cancelled", number);
        return;
    }
    stk_slurm_say(s->name, "error: job %u was not cancelled: %s", number, err.text);
    exit(128 + sig); // NOLINT(concurrency-mt-unsafe)
}

/* Copies what one connection brings: 1 at the end of the output, else why it broke off. */
static int pump_stream(struct stk_slurm *s, uint32_t number, struct stream *st, int signals,
                       struct stk_err *err)
{
    int rc = open_stream(s, number, st, "stdout", err);

    while (rc == 0) {
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                               {.fd = stk_stream_fd(st->s), .events = POLLIN}};

        if (poll(fds, 2, 1000) < 0 && errno != EINTR)
            rc = -errno;
        if (fds[0].revents)
            on_signal(s, number, signals);
        if (rc == 0)
            rc = stk_stream_pump(st->s, err);
        (void)stk_stream_offset(st->s, &st->offset);
    }
    stk_stream_free(st->s);
    st->s = NULL;
    return rc;
}

/* Copies the output until the job has ended; after a restart of the daemon it goes on where it
 * was. */
static int follow(struct stk_slurm *s, uint32_t number, struct stk_err *err)
{
    struct stream st = {.fd = STDOUT_FILENO};
    struct stk_away away = {0};
    int signals = stk_signals(), rc;

    while (stk_away_is(rc = pump_stream(s, number, &st, signals, err))) {
        if (st.came)
            stk_away_back(&away);
        st.came = false;
        stk_slurm_away(s, &away, signals);
        on_signal(s, number, signals);
    }
    if (signals >= 0)
        (void)close(signals);
    if (rc == -ECANCELED)
        (void)stk_err_set(err, rc, "standard output is closed; job %u goes on", number);
    return rc == 1 ? 0 : rc;
}

/* srun leaves no file behind: what was in it has been copied. */
static void drop_output(const json_t *job, const json_t *ended)
{
    const char *path = stk_str(ended, "stdout");

    if (!json_object_get(job, "stdout") && *path)
        (void)unlink(path);
}

static int run_job(struct stk_slurm *s, const json_t *job)
{
    struct stk_err err = {""};
    json_t *answer = NULL, *ended = NULL;
    uint32_t number;
    int code;

    if (stk_slurm_submit(s, job, false, &answer, &err) < 0) {
        stk_slurm_say(s->name, "error: Unable to allocate resources: %s", err.text);
        return 1;
    }
    number = (uint32_t)stk_int(answer, "id", 0);
    json_decref(answer);
    if (follow(s, number, &err) < 0 || stk_slurm_wait(s, number, &ended, &err) < 0)
        return stk_slurm_fail(s, &err);
    code = stk_slurm_exit_code(ended);
    drop_output(job, ended);
    if (code != 0)
        stk_slurm_say(s->name, "error: job %u: %s", number, stk_str(ended, "state_text"));
    json_decref(ended);
    return code;
}

static json_t *make_job(struct stk_sbatch *b, char **command, struct stk_err *err)
{
    json_t *job = stk_sbatch_job(b, err), *argv = json_array();
    const char *slash = strrchr(command[0], '/');

    if (!job) {
        json_decref(argv);
        return NULL;
    }
    for (; *command; command++)
        (void)json_array_append_new(argv, json_string(*command));
    if (!json_object_get(job, "name"))
        (void)json_object_set_new(
            job, "name",
            json_string(slash ? slash + 1 : json_string_value(json_array_get(argv, 0))));
    (void)json_object_set_new(job, "command", argv);
    (void)json_object_set_new(job, "requeue", json_false());
    if (stk_slurm_context(b, job, err) == 0)
        return job;
    json_decref(job);
    return NULL;
}

static int outside(struct stk_sbatch *b, const char *name, char **command)
{
    struct stk_slurm s = {.name = name};
    struct stk_err err = {""};
    json_t *job;
    int rc;

    if (b->pty)
        return stk_slurm_misuse(name, "--pty is not supported here: use stoker run -it");
    if (b->label)
        return stk_slurm_misuse(name, "--label is supported only inside a job");
    job = make_job(b, command, &err);
    if (!job)
        return stk_slurm_misuse(name, "%s", err.text);
    stk_slurm_notes(name, b);
    rc = stk_slurm_open(&s, name);
    if (rc == 0)
        rc = run_job(&s, job);
    stk_slurm_close(&s);
    json_decref(job);
    return rc;
}

int stk_srun_main(int argc, char **argv)
{
    const char *inside = getenv("SLURM_JOB_ID"); // NOLINT(concurrency-mt-unsafe)
    struct stk_sbatch b;
    struct stk_err err = {""};
    int rest = 0, rc;

    if (argc == 2 && stk_words_among(argv[1], "--version|-V")) {
        (void)puts(STK_SLURM_VERSION);
        return 0;
    }
    stk_sbatch_init(&b, STK_TOOL_SRUN, (int64_t)time(NULL));
    rc = stk_sbatch_args(&b, argc, argv, &rest, &err);
    if (rc < 0)
        rc = stk_slurm_misuse(argv[0], "%s", err.text);
    else if (rest >= argc)
        rc = stk_slurm_misuse(argv[0], "No command given to execute.");
    else if (b.jobid && (!inside || strcmp(inside, b.jobid) != 0))
        rc = stk_slurm_misuse(argv[0], "--jobid: tasks can be started only from inside the job");
    else
        rc = inside ? stk_slurm_step(&b, argv[0], argv + rest) : outside(&b, argv[0], argv + rest);
    stk_sbatch_done(&b);
    return rc;
}
