/* SPDX-License-Identifier: Apache-2.0 */
/* store_fixture.h - what the store's tests share: a directory, an open store, rows to write. */
#ifndef STK_TESTS_STORE_FIXTURE_H
#define STK_TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/tmpdir.h"
#include "store/store.h"

#define T0 ((stk_time)1700000000 * STK_SECOND)

struct box {
    struct fx_dir dir;
    struct stk_store *st;
    struct stk_err err;
};

#define ok(b, call)                                                                                \
    do {                                                                                           \
        int ok_rc = (call);                                                                        \
        if (ok_rc != 0)                                                                            \
            fail_msg("%s: %d, %s", #call, ok_rc, (b)->err.text);                                   \
    } while (0)

static inline void box_open(struct box *b)
{
    ok(b, stk_store_open(b->dir.path, 0, &b->st, &b->err));
}

static inline void box_close(struct box *b)
{
    stk_store_close(b->st);
    b->st = NULL;
}

static inline int box_setup(void **state)
{
    static struct box b; /* one test at a time */

    b = (struct box){0};
    fx_dir_make(&b.dir);
    *state = &b;
    return 0;
}

static inline int box_setup_open(void **state)
{
    (void)box_setup(state);
    box_open(*state);
    return 0;
}

static inline int box_teardown(void **state)
{
    struct box *b = *state;

    box_close(b);
    fx_dir_remove(&b->dir);
    return 0;
}

#define boxed(f) cmocka_unit_test_setup_teardown(f, box_setup, box_teardown)
#define boxed_open(f) cmocka_unit_test_setup_teardown(f, box_setup_open, box_teardown)

/* Appends an event whose bytes say which job it is about. */
static inline uint64_t append(struct box *b, stk_job_number number)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "event of job %u", number);
    struct stk_row e = {
        .at = T0 + number, .type = 3, .number = number, .bytes = text, .len = (size_t)n};
    uint64_t seq = 0;

    ok(b, stk_store_append(b->st, &e, &seq, &b->err));
    return seq;
}

/* A description and a record of a live job. */
static inline struct stk_record put_job(struct box *b, stk_job_number number, uint32_t uid)
{
    struct stk_record r = {.number = number,
                           .uid = uid,
                           .gid = 100,
                           .user = uid % 2 ? "odd" : "even",
                           .name = number % 3 ? "train" : "eval",
                           .submitted = T0 + number,
                           .gpus = 4,
                           .tasks = 1};

    ok(b, stk_store_spec_put(b->st, "{\"gpus\": 4}", 11, &r.spec, &b->err));
    ok(b, stk_store_job_put(b->st, &r, &b->err));
    return r;
}

static inline void end_job(struct box *b, struct stk_record *r, stk_time at, enum stk_cause cause)
{
    r->first_started = r->started = r->submitted;
    r->ended = at;
    r->cause = cause;
    r->served = at - r->started;
    ok(b, stk_store_job_update(b->st, r, &b->err));
}

static inline void begin(struct box *b)
{
    ok(b, stk_store_begin(b->st, &b->err));
}

static inline void commit(struct box *b)
{
    ok(b, stk_store_commit(b->st, &b->err));
}

#define refused(b, code, part, call)                                                               \
    do {                                                                                           \
        int refused_rc;                                                                            \
        (b)->err.text[0] = '\0';                                                                   \
        refused_rc = (call);                                                                       \
        if (refused_rc != (code) || !strstr((b)->err.text, part))                                  \
            fail_msg("%s: %d, \"%s\" and not %d, \"%s\"", #call, refused_rc, (b)->err.text, code,  \
                     part);                                                                        \
    } while (0)

#endif
