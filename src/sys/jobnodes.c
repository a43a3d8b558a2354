/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/jobnodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_node(char *word, struct stk_jobnode *ret)
{
    char *tasks = strchr(word, ':'), *gpus = tasks ? strchr(tasks + 1, ':') : NULL, *end;
    unsigned long n;

    if (!gpus || tasks == word)
        return -EINVAL;
    *tasks++ = *gpus++ = '\0';
    n = strtoul(tasks, &end, 10);
    if (end == tasks || *end != '\0' || n > 1000000 || strspn(gpus, "0123456789,") != strlen(gpus))
        return -EINVAL;
    *ret = (struct stk_jobnode){.name = word, .gpus = gpus, .tasks = (uint32_t)n};
    ret->n_gpus = *gpus != '\0';
    for (const char *p = gpus; *p; p++)
        ret->n_gpus += *p == ',';
    return 0;
}

int stk_jobnodes_read(const char *text, struct stk_jobnodes *ret)
{
    struct stk_jobnodes t = {.n = 0, .text = strdup(text)};
    char *save = NULL;
    uint32_t most = 1;
    int rc = 0;

    for (const char *p = text; *p; p++)
        most += *p == ';';
    if (most > STK_JOBNODES_MAX)
        rc = -EINVAL;
    else
        t.node = calloc(most, sizeof(*t.node));
    if (rc == 0 && (!t.text || !t.node))
        rc = -ENOMEM;
    for (char *w = rc == 0 ? strtok_r(t.text, ";", &save) : NULL; w && rc == 0;
         w = strtok_r(NULL, ";", &save))
        rc = read_node(w, &t.node[t.n++]);
    if (rc == 0 && t.n == 0)
        rc = -EINVAL;
    if (rc < 0)
        stk_jobnodes_done(&t);
    else
        *ret = t;
    return rc;
}

void stk_jobnodes_done(struct stk_jobnodes *t)
{
    free(t->node);
    free(t->text);
    *t = (struct stk_jobnodes){0};
}

uint32_t stk_jobnodes_find(const struct stk_jobnodes *t, uint32_t task, uint32_t *ret_local)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (task < t->node[i].tasks) {
            *ret_local = task;
            return i;
        }
        task -= t->node[i].tasks;
    }
    *ret_local = task;
    return t->n > 0 ? t->n - 1 : 0;
}

void stk_jobnodes_spread(struct stk_jobnodes *t, uint32_t tasks)
{
    uint32_t own = 0;

    for (uint32_t i = 0; i < t->n; i++)
        own += t->node[i].tasks;
    for (uint32_t i = 0; own != tasks && i < t->n; i++)
        t->node[i].tasks = tasks / t->n + (i < tasks % t->n);
}

char *stk_jobnodes_names(const struct stk_jobnodes *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    for (uint32_t i = 0; f && i < t->n; i++)
        (void)fprintf(f, "%s%s", i ? "," : "", t->node[i].name);
    if (!f || fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *stk_jobnodes_tasks(const struct stk_jobnodes *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    for (uint32_t i = 0, same; f && i < t->n; i += same) {
        for (same = 1; i + same < t->n && t->node[i + same].tasks == t->node[i].tasks;)
            same++;
        (void)fprintf(f, same > 1 ? "%s%u(x%u)" : "%s%u", i ? "," : "", t->node[i].tasks, same);
    }
    if (!f || fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
