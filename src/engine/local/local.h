/* SPDX-License-Identifier: Apache-2.0 */
/* local.h - the engine that runs jobs as processes of this machine, each launch under a supervisor
 * of its own (stoker-shim) that outlives the daemon. docs/spec/local-engine.md has the whole story.
 *
 * All calls come from the thread of the libuv loop. Closing the engine ends no job: a new engine on
 * the same state folder takes them over in adopt(). After close() the loop must be run once more
 * (uv_run) so that libuv can let go of its handles. */
#ifndef STK_ENGINE_LOCAL_LOCAL_H
#define STK_ENGINE_LOCAL_LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "engine/engine.h"

struct stk_local_instance { /* a MIG instance that is there */
    uint16_t profile;       /* model/mig.h */
    uint8_t slot;           /* its first memory slice */
    const char *uuid;
};

struct stk_local_gpu { /* place in the table = bit in stk_piece.mask; see per_node */
    uint32_t index;    /* as NVML counts */
    uint32_t minor;    /* /dev/nvidiaMINOR */
    uint32_t mem_mib;
    const char *uuid;
    const char *cpus; /* near it, "0-15,64-79": its jobs are bound to them; NULL or "": they are not
                       */
    int32_t numa;     /* -1: not known */
    bool is_virtual;  /* a number only: no device behind it */
    const struct stk_local_instance *instances; /* of a GPU in MIG mode */
    uint32_t n_instances;
};

/* Answers of item_next. */
#define STK_LOCAL_NO_ITEMS (-1)   /* there are no more; the worker ends */
#define STK_LOCAL_ITEM_LATER (-2) /* not now; stk_local_items_ready() says when */

struct stk_local_config { /* strings and tables are copied */
    uv_loop_t *loop;
    const char *state_dir;  /* absolute; run/, attach/ and script/ are made in it */
    const char *shim_path;  /* stoker-shim */
    const char *gpu_helper; /* stoker-gpu; NULL: no job with real GPUs is suspended */
    const char *mps;        /* nvidia-cuda-mps-control; NULL: no job shares by MPS */
    uint32_t mps_ms;        /* it returns within that; 0: 60 s */
    const char *node;       /* name of this machine */
    const struct stk_local_gpu *gpus;
    uint32_t n_gpus;
    /* Where this machine pretends to be several, so many of the table are of the first, the next of
     * the second, and so on. 0: each has all of them. */
    uint32_t per_node;
    const char *cgroup;       /* parent of the jobs' cgroups; NULL: "stoker" */
    const char *cgroup_mode;  /* "auto" (when a limit asks for it), "always", "never"; NULL: auto */
    const char *const *env;   /* NAME, value, ..., NULL: put into every job's environment */
    uint64_t nofile;          /* soft limit of files that jobs begin with; 0: this process's */
    uint32_t lock_timeout_ms; /* for suspending; 0: 10 s */
    uint32_t quantum_ms;      /* turns on a shared GPU last so long at least; 0: 30 s */
    uint32_t switch_pct;      /* and so long that no more than this goes into switching; 0: 10 */
    stk_time (*now)(void *ctx); /* Unix time, for events */
    /* Optional from here on; all are called with 'ctx'. */
    void *ctx;
    /* Where this machine pretends to be several, their names. */
    const char *(*nodes)(void *ctx, uint32_t node);
    /* A sentence about the job: how it ended, why it could not be suspended. */
    void (*note)(void *ctx, stk_job_number number, const char *sentence);
    /* It shares a GPU in turns: its turn begins, is over, or (trouble) goes on because it cannot be
     * suspended. */
    void (*turned)(void *ctx, stk_job_number number, const char *sentence, bool trouble);
    /* The array a job belongs to; false: none. */
    bool (*array)(void *ctx, stk_job_number number, stk_job_number *ret_array, uint32_t *ret_index);
    /* MiB of GPU memory in use on the GPUs of the mask: must fit into the host's free memory before
     * a job is suspended. Without it only stoker-gpu counts. */
    uint64_t (*gpu_used_mib)(void *ctx, uint64_t mask);
    /* Batch: the next item for a worker (an index into the description's items), and what came of
     * one. item_done may be called again for the same item after a restart. */
    int32_t (*item_next)(void *ctx, stk_job_number number);
    void (*item_done)(void *ctx, stk_job_number number, uint32_t item, int code, int signal);
};

