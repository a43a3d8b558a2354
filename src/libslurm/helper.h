/* SPDX-License-Identifier: Apache-2.0 */
/* helper.h - the parts of stoker-libslurm. docs/spec/libslurm.md has what it is told and
 * what it says. */
#ifndef STK_LIBSLURM_HELPER_H
#define STK_LIBSLURM_HELPER_H

#include <jansson.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "slurmctld/where.h"

/* The number of a job in a request or an answer of Slurm's, by the headers that there are. */
#ifdef STK_SLURM_STEP_ID
#define STK_SLURM_NUMBER(p) ((p)->step_id.job_id)
#else
#define STK_SLURM_NUMBER(p) ((p)->job_id)
#endif

/* ---- say.c: lines to the daemon ---- */

void stk_slurm_say(json_t *take_line); /* ends the program when nobody listens any more */
void stk_slurm_say_line(const char *line, size_t n); /* likewise; a line with its end */
/* What a request came to, under its id. */
void stk_slurm_answer(const json_t *request, json_t *take_out);
/* What Slurm said last, in words, and what to look at where we know it. */
const char *stk_slurm_trouble(int error);
bool stk_slurm_unanswered(int error);  /* slurmctld may have done it, or not */
bool stk_slurm_passes(int error);      /* it may do later what it refuses now, asked the same way */
json_t *stk_slurm_text(const char *s); /* "" for NULL; what is no UTF-8 is replaced */
json_t *stk_slurm_cut(const char *s, size_t most); /* likewise, of so many bytes at most */

int64_t stk_slurm_now_ms(void);

/* ---- boot.c: which slurmctld answers ---- */

/* When it was started (Unix); 0, or Slurm's error. */
int stk_slurm_boot(int64_t *ret_boot);
/* The answer to a request that was made for an earlier slurmctld, and is not to be done; NULL: it
 * is. */
json_t *stk_slurm_too_old(const json_t *request);

/* ---- told.c: jobs that the daemon was told of; may be called from several threads ---- */

struct stk_slurm_told;

struct stk_slurm_told *stk_slurm_told_new(void);
void stk_slurm_told_free(struct stk_slurm_told *t); /* NULL is a no-op */
/* Everything is told anew. */
void stk_slurm_told_clear(struct stk_slurm_told *t);
/* All jobs, or one, as of an answer that was asked for at 'asked' (ms): what is new is told.
 * 'after', 'boot': what shows in it, and of which slurmctld, or an earlier one, it is. */
void stk_slurm_told_whole(struct stk_slurm_told *t, const job_info_msg_t *m, int64_t asked,
                          json_int_t after, int64_t boot);
/* The request with this number was done, and all before it that change jobs: what is asked for from
 * now on shows that. And which was last; 0: none yet. */
void stk_slurm_told_answered(struct stk_slurm_told *t, json_int_t id);
json_int_t stk_slurm_told_last(struct stk_slurm_told *t);
void stk_slurm_told_one(struct stk_slurm_told *t, const job_info_msg_t *m, int64_t asked);
/* Slurm has taken it: it is said to be gone when it is not among all. */
void stk_slurm_told_sent(struct stk_slurm_told *t, uint32_t id, int64_t now);
/* We have changed it: what was asked for before is old. */
void stk_slurm_told_changed(struct stk_slurm_told *t, uint32_t id, int64_t now);
/* Jobs that ran on the node when they were told last: how many are in 'ids', 'max' at most. */
uint32_t stk_slurm_told_on(struct stk_slurm_told *t, const char *node, uint32_t *ids, uint32_t max);
uint32_t stk_slurm_told_highest(struct stk_slurm_told *t); /* number; 0: none yet */

/* ---- watch.c: what there is, told when it has changed ---- */

struct stk_slurm_watch;

