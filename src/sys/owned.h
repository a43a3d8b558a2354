/* SPDX-License-Identifier: Apache-2.0 */
/* owned.h - whether a file that root acts on can be changed by anybody else. */
#ifndef STK_SYS_OWNED_H
#define STK_SYS_OWNED_H

#include "base/err.h"

/* 0 where only root may write to the file or put another in its place: the file and every
 * folder above it belong to root and are not writable for others, but for folders with the sticky
 * bit. -EPERM: the sentence has the path, its mode and owner, and the command that mends it. Only
 * root is held to this; a character device (/dev/null) keeps nothing, and a file that is not there
 * is reported by the caller that opens it. */
int stk_owned_check(const char *path, struct stk_err *err);

#endif
