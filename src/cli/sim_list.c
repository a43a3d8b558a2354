/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim_list.h"

#include <stdio.h>

#include "core/core.h"
#include "engine/sim/sim.h"
#include "policy/registry.h"
#include "sim/generate.h"
#include "sim/trace.h"

void stk_sim_more(FILE *f)
{
    (void)fprintf(f, "\n%s\nformats\n", stk_generate_help);
    for (size_t i = 0; stk_trace_formats[i]; i++)
        (void)fprintf(f, "  %-12s %s\n", stk_trace_formats[i]->name, stk_trace_formats[i]->help);
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
