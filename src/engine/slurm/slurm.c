/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.c - the engine's calls. A first start sends the job to Slurm, pinned to its nodes; one that
 * was stopped to make room waits in Slurm, held, and is started there again, so that its number,
 * its accounting and its log go on. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "spec/words.h"
#include "sys/big.h"

#define OPEN_MS 60000  /* everything is told within */
#define START_MS 60000 /* Slurm has started what it was told to within */
#define REST_MS 1100   /* Slurm kills a job that starts again in the second in which it ended */
#define CLEAN_MS 5000
#define NO_SIGNAL (-1)

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

struct stk_slurm_job *stk_slurm_find(const struct stk_slurm *m, stk_job_number number)
{
    struct stk_slurm_job *j = m->jobs;

    while (j && j->number != number)
        j = j->next;
    return j;
}

static const char *key_of(stk_job_number number)
{
    static char key[16];

    (void)snprintf(key, sizeof(key), "%u", number);
    return key;
}

/* ---- starting ---- */

/* "n1,n2", and how many GPUs of each. */
static int set_place(const struct stk_slurm *m, const struct stk_slurm_job *j, json_t *o)
{
    uint32_t tasks = 0;
    bool even = true;
    char *nodes = NULL, gres[64];
    size_t size = 0;
    FILE *f = open_memstream(&nodes, &size);

    for (uint32_t i = 0; f && i < j->n_pieces; i++) {
        (void)fprintf(f, "%s%s", i ? "," : "", m->nodes[j->pieces[i].node.i].name);
        tasks += j->pieces[i].tasks;
        even = even && j->pieces[i].gpus == j->pieces[0].gpus &&
               j->pieces[i].tasks == j->pieces[0].tasks;
    }
    if (!f || fclose(f) != 0 || !nodes) {
        free(nodes);
        return -ENOMEM;
    }
    (void)json_object_set_new(o, "nodes", json_string(nodes));
    (void)json_object_set_new(o, "n_nodes", json_integer(j->n_pieces));
    (void)json_object_set_new(o, "tasks", json_integer(tasks));
    if (even) {
        (void)json_object_set_new(o, "tasks_per_node", json_integer(j->pieces[0].tasks));
        (void)snprintf(gres, sizeof(gres), "gres:gpu:%u", j->pieces[0].gpus);
    } else {
        (void)snprintf(gres, sizeof(gres), "gres:gpu:%u",
                       j->pieces[0].tasks ? j->pieces[0].gpus / j->pieces[0].tasks : 0);
    }
    if (j->pieces[0].gpus > 0)
        (void)json_object_set_new(o, even ? "tres_per_node" : "tres_per_task", json_string(gres));
    free(nodes);
    return 0;
}

/* < 0: Slurm could not be asked, or said no. */
static bool refused(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *answer)
{
    const char *why = json_string_value(json_object_get(answer, "why"));
    char sentence[512];

    if (answer && json_is_true(json_object_get(answer, "ok")))
        return false;
    if (!answer) { /* what Slurm has made of it shows when all is told anew */
        j->where = STK_S_SENT;
        return true;
    }
    (void)snprintf(sentence, sizeof(sentence), "Slurm refused it: %.400s", why ? why : "no reason");
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_NOT_STARTED, 0, sentence);
    return true;
}

static void on_sent(struct stk_slurm_job *j, const json_t *answer)
{
    struct stk_slurm *m = j->m;

    if (refused(m, j, answer))
        return;
    if (json_is_integer(json_object_get(answer, "job")))
        j->slurm = (uint32_t)json_integer_value(json_object_get(answer, "job"));
    j->where = STK_S_SENT;
    stk_slurm_job_look(m, j);
    if (j->stopping && j->where == STK_S_SENT)
        stk_slurm_do_stop(m, j);
}

/* In Slurm's queue, held: it was stopped to make room. */
static const json_t *waits_there(const struct stk_slurm *m, stk_job_number number)
{
    const json_t *job = json_object_get(m->ours, key_of(number));
    const char *state = json_string_value(json_object_get(job, "state"));

    return state && strcmp(state, "pending") == 0 && json_is_true(json_object_get(job, "held"))
               ? job
               : NULL;
}

