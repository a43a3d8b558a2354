/* SPDX-License-Identifier: Apache-2.0 */
/* dir.h - inside the store: the state directory, its lock, and who may touch its files. */
#ifndef STK_STORE_DIR_H
#define STK_STORE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Opens the directory: not a link, ours, writable by nobody else. 'create': with its parents when
 * it is not there. 'ret_path' is its name without links, malloc'ed. */
int stk_dir_open(const char *path, bool create, int *ret_fd, char **ret_path, struct stk_err *err);

/* Takes the lock that only one writer has; it goes with the descriptor. -EBUSY names the other. */
int stk_dir_lock(int dir_fd, const char *dir, int *ret_fd, struct stk_err *err);

/* Whether a writer has the lock. */
bool stk_dir_in_use(int dir_fd);

/* A file of the directory: regular, ours. 'tighten' makes it 0600. -ENOENT without a sentence. */
int stk_dir_file(int dir_fd, const char *name, bool tighten, uint64_t *ret_size,
                 struct stk_err *err);

/* Whether a file of so many bytes could be written in it; nothing is left. 0, or -ENOSPC. */
int stk_dir_room(int dir_fd, const char *dir, uint64_t bytes, struct stk_err *err);

/* Flushes a file, or the names in a directory (of that file: 'name' NULL). */
int stk_dir_sync(int dir_fd, const char *name, struct stk_err *err);

#endif
