/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

bool stk_input_there(void)
{
    struct stat st;

    if (fstat(STDIN_FILENO, &st) < 0)
        return false;
    return isatty(STDIN_FILENO) == 1 || S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) ||
           S_ISSOCK(st.st_mode);
}

int stk_input_open(struct stk_input *in, json_t *spec, struct stk_err *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR");

    *in = (struct stk_input){.fd = -1, .tty = isatty(STDIN_FILENO) == 1};
    if (!base || base[0] != '/' || strlen(base) > 64 || strchr(base, '%') ||
        access(base, W_OK | X_OK) < 0)
        base = "/tmp";
    (void)snprintf(in->dir, sizeof(in->dir), "%.64s/stoker-run-XXXXXX", base);
    if (!mkdtemp(in->dir)) {
        in->dir[0] = '\0';
        return stk_err_set(err, -errno, "cannot make a folder below %s: %s", base, strerror(errno));
    }
    (void)snprintf(in->path, sizeof(in->path), "%s/stdin", in->dir);
    /* opened for reading too: with both ends open, opening and writing do not wait for the job */
    if (mkfifo(in->path, 0600) == 0)
        in->fd = open(in->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (in->fd < 0) {
        int rc = stk_err_set(err, -errno, "cannot make the pipe %s: %s", in->path, strerror(errno));

        stk_input_done(in);
        return rc;
    }
    (void)json_object_set_new(spec, "stdin", json_string(in->path));
    (void)json_object_set_new(spec, "stdin_held", json_true());
    if (in->tty)
        (void)signal(SIGTTIN, SIG_IGN); /* in the background: reading fails instead */
    return 0;
}

/* A shell's background job leaves the terminal to the others. */
static bool may_read(const struct stk_input *in)
{
    return !in->tty || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void stk_input_warn(struct stk_input *in)
{
    int n = 0;

    if (!in->lost || isatty(STDIN_FILENO) == 1 || ioctl(STDIN_FILENO, FIONREAD, &n) < 0 || n <= 0)
        return;
    (void)fprintf(stderr,
                  "stoker: standard input is not sent to the job: %s; name a file with --stdin, or "
                  "give --no-stdin\n",
                  in->lost);
    in->lost = NULL;
}

void stk_input_polls(const struct stk_input *in, bool runs, struct pollfd polls[2])
{
    bool sends = in->fd >= 0 && runs, holds = in->at < in->n;

    polls[0] = (struct pollfd){.fd = sends && !holds && may_read(in) ? STDIN_FILENO : -1,
                               .events = POLLIN};
    polls[1] = (struct pollfd){.fd = sends && holds ? in->fd : -1, .events = POLLOUT};
    if (in->lost && isatty(STDIN_FILENO) != 1)
        polls[0].fd = STDIN_FILENO;
}

/* The end of our input is that of the job's, once it has read what is in the pipe. */
static void end_input(struct stk_input *in)
{
    (void)close(in->fd);
    in->fd = -1;
}

static void read_some(struct stk_input *in)
{
    ssize_t n = read(STDIN_FILENO, in->buf, sizeof(in->buf));

    if (n < 0 && (errno == EINTR || errno == EAGAIN || (errno == EIO && in->tty && !may_read(in))))
        return;
    if (n <= 0) {
        end_input(in);
        return;
    }
    in->n = (size_t)n;
    in->at = 0;
    if (!in->sent)
        (void)unlink(in->path);
    in->sent = true;
}

void stk_input_turn(struct stk_input *in, const struct pollfd polls[2])
{
    ssize_t k;

    if (in->lost && polls[0].revents != 0) {
        stk_input_warn(in);
        in->lost = NULL; /* else it has ended */
    }
    if (in->fd >= 0 && polls[0].revents != 0)
        read_some(in);
    if (in->fd < 0 || in->at == in->n)
        return;
    k = write(in->fd, in->buf + in->at, in->n - in->at);
    if (k > 0)
        in->at += (size_t)k;
}

void stk_input_done(struct stk_input *in)
{
    if (in->fd >= 0)
        (void)close(in->fd);
    in->fd = -1;
    if (in->dir[0] == '\0' || (in->left && !in->sent))
        return; /* a job that starts later finds an empty input */
    (void)unlink(in->path);
    (void)rmdir(in->dir);
    in->dir[0] = '\0';
}