void stk_slurm_send(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const json_t *there = waits_there(m, j->number);
    struct stk_err err = {""};
    json_t *o;

    if (!m->running || m->away || stk_slurm_ms() < j->not_before)
        return;
    if (there)
        o = json_pack("{s:s,s:O}", "op", "start", "job", json_object_get(there, "job"));
    else
        o = stk_slurm_describe(m, j, &err);
    if (!o || set_place(m, j, o) < 0) {
        json_decref(o);
        stk_slurm_exited(m, j, STK_CAUSE_NOT_STARTED, 0, err.text[0] ? err.text : "out of memory");
        return;
    }
    if (there)
        j->slurm = (uint32_t)json_integer_value(json_object_get(there, "job"));
    j->sent_at = stk_slurm_ms();
    if (stk_slurm_ask(m, o, j, on_sent) == 0)
        j->where = STK_S_ASKED;
}

static struct stk_slurm_job *job_new(struct stk_slurm *m, const struct stk_start *s)
{
    struct stk_slurm_job *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    *j = (struct stk_slurm_job){.m = m,
                                .number = s->number,
                                .id = s->job,
                                .lease = s->lease,
                                .restarts = s->restarts,
                                .n_pieces = s->n_pieces,
                                .pieces = calloc(s->n_pieces + 1, sizeof(*j->pieces)),
                                .spec = s->spec ? strdup(s->spec) : NULL,
                                .next = m->jobs};
    if (!j->pieces || (s->spec && !j->spec)) {
        free(j->pieces);
        free(j->spec);
        free(j);
        return NULL;
    }
    memcpy(j->pieces, s->pieces, s->n_pieces * sizeof(*j->pieces));
    m->jobs = j;
    return j;
}

static void job_free(struct stk_slurm *m, struct stk_slurm_job *j)
{
    struct stk_slurm_job **p = &m->jobs;

    while (*p != j)
        p = &(*p)->next;
    *p = j->next;
    free(j->pieces);
    free(j->spec);
    free(j);
}

static int start(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find(m, s->number);

    (void)now;
    if (j && j->lease == s->lease)
        return 0;
    if (j)
        job_free(m, j); /* an earlier launch that nobody settled */
    j = job_new(m, s);
    if (!j)
        return -ENOMEM;
    if (waits_there(m, s->number))
        j->not_before = json_integer_value(json_object_get(m->left, key_of(s->number))) + REST_MS;
    stk_slurm_send(m, j);
    return 0;
}

/* ---- stopping ---- */

/* Signal and seconds of a warning; NO_SIGNAL: it wants none. */
static int warning_of(const struct stk_slurm_job *j, int64_t *ret_s)
{
    json_t *spec = j->spec ? json_loads(j->spec, 0, NULL) : NULL,
           *w = json_object_get(spec, "signal");
    const char *name = json_string_value(json_object_get(w, "signal"));
    const json_t *s = json_object_get(w, "seconds");
    int sig = NO_SIGNAL;

    if (name && stk_words_signal(name, &sig) < 0)
        sig = NO_SIGNAL;
    *ret_s = json_is_integer(s) ? json_integer_value(s) : 60;
    json_decref(spec);
    return sig > 0 ? sig : NO_SIGNAL;
}

static json_t *request(const char *op, const struct stk_slurm_job *j)
{
    return json_pack("{s:s,s:I}", "op", op, "job", (json_int_t)j->slurm);
}

/* Out of Slurm's hands, and held there. */
static void put_back(struct stk_slurm *m, struct stk_slurm_job *j)
{
    json_t *o = request(j->where == STK_S_RUNNING ? "requeue" : "update", j);

    j->harder_at = 0;
    j->requeued = true;
    if (j->where != STK_S_RUNNING)
        (void)json_object_set_new(o, "hold", json_true());
    (void)stk_slurm_ask(m, o, NULL, NULL);
}

void stk_slurm_do_stop(struct stk_slurm *m, struct stk_slurm_job *j)
{
    int64_t seconds = 0;
    int sig;
    json_t *o;

    if (j->where == STK_S_UNSENT) {
        stk_slurm_exited(m, j, j->stop.cause, 0, "stopped before it was started");
        return;
    }
    if (j->where == STK_S_ASKED || j->where == STK_S_ENDED)
        return; /* when the answer comes */
    if (j->stop.cause == STK_CAUSE_CANCELLED) {
        (void)stk_slurm_ask(m, request("cancel", j), NULL, NULL);
        return;
    }
    sig = j->stop.kill || j->where != STK_S_RUNNING ? NO_SIGNAL : warning_of(j, &seconds);
    if (sig == NO_SIGNAL) {
        put_back(m, j);
        return;
    }
    o = request("signal", j);
    (void)json_object_set_new(o, "signal", json_integer(sig));
    (void)stk_slurm_ask(m, o, NULL, NULL);
    j->harder_at = stk_slurm_ms() + seconds * 1000;
}

