/* SPDX-License-Identifier: Apache-2.0 */
/* human.h - figures as people say them, for the table and the progress line. */
#ifndef STK_SIM_HUMAN_H
#define STK_SIM_HUMAN_H

#include <stddef.h>
#include <stdint.h>

#define STK_HUMAN_LEN 32 /* enough for any of these */

/* "0s", "450ms", "12.3s", "4m 10s", "4h 52m", "3d 7h", "1,234d"; "-" when not finite or negative.
 */
void stk_human_duration(char *buf, size_t cap, double seconds);

void stk_human_count(char *buf, size_t cap, uint64_t n); /* "1,234,567" */

#endif
