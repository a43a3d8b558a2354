/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - the Slurm engine's own parts. */
#ifndef STK_ENGINE_SLURM_INNER_H
#define STK_ENGINE_SLURM_INNER_H

#include "base/map.h"
#include "engine/slurm/slurm.h"
#include "sys/lines.h"

enum stk_slurm_where {
    STK_S_UNSENT, /* Slurm is to be told */
    STK_S_ASKED,  /* it was told, and has not answered */
    STK_S_SENT,   /* it has the job, and is to start it */
    STK_S_RUNNING,
    STK_S_LOST, /* Slurm has no trace of it: are its processes still there? */
    STK_S_ENDED /* EXITED was emitted */
};

enum stk_slurm_revive { /* of one that died of its warning */
                        STK_R_NOT,
                        STK_R_ASKED, /* Slurm is to requeue it */
                        STK_R_REFUSED
};

struct stk_slurm;

struct stk_slurm_job { /* that has a lease */
    struct stk_slurm *m;
    stk_job_number number;
    stk_job_id id;
    stk_lease_id lease;
    enum stk_slurm_where where;
    struct stk_piece *pieces;
    uint32_t n_pieces, restarts;
    char *spec;
    uint32_t slurm;    /* its number there; 0: none */
    uint32_t imported; /* a user sent it there under this number, or that of an array; 0: we did */
    char element[24];  /* of an array: "12_3", by which Slurm's calls know it; "": it is none */
    uint32_t before;   /* restarts it had there under an earlier number */
    uint32_t uid;      /* of its user */
    bool exclusive;    /* it has its nodes for itself: Slurm gives it all their GPUs */
    stk_time ended;    /* as Slurm told; 0: not, or just now */
    bool told_started, stopping, requeued, lost_once;
    struct stk_stop stop;
    enum stk_slurm_revive revive;
    int64_t sent_at;              /* ms: when Slurm was told to start it */
    json_int_t sent_by;           /* the request that did, by its number; 0: it was not answered */
    int64_t not_before;           /* ms: when it may be */
    int64_t began_at;             /* ms: when it was first seen running */
    int64_t harder_at;            /* ms: it was warned, and is stopped then; 0: not */
    int64_t warn_at;              /* ms: it is warned once more; 0: not */
    int64_t again_at;             /* ms: Slurm is asked again; 0: not */
    int64_t lost_at;              /* ms: since when it is lost */
    int64_t past_at;              /* ms: since when accounting cannot tell its end; 0: it can */
    int64_t seen_at;              /* s, Unix: when Slurm was last there and had it; 0: never */
    int64_t kicked_at;            /* ms: Slurm was asked to look at it */
    int64_t verify_at;            /* ms: Slurm says that it runs; do its nodes? 0: not asked */
    bool doubted;                 /* its nodes did not know it */
    bool judged;                  /* where it runs was looked at */
    uint32_t judged_again;        /* how often that was to be done anew */
    int64_t judge_at;             /* ms: not before */
    bool told_left;               /* that its processes are left */
    int64_t limit_s, limit_at;    /* time limit, 0: none; ms: Slurm's record is looked at then */
    bool limit_tell, limit_asked; /* it is to be told to Slurm; it was, without an answer yet */
    bool limit_due, limit_warned; /* a tick is to look at it; people were told of a refusal */
    bool odd;                     /* Slurm made something else of it once more: it is held */
    char back[260];               /* why it goes back into the queue; "": it does not */
    int64_t rest_ms;              /* so long it is not tried again then */
    uint32_t at;                  /* its place in the list */
    struct stk_slurm_job *next, *prev; /* of those that time matters for */
    bool timed;
};

enum stk_slurm_step { /* of a job that a user has sent to Slurm */
                      STK_I_NEW,
                      STK_I_ASKED, /* the daemon was asked to take it */
                      STK_I_OURS
};

