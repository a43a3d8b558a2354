/* SPDX-License-Identifier: Apache-2.0 */
/* shortage.c - a job was refused because it could not run even on empty nodes: names the resource
 * that is short. Each resource is counted as if the job asked for nothing else; where each alone
 * suffices, they do not lie together. */
#include "core/shortage.h"

#include <stdio.h>
#include <string.h>

#include "core/lack.h"
#include "core/resource.h"
#include "core/sets.h"

enum { GPUS, CPUS, MEM, KINDS };

struct supply { /* of one resource, on the nodes that the job may use */
    uint64_t each, most, sum, tasks;
};

static bool may_use(const struct stk_state *s, const struct stk_demand *d, uint32_t node)
{
    return ((d->gpu_types >> s->nodes[node].gpu_type) & 1) && stk_sets_allow(s, d, node);
}

static void count_node(struct supply *k, bool limited, uint64_t amount, uint32_t tasks)
{
    k->most = amount > k->most ? amount : k->most;
    k->sum += amount;
    if (k->each > 0)
        k->tasks += limited ? amount / k->each : tasks;
}

static void count_supply(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                         struct supply k[KINDS])
{
    const struct stk_pool *p = &s->pools[pool];

    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];

        if (!may_use(s, d, node))
            continue;
        count_node(&k[GPUS], true, n->gpus, d->tasks);
        count_node(&k[CPUS], n->cpu_limited, n->cpu_milli, d->tasks);
        count_node(&k[MEM], n->mem_limited, n->mem_mib, d->tasks);
    }
}

/* "9 GPUs", "0.5 CPUs", "64 GiB of memory" */
static void name_amount(int kind, uint64_t amount, char *buf, size_t size)
{
    if (kind == GPUS)
        (void)snprintf(buf, size, "%llu GPU%s", (unsigned long long)amount, amount == 1 ? "" : "s");
    else if (kind == CPUS)
        (void)snprintf(buf, size, "%.7g CPU%s", (double)amount / 1000, amount == 1000 ? "" : "s");
    else {
        const uint64_t hundredths = (amount * 100 + 512) / 1024;

        (void)snprintf(buf, size, "%.10g GiB of memory", (double)hundredths / 100);
    }
}

/* "1 GPU, 4 CPUs and 8 GiB of memory": what one task asks for. */
static void name_task(const struct supply k[KINDS], char *buf, size_t size)
{
    size_t len = 0;
    int left = 0;

    for (int i = 0; i < KINDS; i++)
        left += k[i].each > 0;
    for (int i = 0; i < KINDS; i++) {
        char one[48];

        if (k[i].each == 0)
            continue;
        name_amount(i, k[i].each, one, sizeof(one));
        len += (size_t)snprintf(buf + len, size - len, "%s%s", one,
                                left > 2    ? ", "
                                : left == 2 ? " and "
                                            : "");
        left--;
    }
}

const char *stk_shortage_where(const struct stk_state *s, uint32_t pool, char buf[STK_WHERE_LEN])
{
    if (s->n_pools == 1)
        return s->n_nodes == 1 ? "this machine" : "the cluster";
    if (s->pool_names)
        (void)snprintf(buf, STK_WHERE_LEN, "pool %.80s", s->pool_names[pool]);
    else
        (void)snprintf(buf, STK_WHERE_LEN, "pool %u", pool);
    return buf;
}

/* No GPU that it may use has as much memory as it asks for. */
static bool lacks_gpu_memory(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                             uint32_t *ret_most)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t most = 0;

    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i], mib = s->nodes[node].gpu_mem_mib;

        if (!may_use(s, d, node) || s->nodes[node].gpus == 0)
            continue;
        if (mib == 0)
            return false; /* not known */
        most = mib > most ? mib : most;
    }
    *ret_most = most;
    return d->gpus > 0 && most > 0 && d->gpu_mem_mib > most;
}

/* No node has enough for one task. */
static int refuse_task(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       const struct supply k[KINDS], struct stk_err *err)
{
    uint32_t amount, r = stk_resource_never(s, d, pool, &amount);
    char asked[160], most[48];

    if (lacks_gpu_memory(s, d, pool, &amount))
        return stk_err_set(err, -ERANGE,
                           "asks for %u MiB of GPU memory; the largest GPU it may use has %u MiB",
                           d->gpu_mem_mib, amount);
    if (r != STK_NONE)
        return stk_err_set(
            err, -ERANGE,
            "asks for %u of %s on one node; the most that a node it may use has is %u",
            d->resource[r], s->resource_names[r], amount);
    for (int i = 0; i < KINDS; i++) {
        if (k[i].each == 0 || k[i].tasks > 0)
            continue;
        name_amount(i, k[i].each, asked, sizeof(asked));
        name_amount(i, k[i].most, most, sizeof(most));
        return stk_err_set(err, -ERANGE,
                           "asks for %s on one node; the most that a node it may use has is %s",
                           asked, most);
    }
    name_task(k, asked, sizeof(asked));
    return stk_err_set(err, -ERANGE,
                       "asks for %s%s on one node; there is enough of each, but not on one node",
                       asked, d->n_resources > 0 ? " and named resources" : "");
}

