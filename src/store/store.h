/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - what survives a restart: one SQLite file in the state directory.
 *
 * The journal (every event, in order) and snapshots of the core say what the scheduler's state is;
 * records, descriptions, items, tokens and keys say what people ask about it. All are written in
 * one transaction per turn of the loop:
 *
 *     begin, append/put/update..., commit        then reply, then tell the engine
 *
 * When commit returns 0 the turn is on the disk, whatever happens next. When it fails, or when
 * anything before it failed for want of space or because of the disk, nothing of the turn is there:
 * commit rolls back and returns the first error.
 *
 * Errors: -ENOSPC no space, -EROFS cannot be written, -EIO the disk, -EUCLEAN damaged, -EBUSY in
 * use, -ENOENT no such row, -EEXIST there already, -EFBIG over a limit below, -EPROTO a write
 * outside a transaction. The sentence says what to do.
 *
 * Callbacks get rows whose pointers live until they return. They return 0 to go on, more than 0
 * to stop (the call then returns 0), -Exxx to stop with that error; they must not write to the
 * store. The store reads no clock: times are handed in. One thread.
 *
 * docs/spec/store.md has the schema and what is pruned when. */
#ifndef STK_STORE_STORE_H
#define STK_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "model/id.h"
#include "model/job.h"
#include "model/lease.h"
#include "model/time.h"

#define STK_STORE_FILE "stoker.db" /* in the state directory */

#define STK_STORE_MAX_EVENT (UINT32_C(16) << 20) /* bytes */
#define STK_STORE_MAX_SPEC (UINT32_C(64) << 20)
#define STK_STORE_MAX_SNAPSHOT (UINT32_C(900) << 20)
#define STK_STORE_MAX_TEXT UINT32_C(65536)       /* bytes of any other text or value */
#define STK_STORE_MAX_SERIES (UINT32_C(1) << 20) /* bytes of a row of measurements */
#define STK_STORE_MAX_ITEMS UINT32_C(100000)
#define STK_STORE_MAX_PAGE UINT32_C(10000)              /* rows of history in one answer */
#define STK_STORE_KEEP_EVENTS UINT64_C(100000)          /* the newest that are never pruned */
#define STK_STORE_KEY_AGE (INT64_C(86400) * STK_SECOND) /* how long a key is remembered */

struct stk_store;

/* ---- opening ---- */

#define STK_STORE_READ_ONLY 1u /* look only; also while a daemon has it open */
#define STK_STORE_ACCEPT 2u    /* open it though something is missing or damaged */

/* Opens the store in 'dir', which must be ours and writable by nobody else; it and the file are
 * made when they are not there. Only one process has it open for writing: a second is refused with
 * the pid of the first. A file that is damaged or made by a newer stoker is refused, and so is one
 * that has less than was acknowledged, unless the flags say that this is accepted; an older one is
 * copied to stoker.db.backup-vN and brought forward. */
int stk_store_open(const char *dir, unsigned flags, struct stk_store **ret_store,
                   struct stk_err *err);

/* Rolls back what was not committed. NULL is fine. */
void stk_store_close(struct stk_store *st);

/* What a person should know about the opening (a migration, or what is missing in a store that was
 * accepted or opened to be read), or "". */
const char *stk_store_note(const struct stk_store *st);

/* The state directory, without links. */
const char *stk_store_dir(const struct stk_store *st);

/* Bytes in use, free pages inside the file not counted. */
int stk_store_size(struct stk_store *st, uint64_t *ret_bytes, struct stk_err *err);

/* Bytes of the WAL beside the file. It grows while another program has a reading transaction
 * open for long (a copy, an export), and is emptied and cut when that has ended. */
uint64_t stk_store_wal_bytes(const struct stk_store *st);

/* ---- transactions ---- */

int stk_store_begin(struct stk_store *st, struct stk_err *err);
int stk_store_commit(struct stk_store *st, struct stk_err *err);
void stk_store_rollback(struct stk_store *st); /* fine outside a transaction */

/* Work that commits have put off, if there is any: call it after the replies. Without it the next
 * begin does that work. */
void stk_store_idle(struct stk_store *st);

