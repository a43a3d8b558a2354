/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/sim.h"

#include "base/heap.h"
#include "engine/sim/pace.h"
#include "engine/sim/power.h"
#include "model/speed.h"

struct run {                /* by job slot */
    stk_time left, started; /* of one that counts steps, left is what restarts cost it */
    stk_lease_id lease;
    uint32_t gpus;
    uint32_t speed; /* thousandths: 'left' is work at speed 1 */
    enum stk_cause ends;
    stk_time saved; /* 'left' at its last checkpoint */
    stk_time every; /* between two of them; 0: there are none */
    bool leaving;   /* it was told to go, and saves: it ends when it is due */
    bool done;      /* its work is, and its end is being dealt with; since: */
    stk_time done_at;
    bool careless; /* warned, it saves nothing */
};

enum leave { KEEP, KILL, SIGNAL, SUSPEND };

struct sim {
    struct stk_engine base;
    struct stk_mem mem;
    struct stk_sim_config cfg;
    stk_time late, launch;
    stk_time each, busy; /* what one start or end keeps the cluster busy; and until when */
    struct stk_heap ends;
    uint32_t *pos;
    struct run *runs;
    uint32_t cap_pos, cap_runs;
    double restart_gpu_s;
    struct stk_pace pace;
    struct stk_sim_power power;
    struct stk_heap boots; /* jobs that have GPUs and are not running yet, by when they will */
    uint32_t *boot_pos;
    uint32_t cap_boot_pos;
    enum leave leave; /* the best that can be done */
    stk_time save, every;
    struct stk_heap marks; /* running jobs by their next checkpoint */
    uint32_t *mark_pos;
    uint32_t cap_mark_pos;
};

enum {
    P_LATE,
    P_STEPS,
    P_SPREAD,
    P_MIX,
    P_LEAVE,
    P_CHECKPOINT,
    P_SAVE,
    P_WINDOW,
    P_TOLD,
    P_LIMIT,
    P_START,
    P_EACH
};
const struct stk_param stk_sim_params[] = {
    [P_LATE] =
        {"sim.late_s", STK_PARAM_SECONDS, "0", 0, 86400, NULL,
         "jobs end this much after their work is done (one-second ticks of other simulators)"},
    [P_STEPS] =
        {"sim.steps_s", STK_PARAM_SECONDS, "0", 0, 31536000, NULL,
         "work in steps: only whole steps per this long count (rounds of other simulators)"},
    [P_SPREAD] = {"sim.spread", STK_PARAM_WORD, "on", 0, 0, "on|off",
                  "work in steps: a job over several nodes has the speed measured for that"},
    [P_MIX] = {"sim.mix", STK_PARAM_WORD, "auto", 0, 0, "auto|trace|learned",
               "placement by what usually comes: the whole trace says what, or it is learned as "
               "jobs come; auto: the trace with --sequence"},
    [P_LEAVE] = {"sim.leave", STK_PARAM_WORD, "keep", 0, 0, "keep|kill|signal|suspend",
                 "what jobs that have to go can do: keep all they did and pay restart_s; or be "
                 "killed, also save when they are warned, also be suspended, as they are told"},
    [P_CHECKPOINT] = {"sim.checkpoint_s", STK_PARAM_SECONDS, "0", 0, 31536000, NULL,
                      "jobs report a checkpoint each time they have run so long; 0: never"},
    [P_SAVE] = {"sim.save_s", STK_PARAM_SECONDS, "0", 0, 86400, NULL,
                "a job that is warned keeps its GPUs for so long, to save"},
    [P_WINDOW] = {"sim.window_s", STK_PARAM_SECONDS, "86400", 1, 3155760000, NULL,
                  "how fair a run is to its tenants is looked at over windows of this"},
    [P_TOLD] = {"sim.estimate", STK_PARAM_WORD, "given", 0, 0, "given|limit|predicted|exact",
                "run times that the scheduler is told: those of the trace, where it has none the "
                "true ones; what users asked for; that, corrected by their own past jobs; the true "
                "ones"},
    [P_LIMIT] = {"sim.limit", STK_PARAM_WORD, "none", 0, 0, "none|rounded",
                 "what users ask for where the trace does not say: nothing, or the next of 1, 4 "
                 "and 12 hours, 1, 3, 7 and 30 days (with sim.estimate=limit and predicted)"},
    [P_START] = {"sim.start_s", STK_PARAM_SECONDS, "0", 0, 86400, NULL,
                 "a job gets on so long after it was given its GPUs: what a launch takes"},
    [P_EACH] = {"sim.each_s", STK_PARAM_SECONDS, "0", 0, 86400, NULL,
                "starts and ends are dealt with one after the other, and each takes so long; one "
                "that leaves is dealt with when it is told to and when it is gone"},
    {0},
};

