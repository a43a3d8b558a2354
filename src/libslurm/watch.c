/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - asks slurmctld what there is, and tells the daemon what has changed: a thread of its
 * own, so that nobody waits for a long answer.
 *
 * An answer to "anything new?" costs slurmctld next to nothing when there is not; when there is, it
 * sends all jobs. So after an answer that took long the next question about jobs waits in
 * proportion, nodes go on being asked about, and only jobs that look different from what was told
 * are told. Where ends are pushed by a plugin, all jobs are asked for less often still.
 *
 * Where they are not, nodes say when one may have ended: they are few, and asking for them costs
 * little. When one has changed, the jobs there are asked for alone, or all jobs where these are no
 * more to ask for.
 *
 * When slurmctld cannot be reached, that is said once; when it is back, everything is told anew
 * ("all"): what is not in that telling is gone. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "libslurm/helper.h"
#include "libslurm/names.h"

#define EVERY_MS 100
#define CALM_MS 250   /* where ends are pushed; and how often partitions are asked about */
#define AGAIN_MS 1000 /* when slurmctld is away */
#define ALONE 50u     /* so many more in an answer with all cost as much as asking for one alone */
#define MAX_NEAR 256u
#define SHARE 10  /* of our time at most that goes into asking for jobs: one part in so many */
#define AROUND 4  /* likewise, for nodes and partitions */
#define PUSHED 40 /* likewise, where ends are pushed */
#define PUSHED_MS 1000
#define SOON 4 /* likewise, when not all that happened was told */

#ifdef NODE_STATE_BLOCKED /* newer Slurms: a job near it wants no others there */
#define BLOCKED NODE_STATE_BLOCKED
#else
#define BLOCKED 0
#endif

struct stk_slurm_watch {
    struct stk_slurm_told *told;
    /* the thread's own */
    uint64_t *nodes; /* digests, by place in Slurm's table */
    uint32_t n_nodes;
    uint64_t names;      /* digest of nodes' names */
    uint64_t partitions; /* digest of all */
    time_t jobs_at, nodes_at, parts_at, books_at;
    int64_t jobs_due, soon_due; /* ms: when all jobs are asked for; and when there is reason to */
    int64_t parts_due;          /* ms */
    uint32_t n_jobs;            /* in the last answer with all */
    uint32_t near[MAX_NEAR], n_near; /* jobs on nodes that have changed */
    bool away, owed; /* owed: there was reason to, and they were not asked for since */
    /* asked of it */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    int every;
    bool runs, ends, soon, pushed, doubt;
    stk_slurm_watch_fn follow;
    void *follow_ctx;
};

/* Nothing is new, or an answer. < 0: Slurm's error. */
static int outcome(int rc)
{
    int error = rc == SLURM_SUCCESS ? 0 : errno;

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
    return json_pack("{s:o,s:b,s:b,s:b,s:o,s:o,s:o}", "name", stk_slurm_text(p->name), "up",
                     p->state_up == PARTITION_UP, "starts", (p->state_up & PARTITION_SCHED) != 0,
                     "default", (p->flags & PART_FLAG_DEFAULT) != 0, "nodes", n.list, "max_time_s",
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

/* Whether it can run jobs, in one word. A node that has not registered since slurmctld was started
 * answers for jobs already, and Slurm starts some there: it does not know the node's GPUs yet, and
 * those of a job that ends before it does it never gets back. */
static const char *node_word(const node_info_t *n)
{
    uint32_t state = n->node_state, base = state & NODE_STATE_BASE;

    if (base == NODE_STATE_DOWN || base == NODE_STATE_FUTURE ||
        state & (NODE_STATE_NO_RESPOND | NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN |
                 NODE_STATE_POWERING_UP))
        return "down";
    if (state & (NODE_STATE_MAINT | NODE_STATE_RES)) /* a reservation of Slurm's has it */
        return "maint";
    if (state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | BLOCKED))
        return "drain";
    return base == NODE_STATE_UNKNOWN || n->slurmd_start_time == 0 ? "joining" : "up";
}

/* Features that it has now, of those that it could have. */
static const char *active(const node_info_t *n)
{
    return n->features_act ? n->features_act : n->features;
}

static json_t *show_node(const node_info_t *n)
{
    return json_pack("{s:o,s:s,s:o,s:i,s:I,s:o,s:o,s:o}", "name", stk_slurm_text(n->name), "state",
                     node_word(n), "why", stk_slurm_text(n->reason), "cpus", (int)n->cpus,
                     "mem_mib", (json_int_t)n->real_memory, "gpus", stk_slurm_show_gpus(n->gres),
                     "used", stk_slurm_show_gpus(n->gres_used), "features",
                     stk_slurm_text(active(n)));
}

static uint64_t node_digest(const node_info_t *n)
{
    uint64_t h = stk_slurm_mix_text(n->real_memory, n->name);

    h = stk_slurm_mix_text(stk_hash_mix(h, n->cpus), node_word(n));
    h = stk_slurm_mix_text(h, n->gres);
    h = stk_slurm_mix_text(h, n->gres_used);
    h = stk_slurm_mix_text(h, active(n));
    return stk_slurm_mix_text(h, n->reason);
}

/* 'near': which jobs are there matters. */
static int look_nodes(struct stk_slurm_watch *w, bool near)
{
    node_info_msg_t *m = NULL;
    int rc = outcome(slurm_load_node(w->nodes_at, &m, SHOW_ALL | SHOW_DETAIL));
    uint64_t names = 0;
    bool all, joining = false;
    json_t *list;

    if (rc <= 0)
        return rc;
    for (uint32_t i = 0; i < m->record_count; i++) {
        names = stk_slurm_mix_text(names, m->node_array[i].name);
        joining = joining || strcmp(node_word(&m->node_array[i]), "joining") == 0;
    }
    all = m->record_count != w->n_nodes || names != w->names;
    w->names = names;
    if (all) {
        free(w->nodes);
        w->nodes = calloc(m->record_count + 1, sizeof(*w->nodes));
        w->n_nodes = w->nodes ? m->record_count : 0;
    }
    list = json_array();
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        uint64_t h = node_digest(&m->node_array[i]);

        if (h != w->nodes[i] && m->node_array[i].name) {
            (void)json_array_append_new(list, show_node(&m->node_array[i]));
            if (near)
                w->n_near += stk_slurm_told_on(w->told, m->node_array[i].name, w->near + w->n_near,
                                               MAX_NEAR - w->n_near);
        }
        w->nodes[i] = h;
    }
    w->nodes_at = joining ? 0 : m->last_update; /* that one registers may not count as news */
    slurm_free_node_info_msg(m);
    if (json_array_size(list) == 0)
        json_decref(list);
    else
        stk_slurm_say(json_pack("{s:s,s:b,s:o}", "op", "nodes", "all", all, "nodes", list));
    return 1;
}

