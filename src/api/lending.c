/* SPDX-License-Identifier: Apache-2.0 */
/* lending.c - who lends to whom, as data: of each tenant what it lends, over all GPU types and of
 * each, and a table of lenders and borrowers (core/lending.h). */
#include <stdlib.h>

#include "api/show.h"
#include "core/lending.h"
#include "core/state.h"
#include "core/tenant.h"

#define MAX_ROWS 1000u
#define MAX_LOOKS 1000000u /* at pairs, in a world of very many tenants */

struct table {
    struct stk_api *a;
    const struct stk_state *s;
    struct stk_lending *rows;
    uint32_t of;
    json_t *out; /* a list */
    uint32_t looks;
};

static double gpus(uint64_t milli)
{
    return (double)milli / 1000;
}

/* The type of the column; NULL: over all, or it has no name. */
static const char *type_of(const struct table *t)
{
    const struct stk_live_config *c = stk_live_config(t->a->cfg.live);

    return t->of > 0 && t->of <= c->n_gpu_types ? c->gpu_types[t->of - 1] : NULL;
}

static void add_row(struct table *t, uint32_t from, uint32_t to, uint64_t milli)
{
    (void)json_array_append_new(
        t->out, json_pack("{s:s,s:s,s:s?,s:f}", "from", t->s->tenants[from].name, "to",
                          t->s->tenants[to].name, "gpu_type", type_of(t), "gpus", gpus(milli)));
}

/* Tenants beside each other, from the first on. False: the table is full. */
static bool add_pairs(struct table *t, uint32_t first)
{
    const struct stk_tenant *tenants = t->s->tenants;
    const uint64_t all = stk_lending_all(t->s, t->rows, first);

    for (uint32_t x = all ? first : 0; x; x = tenants[x - 1].sibling)
        for (uint32_t y = t->rows[x - 1].lent ? first : 0; y; y = tenants[y - 1].sibling) {
            const uint64_t milli = stk_lending_between(t->rows, x - 1, y - 1, all);

            if (++t->looks > MAX_LOOKS || json_array_size(t->out) >= MAX_ROWS)
                return false;
            if (milli > 0)
                add_row(t, x - 1, y - 1, milli);
        }
    return true;
}

/* One column: what tenants lend, and to whom. False: the table is full. */
static bool add_column(struct table *t, json_t *tenants)
{
    const struct stk_state *s = t->s;
    const char *type = type_of(t);
    bool more;

    stk_lending(s, t->of, t->rows);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        json_t *o = json_array_get(tenants, i);

        o = t->of == STK_ALL_TYPES ? o : json_object_get(json_object_get(o, "types"), type);
        if (o)
            (void)json_object_set_new(o, "lent", json_real(gpus(t->rows[i].lent)));
    }
    more = add_pairs(t, s->first_tenant);
    for (uint32_t i = 0; i < s->n_tenants && more; i++)
        more = !s->tenants[i].child || add_pairs(t, s->tenants[i].child);
    return more;
}

void stk_show_lending(struct stk_api *a, json_t *tenants, json_t *out)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    struct table t = {.a = a, .s = s, .out = json_array()};
    bool more = true;

    t.rows = calloc(s->n_tenants + 1u, sizeof(*t.rows));
    for (t.of = STK_ALL_TYPES; t.rows && s->n_tenants && t.of < s->n_tenant_cols; t.of++)
        more &= add_column(&t, tenants);
    free(t.rows);
    (void)json_object_set_new(out, "lending", t.out);
    (void)json_object_set_new(out, "lending_cut", json_boolean(!more));
}
