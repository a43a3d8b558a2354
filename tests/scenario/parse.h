/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - what the files that read a scenario share: words.c (lines into words), setting.c
 * (cluster, policies, tenants, queues), jobs.c, steps.c (what happens and what is expected),
 * parse.c (lines, one after the other). Readers return 0, or -EINVAL with "line N: what is wrong".
 */
#ifndef STK_TESTS_SCENARIO_PARSE_H
#define STK_TESTS_SCENARIO_PARSE_H

#include "scenario.h"

#define MAX_WORDS 64

struct parser {
    struct scenario *s;
    struct stk_err *err;
    uint32_t line;
    stk_time now;
    char buf[SCN_MAX_LINE + 1];
    const char *word[MAX_WORDS]; /* of what is being read */
    uint32_t n;
};

int scn_wrong(const struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool scn_name_ok(const char *s);
/* Words of a text that is cut into pieces for that. */
int scn_split(struct parser *p, char *text);
bool scn_is(const struct parser *p, uint32_t i, const char *word);
bool scn_is_gpus(const struct parser *p, uint32_t i);
int64_t scn_milli(const char *s); /* a decimal number in thousandths; -1: it is none */
int64_t scn_whole(const char *s);
uint32_t scn_find_job(const struct scenario *s, const char *name, size_t len); /* SCN_NONE */
/* Room for more elements of an array. */
int scn_grow(const struct parser *p, void **array, uint32_t *cap, uint32_t need, size_t size);
/* Each clause of a list with commas. */
int scn_clauses(struct parser *p, char *text, int (*one)(struct parser *, void *, bool), void *ctx);

int scn_read_cluster(struct parser *p, char *text);
int scn_read_policy(struct parser *p, char *text);
int scn_read_param(struct parser *p, char *text);
int scn_read_tenant(struct parser *p, char *text);
int scn_read_queue(struct parser *p, char *text);
int scn_read_reserve(struct parser *p, char *text);
/* The tenants below 'parent', as YAML. */
bool scn_write_tenants(struct scenario *s, const char *parent, uint32_t depth);
int scn_read_submit(struct parser *p, char *text);
int scn_read_expect(struct parser *p); /* it is split */
int scn_read_action(struct parser *p);
/* "NAME" or "for JOB" at this word, which is moved behind it. */
int scn_window_named(struct parser *p, uint32_t *io_at, struct scn_step *step);
int scn_expect_window(struct parser *p, struct scn_step *step);

#endif
