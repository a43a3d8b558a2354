/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.c - the engine's calls, its clock, and how it is made. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "sys/big.h"

#define OPEN_MS 60000 /* everything is told within */
#define SETTLE_MS                                                                                  \
    3000 /* what an earlier life may have sent shows, or its processes are gone, within */
#define CLEAN_MS 5000
#define REFUSED_MS 1000 /* before what Slurm refused is tried again */

void stk_slurm_log(const struct stk_slurm *m, bool trouble, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    if (!m->cfg.log)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    m->cfg.log(m->cfg.ctx, trouble, line);
}

/* ---- what the core wants ---- */

static int start(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find(m, s->number);
    const struct stk_slurm_rest *r;

    (void)now;
    if (j && j->lease == s->lease)
        return 0;
    if (j)
        stk_slurm_remove(m, j); /* an earlier launch that nobody settled */
    j = stk_slurm_add(m, s);
    if (!j)
        return -ENOMEM;
    r = stk_slurm_rest_find(m, s->number);
    if (r && r->refused > 0)
        j->not_before = stk_slurm_ms() + REFUSED_MS;
    stk_slurm_send(m, j);
    return 0;
}

static void stop(struct stk_engine *e, stk_time now, const struct stk_stop *s)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find_lease(m, s->lease);

    (void)now;
    if (!j || j->id.i != s->job.i || j->where == STK_S_ENDED ||
        (j->stopping && j->stop.cause == STK_CAUSE_CANCELLED && s->cause != STK_CAUSE_CANCELLED))
        return;
    stk_slurm_stopping(j, s);
    stk_slurm_do_stop(m, j);
}

static void settle(struct stk_engine *e, stk_job_number number, stk_lease_id lease)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find(m, number);

    if (j && j->lease == lease && j->where == STK_S_ENDED)
        stk_slurm_remove(m, j);
}

static void refused(struct stk_engine *e, const struct stk_event *ev)
{
    stk_slurm_not_taken((struct stk_slurm *)e, ev);
}

/* ---- time ---- */

/* Jobs that are held in Slurm and that nobody waits for any more. */
static void clean(struct stk_slurm *m)
{
    for (uint32_t i = 0; i < m->n_seen; i++) {
        stk_job_number n = m->seen[i].number;

        if (n && stk_slurm_waits_there(m, n) && !stk_slurm_find(m, n) &&
            !m->cfg.lives(m->cfg.ctx, n))
            stk_slurm_ask_cancel(m, m->seen[i].job);
    }
    stk_slurm_import_clean(m);
}

static void tick_job(struct stk_slurm *m, struct stk_slurm_job *j, int64_t now)
{
    stk_slurm_verify_tick(m, j, now);
    stk_slurm_limit_tick(m, j, now);
    if (j->where == STK_S_RUNNING && !j->judged && now >= j->judge_at)
        stk_slurm_job_look(m, j);
    if (j->where == STK_S_LOST)
        stk_slurm_lost_tick(m, j);
    else if ((j->stopping || j->requeued) && (j->where == STK_S_SENT || j->where == STK_S_RUNNING))
        stk_slurm_stop_tick(m, j, now);
    else if (j->where == STK_S_UNSENT || j->where == STK_S_SENT)
        stk_slurm_start_tick(m, j, now);
}

void stk_slurm_ticks(struct stk_slurm *m)
{
    int64_t now = stk_slurm_ms();

    if (!m->ready || m->away)
        return;
    m->contact_s = m->cfg.now(m->cfg.ctx) / STK_SECOND;
    for (struct stk_slurm_job *j = m->timed, *next; j; j = next) {
        next = j->next;
        tick_job(m, j, now);
    }
    stk_slurm_cluster_tick(m, now);
    if (m->booked_news && m->open && m->cfg.booked) {
        m->booked_news = false;
        m->cfg.booked(m->cfg.ctx, m->booked);
    }
    stk_slurm_import_tick(m);
    if (now < m->clean_at)
        return;
    m->clean_at = now + CLEAN_MS;
    stk_slurm_revived_tick(m, now);
    stk_slurm_groups_tick(m, now);
    stk_slurm_use_tick(m, now);
    if (m->cfg.contact)
        m->cfg.contact(m->cfg.ctx);
    stk_slurm_rest_tick(m);
    if (m->cfg.lives)
        clean(m);
}

/* ---- after a restart ---- */

