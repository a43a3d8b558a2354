/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - what runs in each queue: of each user, of each tenant, and in all (model/queue.h).
 *
 * An account is one line of that: jobs with a lease, and their thousandths of GPUs. A job of a
 * queue that has limits is booked on up to three of them. As with tenants (core/tenant.h) its shape
 * names them, so that one verdict serves all jobs that are alike; a shape over a limit is parked
 * with the account whose limit it is, and looked at again when that account falls. Accounts of
 * users and tenants come with their first job that has not ended and go with the last.
 *
 * Queues without limits have no accounts but their own, and their jobs share shapes as ever.
 */
#ifndef STK_CORE_ACCOUNT_H
#define STK_CORE_ACCOUNT_H

#include "base/bytes.h"
#include "core/blocks.h"
#include "core/core.h"
#include "core/state.h"
#include "model/queue.h"
#include "model/reason.h"

struct stk_account {
    uint32_t queue;
    uint32_t who;   /* user, or tenant; of a queue: 0 */
    uint8_t of;     /* enum stk_queue_of */
    uint32_t refs;  /* jobs that have not ended; 0: the row is free, but for a queue's own */
    uint32_t next;  /* same hash, or free list; account + 1 */
    uint64_t milli; /* that jobs with a lease have; */
    uint32_t jobs;  /* and how many these are */
    /* caches */
    uint32_t parked;     /* shapes over its limit; shape + 1 */
    bool closed;         /* for its limit some shape was not tried beside a reservation */
    uint64_t seen_milli; /* scratch of sound() */
    uint32_t seen_jobs;
};

/* The table is copied, but for the names. 0, -EINVAL with what is wrong with it, or -ENOMEM. */
int stk_accounts_init(struct stk_state *s, const struct stk_queue_spec *queues, uint32_t n,
                      struct stk_err *err);
void stk_accounts_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* Whether the job may be in its queue: priority, run time, size, pool. */
int stk_account_check(const struct stk_state *s, const struct stk_job_spec *spec,
                      struct stk_err *err);

/* A job comes, or has ended. join() wants stk_account_reserve() before, and says which accounts
 * the job's shape names: account + 1 each, 0: none. */
int stk_account_reserve(struct stk_state *s);
void stk_account_join(struct stk_state *s, const struct stk_terms *terms, uint32_t tenant,
                      uint32_t ret[STK_QUEUE_OF_MAX]);
void stk_account_leave(struct stk_state *s, const struct stk_job *j);
/* The same accounts without joining; STK_NONE where there is none yet. */
void stk_account_find(const struct stk_state *s, const struct stk_terms *terms, uint32_t tenant,
                      uint32_t ret[STK_QUEUE_OF_MAX]);

/* The account with a limit that one more job of the shape would be over; STK_NONE. */
uint32_t stk_account_in_the_way(const struct stk_state *s, uint32_t shape);
/* The same if this job, which the pool's reservation is for, ran, too. */
uint32_t stk_account_beside(const struct stk_state *s, uint32_t shape, uint32_t job);

/* The job got a lease, or gives it back. */
void stk_account_took(struct stk_state *s, const struct stk_job *j);
void stk_account_gave(struct stk_state *s, const struct stk_job *j);

/* The limit that is in its way, as a reason; false: none is. */
bool stk_account_why(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r);

/* Names of queues, for save and load: as stk_tenant_put_names(). */
/* The queue of this name, else the one that had it before; STK_NONE. */
uint32_t stk_account_named(const struct stk_state *s, const unsigned char *name, uint32_t len);
void stk_account_put_names(struct stk_bytes *b, const struct stk_state *s);
void stk_account_get_names(struct stk_reader *r, const struct stk_state *s,
                           uint32_t ret_here[STK_MAX_QUEUES], uint32_t *ret_n);

uint64_t stk_account_digest(const struct stk_state *s, uint64_t h);
bool stk_accounts_sound(const struct stk_state *s, struct stk_err *err);

#endif
