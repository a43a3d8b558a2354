/* SPDX-License-Identifier: Apache-2.0 */
/* booking_choose.c - which nodes a reservation gets.
 *
 * A node has to spare, for a window, what no other reservation needs of it at any time of the
 * window; the most is needed when it begins or when another one begins inside it. Where the nodes
 * are not given, those are taken that have the most to spare and are expected to be free when it
 * begins, so that few nodes are used; what is left goes where it just fits. What is on a node that
 * goes moves to another that has as much to spare, if there is one.
 */
#include "core/booking.h"

/* GPUs of the node that reservations need at this time; those that drain only if they count. */
static uint32_t needed_at(const struct stk_state *s, uint32_t node, stk_time t, bool drains)
{
    uint32_t sum = 0;

    for (uint32_t i = s->book.on_node[node]; i; i = s->book.fence[i - 1].next) {
        const struct stk_fence *f = &s->book.fence[i - 1];
        const struct stk_booking *b = &s->book.row[f->row];

        sum += b->start <= t && t < b->end && (drains || !b->drain) ? f->gpus : 0;
    }
    return sum;
}

/* The most at any time between these two. */
static uint32_t needed(const struct stk_state *s, uint32_t node, stk_time start, stk_time end,
                       bool drains)
{
    uint32_t most = needed_at(s, node, start, drains);

    for (uint32_t i = s->book.on_node[node]; i; i = s->book.fence[i - 1].next) {
        const struct stk_booking *b = &s->book.row[s->book.fence[i - 1].row];
        uint32_t need =
            b->start > start && b->start < end ? needed_at(s, node, b->start, drains) : 0;

        most = need > most ? need : most;
    }
    return most;
}

uint32_t stk_booking_spare(const struct stk_state *s, uint32_t node,
                           const struct stk_booking_spec *k)
{
    const struct stk_node *n = &s->nodes[node];
    uint32_t most = needed(s, node, k->start, k->end, k->drain);

    return n->gpus > most ? n->gpus - most : 0;
}

bool stk_booking_crowded(const struct stk_state *s, uint32_t node, stk_time start, stk_time end)
{
    return needed(s, node, start, end, true) > s->nodes[node].gpus;
}

/* The first reservation of the pool that overlaps the window; 0: none. */
static uint32_t overlaps(const struct stk_state *s, uint32_t pool, uint32_t node, stk_time start,
                         stk_time end)
{
    for (uint32_t i = 0; i < s->book.n_fences; i++) {
        const struct stk_fence *f = &s->book.fence[i];
        const struct stk_booking *b = &s->book.row[f->row];

        if (b->pool == pool && b->start < end && b->end > start &&
            (node == STK_NONE || f->node == node))
            return b->number;
    }
    return 0;
}

static int given(struct stk_state *s, const struct stk_booking_spec *k, struct stk_err *err)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < k->n_nodes; i++) {
        const uint32_t node = k->nodes[i].node.i, gpus = k->nodes[i].gpus;
        uint32_t left;

        if (node >= s->n_nodes || s->nodes[node].pool != k->pool.i)
            return stk_err_set(err, -EINVAL, "node %u is not in pool %u", node, k->pool.i);
        if (i > 0 && k->nodes[i - 1].node.i >= node)
            return stk_err_set(err, -EINVAL, "nodes of a reservation must be in order");
        if (gpus == 0 || gpus > s->nodes[node].gpus)
            return stk_err_set(err, -EINVAL, "node %u has %u GPUs, %u are wanted of it", node,
                               s->nodes[node].gpus, gpus);
        left = stk_booking_spare(s, node, k);
        if (left < gpus)
            return stk_err_set(err, -EBUSY,
                               "node %u has %u GPUs left at that time and %u are wanted: "
                               "reservation %u overlaps",
                               node, left, gpus, overlaps(s, k->pool.i, node, k->start, k->end));
        s->try_pieces[i] = (struct stk_piece){.node = {node}, .gpus = gpus};
        sum += gpus;
    }
    return sum == k->gpus ? 0 : stk_err_set(err, -EINVAL, "GPUs of its nodes are not %u", k->gpus);
}

