/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim_list.h"

#include <stdio.h>

#include "core/core.h"
#include "engine/sim/sim.h"
#include "policy/registry.h"
#include "sim/generate.h"
#include "sim/trace.h"

void stk_sim_help(void)
{
    (void)fputs(
        "usage: stoker sim TRACE... --cluster SPEC [options]\n"
        "       stoker sim --generate jobs=1000,seed=1 --cluster SPEC [options]\n\n"
        "Replays a workload through the scheduler in virtual time.\n\n"
        "workload\n"
        "  TRACE...              trace files; the format is detected (\"-\": standard input)\n"
        "  --format NAME         say which format it is\n"
        "  --generate KEYS       make one up (keys below); --seed N sets its default seed\n"
        "  --lenient             skip malformed lines and jobs that can never run; count them\n"
        "  --throughputs FILE    steps per second for Gavel traces\n"
        "  --trace-out FILE      also write the workload as JSON Lines\n"
        "cluster\n"
        "  --cluster SPEC        NODESxGPUS[:TYPE], joined by + (8x8:a100+4x4:v100), or a YAML or\n"
        "                        CSV file\n"
        "  --split-by vc         each job goes to the pool named like its virtual cluster;\n"
        "                        --pools FILE makes these pools from lines vc,nodes\n"
        "policy\n"
        "  --bundle NAME         a named set of policies (--list shows all)\n"
        "  --order X --backfill X --place X --preempt X    single choices\n"
        "  --param NAME=VALUE    may be repeated\n"
        "  --compare A,B,C       several bundles side by side\n"
        "output\n"
        "  --json                one JSON document\n"
        "  --jobs-out FILE       a CSV row per job\n"
        "  --html FILE           a report to look at\n"
        "  --measure FIRST-LAST  totals over this range of job ids only; ends when they have\n"
        "  --paranoid            check every invariant after every step (slow)\n\n",
        stdout);
    (void)fputs(stk_generate_help, stdout);
    (void)fputs("\nformats\n", stdout);
    for (size_t i = 0; stk_trace_formats[i]; i++)
        (void)printf("  %-12s %s\n", stk_trace_formats[i]->name, stk_trace_formats[i]->help);
}

static void list_params(const struct stk_param *p)
{
    for (; p && p->name; p++)
        (void)printf("  %-16s %s (default %s)\n", p->name, p->help, *p->def ? p->def : "none");
}

#define LIST(title, table)                                                                         \
    do {                                                                                           \
        (void)printf("\n%s\n", title);                                                             \
        for (size_t i = 0; (table)[i]; i++)                                                        \
            (void)printf("  %-12s %s\n", (table)[i]->name, (table)[i]->help);                      \
    } while (0)

#define PARAMS(table)                                                                              \
    for (size_t i = 0; (table)[i]; i++)                                                            \
    list_params((table)[i]->params)

void stk_sim_list(void)
{
    (void)printf("bundles\n  %-15s %-9s %-9s %-13s %-6s %-8s %-6s %s\n", "name", "order", "admit",
                 "backfill", "place", "preempt", "share", "parameters");
    for (const struct stk_bundle *b = stk_bundles; b->name; b++)
        (void)printf("  %-15s %-9s %-9s %-13s %-6s %-8s %-6s %s\n", b->name, b->order, b->admit,
                     b->backfill, b->place, b->preempt, b->share, b->params);
    (void)printf("\nwhat they are for\n");
    for (const struct stk_bundle *b = stk_bundles; b->name; b++)
        (void)printf("  %-15s %s\n", b->name, b->help);
    LIST("order", stk_orders);
    LIST("backfill", stk_backfills);
    LIST("place", stk_places);
    LIST("preempt", stk_preempts);
    LIST("admit", stk_admits);
    (void)printf("\nparameters (--param NAME=VALUE)\n");
    list_params(stk_core_params);
    list_params(stk_sim_params);
    PARAMS(stk_orders);
    PARAMS(stk_backfills);
    PARAMS(stk_places);
    PARAMS(stk_preempts);
}
