/* SPDX-License-Identifier: Apache-2.0 */
/* logfilter.h - output of a job made fit for a terminal, piece by piece: text, tabs, line ends,
 * carriage returns and backspaces stay, and so do colours (ESC [ ... m); other control characters
 * and escapes are dropped. */
#ifndef STK_CLI_LOGFILTER_H
#define STK_CLI_LOGFILTER_H

#include <stddef.h>

struct stk_logfilter {
    int state;
    char held[32]; /* an escape not yet known to be a colour */
    size_t n;
};

/* Filters n bytes into 'out' (room for n + sizeof(held)); returns how many came out. */
size_t stk_logfilter(struct stk_logfilter *f, const char *in, size_t n, char *out);

#endif
