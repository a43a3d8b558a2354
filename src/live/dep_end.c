/* SPDX-License-Identifier: Apache-2.0 */
/* dep_end.c - how a job ended, in words; and which job's end was the end of one that depends on it.
 */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"
#include "spec/ending.h"

/* Why a job did not run that depended on another, by its note; NULL: the note says something else.
 * Of a chain only the job that failed is named. */
static const char *root_of(const struct stk_record *r)
{
    static const char between[] = " did not run: ";
    const char *at = r->note ? strstr(r->note, between) : NULL;

    if (r->cause != STK_CAUSE_DEPENDENCY || !r->note || strncmp(r->note, "job ", 4) != 0)
        return NULL;
    return at ? at + sizeof(between) - 1 : r->note;
}

static int say_record(void *ctx, const struct stk_record *r)
{
    struct stk_live *l = ctx;
    const char *root = root_of(r);
    char how[80], name[32];

    if (r->array)
        (void)snprintf(name, sizeof(name), "%u_%u", r->array, r->array_index);
    else
        (void)snprintf(name, sizeof(name), "%u", r->number);
    stk_end_words(r->cause, r->code, how, sizeof(how));
    if (root) {
        (void)snprintf(l->dep_text, sizeof(l->dep_text), "job %s did not run: %s", name, root);
        return 0;
    }
    (void)snprintf(l->dep_text, sizeof(l->dep_text), "job %s %s%s", name, how,
                   r->cause == STK_CAUSE_OK ? ", and this job was to run only if it did not" : "");
    return 0;
}

/* One end can be that of very many others: its sentence is made once. */
void stk_live_name_dep(struct stk_live *l, const struct stk_job *j)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, j->number);

    if (j->cause != STK_CAUSE_DEPENDENCY || j->failed_dep == 0 || !e || e->note)
        return;
    if (l->named_dep != j->failed_dep) {
        l->dep_text[0] = '\0';
        l->named_dep = j->failed_dep;
        (void)stk_store_job_get(l->cfg.store, j->failed_dep, say_record, l, NULL);
    }
    if (l->dep_text[0])
        stk_live_note(l, j->number, l->dep_text);
}
