/* SPDX-License-Identifier: Apache-2.0 */
/* shim.h - the supervisor of one launch of one job, and what its files share.
 *
 * A shim is handed a connection to the engine (fd 3) and a locked run file (fd 4). The first line
 * says what to launch; the shim then owns the processes until the last of them is gone.
 * It needs nobody: time limit, checkpoint signal, grace, log cap and the record of the end are its
 * own work, and whoever connects later is told where things stand.
 *
 * Everything happens in one thread around one poll(); nothing here blocks but the kernel.
 * docs/spec/local-engine.md has the messages and the run file.
 */
#ifndef STK_SHIM_SHIM_H
#define STK_SHIM_SHIM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "model/job.h"
#include "sys/jobnodes.h"
#include "sys/json.h"

#define STK_SHIM_MAX_INPUT ((size_t)16 << 20) /* bytes of control messages not yet read */
#define STK_SHIM_MAX_TASKS 4096
#define STK_SHIM_MAX_GPUS 512 /* of a job over many nodes that are pretended */
#define STK_SHIM_CPUS 4096    /* characters of a list of CPUs */
#define STK_SHIM_FD_CONN 3
#define STK_SHIM_FD_RUN 4
#define STK_SHIM_RUN_ROOM 16384 /* bytes of the run file that are made sure of */
#define STK_SHIM_NEVER INT64_MAX

struct stk_shim_gpu {
    uint32_t index, minor;
    const char *uuid; /* "" for a virtual one */
    const char *cpus; /* near it, "0-15,64-79"; "": not known, or not to be bound */
    int32_t numa;     /* -1: not known */
    const char *mig;  /* the instance of it that the job has; "": none */
    const char *mps;  /* folder of the MPS that serves it; "": none */
};

/* What to run. Strings belong to 'msg'. */
struct stk_launch {
    json_t *msg, *spec; /* the launch message; the job's description in it */
    uint32_t number, launch, lease, restarts;
    const char *mark, *node, *state_dir, *boot;
    struct stk_jobnodes nodes;        /* at least one; only pretended nodes can be several */
    const char *label;                /* the daemon's: another one has jobs of the same numbers */
    const char *cgroup, *cgroup_mode; /* parent below the root; auto, always, never */
    struct stk_shim_gpu gpus[STK_SHIM_MAX_GPUS];
    uint32_t n_gpus;
    bool virtual_gpus;
    uint32_t port;
    uint32_t array, array_index; /* array 0: none */

    /* from the description */
    const char *name, *user, *home, *shell, *workdir;
    uid_t uid;
    gid_t gid;
    uint32_t tasks, procs; /* gang width; processes to start */
    uint32_t gpus_per_task;
    bool one_each; /* one process per task of a gang */
    bool slurm, interactive, may_suspend;
    int64_t limit_ms, grace_ms, signal_ms; /* limit 0: none */
    int signal;                            /* checkpoint signal; 0: none */
    bool signal_tasks;                     /* to the tasks alone, not to all their processes */
    uint64_t log_max;                      /* bytes; 0: no cap */
    pid_t adopt_pid;                       /* a process that somebody else started */
    uint64_t adopt_start;
    json_t *items; /* batch: an array of strings, or NULL */
};

struct stk_task {
    pid_t pid; /* 0: none now */
    uint64_t start;
    int status; /* as from waitpid() */
    bool ended;
    int32_t item; /* batch: which item it runs; -1: none */
    int64_t item_since;
    bool asked; /* batch: waits for an item */
};

enum stk_step { STK_STEP_NONE, STK_STEP_SIGNAL, STK_STEP_TERM, STK_STEP_KILL };

struct stk_end { /* how it ended, once that is known */
    bool known;
    enum stk_cause cause;
    int32_t code;
    bool final; /* not worth a restart */
    char note[256];
};

enum stk_runtime { STK_RUNTIME_NONE, STK_PODMAN, STK_DOCKER, STK_APPTAINER };