static void stop(struct stk_engine *e, stk_time now, const struct stk_stop *s)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = m->jobs;

    (void)now;
    while (j && (j->id.i != s->job.i || j->lease != s->lease))
        j = j->next;
    if (!j || j->where == STK_S_ENDED ||
        (j->stopping && j->stop.cause == STK_CAUSE_CANCELLED && s->cause != STK_CAUSE_CANCELLED))
        return;
    j->stopping = true;
    j->stop = *s;
    stk_slurm_do_stop(m, j);
}

static void settle(struct stk_engine *e, stk_job_number number, stk_lease_id lease)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find(m, number);

    if (j && j->lease == lease && j->where == STK_S_ENDED)
        job_free(m, j);
}

/* ---- time ---- */

/* Slurm was told to start it, and does not. */
static void give_up(struct stk_slurm *m, struct stk_slurm_job *j)
{
    const json_t *job = json_object_get(m->ours, key_of(j->number));
    const char *reason = json_string_value(json_object_get(job, "reason"));
    char sentence[256];

    (void)snprintf(sentence, sizeof(sentence), "Slurm did not start it: %.200s",
                   reason && *reason ? reason : "it does not say why");
    stk_slurm_log(m, true, "job %u: %s", j->number, sentence);
    put_back(m, j);
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_EVICTED, 0, sentence);
}

/* Jobs that are held in Slurm and that nobody waits for any more. */
static void clean(struct stk_slurm *m)
{
    const char *number;
    json_t *job;

    json_object_foreach(m->ours, number, job)
    {
        stk_job_number n = (stk_job_number)strtoul(number, NULL, 10);

        if (!waits_there(m, n) || stk_slurm_find(m, n) || m->cfg.lives(m->cfg.ctx, n))
            continue;
        (void)stk_slurm_ask(
            m, json_pack("{s:s,s:O}", "op", "cancel", "job", json_object_get(job, "job")), NULL,
            NULL);
    }
}

void stk_slurm_ticks(struct stk_slurm *m)
{
    int64_t now = stk_slurm_ms();
    int64_t most = m->cfg.start_ms ? m->cfg.start_ms : START_MS;

    for (struct stk_slurm_job *j = m->jobs, *next; j && m->ready && !m->away; j = next) {
        next = j->next;
        if (j->where == STK_S_UNSENT)
            stk_slurm_send(m, j);
        else if (j->where == STK_S_SENT && !j->requeued && now - j->sent_at > most)
            give_up(m, j);
        else if (j->harder_at && now >= j->harder_at && j->where == STK_S_RUNNING)
            put_back(m, j);
    }
    if (m->ready && !m->away && m->cfg.lives && now >= m->clean_at) {
        m->clean_at = now + CLEAN_MS;
        clean(m);
    }
}

/* ---- after a restart ---- */

static void adopt_one(struct stk_slurm *m, struct stk_slurm_job *j, const struct stk_adopt *a)
{
    const json_t *job = json_object_get(m->ours, key_of(j->number));

    j->stopping = a->state == STK_JOB_STOPPING;
    j->stop = a->stop;
    if (!job || waits_there(m, j->number)) {
        if (j->stopping)
            stk_slurm_exited(m, j, a->stop.cause, 0, "");
        else if (a->state == STK_JOB_RUNNING && job)
            stk_slurm_exited(m, j, STK_CAUSE_EVICTED, 0, "Slurm put it back into its queue");
        else if (a->state == STK_JOB_RUNNING)
            stk_slurm_exited(m, j, STK_CAUSE_UNKNOWN, 0,
                             "Slurm has no trace of it; how it ended is not known");
        return; /* others are sent with the next tick */
    }
    j->where = a->state == STK_JOB_RUNNING || j->stopping ? STK_S_RUNNING : STK_S_SENT;
    j->told_started = a->state == STK_JOB_RUNNING;
    j->sent_at = stk_slurm_ms();
    stk_slurm_job_look(m, j);
    if (j->stopping && j->where != STK_S_ENDED)
        stk_slurm_do_stop(m, j);
}

