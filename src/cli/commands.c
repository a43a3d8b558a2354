/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - the table of commands. A new one is a file and a line here. */
#include <string.h>

#include "cli/cli.h"

const struct stk_command *const stk_commands[] = {
    &stk_cmd_run,
    &stk_cmd_submit,
    &stk_cmd_shell,
    &stk_cmd_attach,
    &stk_cmd_wait,
    &stk_cmd_logs,
    &stk_cmd_queue,
    &stk_cmd_show,
    &stk_cmd_why,
    &stk_cmd_history,
    &stk_cmd_gpus,
    &stk_cmd_nodes,
    &stk_cmd_tenants,
    &stk_cmd_quota,
    &stk_cmd_alerts,
    &stk_cmd_report,
    &stk_cmd_top,
    &stk_cmd_whatif,
    &stk_cmd_cancel,
    &stk_cmd_hold,
    &stk_cmd_release,
    &stk_cmd_suspend,
    &stk_cmd_resume,
    &stk_cmd_requeue,
    &stk_cmd_update,
    &stk_cmd_checkpointed,
    &stk_cmd_defrag,
    &stk_cmd_adopt,
    &stk_cmd_drain,
    &stk_cmd_undrain,
    &stk_cmd_serve,
    &stk_cmd_config,
    &stk_cmd_reserve,
    &stk_cmd_login,
    &stk_cmd_token,
    &stk_cmd_rule,
    &stk_cmd_baseline,
    &stk_cmd_export,
    &stk_cmd_store,
    &stk_cmd_sim,
    &stk_cmd_slurm_shims,
    &stk_cmd_slurm_leave,
    &stk_cmd_completion,
    &stk_cmd_demo,
    &stk_cmd_version,
    &stk_cmd_help,
    NULL,
};

const struct stk_command *stk_command_find(const char *word)
{
    for (size_t i = 0; stk_commands[i]; i++)
        if (strcmp(word, stk_commands[i]->name) == 0 ||
            (stk_commands[i]->alias && strcmp(word, stk_commands[i]->alias) == 0))
            return stk_commands[i];
    return NULL;
}