struct stk_slurm_import { /* a record of such jobs: one, or elements of an array */
    uint32_t slurm, round, uid;
    int64_t submitted, told_at; /* Unix time; ms: when Slurm was told something of it */
    stk_job_number first;
    enum stk_slurm_step step;
    bool refused, by_user; /* by_user: the hold on it is its user's own */
    bool again;            /* Slurm is to be told something, later */
    bool missed;           /* it is ours, and its mark was lost: it is to be marked again */
    int64_t hold_at;       /* ms: Slurm was told to hold it, and it was not seen held since; 0 */
    bool stray;            /* Slurm started it, and not we: it is put back */
    bool held_here;        /* by us, for what Slurm says */
    int64_t ask_at;        /* ms: stoker refused it, and is asked again; 0: not */
    int64_t pause_ms;      /* that was waited last */
    uint64_t digest;       /* of what it asks for, as it was told */
    char *tasks;           /* elements when it was taken in; NULL: it is no array */
    bool bare;             /* no plugin has held it: what its script says is asked for */
    bool script_asked, script_known;
    char signal[64]; /* its script's --signal; "": none */
    json_t *job;     /* the record, while it waits; else NULL */
};

struct stk_slurm_seen { /* a job that Slurm has: ours, or another's that uses GPUs */
    uint32_t slurm;
    stk_job_number number; /* ours; 0: another's */
    uint32_t round;        /* in which all was told */
    uint32_t before;       /* restarts of ours under earlier numbers: it is sent anew each time */
    uint64_t typed;        /* GPUs that it was pinned to by type, ever */
    int64_t left_at;       /* ms: it ran, and has waited since then; 0: it has not run */
    int64_t look_at;       /* ms: Slurm says that it runs; do its nodes? 0: not asked */
    bool doubted;          /* they knew nothing of it */
    json_t *job;           /* as told last */
};

struct stk_slurm_rest { /* a job whose start has failed; it may be that it rests */
    stk_job_number number;
    uint32_t uid;
    uint32_t refused, failed; /* how often in a row */
    int64_t until;            /* ms */
};

struct stk_slurm_use {  /* of a node's GPUs */
    uint64_t taken;     /* the core's bits that our jobs have */
    uint32_t others;    /* how many GPUs others' jobs have */
    uint16_t index[64]; /* how many of these have the GPU with that index */
    uint64_t off;       /* told to the core; shut: likewise */
    bool shut, changed;
    int64_t avoid_until;            /* ms: Slurm did not start a job there; 0: not so */
    int64_t back_at;                /* ms: it was down until then; 0: it was not */
    uint32_t run;                   /* GPUs that jobs of ours have that run; as of the last look */
    uint32_t lost;                  /* GPUs that Slurm has in use, and no job has */
    uint32_t lost_seen, lost_times; /* the number that was seen last, and how often in a row */
};

typedef void (*stk_slurm_answer_fn)(struct stk_slurm_job *j, const json_t *answer);
typedef void (*stk_slurm_heard_fn)(struct stk_slurm *m, uint32_t slurm, const json_t *answer);

struct stk_slurm_ask { /* a request without an answer yet */
    uint32_t id;
    stk_job_number number; /* 0: of no job */
    stk_lease_id lease;
    stk_slurm_answer_fn fn;
    bool later;     /* it is one of those that could wait */
    bool done;      /* it was answered, before others that were asked earlier */
    uint32_t slurm; /* number there, of one that is not ours yet */
    stk_slurm_heard_fn heard;
};

struct stk_slurm_later {
    uint32_t job; /* Slurm's number; that of an array for an element */
    json_t *request;
};

