/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - the job object. What the core knows comes from its row, the rest from the record; what
 * only its owner may see comes from the description, and only when asked for. */
#include "api/show.h"

#include <stdio.h>
#include <string.h>

#include "api/logpath.h"
#include "api/say.h"
#include "api/spent.h"
#include "core/state.h"
#include "model/mig.h"
#include "model/reason.h"

#define MAX_PAGE_BYTES ((size_t)8 << 20)

static const char *const cause_words[STK_CAUSE_MAX] = {
    [STK_CAUSE_NONE] = "",
    [STK_CAUSE_OK] = "completed",
    [STK_CAUSE_FAILED] = "failed",
    [STK_CAUSE_SIGNAL] = "killed",
    [STK_CAUSE_OOM] = "out_of_memory",
    [STK_CAUSE_TIMEOUT] = "timeout",
    [STK_CAUSE_NODE_LOST] = "node_lost",
    [STK_CAUSE_NOT_STARTED] = "not_started",
    [STK_CAUSE_EVICTED] = "evicted",
    [STK_CAUSE_CANCELLED] = "cancelled",
    [STK_CAUSE_DEPENDENCY] = "dependency_failed",
    [STK_CAUSE_GPU] = "gpu_error",
    [STK_CAUSE_UNKNOWN] = "lost",
};

const char *stk_show_cause(enum stk_cause c)
{
    return (unsigned)c < STK_CAUSE_MAX ? cause_words[c] : "lost";
}

enum stk_cause stk_show_cause_of(const char *word)
{
    for (int c = STK_CAUSE_OK; c < STK_CAUSE_MAX; c++)
        if (strcmp(cause_words[c], word) == 0)
            return (enum stk_cause)c;
    return STK_CAUSE_NONE;
}

const char *stk_show_state(const struct stk_job *j)
{
    switch ((enum stk_job_state)j->state) {
    case STK_JOB_HELD:
        return j->slept ? "suspended" : "held";
    case STK_JOB_BLOCKED:
        return "blocked";
    case STK_JOB_WAITING:
        return j->slept ? "suspended" : "waiting";
    case STK_JOB_PLACED:
        return "starting";
    case STK_JOB_RUNNING:
        return "running";
    case STK_JOB_STOPPING:
        return "stopping";
    case STK_JOB_NONE:
    case STK_JOB_DONE:
    case STK_JOB_STATE_MAX:
        break;
    }
    return "done";
}

bool stk_show_is_state(const char *word)
{
    static const char *const states[] = {"held",    "blocked",   "waiting", "starting",
                                         "running", "suspended", "stopping"};

    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (strcmp(states[i], word) == 0)
            return true;
    return false;
}

json_t *stk_show_time(stk_time t)
{
    return t > 0 ? json_real((double)t / 1e6) : json_null();
}

/* Text from outside need not be valid UTF-8; JSON must be. */
static json_t *text(const char *s)
{
    json_t *j = json_string(s ? s : "");
    char copy[4096];

    if (j)
        return j;
    (void)snprintf(copy, sizeof(copy), "%s", s);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    return json_string(copy);
}

static void set(json_t *o, const char *key, json_t *take)
{
    (void)json_object_set_new(o, key, take);
}

static void set_end(json_t *o, const struct stk_record *rec)
{
    bool ended = rec->ended > 0;
    bool code = ended && (rec->cause == STK_CAUSE_OK || rec->cause == STK_CAUSE_FAILED);

    set(o, "ended", stk_show_time(rec->ended));
    set(o, "cause", ended ? json_string(stk_show_cause(rec->cause)) : json_null());
    set(o, "exit_code", code ? json_integer(rec->code) : json_null());
    set(o, "signal",
        ended && rec->cause == STK_CAUSE_SIGNAL ? json_integer(rec->code) : json_null());
}

void stk_show_element(json_t *o, const struct stk_record *rec)
{
    set(o, "array_id", rec->array ? json_integer(rec->array) : json_null());
    set(o, "array_index", rec->array ? json_integer(rec->array_index) : json_null());
}

json_t *stk_show_gpus(uint64_t gpus, uint32_t milli)
{
    return milli ? json_real((double)gpus * milli / 1000) : json_integer((json_int_t)gpus);
}

