/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - see predict.h.
 *
 * Rings of run times: for sizes and for all jobs an array of them, for users and for their sizes a
 * table. A key of the table has four places it may lie in; a new one takes that of the key not used
 * for longest. */
#include "forecast/predict.h"

#include "base/hash.h"
#include "base/sort.h"

#define OWN 32u   /* run times kept of a user, and of each size of a user's jobs */
#define WIDE 128u /* of a size, and of all jobs */
#define SIZES 34u
#define WAYS 4u
#define SETS 4096u
#define ENOUGH 3u      /* run times that say something */
#define ANY UINT32_MAX /* size that does not matter */
#define MEDIAN_MILLI 500u
#define FULL_MILLI 1000u            /* of an estimate: all of it */
#define MOST_MILLI 100000           /* outruns beyond that are no longer told apart */
#define UNKNOWN (1800 * STK_SECOND) /* where nothing is known jobs run at least so long */
#define TAIL_MILLI 900u             /* who has outrun all runs at most ten times as long */

struct sample {
    stk_time run;
    uint32_t part; /* of the estimate, in thousandths; 0: there was none */
};

struct ring {
    uint32_t n;    /* samples so far, or all it has room for */
    uint32_t next; /* where the next one goes */
};

struct own {
    uint32_t user, size;
    uint64_t used; /* when it was last; 0: never */
    struct ring ring;
    struct sample s[OWN];
};

struct wide {
    struct ring ring;
    struct sample s[WIDE];
};

struct stk_predict {
    struct stk_mem mem;
    uint64_t clock;
    struct wide size[SIZES], all;
    struct own own[SETS * WAYS];
};

struct stk_predict *stk_predict_new(const struct stk_mem *mem)
{
    struct stk_predict *p = mem->resize(mem->ctx, NULL, 0, sizeof(*p));

    if (p)
        p->mem = *mem;
    return p;
}

void stk_predict_free(struct stk_predict *p)
{
    struct stk_mem mem;

    if (!p)
        return;
    mem = p->mem;
    (void)mem.resize(mem.ctx, p, sizeof(*p), 0);
}

/* Sizes that are alike: 1, 2, 3 to 4, 5 to 8 and so on. */
static uint32_t size_of(uint32_t gpus)
{
    return gpus <= 1 ? gpus : 33u - (uint32_t)__builtin_clz(gpus - 1);
}

static uint32_t set_of(uint32_t user, uint32_t size)
{
    return (uint32_t)(stk_hash_mix(user, size) % SETS) * WAYS;
}

static const struct own *find(const struct stk_predict *p, uint32_t user, uint32_t size)
{
    const struct own *o = &p->own[set_of(user, size)];

    for (uint32_t i = 0; i < WAYS; i++)
        if (o[i].used && o[i].user == user && o[i].size == size)
            return &o[i];
    return NULL;
}

/* The key's ring, or the one it takes from another. */
static struct own *claim(struct stk_predict *p, uint32_t user, uint32_t size)
{
    struct own *o = &p->own[set_of(user, size)], *oldest = o;

    for (uint32_t i = 0; i < WAYS; i++) {
        if (o[i].used && o[i].user == user && o[i].size == size)
            return &o[i];
        if (o[i].used < oldest->used)
            oldest = &o[i];
    }
    *oldest = (struct own){.user = user, .size = size};
    return oldest;
}

static void keep(struct ring *r, struct sample *kept, uint32_t room, struct sample s)
{
    kept[r->next] = s;
    r->next = (r->next + 1) % room;
    r->n += r->n < room;
}

static void keep_own(struct stk_predict *p, uint32_t user, uint32_t size, struct sample s)
{
    struct own *o = claim(p, user, size);

    o->used = ++p->clock;
    keep(&o->ring, o->s, OWN, s);
}

void stk_predict_ran(struct stk_predict *p, const struct stk_run_kind *k, stk_time run)
{
    uint32_t size = size_of(k->gpus);
    struct sample s = {.run = run};

    if (k->estimate > 0) {
        double part = (double)run / (double)k->estimate * FULL_MILLI;

        s.part = part > MOST_MILLI ? MOST_MILLI : part < 1 ? 1 : (uint32_t)part;
    }
    keep_own(p, k->user, size, s);
    keep_own(p, k->user, ANY, s);
    keep(&p->size[size].ring, p->size[size].s, WIDE, s);
    keep(&p->all.ring, p->all.s, WIDE, s);
}

/* What the sample says about a job with this estimate. */
static stk_time meant(const struct sample *s, stk_time estimate)
{
    if (estimate == 0 || s->part == 0)
        return s->run;
    return (stk_time)((double)estimate * s->part / FULL_MILLI);
}

/* Of the run times kept that are longer than 'so_far', the one at this place in their order; 0:
 * there are too few. */
static stk_time among(const struct sample *s, uint32_t n, stk_time estimate, stk_time so_far,
                      uint32_t milli)
{
    struct stk_sort_item t[WIDE], tmp[WIDE];
    uint32_t longer = 0;

    for (uint32_t i = 0; i < n; i++) {
        t[longer] = (struct stk_sort_item){.key = meant(&s[i], estimate), .id = i};
        longer += t[longer].key > so_far;
    }
    if (longer < ENOUGH)
        return 0;
    stk_sort(t, longer, tmp);
    return t[(uint64_t)milli * longer / FULL_MILLI].key;
}

/* Nobody ran as long: the chance to go on falls as one over the time. */
static stk_time beyond(stk_time so_far, uint32_t milli)
{
    stk_time from = so_far > UNKNOWN ? so_far : UNKNOWN,
             left = FULL_MILLI - (milli < TAIL_MILLI ? milli : TAIL_MILLI);

    if (from > STK_MAX_DURATION / FULL_MILLI)
        return so_far < STK_MAX_DURATION ? STK_MAX_DURATION : so_far + 1;
    return from * FULL_MILLI / left + 1;
}

stk_time stk_predict_run(const struct stk_predict *p, const struct stk_run_kind *k, stk_time so_far,
                         uint32_t milli)
{
    const uint32_t size = size_of(k->gpus);
    const struct own *own[] = {find(p, k->user, size), find(p, k->user, ANY)};
    const struct wide *wide[] = {&p->size[size], &p->all};
    stk_time t = 0;

    for (uint32_t i = 0; t == 0 && i < 2; i++)
        t = own[i] ? among(own[i]->s, own[i]->ring.n, k->estimate, so_far, milli) : 0;
    for (uint32_t i = 0; t == 0 && i < 2; i++)
        t = among(wide[i]->s, wide[i]->ring.n, k->estimate, so_far, milli);
    if (t > 0)
        return t;
    return k->estimate > so_far ? k->estimate : beyond(so_far, milli);
}

stk_time stk_predict_limited(const struct stk_predict *p, const struct stk_run_kind *k,
                             stk_time so_far, uint32_t milli)
{
    stk_time t = stk_predict_run(p, k, so_far, milli);

    return k->estimate > so_far && t > k->estimate ? k->estimate : t;
}

/* The median of run times as they were, not as parts of what was asked for then. */
static stk_time median(const struct own *o)
{
    return o ? among(o->s, o->ring.n, 0, 0, MEDIAN_MILLI) : 0;
}

stk_time stk_predict_estimate(const struct stk_predict *p, const struct stk_run_kind *k)
{
    const stk_time t = median(find(p, k->user, size_of(k->gpus)));

    if (k->estimate > 0)
        return t > 0 && t < k->estimate ? t : k->estimate;
    return t > 0 ? t : median(find(p, k->user, ANY));
}
