/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_slurm_wish.c - any JSON as what a user asked Slurm for. Either it cannot be expressed, and a
 * sentence says why, or it is a description that stoker takes. */
#include <stdint.h>

#include "engine/slurm/wish.h"
#include "fuzz/require.h"
#include "spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct stk_slurm_room room = {.gpus = 8, .cpus = 64};
    const struct stk_slurm_claim none = {0};
    json_t *job = json_loadb((const char *)data, size, 0, NULL), *wish;
    struct stk_err err = {""};

    if (!json_is_object(job)) {
        json_decref(job);
        return 0;
    }
    wish = stk_slurm_wish(job, &room, &none, &err);
    if (!wish)
        require(err.text[0], "a refusal says why");
    else if (stk_spec_check(wish, &err) < 0)
        require(err.text[0], "a description that is refused is refused with a sentence");
    json_decref(wish);
    json_decref(job);
    return 0;
}
