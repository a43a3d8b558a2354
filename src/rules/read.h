/* SPDX-License-Identifier: Apache-2.0 */
/* read.h - rules from JSON, and from files of YAML (docs/spec/rules.md):
 *
 *     zone: Europe/Berlin
 *     rules:
 *       - name: day
 *         when: 0 8 * * *
 *         until: 0 20 * * *
 *         then:
 *           - {pool: inference, nodes: 2-7, evict: yes}
 *           - {tenant: research, limit: 16}
 *       - name: crowded
 *         when: {wait_above: 30m, pool: training, for: 10m}
 *         then: [{param: tier.classes, value: "300"}]
 */
#ifndef STK_RULES_READ_H
#define STK_RULES_READ_H

#include <jansson.h>

#include "rules/rules.h"

#define STK_MAX_RULES_FILE 262144 /* bytes */

enum stk_rules_noun {
    STK_RULES_TENANT,
    STK_RULES_QUEUE,
    STK_RULES_POOL,
    STK_RULES_NODE,
    STK_RULES_GPU_TYPE
};

struct stk_rules_world { /* what names mean here */
    void *ctx;
    uint32_t (*find)(void *ctx, enum stk_rules_noun noun, const char *name); /* STK_NONE: nothing */
    const char *zone; /* of rules that name none; NULL: local */
};

/* One rule as JSON, checked whole, is added. -EINVAL with what is wrong where. */
int stk_rules_read(struct stk_rules *r, json_t *o, const struct stk_rules_world *w,
                   struct stk_err *err);
/* A file's text: {zone, every, rules}. 'name' is used in messages. */
int stk_rules_parse(struct stk_rules *r, const char *name, const char *text, size_t len,
                    const struct stk_rules_world *w, struct stk_err *err);
/* The same as a list of rules in JSON, each with its zone, not looked into. */
int stk_rules_tree(const char *name, const char *text, size_t len, json_t **ret_list,
                   int64_t *ret_every_s, struct stk_err *err);
/* Whether it has only keys of these, which end with NULL; else 'what' says which it has, and which
 * may be meant. */
bool stk_rules_known(json_t *o, const char *const *keys, char *what, size_t size);
/* What a set does, in words: "tenant research: limit 16 GPUs". 'name' has the names of rows; it may
 * answer NULL: then the row's number is said. */
typedef const char *(*stk_rules_name_fn)(void *ctx, enum stk_rules_noun noun, uint32_t row);
void stk_rules_describe(const struct stk_set *e, stk_rules_name_fn name, void *ctx, char *buf,
                        size_t size);

#endif
