/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - a scenario in the simulator. Steps are taken when their time has come: actions before
 * decisions are made at that time, expectations after. Every turn also checks every invariant. */
#include "scenario.h"

#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/empty.h"
#include "core/state.h"
#include "drive/loop.h"
#include "foresee.h"
#include "model/reason.h"
#include "sim/ruled.h"
#include "sim/run.h"
#include "sys/big.h"
#include "windows.h"

#define MOST_TURNS 200000

struct seen { /* of a job, by its place in the scenario */
    uint32_t slot;
    stk_job_number number;
    stk_time first_start, end, evicted, moved; /* STK_NEVER_TIME: not yet */
    uint32_t evicted_for;                      /* job of the scenario */
    uint32_t preemptions;
    char refused[SCN_MAX_LINE];
};

struct play {
    const struct scenario *s;
    const struct stk_trace *trace;
    const char *file;
    FILE *out;
    struct stk_core *core;
    const struct stk_cluster *cluster;
    struct stk_predict *predict;
    struct seen *seen;
    struct scn_windows windows;
    uint32_t *job_of; /* index in the trace -> in the scenario */
    struct stk_loop *loop;
    uint32_t next_step, turns; /* steps: what was done and looked at */
    uint32_t fed;              /* what was done */
    stk_time moved;            /* the last start or eviction */
    int failed;
};

/* ---- what happens ---- */

static bool is_action(enum scn_verb v)
{
    return v < SCN_RUNS;
}

static stk_time next(void *ctx)
{
    const struct play *p = ctx;

    return p->next_step < p->s->n_steps ? p->s->steps[p->next_step].at : STK_NEVER_TIME;
}

static struct seen *seen_of(struct play *p, const struct stk_state *s, uint32_t slot)
{
    return slot == STK_NONE ? NULL : &p->seen[p->job_of[s->jobs[slot].tag]];
}

/* The job that GPUs are kept free for. */
static uint32_t drained(const struct play *p, const struct stk_event *ev)
{
    uint32_t i = 0;

    while (ev->type == STK_EV_RESERVE && ev->u.booking->drain && i < p->s->n_jobs &&
           p->seen[i].number != ev->u.booking->holder_id)
        i++;
    return i;
}

/* How long it ran is known from now on. */
static void learn(struct play *p, const struct stk_job *j)
{
    const struct stk_run_kind k = {j->tenant, j->gpus, j->estimate};

    if (j->state == STK_JOB_DONE && j->cause == STK_CAUSE_OK)
        stk_predict_ran(p->predict, &k, j->served);
}

static void event(void *ctx, const struct stk_event *ev, const struct stk_core *core)
{
    struct play *p = ctx;
    const struct stk_state *s = stk_core_state(core);
    struct seen *j, *other;

    switch (ev->type) {
    case STK_EV_SUBMIT:
        j = &p->seen[p->job_of[ev->u.spec->tag]];
        j->slot = ev->job.i;
        j->number = s->jobs[ev->job.i].number;
        break;
    case STK_EV_PLACE:
        j = seen_of(p, s, ev->job.i);
        j->first_start = j->first_start == STK_NEVER_TIME ? ev->at : j->first_start;
        p->moved = ev->at;
        break;
    case STK_EV_EVICT:
        j = seen_of(p, s, ev->job.i);
        other = seen_of(p, s, ev->u.evict.for_job.i);
        j->evicted_for = other ? (uint32_t)(other - p->seen) : SCN_NONE;
        *(ev->u.evict.moved ? &j->moved : &j->evicted) = ev->at;
        j->preemptions += !ev->u.evict.moved && !ev->u.evict.by_hand;
        p->moved = ev->at;
        break;
    case STK_EV_EXITED:
    case STK_EV_CANCEL:
        j = seen_of(p, s, ev->job.i);
        if (s->jobs[ev->job.i].state == STK_JOB_DONE)
            j->end = ev->at;
        learn(p, &s->jobs[ev->job.i]);
        break;
    case STK_EV_RESERVE:
    case STK_EV_UNRESERVE:
        scn_windows_event(&p->windows, ev, drained(p, ev));
        break;
    default:
        break;
    }
}

static void refused_window(void *ctx, uint32_t i, const char *why)
{
    struct play *p = ctx;

    scn_windows_refused(&p->windows, i, why);
}

