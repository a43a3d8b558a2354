/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - the parts of stokerd and the struct that holds them. main.c makes it, run.c keeps it
 * going, the rest are its parts. */
#ifndef STK_DAEMON_DAEMON_H
#define STK_DAEMON_DAEMON_H

#include <stdbool.h>
#include <uv.h>

#include "api/api.h"
#include "config/config.h"
#include "daemon/clock.h"
#include "daemon/notify.h"
#include "engine/local/local.h"
#include "gpuview/gpuview.h"
#include "hwtopo/hwtopo.h"
#include "live/live.h"
#include "model/mig.h"
#include "store/store.h"

#define STK_DAEMON_VERSION "0.1.0"

/* ---- options.c: the command line, over the file, over what is built in ---- */

struct stk_daemon_options {
    const char *config, *state, *socket, *listen, *tls_cert, *tls_key;
    const char *default_cpus; /* NULL: not said */
    uint32_t virtual_gpus;    /* STK_CONFIG_NO_GPUS: not said */
    uint32_t virtual_nodes;
    bool insecure, verbose, paranoid;
    bool check; /* do not start */
};

struct stk_daemon;

/* 0: go on; 1: done (help was asked for); -EINVAL: wrong, and said so. */
int stk_daemon_options(int argc, char **argv, struct stk_daemon_options *ret);
/* Reads the file, or the one that is usual, and puts the command line over its words. */
int stk_daemon_read_config(struct stk_daemon *d, struct stk_config *c, struct stk_err *err);
/* Puts the command line over the file's words. */
int stk_daemon_merge(const struct stk_daemon_options *o, struct stk_config *c, struct stk_err *err);

/* ---- paths.c ---- */

/* Where the socket is when nobody says; malloc'ed. */
char *stk_daemon_socket_path(const char *state);
/* The configuration that is read when none is named; NULL: there is none. */
char *stk_daemon_config_path(void);
/* Another program of ours: beside this one, or in ../libexec/stoker. -ENOENT. */
int stk_daemon_program(const char *name, char *buf, size_t size, struct stk_err *err);
/* places.c: whether the folders of "state" and "socket" are there or can be made. -EINVAL, with the
 * line of the file. */
int stk_daemon_check_places(const struct stk_config *c, struct stk_err *err);
/* A folder and those above it. */
int stk_daemon_make_folder(const char *path, unsigned mode, struct stk_err *err);

/* ---- log.c ---- */