/* ---- the journal ---- */

struct stk_row {
    uint64_t seq; /* from 1, without gaps; given by the store */
    stk_time at;
    uint32_t type;         /* enum stk_event_type; the store does not look */
    stk_job_number number; /* the job it is about; 0: none */
    const void *bytes;     /* the event, encoded by the caller */
    size_t len;
};

typedef int (*stk_row_fn)(void *ctx, const struct stk_row *e);

/* Appends; 'seq' of 'e' is not looked at. */
int stk_store_append(struct stk_store *st, const struct stk_row *e, uint64_t *ret_seq,
                     struct stk_err *err);

/* Every event after 'after', in order. -ERANGE when the one after it is no longer kept, -EUCLEAN
 * when one is missing in between. */
int stk_store_read(struct stk_store *st, uint64_t after, stk_row_fn fn, void *ctx,
                   struct stk_err *err);

/* The events of one job between two times, in order, as far as they are kept. Looks at every event
 * between the times: 'journal' has no index on jobs, which every event would pay for. */
struct stk_job_span {
    stk_job_number number;
    stk_time since, until;
};
int stk_store_read_job(struct stk_store *st, const struct stk_job_span *q, stk_row_fn fn, void *ctx,
                       struct stk_err *err);

/* The oldest event that is kept and the newest ever written. Nothing kept: first = last + 1. */
int stk_store_span(struct stk_store *st, uint64_t *ret_first, uint64_t *ret_last,
                   struct stk_err *err);

/* ---- snapshots of the core ---- */

struct stk_snapshot {
    uint64_t seq; /* covers every event up to this one */
    stk_time at;
    void *bytes; /* malloc'ed, the caller's to free */
    size_t len;
};

/* The newest two are kept. 'seq' must have been written, in this transaction or before. */
int stk_store_snapshot_put(struct stk_store *st, const struct stk_snapshot *s, struct stk_err *err);

/* The newest that is whole. None yet: 0, with seq 0 and bytes NULL, and all events are kept. When
 * a damaged one was passed over, 'ret_warning' says so; else its text is "". */
int stk_store_snapshot_get(struct stk_store *st, struct stk_snapshot *ret_snapshot,
                           struct stk_err *ret_warning, struct stk_err *err);

/* ---- job descriptions: opaque bytes, shared by the jobs of an array ---- */

int stk_store_spec_put(struct stk_store *st, const void *body, size_t len, int64_t *ret_id,
                       struct stk_err *err);
/* 'ret_body' is malloc'ed and has a NUL after its end. */
int stk_store_spec_get(struct stk_store *st, int64_t id, char **ret_body, size_t *ret_len,
                       struct stk_err *err);

/* ---- job records ---- */

/* NULL strings are stored as "". Times that have not come are 0. */
struct stk_record {
    stk_job_number number;
    uint32_t uid, gid;
    const char *user, *name;
    enum stk_job_kind kind;
    stk_job_number array; /* number of the array's first job; 0: not in an array */
    uint32_t array_index;
    stk_time submitted, first_started, started, ended;
    enum stk_cause cause;
    int32_t code;
    uint32_t gpus, tasks; /* of all tasks; tasks of the gang */
    uint32_t gpu_milli;   /* of each GPU, thousandths; 0: all of it */
    uint32_t restarts, preemptions;
    stk_time served; /* time run, all starts together */
    stk_time waited; /* time it was eligible to run and did not, waits that are over */
    struct stk_lease
        lease;       /* the last time that it had GPUs; its processes, where it asks for none */
    uint32_t leases; /* earlier ones, in the table of leases */
    uint64_t steps;  /* how far it said it had come; 0: it said nothing */
    int64_t spec;
    const char *queue, *tenant; /* "": it is not known, or there are none */
    const char *comment;
    const char *note; /* a sentence about the end */
    const char *stdout_path, *stderr_path;
};

typedef int (*stk_record_fn)(void *ctx, const struct stk_record *r);

int stk_store_job_put(struct stk_store *st, const struct stk_record *r, struct stk_err *err);

/* All but number, uid, gid, user, kind, array, index and submitted, which never change, gpu_milli
 * and spec. */
