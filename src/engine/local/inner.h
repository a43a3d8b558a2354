/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what the files of the local engine share.
 *
 * local.c   the engine's calls            link.c     talking to a shim, watching it
 * spawn.c   starting one                  runfile.c  reading what a shim has written
 * adopt.c   after a restart               orphan.c   processes whose shim is gone
 * suspend.c sleeping and waking           helper.c   running stoker-gpu
 * turns.c   who of several runs           nursery.c  the process that makes shims
 * mps.c     MPS for GPUs that are shared  gpus.c     what a job has of its GPUs
 * info.c    questions from outside */
#ifndef STK_ENGINE_LOCAL_INNER_H
#define STK_ENGINE_LOCAL_INNER_H

#include <jansson.h>

#include "base/map.h"
#include "engine/local/local.h"
#include "sys/procs.h"

#define STK_LOCAL_MAX_LINE (16U << 20) /* of what a shim says */

enum stk_where {
    STK_W_WAITING,  /* to be started once strays are gone and there is room */
    STK_W_LAUNCHED, /* a shim was started, its tasks not yet */
    STK_W_RUNNING,
    STK_W_PREPARING, /* suspend: asked the shim */
    STK_W_SAVING,    /* suspend: stoker-gpu works */
    STK_W_FREEZING,  /* suspend: the shim stops the processes */
    STK_W_ASLEEP,
    STK_W_THAWING,   /* resume: the shim wakes the processes */
    STK_W_RESTORING, /* resume: stoker-gpu works */
    STK_W_STOPPING,
    STK_W_ORPHANED,
    STK_W_ENDED /* EXITED was emitted */
};

#define STK_MARK_LEN 33 /* of a launch's secret, with the final zero */
#define STK_RUN_NO_UID ((uid_t)-1)

struct stk_run_task {
    pid_t pid;
    uint64_t start;
    bool ended;
    int status;
};

/* What a run file says, or what the shim has said since. */
struct stk_run {
    pid_t shim;
    char boot[STK_BOOT_ID_LEN];
    char mark[64]; /* of launches from before it was a secret: guessable */
    uid_t uid;     /* whose processes these are; STK_RUN_NO_UID: not known */
    char cgroup[64];
    stk_lease_id lease; /* the last one it ran or slept under */
    bool begun, started, asleep, exited;
    bool limited;      /* 'left' of its time at 'at' */
    stk_time left, at; /* CLOCK_BOOTTIME; 0: an older shim did not say */
    stk_time ran;      /* how long it had run then, without its sleep */
    stk_time slept;    /* Unix time: asleep since */
    int64_t grace_ms;
    struct stk_run_task *tasks;
    uint32_t n_tasks;
    char *out, *err, *attach; /* malloced paths, or NULL */
    enum stk_cause cause;     /* exited */
    int32_t code;
    bool final;
    stk_time ended;      /* Unix time; 0: not known */
    stk_time ended_boot; /* the same, since the machine was booted */
    char note[256];
    json_t *memo; /* what the shim was given to keep when it went to sleep */
};

struct stk_local;
struct stk_local_mps;

