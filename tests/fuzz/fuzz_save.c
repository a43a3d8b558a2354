/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_save.c - any bytes as a saved state, after one that chooses the policies: refused, or a
 * state that is sound, can be decided on, and is the same when it is saved and loaded again. */
#include <string.h>

#include "core/save.h"
#include "lib/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct stk_node_spec nodes[4] = {{.gpus = 8, .cpu_milli = 8000},
                                              {.gpus = 4, .gpu_type = 1},
                                              {.gpus = 64},
                                              {.pool = {1}, .gpus = 2, .mem_mib = 4096}};
static const struct fx_setup setups[] = {
    {.nodes = nodes, .n_nodes = 4, .n_pools = 2},
    {.nodes = nodes, .n_nodes = 4, .n_pools = 2, .backfill = "conservative"},
    {.nodes = nodes,
     .n_nodes = 4,
     .n_pools = 2,
     .order = "priority",
     .backfill = "easy",
     .preempt = "tier"},
    {.nodes = nodes,
     .n_nodes = 4,
     .n_pools = 2,
     .order = "las",
     .preempt = "afresh",
     .params = "las.promote=2"},
    {.nodes = nodes, .n_nodes = 4, .n_pools = 2, .order = "srsf", .preempt = "lucid"},
};

/* Decides, and lets every lease end. */
static void go_on(struct fx *f)
{
    struct stk_event out[8];
    const struct stk_event tick = {.at = f->s->now, .type = STK_EV_TICK};
    uint32_t n, sum = 0;

    fx_must(stk_core_apply(f->core, &tick, &f->err) == 0, "a tick: %s", f->err.text);
    while ((n = stk_core_decide(f->core, f->s->now, out, 8)) > 0 && sum < 100)
        for (uint32_t i = 0; i < n; i++, sum++)
            fx_must(stk_core_apply(f->core, &out[i], &f->err) == 0, "a proposal: %s", f->err.text);
    fx_sound(f);
    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = &f->s->jobs[i];
        const struct stk_event end = {.at = f->s->now,
                                      .type = STK_EV_EXITED,
                                      .job = {i},
                                      .lease = j->lease ? j->lease : j->slept,
                                      .u.exit = {.cause = STK_CAUSE_OK}};

        if (j->state != STK_JOB_NONE && j->state != STK_JOB_DONE && end.lease)
            fx_must(stk_core_apply(f->core, &end, &f->err) == 0, "an end: %s", f->err.text);
    }
    fx_sound(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_core *again;
    struct fx *f;

    if (size < 1 || size > 4096)
        return 0;
    f = fx_new(&setups[data[0] % (sizeof(setups) / sizeof(*setups))]);
    if (stk_core_load(f->core, data + 1, size - 1, &f->err) == 0) {
        fx_sound(f);
        again = fx_reload(f, f->core, NULL);
        fx_must(stk_core_digest(again) == fx_digest(f), "the same when saved again");
        stk_core_free(again);
        go_on(f);
    } else {
        fx_must(f->err.text[0] != '\0', "a refusal has a sentence");
    }
    fx_free(f);
    return 0;
}