int stk_store_job_update(struct stk_store *st, const struct stk_record *r, struct stk_err *err);
/* The time has jumped by so much, to 'now': what is written of jobs that have not ended becomes as
 * much later. */
int stk_store_jobs_skip(struct stk_store *st, stk_time by, stk_time now, struct stk_err *err);

/* Another description for it, and the gpu_milli of that; that of r->spec is forgotten when no other
 * job has it. */
int stk_store_job_respec(struct stk_store *st, const struct stk_record *r, int64_t spec,
                         struct stk_err *err);

int stk_store_job_get(struct stk_store *st, stk_job_number number, stk_record_fn fn, void *ctx,
                      struct stk_err *err);

/* What others that depend on a job must know of it: cheaper than all of its record. */
struct stk_outcome {
    stk_job_number array;
    uint32_t index; /* in the array */
    enum stk_cause cause;
    bool ended;
};

/* -ENOENT */
int stk_store_job_outcome(struct stk_store *st, stk_job_number number,
                          struct stk_outcome *ret_outcome, struct stk_err *err);

/* The elements of an array, in order of number. */
int stk_store_array(struct stk_store *st, stk_job_number array, stk_record_fn fn, void *ctx,
                    struct stk_err *err);

/* Every job that has not ended, in order of number. */
int stk_store_live(struct stk_store *st, stk_record_fn fn, void *ctx, struct stk_err *err);

/* ---- leases: when jobs had GPUs. The last is in the job's record. ---- */

typedef int (*stk_lease_fn)(void *ctx, const struct stk_lease *l);

/* r->lease becomes one of the earlier ones; r->leases says how many there were. */
int stk_store_lease_add(struct stk_store *st, const struct stk_record *r, struct stk_err *err);
/* The earlier ones, in order of time. They are forgotten with the job. */
int stk_store_leases(struct stk_store *st, stk_job_number number, stk_lease_fn fn, void *ctx,
                     struct stk_err *err);

/* ---- capacity: how many GPUs there were ---- */

#define STK_STORE_KEEP_CAPACITY 100000

struct stk_capacity { /* from 'at' on, until the next */
    stk_time at;
    uint32_t gpus;
};
typedef int (*stk_capacity_fn)(void *ctx, const struct stk_capacity *c);

/* One of the same time is replaced. The newest STK_STORE_KEEP_CAPACITY are kept. */
int stk_store_capacity_put(struct stk_store *st, const struct stk_capacity *c, struct stk_err *err);
/* What was known at 'since', if anything was, and each change before 'until', in order of time. */
int stk_store_capacity(struct stk_store *st, stk_time since, stk_time until, stk_capacity_fn fn,
                       void *ctx, struct stk_err *err);
/* When the first job was submitted; 0: there is none. */
int stk_store_first_submitted(struct stk_store *st, stk_time *ret, struct stk_err *err);

/* ---- history: jobs that have ended, the latest end first ---- */

struct stk_history_query {
    const uint32_t *uid;   /* NULL: any */
    const char *user;      /* NULL: any */
    const char *name;      /* NULL: any */
    const char *queue;     /* NULL: any; */
    const char *tenant;    /* likewise; both pass rows over */
    uint32_t causes;       /* set of 1u << enum stk_cause; 0: any */
    stk_time since, until; /* ended at since or later, and before until; 0: no bound */
    stk_job_number before; /* the last number of the page before this one; 0: first page */
    uint32_t limit;        /* rows; 0 or more than STK_STORE_MAX_PAGE: that many */
};

int stk_store_history(struct stk_store *st, const struct stk_history_query *q, stk_record_fn fn,
                      void *ctx, struct stk_err *err);

/* ---- tokens and sessions: only the SHA-256 of a secret is stored ----
 *
 * The secret of a session has two halves, one in a cookie and one in the page. Neither is a token.
 * What was made with a token or session goes when that is deleted. */

enum stk_token_kind { STK_TOKEN_BEARER, STK_TOKEN_SESSION };