/* ---- jobs ---- */

static int look_jobs(struct stk_slurm_watch *w, int64_t now)
{
    json_int_t after = stk_slurm_told_last(w->told);
    job_info_msg_t *m = NULL;
    int64_t boot;
    int rc = -stk_slurm_boot(&boot);

    rc = rc < 0 ? rc : outcome(slurm_load_jobs(w->jobs_at, &m, SHOW_ALL | SHOW_DETAIL));
    if (rc <= 0)
        return rc;
    stk_slurm_told_whole(w->told, m, now, after, boot);
    w->jobs_at = m->last_update;
    w->n_jobs = m->record_count;
    slurm_free_job_info_msg(m);
    return 1;
}

/* ---- the thread ---- */

/* Everything is told anew. */
static void forget(struct stk_slurm_watch *w)
{
    w->jobs_at = w->nodes_at = w->parts_at = w->books_at = 0;
    w->n_nodes = 0;
    w->partitions = 0;
    w->jobs_due = w->parts_due = 0;
    stk_slurm_told_clear(w->told);
}

static int64_t lost(struct stk_slurm_watch *w, int error)
{
    if (!w->away)
        stk_slurm_say(json_pack("{s:s,s:s,s:i}", "op", "away", "why", stk_slurm_trouble(error),
                                "code", error));
    w->away = true;
    forget(w);
    return AGAIN_MS;
}

/* What was asked of the thread, as of now. */
struct wish {
    int every;
    bool pushed, doubt, soon;
    stk_slurm_watch_fn follow;
    void *follow_ctx;
};

/* Jobs on nodes that have changed may have ended. */
static void look_near(struct stk_slurm_watch *w, const struct wish *wish)
{
    if (w->n_near * ALONE >= w->n_jobs || w->n_near == MAX_NEAR)
        w->owed = w->owed || w->n_near > 0;
    else if (wish->follow)
        for (uint32_t i = 0; i < w->n_near; i++)
            wish->follow(wish->follow_ctx, w->near[i]);
}

/* All jobs, when their time has come. < 0: Slurm's error. */
static int look_when_due(struct stk_slurm_watch *w, const struct wish *wish)
{
    int64_t now = stk_slurm_now_ms(), took;
    int rc;

    w->owed = w->owed || wish->soon;
    if (!wish->pushed)
        look_near(w, wish);
    if (w->owed && w->soon_due < w->jobs_due)
        w->jobs_due = w->soon_due;
    if (now < w->jobs_due && !w->away)
        return 0;
    w->owed = false;
    rc = look_jobs(w, now);
    took = stk_slurm_now_ms() - now;
    w->soon_due = now + took * SOON;
    w->jobs_due = now + took * (wish->pushed ? PUSHED : SHARE);
    if (wish->pushed && w->jobs_due < now + PUSHED_MS)
        w->jobs_due = now + PUSHED_MS;
    return rc;
}

