/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - what the files of src/live share. Nobody else includes it. */
#ifndef STK_LIVE_STATE_H
#define STK_LIVE_STATE_H

#include <limits.h>

#include "base/bytes.h"
#include "base/map.h"
#include "drive/loop.h"
#include "live/counts.h"
#include "live/doubt.h"
#include "live/entries.h"
#include "live/many.h"
#include "live/take.h"
#include "live/users.h"
#include "rules/read.h"
#include "rules/rules.h"
#include "spec/spec.h"
#include "teams/teams.h"
#include "when/cron.h"

enum stk_request_kind {
    STK_REQ_SUBMIT,
    STK_REQ_ACT,
    STK_REQ_DRAIN,
    STK_REQ_ADOPT,
    STK_REQ_QUOTA,
    STK_REQ_RESERVE,
    STK_REQ_RULE,
    STK_REQ_BRING
};

struct stk_live_request {
    enum stk_request_kind kind;
    struct stk_who who;
    json_t *body;              /* a description, or arguments */
    struct stk_many jobs;      /* submit: the descriptions */
    struct stk_taking *taking; /* submit: how far it is; NULL: it has not begun */
    uint8_t hash[32];          /* of the body, with a key */
    char *key;
    bool dry_run;
    stk_job_number schedule;    /* submit: of this schedule; 0: a user's request */
    const char *verb;           /* static */
    int64_t spec_of, spec_made; /* update: the description that was changed last, and what from */
    stk_job_number *numbers;
    uint32_t n_numbers, acted; /* acted: numbers acted on so far, */
    uint32_t kept;             /* ... and of these durable, before the last slice */
    json_t *results;           /* of these */
    bool denied;               /* the latest was refused for want of a right */
    uint32_t node;             /* drain; quota: the tenant */
    uint64_t mask;
    bool on;
    struct stk_live_adoption adopt; /* its job is the body */
    json_t *made;                   /* bring: what it is known by there */
    stk_reply_fn reply;
    void *ctx;
    bool durable; /* what it asked for was committed */
    bool settled; /* all that was done before it in its turn is durable */
    int status;   /* the answer, once there is one */
    json_t *answer;
    struct stk_live_request *next;
};

struct stk_live_deps {
    struct stk_dep deps[STK_MAX_DEPS];
    uint32_t n;
};

struct stk_live_off { /* GPUs of a node that take no new jobs, and why */
    uint64_t drained, unusable, applied;
    uint64_t last, applied_last; /* used when no other is free */
    bool shut;                   /* the engine says: no job at all */
    bool closed;                 /* as applied: so, or all of the node is drained */
};

/* ---- batches of items ---- */

struct stk_live_late { /* an outcome that is not written down yet */
    stk_job_number worker;
    uint32_t index;
    int code;
};

struct stk_live_batch { /* what is known of a batch, so that lists do not count */
    stk_job_number number;
    uint32_t n[STK_ITEM_STATE_MAX];
    bool budget_known;
    uint32_t retry;         /* how often an item that failed is done again */
    uint8_t codes[256 / 8]; /* only after these exit codes */
};

struct stk_live_items {
    struct stk_live_batch *batches;
    uint32_t n, cap;
    struct stk_map by_number;
    struct stk_live_late *late;
    uint32_t n_late, cap_late;
    char *text; /* of the last item that was given */
};

struct stk_live_schedule {       /* of the job 'number', which is held for ever */
    stk_job_number number, last; /* last: the job it made last; 0: none */
    struct stk_cron cron;
    stk_time from, next; /* the first time after 'from' */
    stk_time stored;     /* 'from' in the store, while */
    bool firing;         /* its jobs are to be made, or are being made */
};

struct stk_live_waiting { /* an end whose cause is not known yet */
    struct stk_event ev;
    stk_time until; /* no longer than this */
};

struct stk_live_outlook {            /* outlook.c */
    struct stk_calibrate *calibrate; /* NULL: likewise */
    struct stk_predict *predict;     /* NULL: nobody asked yet */
    struct stk_live_expect *rows;    /* by number; NULL: none was made yet */
    struct stk_piece *pieces;        /* where they will start, row after row */
    uint32_t n, n_pieces, cap_pieces;
    uint64_t seq;                /* of the last event it knows of */
    stk_time made, took;         /* when, and how long that took */
    stk_job_number said;         /* the last job of which a first forecast was made */
    struct stk_forecast *making; /* NULL: none is being made */
    stk_job_number *asked;       /* the jobs that it is made for */
    uint32_t n_asked;
};