static void refused(void *ctx, uint32_t job, const char *why)
{
    struct play *p = ctx;

    (void)snprintf(p->seen[p->job_of[job]].refused, SCN_MAX_LINE, "%s", why);
}

/* ---- actions ---- */

/* The node is closed, and what is on it moves, if all of it can. */
static int empty(struct play *p, struct stk_loop *loop, const struct scn_step *step, stk_time now,
                 struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(p->core);
    struct stk_event off = {.at = now, .type = STK_EV_GPUS_OFF};
    struct stk_empty_plan plan;
    int rc;

    if (step->number > s->n_nodes)
        return stk_err_set(err, -EINVAL, "there is no node %lld", (long long)step->number);
    if (!stk_core_empty(p->core, now, step->number ? (uint32_t)step->number - 1 : STK_NONE,
                        &plan) ||
        !plan.possible)
        return 0;
    off.u.off.node.i = plan.node;
    off.u.off.mask = s->nodes[plan.node].mask_all;
    off.u.off.closed = true;
    rc = stk_loop_apply(loop, &off, err);
    for (uint32_t i = 0; i < plan.n && rc == 0; i++) {
        const struct stk_event ev = {.at = now,
                                     .type = STK_EV_EVICT,
                                     .job = {plan.move[i]},
                                     .lease = s->jobs[plan.move[i]].lease,
                                     .u.evict = {.for_job = {STK_NONE}, .moved = true}};

        rc = stk_loop_apply(loop, &ev, err);
    }
    return rc;
}

static int act(struct play *p, struct stk_loop *loop, const struct scn_step *step, stk_time now,
               struct stk_err *err)
{
    static const enum stk_event_type types[] = {
        [SCN_CANCEL] = STK_EV_CANCEL,   [SCN_HOLD] = STK_EV_HOLD,
        [SCN_RELEASE] = STK_EV_RELEASE, [SCN_PRIORITY] = STK_EV_UPDATE,
        [SCN_SAYS] = STK_EV_UPDATE,     [SCN_NODE_DOWN] = STK_EV_NODE_DOWN,
        [SCN_NODE_UP] = STK_EV_NODE_UP, [SCN_UNRESERVE] = STK_EV_UNRESERVE};
    struct stk_event ev = {.at = now, .type = types[step->verb]};
    const struct stk_state *s = stk_core_state(p->core);

    if (step->verb == SCN_EMPTY)
        return empty(p, loop, step, now, err);
    if (step->verb == SCN_UNRESERVE) {
        ev.job.i = STK_NONE;
        ev.u.unreserve.number = p->windows.of[step->window].number;
        ev.u.unreserve.why = STK_OVER_REMOVED;
    } else if (step->job != SCN_NONE) {
        ev.job.i = p->seen[step->job].slot;
        if (ev.job.i == STK_NONE || ev.job.i >= s->n_jobs)
            return stk_err_set(err, -EINVAL, "job %s is not there", p->s->job[step->job].name);
        ev.lease = s->jobs[ev.job.i].lease;
    }
    if (step->verb == SCN_PRIORITY || step->verb == SCN_SAYS) {
        const struct stk_job *j = &s->jobs[ev.job.i];
        const bool says = step->verb == SCN_SAYS;

        ev.u.update.priority = says ? j->priority : (int32_t)step->number;
        ev.u.update.estimate = says ? step->time : j->estimate;
    }
    if (step->verb == SCN_NODE_DOWN || step->verb == SCN_NODE_UP) {
        if (step->number > s->n_nodes)
            return stk_err_set(err, -EINVAL, "there is no node %lld", (long long)step->number);
        ev.u.node.i = (uint32_t)step->number - 1;
    }
    return stk_loop_apply(loop, &ev, err);
}

static int feed(void *ctx, struct stk_loop *loop, struct stk_core *core, stk_time now,
                struct stk_err *err)
{
    struct play *p = ctx;
    struct stk_err why;

    p->core = core;
    p->loop = loop;
    for (; p->fed < p->s->n_steps && p->s->steps[p->fed].at <= now; p->fed++) {
        const struct scn_step *step = &p->s->steps[p->fed];

        if (is_action(step->verb) && act(p, loop, step, now, &why) < 0)
            return stk_err_set(err, -EINVAL, "line %u: %.180s", step->line, why.text);
    }
    return 0;
}

