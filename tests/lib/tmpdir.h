/* SPDX-License-Identifier: Apache-2.0 */
/* tmpdir.h - a directory for one test. Failures end the test program: nothing can go on without. */
#ifndef STK_TESTS_TMPDIR_H
#define STK_TESTS_TMPDIR_H

#include <stddef.h>

struct fx_dir {
    char path[128];
};

void fx_dir_make(struct fx_dir *d); /* 0700, empty, under TMPDIR */
void fx_dir_remove(const struct fx_dir *d);

/* "path/name" in a buffer of the caller. */
const char *fx_dir_at(const struct fx_dir *d, const char *name, char *buf, size_t cap);

#endif