struct stk_slurm {
    struct stk_engine base;
    struct stk_mem mem;
    struct stk_slurm_config cfg;
    char **own; /* strings of the configuration */
    uint32_t n_own;
    const char **listed;   /* partitions of the configuration; NULL ends them */
    const char **names;    /* by row; NULL ends them; "": the partition is left out */
    const char **left_out; /* by row: the name of a partition that is left out; NULL: it is not */
    uint32_t n_partitions; /* rows */
    json_t *kept;          /* what the file of rows has, until the nodes are made */
    /* cluster.c */
    struct stk_slurm_node *nodes;
    struct stk_slurm_use *use; /* by node */
    uint32_t *changed;         /* nodes of which the use is to be told */
    uint32_t n_nodes, n_changed;
    uint32_t n_core;    /* so many of them the core has */
    bool rows_dirty;    /* Slurm may have others */
    int64_t rows_at;    /* ms: not before */
    json_t *rows;       /* name to node */
    json_t *news;       /* of nodes, by name */
    json_t *partitions; /* as told last */
    uint32_t *pools;    /* pools.c: of each partition */
    bool pools_told;    /* that some share nodes and are apart */
    /* table.c */
    struct stk_slurm_job **jobs, *timed;
    uint32_t n_jobs, cap_jobs;
    struct stk_map by_number, by_lease; /* to places in jobs */
    struct stk_slurm_seen *seen;
    uint32_t n_seen, cap_seen, round;
    struct stk_map seen_by_slurm, seen_by_number; /* to places in seen */
    /* import.c */
    struct stk_slurm_import *imports;
    uint32_t n_imports, cap_imports;
    struct stk_map import_at; /* by Slurm's number */
    struct stk_map elsewhere; /* jobs that wait in others' partitions, not held: number to when */
    stk_job_number *missing;  /* elements that have left their array's record */
    uint32_t n_missing, cap_missing;
    bool open, again; /* the daemon takes jobs; one has 'again' */
    bool missing_one; /* one that was 'missed' has left */
    bool looks;       /* some of 'seen' have a 'look_at' */
    /* link.c */
    uv_process_t process;
    uv_pipe_t in, out;
    uv_timer_t tick;
    struct stk_lines lines; /* of what it says */
    uint32_t next_id, open_handles;
    struct stk_slurm_ask *asks; /* by their numbers, which ascend */
    uint32_t first_ask, n_asks, cap_asks;
    struct stk_slurm_later *later;
    uint32_t first_later, n_later, cap_later, n_under_way;
    bool running, closing, ready, away, telling;
    bool heard;                          /* stoker-libslurm has found its slurm.conf */
    int64_t again_at, clean_at, back_at; /* ms */
    int64_t contact_s;                   /* Unix: when Slurm was last heard of; 0: never */
    int64_t boot;      /* Unix: when the slurmctld that all was told of was started; 0: not known */
    uint32_t told;     /* the job, or array, that is just told of while all is; 0: none */
    int64_t told_boot; /* by that slurmctld */
    int64_t remembers_s; /* Slurm knows ended jobs at least so long; 0: for ever */
    bool accounts, adopted;
    json_t *enforces;    /* what slurmdbd's accounts and limits mean: by name, true or false */
    json_t *booked;      /* reservations as told last */
    bool booked_news;    /* they are to be told on */
    json_t *groups;      /* accounts and QOS; null: told that there is no slurmdbd */
    int64_t groups_at;   /* ms: when they are asked for */
    uint32_t groups_ask; /* the request that did; 0: none */
    /* rest.c */
    struct stk_slurm_rest *rests;
    uint32_t n_rests, cap_rests;
    struct stk_map rest_at; /* by our number */
    struct stk_map shut_by; /* by user: when a job of theirs has shut a node, s */
    struct stk_map odd;     /* how often in a row Slurm has made something else of a user's job */
    char why[512];          /* why Slurm cannot be reached; "": it can */
};

