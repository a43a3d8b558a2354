/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_leave.c - "stoker slurm-leave": partitions are Slurm's again. stoker-slurm-leave does it,
 * which calls Slurm's library; here it is seen to that no daemon takes the jobs back at once, and
 * named what it alone knows: jobs that Slurm has never heard of. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/programs.h"
#include "cli/view.h"

#define MAX_PARTITIONS 64

/* Jobs that wait and are in no queue of Slurm's. */
static int name_own(struct stk_ask *k)
{
    json_t *jobs = NULL;
    int rc = stk_ask_pages(k, "/v1/jobs", "jobs", "after", 0, &jobs);
    uint32_t n = 0;

    for (size_t i = 0; rc == STK_EXIT_OK && i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        char id[40], user[64], name[128];

        if (json_object_get(job, "slurm"))
            continue;
        n++;
        (void)printf("job %s of %s (%s): only stoker has it\n", stk_view_id(job, id, sizeof(id)),
                     stk_text_clean(user, sizeof(user), stk_str(job, "user"), false),
                     stk_text_clean(name, sizeof(name), stk_str(job, "name"), false));
    }
    if (rc == STK_EXIT_OK)
        (void)printf("%u %s in no queue of Slurm's%s\n", n, n == 1 ? "job is" : "jobs are",
                     n ? ": let them run, or cancel them and send them with sbatch" : "");
    json_decref(jobs);
    return rc;
}

static int become(const struct stk_args *a)
{
    static char conf[] = "--conf", dry[] = "--dry-run";
    char path[PATH_MAX], file[PATH_MAX], *argv[MAX_PARTITIONS + 5];
    int n = 0, rc = stk_find_program("stoker-slurm-leave", path, sizeof(path));

    if (rc != STK_EXIT_OK)
        return rc;
    argv[n++] = path;
    if (stk_arg(a, "conf")) {
        (void)snprintf(file, sizeof(file), "%s", stk_arg(a, "conf"));
        argv[n++] = conf;
        argv[n++] = file;
    }
    if (stk_arg_is(a, "dry-run"))
        argv[n++] = dry;
    for (int i = 0; i < a->n_words; i++)
        argv[n++] = a->words[i];
    argv[n] = NULL;
    (void)fflush(stdout);
    (void)execv(path, argv);
    (void)fprintf(stderr, "stoker: cannot run %s: %s\n", path, strerror(errno));
    return STK_EXIT_FAILED;
}

static int run_leave(const struct stk_args *a)
{
    struct stk_err err = {""};
    json_t *health = NULL;
    struct stk_ask k;
    int rc;

    if (a->n_words == 0 || a->n_words > MAX_PARTITIONS)
        return stk_misused(a, "which partitions? (slurm.partitions of stoker's configuration)");
    rc = stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    if (stk_client_get(k.c, &health, &err, "/v1/health") == 0) {
        rc = name_own(&k);
        if (rc == STK_EXIT_OK && !stk_arg_is(a, "dry-run")) {
            (void)fprintf(stderr,
                          "stoker slurm-leave: stoker runs, and would take the jobs back at "
                          "once: systemctl stop stoker, then again\n");
            rc = STK_EXIT_FAILED;
        }
    }
    json_decref(health);
    stk_ask_close(&k);
    return rc == STK_EXIT_OK ? become(a) : rc;
}

static const struct stk_option options[] = {
    {"conf", 0, "FILE", "slurm.conf (default: $SLURM_CONF, or Slurm's own)", NULL},
    {"dry-run", 0, NULL, "only say what would be done", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", options}, {0}};

const struct stk_command stk_cmd_slurm_leave = {
    .name = "slurm-leave",
    .synopsis = "[options] PARTITION...",
    .help = "give partitions back to Slurm: what waits for stoker is released",
    .about = "What waits is released, and unpinned from nodes that stoker had chosen; what users\n"
             "hold stays held; what runs is left alone. Jobs that only stoker knows are named\n"
             "while it runs. Needs root or SlurmUser.",
    .options = groups,
    .section = STK_SECTION_SITE,
    .run = run_leave,
};
