/* SPDX-License-Identifier: Apache-2.0 */
/* ids.h - jobs as people name them: 12, 3-7, 12_3 (an element of an array), slurm:1234 (by Slurm's
 * number, where that runs them), lists of these with commas. The number of an array, which is also
 * that of its first element, means all of it. */
#ifndef STK_CLI_IDS_H
#define STK_CLI_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/ask.h"

#define STK_IDS_MAX 100000 /* named at once */

struct stk_id {
    uint32_t job;
    int64_t index; /* of an array's element; -1: the job itself */
    bool range;    /* one of a range: the number itself is meant, never an array */
    bool slurm;    /* the numbers are Slurm's */
};

struct stk_ids {
    struct stk_id *list;
    size_t n, cap;
};

/* Adds what 'word' names. -EINVAL, -E2BIG, -ENOMEM. */
int stk_ids_add(struct stk_ids *ids, const char *word, struct stk_err *err);
void stk_ids_done(struct stk_ids *ids);

/* The words of a command, as ids; at least one unless 'none' is allowed. 0, or the exit code. */
int stk_ids_take(const struct stk_args *a, bool none, struct stk_ids *ids);

/* Turns elements and arrays into numbers of jobs. 'ended': elements that have ended are wanted too.
 * 0, or the exit code after having said what is not there. */
int stk_ids_resolve(struct stk_ask *k, struct stk_ids *ids, bool ended);
/* The same for one id that must be one job. */
int stk_id_resolve(struct stk_ask *k, const char *word, uint32_t *ret);

/* The id as it was written: "12", "12_3" or "slurm:12_3"; and where it is looked up, below
 * /v1/jobs/. */
const char *stk_id_text(const struct stk_id *id, char *buf, size_t size);

/* Calls 'fn' for each job that the command's words name, which adds what it got to 'all'; with
 * --json prints one object, or all of them. The exit code. */
int stk_ids_each(const struct stk_args *a, int (*fn)(struct stk_ask *k, uint32_t id, json_t *all));

#endif
