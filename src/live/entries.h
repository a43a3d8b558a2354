/* SPDX-License-Identifier: Apache-2.0 */
/* entries.h - the jobs that have not ended, by number.
 *
 * Numbers only grow, so the table is an array in order of arrival: append at the end, find by
 * halving. An entry that goes leaves a gap; gaps are closed when they are half of the array.
 */
#ifndef STK_LIVE_ENTRIES_H
#define STK_LIVE_ENTRIES_H

#include "live/live.h"

struct stk_entries {
    struct stk_entry_slot {
        stk_job_number number;
        struct stk_entry *entry; /* NULL: gone */
    } * slots;
    uint32_t n, cap, live;
    struct stk_entry_user { /* how many jobs each user has */
        uint32_t uid, n;
    } * users;
    uint32_t n_users, cap_users;
};

/* A copy of the record, its strings included. Its number must be larger than all before. */
int stk_entries_add(struct stk_entries *t, const struct stk_record *rec,
                    struct stk_entry **ret_entry);
struct stk_entry *stk_entries_find(const struct stk_entries *t, stk_job_number number);
struct stk_entry *stk_entries_next(const struct stk_entries *t, stk_job_number after);
void stk_entries_remove(struct stk_entries *t, stk_job_number number);
uint32_t stk_entries_of(const struct stk_entries *t, uint32_t uid); /* jobs of one user */
void stk_entries_done(struct stk_entries *t);

#endif
