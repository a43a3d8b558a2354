/* SPDX-License-Identifier: Apache-2.0 */
/* other.h - a plugin of Slurm's own that one of ours stands in for, and runs. */
#ifndef STK_SLURMCTLD_OTHER_H
#define STK_SLURMCTLD_OTHER_H

#include <stdint.h>

/* The function of that name, in a plugin or (RTLD_DEFAULT) in slurmctld; NULL in 'ret_function',
 * which points to a function pointer, when there is none. */
void stk_other_find(void *in, const char *name, void *ret_function);

/* NAME.so of the first folder of 'dirs' (PluginDir) that has it, and its init() was called. NULL:
 * there is none, it is of another version, or it did not want to start. */
void *stk_other_start(const char *dirs, const char *name, uint32_t version);
void stk_other_stop(void *plugin); /* NULL is a no-op */

#endif
