/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - the scheduler as it runs for real, without a network: core, store, engine and what is
 * known of each job beyond what the core needs (who, what, where its output goes).
 *
 * One thread. Requests are queued and taken in by the next turn; a turn applies them together with
 * what the engine reported, decides, commits one transaction, lets the engine act, and only then
 * answers. So an answer is always about something durable. When the commit fails nothing was acted
 * on: the requests are answered 507, the core is made again from the store, and the engine is asked
 * again what runs.
 */
#ifndef STK_LIVE_LIVE_H
#define STK_LIVE_LIVE_H

#include <jansson.h>

#include "core/core.h"
#include "engine/engine.h"
#include "figures/figures.h"
#include "live/progress.h"
#include "store/store.h"

struct stk_live;
struct stk_teams;

#define STK_NOBODY UINT32_MAX /* the uid of who is no user: the engine */

enum stk_role { STK_ROLE_USER, STK_ROLE_OPERATOR, STK_ROLE_ADMIN };

struct stk_who { /* who asks */
    uint32_t uid, gid;
    enum stk_role role;
    char user[64];
};

#define STK_POOLS_TEXT 400

struct stk_live_node { /* by the core's node number */
    const char *name;
    const char *gpu_type; /* "virtual", "NVIDIA H200" */
    uint32_t rack;        /* 0: not known */
    const char *features; /* "a,b"; NULL: none are known, and its type is one */
    uint64_t pools;       /* bits: those that have it, where pools share nodes; 0: its own */
};

struct stk_live_last {     /* how long a job may run */
    stk_job_number number; /* 0: it is being submitted */
    const char *pool;
    stk_time was, is; /* time limits; 0: none */
};

struct stk_live_limits {
    uint32_t max_jobs;               /* that have not ended; default 2,000,000 */
    uint32_t max_jobs_per_user;      /* default 100,000; operators may have more */
    uint32_t max_schedules_per_user; /* default 100; operators may have more */
};

struct stk_gpu_span { /* GPUs of a node, between two times */
    uint32_t node;
    uint64_t mask;
    stk_time since, until;
};

struct stk_live_config {
    struct stk_store *store;           /* borrowed, open for writing */
    struct stk_engine *engine;         /* borrowed */
    struct stk_core_config core;       /* nodes and policies; borrowed for the call */
    const char *policy;                /* name of the bundle, kept with snapshots */
    json_t *policy_words;              /* as the configuration has it; borrowed for life; may be
                                          NULL */
    const struct stk_live_node *nodes; /* core.n_nodes; borrowed for life */
    const char *const *pools;          /* core.n_pools names; borrowed for life */
    const uint32_t *pool_of; /* by pool: the one that has its nodes, where pools share some; NULL:
                                each has its own; borrowed for life */
    const char *const *gpu_types; /* names; borrowed for life */
    uint32_t n_gpu_types;
    struct stk_live_limits limits;
    uint64_t slice_ns;             /* that a request is worked on at a time; 0: 10 ms */
    const struct stk_teams *teams; /* whose tables the core has; borrowed; NULL: nobody's */
    bool predict;                  /* run times are predicted from users' own past jobs */
    enum stk_share share;          /* of parts of GPUs, for jobs that say nothing */
    uint32_t default_cpu_milli; /* per task, for jobs that ask for neither GPUs nor CPUs; 0: none */
    /* Optional: whether the engine can run such a job. -EOPNOTSUPP. */
    int (*can_run)(void *ctx, const json_t *job, struct stk_err *err);
    /* Optional: the tenant that an account means which has another name; NULL: none. */
    const char *(*tenant_of)(void *ctx, const char *account);
    /* Optional: the role of a user who is not there to ask: of jobs that schedules make, and of
     * those that users sent to the engine. NULL: user. */
    enum stk_role (*role_of)(void *ctx, uint32_t uid);
    /* Optional: whether a user who is no operator may give a job this time limit. -EINVAL. */
    int (*may_last)(void *ctx, const struct stk_live_last *ask, struct stk_err *err);
    const char *no_mps;   /* why there is no MPS here; NULL: there is; borrowed for life */
    const json_t *rules;  /* a list (docs/spec/rules.md); NULL: none; borrowed for life */
    stk_time rules_every; /* how often their conditions are looked at; 0: as usual */
    /* Microseconds since the Unix epoch. Never goes back, and never stands still; it may be ahead
     * of the wall clock (daemon/clock.h). */
    stk_time (*clock)(void *ctx);
    stk_time (*ahead)(void *ctx);   /* optional: how far */
    stk_time (*elapsed)(void *ctx); /* optional: CLOCK_BOOTTIME, as of 'clock' */
    /* Optional, both: how far the wall clock was set forward; and the clock jumps by that. */
    stk_time (*behind)(void *ctx);
    stk_time (*skip)(void *ctx);
    void (*clock_raise)(void *ctx, stk_time least); /* optional: it was this late before */
    int (*signal)(void *ctx, stk_job_number number, int sig, struct stk_err *err); /* optional */
    void (*log)(void *ctx, const char *line); /* optional: notable things, one line each */
    /* Optional: whether one of these GPUs of the node had an error between the two times that ends
     * processes. 1: it had, and 'text' says which; 0: none, and 'text' may say something all the
     * same; -EAGAIN: they have not been read since (stk_live_gpus_off() is called when they are).
     */
    int (*gpu_fault)(void *ctx, const struct stk_gpu_span *span, char *text, size_t size);
    /* Optional: an operator wants these GPUs to be used again. */
    void (*gpus_resumed)(void *ctx, uint32_t node, uint64_t mask);
    void *ctx;
};

