/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - one loop over: the log streams (connections that the daemon feeds while the job
 * lives), signals to us, and the job's state. The state is a long poll: the daemon answers when it
 * changes. Workers of a batch have a log each; what they are is asked for once a second, with the
 * progress of the batch. */
#include "cli/follow.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/follow_log.h"
#include "cli/view.h"
#include "client/away.h"
#include "sys/signals.h"

#define AGAIN_S 0.2   /* between looks when the daemon answers too early */
#define TURN_MS 500   /* logs that could not be opened are tried again */
#define LINGER_S 10   /* a log of which nothing comes any more must not keep us */
#define MAX_LOGS 128u /* open at once */
#define FIXED 4       /* files that are waited for besides logs */

struct look { /* the long poll for its state */
    struct stk_stream *s;
    char *text;
    size_t n, cap;
};

struct state {
    struct stk_ask *k;
    const struct stk_follow *f;
    struct stk_follow_log *logs;
    uint32_t n_logs;
    struct pollfd *polls; /* signals, the look, two of our input, then one per log */
    struct look look;
    struct stk_term err;
    json_t *job;
    char said[512]; /* what the state line shows */
    struct stk_away away;
    double over;     /* when it was seen to have ended; 0: not yet */
    double moved;    /* when bytes of a log came, or the daemon was found to be away */
    double next;     /* when to look at its state again */
    int stop;        /* signal that tells us to leave */
    bool asked;      /* a signal has asked for the job's end */
    bool cancel_due; /* the daemon has not been told so yet */
    bool drawn, started;
};

/* The first job of an array has the array's number: what came is then the worst of them. */
static int this_very(struct stk_ask *k, const struct stk_id *id, json_t *take, json_t **ret_job,
                     struct stk_err *err)
{
    bool other = id->range && stk_int(take, "id", 0) != (int64_t)id->job;

    if (other)
        json_decref(take);
    else
        *ret_job = take;
    return other ? stk_client_get(k->c, ret_job, err, "/v1/jobs/%u", id->job) : 0;
}

int stk_await(struct stk_ask *k, const struct stk_id *id, int signals, double until,
              json_t **ret_job, struct stk_err *err)
{
    struct stk_away gone = {0};
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
            rc = this_very(k, id, job, ret_job, err);
            job = NULL;
            if (rc == 0)
                return 0;
        }
        json_decref(job);
        if (rc == 0) {
            stk_away_back(&gone);
            continue;
        }
        if (!stk_away_is(rc))
            return rc;
        if (stk_away_lost(&gone, stk_now()))
            (void)fprintf(stderr, "stoker: " STK_AWAY_TEXT "\n");
        if (poll(&(struct pollfd){.fd = signals, .events = POLLIN}, 1, stk_away_pause_ms(&gone)) >
            0)
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
    } else {
        (void)fprintf(stderr, "%s\n", clean);
    }
    (void)snprintf(s->said, sizeof(s->said), "%s", clean);
    (void)fflush(stderr);
}

/* On a terminal a line that is written over; else a line for each state. */
static void say_state(struct state *s, bool changed)
{
    const char *state = stk_view_state(s->job), *why = stk_view_sentence(s->job);
    double waited = stk_now() - stk_num(s->job, "submitted", stk_now());
    bool runs = strcmp(state, "running") == 0 || stk_view_ended(s->job);
    bool starts = strcmp(state, "starting") == 0;
    char line[512], time[32], items[128];

    s->started = s->started || runs || strcmp(state, "suspended") == 0;
    if (runs && !(s->err.tty && s->f->count > 1 && !stk_view_ended(s->job))) {
        wipe(s);
        return;
    }
    if (runs)
        why = stk_view_items(s->job, items, sizeof(items));
    if (s->err.tty)
        (void)snprintf(line, sizeof(line), "job %u %s %s  %s", s->f->id, state,
                       stk_text_duration(waited, time, sizeof(time)), why);
    else if (strncmp(why, "is ", 3) == 0 && !starts) /* "is on hold until ..." */
        (void)snprintf(line, sizeof(line), "stoker: job %u %s", s->f->id, why);
    else
        (void)snprintf(line, sizeof(line), "stoker: job %u is %s%s%s", s->f->id, state,
                       starts ? "" : ": ", starts ? "" : why);
    if (s->err.tty || changed)
        say(s, line);
}

