/* SPDX-License-Identifier: Apache-2.0 */
#include "core/txn.h"

#include <assert.h>

int stk_txn_reserve(struct stk_state *s, uint32_t pieces)
{
    return stk_mem_grow(&s->mem, &s->undo, &s->cap_undo, pieces, sizeof(*s->undo));
}

stk_txn_mark stk_txn_begin(struct stk_state *s)
{
    return s->n_undo;
}

static void log_change(struct stk_state *s, uint32_t node, const struct stk_use *u, bool took)
{
    assert(s->n_undo < s->cap_undo);
    s->undo[s->n_undo++] = (struct stk_undo){*u, node, took, s->room};
    s->room = ++s->room_last;
}

void stk_txn_take(struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    log_change(s, node, u, true);
    stk_index_take(s, node, u);
}

void stk_txn_give(struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    log_change(s, node, u, false);
    stk_index_give(s, node, u);
}

void stk_txn_rollback(struct stk_state *s, stk_txn_mark mark)
{
    while (s->n_undo > mark) {
        const struct stk_undo *c = &s->undo[--s->n_undo];

        if (c->took)
            stk_index_give(s, c->node, &c->use);
        else
            stk_index_take(s, c->node, &c->use);
        s->room = c->room;
    }
}

void stk_txn_commit(struct stk_state *s, stk_txn_mark mark)
{
    bool took = s->n_undo > 0;

    if (mark != 0)
        return; /* an inner commit stays undoable by the outer transaction */
    for (uint32_t i = 0; i < s->n_undo; i++)
        took &= s->undo[i].took;
    if (took)
        s->room = s->undo[0].room; /* less is free than before: who had no room has none */
    s->n_undo = 0;
}

void stk_txn_give_job(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_use u = stk_use_by(s, j, d, p);

        stk_txn_give(s, p->node.i, &u);
    }
}

bool stk_txn_take_job(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    stk_txn_mark mark = stk_txn_begin(s);

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_use u = stk_use_by(s, j, d, p);

        if (!stk_index_fits_again(s, p->node.i, &u)) {
            stk_txn_rollback(s, mark);
            return false;
        }
        stk_txn_take(s, p->node.i, &u);
    }
    return true;
}

void stk_txn_retake_job(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_use u = stk_use_by(s, j, d, p);

        stk_txn_take(s, p->node.i, &u);
    }
}
