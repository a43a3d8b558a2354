/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the scheduler's state: flat tables addressed by handles, no pointers between rows.
 *
 * Two kinds of members. *State* is what events make it; it goes into the digest and must be equal
 * after a replay. *Caches* (marked) are what deciding remembers: indexes, parked shapes, and the
 * starts that backfill has promised. They hold no facts; dropped, they are made again from the
 * state, and a promise made later may be another one.
 *
 * Core files write here, inside apply(). Policies read.
 */
#ifndef STK_CORE_STATE_H
#define STK_CORE_STATE_H

#include "base/bits.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/otree.h"
#include "base/sort.h"
#include "core/policy.h"
#include "core/seen.h"
#include "core/timeline.h"
#include "model/booking.h"
#include "model/mix.h"
#include "model/node.h"
#include "model/queue.h"
#include "model/topology.h"

/* In order of use: what a start and an end touch lies in the first two cache lines. */
struct stk_job {
    stk_job_number number;
    uint32_t tag;
    uint8_t state, cause;
    unsigned kind : 4, tier : 3, plain : 1; /* plain: as in stk_terms */
    bool cancel_wanted : 1, hold_wanted : 1, suspend_wanted : 1, by_hand : 1; /* by_hand: stopped
        because somebody said so, not to make room */
    bool moving : 1;              /* stopped to be placed elsewhere, and not placed yet */
    unsigned level : 3;           /* cache: the preempt policy's, from tier and priority.
                                     0 where the policy has none */
    uint8_t retry[STK_RETRY_MAX]; /* how often it may still be queued again, by what ended it */
    int32_t priority;
    uint32_t pool, shape;
    uint32_t gpus;      /* of all tasks */
    stk_lease_id lease; /* 0: none */
    uint32_t first_piece, n_pieces;
    uint32_t preemptions;
    uint32_t first_edge; /* its dependents; edge + 1 */
    uint32_t link;       /* free list, or the row of finished jobs */
    stk_time submitted;

    stk_time started; /* of the lease it has; of the last one when it has none */
    stk_time ended;
    stk_time estimate;
    stk_time served;       /* time run under earlier leases */
    stk_time lost;         /* of that, what has to be done again; less what was done faster than
                              at speed 1 */
    int64_t word;          /* the order policy's own */
    int64_t rank;          /* cache: under which key it lies in its tree */
    stk_time expected_end; /* cache: likewise */

    stk_time begin;
    stk_time queued; /* when it last entered the queue */
    int64_t rate;    /* cache: at which its rank moves */
    union {
        stk_time planned;          /* cache: start that conservative backfill planned */
        stk_job_number failed_dep; /* of one that has ended by a dependency: whose end that was */
    };
    uint32_t queue_seq; /* order of entering the queue */
    uint32_t tenant;
    int32_t exit_code;
    stk_job_number array;
    uint32_t array_index;
    uint32_t unmet;     /* dependencies not met yet */
    stk_lease_id slept; /* its processes sleep under this lease; 0: they do not */
    uint32_t restarts;  /* times its processes were started anew */
};

_Static_assert(sizeof(struct stk_job) == 192, "whole cache lines");