struct stk_token {
    int64_t id;
    char name[128], user[64];
    uint32_t uid;
    uint32_t role; /* the caller's enum */
    enum stk_token_kind kind;
    int64_t parent;                  /* made with this one; 0: with none */
    stk_time created, expires, used; /* expires 0: never; used 0: not yet */
    stk_time ends; /* of a session: using it moves expires, but not beyond this; else 0 */
};

struct stk_cookies { /* those that a browser sent under the name of ours */
    const char *value[8];
    uint32_t n;
};

typedef int (*stk_token_fn)(void *ctx, const struct stk_token *t);

int stk_store_token_put(struct stk_store *st, const char *secret, const struct stk_token *t,
                        int64_t *ret_id, struct stk_err *err);
/* -ENOENT when unknown, -EKEYEXPIRED when its time is over. */
int stk_store_token_find(struct stk_store *st, const char *secret, stk_time now,
                         struct stk_token *ret_token, struct stk_err *err);
int stk_store_session_put(struct stk_store *st, const char *page, const char *cookie,
                          const struct stk_token *t, int64_t *ret_id, struct stk_err *err);
/* Likewise; -EACCES: none of the cookies belongs to that page. */
int stk_store_session_find(struct stk_store *st, const char *page,
                           const struct stk_cookies *cookies, stk_time now,
                           struct stk_token *ret_token, struct stk_err *err);
/* By its number, valid or not. */
int stk_store_token_get(struct stk_store *st, int64_t id, struct stk_token *ret_token,
                        struct stk_err *err);
int stk_store_token_used(struct stk_store *st, int64_t id, stk_time now, stk_time expires,
                         struct stk_err *err);
/* With all that was made with it. */
int stk_store_token_delete(struct stk_store *st, int64_t id, struct stk_err *err);
struct stk_token_count {
    uint32_t n;
    int64_t oldest; /* the one that was not used for longest; 0: there is none */
};
/* Deletes what has expired of a user's, then counts what is left of a kind. */
int stk_store_token_tidy(struct stk_store *st, uint32_t uid, enum stk_token_kind kind, stk_time now,
                         struct stk_token_count *ret_count, struct stk_err *err);
int stk_store_token_list(struct stk_store *st, stk_token_fn fn, void *ctx, struct stk_err *err);

/* ---- idempotency keys: a request that is repeated gets its first answer ---- */

struct stk_once {
    stk_job_number first; /* what the request made */
    uint32_t count;
    uint8_t body[32]; /* stk_sha256() of the request's body */
    stk_time at;
};

/* -EEXIST when the user has the key already and it is not older than STK_STORE_KEY_AGE. */
int stk_store_key_put(struct stk_store *st, uint32_t uid, const char *key, const struct stk_once *k,
                      struct stk_err *err);
int stk_store_key_get(struct stk_store *st, uint32_t uid, const char *key, stk_time now,
                      struct stk_once *ret_key, struct stk_err *err);

/* ---- items of batch jobs ---- */

enum stk_item_state {
    STK_ITEM_TODO,
    STK_ITEM_GIVEN, /* to a worker */
    STK_ITEM_DONE,
    STK_ITEM_FAILED,
    STK_ITEM_STATE_MAX
};

struct stk_item {
    stk_job_number job;
    uint32_t index; /* from 0 */
    const char *text;
    enum stk_item_state state;
    int32_t worker;    /* the last it was given to; -1: none yet */
    uint32_t attempts; /* how often it was given */
    int32_t code;      /* outcome; 0 until there is one */
    stk_time given, ended;
};

typedef int (*stk_item_fn)(void *ctx, const struct stk_item *it);

/* Items of a job, to do: those with the indices 'from' and up. */
int stk_store_items_put(struct stk_store *st, stk_job_number job, uint32_t from,
                        const char *const *texts, uint32_t n, struct stk_err *err);
/* Job and index say which; state, worker, attempts, code and times are set. */
int stk_store_item_set(struct stk_store *st, const struct stk_item *it, struct stk_err *err);
/* Given items are to do again: those of one worker, or of all (-1). */
int stk_store_items_back(struct stk_store *st, stk_job_number job, int32_t worker,
                         struct stk_err *err);