/* GPUs of each node that leases are expected to have at the time, into sim_free. Of those that are
 * being stopped no end is known: they are as good as gone. */
static void count_busy(struct stk_state *s, uint32_t pool, stk_time at)
{
    s->stamp++;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        for (uint32_t k = 0;
             stk_has_gpus(j) && j->pool == pool && j->expected_end > at && k < j->n_pieces; k++) {
            const struct stk_piece *p = &s->pieces[j->first_piece + k];

            if (s->node_stamp[p->node.i] != s->stamp)
                s->sim_free[p->node.i] = 0;
            s->node_stamp[p->node.i] = s->stamp;
            s->sim_free[p->node.i] += p->gpus;
        }
    }
}

struct pick { /* of nodes that have something to spare, in s->sort: data is how much is taken */
    uint32_t n;
    uint64_t left; /* still wanted */
};

/* Takes up to 'most(node)' of each in order; the last of it where it just fits. */
static void take(struct stk_state *s, struct pick *q, const uint32_t *most)
{
    for (uint32_t i = 0; i < q->n && q->left > 0; i++) {
        uint32_t id = s->sort[i].id, has = most[id] - s->list_a[id], best = i;

        if (has >= q->left) /* the tightest of those behind, which have no more */
            for (uint32_t k = i + 1; k < q->n; k++)
                if (most[s->sort[k].id] - s->list_a[s->sort[k].id] >= q->left)
                    best = k;
        id = s->sort[best].id;
        has = most[id] - s->list_a[id];
        if (has > q->left)
            has = (uint32_t)q->left;
        s->list_a[id] += has;
        q->left -= has;
    }
}

/* In s->sort, nodes with something to spare, the most of what is expected to be free first; what
 * there is in list_b, by node, and in sim_free, of that, what is expected to be free. */
static struct pick candidates(struct stk_state *s, const struct stk_booking_spec *k,
                              uint64_t *ret_all)
{
    const struct stk_pool *p = &s->pools[k->pool.i];
    struct pick q = {.left = k->gpus};

    *ret_all = 0;
    count_busy(s, k->pool.i, k->start);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i], busy;
        const struct stk_node *n = &s->nodes[node];
        uint32_t left =
            n->up && (k->gpu_types >> n->gpu_type & 1) ? stk_booking_spare(s, node, k) : 0;

        busy = s->node_stamp[node] == s->stamp ? s->sim_free[node] : 0;
        busy = busy < n->gpus ? n->gpus - busy : 0; /* not busy */
        s->list_a[node] = 0;
        s->list_b[node] = left;
        s->sim_free[node] = busy < left ? busy : left;
        *ret_all += left;
        if (left > 0)
            s->sort[q.n++] = (struct stk_sort_item){
                -((int64_t)s->sim_free[node] << 32) - (int64_t)left, node, 0};
    }
    stk_sort(s->sort, q.n, s->sort_tmp);
    return q;
}

int stk_booking_choose(struct stk_state *s, const struct stk_booking_spec *k, uint32_t *ret_n,
                       struct stk_err *err)
{
    uint64_t all;
    struct pick q;
    uint32_t n = 0;
    int rc;

    if (k->nodes) {
        rc = k->n_nodes <= s->n_nodes ? given(s, k, err)
                                      : stk_err_set(err, -EINVAL, "more nodes than there are");
        *ret_n = k->n_nodes;
        return rc;
    }
    q = candidates(s, k, &all);
    if (all < k->gpus && overlaps(s, k->pool.i, STK_NONE, k->start, k->end))
        return stk_err_set(err, -EBUSY,
                           "%u GPUs are wanted and %llu are not reserved at that time: reservation "
                           "%u overlaps",
                           k->gpus, (unsigned long long)all,
                           overlaps(s, k->pool.i, STK_NONE, k->start, k->end));
    if (all < k->gpus)
        return stk_err_set(err, -ERANGE, "%u GPUs are wanted; there are %llu of these types",
                           k->gpus, (unsigned long long)all);
    take(s, &q, s->sim_free);
    take(s, &q, s->list_b);
    for (uint32_t node = 0; node < s->n_nodes; node++)
        if (s->nodes[node].pool == k->pool.i && s->list_a[node] > 0)
            s->try_pieces[n++] = (struct stk_piece){.node = {node}, .gpus = s->list_a[node]};
    *ret_n = n;
    return 0;
}