/* names.c. The pool of the core that has the pool's nodes; one of several that share them has all.
 */
uint32_t stk_live_pool_of(const struct stk_live_config *c, uint32_t pool);
bool stk_live_pool_shared(const struct stk_live_config *c, uint32_t pool); /* it has several's */
/* The pool that the queue names, + 1; 0: none. */
uint32_t stk_live_queue_pool(const struct stk_live_config *c, uint32_t queue);
/* The pool of a job that names this one, or none (NULL), and is in this queue. */
uint32_t stk_live_pool_row(const struct stk_live_config *c, const char *pool, uint32_t queue);
/* Names of the pools that have the node, which is in this one, with commas between them. */
const char *stk_live_node_pools(const struct stk_live_config *c, uint32_t node, uint32_t pool,
                                char buf[STK_POOLS_TEXT]);

enum stk_warn {                 /* who warns, the gravest first */
                STK_WARN_STRAY, /* it is on a GPU that it was not given */
                STK_WARN_MEMORY,
                STK_WARN_IDLE,
                STK_WARN_ENGINE, /* why it does not start is for the engine to say */
                STK_WARN_ASKED,  /* its user changed it where it was sent, to what cannot be */
                STK_WARN_MAX
};

/* What is known of a job that has not ended, beside the core's own row. */
struct stk_live_logs;

struct stk_entry {
    stk_job_number number;
    struct stk_record rec;       /* as in the store; strings belong to the entry */
    json_t *progress;            /* what the job reported last; NULL */
    char *note;                  /* sentence about its latest end, or NULL */
    char *warning[STK_WARN_MAX]; /* sentences about what may happen to it, or NULL */
    char *why;                   /* why it is being ended, said once it has; or NULL */
    char *text;                  /* its description, once it was started; else NULL */
    struct stk_live_logs *logs;  /* its files, where their names have its node; or NULL */
    char *renamed;               /* its name, when it was changed in this life of ours; or NULL */
    bool lent;                   /* it was suspended to lend its GPUs: it resumes by itself */
    bool saved;                  /* it reported a checkpoint, of which the core is still to hear */
    bool stepped;                /* it reported steps, of which the core is still to hear */
    struct stk_progress steps;   /* what they say of how long it will run */
    int32_t adopted; /* pid of the process it was made of in this life of ours; 0: none */
    /* lease.c: */
    stk_time wait_since; /* since when it waits, as of its last event; 0: it did not */
    stk_time queued;     /* its time in the queue then, */
    uint32_t queue_seq;  /* and its place among equals */
    uint32_t milli;      /* of the lease it has, thousandths of a GPU */
    bool placed;         /* it has GPUs, and its processes have not started */
    uint8_t evicted;     /* why it has to go: enum stk_why_evicted + 1; 0: it need not */
};

int stk_live_open(const struct stk_live_config *cfg, struct stk_live **ret_live,
                  struct stk_err *err);
/* Takes a snapshot if anything is new; jobs go on. NULL is a no-op. */
void stk_live_close(struct stk_live *live);