static int look_around(struct stk_slurm_watch *w, const struct wish *wish)
{
    int64_t now = stk_slurm_now_ms();
    int rc = 0, books = 0;

    w->n_near = 0;
    if (now >= w->parts_due) {
        rc = look_partitions(w);
        books = rc < 0 ? rc : stk_slurm_look_reservations(&w->books_at);
        w->parts_due = now + CALM_MS;
    }
    if (rc >
        0) { /* slurmctld may have been restarted so quickly that it was not missed: it calls */
        w->jobs_at = w->jobs_due = 0; /* what it has lost unchanged, and its jobs may not run */
        stk_slurm_told_clear(w->told);
    }
    rc = books < 0 ? books : rc;
    return rc < 0 ? rc : look_nodes(w, !wish->pushed);
}

/* Asks for what is new and tells it. How long to wait before the next time, in ms. */
static int64_t look(struct stk_slurm_watch *w, const struct wish *wish)
{
    int64_t from = stk_slurm_now_ms(), wait, least = wish->every;
    int rc;

    if (wish->doubt)
        forget(w);
    rc = look_around(w, wish);
    wait = (stk_slurm_now_ms() - from) * AROUND;
    rc = rc < 0 ? rc : look_when_due(w, wish);
    if (rc < 0)
        return lost(w, -rc);
    if (w->away)
        stk_slurm_say(json_pack("{s:s}", "op", "back"));
    w->away = false;
    least = wish->pushed && least < CALM_MS ? CALM_MS : least;
    wait = wait > least ? wait : least;
    from = stk_slurm_now_ms();
    if (w->owed && w->jobs_due < from + wait)
        wait = w->jobs_due > from ? w->jobs_due - from : 0;
    return wait;
}

static void until(struct timespec *ts, int64_t ms)
{
    (void)clock_gettime(CLOCK_MONOTONIC, ts);
    ts->tv_sec += ms / 1000;
    ts->tv_nsec += ms % 1000 * 1000000;
    if (ts->tv_nsec >= 1000000000) {
        ts->tv_sec++;
        ts->tv_nsec -= 1000000000;
    }
}

static void *run(void *arg)
{
    struct stk_slurm_watch *w = arg;

    (void)pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        const struct wish wish = {.every = w->every,
                                  .pushed = w->pushed,
                                  .doubt = w->doubt,
                                  .soon = w->soon,
                                  .follow = w->follow,
                                  .follow_ctx = w->follow_ctx};
        struct timespec ts;
        int64_t wait;

        w->soon = w->doubt = false;
        (void)pthread_mutex_unlock(&w->lock);
        wait = look(w, &wish);
        (void)pthread_mutex_lock(&w->lock);
        until(&ts, wait);
        while (!w->ends && !w->soon && pthread_cond_timedwait(&w->news, &w->lock, &ts) == 0)
            ;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct stk_slurm_watch *stk_slurm_watch_new(struct stk_slurm_told *told)
{
    struct stk_slurm_watch *w = calloc(1, sizeof(*w));
    pthread_condattr_t attr;

    if (!w)
        return NULL;
    w->told = told;
    w->every = EVERY_MS;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->news, &attr);
    (void)pthread_condattr_destroy(&attr);
    w->runs = pthread_create(&w->thread, NULL, run, w) == 0;
    if (!w->runs) {
        stk_slurm_watch_free(w);
        return NULL;
    }
    return w;
}

void stk_slurm_watch_stop(struct stk_slurm_watch *w)
{
    if (!w || !w->runs)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->ends = true;
    (void)pthread_cond_signal(&w->news);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    w->runs = false;
}

void stk_slurm_watch_free(struct stk_slurm_watch *w)
{
    if (!w)
        return;
    stk_slurm_watch_stop(w);
    (void)pthread_cond_destroy(&w->news);
    (void)pthread_mutex_destroy(&w->lock);
    free(w->nodes);
    free(w);
}

void stk_slurm_watch_every(struct stk_slurm_watch *w, int ms)
{
    (void)pthread_mutex_lock(&w->lock);
    w->every = ms;
    w->soon = true;
    (void)pthread_cond_signal(&w->news);
    (void)pthread_mutex_unlock(&w->lock);
}

void stk_slurm_watch_follow(struct stk_slurm_watch *w, stk_slurm_watch_fn fn, void *ctx)
{
    (void)pthread_mutex_lock(&w->lock);
    w->follow = fn;
    w->follow_ctx = ctx;
    (void)pthread_mutex_unlock(&w->lock);
}

void stk_slurm_watch_doubt(struct stk_slurm_watch *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->doubt = w->soon = true;
    (void)pthread_cond_signal(&w->news);
    (void)pthread_mutex_unlock(&w->lock);
}

void stk_slurm_watch_soon(struct stk_slurm_watch *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->soon = true;
    (void)pthread_cond_signal(&w->news);
    (void)pthread_mutex_unlock(&w->lock);
}

void stk_slurm_watch_pushed(struct stk_slurm_watch *w, bool pushed)
{
    (void)pthread_mutex_lock(&w->lock);
    w->pushed = pushed;
    (void)pthread_mutex_unlock(&w->lock);
}