/* Waiting jobs that differ in nothing a node could notice. One verdict serves all. */
struct stk_shape {
    struct stk_demand demand;
    uint32_t pool;
    uint32_t kin;                       /* hash of demand and pool, whatever limits it is under */
    uint32_t tenant;                    /* under whose limits its jobs are; tenant + 1; 0: none */
    bool firm;                          /* its jobs may not borrow (core/tenant.h) */
    bool plain;                         /* its jobs are plain, where that makes a difference */
    uint32_t account[STK_QUEUE_OF_MAX]; /* likewise (core/account.h); account + 1 */
    uint32_t gpus;                      /* of all tasks */
    uint32_t refs;                      /* jobs not yet ended; 0: the row may be reused */
    uint32_t need;                      /* GPUs on one node without which not even one piece fits */
    uint32_t next;                      /* same hash, or free list; shape + 1 */
    uint32_t pool_next, pool_prev;      /* the pool's shapes; shape + 1 */
    struct stk_otree
        waiting; /* by (rank, number); aux: remaining time; conservative: planned start */
    /* caches */
    struct stk_otree alone; /* jobs that have GPUs and may get company: by (GPU type, number) */
    uint32_t alone_next, alone_prev;   /* shapes of the pool with such jobs; shape + 1 */
    uint8_t parked;                    /* enum stk_parked */
    bool behind;                       /* parked for room, behind a promise that comes first */
    uint32_t park_next, park_prev;     /* shape + 1 */
    uint32_t park_at;                  /* tenant or account whose limit it is over */
    uint8_t title;                     /* of its first job (core/fair.h): in which heap it is */
    uint32_t search_at, search_wait;   /* pool.n_changes when nobody was found to give way; changes
                                          until the next search (core/decide.c) */
    uint32_t tenant_next, tenant_prev; /* shapes of its tenant, where guarantees are kept; + 1 */
    uint32_t lanes;                    /* the best of them (core/lane.h); lane + 1 */
};

enum stk_parked {
    STK_READY,          /* in its pool's heap of shapes to try (or has no waiting job) */
    STK_PARKED_ROOM,    /* does not fit; woken when a node has 'need' GPUs free */
    STK_PARKED_RESERVE, /* would delay a reservation; woken by any release in the pool, or when the
                           reservation moves, or by a new job of the shape */
    STK_PARKED_LIMIT,   /* over a tenant's limit; woken when that tenant's use falls */
    STK_PARKED_QUEUE,   /* over a limit of a queue; woken when that account falls */
    STK_PARKED_TITLE    /* entitled to GPUs (core/fair.h) that nobody can be evicted from so that it
                           fits; woken by any lease that begins or ends in the pool */
};

/* What is left of a GPU that several may share. Of use only while somebody does. */
struct stk_part {
    uint16_t milli;     /* thousandths left */
    uint8_t share;      /* how those who are there share it, and how many may: enum stk_share */
    uint8_t share_max;  /* 0: as many as fit */
    uint32_t with;      /* share_with of those who are there */
    uint32_t n;         /* pieces there */
    uint32_t mem_mib;   /* memory left, in turns all of it; of no use where it is not known */
    uint8_t slices;     /* of a GPU in MIG mode: memory slices in use, a bit each */
    uint32_t holder[2]; /* of a whole GPU that two may have: who does, as stk_use has it */
};

struct stk_node {
    uint32_t pool, group;
    uint32_t pos; /* among the group's nodes */
    uint32_t gpus, gpus_free;
    uint64_t mask_free; /* aggregate nodes: 0 */
    uint64_t mask_all;  /* likewise */
    uint64_t mask_used; /* leased, likewise; those in mask_part included */
    uint64_t mask_part; /* leased in parts: what is left is in state.parts */
    uint64_t mask_off;  /* take no new jobs; free is what is neither used nor off */
    uint64_t mask_last; /* given when no others are free */
    uint64_t mask_wake; /* cache: GPUs on which jobs sleep; others are given first */
    uint32_t gpu_type, gpu_mem_mib;
    uint32_t n_uses;           /* pieces there */
    uint16_t layout;           /* in state.layouts + 1; 0: none */
    bool held;                 /* by an exclusive job: nobody else may come */
    uint64_t mask_own;         /* its own GPUs, while held; mask_used has all then */
    const uint16_t *instances; /* of stk_node_spec */
    bool up, aggregate;
    bool said_up;           /* by events; one that leaves is not up */
    bool leaving, clearing; /* it goes to another pool; jobs give way to that (core/leave.h) */
    uint8_t mig;            /* model of its GPUs, which are in MIG mode; 0: they are not */
    bool cpu_limited, mem_limited;
    uint64_t cpu_milli, cpu_free, mem_mib, mem_free;
    struct stk_power power;
    bool off;            /* switched off; a piece here switches it on */
    bool closed;         /* takes no new job without GPUs */
    int64_t extra;       /* cache: GPUs of a reserved node that its reservation leaves free */
    uint32_t first_part; /* in state.parts, its first GPU's */
    uint32_t part_level; /* cache: bucket among nodes with shared GPUs; 0: it has none */
};