/* One turn. -ENOSPC, -EROFS, -EIO: could not commit; nothing is lost, call again later. The turn
 * after one that failed writes something even when nothing has happened: 0 means that writing
 * works. */
int stk_live_turn(struct stk_live *live, struct stk_err *err);
/* The turn is not over: a long request goes on with the next call of stk_live_turn(), and nothing
 * may be written into the store before that. */
bool stk_live_is_open(const struct stk_live *live);
/* Workers asked for items while a turn was open, and should now ask again; says so once. */
bool stk_live_asked_for(struct stk_live *live);
/* Every request that waits is answered with this error. */
void stk_live_refuse(struct stk_live *live, int rc, const struct stk_err *err);
bool stk_live_pending(const struct stk_live *live);  /* a turn would have something to do */
stk_time stk_live_wake(const struct stk_live *live); /* ... and when at the latest */

/* ---- requests; each is answered once, after the turn that took it in ---- */

/* 'body' is owned by the callee. Called from stk_live_turn(). */
typedef void (*stk_reply_fn)(void *ctx, int http_status, json_t *take_body);

struct stk_asker { /* who asks, and how they are answered */
    struct stk_who who;
    stk_reply_fn reply;
    void *ctx;
};

/* Descriptions of one request. Each is parsed and checked: an element of an array takes a third of
 * the time. */
#define STK_MAX_SPECS_USER 20000u
#define STK_MAX_SPECS_TRUSTED 200000u /* of an operator */
/* Jobs that one request may make: the largest array. */
#define STK_MAX_JOBS_USER 100000u
#define STK_MAX_JOBS_TRUSTED 200000u /* of an operator */

/* Descriptions (docs/spec/job.md); all or none. 'key' may be NULL. */
struct stk_many;
int stk_live_submit(struct stk_live *live, const struct stk_asker *by, struct stk_many *take_jobs,
                    const char *key, bool dry_run);
/* Bytes of descriptions that wait to be taken in; of one user, or of all (STK_NONE). */
size_t stk_live_held(const struct stk_live *live, uint32_t uid);
/* cancel hold release suspend resume requeue, signal ("signal": number in args), update
 * (members of the description that change; null takes one away). */
bool stk_live_may_change(const char *key); /* update takes it */
int stk_live_act(struct stk_live *live, const struct stk_asker *by, const char *verb,
                 const stk_job_number *numbers, uint32_t n, json_t *take_args);
/* A process that runs already becomes a job of 'owner' and has the GPUs of the mask (of node 0) at
 * once, or the request is refused. The description gets "adopt": {"pid", "start"} here: users
 * cannot send it. */
struct stk_live_adoption {
    struct stk_who owner;
    json_t *job; /* taken over */
    int32_t pid;
    uint64_t start;
    uint32_t node; /* whose GPUs these are */
    uint64_t mask;
};
int stk_live_adopt(struct stk_live *live, const struct stk_asker *by,
                   const struct stk_live_adoption *a);
/* A job that 'owner' sent to the engine with its own tools becomes one of ours, an array all of its
 * elements. 'key' is what it is known by there: a second time it gets the first answer again. The
 * description gets "imported": take_made here; users cannot send that. */
int stk_live_bring(struct stk_live *live, const struct stk_asker *by, const struct stk_who *owner,
                   json_t *take_job, const char *key, json_t *take_made);
/* Operators: GPUs that take no new jobs; kept over restarts. mask: the GPUs to change. */
int stk_live_drain(struct stk_live *live, const struct stk_asker *by, uint32_t node, uint64_t mask,
                   bool on);
/* Operators: other numbers for a tenant ("limit", "guarantee", "weight", "gpu_type"), until they
 * are put back ("config"). -ENOENT: there is no such tenant. */
/* Numbers of the tenant that were set, beside those of the configuration; STK_NONE: of all. */
json_t *stk_live_quota_set(const struct stk_live *live, uint32_t tenant);
int stk_live_quota(struct stk_live *live, const struct stk_asker *by, const char *tenant,
                   json_t *take_numbers);
/* Rows of the tenants that the user is a member of: how many; at most 'max' are written. */
uint32_t stk_live_teams_of(struct stk_live *live, uint32_t uid, uint32_t *ret, uint32_t max);
/* What 'who' may ask for in the queue as a member of the tenant (docs/spec/rights.md): {"open",
 * "tiers", "priority_min", "priority_max", "preempt"}; new reference. */
