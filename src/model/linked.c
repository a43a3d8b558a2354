/* SPDX-License-Identifier: Apache-2.0 */
/* linked.c - the best connected set of GPUs.
 *
 * Sets are tried in order, each a change of the end of the one before, and the sum of a beginning
 * is kept: a set costs about as much as it has members. What a set leaves behind needs no second
 * look: the weight among the rest is that of all, less the members' own to all, plus that among the
 * members, which was counted off twice.
 *
 * Where there are too many sets, the GPU with the least weight to the others goes until enough are
 * left. That keeps what is densely linked.
 */
#include "model/linked.h"

#include <stdbool.h>
#include <string.h>

#define MAX_GPUS 64

struct chooser {
    const stk_weight *weight;
    uint32_t gpus, n_free, n;
    uint64_t with;
    uint32_t gpu[MAX_GPUS];    /* the free ones, in order */
    uint32_t base[MAX_GPUS];   /* by place: weight to those that the job has */
    uint32_t to_all[MAX_GPUS]; /* by place: weight to all that are free */
};

static uint32_t between(const struct chooser *c, uint32_t a, uint32_t b)
{
    return c->weight[(size_t)c->gpu[a] * c->gpus + c->gpu[b]];
}

static void prepare(struct chooser *c, uint64_t free)
{
    for (uint64_t m = free; m; m &= m - 1)
        c->gpu[c->n_free++] = (uint32_t)__builtin_ctzll(m);
    for (uint32_t i = 0; i < c->n_free; i++) {
        for (uint64_t m = c->with; m; m &= m - 1)
            c->base[i] += c->weight[(size_t)c->gpu[i] * c->gpus + (uint32_t)__builtin_ctzll(m)];
        for (uint32_t j = 0; j < c->n_free; j++)
            c->to_all[i] += between(c, i, j);
    }
}

/* As many sets as there are, or one more than are tried. */
static uint32_t n_sets(uint32_t of, uint32_t n)
{
    uint64_t sets = 1;

    n = n > of - n ? of - n : n;
    for (uint32_t i = 1; i <= n && sets <= STK_LINKED_SETS; i++)
        sets = sets * (of - n + i) / i;
    return sets > STK_LINKED_SETS ? STK_LINKED_SETS + 1 : (uint32_t)sets;
}

struct set {
    uint32_t at[MAX_GPUS];        /* places, rising */
    int64_t inside[MAX_GPUS + 1]; /* of the first so many: weight among them and to the base */
    int64_t among[MAX_GPUS + 1];  /* without the base */
    int64_t off[MAX_GPUS + 1];    /* their weight to all that are free */
};

static void add_up(const struct chooser *c, struct set *s, uint32_t from)
{
    for (uint32_t k = from; k < c->n; k++) {
        uint32_t sum = 0;

        for (uint32_t i = 0; i < k; i++)
            sum += between(c, s->at[i], s->at[k]);
        s->among[k + 1] = s->among[k] + sum;
        s->inside[k + 1] = s->inside[k] + sum + c->base[s->at[k]];
        s->off[k + 1] = s->off[k] + c->to_all[s->at[k]];
    }
}

/* The next set; false: that was the last. */
static bool step(const struct chooser *c, struct set *s)
{
    uint32_t k = c->n;

    while (k > 0 && s->at[k - 1] == c->n_free - c->n + k - 1)
        k--;
    if (k == 0)
        return false;
    s->at[k - 1]++;
    for (uint32_t i = k; i < c->n; i++)
        s->at[i] = s->at[i - 1] + 1;
    add_up(c, s, k - 1);
    return true;
}

static uint64_t try_all(const struct chooser *c)
{
    struct set s = {.at = {0}};
    int64_t best = -1, best_rest = 0;
    uint64_t mask = 0;

    for (uint32_t i = 0; i < c->n; i++)
        s.at[i] = i;
    add_up(c, &s, 0);
    do {
        int64_t value = s.inside[c->n], rest = s.among[c->n] - s.off[c->n];

        if (value < best || (value == best && rest <= best_rest))
            continue;
        best = value;
        best_rest = rest;
        mask = 0;
        for (uint32_t i = 0; i < c->n; i++)
            mask |= UINT64_C(1) << c->gpu[s.at[i]];
    } while (step(c, &s));
    return mask;
}

/* The place of the free GPU with the least weight to the others; the highest of several, so that
 * the lowest stay. */
static uint32_t worst_of(const struct chooser *c, uint64_t free)
{
    uint32_t worst = 0;

    for (uint32_t i = 0; i < c->n_free; i++)
        if ((free >> c->gpu[i] & 1) &&
            (!(free >> c->gpu[worst] & 1) ||
             c->to_all[i] + c->base[i] <= c->to_all[worst] + c->base[worst]))
            worst = i;
    return worst;
}

static uint64_t leave_out(struct chooser *c, uint64_t free)
{
    for (uint32_t left = c->n_free; left > c->n; left--) {
        uint32_t worst = worst_of(c, free);

        free &= ~(UINT64_C(1) << c->gpu[worst]);
        for (uint32_t i = 0; i < c->n_free; i++)
            c->to_all[i] -= between(c, i, worst);
    }
    return free;
}

uint64_t stk_linked_choose(const stk_weight *weight, uint32_t gpus, uint64_t with, uint64_t free,
                           uint32_t n)
{
    struct chooser c = {.weight = weight, .gpus = gpus, .with = with, .n = n};

    if (n == 0 || (uint32_t)__builtin_popcountll(free) <= n)
        return n == 0 ? 0 : free;
    prepare(&c, free);
    return n_sets(c.n_free, n) <= STK_LINKED_SETS ? try_all(&c) : leave_out(&c, free);
}