struct stk_live_sets {              /* sets.c */
    char *words[STK_MAX_NODE_SETS]; /* of each number - 1; NULL: it is free */
    uint32_t used;                  /* when they were last counted */
    bool look;                      /* nodes may be others */
};

struct stk_live {
    struct stk_live_config cfg;
    struct stk_mem mem;
    struct stk_core *core;
    struct stk_loop *loop;
    struct stk_entries entries;
    stk_time now;
    stk_time skipped, skipping; /* jumped over, of which the core is still to hear; hears now */
    struct stk_doubt doubt;     /* whether the time is right */

    struct stk_live_request *first, **last; /* waiting for the next turn */
    struct stk_live_request *taken;         /* by this turn; answered at its end */
    struct stk_live_request *open;          /* the one of these that goes on with the next slice */
    uint32_t long_uid;                      /* who asked for the last that took several slices */
    bool full;                              /* this turn takes no more requests */
    bool half;                              /* this turn has gone through a slice, and goes on */
    uint64_t slice_ns;                      /* when this slice began */
    stk_job_number hidden; /* jobs from this number on are not durable yet; 0: none is hidden */
    struct stk_live_shown shown; /* jobs that are not hidden, while some are */
    bool asked_for;              /* a worker asked for an item while it was going on */
    bool torn;                   /* the core has what the store has not: no snapshot */

    bool in_txn, off_changed, closing;
    stk_job_number *saved; /* jobs that reported a checkpoint since the last turn */
    size_t n_saved, cap_saved;
    bool defrag;    /* jobs are to be moved with the next turn */
    uint32_t empty; /* ... all from this node + 1; 0: so that one that waits can start */
    bool trouble;   /* the last turn could not be committed */
    int failed;     /* a write that could not be made; found by commit */
    struct stk_err failed_err;
    uint64_t seq, durable; /* of the last event written, committed */
    uint64_t since_snapshot;
    stk_job_number named_dep; /* the job that 'dep_text' is about; 0: none */
    char dep_text[200];
    stk_job_number done_number; /* the last finished job that was seen, and its slot */
    uint32_t done_slot;

    /* the job being submitted, for the event that makes it */
    const struct stk_record *submitting;
    struct stk_live_deps deps; /* of the description being taken in */
    bool making;               /* jobs: nothing is refused any more */
    bool trusted;              /* who has named a tenant need not be a member of it */
    bool beyond;               /* the time limit may be longer than its queue lets jobs run */
    uint64_t effort;           /* of this request: what was looked at to take it in */
    uint64_t effort_one;       /* of this description */

    struct stk_live_schedule *schedules;
    uint32_t n_schedules, cap_schedules;
    stk_time cron_wake;   /* the earliest of them, by the wall clock */
    struct stk_zone zone; /* the machine's */
    struct stk_rules rules;
    json_t *rule_list;        /* all there are: {rule, source, error} */
    stk_time rules_wake;      /* when one is due, by the wall clock */
    bool rules_changed;       /* by the step that is being made */
    struct stk_live_off *off; /* by node */
    struct stk_live_waiting *waiting;
    uint32_t n_waiting, cap_waiting;
    bool gpus_seen; /* since one of those was put aside */
    struct stk_live_users users;
    struct stk_live_items items;
    json_t *reservations; /* reserve.c: an array */
    bool reserve_look;    /* one that repeats may have no window */
    struct stk_live_sets sets;
    struct stk_live_outlook outlook;
    struct stk_live_counts counts;
    struct stk_capacity capacity; /* as written last */
    bool down_in_use;             /* jobs have something of a node that is down */
    unsigned char *wire;
    size_t cap_wire;
};

