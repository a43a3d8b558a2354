/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - the framing of the attach socket, and the keys that leave it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/attach.h"

#define CTRL_P 0x10
#define CTRL_Q 0x11

void stk_frame_head(unsigned char head[5], char type, size_t n)
{
    head[0] = (unsigned char)type;
    for (int i = 0; i < 4; i++)
        head[1 + i] = (unsigned char)(n >> (24 - 8 * i) & 255);
}

int stk_frames_feed(struct stk_frames *f, const void *data, size_t n,
                    int (*fn)(void *ctx, char type, const unsigned char *data, size_t n), void *ctx)
{
    size_t at = 0;

    if (f->n + n > f->cap) {
        unsigned char *buf = realloc(f->buf, f->n + n);

        if (!buf)
            return -ENOMEM;
        f->buf = buf;
        f->cap = f->n + n;
    }
    memcpy(f->buf + f->n, data, n);
    f->n += n;
    while (f->n - at >= 5) {
        const unsigned char *h = f->buf + at;
        size_t size = (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];
        int rc;

        if (size > STK_ATTACH_MAX_FRAME)
            return -E2BIG;
        if (f->n - at < 5 + size)
            break;
        rc = fn(ctx, (char)h[0], h + 5, size);
        if (rc < 0)
            return rc;
        at += 5 + size;
    }
    f->n -= at;
    memmove(f->buf, f->buf + at, f->n);
    return 0;
}

void stk_frames_done(struct stk_frames *f)
{
    free(f->buf);
    *f = (struct stk_frames){0};
}

bool stk_detach_keys(bool *held, const char *in, size_t n, char *out, size_t *ret_n)
{
    size_t k = 0;

    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        if (*held && in[i] == CTRL_Q) {
            *ret_n = k;
            return true;
        }
        if (*held)
            out[k++] = CTRL_P;
        *held = in[i] == CTRL_P;
        if (!*held)
            out[k++] = in[i];
    }
    *ret_n = k;
    return false;
}
