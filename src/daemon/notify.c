/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c - the service manager's protocol is a datagram to the socket named by NOTIFY_SOCKET.
 *
 * Messages to people go through a program that does the sending: the site's own command (mail,
 * sendmail, a pager's), or curl for a webhook, which knows TLS and proxies. It runs as a child of
 * ours with what it has to send on its standard input, for half a minute at most; nothing waits for
 * it. */
#include "daemon/notify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LIMIT_MS 30000u

void stk_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd;

    if (len < 2 || len >= sizeof(addr.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(addr.sun_path, path, len);
    if (addr.sun_path[0] == '@')
        addr.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&addr,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    (void)close(fd);
}

/* ---- messages ---- */

enum { COMMAND, WEBHOOK, WAYS };

struct stk_notifier {
    uv_process_t process;
    uv_pipe_t in;
    uv_timer_t limit;
    uv_write_t write;
    uv_loop_t *loop;
    stk_notified_fn fn;
    void *ctx;
    char *command, *input[WAYS]; /* what each way has still to send; NULL: nothing */
    char subject[256];
    char why[160]; /* it failed */
    bool busy, closing;
    int way, open_handles;
};

static void next(struct stk_notifier *n);

static void drop(struct stk_notifier *n)
{
    free(n->command);
    n->command = NULL;
    for (int i = 0; i < WAYS; i++) {
        free(n->input[i]);
        n->input[i] = NULL;
    }
}

static void on_closed(uv_handle_t *h)
{
    struct stk_notifier *n = h->data;

    if (--n->open_handles > 0)
        return;
    if (n->closing && !uv_is_closing((uv_handle_t *)&n->limit)) {
        n->open_handles = 1;
        uv_close((uv_handle_t *)&n->limit, on_closed);
    } else if (n->closing) {
        drop(n);
        free(n);
    } else {
        free(n->input[n->way]);
        n->input[n->way] = NULL;
        next(n);
    }
}

static void close_child(struct stk_notifier *n)
{
    (void)uv_timer_stop(&n->limit);
    n->open_handles = 2;
    uv_close((uv_handle_t *)&n->in, on_closed);
    uv_close((uv_handle_t *)&n->process, on_closed);
}

static void on_end(uv_process_t *p, int64_t status, int sig)
{
    struct stk_notifier *n = p->data;

    if (status != 0 || sig != 0)
        (void)snprintf(n->why, sizeof(n->why), "%s ended with exit code %d%s%s",
                       n->way == COMMAND ? "the command" : "curl", (int)status,
                       sig ? ", signal " : "", sig ? strsignal(sig) : "");
    close_child(n);
}

static void on_limit(uv_timer_t *t)
{
    struct stk_notifier *n = t->data;

    (void)uv_process_kill(&n->process, SIGKILL);
}

static void on_written(uv_write_t *w, int status)
{
    (void)status; /* how it ends says more */
    if (!uv_is_closing((uv_handle_t *)w->handle)) {
        uv_shutdown_t *s = calloc(1, sizeof(*s));

        if (s && uv_shutdown(s, w->handle, (uv_shutdown_cb)(void (*)(void))free) < 0)
            free(s);
    }
}

static char **with_subject(const struct stk_notifier *n, char *text, size_t size)
{
    size_t count = 0, k = 0;
    char **list;

    while (environ[count])
        count++;
    list = calloc(count + 2, sizeof(*list));
    (void)snprintf(text, size, "STOKER_SUBJECT=%s", n->subject);
    for (size_t i = 0; list && i < count; i++)
        if (strncmp(environ[i], "NOTIFY_SOCKET=", 14) != 0)
            list[k++] = environ[i];
    if (list)
        list[k] = text;
    return list;
}

static int start(struct stk_notifier *n)
{
    char sh[] = "/bin/sh", c[] = "-c", curl[] = "curl", quiet[] = "-fsS", k[] = "-K", dash[] = "-";
    char *command[] = {sh, c, n->command, NULL}, *webhook[] = {curl, quiet, k, dash, NULL};
    char subject[300], **env = with_subject(n, subject, sizeof(subject));
    uv_stdio_container_t io[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&n->in},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    uv_process_options_t o = {.exit_cb = on_end,
                              .args = n->way == COMMAND ? command : webhook,
                              .env = env,
                              .stdio = io,
                              .stdio_count = 3};
    uv_buf_t buf = uv_buf_init(n->input[n->way], (unsigned)strlen(n->input[n->way]));
    int rc;

    o.file = o.args[0];
    (void)uv_pipe_init(n->loop, &n->in, 0);
    n->in.data = n->process.data = n;
    rc = uv_spawn(n->loop, &n->process, &o);
    free((void *)env);
    if (rc < 0) {
        (void)snprintf(n->why, sizeof(n->why), "%s cannot be started: %s", o.file, uv_strerror(rc));
        close_child(n);
        return rc;
    }
    (void)uv_timer_start(&n->limit, on_limit, LIMIT_MS, 0);
    (void)uv_write(&n->write, (uv_stream_t *)&n->in, &buf, 1, on_written);
    return 0;
}

static void next(struct stk_notifier *n)
{
    for (n->way = 0; n->way < WAYS; n->way++)
        if (n->input[n->way]) {
            (void)start(n);
            return;
        }
    n->busy = false;
    drop(n);
    n->fn(n->ctx, n->why[0] == '\0', n->why);
}

void stk_notifier_send(struct stk_notifier *n, const struct stk_message *m)
{
    n->busy = true;
    n->why[0] = '\0';
    (void)snprintf(n->subject, sizeof(n->subject), "%s", m->subject);
    n->command = m->command ? strdup(m->command) : NULL;
    n->input[COMMAND] = n->command ? strdup(m->text) : NULL;
    n->input[WEBHOOK] = m->webhook ? stk_notify_curl(m->webhook, m->body) : NULL;
    next(n);
}

bool stk_notifier_busy(const struct stk_notifier *n)
{
    return n->busy;
}

int stk_notifier_new(uv_loop_t *loop, stk_notified_fn fn, void *ctx, struct stk_notifier **ret)
{
    struct stk_notifier *n = calloc(1, sizeof(*n));

    if (!n)
        return -ENOMEM;
    n->loop = loop;
    n->fn = fn;
    n->ctx = ctx;
    (void)uv_timer_init(loop, &n->limit);
    n->limit.data = n;
    *ret = n;
    return 0;
}

void stk_notifier_free(struct stk_notifier *n)
{
    if (!n)
        return;
    n->closing = true;
    if (n->busy && n->open_handles == 0) {
        close_child(n); /* it goes on by itself */
    } else if (!n->busy) {
        n->open_handles = 1;
        uv_close((uv_handle_t *)&n->limit, on_closed);
    }
}

/* ---- curl's own configuration ---- */

static void quoted(FILE *f, const char *key, const char *value)
{
    (void)fprintf(f, "%s = \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            (void)fputc('\\', f);
        if ((unsigned char)*value >= ' ')
            (void)fputc(*value, f);
    }
    (void)fputs("\"\n", f);
}

char *stk_notify_curl(const char *webhook, const json_t *body)
{
    char *data = json_dumps(body, JSON_COMPACT | JSON_ENSURE_ASCII), *text = NULL;
    size_t len;
    FILE *f = data ? open_memstream(&text, &len) : NULL;

    if (!f) {
        free(data);
        return NULL;
    }
    quoted(f, "url", webhook);
    quoted(f, "header", "Content-Type: application/json");
    (void)fprintf(f, "max-time = 20\nproto = \"=http,https\"\noutput = \"/dev/null\"\n");
    quoted(f, "data-binary", data);
    free(data);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