/* ---- expectations ---- */

static const char *name_of(const struct play *p, uint32_t job)
{
    return job == SCN_NONE ? "(nobody)" : p->s->job[job].name;
}

static void show_nodes(const struct stk_state *s, const struct stk_job *j, char *buf, size_t size)
{
    size_t used = 0;

    for (uint32_t i = 0; i < j->n_pieces && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%u", i ? " " : "",
                                 s->pieces[j->first_piece + i].node.i + 1);
}

static const struct seen *step_job(const struct play *p, const struct scn_step *step)
{
    return &p->seen[step->job == SCN_NONE ? p->s->n_jobs : step->job]; /* the last: nobody */
}

/* The job's row while it is known; NULL: it has not come, was refused or has ended. */
static const struct stk_job *row_of(const struct play *p, uint32_t job)
{
    const struct stk_state *s = stk_core_state(p->core);
    const struct seen *j = &p->seen[job];

    if (j->slot == STK_NONE || j->end != STK_NEVER_TIME || j->slot >= s->n_jobs)
        return NULL;
    return &s->jobs[j->slot];
}

/* What has become of the job, in a few words. */
static void describe(struct play *p, uint32_t job, char *buf, size_t size)
{
    const struct seen *j = &p->seen[job];
    const struct stk_job *row = row_of(p, job);
    struct stk_reason why = {0};
    char nodes[200] = "", t[32];

    if (*j->refused)
        (void)snprintf(buf, size, "was refused: %s", j->refused);
    else if (j->end != STK_NEVER_TIME)
        (void)snprintf(buf, size, "ended at %s", scn_show_time(j->end, t));
    else if (!row)
        (void)snprintf(buf, size, "has not come yet");
    else if (row->lease && row->state != STK_JOB_STOPPING) {
        show_nodes(stk_core_state(p->core), row, nodes, sizeof(nodes));
        (void)snprintf(buf, size, "runs on node %s", nodes);
    } else if (stk_core_why(p->core, (stk_job_id){j->slot}, &why, NULL) == 0)
        (void)snprintf(buf, size, "waits: %s", stk_reason_name(why.code));
    else
        (void)snprintf(buf, size, "is %s", stk_job_state_name((enum stk_job_state)row->state));
}

static bool runs(const struct play *p, const struct scn_step *step)
{
    const struct stk_state *s = stk_core_state(p->core);
    const struct stk_job *row = row_of(p, step->job);
    uint64_t on = 0;

    if (!row || !row->lease || row->state == STK_JOB_STOPPING)
        return false;
    for (uint32_t i = 0; i < row->n_pieces; i++) {
        uint32_t node = s->pieces[row->first_piece + i].node.i;

        on |= node < 64 ? UINT64_C(1) << node : 0;
    }
    return (!step->nodes || on == step->nodes) &&
           (step->number < 0 || __builtin_popcountll(on) == step->number);
}

/* Whole GPUs, CPUs, GiB and jobs, whatever the reason counts in. */
static bool amount_is(const struct stk_reason *why, uint64_t amount, const char *value)
{
    const bool limit = why->code == STK_WHY_LIMIT || why->code == STK_WHY_QUEUE;
    const double one = !limit || why->unit == STK_UNIT_JOBS ? 1
                       : why->unit == STK_UNIT_MEM          ? 1024
                                                            : 1000;

    return (double)amount == strtod(value, NULL) * one;
}

/* One more word of a reason: "missing 4", "behind b", "of vision", "until 1h". */
static bool reason_has(const struct play *p, const struct stk_reason *why, const char *word,
                       const char *value)
{
    stk_time t;

    if (strcmp(word, "missing") == 0)
        return amount_is(why, why->missing, value);
    if (strcmp(word, "have") == 0)
        return amount_is(why, why->have, value);
    if (strcmp(word, "need") == 0)
        return amount_is(why, why->need, value);
    if (strcmp(word, "used") == 0)
        return amount_is(why, why->used, value);
    if (strcmp(word, "of") == 0)
        return why->tenant && strcmp(why->tenant, value) == 0;
    if (strcmp(word, "until") == 0)
        return scn_time(value, &t) && why->until == t;
    if (strcmp(word, "job") == 0)
        for (uint32_t i = 0; i < p->s->n_jobs; i++)
            if (strcmp(p->s->job[i].name, value) == 0)
                return why->other == p->seen[i].number;
    return false;
}