struct stk_cgroup;
struct stk_pty;

struct stk_log { /* one file that a task writes */
    int fd;
    uint64_t seen;   /* its size when it was looked at last, */
    int64_t seen_ms; /* and when that was */
    dev_t dev;       /* which file it is */
    ino_t ino;
};

struct stk_shim {
    struct stk_launch l;
    struct stk_task *tasks;
    uint32_t n_tasks, live; /* live: tasks whose own process has not ended */
    char script[256];       /* path of the script file, or "" */
    struct stk_cgroup *cg;
    struct stk_pty *pty;

    int signal_fd, conn, report; /* report: what the starting tasks say; -1: all have started */
    int files_wait, files_done;  /* a pipe that closes when task 0 has its files; -1: none */
    int listener;                /* where to connect again; -1: not yet needed */
    char *in;                    /* half a line from the connection */
    size_t n_in, cap_in;
    bool started, finished, childless;
    uint32_t kills;           /* how often everything was killed */
    pid_t helper;             /* a process of ours that the steps must spare */
    enum stk_runtime runtime; /* what runs its image */
    bool removed;             /* what might be left of its containers has been seen to */
    int64_t started_us;       /* Unix time */
    struct stk_end end;

    enum stk_step step;
    enum stk_cause stop_cause; /* NONE, or why it is being stopped */
    bool timed_out, shutdown;
    int64_t tell_at;   /* ms: when the start is told to the engine; NEVER */
    int64_t listen_at; /* ms: when the control socket is made; NEVER */
    int64_t step_at, warn_at, limit_at, log_at, freeze_at, freeze_until; /* ms; NEVER */
    int64_t warned_until; /* ms; the job has had its signal and time to act on it */
    int64_t started_ms, asleep_since, slept_ms;
    bool freezing, asleep;
    pid_t *was_stopped; /* processes that were stopped before we stopped the rest */
    size_t n_was_stopped;
    json_t *memo;            /* the engine's, kept while asleep */
    off_t nap_from, nap_end; /* in the run file: its last sleep, from there to where it woke; -1 */
    uint32_t nap_lease;

    struct stk_log *logs;
    uint32_t n_logs;
    int adopt_fd;                                    /* pidfd of an adopted process */
    uint32_t items_done, items_failed, items_handed; /* batch */
    bool items_over;
};

int64_t stk_shim_ms(void); /* a clock that only goes forward */
int64_t stk_shim_unix_us(void);
int64_t stk_shim_boot_us(void); /* CLOCK_BOOTTIME */

/* nursery.c: makes shims. Returns 1 in each of them, 0 when there is nothing more to do. */
int stk_nursery(char *label, size_t label_size);

/* launch.c: reads the message; the launch keeps a reference to it. */
int stk_launch_read(struct stk_launch *l, json_t *msg, struct stk_err *err);
int stk_launch_gpus(struct stk_launch *l, const json_t *list, struct stk_err *err);
bool stk_launch_has_minor(const struct stk_launch *l, uint32_t minor); /* the GPU /dev/nvidiaN */
/* The node of a task's process: its number among the job's, and which of the tasks there it is. */
const struct stk_jobnode *stk_launch_node(const struct stk_launch *l, uint32_t task,
                                          uint32_t *ret_index, uint32_t *ret_local);
/* Which of the job's GPUs the task has: [*first, *first + *n). One process for all tasks has those
 * of its own node. */
void stk_launch_slice(const struct stk_launch *l, uint32_t task, uint32_t *first, uint32_t *n);
void stk_launch_log_path(const struct stk_launch *l, uint32_t task, bool is_stderr, char *buf,
                         size_t size); /* "" when it would be too long */

/* env.c: the environment of one task, secrets in it, so it is made by the task's own process once
 * that is the user's. Malloced strings, NULL at the end; or NULL with a sentence. */
