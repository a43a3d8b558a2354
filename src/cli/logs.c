/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - "stoker logs": a job's output. To a file or a pipe the bytes go as they are; on a
 * terminal only what cannot do harm there: text, line ends, tabs and colours. */
#include <string.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/follow.h"
#include "cli/ids.h"
#include "cli/logfilter.h"
#include "sys/signals.h"

struct copy {
    struct stk_logfilter filter;
    bool filtered;
};

static int put(void *ctx, const char *data, size_t n)
{
    struct copy *c = ctx;
    char out[4096];

    while (n > 0) {
        size_t take = n < sizeof(out) / 2 ? n : sizeof(out) / 2;
        size_t k = c->filtered ? stk_logfilter(&c->filter, data, take, out) : take;

        if (fwrite(c->filtered ? out : data, 1, k, stdout) != k)
            return -EIO;
        data += take;
        n -= take;
    }
    return fflush(stdout) == 0 ? 0 : -EIO;
}

static int read_log(struct stk_ask *k, uint32_t id, const char *query)
{
    struct copy c = {.filtered = k->out.tty && !stk_arg_is(k->a, "raw")};
    char path[512];
    int signals = stk_signals(), rc;
    const struct stk_call call = {.path = path, .timeout_ms = -1, .wake_fd = signals};
    struct stk_stream *s = NULL;
    struct stk_err err = {""};

    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/log%s", id, query);
    rc = stk_stream_open(k->c, &call, put, &c, &s, &err);
    rc = rc < 0 ? rc : stk_stream_run(s, &err);
    stk_stream_free(s);
    if (c.filtered)
        (void)fputs(stk_term_on(&k->out, STK_BOLD)[0] ? "\033[0m" : "", stdout);
    if (rc == -EINTR)
        rc = 128 + stk_signal_read(signals);
    else if (rc == -EIO)
        rc = STK_EXIT_FAILED; /* whoever read our output is gone, or the disk is full */
    else if (rc < 0)
        rc = stk_ask_fail(k, rc, &err);
    (void)close(signals);
    return rc;
}

/* Copies the output until the job has ended. Says on standard error why the job does not run. */
static int follow_log(struct stk_ask *k, uint32_t id, int64_t tail, int64_t task)
{
    const struct stk_follow f = {.id = id,
                                 .count = 1,
                                 .outputs = 1,
                                 .output = true,
                                 .look_on = true,
                                 .stream = stk_arg_is(k->a, "stderr") ? "stderr" : "stdout",
                                 .task = (uint32_t)task,
                                 .tail = (uint32_t)tail,
                                 .filtered = k->out.tty && !stk_arg_is(k->a, "raw")};
    int rc = stk_follow_check(k, id);

    rc = rc == STK_EXIT_OK ? stk_follow(k, &f) : rc;
    if (f.filtered)
        (void)fputs(stk_term_on(&k->out, STK_BOLD)[0] ? "\033[0m" : "", stdout);
    return rc;
}

static int run_logs(const struct stk_args *a)
{
    int64_t tail = 0, task = 0;
    char query[256] = "", number[32];
    struct stk_ask k;
    uint32_t id = 0;
    int rc;

    if (a->n_words != 1)
        return stk_misused(a, "which job? One at a time");
    rc = stk_arg_number(a, "tail", 1, 100000, &tail);
    rc = rc != STK_EXIT_OK ? rc : stk_arg_number(a, "task", 0, 1000000, &task);
    if (rc != STK_EXIT_OK || (rc = stk_ask_open(&k, a)) != STK_EXIT_OK)
        return rc;
    rc = stk_id_resolve(&k, a->words[0], &id);
    stk_query(query, sizeof(query), "stream", stk_arg_is(a, "stderr") ? "stderr" : "stdout");
    (void)snprintf(number, sizeof(number), "%lld", (long long)tail);
    stk_query(query, sizeof(query), "tail", tail > 0 ? number : NULL);
    (void)snprintf(number, sizeof(number), "%lld", (long long)task);
    stk_query(query, sizeof(query), "task", task > 0 ? number : NULL);
    if (rc == STK_EXIT_OK && stk_arg_is(a, "follow"))
        rc = follow_log(&k, id, tail, task);
    else if (rc == STK_EXIT_OK)
        rc = read_log(&k, id, query);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"follow", 'f', NULL, "go on until the job ends, also when the daemon restarts", NULL},
    {"stderr", 'e', NULL, "standard error, where it is a file of its own", NULL},
    {"tail", 'n', "N", "only the last lines", NULL},
    {"task", 't', "N", "of this task of a gang (default 0)", NULL},
    {"raw", 0, NULL, "all bytes, also on a terminal", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_logs = {
    .name = "logs",
    .synopsis = "[options] JOB",
    .help = "a job's output",
    .complete = "@jobs",
    .options = groups,
    .section = STK_SECTION_JOBS,
    .run = run_logs,
};