const struct stk_param *const stk_sim_spread = &stk_sim_params[P_SPREAD];
const struct stk_param *const stk_sim_mix = &stk_sim_params[P_MIX];
const struct stk_param *const stk_sim_leave = &stk_sim_params[P_LEAVE];
const struct stk_param *const stk_sim_window = &stk_sim_params[P_WINDOW];
const struct stk_param *const stk_sim_told = &stk_sim_params[P_TOLD];
const struct stk_param *const stk_sim_limit = &stk_sim_params[P_LIMIT];

int stk_engine_sim_work(struct stk_engine *e, stk_job_id job, stk_time left, enum stk_cause ends)
{
    struct sim *m = (struct sim *)e;

    if (stk_mem_grow(&m->mem, &m->pos, &m->cap_pos, job.i + 1, sizeof(*m->pos)) < 0 ||
        stk_mem_grow(&m->mem, &m->boot_pos, &m->cap_boot_pos, job.i + 1, sizeof(*m->boot_pos)) <
            0 ||
        stk_mem_grow(&m->mem, &m->mark_pos, &m->cap_mark_pos, job.i + 1, sizeof(*m->mark_pos)) <
            0 ||
        stk_mem_grow(&m->mem, &m->runs, &m->cap_runs, job.i + 1, sizeof(*m->runs)) < 0)
        return -ENOMEM;
    m->runs[job.i] = (struct run){.left = left, .saved = left, .every = m->every, .ends = ends};
    return stk_pace_counts(&m->pace, job.i) ? stk_pace_work(&m->pace, job.i, 0, 0) : 0;
}

void stk_engine_sim_saves(struct stk_engine *e, stk_job_id job, stk_time every, bool warned)
{
    struct sim *m = (struct sim *)e;

    m->runs[job.i].every = every ? every : m->every;
    m->runs[job.i].careless = !warned;
}

int stk_engine_sim_steps(struct stk_engine *e, stk_job_id job, uint32_t row, uint64_t steps,
                         enum stk_cause ends)
{
    int rc = stk_engine_sim_work(e, job, 0, ends);

    return rc < 0 ? rc : stk_pace_work(&((struct sim *)e)->pace, job.i, row, steps);
}

uint64_t stk_engine_sim_steps_left(const struct stk_engine *e, stk_job_id job, stk_time now)
{
    return stk_pace_left(&((const struct sim *)e)->pace, job.i, now);
}

/* When the cluster has dealt with one more. */
static stk_time dealt(struct sim *m, stk_time now)
{
    if (m->each == 0)
        return now;
    m->busy = (m->busy > now ? m->busy : now) + m->each;
    return m->busy;
}

/* From the last work until the end is due: at first only until it is dealt with, if that takes a
 * turn. */
static stk_time late_of(const struct sim *m)
{
    return m->each > 0 ? 0 : m->late;
}

static stk_time rounded(const struct sim *m, stk_time end)
{
    if (m->cfg.round > 0 && end < STK_NEVER_TIME)
        end = (end + m->cfg.round - 1) / m->cfg.round * m->cfg.round;
    return end;
}

/* Those whose speed has changed end at another time. */
static void settle_ends(struct sim *m)
{
    for (uint32_t i = 0; i < m->pace.n_changed; i++) {
        uint32_t job = m->pace.changed[i];
        stk_time end = stk_pace_end(&m->pace, job);

        stk_heap_put(&m->ends, m->pos, job,
                     rounded(m, end == STK_NEVER_TIME ? end : end + late_of(m)),
                     m->runs[job].lease);
    }
    m->pace.n_changed = 0;
}

/* The job no longer runs, and has no nodes. */
static void leave(struct sim *m, stk_time now, uint32_t job)
{
    stk_sim_power_stop(&m->power, now, job);
    stk_heap_remove(&m->boots, m->boot_pos, job);
    stk_heap_remove(&m->marks, m->mark_pos, job);
    if (!stk_pace_counts(&m->pace, job))
        return;
    stk_pace_stop(&m->pace, now, job);
    settle_ends(m);
}

