/* SPDX-License-Identifier: Apache-2.0 */
/* import_script.c - what a user has asked Slurm for, and Slurm tells nobody: --signal. The plugin
 * writes it down as the job comes. Without the plugin the job's script is asked for, and its
 * #SBATCH lines are read; what was said to sbatch in words of its command line is not known. */
#include <stdio.h>

#include "engine/slurm/import.h"
#include "spec/words.h"
#include "sys/json.h"

static void heard(struct stk_slurm *m, uint32_t slurm, const json_t *answer)
{
    struct stk_slurm_import *i = stk_slurm_import_find(m, slurm);
    const char *words = json_string_value(json_object_get(answer, "signal"));

    if (!i)
        return;
    i->script_asked = false;
    if (!answer || stk_yes(answer, "unanswered"))
        return; /* all is told anew when Slurm is back */
    i->script_known = true;
    (void)snprintf(i->signal, sizeof(i->signal), "%s", words ? words : "");
    m->again = i->again = true;
}

bool stk_slurm_import_script(struct stk_slurm *m, struct stk_slurm_import *i)
{
    if (!i->bare || i->script_known || !stk_yes(i->job, "batch"))
        return true;
    if (!i->script_asked)
        i->script_asked =
            stk_slurm_ask_of(m, json_pack("{s:s,s:I}", "op", "script", "job", (json_int_t)i->slurm),
                             i->slurm, heard) == 0;
    return false;
}

void stk_slurm_import_signal(const struct stk_slurm_import *i, json_t *wish)
{
    json_t *signal = NULL;

    if (i && i->signal[0] && !json_object_get(wish, "signal") &&
        stk_words_signal_ahead(i->signal, &signal, NULL) == 0)
        (void)json_object_set_new(wish, "signal", signal);
}
