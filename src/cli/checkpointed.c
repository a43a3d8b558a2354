/* SPDX-License-Identifier: Apache-2.0 */
/* checkpointed.c - "stoker checkpointed": a job says that what it has done up to now is saved. For
 * jobs that do not use the Python client, which says it by itself. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/ask.h"

static int run_checkpointed(const struct stk_args *a)
{
    const char *word = a->n_words > 0 ? a->words[0] : getenv("STOKER_JOB_ID");
    json_t *body = json_pack("{s:{}}", "checkpoint"), *reply = NULL;
    char path[64], *end = NULL;
    unsigned long job = word ? strtoul(word, &end, 10) : 0;
    struct stk_ask k;
    int rc;

    if (a->n_words > 1 || !word || end == word || *end != '\0' || job == 0 || job > UINT32_MAX) {
        json_decref(body);
        return stk_misused(a, "which job? Its number, or nothing inside of a job");
    }
    rc = stk_ask_open(&k, a);
    if (rc == STK_EXIT_OK) {
        (void)snprintf(path, sizeof(path), "/v1/jobs/%lu/report", job);
        rc = stk_ask_do(&k, "POST", path, body, &reply);
        if (rc == STK_EXIT_OK && k.json)
            stk_print_json(reply);
        stk_ask_close(&k);
    }
    json_decref(body);
    json_decref(reply);
    return rc;
}

const struct stk_command stk_cmd_checkpointed = {
    .name = "checkpointed",
    .synopsis = "[JOB]",
    .help = "say that a job has saved its work",
    .about =
        "Inside of a job its own number need not be said. When jobs have to make room, those\n"
        "with little to lose go first; a job that never says this counts as losing 15 minutes.",
    .complete = "@jobs",
    .section = STK_SECTION_CHANGE,
    .run = run_checkpointed,
};
