/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/local.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/local/inner.h"
#include "sys/big.h"

stk_time stk_local_now(const struct stk_local *m)
{
    return m->cfg.now(m->cfg.ctx);
}

void stk_local_note(const struct stk_local_job *j, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    if (!j->m->cfg.note || j->stray)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    j->m->cfg.note(j->m->cfg.ctx, j->number, text);
}

struct stk_local_job *stk_local_find(const struct stk_local *m, stk_job_number number)
{
    uint32_t i = stk_map_get(&m->by_number, number);

    return i == UINT32_MAX ? NULL : m->table[i];
}

static struct stk_local_job *by_slot(const struct stk_local *m, stk_job_id id)
{
    uint32_t i = stk_map_get(&m->by_slot, id.i);

    return i == UINT32_MAX ? NULL : m->table[i];
}

static int enter(struct stk_local *m, struct stk_local_job *j)
{
    uint32_t place;

    if (stk_map_reserve(&m->by_number, &m->mem, m->by_number.n + 1) < 0 ||
        stk_map_reserve(&m->by_slot, &m->mem, m->by_slot.n + 1) < 0 ||
        stk_mem_grow(&m->mem, &m->table, &m->cap_table, m->n_table + 1, sizeof(*m->table)) < 0 ||
        stk_mem_grow(&m->mem, &m->free_places, &m->cap_free, m->n_table + 1,
                     sizeof(*m->free_places)) < 0)
        return -ENOMEM;
    place = m->n_free > 0 ? m->free_places[--m->n_free] : m->n_table++;
    m->table[place] = j;
    stk_map_put(&m->by_number, j->number, place);
    stk_map_put(&m->by_slot, j->id.i, place);
    return 0;
}

static void leave(struct stk_local *m, const struct stk_local_job *j)
{
    uint32_t place = stk_map_get(&m->by_number, j->number);

    if (place == UINT32_MAX || m->table[place] != j)
        return;
    stk_map_remove(&m->by_number, j->number);
    if (stk_map_get(&m->by_slot, j->id.i) == place)
        stk_map_remove(&m->by_slot, j->id.i);
    m->table[place] = NULL;
    m->free_places[m->n_free++] = place;
}

struct stk_local_job *stk_local_job_new(struct stk_local *m, const struct stk_start *s, bool stray)
{
    struct stk_local_job *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->m = m;
    j->number = s->number;
    j->id = s->job;
    j->lease = j->launch = s->lease;
    j->restarts = s->restarts;
    j->stray = stray;
    stk_local_set_mask(j, s);
    if (!stray && enter(m, j) < 0) {
        json_decref(j->spread);
        json_decref(j->nodes);
        free(j);
        return NULL;
    }
    j->wait_since = stk_local_now(m);
    j->next = m->jobs;
    m->jobs = j;
    m->strays += stray;
    return j;
}

void stk_local_job_free(struct stk_local_job *j)
{
    struct stk_local *m = j->m;
    struct stk_local_job **p = &m->jobs;

    while (*p != j)
        p = &(*p)->next;
    *p = j->next;
    if (!j->stray)
        leave(m, j);
    m->strays -= j->stray;
    stk_local_helper_drop(j);
    stk_local_link_close(j);
    stk_run_done(&j->run);
    stk_local_forget_spec(j);
    json_decref(j->spread);
    json_decref(j->nodes);
    free(j->in);
    free(j->shown);
    free(j);
}

/* From the start on nobody needs the description any more. */
void stk_local_forget_spec(struct stk_local_job *j)
{
    free(j->spec);
    j->spec = NULL;
}

void stk_local_emit_started(struct stk_local_job *j)
{
    const struct stk_event ev = {
        .at = stk_local_now(j->m), .type = STK_EV_STARTED, .job = j->id, .lease = j->lease};

    if (j->told_started || j->stray)
        return;
    j->told_started = true;
    j->m->base.emit(j->m->base.emit_ctx, &ev);
}

stk_time stk_local_boot_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * STK_SECOND + t.tv_nsec / 1000;
}

/* When it ended, by our time: its age is taken from CLOCK_BOOTTIME. */
static stk_time end_of(const struct stk_local_job *j)
{
    const struct stk_run *r = &j->run;
    const stk_time ago = stk_local_boot_us() - r->ended_boot;

    if (!r->ended_boot || ago < 0 || (r->boot[0] != '\0' && strcmp(r->boot, j->m->boot) != 0))
        return r->ended;
    return stk_local_now(j->m) - ago;
}

