/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - which single jobs Slurm is asked for, and when, until they have come to rest. Nothing
 * here asks. */
#ifndef STK_LIBSLURM_FOLLOW_H
#define STK_LIBSLURM_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

struct stk_slurm_followed {
    uint32_t id, tries;
    int64_t at, pause;  /* ms */
    bool hurry, is_new; /* is_new: a number that there may be a new job of */
};

enum stk_slurm_rest {
    STK_SLURM_RESTS,    /* nothing more happens to it by itself */
    STK_SLURM_RESTLESS, /* it is about to start, or to be gone */
    STK_SLURM_UNKNOWN,  /* Slurm has no such job */
    STK_SLURM_SILENT    /* Slurm did not say */
};

struct stk_slurm_follow;

struct stk_slurm_follow *stk_slurm_follow_new(void);
void stk_slurm_follow_free(struct stk_slurm_follow *f); /* NULL is a no-op */
/* It is asked for in 'pause' ms, and again. */
void stk_slurm_follow_job(struct stk_slurm_follow *f, uint32_t id, int64_t now, int64_t pause,
                          bool hurry);
/* One has come that is not known. */
void stk_slurm_follow_new_jobs(struct stk_slurm_follow *f, int64_t now);
int64_t stk_slurm_follow_next(const struct stk_slurm_follow *f); /* ms: when somebody is due */
/* Whom to ask for now, no longer in the list; false: nobody. 'highest' is the largest number that
 * is known; 0: none. */
bool stk_slurm_follow_take(struct stk_slurm_follow *f, uint32_t highest, int64_t now,
                           struct stk_slurm_followed *ret);
/* What came of that. */
void stk_slurm_follow_asked(struct stk_slurm_follow *f, struct stk_slurm_followed j, int64_t now,
                            enum stk_slurm_rest rest);
/* Once: there is reason to ask for all of them. */
bool stk_slurm_follow_full(struct stk_slurm_follow *f);

#endif
