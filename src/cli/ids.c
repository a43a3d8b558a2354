/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ids.h"

#include <stdlib.h>
#include <string.h>

static int push(struct stk_ids *ids, const struct stk_id *id, struct stk_err *err)
{
    if (ids->n == STK_IDS_MAX)
        return stk_err_set(err, -E2BIG, "at most %d jobs at once", STK_IDS_MAX);
    if (ids->n == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 64;
        struct stk_id *list = realloc(ids->list, cap * sizeof(*list));

        if (!list)
            return stk_err_set(err, -ENOMEM, "out of memory");
        ids->list = list;
        ids->cap = cap;
    }
    ids->list[ids->n++] = *id;
    return 0;
}

/* Digits up to 2^32 - 1; NULL when there are none. */
static const char *number(const char *s, uint32_t *ret)
{
    uint64_t v = 0;
    const char *from = s;

    for (; *s >= '0' && *s <= '9'; s++) {
        v = v * 10 + (uint64_t)(*s - '0');
        if (v > UINT32_MAX)
            return NULL;
    }
    *ret = (uint32_t)v;
    return s > from ? s : NULL;
}

static bool ends(const char *s)
{
    return s && (*s == ',' || *s == '\0');
}

/* One of the words between commas; *s moves behind it. */
static int take(struct stk_ids *ids, const char **s, struct stk_err *err)
{
    static const char theirs[] = "slurm:";
    bool slurm = strncmp(*s, theirs, sizeof(theirs) - 1) == 0;
    uint32_t a = 0, b = 0;
    const char *p = number(*s + (slurm ? sizeof(theirs) - 1 : 0), &a), *q = p;
    int64_t index = -1;

    b = a;
    if (p && *p == '-') {
        q = number(p + 1, &b);
    } else if (p && *p == '_') {
        uint32_t i = 0;

        q = number(p + 1, &i);
        index = i;
        if (!q && p[1] == '[') { /* as squeue shows all of an array */
            q = strchr(p, ']');
            q = q ? q + 1 : NULL;
            index = -1;
        }
    }
    if (!ends(q) || a == 0 || b < a)
        return -EINVAL;
    if ((size_t)(b - a) >= STK_IDS_MAX)
        return stk_err_set(err, -E2BIG, "%u-%u are more than %d jobs", a, b, STK_IDS_MAX);
    for (uint64_t j = a; j <= b; j++) {
        int rc = push(ids, &(struct stk_id){(uint32_t)j, index, a != b, slurm}, err);

        if (rc < 0)
            return rc;
    }
    *s = q;
    return 0;
}

int stk_ids_add(struct stk_ids *ids, const char *word, struct stk_err *err)
{
    const char *s = word;

    for (;;) {
        int rc = take(ids, &s, err);

        if (rc == -EINVAL)
            return stk_err_set(
                err, rc,
                "\"%.40s\" names no job: 12, a range 3-7, an array's element 12_3, or slurm:1234, "
                "Slurm's number",
                word);
        if (rc < 0)
            return rc;
        if (*s == '\0')
            return 0;
        s++;
    }
}

void stk_ids_done(struct stk_ids *ids)
{
    free(ids->list);
    *ids = (struct stk_ids){0};
}

int stk_ids_take(const struct stk_args *a, bool none, struct stk_ids *ids)
{
    struct stk_err err = {""};

    if (a->n_words == 0 && !none)
        return stk_misused(a, "which job? (stoker queue lists them)");
    for (int i = 0; i < a->n_words; i++)
        if (stk_ids_add(ids, a->words[i], &err) < 0) {
            stk_ids_done(ids);
            return stk_misused(a, "%s", err.text);
        }
    return STK_EXIT_OK;
}

const char *stk_id_text(const struct stk_id *id, char *buf, size_t size)
{
    const char *whose = id->slurm ? "slurm:" : "";

    if (id->index >= 0)
        (void)snprintf(buf, size, "%s%u_%lld", whose, id->job, (long long)id->index);
    else
        (void)snprintf(buf, size, "%s%u", whose, id->job);
    return buf;
}
