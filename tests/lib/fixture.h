/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h - a small world around a core, for tests: a cluster, an allocator that counts, a
 * journal of what was accepted, and a fake engine that acts at once or takes its time.
 *
 *     struct fx *f = fx_new(&(struct fx_setup){.backfill = "easy"});
 *     uint32_t job = fx_submit(f, fx_job(4, 100));       4 GPUs for 100 seconds
 *     fx_turn(f); fx_drain(f); fx_free(f);
 *
 * What must hold always is checked on the way and aborts with a sentence: decide() allocates
 * nothing, its proposals are accepted, an instant comes to rest, nothing leaks. The engine's delays
 * are drawn from a seed: STARTED may come late or not at all before the exit, evictions may take
 * long.
 */
#ifndef STK_TESTS_LIB_FIXTURE_H
#define STK_TESTS_LIB_FIXTURE_H

#include "base/rng.h"
#include "core/core.h"
#include "core/state.h"
#include "model/reason.h"

#define FX_MAX_CAP 256

struct fx_setup {                                   /* what is left out has a sensible value */
    const char *order, *backfill, *place, *preempt; /* fifo, skip, pack, none */
    const char *params;                             /* "k=v k=v" */
    const struct stk_node_spec *nodes;              /* 2 nodes of 8 GPUs */
    uint32_t n_nodes, n_pools;
    const struct stk_speeds *speeds;
    const uint32_t *type_speed;            /* as in stk_core_config */
    uint32_t n_resources;                  /* named r0, r1, ... */
    const struct stk_tenant_spec *tenants; /* none */
    uint32_t n_tenants;
    const struct stk_queue_spec *queues; /* none */
    uint32_t n_queues;
    const struct stk_layout *layouts; /* of their GPUs; none */
    uint32_t n_layouts;
    bool forget; /* finished jobs are dropped, 'retain' kept; else all are kept */
    uint32_t retain;
    uint32_t cap; /* of decide(); 256 */
    stk_time
        off_after; /* nodes whose power is known are switched off when empty so long; 0: never */
    stk_time late_start, slow_stop; /* longest delay of STARTED and of an eviction's EXITED */
    bool patient;       /* the engine acts when all is decided, not after each call of decide() */
    uint32_t crash_pct; /* leases that end without ever having started */
    uint32_t final_pct; /* ends that are not worth a restart */
    uint32_t sleep_pct; /* evictions that end with the job asleep, where that was asked for */
    uint64_t seed;      /* of the engine's delays */
};

struct fx_heap {
    uint64_t calls, live;
    uint64_t fail_at; /* this call and all later ones fail; 0: none does */
};

struct fx_note { /* an event the engine will report */
    stk_time at;
    uint64_t seq;
    struct stk_event ev;
};

struct fx_record { /* an accepted event, with all it points to */
    struct stk_event ev;
    struct stk_job_spec spec;
    struct stk_set set;
    struct stk_dep *deps;
    struct stk_piece *pieces;
    struct stk_booking_spec booking;
    struct stk_node_set nodes;
    struct stk_node_range *ranges;
};

struct fx_work {    /* by job slot */
    stk_time left;  /* true run time still to do */
    stk_time since; /* start of the lease that runs */
    bool halted;    /* it gets on no more: told to stop, or asleep */
    enum stk_cause ends;
};

struct fx {
    struct stk_core *core;
    const struct stk_state *s;
    struct fx_setup setup;
    struct fx_heap heap;
    struct stk_err err;
    stk_time now;
    struct stk_rng rng;
    struct fx_note *notes;
    uint32_t n_notes, cap_notes;
    uint64_t seq;
    struct fx_work *work;
    uint32_t cap_work;
    struct fx_record *log;
    uint32_t n_log, cap_log;
    uint64_t decisions;
    bool wild; /* events came from elsewhere too: the engine's reports may be refused */
    void (*on_turn)(struct fx *f, void *ctx);                 /* optional, after each turn */
    void (*before)(struct fx *f, const struct stk_event *ev); /* optional, before each decision */
    void *ctx;
};

