/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - the two small languages in which Slurm writes what it has: lists of hosts
 * ("gpu[01-08,12],login") and of generic resources ("gpu:h100:2(IDX:0-1),gpu:a100:4(S:0)"). Nothing
 * of Slurm is needed to read them. */
#ifndef STK_LIBSLURM_NAMES_H
#define STK_LIBSLURM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STK_SLURM_MAX_HOSTS 65536u
#define STK_SLURM_HOST_LEN 256u
#define STK_SLURM_MAX_GRES 64u
#define STK_SLURM_TYPE_LEN 64u

/* Calls 'each' with every name, in order. -EINVAL: it is no such list; -E2BIG: too many or too
 * long; other errors are those of 'each'. */
typedef int (*stk_slurm_host_fn)(void *ctx, const char *name);
int stk_slurm_hosts(const char *list, stk_slurm_host_fn each, void *ctx);

struct stk_slurm_gres {
    char type[STK_SLURM_TYPE_LEN]; /* "": none is said */
    uint32_t count;
    uint64_t indices; /* that are named; 0: none are */
};

/* The GPUs of such a list; other resources are passed over. How many entries, at most 'max' of
 * which are written; -EINVAL. NULL and "(null)" are empty lists. */
int stk_slurm_gpus(const char *list, struct stk_slurm_gres *ret, uint32_t max);

/* What is asked for, in the one way in which it can be compared and asked for again. Newer Slurms
 * write "cpu=2,gres/gpu:h100=4" for what older ones have as "gres:gpu:h100:4": the latter is what
 * is left of it. */
void stk_slurm_plain_gres(char *io_list);

/* "B:USR1@60": what the #SBATCH lines of a script have for --signal; of several the last counts.
 * False: nothing, or nothing that could be one. */
bool stk_slurm_script_signal(const char *script, char *buf, size_t size);

#endif