/* What both kinds have. */
static json_t *common(const struct stk_record *rec)
{
    json_t *o = json_object();

    if (!o)
        return NULL;
    set(o, "id", json_integer(rec->number));
    set(o, "name", text(rec->name));
    set(o, "user", text(rec->user));
    set(o, "uid", json_integer(rec->uid));
    set(o, "queue", text(rec->queue));
    set(o, "tenant", rec->tenant && *rec->tenant ? text(rec->tenant) : json_null());
    set(o, "state", json_string("done"));
    set(o, "state_text", json_string(""));
    set(o, "kind", json_string(stk_kind_name(rec->kind)));
    set(o, "gpus", stk_show_gpus(rec->gpus, rec->gpu_milli));
    set(o, "tasks", json_integer(rec->tasks));
    set(o, "submitted", stk_show_time(rec->submitted));
    set(o, "started", stk_show_time(rec->started));
    set_end(o, rec);
    set(o, "run_s", json_real((double)rec->served / 1e6));
    set(o, "restarts", json_integer(rec->restarts));
    set(o, "preemptions", json_integer(rec->preemptions));
    stk_show_element(o, rec);
    set(o, "comment", text(rec->comment));
    set(o, "note", rec->note && *rec->note ? text(rec->note) : json_null());
    return o;
}

json_t *stk_show_indices(uint64_t mask)
{
    json_t *list = json_array();

    for (; mask; mask &= mask - 1)
        (void)json_array_append_new(list, json_integer(__builtin_ctzll(mask)));
    return list;
}

json_t *stk_show_pieces(const struct stk_api *a, const struct stk_piece *pieces, uint32_t n)
{
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s,s:o}", "node", cfg->nodes[pieces[i].node.i].name, "gpu_indices",
                            stk_show_indices(pieces[i].mask)));
    return list;
}

static void set_place(const struct stk_show *v, json_t *o, const struct stk_state *s,
                      const struct stk_job *j)
{
    const struct stk_live_config *cfg = stk_live_config(v->api->cfg.live);
    json_t *gpus = json_array();
    uint32_t n = j->lease ? j->n_pieces : 0;

    for (uint32_t i = 0; i < n; i++)
        for (uint64_t m = s->pieces[j->first_piece + i].mask; m; m &= m - 1)
            (void)json_array_append_new(gpus, json_integer(__builtin_ctzll(m)));
    set(o, "gpu_indices", gpus);
    set(o, "pieces", stk_show_pieces(v->api, &s->pieces[j->first_piece], n));
    set(o, "node", n > 0 ? text(cfg->nodes[s->pieces[j->first_piece].node.i].name) : json_null());
}

/* Other jobs that have part of the same GPUs. */
static json_t *neighbours(const struct stk_state *s, const struct stk_job *j)
{
    json_t *list = json_array();

    for (uint32_t i = 0; j->lease && i < s->n_jobs; i++) {
        const struct stk_job *o = &s->jobs[i];
        bool meets = false;

        for (uint32_t p = 0; o->lease && o != j && p < o->n_pieces; p++)
            for (uint32_t q = 0; q < j->n_pieces; q++) {
                const struct stk_piece *a = &s->pieces[o->first_piece + p],
                                       *b = &s->pieces[j->first_piece + q];

                meets |= a->node.i == b->node.i && (a->mask & b->mask) != 0;
            }
        if (meets)
            (void)json_array_append_new(list, json_integer(o->number));
    }
    return list;
}

/* What it has of each GPU; who else is there is looked up for one job, not for a list of them. */
static void set_part(const struct stk_show *v, json_t *o, const struct stk_state *s,
                     const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    char profile[STK_MIG_NAME_LEN];
    json_t *part;

    if (!d->gpu_milli)
        return;
    part = json_pack("{s:o,s:o,s:s,s:o,s:o}", "gpus", json_real(d->gpu_milli / 1000.0), "mem_mib",
                     d->gpu_mem_mib ? json_integer(d->gpu_mem_mib) : json_null(), "share",
                     d->mig ? "mig" : stk_share_name((enum stk_share)d->share), "share_max",
                     d->share_max ? json_integer(d->share_max) : json_null(), "mig",
                     d->mig ? json_string(stk_mig_name(d->mig, profile)) : json_null());
    if (v->detail)
        set(part, "with", neighbours(s, j));
    set(o, "part", part);
}

