/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c - taking over what an earlier daemon has started.
 *
 * For each job of the list the run folder is asked what became of it; run files nobody asked for
 * belong to strays, which are ended. No job is started while a stray lives: its GPUs may be the
 * stray's. The cases are in docs/spec/local-engine.md. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/local/inner.h"

struct found { /* a run file */
    stk_job_number number;
    stk_lease_id launch;
    struct stk_run run;
    bool locked, taken;
};

struct folder {
    struct found *list;
    size_t n, cap;
};

void stk_local_replay_item(void *ctx, const json_t *rec)
{
    const char *ev = json_string_value(json_object_get(rec, "ev"));
    struct stk_local_job *j = ctx;
    const struct stk_local_config *c = &j->m->cfg;

    if (ev && strcmp(ev, "item_done") == 0 && c->item_done)
        c->item_done(c->ctx, j->number, (uint32_t)json_integer_value(json_object_get(rec, "item")),
                     (int)json_integer_value(json_object_get(rec, "code")),
                     (int)json_integer_value(json_object_get(rec, "signal")));
}

/* "12.34" is a run file; anything else is not. */
static bool parse_name(const char *name, struct found *f)
{
    char *end;
    unsigned long number = strtoul(name, &end, 10), launch;

    if (name[0] < '1' || name[0] > '9' || *end != '.' || end[1] < '0' || end[1] > '9')
        return false;
    launch = strtoul(end + 1, &end, 10);
    f->number = (stk_job_number)number;
    f->launch = (stk_lease_id)launch;
    return *end == 0 && number < UINT32_MAX && launch < UINT32_MAX;
}

static int scan(struct stk_local *m, struct folder *d, struct stk_err *err)
{
    int fd = dup(m->run_dir);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *de;

    if (!dir)
        return stk_err_set(err, -errno, "cannot read the run folder: %s", strerror(errno));
    rewinddir(dir);
    /* cppcheck-suppress readdirCalled ; nobody else reads this stream */
    while ((de = readdir(dir))) {
        struct found f = {0};

        if (!parse_name(de->d_name, &f) ||
            stk_run_read(m->run_dir, de->d_name, &f.run, &f.locked, NULL, NULL) < 0)
            continue;
        if (d->n == d->cap) {
            size_t cap = d->cap ? d->cap * 2 : 64;
            struct found *more = realloc(d->list, cap * sizeof(*more));

            if (!more) {
                (void)closedir(dir);
                stk_run_done(&f.run);
                return stk_err_set(err, -ENOMEM, "out of memory");
            }
            d->list = more;
            d->cap = cap;
        }
        d->list[d->n++] = f;
    }
    (void)closedir(dir);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->launch > y->launch) - (x->launch < y->launch);
}

/* The file of the job's present lease. A job that sleeps or is to be woken keeps the file of an
 * earlier one; a launch that ended under an earlier lease is another story, told already. */
static struct found *choose(const struct folder *d, const struct stk_adopt *a)
{
    struct found *best = NULL;
    size_t lo = 0, hi = d->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (d->list[mid].number < a->start.number)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < d->n && d->list[lo].number == a->start.number; lo++) {
        struct found *f = &d->list[lo];
        stk_lease_id lease = f->run.lease ? f->run.lease : f->launch;

        if (lease == a->start.lease)
            return f;
        if ((a->start.resume || a->asleep) && lease < a->start.lease)
            best = f;
    }
    return best;
}

static void lost(struct stk_local_job *j, const struct stk_adopt *a)
{
    if (a->state == STK_JOB_STOPPING)
        stk_local_emit_exited(j, a->stop.cause, "stopped before it was started");
    else
        stk_local_emit_exited(j, STK_CAUSE_UNKNOWN,
                              "there is no trace of its processes; how it ended is not known");
}

/* There is no launch, or one that never began. */
static void never_ran(struct stk_local_job *j, const struct stk_adopt *a)
{
    stk_local_unlink(j);
    if (a->state == STK_JOB_PLACED && !a->start.resume)
        return; /* waits; started once strays are gone */
    lost(j, a);
}

/* It was being woken; of those who take turns one at a time is. */
static bool wake_at_once(const struct stk_local_job *j, const struct stk_adopt *a)
{
    return a->start.resume && !a->asleep && a->state == STK_JOB_PLACED && !j->seat;
}