json_t *stk_live_show_rights(struct stk_live *live, const struct stk_who *who, uint32_t tenant,
                             uint32_t queue);
/* Users and groups that the tenant has as members; new reference. */
json_t *stk_live_members(const struct stk_live *live, uint32_t tenant);
/* A reservation (docs/spec/reservations.md) is made (on), or that with the body's "id" removed. */
int stk_live_reserve(struct stk_live *live, const struct stk_asker *by, bool on, json_t *take_body);
const json_t *
stk_live_reservations(const struct stk_live *live); /* an array; until the next turn */
/* The name of the reservation that has this window of the core; NULL. And by its name: its id; 0.
 */
const char *stk_live_reservation_name(const struct stk_live *live, uint32_t booking);
uint32_t stk_live_reservation_id(const struct stk_live *live, const char *name);
/* Operators: a rule more, or (not 'on') one less: {"name"}. */
int stk_live_rule(struct stk_live *live, const struct stk_asker *by, json_t *take_rule, bool on);
/* All rules, or the one of that name; NULL: there is none. */
json_t *stk_live_rules(const struct stk_live *live, const char *name);
/* When such a rule would begin and end over the next days, and what it would change. Nothing
 * happens. -EINVAL. */
int stk_live_rules_test(struct stk_live *live, json_t *rule, int64_t days, json_t **ret,
                        struct stk_err *err);
/* When a schedule submits its next job, and which it submitted last (0: none). False: the job is no
 * schedule. */
bool stk_live_schedule(const struct stk_live *live, stk_job_number number, stk_time *ret_next,
                       stk_job_number *ret_last);
/* GPUs that cannot be used for now: foreign use, faults; and those that are used only when no other
 * is free. 'shut': the node takes no job at all. Replaces what was said before. */
void stk_live_gpus_off(struct stk_live *live, uint32_t node, uint64_t mask, uint64_t last,
                       bool shut);
uint64_t stk_live_drained(const struct stk_live *live, uint32_t node);
/* A sentence about how a job ended; call before the engine emits its end. */
void stk_live_note(struct stk_live *live, stk_job_number number, const char *sentence);
/* A warning that is shown with the job until it is taken back (NULL) or the job has ended. */
void stk_live_warn(struct stk_live *live, stk_job_number number, enum stk_warn of,
                   const char *sentence);
/* Whether the daemon suspends the job to lend its GPUs, and will resume it. */
void stk_live_lent(struct stk_live *live, stk_job_number number, bool lent);
/* Why it is about to be ended: its note once it has, whatever the engine says. */
void stk_live_blame(struct stk_live *live, stk_job_number number, const char *sentence);
/* What a job says of itself ("step", "total", ...); kept while it lives. -ENOENT, -EACCES. */
int stk_live_report(struct stk_live *live, const struct stk_who *who, stk_job_number number,
                    json_t *take_report, struct stk_err *err);

/* With the next turn, jobs that may be are moved so that one that waits can start (core/defrag.h).
 */
void stk_live_defrag(struct stk_live *live);
/* The node takes no new jobs, and what is on it is moved, if all of it can be (core/empty.h). */
void stk_live_empty(struct stk_live *live, uint32_t node);

/* ---- batch items, for the engine ---- */

/* The next item of the batch that job 'number' works for; index and text (until the next call). A
 * worker that asks although it was given one gets that one again: it never heard of it. -ENOENT:
 * none is left; any other error: it cannot be written down, ask again later. */
int stk_live_item_next(struct stk_live *live, stk_job_number number, uint32_t *ret_index,
                       const char **ret_text, struct stk_err *err);
/* What came of an item; 'code' is an exit code, or 128 and the signal. Counts once, however often
 * it is said. What cannot be written down now is kept and written before the next turn. */
void stk_live_item_done(struct stk_live *live, stk_job_number number, uint32_t index, int code);
/* How many of a batch's items are in which state; of any worker of it. -ENOENT: it has none. */
int stk_live_item_counts(struct stk_live *live, const struct stk_record *rec,
                         uint32_t ret_n[STK_ITEM_STATE_MAX]);
