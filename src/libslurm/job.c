/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - a job of Slurm's in our words.
 *
 * Much of it is what its user wrote, which may be megabytes (the command has all arguments of the
 * script in it), and is told of every job of every partition. So each text is cut: to what is of
 * use, and where a part would mean something else to more than the daemon takes, which then
 * refuses the job with a sentence. Lists of elements have as many as Slurm allows. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "libslurm/helper.h"
#include "libslurm/names.h"

#define NAME 256u /* bytes */
#define TEXT 1024u
#define LONG 4096u /* a path has less */

/* Exported by libslurm, declared nowhere; the second is its name in newer ones. */
extern const char *slurm_job_reason_string(enum job_state_reason r) __attribute__((weak));
extern const char *slurm_job_state_reason_string(enum job_state_reason r) __attribute__((weak));

/* "": Slurm has no word for it. */
static const char *word_for(enum job_state_reason r)
{
    if (slurm_job_state_reason_string)
        return slurm_job_state_reason_string(r);
    return slurm_job_reason_string ? slurm_job_reason_string(r) : "";
}

/* Why it waits: what Slurm says of it, or its word for it. */
static const char *reason_of(const slurm_job_info_t *j)
{
    if (j->state_desc && *j->state_desc)
        return j->state_desc;
    return j->state_reason != WAIT_NO_REASON ? word_for((enum job_state_reason)j->state_reason)
                                             : "";
}

const char *stk_slurm_state_name(uint32_t state)
{
    static const char *const names[] = {
        [JOB_PENDING] = "pending",     [JOB_RUNNING] = "running",     [JOB_SUSPENDED] = "suspended",
        [JOB_COMPLETE] = "completed",  [JOB_CANCELLED] = "cancelled", [JOB_FAILED] = "failed",
        [JOB_TIMEOUT] = "timeout",     [JOB_NODE_FAIL] = "node_fail", [JOB_PREEMPTED] = "preempted",
        [JOB_BOOT_FAIL] = "boot_fail", [JOB_DEADLINE] = "deadline",   [JOB_OOM] = "out_of_memory"};
    uint32_t base = state & JOB_STATE_BASE;

    return base < sizeof(names) / sizeof(*names) && names[base] ? names[base] : "unknown";
}

json_t *stk_slurm_show_gpus(const char *text)
{
    struct stk_slurm_gres g[STK_SLURM_MAX_GRES];
    int n = stk_slurm_gpus(text, g, STK_SLURM_MAX_GRES);
    json_t *list = n < 0 ? json_null() : json_array();

    for (int i = 0; i < n; i++) {
        json_t *indices = json_array();

        for (uint64_t m = g[i].indices; m; m &= m - 1)
            (void)json_array_append_new(indices, json_integer(__builtin_ctzll(m)));
        (void)json_array_append_new(list, json_pack("{s:s,s:I,s:o}", "type", g[i].type, "count",
                                                    (json_int_t)g[i].count, "indices", indices));
    }
    return list;
}

struct placing {
    const slurm_job_info_t *job;
    json_t *list;
    uint32_t n;
};

static int place(void *ctx, const char *name)
{
    struct placing *p = ctx;
    const char *gres = p->n < p->job->gres_detail_cnt ? p->job->gres_detail_str[p->n] : NULL;

    p->n++;
    return json_array_append_new(
               p->list, json_pack("{s:s,s:o}", "node", name, "gpus", stk_slurm_show_gpus(gres))) < 0
               ? -ENOMEM
               : 0;
}

static json_t *show_nodes(const slurm_job_info_t *j)
{
    struct placing p = {.job = j, .list = json_array()};

    (void)stk_slurm_hosts(j->nodes, place, &p);
    return p.list;
}

static json_t *seconds(uint32_t minutes)
{
    return minutes == NO_VAL || minutes == INFINITE ? json_null()
                                                    : json_integer((json_int_t)minutes * 60);
}

static void set(json_t *o, const char *key, json_t *v)
{
    (void)json_object_set_new(o, key, v);
}

struct hosts {
    json_t *list, *seen;
};

/* Each once: Slurm keeps the list as its user wrote it. */
static int add_host(void *ctx, const char *name)
{
    const struct hosts *h = ctx;

    if (json_object_get(h->seen, name))
        return 0;
    return json_object_set_new(h->seen, name, json_true()) < 0 ||
                   json_array_append_new(h->list, json_string(name)) < 0
               ? -ENOMEM
               : 0;
}