int64_t stk_slurm_ms(void);
int64_t stk_slurm_wall_s(const struct stk_slurm *m); /* Unix time, as Slurm has it */
void stk_slurm_log(const struct stk_slurm *m, bool trouble, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- link.c ---- */

int stk_slurm_link_open(struct stk_slurm *m);
void stk_slurm_link_close(struct stk_slurm *m); /* frees m when all handles are closed */
/* It is not listened to any more, and is started again. */
void stk_slurm_link_end(struct stk_slurm *m);
/* stk_slurm_ask() at once, whatever waits about the same job; 'later': see later.c. */
int stk_slurm_ask_now(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                      stk_slurm_answer_fn fn, bool later);

/* ---- ask.c ---- */

/* 'fn' gets NULL for an answer when the program ended first. -EAGAIN: it cannot be asked now;
 * -E2BIG: the request is longer than it reads, ever. */
int stk_slurm_ask(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                  stk_slurm_answer_fn fn);
/* About a job that is not ours yet. */
int stk_slurm_ask_of(struct stk_slurm *m, json_t *take_request, uint32_t slurm,
                     stk_slurm_heard_fn heard);
void stk_slurm_ask_cancel(struct stk_slurm *m, const json_t *job); /* of a job as told */
/* Jobs that were made anew and of which a start is still to be answered are in STK_S_ASKED. */
void stk_slurm_asked_again(struct stk_slurm *m);

/* ---- heard.c: what stoker-libslurm says ---- */

void stk_slurm_heard(struct stk_slurm *m, const char *line, size_t len);
/* It has ended: what it was asked is answered with nothing. */
void stk_slurm_unheard(struct stk_slurm *m);

/* ---- later.c: requests that can wait ---- */

void stk_slurm_ask_later(struct stk_slurm *m, json_t *take_request);
/* A request says which slurmctld gave out the number of its job: when it is made, not when it is
 * sent. That is the one that all was told of, also while the next one tells all; but of the job
 * that it is just telling of it is that one. */
void stk_slurm_of_boot(const struct stk_slurm *m, json_t *request);
/* What waits about the job of this request is asked for. */
void stk_slurm_later_first(struct stk_slurm *m, const json_t *request);
void stk_slurm_later_answered(struct stk_slurm *m);
void stk_slurm_later_forget(struct stk_slurm *m); /* those that wait */
void stk_slurm_later_drop(struct stk_slurm *m);   /* and those that are under way */

/* ---- table.c: jobs that have leases, and jobs that Slurm has; every look is O(1) ---- */

struct stk_slurm_job *stk_slurm_add(struct stk_slurm *m, const struct stk_start *s); /* NULL: no
                                                                                       memory */
/* What is kept of its description: imported, exclusive, limit_s, uid. */
void stk_slurm_read_spec(struct stk_slurm_job *j);
void stk_slurm_remove(struct stk_slurm *m, struct stk_slurm_job *j);
struct stk_slurm_job *stk_slurm_find(const struct stk_slurm *m, stk_job_number number);
struct stk_slurm_job *stk_slurm_find_lease(const struct stk_slurm *m, stk_lease_id lease);
/* Where it is now; one that does not just run is looked at with every tick. */
void stk_slurm_move(struct stk_slurm_job *j, enum stk_slurm_where where);
void stk_slurm_verify_at(struct stk_slurm_job *j, int64_t ms);
void stk_slurm_requeued(struct stk_slurm_job *j);
void stk_slurm_limit_due(struct stk_slurm_job *j, bool due);
void stk_slurm_judged(struct stk_slurm_job *j, bool judged);
void stk_slurm_stopping(struct stk_slurm_job *j, const struct stk_stop *s);

/* Takes in what is told of a job, in place of what was. NULL: no memory. */
struct stk_slurm_seen *stk_slurm_see(struct stk_slurm *m, json_t *job, stk_job_number number);
void stk_slurm_unsee(struct stk_slurm *m, struct stk_slurm_seen *s);
struct stk_slurm_seen *stk_slurm_seen(const struct stk_slurm *m, uint32_t slurm);
struct stk_slurm_seen *stk_slurm_seen_of(const struct stk_slurm *m, stk_job_number number);
void stk_slurm_table_free(struct stk_slurm *m);

/* ---- cluster.c ---- */

/* Rows of partitions, from the file of rows and the configuration: before anything is told. */
int stk_slurm_cluster_load(struct stk_slurm *m, struct stk_err *err);
int stk_slurm_cluster_make(struct stk_slurm *m, struct stk_err *err);
void stk_slurm_cluster_news(struct stk_slurm *m, const json_t *message);
uint32_t stk_slurm_find_node(const struct stk_slurm *m, const char *name); /* n_nodes: none */
/* As told; NULL: there is none of that name. */
const json_t *stk_slurm_find_partition(const struct stk_slurm *m, const char *name);
void stk_slurm_cluster_tick(struct stk_slurm *m, int64_t now); /* takes in other nodes */
void stk_slurm_cluster_free(struct stk_slurm *m);

/* ---- pools.c: partitions that share nodes ---- */

#define STK_SLURM_PARTITIONS 63

/* Names of nodes to bits: the partitions that have them. O(nodes of all partitions). */
json_t *stk_slurm_pools_members(const struct stk_slurm *m);
/* Rows and pools that were kept; then those of partitions that are new. -EINVAL: the partitions are
 * in another order now, or the first is left out. */
int stk_slurm_pools_load(struct stk_slurm *m, const json_t *kept, struct stk_err *err);
void stk_slurm_pools_find(struct stk_slurm *m, json_t *in);
json_t *stk_slurm_pools_show(const struct stk_slurm *m);
uint32_t stk_slurm_pools_row(const struct stk_slurm *m, const char *name); /* UINT32_MAX: none */
const char *stk_slurm_pools_name(const struct stk_slurm *m, uint32_t row); /* left out ones, too */
/* The pool of a node that is in these partitions. */
uint32_t stk_slurm_pools_of(struct stk_slurm *m, const char *node, uint64_t in);

/* ---- use.c: GPUs that cannot be used ---- */

/* A lease of ours has its GPUs from now on, or (not 'on') gives them back. O(its pieces). */
void stk_slurm_use_ours(struct stk_slurm *m, const struct stk_slurm_job *j, bool on);
/* The same of another's job, as told. */
void stk_slurm_use_theirs(struct stk_slurm *m, const json_t *job, bool on);
void stk_slurm_use_changed(struct stk_slurm *m, uint32_t node);
/* Tells the core what is off on nodes where that may have changed. O(these nodes). */
void stk_slurm_use_tell(struct stk_slurm *m);
/* Slurm did not start there what it was told to: others are not sent there for a while. */
void stk_slurm_use_avoid(struct stk_slurm *m, uint32_t node);
/* O(nodes, jobs with leases). */
void stk_slurm_use_tick(struct stk_slurm *m, int64_t now);
uint32_t stk_slurm_count_gpus(const json_t *list, const char **ret_type);

/* ---- jobs.c: jobs of ours in Slurm, and what its word means for them ---- */

/* A job as told is in this state, "running"; it may be completing even so. */
bool stk_slurm_is(const json_t *job, const char *state);
/* It runs, or waits, and nothing of it is completing. */
bool stk_slurm_runs(const json_t *job);
bool stk_slurm_pending(const json_t *job);
/* How it has ended; STK_CAUSE_NONE: it has not. */
enum stk_cause stk_slurm_cause(const json_t *job);
/* Slurm has made something else of a job than was decided, or would. One of ours rests from the
 * second time in a row on. True: of a user's own, and several times in a row. What it asks for is
 * not what we know of it then; it is its user's to mend. */
bool stk_slurm_is_odd(struct stk_slurm *m, struct stk_slurm_job *j);
/* Takes in what Slurm has said of it just now; what is known of it already. */
void stk_slurm_job_told(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job);
void stk_slurm_job_look(struct stk_slurm *m, struct stk_slurm_job *j);
void stk_slurm_exited(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause,
                      int32_t code, const char *sentence);
/* It has ended, as told by slurmctld or by accounting. False: that says nothing of an end. */
bool stk_slurm_job_ended(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job);
/* Its user is that of our job with this number, as far as is known. */
bool stk_slurm_owned(const struct stk_slurm *m, stk_job_number number, const json_t *job);
/* Our number of a job that we sent, as told; 0: it is not ours. */
stk_job_number stk_slurm_number(const struct stk_slurm *m, const json_t *job);
stk_lease_id stk_slurm_lease_of(const struct stk_slurm *m, const json_t *job); /* 0: none */
json_t *stk_slurm_comment(const struct stk_slurm *m, const struct stk_slurm_job *j);
/* By what Slurm's calls know a job, a new reference: its number, or of an element "12_3", since by
 * its number not all of them do. */
json_t *stk_slurm_id(const json_t *job);
/* In Slurm's queue, held: it was stopped to make room. NULL: it is not. */
const json_t *stk_slurm_waits_there(const struct stk_slurm *m, stk_job_number number);

/* ---- jobs_news.c: what Slurm says of jobs ---- */

void stk_slurm_jobs_news(struct stk_slurm *m, const json_t *message);
/* One of ours in place of which another counts is ended, if it has not; never a user's own. */
void stk_slurm_drop(struct stk_slurm *m, const json_t *job);
/* It is known by now whose our jobs are: what was told before is looked at again. */
void stk_slurm_jobs_recheck(struct stk_slurm *m);
/* An earlier start of it is not over for Slurm, which forgot that it was put back: it is now, or,
 * if it has run to its end meanwhile, that is its end. */
bool stk_slurm_still_there(struct stk_slurm *m, struct stk_slurm_job *j);

/* ---- lost.c: jobs that Slurm has lost, or forgotten ---- */

void stk_slurm_lost(struct stk_slurm *m, struct stk_slurm_job *j);
/* What its warning says of that is over. */
void stk_slurm_unwarn(struct stk_slurm *m, struct stk_slurm_job *j);
/* Slurm answered that it has no such job: it is lost. */
bool stk_slurm_unknown(struct stk_slurm_job *j, const json_t *answer);
/* A slurmctld that was killed may think that a job runs of which its node knows nothing: after it
 * is back, and for a while of those that start, the nodes are asked. */
void stk_slurm_verify(struct stk_slurm_job *j);
void stk_slurm_verify_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now);
void stk_slurm_lost_tick(struct stk_slurm *m, struct stk_slurm_job *j);

