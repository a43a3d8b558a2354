/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - what happens, and what is expected. */
#include "parse.h"

#include <stdio.h>
#include <string.h>

static int add_step(struct parser *p, const struct scn_step *step)
{
    struct scenario *s = p->s;
    uint32_t i;
    int rc = scn_grow(p, (void **)&s->steps, &s->cap_steps, s->n_steps + 1, sizeof(*s->steps));

    if (rc < 0)
        return rc;
    for (i = s->n_steps++; i > 0 && s->steps[i - 1].at > step->at; i--)
        s->steps[i] = s->steps[i - 1];
    s->steps[i] = *step;
    return 0;
}

static struct scn_step step_of(const struct parser *p, enum scn_verb verb)
{
    return (struct scn_step){.line = p->line,
                             .at = p->now,
                             .verb = verb,
                             .job = SCN_NONE,
                             .other = SCN_NONE,
                             .window = SCN_NONE,
                             .number = -1,
                             .time = STK_NEVER_TIME};
}

static int job_named(struct parser *p, uint32_t i, uint32_t *ret)
{
    *ret = i < p->n ? scn_find_job(p->s, p->word[i], strlen(p->word[i])) : SCN_NONE;
    return *ret == SCN_NONE
               ? scn_wrong(p, "no job %.40s above this line", i < p->n ? p->word[i] : "")
               : 0;
}

static int read_node(struct parser *p)
{
    struct scn_step step = step_of(p, scn_is(p, 2, "down") ? SCN_NODE_DOWN : SCN_NODE_UP);

    if (p->n != 3 || !(scn_is(p, 2, "down") || scn_is(p, 2, "up")) ||
        (step.number = scn_whole(p->word[1])) < 1)
        return scn_wrong(p, "expected \"node N down\" or \"node N up\"; the first is node 1");
    return add_step(p, &step);
}

/* "empty node 2", "empty best node" */
static int read_empty(struct parser *p)
{
    struct scn_step step = step_of(p, SCN_EMPTY);

    if (p->n == 3 && scn_is(p, 1, "best") && scn_is(p, 2, "node"))
        step.number = 0;
    else if (p->n != 3 || !scn_is(p, 1, "node") || (step.number = scn_whole(p->word[2])) < 1)
        return scn_wrong(p, "expected \"empty node N\" or \"empty best node\"");
    return add_step(p, &step);
}

/* "update JOB priority N", "update JOB says TIME". */
static int read_update(struct parser *p)
{
    struct scn_step step = step_of(p, scn_is(p, 2, "says") ? SCN_SAYS : SCN_PRIORITY);

    if (p->n != 4 || (step.verb == SCN_PRIORITY && !scn_is(p, 2, "priority")))
        return scn_wrong(p, "expected \"update JOB priority N\" or \"update JOB says TIME\"");
    if (step.verb == SCN_PRIORITY && (step.number = scn_whole(p->word[3])) < 0)
        return scn_wrong(p, "not a priority: %.20s", p->word[3]);
    if (step.verb == SCN_SAYS && !scn_time(p->word[3], &step.time))
        return scn_wrong(p, "not a time: %.20s", p->word[3]);
    return job_named(p, 1, &step.job) < 0 ? -EINVAL : add_step(p, &step);
}

int scn_read_action(struct parser *p)
{
    static const struct {
        const char *word;
        enum scn_verb verb;
    } all[] = {{"cancel", SCN_CANCEL}, {"hold", SCN_HOLD}, {"release", SCN_RELEASE}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct scn_step step = step_of(p, all[i].verb);

        if (!scn_is(p, 0, all[i].word))
            continue;
        if (p->n != 2)
            return scn_wrong(p, "expected \"%s JOB\"", all[i].word);
        return job_named(p, 1, &step.job) < 0 ? -EINVAL : add_step(p, &step);
    }
    if (scn_is(p, 0, "update"))
        return read_update(p);
    if (scn_is(p, 0, "node"))
        return read_node(p);
    if (scn_is(p, 0, "empty"))
        return read_empty(p);
    if (scn_is(p, 0, "unreserve")) {
        struct scn_step step = step_of(p, SCN_UNRESERVE);
        uint32_t at = 1;

        return scn_window_named(p, &at, &step) < 0 ? -EINVAL : add_step(p, &step);
    }
    return scn_wrong(p, "no such word: %.40s", p->n ? p->word[0] : "");
}

