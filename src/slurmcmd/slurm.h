/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.h - what the Slurm-compatible commands share: the connection, jobs by the ids Slurm gives
 * them, and states in Slurm's words.
 *
 * The commands honour what tools call; anything else is refused by name, because a command that
 * seems to work is worse than one that is missing. Exit codes: 0 done, 1 it failed, 2 not
 * understood.
 */
#ifndef STK_SLURMCMD_SLURM_H
#define STK_SLURMCMD_SLURM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "client/away.h"
#include "client/client.h"
#include "spec/opts.h"
#include "sys/json.h"

#define STK_SLURM_VERSION "stoker-slurm 0.1.0"

struct stk_slurm {
    const char *name; /* of the command, for messages */
    struct stk_client *c;
    json_t *nodes;
    char pool[64]; /* the pool of every node; "": there are several */
};

/* The commands. argv[0] is the command's name. */
int stk_sbatch_main(int argc, char **argv);
int stk_srun_main(int argc, char **argv);
int stk_squeue_main(int argc, char **argv);
int stk_scancel_main(int argc, char **argv);
int stk_scontrol_main(int argc, char **argv);
int stk_sinfo_main(int argc, char **argv);
int stk_sacct_main(int argc, char **argv);
int stk_sacctmgr_main(int argc, char **argv);

/* Nothing is connected yet. 0, or the exit code after having said why. */
int stk_slurm_open(struct stk_slurm *s, const char *name);
void stk_slurm_close(struct stk_slurm *s);

/* "squeue: error: sentence" on standard error. fail returns 1, misuse 2. */
int stk_slurm_fail(const struct stk_slurm *s, const struct stk_err *err);
int stk_slurm_misuse(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void stk_slurm_say(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The options have been read, with 'rc' from the last: 0 when no words are left over, else 2. */
int stk_slurm_flags_only(const struct stk_opts *o, int rc, const struct stk_err *err);

/* The nodes, read once. */
int stk_slurm_nodes(struct stk_slurm *s, struct stk_err *err);

/* Appends the jobs of all pages; 'query' is "" or "&user=...". detail: with their description. */
int stk_slurm_live(struct stk_slurm *s, const char *query, bool detail, json_t *jobs,
                   struct stk_err *err);
int stk_slurm_ended(struct stk_slurm *s, const char *query, bool detail, json_t *jobs,
                    struct stk_err *err);

/* Appends what "12", "12_4", "12_[1-3,7]" and lists of these mean. ended: elements of arrays that
 * have ended too. -ENOENT: no such job. */
int stk_slurm_find(struct stk_slurm *s, const char *ids, bool ended, json_t *jobs,
                   struct stk_err *err);

/* The daemon did not answer: says so when that has lasted, and waits for a while or a signal. */
void stk_slurm_away(const struct stk_slurm *s, struct stk_away *away, int signals);
/* Waits until the job has ended, also over restarts of the daemon. */
int stk_slurm_wait(struct stk_slurm *s, uint32_t number, json_t **ret_job, struct stk_err *err);

/* What a program that ran the job should exit with. */
int stk_slurm_exit_code(const json_t *job);

/* States. */
struct stk_slurm_state {
    const char *code, *name; /* "PD", "PENDING" */
};
const struct stk_slurm_state *stk_slurm_state(const json_t *job);
/* Is the state in a list such as "PD,RUNNING,all"? -EINVAL: a word of it is unknown. */
int stk_slurm_state_in(const struct stk_slurm_state *state, const char *list, bool *ret);
bool stk_slurm_is_pending(const json_t *job);

/* "12" or "12_4". */
const char *stk_slurm_id(const json_t *job, char *buf, size_t size);
/* "1-02:03:04" as squeue (short: "2:03") and sacct ("00:02:03") write them. */
const char *stk_slurm_span(int64_t seconds, bool whole, char *buf, size_t size);
/* "2026-01-02T03:04:05", or "Unknown"/"N/A" for none. */
const char *stk_slurm_when(double at, const char *none, char *buf, size_t size);

#endif