static int start(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct sim *m = (struct sim *)e;
    struct stk_event ev = {.at = now, .type = STK_EV_STARTED, .job = s->job, .lease = s->lease};
    struct run *r;
    stk_time boot;
    bool paced = stk_pace_counts(&m->pace, s->job.i);

    if (s->job.i >= m->cap_runs)
        return -EINVAL; /* nobody said what it has to do */
    if (stk_heap_has(m->pos, s->job.i))
        return 0; /* started already */
    if (stk_heap_reserve(&m->ends, &m->mem, m->ends.n + 1) < 0 ||
        stk_heap_reserve(&m->boots, &m->mem, m->boots.n + 1) < 0 ||
        stk_heap_reserve(&m->marks, &m->mem, m->marks.n + 1) < 0)
        return -ENOMEM;
    boot = stk_sim_power_start(&m->power, now, s);
    if (boot < 0)
        return -ENOMEM;
    boot += m->launch + dealt(m, now) - now;
    r = &m->runs[s->job.i];
    r->lease = s->lease;
    r->done = false;
    if (paced && stk_pace_start(&m->pace, now, s, boot + r->left) < 0) {
        stk_sim_power_stop(&m->power, now, s->job.i);
        return -ENOMEM;
    }
    r->gpus = s->gpus;
    r->speed = s->speed && !paced ? s->speed : STK_SPEED;
    r->started = now + boot;
    if (paced)
        settle_ends(m);
    else
        stk_heap_put(&m->ends, m->pos, s->job.i,
                     rounded(m, r->started + stk_speed_time(r->left, r->speed) + late_of(m)),
                     s->lease);
    if (r->every > 0 && !paced)
        stk_heap_put(&m->marks, m->mark_pos, s->job.i, r->started + r->every, s->lease);
    if (boot > 0)
        stk_heap_put(&m->boots, m->boot_pos, s->job.i, r->started, s->lease);
    else
        e->emit(e->emit_ctx, &ev);
    return 0;
}

/* What it has still to do. */
static stk_time left_now(const struct sim *m, uint32_t job, stk_time now)
{
    const struct run *r = &m->runs[job];
    stk_time left = r->left - (now > r->started ? stk_speed_work(now - r->started, r->speed) : 0);

    if ((stk_pace_counts(&m->pace, job) || r->speed != STK_SPEED) && left < 0)
        return 0;
    return left;
}

static stk_time cost(const struct sim *m, const struct stk_param *of, const struct run *r)
{
    return of ? stk_params_size(m->cfg.params, of, r->gpus) : 0;
}

/* How one that is told to go does it. */
static enum leave way_of(const struct sim *m, const struct stk_stop *s)
{
    const bool careless = m->runs[s->job.i].careless;
    const enum leave asked = s->suspend ? SUSPEND : s->kill || careless ? KILL : SIGNAL;

    if (m->leave == KEEP || s->cause != STK_CAUSE_EVICTED)
        return KEEP;
    if (asked <= m->leave)
        return asked;
    return careless ? KILL : m->leave; /* told to sleep, and cannot */
}

/* It is gone, or asleep. */
static void gone(struct sim *m, stk_time now, uint32_t job, const struct stk_stop *s,
                 enum leave way)
{
    struct run *r = &m->runs[job];
    struct stk_event ev = {.at = now, .type = STK_EV_EXITED, .job = s->job, .lease = s->lease};

    stk_heap_remove(&m->ends, m->pos, job);
    leave(m, now, job);
    r->leaving = false;
    ev.u.exit.cause = s->cause;
    if (s->cause == STK_CAUSE_EVICTED && way == SUSPEND) {
        ev = (struct stk_event){
            .at = now, .type = STK_EV_SUSPENDED, .job = s->job, .lease = s->lease};
        r->left += cost(m, m->cfg.suspend, r);
        m->restart_gpu_s += (double)cost(m, m->cfg.suspend, r) / (double)STK_SECOND * r->gpus;
    } else if (s->cause == STK_CAUSE_EVICTED) {
        ev.u.exit.lost = cost(m, m->cfg.restart, r);
        if (way == KILL && !stk_pace_counts(&m->pace, job) && r->saved > r->left)
            ev.u.exit.lost += r->saved - r->left;
        r->left += ev.u.exit.lost;
        r->saved = r->left;
        m->restart_gpu_s += (double)ev.u.exit.lost / (double)STK_SECOND * r->gpus;
    }
    m->base.emit(m->base.emit_ctx, &ev);
}