int stk_engine_local_new(const struct stk_local_config *cfg, struct stk_engine **ret_engine,
                         struct stk_err *err);

enum stk_local_state {
    STK_LOCAL_STARTING,
    STK_LOCAL_RUNNING,
    STK_LOCAL_SUSPENDING,
    STK_LOCAL_ASLEEP,
    STK_LOCAL_RESUMING,
    STK_LOCAL_STOPPING,
    STK_LOCAL_ORPHANED, /* its supervisor is gone, processes of it live */
    STK_LOCAL_ENDED
};

struct stk_local_task {
    pid_t pid; /* 0: not known */
    bool ended;
    int32_t code; /* ended: exit code, or 128 + signal */
};

struct stk_local_info { /* pointers live until the next call into the engine or the loop */
    enum stk_local_state state;
    stk_lease_id lease, launch;
    pid_t shim;
    const struct stk_local_task *tasks;
    uint32_t n_tasks;
    const char *stdout_path, *stderr_path; /* of task 0; "" : none */
    const char *attach;                    /* socket of an interactive session; "": none */
    const char *sentence;                  /* where it stands, or how it ended */
    int64_t idle_s; /* interactive: since the last input or output; else -1 */
};

/* A job that has processes, or has ended and is not settled. -ESRCH: none such. */
int stk_local_info(struct stk_engine *e, stk_job_number number, struct stk_local_info *ret_info);

struct stk_local_turn {        /* of a job that shares its GPU in turns */
    bool has;                  /* it is its turn */
    int64_t left_s;            /* of the turn; -1: it has none */
    uint32_t place;            /* in line; 0: it has the turn */
    uint32_t turns;            /* that it has had */
    int64_t sleep_ms, wake_ms; /* what its last suspend and resume took; 0: none yet */
    char text[256];
};

/* False: it takes no turns, or sleeps because the core wants it to. */
bool stk_local_turn(struct stk_engine *e, stk_job_number number, struct stk_local_turn *ret);

/* Turns that were given, and the time that went into switching. */
void stk_local_turns_total(struct stk_engine *e, uint64_t *ret_turns, double *ret_switch_s);
/* From now on, as in the configuration. */
void stk_local_turns_set(struct stk_engine *e, uint32_t quantum_ms, uint32_t switch_pct);

/* Sends a signal to all processes of a job, or to the tasks' own alone. */
int stk_local_signal(struct stk_engine *e, stk_job_number number, int sig, bool tasks_only);

/* Whether a process that somebody started by hand may become a job of that user, and its start time
 * for the description: {"adopt": {"pid": PID, "start": START}}. A job with such a description
 * starts no process; its shim watches that one. Its exit code is never known. */
int stk_local_adopt_pid(struct stk_engine *e, pid_t pid, uid_t uid, uint64_t *ret_start,
                        struct stk_err *err);

/* Every job that has processes, asleep or not, in no order. */
void stk_local_each(struct stk_engine *e, void (*fn)(void *ctx, stk_job_number number), void *ctx);

/* In the environment of MPS's own processes; the value is the folder they serve. */
#define STK_MPS_MARK "STOKER_MPS"
/* Whether this is the folder of the MPS that serves the jobs on this GPU, and that is this user's.
 */
bool stk_local_is_mps(struct stk_engine *e, uint32_t gpu, const char *folder, uint32_t uid);

/* The job of which this process is a task; 0: none. */
stk_job_number stk_local_job_of_pid(struct stk_engine *e, pid_t pid);

/* Batch: there are items again for a job that was told to wait. */
void stk_local_items_ready(struct stk_engine *e, stk_job_number number);

#endif
