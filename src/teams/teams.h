/* SPDX-License-Identifier: Apache-2.0 */
/* teams.h - who shares the GPUs: tenants, queues and classes, from YAML (docs/spec/tenants.md). The
 * daemon's configuration has these keys, and so has a file of the simulator:
 *
 *     tenants:
 *       - name: research
 *         limit: 64                  # GPUs, over all types
 *         limits: {A100: 16}         # of a type
 *         guarantee: 32              # always to be had; guarantees: of a type
 *         weight: 2                  # share of what is above guarantees
 *         cpus: 512                  # limits on CPUs and memory, too
 *         mem_gib: 4096
 *         keep_up: 3                 # of its jobs so many stay up, whoever needs room
 *         was: science               # its name before: jobs of that one are its own
 *         tenants:
 *           - {name: vision, limit: 40, users: [ann, "@vision"], allow: {preempt: yes}}
 *           - {name: speech, limit: 8.5}
 *       - {name: default, limit: 4}  # who is not in the file
 *     classes: {inference: 1000, training: 500, batch: 100}
 *     queues:
 *       express: {class: inference, job: {gpus: 2, time: 1h}, user: {gpus: 2, jobs: 4}}
 *       night: {class: batch, tier: best-effort}
 *       urgent: {tier: critical, allow: {users: ["@oncall"]}, user: {gpus: 2}}
 *       reserved: off
 *     default_queue: standard
 *
 * GPU types and pools are kept by name until stk_teams_resolve(): when a configuration is read, the
 * machine is not known yet.
 */
#ifndef STK_TEAMS_TEAMS_H
#define STK_TEAMS_TEAMS_H

#include "base/err.h"
#include "model/queue.h"
#include "model/tenant.h"
#include "sys/names.h"
#include "sys/user.h"

#define STK_TENANT_DEFAULT "default"
#define STK_MAX_MEMBERS 65536u
#define STK_TEAMS_WORDS 256

struct stk_member { /* a user of a tenant */
    uint32_t user;  /* in 'users'; a group of the system begins with @ */
    uint32_t tenant;
    int line; /* of the configuration */
};

/* What a queue or a tenant allows users who are no operators (docs/spec/rights.md). Zeroed: nothing
 * was said. */
struct stk_allow {
    uint8_t tiers; /* bits; 0: not said */
    bool has_classes;
    int32_t lowest, most; /* priorities; of tenants: a queue has its own */
    bool has_preempt, preempt;
    bool has_users;
    uint32_t *users, n_users; /* in 'users': names, "@group", "role:user"; of queues */
};

enum stk_teams_key {
    STK_TEAMS_TENANTS,
    STK_TEAMS_CLASSES,
    STK_TEAMS_QUEUES,
    STK_TEAMS_DEFAULT,
    STK_TEAMS_KEYS
};
struct fy_node;

struct stk_teams { /* zeroed: nothing was said */
    struct stk_tenant_spec *tenants;
    uint32_t n_tenants, cap_tenants; /* 0: there are none, not even the default */
    struct stk_names names;          /* of the tenants, by row */
    struct stk_names old;            /* names that tenants had before */
    uint32_t *old_row;               /* the tenant of each */
    struct stk_names users;
    struct stk_allow *tenant_allow; /* by row */
    struct stk_member *members;     /* as they stand in the text */
    uint32_t n_members, cap_members;

    struct stk_queue_spec queues[STK_MAX_QUEUES]; /* the first is for jobs that name none */
    uint32_t n_queues;                            /* 0: the built in ones */
    uint32_t queue_pool[STK_MAX_QUEUES];          /* that each names, + 1; 0: none */
    struct stk_allow queue_allow[STK_MAX_QUEUES]; /* by row */
    struct stk_class classes[STK_MAX_CLASSES];
    uint32_t n_classes;           /* likewise */
    char *words[STK_TEAMS_WORDS]; /* names of queues and classes */
    uint32_t n_words;

    struct stk_names types, pools; /* that were named, and where first */
    int type_line[STK_MAX_GPU_TYPES], pool_line[STK_MAX_QUEUES];
    struct { /* found, and not read yet */
        struct fy_node *key, *value;
    } found[STK_TEAMS_KEYS];
};

/* Reads the text into empty teams. 0, or -Exxx with "name:line: what is wrong"; stk_teams_done() in
 * every case. */
int stk_teams_parse(struct stk_teams *t, const char *name, const char *text, size_t len,
                    struct stk_err *err);
void stk_teams_done(struct stk_teams *t);

/* For a file that has other keys, too: each of ours is put aside as it comes (false: it is none of
 * ours), and all of them are read when the last has come. The document must still be there then.
 * What is built in is filled in. */
bool stk_teams_take(struct stk_teams *t, struct fy_node *key, struct fy_node *value);
int stk_teams_read(struct stk_teams *t, const char *name, struct stk_err *err);

/* The numbers of GPU types and pools. 'loose': a type may be part of the name of one, whatever the
 * case of its letters. Pools that share nodes are one ('pool_of'; NULL: none do): that is the one
 * that a queue has, and 'queue_pool' the one that it names. -EINVAL for one that is not there. */
struct stk_teams_world {
    const char *name; /* of the file, for messages */
    const char *const *types, *const *pools;
    const uint32_t *pool_of;
    uint32_t n_types, n_pools;
    bool loose;
};
int stk_teams_resolve(struct stk_teams *t, const struct stk_teams_world *w, struct stk_err *err);

/* Rows of the tenants that the user is a member of, in the order of the text: how many there are,
 * of which at most 'max' are written. */
uint32_t stk_teams_of(const struct stk_teams *t, const struct stk_user *u, uint32_t *ret,
                      uint32_t max);
/* The row of this name, else of the tenant that had it before, or STK_NONE. */
uint32_t stk_teams_find(const struct stk_teams *t, const char *tenant);
bool stk_teams_leaf(const struct stk_teams *t, uint32_t tenant);    /* none are below it */
bool stk_teams_is_user(const struct stk_user *u, const char *name); /* "ann", "@group" */

/* What a user who is no operator may ask for in a queue, as a member of a tenant. */
struct stk_rights {
    bool queue; /* may use it */
    uint32_t tiers;
    int32_t lowest, most; /* priorities */
    bool preempt;         /* the class of the priority counts */
    /* Whose setting it is: "queue", "tenant", or "" for what holds when nothing is said. */
    const char *tiers_of, *classes_of;
    uint32_t tiers_tenant, classes_tenant; /* rows, where it is a tenant's */
};
/* 't' may be NULL, and there may be no tenants: then 'tenant' does not matter. */
struct stk_rights stk_teams_rights(const struct stk_teams *t, const struct stk_user *u,
                                   uint32_t tenant, uint32_t queue);

#endif
