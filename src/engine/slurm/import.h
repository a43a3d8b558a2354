/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - jobs that users send to our partitions with sbatch become ours. */
#ifndef STK_ENGINE_SLURM_IMPORT_H
#define STK_ENGINE_SLURM_IMPORT_H

#include "engine/slurm/inner.h"
#include "engine/slurm/marks.h"
#include "engine/slurm/wish.h"

#define STK_SLURM_MARK_LEN (STK_SLURM_TASKS_LEN + 200)
#define STK_SLURM_NOT_BY_US                                                                        \
    "was started by Slurm, and not by stoker; it runs on there as others' do"

struct stk_slurm_numbers {
    stk_job_number *list;
    uint32_t n, cap;
    stk_job_number first;
    struct stk_slurm_ranks ranks; /* of its elements, when it was taken in */
};

/* The record by Slurm's number; NULL: there is none. */
struct stk_slurm_import *stk_slurm_import_find(const struct stk_slurm *m, json_int_t slurm);
/* It is of another job, which a slurmctld that was killed has given the number to since. A requeue
 * counts as a submission, too: one that was forgotten leaves an earlier time, and one that Slurm
 * did by itself since then a later one, with a restart. That is the same job, if it is the same
 * user's. Where it has our mark, that says whose it is. */
bool stk_slurm_import_reused(const struct stk_slurm_import *i, const json_t *job);
/* ... or a new one; one under a number that Slurm has used again is dropped. NULL: no memory. */
struct stk_slurm_import *stk_slurm_import_add(struct stk_slurm *m, const json_t *job);
void stk_slurm_import_drop(struct stk_slurm *m, struct stk_slurm_import *i);
void stk_slurm_import_keep(struct stk_slurm_import *i, json_t *job); /* what is told of it; NULL */
/* It is ours, by the numbers that the mark says: of an element by those of its array. */
void stk_slurm_import_own(struct stk_slurm_import *i, const struct stk_slurm_mark *mk);
/* Our number of one element. 0: it is not ours. */
stk_job_number stk_slurm_import_number(const struct stk_slurm_mark *mk, const json_t *job);
/* Several elements of an array in one record. */
bool stk_slurm_import_several(const json_t *job);
/* What is left of an array of ours when all its elements but one have gone is that element, also
 * before Slurm says so. */
void stk_slurm_import_last(const struct stk_slurm *m, json_t *job);
/* Our mark on a record, or what it would be. False: it is not ours. */
bool stk_slurm_import_mark_of(const struct stk_slurm *m, const json_t *job,
                              struct stk_slurm_mark *ret);
/* Ours of all the elements in it. The list is the caller's to free; n 0: none, or no memory. */
struct stk_slurm_numbers stk_slurm_import_numbers(const struct stk_slurm_mark *mk,
                                                  const json_t *job);
/* Why Slurm itself holds it, in words; "": it does not. 'by_time': a begin time may be a hold. */
void stk_slurm_import_reason(const struct stk_slurm *m, const json_t *job,
                             const struct stk_slurm_mark *mk, bool by_time, char *buf, size_t size);
/* What it asks for once we have told it where it runs: which nodes is not its user's word then.
 * NULL: it cannot be expressed. */
json_t *stk_slurm_import_later(const struct stk_slurm *m, const json_t *job, struct stk_err *err);
/* Notes elements that are no longer in the array's record. O(elements of the record). */
void stk_slurm_import_compare(struct stk_slurm *m, const struct stk_slurm_import *i,
                              const json_t *job);

/* All that came together was told: elements that left their array without becoming jobs are gone.
 */
void stk_slurm_import_told(struct stk_slurm *m);
/* Cancels elements that wait in Slurm and that nobody waits for any more. */
void stk_slurm_import_clean(struct stk_slurm *m);
/* The record in which a job that has a lease waits, and by what Slurm knows it ("12_3": an element
 * of an array), a new reference. NULL: it does not wait. */
const json_t *stk_slurm_import_there(const struct stk_slurm *m, const struct stk_slurm_job *j,
                                     json_t **ret_id);
/* Slurm started it, and not we: it is put back, and waits as before. False: it cannot be. */
bool stk_slurm_import_back(const struct stk_slurm *m, const json_t *job, stk_job_number number);
/* It is stopped and waits, held. A slurmctld that was killed may have forgotten our mark: it gets
 * that first, as what is put back looks like another that its user has sent, and holds. */