const char *stk_show_name(const struct stk_api *a, stk_job_number number, char *buf, size_t size)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, number);

    if (e && e->rec.array)
        (void)snprintf(buf, size, "%u_%u", e->rec.array, e->rec.array_index);
    else
        (void)snprintf(buf, size, "%u", number);
    return buf;
}

/* The limit is kept by a dependency on the element so many places before (live/submit.c). */
uint32_t stk_show_at_once(struct stk_api *a, const struct stk_entry *e, const struct stk_reason *w)
{
    json_t *spec;
    uint32_t n;

    if (w->code != STK_WHY_DEPENDENCY || w->missing != 1 || !e->rec.array)
        return 0;
    if (a->array_limit.array != e->rec.array) {
        spec = stk_live_spec(a->cfg.live, e->rec.spec);
        a->array_limit.array = e->rec.array;
        a->array_limit.at_once =
            (uint32_t)json_integer_value(json_object_get(json_object_get(spec, "array"), "limit"));
        json_decref(spec);
    }
    n = a->array_limit.at_once;
    return n > 0 && e->number - e->rec.array >= n && stk_live_entry(a->cfg.live, e->number - n) ? n
                                                                                                : 0;
}

static void set_reason(const struct stk_show *v, json_t *o, const struct stk_entry *e,
                       uint32_t slot)
{
    struct stk_core *core = stk_live_core(v->api->cfg.live);
    const struct stk_job *j = &stk_core_state(core)->jobs[slot];
    char sentence[256], other[32];
    struct stk_say say = {.number = j->number,
                          .tasks = 1,
                          .now = stk_api_now(v->api),
                          .asleep = j->slept != 0,
                          .demand = &stk_core_state(core)->shapes[j->shape].demand,
                          .other = other};
    const struct stk_reason *w = &say.why;
    stk_job_number last;

    if (stk_live_schedule(v->api->cfg.live, j->number, &say.next, &last))
        set(o, "schedule",
            json_pack("{s:o,s:o}", "next", stk_show_time(say.next), "last_job",
                      last ? json_integer(last) : json_null()));
    if (stk_core_why(core, (stk_job_id){slot}, &say.why, NULL) < 0)
        return;
    (void)stk_show_name(v->api, w->other, other, sizeof(other));
    say.at_once = stk_show_at_once(v->api, e, w);
    if (w->code == STK_WHY_RESOURCE)
        say.resource = stk_core_state(core)->resource_names[w->resource];
    say.booking = stk_live_reservation_name(v->api->cfg.live, w->booking);
    stk_say_why(&say, sentence, sizeof(sentence));
    set(o, "state_text", json_string(sentence));
    set(o, "reason",
        json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o}", "code", stk_say_code(&say), "sentence",
                  sentence, "need", (json_int_t)w->need, "have", (json_int_t)w->have, "missing",
                  (json_int_t)w->missing, "off", (json_int_t)w->off, "other",
                  w->other ? json_integer(w->other) : json_null(), "until",
                  stk_show_time(w->until)));
    stk_show_limit(json_object_get(o, "reason"), w);
}

json_t *stk_show_turn(const struct stk_api *a, const struct stk_job *j)
{
    const struct stk_api_config *c = &a->cfg;
    const struct stk_state *s = stk_core_state(stk_live_core(c->live));

    if (!j->lease || !c->turn || s->shapes[j->shape].demand.share != STK_SHARE_TIME)
        return NULL;
    return c->turn(c->ctx, j->number);
}

static void set_turn(const struct stk_show *v, json_t *o, const struct stk_job *j)
{
    json_t *turn = stk_show_turn(v->api, j);

    if (!turn)
        return;
    if (j->state == STK_JOB_PLACED)
        (void)json_object_set(o, "state_text", json_object_get(turn, "text"));
    set(o, "turn", turn);
}