/* ---- limit.c: time limits ---- */

void stk_slurm_update(struct stk_engine *e, stk_time now, const struct stk_start *s);
/* Into the request that starts it in Slurm, where it waits with another. */
void stk_slurm_limit_start(const struct stk_slurm_job *j, const json_t *job, json_t *o);
/* What Slurm says of one that runs. */
void stk_slurm_limit_look(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job);
void stk_slurm_limit_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now);

/* ---- revived.c ---- */

void stk_slurm_revived_told_all(struct stk_slurm *m);
/* It was seen as one of ours, which it is no longer. */
void stk_slurm_revived_theirs(struct stk_slurm *m, json_t *job);
void stk_slurm_revived_tick(struct stk_slurm *m, int64_t now);

/* ---- rest.c: starts that do not come true ---- */

/* That Slurm does not start a job for this reason has nothing to do with its nodes. */
bool stk_slurm_own_reason(const char *reason);
/* Its record; NULL: none. It goes when the job has run, or is gone. */
struct stk_slurm_rest *stk_slurm_rest_find(const struct stk_slurm *m, stk_job_number number);
/* ... or a new one; NULL: no memory. */
struct stk_slurm_rest *stk_slurm_rest_add(struct stk_slurm *m, const struct stk_slurm_job *j);
/* A start has failed: how long it rests when it is back in the queue. 'own': see above; 'in_vain':
 * it had its nodes for long. */
