/* SPDX-License-Identifier: Apache-2.0 */
/* trace_ids.c - open addressing, linear probing, at most half full. */
#include "sim/trace_ids.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define FIRST_SLOTS 256u

static struct stk_id_slot *probe(const struct stk_id_map *m, uint64_t id)
{
    uint32_t mask = m->n_slots - 1;
    uint32_t i = (uint32_t)(stk_hash_mix(0, id) >> 32) & mask;

    while (m->slot[i].job != 0 && m->slot[i].id != id)
        i = (i + 1) & mask;
    return &m->slot[i];
}

static int grow(struct stk_id_map *m)
{
    struct stk_id_map old = *m;

    m->n_slots = old.n_slots ? old.n_slots * 2 : FIRST_SLOTS;
    m->slot = calloc(m->n_slots, sizeof(*m->slot));
    if (!m->slot) {
        *m = old;
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < old.n_slots; i++)
        if (old.slot[i].job != 0)
            *probe(m, old.slot[i].id) = old.slot[i];
    free(old.slot);
    return 0;
}

int stk_id_map_put(struct stk_id_map *m, uint64_t id, uint32_t job)
{
    struct stk_id_slot *s;

    if ((m->n + 1) * 2 > m->n_slots && grow(m) < 0)
        return -ENOMEM;
    s = probe(m, id);
    if (s->job == 0) {
        s->id = id;
        s->job = job + 1;
        m->n++;
    } else {
        s->job = UINT32_MAX;
    }
    return 0;
}

int64_t stk_id_map_get(const struct stk_id_map *m, uint64_t id)
{
    const struct stk_id_slot *s = m->n > 0 ? probe(m, id) : NULL;

    if (!s || s->job == 0)
        return -ENOENT;
    return s->job == UINT32_MAX ? -ENOTUNIQ : (int64_t)s->job - 1;
}

void stk_id_map_done(struct stk_id_map *m)
{
    free(m->slot);
    *m = (struct stk_id_map){0};
}