void stk_follow_ended(const json_t *job, bool quiet)
{
    const char *state = stk_view_state(job);
    bool own = strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0;
    char id[40], clean[1024];

    if (own || (quiet && (strcmp(state, "killed") == 0 || strcmp(state, "cancelled") == 0)))
        return;
    (void)fflush(stdout);
    (void)fprintf(stderr, "stoker: job %s %s\n", stk_view_id(job, id, sizeof(id)),
                  stk_text_clean(clean, sizeof(clean), stk_view_sentence(job), false));
}

/* ---- its state ---- */

static int gather(void *ctx, const char *data, size_t n)
{
    struct look *l = ctx;

    if (l->n + n > l->cap) {
        size_t cap = 2 * (l->n + n);
        char *more = realloc(l->text, cap);

        if (!more)
            return -ENOMEM;
        l->text = more;
        l->cap = cap;
    }
    memcpy(l->text + l->n, data, n);
    l->n += n;
    return 0;
}

/* Which workers of a batch have started, and which have ended. */
static void look_at_workers(struct state *s)
{
    json_t *page = NULL, *list;
    bool ended = stk_view_ended(s->job);

    if (s->f->outputs > 1 && !ended &&
        stk_client_get(s->k->c, &page, NULL, "/v1/jobs?after=%u&limit=%u", s->f->id - 1,
                       s->f->count < 1000 ? s->f->count : 1000) < 0)
        return;
    list = json_object_get(page, "jobs");
    for (uint32_t i = 0; i < s->n_logs; i++) {
        struct stk_follow_log *l = &s->logs[i];
        const json_t *job = s->f->outputs > 1 ? NULL : s->job;
        size_t k;

        for (k = 0; !job && k < json_array_size(list); k++)
            if (stk_int(json_array_get(list, k), "id", 0) == (int64_t)l->job)
                job = json_array_get(list, k);
        l->over = ended || !job;
        l->started = l->started || l->over ||
                     (s->f->outputs == 1 ? s->started : stk_num(job, "started", 0) > 0);
        if (l->over)
            l->next = 0;
    }
    json_decref(page);
}

static void cancel_job(struct state *s);

static void take_job(struct state *s, json_t *take)
{
    bool changed = !s->job || strcmp(stk_view_state(s->job), stk_view_state(take)) != 0;

    json_decref(s->job);
    s->job = take;
    stk_away_back(&s->away);
    if (s->cancel_due)
        cancel_job(s);
    s->next = changed ? 0 : stk_now() + AGAIN_S;
    if (s->over == 0 && stk_view_ended(take))
        s->over = stk_now();
    say_state(s, changed);
    look_at_workers(s);
}

/* The daemon did not answer: 0 to go on, or an exit code. */
static int is_away(struct state *s, int rc, const struct stk_err *err)
{
    char line[160];

    if (!stk_away_is(rc)) {
        wipe(s);
        (void)stk_ask_fail(s->k, rc, err);
        return STK_EXIT_OURS;
    }
    if (stk_away_lost(&s->away, stk_now())) {
        (void)snprintf(line, sizeof(line), "stoker: " STK_AWAY_TEXT "; job %u is not affected",
                       s->f->id);
        say(s, line);
    }
    s->next = stk_now() + stk_away_pause_ms(&s->away) / 1000.0;
    return 0;
}