static bool waits(struct play *p, const struct scn_step *step)
{
    const struct stk_job *row = row_of(p, step->job);
    char text[sizeof(step->text)], *save = NULL, *word;
    struct stk_reason why = {0};

    if (!row || row->lease || row->state == STK_JOB_HELD)
        return false;
    if (!*step->text)
        return true;
    if (stk_core_why(p->core, (stk_job_id){p->seen[step->job].slot}, &why, NULL) < 0)
        return false;
    (void)snprintf(text, sizeof(text), "%s", step->text);
    word = strtok_r(text, " ,", &save);
    if (!word || strcmp(word, stk_reason_name(why.code)) != 0)
        return false;
    while ((word = strtok_r(NULL, " ,", &save))) {
        const char *value = strtok_r(NULL, " ,", &save);

        if (!value || !reason_has(p, &why, word, value))
            return false;
    }
    return true;
}

static bool by_then(stk_time what, const struct scn_step *step, stk_time now)
{
    return step->time == STK_NEVER_TIME ? what <= now : what == step->time;
}

static uint64_t gpus_free(const struct stk_state *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->n_pools; i++)
        n += s->pools[i].gpus_free;
    return n;
}

static bool foreseen(struct play *p, const struct scn_step *step, stk_time now, char *got,
                     size_t size)
{
    const struct stk_job *row = step->job == SCN_NONE ? NULL : row_of(p, step->job);
    const struct scn_look look = {.core = p->core,
                                  .cluster = p->cluster,
                                  .predict = p->predict,
                                  .slot = row ? p->seen[step->job].slot : STK_NONE,
                                  .now = now};

    return scn_look(&look, step, got, size);
}

static bool holds(struct play *p, const struct scn_step *step, stk_time now)
{
    char got[SCN_MAX_LINE];

    const struct stk_state *s = stk_core_state(p->core);
    const struct seen *j = step_job(p, step);
    const struct stk_job *row = row_of(p, (uint32_t)(j - p->seen));

    switch (step->verb) {
    case SCN_RUNS:
        return runs(p, step);
    case SCN_WAITS:
        return waits(p, step);
    case SCN_HELD:
        return row && row->state == STK_JOB_HELD;
    case SCN_ENDED:
        return by_then(j->end, step, now);
    case SCN_STARTED:
        return by_then(j->first_start, step, now);
    case SCN_EVICTED:
        return j->evicted == now && (step->other == SCN_NONE || j->evicted_for == step->other);
    case SCN_PREEMPTED:
        return j->preemptions == step->number;
    case SCN_MOVED:
        return j->moved == now;
    case SCN_ASLEEP:
        return row && row->slept && !row->lease;
    case SCN_STOPPING:
        return row && row->state == STK_JOB_STOPPING;
    case SCN_REFUSED:
        return *j->refused && strstr(j->refused, step->text);
    case SCN_QUIET:
        return p->moved <= step->time;
    case SCN_FREE:
        return gpus_free(s) == (uint64_t)step->number;
    case SCN_IS_EMPTY:
        return step->number <= s->n_nodes && s->nodes[step->number - 1].n_uses == 0;
    case SCN_WINDOW:
        return scn_window_is(&p->windows, s, step);
    default:
        return step->verb < SCN_DEADLINE || foreseen(p, step, now, got, sizeof(got));
    }
}

static void show_got(struct play *p, const struct scn_step *step, stk_time now, char *got,
                     size_t size)
{
    const struct seen *j = step_job(p, step);
    char t[32];

    if (step->verb >= SCN_DEADLINE) {
        (void)foreseen(p, step, now, got, size);
    } else if (step->verb == SCN_QUIET) {
        (void)snprintf(got, size, "the last start or eviction was at %s",
                       scn_show_time(p->moved, t));
    } else if (step->verb == SCN_FREE) {
        (void)snprintf(got, size, "%llu GPUs are free",
                       (unsigned long long)gpus_free(stk_core_state(p->core)));
    } else if (step->verb == SCN_IS_EMPTY) {
        (void)snprintf(got, size, "node %lld is not so", (long long)step->number);
    } else if (step->verb == SCN_WINDOW) {
        scn_window_show(&p->windows, stk_core_state(p->core), step, got, size);
    } else if (step->verb == SCN_EVICTED && j->evicted != STK_NEVER_TIME) {
        (void)snprintf(got, size, "last evicted at %s for %s", scn_show_time(j->evicted, t),
                       name_of(p, j->evicted_for));
    } else if (step->verb == SCN_PREEMPTED) {
        (void)snprintf(got, size, "was preempted %u times", j->preemptions);
    } else if (step->verb == SCN_STARTED && j->first_start != STK_NEVER_TIME) {
        (void)snprintf(got, size, "started at %s", scn_show_time(j->first_start, t));
    } else {
        describe(p, step->job, got, size);
    }
}