/* The nodes of one pool with one GPU type, bucketed by free GPUs. */
struct stk_group {
    uint32_t pool, gpu_type;
    uint32_t max_gpus; /* of one node */
    uint32_t first, n; /* in state.group_nodes: by place (core/topo.h), then id, ascending */
    struct stk_bits_layout nodes_layout, bucket_layout;
    size_t words; /* in state.words: bucket b's set at words + b * nodes_layout.n_words */
    size_t used;  /* in state.words: which buckets are not empty */
    size_t count; /* in state.counts: nodes per bucket */
    size_t parts; /* in state.words: nodes with shared GPUs, by the most left of one (part.h) */
};

struct stk_rated { /* active jobs whose rank moves at one rate; row 0 of a pool: those that wait */
    int64_t rate;
    struct stk_otree tree; /* aux: gpus * 2 + (has a lease) */
    /* scratch of a walk (core/walk.h) */
    struct stk_ocursor at;
    const struct stk_oent *e;
    int64_t value, shift; /* rank of e now; what time has added to the keys of the tree */
};

struct stk_pool {
    uint32_t first_group, n_groups;
    uint32_t first_node, n_nodes;      /* in state.pool_nodes */
    uint32_t max_gpus;                 /* of one node */
    uint64_t gpus, gpus_up, gpus_free; /* all; of nodes that are up; of those, free */
    uint64_t gpus_off, gpus_idle_off;  /* off; of nodes that are up, off and not leased */
    uint32_t n_waiting, n_leased;      /* jobs; leased: placed or running */
    uint32_t n_stopping, n_live;       /* stopping with a lease; live: submitted and not ended */
    uint32_t n_asleep;                 /* jobs with 'slept' set */
    uint32_t n_booked, n_open;         /* reservations of its GPUs; of these, open */
    uint32_t n_shapes, first_shape;    /* shape + 1 */
    bool cpu_limited, mem_limited;     /* some node has a limit */
    bool aggregate;                    /* its node only counts GPUs: parts are whole ones there */
    uint64_t max_cpu, max_mem;         /* most of one node; no use where not limited */
    uint32_t level_waiting[STK_LEVEL_MAX]; /* jobs by level, as above */
    uint32_t level_leased[STK_LEVEL_MAX], level_gpus_leased[STK_LEVEL_MAX];
    struct stk_otree ends;   /* leased jobs by expected end (kept when some policy asks) */
    struct stk_rated *rated; /* for policies that decide a pool whole */
    uint32_t n_rated, cap_rated;
    uint32_t *walk; /* scratch: heap of indices into 'rated' */
    uint32_t n_walk, cap_walk;
    uint32_t claim; /* job that others are being evicted for; STK_NONE */
    /* caches */
    stk_time protect_at; /* as in stk_state */
    bool power_short;    /* some job does not start for the power cap */
    uint32_t alone;      /* shapes with jobs that may get company (core/pair.h); shape + 1 */
    bool dirty;          /* something happened that may let a job start */
    bool again;          /* it is looked at again when time has gone on; see stk_ask */
    bool blocked;        /* head of a strict queue does not fit */
    struct stk_heap ready;
    struct stk_heap entitled[2]; /* by title; they go first */
    uint32_t n_changes;          /* leases that began or ended */
    uint32_t title_parked;       /* shapes parked with a title; shape + 1 */
    uint32_t n_behind;           /* shapes with 'behind' set */
    uint32_t resv_claim;         /* how strong the claim of the promise was when last looked at */
    bool late_keys;              /* some shape lies in it under a later job than its first */
    /* lists by 'need', then those of shapes with 'behind': bits, and heads; in state.words and
     * state.counts */
    size_t park_used, park_head;
    struct stk_bits_layout park_layout;
    uint32_t resv_parked; /* shapes parked for the reservation; shape + 1 */
    uint32_t resv_job;    /* STK_NONE */
    uint32_t promised; /* by tenant: the last it was for, while it waits: it stays the first of its
                          level, whatever becomes of places; job + 1 */
    stk_time resv_at;
    uint64_t resv_mask; /* it is pinned: these GPUs of the one node in resv_nodes; else 0 */
    bool resv_tight;    /* it lacks CPU or memory: nobody may use what it leaves */
    bool resv_beside;   /* it lacks a named resource: core/beside.h */
    uint32_t n_resv;    /* nodes, in state.resv_nodes from first_node on */
    /* the first in line (job + 1, 0: none), the start it was first promised, and whether some job
     * of the pool outran a guess since (core/outrun.h) */
    uint32_t first_for;
    stk_time first_at;
    bool outran;
    stk_time pass_at; /* a whole-pool policy's last pass */
    bool plan_valid;
    bool plan_sure;  /* nobody in it but the first is planned by a guess (core/outrun.h) */
    bool plan_holds; /* one that is not valid: every start in it is still possible */
    bool plan_cut;   /* jobs behind the first backfill.depth are not planned yet */
    stk_time plan_made;
    struct stk_timeline plan;
    struct stk_heap due; /* planned jobs by planned start */
    int64_t plan_rank;   /* of the last job planned */
    stk_job_number plan_number;
};

