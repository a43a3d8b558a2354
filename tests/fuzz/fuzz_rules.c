/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rules.c - bytes as a file of rules. What is read is followed for some time: rules never
 * fail, and time goes on. */
#include <stdint.h>
#include <string.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "rules/read.h"
#include "sys/big.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t find(void *ctx, enum stk_rules_noun noun, const char *name)
{
    (void)ctx;
    (void)noun;
    return strlen(name) < 3 ? (uint32_t)(unsigned char)name[0] : STK_NONE;
}

static const char *name(void *ctx, enum stk_rules_noun noun, uint32_t row)
{
    (void)ctx;
    (void)noun;
    return row % 2 ? "vision" : NULL;
}

static int64_t half(void *ctx, uint32_t pool)
{
    (void)ctx;
    (void)pool;
    return 500;
}

static int64_t hour(void *ctx, uint32_t pool, stk_time now)
{
    (void)ctx;
    (void)pool;
    return now % (2 * 3600 * STK_SECOND);
}

static int accept(void *ctx, const struct stk_set *e, struct stk_err *err)
{
    char text[300];

    (void)ctx;
    stk_rules_describe(e, name, NULL, text, sizeof(text));
    return e->row % 5 == 4 ? stk_err_set(err, -EINVAL, "no") : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct stk_rules_world w = {NULL, find, "UTC"};
    const struct stk_rules_view v = {NULL, half, hour, accept};
    struct stk_rules r = {.mem = stk_big_mem, .epoch_us = INT64_C(1774746000) * STK_SECOND};
    stk_time now = 0;

    if (stk_rules_parse(&r, "rules.yaml", (const char *)data, size, &w, NULL) == 0) {
        stk_rules_begin(&r, now);
        for (int i = 0; i < 20 && now < STK_NEVER_TIME; i++) {
            stk_time next;

            require(stk_rules_step(&r, now, &v, NULL) == 0, "rules go on");
            next = stk_rules_wake(&r);
            require(next > now, "time goes on");
            now = next;
        }
    }
    stk_rules_done(&r);
    return 0;
}