void stk_slurm_failed(struct stk_slurm *m, struct stk_slurm_job *j, bool own, bool in_vain);
/* It was started otherwise than decided, so many times after the first. */
void stk_slurm_rest_odd(struct stk_slurm *m, struct stk_slurm_job *j, uint32_t times);
void stk_slurm_rest_over(struct stk_slurm *m, const struct stk_slurm_job *j); /* it runs */
/* Its lease has ended. */
void stk_slurm_rest_exited(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause,
                           const char *sentence);
void stk_slurm_rest_wake(struct stk_slurm *m); /* all are tried now */
void stk_slurm_rest_tick(struct stk_slurm *m); /* O(jobs that rest) */
void stk_slurm_rest_free(struct stk_slurm *m);

/* ---- rest_ms.c: how long a job rests that has failed so many times ---- */

int64_t stk_slurm_rest_ms(uint32_t times);
/* One that was started otherwise than decided: not all equally long. */
int64_t stk_slurm_odd_ms(stk_job_number number, uint32_t times);

/* ---- start.c, stop.c ---- */

/* "n1,n2": its nodes, or those of them that are up; malloc'ed. */
char *stk_slurm_node_list(const struct stk_slurm *m, const struct stk_slurm_job *j, bool up);
/* What is to be done again of a start. */
void stk_slurm_start_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now);
void stk_slurm_stop_tick(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now);

/* The node takes nothing new: what Slurm was told to start there, and has not, goes elsewhere. */
void stk_slurm_starts_on(struct stk_slurm *m, uint32_t node);
void stk_slurm_send(struct stk_slurm *m, struct stk_slurm_job *j);
/* Its record, when it waits in Slurm; *ret_id, a new reference: by what it is known there. NULL: it
 * does not wait. */