struct stk_edge { /* "child waits for the job in whose list this is" */
    uint32_t child;
    stk_job_number child_number;
    uint32_t type;
    uint32_t next; /* edge + 1 */
};

struct stk_array { /* some of its jobs have not ended; core/array.h */
    stk_job_number number;
    uint32_t open;                         /* jobs that have not ended */
    uint32_t first_edge[STK_DEP_TYPE_MAX]; /* who waits for all of them; edge + 1 */
};

struct stk_tally { /* scratch of sound(): what leases use of one node */
    uint64_t gpus, mask, part, cpu, mem;
    uint32_t uses;
    bool held;
    uint32_t fast[STK_LEVEL_MAX]; /* GPUs that jobs of this level cannot have by eviction */
};

/* What a piece uses on its node. */
struct stk_use {
    uint32_t gpus;
    uint16_t mig;   /* profile of an instance on each GPU of the mask; 0: none */
    uint8_t slot;   /* where each starts; STK_MIG_ANY while that is open */
    uint8_t slices; /* 0: those of the profile from there on; else these, kept for one that comes */
    uint64_t mask, cpu, mem;
    uint32_t gpu_mem;         /* of each GPU of the mask */
    uint16_t milli;           /* of each; 0: all of it */
    uint8_t share, share_max; /* of parts */
    uint32_t holder;          /* of whole GPUs that two may have: job + 1; 0: it is only tried */
    uint32_t share_with;
    struct stk_amounts resources;
    bool whole; /* the node is blocked for all others, too */
};

#define STK_DEFRAG_MOVES 2 /* for one job */
#define STK_MAX_MOVING 64  /* at a time */

#define STK_SCORE_LOG 4096 /* a power of two */

struct stk_score_row { /* the scores of all nodes for one thing wanted (core/score.h) */
    struct stk_want want;
    uint64_t used; /* when it was last; 0: never */
    uint64_t seen; /* changes it knows of */
    double *score; /* -INFINITY: no room */
    double *best;  /* of each block of nodes, prices taken off */
    uint8_t *gpu;
    uint64_t priced; /* prices as of */
};

/* Kinds of pieces counted per node: parts, then by GPUs on one node, 8 and more together. */
#define STK_TAGS 10

/* How a job that gives way leaves: as the tier may, as the job can. */
enum stk_leave {
    STK_LEAVE_SUSPEND, /* asleep, with all it has in memory */
    STK_LEAVE_SIGNAL,  /* warned, with time to save */
    STK_LEAVE_KILL,    /* at once */
    STK_LEAVE_MAX
};

struct stk_stake {  /* what a job has at stake, and how often it gave way (core/stake.h) */
    stk_time saved; /* when it last said that its work is saved; 0: never */
    stk_time day;   /* when the day began in which */
    uint32_t times; /* it gave way so often */
    bool kill;      /* it is being stopped without warning */
};

#define STK_MAX_SIZES 50 /* "1:0,2:0,...": what fits a parameter */

