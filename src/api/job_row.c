/* SPDX-License-Identifier: Apache-2.0 */
/* job_row.c - the job object, as text. What the core knows comes from its row, the rest from the
 * record; what only its owner may see comes from the description, and only when asked for
 * (job_detail.c). Each member is written once, so what it depends on is found first. */
#include <stdio.h>

#include "api/job_row.h"
#include "api/say.h"
#include "core/state.h"
#include "model/mig.h"
#include "sys/json.h"

/* The state in words, and for a job that waits why. */
struct words {
    char sentence[800], other[32];
    struct stk_say say;
    bool has_reason;
    json_t *turn; /* NULL: it has no turns */
};

static void write_time(struct stk_writer *w, const char *key, stk_time t)
{
    if (t > 0 && t != STK_NEVER_TIME)
        stk_write_millionths(w, key, t);
    else
        stk_write_null(w, key);
}

/* ---- words ---- */

static void explain_waiting(const struct stk_job_row *r, struct words *x)
{
    struct stk_core *core = stk_live_core(r->v->api->cfg.live);
    const struct stk_state *s = stk_core_state(core);
    struct stk_say *say = &x->say;

    *say = (struct stk_say){.number = r->job->number,
                            .tasks = 1,
                            .now = r->now,
                            .ahead = stk_api_ahead(r->v->api),
                            .next = r->next,
                            .asleep = r->job->slept != 0,
                            .lent = r->job->slept != 0 && r->e && r->e->lent,
                            .demand = &s->shapes[r->job->shape].demand,
                            .other = x->other};
    if (stk_core_why(core, (stk_job_id){r->slot}, &say->why, NULL) < 0)
        return;
    (void)stk_show_name(r->v->api, say->why.other, x->other, sizeof(x->other));
    say->at_once = stk_show_at_once(r->v->api, r->e, &say->why);
    if (say->why.code == STK_WHY_RESOURCE)
        say->resource = s->resource_names[say->why.resource];
    say->booking = stk_live_reservation_name(r->v->api->cfg.live, say->why.booking);
    stk_say_why(say, x->sentence, 256);
    x->has_reason = true;
}

static void explain_leased(const struct stk_job_row *r, struct words *x)
{
    const struct stk_job *j = r->job;
    char span[40];

    x->turn = stk_show_turn(r->v->api, j);
    stk_say_span(r->now > j->started ? r->now - j->started : 0, span, sizeof(span));
    if (j->state == STK_JOB_STOPPING)
        (void)snprintf(x->sentence, sizeof(x->sentence), "is being stopped%s",
                       j->cancel_wanted ? " (cancelled)"
                       : j->by_hand     ? ""
                                        : " to make room");
    else if (j->state == STK_JOB_PLACED && x->turn)
        (void)snprintf(x->sentence, sizeof(x->sentence), "%s", stk_str(x->turn, "text"));
    else if (j->state == STK_JOB_PLACED)
        (void)snprintf(x->sentence, sizeof(x->sentence), "is being started");
    else
        (void)snprintf(x->sentence, sizeof(x->sentence), "has run for %s", span);
}

static void explain(const struct stk_job_row *r, struct words *x)
{
    x->sentence[0] = '\0';
    x->has_reason = false;
    x->turn = NULL;
    if (!r->e)
        stk_say_ended(r->rec, x->sentence, sizeof(x->sentence));
    else if (r->job && r->job->lease)
        explain_leased(r, x);
    else if (r->job)
        explain_waiting(r, x);
}

static void write_reason(struct stk_writer *w, const struct words *x)
{
    const struct stk_reason *why = &x->say.why;
    json_t *limit;

    if (!x->has_reason)
        return;
    stk_write_open(w, "reason", '{');
    stk_write_text(w, "code", stk_say_code(&x->say));
    stk_write_text(w, "sentence", x->sentence);
    stk_write_number(w, "need", (int64_t)why->need);
    stk_write_number(w, "have", (int64_t)why->have);
    stk_write_number(w, "missing", (int64_t)why->missing);
    stk_write_number(w, "off", (int64_t)why->off);
    if (why->other)
        stk_write_number(w, "other", why->other);
    else
        stk_write_null(w, "other");
    write_time(w, "until", why->until);
    limit = stk_show_limit(why);
    if (limit)
        stk_write_json(w, "limit", limit);
    stk_write_close(w, '}');
}

/* ---- what the record has ---- */

static void write_end(const struct stk_job_row *r, struct stk_writer *w)
{
    const struct stk_record *rec = r->rec;
    const bool ended = rec->ended > 0;

    write_time(w, "ended", rec->ended);
    if (ended)
        stk_write_text(w, "cause", stk_show_cause(rec->cause));
    else
        stk_write_null(w, "cause");
    if (ended && (rec->cause == STK_CAUSE_OK || rec->cause == STK_CAUSE_FAILED))
        stk_write_number(w, "exit_code", rec->code);
    else
        stk_write_null(w, "exit_code");
    if (ended && rec->cause == STK_CAUSE_SIGNAL)
        stk_write_number(w, "signal", rec->code);
    else
        stk_write_null(w, "signal");
}

