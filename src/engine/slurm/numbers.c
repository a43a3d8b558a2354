/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c - jobs have two numbers, Slurm's and ours: each by the other, for people. */
#include <stdio.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

const char *stk_slurm_number_text(const struct stk_engine *e, stk_job_number number, char *buf,
                                  size_t size)
{
    const json_t *job = stk_slurm_of(e, number);
    long long array = stk_whole(job, "array_job"), own = stk_whole(job, "job");

    buf[0] = '\0';
    if (array > 0 && json_is_integer(json_object_get(job, "array_task")))
        (void)snprintf(buf, size, "%lld_%lld", array, (long long)stk_whole(job, "array_task"));
    else if (own > 0)
        (void)snprintf(buf, size, "%lld", own);
    return buf;
}

/* Ours of a record that Slurm has; of an element, when the array is meant, that of the first. */
static stk_job_number ours(const struct stk_slurm *m, const struct stk_slurm_seen *s, bool array)
{
    struct stk_slurm_mark mk;

    if (array && stk_slurm_import_mark_of(m, s->job, &mk))
        return mk.first;
    return s->number;
}

/* The record of an array is gone when its last element came off, so elements are looked at, too:
 * O(jobs that Slurm has). */
stk_job_number stk_slurm_number_find(const struct stk_engine *e, uint32_t slurm)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;
    const struct stk_slurm_import *i = stk_slurm_import_find(m, slurm);
    const struct stk_slurm_seen *s = stk_slurm_seen(m, slurm);

    if (i && i->step == STK_I_OURS)
        return i->first;
    if (s && s->number)
        return ours(m, s, stk_whole(s->job, "array_job") == (json_int_t)slurm);
    for (uint32_t k = 0; k < m->n_seen; k++)
        if (m->seen[k].number && stk_whole(m->seen[k].job, "array_job") == (json_int_t)slurm)
            return ours(m, &m->seen[k], true);
    return 0;
}
