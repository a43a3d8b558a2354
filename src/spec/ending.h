/* SPDX-License-Identifier: Apache-2.0 */
/* ending.h - how a job ended, in words. */
#ifndef STK_SPEC_ENDING_H
#define STK_SPEC_ENDING_H

#include <stddef.h>
#include <stdint.h>

#include "model/job.h"

/* "failed with exit code 3", "was killed by signal 9 (KILL)". */
void stk_end_words(enum stk_cause cause, int32_t code, char *buf, size_t size);

/* "has already completed", "has already ended (failed)": the end of a sentence that begins with the
 * job. */
void stk_end_already(enum stk_cause cause, char *buf, size_t size);

#endif