struct stk_by_size { /* a time that depends on the GPUs of a job */
    int64_t upto[STK_MAX_SIZES];
    stk_time us[STK_MAX_SIZES];
    uint32_t n;
};

struct stk_stake_rule { /* parameters */
    stk_time unreported, min_run;
    stk_time spare;   /* what a job must have to spare before its deadline, to be stopped */
    uint32_t per_day; /* 0: as often as it must */
    uint8_t leave[STK_TIER_MAX];
    struct stk_by_size restart, suspend;
    bool latest; /* whoever started last goes first, whatever is lost */
    bool sleeps; /* the engine can put jobs to sleep */
};

struct stk_own { /* of a job with a lease, where guarantees are kept (core/fair.h): what is looked
                    at of many at a time */
    uint32_t stamp; /* of its tenant's walk, if it is its own */
    uint32_t node;  /* all it has is so many GPUs, and nobody else is on them, of this node; else
                       STK_NONE */
    uint32_t gpus;
};

struct stk_victims { /* scratch of a search for who gives way (core/victims.h) */
    struct stk_victim *of;
    struct stk_victim_at *at;
    struct stk_victim_node *nodes;
    uint64_t *have, *most;                   /* per place */
    double *price;                           /* likewise */
    struct stk_sort_item *order, *order_tmp; /* of nodes */
    uint32_t cap_of, cap_at;
};

struct stk_booking { /* GPUs set aside for somebody (core/booking.h); rows in order of their numbers
                      */
    uint32_t number, tag;
    uint8_t holder_kind; /* enum stk_holder */
    uint8_t holder;      /* row in 'holders' */
    bool evict, drain;
    bool exact; /* its nodes were given */
    bool open;  /* its time has come: what is free on its nodes is kept for it */
    bool used;  /* some job of its holder has had GPUs of it since */
    uint32_t pool, gpus;
    uint64_t gpu_types;
    stk_time start, end, grace;
    stk_lease_id opened; /* leases from this one on came after it was opened */
    uint32_t first, n;   /* in 'fences' */
};

struct stk_fence { /* what a reservation needs of one node */
    uint32_t row, node;
    uint32_t gpus;
    uint32_t held; /* free GPUs that are kept for it: nobody else sees them as free */
    uint64_t mask; /* which; 0 on aggregate nodes */
    /* caches */
    uint32_t used; /* GPUs that jobs charged to it have there */
    uint32_t
        late; /* before it is open: GPUs of others there that are expected back after its start */
    uint32_t next; /* on the same node; fence + 1 */
    bool let;      /* scratch: 'held' is given back in a transaction */
};

struct stk_holder_row {
    uint8_t kind; /* enum stk_holder */
    uint32_t id;
    uint32_t refs; /* reservations of its; 0: the row may be reused */
};

#define STK_MAX_TIRED 64

struct stk_drain {         /* GPUs kept free for single jobs (core/drain.h) */
    stk_time after, limit; /* parameters; 0: never */
    uint32_t gpus;         /* jobs of at least so many */
    uint32_t most, share;  /* share in thousandths */
    struct {
        stk_job_number job;
        stk_time until;
    } tired[STK_MAX_TIRED]; /* jobs for which it was given up, and until when there is no other */
    uint32_t n_tired;
    stk_time look_at;             /* cache: before that nobody has one to get */
    stk_time wake_at;             /* cache: when somebody may have, whatever happens before */
    stk_time all_earned;          /* cache: then all that wait have waited long enough */
    struct stk_booking_spec spec; /* scratch */
};

struct stk_book {
    struct stk_drain drain;
    struct stk_booking *row;
    uint32_t n, cap;
    uint32_t next; /* number */
    struct stk_fence *fence;
    uint32_t n_fences, cap_fences;
    uint32_t *on_node; /* its first fence + 1 */
    uint32_t n_holders;
    struct stk_holder_row holder[STK_MAX_HOLDERS];
    uint32_t *charged; /* by job: the reservation its lease counts for; 0: none */
    uint32_t cap_charged;
    /* scratch of tries (core/fence.h) */
    uint64_t *stamped, stamp;
    uint64_t *outside; /* a bit per node: not one of the reservation's */
    stk_time at, until;
    bool inside, raised;
    bool loading; /* leases count for what they counted for */
};

