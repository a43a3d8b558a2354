/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - the response parser: a state per part, lines gathered whole, bodies passed through. */
#include "client/answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void stk_answer_init(struct stk_answer *h, uint64_t max_body)
{
    h->part = STK_ANSWER_STATUS;
    h->status = 0;
    h->chunked = h->has_length = h->close = false;
    h->left = h->body = h->offset = 0;
    h->max_body = max_body;
    h->head = h->n_line = 0;
}

static int bad(struct stk_err *err, const char *what)
{
    return stk_err_set(err, -EPROTO, "the answer is not HTTP as it should be: %s", what);
}

static int status_line(struct stk_answer *h, struct stk_err *err)
{
    const char *s = h->line;

    if (strncmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1') || s[8] != ' ')
        return bad(err, "no status line");
    h->close = s[7] == '0';
    for (int i = 9; i < 12; i++)
        if (s[i] < '0' || s[i] > '9')
            return bad(err, "no status number");
    if (s[12] != ' ' && s[12] != '\0')
        return bad(err, "no status number");
    h->status = (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
    if (h->status < 100)
        return bad(err, "no status number");
    h->chunked = h->has_length = false;
    h->left = 0;
    h->part = STK_ANSWER_HEADERS;
    return 0;
}

static int number(const char *s, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;

    for (; *s != '\0'; s++) {
        unsigned digit;

        if (*s >= '0' && *s <= '9')
            digit = (unsigned)(*s - '0');
        else if (base == 16 && ((*s | 32) >= 'a' && (*s | 32) <= 'f'))
            digit = (unsigned)((*s | 32) - 'a') + 10;
        else
            return -EPROTO;
        if (v > ((uint64_t)INT64_MAX - digit) / base)
            return -EPROTO;
        v = v * base + digit;
    }
    *ret = v;
    return 0;
}

static int header(struct stk_answer *h, struct stk_err *err)
{
    char *value = strchr(h->line, ':'), *end;
    uint64_t n = 0;

    if (!value || value == h->line || h->line[0] == ' ' || h->line[0] == '\t')
        return bad(err, "a header without a name");
    *value++ = '\0';
    value += strspn(value, " \t");
    for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    if (strcasecmp(h->line, "content-length") == 0) {
        if (*value == '\0' || number(value, 10, &n) < 0 || (h->has_length && n != h->left))
            return bad(err, "Content-Length");
        h->has_length = true;
        h->left = n;
    } else if (strcasecmp(h->line, "transfer-encoding") == 0) {
        if (strcasecmp(value, "chunked") != 0 || h->chunked)
            return bad(err, "Transfer-Encoding");
        h->chunked = true;
    } else if (strcasecmp(h->line, "stoker-offset") == 0) {
        if (*value == '\0' || number(value, 10, &h->offset) < 0)
            return bad(err, "Stoker-Offset");
    } else if (strcasecmp(h->line, "connection") == 0) {
        h->close = h->close || strcasecmp(value, "close") == 0;
    }
    return 0;
}

/* The empty line: what follows? */
static int head_ends(struct stk_answer *h, struct stk_err *err)
{
    if (h->chunked && h->has_length)
        return bad(err, "both Content-Length and Transfer-Encoding");
    if (h->status < 200) {
        h->part = STK_ANSWER_STATUS;
        h->status = 0;
        return 0;
    }
    if (h->status == 204 || h->status == 304) {
        h->part = STK_ANSWER_DONE;
    } else if (h->chunked) {
        h->part = STK_ANSWER_CHUNK_SIZE;
    } else if (h->has_length) {
        h->part = h->left > 0 ? STK_ANSWER_LENGTH : STK_ANSWER_DONE;
    } else {
        h->part = STK_ANSWER_CLOSE;
        h->close = true;
    }
    return 0;
}

static int chunk_size(struct stk_answer *h, struct stk_err *err)
{
    char *s = h->line;

    s[strcspn(s, "; \t")] = '\0';
    if (*s == '\0' || number(s, 16, &h->left) < 0)
        return bad(err, "the size of a chunk");
    h->part = h->left > 0 ? STK_ANSWER_CHUNK : STK_ANSWER_TRAILERS;
    return 0;
}

static int take_line(struct stk_answer *h, struct stk_err *err)
{
    if (h->n_line > 0 && h->line[h->n_line - 1] == '\r')
        h->n_line--;
    h->line[h->n_line] = '\0';
    if (strlen(h->line) != h->n_line)
        return bad(err, "a zero byte in its head");
    switch (h->part) {
    case STK_ANSWER_STATUS:
        return status_line(h, err);
    case STK_ANSWER_HEADERS:
        return h->n_line > 0 ? header(h, err) : head_ends(h, err);
    case STK_ANSWER_CHUNK_SIZE:
        return chunk_size(h, err);
    case STK_ANSWER_CHUNK_END:
        h->part = STK_ANSWER_CHUNK_SIZE;
        return h->n_line == 0 ? 0 : bad(err, "a chunk longer than it said");
    case STK_ANSWER_TRAILERS:
        if (h->n_line == 0)
            h->part = STK_ANSWER_DONE;
        return 0;
    default:
        return bad(err, "a line where none belongs");
    }
}

static ssize_t feed_line(struct stk_answer *h, const char *data, size_t n, struct stk_err *err)
{
    const char *nl = memchr(data, '\n', n);
    size_t take = nl ? (size_t)(nl - data) : n;
    int rc;

    if (take >= sizeof(h->line) - h->n_line)
        return stk_err_set(err, -E2BIG, "the answer has a line of more than %d bytes",
                           STK_ANSWER_MAX_LINE - 1);
    memcpy(h->line + h->n_line, data, take);
    h->n_line += take;
    h->head += take + (nl != NULL);
    if (h->part == STK_ANSWER_CHUNK_SIZE || h->part == STK_ANSWER_CHUNK_END)
        h->head = 0; /* a stream may have any number of chunks */
    if (h->head > STK_ANSWER_MAX_HEAD)
        return stk_err_set(err, -E2BIG, "the head of the answer is longer than %u bytes",
                           STK_ANSWER_MAX_HEAD);
    if (!nl)
        return (ssize_t)n;
    rc = take_line(h, err);
    h->n_line = 0;
    return rc < 0 ? rc : (ssize_t)take + 1;
}

static ssize_t feed_body(struct stk_answer *h, const char *data, size_t n, stk_body_fn fn,
                         void *ctx, struct stk_err *err)
{
    size_t take = h->part != STK_ANSWER_CLOSE && n > h->left ? (size_t)h->left : n;
    int rc;

    h->body += take;
    if (h->max_body > 0 && h->body > h->max_body)
        return stk_err_set(err, -E2BIG, "the answer is longer than %llu bytes",
                           (unsigned long long)h->max_body);
    rc = fn ? fn(ctx, data, take) : 0;
    if (rc < 0)
        return rc;
    if (h->part == STK_ANSWER_CLOSE)
        return (ssize_t)take;
    h->left -= take;
    if (h->left == 0)
        h->part = h->part == STK_ANSWER_CHUNK ? STK_ANSWER_CHUNK_END : STK_ANSWER_DONE;
    return (ssize_t)take;
}

ssize_t stk_answer_feed(struct stk_answer *h, const char *data, size_t n, stk_body_fn fn, void *ctx,
                        struct stk_err *err)
{
    size_t used = 0;

    while (used < n && h->part != STK_ANSWER_DONE) {
        bool body = h->part == STK_ANSWER_LENGTH || h->part == STK_ANSWER_CHUNK ||
                    h->part == STK_ANSWER_CLOSE;
        ssize_t rc = body ? feed_body(h, data + used, n - used, fn, ctx, err)
                          : feed_line(h, data + used, n - used, err);

        if (rc < 0)
            return rc;
        used += (size_t)rc;
    }
    return (ssize_t)used;
}

int stk_answer_end(struct stk_answer *h, struct stk_err *err)
{
    if (h->part == STK_ANSWER_CLOSE)
        h->part = STK_ANSWER_DONE;
    if (h->part == STK_ANSWER_DONE)
        return 0;
    return stk_err_set(err, -EPIPE, "the daemon closed the connection %s",
                       h->status == 0 ? "without an answer" : "in the middle of its answer");
}