static int adopt(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                 struct stk_err *err)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    const char *number;
    json_t *job;

    (void)now;
    while (m->jobs)
        job_free(m, m->jobs);
    for (uint32_t i = 0; i < n; i++) {
        struct stk_slurm_job *j = job_new(m, &list[i].start);

        if (!j)
            return stk_err_set(err, -ENOMEM, "out of memory");
        adopt_one(m, j, &list[i]);
    }
    json_object_foreach(m->ours, number, job)
    {
        const char *state = json_string_value(json_object_get(job, "state"));

        if (!stk_slurm_find(m, (stk_job_number)strtoul(number, NULL, 10)) && state &&
            strcmp(state, "running") == 0)
            (void)stk_slurm_ask(
                m, json_pack("{s:s,s:O}", "op", "cancel", "job", json_object_get(job, "job")), NULL,
                NULL);
    }
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
                                          .adopt = adopt,
                                          .settle = settle,
                                          .pump = pump,
                                          .close = close_engine};

static const char *keep(struct stk_slurm *m, const char *s, bool *failed)
{
    char **more = s ? reallocarray(m->own, m->n_own + 1, sizeof(*more)) : NULL;

    if (!s)
        return NULL;
    m->own = more ? more : m->own;
    if (more && (m->own[m->n_own] = strdup(s)))
        return m->own[m->n_own++];
    *failed = true;
    return NULL;
}

static void keep_partitions(struct stk_slurm *m, const char *const *list, bool *failed)
{
    uint32_t n = 0;

    while (list[n])
        n++;
    m->names = calloc(n + 1, sizeof(*m->names));
    *failed = *failed || !m->names;
    for (uint32_t i = 0; m->names && i < n; i++)
        m->names[i] = keep(m, list[i], failed);
    m->cfg.partitions = m->names;
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
                       m->why[0] ? m->why : "stoker-libslurm says nothing");
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
    m->cfg.program = keep(m, cfg->program, &failed);
    m->cfg.conf = keep(m, cfg->conf, &failed);
    m->cfg.mark = keep(m, cfg->mark, &failed);
    keep_partitions(m, cfg->partitions, &failed);
    m->news = json_object();
    m->ours = json_object();
    m->theirs = json_object();
    m->left = json_object();
    rc = failed ? stk_err_set(err, -ENOMEM, "out of memory") : stk_slurm_link_open(m);
    if (rc < 0 && !failed)
        (void)stk_err_set(err, rc, "cannot start %s: %s", m->cfg.program, uv_strerror(rc));
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

const struct stk_slurm_node *stk_slurm_nodes(const struct stk_engine *e, uint32_t *ret_n)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;

    *ret_n = m->n_nodes;
    return m->nodes;
}

void stk_slurm_retell(struct stk_engine *e, bool (*was_up)(void *ctx, uint32_t node), void *ctx)
{
    struct stk_slurm *m = (struct stk_slurm *)e;

    for (uint32_t i = 0; i < m->n_nodes; i++) {
        struct stk_event ev = {.at = m->cfg.now(m->cfg.ctx),
                               .type = m->nodes[i].up ? STK_EV_NODE_UP : STK_EV_NODE_DOWN,
                               .u.node = {i}};

        if (was_up(ctx, i) != m->nodes[i].up)
            m->base.emit(m->base.emit_ctx, &ev);
        m->off[i] = 0;
        m->cfg.off(m->cfg.ctx, i, 0);
    }
    stk_slurm_cluster_off(m);
}

const json_t *stk_slurm_of(const struct stk_engine *e, stk_job_number number)
{
    return json_object_get(((const struct stk_slurm *)e)->ours, key_of(number));
}

int stk_slurm_signal(struct stk_engine *e, stk_job_number number, int sig)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_job *j = stk_slurm_find(m, number);
    json_t *o;

    if (!j || j->where != STK_S_RUNNING)
        return -ESRCH;
    o = request("signal", j);
    (void)json_object_set_new(o, "signal", json_integer(sig));
    (void)json_object_set_new(o, "to", json_string("all"));
    return stk_slurm_ask(m, o, NULL, NULL);
}