/* Where it may run matters while it waits. */
static json_t *show_hosts(const slurm_job_info_t *j, const char *list)
{
    struct hosts h = {json_array(), json_object()};

    if ((j->job_state & JOB_STATE_BASE) == JOB_PENDING)
        (void)stk_slurm_hosts(list, add_host, &h);
    json_decref(h.seen);
    return h.list;
}

/* "gres:gpu:4": so much of something for each. */
static json_t *per_gpu(const char *text)
{
    struct stk_slurm_gres g;

    return json_integer(stk_slurm_gpus(text, &g, 1) == 1 ? (json_int_t)g.count : 0);
}

/* What it asks for of each, as we would ask for it. */
static json_t *plain(const char *text)
{
    char *copy = text ? strndup(text, LONG) : NULL;
    json_t *v;

    if (copy)
        stk_slurm_plain_gres(copy);
    v = stk_slurm_text(copy);
    free(copy);
    return v;
}

static void set_request(json_t *o, const slurm_job_info_t *j)
{
    set(o, "nodes_wanted", json_integer(j->num_nodes));
    set(o, "max_nodes", json_integer(j->max_nodes));
    set(o, "tasks", json_integer(j->num_tasks));
    set(o, "cpus", json_integer(j->num_cpus));
    set(o, "cpus_per_task", json_integer(j->cpus_per_task == NO_VAL16 ? 1 : j->cpus_per_task));
    set(o, "mem_mib", json_integer((json_int_t)(j->pn_min_memory & ~MEM_PER_CPU)));
    set(o, "mem_per_cpu", json_boolean(j->pn_min_memory & MEM_PER_CPU));
    set(o, "tres_per_job", plain(j->tres_per_job));
    set(o, "tres_per_node", plain(j->tres_per_node));
    set(o, "tres_per_task", plain(j->tres_per_task));
    set(o, "features", stk_slurm_cut(j->features, TEXT));
    set(o, "dependency", stk_slurm_cut(j->dependency, TEXT));
    set(o, "gpus_per_job", stk_slurm_show_gpus(j->tres_per_job));
    set(o, "gpus_per_node", stk_slurm_show_gpus(j->tres_per_node));
    set(o, "gpus_per_task", stk_slurm_show_gpus(j->tres_per_task));
    set(o, "gpus_per_socket", stk_slurm_show_gpus(j->tres_per_socket));
    set(o, "mem_per_gpu_mib", per_gpu(j->mem_per_tres));
    set(o, "cpus_per_gpu", per_gpu(j->cpus_per_tres));
    set(o, "tasks_per_gpu", json_integer(j->ntasks_per_tres == NO_VAL16 ? 0 : j->ntasks_per_tres));
    set(o, "tasks_per_node", json_integer(j->ntasks_per_node == NO_VAL16 ? 0 : j->ntasks_per_node));
    set(o, "exclusive", json_boolean(j->shared == 0));
    set(o, "begin", json_integer(j->eligible_time));
    set(o, "nice", json_integer((json_int_t)j->nice - NICE_OFFSET));
    set(o, "batch", json_boolean(j->batch_flag));
    set(o, "het", json_boolean(j->het_job_id));
    set(o, "reservation", stk_slurm_cut(j->resv_name, TEXT));
    set(o, "req_hosts", show_hosts(j, j->req_nodes));
    set(o, "exc_hosts", show_hosts(j, j->exc_nodes));
    set(o, "time_limit_s", seconds(j->time_limit));
}

