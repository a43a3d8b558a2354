/* SPDX-License-Identifier: Apache-2.0 */
/* settings_save.c - settings in the digest and in the saved state. They are saved by name: what
 * they are about may have another number, or be gone, when they are read again. */
#include "core/settings.h"

#include <string.h>

#include "base/hash.h"
#include "core/account.h"
#include "core/tenant.h"
#include "core/verbs.h"

static uint64_t mix_text(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = stk_hash_mix(h, (unsigned char)*s);
    return h;
}

uint64_t stk_settings_digest(const struct stk_state *s, uint64_t h)
{
    const struct stk_settings *t = s->settings;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct stk_set *e = &t->set[i];

        h = stk_hash_mix(h, (uint64_t)e->evict << 59 | (uint64_t)e->kind << 60 |
                                (uint64_t)e->column << 32 | e->row);
        h = stk_hash_mix(h, (uint64_t)e->value);
        h = mix_text(mix_text(h, e->name), e->text);
    }
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].pool != t->nodes[i].pool.i)
            h = stk_hash_mix(h, (uint64_t)i << 32 | s->nodes[i].pool);
    return h;
}

static void put_text(struct stk_bytes *b, const char *s)
{
    uint32_t len = (uint32_t)strlen(s);

    stk_put_u(b, len);
    stk_put_raw(b, s, len);
}

static bool of_queue(const struct stk_set *e)
{
    return e->kind == STK_SET_QUEUE ||
           (e->kind == STK_SET_PRIORITY && e->column == STK_SET_OF_QUEUE);
}

/* Its name in the table of tenants or queues; STK_NONE: it is not in there. */
static uint32_t named(const struct stk_state *s, const struct stk_set *e, const unsigned char *name,
                      uint32_t len)
{
    return stk_set_of_tenant(e->kind) ? stk_tenant_named(s, name, len)
                                      : stk_account_named(s, name, len);
}

/* Tenants and queues by name: where it is loaded they may have other numbers. */
void stk_settings_put(struct stk_bytes *b, const struct stk_state *s)
{
    const struct stk_settings *t = s->settings;
    uint32_t n = 0;

    stk_put_u(b, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct stk_set *e = &t->set[i];

        stk_put_u(b, (uint64_t)e->kind << 1 | e->evict);
        stk_put_u(b, e->row);
        stk_put_u(b, e->column);
        stk_put_s(b, e->value);
        put_text(b, stk_set_of_tenant(e->kind) ? s->tenants[e->row].name
                    : of_queue(e)              ? t->queues[e->row].name
                                               : e->name);
        put_text(b, e->text);
    }
    for (uint32_t i = 0; i < s->n_nodes; i++)
        n += s->nodes[i].pool != t->nodes[i].pool.i;
    stk_put_u(b, n);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        if (s->nodes[i].pool == t->nodes[i].pool.i)
            continue;
        stk_put_u(b, i);
        stk_put_u(b, s->nodes[i].pool);
    }
}

static const unsigned char *get_text(struct stk_reader *r, uint32_t *ret_len)
{
    *ret_len = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
    return stk_get_raw(r, *ret_len);
}

/* One; false: it does not exist here. */
static bool get_one(struct stk_reader *r, const struct stk_state *s, struct stk_set *e)
{
    const unsigned char *name, *text;
    uint32_t len, text_len;
    unsigned kind;

    *e = (struct stk_set){.kind = STK_SET_PARAM};
    kind = (unsigned)stk_get_u(r, 2 * STK_SET_KIND_MAX - 1);
    e->evict = kind & 1;
    e->kind = (enum stk_set_kind)(kind >> 1);
    e->row = stk_get_u32(r);
    e->column = stk_get_u32(r);
    e->value = stk_get_i(r, INT64_MIN, INT64_MAX);
    name = get_text(r, &len);
    text = get_text(r, &text_len);
    if (!name || !text || r->bad || text_len >= sizeof(e->text))
        return false;
    memcpy(e->text, text, text_len);
    if (stk_set_of_tenant(e->kind) || of_queue(e)) {
        e->row = named(s, e, name, len);
        return e->row != STK_NONE;
    }
    if (len < sizeof(e->name))
        memcpy(e->name, name, len);
    return len < sizeof(e->name);
}

void stk_settings_pass(struct stk_reader *r)
{
    uint32_t n = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at)), len;

    for (uint32_t i = 0; i < n && !r->bad; i++) {
        (void)stk_get_u(r, 2 * STK_SET_KIND_MAX - 1);
        (void)stk_get_u32(r);
        (void)stk_get_u32(r);
        (void)stk_get_s(r);
        (void)get_text(r, &len);
        (void)get_text(r, &len);
    }
    n = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        (void)stk_get_u32(r);
        (void)stk_get_u32(r);
    }
}

/* Where nodes are, as far as there are such nodes and pools. Whether some are elsewhere. */
static bool get_pools(struct stk_reader *r, struct stk_state *s)
{
    uint32_t n = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
    bool moved = false;

    for (uint32_t i = 0; i < n && !r->bad; i++) {
        uint32_t node = stk_get_u32(r), pool = stk_get_u32(r);

        if (r->bad || node >= s->n_nodes || pool >= s->n_pools || s->nodes[node].aggregate ||
            s->pools[pool].aggregate)
            continue;
        s->nodes[node].pool = pool;
        moved = true;
    }
    return moved;
}

/* Together they may be possible though one by one, in this order, they are not. */
int stk_settings_get(struct stk_reader *r, struct stk_core *fresh, struct stk_err *err)
{
    struct stk_settings *t = fresh->s.settings;
    uint32_t n = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at)), here = 0;
    bool moved;
    int rc;

    if (n > STK_MAX_SETS)
        r->bad = true;
    if (r->bad)
        return 0;
    if (stk_mem_grow(&fresh->s.mem, &t->set, &t->cap, n, sizeof(*t->set)) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for settings");
    for (uint32_t i = 0; i < n && !r->bad; i++)
        here += get_one(r, &fresh->s, &t->set[here]) &&
                stk_settings_check(&fresh->s, &t->set[here], err) == 0;
    if (r->bad)
        return 0;
    moved = get_pools(r, &fresh->s);
    if (r->bad || (here == 0 && !moved))
        return 0;
    rc = stk_settings_remake(fresh, here, err);
    if (rc == 0 || rc == -ENOMEM)
        return rc;
    rc = stk_settings_remake(fresh, 0, err);
    for (uint32_t i = 0; i < here && rc == 0; i++) {
        t->set[t->n] = t->set[i];
        (void)stk_settings_remake(fresh, t->n + 1, err);
    }
    return rc;
}
