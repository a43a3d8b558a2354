/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - asks slurmctld what there is, and tells the daemon what has changed.
 *
 * An answer to "anything new?" costs slurmctld next to nothing when there is not; when there is, it
 * sends all jobs. So after an answer that took long the next question waits in proportion, and only
 * jobs that look different from what was told are told.
 *
 * When slurmctld cannot be reached, that is said once; when it is back, everything is told anew
 * ("all"): what is not in that telling is gone. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "libslurm/helper.h"
#include "libslurm/names.h"
#include "sys/big.h"

#define EVERY_MS 250
#define AGAIN_MS 1000 /* when slurmctld is away */
#define SHARE 10      /* of our time at most that goes into asking: one part in so many */
#define LINE_JOBS 500u

struct known { /* a job that was told */
    uint32_t id, seen;
    uint64_t digest;
};

struct stk_slurm_watch {
    struct stk_mem mem;
    struct stk_map by_id; /* to its place in jobs */
    struct known *jobs;
    uint32_t n_jobs, cap_jobs;
    uint64_t *nodes; /* digests, by place in Slurm's table */
    uint32_t n_nodes;
    uint64_t partitions; /* digest of all */
    time_t jobs_at, nodes_at, parts_at;
    uint32_t round;
    int every;
    bool away, told_all;
    json_t *changed, *gone;
};

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct stk_slurm_watch *stk_slurm_watch_new(void)
{
    struct stk_slurm_watch *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->mem = stk_big_mem;
    w->every = EVERY_MS;
    return w;
}

void stk_slurm_watch_free(struct stk_slurm_watch *w)
{
    if (!w)
        return;
    stk_map_done(&w->by_id, &w->mem);
    stk_mem_drop(&w->mem, &w->jobs, &w->cap_jobs, sizeof(*w->jobs));
    free(w->nodes);
    free(w);
}

void stk_slurm_watch_every(struct stk_slurm_watch *w, int ms)
{
    w->every = ms;
}

/* Nothing is new, or an answer. < 0: Slurm's error. */
static int outcome(int rc)
{
    int error = rc == SLURM_SUCCESS ? 0 : slurm_get_errno();

    return error == 0 ? 1 : error == SLURM_NO_CHANGE_IN_DATA ? 0 : -error;
}

/* ---- partitions ---- */

struct names {
    json_t *list;
};

static int add_name(void *ctx, const char *name)
{
    const struct names *n = ctx;

    return json_array_append_new(n->list, stk_slurm_text(name));
}

static json_t *show_partition(const partition_info_t *p)
{
    struct names n = {json_array()};

    (void)stk_slurm_hosts(p->nodes, add_name, &n);
    return json_pack("{s:o,s:b,s:b,s:o,s:o,s:o}", "name", stk_slurm_text(p->name), "up",
                     p->state_up == PARTITION_UP, "default", (p->flags & PART_FLAG_DEFAULT) != 0,
                     "nodes", n.list, "max_time_s",
                     p->max_time == INFINITE || p->max_time == NO_VAL
                         ? json_null()
                         : json_integer((json_int_t)p->max_time * 60),
                     "default_time_s",
                     p->default_time == INFINITE || p->default_time == NO_VAL
                         ? json_null()
                         : json_integer((json_int_t)p->default_time * 60));
}

static uint64_t partition_digest(const partition_info_t *p)
{
    uint64_t h = stk_hash_mix(p->state_up, (uint64_t)p->max_time << 32 | p->default_time);

    h = stk_slurm_mix_text(stk_hash_mix(h, p->flags), p->name);
    return stk_slurm_mix_text(h, p->nodes);
}

static int look_partitions(struct stk_slurm_watch *w)
{
    partition_info_msg_t *m = NULL;
    int rc = outcome(slurm_load_partitions(w->parts_at, &m, SHOW_ALL));
    uint64_t h = 0;
    json_t *list;

    if (rc <= 0)
        return rc;
    w->parts_at = m->last_update;
    for (uint32_t i = 0; i < m->record_count; i++)
        h = stk_hash_mix(h, partition_digest(&m->partition_array[i]));
    if (h != w->partitions) {
        list = json_array();
        for (uint32_t i = 0; i < m->record_count; i++)
            (void)json_array_append_new(list, show_partition(&m->partition_array[i]));
        stk_slurm_say(json_pack("{s:s,s:o}", "op", "partitions", "partitions", list));
    }
    w->partitions = h;
    slurm_free_partition_info_msg(m);
    return 1;
}

/* ---- nodes ---- */

/* Whether it can run jobs, in one word. */
static const char *node_word(uint32_t state)
{
    uint32_t base = state & NODE_STATE_BASE;

    if (base == NODE_STATE_DOWN || base == NODE_STATE_UNKNOWN || base == NODE_STATE_FUTURE ||
        state & (NODE_STATE_NO_RESPOND | NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN |
                 NODE_STATE_POWERING_UP))
        return "down";
    if (state & NODE_STATE_MAINT)
        return "maint";
    return state & (NODE_STATE_DRAIN | NODE_STATE_FAIL) ? "drain" : "up";
}

static json_t *show_node(const node_info_t *n)
{
    return json_pack("{s:o,s:s,s:o,s:i,s:I,s:o,s:o,s:o}", "name", stk_slurm_text(n->name), "state",
                     node_word(n->node_state), "why", stk_slurm_text(n->reason), "cpus",
                     (int)n->cpus, "mem_mib", (json_int_t)n->real_memory, "gpus",
                     stk_slurm_show_gpus(n->gres), "used", stk_slurm_show_gpus(n->gres_used),
                     "features", stk_slurm_text(n->features));
}

