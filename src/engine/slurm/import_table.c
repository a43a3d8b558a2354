/* SPDX-License-Identifier: Apache-2.0 */
/* import_table.c - records of users' own jobs, by Slurm's number; whose each is, and our numbers of
 * what is in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

bool stk_slurm_import_several(const json_t *job)
{
    return *stk_str(job, "array_tasks") && !json_is_integer(json_object_get(job, "array_task"));
}

/* ---- the table ---- */

struct stk_slurm_import *stk_slurm_import_find(const struct stk_slurm *m, json_int_t slurm)
{
    uint32_t at =
        slurm > 0 && slurm < UINT32_MAX ? stk_map_get(&m->import_at, (uint32_t)slurm) : UINT32_MAX;

    return at == UINT32_MAX ? NULL : &m->imports[at];
}

bool stk_slurm_import_reused(const struct stk_slurm_import *i, const json_t *job)
{
    return i->uid != (uint32_t)stk_whole(job, "uid") ||
           (stk_whole(job, "submitted") > i->submitted && stk_whole(job, "restarts") == 0);
}

void stk_slurm_import_drop(struct stk_slurm *m, struct stk_slurm_import *i)
{
    struct stk_slurm_import *last = &m->imports[--m->n_imports];

    stk_map_remove(&m->import_at, i->slurm);
    json_decref(i->job);
    free(i->tasks);
    if (last == i)
        return;
    *i = *last;
    stk_map_put(&m->import_at, i->slurm, (uint32_t)(i - m->imports));
}

struct stk_slurm_import *stk_slurm_import_add(struct stk_slurm *m, const json_t *job)
{
    uint32_t slurm = (uint32_t)stk_whole(job, "job");
    struct stk_slurm_import *i = stk_slurm_import_find(m, slurm);
    json_t *old = NULL; /* 'job' may be that */

    if (i && stk_slurm_import_reused(i, job) && i->step != STK_I_OURS) {
        old = i->job;
        i->job = NULL;
        stk_slurm_import_drop(m, i); /* Slurm has used the number again */
        i = NULL;
    }
    if (i)
        return i;
    if (stk_mem_grow(&m->mem, &m->imports, &m->cap_imports, m->n_imports + 1, sizeof(*i)) < 0 ||
        stk_map_reserve(&m->import_at, &m->mem, m->n_imports + 1) < 0) {
        json_decref(old);
        return NULL;
    }
    i = &m->imports[m->n_imports];
    *i = (struct stk_slurm_import){.slurm = slurm,
                                   .uid = (uint32_t)stk_whole(job, "uid"),
                                   .submitted = stk_whole(job, "submitted"),
                                   .job = old};
    stk_map_put(&m->import_at, slurm, m->n_imports++);
    return i;
}

void stk_slurm_import_keep(struct stk_slurm_import *i, json_t *job)
{
    json_t *old = i->job;

    i->job = json_incref(job);
    json_decref(old);
}

void stk_slurm_import_free(struct stk_slurm *m)
{
    while (m->n_imports > 0)
        stk_slurm_import_drop(m, &m->imports[m->n_imports - 1]);
    stk_mem_drop(&m->mem, &m->imports, &m->cap_imports, sizeof(*m->imports));
    stk_mem_drop(&m->mem, &m->missing, &m->cap_missing, sizeof(*m->missing));
    stk_map_done(&m->import_at, &m->mem);
    stk_map_done(&m->elsewhere, &m->mem);
}

/* ---- whose a record is ---- */

void stk_slurm_import_own(struct stk_slurm_import *i, const struct stk_slurm_mark *mk)
{
    i->step = STK_I_OURS;
    i->first = mk->first;
    if (mk->tasks[0] && !i->tasks)
        i->tasks = strdup(mk->tasks);
}

/* Our mark on it, or what it would be. False: it is not ours. */
bool stk_slurm_import_mark_of(const struct stk_slurm *m, const json_t *job,
                              struct stk_slurm_mark *ret)
{
    const struct stk_slurm_import *i = stk_slurm_import_find(m, stk_whole(job, "job"));

    if (stk_slurm_mark_read(stk_str(job, "admin_comment"), m->cfg.mark, ret))
        return stk_slurm_owned(m, ret->first, job);
    if (!i || i->step != STK_I_OURS || stk_slurm_import_reused(i, job))
        i = stk_slurm_import_find(m, stk_whole(job, "array_job"));
    if (!i || i->step != STK_I_OURS || stk_slurm_import_reused(i, job) ||
        !stk_slurm_owned(m, i->first, job))
        return false;
    *ret = (struct stk_slurm_mark){.first = i->first};
    if (i->tasks)
        (void)snprintf(ret->tasks, sizeof(ret->tasks), "%s", i->tasks);
    return true;
}

static int keep_task(void *ctx, uint32_t task)
{
    *(uint32_t *)ctx = task;
    return 0;
}

void stk_slurm_import_last(const struct stk_slurm *m, json_t *job)
{
    struct stk_slurm_mark mk;
    uint32_t task = 0;

    if (stk_slurm_import_several(job) && stk_slurm_task_count(stk_str(job, "array_tasks")) == 1 &&
        stk_slurm_import_mark_of(m, job, &mk) && mk.tasks[0] &&
        stk_slurm_tasks(stk_str(job, "array_tasks"), 1, keep_task, &task) == 0)
        (void)json_object_set_new(job, "array_task", json_integer(task));
}

stk_job_number stk_slurm_import_number(const struct stk_slurm_mark *mk, const json_t *job)
{
    uint32_t rank = 0;

    if (mk->tasks[0] && !json_is_integer(json_object_get(job, "array_task")))
        return 0; /* what is left of an array of which all elements have gone */
    if (mk->tasks[0])
        rank = stk_slurm_task_rank(mk->tasks, (uint32_t)stk_whole(job, "array_task"));
    return rank == UINT32_MAX ? 0 : mk->first + rank;
}

/* ---- numbers of a record ---- */

static int add_number(void *ctx, uint32_t task)
{
    struct stk_slurm_numbers *l = ctx;
    uint32_t rank = stk_slurm_next_rank(&l->ranks, task);

    if (rank != UINT32_MAX && l->n < l->cap)
        l->list[l->n++] = l->first + rank;
    return 0;
}

/* Of all the elements in it. The list is the caller's to free; n 0: none, or no memory. */
struct stk_slurm_numbers stk_slurm_import_numbers(const struct stk_slurm_mark *mk,
                                                  const json_t *job)
{
    struct stk_slurm_numbers l = {
        .first = mk->first, .ranks = stk_slurm_ranks(mk->tasks), .cap = 1};

    if (stk_slurm_import_several(job))
        l.cap = stk_slurm_task_count(stk_str(job, "array_tasks"));
    l.cap = l.cap <= STK_SLURM_MAX_ELEMENTS ? l.cap : 0;
    l.list = malloc(((size_t)l.cap + 1) * sizeof(*l.list));
    if (!l.list)
        return l;
    if (stk_slurm_import_several(job))
        (void)stk_slurm_tasks(stk_str(job, "array_tasks"), l.cap, add_number, &l);
    else if (stk_slurm_import_number(mk, job))
        l.list[l.n++] = stk_slurm_import_number(mk, job);
    return l;
}
