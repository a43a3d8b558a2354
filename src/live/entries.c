/* SPDX-License-Identifier: Apache-2.0 */
#include "live/entries.h"

#include <stdlib.h>
#include <string.h>

#define N_TEXTS 8

static void entry_free(struct stk_entry *e)
{
    if (!e)
        return;
    json_decref(e->progress);
    free(e->note);
    for (int i = 0; i < STK_WARN_MAX; i++)
        free(e->warning[i]);
    free(e->why);
    free(e->text);
    free(e->logs);
    free(e->renamed);
    free(e); /* its strings lie behind it */
}

/* The entry and its strings in one block. */
static struct stk_entry *entry_new(const struct stk_record *rec)
{
    const char *from[] = {rec->user,        rec->name,        rec->comment, rec->note,
                          rec->stdout_path, rec->stderr_path, rec->queue,   rec->tenant};
    size_t len[N_TEXTS], total = sizeof(struct stk_entry);
    const char *to[N_TEXTS];
    struct stk_entry *e;
    char *at;

    for (int i = 0; i < N_TEXTS; i++) {
        len[i] = from[i] ? strlen(from[i]) : 0;
        total += len[i] + 1;
    }
    e = malloc(total);
    if (!e)
        return NULL;
    at = (char *)(e + 1);
    for (int i = 0; i < N_TEXTS; i++) {
        if (len[i])
            memcpy(at, from[i], len[i]);
        at[len[i]] = '\0';
        to[i] = at;
        at += len[i] + 1;
    }
    *e = (struct stk_entry){.number = rec->number, .rec = *rec};
    e->rec.user = to[0];
    e->rec.name = to[1];
    e->rec.comment = to[2];
    e->rec.note = to[3];
    e->rec.stdout_path = to[4];
    e->rec.stderr_path = to[5];
    e->rec.queue = to[6];
    e->rec.tenant = to[7];
    return e;
}

/* Index of the first slot whose number is larger than 'after'. */
static uint32_t beyond(const struct stk_entries *t, stk_job_number after)
{
    uint32_t lo = 0, hi = t->n;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (t->slots[mid].number <= after)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The user's row; NULL: there is none. */
static struct stk_entry_user *find_user(const struct stk_entries *t, uint32_t uid)
{
    for (uint32_t i = 0; i < t->n_users; i++)
        if (t->users[i].uid == uid)
            return &t->users[i];
    return NULL;
}

/* A row for the user; a row of a user without jobs is used again. */
static struct stk_entry_user *add_user(struct stk_entries *t, uint32_t uid)
{
    struct stk_entry_user *u = find_user(t, uid);

    for (uint32_t i = 0; !u && i < t->n_users; i++)
        if (t->users[i].n == 0)
            u = &t->users[i];
    if (!u && t->n_users == t->cap_users) {
        uint32_t cap = t->cap_users ? 2 * t->cap_users : 16;
        struct stk_entry_user *more = realloc(t->users, cap * sizeof(*more));

        if (!more)
            return NULL;
        t->users = more;
        t->cap_users = cap;
    }
    if (!u) {
        u = &t->users[t->n_users++];
        u->n = 0;
    }
    u->uid = uid;
    return u;
}

uint32_t stk_entries_of(const struct stk_entries *t, uint32_t uid)
{
    const struct stk_entry_user *u = find_user(t, uid);

    return u ? u->n : 0;
}

int stk_entries_add(struct stk_entries *t, const struct stk_record *rec,
                    struct stk_entry **ret_entry)
{
    struct stk_entry_user *u;
    struct stk_entry *e;

    if (t->n > 0 && t->slots[t->n - 1].number >= rec->number)
        return -EINVAL;
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? 2 * t->cap : 64;
        struct stk_entry_slot *more = realloc(t->slots, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        t->slots = more;
        t->cap = cap;
    }
    u = add_user(t, rec->uid);
    e = u ? entry_new(rec) : NULL;
    if (!e)
        return -ENOMEM;
    u->n++;
    t->slots[t->n++] = (struct stk_entry_slot){rec->number, e};
    t->live++;
    *ret_entry = e;
    return 0;
}

struct stk_entry *stk_entries_find(const struct stk_entries *t, stk_job_number number)
{
    uint32_t i = number ? beyond(t, number - 1) : t->n;

    return i < t->n && t->slots[i].number == number ? t->slots[i].entry : NULL;
}

struct stk_entry *stk_entries_next(const struct stk_entries *t, stk_job_number after)
{
    for (uint32_t i = beyond(t, after); i < t->n; i++)
        if (t->slots[i].entry)
            return t->slots[i].entry;
    return NULL;
}

static void close_gaps(struct stk_entries *t)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < t->n; i++)
        if (t->slots[i].entry)
            t->slots[kept++] = t->slots[i];
    t->n = kept;
}

void stk_entries_remove(struct stk_entries *t, stk_job_number number)
{
    uint32_t i = number ? beyond(t, number - 1) : t->n;

    if (i >= t->n || t->slots[i].number != number || !t->slots[i].entry)
        return;
    find_user(t, t->slots[i].entry->rec.uid)->n--;
    entry_free(t->slots[i].entry);
    t->slots[i].entry = NULL;
    t->live--;
    if (t->n > 64 && t->live < t->n / 2)
        close_gaps(t);
}

void stk_entries_done(struct stk_entries *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        entry_free(t->slots[i].entry);
    free(t->slots);
    free(t->users);
    *t = (struct stk_entries){0};
}
