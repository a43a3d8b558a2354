/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_places.c - where the nodes of a cluster are, and how their GPUs are linked. See
 * cluster.h.
 *
 * Racks and so on are known by name and numbered from 1. Of each it is remembered in what it lies
 * when it is first named, so that a rack in two zones is found at once, in its line. */
#include "sim/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/trace_lines.h"

static const char *const kind_name[STK_PLACES] = {"domain", "rack", "zone", "region"};

static uint32_t *number_in(struct stk_node_spec *n, uint32_t kind)
{
    return kind == STK_PLACE_DOMAIN ? &n->domain
           : kind == STK_PLACE_RACK ? &n->rack
           : kind == STK_PLACE_ZONE ? &n->zone
                                    : &n->region;
}

static int number_of(struct stk_cluster *c, uint32_t kind, struct stk_field f, uint32_t *ret,
                     struct stk_err *err)
{
    int64_t n;

    if (!stk_field_is_name(f))
        return stk_err_set(err, -EINVAL, "the name of a %s must be 1 to %u printable characters",
                           kind_name[kind], STK_TRACE_MAX_NAME_LEN);
    n = stk_names_add(&c->places[kind], f.s, f.len, STK_MAX_NODES);
    if (n == -E2BIG)
        return stk_err_set(err, -E2BIG, "more than %d %ss", STK_MAX_NODES, kind_name[kind]);
    if (n < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    *ret = (uint32_t)n + 1;
    return 0;
}

/* What a place of this number lies in; all zero when it is new. */
static struct stk_node_spec *lies_in(struct stk_cluster *c, uint32_t kind, uint32_t number)
{
    uint32_t cap = c->cap_within[kind];

    if (number >= cap) {
        uint32_t more = number < 32 ? 64 : 2 * number;
        struct stk_node_spec *w = realloc(c->within[kind], more * sizeof(*w));

        if (!w)
            return NULL;
        for (uint32_t i = cap; i < more; i++)
            w[i] = (struct stk_node_spec){.pool = {UINT32_MAX}};
        c->within[kind] = w;
        c->cap_within[kind] = more;
    }
    return &c->within[kind][number];
}

/* The node's domain, rack and zone lie where they lay before. */
static int check_nested(struct stk_cluster *c, struct stk_node_spec *n, struct stk_err *err)
{
    for (uint32_t kind = 0; kind < STK_PLACE_REGION; kind++) {
        uint32_t number = *number_in(n, kind);
        struct stk_node_spec *in = number ? lies_in(c, kind, number) : NULL;

        if (number && !in)
            return stk_err_set(err, -ENOMEM, "out of memory");
        if (number && in->pool.i == UINT32_MAX)
            *in = (struct stk_node_spec){.rack = n->rack, .zone = n->zone, .region = n->region};
        for (uint32_t up = kind + 1; number && up < STK_PLACES; up++)
            if (*number_in(in, up) != *number_in(n, up))
                return stk_err_set(
                    err, -EINVAL, "%s \"%s\" is in %s \"%s\" and in %s \"%s\"", kind_name[kind],
                    stk_names_get(&c->places[kind], number - 1), kind_name[up],
                    stk_names_get(&c->places[up], *number_in(in, up) - 1), kind_name[up],
                    stk_names_get(&c->places[up], *number_in(n, up) - 1));
    }
    return 0;
}

/* Equal shares of the GPUs, in order. */
static int share_out(uint32_t n, uint32_t gpus, uint64_t *mask, uint32_t *ret_n, const char *what,
                     struct stk_err *err)
{
    if (n == 0)
        return 0;
    if (n > STK_MAX_ISLANDS || gpus == 0 || gpus % n)
        return stk_err_set(err, -EINVAL, "%s: %" PRIu32 " GPUs are not %" PRIu32 " equal parts",
                           what, gpus, n);
    for (uint32_t i = 0; i < n; i++)
        mask[i] = UINT64_MAX >> (64 - gpus / n) << (i * (gpus / n));
    *ret_n = n;
    return 0;
}

static int set_layout(struct stk_cluster *c, const struct stk_node_row *row,
                      struct stk_node_spec *node, struct stk_err *err)
{
    struct stk_layout l = row->layout, *all;
    int rc = share_out(row->islands, node->gpus, l.island, &l.n_islands, "islands", err);
    uint32_t i = 0;

