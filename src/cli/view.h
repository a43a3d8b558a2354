/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - job objects of the API in words: states, times, reasons, exit codes. */
#ifndef STK_CLI_VIEW_H
#define STK_CLI_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/term.h"

/* "running", or how it ended: "completed", "failed", ... */
const char *stk_view_state(const json_t *job);
bool stk_view_ended(const json_t *job);
enum stk_colour stk_state_colour(const char *state);

/* "12", or "12_3" for an element of an array. */
const char *stk_view_id(const json_t *job, char *buf, size_t size);

/* Seconds it has run, or for one that never ran, waited; at 'now' where it has not ended. */
double stk_view_seconds(const json_t *job, double now);

/* Where it runs ("gpu 0,3"), why it waits, or how it ended. */
/* "7 of 10 items done, 1 failed", of a batch; the buffer has 128 bytes or more. */
const char *stk_view_items(const json_t *job, char *buf, size_t size);
/* "4", "0.5" */
const char *stk_view_gpus(const json_t *job, char *buf, size_t size);
const char *stk_view_where(const json_t *job, char *buf, size_t size);

/* The sentence about why it is where it is; "" when there is none. */
const char *stk_view_sentence(const json_t *job);

/* The code that "run" and "wait" exit with for a job that has ended. */
int stk_view_code(const json_t *job);

/* "1:02:03", "2-03:04:05", "0:07"; "-" when negative. */
const char *stk_text_duration(double seconds, char *buf, size_t size);
/* "14:03:22" today, "Nov 15 14:03" else; "-" for 0. */
const char *stk_text_time(double unix_s, char *buf, size_t size);
/* "about 14:30, by 16:00 nine times in ten, probably on a gpu 0-7"; "": it is not known when it
 * starts. */
const char *stk_view_start(const json_t *job, char *buf, size_t size);
/* "16:00, feasible with 2:10:00 to spare"; "": it has none. */
const char *stk_view_deadline(const json_t *job, char *buf, size_t size);
/* "3.5 GiB". */
const char *stk_text_mib(double mib, char *buf, size_t size);
double stk_now(void);

#endif