static void write_times(const struct stk_job_row *r, struct stk_writer *w)
{
    const struct stk_job *j = r->job;

    write_time(w, "submitted", r->rec->submitted);
    write_time(w, "started", r->rec->started);
    write_end(r, w);
    stk_write_millionths(w, "run_s", j ? stk_job_served(j, r->now) : r->rec->served);
    stk_write_millionths(w, "waited_s",
                         j ? stk_live_waited(r->v->api->cfg.live, r->e, r->now) : r->rec->waited);
    stk_write_number(w, "restarts", j ? j->restarts : r->rec->restarts);
    stk_write_number(w, "preemptions", j ? j->preemptions : r->rec->preemptions);
}

static void write_text_or_null(struct stk_writer *w, const char *key, const char *text)
{
    if (text && *text)
        stk_write_text(w, key, text);
    else
        stk_write_null(w, key);
}

static void write_element(struct stk_writer *w, const struct stk_record *rec)
{
    if (rec->array) {
        stk_write_number(w, "array_id", rec->array);
        stk_write_number(w, "array_index", rec->array_index);
    } else {
        stk_write_null(w, "array_id");
        stk_write_null(w, "array_index");
    }
}

static void write_record(const struct stk_job_row *r, struct stk_writer *w, const struct words *x)
{
    const struct stk_record *rec = r->rec;

    stk_write_number(w, "id", rec->number);
    stk_write_text(w, "name", rec->name);
    stk_write_text(w, "user", rec->user);
    stk_write_number(w, "uid", rec->uid);
    stk_write_text(w, "queue", rec->queue);
    write_text_or_null(w, "tenant", rec->tenant);
    stk_write_text(w, "state", r->job ? stk_show_state(r->job) : "done");
    stk_write_text(w, "state_text", x->sentence);
    stk_write_text(w, "kind", stk_kind_name(rec->kind));
    if (rec->gpu_milli)
        stk_write_millionths(w, "gpus", (int64_t)(1000 * (uint64_t)rec->gpus * rec->gpu_milli));
    else
        stk_write_number(w, "gpus", rec->gpus);
    stk_write_number(w, "tasks", rec->tasks);
    write_times(r, w);
    write_element(w, rec);
    stk_write_text(w, "comment", rec->comment);
    write_text_or_null(w, "note", r->e && r->e->note && *r->e->note ? r->e->note : rec->note);
}

/* ---- what the core has ---- */

static void write_indices(struct stk_writer *w, uint64_t mask)
{
    for (; mask; mask &= mask - 1)
        stk_write_number(w, NULL, __builtin_ctzll(mask));
}

static void write_place(const struct stk_job_row *r, struct stk_writer *w)
{
    const struct stk_live_config *cfg = stk_live_config(r->v->api->cfg.live);
    const struct stk_state *s = stk_core_state(stk_live_core(r->v->api->cfg.live));
    const uint32_t n = r->job->lease ? r->job->n_pieces : 0;
    const struct stk_piece *pieces = n > 0 ? &s->pieces[r->job->first_piece] : NULL;

    stk_write_open(w, "gpu_indices", '[');
    for (uint32_t i = 0; i < n; i++)
        write_indices(w, pieces[i].mask);
    stk_write_close(w, ']');
    stk_write_open(w, "pieces", '[');
    for (uint32_t i = 0; i < n; i++) {
        stk_write_open(w, NULL, '{');
        stk_write_text(w, "node", cfg->nodes[pieces[i].node.i].name);
        stk_write_open(w, "gpu_indices", '[');
        write_indices(w, pieces[i].mask);
        stk_write_close(w, ']');
        stk_write_close(w, '}');
    }
    stk_write_close(w, ']');
    write_text_or_null(w, "node", n > 0 ? cfg->nodes[pieces[0].node.i].name : NULL);
}

/* Other jobs that have part of the same GPUs. */
static void write_neighbours(struct stk_writer *w, const struct stk_state *s,
                             const struct stk_job *j)
{
    stk_write_open(w, "with", '[');
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
            stk_write_number(w, NULL, o->number);
    }
    stk_write_close(w, ']');
}

static void write_number_or_null(struct stk_writer *w, const char *key, uint32_t number)
{
    if (number)
        stk_write_number(w, key, number);
    else
        stk_write_null(w, key);
}

/* What it has of each GPU; who else is there is looked up for one job, not for a list of them. */
static void write_part(const struct stk_job_row *r, struct stk_writer *w)
{
    const struct stk_state *s = stk_core_state(stk_live_core(r->v->api->cfg.live));
    const struct stk_demand *d = &s->shapes[r->job->shape].demand;
    char profile[STK_MIG_NAME_LEN];

    if (!d->gpu_milli)
        return;
    stk_write_open(w, "part", '{');
    stk_write_millionths(w, "gpus", INT64_C(1000) * d->gpu_milli);
    write_number_or_null(w, "mem_mib", d->gpu_mem_mib);
    stk_write_text(w, "share", d->mig ? "mig" : stk_share_name((enum stk_share)d->share));
    write_number_or_null(w, "share_max", d->share_max);
    write_text_or_null(w, "mig", d->mig ? stk_mig_name(d->mig, profile) : NULL);
    if (r->v->detail)
        write_neighbours(w, s, r->job);
    stk_write_close(w, '}');
}