static void check(struct play *p, const struct scn_step *step, stk_time now)
{
    static const char *const verbs[] = {[SCN_RUNS] = "runs",
                                        [SCN_WAITS] = "waits",
                                        [SCN_HELD] = "is held",
                                        [SCN_ASLEEP] = "is asleep",
                                        [SCN_STOPPING] = "is stopping",
                                        [SCN_ENDED] = "ends",
                                        [SCN_STARTED] = "starts",
                                        [SCN_EVICTED] = "is evicted",
                                        [SCN_PREEMPTED] = "preempted",
                                        [SCN_MOVED] = "is moved",
                                        [SCN_REFUSED] = "is refused",
                                        [SCN_QUIET] = "nothing moves",
                                        [SCN_FREE] = "GPUs free",
                                        [SCN_IS_EMPTY] = "node is empty",
                                        [SCN_WINDOW] = "reservation",
                                        [SCN_DEADLINE] = "deadline",
                                        [SCN_WOULD] = "would start with",
                                        [SCN_CLAIMS] = "claims",
                                        [SCN_LENDS] = "lends"};
    char got[SCN_MAX_LINE * 2] = "", at[32];

    if (holds(p, step, now) != step->not )
        return;
    p->failed++;
    show_got(p, step, now, got, sizeof(got));
    (void)fprintf(p->out,
                  "%s:%u: in \"%s\", at %s\n    expected: %s%s%s%s%s%s%s%s\n    got:      %s\n",
                  p->file, step->line, p->s->title, scn_show_time(now, at),
                  step->job == SCN_NONE ? "" : name_of(p, step->job),
                  step->job == SCN_NONE ? "" : " ", step->not ? "not " : "", verbs[step->verb],
                  *step->text ? ": " : "", step->text, step->other == SCN_NONE ? "" : " for ",
                  step->other == SCN_NONE ? "" : name_of(p, step->other), got);
}

static int after(void *ctx, struct stk_core *core, stk_time now, struct stk_err *err)
{
    struct play *p = ctx;

    p->core = core;
    if (!stk_core_sound(core, err))
        return -EPROTO;
    if (p->loop && stk_loop_pending(p->loop))
        return 0; /* this instant is not over */
    for (; p->next_step < p->fed; p->next_step++)
        if (!is_action(p->s->steps[p->next_step].verb))
            check(p, &p->s->steps[p->next_step], now);
    if (++p->turns > MOST_TURNS)
        return stk_err_set(err, -ELOOP, "more than %d turns", MOST_TURNS);
    return p->next_step == p->s->n_steps;
}

/* ---- setting up ---- */

static int in_line(struct stk_err *err, uint32_t line)
{
    struct stk_err why = *err;

    return stk_err_set(err, -EINVAL, "line %u: %.200s", line, why.text);
}

struct world {
    struct stk_cluster cluster;
    struct stk_trace trace;
    struct stk_tenants tenants;
    struct stk_setup setup;
};

static int read_policy(const struct scenario *s, struct world *w, struct stk_err *err)
{
    const char *params[SCN_MAX_PARAMS];
    const char *word[5];
    struct stk_setup_words words = {
        .params = params, .n_params = s->n_params, .tenants = s->n_tenants > 0};

    for (uint32_t i = 0; i < s->n_params; i++)
        params[i] = s->params[i];
    for (uint32_t i = 0; i < 5; i++)
        word[i] = *s->policy[i] ? s->policy[i] : NULL;
    words.bundle = word[0];
    words.order = word[1];
    words.backfill = word[2];
    words.place = word[3];
    words.preempt = word[4];
    return stk_setup_resolve(&words, &w->setup, err);
}

