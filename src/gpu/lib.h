/* SPDX-License-Identifier: Apache-2.0 */
/* lib.h - opens the driver's libraries at run time. */
#ifndef STK_GPU_LIB_H
#define STK_GPU_LIB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* One function of a library: where its address goes, and under which names it may be found, the
 * best first (NULL: only one). */
struct stk_lib_call {
    size_t at; /* offset of the function pointer in the table */
    const char *name, *older;
    bool needed;
};

/* Opens the library by its name, then in the folders where NVIDIA's installers put it.
 * $STOKER_GPU_LIB_DIR, where set and the program is not setuid, is the only folder looked at.
 * Fills the table of function pointers; those that are not there are NULL. Fails with -ENOENT when
 * there is no such library, -ENOSYS when a needed function is missing from it. */
int stk_lib_open(const char *name, const struct stk_lib_call *calls, size_t n_calls, void *table,
                 void **ret_lib, struct stk_err *err);
void stk_lib_close(void *lib);

#endif
