/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - stays with a job until it ends: its state on standard error, its output as it comes.
 * Goes on when the daemon is restarted meanwhile. */
#ifndef STK_CLI_FOLLOW_H
#define STK_CLI_FOLLOW_H

#include "cli/ask.h"
#include "cli/ids.h"
#include "cli/input.h"

struct stk_follow {
    uint32_t id;
    uint32_t count;          /* workers of a batch, numbers in a row; else 1 */
    uint32_t outputs;        /* how many of these have a file of their own */
    bool output;             /* copy its output */
    bool errors;             /* its standard error is a file of its own: copy that too */
    bool cancel;             /* Ctrl-C and SIGTERM cancel it; else they only end the following */
    bool quiet;              /* say nothing about its state */
    bool until_start;        /* leave when it has started: 0 */
    struct stk_input *input; /* sent to it while it runs; NULL: nothing is */
    bool look_on;            /* its end says nothing and is no failure of ours: 0 */
    /* of "stoker logs -f": */
    const char *stream; /* only this output, "stdout" or "stderr"; NULL: as 'errors' says */
    uint32_t task;      /* of a gang */
    uint32_t tail;      /* begin with this many last lines; 0: at the beginning */
    bool filtered;      /* only what cannot do harm on a terminal */
};

/* For a job whose number the user gave: is the daemon there, and may the user see the job? 0, or
 * the exit code after having said why. Only a daemon that once answered is waited for. */
int stk_follow_check(struct stk_ask *k, uint32_t id);

/* The job's exit code (cli/view.h), 128 + signal when we were told to leave, or 125 after having
 * said why. */
int stk_follow(struct stk_ask *k, const struct stk_follow *f);

/* Says on standard error how a job ended, unless its own exit code says it all; 'quiet': only when
 * it ended in a way that was not its own doing. */
void stk_follow_ended(const json_t *job, bool quiet);

/* Waits for the end of a job with no output: 0 and *ret_job, or -Exxx. -EINTR: a signal came. A
 * daemon that is away is waited for without end, or until 'until' (0: none). */
int stk_await(struct stk_ask *k, const struct stk_id *id, int signals, double until,
              json_t **ret_job, struct stk_err *err);

#endif
