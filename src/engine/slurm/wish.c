/* SPDX-License-Identifier: Apache-2.0 */
/* wish.c - what a user asked Slurm for, as a description of ours (docs/spec/job.md).
 *
 * Slurm counts GPUs per node, per task or per job; we place equal units. A unit is what the job has
 * on one of its nodes, so that Slurm, told which nodes, has one way to do it. Where the user left
 * the number of nodes open a unit is as large as fits. Nothing of the user's own request is
 * changed by this: it says where there is room, and Slurm is told which nodes these are.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/wish.h"
#include "sys/json.h"
#include "sys/pattern.h"

#define MAX_NAME 128
#define NEVER_S 315360000 /* ten years: it gives way to nobody */

/* How much of it is asked for; 0: nothing, or what cannot be. */
static int64_t amount(const json_t *o, const char *key)
{
    json_int_t n = stk_whole(o, key);

    return n > 0 && n < INT32_MAX ? n : 0;
}

static void set(json_t *o, const char *key, json_t *v)
{
    (void)json_object_set_new(o, key, v);
}

/* ---- GPUs ---- */

struct gpus {
    int64_t n;
    const char *type; /* "": any */
};

/* [{"type", "count"}]; of one type. */
static int read_gpus(const json_t *job, const char *key, struct gpus *g, struct stk_err *err)
{
    const json_t *list = json_object_get(job, key);

    *g = (struct gpus){.type = ""};
    if (list && !json_is_array(list))
        return stk_err_set(err, -EOPNOTSUPP,
                           "how many GPUs it asks for is not understood; write the number with "
                           "digits alone: --gres=gpu:2");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);

        if (i > 0)
            return stk_err_set(err, -EOPNOTSUPP,
                               "it asks for GPUs of several types at once; stoker gives a job GPUs "
                               "of one type: leave the types out, or send a job for each");
        g->n = amount(o, "count");
        g->type = stk_str(o, "type");
    }
    return 0;
}

struct units { /* what is placed */
    int64_t n, gpus;
    bool one_per_node;
    const char *type;
};

/* The largest part of 'all' that divides it and is at most 'most'. */
static int64_t part_of(int64_t all, int64_t most)
{
    int64_t part = most < all ? most : all;

    while (part > 1 && all % part != 0)
        part--;
    return part;
}

/* So many in all, on as many nodes as are asked for. */
static int share_out(int64_t all, int64_t nodes, const struct stk_slurm_room *room, struct units *u,
                     struct stk_err *err)
{
    if (nodes > 1 && all % nodes != 0)
        return stk_err_set(err, -EOPNOTSUPP,
                           "it asks for %lld GPUs on %lld nodes, not the same number on each; say "
                           "--gpus-per-node, or leave -N out",
                           (long long)all, (long long)nodes);
    u->one_per_node = nodes > 1;
    u->n = nodes;
    u->gpus = all / nodes;
    if (nodes == 1 && all > room->gpus) {
        u->gpus = part_of(all, room->gpus > 0 ? room->gpus : 1);
        u->n = all / u->gpus;
    }
    return 0;
}

/* As its user said; else Slurm's number of nodes is a guess. */
static int64_t nodes_of(const json_t *job, int64_t tasks)
{
    int64_t per_node = amount(job, "tasks_per_node"), most = amount(job, "max_nodes"),
            guess = amount(job, "nodes_wanted");

    if (most > 0)
        return guess > 0 && guess < most ? guess : most;
    return per_node > 0 ? (tasks + per_node - 1) / per_node : 1;
}

static int find_units(const json_t *job, const struct stk_slurm_room *room, struct units *u,
                      struct stk_err *err)
{
    struct gpus per_node, per_task, in_all;
    int64_t nodes, tasks = amount(job, "tasks"), per_gpu = amount(job, "tasks_per_gpu");
    int rc = read_gpus(job, "gpus_per_node", &per_node, err);

    rc = rc < 0 ? rc : read_gpus(job, "gpus_per_task", &per_task, err);
    rc = rc < 0 ? rc : read_gpus(job, "gpus_per_job", &in_all, err);
    if (rc < 0)
        return rc;
    tasks = tasks > 0 ? tasks : 1;
    if (!per_node.n && !per_task.n && !in_all.n && per_gpu > 0)
        in_all.n = tasks / per_gpu; /* so Slurm counts */
    nodes = nodes_of(job, tasks);
    *u = (struct units){.n = nodes, .gpus = per_node.n, .one_per_node = nodes > 1};
    u->type = per_node.n ? per_node.type : per_task.n ? per_task.type : in_all.type;
    if (per_node.n)
        return 0;
    if (per_task.n && nodes > 1 && tasks % nodes != 0) { /* as Slurm deals them out */
        *u = (struct units){.n = tasks, .gpus = per_task.n, .type = per_task.type};
        return 0;
    }
    if (per_task.n || in_all.n)
        return share_out(per_task.n ? per_task.n * tasks : in_all.n, nodes, room, u, err);
    if (nodes == 1 && amount(job, "cpus") > room->cpus && room->cpus > 0)
        u->n = tasks; /* no GPUs, and more CPUs than a node has */
    return 0;
}

