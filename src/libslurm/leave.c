/* SPDX-License-Identifier: Apache-2.0 */
/* leave.c - stoker-slurm-leave: partitions are Slurm's again. What waits in them was held for
 * stoker, and may be pinned to nodes that it had chosen: it is released and unpinned, and stoker's
 * words are taken off it. What users hold stays held, by a hold of Slurm's own in place of a begin
 * time that never comes. What runs is left alone. stoker must not run meanwhile; what is done may
 * be done again.
 *
 * First a job is made to wait as Slurm has it, then the words go: one that could not be changed
 * still has them, and is found the next time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libslurm/helper.h"
#include "slurmctld/managed.h"

#define HELD_UNTIL ((time_t)4102444799) /* the end of 2099: what users hold begins then */

struct leaving {
    struct stk_managed partitions;
    bool dry;
    uint32_t freed, held, failed;
};

static const char *text(const char *s)
{
    return s ? s : "";
}

static bool has_words(const char *comment)
{
    static const char word[] = "stoker";
    size_t n = sizeof(word) - 1;

    return strncmp(text(comment), word, n) == 0 && strchr(" :", text(comment)[n]) != NULL;
}

/* "stoker MARK 7 p12 ...", or "stoker MARK 7 12", which stoker has sent itself. */
static bool is_pinned(const char *comment)
{
    char flags[32];

    return sscanf(text(comment), "stoker %*s %*u %31s", flags) == 1 &&
           strcspn(flags, "p0123456789") < strlen(flags);
}

static const char *name_of(const slurm_job_info_t *j, char *buf, size_t size)
{
    if (j->array_job_id && j->array_task_id != NO_VAL)
        (void)snprintf(buf, size, "%u_%u", j->array_job_id, j->array_task_id);
    else
        (void)snprintf(buf, size, "%u", j->job_id);
    return buf;
}

static bool give_back(const slurm_job_info_t *j, bool users)
{
    static char none[] = "";
    job_desc_msg_t d;

    slurm_init_job_desc_msg(&d);
    STK_SLURM_NUMBER(&d) = j->job_id;
    if (is_pinned(j->admin_comment) && *text(j->req_nodes))
        d.req_nodes = none;
    if (users)
        d.begin_time = time(NULL);
    d.priority = users ? 0 : INFINITE;
    if (users)
        d.alloc_sid = ALLOC_SID_USER_HOLD;
    if (slurm_update_job(&d) != SLURM_SUCCESS)
        return false;
    slurm_init_job_desc_msg(&d);
    STK_SLURM_NUMBER(&d) = j->job_id;
    d.admin_comment = none;
    if (has_words(j->comment))
        d.comment = none;
    return slurm_update_job(&d) == SLURM_SUCCESS;
}

static void take(struct leaving *l, const slurm_job_info_t *j)
{
    bool users = j->eligible_time >= HELD_UNTIL;
    char name[32];

    if ((j->job_state & JOB_STATE_BASE) != JOB_PENDING || !has_words(j->admin_comment) ||
        !stk_managed_any(&l->partitions, j->partition))
        return;
    if (!l->dry && !give_back(j, users)) {
        l->failed++;
        (void)fprintf(stderr, "Slurm job %s: %s\n", name_of(j, name, sizeof(name)),
                      stk_slurm_trouble(errno));
        return;
    }
    l->held += users;
    l->freed++;
    (void)printf("Slurm job %s: %s%s\n", name_of(j, name, sizeof(name)),
                 users ? "held by its user" : "released",
                 is_pinned(j->admin_comment) && *text(j->req_nodes) ? ", on any nodes" : "");
}

static int leave(struct leaving *l)
{
    job_info_msg_t *all = NULL;

    if (slurm_load_jobs(0, &all, SHOW_ALL) != SLURM_SUCCESS) {
        (void)fprintf(stderr, "stoker slurm-leave: %s\n", stk_slurm_trouble(errno));
        return 1;
    }
    for (uint32_t i = 0; i < all->record_count; i++)
        take(l, &all->job_array[i]);
    slurm_free_job_info_msg(all);
    (void)printf("%u %s%s, %u of them held by their users; %u could not be changed\n", l->freed,
                 l->freed == 1 ? "job" : "jobs",
                 l->dry ? " would be Slurm's again" : " are Slurm's again", l->held, l->failed);
    return l->failed ? 1 : 0;
}

/* As long as they stand there new jobs are held for a stoker that does not come. */
static void look_at_conf(const struct leaving *l, const char *conf)
{
    const char *slash = conf ? strrchr(conf, '/') : NULL;
    char path[4200], words[STK_MANAGED_SIZE];
    struct stk_managed there;
    FILE *f;
    size_t n;

    (void)snprintf(path, sizeof(path), "%.*s/stoker.conf",
                   slash ? (int)(slash - conf) : (int)strlen("/etc/slurm"),
                   slash ? conf : "/etc/slurm");
    f = fopen(path, "re");
    if (!f)
        return;
    n = fread(words, 1, sizeof(words), f);
    if (n < sizeof(words) && stk_managed_read(words, n, &there) &&
        stk_managed_any(&there, l->partitions.names))
        (void)fprintf(stderr,
                      "stoker slurm-leave: %s names them still: where job_submit/stoker is loaded "
                      "new jobs are held; write \"Partitions=\" into it\n",
                      path);
    (void)fclose(f);
}

static int usage(FILE *f)
{
    (void)fprintf(f, "usage: stoker slurm-leave [--conf FILE] [--dry-run] PARTITION...\n\n"
                     "Partitions are Slurm's again: what waits there for stoker is released, and "
                     "unpinned from nodes;\nwhat users hold stays held. Stop stoker first.\n\n"
                     "  --conf FILE  slurm.conf (default: $SLURM_CONF, or Slurm's own)\n"
                     "  --dry-run    say what would be done\n");
    return f == stdout ? 0 : 2;
}

/* As they are in a list that was read: a comma after each. */
static bool add_partition(struct leaving *l, const char *name)
{
    size_t n = strlen(l->partitions.names), size = sizeof(l->partitions.names);

    return snprintf(l->partitions.names + n, size - n, "%s,", name) < (int)(size - n);
}

int main(int argc, char **argv)
{
    struct leaving l = {.dry = false};
    const char *conf = NULL;
    int rc;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return usage(stdout);
        if (strcmp(argv[i], "--conf") == 0 && i + 1 < argc)
            conf = argv[++i];
        else if (strcmp(argv[i], "--dry-run") == 0)
            l.dry = true;
        else if (*argv[i] == '-' || !add_partition(&l, argv[i]))
            return usage(stderr);
    }
    if (!l.partitions.names[0])
        return usage(stderr);
    if (conf)
        (void)setenv("SLURM_CONF", conf, 1);
    slurm_init(conf);
    rc = leave(&l);
    look_at_conf(&l, conf ? conf : getenv("SLURM_CONF"));
    slurm_fini();
    return rc;
}
