/* SPDX-License-Identifier: Apache-2.0 */
/* news.h - what somebody is still to be told, in words of the socket (slurmctld/where.h): a list of
 * fixed size that never loses anything. Where more ends come than it has room for, one "look" takes
 * their place. */
#ifndef STK_SLURMCTLD_NEWS_H
#define STK_SLURMCTLD_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "slurmctld/where.h"

#define STK_NEWS_ENDS 256u /* with more than that asking for all jobs is cheaper */

struct stk_news { /* all zero: there is none */
    uint32_t ends[STK_NEWS_ENDS];
    uint32_t first, n; /* a ring */
    bool hear, look, come;
};

void stk_news_end(struct stk_news *n, uint32_t job);
/* "new", "look", "hear" and "end NUMBER"; false: it is none of these. */
bool stk_news_word(struct stk_news *n, const char *word);
/* The next word, which is then no longer in the list; false: there is none. */
bool stk_news_take(struct stk_news *n, char word[STK_SLURMCTLD_WORD]);

#endif