stk_job_number stk_live_batch(const struct stk_record *rec); /* the batch a worker works for */

/* ---- changes, written down (docs/spec/whatif.md) ---- */

/* The world as the configuration has it: "nodes", "teams", "policy"; a new reference. */
json_t *stk_live_configured(const struct stk_live *live);
/* Writes down what is different from the last time, if anything is. Between turns. */
int stk_live_note_config(struct stk_live *live, struct stk_err *err);

/* ---- looking; what is returned lives until the next turn ---- */

struct stk_core *stk_live_core(struct stk_live *live);
struct stk_store *stk_live_store(struct stk_live *live);
const struct stk_live_config *stk_live_config(const struct stk_live *live);
uint64_t stk_live_seq(const struct stk_live *live); /* of the last durable event */
/* The time by which it is reckoned what is too old to be kept: the wall clock's, and for a day
 * after it was set forward as if it had not been. */
stk_time stk_live_age_now(const struct stk_live *live);
stk_time stk_live_now(const struct stk_live *live);
/* A job that has not ended, or NULL (ended ones are in the store). */
const struct stk_entry *stk_live_entry(const struct stk_live *live, stk_job_number number);
/* The next job after 'after' (0: the first) that has not ended, by number; NULL: none. */
const struct stk_entry *stk_live_next(const struct stk_live *live, stk_job_number after);
/* The job is being made and is not durable yet: no answer has named it. */
bool stk_live_hides(const struct stk_live *live, stk_job_number number);
/* Jobs that have not ended and are durable. */
struct stk_live_shown {
    uint32_t live, blocked, waiting;
};
void stk_live_show(const struct stk_live *live, struct stk_live_shown *ret);
uint32_t stk_live_count(const struct stk_live *live);
/* What has happened since the daemon was started. */
struct stk_live_counts;
/* lease.c: what the job has waited in all, up to now. */
stk_time stk_live_waited(const struct stk_live *l, const struct stk_entry *e, stk_time now);

/* counts.c: GPU time allocated since the daemon was started, by leases that are over and others. */
stk_gpu_time stk_live_allocated(const struct stk_live *l, stk_time now);
const struct stk_live_counts *stk_live_counts(const struct stk_live *live);
/* The description of any job, new reference, or NULL. Secrets are file names only. */
json_t *stk_live_spec(struct stk_live *live, int64_t spec_id);
/* When the job will start and end, in microseconds since the Unix epoch; of one that has GPUs, when
 * it will end. May be some seconds old. False: that cannot be foreseen. */
struct stk_expected;
bool stk_live_expected(struct stk_live *live, stk_job_number number, struct stk_expected *ret);
/* Forecasts of many jobs are made in slices: the next one. True: there are more. */
bool stk_live_outlook_step(struct stk_live *live);
/* Where a job that waits is expected to start, if stk_live_expected() has just been true of it:
 * *ret_n pieces, borrowed until it is asked again; 0: not known. */
const struct stk_piece *stk_live_expected_where(const struct stk_live *live, stk_job_number number,
                                                uint32_t *ret_n);
/* How long its user said that a live job would run; 0: nothing was said. */
stk_time stk_live_asked(const struct stk_state *s, uint32_t job);
struct stk_deadline;
/* False: the job has none. */
bool stk_live_deadline(struct stk_live *live, stk_job_number number, struct stk_deadline *ret);
/* {"at", "answer", "margin_s", "earliest"} */
json_t *stk_live_show_deadline(const struct stk_deadline *d);
/* What would start a job that has not ended now, of what 'who' may do. In slices of some
 * milliseconds: 1, to be called again with the same tries, which begin as {0}. 0, -EACCES, -ENOENT,
 * -ENOMEM, -EINVAL: what it names is gone from the configuration. */
struct stk_remedies;
struct stk_remedy_tries;
int stk_live_remedies(struct stk_live *live, const struct stk_who *who, const struct stk_entry *e,
                      struct stk_remedy_tries *tries, struct stk_remedies *ret,
                      struct stk_err *err);
bool stk_live_may(const struct stk_who *who,
                  uint32_t owner_uid); /* act on, and see all of, a job */

/* Another policy or other limits (config reload). Applied between turns; on failure nothing has
 * changed. */
int stk_live_reload(struct stk_live *live, const struct stk_live_config *cfg, struct stk_err *err);

#endif