struct stk_undo { /* a tentative change of one node */
    struct stk_use use;
    uint32_t node;
    bool took;
    uint64_t room; /* state.room before it */
};

#define STK_NO_ROOM 64 /* a power of two */

struct stk_no_room { /* of this shape's demand, on these types, there was no room (core/place.h) */
    uint64_t types, room;
    uint32_t shape;
};

struct stk_state {
    struct stk_mem mem;
    stk_time now; /* of the latest event */
    const struct stk_order_ops *order;
    const struct stk_backfill_ops *backfill;
    const struct stk_place_ops *place;
    const struct stk_preempt_ops *preempt;
    const struct stk_admit_ops *admit;
    void *order_st, *preempt_st, *place_st;
    struct stk_settings *settings; /* what it was made with, and what was changed since */
    stk_time round;                /* > 0: decide at its multiples only */
    uint32_t retain_done, backfill_depth;
    stk_time patience; /* core/outrun.h */
    bool defrag_all;   /* jobs that do not say they may are moved, too */
    uint32_t defrag;   /* moves in a thousand placements, at most; 0: none */
    uint32_t n_levels; /* of the preempt policy; at least 1 */
    bool whole_pool, keep_ends;
    bool drift;        /* some running job's rank falls with time: every round decides anew */
    stk_time round_at; /* cache: the last round that was opened */
    bool again;        /* cache: some pool has it set, */
    stk_time again_at; /* since then */
    uint32_t n_waiting, n_leased; /* jobs of all pools */
    uint32_t n_blocked;

    uint64_t n_moved;                             /* jobs, so far */
    uint32_t n_moving;                            /* jobs with 'moving' set */
    uint32_t moving[STK_MAX_MOVING], next_moving; /* cache: these, in the order they are placed */
    bool plans_moves;                             /* scratch */

    struct stk_job *jobs;
    uint32_t n_jobs, cap_jobs, free_job; /* free_job: slot + 1 */
    struct stk_terms *terms;             /* of each */
    uint32_t cap_terms;
    struct stk_stake *stakes; /* likewise */
    uint32_t cap_stakes;
    struct stk_stake_rule stake_rule;
    bool min_runs; /* cache: some job has said for how long it does not give way, or has a deadline
                    */
    struct stk_budget *budgets;                   /* of groups of jobs (core/budget.h) */
    uint32_t n_budgets, cap_budgets, free_budget; /* free_budget: row + 1 */
    struct stk_map by_group;
    stk_time protect_at; /* cache: when somebody is protected no longer whom a job would have
                            liked to go; STK_NEVER_TIME */
    uint32_t n_live;     /* submitted and not yet ended */
    struct stk_map by_number;
    stk_job_number next_number;
    stk_lease_id next_lease;
    uint32_t next_queue_seq;
    uint32_t done_head, done_tail, n_done; /* finished jobs, oldest first; slot + 1 */

    struct stk_array *arrays;
    uint32_t n_arrays, cap_arrays, free_array; /* free_array: place + 1, on by first_edge[0] */
    struct stk_map by_array;                   /* by the array's number */
    struct stk_edge *edges;
    uint32_t n_edges, cap_edges, free_edge;
    struct stk_piece *pieces;
    uint32_t n_pieces, cap_pieces, free_piece[32]; /* runs of 2^k; first + 1 */

    struct stk_shape *shapes;
    uint32_t n_shapes, cap_shapes, free_shape;
    struct stk_map shape_by_hash;
    uint32_t *shape_pos; /* in their pools' ready heaps */
    uint32_t cap_shape_pos;