/* Aborts with the sentence unless true. */
void fx_must(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first 'n' of: default; org over a and b; c; d. */
void fx_org(struct stk_tenant_spec *table, uint32_t n);

struct stk_mem fx_mem(struct fx_heap *h);
struct fx *fx_new(const struct fx_setup *setup);
/* One more core of the same making, on the fixture's heap. */
struct stk_core *fx_core(struct fx *f);
void fx_free(struct fx *f); /* and nothing may have leaked */

/* A training job of that many GPUs that may be cut; runs and says it runs that many seconds. */
struct stk_job_spec fx_job(uint32_t gpus, int64_t seconds);
uint32_t fx_submit(struct fx *f, struct stk_job_spec spec);       /* must be accepted; its slot */
int fx_try_submit(struct fx *f, const struct stk_job_spec *spec); /* its result */
int fx_apply(struct fx *f, const struct stk_event *ev);           /* at ev->at; recorded when 0 */
int fx_update(struct fx *f, uint32_t job, int32_t priority, stk_time estimate);
int fx_change(struct fx *f, uint32_t job, const struct stk_job_spec *spec); /* all it asks for */
/* One that runs may run so long in all, and does; its engine ends it then. */
int fx_lasts(struct fx *f, uint32_t job, stk_time in_all);
int fx_job_event(struct fx *f, enum stk_event_type type, uint32_t job); /* now, for its lease */
int fx_exit(struct fx *f, uint32_t job, enum stk_cause cause);
int fx_place(struct fx *f, uint32_t job, const struct stk_piece *pieces, uint32_t n);
int fx_node(struct fx *f, uint32_t node, bool up);
int fx_gpus_off(struct fx *f, uint32_t node, uint64_t mask);
int fx_node_off(struct fx *f, uint32_t node);
int fx_set(struct fx *f, const struct stk_set *set);
/* GPUs set aside, for those who name 1, from so many seconds on until then. */
struct stk_booking_spec fx_booking(uint32_t gpus, int64_t start_s, int64_t end_s);
int fx_reserve(struct fx *f, struct stk_booking_spec spec); /* its number is filled in */
int fx_unreserve(struct fx *f, uint32_t number);
/* The set of nodes is those of the mask. */
int fx_nodes(struct fx *f, uint32_t number, uint64_t mask);
int fx_cancel(struct fx *f, uint32_t job); /* and the engine stops it */
/* A person suspends it: it gives way and is held; the engine puts it to sleep, or ends it. */
int fx_suspend(struct fx *f, uint32_t job);
/* It is stopped to be placed elsewhere, for nobody in particular. */
int fx_move(struct fx *f, uint32_t job);
/* One that sleeps is ended, and queued again as it was before. */
int fx_wake_anew(struct fx *f, uint32_t job);
/* Somebody killed the processes of one that sleeps. */
int fx_kill(struct fx *f, uint32_t job, enum stk_cause cause);

/* Applies what decide() proposes until it proposes nothing; no engine. How many were applied. */
uint32_t fx_decide(struct fx *f);
/* One turn at f->now, as drive/loop.c does it: reports, tick, decisions, which the engine acts on.
 */
void fx_turn(struct fx *f);
stk_time fx_next(const struct fx *f);      /* when anything will happen; STK_NEVER_TIME */
void fx_run(struct fx *f, stk_time until); /* turns up to and including that time */
void fx_drain(struct fx *f);               /* until nothing will ever happen again */

struct stk_job *fx_of(const struct fx *f, uint32_t job);
enum stk_job_state fx_state(const struct fx *f, uint32_t job);
enum stk_reason_code fx_why(struct fx *f, uint32_t job);
void fx_sound(const struct fx *f);
/* The journal into a fresh core must give the same state; returns that core. */
struct stk_core *fx_replay(struct fx *f);
uint64_t fx_digest(const struct fx *f);
/* The first 'upto' events of the journal into a fresh core; the rest into one that has them. */
struct stk_core *fx_replay_some(struct fx *f, uint32_t upto);
void fx_replay_rest(struct fx *f, struct stk_core *core, uint32_t from);
/* The core saved and loaded into one made from 'setup' (NULL: the same), which is returned. */
struct stk_core *fx_reload(struct fx *f, const struct stk_core *core, const struct fx_setup *setup);

struct fx *fx_plain(void);    /* fifo, all else by default */
void fx_finish(struct fx *f); /* sound, equal after a replay, and freed */
/* A job that runs on exactly these GPUs of the node. */
uint32_t fx_run_on(struct fx *f, uint32_t node, uint32_t gpus, uint64_t mask);

#endif