json_t *stk_slurm_job(const slurm_job_info_t *j)
{
    json_t *o = json_object();

    set(o, "job", json_integer(j->job_id));
    set(o, "array_job", json_integer(j->array_job_id));
    set(o, "array_task", j->array_task_id == NO_VAL ? json_null() : json_integer(j->array_task_id));
    set(o, "array_tasks", stk_slurm_text(j->array_task_str));
    set(o, "array_limit", json_integer(j->array_max_tasks == NO_VAL ? 0 : j->array_max_tasks));
    set(o, "state", json_string(stk_slurm_state_name(j->job_state)));
    set(o, "completing", json_boolean(j->job_state & JOB_COMPLETING));
    set(o, "held", json_boolean(j->priority == 0));
    set(o, "reason", stk_slurm_cut(reason_of(j), TEXT));
    set(o, "name", stk_slurm_cut(j->name, NAME));
    set(o, "uid", json_integer(j->user_id));
    set(o, "gid", json_integer(j->group_id));
    set(o, "partition", stk_slurm_cut(j->partition, LONG));
    set(o, "account", stk_slurm_cut(j->account, NAME));
    set(o, "qos", stk_slurm_cut(j->qos, NAME));
    set(o, "comment", stk_slurm_cut(j->comment, TEXT));
    set(o, "admin_comment", stk_slurm_cut(j->admin_comment, LONG));
    set(o, "pieces", show_nodes(j));
    set(o, "submitted", json_integer(j->submit_time));
    set(o, "started", json_integer(j->start_time));
    set(o, "ended", json_integer(j->end_time));
    set(o, "exit_code", json_integer(j->exit_code == NO_VAL ? 0 : (j->exit_code >> 8) & 0xff));
    set(o, "signal", json_integer(j->exit_code == NO_VAL ? 0 : j->exit_code & 0x7f));
    set(o, "restarts", json_integer(j->restart_cnt));
    set(o, "requeue", json_boolean(j->requeue));
    set(o, "workdir", stk_slurm_cut(j->work_dir, LONG));
    set(o, "stdout", stk_slurm_cut(j->std_out, LONG));
    set(o, "command", stk_slurm_cut(j->command, TEXT));
    set_request(o, j);
    return o;
}

/* ---- what has changed ---- */

uint64_t stk_slurm_mix_text(uint64_t h, const char *s)
{
    for (; s && *s; s++)
        h = stk_hash_mix(h, (unsigned char)*s);
    return stk_hash_mix(h, 256);
}

uint64_t stk_slurm_job_digest(const slurm_job_info_t *j)
{
    uint64_t h = stk_hash_mix(j->job_id, j->job_state);

    h = stk_hash_mix(h, (uint64_t)j->priority << 32 | j->exit_code);
    h = stk_hash_mix(h, (uint64_t)j->start_time);
    h = stk_hash_mix(h, j->job_state == JOB_PENDING ? 0 : (uint64_t)j->end_time);
    h = stk_hash_mix(h, (uint64_t)j->restart_cnt << 32 | j->time_limit);
    h = stk_hash_mix(h, (uint64_t)j->num_nodes << 32 | j->num_tasks);
    h = stk_hash_mix(h, (uint64_t)j->num_cpus << 32 | j->cpus_per_task);
    h = stk_hash_mix(h, j->pn_min_memory);
    h = stk_hash_mix(h, (uint64_t)j->eligible_time);
    h = stk_hash_mix(h, j->max_nodes);
    h = stk_hash_mix(h, (uint64_t)j->nice << 32 | (uint64_t)j->ntasks_per_node << 16 | j->shared);
    h = stk_hash_mix(h, (uint64_t)j->array_max_tasks << 32 | (uint64_t)j->ntasks_per_tres << 16 |
                            j->requeue);
    h = stk_slurm_mix_text(h, j->exc_nodes);
    h = stk_slurm_mix_text(h, j->mem_per_tres);
    h = stk_slurm_mix_text(h, j->cpus_per_tres);
    h = stk_slurm_mix_text(h, j->nodes);
    h = stk_slurm_mix_text(h, j->partition);
    h = stk_slurm_mix_text(h, j->account);
    h = stk_slurm_mix_text(h, j->qos);
    h = stk_slurm_mix_text(h, j->name);
    h = stk_slurm_mix_text(h, j->comment);
    h = stk_slurm_mix_text(h, j->admin_comment);
    h = stk_slurm_mix_text(h, j->dependency);
    h = stk_slurm_mix_text(h, j->resv_name);
    h = stk_slurm_mix_text(h, j->array_task_str);
    h = stk_slurm_mix_text(h, reason_of(j));
    h = stk_slurm_mix_text(h, j->req_nodes);
    h = stk_slurm_mix_text(h, j->features);
    h = stk_slurm_mix_text(h, j->tres_per_job);
    h = stk_slurm_mix_text(h, j->tres_per_node);
    h = stk_slurm_mix_text(h, j->tres_per_task);
    for (uint32_t i = 0; i < j->gres_detail_cnt; i++)
        h = stk_slurm_mix_text(h, j->gres_detail_str[i]);
    return h;
}
