/* SPDX-License-Identifier: Apache-2.0 */
/* loading.h - what is known between the two passes of loading a state: load_read.c reads and
 * checks, load.c puts everything in its place. */
#ifndef STK_CORE_LOADING_H
#define STK_CORE_LOADING_H

#include "base/bytes.h"
#include "core/state.h"

struct stk_loaded { /* of a live job, between the passes */
    struct stk_demand demand;
    uint32_t first_piece, n_pieces; /* in load.pieces */
    uint32_t first_edge, n_edges;   /* in load.edges */
    stk_time timer;                 /* STK_NEVER_TIME: none */
};

struct stk_saved_edge {
    uint32_t child, type;
};

struct stk_saved_array {
    stk_job_number number;
    struct stk_loaded by[STK_DEP_TYPE_MAX]; /* edges only */
};

struct stk_loading {
    struct stk_core *core;
    struct stk_state *s;
    bool settled;     /* its settings are those that hold, not those that were saved */
    stk_time later;   /* by which times that people named move */
    stk_time skipped; /* and those that the core wrote down */
    struct stk_reader r;
    struct stk_err *err;
    bool same_order, same_settings;
    struct stk_loaded *live; /* by slot */
    struct stk_piece *pieces;
    struct stk_saved_edge *edges;
    struct stk_saved_array *arrays;
    uint32_t n_arrays, cap_arrays;
    uint64_t version;
    uint32_t *heard;        /* by slot: edges that lead to it */
    struct stk_node *nodes; /* 'up' and masks as saved */
    uint32_t *claims;
    uint32_t cap_live, n_pieces, cap_pieces, n_edges, cap_edges, cap_heard, n_nodes, cap_nodes;
    uint32_t n_claims, cap_claims;
    uint32_t resource[STK_MAX_RESOURCES]; /* the number here of each that was saved; STK_NONE */
    uint32_t *tenants;                    /* likewise; 0 where the name is not known here */
    uint32_t n_tenants, cap_tenants;
    uint32_t queue[STK_MAX_QUEUES], n_queues; /* likewise */
};

static inline int stk_loading_bad(struct stk_loading *l, const char *what)
{
    return stk_err_set(l->err, -EBADMSG, "not a saved state: %s", what);
}

static inline int stk_loading_no_memory(struct stk_loading *l)
{
    return stk_err_set(l->err, -ENOMEM, "out of memory");
}

/* The first pass: all of it is read, into slots and into 'l'. */
int stk_loading_read(struct stk_loading *l);

#endif
