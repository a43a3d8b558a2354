/* SPDX-License-Identifier: Apache-2.0 */
/* jobnodes.h - the nodes of a job that has several: which tasks and GPUs it has on each. As text,
 * "n1:2:0,1;n2:2:0,1" (name, tasks, GPUs), it goes from the engine to the supervisor, and in
 * STOKER_NODES to srun in the job's script. */
#ifndef STK_SYS_JOBNODES_H
#define STK_SYS_JOBNODES_H

#include <stddef.h>
#include <stdint.h>

#define STK_JOBNODES_MAX 4096
#define STK_JOBNODES_NAME "STOKER_NODES"

struct stk_jobnode {
    char *name, *gpus; /* gpus: "0,1" */
    uint32_t tasks, n_gpus;
};

struct stk_jobnodes {
    struct stk_jobnode *node;
    uint32_t n;
    char *text; /* what the names and GPUs point into */
};

/* -EINVAL: it is no such text; -ENOMEM. */
int stk_jobnodes_read(const char *text, struct stk_jobnodes *ret);
void stk_jobnodes_done(struct stk_jobnodes *t);

/* The node of a task, and which of the node's tasks it is, from 0. */
uint32_t stk_jobnodes_find(const struct stk_jobnodes *t, uint32_t task, uint32_t *ret_local);

/* Other tasks than the job's own: as many on each node, the first ones have one more. */
void stk_jobnodes_spread(struct stk_jobnodes *t, uint32_t tasks);

/* "n1,n2": all names, malloced; NULL: out of memory. */
char *stk_jobnodes_names(const struct stk_jobnodes *t);
/* "2(x3),1": tasks of each node in Slurm's words, malloced; NULL: out of memory. */
char *stk_jobnodes_tasks(const struct stk_jobnodes *t);

#endif