struct stk_envs;
char **stk_shim_env(const struct stk_launch *l, uint32_t task, bool fenced, struct stk_err *err);
/* env_gang.c: what tells the processes of a gang about each other. */
void stk_env_gang(struct stk_envs *e, const struct stk_launch *l, uint32_t task);
void stk_env_slurm(struct stk_envs *e, const struct stk_launch *l, uint32_t task);
bool stk_env_is_ours(const char *name, bool from_a_job);

/* record.c: says a record to the run file, to the connection or to both. Takes 'rec'. */
enum { STK_SAY_FILE = 1, STK_SAY_CONN = 2, STK_SAY_BOTH = 3 };
/* < 0: it is not in the file. */
int stk_shim_say(struct stk_shim *s, json_t *take_rec, int where);
void stk_shim_say_state(struct stk_shim *s, const char *ev, int where); /* where things stand */
json_t *stk_shim_state(const struct stk_shim *s);                       /* where things stand */
json_t *stk_shim_pids(const struct stk_shim *s); /* of every process of the job */

/* task.c: starts the process of a task. The parent learns from s->report how it went. */
int stk_task_start(struct stk_shim *s, uint32_t task, int report, struct stk_err *err);
void stk_task_report(struct stk_shim *s); /* s->report is readable */

/* child.c: becomes the user and the command; never returns. */
void stk_child_run(struct stk_shim *s, uint32_t task, int report) __attribute__((noreturn));
int stk_child_become(const struct stk_launch *l); /* the calling process becomes the job's user */

/* command.c: the words to execute (malloced, NULL at the end), or NULL with a sentence. */
char **stk_command_words(const struct stk_shim *s, uint32_t task, char **env, struct stk_err *err);
int stk_command_script(struct stk_shim *s, struct stk_err *err); /* writes the script file */
void stk_command_clean(struct stk_shim *s); /* removes it, and a container left behind */

/* secrets.c: puts the words of secret files into the environment; runs as the user. */
int stk_secrets_read(const struct stk_launch *l, struct stk_envs *e, struct stk_err *err);

/* near.c: the CPUs near the GPUs, "0-15,64-79". False: it is not to be bound. */
bool stk_near_job(const struct stk_launch *l, char *list, size_t size);
bool stk_near_task(const struct stk_launch *l, uint32_t task, char *list, size_t size);
void stk_near_numa(const struct stk_launch *l, uint32_t task, char *list, size_t size); /* "": ? */
void stk_near_bind(pid_t thread, const char *list); /* 0: the caller */
void stk_near_move(struct stk_shim *s); /* its GPUs have changed: binds all processes again */