const json_t *stk_slurm_there(const struct stk_slurm *m, const struct stk_slurm_job *j,
                              json_t **ret_id);
void stk_slurm_do_stop(struct stk_slurm *m, struct stk_slurm_job *j);
void stk_slurm_put_back(struct stk_slurm *m, struct stk_slurm_job *j); /* held, in Slurm's queue */
void stk_slurm_warn(struct stk_slurm *m, struct stk_slurm_job *j);     /* its own signal */
/* "signal", "signal_s" and "to" for a job that Slurm warns before its time limit. */
void stk_slurm_set_warning(const struct stk_slurm_job *j, json_t *o);
/* It ended so: of its warning, and is requeued. False: that is its end. */
bool stk_slurm_revive(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause);
json_t *stk_slurm_request(const char *op, const struct stk_slurm_job *j);

/* ---- groups.c: accounts and QOS ---- */

void stk_slurm_groups_tick(struct stk_slurm *m, int64_t now);
void stk_slurm_groups_answer(struct stk_slurm *m, const json_t *answer);

/* ---- slurm.c ---- */

const char *stk_slurm_keep(struct stk_slurm *m, const char *s); /* one copy, for our life; NULL: no
                                                                  memory */

void stk_slurm_ticks(struct stk_slurm *m);
void stk_slurm_free(struct stk_slurm *m); /* its program has ended */

/* ---- place.c ---- */

#define STK_SLURM_WORD 32u

/* Nodes and GPUs, into a request. -ENOMEM. */
int stk_slurm_set_place(const struct stk_slurm *m, const struct stk_slurm_job *j, json_t *o);
/* Slurm knows the GPUs of all its nodes: it does not, of one that has not registered with it yet.
 */
bool stk_slurm_nodes_known(const struct stk_slurm *m, const struct stk_slurm_job *j);
/* By index; 0: Slurm does not say which. */
uint64_t stk_slurm_indices(const json_t *gpus);
/* The books have the GPUs that Slurm gave it. False: it runs on other nodes than were chosen, or
 * with another number of GPUs; or it has some that are another's in the books. */
bool stk_slurm_take_over(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *job);
/* The books did not take that over: it is tried again a little later. */
void stk_slurm_not_taken(struct stk_slurm *m, const struct stk_event *ev);
/* GPUs that it is pinned to by type; 0: by number. */
uint64_t stk_slurm_typed(const struct stk_slurm *m, const struct stk_slurm_job *j);
/* It waits there, and Slurm would not start it where it is to: it is to be sent anew. */
bool stk_slurm_stuck(const struct stk_slurm *m, const struct stk_slurm_job *j,
                     const struct stk_slurm_seen *s);
/* "g" for GPUs of a node as told whose types are g0, g1, ...: each of its own; NULL: they are not,
 * or no memory. To be freed. */
char *stk_slurm_numbered(const json_t *gpus);
/* "h100" of features with gpu_h100; NULL: none of them says, or no memory. To be freed. */
char *stk_slurm_model(const char *features);

/* ---- script.c, describe.c ---- */

struct stk_slurm_files {
    char path[3][4096];     /* stdout, stderr, stdin; "": none of its own */
    char each[2][8192 + 1]; /* stdout and stderr of tasks that have files of their own, as srun has
                              such names; "": they do not */
    bool empty;             /* what is there at first goes */
};

/* Each of its tasks is a process that we start. */
bool stk_slurm_one_each(const json_t *spec);
/* Its script is what Slurm runs; else it is inside one of ours. */
bool stk_slurm_as_it_is(const json_t *spec);
/* What Slurm is to run; malloc'ed. NULL: no memory. */
char *stk_slurm_script_of(const struct stk_slurm_job *j, const json_t *spec,
                          const struct stk_slurm_files *files, struct stk_err *err);
/* The request that sends it to Slurm, without where it runs; NULL: cannot be made. */
json_t *stk_slurm_describe(const struct stk_slurm *m, const struct stk_slurm_job *j,
                           struct stk_err *err);

#endif
