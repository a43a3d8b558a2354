/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_where.c - any text as names of nodes and as features that they must have: an answer, or a
 * sentence. Lines: pattern, node, constraint, features, GPU type. */
#include <string.h>

#include "lib/fixture.h"
#include "model/where.h"

#define LINES 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096], *line[LINES], *rest = text;
    struct stk_err err = {{0}};
    int rc;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < LINES; i++) {
        char *end = strchr(rest, '\n');

        line[i] = rest;
        rest = end ? end + 1 : rest + strlen(rest);
        if (end)
            *end = '\0';
    }
    (void)stk_where_names(line[0], line[1]);
    fx_must(strpbrk(line[1], "[]") || stk_where_names(line[1], line[1]), "a name names itself");
    rc = stk_where_meets(line[2], line[3], line[4], &err);
    fx_must(rc == 0 || rc == 1 || (rc == -EINVAL && err.text[0]), "an answer, or a sentence");
    return 0;
}
