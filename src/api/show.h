/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - a job as clients see it; docs/spec/api.md lists the members. */
#ifndef STK_API_SHOW_H
#define STK_API_SHOW_H

#include "api/handlers.h"
#include "api/writer.h"
#include "model/reason.h"

struct stk_show {
    struct stk_api *api;
    const struct stk_who *who; /* who looks; NULL: a stranger */
    bool detail;               /* read its description too */
    bool env;                  /* ... with the environment */
};

/* job_row.c: writes a job that has not ended, */
void stk_show_live(const struct stk_show *v, struct stk_writer *w, const struct stk_entry *e);
/* one that has, */
void stk_show_record(const struct stk_show *v, struct stk_writer *w, const struct stk_record *rec);
/* or either, by number: 0, -ENOENT: there is no such job, -ENOMEM. */
int stk_show_number(const struct stk_show *v, struct stk_writer *w, stk_job_number number,
                    struct stk_err *err);
/* What was written, as a tree: for who needs some of its members. NULL: out of memory. */
json_t *stk_show_tree(struct stk_writer *take);

/* Words for the states and causes that are shown: "waiting", "completed". */
const char *stk_show_state(const struct stk_job *j);
bool stk_show_is_state(const char *word); /* of a job that has not ended */
const char *stk_show_cause(enum stk_cause c);
/* The cause of such a word; STK_CAUSE_NONE: there is none. */
enum stk_cause stk_show_cause_of(const char *word);

/* "12", or "12_3" for an element of an array. Returns 'buf'. */
const char *stk_show_name(const struct stk_api *a, stk_job_number number, char *buf, size_t size);
/* Sets the members that say which element of an array it is. */
void stk_show_element(json_t *o, const struct stk_record *rec);
/* How many of its array may run at once, when that is why it waits; else 0. */
uint32_t stk_show_at_once(struct stk_api *a, const struct stk_entry *e, const struct stk_reason *w);

/* The counts of a batch's items, or NULL: it has none. */
json_t *stk_show_items(struct stk_live *live, const struct stk_record *rec);
/* Of one that shares its GPU in turns: whose turn it is; NULL: it does not. */
json_t *stk_show_turn(const struct stk_api *a, const struct stk_job *j);
/* Whole GPUs, or so many thousandths of each. */
/* Numbers of the GPUs of a mask; and of each piece, with its node. */
json_t *stk_show_indices(uint64_t mask);
json_t *stk_show_pieces(const struct stk_api *a, const struct stk_piece *pieces, uint32_t n);
json_t *stk_show_gpus(uint64_t gpus, uint32_t milli);
/* Seconds since 1970; null for 0. */
json_t *stk_show_time(stk_time t);
/* evictor.c: for whom and why the job of the event was preempted: "for" and "sentence". */
struct stk_event;
void stk_show_evictor(const struct stk_api *a, json_t *o, const struct stk_event *ev);

/* line.c: its place in the line of its pool, when it waits; 0: it has none, or nobody counts. */
uint32_t stk_line_place(struct stk_api *a, uint32_t slot);
/* outlook.c: members that say when it is expected to start, and whether it will keep its deadline;
 * NULL: neither is known. */
json_t *stk_show_outlook(struct stk_api *a, stk_job_number number);

/* Of each tenant in the list what it lends; who lends to whom. */
void stk_show_lending(struct stk_api *a, json_t *tenants, json_t *out);

/* The limit that is in a job's way, for the reason's member "limit"; NULL: it is another reason. */
json_t *stk_show_limit(const struct stk_reason *w);

struct stk_job_counts { /* jobs that have not ended, by the words of stk_show_state() */
    uint32_t live, held, blocked, waiting, suspended, leased, stopping;
};
struct stk_job_counts stk_count_jobs(const struct stk_api *a); /* cluster.c */

#endif
