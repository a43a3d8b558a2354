/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_gpuview.c - any bytes as lines of the GPU helper: the first a list, the rest readings.
 * Whatever was read, every sentence about a GPU is text that a terminal only prints. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuview/gpuview.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct stk_gpu_owner owner(void *ctx, uint32_t gpu, const struct stk_gpu_proc *p)
{
    (void)ctx;
    (void)gpu;
    return (struct stk_gpu_owner){p->pid % 2 == 0 ? 1 : 0, p->pid % 4 == 0};
}

static void look(const struct stk_gpus *t)
{
    static const struct stk_gpu_rule rule = {STK_FOREIGN_PACK, 1, 1, 1, false};

    for (uint32_t i = 0; i < t->n; i++) {
        struct stk_gpu_verdict v;

        stk_gpuview_judge(t, i, &rule, owner, NULL, &v);
        for (const char *s = v.text; *s; s++) {
            if ((unsigned char)*s < 0x20 || *s == 0x7f) {
                (void)fprintf(stderr, "a control character in: %s\n", v.text);
                abort();
            }
        }
        json_decref(stk_gpuview_show(t, i, &v, owner, NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size;
    struct stk_gpus t;

    stk_gpus_init(&t);
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((nl ? nl : end) - at);

        if (t.n == 0)
            (void)stk_gpuview_list(&t, at, len, NULL);
        else if (stk_gpuview_sample(&t, at, len, NULL) == 0)
            look(&t);
        at += len + 1;
    }
    stk_gpus_done(&t);
    return 0;
}
