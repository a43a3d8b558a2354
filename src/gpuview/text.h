/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - text from strangers, made fit for a terminal, a log or a page: a user can name a process
 * anything. */
#ifndef STK_GPUVIEW_TEXT_H
#define STK_GPUVIEW_TEXT_H

#include <stddef.h>

/* Copies UTF-8 with everything that is not plain text written as \xNN or \u{NNNN}: control
 * characters, bytes that are not UTF-8, marks that turn the direction of writing or have no width.
 * Cut before the first character that does not fit; always ends with an end mark. */
void stk_gpu_text_clean(char *ret, size_t size, const char *text);

/* "47 min", "2 d 3 h": two units at most. */
void stk_gpu_text_age(char *ret, size_t size, double seconds);

#endif