struct stk_slurm_watch *stk_slurm_watch_new(struct stk_slurm_told *told);
/* Its thread ends. NULL is a no-op. */
void stk_slurm_watch_stop(struct stk_slurm_watch *w);
void stk_slurm_watch_free(struct stk_slurm_watch *w); /* likewise, and all of it */
/* Is called, in the watch's thread, with jobs that may have ended, as their nodes have changed. */
typedef void (*stk_slurm_watch_fn)(void *ctx, uint32_t id);
void stk_slurm_watch_follow(struct stk_slurm_watch *w, stk_slurm_watch_fn fn, void *ctx);
void stk_slurm_watch_soon(struct stk_slurm_watch *w); /* now, as far as that is not too dear */
/* What was told may not be so: all is told anew with the next look. */
void stk_slurm_watch_doubt(struct stk_slurm_watch *w);
/* How often to look when all is quiet. */
void stk_slurm_watch_every(struct stk_slurm_watch *w, int ms);
/* A plugin says when jobs end: all of them need not be asked for so often. */
void stk_slurm_watch_pushed(struct stk_slurm_watch *w, bool pushed);

/* ---- hear.c: what plugins say, and single jobs, in a thread ---- */

struct stk_slurm_hear;

struct stk_slurm_hear *stk_slurm_hear_new(struct stk_slurm_told *told,
                                          struct stk_slurm_watch *watch);
/* NULL is a no-op. The watch has been stopped, and is not freed yet. */
void stk_slurm_hear_free(struct stk_slurm_hear *h);
/* Something was asked of Slurm about it, which shows soon. */
void stk_slurm_hear_follow(struct stk_slurm_hear *h, uint32_t id, bool hurry);
/* Jobs were released: Slurm is to look now, at its whole queue or at the top of it. */
void stk_slurm_hear_pass(struct stk_slurm_hear *h, bool all);

/* ---- plugin.c: sched/stoker in slurmctld, where it is ---- */

struct stk_slurm_plugin;

struct stk_slurm_plugin *stk_slurm_plugin_new(void);
void stk_slurm_plugin_free(struct stk_slurm_plugin *p);    /* NULL is a no-op */
int stk_slurm_plugin_fd(const struct stk_slurm_plugin *p); /* -1: none */
bool stk_slurm_plugin_there(const struct stk_slurm_plugin *p);
/* Jobs were released: Slurm is to look now, at its whole queue or at the top of it. */
void stk_slurm_plugin_pass(struct stk_slurm_plugin *p, bool all);
/* Says that we are here, now and then, and what there was no room for; when to call it again, in
 * ms. */
int64_t stk_slurm_plugin_hear(struct stk_slurm_plugin *p, int64_t now);
/* The next word that has come (slurmctld/where.h); false: none. Changes nothing of 'p'. */
bool stk_slurm_plugin_read(const struct stk_slurm_plugin *p, char word[STK_SLURMCTLD_WORD]);
/* It has answered: it is there. */
void stk_slurm_plugin_heard(struct stk_slurm_plugin *p, int64_t now);

/* ---- job.c ---- */

json_t *stk_slurm_job(const slurm_job_info_t *j);
/* Two jobs with the same digest look the same. */
uint64_t stk_slurm_job_digest(const slurm_job_info_t *j);
uint64_t stk_slurm_mix_text(uint64_t h, const char *s); /* NULL is "" */
json_t *stk_slurm_show_gpus(const char *text); /* [{"type", "count", "indices"}]; null: what? */

const char *stk_slurm_state_name(uint32_t state); /* "running" */

/* ---- left.c, past.c: jobs that slurmctld has lost or forgotten ---- */

json_t *stk_slurm_left(json_t *o); /* nodes with processes of a job */
/* Tells all reservations when one has changed since. 1: it was told, 0: nothing is new; < 0:
 * Slurm's error. */
int stk_slurm_look_reservations(time_t *io_at);
json_t *stk_slurm_show_groups(json_t *o); /* accounts and QOS */
json_t *stk_slurm_past(json_t *o);        /* what accounting says of it */
bool stk_slurm_accounts(void);            /* there is accounting */
json_t *stk_slurm_enforces(void);         /* {"associations", "limits", "qos"}: true or false */

/* ---- work.c: what the daemon asks for ---- */

/* 'op' and its members; the answer without its id. */
json_t *stk_slurm_work(json_t *request);

/* ---- slow.c: what may take long, in a thread ---- */

struct stk_slurm_slow;

struct stk_slurm_slow *stk_slurm_slow_new(void);
void stk_slurm_slow_free(struct stk_slurm_slow *s); /* NULL is a no-op */
bool stk_slurm_is_slow(const char *op);
void stk_slurm_slow_ask(struct stk_slurm_slow *s, json_t *take_request); /* it is answered there */

#endif