/* As far as Slurm knows it is not running. */
static void adopt_absent(struct stk_slurm *m, struct stk_slurm_job *j, const struct stk_adopt *a)
{
    json_t *id = NULL;

    if (!m->adopted) /* an earlier life may have sent it */
        j->not_before = stk_slurm_ms() + SETTLE_MS;
    if (a->state == STK_JOB_PLACED)
        return; /* sent with the next tick */
    if (stk_slurm_there(m, j, &id) && a->state == STK_JOB_RUNNING)
        (void)snprintf(j->back, sizeof(j->back), "Slurm put it back into its queue");
    json_decref(id);
    stk_slurm_move(j, STK_S_SENT);
    stk_slurm_lost(m, j);
}

static void adopt_one(struct stk_slurm *m, struct stk_slurm_job *j, const struct stk_adopt *a)
{
    const struct stk_slurm_seen *seen = stk_slurm_seen_of(m, j->number);

    if (a->state == STK_JOB_STOPPING)
        stk_slurm_stopping(j, &a->stop);
    j->told_started = a->state != STK_JOB_PLACED;
    if (!seen || stk_slurm_lease_of(m, seen->job) != j->lease ||
        stk_slurm_waits_there(m, j->number)) {
        adopt_absent(m, j, a);
        return;
    }
    j->slurm = seen->slurm;
    stk_slurm_judged(j, j->told_started);
    j->sent_at = stk_slurm_ms();
    stk_slurm_move(j, j->told_started ? STK_S_RUNNING : STK_S_SENT);
    stk_slurm_verify(j);
    stk_slurm_job_look(m, j);
    if (j->stopping && j->where != STK_S_ENDED)
        stk_slurm_do_stop(m, j);
}

static int adopt(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                 struct stk_err *err)
{
    struct stk_slurm *m = (struct stk_slurm *)e;

    (void)now;
    while (m->n_jobs > 0)
        stk_slurm_remove(m, m->jobs[m->n_jobs - 1]);
    for (uint32_t i = 0; i < n; i++) {
        struct stk_slurm_job *j = stk_slurm_add(m, &list[i].start);

        if (!j)
            return stk_err_set(err, -ENOMEM, "out of memory");
        adopt_one(m, j, &list[i]);
    }
    for (uint32_t i = 0; i < m->n_seen; i++) {
        const struct stk_slurm_seen *s = &m->seen[i];
        const char *state = json_string_value(json_object_get(s->job, "state"));

        if (s->number && stk_slurm_number(m, s->job) && !stk_slurm_find(m, s->number) && state &&
            strcmp(state, "running") == 0)
            stk_slurm_ask_cancel(m, s->job);
    }
    stk_slurm_asked_again(m);
    m->adopted = true;
    if (!m->away)
        m->contact_s = m->cfg.now(m->cfg.ctx) / STK_SECOND; /* what is lost from now on */
    return 0;
}

/* ---- */

static void pump(struct stk_engine *e, stk_time now)
{
    (void)e; /* everything is emitted as it is told */
    (void)now;
}

static void close_engine(struct stk_engine *e)
{
    stk_slurm_link_close((struct stk_slurm *)e);
}

static const struct stk_engine_ops ops = {.name = "slurm",
                                          .start = start,
                                          .stop = stop,
                                          .update = stk_slurm_update,
                                          .adopt = adopt,
                                          .settle = settle,
                                          .refused = refused,
                                          .pump = pump,
                                          .close = close_engine};

const char *stk_slurm_keep(struct stk_slurm *m, const char *s)
{
    char **more;

    for (uint32_t i = 0; i < m->n_own; i++)
        if (strcmp(m->own[i], s) == 0)
            return m->own[i];
    more = reallocarray(m->own, m->n_own + 1, sizeof(*more));
    m->own = more ? more : m->own;
    if (!more || !(m->own[m->n_own] = strdup(s)))
        return NULL;
    return m->own[m->n_own++];
}

static const char *keep(struct stk_slurm *m, const char *s, bool *failed)
{
    const char *copy = s ? stk_slurm_keep(m, s) : NULL;

    *failed = *failed || (s && !copy);
    return copy;
}

static void keep_partitions(struct stk_slurm *m, const char *const *list, bool *failed)
{
    uint32_t n = 0;

    while (list[n])
        n++;
    m->listed = calloc(n + 1, sizeof(*m->listed));
    *failed = *failed || !m->listed;
    for (uint32_t i = 0; m->listed && i < n; i++)
        m->listed[i] = keep(m, list[i], failed);
    m->cfg.partitions = m->listed;
}

/* Until all was told, or the program has said why it cannot. */
static int wait_ready(struct stk_slurm *m, struct stk_err *err)
{
    int64_t until = stk_slurm_ms() + OPEN_MS;

    while (!m->ready && !m->away && stk_slurm_ms() < until)
        (void)uv_run(m->cfg.loop, UV_RUN_ONCE);
    if (m->ready)
        return 0;
    return stk_err_set(err, -ETIMEDOUT, "Slurm cannot be reached: %s",
                       m->why[0] ? m->why
                                 : "slurmctld has not answered for a minute: is slurmctld running "
                                   "(scontrol ping)?");
}

