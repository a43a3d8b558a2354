/* SPDX-License-Identifier: Apache-2.0 */
/* defrag.c - "stoker defrag": jobs that say they may are moved, so that one that waits can start.
 */
#include <stdio.h>

#include "cli/ask.h"

static void print_plan(const json_t *plan, bool doing)
{
    const json_t *moves = json_object_get(plan, "moves"), *wants = json_object_get(plan, "for");

    for (size_t i = 0; i < json_array_size(moves); i++)
        (void)printf("job %lld %s\n", (long long)stk_int(json_array_get(moves, i), "id", 0),
                     doing ? "is stopped, and starts elsewhere"
                           : "would be stopped, and start elsewhere");
    (void)printf("job %lld, which waits for %g GPUs, %s; that costs %.0f GPU-seconds\n",
                 (long long)stk_int(wants, "id", 0), stk_num(wants, "gpus", 0),
                 doing ? "starts when they have gone" : "would start",
                 stk_num(plan, "cost_gpu_s", 0));
}

static int run_defrag(const struct stk_args *a)
{
    bool plan = stk_arg_is(a, "plan");
    json_t *reply = NULL, *plans;
    struct stk_ask k;
    int rc;

    if (a->n_words > 0)
        return stk_misused(a, "it takes no words");
    rc = stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    rc = plan ? stk_ask_get(&k, &reply, "/v1/defrag")
              : stk_ask_do(&k, "POST", "/v1/defrag", NULL, &reply);
    plans = json_object_get(reply, "plans");
    if (rc == STK_EXIT_OK && k.json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK && json_array_size(plans) == 0)
        (void)printf("nothing to move: no job waits that one or two moves would let start\n");
    for (size_t i = 0; rc == STK_EXIT_OK && !k.json && i < json_array_size(plans); i++)
        print_plan(json_array_get(plans, i), !plan);
    json_decref(reply);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"plan", 0, NULL, "only say what would be moved", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_defrag = {
    .name = "defrag",
    .synopsis = "[--plan]",
    .help = "move running jobs that say they may, so that one that waits can start",
    .about =
        "Enough may be free for a job, but in pieces. One or two jobs that were submitted with\n"
        "--movable are then stopped and started elsewhere. For operators; anybody may ask for\n"
        "the plan.",
    .options = groups,
    .section = STK_SECTION_CHANGE,
    .run = run_defrag,
};