void stk_slurm_import_requeue(struct stk_slurm *m, const json_t *job);
/* A job that was placed cannot be started: Slurm holds it, or has it no more. That was told. */
bool stk_slurm_import_stays(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *there);
/* Its mark from now on, when we say where it runs, under this lease; and that of a record: 0, none.
 */
void stk_slurm_import_mark(const struct stk_slurm *m, const json_t *job, stk_lease_id lease,
                           char *buf, size_t size);
stk_lease_id stk_slurm_import_lease(const struct stk_slurm *m, const json_t *job);
/* The row of the first of its partitions that is ours; UINT32_MAX: none is. */
uint32_t stk_slurm_import_partition(const struct stk_slurm *m, const json_t *job);
/* It waits in a partition that is not ours: should it be moved into one, that is known. */
void stk_slurm_import_elsewhere(struct stk_slurm *m, const json_t *job);
/* It waits, and is not ours: it is taken in, held first, or let go. */
void stk_slurm_import_consider(struct stk_slurm *m, struct stk_slurm_import *i);
/* A record of ours that waits, and that the core has not placed. */
void stk_slurm_import_waits(struct stk_slurm *m, struct stk_slurm_import *i,
                            struct stk_slurm_mark mk);
/* Those in the record are held, with the reason; "": they are not any more. */
void stk_slurm_import_holds(struct stk_slurm *m, const json_t *job, const struct stk_slurm_mark *mk,
                            const char *reason);
void stk_slurm_import_free(struct stk_slurm *m);

/* ---- import_news.c: what Slurm says of them ---- */

/* Takes in what is told of a job that we have not sent. True: that is all there is to it. Else it
 * is looked at as any other, by its number of ours (*ret_number); 0: as another's. */
bool stk_slurm_import_news(struct stk_slurm *m, json_t *job, stk_job_number *ret_number);
void stk_slurm_import_forget(struct stk_slurm *m, uint32_t slurm); /* Slurm has */
void stk_slurm_import_told_all(struct stk_slurm *m);
/* Tells Slurm what it could not be told before; from time to time. */
void stk_slurm_import_tick(struct stk_slurm *m);
/* The daemon takes jobs from now on. */
void stk_slurm_import_open(struct stk_slurm *m);

/* import_script.c: whether all is known that it asks for; if not, it is looked at again when it is.
 */
bool stk_slurm_import_script(struct stk_slurm *m, struct stk_slurm_import *i);
void stk_slurm_import_signal(const struct stk_slurm_import *i, json_t *wish);

/* ---- import_tell.c: what Slurm is told ---- */

/* Not before it has had time for what it was told last; a hold at once, when the last was seen. */
bool stk_slurm_import_may_tell(struct stk_slurm *m, struct stk_slurm_import *i);
bool stk_slurm_import_may_hold(struct stk_slurm *m, struct stk_slurm_import *i);
/* The administrator's comment; 'begin' 0: as it is. */
void stk_slurm_import_comment(struct stk_slurm *m, const json_t *job, const char *words, bool hold,
                              int64_t begin);
/* 'released': its user has let it go, and it need not wait for a time any more. */
void stk_slurm_import_put_mark(struct stk_slurm *m, const json_t *job,
                               const struct stk_slurm_mark *mk, bool released);
/* It is where Slurm starts jobs, and not we (import.c). */
bool stk_slurm_import_is_away(const struct stk_slurm *m, const json_t *job);
/* Such a job, not taken in or ours, is Slurm's to start; it was let go, or came so. */
void stk_slurm_import_let_go(struct stk_slurm *m, struct stk_slurm_import *i,
                             const struct stk_slurm_claim *c);
void stk_slurm_import_let_ours_go(struct stk_slurm *m, struct stk_slurm_import *i,
                                  struct stk_slurm_mark *mk, const char *reason);
bool stk_slurm_import_is_let_go(const json_t *job);
/* Slurm started it, and not we: it goes back. False: it cannot. Once more; and it is back. */
bool stk_slurm_import_put_back(struct stk_slurm *m, json_t *job, const struct stk_slurm_mark *mk);
void stk_slurm_import_stray_again(struct stk_slurm *m, struct stk_slurm_import *i);
void stk_slurm_import_is_back(struct stk_slurm *m, struct stk_slurm_import *i,
                              const struct stk_slurm_mark *mk);

#endif
