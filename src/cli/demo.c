/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

static int run_demo(const struct stk_args *a)
{
    return stk_misused(a, "not there yet");
}

const struct stk_command stk_cmd_demo = {
    .name = "demo",
    .synopsis = "",
    .help = "a small mixed day on 8 virtual GPUs, explained as it happens",
    .section = STK_SECTION_SITE,
    .run = run_demo,
};
