/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow_log.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/view.h"

#define AGAIN_S 0.5              /* between two tries to open it */
#define MAX_HELD ((size_t)65536) /* a longer line goes out in pieces */

static int write_all(struct stk_follow_log *l, const char *data, size_t n)
{
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
    }
    return 0;
}

static int put(struct stk_follow_log *l, const char *data, size_t n)
{
    char out[4096 + sizeof(l->filter.held)];
    int rc = 0;

    if (!l->filtered)
        return write_all(l, data, n);
    while (rc == 0 && n > 0) {
        size_t take = n < 4096 ? n : 4096;

        rc = write_all(l, out, stk_logfilter(&l->filter, data, take, out));
        data += take;
        n -= take;
    }
    return rc;
}

static int hold(struct stk_follow_log *l, const char *data, size_t n)
{
    if (l->n_held + n > l->cap_held) {
        char *more = realloc(l->held, l->n_held + n);

        if (!more)
            return -ENOMEM;
        l->held = more;
        l->cap_held = l->n_held + n;
    }
    memcpy(l->held + l->n_held, data, n);
    l->n_held += n;
    return 0;
}

static int copy(void *ctx, const char *data, size_t n)
{
    struct stk_follow_log *l = ctx;
    const char *end = l->lines ? memrchr(data, '\n', n) : NULL;
    size_t whole = end ? (size_t)(end - data) + 1 : l->lines ? 0 : n;
    int rc = 0;

    l->inside = data[n - 1] != '\n';
    l->next = 0; /* the daemon answers: a stream that breaks is opened again at once */
    if (whole > 0 || l->n_held + n > MAX_HELD) {
        rc = put(l, l->held, l->n_held);
        l->n_held = 0;
        rc = rc < 0 ? rc : put(l, data, whole);
    }
    return rc < 0 || whole == n ? rc : hold(l, data + whole, n - whole);
}

/* Everything was copied: a last line without an end gets one, for others follow. */
static void finish(struct stk_follow_log *l)
{
    l->ended = true;
    if (l->n_held > 0 && put(l, l->held, l->n_held) == 0)
        (void)put(l, "\n", 1);
    l->n_held = 0;
}

int stk_follow_log_open(struct stk_ask *k, struct stk_follow_log *l)
{
    char path[192], from[48];
    const struct stk_call call = {.path = path, .timeout_ms = -1};
    struct stk_err err = {""};
    int rc;

    if (l->s || l->ended || !l->started || stk_now() < l->next)
        return 0;
    if (l->tail > 0)
        (void)snprintf(from, sizeof(from), "tail=%u", l->tail);
    else
        (void)snprintf(from, sizeof(from), "offset=%llu", (unsigned long long)l->offset);
    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/log?stream=%s&task=%u&%s&counts=%s%s", l->job,
                   l->name, l->task, from, l->inside ? "inside" : "line",
                   l->over ? "" : "&follow=1");
    l->next = stk_now() + AGAIN_S;
    rc = stk_stream_open(k->c, &call, copy, l, &l->s, &err);
    if (rc < 0)
        l->s = NULL;
    return rc;
}

void stk_follow_log_pump(struct stk_follow_log *l)
{
    struct stk_err err = {""};
    int rc = stk_stream_pump(l->s, &err);
    bool refused = rc == -ENOENT || rc == -EACCES || rc == -EINVAL;

    if (stk_stream_offset(l->s, &l->offset))
        l->tail = 0; /* of the last lines it is now known where they are */
    if (rc == 0)
        return;
    stk_stream_free(l->s);
    l->s = NULL;
    if (rc == -ECANCELED || (rc == 1 && !l->shared) || ((rc == 1 || refused) && l->over))
        finish(l);
}

void stk_follow_log_done(struct stk_follow_log *l)
{
    stk_stream_free(l->s);
    free(l->held);
    l->s = NULL;
    l->held = NULL;
}
