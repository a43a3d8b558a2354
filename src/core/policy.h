/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - the policy points: small tables of functions, one per decision. docs/spec/policy.md
 * has the contract in words.
 *
 * Common rules. A policy reads the state and changes nothing in it. It may not allocate, block or
 * fail (init alone may refuse its parameters). Equal keys are broken by the core, by job number.
 * 'st' is the policy's own memory: state_size bytes, zeroed, owned by the core, written only by
 * init. A name is what a user writes; help is one line.
 */
#ifndef STK_CORE_POLICY_H
#define STK_CORE_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model/event.h"
#include "model/node.h"
#include "model/params.h"
#include "model/speed.h"

struct stk_state;
struct stk_job;

/* The rank of a job. A waiting job's rank stands still: 'base'. A running job's may move with time:
 * base + rate * (now / tick). Rates of jobs of one size are equal, so their order among themselves
 * never changes and an ordered tree per rate suffices. */
struct stk_key {
    int64_t base;
    int64_t rate;
};

/* How an order that ranks by tenant counts (core/usage.h). */
struct stk_usage_rule {
    stk_time half_life; /* in which what was used fades to half */
    stk_time ahead;     /* leases count as if they had gone on for so long */
    stk_time period;    /* places are made anew after this, at the latest */
};

struct stk_order_ops { /* which job comes first */
    const char *name, *help;
    const struct stk_param *params; /* ends with name NULL; may be NULL */
    const struct stk_param *shared; /* the same: those of another policy that it goes by, too */
    size_t state_size;
    stk_time tick;   /* unit of time in keys, microseconds */
    bool preemptive; /* running jobs compete too, unless the user says --preempt none */
    bool levels;     /* higher levels first (policy/classes.h): goes with who evicts by them */
    bool backlog;    /* the core counts what live jobs of each tenant ask for (core/usage.h) */
    int (*init)(void *st, const struct stk_params *p, struct stk_err *err); /* optional */
    /* Smaller first. Called when a job enters the queue, starts, or changes. */
    struct stk_key (*key)(const void *st, const struct stk_job *j, stk_time now);
    /* Optional: when the key will next jump by itself (STK_NEVER_TIME: not), asked after key(). */
    stk_time (*next_change)(const void *st, const struct stk_job *j, stk_time now);
    /* Optional: at that time, the job's new policy word; key() is asked again afterwards. */
    int64_t (*on_change)(const void *st, const struct stk_job *j, stk_time now);
    /* Optional, both or neither: an adviser outside says where each job belongs (the event ADVISE).
     * The job's policy word from what it said, and the GPU types that follow from the word; 0: the
     * job is not to run now. */
    int64_t (*advised)(uint32_t where, int32_t rank);
    uint64_t (*types)(const struct stk_job *j);
    /* Optional: > 0: decide only at multiples of this. */
    stk_time (*round)(const void *st);
    /* Optional: the job's policy word when it comes in, or is loaded from another policy. */
    int64_t (*word)(const void *st, const struct stk_state *s, uint32_t job);
    /* Optional, both or neither: jobs are also ranked by tenant. What the tenant has, or has had,
     * against its weight; of siblings the smallest is first. 'growth' is for stk_usage_of(). */
    int64_t (*share)(const void *st, const struct stk_state *s, uint32_t tenant, uint64_t growth);
    void (*rule)(const void *st, struct stk_usage_rule *ret);
};

/* Backfill: may a job pass one that cannot start, and how many of those that cannot start get a
 * reserved start that nobody may delay. The methods are in core/backfill.h; the four policies are
 * the four useful settings. */
struct stk_backfill_ops {
    const char *name, *help;
    const struct stk_param *params;
    bool pass;        /* others may start past a job that cannot */
    bool reserve_one; /* the first that cannot start has a reservation on exact nodes */
    bool reserve_all; /* every waiting job has one, on the pool's count of free GPUs */
};

/* So much of each named resource: of what a task asks for, 'of' / 'in' times. */
struct stk_amounts {
    const uint32_t *each; /* NULL: none is asked for */
    uint32_t n, of, in;
};

/* A piece of a job that is looking for its node. */
struct stk_want {
    uint32_t pool;
    uint64_t gpu_types;
    uint32_t gpus;
    uint64_t cpu_milli, mem_mib;
    const uint64_t *avoid; /* bit per node that must not be used; may be NULL */
    const uint64_t *only;  /* bit per node that may be used; NULL: all */
    uint32_t gpu_mem_mib;  /* on each GPU */
    uint16_t gpu_milli;    /* 0: whole GPUs; else gpus is 1 */
    uint8_t share, share_max;
    uint32_t share_with;
    uint16_t mig; /* a MIG instance of this profile; gpu_milli is what it counts as */
    const struct stk_piece *mine; /* of a part: pieces the job has already, whose GPUs it shares
                                     with others but not with itself */
    uint32_t n_mine;
    struct stk_amounts resources;
    uint32_t within, tier; /* only in this place of the tier (core/topo.h) + 1; 0: anywhere */
};

/* What scarce things cost now, in the unit of scores. */
struct stk_prices {
    double type[STK_MAX_GPU_TYPES];     /* a thousandth of a GPU of this type */
    double free[STK_MAX_NODE_GPUS + 1]; /* what a node with so many free GPUs is worth by them */
};

/* What a placement policy with mate() likes. */
struct stk_pair_rule {
    bool all;        /* every job on whole GPUs may get company, if its speed is known */
    bool unknown;    /* ... or not */
    bool join_first; /* company rather than free GPUs */
};

