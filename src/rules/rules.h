/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - when (a time that comes again, or a condition that has held for some time) then (values
 * are others), until (a time, a while, or the condition is gone). docs/spec/rules.md.
 *
 * A rule is in force or it is not. What is in force together says which values there should be:
 * where two rules set the same, the later in the list. What differs from what was set before
 * becomes SET events (model/set.h); what nobody sets any more is cleared, and so is what it was
 * without rules. The same code runs in the simulator and in the daemon: both hand in the time,
 * answer what conditions ask, and apply the events.
 *
 * Whether a rule by the clock is in force follows from the time alone: after a restart it is what
 * it should be. Conditions are looked at once in 'every', not at each event.
 */
#ifndef STK_RULES_RULES_H
#define STK_RULES_RULES_H

#include "base/mem.h"
#include "model/id.h"
#include "model/set.h"
#include "model/time.h"
#include "when/cron.h"

#define STK_MAX_RULES 256
#define STK_MAX_RULE_NAME 64
#define STK_MAX_RULE_SETS 4096 /* of one rule */
#define STK_RULES_EVERY (10 * STK_SECOND)

enum stk_rule_when { STK_WHEN_CRON, STK_WHEN_UTILIZATION, STK_WHEN_WAIT };
enum stk_rule_until { STK_UNTIL_CRON, STK_UNTIL_WHILE, STK_UNTIL_GONE };

struct stk_rule {
    char name[STK_MAX_RULE_NAME];
    enum stk_rule_when when;
    struct stk_cron cron; /* CRON */
    uint32_t zone;        /* of both crons: index into zones */
    bool above;           /* else below */
    int64_t bound;        /* UTILIZATION: thousandths; WAIT: microseconds */
    uint32_t pool;        /* STK_NONE: all */
    stk_time hold;        /* how long the condition must be so, and how long not to be gone */
    enum stk_rule_until until;
    struct stk_cron end;
    stk_time lasts; /* WHILE */
    struct stk_set *set;
    uint32_t n_set, cap_set;

    bool on;
    stk_time since;   /* it is so */
    stk_time turning; /* the condition has been otherwise since then; STK_NEVER_TIME: it is not */
    stk_time next;    /* when it is looked at again */
    bool tried;       /* what it sets, since it is in force */
    bool told;        /* somebody, of the next */
    struct stk_err sorry; /* what it sets was refused; "" */
};

struct stk_rules { /* zeroed: none; but 'mem' must be set */
    struct stk_mem mem;
    struct stk_rule *rule;
    uint32_t n, cap;
    struct stk_zone **zone; /* by name, each once */
    uint32_t n_zones, cap_zones;
    stk_time every;      /* 0: STK_RULES_EVERY */
    int64_t epoch_us;    /* Unix time at the time 0 */
    struct stk_set *set; /* what the rules have set */
    uint32_t n_set, cap_set;
    struct stk_set *want; /* scratch */
    uint32_t *by;         /* scratch: of each that is wanted, the rule */
    uint32_t cap_want, cap_by;
};

/* What conditions ask: a pool's GPUs in use, thousandths of those that are up; how long the job
 * that has waited longest has waited, microseconds, 0 when none waits. STK_NONE: of all pools. */
struct stk_rules_view {
    void *ctx;
    int64_t (*utilization)(void *ctx, uint32_t pool);
    int64_t (*wait)(void *ctx, uint32_t pool, stk_time now);
    /* The event. 0, -EINVAL: refused, with a sentence; others end the step. */
    int (*apply)(void *ctx, const struct stk_set *set, struct stk_err *err);
};

void stk_rules_done(struct stk_rules *r);
/* Adds a zone, or finds it. -ENOMEM. */
int stk_rules_zone(struct stk_rules *r, const struct stk_zone *z, uint32_t *ret);
/* A copy of the rule, its sets included; the name must be new. -EEXIST, -ENOSPC, -ENOMEM. */
int stk_rules_add(struct stk_rules *r, const struct stk_rule *rule, struct stk_err *err);
struct stk_rule *stk_rules_find(const struct stk_rules *r, const char *name);
void stk_rules_remove(struct stk_rules *r,
                      struct stk_rule *rule); /* its values go with the next step */

/* From now on: rules by the clock are in force if they should be. */
void stk_rules_begin(struct stk_rules *r, stk_time now);
/* One rule that came later. */
void stk_rule_begin(const struct stk_rules *r, struct stk_rule *rule, stk_time now);
/* The clock was set back: rules by the clock are in force if they should be now. */
void stk_rules_set_back(struct stk_rules *r, stk_time now);
stk_time stk_rules_wake(const struct stk_rules *r); /* STK_NEVER_TIME: never */
/* Looks at what is due, and sets what follows. Refused values are left out, and the rule says so.
 */
int stk_rules_step(struct stk_rules *r, stk_time now, const struct stk_rules_view *v,
                   struct stk_err *err);

/* When a rule by the clock next begins and ends, after that time. */
stk_time stk_rule_next_begin(const struct stk_rules *r, const struct stk_rule *rule,
                             stk_time after);
stk_time stk_rule_next_end(const struct stk_rules *r, const struct stk_rule *rule, stk_time begun);

#endif
