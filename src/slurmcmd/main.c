/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - "stoker-slurm sbatch ...", or a link of that name to it. The links lie in a folder of
 * their own (libexec/stoker/slurm) that is on nobody's PATH until someone puts it there: tools
 * change their ways when they see srun. */
#include <stdio.h>
#include <string.h>

#include "slurmcmd/slurm.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"sbatch", stk_sbatch_main},     {"srun", stk_srun_main},         {"squeue", stk_squeue_main},
    {"scancel", stk_scancel_main},   {"sinfo", stk_sinfo_main},       {"sacct", stk_sacct_main},
    {"scontrol", stk_scontrol_main}, {"sacctmgr", stk_sacctmgr_main},
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static int run(const char *name, int argc, char **argv)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            int rc;
            char *end = strrchr(argv[0], '/');

            argv[0] = end ? end + 1 : argv[0]; /* messages begin with it */
            rc = commands[i].run(argc, argv);
            if (fflush(stdout) != 0 && rc == 0)
                rc = 1;
            return rc;
        }
    }
    return -1;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    int rc = argc > 0 ? run(slash ? slash + 1 : argv[0], argc, argv) : -1;

    if (rc < 0 && argc > 1)
        rc = run(argv[1], argc - 1, argv + 1);
    if (rc >= 0)
        return rc;
    (void)fprintf(stderr, "usage: stoker-slurm COMMAND ..., where COMMAND is one of:");
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)fprintf(stderr, " %s", commands[i].name);
    (void)fprintf(stderr, "\n");
    return 2;
}