static void write_schedule(const struct stk_job_row *r, struct stk_writer *w)
{
    if (!r->scheduled)
        return;
    stk_write_open(w, "schedule", '{');
    write_time(w, "next", r->next);
    write_number_or_null(w, "last_job", r->last_job);
    stk_write_close(w, '}');
}

static void write_outlook(const struct stk_job_row *r, struct stk_writer *w, struct words *x)
{
    const struct stk_job *j = r->job;
    const uint32_t place = j->lease ? 0 : stk_line_place(r->v->api, r->slot);
    json_t *outlook;

    if (j->lease)
        write_time(w, "expected_end", j->expected_end > r->now ? j->expected_end : 0);
    if (x->turn)
        stk_write_json(w, "turn", x->turn);
    write_schedule(r, w);
    write_reason(w, x);
    if (place > 0)
        stk_write_number(w, "position", place);
    outlook = stk_show_outlook(r->v->api, r->rec->number);
    if (outlook)
        stk_write_members(w, outlook);
}

static void write_core(const struct stk_job_row *r, struct stk_writer *w, struct words *x)
{
    const struct stk_job *j = r->job;
    const struct stk_state *s = stk_core_state(stk_live_core(r->v->api->cfg.live));

    stk_write_number(w, "priority", j->priority);
    stk_write_text(w, "tier", stk_tier_name((enum stk_tier)j->tier));
    stk_write_millionths(w, "estimate_s", stk_live_asked(s, r->slot));
    write_time(w, "expected_run_s", j->estimate);
    write_place(r, w);
    write_part(r, w);
    write_outlook(r, w, x);
}

/* ---- */

static void write_entry(const struct stk_job_row *r, struct stk_writer *w)
{
    int i = 0;

    while (i < STK_WARN_MAX && !r->e->warning[i])
        i++;
    if (i < STK_WARN_MAX)
        stk_write_text(w, "warning", r->e->warning[i]);
    if (r->e->progress)
        stk_write_json(w, "progress", json_incref(r->e->progress));
}

static void write_job(struct stk_job_row *r, struct stk_writer *w)
{
    struct words x;
    json_t *items;

    r->now = stk_api_now(r->v->api);
    explain(r, &x);
    stk_write_open(w, NULL, '{');
    write_record(r, w, &x);
    if (r->job)
        write_core(r, w, &x);
    items = stk_show_items(r->v->api->cfg.live, r->rec);
    if (items)
        stk_write_json(w, "items", items);
    if (r->e)
        write_entry(r, w);
    stk_job_row_private(r, w);
    stk_write_close(w, '}');
}

void stk_show_live(const struct stk_show *v, struct stk_writer *w, const struct stk_entry *e)
{
    const struct stk_core *core = stk_live_core(v->api->cfg.live);
    struct stk_job_row r = {.v = v, .rec = &e->rec, .e = e, .slot = stk_core_find(core, e->number)};

    if (r.slot != STK_NONE)
        r.job = &stk_core_state(core)->jobs[r.slot];
    if (r.job && r.job->state == STK_JOB_HELD)
        r.scheduled = stk_live_schedule(v->api->cfg.live, e->number, &r.next, &r.last_job);
    write_job(&r, w);
}

void stk_show_record(const struct stk_show *v, struct stk_writer *w, const struct stk_record *rec)
{
    struct stk_job_row r = {.v = v, .rec = rec, .slot = STK_NONE};

    write_job(&r, w);
}

struct found {
    const struct stk_show *v;
    struct stk_writer *w;
    bool any;
};

static int on_record(void *ctx, const struct stk_record *rec)
{
    struct found *f = ctx;

    stk_show_record(f->v, f->w, rec);
    f->any = true;
    return 1;
}

int stk_show_number(const struct stk_show *v, struct stk_writer *w, stk_job_number number,
                    struct stk_err *err)
{
    const struct stk_entry *e = stk_live_entry(v->api->cfg.live, number);
    struct found f = {v, w, e != NULL};
    int rc = 0;

    if (e)
        stk_show_live(v, w, e);
    else if (!stk_live_hides(v->api->cfg.live, number))
        rc = stk_store_job_get(stk_live_store(v->api->cfg.live), number, on_record, &f, err);
    if (rc == -ENOENT || (rc >= 0 && !f.any))
        return stk_err_set(err, -ENOENT, "there is no job %u", number);
    return rc < 0 ? rc : w->starved ? stk_err_set(err, -ENOMEM, "out of memory") : 0;
}

json_t *stk_show_tree(struct stk_writer *take)
{
    json_t *o = take->starved ? NULL : stk_json_load(take->text, take->len, 0, NULL);

    stk_writer_done(take);
    return o;
}