static int read_all(const struct scenario *s, struct world *w, struct stk_err *err)
{
    const struct stk_trace_options jsonl = {.format = "jsonl"};
    int rc = read_policy(s, w, err);

    if (rc < 0)
        return in_line(err, s->line);
    rc = stk_cluster_parse_text(&w->cluster, "cluster", s->cluster.s, s->cluster.len, err);
    if (rc < 0)
        return in_line(err, s->cluster_line);
    if (s->jobs.len > 0)
        rc = stk_trace_parse(&w->trace, "job", s->jobs.s, s->jobs.len, &jsonl, err);
    if (rc < 0)
        return in_line(err, s->line);
    if (s->tenants.len > 0)
        rc = stk_tenants_parse(&w->tenants, "tenants", s->tenants.s, s->tenants.len, &w->cluster,
                               err);
    rc = rc < 0 || s->tenants.len == 0 ? rc : stk_tenants_match(&w->tenants, &w->trace, err);
    return rc < 0 ? in_line(err, s->tenants_line) : 0;
}

/* Jobs of one instant keep their order, but times need not have come in order. */
static int match_jobs(struct play *p, struct stk_err *err)
{
    uint32_t n = p->trace->n_jobs;

    p->seen = calloc(p->s->n_jobs + 1, sizeof(*p->seen));
    p->job_of = calloc(n + 1, sizeof(*p->job_of));
    if (!p->seen || !p->job_of || n != p->s->n_jobs)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i <= n; i++) {
        p->seen[i] = (struct seen){.slot = STK_NONE,
                                   .first_start = STK_NEVER_TIME,
                                   .end = STK_NEVER_TIME,
                                   .evicted = STK_NEVER_TIME,
                                   .moved = STK_NEVER_TIME,
                                   .evicted_for = SCN_NONE};
        p->job_of[i] = i; /* time goes on in a scenario: the trace is in order */
    }
    return 0;
}

int scn_play(const struct scenario *s, const char *file, FILE *out, struct stk_err *err)
{
    struct world *w = calloc(1, sizeof(*w));
    struct play p = {.s = s, .file = file, .out = out, .moved = -1};
    const struct stk_run_guest guest = {.ctx = &p,
                                        .next = next,
                                        .feed = feed,
                                        .event = event,
                                        .refused = refused,
                                        .refused_window = refused_window,
                                        .after = after};
    struct stk_run_options o = {.lenient = true, .last_id = UINT32_MAX, .guest = &guest};
    struct stk_run_result r = {0};
    struct stk_run_rules rules, windows;
    int rc;

    if (!w)
        return stk_err_set(err, -ENOMEM, "out of memory");
    p.trace = &w->trace;
    p.cluster = &w->cluster;
    p.predict = stk_predict_new(&stk_big_mem);
    rc = p.predict ? read_all(s, w, err) : stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : match_jobs(&p, err);
    o.split = w->cluster.pools.n > 1;
    o.tenants = s->tenants.len > 0 ? &w->tenants : NULL;
    rules = (struct stk_run_rules){.name = "rule",
                                   .text = s->rules.s,
                                   .len = s->rules.len,
                                   .zone = s->zone[0] ? s->zone : NULL};
    if (rc == 0)
        rc =
            stk_ruled_start(s->start[0] ? s->start : "2026-11-16", rules.zone, &rules.start_s, err);
    o.rules = s->rules.len > 0 ? &rules : NULL;
    windows = rules;
    windows.name = "reserve";
    windows.text = s->windows.s;
    windows.len = s->windows.len;
    o.reservations = s->windows.len > 0 ? &windows : NULL;
    if (rc == 0 && scn_windows_init(&p.windows, s) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : stk_sim_run(&w->trace, &w->cluster, &w->setup, &o, &r, err);
    if (rc == 0)
        stk_run_result_done(&r);
    if (rc == 0 && p.next_step < s->n_steps)
        rc = stk_err_set(err, -EPROTO, "line %u was never reached", s->steps[p.next_step].line);
    free(p.windows.of);
    stk_predict_free(p.predict);
    free(p.seen);
    free(p.job_of);
    stk_tenants_free(&w->tenants);
    stk_trace_done(&w->trace);
    stk_cluster_done(&w->cluster);
    free(w);
    return rc < 0 ? rc : p.failed;
}
