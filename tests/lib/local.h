/* SPDX-License-Identifier: Apache-2.0 */
/* local.h - a local engine with real shims in a folder of its own, for tests: what it emits is
 * kept, and waiting means running the loop. When run by root, jobs are those of user 65534. */
#ifndef STK_TESTS_LIB_LOCAL_H
#define STK_TESTS_LIB_LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "engine/local/local.h"

#define LW_MAX_EVENTS 4096
#define LW_GPUS 8

struct lw {
    uv_loop_t loop;
    char dir[64];  /* all of it; everybody may enter */
    char home[96]; /* the working directory of jobs, owned by their user */
    uid_t uid;
    struct stk_engine *e;
    struct stk_event ev[LW_MAX_EVENTS];
    uint32_t n_ev;
    char note[1024]; /* the last sentence about any job */
    char notes[16384];
    bool real_gpus;
    const char *gpu_helper, *mps, *cgroup_mode;
    uint32_t mps_ms;
    const char *cpus[2]; /* near the first and the second half of the GPUs; NULL: not known */
    uint64_t gpu_used_mib;
    uint32_t quantum_ms, switch_pct;
    uint64_t adopt_mask;        /* GPUs of a job that is adopted; 0: they are not told */
    int32_t next_item, n_items; /* batch: handed out in order */
    int item_code[64];
    uint32_t items_done;
};

void lw_open(struct lw *w);  /* a new folder and an engine in it */
void lw_close(struct lw *w); /* ends every job, removes the folder */
void lw_engine_open(struct lw *w);
void lw_engine_close(struct lw *w); /* as when the daemon ends: jobs go on */
/* Writes a stoker-gpu that notes its arguments in helper.log and answers as given; the engine is
 * opened anew, with GPUs that it serves. */
void lw_gpu_helper(struct lw *w, const char *body);

/* Two CPUs that we may use, as text; false: there are no two. */
bool lw_two_cpus(char cpu[2][8]);

/* A description: the members given (JSON text without braces) and whose job it is. */
const char *lw_spec(const struct lw *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* command: ["/bin/sh", "-c", script] and other members ("" for none) */
const char *lw_sh(const struct lw *w, const char *script, const char *more);

void lw_start(struct lw *w, uint32_t number, uint32_t lease, const char *spec);
void lw_start_on(struct lw *w, uint32_t number, uint32_t lease, const char *spec, uint64_t mask,
                 uint32_t tasks, uint32_t restarts);
void lw_resume(struct lw *w, uint32_t number, uint32_t lease, uint64_t mask);
void lw_resume_seat(struct lw *w, uint32_t number, uint32_t lease, uint64_t mask); /* in turns */
void lw_stop(struct lw *w, uint32_t number, uint32_t lease, enum stk_cause cause, bool suspend);
void lw_settle(struct lw *w, uint32_t number, uint32_t lease);
/* One job to adopt. */
void lw_adopt(struct lw *w, uint32_t number, uint32_t lease, enum stk_job_state state, bool resume,
              bool asleep, const struct stk_stop *stop, const char *spec);

/* Runs the loop until the job has such an event; fails the test when it does not come. Returns it
 * and takes it out of the list. */
struct stk_event lw_wait(struct lw *w, uint32_t number, enum stk_event_type type);
bool lw_has(const struct lw *w, uint32_t number, enum stk_event_type type);
void lw_spin(struct lw *w, int ms);
bool lw_until(struct lw *w, bool (*fn)(void *ctx), void *ctx);        /* false: it did not come */
void lw_until_text(struct lw *w, const char *path, const char *text); /* a file holds the text */

/* Makes "go" in the working directory of jobs: those that wait for it go on. */
void lw_say_go(const struct lw *w);

/* Starts it, waits for STARTED and EXITED, settles. */
struct stk_event lw_run(struct lw *w, uint32_t number, const char *spec);

char *lw_read(const struct lw *w, const char *name); /* file in home; NULL: none; free() it */
char *lw_log(const struct lw *w, uint32_t number);   /* stoker-NUMBER.out */
uint32_t lw_run_files(const struct lw *w);           /* how many files are in run/ */

#endif