    rc = rc < 0 ? rc : share_out(row->numa, node->gpus, l.numa, &l.n_numa, "numa", err);
    if (rc < 0 || (l.n_islands == 0 && l.n_numa == 0))
        return rc;
    l.gpus = node->gpus;
    rc = stk_layout_check(&l, err);
    if (rc < 0)
        return rc;
    while (i < c->n_layouts && !stk_layout_equal(&l, &c->layouts[i]))
        i++;
    if (i == STK_MAX_LAYOUTS)
        return stk_err_set(err, -E2BIG, "more than %d ways to link GPUs", STK_MAX_LAYOUTS);
    if (i == c->n_layouts) {
        all = realloc(c->layouts, (i + 1) * sizeof(*all));
        if (!all)
            return stk_err_set(err, -ENOMEM, "out of memory");
        c->layouts = all;
        c->layouts[c->n_layouts++] = l;
    }
    node->layout = i + 1;
    return 0;
}

/* The rack of the k-th node of a row of racks. */
static int next_rack(struct stk_cluster *c, const struct stk_node_row *row, uint64_t k,
                     struct stk_node_spec *node, struct stk_err *err)
{
    char name[STK_TRACE_MAX_NAME_LEN + 16];
    const struct stk_field prefix = row->place[STK_PLACE_RACK];
    int n;

    if (row->racks == 0 || k % row->per_rack != 0)
        return 0;
    n = snprintf(name, sizeof(name), "%.*s%" PRIu32, prefix.len ? (int)prefix.len : 4,
                 prefix.len ? prefix.s : "rack", c->places[STK_PLACE_RACK].n + 1);
    if (n > (int)STK_TRACE_MAX_NAME_LEN)
        return stk_err_set(err, -EINVAL, "the name of a rack is too long");
    return number_of(c, STK_PLACE_RACK, (struct stk_field){name, (uint32_t)n}, &node->rack, err);
}

int stk_cluster_place(struct stk_cluster *c, const struct stk_node_row *row, uint64_t k,
                      struct stk_node_spec *node, struct stk_err *err)
{
    int rc = 0;

    for (uint32_t kind = 0; k == 0 && rc == 0 && kind < STK_PLACES; kind++) {
        bool own = (kind == STK_PLACE_RACK && row->racks) || (kind == 0 && row->rack_domains);

        if (row->place[kind].len && !own)
            rc = number_of(c, kind, row->place[kind], number_in(node, kind), err);
    }
    if (rc == 0 && k == 0)
        rc = set_layout(c, row, node, err);
    rc = rc < 0 ? rc : next_rack(c, row, k, node, err);
    if (rc == 0 && row->rack_domains && node->rack == 0)
        return stk_err_set(err, -EINVAL, "domain: rack needs to know the rack");
    if (rc == 0 && row->rack_domains) {
        const char *name = stk_names_get(&c->places[STK_PLACE_RACK], node->rack - 1);
        struct stk_field f = {name, 0};

        while (name[f.len])
            f.len++;
        rc = number_of(c, STK_PLACE_DOMAIN, f, &node->domain, err);
    }
    if (rc == 0 && node->domain && node->layout && c->layouts[node->layout - 1].n_islands)
        return stk_err_set(err, -EINVAL, "a link domain joins all GPUs: it goes without islands");
    if (rc == 0 && (k == 0 || row->racks))
        rc = check_nested(c, node, err);
    return rc;
}

void stk_cluster_places_done(struct stk_cluster *c)
{
    for (uint32_t kind = 0; kind < STK_PLACES; kind++) {
        stk_names_done(&c->places[kind]);
        free(c->within[kind]);
    }
    free(c->layouts);
}
