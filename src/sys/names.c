/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - a table of names.
 *
 * Open addressing with linear probing at a load of at most a half; slots hold number + 1, so that
 * zeroed memory is an empty table. The numbers do not depend on the hash.
 */
#include "sys/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FIRST_SLOTS 64u

static uint32_t hash(const char *s, size_t len)
{
    uint64_t h = len, word;

    for (; len >= sizeof(word); s += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, s, sizeof(word));
        h = stk_hash_mix(h, word);
    }
    word = 0;
    memcpy(&word, s, len);
    h = stk_hash_mix(h, word);
    return (uint32_t)(h >> 32);
}

static size_t length(const struct stk_names *t, uint32_t number)
{
    size_t end = number + 1 < t->n ? t->offset[number + 1] : t->text_len;

    return end - t->offset[number] - 1;
}

/* The slot that holds the name, or the empty one where it belongs. The table is not empty. */
static uint32_t probe(const struct stk_names *t, const char *s, size_t len)
{
    uint32_t mask = t->n_slots - 1;

    for (uint32_t i = hash(s, len) & mask;; i = (i + 1) & mask) {
        uint32_t number = t->slot[i] - 1;

        if (t->slot[i] == 0)
            return i;
        if (length(t, number) == len && memcmp(t->text + t->offset[number], s, len) == 0)
            return i;
    }
}

static int grow_slots(struct stk_names *t)
{
    uint32_t n_slots = t->n_slots ? t->n_slots * 2 : FIRST_SLOTS;
    uint32_t *slot = calloc(n_slots, sizeof(*slot));

    if (!slot)
        return -ENOMEM;
    free(t->slot);
    t->slot = slot;
    t->n_slots = n_slots;
    for (uint32_t i = 0; i < t->n; i++)
        t->slot[probe(t, t->text + t->offset[i], length(t, i))] = i + 1;
    return 0;
}

static int grow_text(struct stk_names *t, size_t len)
{
    size_t need = t->text_len + len + 1;
    size_t cap = t->text_cap ? t->text_cap : 1024;
    char *text;

    if (need <= t->text_cap)
        return 0;
    while (cap < need)
        cap *= 2;
    text = realloc(t->text, cap);
    if (!text)
        return -ENOMEM;
    t->text = text;
    t->text_cap = cap;
    return 0;
}

static int make_room(struct stk_names *t, size_t len)
{
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? t->cap * 2 : FIRST_SLOTS / 2;
        uint32_t *offset = realloc(t->offset, cap * sizeof(*offset));

        if (!offset)
            return -ENOMEM;
        t->offset = offset;
        t->cap = cap;
    }
    if ((t->n + 1) * 2 > t->n_slots && grow_slots(t) < 0)
        return -ENOMEM;
    return grow_text(t, len);
}

int64_t stk_names_add(struct stk_names *t, const char *s, size_t len, uint32_t max)
{
    int64_t have = stk_names_find(t, s, len);

    if (have != -ENOENT)
        return have;
    if (t->n >= max || len > STK_MAX_NAME_LEN || t->text_len > UINT32_MAX - 2 * len)
        return -E2BIG;
    if (make_room(t, len) < 0)
        return -ENOMEM;
    t->slot[probe(t, s, len)] = t->n + 1;
    memcpy(t->text + t->text_len, s, len);
    t->offset[t->n] = (uint32_t)t->text_len;
    t->text_len += len;
    t->text[t->text_len++] = '\0';
    return t->n++;
}

int64_t stk_names_find(const struct stk_names *t, const char *s, size_t len)
{
    uint32_t i;

    if (t->n == 0 || len > STK_MAX_NAME_LEN)
        return -ENOENT;
    i = probe(t, s, len);
    return t->slot[i] ? (int64_t)t->slot[i] - 1 : -ENOENT;
}

const char *stk_names_get(const struct stk_names *t, uint32_t number)
{
    return number < t->n ? t->text + t->offset[number] : "";
}

void stk_names_done(struct stk_names *t)
{
    free(t->text);
    free(t->offset);
    free(t->slot);
    *t = (struct stk_names){0};
}
