/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - how long, for people: "0:07", "1:02:03", "2-03:04:05", as users of Slurm write it. */
#ifndef STK_BASE_SPAN_H
#define STK_BASE_SPAN_H

#include <stddef.h>
#include <stdint.h>

#define STK_SPAN_SIZE 32 /* room for every span */

/* Returns buf; "-" when negative. */
const char *stk_span(int64_t seconds, char *buf, size_t size);

#endif