static int look_open(struct state *s)
{
    bool often = s->err.tty || s->f->count > 1;
    char path[160];
    const struct stk_call call = {.path = path, .timeout_ms = -1};
    struct stk_err err = {""};
    int rc;

    if (s->look.s || s->over > 0 || stk_now() < s->next)
        return 0;
    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/wait?timeout_s=%d%s%s", s->f->id,
                   !s->job || s->away.tries > 0 ? 0 /* is it there again? */
                   : often                      ? 1
                                                : 30,
                   s->job ? "&while=" : "", s->job ? stk_view_state(s->job) : "");
    s->look.n = 0;
    rc = stk_stream_open(s->k->c, &call, gather, &s->look, &s->look.s, &err);
    return rc < 0 ? is_away(s, rc, &err) : 0;
}

static int look_pump(struct state *s)
{
    struct stk_err err = {""};
    int rc = stk_stream_pump(s->look.s, &err);
    json_t *job;

    if (rc == 0)
        return 0;
    stk_stream_free(s->look.s);
    s->look.s = NULL;
    if (rc < 0)
        return is_away(s, rc, &err);
    job = json_loadb(s->look.text, s->look.n, 0, NULL);
    if (!job)
        return is_away(s, -EPROTO, &(struct stk_err){"the daemon's answer is not JSON"});
    take_job(s, job);
    return 0;
}

/* ---- signals ---- */

/* Asks the daemon to cancel the job; a daemon that is away is asked when it is back. */
static void cancel_job(struct state *s)
{
    json_t *ids = json_array(), *body;
    struct stk_err err = {""};
    int rc;

    for (uint32_t i = 0; i < s->f->count; i++)
        (void)json_array_append_new(ids, json_integer((json_int_t)s->f->id + i));
    body = json_pack("{s:s, s:o}", "verb", "cancel", "ids", ids);
    rc = stk_client_call(s->k->c,
                         &(struct stk_call){.method = "POST", .path = "/v1/jobs/act", .body = body},
                         NULL, &err);
    s->cancel_due = stk_away_is(rc);
    if (rc < 0 && !s->cancel_due)
        (void)stk_ask_fail(s->k, -EREMOTEIO, &err);
    json_decref(body);
}

static void on_signal(struct state *s, int sig)
{
    if (sig == 0)
        return;
    if (s->f->cancel && !s->asked && sig != SIGHUP) {
        s->asked = true;
        wipe(s);
        (void)fprintf(stderr, "stoker: cancelling job %u%s (again: leave it)\n", s->f->id,
                      s->away.tries > 0 ? " when the daemon is back" : "");
        cancel_job(s);
        return;
    }
    s->stop = sig;
}

/* ---- the loop ---- */

static bool is_running(const struct state *s)
{
    return s->over == 0 && s->job && strcmp(stk_view_state(s->job), "running") == 0;
}

static int pause_ms(const struct state *s)
{
    double left = s->next - stk_now();

    return left < 0.01 ? 10 : left < 1 ? (int)(left * 1000) : 1000;
}

