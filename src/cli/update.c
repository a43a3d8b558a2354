/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - "stoker update": another time limit, priority or name for jobs that have not started.
 */
#include "cli/act.h"
#include "spec/words.h"

static int read_changes(const struct stk_args *a, json_t *changes)
{
    const char *time = stk_arg(a, "time"), *name = stk_arg(a, "name");
    int64_t limit = 0, priority = 0;
    int rc = stk_arg_number(a, "priority", -1000000000, 1000000000, &priority);

    if (rc != STK_EXIT_OK)
        return rc;
    if (time && stk_words_duration(time, 60, &limit) < 0)
        return stk_misused(a, "--time takes a time such as 90m, 1h30m or 1:30:00, got \"%.40s\"",
                           time);
    if (time)
        (void)json_object_set_new(changes, "time_limit_s", json_integer(limit));
    if (stk_arg(a, "priority"))
        (void)json_object_set_new(changes, "priority", json_integer(priority));
    if (name && json_object_set_new(changes, "name", json_string(name)) < 0)
        return stk_misused(a, "--name takes text in UTF-8");
    return json_object_size(changes) > 0
               ? STK_EXIT_OK
               : stk_misused(a, "what shall change? --time, --priority or --name");
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
    {"time", 0, "TIME", "time limit: 1h30m, 90m, 1:30:00; a bare number is minutes; 0: none", NULL},
    {"priority", 'p', "N", "higher first", NULL},
    {"name", 'J', "NAME", "what to call it", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_update = {
    .name = "update",
    .synopsis = "[options] JOB...",
    .help = "change the time limit, priority or name of jobs that have not started",
    .about = "JOB is a number (12), a range (3-7) or an array's element (12_3); an array's number\n"
             "means all of it.",
    .complete = "@jobs",
    .options = groups,
    .section = STK_SECTION_CHANGE,
    .run = run_update,
};
