/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_whatif.c - any JSON as the changes of a question "what if". Either they are refused with a
 * sentence, or there is a world that can be simulated. */
#include <stdint.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "whatif/whatif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *make_world(void)
{
    return json_pack("{s:[{s:i,s:i,s:s,s:i},{s:i,s:s}],s:{s:[{s:s},{s:s,s:[{s:s,s:i}]}]},s:{s:s}}",
                     "nodes", "count", 3, "gpus", 8, "gpu_type", "H100", "cpus", 64, "gpus", 4,
                     "gpu_type", "A40", "teams", "tenants", "name", "vision", "name", "language",
                     "tenants", "name", "speech", "limit", 6, "policy", "bundle", "easy");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *changes = json_loadb((const char *)data, size, 0, NULL), *world;
    struct stk_world w = {0};
    struct stk_err err = {""};

    if (!changes)
        return 0;
    world = make_world();
    require(world != NULL, "a world");
    if (stk_world_make(&w, world, changes, &err) < 0)
        require(err.text[0], "a refusal says why");
    else
        require(w.cluster.n_nodes > 0 && w.setup.order && w.has_tenants, "it can be simulated");
    stk_world_done(&w);
    json_decref(world);
    json_decref(changes);
    return 0;
}
