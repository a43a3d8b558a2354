/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - orders from the engine: JSON lines, each with an "op". The newest connection counts;
 * an older one is closed. Unknown orders are ignored: a newer engine may know more. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/shim.h"

#define LISTEN_AGAIN_MS 1000

/* A socket in the run folder, by a path that is short whatever the state folder's is. */
static int make_socket(const struct stk_launch *l)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[4096], name[64];
    int dir, fd;

    (void)snprintf(path, sizeof(path), "%s/run", l->state_dir);
    (void)snprintf(name, sizeof(name), "%u.%u.sock", l->number, l->launch);
    dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    fd = dir < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, name);
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0)) {
        (void)unlinkat(dir, name, 0); /* half made, or of somebody who had no business there */
        (void)close(fd);
        fd = -1;
    }
    if (dir >= 0)
        (void)close(dir);
    return fd;
}

void stk_shim_listen(struct stk_shim *s)
{
    if (s->listener < 0)
        s->listener = make_socket(&s->l);
    s->listen_at = s->listener < 0 ? stk_shim_ms() + LISTEN_AGAIN_MS : STK_SHIM_NEVER;
}

void stk_shim_hang_up(struct stk_shim *s)
{
    if (s->conn >= 0)
        (void)close(s->conn);
    s->conn = -1;
    if (!s->finished)
        stk_shim_listen(s);
}

static bool trusted(int fd)
{
    struct ucred c = {0};
    socklen_t n = sizeof(c);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 &&
           (c.uid == 0 || c.uid == geteuid());
}

void stk_shim_accept(struct stk_shim *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (!trusted(fd)) {
        (void)close(fd);
        return;
    }
    if (s->conn >= 0)
        (void)close(s->conn);
    s->conn = fd;
    s->n_in = 0;
    (void)stk_shim_say(s, stk_shim_state(s), STK_SAY_CONN);
    if (s->l.items)
        stk_items_ask(s);
}

static void op_stop(struct stk_shim *s, const json_t *m)
{
    bool cancel = strcmp(stk_str(m, "cause"), "cancelled") == 0;

    if (json_is_true(json_object_get(m, "at_once"))) {
        s->l.grace_ms = 0;
        s->l.signal = 0;
    }
    stk_shim_stop(s, cancel ? STK_CAUSE_CANCELLED : STK_CAUSE_EVICTED);
}

static void op_signal(struct stk_shim *s, const json_t *m)
{
    int64_t sig = stk_int(m, "sig", 0);

    if (sig <= 0 || sig >= SIGRTMAX)
        return;
    stk_shim_signal(s, (int)sig, json_is_true(json_object_get(m, "tasks")));
}

/* May it be put to sleep, and which processes are there? */
static void op_prepare(struct stk_shim *s)
{
    json_t *o = stk_shim_state(s);
    const char *why = NULL;

    if (!s->l.may_suspend)
        why = "its description says that it must not be suspended";
    else if (s->step != STK_STEP_NONE || s->live == 0)
        why = "it is ending";
    (void)json_object_set_new(o, "ev", json_string("prepared"));
    (void)json_object_set_new(o, "ok", json_boolean(!why));
    if (why)
        (void)json_object_set_new(o, "why", json_string(why));
    (void)json_object_set_new(o, "pids", stk_shim_pids(s));
    (void)stk_shim_say(s, o, STK_SAY_CONN);
}

static void op_info(struct stk_shim *s)
{
    json_t *o = stk_shim_state(s);

    (void)json_object_set_new(o, "ev", json_string("info"));
    (void)json_object_set_new(o, "pids", stk_shim_pids(s));
    (void)stk_shim_say(s, o, STK_SAY_CONN);
}

static void order(struct stk_shim *s, const json_t *m)
{
    const char *op = stk_str(m, "op");

    if (strcmp(op, "stop") == 0)
        op_stop(s, m);
    else if (strcmp(op, "signal") == 0)
        op_signal(s, m);
    else if (strcmp(op, "prepare") == 0)
        op_prepare(s);
    else if (strcmp(op, "freeze") == 0)
        stk_shim_freeze(s, (uint32_t)stk_int(m, "lease", 0), json_object_get(m, "memo"));
    else if (strcmp(op, "thaw") == 0)
        stk_shim_thaw(s, (uint32_t)stk_int(m, "lease", 0), json_object_get(m, "gpus"));
    else if (strcmp(op, "info") == 0)
        op_info(s);
    else if (strcmp(op, "limit") == 0)
        stk_shim_limit(s, stk_int(m, "ms", s->l.limit_ms));
    else if (strcmp(op, "item") == 0)
        stk_items_message(s, m);
    else if (strcmp(op, "items") == 0)
        stk_items_ask(s);
}

static int make_room(struct stk_shim *s)
{
    size_t cap = s->cap_in ? s->cap_in * 2 : 16384;
    char *more;

    if (s->n_in < s->cap_in)
        return 0;
    more = cap <= STK_SHIM_MAX_INPUT ? realloc(s->in, cap) : NULL;
    if (!more)
        return -ENOMEM;
    s->in = more;
    s->cap_in = cap;
    return 0;
}

static void lines(struct stk_shim *s)
{
    char *p = s->in, *nl;

    while ((nl = memchr(p, '\n', s->n_in - (size_t)(p - s->in)))) {
        json_t *m = json_loadb(p, (size_t)(nl - p), 0, NULL);

        p = nl + 1;
        if (m)
            order(s, m);
        json_decref(m);
    }
    s->n_in -= (size_t)(p - s->in);
    memmove(s->in, p, s->n_in);
}

void stk_shim_pending(struct stk_shim *s)
{
    lines(s);
}

void stk_shim_input(struct stk_shim *s)
{
    ssize_t n = -1;

    if (make_room(s) == 0) {
        n = recv(s->conn, s->in + s->n_in, s->cap_in - s->n_in, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
    }
    if (n <= 0) {
        stk_shim_hang_up(s);
        return;
    }
    s->n_in += (size_t)n;
    lines(s);
}