/* items.c: outcomes that could not be written down yet. */
int stk_live_items_flush(struct stk_live *l, struct stk_err *err);
/* Counts may be wrong: something was undone, or changed behind our back. */
void stk_live_items_forget(struct stk_live *l);
void stk_live_items_free(struct stk_live *l);
/* A worker's processes are gone: what it was given is to do again. */
int stk_live_items_back(struct stk_live *l, const struct stk_job *j, struct stk_err *err);
/* A worker ended by itself: how its items ended is how it did. */
void stk_live_items_judge(struct stk_live *l, const struct stk_job *j, struct stk_event *ev);

/* outcome.c: what the engine reports, with the cause that is known better here. False: it has to
 * wait until the GPUs were read. */
bool stk_live_reported(void *ctx, struct stk_event *ev);
bool stk_live_waiting_due(const struct stk_live *l, stk_time now);
int stk_live_waiting_apply(struct stk_live *l, struct stk_err *err);

/* cron.c */
int stk_live_cron_room(const struct stk_live *l, const struct stk_who *who, uint32_t more,
                       struct stk_err *err);
int stk_live_cron_add(struct stk_live *l, stk_job_number number, const struct stk_cron *cron,
                      struct stk_err *err);
int stk_live_cron_load(struct stk_live *l, struct stk_err *err);
void stk_live_cron_forget(struct stk_live *l);
void stk_live_cron_set_back(struct stk_live *l); /* the wall clock was; likewise below */
int stk_live_cron_fire(struct stk_live *l, struct stk_err *err); /* those that are due */
/* Its request is done: its jobs begin with 'first', or it was refused (0). */
int stk_live_cron_done(struct stk_live *l, const struct stk_live_request *r, stk_job_number first,
                       struct stk_err *err);
/* Its request was not done: it comes again. */
void stk_live_cron_again(struct stk_live *l, stk_job_number number);

