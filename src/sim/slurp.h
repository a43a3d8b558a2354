/* SPDX-License-Identifier: Apache-2.0 */
/* slurp.h - a whole file in memory. */
#ifndef STK_SIM_SLURP_H
#define STK_SIM_SLURP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define STK_SLURP_MAX (UINT64_C(4) << 30) /* bytes, before and after unpacking */

/* Reads 'path' ("-": standard input) and unpacks it when it begins as gzip does. The text is
 * malloc'ed, NUL terminated past its length, and the caller's to free. */
int stk_slurp(const char *path, char **ret_data, size_t *ret_len, struct stk_err *err);

#endif
