/* SPDX-License-Identifier: Apache-2.0 */
/* victims.h - who gives way so that a job can start: the cheapest set that provably does it, or
 * nobody.
 *
 * A preempt policy says who may go, and in which class (struct stk_victim_rule); this finds the
 * set. Nobody of a class goes while jobs of lower classes suffice; inside a class the least is lost
 * (core/stake.h: GPUs x time that would have to be done again or waited for). Among equals the
 * fewest go, then those of lower priority, then those that started last.
 *
 * The set is tried in a transaction (core/txn.h) before anybody is told to go: with those in it,
 * and those that are being stopped already, gone, the whole job finds its place - gang, topology,
 * parts, limits and all. Without any one of them it does not. Gangs go whole.
 *
 * How it is found. A job on one node: for each node that has candidates the cheapest of them that
 * free as much as it needs, by dynamic programming over GPUs; then the cheapest node, which is
 * tried. A gang: the same for each node and number of pieces, nodes in order of what a piece costs;
 * with a required level, in the place (rack, zone...) where they add up to least. What counting
 * cannot see (CPU, memory, islands, shared GPUs) the trial does, and the next best is tried. When
 * none of the first few holds, candidates go in order until the job fits, and then each comes back
 * that is not needed: if it would start with all candidates gone, some set is found.
 *
 * For a job on one node whose candidates hold whole GPUs the set is the cheapest there is, as long
 * as GPUs are all it lacks. Where few may go it is so for every job (core/victims_exact.c). Else,
 * for gangs, it is found node by node: cheap, not provably the cheapest.
 *
 * Counting comes first: a node, or a place, that could not have room with all its candidates gone
 * is not looked at any closer, and where none is left, nobody is tried at all. What candidates
 * cost, and who goes before whom, is found for the nodes that are left, and for all only when all
 * go in order.
 *
 * Cost: O(running jobs of tenants, or of the pool, of which some may go + pieces of candidates +
 * GPUs x candidates of the nodes that could have room), and a few tries.
 */
#ifndef STK_CORE_VICTIMS_H
#define STK_CORE_VICTIMS_H

#include "core/blocks.h"
#include "core/state.h"

#define STK_VICTIM_CLASSES 16
#define STK_VICTIM_NEVER (-1)
#define STK_VICTIM_ASK (-2)

struct stk_victim_side { /* what jobs of one tenant and level have in common */
    int class;           /* STK_VICTIM_NEVER: nobody goes; STK_VICTIM_ASK: each is asked about */
    uint64_t most;       /* else those go that have at most so many thousandths of GPUs, */
    bool own;            /* the tenant's own (core/fair.h), too, */
    bool fresh;          /* and those whose leases began at this very instant are asked about */
};

/* Who may go. 'ctx' is the caller's; nothing here may change the state. */
struct stk_victim_rule {
    void *ctx;
    /* Optional: who of this tenant's jobs of this level may go. Those that are asked about next are
     * of both. */
    void (*side)(void *ctx, const struct stk_state *s, uint32_t tenant, uint32_t level,
                 struct stk_victim_side *ret);
    /* Whether 'v', which has a lease on so many thousandths of GPUs in the pool of 'j' and is not
     * being stopped, may go for 'j': its class, 0 to STK_VICTIM_CLASSES - 1, lower ones first;
     * STK_VICTIM_NEVER. */
    int (*class)(void *ctx, const struct stk_state *s, const struct stk_job *j,
                 const struct stk_job *v, uint64_t milli);
    /* Optional, both or neither: 'v' joins the set that is being tried, or leaves it again. False:
     * beside those that are in it, it may not go. Each set begins empty, and ends empty. */
    bool (*add)(void *ctx, const struct stk_state *s, const struct stk_job *v);
    void (*drop)(void *ctx, const struct stk_state *s, const struct stk_job *v);
    /* The job gets what is guaranteed to it: neither minimum run times nor the cap on preemptions
     * protect anybody. */
    bool reclaims;
};

/* 'job' waits and cannot start: evictions of the cheapest set that makes it start, in ask->out, at
 * most ask->cap of them (the pool is claimed for the job, which asks again for the rest); 0: there
 * is none, or it starts when those are gone that are being stopped. Only where the preempt policy
 * has room(). */
uint32_t stk_victims_room(const struct stk_ask *ask, uint32_t job,
                          const struct stk_victim_rule *rule);

int stk_victims_init(struct stk_state *s);
int stk_victims_reserve(struct stk_state *s); /* in apply(), after jobs and pieces */
void stk_victims_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* ---- shared by victims*.c ---- */

struct stk_victim { /* a candidate */
    uint32_t job;
    bool in;     /* in the set that is being tried */
    bool priced; /* what follows 'class' is known */
    uint8_t class;
    int32_t priority;
    uint32_t lease;
    int64_t units; /* what it costs, in thousandths of GPU-seconds */
    int64_t key;   /* the same of each of its GPUs, behind its class: in this order they go */
    double cost;   /* the same, so that a class counts before all lower ones */
};

struct stk_victim_at {     /* a piece of it */
    uint32_t victim, next; /* next: of the same node + 1 */
    uint32_t piece;        /* of the job's */
};