void stk_slurm_free(struct stk_slurm *m)
{
    stk_slurm_import_free(m);
    json_decref(m->groups);
    json_decref(m->enforces);
    stk_slurm_rest_free(m);
    json_decref(m->booked);
    stk_slurm_table_free(m);
    stk_slurm_cluster_free(m);
    for (uint32_t i = 0; i < m->n_own; i++)
        free(m->own[i]);
    free(m->own);
    free(m->listed);
    free(m->names);
    free(m->left_out);
    stk_lines_done(&m->lines);
    stk_slurm_later_drop(m);
    stk_mem_drop(&m->mem, &m->asks, &m->cap_asks, sizeof(*m->asks));
    stk_mem_drop(&m->mem, &m->later, &m->cap_later, sizeof(*m->later));
    free(m);
}

int stk_engine_slurm_new(const struct stk_slurm_config *cfg, struct stk_engine **ret_engine,
                         struct stk_err *err)
{
    struct stk_slurm *m = calloc(1, sizeof(*m));
    bool failed = false;
    int rc;

    *ret_engine = NULL;
    if (!m)
        return stk_err_set(err, -ENOMEM, "out of memory");
    m->base.ops = &ops;
    m->mem = stk_big_mem;
    m->cfg = *cfg;
    m->contact_s = cfg->contact_s;
    m->cfg.program = keep(m, cfg->program, &failed);
    m->cfg.conf = keep(m, cfg->conf, &failed);
    m->cfg.mark = keep(m, cfg->mark, &failed);
    m->cfg.rows = keep(m, cfg->rows, &failed);
    m->cfg.gpu_type = keep(m, cfg->gpu_type, &failed);
    keep_partitions(m, cfg->partitions, &failed);
    m->news = json_object();
    m->rows = json_object();
    rc = failed ? stk_err_set(err, -ENOMEM, "out of memory") : stk_slurm_link_open(m);
    if (rc < 0 && !failed)
        (void)stk_err_set(err, rc, "cannot start %s: %s", m->cfg.program, uv_strerror(rc));
    rc = rc < 0 ? rc : stk_slurm_cluster_load(m, err); /* jobs that are told of have a row */
    rc = rc < 0 ? rc : wait_ready(m, err);
    rc = rc < 0 ? rc : stk_slurm_cluster_make(m, err);
    if (rc < 0) {
        stk_slurm_link_close(m);
        return rc;
    }
    *ret_engine = &m->base;
    return 0;
}

const char **stk_slurm_partitions(const struct stk_engine *e, uint32_t *ret_n)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;

    *ret_n = m->n_partitions;
    return m->names;
}

const char *stk_slurm_left_out(const struct stk_engine *e, uint32_t row)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;

    return row < m->n_partitions ? m->left_out[row] : NULL;
}

const uint32_t *stk_slurm_pools(const struct stk_engine *e)
{
    return ((const struct stk_slurm *)e)->pools;
}

const struct stk_slurm_node *stk_slurm_nodes(const struct stk_engine *e, uint32_t *ret_n)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;

    *ret_n = m->n_nodes;
    return m->nodes;
}

void stk_slurm_retell(struct stk_engine *e, bool (*was_up)(void *ctx, uint32_t node), void *ctx)
{
    struct stk_slurm *m = (struct stk_slurm *)e;

    m->n_core = m->n_nodes;
    stk_slurm_jobs_recheck(m);
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        struct stk_event ev = {.at = m->cfg.now(m->cfg.ctx),
                               .type = m->nodes[i].up ? STK_EV_NODE_UP : STK_EV_NODE_DOWN,
                               .u.node = {i}};

        if (was_up(ctx, i) != m->nodes[i].up)
            m->base.emit(m->base.emit_ctx, &ev);
        m->use[i].off = 0;
        m->use[i].shut = false;
        m->cfg.off(m->cfg.ctx, i, 0, false);
        stk_slurm_use_changed(m, i);
    }
    stk_slurm_use_tell(m);
}

const json_t *stk_slurm_of(const struct stk_engine *e, stk_job_number number)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of((const struct stk_slurm *)e, number);

    return s ? s->job : NULL;
}

int stk_slurm_signal(struct stk_engine *e, stk_job_number number, int sig)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find(m, number);
    json_t *o;

    if (!j || j->where != STK_S_RUNNING)
        return -ESRCH;
    o = stk_slurm_request("signal", j);
    (void)json_object_set_new(o, "signal", json_integer(sig));
    (void)json_object_set_new(o, "to", json_string("all"));
    return stk_slurm_ask(m, o, NULL, NULL);
}