/* Its work is done; nobody knows yet (sim.late_s). */
static bool over(const struct sim *m, uint32_t job, stk_time now)
{
    const struct run *r = &m->runs[job];

    return (m->late > 0 || m->each > 0) && !stk_pace_counts(&m->pace, job) && !r->leaving &&
           now >= r->started + stk_speed_time(r->left, r->speed);
}

static void stop(struct stk_engine *e, stk_time now, const struct stk_stop *s)
{
    struct sim *m = (struct sim *)e;
    uint32_t job = s->job.i;
    struct run *r;

    if (job >= m->cap_pos || !stk_heap_has(m->pos, job) || m->runs[job].lease != s->lease)
        return;
    r = &m->runs[job];
    if (r->leaving && s->cause == STK_CAUSE_EVICTED)
        return; /* it was told */
    if (over(m, job, now) && way_of(m, s) != KEEP)
        return; /* it is done, and that will be known when it is due */
    if (!r->leaving)
        r->left = left_now(m, job, now);
    if (way_of(m, s) != SIGNAL || (m->save == 0 && m->each == 0)) {
        gone(m, now, job, s, way_of(m, s));
        return;
    }
    r->leaving = true;
    stk_heap_remove(&m->marks, m->mark_pos, job);
    stk_heap_put(&m->ends, m->pos, job, dealt(m, now) + m->save, s->lease);
}

/* A checkpoint is done. */
static void mark(struct sim *m, stk_time now, uint32_t job)
{
    struct run *r = &m->runs[job];
    const struct stk_event ev = {
        .at = now, .type = STK_EV_CHECKPOINT, .job = {job}, .lease = r->lease};

    stk_heap_put(&m->marks, m->mark_pos, job, m->marks.item[0].key + r->every, r->lease);
    r->saved = left_now(m, job, now);
    m->base.emit(m->base.emit_ctx, &ev);
}

static void end(struct sim *m, stk_time now, uint32_t job)
{
    struct run *r = &m->runs[job];
    const struct stk_event ev = {.at = now,
                                 .type = STK_EV_EXITED,
                                 .job = {job},
                                 .lease = r->lease,
                                 .u.exit = {.cause = r->ends}};

    if (m->each > 0 && !r->done) {
        r->done = true;
        r->done_at = now;
        stk_heap_put(&m->ends, m->pos, job, dealt(m, now) + (r->leaving ? 0 : m->late), r->lease);
        return;
    }
    if (r->leaving) {
        const struct stk_stop s = {{job}, r->lease, STK_CAUSE_EVICTED, false, false};

        gone(m, now, job, &s, SIGNAL);
        return;
    }
    stk_heap_remove(&m->ends, m->pos, job);
    leave(m, now, job);
    m->base.emit(m->base.emit_ctx, &ev);
}

static void pump(struct stk_engine *e, stk_time now)
{
    struct sim *m = (struct sim *)e;
    uint32_t node;

    while (m->boots.n > 0 && m->boots.item[0].key <= now) {
        uint32_t slot = m->boots.item[0].id;
        const struct stk_event ev = {
            .at = now, .type = STK_EV_STARTED, .job = {slot}, .lease = m->runs[slot].lease};

        stk_heap_remove(&m->boots, m->boot_pos, slot);
        e->emit(e->emit_ctx, &ev);
    }
    while (m->ends.n > 0 && m->ends.item[0].key <= now)
        end(m, now, m->ends.item[0].id);
    while (m->marks.n > 0 && m->marks.item[0].key <= now)
        mark(m, now, m->marks.item[0].id);
    while ((node = stk_sim_power_off(&m->power, now)) != STK_NONE) {
        const struct stk_event ev = {.at = now, .type = STK_EV_NODE_OFF, .u.node = {node}};

        e->emit(e->emit_ctx, &ev);
    }
}

