/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_slurm_marks.c - bytes as an administrator's comment and as a list of array elements: what is
 * read is read again as it was written, and ranks count up. */
#include <stdint.h>
#include <string.h>

#include "engine/slurm/marks.h"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct ranks {
    const char *list;
    uint32_t n;
};

static int each(void *ctx, uint32_t task)
{
    struct ranks *r = ctx;

    require(stk_slurm_task_at(r->list, r->n) == task, "an element is found by its rank");
    require(stk_slurm_task_rank(r->list, task) == r->n++, "ranks count up");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[4096], again[4096];
    static struct stk_slurm_mark m, m2;
    struct stk_slurm_claim c, c2;
    struct ranks r = {.list = text};

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (stk_slurm_mark_read(text, "abc", &m)) {
        stk_slurm_mark_write(&m, "abc", again, sizeof(again));
        require(stk_slurm_mark_read(again, "abc", &m2) && m2.first == m.first &&
                    strcmp(m.tasks, m2.tasks) == 0,
                "a mark comes back");
    }
    if (stk_slurm_claim_read(text, &c)) {
        stk_slurm_claim_write(&c, NULL, again, sizeof(again));
        require(stk_slurm_claim_read(again, &c2) && c2.signal == c.signal, "a claim comes back");
    }
    if (stk_slurm_tasks(text, 1000, each, &r) == 0)
        require(r.n == stk_slurm_task_count(text), "as many as are counted");
    return 0;
}
