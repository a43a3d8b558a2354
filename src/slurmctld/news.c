/* SPDX-License-Identifier: Apache-2.0 */
#include "slurmctld/news.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stk_news_end(struct stk_news *n, uint32_t job)
{
    if (n->n == STK_NEWS_ENDS) { /* who looks sees those, too */
        n->n = 0;
        n->look = true;
    }
    n->ends[(n->first + n->n++) % STK_NEWS_ENDS] = job;
}

/* "end NUMBER" */
static bool end_word(struct stk_news *n, const char *word)
{
    static const char end[] = "end ";
    unsigned long job;
    char *rest = NULL;

    if (strncmp(word, end, sizeof(end) - 1) != 0)
        return false;
    job = strtoul(word + sizeof(end) - 1, &rest, 10);
    if (*rest != '\0' || job == 0 || job >= UINT32_MAX)
        return false;
    stk_news_end(n, (uint32_t)job);
    return true;
}

bool stk_news_word(struct stk_news *n, const char *word)
{
    if (strcmp(word, "new") == 0)
        n->come = true;
    else if (strcmp(word, "look") == 0)
        n->look = true;
    else if (strcmp(word, "hear") == 0)
        n->hear = true;
    else
        return end_word(n, word);
    return true;
}

static bool take_flag(bool *flag, const char *text, char word[STK_SLURMCTLD_WORD])
{
    if (!*flag)
        return false;
    *flag = false;
    (void)snprintf(word, STK_SLURMCTLD_WORD, "%s", text);
    return true;
}

bool stk_news_take(struct stk_news *n, char word[STK_SLURMCTLD_WORD])
{
    if (take_flag(&n->hear, "hear", word) || take_flag(&n->look, "look", word) ||
        take_flag(&n->come, "new", word))
        return true;
    if (n->n == 0)
        return false;
    (void)snprintf(word, STK_SLURMCTLD_WORD, "end %u", n->ends[n->first]);
    n->first = (n->first + 1) % STK_NEWS_ENDS;
    n->n--;
    return true;
}