struct stk_local_job {
    struct stk_local *m;
    stk_job_number number;
    stk_job_id id;
    stk_lease_id lease, launch;
    enum stk_where where;
    bool stray;         /* not in the core's list: ended without a word */
    bool told_started;  /* STARTED was emitted under this lease */
    bool stopping;      /* 'stop' is to be done */
    bool adopted;       /* its state is not known until the shim has said hello */
    bool settled;       /* nobody asks for it any more; goes with its shim */
    bool wake_on_hello; /* resume as soon as the shim answers */
    bool asleep_wanted; /* the core has it suspended */
    struct stk_stop stop;
    uint64_t mask;  /* GPUs it has now, as places in the table */
    uint32_t node;  /* the first it has something of */
    json_t *spread; /* its GPUs, where they are of several nodes; else NULL */
    json_t *nodes;  /* ... and those nodes (sys/jobnodes.h); else NULL */
    bool real_gpus;
    uint16_t milli, mig;  /* thousandths of each, 0: all of it; profile of an instance, 0: none */
    uint8_t share;        /* enum stk_share of a part */
    uint8_t slot[64];     /* by GPU: where its instance starts */
    uint32_t gpu_mem_mib; /* memory of each that it may use; 0: all */
    /* Of one that shares its GPU in turns (turns.c). */
    bool seat;
    bool yielding;       /* it is being put to sleep because its turn is over */
    bool timing;         /* it is being woken since switch_from */
    bool unsure;         /* adopted and not asleep: stoker-gpu may have been at work on it */
    uint32_t turns;      /* how many it has had */
    uint32_t refused;    /* times in a row that it could not be put to sleep */
    stk_time wait_since; /* Unix time */
    int64_t turn_from, switch_from; /* ms */
    int64_t sleep_ms, wake_ms;      /* what the last switch took */
    char why_kept[128];
    enum stk_cause final_cause; /* not NONE: what to report instead of the shim's words */
    char *spec;                 /* kept until it has started */
    uint32_t restarts, tasks, port, n_ports;
    uint32_t launches; /* shims that ended before they began */
    struct stk_run run;
    char sentence[256];
    int64_t kill_at;   /* orphaned and being stopped: ms; 0: not told yet */
    stk_time limit_at; /* orphaned: when its time is over, CLOCK_BOOTTIME; 0: never */
    bool limit_said;   /* it may run for limit_ms (0: for ever), whatever it was started with */
    int64_t limit_ms;
    int64_t again_at; /* no room to resume it: ms when that is tried again; 0: not waiting */
    int64_t pause_ms; /* before that */
    bool child;       /* the shim is a child of this process */
    uv_pipe_t *conn;
    uv_process_t *helper; /* stoker-gpu at work for it */
    int helper_runs;      /* how often it has just died without an answer */
    char *in;
    size_t n_in, cap_in;
    struct stk_local_task *shown; /* for stk_local_info() */
    struct stk_local_job *next;   /* in the list of all */
};

struct stk_local {
    struct stk_engine base;
    struct stk_mem mem;
    struct stk_local_config cfg; /* its strings are our copies */
    struct stk_local_gpu *gpus;
    struct stk_local_instance *instances;
    char **env, **own; /* own: every string of the configuration */
    uint32_t n_own;
    int run_dir, null_fd;
    char boot[STK_BOOT_ID_LEN];
    struct stk_local_job *jobs;        /* all, strays too */
    struct stk_map by_number, by_slot; /* to places in 'table' */
    struct stk_local_job **table;
    uint32_t n_table, cap_table, *free_places, n_free, cap_free;
    uint32_t strays, ports_from;
    uv_timer_t *timer; /* runs while there are orphans, shims or starts to look at again */
    uv_timer_t *turns; /* runs while GPUs are shared in turns */
    uint64_t n_turns, switch_ms;
    uint64_t label; /* of this daemon's cgroups: others have jobs of the same numbers */
    struct stk_local_mps *mps[64]; /* by GPU; NULL: it was never shared so */
    pid_t nursery;                 /* makes the shims; 0: none yet */
    int nursery_fd;
};