/* ending.c */
void stk_shim_stop(struct stk_shim *s, enum stk_cause cause);
void stk_shim_begin_step(struct stk_shim *s, enum stk_step step);
void stk_shim_on_time(struct stk_shim *s, int64_t now);
void stk_shim_limit(struct stk_shim *s, int64_t ms); /* it may run so long; 0: for ever */
void stk_shim_limit_begins(struct stk_shim *s);      /* it runs from now on */
int64_t stk_shim_ran(const struct stk_shim *s);      /* ms; without its sleep */
int64_t stk_shim_next_time(const struct stk_shim *s);
void stk_shim_reap(struct stk_shim *s);
void stk_shim_decide(struct stk_shim *s, enum stk_cause cause, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A signal of the user's: to the tasks' own processes, to what srun started in a job with Slurm's
 * ways, or to all. */
void stk_shim_signal(struct stk_shim *s, int sig, bool tasks_only);
void stk_shim_signal_all(const struct stk_shim *s, int sig, int sig2); /* sig2 0: none */
struct stk_proc;
int stk_shim_members(const struct stk_shim *s, struct stk_proc **ret_list, size_t *ret_n);
void stk_shim_check_over(struct stk_shim *s);

/* container.c: the processes of containers. */
bool stk_container_spares(const struct stk_shim *s, const struct stk_proc *p); /* not to be hit */
bool stk_container_first(const struct stk_proc *p); /* it is the first process of one */
bool stk_container_none(const struct stk_shim *s);  /* podman has started none yet */
void stk_container_shielded(const struct stk_shim *s, const struct stk_proc *list, size_t n,
                            int sig); /* ends those that cannot hear the signal */

/* freeze.c */
void stk_shim_freeze(struct stk_shim *s, uint32_t lease, json_t *memo); /* memo: kept for later */
void stk_shim_freeze_more(struct stk_shim *s, int64_t now);
void stk_shim_thaw(struct stk_shim *s, uint32_t lease, json_t *gpus); /* gpus: those it has now */
void stk_shim_wake(struct stk_shim *s); /* SIGCONT to those we stopped; records nothing */

/* control.c: messages. */
void stk_shim_listen(struct stk_shim *s);  /* makes the control socket, or tries again soon */
void stk_shim_hang_up(struct stk_shim *s); /* whoever was there may connect again */
void stk_shim_accept(struct stk_shim *s);
void stk_shim_input(struct stk_shim *s);
void stk_shim_pending(struct stk_shim *s); /* orders that came along with the launch message */

/* logcap.c */
void stk_shim_logs_check(struct stk_shim *s, int64_t now);
void stk_shim_logs_end(struct stk_shim *s); /* no process of the job writes any more */

/* cgroup.c: NULL where none is wanted or possible. */
int stk_cgroup_new(const struct stk_launch *l, struct stk_cgroup **ret_cg, struct stk_err *err);
int stk_cgroup_join(const struct stk_cgroup *cg); /* the calling process */
void stk_cgroup_fence(struct stk_cgroup *cg,
                      const struct stk_launch *l);             /* its GPUs have changed */
void stk_cgroup_cpus(struct stk_cgroup *cg, const char *list); /* keeps it on these CPUs */
bool stk_cgroup_fenced(const struct stk_cgroup *cg);
const char *stk_cgroup_name(const struct stk_cgroup *cg);
/* True when the kernel ended a process for memory; 'ret_mib': the most that was used. */
bool stk_cgroup_oom(const struct stk_cgroup *cg, uint64_t *ret_mib);
void stk_cgroup_kill(const struct stk_cgroup *cg);
void stk_cgroup_free(struct stk_cgroup *cg); /* removes it */

/* fence.c: GPUs that are not the launch's cannot be opened in the v2 cgroup at 'path'. The program
 * is kept in 'io_program' (-1: none yet) and put in the place of the one before. */
#define STK_NVIDIA_MAJOR 195
#define STK_NVIDIA_GPUS 64 /* minors that are GPUs; the control device is 255 */
int stk_fence(const char *path, const struct stk_launch *l, int *io_program);

/* items.c: batch */
void stk_items_begin(struct stk_shim *s);
void stk_items_message(struct stk_shim *s, const json_t *m);
void stk_items_ended(struct stk_shim *s, struct stk_task *t);
void stk_items_ask(struct stk_shim *s);  /* somebody connected: ask again */
void stk_items_stop(struct stk_shim *s); /* free workers wait for nothing more */

/* pty.c: an interactive session */
int stk_pty_new(const struct stk_launch *l, struct stk_pty **ret_pty, struct stk_err *err);
void stk_pty_child(const struct stk_pty *p); /* stdin, stdout, stderr of the calling process */
void stk_pty_started(struct stk_pty *p);     /* the parent needs the other end no more */
struct pollfd;
uint32_t stk_pty_poll(const struct stk_pty *p, struct pollfd *fds, uint32_t cap);
void stk_pty_ready(struct stk_pty *p, const struct pollfd *fds, uint32_t n);
int64_t stk_pty_idle_ms(const struct stk_pty *p);
const char *stk_pty_path(const struct stk_pty *p);
void stk_pty_free(struct stk_pty *p, const struct stk_end *end); /* last words to all clients */

#endif
