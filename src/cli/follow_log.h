/* SPDX-License-Identifier: Apache-2.0 */
/* follow_log.h - one output file of a job that is copied while the job writes it. */
#ifndef STK_CLI_FOLLOW_LOG_H
#define STK_CLI_FOLLOW_LOG_H

#include "cli/ask.h"

struct stk_follow_log {
    uint32_t job;
    const char *name; /* "stdout", "stderr" */
    int to;
    bool lines;   /* others are copied to the same place: only whole lines */
    bool shared;  /* other jobs write into the same file: it ends with the last of them */
    bool started; /* what is in the file is the job's */
    bool over;    /* the job writes no more */
    bool ended;   /* everything was copied, or there is nothing to copy */
    bool broken;  /* the reader of our output is gone */
    uint64_t offset;
    double next; /* not opened before this */
    struct stk_stream *s;
    char *held; /* the beginning of a line */
    size_t n_held, cap_held;
};

/* Opens it when there is reason to and it is not open. What was copied is counted, so that a stream
 * cut off by a restart of the daemon is opened again where it stopped. */
void stk_follow_log_open(struct stk_ask *k, struct stk_follow_log *l);
/* Copies what has come. True: its stream has ended. */
bool stk_follow_log_pump(struct stk_follow_log *l);
void stk_follow_log_done(struct stk_follow_log *l);

#endif
