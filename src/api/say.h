/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - sentences about jobs: why one waits and what would help, how one ended. */
#ifndef STK_API_SAY_H
#define STK_API_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"
#include "model/reason.h"
#include "store/store.h"

struct stk_say { /* what is known beside the reason */
    struct stk_reason why;
    stk_job_number number;
    uint32_t tasks;       /* of the job */
    uint32_t at_once;     /* it waits because so many of its array run; 0: not for that */
    const char *other;    /* what the job of the reason is called; NULL: by its number */
    const char *resource; /* the name of the reason's; NULL: it is about none */
    const char *booking;  /* the name of the reason's reservation; NULL: by its number */
    const char *turn;     /* it shares a GPU in turns: whose turn it is; NULL: it does not */
    bool besides;         /* another reason dominates: it would not fit anyway */
    bool asleep;          /* its processes sleep; */
    bool lent;            /* ... because its GPUs did nothing: it resumes by itself */
    bool cpus_default;    /* the site gave it its CPUs */
    const struct stk_demand *demand; /* NULL: whole GPUs */
    stk_time next;         /* it is a schedule: when it submits its next job, by the wall clock */
    const char *off;       /* why a GPU is not used, when one is not; or NULL */
    stk_time now;          /* microseconds since 1970 */
    stk_time ahead;        /* of the wall clock: what is said to people is by that */
    stk_time room_at;      /* when enough GPUs are expected to be free; 0: not known */
    const char *first_out; /* who is expected to end first; NULL: not known */
    stk_time first_out_at;
};

/* "needs 4 GPUs, 2 are free; ..." */
void stk_say_why(const struct stk_say *s, char *buf, size_t size);
/* What kind of reason it is, in a word: "gpus". */
const char *stk_say_code(const struct stk_say *s);
/* What must be done before anything else can help: "release it: stoker release 3"; "": nothing.
 * What would start it is in api/remedy.h. */
void stk_say_change(const struct stk_say *s, char *buf, size_t size);
/* How a job has ended (stk_end_words()), with what its note adds. */
void stk_say_ended(const struct stk_record *rec, char *buf, size_t size);
/* "at 14:30 (in 25 min)" */
void stk_say_when(const struct stk_say *s, stk_time at, char *buf, size_t size);
/* "25 min", "2 h 5 min", "3 days" */
void stk_say_span(stk_time span, char *buf, size_t size);

#endif
