/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - "stoker attach" and the terminal part of "run -it" and "shell". The job's supervisor
 * listens on a socket of the job's owner; the daemon only says where. So a session goes on when the
 * daemon is restarted. */
#include "cli/attach.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "cli/follow.h"
#include "cli/ids.h"
#include "cli/view.h"
#include "client/away.h"
#include "sys/signals.h"

struct session {
    int fd, signals;
    struct termios before;
    struct stk_frames frames;
    bool raw, held, detached, ended;
};

/* The socket's path may be longer than an address can be: it is named from its folder. */
static int connect_to(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];
    int fd, folder, rc;

    if (!slash || (size_t)(slash - path) >= sizeof(dir) || strlen(slash) > 32)
        return -EINVAL;
    (void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
    folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    fd = folder < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rc = fd < 0 ? -errno : 0;
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d%.32s", folder, slash);
    if (rc == 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
        rc = -errno;
    if (folder >= 0)
        (void)close(folder);
    if (rc < 0 && fd >= 0)
        (void)close(fd);
    return rc < 0 ? rc : fd;
}

static int send_frame(const struct session *s, char type, const void *data, size_t n)
{
    unsigned char buf[5 + 4096];
    size_t sent = 0;

    stk_frame_head(buf, type, n);
    memcpy(buf + 5, data, n);
    while (sent < n + 5) {
        ssize_t k = send(s->fd, buf + sent, n + 5 - sent, MSG_NOSIGNAL);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        sent += (size_t)k;
    }
    return 0;
}

static int send_size(const struct session *s)
{
    struct winsize w = {0};
    unsigned char size[4];

    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0)
        return 0;
    size[0] = (unsigned char)(w.ws_row >> 8);
    size[1] = (unsigned char)(w.ws_row & 255);
    size[2] = (unsigned char)(w.ws_col >> 8);
    size[3] = (unsigned char)(w.ws_col & 255);
    return send_frame(s, 'W', size, sizeof(size));
}

static int on_frame(void *ctx, char type, const unsigned char *data, size_t n)
{
    struct session *s = ctx;

    if (type == 'X')
        s->ended = true;
    while (type == 'D' && n > 0) {
        ssize_t k = write(STDOUT_FILENO, data, n);

        if (k < 0 && errno != EINTR)
            return -errno;
        if (k > 0) {
            data += k;
            n -= (size_t)k;
        }
    }
    return 0;
}

/* What was typed. */
static int on_keys(struct session *s)
{
    char in[1024], out[1025];
    ssize_t n = read(STDIN_FILENO, in, sizeof(in));
    size_t k = 0;

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (n == 0) {
        s->detached = true; /* the terminal is gone; the job stays */
        return 0;
    }
    s->detached = stk_detach_keys(&s->held, in, (size_t)n, out, &k);
    return k > 0 ? send_frame(s, 'D', out, k) : 0;
}

static int on_output(struct session *s)
{
    char buf[65536];
    ssize_t n = read(s->fd, buf, sizeof(buf));

    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    return stk_frames_feed(&s->frames, buf, (size_t)n, on_frame, s);
}

static int on_signal(struct session *s)
{
    int sig = stk_signal_read(s->signals);

    if (sig == SIGWINCH)
        return send_size(s);
    s->detached = sig > 0; /* the terminal is gone, or we were told to go: the job stays */
    return 0;
}

static void make_raw(struct session *s)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &s->before) < 0)
        return;
    raw = s->before;
    cfmakeraw(&raw);
    s->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static int watched_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGWINCH);
    (void)sigaddset(&set, SIGINT); /* of the terminal only before and after the session */
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The session on one connection; 0 when it ended or was left. */
static int talk(struct session *s)
{
    int rc = send_size(s);

    while (rc == 0 && !s->ended && !s->detached) {
        struct pollfd p[3] = {{.fd = s->fd, .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN},
                              {.fd = s->signals, .events = POLLIN}};

        if (poll(p, 3, -1) < 0 && errno != EINTR)
            return -errno;
        if (p[0].revents != 0)
            rc = on_output(s);
        if (rc == 0 && p[1].revents != 0 && !s->ended)
            rc = on_keys(s);
        if (rc == 0 && p[2].revents != 0)
            rc = on_signal(s);
    }
    return rc;
}

/* Where the job's terminal is, unless it has ended. */
static int locate(struct stk_ask *k, uint32_t id, struct session *s, char *path, size_t size,
                  struct stk_err *err)
{
    json_t *job = NULL;
    int rc = stk_client_get(k->c, &job, err, "/v1/jobs/%u", id);

