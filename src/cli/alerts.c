/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c - "stoker alerts": what people should know of. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/view.h"

static const struct stk_column columns[] = {
    {"SINCE", false, 0}, {"STATE", false, 0}, {"ALERT", false, 0}, {"WHAT", false, 20}};

static enum stk_colour colour(const json_t *o)
{
    if (strcmp(stk_str(o, "state"), "firing") != 0)
        return STK_DIM;
    return strcmp(stk_str(o, "severity"), "critical") == 0 ? STK_RED : STK_YELLOW;
}

static int print_alerts(const struct stk_ask *k, const json_t *list, bool all)
{
    struct stk_table *t = stk_table_new(columns, 4);
    const json_t *o;
    size_t i;
    int rc = STK_EXIT_OK;

    json_array_foreach(list, i, o)
    {
        char when[32];

        if (!all && strcmp(stk_str(o, "state"), "firing") != 0)
            continue;
        stk_table_cell(t, STK_PLAIN, "%s",
                       stk_text_time(stk_num(o, "since", 0), when, sizeof(when)));
        stk_table_cell(t, colour(o), "%s", stk_str(o, "state"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(o, "kind"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(o, "text"));
    }
    if (t && stk_table_rows(t) == 0)
        (void)printf("nothing to worry about\n");
    else if (!t || stk_table_print(t, &k->out, 0) < 0)
        rc = stk_ask_fail(k, -ENOMEM, &(struct stk_err){"out of memory"});
    stk_table_free(t);
    return rc;
}

static void print_rules(const json_t *rules)
{
    const json_t *o;
    size_t i;

    json_array_foreach(rules, i, o)
    {
        if (!stk_yes(o, "on"))
            (void)printf("%-20s off\n", stk_str(o, "name"));
        else if (*stk_str(o, "unit"))
            (void)printf("%-20s %s: %lld %s\n", stk_str(o, "name"), stk_str(o, "help"),
                         (long long)stk_int(o, "threshold", 0), stk_str(o, "unit"));
        else
            (void)printf("%-20s %s\n", stk_str(o, "name"), stk_str(o, "help"));
    }
}

static int run_alerts(const struct stk_args *a)
{
    json_t *reply = NULL;
    struct stk_ask k;
    int rc;

    if (a->n_words > 0)
        return stk_misused(a, "it takes no words");
    rc = stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    rc = stk_ask_get(&k, &reply, "/v1/alerts");
    if (rc == STK_EXIT_OK && k.json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK && stk_arg_is(a, "rules"))
        print_rules(json_object_get(reply, "rules"));
    else if (rc == STK_EXIT_OK)
        rc = print_alerts(&k, json_object_get(reply, "alerts"), stk_arg_is(a, "all"));
    json_decref(reply);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"all", 'a', NULL, "also those that were over within a day", NULL},
    {"rules", 0, NULL, "what there is an alert for, and what each begins at", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_alerts = {
    .name = "alerts",
    .synopsis = "[--all] [--rules]",
    .help = "what people should know of: idle GPUs, long waits, broken GPUs",
    .about = "Alerts are set up in the configuration (alerts.*), where it also says whom they are\n"
             "sent to. Each is sent once when it begins and once when it is over.",
    .options = groups,
    .section = STK_SECTION_LOOK,
    .run = run_alerts,
};