void stk_local_emit_exited(struct stk_local_job *j, enum stk_cause cause, const char *sentence)
{
    const struct stk_run *r = &j->run; /* of one that has not written its end: zeros */
    const struct stk_event ev = {.at = stk_local_now(j->m),
                                 .type = STK_EV_EXITED,
                                 .job = j->id,
                                 .lease = j->lease,
                                 .u.exit = {.cause = cause,
                                            .code = r->code,
                                            .final = r->final && cause == r->cause,
                                            .ended = end_of(j)}};

    if (j->where == STK_W_ENDED)
        return;
    j->where = STK_W_ENDED;
    stk_local_turn_changed(j);
    if (sentence != j->sentence)
        (void)snprintf(j->sentence, sizeof(j->sentence), "%s", sentence);
    if (j->stray)
        return;
    stk_local_note(j, "%s", sentence);
    j->m->base.emit(j->m->base.emit_ctx, &ev);
}

int stk_local_keep_spec(struct stk_local_job *j, const struct stk_start *s)
{
    stk_local_forget_spec(j);
    j->spec = s->spec ? strdup(s->spec) : NULL;
    return s->spec && !j->spec ? -ENOMEM : 0;
}

static int start(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct stk_local *m = (struct stk_local *)e;
    struct stk_local_job *j = stk_local_find(m, s->number);

    (void)now;
    if (j && j->lease == s->lease)
        return 0;
    if (j && s->resume && j->where != STK_W_ENDED) {
        j->lease = s->lease;
        j->told_started = false;
        stk_local_set_mask(j, s);
        if (j->seat)
            stk_local_turn_waits(j, stk_local_now(m));
        else
            stk_local_resume(j);
        return 0;
    }
    if (j)
        stk_local_job_free(j); /* an earlier launch that nobody settled */
    j = stk_local_job_new(m, s, false);
    if (!j)
        return -ENOMEM;
    if (s->resume) {
        stk_local_emit_exited(j, STK_CAUSE_UNKNOWN, "its sleeping processes are gone");
        return 0;
    }
    if (stk_local_keep_spec(j, s) < 0)
        return -ENOMEM;
    if (j->seat)
        stk_local_turns_soon(m);
    else if (m->strays == 0)
        stk_local_spawn(j);
    return 0;
}

void stk_local_strays_gone(struct stk_local *m)
{
    if (m->strays > 0)
        return;
    for (struct stk_local_job *j = m->jobs; j; j = j->next)
        if (j->where == STK_W_WAITING && j->seat)
            stk_local_turns_soon(m);
        else if (j->where == STK_W_WAITING)
            stk_local_spawn(j);
}

/* Passes j->stop on to whoever can do it now; a job between two states is told when it arrives. */
void stk_local_do_stop(struct stk_local_job *j)
{
    json_t *msg;

    switch (j->where) {
    case STK_W_WAITING:
        stk_local_emit_exited(j, j->stop.cause, "stopped before it was started");
        return;
    case STK_W_ORPHANED:
        stk_local_orphan_stop(j);
        return;
    case STK_W_SAVING:
    case STK_W_RESTORING:
    case STK_W_ENDED:
        return; /* stoker-gpu must not be torn away from a process */
    case STK_W_RUNNING:
        if (j->stop.suspend) {
            stk_local_suspend(j);
            return;
        }
        break;
    case STK_W_ASLEEP:
        if (j->stop.suspend) {
            stk_local_asleep(j);
            return;
        }
        break;
    case STK_W_PREPARING:
    case STK_W_FREEZING:
    case STK_W_THAWING:
        if (j->stop.suspend)
            return;
        break;
    case STK_W_LAUNCHED:
    case STK_W_STOPPING:
        break;
    }
    /* what lies in saved GPU memory cannot be written down any more; and who takes turns must not
     * run in another's */
    msg =
        json_pack("{s:s,s:s,s:b}", "op", "stop", "cause", stk_cause_name(j->stop.cause), "at_once",
                  j->stop.kill || ((j->real_gpus || j->seat) && j->where == STK_W_ASLEEP));
    j->where = STK_W_STOPPING;
    (void)stk_local_send(j, msg);
}

