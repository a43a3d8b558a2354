/* SPDX-License-Identifier: Apache-2.0 */
/* emit.h - buffered writing of what machines read: JSON, CSV, and text inside HTML. The same bytes
 * whatever the locale, and names from a trace cannot break out of the field they are written in.
 * Errors are kept and told once, at the end. */
#ifndef STK_SIM_EMIT_H
#define STK_SIM_EMIT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/time.h"

struct stk_emit {
    FILE *f;
    int rc; /* first error, -Exxx */
    size_t n;
    char buf[1 << 14];
};

void stk_emit_init(struct stk_emit *e, FILE *f); /* borrows 'f' until stk_emit_end() */
int stk_emit_end(struct stk_emit *e);            /* flushes, 'f' too; 0 or the first error */

void stk_emit_bytes(struct stk_emit *e, const char *s, size_t len);
void stk_emit_text(struct stk_emit *e, const char *s); /* as it is */
void stk_emit_u64(struct stk_emit *e, uint64_t v);

/* Microseconds as seconds: an integer when whole, else a decimal without trailing zeros. */
void stk_emit_us(struct stk_emit *e, stk_time us);

/* A number with at most 'digits' (<= 6) decimals and no trailing zeros; "null" when it is not
 * finite. */
void stk_emit_real(struct stk_emit *e, double v, unsigned digits);

/* A JSON string with its quotes. Also safe inside an HTML <script>: '<', '>' and '&' are escaped.
 * Bytes that are not UTF-8 become U+FFFD, here and in HTML. */
void stk_emit_json(struct stk_emit *e, const char *s);
/* ,"name": of an object that has a member already. The name is written as it is. */
void stk_emit_member(struct stk_emit *e, const char *name);
void stk_emit_html(struct stk_emit *e, const char *s); /* text, or a quoted attribute */
void stk_emit_csv(struct stk_emit *e, const char *s);  /* quoted only when it must be */

#endif