static int take_over(struct stk_local *m, struct folder *d, const struct stk_adopt *a)
{
    struct stk_local_job *j = stk_local_job_new(m, &a->start, false);
    struct found *f = choose(d, a);
    char name[64];
    bool locked;

    if (!j || stk_local_keep_spec(j, &a->start) < 0)
        return -ENOMEM;
    stk_local_limit_keep(j, &a->start);
    j->told_started = a->state == STK_JOB_RUNNING || a->asleep;
    j->stopping = a->state == STK_JOB_STOPPING;
    j->stop = a->stop;
    j->wake_on_hello = wake_at_once(j, a);
    j->asleep_wanted = a->asleep;
    if (!f || (!f->locked && !f->run.begun)) {
        if (f)
            f->taken = true;
        j->launch = f ? f->launch : j->launch;
        never_ran(j, a);
        j->launch = j->lease;
        return 0;
    }
    f->taken = true;
    j->launch = f->launch;
    stk_local_run_name(j, "", name, sizeof(name));
    if (stk_run_read(m->run_dir, name, &j->run, &locked, stk_local_replay_item, j) < 0)
        return -ENOMEM;
    if (j->run.exited) {
        stk_local_ended(j);
    } else if (j->run.begun && strcmp(j->run.boot, m->boot) != 0) {
        stk_local_emit_exited(j, STK_CAUSE_NODE_LOST, "the machine was restarted");
    } else if (!locked) {
        if (j->wake_on_hello)
            stk_local_orphan_wake(j);
        stk_local_orphan(j);
        if (j->wake_on_hello || (a->state == STK_JOB_PLACED && j->run.started))
            stk_local_emit_started(j);
    } else {
        j->adopted = true;
        j->where = STK_W_LAUNCHED;
        if (stk_local_link_connect(j) < 0)
            stk_local_timer_need(m);
    }
    return 0;
}

static void end_stray(struct stk_local_job *j)
{
    j->where = STK_W_STOPPING;
    (void)stk_local_send(j, json_pack("{s:s,s:s}", "op", "stop", "cause", "cancelled"));
}

/* Who takes turns goes on as it is: who of them is to run is seen when all have said. */
static void back_in_turn(struct stk_local_job *j)
{
    if (j->run.asleep && !j->asleep_wanted)
        stk_local_turn_waits(j, j->run.slept ? j->run.slept : stk_local_now(j->m));
    else if (j->where == STK_W_RUNNING && j->real_gpus)
        stk_local_make_sure(j);
    else if (j->where == STK_W_RUNNING)
        stk_local_turn_began(j); /* how long it has had it nobody knows */
    stk_local_turns_soon(j->m);
}

/* A shim answers that was started by an earlier daemon, or whose connection was lost: from here on
 * all is as if it had been ours all along. Orders that may not have arrived are given again. */
void stk_local_hello(struct stk_local_job *j)
{
    bool wake = j->wake_on_hello || j->where == STK_W_THAWING;

    if (!j->adopted)
        return;
    j->adopted = j->wake_on_hello = false;
    stk_local_forget_spec(j);
    if (j->stray) {
        end_stray(j);
        return;
    }
    stk_local_limit_tell(j);
    if (j->where == STK_W_SAVING || j->where == STK_W_RESTORING)
        return; /* stoker-gpu is at work and will say how it goes on */
    if (j->where != STK_W_STOPPING)
        j->where = j->run.asleep ? STK_W_ASLEEP : j->run.started ? STK_W_RUNNING : STK_W_LAUNCHED;
    if (wake && j->where != STK_W_STOPPING) {
        stk_local_resume(j);
        return;
    }
    if (j->run.started && !j->run.asleep)
        stk_local_emit_started(j);
    if (j->seat && !j->stopping) {
        back_in_turn(j);
        return;
    }
    if (j->stopping && j->stop.suspend && j->run.asleep)
        stk_local_asleep(j);
    else if (j->stopping)
        stk_local_do_stop(j);
    else if (j->run.asleep && !j->asleep_wanted)
        stk_local_resume(j); /* the core has it running */
}

static int stray(struct stk_local *m, struct found *f)
{
    const struct stk_start s = {.number = f->number, .lease = f->launch, .job = {STK_NONE}};
    struct stk_local_job *j;
    bool over = f->run.exited || (!f->locked && !f->run.begun) ||
                (f->run.begun && strcmp(f->run.boot, m->boot) != 0);

    j = stk_local_job_new(m, &s, true);
    if (!j)
        return -ENOMEM;
    j->run = f->run;
    f->run = (struct stk_run){0};
    if (over) {
        stk_local_unlink(j);
        stk_local_job_free(j);
        return 0;
    }
    if (!f->locked) {
        stk_local_orphan(j);
        return 0;
    }
    j->adopted = true;
    j->where = STK_W_LAUNCHED;
    if (stk_local_link_connect(j) < 0)
        stk_local_timer_need(m);
    return 0;
}

int stk_local_adopt(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                    struct stk_err *err)
{
    struct stk_local *m = (struct stk_local *)e;
    struct folder d = {0};
    int rc = scan(m, &d, err);

    (void)now;
    /* Asked again, because a commit failed or the policy is another: what the core did not take in
     * is told once more, from the run files, so nothing may be known from before. */
    while (m->jobs)
        stk_local_job_free(m->jobs);
    if (d.n > 0)
        qsort(d.list, d.n, sizeof(*d.list), by_number);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = take_over(m, &d, &list[i]);
    for (size_t i = 0; i < d.n; i++) {
        if (rc == 0 && !d.list[i].taken)
            rc = stray(m, &d.list[i]);
        stk_run_done(&d.list[i].run);
    }
    free(d.list);
    if (rc == -ENOMEM)
        (void)stk_err_set(err, rc, "out of memory");
    if (rc == 0) {
        stk_local_mps_adopt(m);
        stk_local_strays_gone(m);
    }
    return rc;
}