static void stop(struct stk_engine *e, stk_time now, const struct stk_stop *s)
{
    struct stk_local *m = (struct stk_local *)e;
    struct stk_local_job *j = by_slot(m, s->job);

    (void)now;
    if (!j || j->lease != s->lease || j->where == STK_W_ENDED)
        return;
    if (j->stopping && j->stop.cause == STK_CAUSE_CANCELLED && s->cause != STK_CAUSE_CANCELLED)
        return; /* the harder one stands */
    j->stopping = true;
    j->yielding = false;
    j->stop = *s;
    if (!j->adopted)
        stk_local_do_stop(j);
}

static void settle(struct stk_engine *e, stk_job_number number, stk_lease_id lease)
{
    struct stk_local *m = (struct stk_local *)e;
    struct stk_local_job *j = stk_local_find(m, number);

    if (!j || j->lease != lease || j->where != STK_W_ENDED)
        return;
    stk_local_unlink(j);
    stk_local_job_free(j);
    stk_local_mps_release(m);
}

static void pump(struct stk_engine *e, stk_time now)
{
    (void)e; /* everything is emitted as libuv reports it */
    (void)now;
}

static stk_time next(const struct stk_engine *e)
{
    (void)e;
    return STK_NEVER_TIME;
}

static void close_timer(uv_handle_t *h)
{
    free(h);
}

static void close_local(struct stk_engine *e)
{
    struct stk_local *m = (struct stk_local *)e;

    while (m->jobs)
        stk_local_job_free(m->jobs);
    if (m->timer) {
        m->timer->data = NULL;
        uv_close((uv_handle_t *)m->timer, close_timer);
    }
    stk_local_turns_close(m);
    stk_map_done(&m->by_number, &m->mem);
    stk_map_done(&m->by_slot, &m->mem);
    stk_mem_drop(&m->mem, &m->table, &m->cap_table, sizeof(*m->table));
    stk_mem_drop(&m->mem, &m->free_places, &m->cap_free, sizeof(*m->free_places));
    stk_local_mps_close(m);
    stk_local_nursery_close(m);
    if (m->run_dir >= 0)
        (void)close(m->run_dir);
    if (m->null_fd >= 0)
        (void)close(m->null_fd);
    for (uint32_t i = 0; i < m->n_own; i++)
        free(m->own[i]);
    free(m->own);
    free(m->env);
    free(m->instances);
    free(m->gpus);
    free(m);
}

static const struct stk_engine_ops local_ops = {
    .name = "local",
    .start = start,
    .stop = stop,
    .update = stk_local_update,
    .adopt = stk_local_adopt,
    .settle = settle,
    .pump = pump,
    .next = next,
    .close = close_local,
};

/* Makes a folder of the state folder that only we can write to; a symbolic link is refused. */
static int make_dir(const char *state, const char *name, mode_t mode, struct stk_err *err)
{
    char path[4096];
    struct stat st;
    int fd, rc = 0;

    if (snprintf(path, sizeof(path), "%s/%s", state, name) >= (int)sizeof(path))
        return stk_err_set(err, -ENAMETOOLONG, "the state folder's path is too long");
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return stk_err_set(err, -errno, "cannot make %s: %s", path, strerror(errno));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        rc = stk_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
    else if (st.st_uid != geteuid())
        rc = stk_err_set(err, -EPERM, "%s belongs to somebody else", path);
    else if (fchmod(fd, mode) < 0)
        rc = stk_err_set(err, -errno, "cannot change the mode of %s: %s", path, strerror(errno));
    if (rc < 0) {
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    return fd;
}

/* A copy that lives as long as the engine; NULL for NULL, or for lack of memory. */
static char *copy(struct stk_local *m, const char *s, bool *failed)
{
    char **more = s ? realloc(m->own, (m->n_own + 1) * sizeof(*more)) : NULL;

    if (more) {
        m->own = more;
        m->own[m->n_own] = strdup(s);
        if (m->own[m->n_own])
            return m->own[m->n_own++];
    }
    *failed = *failed || s;
    return NULL;
}

/* The instances of all GPUs, one list. */
static void copy_instances(struct stk_local *m, bool *failed)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->cfg.n_gpus; i++)
        n += m->gpus[i].n_instances;
    m->instances = calloc(n + 1, sizeof(*m->instances));
    *failed = *failed || !m->instances;
    n = 0;
    for (uint32_t i = 0; m->instances && i < m->cfg.n_gpus; i++) {
        struct stk_local_gpu *g = &m->gpus[i];
        struct stk_local_instance *list = &m->instances[n];

        for (uint32_t k = 0; k < g->n_instances; k++) {
            list[k] = g->instances[k];
            list[k].uuid = copy(m, list[k].uuid, failed);
        }
        g->instances = list;
        n += g->n_instances;
    }
}

