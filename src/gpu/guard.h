/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - keeps the program answering when the driver does not.
 *
 * A driver can hang, in a call that no signal ends. So this process never calls it: a worker
 * process does, and says before each call how long it may take. When the time is over the guard
 * ends the worker, without waiting for that, and the caller tells what was hung. The worker's lines
 * go to standard output as they come.
 */
#ifndef STK_GPU_GUARD_H
#define STK_GPU_GUARD_H

#include <jansson.h>
#include <stdint.h>

/* The worker's side. */
struct stk_guard {
    int fd;
};

/* "From now on at most limit_ms, for this." A step lasts until the next one. */
void stk_guard_step(struct stk_guard *g, int64_t limit_ms, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* One line of output. 0, or -Exxx when it cannot be written (the reader is gone). */
int stk_guard_put(struct stk_guard *g, json_t *take_line);

enum stk_guard_end { STK_GUARD_ENDED, STK_GUARD_HUNG, STK_GUARD_CRASHED };

struct stk_guard_result {
    enum stk_guard_end end;
    int code;      /* exit code, when it ended */
    char why[256]; /* a sentence, when it did not */
};

/* Runs work(g, ctx), which returns the exit code, in a worker. */
int stk_guard_run(int (*work)(struct stk_guard *g, void *ctx), void *ctx,
                  struct stk_guard_result *ret);

/* Writes a line to standard output from outside of a worker. */
int stk_guard_print(json_t *take_line);

#endif