static void set_units(const json_t *job, const struct units *u, json_t *o)
{
    int64_t cpus = (amount(job, "cpus") + u->n - 1) / u->n, mem = amount(job, "mem_mib");
    int64_t per_gpu = amount(job, "mem_per_gpu_mib"), cpus_per_gpu = amount(job, "cpus_per_gpu");

    cpus = cpus_per_gpu * u->gpus > cpus ? cpus_per_gpu * u->gpus : cpus;
    if (per_gpu)
        mem = per_gpu * u->gpus;
    else if (stk_yes(job, "mem_per_cpu"))
        mem *= cpus;
    set(o, "tasks", json_integer(u->n));
    set(o, "gpus", json_integer(u->gpus));
    if (u->one_per_node)
        set(o, "tasks_per_node", json_integer(1));
    if (*u->type)
        set(o, "gpu_types", json_pack("[s]", u->type));
    if (cpus > 0)
        set(o, "cpus", json_integer(cpus));
    if (mem > 0)
        set(o, "mem_mib", json_integer(mem));
    if (stk_yes(job, "exclusive"))
        set(o, "exclusive", json_true());
}

/* ---- the rest ---- */

/* What lists can show of it; a name of ours has no control characters. */
static void set_label(json_t *o, const char *key, const char *s, size_t most)
{
    char label[1025] = "";
    size_t n = 0;

    for (; *s && n < most && n < sizeof(label) - 1; s++)
        label[n++] = (char)((unsigned char)*s < 32 || *s == 127 ? '_' : *s);
    while (n > 0 && *s && ((unsigned char)label[n - 1] & 0xc0) == 0x80)
        n--; /* no half of a character */
    if (n > 0 && *s && ((unsigned char)label[n - 1] & 0xc0) == 0xc0)
        n--;
    label[n] = '\0';
    if (n > 0)
        set(o, key, json_string(label));
}

/* A pattern of Slurm's as one of ours: its numbers are not ours, an element's index is. False: only
 * Slurm knows. */
static bool translate(const json_t *job, const char *s, bool array, char *out, size_t size)
{
    size_t n = strlen(out);

    for (; *s && n + 16 < size; s++) {
        if (*s != '%') {
            out[n++] = *s;
            continue;
        }
        s++;
        if (*s == 'A' || (*s == 'j' && !array))
            n += (size_t)snprintf(
                out + n, size - n, "%lld",
                (long long)stk_whole(job, *s == 'A' && array ? "array_job" : "job"));
        else if (*s && strchr("axu%", *s))
            n += (size_t)snprintf(out + n, size - n, "%%%c", *s);
        else
            return false;
    }
    out[n] = '\0';
    return *s == '\0';
}

static void set_output(const json_t *job, json_t *o)
{
    const char *s = stk_str(job, "stdout"), *workdir = stk_str(job, "workdir");
    bool array = *stk_str(job, "array_tasks") != '\0';
    char out[8192] = "";

    if (!*s)
        s = array ? "slurm-%A_%a.out" : "slurm-%j.out";
    if (*s != '/' && (*workdir != '/' || strchr(workdir, '%') || strlen(workdir) > 4000))
        return;
    if (*s != '/')
        (void)snprintf(out, sizeof(out), "%s/", workdir);
    if (translate(job, s, array, out, sizeof(out)) && strlen(out) < 4096)
        set(o, "stdout", json_string(out));
}

static void set_signal(const struct stk_slurm_claim *c, json_t *o)
{
    char name[16];

    if (!c->signal)
        return;
    (void)snprintf(name, sizeof(name), "%d", c->signal);
    set(o, "signal",
        json_pack("{s:s,s:I,s:s}", "signal", name, "seconds", (json_int_t)c->seconds, "who",
                  c->batch ? "batch" : "all"));
}

static int add_index(void *ctx, uint32_t task)
{
    return json_array_append_new(ctx, json_integer(task)) < 0 ? -ENOMEM : 0;
}

