/* SPDX-License-Identifier: Apache-2.0 */
/* follow_log.h - one output file of a job that is copied while the job writes it. */
#ifndef STK_CLI_FOLLOW_LOG_H
#define STK_CLI_FOLLOW_LOG_H

#include "cli/ask.h"
#include "cli/logfilter.h"

struct stk_follow_log {
    uint32_t job;
    const char *name; /* "stdout", "stderr" */
    int to;
    uint32_t task;
    uint32_t tail; /* begin with this many last lines; 0: at 'offset' */
    bool filtered; /* only what cannot do harm on a terminal */
    struct stk_logfilter filter;
    bool lines;   /* others are copied to the same place: only whole lines */
    bool shared;  /* other jobs write into the same file: it ends with the last of them */
    bool started; /* what is in the file is the job's */
    bool over;    /* the job writes no more */
    bool ended;   /* everything was copied, or there is nothing to copy */
    bool broken;  /* the reader of our output is gone */
    bool inside;  /* the last byte was not the end of a line */
    uint64_t offset;
    double next; /* not opened before this */
    struct stk_stream *s;
    char *held; /* the beginning of a line */
    size_t n_held, cap_held;
};

/* Opens it when there is reason to and it is not open. A stream that was broken off, by a
 * restart of the daemon or where bytes were left out, is opened again where it stopped. 0, or
 * -Exxx: not opened. */
int stk_follow_log_open(struct stk_ask *k, struct stk_follow_log *l);
/* Copies what has come. */
void stk_follow_log_pump(struct stk_follow_log *l);
void stk_follow_log_done(struct stk_follow_log *l);

#endif