/* reserve.c */
void stk_live_reserve_load(struct stk_live *l);
int stk_live_reserve_go_on(struct stk_live *l, struct stk_err *err); /* those that repeat */
stk_time stk_live_reserve_wake(const struct stk_live *l);            /* by the wall clock */
int stk_live_reserve_set_back(struct stk_live *l, struct stk_err *err);
int stk_live_reserve_over(struct stk_live *l, const struct stk_event *ev, struct stk_err *err);
int stk_live_do_reserve(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
int stk_live_reserve_keep(struct stk_live *l, struct stk_err *err); /* the list, into the store */

/* kept.c: a named value of the store as JSON; a new reference, NULL: there is none. */
json_t *stk_live_kept(const struct stk_live *l, const char *name);
int stk_live_keep(struct stk_live *l, const char *name, const json_t *value, struct stk_err *err);

/* rules.c */
#define STK_LIVE_RULES "rules" /* those that operators added, by this name */
int stk_live_rules_keep_sets(struct stk_live *l, struct stk_err *err);
int stk_live_rules_load(struct stk_live *l, struct stk_err *err);
void stk_live_rules_forget(struct stk_live *l);
void stk_live_rules_set_back(struct stk_live *l);
int stk_live_rules_step(struct stk_live *l, struct stk_err *err); /* what is due */
int stk_live_do_rule(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);

/* requests.c: takes in what was asked for up to now. -EINPROGRESS: one request needs more slices,
 * and the turn does not end before that: call again. */
int stk_live_feed(void *ctx, struct stk_loop *loop, stk_time now, struct stk_err *err);
bool stk_live_late(const struct stk_live *l); /* the time of this slice is over */
/* Before others may look while the turn goes on with 'r': all that was done so far becomes durable,
 * and all requests but 'r' are answered. */
int stk_live_settle(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
void stk_live_enqueue(struct stk_live *l, struct stk_live_request *take); /* for the next turn */
/* Sends the answers of this turn; when 'rc' < 0 with an error instead, but for what is durable. */
void stk_live_answer(struct stk_live *l, int rc, const struct stk_err *err);
/* {"error": {"code", "message"}} */
json_t *stk_live_error(const char *code, const char *message);

/* take.c, act.c: work on one request, leaving the answer in it. < 0: the turn has failed; 1: the
 * time of this slice is over, call again. */
int stk_live_do_submit(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
int stk_live_do_act(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
int stk_live_close_node(struct stk_live *l, uint32_t node, struct stk_err *err);
int stk_live_do_drain(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
int stk_live_do_quota(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
/* Says to the log which numbers of tenants are not those of the configuration. */
void stk_live_quota_tell(const struct stk_live *l);
/* dep_end.c: the note of a job that ended because of another's end names that one */
void stk_live_name_dep(struct stk_live *l, const struct stk_job *j);

/* notes.c, in the transaction at hand */
int stk_live_note_quota(struct stk_live *l, const char *user, const char *tenant, json_t *numbers,
                        struct stk_err *err);
int stk_live_note_rule(struct stk_live *l, const char *user, const char *name, bool on,
                       struct stk_err *err);
int stk_live_do_adopt(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
int stk_live_do_bring(struct stk_live *l, struct stk_live_request *r, struct stk_err *err);
/* limit.c: whether the engine lets whoever asks give a job such a time limit */
int stk_live_limit_allowed(const struct stk_live *l, const struct stk_who *who,
                           const struct stk_live_last *ask, struct stk_err *err);
/* ... of a job that has started */
int stk_live_limit_check(struct stk_live *l, const struct stk_live_request *r, uint32_t slot,
                         stk_time was, stk_time is, struct stk_err *err);
stk_time stk_live_limit_estimate(const struct stk_job *j, const struct stk_job_spec *spec);
/* update.c: a job that has not started is changed; of one that has, how long it may run. */
int stk_live_update(struct stk_live *l, struct stk_live_request *r, uint32_t slot,
                    struct stk_err *err);
/* One job of r->body, which the server has made. > 0: refused, and answered. */
int stk_live_submit_made(struct stk_live *l, struct stk_live_request *r,
                         const struct stk_who *owner, const char *key, json_t *take_value,
                         struct stk_err *err);

/* journal.c: events and records into the store, one transaction per commit. */
/* wall.c: by how much the time is ahead of the wall clock; and the wall clock. */
stk_time stk_live_ahead(const struct stk_live *l);
stk_time stk_live_wall(const struct stk_live *l);
/* When something is due by the wall clock, as a time of the scheduler. */
stk_time stk_live_due_at(const struct stk_live *l, stk_time wall);
/* A time that somebody named, as the core keeps it, and back (core/named.h). */
stk_time stk_live_named(const struct stk_live *l, stk_time wall);
stk_time stk_live_unnamed(const struct stk_live *l, stk_time named);
/* When the core has something to do, with named times where they should be; STK_NEVER_TIME. */
stk_time stk_live_core_wake(const struct stk_live *l);
/* The core's named times are off; and are moved, with all else that goes by the wall clock. */
/* What the time is at least, after a restart: the last event's, or later where that is known. */
stk_time stk_live_clock_least(struct stk_live *l);
/* Whether the time is to jump, because the wall clock was set forward; it jumps; and all that was
 * written down becomes as much later. */
bool stk_live_behind(const struct stk_live *l);
void stk_live_jump(struct stk_live *l);
int stk_live_skip(struct stk_live *l, struct stk_err *err);
/* After a start: the time may have jumped before, or while there was no daemon. */
void stk_live_doubt_load(struct stk_live *l);
bool stk_live_clock_moved(const struct stk_live *l);
int stk_live_clock_follow(struct stk_live *l, struct stk_err *err);
int stk_live_begin(struct stk_live *l, struct stk_err *err);
void stk_live_journal(void *ctx, const struct stk_event *ev);
int stk_live_commit(void *ctx, struct stk_err *err);
int stk_live_snapshot(struct stk_live *l, struct stk_err *err);

/* lease.c: what an event of the job itself means for its waits and leases, in its record. */
int stk_live_lease_event(struct stk_live *l, const struct stk_job *j, const struct stk_event *ev,
                         struct stk_err *err);
void stk_live_lease_load(const struct stk_live *l, struct stk_entry *e); /* after a restart */
/* ... what it means for how many GPUs there are, which is written when it changes. */
int stk_live_capacity_event(struct stk_live *l, const struct stk_event *ev, struct stk_err *err);
int stk_live_capacity_load(struct stk_live *l, struct stk_err *err);
/* Thousandths of a GPU that the job has, or would have. */
uint32_t stk_live_milli(const struct stk_state *s, const struct stk_job *j);

/* recover.c: core and entries as the store has them; the engine is told what should run. */
int stk_live_recover(struct stk_live *l, struct stk_err *err);
void stk_live_drop(struct stk_live *l); /* core, loop and entries */

/* logs.c: names the files of a job's first task on this node; they lie in 'logs'. */
struct stk_live_logs {
    char out[PATH_MAX], err[PATH_MAX];
};
void stk_live_name_logs(struct stk_record *rec, const json_t *spec, const char *node,
                        struct stk_live_logs *logs);
/* It has started: whether its record has other names now. */
bool stk_live_logs_found(struct stk_live *l, const struct stk_job *j, struct stk_entry *e);
/* submit.c: a description that was checked, as this user's job; what it names are numbers. */
int stk_live_read(struct stk_live *l, uint32_t uid, const json_t *checked, struct stk_spec *ret,
                  struct stk_err *err);
/* cpu_share.c: sets "cpu_share" of a checked description, the CPUs per task of a job that asks for
 * neither GPUs nor CPUs; or takes it away. */
int stk_live_share_cpus(const struct stk_live *l, json_t *job, struct stk_err *err);
/* ... what a part of a GPU leaves open, as the site has it. */
int stk_live_resolve_part(const struct stk_live *l, struct stk_spec *s, struct stk_err *err);

/* adopt.c: whether the job would be over a limit of its tenant or queue, if it had its GPUs now. A
 * job that is submitted waits for that; a process that runs cannot. > 0: refused, and answered. */
int stk_live_adopt_limits(struct stk_live *l, struct stk_live_request *r,
                          const struct stk_job_spec *job, struct stk_err *err);

/* rights.c: what 'who' may ask for in the queue and for the tenant of a job of 'owner'. */
struct stk_rights stk_live_rights(struct stk_live *l, const struct stk_who *who, uint32_t owner,
                                  const struct stk_job_spec *job);
/* Whether 'who' may give such a job to 'owner': -EPERM with what is allowed. The job becomes plain
 * where its priority may not make a class. */
int stk_live_allow(struct stk_live *l, const struct stk_who *who, uint32_t owner,
                   struct stk_job_spec *io, struct stk_err *err);
/* A user who is not there to ask, with the role that the configuration gives. */
struct stk_who stk_live_owner(struct stk_live *l, uint32_t uid);

/* outlook.c: a job has ended; is learned from. */
void stk_live_outlook_ended(struct stk_live *l, const struct stk_job *j, uint32_t uid);
/* It starts for the first time. */
void stk_live_outlook_started(struct stk_live *l, const struct stk_job *j, stk_time at);
/* Gives up the forecast that is being made; nothing is kept of it. */
void stk_live_outlook_stop(struct stk_live *l);
void stk_live_outlook_free(struct stk_live *l);
/* The job's run time as it is expected, from what its user asked for and what such jobs of the user
 * took (stk_predict_estimate()); and what it may grow to when the job outruns it. */
void stk_live_expect_run(struct stk_live *l, uint32_t uid, struct stk_spec *io);
/* Forecasts of jobs of a core, which may be a fork of ours. */
struct stk_expected;
int stk_live_foresee(struct stk_live *l, const struct stk_core *core, const uint32_t *jobs,
                     uint32_t n, struct stk_expected *ret, struct stk_err *err);

/* deadline.c: by the wall clock; 'deadline' and 'now' are the scheduler's */
struct stk_deadline stk_live_judge_deadline(const struct stk_live *l, stk_time deadline,
                                            stk_time now, const struct stk_expected *when);
void stk_live_say_time(stk_time at, char *buf, size_t size); /* "2026-01-31 08:00:00" */

/* counts.c */
void stk_live_counts_init(struct stk_live *l);
void stk_live_counts_free(struct stk_live *l);
void stk_live_count_event(struct stk_live *l, const struct stk_event *ev, const struct stk_job *j);
void stk_live_count_first(struct stk_live *l, const struct stk_job *j); /* it starts */
/* A lease of the job has begun, after the job had waited; has ended, and is in the record. */
void stk_live_count_lease(struct stk_live *l, const struct stk_job *j, stk_time waited);
void stk_live_count_lease_end(struct stk_live *l, const struct stk_job *j,
                              const struct stk_event *ev, struct stk_entry *e);
double stk_live_seconds(void); /* of a clock that only goes on */
uint64_t stk_live_ns(void);    /* the same clock */

/* names.c: names of pools, GPU types and resources to numbers, in the description's demand. */
int stk_live_resolve(struct stk_live *l, struct stk_spec *s, struct stk_err *err);

/* sets.c: the core's set of nodes that the description means. Where there is none yet it is made:
 * inside a turn. */
int stk_live_set_of(struct stk_live *l, struct stk_spec *s, struct stk_err *err);
int stk_live_sets_load(struct stk_live *l, struct stk_err *err);
int stk_live_sets_renew(struct stk_live *l, struct stk_err *err); /* the nodes are others */
void stk_live_sets_forget(struct stk_live *l);

/* teams.c: whose job it is; the core's tables by name. */
int stk_live_tenant(const struct stk_live *l, const struct stk_user *u, struct stk_spec *s,
                    struct stk_err *err);
const char *stk_live_queue_name(const struct stk_live *l, uint32_t queue);
/* The name of a row of the configuration; NULL: there is no such row. 'ctx' is a struct stk_live.
 */
const char *stk_live_noun_name(void *ctx, enum stk_rules_noun noun, uint32_t row);
const char *stk_live_tenant_name(const struct stk_live *l, uint32_t tenant); /* "": no tenants */

/* tables.c: the core's tables as bytes, kept in the store: events know tenants and queues by
 * number, and are replayed under the tables they were written under. */
struct stk_live_tables {
    struct stk_tenant_spec *tenants;
    struct stk_queue_spec *queues;
    uint32_t n_tenants, n_queues;
    char *names; /* of both */
};
void stk_live_tables_put(const struct stk_core_config *c, struct stk_bytes *b);
/* -EBADMSG, -ENOMEM. stk_live_tables_done() in every case. */
int stk_live_tables_get(const unsigned char *bytes, size_t len, struct stk_live_tables *ret);
void stk_live_tables_done(struct stk_live_tables *t);
/* The numbers, but for names and who is above whom, are those of no limit. */
void stk_live_tables_free_of_limits(struct stk_live_tables *t);
/* renamed.c: whether every job that has not ended finds its tenant and its queue in the tables of
 * today, by name or by the name that one had before, and every reservation its tenant. -EINVAL: no,
 * with the jobs or the reservation and what to do. */
int stk_live_renamed_check(const struct stk_live *l, const struct stk_live_tables *old,
                           struct stk_err *err);
/* carry.c: what is kept by name gets the names of today. */
struct stk_live_old_names { /* of a record */
    stk_job_number number;
    char *tenant, *queue;
};
struct stk_live_stale { /* jobs whose records name another tenant or queue than the core */
    struct stk_live_old_names *rows;
    uint32_t n, cap;
};
int stk_live_stale_add(struct stk_live_stale *t, const struct stk_record *rec); /* -ENOMEM */
void stk_live_stale_done(struct stk_live_stale *t);
int stk_live_carry(struct stk_live *l, const struct stk_live_stale *t, struct stk_err *err);
/* ... and which settings are those of rules, once the rules are loaded. */
int stk_live_carry_sets(struct stk_live *l, struct stk_err *err);

/* deps.c: the jobs a description depends on; 'own' is the job's index, for aftercorr. */
int stk_live_find_deps(struct stk_live *l, const struct stk_spec *spec, uint32_t own,
                       struct stk_live_deps *ret, struct stk_err *err);
/* Before each job is made: a job it depends on may have been forgotten since the check, because
 * jobs of the same request ended at once. */
void stk_live_renew_deps(struct stk_live *l, struct stk_live_deps *d);
/* A request that makes us look at too much is refused, for nobody else is served meanwhile: adds
 * 'more' to its effort. -E2BIG. */
int stk_live_effort(struct stk_live *l, uint64_t more, struct stk_err *err);
/* stk_record_fn: the cause into an enum stk_cause. */
int stk_live_see_cause(void *ctx, const struct stk_record *r);
const struct stk_user *stk_live_user(struct stk_live *l, uint32_t uid);

#endif
