/* SPDX-License-Identifier: Apache-2.0 */
/* read.h - what reading tenants and reading queues have in common. Nobody else includes it. */
#ifndef STK_TEAMS_READ_H
#define STK_TEAMS_READ_H

#include "teams/teams.h"
#include "yaml/yaml.h"

#define STK_TEAMS_MAX_GPUS 10000000
#define STK_TEAMS_GPUS "a number of GPUs (0 to 10000000, in thousandths)"

struct stk_teams_reader {
    struct stk_teams *t;
    const char *name; /* of the file */
    struct stk_err *err;
};

/* "file:line: what"; -EINVAL. */
int stk_teams_bad(const struct stk_teams_reader *r, struct fy_node *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int stk_teams_no_memory(const struct stk_teams_reader *r);

/* The text of a plain value, not terminated; "" and 0 when it is none. */
const char *stk_teams_word(struct fy_node *n, size_t *ret_len);
bool stk_teams_is(struct fy_node *n, const char *word);
/* Of a word, what fits into a message. */
struct stk_teams_shown {
    char text[48];
};
struct stk_teams_shown stk_teams_show(struct fy_node *n);

/* The values of a mapping, by key. A key that is not among them, or has no value, is refused. */
struct stk_teams_field {
    const char *key; /* NULL: the last */
    struct fy_node *value;
};
int stk_teams_fields(const struct stk_teams_reader *r, struct fy_node *map, const char *what,
                     struct stk_teams_field *fields);

/* A number in thousandths, at most 'max' whole ones; 'what' says so. */
int stk_teams_milli(const struct stk_teams_reader *r, const char *what, struct fy_node *v,
                    uint64_t max, uint64_t *ret);
/* The number of a GPU type or pool in 'names', with the line where it stood first. */
int stk_teams_name(const struct stk_teams_reader *r, struct stk_names *names, int *lines,
                   uint32_t max, struct fy_node *v, uint32_t *ret);

/* A tier by its name; the lowest and the highest priority: [batch, training]. */
int stk_teams_tier(const struct stk_teams_reader *r, struct fy_node *v, enum stk_tier *ret);
int stk_teams_range(const struct stk_teams_reader *r, struct fy_node *list, int32_t *ret_lowest,
                    int32_t *ret_most);
/* "allow:" of a queue or a tenant; 'ret' is zeroed. */
int stk_teams_allow(const struct stk_teams_reader *r, struct fy_node *map, bool of_queue,
                    struct stk_allow *ret);
void stk_teams_allow_done(struct stk_allow *a);

int stk_teams_tenants(const struct stk_teams_reader *r, struct fy_node *at, struct fy_node *list);
/* Both may be NULL: what is built in. Classes first. */
int stk_teams_classes(const struct stk_teams_reader *r, struct fy_node *map);
int stk_teams_queues(const struct stk_teams_reader *r, struct fy_node *map);
/* The queue for jobs that name none becomes the first. */
int stk_teams_default(const struct stk_teams_reader *r, struct fy_node *name);

#endif
