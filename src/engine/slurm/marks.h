/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - what stands in the administrator's comment of jobs, which no user can write, and lists
 * of array elements as Slurm writes them. Nothing of Slurm is needed to read them.
 *
 *   stoker MARK 7 12            job 7 of the stoker with that mark, sent by it under lease 12
 * Of users' own jobs:
 *   stoker                      held for stoker, by the plugin or by us; not taken in yet
 *   stoker signal=10@60B        the same, with its --signal
 *   stoker: SENTENCE            it cannot be taken in, and why
 *   stoker MARK 7 -             it is job 7 of the stoker with that mark
 *   stoker MARK 7 hp45 0-8:2    the first element of this array is; flags: see below
 */
#ifndef STK_ENGINE_SLURM_MARKS_H
#define STK_ENGINE_SLURM_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STK_SLURM_TASKS_LEN 1024u

struct stk_slurm_mark {
    uint32_t first;                  /* our number; of an array that of its first element */
    bool held;                       /* h: it is held here, because Slurm holds it */
    bool by_user;                    /* u: Slurm's hold is its user's own */
    uint32_t pinned;                 /* p: where it runs was said by us, under this lease; 0: not */
    char tasks[STK_SLURM_TASKS_LEN]; /* of an array, when it was taken in; "": it is none */
};

/* The mark of a job that we sent. False: it is none, or another stoker's. */
bool stk_slurm_sent_read(const char *comment, const char *mark, uint32_t *ret_number,
                         uint32_t *ret_lease);
/* That of a user's own job. False: likewise. */
bool stk_slurm_mark_read(const char *comment, const char *mark, struct stk_slurm_mark *ret);
void stk_slurm_mark_write(const struct stk_slurm_mark *m, const char *mark, char *buf, size_t size);

struct stk_slurm_claim {
    int signal; /* 0: none */
    uint32_t seconds;
    bool batch;   /* to the script alone */
    bool refused; /* it says why it cannot be taken in */
};

/* Held for a stoker, and not taken in yet. */
bool stk_slurm_claim_read(const char *comment, struct stk_slurm_claim *ret);
void stk_slurm_claim_write(const struct stk_slurm_claim *c, const char *sentence, char *buf,
                           size_t size);

/* "0-8:2,11%3": calls 'each' with every element, ascending. What is behind '%' is passed over.
 * -EINVAL: it is no such list; -E2BIG: it has more than 'max'; other errors are those of 'each'. */
typedef int (*stk_slurm_task_fn)(void *ctx, uint32_t task);
int stk_slurm_tasks(const char *list, uint32_t max, stk_slurm_task_fn each, void *ctx);

struct stk_slurm_ranks { /* of elements that are asked for in ascending order; O(ranges) in all */
    const char *rest;
    uint32_t from, to, step, before;
};

struct stk_slurm_ranks stk_slurm_ranks(const char *list); /* borrowed */
/* How many come before it; UINT32_MAX: it is not among them. */
uint32_t stk_slurm_next_rank(struct stk_slurm_ranks *k, uint32_t task);
/* The same of one alone. O(ranges). */
uint32_t stk_slurm_task_rank(const char *list, uint32_t task);
/* The element with so many before it; UINT32_MAX: there are not so many. O(ranges). */
uint32_t stk_slurm_task_at(const char *list, uint32_t rank);
uint32_t stk_slurm_task_count(const char *list); /* 0: it is no list */

#endif