int stk_store_items_counts(struct stk_store *st, stk_job_number job,
                           uint32_t ret_n[STK_ITEM_STATE_MAX], struct stk_err *err);

struct stk_item_query {
    stk_job_number job;
    enum stk_item_state state; /* STK_ITEM_STATE_MAX: any */
    uint32_t from;             /* this index or later */
};

/* In order of index. What is to do is what a worker is given next. */
int stk_store_items(struct stk_store *st, const struct stk_item_query *q, stk_item_fn fn, void *ctx,
                    struct stk_err *err);

/* ---- measurements over time: rows of numbers (src/series), by group and time ---- */

#define STK_SERIES_TIERS 3 /* from fine to coarse */

struct stk_series_row {
    uint32_t kind, tier;
    int64_t id;
    stk_time at;
    const void *bytes;
    size_t len;
};

typedef int (*stk_series_fn)(void *ctx, const struct stk_series_row *r);

/* A row with the same kind, tier, id and time is replaced. */
int stk_store_series_put(struct stk_store *st, const struct stk_series_row *r, struct stk_err *err);
struct stk_series_range { /* rows in [since, until) */
    uint32_t kind, tier;
    int64_t id;
    bool all; /* of all groups, by kind, id and time; kind and id are of no use */
    stk_time since, until;
};

/* By time. */
int stk_store_series(struct stk_store *st, const struct stk_series_range *of, stk_series_fn fn,
                     void *ctx, struct stk_err *err);
/* The time of the latest; 0: there is none. */
int stk_store_series_last(struct stk_store *st, uint32_t tier, stk_time *ret, struct stk_err *err);
/* One bounded step: rows of the tier from before 'until' go. 1: there may be more. */
int stk_store_series_prune(struct stk_store *st, uint32_t tier, stk_time until,
                           struct stk_err *err);

/* What a job has used, as far as it was measured. */
#define STK_USAGE_GPUS 64
struct stk_usage {
    double seen_s, gpu_s, active_s; /* measured; of GPUs that it had; of those at work */
    double energy_j, cpu_s;
    double gpu_mem_mib, mem_mib;  /* the most */
    float active[STK_USAGE_GPUS]; /* seconds at work, of its first GPUs */
    float had[STK_USAGE_GPUS];    /* seconds that it had it */
};

void stk_usage_add(struct stk_usage *to, const struct stk_usage *u);
/* Adds to what is there. It is forgotten with the job. */
int stk_store_usage_add(struct stk_store *st, stk_job_number number, const struct stk_usage *u,
                        struct stk_err *err);
/* -ENOENT: nothing was measured. */
int stk_store_usage_get(struct stk_store *st, stk_job_number number, struct stk_usage *ret,
                        struct stk_err *err);

/* Whether there is room for so many bytes beside the store's own files, which may have a little
 * left when the disk has none. 0, or -ENOSPC. */
int stk_store_room(struct stk_store *st, uint64_t bytes, struct stk_err *err);

/* ---- named values ---- */

int stk_store_meta_set(struct stk_store *st, const char *name, const void *value, size_t len,
                       struct stk_err *err);
/* 'ret_value' is malloc'ed and has a NUL after its end. */
int stk_store_meta_get(struct stk_store *st, const char *name, char **ret_value, size_t *ret_len,
                       struct stk_err *err);

/* ---- what people compare with (docs/spec/whatif.md) ---- */

#define STK_STORE_KEEP_NOTES 10000
#define STK_STORE_MAX_BASELINES 1000
#define STK_STORE_KEEP_ANSWERS 100
#define STK_STORE_MAX_ANSWER (UINT32_C(1) << 20) /* bytes of a question, an answer, a world */

struct stk_note { /* something was changed */
    int64_t id;
    stk_time at;
    const char *kind, *user, *text; /* "config", "quota", "rule", "note"; who, ""; a sentence */
    const char *world;              /* JSON: how things are from then on; "": as before */
};
typedef int (*stk_note_fn)(void *ctx, const struct stk_note *n);