/* Waits for something to happen, and takes it: 0, or an exit code. */
static int turn(struct state *s, int signals)
{
    uint32_t n_open = 0;
    int rc = 0, ms = s->look.s || s->over > 0 ? TURN_MS : pause_ms(s);

    for (uint32_t i = 0; i < s->n_logs; i++) {
        struct stk_follow_log *l = &s->logs[i];

        if (n_open < MAX_LOGS && s->away.tries == 0 && stk_away_is(stk_follow_log_open(s->k, l)))
            s->moved = stk_now();
        n_open += l->s != NULL;
        s->polls[FIXED + i] =
            (struct pollfd){.fd = l->s ? stk_stream_fd(l->s) : -1, .events = POLLIN};
    }
    s->polls[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    s->polls[1] =
        (struct pollfd){.fd = s->look.s ? stk_stream_fd(s->look.s) : -1, .events = POLLIN};
    for (int i = 2; i < FIXED; i++)
        s->polls[i] = (struct pollfd){.fd = -1};
    if (s->f->input)
        stk_input_polls(s->f->input, is_running(s), s->polls + 2);
    if (poll(s->polls, FIXED + s->n_logs, ms) <= 0)
        return 0;
    if (s->f->input)
        stk_input_turn(s->f->input, s->polls + 2);
    if (s->polls[0].revents != 0)
        on_signal(s, stk_signal_read(signals));
    for (uint32_t i = 0; i < s->n_logs; i++) {
        if (s->polls[FIXED + i].revents == 0)
            continue;
        wipe(s);
        stk_follow_log_pump(&s->logs[i]);
        s->moved = stk_now();
        if (s->logs[i].broken && !s->asked)
            on_signal(s, SIGINT);
    }
    if (s->polls[1].revents != 0)
        rc = look_pump(s);
    return rc;
}

static bool complete(const struct state *s)
{
    if (s->f->until_start && s->started)
        return true;
    if (s->over == 0)
        return false;
    if (stk_now() - (s->moved > s->over ? s->moved : s->over) > LINGER_S)
        return true;
    for (uint32_t i = 0; i < s->n_logs; i++)
        if (!s->logs[i].ended)
            return false;
    return true;
}

static int make_logs(struct state *s)
{
    const struct stk_follow *f = s->f;
    uint32_t streams = f->errors && !f->stream ? 2 : 1, n = f->output ? f->outputs * streams : 0;

    s->logs = calloc(n + 1, sizeof(*s->logs));
    s->polls = calloc(n + FIXED, sizeof(*s->polls));
    if (!s->logs || !s->polls)
        return stk_ask_fail(s->k, -ENOMEM, &(struct stk_err){"out of memory"});
    s->n_logs = n;
    for (uint32_t i = 0; i < n; i++)
        s->logs[i] = (struct stk_follow_log){.job = f->id + i / streams,
                                             .name = f->stream     ? f->stream
                                                     : i % streams ? "stderr"
                                                                   : "stdout",
                                             .task = f->task,
                                             .tail = f->tail,
                                             .filtered = f->filtered,
                                             .to = i % streams ? STDERR_FILENO : STDOUT_FILENO,
                                             .lines = f->outputs > 1,
                                             .shared = f->count > f->outputs};
    return 0;
}

/* What there is to say once it has ended; its exit code. */
static int ended(struct state *s)
{
    char items[128];

    if (s->f->look_on)
        return STK_EXIT_OK;
    if (!s->f->quiet && json_object_get(s->job, "items"))
        (void)fprintf(stderr, "stoker: job %u: %s\n", s->f->id,
                      stk_view_items(s->job, items, sizeof(items)));
    stk_follow_ended(s->job, s->f->quiet);
    return stk_view_code(s->job);
}

int stk_follow_check(struct stk_ask *k, uint32_t id)
{
    return stk_ask_get(k, NULL, "/v1/jobs/%u", id);
}

int stk_follow(struct stk_ask *k, const struct stk_follow *f)
{
    struct state s = {.k = k, .f = f};
    int signals = stk_signals(), rc;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)fflush(stdout);
    stk_term_init(&s.err, stderr);
    rc = make_logs(&s);
    while (rc == 0 && s.stop == 0 && !complete(&s)) {
        rc = look_open(&s);
        if (rc == 0)
            rc = turn(&s, signals);
    }
    wipe(&s);
    if (f->input)
        f->input->left = s.over == 0;
    if (rc == 0)
        rc = s.stop > 0 ? 128 + s.stop : s.over > 0 ? ended(&s) : STK_EXIT_OK;
    for (uint32_t i = 0; i < s.n_logs; i++)
        stk_follow_log_done(&s.logs[i]);
    stk_stream_free(s.look.s);
    free(s.look.text);
    free(s.logs);
    free(s.polls);
    json_decref(s.job);
    (void)close(signals);
    return rc;
}
