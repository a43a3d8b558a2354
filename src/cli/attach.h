/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - this terminal as the terminal of an interactive job (docs/spec/attach.md). */
#ifndef STK_CLI_ATTACH_H
#define STK_CLI_ATTACH_H

#include "cli/ask.h"

#define STK_ATTACH_MAX_FRAME (1U << 20)

/* Waits for the job to start, then is its terminal until it ends or the detach keys (Ctrl-P
 * Ctrl-Q) come. 'mine': it was submitted just now, Ctrl-C while it waits cancels it. The exit code
 * as of "run"; 0 after detaching. */
int stk_attach(struct stk_ask *k, uint32_t id, bool mine);

/* Frames from bytes as they come: type, four bytes of length (big-endian), payload. */
struct stk_frames {
    unsigned char *buf;
    size_t n, cap;
};
/* Calls 'fn' for each whole frame; what is left is kept. -E2BIG, -ENOMEM, or what 'fn' returned. */
int stk_frames_feed(struct stk_frames *f, const void *data, size_t n,
                    int (*fn)(void *ctx, char type, const unsigned char *data, size_t n),
                    void *ctx);
void stk_frames_done(struct stk_frames *f);
/* The five bytes before a payload of 'n' bytes. */
void stk_frame_head(unsigned char head[5], char type, size_t n);

/* Looks for the detach keys in what was typed. Copies to 'out' (room for n + 1) what shall be sent;
 * true when the keys were complete. *held: Ctrl-P came, and waits for what follows. */
bool stk_detach_keys(bool *held, const char *in, size_t n, char *out, size_t *ret_n);

#endif