static int copy_config(struct stk_local *m, const struct stk_local_config *cfg)
{
    size_t n = 0;
    bool failed = false;

    m->cfg.state_dir = copy(m, cfg->state_dir, &failed);
    m->cfg.shim_path = copy(m, cfg->shim_path, &failed);
    m->cfg.gpu_helper = copy(m, cfg->gpu_helper, &failed);
    m->cfg.mps = copy(m, cfg->mps, &failed);
    m->cfg.node = copy(m, cfg->node ? cfg->node : "localhost", &failed);
    m->cfg.cgroup = copy(m, cfg->cgroup ? cfg->cgroup : "stoker", &failed);
    m->cfg.cgroup_mode = copy(m, cfg->cgroup_mode ? cfg->cgroup_mode : "auto", &failed);
    m->gpus = calloc(cfg->n_gpus + 1, sizeof(*m->gpus));
    for (uint32_t i = 0; m->gpus && i < cfg->n_gpus; i++) {
        m->gpus[i] = cfg->gpus[i];
        m->gpus[i].uuid = copy(m, cfg->gpus[i].uuid ? cfg->gpus[i].uuid : "", &failed);
        m->gpus[i].cpus = copy(m, cfg->gpus[i].cpus ? cfg->gpus[i].cpus : "", &failed);
    }
    if (m->gpus)
        copy_instances(m, &failed);
    while (cfg->env && cfg->env[n])
        n++;
    m->env = calloc(n + 1, sizeof(*m->env));
    for (size_t i = 0; m->env && i < n; i++)
        m->env[i] = copy(m, cfg->env[i], &failed);
    return failed || !m->gpus || !m->env ? -ENOMEM : 0;
}

static int open_dirs(struct stk_local *m, struct stk_err *err)
{
    int fd;

    m->run_dir = make_dir(m->cfg.state_dir, "run", 0700, err);
    if (m->run_dir < 0)
        return m->run_dir;
    fd = make_dir(m->cfg.state_dir, "attach", 0711, err);
    if (fd < 0)
        return fd;
    (void)close(fd);
    fd = make_dir(m->cfg.state_dir, "script", 0711, err);
    if (fd < 0)
        return fd;
    (void)close(fd);
    fd = make_dir(m->cfg.state_dir, "mps", 0711, err);
    if (fd < 0)
        return fd;
    (void)close(fd);
    m->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return m->null_fd < 0 ? stk_err_set(err, -errno, "cannot open /dev/null") : 0;
}

int stk_engine_local_new(const struct stk_local_config *cfg, struct stk_engine **ret_engine,
                         struct stk_err *err)
{
    struct stk_local *m;
    int rc;

    if (!cfg->state_dir || cfg->state_dir[0] != '/' || cfg->n_gpus > 64)
        return stk_err_set(err, -EINVAL, "the state folder must be an absolute path, GPUs <= 64");
    m = calloc(1, sizeof(*m));
    if (!m)
        return stk_err_set(err, -ENOMEM, "out of memory");
    m->base.ops = &local_ops;
    m->mem = stk_big_mem;
    m->cfg = *cfg;
    m->run_dir = m->null_fd = m->nursery_fd = -1;
    rc = copy_config(m, cfg);
    if (rc < 0)
        (void)stk_err_set(err, rc, "out of memory");
    rc = rc < 0 ? rc : open_dirs(m, err);
    if (rc == 0 && stk_boot_id(m->boot) < 0)
        rc = stk_err_set(err, -EIO, "the system does not tell its boot id");
    if (rc == 0 && getrandom(&m->label, sizeof(m->label), 0) < 0)
        rc = stk_err_set(err, -errno, "no random numbers");
    if (rc < 0) {
        close_local(&m->base);
        return rc;
    }
    *ret_engine = &m->base;
    return 0;
}
