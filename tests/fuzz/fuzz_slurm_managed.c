/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_slurm_managed.c - bytes as stoker.conf: each name that was read is found again. */
#include <stdint.h>
#include <string.h>

#include "fuzz/require.h"
#include "slurmctld/managed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stk_managed m;

    (void)stk_managed_read((const char *)data, size, &m);
    require(memchr(m.names, '\0', sizeof(m.names)) != NULL, "names have an end");
    require(!m.names[0] || stk_managed_any(&m, m.names), "what was read is found");
    return 0;
}
