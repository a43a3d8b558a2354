/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sequence.c - any bytes as the order in which jobs come. What was read names jobs and ranks
 * that exist. */
#include <stdint.h>
#include <stdlib.h>

#include "sim/sequence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_sequence q = {.trace_jobs = 5, .n_nodes = 3};
    struct stk_err err = {{0}};

    if (stk_sequence_parse(&q, "fuzz", (const char *)data, size, &err) < 0) {
        if (err.text[0] == '\0' || q.jobs || q.ranks)
            abort();
        return 0;
    }
    for (uint32_t i = 0; i < q.n_jobs; i++)
        if (q.jobs[i] >= 5)
            abort();
    if (q.ranks[0] + q.ranks[1] + q.ranks[2] != 3 || q.ranks[0] == q.ranks[1])
        abort();
    stk_sequence_done(&q);
    return 0;
}