struct stk_place_ops { /* which node */
    const char *name, *help;
    const struct stk_param *params;
    size_t state_size;
    int (*init)(void *st, const struct stk_params *p, struct stk_err *err); /* optional */
    bool aggregate; /* the simulator joins each pool's nodes into one that only counts GPUs */
    bool apart;     /* a part of a GPU gets a free one if it can; else it joins others if it can */
    bool near;      /* jobs of several GPUs that have no wish prefer to be as near as can be */
    bool tags;      /* the core counts who is on each node (state.tags) */
    bool mix;       /* goes by state.mix: where none is given, the core learns it (core/seen.h) */
    bool by_demand; /* with mix: kinds count by what they ask for in all, not by how often they come
                     */
    bool fleeting;  /* scores depend on other things too and are never kept: O(nodes) a decision */
    /* Optional, in place of pick: how well the node suits, larger is better; not NaN. It has room.
     * Of a part, *io_gpu is the GPU with the least left that fits; another may be chosen. Depends
     * on the node and on 'w' without mem_mib, resources, avoid and mine, and on nothing that
     * changes (core/score.h). */
    double (*score)(const void *st, const struct stk_state *s, uint32_t node,
                    const struct stk_want *w, uint32_t *io_gpu);
    /* Optional, with score: the score of so many whole GPUs of a type where CPU is not limited,
     * which is the same for every node. */
    double (*whole)(const void *st, uint32_t type, uint32_t gpus);
    /* Optional: state.mix is another; 'st' may be written. */
    void (*learn)(void *st, const struct stk_state *s);
    /* Optional, with score: asked now and then; what a piece takes is taken off its score. */
    void (*prices)(const void *st, const struct stk_state *s, struct stk_prices *ret);
    /* Optional: jobs that may share whole GPUs are put together (core/pair.h). How well the two get
     * on there, larger is better; 0: not at all. Depends on what is given and on state.speeds. */
    uint32_t (*mate)(const void *st, const struct stk_speeds *speeds, uint32_t gpu_type,
                     const struct stk_demand *a, const struct stk_demand *b);
    void (*share)(const void *st, struct stk_pair_rule *ret); /* with mate */
    /* Optional: nodes are off until they are used, and the engine switches empty ones off; all
     * together draw no more than this many watts (0: no cap). */
    bool saves;
    uint64_t (*cap_w)(const void *st);
    bool score_rest; /* what is left over of a cut job goes by score, too */
    /* A node that has room for all of 'w', or STK_NONE. Uses the index (core/index.h). */
    uint32_t (*pick)(const struct stk_state *s, const struct stk_want *w);
    /* The same for what is left over when a job was cut into whole nodes. */
    uint32_t (*pick_rest)(const struct stk_state *s, const struct stk_want *w);
};

/* What a preemption policy gets. It may change nodes tentatively (core/txn.h) and must roll that
 * back; the state's scratch arrays are its to use. */
struct stk_ask {
    struct stk_state *s;
    stk_time now;
    uint32_t pool;
    struct stk_event *out;
    uint32_t cap;
    bool done;  /* set by pass(): with these events applied, nothing is left to decide now */
    bool again; /* set by pass(): look again when time has gone on, though nothing happens here */
};

#define STK_LEVEL_MAX 8

struct stk_preempt_ops { /* who must give way */
    const char *name, *help;
    const struct stk_param *params;
    const struct stk_param *shared; /* declared by another policy, and taken by this one, too */
    size_t state_size;
    int (*init)(void *st, const struct stk_params *p, struct stk_err *err); /* optional */
    /* With room(): how many levels there are, at most STK_LEVEL_MAX, and a job's, from 0. The core
     * counts by level what evictions could bring. Asked when the job comes in, is loaded or
     * updated: a level follows from tier and priority, which do not change while it has GPUs.
     * below(): for a plain job room() evicts others of levels below this only, which is at most its
     * own level; for all other jobs it is their level. */
    uint32_t (*levels)(const void *st);
    uint32_t (*level)(const void *st, const struct stk_job *j);
    uint32_t (*below)(const void *st, const struct stk_job *j);
    /* Optional: decides a whole pool, starts and evictions, in place of the queue walk. Returns the
     * number of events; 0: nothing to do now. Such a policy sees every active job in rank order. */
    uint32_t (*pass)(const void *st, struct stk_ask *ask);
    bool moves; /* with pass(): it has running jobs moved (core/defrag.h) where that is wanted */
    /* Optional: 'job' cannot start; evict a set of running jobs that provably makes it start. Jobs
     * that are being stopped count as gone. Asked again while the pool is claimed for the job. */
    uint32_t (*room)(const void *st, const struct stk_ask *ask, stk_job_id job);
    stk_time (*round)(const void *st); /* optional: as in stk_order_ops */
    /* With room(): guarantees of tenants are kept (core/fair.h). Asked once: whether those who have
     * less than they are due are entitled, too; whether running jobs have ranks that count, by an
     * order whose keys only jump. */
    bool fair;
    bool (*by_due)(const void *st, bool guarantees); /* guarantees: some tenant has one */
    bool (*plain)(const void *st); /* without guarantees, tenants make no difference to it */
    bool (*ranked)(const void *st);
    bool (*firm)(const void *st); /* and whether critical jobs stay within guarantees; */
    bool (*any)(const void *st);  /* whether jobs without GPUs are entitled like others */
};

/* Admission. One policy today: refuse what can never run. */
struct stk_admit_ops {
    const char *name, *help;
    const struct stk_param *params;
    /* 0, or -Exxx and a sentence. */
    int (*check)(const struct stk_state *s, const struct stk_job_spec *spec, struct stk_err *err);
};

#endif
