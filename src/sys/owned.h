/* SPDX-License-Identifier: Apache-2.0 */
/* owned.h - files that decide what a daemon of root does, which nobody else may be able to change.
 */
#ifndef STK_SYS_OWNED_H
#define STK_SYS_OWNED_H

#include "base/err.h"

/* Opens a file for reading that only root may change or replace: the file, every folder above it
 * and every link on the way belong to root, and none of them is writable for its group or for
 * others, except folders with the sticky bit. What is checked is what is opened, whatever is
 * renamed meanwhile. Returns the descriptor, or -errno; -EPERM: the sentence has the path, its mode
 * and owner, and the command that mends it. Only root is held to this; a character device
 * (/dev/null) keeps nothing, so its mode does not matter. */
int stk_owned_open(const char *path, struct stk_err *err);

#endif
