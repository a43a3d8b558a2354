/* SPDX-License-Identifier: Apache-2.0 */
/* near.c - a job with GPUs runs on the CPUs near them.
 *
 * The daemon says with each GPU which CPUs are near (docs/spec/machine.md). A task gets those of
 * its own GPUs, the whole job (its cgroup) those of all of them. Nothing is bound when that would
 * be less than the job has asked for, when one of the GPUs does not say, or when all the CPUs we
 * may use are near. Memory needs no binding: the kernel takes it from the node of the CPU that
 * asks.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"
#include "sys/procs.h"

#define MAX_CPUS 8192

struct cpus {
    cpu_set_t set[MAX_CPUS / CPU_SETSIZE];
};

/* Adds "0-3,8" to a set; false: that is no list. */
static bool add_list(struct cpus *c, const char *list)
{
    while (*list) {
        char *end;
        unsigned long a = strtoul(list, &end, 10), b = a;

        if (end == list)
            return false;
        if (*end == '-')
            b = strtoul(list = end + 1, &end, 10);
        if (end == list || b < a || b >= MAX_CPUS || (*end && *end != ','))
            return false;
        for (; a <= b; a++)
            CPU_SET_S(a, sizeof(c->set), c->set);
        list = *end ? end + 1 : end;
    }
    return true;
}

static bool has(const struct cpus *c, unsigned i)
{
    return i < MAX_CPUS && CPU_ISSET_S(i, sizeof(c->set), c->set);
}

/* The other way; false: it does not fit. */
static bool to_list(const struct cpus *c, char *list, size_t size)
{
    size_t used = 0;

    list[0] = '\0';
    for (unsigned i = 0, end; i < MAX_CPUS; i = end + 1) {
        int n;

        for (end = i; has(c, end); end++)
            ;
        if (end == i)
            continue;
        n = snprintf(list + used, size - used, end - i > 1 ? "%s%u-%u" : "%s%u", used ? "," : "", i,
                     end - 1);
        if (n < 0 || (size_t)n >= size - used)
            return false;
        used += (size_t)n;
    }
    return used > 0;
}

/* The CPUs near these GPUs, as far as we may use them; false: they are not known, or fewer than
 * wanted. */
static bool near(const struct stk_launch *l, uint32_t first, uint32_t n, double wanted,
                 struct cpus *ret)
{
    struct cpus ours = {0};

    *ret = (struct cpus){0};
    if (n == 0 || l->adopt_pid || sched_getaffinity(0, sizeof(ours.set), ours.set) < 0)
        return false;
    for (uint32_t i = first; i < first + n; i++)
        if (!*l->gpus[i].cpus || !add_list(ret, l->gpus[i].cpus))
            return false;
    CPU_AND_S(sizeof(ret->set), ret->set, ret->set, ours.set);
    n = (uint32_t)CPU_COUNT_S(sizeof(ret->set), ret->set);
    return n > 0 && n >= wanted;
}

static bool is_all(const struct cpus *c)
{
    struct cpus ours = {0};

    return sched_getaffinity(0, sizeof(ours.set), ours.set) < 0 ||
           CPU_EQUAL_S(sizeof(c->set), c->set, ours.set);
}

bool stk_near_job(const struct stk_launch *l, char *list, size_t size)
{
    double cpus = json_number_value(json_object_get(l->spec, "cpus"));
    struct cpus c;

    return near(l, 0, l->n_gpus, cpus * l->tasks, &c) && !is_all(&c) && to_list(&c, list, size);
}

bool stk_near_task(const struct stk_launch *l, uint32_t task, char *list, size_t size)
{
    double cpus = json_number_value(json_object_get(l->spec, "cpus"));
    uint32_t first, n;
    struct cpus c;

    stk_launch_slice(l, task, &first, &n);
    return near(l, 0, l->n_gpus, cpus * l->tasks, &c) &&
           near(l, first, n, cpus * l->tasks / l->procs, &c) && !is_all(&c) &&
           to_list(&c, list, size);
}

void stk_near_numa(const struct stk_launch *l, uint32_t task, char *list, size_t size)
{
    struct cpus nodes = {0};
    uint32_t first, n;

    stk_launch_slice(l, task, &first, &n);
    for (uint32_t i = first; i < first + n; i++)
        if (l->gpus[i].numa >= 0 && l->gpus[i].numa < MAX_CPUS)
            CPU_SET_S((size_t)l->gpus[i].numa, sizeof(nodes.set), nodes.set);
    if (!to_list(&nodes, list, size))
        list[0] = '\0';
}

void stk_near_bind(pid_t thread, const char *list)
{
    struct cpus c = {0};

    if (add_list(&c, list))
        (void)sched_setaffinity(thread, sizeof(c.set), c.set);
}

/* All threads of a process. */
static void bind_process(pid_t pid, const char *list)
{
    char path[64];
    struct dirent *e;
    DIR *d;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = opendir(path);
    /* cppcheck-suppress readdirCalled ; nobody else reads this stream */
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            stk_near_bind((pid_t)strtol(e->d_name, NULL, 10), list);
    if (d)
        (void)closedir(d);
}

void stk_near_move(struct stk_shim *s)
{
    char list[STK_SHIM_CPUS];
    struct cpus ours = {0};
    struct stk_proc *procs;
    size_t n;

    if (!stk_near_job(&s->l, list, sizeof(list)) &&
        (sched_getaffinity(0, sizeof(ours.set), ours.set) < 0 ||
         !to_list(&ours, list, sizeof(list))))
        return;
    stk_cgroup_cpus(s->cg, list);
    if (stk_shim_members(s, &procs, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        bind_process(procs[i].pid, list);
    free(procs);
}
