/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - one loop over: the log streams (connections that the daemon feeds while the job
 * lives), signals to us, and the job's state, asked for twice a second. What was copied is counted,
 * so that a stream cut off by a restart of the daemon is opened again where it stopped. */
#include "cli/follow.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/view.h"

#define FIRST_MS 15 /* between looks at its state; longer and longer */
#define POLL_MS 400

struct log {
    const char *name;
    int to;
    bool wanted, ended;
    uint64_t offset;
    struct stk_stream *s;
    bool broken; /* the reader of our output is gone */
};

struct state {
    struct stk_ask *k;
    const struct stk_follow *f;
    struct log logs[2];
    struct stk_term err;
    json_t *job;
    char said[512]; /* what the state line shows */
    double away;    /* since when the daemon does not answer; 0: it does */
    int stop;       /* signal that tells us to leave */
    double next;    /* when to look at its state again */
    bool asked, drawn, started;
};

int stk_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int stk_signal_read(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

static bool away(int rc)
{
    return rc == -EHOSTDOWN || rc == -EPIPE || rc == -ETIMEDOUT;
}

int stk_await(struct stk_ask *k, const struct stk_id *id, int signals, double until,
              json_t **ret_job, struct stk_err *err)
{
    double gone = 0;
    char name[40];

    (void)stk_id_text(id, name, sizeof(name));
    for (;;) {
        double left = until > 0 ? until - stk_now() : 30;
        char path[96];
        struct stk_call call = {.path = path, .timeout_ms = 60000, .wake_fd = signals};
        json_t *job = NULL;
        int rc;

        if (left < 0)
            return stk_err_set(err, -ETIME, "job %s has not ended in time", name);
        (void)snprintf(path, sizeof(path), "/v1/jobs/%s/wait?timeout_s=%d", name,
                       left < 30 ? (int)ceil(left) : 30);
        rc = stk_client_call(k->c, &call, &job, err);
        if (rc == 0 && stk_view_ended(job)) {
            *ret_job = job;
            return 0;
        }
        json_decref(job);
        if (rc == 0) {
            gone = 0;
            continue;
        }
        if (!away(rc))
            return rc;
        if (gone == 0)
            gone = stk_now();
        else if (stk_now() - gone > STK_FOLLOW_PATIENCE_S)
            return rc;
        if (poll(&(struct pollfd){.fd = signals, .events = POLLIN}, 1, 500) > 0)
            return stk_err_set(err, -EINTR, "interrupted");
    }
}

static void wipe(struct state *s)
{
    if (s->drawn)
        (void)fprintf(stderr, "\r\033[K");
    s->drawn = false;
}

static void say(struct state *s, const char *text)
{
    char clean[512];

    if (s->f->quiet)
        return;
    (void)stk_text_clean(clean, sizeof(clean), text, false);
    if (s->err.tty) {
        wipe(s);
        clean[stk_text_fit(clean, s->err.width > 20 ? s->err.width - 1 : 79)] = '\0';
        (void)fprintf(stderr, "%s%s%s", stk_term_on(&s->err, STK_DIM), clean,
                      stk_term_off(&s->err, STK_DIM));
        s->drawn = true;
    } else if (strcmp(s->said, clean) != 0) {
        (void)fprintf(stderr, "%s\n", clean);
    }
    (void)snprintf(s->said, sizeof(s->said), "%s", clean);
    (void)fflush(stderr);
}

/* The line about its state: reasons only on a terminal, where the line is written over. */
static void say_state(struct state *s)
{
    const char *state = stk_view_state(s->job), *why = stk_view_sentence(s->job);
    double waited = stk_now() - stk_num(s->job, "submitted", stk_now());
    char line[512], time[32];
    bool runs = strcmp(state, "running") == 0 || stk_view_ended(s->job);

    s->started = s->started || runs || strcmp(state, "suspended") == 0;
    if (runs && s->started) {
        if (s->said[0] != '\0' && !stk_view_ended(s->job)) {
            wipe(s);
            s->said[0] = '\0';
        }
        return;
    }
    if (s->err.tty)
        (void)snprintf(line, sizeof(line), "job %u %s %s  %s", s->f->id, state,
                       stk_text_duration(waited, time, sizeof(time)), why);
    else
        (void)snprintf(line, sizeof(line), "stoker: job %u is %s", s->f->id, state);
    say(s, line);
}

static int copy(void *ctx, const char *data, size_t n)
{
    struct log *l = ctx;

    while (n > 0) {
        ssize_t k = write(l->to, data, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN) {
            (void)poll(&(struct pollfd){.fd = l->to, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (k < 0) {
            l->broken = true;
            return -ECANCELED;
        }
        data += k;
        n -= (size_t)k;
        l->offset += (uint64_t)k;
    }
    return 0;
}

static void log_open(struct state *s, struct log *l)
{
    char path[160];
    const struct stk_call call = {.path = path, .timeout_ms = -1};
    struct stk_err err = {""};
    bool ended = stk_view_ended(s->job);

    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/log?stream=%s&offset=%llu%s", s->f->id, l->name,
                   (unsigned long long)l->offset, ended ? "" : "&follow=1");
    if (stk_stream_open(s->k->c, &call, copy, l, &l->s, &err) < 0)
        l->s = NULL; /* asked again with the next state */
}

/* Reads what has come. A stream that ends while the job lives is opened again. */
static void log_pump(struct state *s, struct log *l)
{
    struct stk_err err = {""};
    int rc;

    if (l->to == STDOUT_FILENO || l->to == STDERR_FILENO)
        wipe(s);
    rc = stk_stream_pump(l->s, &err);
    if (rc == 0)
        return;
    stk_stream_free(l->s);
    l->s = NULL;
    s->next = 0; /* it may have ended */
    if (rc == -ENOENT || rc == -EACCES || rc == -ECANCELED || rc == -EINVAL || rc == -EREMOTEIO)
        l->ended = stk_view_ended(s->job) || rc == -ECANCELED;
    else if (rc == 1 && s->job && stk_view_ended(s->job))
        l->ended = true;
}

static void cancel(struct state *s)
{
    struct stk_err err = {""};
    char path[64];

    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/cancel", s->f->id);
    wipe(s);
    (void)fprintf(stderr, "stoker: cancelling job %u (again: leave it)\n", s->f->id);
    if (stk_client_call(s->k->c, &(struct stk_call){.method = "POST", .path = path}, NULL, &err) <
        0)
        (void)stk_ask_fail(s->k, -EREMOTEIO, &err);
}

static void on_signal(struct state *s, int sig)
{
    if (sig == 0)
        return;
    if (s->f->cancel && !s->asked && sig != SIGHUP) {
        s->asked = true;
        cancel(s);
        return;
    }
    s->stop = sig;
}

/* Asks for the job's state. 0, or an exit code. */
static int refresh(struct state *s)
{
    struct stk_err err = {""};
    json_t *job = NULL;
    int rc = stk_client_get(s->k->c, &job, &err, "/v1/jobs/%u", s->f->id);

    if (rc == 0) {
        json_decref(s->job);
        s->job = job;
        s->away = 0;
        say_state(s);
        return 0;
    }
    if (!away(rc) || (s->away > 0 && stk_now() - s->away > STK_FOLLOW_PATIENCE_S)) {
        wipe(s);
        (void)stk_ask_fail(s->k, rc, &err);
        return STK_EXIT_OURS;
    }
    if (s->away == 0) {
        char line[160];

        s->away = stk_now();
        (void)snprintf(line, sizeof(line), "stoker: the daemon is away; job %u is not affected",
                       s->f->id);
        say(s, line);
    }
    return 0;
}

/* Waits for something to happen, and takes it. */
static void turn(struct state *s, int signals, int ms)
{
    struct pollfd p[3] = {{.fd = signals, .events = POLLIN}, {.fd = -1}, {.fd = -1}};

    for (int i = 0; i < 2; i++) {
        struct log *l = &s->logs[i];

        if (l->wanted && !l->ended && !l->s && s->job && s->started && s->away == 0)
            log_open(s, l);
        if (l->s)
            p[1 + i] = (struct pollfd){.fd = stk_stream_fd(l->s), .events = POLLIN};
    }
    if (poll(p, 3, ms) <= 0)
        return;
    if (p[0].revents != 0)
        on_signal(s, stk_signal_read(signals));
    for (int i = 0; i < 2; i++) {
        if (p[1 + i].revents != 0)
            log_pump(s, &s->logs[i]);
        if (s->logs[i].broken && !s->asked)
            on_signal(s, SIGINT);
    }
}

static bool complete(const struct state *s)
{
    if (s->f->until_start && s->started)
        return true;
    if (!s->job || !stk_view_ended(s->job))
        return false;
    for (int i = 0; i < 2; i++)
        if (s->logs[i].wanted && !s->logs[i].ended && s->started)
            return false;
    return true;
}

/* Looks at the job's state when it is time to; *over is when it was seen to have ended. */
static int look(struct state *s, double *wait, double *over)
{
    double now = stk_now();
    int rc;

    if (now < s->next)
        return 0;
    rc = refresh(s);
    *wait = *wait * 1.5 < POLL_MS ? *wait * 1.5 : POLL_MS;
    s->next = stk_now() + *wait / 1000;
    if (*over == 0 && s->job && stk_view_ended(s->job))
        *over = now;
    return rc;
}

int stk_follow(struct stk_ask *k, const struct stk_follow *f)
{
    struct state s = {
        .k = k,
        .f = f,
        .logs = {{.name = "stdout", .to = STDOUT_FILENO, .wanted = f->output},
                 {.name = "stderr", .to = STDERR_FILENO, .wanted = f->output && f->errors}}};
    int signals = stk_signals(), rc = 0;
    double wait = FIRST_MS, over = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)fflush(stdout);
    stk_term_init(&s.err, stderr);
    while (rc == 0 && s.stop == 0) {
        rc = look(&s, &wait, &over);
        if (rc != 0 || complete(&s))
            break;
        if (over > 0 && stk_now() - over > 10)
            break; /* a log that never ends must not keep us */
        turn(&s, signals, (int)wait);
    }
    wipe(&s);
    if (rc == 0)
        rc = s.stop > 0                                 ? 128 + s.stop
             : f->until_start && !stk_view_ended(s.job) ? STK_EXIT_OK
                                                        : stk_view_code(s.job);
    for (int i = 0; i < 2; i++)
        stk_stream_free(s.logs[i].s);
    json_decref(s.job);
    (void)close(signals);
    return rc;
}