static uint64_t node_digest(const node_info_t *n)
{
    uint64_t h = stk_slurm_mix_text(n->real_memory, n->name);

    h = stk_slurm_mix_text(stk_hash_mix(h, n->cpus), node_word(n->node_state));
    h = stk_slurm_mix_text(h, n->gres);
    h = stk_slurm_mix_text(h, n->gres_used);
    h = stk_slurm_mix_text(h, n->features);
    return stk_slurm_mix_text(h, n->reason);
}

static int look_nodes(struct stk_slurm_watch *w)
{
    node_info_msg_t *m = NULL;
    int rc = outcome(slurm_load_node(w->nodes_at, &m, SHOW_ALL | SHOW_DETAIL));
    json_t *list;
    bool all;

    if (rc <= 0)
        return rc;
    all = m->record_count != w->n_nodes;
    if (all) {
        free(w->nodes);
        w->nodes = calloc(m->record_count + 1, sizeof(*w->nodes));
        w->n_nodes = w->nodes ? m->record_count : 0;
    }
    list = json_array();
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        uint64_t h = node_digest(&m->node_array[i]);

        if (h != w->nodes[i] && m->node_array[i].name)
            (void)json_array_append_new(list, show_node(&m->node_array[i]));
        w->nodes[i] = h;
    }
    w->nodes_at = m->last_update;
    slurm_free_node_info_msg(m);
    if (json_array_size(list) == 0)
        json_decref(list);
    else
        stk_slurm_say(json_pack("{s:s,s:b,s:o}", "op", "nodes", "all", all, "nodes", list));
    return 1;
}

/* ---- jobs ---- */

static void flush(struct stk_slurm_watch *w, bool all, bool last)
{
    if (!last && json_array_size(w->changed) < LINE_JOBS)
        return;
    if (json_array_size(w->changed) + json_array_size(w->gone) > 0 || (all && last))
        stk_slurm_say(json_pack("{s:s,s:b,s:b,s:O,s:O}", "op", "jobs", "all", all, "last", last,
                                "jobs", w->changed, "gone", w->gone));
    (void)json_array_clear(w->changed);
    (void)json_array_clear(w->gone);
}

static void note_job(struct stk_slurm_watch *w, const slurm_job_info_t *j)
{
    uint64_t h = stk_slurm_job_digest(j);
    uint32_t at = stk_map_get(&w->by_id, j->job_id);

    if (at == UINT32_MAX) {
        if (stk_mem_grow(&w->mem, &w->jobs, &w->cap_jobs, w->n_jobs + 1, sizeof(*w->jobs)) < 0 ||
            stk_map_reserve(&w->by_id, &w->mem, w->n_jobs + 1) < 0)
            return; /* told when there is room */
        at = w->n_jobs++;
        w->jobs[at] = (struct known){.id = j->job_id, .digest = ~h};
        stk_map_put(&w->by_id, j->job_id, at);
    }
    w->jobs[at].seen = w->round;
    if (w->jobs[at].digest != h)
        (void)json_array_append_new(w->changed, stk_slurm_job(j));
    w->jobs[at].digest = h;
}

/* Those that Slurm has forgotten: it does, some minutes after they ended, and when it lost them. */
static void forget(struct stk_slurm_watch *w)
{
    for (uint32_t i = w->n_jobs; i-- > 0;) {
        if (w->jobs[i].seen == w->round)
            continue;
        (void)json_array_append_new(w->gone, json_integer(w->jobs[i].id));
        stk_map_remove(&w->by_id, w->jobs[i].id);
        w->jobs[i] = w->jobs[--w->n_jobs];
        if (i < w->n_jobs) {
            stk_map_remove(&w->by_id, w->jobs[i].id);
            stk_map_put(&w->by_id, w->jobs[i].id, i);
        }
    }
}

static int look_jobs(struct stk_slurm_watch *w)
{
    job_info_msg_t *m = NULL;
    int rc = outcome(slurm_load_jobs(w->jobs_at, &m, SHOW_ALL | SHOW_DETAIL));
    bool all = !w->told_all;

    if (rc <= 0)
        return rc;
    w->round++;
    w->changed = json_array();
    w->gone = json_array();
    for (uint32_t i = 0; i < m->record_count; i++) {
        note_job(w, &m->job_array[i]);
        flush(w, all, false);
    }
    w->jobs_at = m->last_update;
    slurm_free_job_info_msg(m);
    forget(w);
    flush(w, all, true);
    w->told_all = true;
    json_decref(w->changed);
    json_decref(w->gone);
    return 1;
}

/* ---- */

static int lost(struct stk_slurm_watch *w, int error)
{
    if (!w->away)
        stk_slurm_say(json_pack("{s:s,s:s,s:i}", "op", "away", "why", stk_slurm_trouble(error),
                                "code", error));
    w->away = true;
    w->told_all = false;
    w->jobs_at = w->nodes_at = w->parts_at = 0;
    w->n_jobs = w->n_nodes = 0;
    w->partitions = 0;
    stk_map_done(&w->by_id, &w->mem);
    return AGAIN_MS;
}

int stk_slurm_watch_look(struct stk_slurm_watch *w)
{
    int64_t from = now_ms(), took;
    int rc = look_partitions(w);

    rc = rc < 0 ? rc : look_nodes(w);
    rc = rc < 0 ? rc : look_jobs(w);
    if (rc < 0)
        return lost(w, -rc);
    if (w->away)
        stk_slurm_say(json_pack("{s:s}", "op", "back"));
    w->away = false;
    took = (now_ms() - from) * SHARE;
    return took > w->every ? (int)took : w->every;
}