static stk_time next(const struct stk_engine *e)
{
    const struct sim *m = (const struct sim *)e;
    stk_time t = stk_sim_power_next(&m->power);

    if (m->ends.n > 0 && m->ends.item[0].key < t)
        t = m->ends.item[0].key;
    if (m->marks.n > 0 && m->marks.item[0].key < t)
        t = m->marks.item[0].key;
    return m->boots.n > 0 && m->boots.item[0].key < t ? m->boots.item[0].key : t;
}

static stk_job_id peek(const struct stk_engine *e)
{
    const struct sim *m = (const struct sim *)e;

    if (m->ends.n == 0)
        return (stk_job_id){STK_NONE};
    __builtin_prefetch(&m->runs[m->ends.item[0].id]);
    return (stk_job_id){m->ends.item[0].id};
}

static void close_sim(struct stk_engine *e)
{
    struct sim *m = (struct sim *)e;
    struct stk_mem mem = m->mem;

    stk_pace_done(&m->pace);
    stk_sim_power_done(&m->power);
    stk_heap_done(&m->boots, &mem);
    stk_mem_drop(&mem, &m->boot_pos, &m->cap_boot_pos, sizeof(*m->boot_pos));
    stk_heap_done(&m->marks, &mem);
    stk_mem_drop(&mem, &m->mark_pos, &m->cap_mark_pos, sizeof(*m->mark_pos));
    stk_heap_done(&m->ends, &mem);
    stk_mem_drop(&mem, &m->pos, &m->cap_pos, sizeof(*m->pos));
    stk_mem_drop(&mem, &m->runs, &m->cap_runs, sizeof(*m->runs));
    (void)mem.resize(mem.ctx, m, sizeof(*m), 0);
}

static const struct stk_engine_ops sim_ops = {
    .name = "sim",
    .start = start,
    .stop = stop,
    .pump = pump,
    .next = next,
    .peek = peek,
    .close = close_sim,
};

static enum leave leave_of(const struct stk_params *p)
{
    static const char *const words[] = {
        [KEEP] = "keep", [KILL] = "kill", [SIGNAL] = "signal", [SUSPEND] = "suspend"};
    enum leave l = KEEP;

    while (l < SUSPEND && !stk_params_word(p, &stk_sim_params[P_LEAVE], words[l]))
        l++;
    return l;
}

int stk_engine_sim_new(const struct stk_sim_config *cfg, const struct stk_mem *mem,
                       struct stk_engine **ret_engine, struct stk_err *err)
{
    struct sim *m = mem->resize(mem->ctx, NULL, 0, sizeof(*m));
    struct stk_pace_config pace = {
        .speeds = cfg->speeds, .nodes = cfg->nodes, .n_nodes = cfg->n_nodes};
    const struct stk_sim_power_config power = {.saves = cfg->saves,
                                               .off_after = cfg->off_after,
                                               .nodes = cfg->nodes,
                                               .n_nodes = cfg->n_nodes};

    if (!m)
        return stk_err_set(err, -ENOMEM, "out of memory");
    m->base.ops = &sim_ops;
    m->mem = *mem;
    m->cfg = *cfg;
    m->late = stk_params_seconds(cfg->params, &stk_sim_params[P_LATE]);
    m->launch = stk_params_seconds(cfg->params, &stk_sim_params[P_START]);
    m->each = stk_params_seconds(cfg->params, &stk_sim_params[P_EACH]);
    m->save = stk_params_seconds(cfg->params, &stk_sim_params[P_SAVE]);
    m->every = stk_params_seconds(cfg->params, &stk_sim_params[P_CHECKPOINT]);
    m->leave = leave_of(cfg->params);
    pace.steps = stk_params_seconds(cfg->params, &stk_sim_params[P_STEPS]);
    if (stk_pace_init(&m->pace, &pace, mem) < 0 || stk_sim_power_init(&m->power, &power, mem) < 0) {
        close_sim(&m->base);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    *ret_engine = &m->base;
    return 0;
}

double stk_engine_sim_least_speed(const struct stk_engine *e)
{
    return ((const struct sim *)e)->pace.least;
}

bool stk_engine_sim_turns(const struct stk_engine *e)
{
    return ((const struct sim *)e)->each > 0;
}

stk_time stk_engine_sim_done(const struct stk_engine *e, stk_job_id job)
{
    return ((const struct sim *)e)->runs[job.i].done_at;
}

double stk_engine_sim_restart_cost(const struct stk_engine *e)
{
    return ((const struct sim *)e)->restart_gpu_s;
}