/* The newest STK_STORE_KEEP_NOTES are kept. */
int stk_store_note_put(struct stk_store *st, const struct stk_note *n, struct stk_err *err);
struct stk_note_query {
    stk_time since, until; /* [since, until); until 0: all after 'since' */
    uint32_t limit;
};

/* The latest first. */
int stk_store_notes(struct stk_store *st, const struct stk_note_query *q, stk_note_fn fn, void *ctx,
                    struct stk_err *err);
/* The world at that time: of the last note before it that has one, or else of the first after it.
 * malloc'ed. -ENOENT: nobody wrote one. */
int stk_store_world(struct stk_store *st, stk_time at, char **ret_world, struct stk_err *err);

struct stk_baseline { /* a period that was marked */
    const char *name;
    stk_time since, until;
    const char *note, *user;
    stk_time created;
    const char *figures; /* JSON */
};
typedef int (*stk_baseline_fn)(void *ctx, const struct stk_baseline *b);

int stk_store_baseline_put(struct stk_store *st, const struct stk_baseline *b, struct stk_err *err);
/* All, or the one of that name (-ENOENT), by when they begin. */
int stk_store_baselines(struct stk_store *st, const char *name, stk_baseline_fn fn, void *ctx,
                        struct stk_err *err);
int stk_store_baseline_delete(struct stk_store *st, const char *name, struct stk_err *err);

struct stk_answer { /* to a question "what if" */
    int64_t id;
    stk_time at;
    uint32_t uid;
    const char *user, *state;      /* "done", "failed" */
    const char *question, *result; /* JSON */
};
typedef int (*stk_answer_fn)(void *ctx, const struct stk_answer *a);

/* One of the same id is replaced. The newest STK_STORE_KEEP_ANSWERS are kept. */
int stk_store_answer_put(struct stk_store *st, const struct stk_answer *a, struct stk_err *err);
/* All, the latest first, without the results, which are long; or that of 'id'. */
int stk_store_answers(struct stk_store *st, int64_t id, stk_answer_fn fn, void *ctx,
                      struct stk_err *err);
int stk_store_answer_delete(struct stk_store *st, int64_t id, struct stk_err *err);

/* ---- upkeep ---- */

/* Called now and then during long work; total 0: not known. Not 0: stop, with -ECANCELED. */
typedef int (*stk_tick_fn)(void *ctx, uint64_t done, uint64_t total);

/* A copy in one file of its own, 0600, that must not be there yet; whole or absent. Safe while a
 * daemon writes: open the store read-only for it. 'tick' may be NULL here and below. */
int stk_store_backup(struct stk_store *st, const char *path, stk_tick_fn tick, void *ctx,
                     struct stk_err *err);

/* Puts a backup in the store's place once it was found whole. Refused while a daemon runs. The
 * file that was there is kept as stoker.db.replaced. */
int stk_store_restore(const char *dir, const char *path, stk_tick_fn tick, void *ctx,
                      struct stk_err *err);

struct stk_check {
    stk_row_fn event; /* does it decode? not 0: no; may be NULL */
    void (*problem)(void *ctx, const char *sentence);
    stk_tick_fn tick;
    void *ctx; /* of all three */
};

/* Reads everything; 'ret_problems' of them were told. */
int stk_store_check(struct stk_store *st, const struct stk_check *c, uint64_t *ret_problems,
                    struct stk_err *err);

/* Every record with its description, a JSON object per line, in order of number. */
int stk_store_export(struct stk_store *st, FILE *out, stk_tick_fn tick, void *ctx,
                     struct stk_err *err);

struct stk_retention {
    stk_time age;   /* jobs that ended longer ago go; 0: no bound */
    uint64_t bytes; /* the oldest go while the store is larger; 0: no bound */
};

/* One bounded step of housekeeping in a transaction of its own, a few milliseconds: events no
 * longer needed, old keys, old jobs with their items and descriptions, free pages. 'ret_more': call
 * again, soon but not in this turn. */
int stk_store_prune(struct stk_store *st, const struct stk_retention *keep, stk_time now,
                    bool *ret_more, struct stk_err *err);

/* Rows inserted, changed and deleted since the store was opened. */
uint64_t stk_store_rows_changed(const struct stk_store *st);

#endif
