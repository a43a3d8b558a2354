/* SPDX-License-Identifier: Apache-2.0 */
/* near.h - which of the words there are was meant by one that is not among them.
 *
 *     unsigned best = stk_near_limit(word);
 *     for (i = 0; names[i]; i++)
 *         if (stk_near(word, names[i], &best))
 *             meant = names[i];
 */
#ifndef STK_BASE_NEAR_H
#define STK_BASE_NEAR_H

#include <stdbool.h>

/* How far a word may be off and still be recognised, plus one. */
unsigned stk_near_limit(const char *word);
/* Whether fewer than *best edits (insert, delete, replace a character) make 'name' of 'word';
 * *best becomes their number. */
bool stk_near(const char *word, const char *name, unsigned *best);

#endif
