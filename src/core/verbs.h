/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - what each event does; one file per verb. Each checks everything first and changes
 * nothing when it refuses. Called by core.c alone, after the lifecycle table has allowed the event.
 * Besides, what the core's own files share. */
#ifndef STK_CORE_VERBS_H
#define STK_CORE_VERBS_H

#include "base/err.h"
#include "core/core.h"
#include "core/state.h"
#include "model/reason.h"

struct stk_core {
    struct stk_state s;
};

/* make.c: a core that knows no settings (core/settings.h) yet. */
int stk_core_make(const struct stk_core_config *cfg, const struct stk_mem *mem,
                  struct stk_core **ret_core, struct stk_err *err);

int stk_submit(struct stk_state *s, const struct stk_event *ev, struct stk_err *err); /* submit.c */
int stk_submit_check(const struct stk_state *s, const struct stk_job_spec *spec,
                     struct stk_err *err); /* submit.c: all that can be refused but memory */
/* The shape of a job that comes, or asks for something else: under whose limits it is, and to whom
 * it belongs. One more job uses it. */
uint32_t stk_shape_of(struct stk_state *s, uint32_t job,
                      const struct stk_demand *demand);                /* submit.c */
int stk_demand_check(const struct stk_demand *d, struct stk_err *err); /* submit.c */
int stk_jobs_reserve(struct stk_state *s, uint32_t n); /* submit.c: room for so many jobs */
void stk_hold(struct stk_state *s, uint32_t job);      /* submit.c */
void stk_unhold(struct stk_state *s, uint32_t job);    /* submit.c */
/* Into the queue, or among the blocked when it still waits for something else. */
void stk_enqueue(struct stk_state *s, uint32_t job); /* submit.c */
/* Out of the blocked, if it is there. */
void stk_unblock(struct stk_state *s, uint32_t job);                          /* submit.c */
int stk_rank_check(int32_t priority, stk_time estimate, struct stk_err *err); /* submit.c */
bool stk_terms_check(stk_time asked, stk_time limit, struct stk_err *err);    /* submit.c */
/* Another priority and estimate for a job that has not started, or another of all it asks for. */
int stk_update(struct stk_state *s, const struct stk_event *ev, struct stk_err *err); /* update.c */
/* Where the job belongs, as an adviser says. */
int stk_advise(struct stk_state *s, const struct stk_event *ev, struct stk_err *err); /* submit.c */
void stk_tick(struct stk_state *s);                                                   /* submit.c */

/* Takes all pieces for the job, or none. Needs stk_txn_reserve() before. */
int stk_run_take(struct stk_state *s, const struct stk_job *j, const struct stk_piece *pieces,
                 uint32_t n, struct stk_err *err);                                       /* run.c */
int stk_run_place(struct stk_state *s, const struct stk_event *ev, struct stk_err *err); /* run.c */
int stk_swap(struct stk_state *s, const struct stk_event *ev, struct stk_err *err); /* swap.c */
void stk_run_started(struct stk_state *s, uint32_t job);                            /* run.c */
void stk_run_evict(struct stk_state *s, const struct stk_event *ev);                /* run.c */

void stk_release_suspended(struct stk_state *s, const struct stk_event *ev); /* release.c */
/* Its processes sleep no more: they run, or are gone. Needs stk_queue_reserve() before. */
void stk_awake(struct stk_state *s, struct stk_job *j);                   /* release.c */
void stk_release_exited(struct stk_state *s, const struct stk_event *ev); /* release.c */
void stk_release_cancel(struct stk_state *s, uint32_t job);               /* release.c */
/* The job has ended: tells its dependents, drops the oldest finished job. */
void stk_release_finish(struct stk_state *s, uint32_t job, enum stk_cause cause,
                        stk_time ended); /* release.c */

/* Tries placements, and undoes them. */
int stk_explain(struct stk_state *s, stk_job_id job, struct stk_reasons *ret,
                struct stk_err *err); /* explain.c */

/* Runs of pieces, by powers of two. Room must be reserved. */
int stk_pieces_reserve(struct stk_state *s, uint32_t n);
uint32_t stk_pieces_alloc(struct stk_state *s, uint32_t n);
void stk_pieces_free(struct stk_state *s, uint32_t first, uint32_t n);

#endif