static int set_array(const json_t *job, json_t *o, struct stk_err *err)
{
    const char *tasks = stk_str(job, "array_tasks");
    json_t *a, *list;
    int rc;

    if (!*tasks || json_is_integer(json_object_get(job, "array_task")))
        return 0;
    if (strlen(tasks) >= STK_SLURM_TASKS_LEN)
        return stk_err_set(err, -E2BIG,
                           "the list of its elements is too long for stoker; send several arrays");
    list = json_array();
    rc = stk_slurm_tasks(tasks, STK_SLURM_MAX_ELEMENTS, add_index, list);
    if (rc < 0) {
        json_decref(list);
        return stk_err_set(err, rc, "its elements \"%.60s\" are %s", tasks,
                           rc == -E2BIG ? "too many for stoker" : "not understood");
    }
    a = json_pack("{s:o}", "indices", list);
    if (amount(job, "array_limit"))
        set(a, "limit", json_integer(amount(job, "array_limit")));
    set(o, "array", a);
    return 0;
}

/* One that Slurm may not start again stays up, whoever needs room. */
static void set_requeue(const json_t *job, json_t *o)
{
    char group[32];
    json_int_t n =
        (json_int_t)json_array_size(json_object_get(json_object_get(o, "array"), "indices"));

    if (stk_yes(job, "requeue") && !json_is_false(json_object_get(job, "batch")))
        return;
    (void)snprintf(group, sizeof(group), "slurm-%lld", (long long)stk_whole(job, "job"));
    set(o, "requeue", json_false());
    set(o, "min_run_s", json_integer(NEVER_S));
    set(o, "keep_up", json_pack("{s:s,s:I}", "group", group, "min", n > 0 ? n : 1));
}

/* Parts of GPUs, as Slurm has them. */
static bool wants_parts(const json_t *job)
{
    static const char *const keys[] = {"tres_per_job", "tres_per_node", "tres_per_task"};
    bool found = false;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        for (const char *s = strstr(stk_str(job, keys[i]), "gres"); s; s = strstr(s + 4, "gres"))
            found = found ||
                    (s[4] && (strncmp(s + 5, "mps", 3) == 0 || strncmp(s + 5, "shard", 5) == 0));
    return found;
}

static int refuse(const json_t *job, struct stk_err *err)
{
    if (wants_parts(job))
        return stk_err_set(err, -EOPNOTSUPP,
                           "it asks for parts of GPUs (mps, shard); stoker gives a job whole ones "
                           "of Slurm's: --gres=gpu:1");
    if (stk_yes(job, "het"))
        return stk_err_set(err, -EOPNOTSUPP,
                           "it is part of a heterogeneous job, which stoker cannot place");
    if (json_array_size(json_object_get(job, "gpus_per_socket")) > 0 ||
        json_is_null(json_object_get(job, "gpus_per_socket")))
        return stk_err_set(err, -EOPNOTSUPP,
                           "it asks for GPUs per socket; say --gpus-per-node, or --gpus");
    return 0;
}

void stk_slurm_wish_later(const json_t *job, bool begins, json_t *o)
{
    int64_t begin = stk_whole(job, "begin");

    set_label(o, "name", stk_str(job, "name"), MAX_NAME);
    set_label(o, "account", stk_str(job, "account"), MAX_NAME);
    set_label(o, "qos", stk_str(job, "qos"), MAX_NAME);
    if (amount(job, "time_limit_s"))
        set(o, "time_limit_s", json_integer(amount(job, "time_limit_s")));
    if (begins && begin > stk_whole(job, "submitted") && begin < STK_SLURM_HELD_UNTIL)
        set(o, "begin", json_integer(begin));
}

int stk_slurm_wish_shape(const json_t *job, const struct stk_slurm_room *room, json_t *o,
                         struct stk_err *err)
{
    struct units u = {.n = 1, .type = ""};
    json_t *shape;
    int rc = refuse(job, err);

    rc = rc < 0 ? rc : find_units(job, room, &u, err);
    if (rc < 0)
        return rc;
    shape = json_object();
    set_units(job, &u, shape);
    set(o, "shape", shape);
    return 0;
}

json_t *stk_slurm_wish(const json_t *job, const struct stk_slurm_room *room,
                       const struct stk_slurm_claim *claim, struct stk_err *err)
{
    const char *command = stk_str(job, "command");
    struct units u = {.n = 1, .type = ""};
    json_t *o = json_object();

    if (refuse(job, err) < 0 || find_units(job, room, &u, err) < 0 || set_array(job, o, err) < 0) {
        json_decref(o);
        return NULL;
    }
    set(o, "command", json_pack("[s]", *command ? command : "sbatch"));
    stk_slurm_wish_later(job, true, o);
    set_units(job, &u, o);
    set_output(job, o);
    set_signal(claim, o);
    set_requeue(job, o);
    set_label(o, "comment", stk_str(job, "comment"), 1000);
    if (stk_str(job, "workdir")[0] == '/')
        set(o, "workdir", json_string(stk_str(job, "workdir")));
    if (stk_whole(job, "nice"))
        set(o, "nice", json_incref(json_object_get(job, "nice")));
    set(o, "launch", json_string("once"));
    set(o, "suspend", json_string("never"));
    return o;
}