/* "on node 1", "on nodes 1 2", "on 2 nodes". */
static int expect_where(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at == p->n)
        return 0;
    if (scn_is(p, at, "on") && at + 3 == p->n &&
        (scn_is(p, at + 2, "nodes") || scn_is(p, at + 2, "node"))) {
        step->number = scn_whole(p->word[at + 1]);
        return step->number > 0 ? 0 : scn_wrong(p, "on how many nodes?");
    }
    if (scn_is(p, at, "on") && (scn_is(p, at + 1, "node") || scn_is(p, at + 1, "nodes"))) {
        for (at += 2; at < p->n; at++) {
            int64_t node = scn_whole(p->word[at]);

            if (node < 1 || node > 64)
                return scn_wrong(p, "no node %.20s; the first is node 1", p->word[at]);
            step->nodes |= UINT64_C(1) << (node - 1);
        }
        return step->nodes ? 0 : scn_wrong(p, "on which node?");
    }
    return scn_wrong(p, "expected \"on node N\", \"on nodes N M\" or \"on N nodes\"");
}

static int expect_at(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at == p->n)
        return 0;
    if (!scn_is(p, at, "at") || at + 2 != p->n || !scn_time(p->word[at + 1], &step->time))
        return scn_wrong(p, "expected \"at TIME\"");
    if (step->time < p->now)
        return scn_wrong(p, "that time is over");
    step->at = step->time;
    return 0;
}

static int expect_text(struct parser *p, uint32_t at, struct scn_step *step)
{
    size_t used = 0;

    for (; at < p->n; at++) {
        used += (size_t)snprintf(step->text + used, sizeof(step->text) - used, "%s%s",
                                 used ? " " : "", p->word[at]);
        if (used >= sizeof(step->text))
            return scn_wrong(p, "too long");
    }
    return 0;
}

/* "evicted", "evicted for d". */
static int expect_for(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at == p->n)
        return 0;
    if (!scn_is(p, at, "for") || at + 2 != p->n)
        return scn_wrong(p, "expected \"evicted for JOB\"");
    return job_named(p, at + 1, &step->other);
}

static int expect_times(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at + 2 != p->n || !(scn_is(p, at + 1, "times") || scn_is(p, at + 1, "time")) ||
        (step->number = scn_whole(p->word[at])) < 0)
        return scn_wrong(p, "expected \"was preempted N times\"");
    return 0;
}

static int set_text(struct scn_step *step, const char *text)
{
    (void)snprintf(step->text, sizeof(step->text), "%s", text);
    return 0;
}

/* "feasible", "feasible with 30m to spare". */
static int expect_feasible(struct parser *p, uint32_t at, struct scn_step *step)
{
    stk_time t;

    if (at < p->n) {
        if (at + 4 != p->n || !scn_is(p, at, "with") || !scn_time(p->word[at + 1], &t) ||
            !scn_is(p, at + 2, "to") || !scn_is(p, at + 3, "spare"))
            return scn_wrong(p, "expected \"feasible with TIME to spare\"");
        step->number = t;
    }
    return set_text(step, "feasible");
}

/* "infeasible", "infeasible, earliest 2h". */
static int expect_infeasible(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at < p->n &&
        (at + 2 != p->n || !scn_is(p, at, "earliest") || !scn_time(p->word[at + 1], &step->time)))
        return scn_wrong(p, "expected \"infeasible, earliest TIME\"");
    return set_text(step, "infeasible");
}

/* "at risk", "late". */
static int expect_risk(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at + 1 != p->n || !scn_is(p, at, "risk"))
        return scn_wrong(p, "expected \"at risk\"");
    return set_text(step, "at_risk");
}

static int expect_late(struct parser *p, uint32_t at, struct scn_step *step)
{
    return at == p->n ? set_text(step, "late") : scn_wrong(p, "expected \"late\"");
}

/* "would start with gpus 2", "would not start with ...". */
static int expect_would(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (scn_is(p, at, "not")) {
        step->not = true;
        at++;
    }
    if (at + 2 >= p->n || !scn_is(p, at, "start") || !scn_is(p, at + 1, "with"))
        return scn_wrong(p, "expected \"would start with KIND VALUE\", or \"with nothing\"");
    return expect_text(p, at + 2, step);
}