struct stk_victim_node {  /* a node on which candidates are */
    uint32_t node, first; /* of its pieces + 1 */
    uint32_t place;
    uint32_t most;  /* GPUs that are free there with all of them gone, at most */
    uint32_t units; /* pieces of a gang that going by 'cost' brings */
    double cost;    /* of what is to go first there; < 0: nothing there helps */
    uint32_t n;     /* so many go, */
    int32_t prio;   /* with this the highest priority, */
    uint32_t lease; /* and this the first lease */
    bool tried;
};

struct stk_victim_search {
    const struct stk_ask *ask;
    struct stk_state *s;
    struct stk_victims *v;
    const struct stk_victim_rule *rule;
    const struct stk_job *j;
    const struct stk_demand *d;
    uint32_t need;             /* GPUs of one node; 0: of several */
    uint32_t n;                /* candidates */
    uint32_t groups, at_group; /* of tenants and levels, in s->sort; those before it are gathered */
    bool ordered;              /* they lie in the order in which they go */
    uint32_t rows, n_at, n_rowed; /* nodes and pieces of the first so many candidates */
    uint64_t stamp;               /* by which the rows are found */
    uint64_t brings;              /* GPUs that these have, at most */
    bool sure;       /* counting GPUs tells what cannot be: all candidates are in rows */
    bool reached;    /* some node could have enough */
    bool counted;    /* pieces of a gang that have room as it is, in v->have */
    uint32_t n_set;  /* those in s->list_a are gone */
    uint32_t n_best; /* the cheapest set so far, jobs in s->list_b; 0: none */
    double best_cost;
    uint32_t mark; /* what was before */
};

/* Candidates of the next class, or all that are left, in any order. False: these were the last. */
bool stk_victims_gather(struct stk_victim_search *x, bool all);
void stk_victims_price(const struct stk_victim_search *x, struct stk_victim *v);
/* It goes before the other. Both are priced. */
bool stk_victims_before(const struct stk_victim *a, const struct stk_victim *b);
void stk_victims_order(struct stk_victim_search *x); /* all of them */

/* It goes too, if it may; true also when it is gone. */
bool stk_victims_add(struct stk_victim_search *x, uint32_t victim);
void stk_victims_reset(struct stk_victim_search *x); /* nobody is gone any more */
bool stk_victims_fit(struct stk_victim_search *x);   /* with these gone the job fits */
/* It fits: whoever is not needed comes back; the rest is kept if it is the cheapest yet; nobody is
 * gone any more. */
void stk_victims_keep(struct stk_victim_search *x);

/* So many GPUs of one node; 0: of several. */
uint32_t stk_victims_need(const struct stk_victim_search *x);
/* Rows of nodes with candidates: those that were gathered since. */
void stk_victims_rows(struct stk_victim_search *x);
/* Sets by node, for a job on one; what is found is kept. True: there is none that is cheaper. */
bool stk_victims_by_node(struct stk_victim_search *x);
/* Sets by place, for a gang. could: some place may have enough; else it is no use. */
bool stk_victims_could(struct stk_victim_search *x);
void stk_victims_by_place(struct stk_victim_search *x);

/* ---- shared by victims_node.c and victims_gang.c ---- */

#define STK_VICTIM_MOST 64 /* GPUs, and candidates, of a node that are counted */

struct stk_victim_gains { /* candidates that could go together, and what that costs */
    uint64_t who;         /* of those of the node, in order */
    double cost;
    uint32_t n;
    int32_t prio;   /* the highest */
    uint32_t lease; /* the first */
    uint32_t gpus;  /* that they bring */
    bool ok;
};

struct stk_victim_on { /* the candidates of a node, in order */
    uint32_t victim[STK_VICTIM_MOST], piece[STK_VICTIM_MOST], n;
    struct stk_victim_gains item[2 * STK_VICTIM_MOST]; /* each frees GPUs by itself */
    uint32_t n_items;
};

/* The job could be there. */
bool stk_victims_of_use(const struct stk_victim_search *x, uint32_t node);
void stk_victims_look(const struct stk_victim_search *x, const struct stk_victim_node *row,
                      struct stk_victim_on *on);
/* Of each number of GPUs up to 'most', the cheapest that bring as many. */
void stk_victims_cheapest(const struct stk_victim_on *on, uint32_t most,
                          struct stk_victim_gains dp[STK_VICTIM_MOST + 1]);
struct stk_victim_gains stk_victims_everybody(const struct stk_victim_search *x, uint32_t node,
                                              const struct stk_victim_on *on);
/* What is to go so that the node has room for so many GPUs of the job; not ok: it never has. With
 * CPU and the like it may still not fit. */
struct stk_victim_gains stk_victims_for(const struct stk_victim_search *x,
                                        const struct stk_victim_node *row, uint32_t need);
bool stk_victims_less(const struct stk_victim_gains *a, const struct stk_victim_gains *b);
bool stk_victims_add_gains(struct stk_victim_search *x, const struct stk_victim_node *row,
                           const struct stk_victim_gains *g);

#define STK_EXACT_MOST 24    /* candidates among which the cheapest set of all is looked for */
#define STK_EXACT_TRIES 4096 /* where there are no more than these */
#define STK_NEARBY_TRIES 256 /* where there are more, among the best set known and some others */
#define STK_NEARBY_MOST 256  /* where there are more than these it is not done */
/* A cheaper set than the one known, if there is one, is kept (core/victims_exact.c). */
void stk_victims_exact(struct stk_victim_search *x);

#endif