/* local.c */
stk_time stk_local_now(const struct stk_local *m);
stk_time stk_local_boot_us(void); /* CLOCK_BOOTTIME */
void stk_local_note(const struct stk_local_job *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
struct stk_local_job *stk_local_find(const struct stk_local *m, stk_job_number number);
struct stk_local_job *stk_local_job_new(struct stk_local *m, const struct stk_start *s, bool stray);
void stk_local_job_free(struct stk_local_job *j);
void stk_local_emit_started(struct stk_local_job *j);
void stk_local_emit_exited(struct stk_local_job *j, enum stk_cause cause, const char *sentence);
int stk_local_keep_spec(struct stk_local_job *j, const struct stk_start *s);
void stk_local_forget_spec(struct stk_local_job *j);
void stk_local_do_stop(struct stk_local_job *j);
void stk_local_strays_gone(struct stk_local *m); /* starts those that wait, if so */

/* spawn.c */
void stk_local_spawn(struct stk_local_job *j);
void stk_local_run_name(const struct stk_local_job *j, const char *end, char *buf, size_t size);
void stk_local_unlink(const struct stk_local_job *j);

/* gpus.c */
void stk_local_set_mask(struct stk_local_job *j, const struct stk_start *s);
const char *stk_local_node(const struct stk_local_job *j); /* where it is, as the core knows it */
json_t *stk_local_gpu_list(const struct stk_local_job *j);
json_t *stk_local_part(const struct stk_local_job *j); /* for the shim; NULL: whole GPUs */

/* mps.c */
/* Whether MPS serves all GPUs that it shares so. If not it is started, and the job, which waits,
 * is told later; or it has failed, and the job has ended. */
bool stk_local_mps_ready(struct stk_local_job *j);
void stk_local_mps_release(struct stk_local *m); /* jobs have gone */
void stk_local_mps_adopt(struct stk_local *m);   /* what an earlier daemon has left */
const char *stk_local_mps_dir(const struct stk_local *m, uint32_t gpu);
bool stk_local_mps_is_of(const struct stk_local *m, uint32_t gpu, uint32_t uid);
void stk_local_mps_close(struct stk_local *m);

/* nursery.c: hands the two files of a launch to a shim-to-be. */
int stk_local_nursery_send(struct stk_local *m, char *name, int conn_fd, int run_fd);
void stk_local_nursery_close(struct stk_local *m);

/* link.c */
int stk_local_link_connect(struct stk_local_job *j); /* to a shim that runs */
int stk_local_link_open(struct stk_local_job *j, int take_fd);
void stk_local_link_close(struct stk_local_job *j);
int stk_local_send(struct stk_local_job *j, json_t *take_msg);
int stk_local_send_text(struct stk_local_job *j, char *take_text, size_t n);
void stk_local_ended(struct stk_local_job *j); /* its run says that it has exited */
void stk_local_lost(struct stk_local_job *j);  /* nobody answers: what became of the shim? */

/* runfile.c */
void stk_run_apply(struct stk_run *r, const json_t *rec);
void stk_run_done(struct stk_run *r);
/* Reads the file; *ret_locked tells whether a shim holds it. -ENOENT: there is none. 'each' (may
 * be NULL) is called for every record. */
int stk_run_read(int dir, const char *name, struct stk_run *ret_run, bool *ret_locked,
                 void (*each)(void *ctx, const json_t *rec), void *ctx);

/* adopt.c */
void stk_local_replay_item(void *ctx, const json_t *rec); /* a job: says outcomes of items again */
int stk_local_adopt(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                    struct stk_err *err);
void stk_local_hello(struct stk_local_job *j); /* an adopted shim has said where it stands */

/* limit.c */
void stk_local_update(struct stk_engine *e, stk_time now, const struct stk_start *s);
void stk_local_limit_keep(struct stk_local_job *j, const struct stk_start *s);
void stk_local_limit_tell(struct stk_local_job *j);   /* its shim, if that need be told */
void stk_local_limit_orphan(struct stk_local_job *j); /* it has none any more */

/* orphan.c */
void stk_local_orphan(struct stk_local_job *j);
void stk_local_orphan_stop(struct stk_local_job *j);
void stk_local_orphan_wake(struct stk_local_job *j);
void stk_local_timer_need(struct stk_local *m);

/* suspend.c */
void stk_local_suspend(struct stk_local_job *j);
void stk_local_prepared(struct stk_local_job *j, const json_t *rec);
void stk_local_asleep(struct stk_local_job *j);
void stk_local_awake(struct stk_local_job *j, const char *why);
void stk_local_resume(struct stk_local_job *j);
void stk_local_make_sure(struct stk_local_job *j); /* that it runs, and nothing of it is saved */
/* Tries again when it is time; true: it is not yet. */
bool stk_local_resume_due(struct stk_local_job *j, int64_t now);

/* turns.c. All but the first and the last two do nothing for a job that takes no turns. */
void stk_local_turns_soon(struct stk_local *m);       /* looks who is to run */
void stk_local_turn_changed(struct stk_local_job *j); /* something that matters for it */
void stk_local_turn_waits(struct stk_local_job *j, stk_time since);
void stk_local_turn_began(struct stk_local_job *j); /* it runs */
void stk_local_turn_slept(struct stk_local_job *j);
/* It cannot be put to sleep. True: that was because its turn is over, and it goes on. */
bool stk_local_turn_kept(struct stk_local_job *j, const char *why);
void stk_local_turns_close(struct stk_local *m);

/* helper.c: runs stoker-gpu; 'done' gets its answer, or NULL when there was none. */
int stk_local_helper(struct stk_local_job *j, char **args,
                     void (*done)(struct stk_local_job *j, const json_t *answer));
void stk_local_helper_drop(struct stk_local_job *j); /* its answer is wanted no more */

#endif
