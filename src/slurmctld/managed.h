/* SPDX-License-Identifier: Apache-2.0 */
/* managed.h - which partitions are stoker's: stoker.conf beside slurm.conf. A line of it is
 * "Partitions=gpu,gpu-long"; '#' begins a remark. Nothing of Slurm is needed to read it. */
#ifndef STK_SLURMCTLD_MANAGED_H
#define STK_SLURMCTLD_MANAGED_H

#include <stdbool.h>
#include <stddef.h>

#define STK_MANAGED_SIZE 4096u

struct stk_managed {
    char names[STK_MANAGED_SIZE]; /* with a comma after each; "": none */
};

/* The text of the file. False: what it says is not all understood, or too long; what is understood
 * counts. */
bool stk_managed_read(const char *text, size_t len, struct stk_managed *ret);
/* One of a job's partitions, "gpu" or "gpu,cpu", is. NULL is none. */
bool stk_managed_any(const struct stk_managed *m, const char *partitions);
/* Those of a job's partitions that are, each once, with commas between them; "": none. */
void stk_managed_only(const struct stk_managed *m, const char *partitions,
                      char ret[STK_MANAGED_SIZE]);

#endif
