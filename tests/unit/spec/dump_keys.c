/* SPDX-License-Identifier: Apache-2.0 */
/* dump_keys.c - the table of keys as rows of docs/spec/job.md, which tests/e2e/test_job_spec.py
 * compares: key, type, what is allowed, what holds otherwise, meaning. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "spec/keys.h"

static void allowed(const struct stk_key *k)
{
    switch (k->type) {
    case STK_KEY_WORD:
        for (const char *w = k->words; *w; w += strcspn(w, "|") + (w[strcspn(w, "|")] == '|'))
            (void)printf("%s`%.*s`", w == k->words ? "" : ", ", (int)strcspn(w, "|"), w);
        return;
    case STK_KEY_BOOL:
    case STK_KEY_OBJECT:
        return;
    case STK_KEY_INT:
    case STK_KEY_NUMBER:
    case STK_KEY_BUDGET:
        (void)printf("%" PRId64 " to %" PRId64, k->min, k->max);
        return;
    case STK_KEY_INTS:
        (void)printf("%" PRId64 " to %" PRId64 ", at most %" PRId64 " of them", k->min, k->max,
                     k->each);
        return;
    case STK_KEY_STRINGS:
    case STK_KEY_NAMES:
    case STK_KEY_TYPES:
    case STK_KEY_ENVS:
    case STK_KEY_SECRETS:
        (void)printf("at most %" PRId64 ", of %" PRId64 " bytes each", k->max, k->each);
        return;
    case STK_KEY_AMOUNTS:
        (void)printf("at most %" PRId64 ", each 0 to %" PRId64, k->max, k->each);
        return;
    case STK_KEY_OBJECTS:
        (void)printf("at most %" PRId64, k->max);
        return;
    default:
        (void)printf("at most %" PRId64 " bytes", k->max);
    }
}

static void rows(const struct stk_key *keys, const char *above)
{
    for (const struct stk_key *k = keys; k->name; k++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "%s%s%s", above, *above ? "." : "", k->name);
        (void)printf("| `%s` | %s | ", path, stk_key_type_name(k->type));
        allowed(k);
        (void)printf(" | %s | %s |\n", k->standard, k->help);
        if (k->keys)
            rows(k->keys, path);
    }
}

int main(void)
{
    rows(stk_spec_keys(), "");
    return 0;
}