    struct stk_node *nodes;
    uint32_t n_nodes;
    uint32_t n_leaving; /* of these, leaving */
    bool pools_change;  /* as it was made */
    bool leave_look;    /* cache: some of them may be able to go, or somebody must give way */
    uint8_t mig[STK_MAX_GPU_TYPES]; /* model of each type in MIG mode; 0: it is not */
    bool any_mig;
    const char *const *pool_names; /* NULL: pools have none */
    uint32_t n_resources;          /* named ones; 0: the next four are NULL */
    const char *const *resource_names;
    uint32_t *resource_all, *resource_free; /* n_resources per node */
    uint32_t *resource_most;                /* likewise per pool: the most of one node */
    uint64_t *resource_tally;               /* likewise per node: scratch of sound() */
    bool topo_counts;                       /* cache: the next is kept up to date */
    struct stk_topo *topo;                  /* cache (core/topo.h) */
    struct stk_layout *layouts;             /* of the GPUs of nodes */
    uint32_t n_layouts;
    struct stk_part *parts; /* one per GPU of every node that tells its GPUs apart */
    uint32_t n_parts;
    uint32_t *mates; /* two per GPU: jobs that have it as the first of their GPUs, job + 1 */
    const struct stk_speeds *speeds; /* by GPU type; somebody else's; NULL: none are known */
    struct stk_pair_rule share;      /* the placement policy's */
    struct stk_group *groups;
    uint32_t n_groups;
    struct stk_pool *pools;
    uint32_t n_pools;
    uint32_t *group_nodes, *pool_nodes, *resv_nodes;
    uint64_t *words;
    size_t n_words;
    uint32_t *counts;
    size_t n_counts;
    uint64_t *avoid;    /* cache: nodes with a reservation */
    uint64_t *set_bits; /* core/sets.h: a row per set */
    uint32_t n_sets, cap_set_bits;
    /* caches (core/evictable.h), both NULL where they are not kept */
    uint32_t *evictable;       /* n_levels per node: GPUs that are free or held by lower levels */
    uint32_t *evictable_nodes; /* nodes by that; for each level laid out like 'counts' */
    struct stk_victims victims;

    bool power;            /* of some node it is known (core/power.h); then of all these: */
    uint64_t watts;        /* what they draw; where it is not known, 0 */
    uint64_t watts_off;    /* what they would draw off */
    uint64_t cap_w;        /* 0: none */
    uint32_t n_on;         /* nodes that are on */
    bool power_short;      /* cache: some pool has it set */
    struct stk_mix *mix;   /* what jobs usually ask for; may be empty */
    bool mix_given;        /* by whoever made the core */
    struct stk_seen *seen; /* what it is learned from; NULL: it is given, or of no use */
    uint16_t *tags;        /* STK_TAGS per node: pieces there by kind; NULL: not counted */

    uint32_t n_tenants; /* core/tenant.h; 0: the next four are of no use */
    uint32_t n_tenant_cols;
    struct stk_tenant *tenants;
    uint64_t *tenant_limits, *tenant_used; /* by tenant and column; used: twice, see sound() */
    uint64_t *tenant_guarantees;           /* likewise */
    struct stk_means *tenant_means; /* core/means.h; NULL: none has a limit on CPUs or memory */
    uint32_t first_tenant;          /* of those at the top; tenant + 1 */
    bool any_limits, guarantees;    /* somebody has one */
    bool keep_up;                   /* of some tenant jobs stay up (core/budget.h) */
    bool fair;     /* the preempt policy keeps guarantees and shares (core/fair.h), */
    bool by_due;   /* what tenants are due, too */
    bool firm;     /* critical jobs stay within guarantees */
    bool fair_any; /* jobs without GPUs are entitled like others */
    bool ranked;   /* running jobs have ranks that count, though pools are not decided whole */
    uint64_t *tenant_waiting; /* core/share.h; the second half is scratch */
    /* caches, likewise */
    uint64_t *tenant_levels; /* use by level; the second half is scratch */
    /* scratch: what a plan takes away, all of it and that of some levels, for who asks; and that
     * with what is being stopped, for limits; all 0 between plans */
    uint64_t *tenant_gone;
    struct stk_own *own; /* per job */
    uint32_t cap_own;
    stk_lease_id lease_now; /* leases from this one on began at this very instant; 0: who knows */
    uint32_t own_stamp;
    uint64_t *tenant_due;
    struct stk_sort_item *share_sort;
    bool due_valid;
    uint64_t due_made,
        due_looked; /* how often it was made, and as of when jobs were tried for it */