/* ---- in place of a node that is gone ---- */

static bool has_fence(const struct stk_state *s, uint32_t node, uint32_t row)
{
    for (uint32_t i = s->book.on_node[node]; i; i = s->book.fence[i - 1].next)
        if (s->book.fence[i - 1].row == row)
            return true;
    return false;
}

/* The node that is expected to have the most of what the fence needs; STK_NONE. */
static uint32_t substitute(struct stk_state *s, const struct stk_fence *f)
{
    const struct stk_booking *b = &s->book.row[f->row];
    const struct stk_booking_spec k = {.start = b->start, .end = b->end};
    const struct stk_pool *p = &s->pools[b->pool];
    uint32_t best = STK_NONE, most = 0;

    count_busy(s, b->pool, b->start > s->now ? b->start : s->now);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];
        const uint32_t busy = s->node_stamp[node] == s->stamp ? s->sim_free[node] : 0;
        uint32_t idle = busy < n->gpus ? n->gpus - busy : 0;

        idle = idle < f->gpus ? idle : f->gpus;
        if (n->up && (b->gpu_types >> n->gpu_type & 1) && !has_fence(s, node, f->row) &&
            stk_booking_spare(s, node, &k) >= f->gpus && (best == STK_NONE || idle > most)) {
            best = node;
            most = idle;
        }
    }
    return best;
}

/* Leases in the sums of the reservation, or no longer. */
static void recount(struct stk_state *s, uint32_t row, bool add)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        if (!stk_has_gpus(&s->jobs[i]) || s->jobs[i].pool != s->book.row[row].pool)
            continue;
        if (add && s->book.charged[i] == 0)
            (void)stk_booking_charge(s, i, row);
        stk_booking_count(s, i, add, row);
    }
}

static void move(struct stk_state *s, uint32_t at, uint32_t node)
{
    struct stk_fence *f = &s->book.fence[at];
    const struct stk_booking *b = &s->book.row[f->row];

    recount(s, f->row, false);
    if (f->held > 0)
        stk_booking_give(s, f, f->held);
    f->node = node;
    for (; at > b->first && s->book.fence[at - 1].node > s->book.fence[at].node; at--) {
        const struct stk_fence other = s->book.fence[at - 1];

        s->book.fence[at - 1] = s->book.fence[at];
        s->book.fence[at] = other;
    }
    for (; at + 1 < b->first + b->n && s->book.fence[at + 1].node < s->book.fence[at].node; at++) {
        const struct stk_fence other = s->book.fence[at + 1];

        s->book.fence[at + 1] = s->book.fence[at];
        s->book.fence[at] = other;
    }
    stk_booking_link(s);
    recount(s, (uint32_t)(b - s->book.row), true);
    if (b->open)
        stk_booking_fill(s, node);
}

void stk_booking_mend(struct stk_state *s, uint32_t pool)
{
    for (uint32_t row = 0; row < s->book.n; row++) {
        const struct stk_booking *b = &s->book.row[row];

        for (uint32_t i = b->first; i < b->first + b->n && !b->exact && b->pool == pool; i++) {
            const uint32_t node =
                s->nodes[s->book.fence[i].node].up ? STK_NONE : substitute(s, &s->book.fence[i]);

            if (node == STK_NONE)
                continue;
            move(s, i, node);
            i = b->first - 1; /* they are in another order now */
        }
    }
}