static void say_running(const struct stk_job *j, stk_time now, char *buf, size_t size)
{
    char span[40];

    stk_say_span(now > j->started ? now - j->started : 0, span, sizeof(span));
    if (j->state == STK_JOB_STOPPING)
        (void)snprintf(buf, size, "is being stopped%s",
                       j->cancel_wanted ? " (cancelled)"
                       : j->by_hand     ? ""
                                        : " to make room");
    else if (j->state == STK_JOB_PLACED)
        (void)snprintf(buf, size, "is being started");
    else
        (void)snprintf(buf, size, "has run for %s", span);
}

/* Secrets show only their names. */
static void hide_secrets(json_t *spec)
{
    json_t *secrets = json_object_get(spec, "secrets"), *names = json_array(), *unused;
    const char *name;

    json_object_foreach(secrets, name, unused)
    {
        (void)json_array_append_new(names, json_string(name));
    }
    if (secrets)
        (void)json_object_set(spec, "secrets", names);
    json_decref(names);
}

/* The description, for those who may see it; its time limit for all. */
static void set_description(const struct stk_show *v, json_t *o, const struct stk_record *rec)
{
    static const char *const top[] = {"command", "script", "args", "workdir", "envs"};
    json_t *spec = stk_live_spec(v->api->cfg.live, rec->spec), *copy;
    json_t *limit = json_object_get(spec, "time_limit_s");
    char path[4096];

    set(o, "time_limit_s", limit ? json_incref(limit) : json_null());
    if (json_object_get(spec, "resources"))
        set(o, "resources", json_incref(json_object_get(spec, "resources")));
    copy = spec && v->who && stk_live_may(v->who, rec->uid) ? json_deep_copy(spec) : NULL;
    json_decref(spec);
    if (!copy)
        return;
    if (stk_logpath(v->api, &(struct stk_logpath){rec, copy, false, 0}, path, sizeof(path)) == 0)
        set(o, "stdout", text(path));
    if (stk_logpath(v->api, &(struct stk_logpath){rec, copy, true, 0}, path, sizeof(path)) == 0)
        set(o, "stderr", text(path));
    hide_secrets(copy);
    if (!v->env)
        (void)json_object_del(copy, "envs");
    for (size_t i = 0; i < sizeof(top) / sizeof(*top); i++)
        if (json_object_get(copy, top[i]))
            (void)json_object_set(o, top[i], json_object_get(copy, top[i]));
    set(o, "spec", copy);
}

json_t *stk_show_items(struct stk_live *live, const struct stk_record *rec)
{
    uint32_t n[STK_ITEM_STATE_MAX];
    json_int_t total = 0;

    if (stk_live_item_counts(live, rec, n) < 0)
        return NULL;
    for (int i = 0; i < STK_ITEM_STATE_MAX; i++)
        total += n[i];
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "total", total, "todo", (json_int_t)n[STK_ITEM_TODO],
                     "given", (json_int_t)n[STK_ITEM_GIVEN], "done", (json_int_t)n[STK_ITEM_DONE],
                     "failed", (json_int_t)n[STK_ITEM_FAILED]);
}

static void set_items(const struct stk_show *v, json_t *o, const struct stk_record *rec)
{
    json_t *items = stk_show_items(v->api->cfg.live, rec);

    if (items)
        set(o, "items", items);
}

static void set_private(const struct stk_show *v, json_t *o, const struct stk_record *rec)
{
    if (v->who && stk_live_may(v->who, rec->uid) && rec->stdout_path && *rec->stdout_path) {
        set(o, "stdout", text(rec->stdout_path));
        set(o, "stderr", text(rec->stderr_path));
    }
    if (v->detail)
        set_description(v, o, rec);
}

/* Its number where it runs, when that has numbers of its own. */
static void set_theirs(const struct stk_show *v, json_t *o, const struct stk_record *rec)
{
    const struct stk_api_config *c = &v->api->cfg;
    char id[32] = "";

    if (c->theirs)
        c->theirs(c->ctx, rec, v->detail, id, sizeof(id));
    if (id[0])
        set(o, "slurm", json_pack("{s:s}", "id", id));
}