    uint32_t n_queues; /* core/account.h; 0: the next are of no use */
    struct stk_queue_spec *queues;
    struct stk_account *accounts;                    /* the queues' own come first */
    uint32_t n_accounts, cap_accounts, free_account; /* free_account: account + 1 */
    struct stk_map account_by_hash;                  /* of users and tenants */

    struct stk_book book;

    /* where jobs are ranked by tenant (core/usage.h, core/lane.h); else all are NULL */
    struct stk_usages *usage;
    int64_t *label; /* cache: by tenant: its place, as part of a rank */
    struct stk_lane *lanes;
    uint32_t n_lanes, cap_lanes, free_lane, n_free_lanes; /* free_lane: lane + 1 */
    struct stk_otree lane_index;                          /* by (shape, tenant) */
    const uint32_t *type_speed; /* by GPU type, thousandths; somebody else's; NULL: all alike */

    struct stk_opool trees;
    struct stk_heap timers; /* begin times, key changes */
    uint32_t *timer_pos;
    struct stk_heap outruns; /* leased jobs whose estimates may grow (core/outrun.h) */
    uint32_t *due_pos;       /* of waiting jobs in the pools' 'due', of leased ones in 'outruns' */
    uint32_t cap_timer_pos, cap_due_pos;

    uint64_t history; /* hash of every event applied */
    uint64_t n_events;

    /* caches (core/score.h) */
    struct stk_score_row *scores;
    uint32_t n_scores;
    uint8_t score_hint[1024]; /* by hash of what is wanted: its row, perhaps */
    uint32_t *score_log;
    uint64_t n_score_log, score_round, score_clock, *score_stamp;
    struct stk_prices prices;
    uint64_t priced;    /* how often they were made */
    uint32_t price_age; /* decisions since then */
    void *score_space;

    /* caches and scratch */
    uint32_t *dirty;
    uint32_t n_dirty;
    struct stk_undo *undo;
    uint32_t n_undo, cap_undo;
    struct stk_piece *try_pieces;
    uint32_t cap_try, max_pieces; /* of one lease */
    struct stk_sort_item *sort, *sort_tmp;
    uint32_t cap_sort, cap_sort_tmp;
    uint32_t *list_a, *list_b;
    uint32_t cap_list_a, cap_list_b;
    struct stk_piece *batch; /* pieces of several starts decided at once */
    uint32_t cap_batch;
    uint32_t n_kept, kept_pool; /* picks in list_a that wait for evictions at this same instant */
    stk_time kept_now;
    /* What is free has this number: another when more may be free than before, and inside a
     * transaction. room_last: the last number given. */
    uint64_t room, room_last;
    struct stk_no_room no_room[STK_NO_ROOM]; /* by stk_shape.kin */
    uint32_t *sim_free; /* per node, valid where node_stamp == stamp: free GPUs later on */
    uint64_t stamp, *node_stamp;
    struct stk_tally *tally; /* per node */
    uint32_t *part_left;     /* per GPU: scratch, pieces or thousandths */
    uint32_t *part_mem;      /* per GPU: scratch of sound(), MiB */
};

/* Time the job has run in all, up to now. */
static inline stk_time stk_job_served(const struct stk_job *j, stk_time now)
{
    return j->served + (j->lease ? now - j->started : 0);
}

/* What it is expected to need from now on. */
static inline stk_time stk_job_remaining(const struct stk_job *j, stk_time now)
{
    stk_time left = j->estimate + j->lost - stk_job_served(j, now);

    return left > 0 ? left : 0;
}

/* The same when its lease began, for ranks that fall by the time it runs: on GPUs on which it is
 * faster than at speed 1, the time that it takes there. So a job that gives way never comes before
 * where it was, and takes its GPUs back from the one it gave way to. Below 0: it outran its
 * estimate. */
static inline stk_time stk_job_left(const struct stk_job *j)
{
    stk_time left = j->estimate + j->lost - j->served, there = j->expected_end - j->started;

    return j->lease && there < left ? there : left;
}

#endif
