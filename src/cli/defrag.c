/* SPDX-License-Identifier: Apache-2.0 */
/* defrag.c - "stoker defrag": jobs that say they may are moved, so that one that waits can start,
 * or so that a node is empty. What it costs and what it brings is said before. */
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/table.h"

static const struct stk_column columns[] = {
    {"JOB", true, 0}, {"GPUS", true, 0}, {"TO", false, 8}, {"COST", true, 0}};

/* Who moves, and what each loses. */
static int print_moves(const struct stk_ask *k, const json_t *plan)
{
    const json_t *moves = json_object_get(plan, "moves");
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    int rc = t ? 0 : -ENOMEM;

    for (size_t i = 0; t && i < json_array_size(moves); i++) {
        const json_t *m = json_array_get(moves, i);
        const char *to = stk_str(m, "to");

        stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(m, "id", 0));
        stk_table_cell(t, STK_PLAIN, "%g", stk_num(m, "gpus", 0));
        stk_table_cell(t, STK_PLAIN, "%s", *to ? to : "elsewhere");
        stk_table_cell(t, STK_PLAIN, "%.0f GPU-s", stk_num(m, "cost_gpu_s", 0));
    }
    if (rc == 0 && json_array_size(moves) > 0)
        rc = stk_table_print(t, &k->out, 0);
    stk_table_free(t);
    return rc < 0 ? stk_ask_fail(k, rc, &(struct stk_err){"out of memory"}) : STK_EXIT_OK;
}

static void print_gain(const json_t *plan)
{
    const json_t *gain = json_object_get(plan, "gain"), *starts = json_object_get(gain, "starts");
    long long whole = (long long)stk_int(gain, "gpus_whole", 0);

    (void)printf("cost: %.0f GPU-seconds; gain: ", stk_num(plan, "cost_gpu_s", 0));
    if (whole != 0)
        (void)printf("%lld %s free GPUs on empty nodes, ", whole < 0 ? -whole : whole,
                     whole < 0 ? "fewer" : "more");
    (void)printf("fragmentation %.0f%% -> %.0f%%\n", 100 * stk_num(gain, "fragmentation_before", 0),
                 100 * stk_num(gain, "fragmentation_after", 0));
    if (json_array_size(starts) == 0)
        return;
    (void)printf("would find room then:");
    for (size_t i = 0; i < json_array_size(starts); i++)
        (void)printf("%s job %lld (%g GPUs)", i ? "," : "",
                     (long long)stk_int(json_array_get(starts, i), "id", 0),
                     stk_num(json_array_get(starts, i), "gpus", 0));
    (void)printf("\n");
}

/* What keeps a node from being emptied. */
static void print_stays(const json_t *plan)
{
    static const struct {
        const char *why, *words;
    } all[] = {{"not_movable", "did not say that it may be moved (--movable)"},
               {"critical", "is critical"},
               {"protected", "is protected: it has just started, or gave way often enough today"},
               {"needed", "is needed: its group or tenant keeps it up"},
               {"reserved", "uses a reservation"},
               {"kind", "cannot be moved: MIG instance, no GPUs, asleep or being stopped"},
               {"no_room", "finds no room elsewhere"}};
    const json_t *stays = json_object_get(plan, "stays");
    char name[300];

    (void)printf("node %s cannot be emptied:\n",
                 stk_text_clean(name, sizeof(name), stk_str(plan, "empty"), false));
    for (size_t i = 0; i < json_array_size(stays); i++) {
        const json_t *o = json_array_get(stays, i);
        const char *words = "stays";

        for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
            if (strcmp(stk_str(o, "why"), all[k].why) == 0)
                words = all[k].words;
        (void)printf("job %lld %s\n", (long long)stk_int(o, "id", 0), words);
    }
    if (json_array_size(stays) == 0)
        (void)printf("jobs are being moved already, the policy moves nobody, or too many are "
                     "there\n");
}

static int print_plan(const struct stk_ask *k, const json_t *plan, bool doing)
{
    const json_t *wants = json_object_get(plan, "for");
    const char *node = stk_str(plan, "empty");
    char name[300];
    int rc;

    if (!stk_yes(plan, "possible")) {
        print_stays(plan);
        return STK_EXIT_FAILED;
    }
    rc = print_moves(k, plan);
    if (json_is_object(wants))
        (void)printf("job %lld, which waits for %g GPUs, %s\n", (long long)stk_int(wants, "id", 0),
                     stk_num(wants, "gpus", 0),
                     doing ? "starts when they have gone" : "would start");
    else
        (void)printf("node %s %s\n", stk_text_clean(name, sizeof(name), node, false),
                     doing ? "takes no new jobs, and is empty when they have gone (stoker undrain)"
                           : "would be empty");
    print_gain(plan);
    return rc;
}

static int ask_for(struct stk_ask *k, bool plan, const char *node, json_t **ret)
{
    char path[1024], name[800];

    (void)snprintf(path, sizeof(path), "/v1/defrag%s%s", node ? "?empty=" : "",
                   node ? stk_client_escape(name, sizeof(name), node) : "");
    return plan ? stk_ask_get(k, ret, "%s", path) : stk_ask_do(k, "POST", path, NULL, ret);
}

static int run_defrag(const struct stk_args *a)
{
    bool plan = stk_arg_is(a, "plan");
    const char *node = stk_arg(a, "empty");
    json_t *reply = NULL, *plans;
    struct stk_ask k;
    int rc;

    if (a->n_words > 0)
        return stk_misused(a, "it takes no words");
    rc = stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    rc = ask_for(&k, plan, node, &reply);
    plans = json_object_get(reply, "plans");
    if (rc == STK_EXIT_OK && k.json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK && json_array_size(plans) == 0)
        (void)printf("nothing to move: %s\n",
                     !node ? "no job waits that one or two moves would let start"
                     : strcmp(node, "best") == 0 ? "there is no node in use whose jobs could all "
                                                   "run elsewhere"
                                                 : "the node is empty");
    for (size_t i = 0; rc == STK_EXIT_OK && !k.json && i < json_array_size(plans); i++)
        rc = print_plan(&k, json_array_get(plans, i), !plan);
    json_decref(reply);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"plan", 0, NULL, "only say what would be moved, what it costs and what it brings", NULL},
    {"empty", 0, "NODE", "move all jobs off this node; best: the one that costs least", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_defrag = {
    .name = "defrag",
    .synopsis = "[--plan] [--empty NODE]",
    .help = "move running jobs that say they may, so that one that waits can start, or a node is "
            "empty",
    .about =
        "Enough may be free for a job, but in pieces. One or two jobs that were submitted with\n"
        "--movable are then stopped and started elsewhere. With --empty all jobs of a node are,\n"
        "if all may and find room; it takes no new jobs from then on (stoker undrain). For\n"
        "operators; anybody may ask for the plan.",
    .options = groups,
    .section = STK_SECTION_CHANGE,
    .run = run_defrag,
};