static void set_core(const struct stk_show *v, json_t *o, const struct stk_entry *e)
{
    const struct stk_core *core = stk_live_core(v->api->cfg.live);
    const struct stk_state *s = stk_core_state(core);
    uint32_t slot = stk_core_find(core, e->number);
    stk_time now = stk_api_now(v->api);
    const struct stk_job *j;
    char sentence[200];

    if (slot == STK_NONE)
        return;
    j = &s->jobs[slot];
    set(o, "state", json_string(stk_show_state(j)));
    set(o, "priority", json_integer(j->priority));
    set(o, "tier", json_string(stk_tier_name((enum stk_tier)j->tier)));
    set(o, "estimate_s", json_real((double)stk_live_asked(s, slot) / 1e6));
    set(o, "expected_run_s", j->estimate > 0 ? json_real((double)j->estimate / 1e6) : json_null());
    set(o, "run_s", json_real((double)stk_job_served(j, now) / 1e6));
    set(o, "preemptions", json_integer(j->preemptions));
    set(o, "restarts", json_integer(j->restarts));
    set_place(v, o, s, j);
    set_part(v, o, s, j);
    if (j->lease) {
        stk_time left = j->expected_end - now;

        say_running(j, now, sentence, sizeof(sentence));
        set(o, "state_text", json_string(sentence));
        set(o, "expected_end", left > 0 ? stk_show_time(now + left) : json_null());
        set_turn(v, o, j);
    } else {
        set_reason(v, o, e, slot);
        stk_show_position(v->api, o, slot);
    }
    stk_show_outlook(v->api, o, e->number);
}

json_t *stk_show_live(const struct stk_show *v, const struct stk_entry *e)
{
    json_t *o = common(&e->rec);

    if (!o)
        return NULL;
    set_core(v, o, e);
    set_items(v, o, &e->rec);
    stk_spent_set(v, o, &e->rec, (stk_time)(json_number_value(json_object_get(o, "run_s")) * 1e6));
    if (e->note && *e->note)
        set(o, "note", text(e->note));
    for (int i = STK_WARN_MAX - 1; i >= 0; i--)
        if (e->warning[i])
            set(o, "warning", text(e->warning[i]));
    if (e->progress)
        (void)json_object_set(o, "progress", e->progress);
    set_private(v, o, &e->rec);
    set_theirs(v, o, &e->rec);
    if (v->detail && v->api->cfg.detail && v->who && stk_live_may(v->who, e->rec.uid))
        v->api->cfg.detail(v->api->cfg.ctx, e->number, o);
    return o;
}

json_t *stk_show_record(const struct stk_show *v, const struct stk_record *rec)
{
    json_t *o = common(rec);
    char whole[800];

    if (!o)
        return NULL;
    stk_say_ended(rec, whole, sizeof(whole));
    set(o, "state_text", text(whole));
    set_items(v, o, rec);
    stk_spent_set(v, o, rec, rec->served);
    set_private(v, o, rec);
    set_theirs(v, o, rec);
    return o;
}

bool stk_show_full(const struct stk_show *v, const json_t *job, size_t *bytes)
{
    if (v->detail)
        *bytes += json_dumpb(job, NULL, 0, JSON_COMPACT);
    return *bytes >= MAX_PAGE_BYTES;
}

struct found {
    const struct stk_show *v;
    json_t *job;
};

static int on_record(void *ctx, const struct stk_record *rec)
{
    struct found *f = ctx;

    f->job = stk_show_record(f->v, rec);
    return f->job ? 1 : -ENOMEM;
}

json_t *stk_show_number(const struct stk_show *v, stk_job_number number, int *ret_rc,
                        struct stk_err *err)
{
    const struct stk_entry *e = stk_live_entry(v->api->cfg.live, number);
    struct found f = {v, NULL};

    if (e) {
        f.job = stk_show_live(v, e);
        *ret_rc = f.job ? 0 : -ENOMEM;
        return f.job;
    }
    *ret_rc = stk_store_job_get(stk_live_store(v->api->cfg.live), number, on_record, &f, err);
    if (*ret_rc == -ENOENT || (*ret_rc == 0 && !f.job))
        *ret_rc = stk_err_set(err, -ENOENT, "there is no job %u", number);
    return f.job;
}
