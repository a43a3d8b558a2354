/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - "stoker attach" and the terminal part of "run -it" and "shell". The job's supervisor
 * listens on a socket of the job's owner; the daemon only says where. So a session goes on when the
 * daemon is restarted. */
#include "cli/attach.h"

#include <fcntl.h>
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

struct session {
    int fd, signals;
    struct termios before;
    struct stk_frames frames;
    bool raw, held, detached, ended;
    int code; /* from the 'e' frame; -1: not said */
};

static int connect_to(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    if (fd < 0)
        return -errno;
    errno = ENAMETOOLONG;
    if (strlen(path) < sizeof(at.sun_path) && strcpy(at.sun_path, path) &&
        connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    rc = -errno;
    (void)close(fd);
    return rc;
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
    return send_frame(s, 'w', size, sizeof(size));
}

static int on_frame(void *ctx, char type, const unsigned char *data, size_t n)
{
    struct session *s = ctx;

    if (type == 'e') {
        s->ended = true;
        s->code = 0;
        for (size_t i = 0; i < n && i < 4; i++)
            s->code = (int)((unsigned)s->code << 8 | data[i]);
        return 0;
    }
    while (type == 'd' && n > 0) {
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
    if (n == 0)
        return -EPIPE;
    s->detached = stk_detach_keys(&s->held, in, (size_t)n, out, &k);
    return k > 0 ? send_frame(s, 'd', out, k) : 0;
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
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    if (info.ssi_signo == SIGWINCH)
        return send_size(s);
    s->detached = true; /* the terminal is gone, or we were told to go: the job stays */
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

/* Where the job's terminal is; "" when it has none. */
static int socket_of(struct stk_ask *k, const json_t *job, char *path, size_t size,
                     struct stk_err *err)
{
    json_t *health = NULL;
    int rc;

    (void)snprintf(path, size, "%s", stk_str(job, "attach"));
    if (*path != '\0' || stk_view_ended(job) ||
        !stk_yes(json_object_get(job, "spec"), "interactive"))
        return 0;
    rc = stk_client_get(k->c, &health, err, "/v1/health");
    if (rc == 0 && *stk_str(health, "state_dir") != '\0')
        (void)snprintf(path, size, "%s/attach/%u.sock", stk_str(health, "state_dir"),
                       (unsigned)stk_int(job, "id", 0));
    json_decref(health);
    return rc;
}

/* Connects, again while the job is between two starts. */
static int session(struct stk_ask *k, uint32_t id, struct session *s, struct stk_err *err)
{
    int rc = 0;

    for (int tries = 0; tries < 50 && !s->ended && !s->detached; tries++) {
        json_t *job = NULL;
        char path[256];

        rc = stk_client_get(k->c, &job, err, "/v1/jobs/%u", id);
        if (rc < 0 && rc != -EHOSTDOWN && rc != -EPIPE)
            return rc;
        rc = rc < 0 ? rc : socket_of(k, job, path, sizeof(path), err);
        s->ended = rc == 0 && stk_view_ended(job);
        json_decref(job);
        if (s->ended)
            return 0;
        if (rc == 0 && path[0] == '\0')
            rc = stk_err_set(err, -EINVAL, "job %u has no terminal to attach to", id);
        if (rc == -EINVAL && tries > 5)
            return rc;
        s->fd = rc == 0 ? connect_to(path) : rc;
        if (s->fd >= 0) {
            make_raw(s);
            rc = talk(s);
            if (s->raw)
                (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
            (void)close(s->fd);
            s->frames.n = 0;
            tries = 0;
        } else if (rc == 0) {
            rc = stk_err_set(err, s->fd, "cannot attach to job %u: %s", id, strerror(-s->fd));
            if (s->fd == -EACCES)
                return rc;
        }
        if (rc < 0)
            (void)poll(NULL, 0, 200);
    }
    return rc;
}

int stk_attach(struct stk_ask *k, uint32_t id, bool mine)
{
    const struct stk_follow f = {.id = id, .cancel = mine, .until_start = true};
    struct session s = {.fd = -1, .code = -1};
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
        rc = stk_await(k, &(struct stk_id){id, -1, false}, s.signals, stk_now() + 30, &job, &err);
        rc = rc == 0 ? stk_view_code(job) : s.code >= 0 ? s.code & 255 : STK_EXIT_OURS;
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