static int expect_verb(struct parser *p, uint32_t at, struct scn_step *step)
{
    static const struct {
        const char *word;
        enum scn_verb verb;
        int (*rest)(struct parser *, uint32_t, struct scn_step *);
    } all[] = {{"runs", SCN_RUNS, expect_where},
               {"run", SCN_RUNS, expect_where},
               {"waits", SCN_WAITS, expect_text},
               {"wait", SCN_WAITS, expect_text},
               {"waits:", SCN_WAITS, expect_text},
               {"wait:", SCN_WAITS, expect_text},
               {"starts", SCN_STARTED, expect_at},
               {"start", SCN_STARTED, expect_at},
               {"ends", SCN_ENDED, expect_at},
               {"end", SCN_ENDED, expect_at},
               {"ended", SCN_ENDED, expect_at},
               {"evicted", SCN_EVICTED, expect_for},
               {"moved", SCN_MOVED, expect_at},
               {"refused", SCN_REFUSED, expect_text},
               {"refused:", SCN_REFUSED, expect_text},
               {"held", SCN_HELD, expect_at},
               {"asleep", SCN_ASLEEP, expect_at},
               {"stopping", SCN_STOPPING, expect_at},
               {"preempted", SCN_PREEMPTED, expect_times},
               {"feasible", SCN_DEADLINE, expect_feasible},
               {"infeasible", SCN_DEADLINE, expect_infeasible},
               {"infeasible,", SCN_DEADLINE, expect_infeasible},
               {"at", SCN_DEADLINE, expect_risk},
               {"late", SCN_DEADLINE, expect_late},
               {"would", SCN_WOULD, expect_would},
               {"claims", SCN_CLAIMS, expect_text}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (scn_is(p, at, all[i].word)) {
            step->verb = all[i].verb;
            return all[i].rest(p, at + 1, step);
        }
    return scn_wrong(
        p,
        "expected feasible, infeasible, at risk, late, would, claims, "
        "runs, waits, starts, ends, evicted, moved, held, asleep, stopping, preempted or "
        "refused, got \"%.30s\"",
        at < p->n ? p->word[at] : "");
}

/* "nothing moves for 1h" */
static int expect_quiet(struct parser *p)
{
    struct scn_step step = step_of(p, SCN_QUIET);
    stk_time t;

    if (p->n != 5 || !scn_is(p, 2, "moves") || !scn_is(p, 3, "for") || !scn_time(p->word[4], &t))
        return scn_wrong(p, "expected \"expect nothing moves for TIME\"");
    step.time = p->now;
    step.at = p->now + t;
    return add_step(p, &step);
}

/* "expect node 2 is empty", "... is not empty" */
static int expect_node(struct parser *p)
{
    struct scn_step step = step_of(p, SCN_IS_EMPTY);

    step.not = scn_is(p, 4, "not");
    if (p->n != (step.not ? 6U : 5U) || !scn_is(p, 3, "is") || !scn_is(p, p->n - 1, "empty") ||
        (step.number = scn_whole(p->word[2])) < 1)
        return scn_wrong(p, "expected \"expect node N is empty\"");
    return add_step(p, &step);
}

/* "vision lends 3 to speech" */
static int expect_lends(struct parser *p)
{
    struct scn_step step = step_of(p, SCN_LENDS);

    if (p->n != 6 || !scn_is(p, 4, "to") || (step.number = scn_milli(p->word[3])) < 0)
        return scn_wrong(p, "expected \"expect TENANT lends N to TENANT\"");
    (void)snprintf(step.text, sizeof(step.text), "%.60s %.60s", p->word[1], p->word[5]);
    return add_step(p, &step);
}

/* "expect a, b and c run on node 1" */
int scn_read_expect(struct parser *p)
{
    struct scn_step step = step_of(p, SCN_RUNS);
    uint32_t jobs[MAX_WORDS], n = 0, at = 1;
    int rc;

    if (scn_is(p, 1, "nothing"))
        return expect_quiet(p);
    if (scn_is(p, 1, "reservation")) {
        step.verb = SCN_WINDOW;
        return scn_expect_window(p, &step) < 0 ? -EINVAL : add_step(p, &step);
    }
    if (scn_is(p, 2, "lends"))
        return expect_lends(p);
    if (p->n == 4 && scn_is_gpus(p, 2) && (scn_is(p, 3, "free") || scn_is(p, 3, "idle"))) {
        step.verb = SCN_FREE;
        step.number = scn_whole(p->word[1]);
        return step.number < 0 ? scn_wrong(p, "how many GPUs?") : add_step(p, &step);
    }
    if (scn_is(p, 1, "node"))
        return expect_node(p);
    for (; at < p->n; at++) {
        size_t len = strlen(p->word[at]);

        if (scn_is(p, at, "and"))
            continue;
        len -= len > 0 && p->word[at][len - 1] == ',';
        jobs[n] = scn_find_job(p->s, p->word[at], len);
        if (jobs[n] == SCN_NONE)
            break;
        n++;
    }
    if (n == 0)
        return scn_wrong(p, "no job %.40s above this line", p->n > 1 ? p->word[1] : "");
    at += scn_is(p, at, "is") || scn_is(p, at, "are") || scn_is(p, at, "was") ||
          scn_is(p, at, "were");
    if (scn_is(p, at, "not")) {
        step.not = true;
        at++;
    }
    rc = expect_verb(p, at, &step);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        step.job = jobs[i];
        rc = add_step(p, &step);
    }
    return rc;
}