enum stk_log_level { STK_LOG_ERROR, STK_LOG_WARN, STK_LOG_INFO, STK_LOG_DEBUG };
/* One line to stderr; control characters in it become '?'. */
void stk_log(enum stk_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void stk_log_set_level(enum stk_log_level most);

/* ---- machine.c: what there is to schedule on ---- */

struct stk_machine {
    char name[256];
    struct stk_gpus gpus; /* of the helper; empty where GPUs are virtual. Node after node */
    json_t *shown;        /* {"gpus": [...]} for the API; NULL: virtual */
    struct stk_hwtopo topo;
    struct stk_local_gpu *table; /* of all GPUs; virtual: of those of a node */
    uint32_t n_table;
    uint32_t n_gpus; /* of a node */
    bool is_virtual;
    char gpu_type[96];
    char helper[4096];           /* stoker-gpu; "": there is none */
    char mps[4096];              /* nvidia-cuda-mps-control; "": there is none */
    char no_mps[128];            /* and why; "": there is one */
    struct stk_node_spec *nodes; /* one, or many that are pretended */
    uint32_t n_nodes;
    struct stk_layout layout;                               /* of real GPUs */
    stk_weight *weight;                                     /* in it */
    uint16_t instances[STK_MAX_NODE_GPUS * STK_MIG_SLICES]; /* of node.instances */
    struct stk_local_instance known[STK_MAX_NODE_GPUS * STK_MIG_SLICES];
    struct stk_live_node *live_nodes;
    char *names; /* of nodes that are pretended */
    const char **gpu_types, **pools;
    const uint32_t *pool_of; /* where pools share nodes (live/live.h); NULL: none do */
    uint32_t n_gpu_types, n_pools;
    const char *own_type[1], *own_pool[1]; /* of this machine */
    char resource[STK_MAX_RESOURCES][STK_MAX_RESOURCE_NAME];
    const char *resources[STK_MAX_RESOURCES]; /* names */
    uint32_t n_resources;
};

int stk_machine_look(struct stk_machine *m, const struct stk_config *c, struct stk_err *err);
void stk_machine_done(struct stk_machine *m);

/* GPUs of a node as bits of machine.gpus, and the other way round: the node that the GPU is of, and
 * its number there. Where GPUs are virtual none can be read: 0. */
uint64_t stk_machine_read_mask(const struct stk_machine *m, uint32_t node, uint64_t mask);
uint32_t stk_machine_node_of(const struct stk_machine *m, uint32_t read, uint32_t *ret_gpu);

/* ---- the daemon ---- */

struct stk_gpuwatch;
struct stk_idlers;
struct stk_sampler;
struct stk_watchman;

struct stk_gpu_note { /* as it was judged last */
    enum stk_gpu_state state;
    uint32_t n_foreign;
    char text[200];
};

struct stk_early_item { /* told while the live part is being opened */
    stk_job_number number;
    uint32_t item;
    int code;
};

struct stk_daemon {
    uv_loop_t loop;
    struct stk_daemon_options opt;
    struct stk_config config;
    struct stk_setup setup;
    struct stk_machine machine;
    json_t *rules;        /* of the configuration's file of rules; NULL: there is none */
    json_t *policy_words; /* of the configuration */
    int64_t rules_every_s;
    uint64_t nofile; /* soft limit of files before we raised it: that of jobs */
    char *state, *socket;
    char whatif[4096]; /* stoker-whatif; "": it is not there */
    char *found;       /* configuration that nobody named */
    struct stk_store *store;
    struct stk_engine *engine;
    bool slurm; /* the engine is Slurm's; else it is the local one */
    struct {
        stk_job_number number;
        uint32_t job;
    } slurm_array; /* Slurm's number of the array that was looked up last */
    struct stk_live *live;
    struct stk_early_item *early;
    uint32_t n_early;
    struct stk_api *api;
    struct stk_gpuwatch *watch;
    struct stk_idlers *idlers;
    struct stk_sampler *sampler;
    struct stk_watchman *watchman;
    struct stk_gpu_note gpu_notes[STK_GPUVIEW_MAX];
    uv_prepare_t prepare;
    uv_idle_t idle;
    uv_timer_t wake, linger;
    uv_signal_t on_term, on_int, on_hup;
    struct stk_clock clock;
    struct {
        uv_timer_t timer;
        uint64_t rows; /* stk_store_rows_changed() as of the last turn or step */
        uint64_t owed; /* rows to delete before the next turn, while there are old ones */
        bool due;      /* a step is due */
        bool wal_told; /* a warning about the size of the WAL was logged */
    } forget;
    bool foresees;          /* a forecast is being made, slice by slice */
    uint64_t retry_ms;      /* a turn that failed is tried again then; 0: none failed */
    struct stk_err trouble; /* ... and why it failed */
    bool stopping, failed;
    uint64_t status_ms;
};

/* run.c */
/* Timers and signals: to be called before anybody is told that the daemon is ready. */
void stk_daemon_prepare(struct stk_daemon *d);
int stk_daemon_run(struct stk_daemon *d, struct stk_err *err);
/* Makes the turn that is due, if one is, and says whether the store can be written to now: no
 * transaction is open, and the last one was written. For timers, not inside a turn. */
bool stk_daemon_may_write(struct stk_daemon *d);
/* forget.c */
void stk_daemon_forget_init(struct stk_daemon *d);
void stk_daemon_forget_after_turn(struct stk_daemon *d);
/* Makes a step of deleting old jobs if one is due. True: the next turn must wait, more is to be
 * deleted first. No transaction may be open. */
bool stk_daemon_forget(struct stk_daemon *d);
/* run.c */
stk_time stk_daemon_now(void *ctx); /* the daemon */
stk_time stk_daemon_ahead(void *ctx);
stk_time stk_daemon_elapsed(void *ctx);
stk_time stk_daemon_behind(void *ctx);
stk_time stk_daemon_skip(void *ctx);
void stk_daemon_clock_raise(void *ctx, stk_time least);
/* Something could not be written down. */
void stk_daemon_try_later(struct stk_daemon *d, const struct stk_err *err);
/* The policy as the configuration has it: a new reference; NULL: out of memory. */
json_t *stk_daemon_policy(const struct stk_config *c);
/* How jobs take turns, as the engine wants it. */
void stk_daemon_turns(const struct stk_config *c, uint32_t *ret_quantum_ms,
                      uint32_t *ret_switch_pct);
void stk_daemon_live_config(const struct stk_daemon *d, const struct stk_setup *setup,
                            const struct stk_config *c, struct stk_live_config *ret);

/* settle.c: all that can be wrong with a configuration, found before anything is done with it: at a
 * start, at SIGHUP, and by --check. The machine must be known. */
struct stk_settled {
    struct stk_setup setup;
    json_t *rules; /* of the file of rules; NULL: there is none */
    int64_t rules_every_s;
};
int stk_daemon_settle(const struct stk_daemon *d, struct stk_config *c, struct stk_settled *ret,
                      struct stk_err *err);
/* Users and groups that this system does not know, and parameters that do nothing under these
 * policies, each with a sentence. */
void stk_daemon_warn(const struct stk_config *c, void (*tell)(void *ctx, const char *sentence),
                     void *ctx);
void stk_daemon_log_warnings(const struct stk_config *c); /* the same into the log */

/* Where and how to listen. */
struct stk_http_tcp stk_daemon_tcp(const struct stk_config *c);

/* check.c: --check: says whether the daemon would start with this configuration. */
int stk_daemon_check(struct stk_daemon *d, struct stk_err *err);

/* main.c: the array a job belongs to, as engines ask for it; false: none. */
bool stk_daemon_array(void *ctx, stk_job_number number, stk_job_number *ret_array,
                      uint32_t *ret_index);
/* slurm.c: the daemon on a Slurm cluster. Opens the engine; nodes, pools and types are Slurm's. */
int stk_daemon_slurm_open(struct stk_daemon *d, struct stk_err *err);
void stk_daemon_slurm_ready(struct stk_daemon *d); /* the scheduler is open */
/* slurm_jobs.c: users' own jobs; as in struct stk_slurm_config. */
extern const struct stk_who stk_daemon_slurm_who; /* as whom the engine acts */
void stk_daemon_slurm_act(struct stk_daemon *d, const char *verb, const stk_job_number *numbers,
                          uint32_t n, json_t *take_args);
void stk_daemon_slurm_bring(void *ctx, uint32_t uid, json_t *take_job, const char *key,
                            json_t *take_made);
void stk_daemon_slurm_hold(void *ctx, const stk_job_number *numbers, uint32_t n, const char *why);
void stk_daemon_slurm_rest(void *ctx, stk_job_number number, int64_t until, const char *sentence);
void stk_daemon_slurm_gone(void *ctx, stk_job_number number, const char *sentence);
int64_t stk_daemon_slurm_limit(void *ctx, stk_job_number number);
enum stk_job_state stk_daemon_slurm_state(struct stk_daemon *d, stk_job_number number);
bool stk_daemon_slurm_waits(struct stk_daemon *d, stk_job_number number); /* or is held */
void stk_daemon_slurm_know(struct stk_daemon *d); /* the engine learns which were taken in */
void stk_daemon_slurm_missing(void *ctx);         /* those that went without a word are gone */
/* As in struct stk_live_config. */
int stk_daemon_slurm_may_last(void *ctx, const struct stk_live_last *ask, struct stk_err *err);
/* slurm_changes.c; as in struct stk_slurm_config. */
void stk_daemon_slurm_changed(void *ctx, const stk_job_number *numbers, uint32_t n,
                              const json_t *wish);
void stk_daemon_slurm_booked(void *ctx, const json_t *list); /* slurm_booked.c */
/* slurm_groups.c: Slurm's accounts and QOS, and what they mean here; NULL: they are not known. */
void stk_daemon_slurm_groups(void *ctx, const json_t *groups);
json_t *stk_daemon_slurm_means(struct stk_daemon *d);
/* Account and QOS of a job that is sent to Slurm; as in struct stk_slurm_config. */
void stk_daemon_slurm_names(void *ctx, stk_job_number number, json_t *o);
/* Account and QOS of a user's own job, as tenant, and queue, class or priority, into 'job' where
 * the configuration maps them. The tenant of which its user need not be a member, as Slurm lets
 * nobody use an account that is not theirs; NULL: none. */
const char *stk_daemon_slurm_map(const struct stk_daemon *d, json_t *job);
/* What a list of "name=value" has for it; NULL: nothing. */
const char *stk_daemon_slurm_mapped(char *const *list, const char *name);
/* slurm_pools.c: the partition of a job whose description names this pool, or none (NULL). Jobs are
 * confined to the nodes of theirs. */
const char *stk_daemon_slurm_partition(const struct stk_daemon *d, const struct stk_entry *e,
                                       const char *pool);
void stk_daemon_slurm_confine(struct stk_daemon *d);
/* -EINVAL: a partition that is in slurm.partitions no more has jobs that have not ended. */
int stk_daemon_slurm_check_left_out(struct stk_daemon *d, struct stk_err *err);
/* slurm_numbers.c: Slurm's numbers; as in struct stk_api_config. */
void stk_daemon_slurm_name(void *ctx, const struct stk_record *rec, bool deep, char *buf,
                           size_t size);
stk_job_number stk_daemon_slurm_number(void *ctx, uint32_t slurm);
void stk_daemon_slurm_detail(struct stk_daemon *d, stk_job_number number, json_t *job);

/* What things cost, as the configuration says, to the API. */
void stk_daemon_cost(struct stk_daemon *d);
void stk_daemon_logins(struct stk_daemon *d);

/* whose.c: the job a process belongs to, 0: none of ours. uid UINT32_MAX: not known. */
stk_job_number stk_daemon_job_of(struct stk_daemon *d, pid_t pid, uint32_t uid);
/* Whether it is MPS's own, of the MPS that serves our jobs on this GPU. */
bool stk_daemon_is_mps(struct stk_daemon *d, pid_t pid, uint32_t uid, uint32_t gpu);

/* adopt.c: a process that was started by hand becomes a job; as in stk_api_config. */
int stk_daemon_adopt(void *ctx, const struct stk_who *who, json_t *body, stk_reply_fn reply,
                     void *reply_ctx, struct stk_err *err);

/* reload.c */
void stk_daemon_reload(struct stk_daemon *d);

/* gpuwatch.c: runs "stoker-gpu watch" and acts on what it says. */
int stk_gpuwatch_new(struct stk_daemon *d, struct stk_gpuwatch **ret, struct stk_err *err);
void stk_gpuwatch_free(struct stk_gpuwatch *w); /* NULL is a no-op; memory goes with the loop */

/* As in stk_live_config; 'ctx' is the daemon. */
int stk_gpuwatch_fault(void *ctx, const struct stk_gpu_span *span, char *text, size_t size);
void stk_gpuwatch_resumed(void *ctx, uint32_t node, uint64_t mask);

/* keep.c: a named value of the daemon's own in the store. -EAGAIN: not now. */
int stk_daemon_keep(struct stk_daemon *d, const char *name, const char *value);

/* idle.c: looks after jobs that do nothing. */
int stk_idlers_new(struct stk_daemon *d, struct stk_idlers **ret, struct stk_err *err);
void stk_idlers_free(struct stk_idlers *w); /* NULL is a no-op; memory goes with the loop */

/* sample.c: measurements over time. To be freed before the API and the store. */
struct stk_series;
int stk_sampler_new(struct stk_daemon *d, struct stk_sampler **ret, struct stk_err *err);
int stk_sampler_nodes(struct stk_sampler *w, uint32_t n); /* so many from now on; -ENOMEM */
struct stk_series *stk_sampler_series(struct stk_sampler *w);
/* Adds what is not written yet; as in stk_api_config. */
void stk_sampler_usage(void *ctx, stk_job_number number, struct stk_usage *u);
void stk_sampler_free(struct stk_sampler *w); /* NULL is a no-op; memory goes with the loop */

/* alerts.c: looks after every look of the sampler. */
int stk_watchman_new(struct stk_daemon *d, struct stk_watchman **ret, struct stk_err *err);
void stk_watchman_look(struct stk_watchman *w, const struct stk_sampler *m, stk_time now);
void stk_watchman_skip(struct stk_watchman *w, stk_time by); /* the time has jumped */
void stk_watchman_reload(struct stk_watchman *w);            /* other rules */
void stk_watchman_free(struct stk_watchman *w);              /* NULL is a no-op */

#endif
