/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include <string.h>

#define MAX_WORD 127u /* longer ones are compared up to here */

static unsigned length(const char *s)
{
    unsigned n = 0;

    while (n < MAX_WORD && s[n] != '\0')
        n++;
    return n;
}

unsigned stk_near_limit(const char *word)
{
    return 2 + length(word) / 3;
}

bool stk_near(const char *word, const char *name, unsigned *best)
{
    unsigned row[MAX_WORD + 1], n = length(name), m = length(word);

    for (unsigned k = 0; k <= n; k++)
        row[k] = k;
    for (unsigned i = 0; i < m; i++) {
        unsigned diagonal = row[0];

        row[0] = i + 1;
        for (unsigned k = 1; k <= n; k++) {
            unsigned edits = diagonal + (word[i] != name[k - 1]);

            diagonal = row[k];
            edits = row[k] + 1 < edits ? row[k] + 1 : edits;
            edits = row[k - 1] + 1 < edits ? row[k - 1] + 1 : edits;
            row[k] = edits;
        }
    }
    if (m > 1 && m < n && strncmp(word, name, m) == 0)
        row[n] = 1; /* its beginning: as good as one slip */
    if (row[n] >= *best)
        return false;
    *best = row[n];
    return true;
}