/* The first named resource of which there is not enough for all tasks; STK_NONE: none. */
static uint32_t short_resource(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                               uint64_t *ret_sum)
{
    const struct stk_pool *p = &s->pools[pool];

    for (uint32_t r = 0; r < d->n_resources && r < s->n_resources; r++) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < p->n_nodes; i++) {
            const uint32_t node = s->pool_nodes[p->first_node + i];

            sum += may_use(s, d, node) ? s->resource_all[(size_t)node * s->n_resources + r] : 0;
        }
        *ret_sum = sum;
        if (d->resource[r] > 0 && sum < (uint64_t)d->resource[r] * d->tasks)
            return r;
    }
    return STK_NONE;
}

int stk_shortage_say(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                     uint32_t gpus, uint64_t can, struct stk_err *err)
{
    struct supply k[KINDS] = {
        [GPUS] = {.each = gpus}, [CPUS] = {.each = d->cpu_milli}, [MEM] = {.each = d->mem_mib}};
    char need[160], has[48], buf[STK_WHERE_LEN];
    const char *where = stk_shortage_where(s, pool, buf);
    uint64_t sum = 0;
    uint32_t r;

    count_supply(s, d, pool, k);
    if (can == 0)
        return refuse_task(s, d, pool, k, err);
    for (int i = 0; i < KINDS; i++) {
        if (k[i].each == 0 || k[i].sum >= k[i].each * d->tasks || k[i].tasks >= d->tasks)
            continue;
        name_amount(i, k[i].each * d->tasks, need, sizeof(need));
        name_amount(i, k[i].sum, has, sizeof(has));
        return stk_err_set(err, -ERANGE, "%u tasks need %s; %s has %.*s", d->tasks, need, where,
                           (int)strcspn(has, " "), has);
    }
    r = short_resource(s, d, pool, &sum);
    if (r != STK_NONE)
        return stk_err_set(err, -ERANGE, "%u tasks need %llu of %s; %s has %llu", d->tasks,
                           (unsigned long long)d->resource[r] * d->tasks, s->resource_names[r],
                           where, (unsigned long long)sum);
    name_task(k, need, sizeof(need));
    return stk_err_set(err, -ERANGE, "asks for %u tasks of %s%s each; %s can hold %llu", d->tasks,
                       *need ? need : "no GPU", d->n_resources > 0 ? " and named resources" : "",
                       where, (unsigned long long)can);
}

/* "3 CPUs", "2 of licence"; returns how long the number is. */
static int name_lack(const struct stk_state *s, uint32_t of, uint64_t amount, char *buf,
                     size_t size)
{
    if (of < STK_LACK_RESOURCE)
        name_amount(of == STK_LACK_CPUS ? CPUS : MEM, amount, buf, size);
    else
        (void)snprintf(buf, size, "%llu of %s", (unsigned long long)amount,
                       s->resource_names[of - STK_LACK_RESOURCE]);
    return (int)strcspn(buf, " ");
}

/* Too little of this is in any place of a level, or in all. */
static int refuse_lack(const struct stk_state *s, uint32_t of, uint32_t pool,
                       const struct stk_lack *l, struct stk_err *err)
{
    const char *level = stk_level_name(l->level ? l->level : STK_AT_NODE);
    char need[160], has[160], buf[STK_WHERE_LEN];
    int len;

    (void)name_lack(s, of, l->need, need, sizeof(need));
    len = name_lack(s, of, l->have, has, sizeof(has));
    if (l->level)
        return stk_err_set(err, -ERANGE,
                           "needs %s %s one %s; the most that one it may use has is %.*s", need,
                           l->level == STK_AT_NODE ? "on" : "in", level, len, has);
    return stk_err_set(err, -ERANGE, "needs %s; %s has %.*s", need,
                       stk_shortage_where(s, pool, buf), len, has);
}

int stk_shortage_besides(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                         stk_shortage_test *could, struct stk_err *err)
{
    const struct supply k[KINDS] = {
        [GPUS] = {.each = d->gpus}, [CPUS] = {.each = d->cpu_milli}, [MEM] = {.each = d->mem_mib}};
    const struct stk_demand less = stk_lack_without(d, STK_LACK_ANY);
    struct stk_lack l;
    char task[160];

    if (!stk_lack_asks(d, STK_LACK_ANY) || !could(s, &less, pool))
        return 0;
    for (uint32_t of = 0; of < STK_LACK_END; of++)
        if (stk_lack_asks(d, of) && stk_lack_find(s, d, pool, of, true, &l))
            return refuse_lack(s, of, pool, &l, err);
    name_task(k, task, sizeof(task));
    return stk_err_set(err, -ERANGE,
                       "asks for %u task%s of %s%s, and there is enough of each, but not so that "
                       "its tasks could lie as they must",
                       d->tasks, d->tasks == 1 ? "" : "s", task,
                       d->n_resources > 0 ? " and named resources" : "");
}
