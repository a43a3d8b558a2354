/* SPDX-License-Identifier: Apache-2.0 */
/* tenant.h - what each tenant's jobs have, and how much they may have (model/tenant.h).
 *
 * A lease counts for its job's tenant and all above it, over all GPU types and by type; that costs
 * O(depth) when it begins and ends. A job starts only while it is within every limit from its
 * tenant up. One lease may mix types, so a type is open to a job while the whole job is within the
 * type's limits: whatever mix of open types it then gets is within all of them.
 *
 * Jobs wait in shapes, and a verdict serves a whole shape (core/shape.h). So the shape of a job
 * under a limit also names the nearest tenant up from its own that has one; jobs under no limit
 * share their shapes as ever. One over a limit is parked with the tenant whose limit it is, and
 * woken when the use of that tenant falls: where several are in the way, with the topmost of them,
 * since whatever falls below it falls there, too. One that some types are closed to, and that does
 * not fit on the others, is parked as any other that lacks room; its tenant remembers that, and the
 * next fall wakes all that lack room.
 */
#ifndef STK_CORE_TENANT_H
#define STK_CORE_TENANT_H

#include "base/bytes.h"
#include "core/blocks.h"
#include "core/core.h"
#include "core/state.h"
#include "model/reason.h"

struct stk_tenant {
    const char *name;        /* somebody else's */
    const char *was;         /* the name that it had before; NULL: none */
    uint32_t parent;         /* tenant + 1; 0: none */
    uint32_t child, sibling; /* the first below it, the next beside it; tenant + 1; 0: none */
    uint32_t limited;        /* the nearest with a limit, from itself up; tenant + 1; 0: none. Where
                                guarantees are kept, itself */
    uint32_t weight;         /* in thousandths */
    bool leaf;
    uint32_t keep_up; /* of its jobs so many stay up (core/budget.h) */
    uint32_t up;      /* so many are */
    uint32_t taken;   /* scratch: of a set that is being tried */
    bool spared;      /* cache: somebody would have gone, and is needed */
    uint32_t seen;    /* scratch of sound() */
    /* caches (core/fair.h) */
    struct stk_otree jobs; /* in the order in which they are its own */
    bool walked;           /* since something changed, */
    uint32_t stamp;        /* marking its own with this */
    uint32_t shapes;       /* its shapes; shape + 1 */
    bool under;            /* it had less than it was due when last looked at */
    /* caches */
    uint32_t parked; /* shapes over a limit of its; shape + 1 */
    bool closed;     /* for a limit of its some shape was not tried on all types */
};

/* Over all types, or of one. */
#define STK_ALL_TYPES 0u
#define STK_OF_TYPE(t) ((t) + 1u)

static inline uint64_t *stk_tenant_limit(const struct stk_state *s, uint32_t tenant, uint32_t of)
{
    return &s->tenant_limits[(size_t)tenant * s->n_tenant_cols + of];
}

static inline uint64_t *stk_tenant_used(const struct stk_state *s, uint32_t tenant, uint32_t of)
{
    return &s->tenant_used[(size_t)tenant * s->n_tenant_cols + of];
}

/* What it can always have. */
static inline const uint64_t *stk_tenant_guarantee(const struct stk_state *s, uint32_t tenant,
                                                   uint32_t of)
{
    return &s->tenant_guarantees[(size_t)tenant * s->n_tenant_cols + of];
}

/* Needs the nodes. 0, -EINVAL with what is wrong with the table, or -ENOMEM. */
int stk_tenants_init(struct stk_state *s, const struct stk_tenant_spec *specs, uint32_t n,
                     struct stk_err *err);
void stk_tenants_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* Jobs of this tier are never evicted: all of a tenant's together stay within its guarantee, so
 * that what others are guaranteed can always be had. */
static inline bool stk_tenant_firm(const struct stk_state *s, enum stk_tier tier)
{
    return s->firm && s->guarantees && tier == STK_TIER_CRITICAL;
}

/* Its share against its siblings', in thousandths; at least 1. */
static inline uint32_t stk_tenant_weight(const struct stk_state *s, uint32_t tenant)
{
    return s->tenants[tenant].weight ? s->tenants[tenant].weight : 1;
}

/* What a shape of this tenant's jobs carries: 'limited'. */
static inline uint32_t stk_tenant_limited(const struct stk_state *s, uint32_t tenant)
{
    return s->n_tenants ? s->tenants[tenant].limited : 0;
}

/* Whether the tenant exists and may have jobs; whether the job could ever be within its limits.
 * *ret_types: GPU types that it could have then. */
int stk_tenant_check(const struct stk_state *s, const struct stk_job_spec *spec,
                     uint64_t *ret_types, struct stk_err *err);

/* GPU types open to one more job of the shape now; 0: it is over a limit. */
uint64_t stk_tenant_open(const struct stk_state *s, uint32_t shape);
/* Whether they are the same beside this job, which the pool's reservation is for. */
bool stk_tenant_beside(const struct stk_state *s, uint32_t shape, uint32_t job);

/* The topmost tenant with a limit that closes a type to the shape, or all; STK_NONE. */
uint32_t stk_tenant_in_the_way(const struct stk_state *s, uint32_t shape);
/* For decide(): the shape does not fit on the types that are open to it, or (beside) is over a
 * limit with the job that the reservation is for. */
void stk_tenant_note(struct stk_state *s, uint32_t shape, bool beside);

/* The job got a lease, or gives it back; its pieces are known. Whoever is within all limits again
 * is woken. See core/limit.h. */
void stk_tenant_took(struct stk_state *s, const struct stk_job *j);
void stk_tenant_gave(struct stk_state *s, const struct stk_job *j);

/* While a plan is made: the job goes by it, or is being stopped, and does not count for limits; or
 * (not going) does again. */
void stk_tenant_going(struct stk_state *s, const struct stk_job *j, bool going);

/* The limit that is in its way, as a reason; false: none is. */
bool stk_tenant_why(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r);

/* Names, for save and load. get: the number here of each that was saved; 0 where the name is not
 * known here. */
/* The tenant of this name, else the one that had it before; STK_NONE. */
uint32_t stk_tenant_named(const struct stk_state *s, const unsigned char *name, uint32_t len);
void stk_tenant_put_names(struct stk_bytes *b, const struct stk_state *s);
int stk_tenant_get_names(struct stk_reader *r, const struct stk_state *s, uint32_t **ret_here,
                         uint32_t *ret_n, uint32_t *ret_cap);

bool stk_tenants_sound(const struct stk_state *s, struct stk_err *err);

#endif