    (void)snprintf(path, size, "%s", stk_str(job, "attach"));
    s->ended = rc == 0 && stk_view_ended(job);
    if (rc == 0 && !s->ended && path[0] == '\0')
        rc = stk_err_set(err, -ENOTTY, "job %u has no terminal to attach to", id);
    json_decref(job);
    return rc;
}

static int once(struct session *s, uint32_t id, const char *path, struct stk_err *err)
{
    int rc;

    s->fd = connect_to(path);
    if (s->fd < 0)
        return stk_err_set(err, s->fd, "cannot attach to job %u: %s", id, strerror(-s->fd));
    make_raw(s);
    rc = talk(s);
    if (s->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
    (void)close(s->fd);
    s->frames.n = 0;
    return rc < 0 ? stk_err_set(err, rc, "the terminal of job %u went away", id) : 0;
}

/* Waits before the daemon is asked again; a signal ends it. */
static int wait_for_daemon(struct session *s, int ms)
{
    if (poll(&(struct pollfd){.fd = s->signals, .events = POLLIN}, 1, ms) > 0)
        s->detached = stk_signal_read(s->signals) != SIGWINCH;
    return 0;
}

/* Connects, again while the daemon is away or the job is between two starts. */
static int session(struct stk_ask *k, uint32_t id, struct session *s, struct stk_err *err)
{
    struct stk_away away = {0};
    char path[PATH_MAX];
    int rc = 0;

    for (int tries = 0; tries < 50 && !s->ended && !s->detached; tries++) {
        double from = stk_now();

        rc = locate(k, id, s, path, sizeof(path), err);
        if (rc == -ENOENT || rc == -EACCES || (rc == -ENOTTY && tries > 5))
            return rc;
        if (stk_away_is(rc)) {
            tries = 0;
            if (stk_away_lost(&away, from))
                (void)fprintf(stderr, "stoker: " STK_AWAY_TEXT "\n");
            rc = wait_for_daemon(s, stk_away_pause_ms(&away));
            continue;
        }
        stk_away_back(&away);
        if (rc == 0 && !s->ended)
            rc = once(s, id, path, err);
        if (rc == -EACCES)
            return rc;
        if (stk_now() - from > 2)
            tries = 0; /* it was a good one */
        if (rc < 0)
            (void)poll(NULL, 0, 200);
    }
    return rc;
}

int stk_attach(struct stk_ask *k, uint32_t id, bool mine)
{
    const struct stk_follow f = {.id = id, .count = 1, .cancel = mine, .until_start = true};
    struct session s = {.fd = -1};
    struct stk_err err = {""};
    json_t *job = NULL;
    int rc = stk_follow(k, &f);

    if (rc != STK_EXIT_OK)
        return rc;
    s.signals = watched_signals();
    rc = session(k, id, &s, &err);
    stk_frames_done(&s.frames);
    if (rc < 0 && !s.ended && !s.detached) {
        (void)stk_ask_fail(k, rc, &err);
        rc = STK_EXIT_OURS;
    } else if (s.detached) {
        (void)fprintf(stderr, "\nstoker: detached; job %u goes on (stoker attach %u)\n", id, id);
        rc = STK_EXIT_OK;
    } else {
        do
            rc = stk_await(k, &(struct stk_id){.job = id, .index = -1}, s.signals, 0, &job, &err);
        while (rc == -EINTR && stk_signal_read(s.signals) == SIGWINCH);
        rc = rc == 0 ? stk_view_code(job) : STK_EXIT_OURS;
    }
    json_decref(job);
    (void)close(s.signals);
    return rc;
}

static int run_attach(const struct stk_args *a)
{
    struct stk_ask k;
    uint32_t id = 0;
    int rc;

    if (a->n_words != 1)
        return stk_misused(a, "which job? One at a time");
    if (isatty(STDIN_FILENO) != 1)
        return stk_misused(a, "standard input is not a terminal");
    rc = stk_ask_open(&k, a);
    if (rc == STK_EXIT_OK)
        rc = stk_id_resolve(&k, a->words[0], &id);
    if (rc == STK_EXIT_OK)
        rc = stk_follow_check(&k, id);
    if (rc == STK_EXIT_OK)
        rc = stk_attach(&k, id, false);
    stk_ask_close(&k);
    return rc;
}

const struct stk_command stk_cmd_attach = {
    .name = "attach",
    .synopsis = "JOB",
    .help = "get back to the terminal of an interactive job",
    .about = "Ctrl-P Ctrl-Q leaves it running.",
    .complete = "@jobs",
    .section = STK_SECTION_JOBS,
    .run = run_attach,
};
