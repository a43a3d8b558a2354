/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - "stoker update": jobs ask for something else. */
#include "cli/act.h"
#include "cli/describe.h"

static int read_changes(const struct stk_args *a, json_t *changes)
{
    struct stk_err err = {""};

    if (stk_describe_changes(a, changes, &err) < 0)
        return stk_misused(a, "%s", err.text);
    return json_object_size(changes) > 0
               ? STK_EXIT_OK
               : stk_misused(a, "what shall change? --time, --priority, --gpus, ...; see --help");
}

static int run_update(const struct stk_args *a)
{
    json_t *changes = json_object();
    struct stk_ids ids = {0};
    struct stk_ask k;
    int rc = read_changes(a, changes);

    rc = rc != STK_EXIT_OK ? rc : stk_ids_take(a, false, &ids);
    if (rc == STK_EXIT_OK && (rc = stk_ask_open(&k, a)) == STK_EXIT_OK) {
        rc = stk_ids_resolve(&k, &ids, false);
        if (rc == STK_EXIT_OK)
            rc = stk_act(&k, &ids, changes);
        stk_ask_close(&k);
    }
    stk_ids_done(&ids);
    json_decref(changes);
    return rc;
}

static const struct stk_option own[] = {
    {"gpus", 'g', "N", "GPUs per task; 0.5 is half of one", NULL},
    {"gpu-mem", 0, "SIZE", "memory on each GPU; none", NULL},
    {"gpu-type", 0, "TYPE[,TYPE]", "only GPUs of these types; any", NULL},
    {"tasks", 'n', "N", "tasks that start together", NULL},
    {"tasks-per-node", 0, "N", "tasks on each node; none: as they fit", NULL},
    {"topology", 0, "LEVEL", "all its GPUs in one link, node, rack, zone or region; none",
     "link node rack zone region none"},
    {"prefer", 0, "LEVEL", "the same if it can be; none", "link node rack zone region none"},
    {"nodelist", 'w', "NODES", "only on these nodes: n1,n2 or n[1-4,7]; none: on any", NULL},
    {"exclude", 'x', "NODES", "not on these nodes; none", NULL},
    {"constraint", 'C', "FEATURES", "only on nodes with these features; none: on any", NULL},
    {"exclusive", 0, "YES|NO", "nobody else on its nodes", "yes no"},
    {"cpus", 'c', "N", "CPUs per task", NULL},
    {"mem", 'm', "SIZE", "memory per task: 32G, 512M", NULL},
    {"resource", 0, "NAME=N", "named resources per task, in place of those it had", NULL},
    {"time", 0, "TIME", "time limit: 1h30m, 90m, 1:30:00; a bare number is minutes; 0: none", NULL},
    {"pool", 0, "NAME", "pool of nodes", NULL},
    {"queue", 'q', "QUEUE", "where it waits", NULL},
    {"tenant", 0, "TENANT", "for whom it runs", NULL},
    {"priority", 'p', "N", "higher first", NULL},
    {"tier", 0, "TIER", "best-effort, standard or critical", "best-effort standard critical"},
    {"begin", 'b', "TIME", "not before: now, now+1h, 16:00, tomorrow", NULL},
    {"deadline", 0, "TIME", "when it should be done: +8h, 16:00, tomorrow; none", NULL},
    {"name", 'J', "NAME", "what to call it", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_update = {
    .name = "update",
    .synopsis = "[options] JOB...",
    .help = "change jobs; of those that have started, the time limit",
    .about = "JOB is a number (12), a range (3-7), an array's element (12_3) or Slurm's number\n"
             "(slurm:1234); an array's number means all of it. A job that is changed keeps its\n"
             "number and its time in the queue.\n"
             "Of a job that has started only --time can be changed: its user may give it less, or\n"
             "more where nobody has to wait for it; operators may give it more.\n"
             "\"stoker why\" says what would start a job.",
    .complete = "@jobs",
    .options = groups,
    .section = STK_SECTION_CHANGE,
    .run = run_update,
};
