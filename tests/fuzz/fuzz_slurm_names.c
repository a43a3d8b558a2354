/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_slurm_names.c - bytes as a list of hosts, a list of resources and a script: names have a
 * length within bounds, and there are not too many of them. */
#include <stdint.h>
#include <string.h>

#include "fuzz/require.h"
#include "libslurm/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int each(void *ctx, const char *name)
{
    uint32_t *n = ctx;

    require(++*n <= STK_SLURM_MAX_HOSTS, "a bounded number of hosts");
    require(*name && strlen(name) < STK_SLURM_HOST_LEN, "names have a length");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[4096];
    struct stk_slurm_gres g[8];
    char word[16];
    uint32_t n = 0;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    (void)stk_slurm_hosts(text, each, &n);
    if (stk_slurm_script_signal(text, word, sizeof(word)))
        require(*word && strlen(word) < sizeof(word), "a word of a script has a length");
    require(stk_slurm_gpus(text, g, 8) <= (int)STK_SLURM_MAX_GRES, "a bounded number of entries");
    stk_slurm_plain_gres(text);
    require(strlen(text) <= size, "no longer than it was");
    return 0;
}
