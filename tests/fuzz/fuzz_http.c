/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http.c - any bytes as an HTTP response, read whole and in odd steps: the verdict, the status
 * and the body must be the same, and no limit may be passed. The first byte chooses the steps. */
#include <stdint.h>

#include "client/answer.h"
#include "fuzz/require.h"

#define MAX_BODY 2000U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    int rc, status;
    uint64_t n, hash;
};

static int take(void *ctx, const char *data, size_t n)
{
    struct outcome *o = ctx;

    require(n > 0, "bodies come in pieces that are not empty");
    for (size_t i = 0; i < n; i++)
        o->hash = (o->hash ^ (uint8_t)data[i]) * 1099511628211U;
    o->n += n;
    return 0;
}

static struct outcome read_in_steps(const char *in, size_t n, size_t step)
{
    struct outcome o = {0};
    struct stk_err err = {""};
    struct stk_answer h;
    size_t at = 0;

    stk_answer_init(&h, MAX_BODY);
    while (at < n && !stk_answer_done(&h) && o.rc == 0) {
        size_t k = n - at < step ? n - at : step;
        ssize_t used = stk_answer_feed(&h, in + at, k, take, &o, &err);

        require(used <= (ssize_t)k, "no more used than there was");
        require(used < 0 || used == (ssize_t)k || stk_answer_done(&h), "all used, or complete");
        if (used < 0)
            o.rc = (int)used;
        else
            at += (size_t)used;
    }
    if (o.rc == 0)
        o.rc = stk_answer_end(&h, &err);
    require(o.rc == 0 || err.text[0], "a refusal says why");
    require(o.n <= MAX_BODY, "the body is bounded");
    require(o.rc < 0 || h.status >= 200, "a complete response has a status");
    o.status = h.status;
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome a, b;

    if (size < 1)
        return 0;
    a = read_in_steps((const char *)data + 1, size - 1, SIZE_MAX);
    b = read_in_steps((const char *)data + 1, size - 1, 1 + data[0] % 16U);
    /* how much of a body over the limit was passed on depends on the steps */
    require(a.rc == b.rc && (a.rc < 0 || (a.status == b.status && a.n == b.n && a.hash == b.hash)),
            "steps make no difference");
    return 0;
}
