/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - standard input of "stoker run" as that of its job.
 *
 * The job reads a named pipe (its "stdin") that this program holds open and writes into, at the
 * pace at which the job reads. The daemon has no part in it, and may be restarted meanwhile. When
 * our input ends, or this program does, the job reads the end of its input.
 *
 * What was sent once is gone: with the first byte the name of the pipe is removed, so that a job
 * that is started again fails with a sentence instead of reading the rest. As long as nothing was
 * sent it may be started again at will.
 */
#ifndef STK_CLI_INPUT_H
#define STK_CLI_INPUT_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct stk_input {
    int fd; /* the pipe; -1: nothing is sent, or all of it was */
    bool tty, sent;
    bool left;        /* the job is left to itself, and may start after us */
    const char *lost; /* why it cannot be sent, until that was said; NULL: it can be */
    char dir[96], path[128];
    size_t n, at; /* bytes in 'buf', and those of them that were sent */
    char buf[16384];
};

/* Is there something that could be sent? Not /dev/null, and not a closed file. */
bool stk_input_there(void);
/* Makes the pipe, and names it in the description of the job. */
int stk_input_open(struct stk_input *in, json_t *spec, struct stk_err *err);
/* It cannot be sent: says so once there is some. */
void stk_input_warn(struct stk_input *in);
/* What to wait for, while the job runs: our input, and room in the pipe. */
void stk_input_polls(const struct stk_input *in, bool runs, struct pollfd polls[2]);
/* ... what has come of it. */
void stk_input_turn(struct stk_input *in, const struct pollfd polls[2]);
void stk_input_done(struct stk_input *in);

#endif
