/* SPDX-License-Identifier: Apache-2.0 */
/* scancel.c - ends jobs, or sends them a signal. Jobs are named by id or chosen by user, name,
 * state and pool; a job that has ended already is none of its worries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurmcmd/slurm.h"
#include "spec/words.h"

enum {
    SIGNAL,
    BATCH,
    USER,
    ME,
    NAME,
    STATE,
    PARTITION,
    QUIET,
    NOTHING,
    FULL,
    INTERACTIVE,
    VERSION
};

static const struct stk_opt options[] = {
    {"signal", 's', STK_OPT_NEEDS, SIGNAL},
    {"batch", 'b', STK_OPT_NONE, BATCH},
    {"full", 'f', STK_OPT_NONE, FULL},
    {"user", 'u', STK_OPT_NEEDS, USER},
    {"me", 0, STK_OPT_NONE, ME},
    {"name", 'n', STK_OPT_NEEDS, NAME},
    {"jobname", 0, STK_OPT_NEEDS, NAME},
    {"state", 't', STK_OPT_NEEDS, STATE},
    {"partition", 'p', STK_OPT_NEEDS, PARTITION},
    {"quiet", 'Q', STK_OPT_NONE, QUIET},
    {"verbose", 'v', STK_OPT_NONE, NOTHING},
    {"hurry", 'H', STK_OPT_NONE, NOTHING},
    {"interactive", 'i', STK_OPT_NONE, INTERACTIVE},
    {"version", 'V', STK_OPT_NONE, VERSION},
    {0},
};

struct asked {
    const char *user, *name, *state, *partition;
    int signal;
    bool me, quiet, version, any;
    json_t *ids;
};

static int take(struct asked *a, const struct stk_opts *o, const char *program)
{
    const char **word[] = {
        [USER] = &a->user, [NAME] = &a->name, [STATE] = &a->state, [PARTITION] = &a->partition};
    int id = o->opt->id;
    bool known;

    a->me |= id == ME;
    a->quiet |= id == QUIET;
    a->version |= id == VERSION;
    if (id == BATCH || id == FULL)
        return stk_slurm_misuse(program, "%s is not supported: signals go to what srun has started",
                                o->shown);
    if (id == INTERACTIVE)
        return stk_slurm_misuse(program, "%s is not supported: nothing is asked back", o->shown);
    if (id == SIGNAL && stk_words_signal(o->value, &a->signal) < 0)
        return stk_slurm_misuse(program, "Unknown job signal: %s", stk_words_show(o->value).text);
    if (id == STATE && stk_slurm_state_in(NULL, o->value, &known) < 0)
        return stk_slurm_misuse(program, "Invalid job state string: %s",
                                stk_words_show(o->value).text);
    if (id <= PARTITION && word[id])
        *word[id] = o->value;
    a->any |= id == ME || (id >= USER && id <= PARTITION);
    return 0;
}

static int read_options(int argc, char **argv, struct asked *a)
{
    struct stk_opts o = {.table = options, .argc = argc, .argv = argv, .at = 1, .permute = true};
    struct stk_err err;
    int rc;

    while ((rc = stk_opts_next(&o, &err)) > 0) {
        if (rc == 2)
            (void)json_array_append_new(a->ids, json_string(o.value));
        else if (take(a, &o, argv[0]))
            return 2;
    }
    if (rc < 0)
        return stk_slurm_misuse(argv[0], "%s", err.text);
    if (!a->version && !a->any && json_array_size(a->ids) == 0)
        return stk_slurm_misuse(argv[0], "No job identification provided");
    return 0;
}

static bool chosen(const struct stk_slurm *s, const struct asked *a, const json_t *job)
{
    const char *pool = stk_str(json_object_get(job, "spec"), "pool");
    bool in = true;

    if (a->state)
        (void)stk_slurm_state_in(stk_slurm_state(job), a->state, &in);
    return in && strcmp(stk_str(job, "state"), "done") != 0 &&
           (!a->me || stk_int(job, "uid", -1) == (int64_t)getuid()) &&
           (!a->user || strcmp(a->user, stk_str(job, "user")) == 0) &&
           (!a->name || strcmp(a->name, stk_str(job, "name")) == 0) &&
           (!a->partition || strcmp(a->partition, *pool ? pool : s->pool) == 0);
}

/* The jobs named; ids that do not exist are said and counted. */
static int named(struct stk_slurm *s, const struct asked *a, json_t *jobs, int *bad)
{
    struct stk_err err = {""};

    for (size_t i = 0; i < json_array_size(a->ids); i++) {
        const char *id = json_string_value(json_array_get(a->ids, i));
        int rc = stk_slurm_find(s, id, false, jobs, &err);

        if (rc == -ENOENT || rc == -EINVAL) {
            stk_slurm_say(s->name, "error: Kill job error on job id %s: %s",
                          stk_words_show(id).text, err.text);
            (*bad)++;
        } else if (rc < 0) {
            return stk_slurm_fail(s, &err);
        }
    }
    return 0;
}

static json_t *numbers(const struct stk_slurm *s, const struct asked *a, const json_t *jobs)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);

        if (chosen(s, a, job) && (!a->signal || !stk_slurm_is_pending(job)))
            (void)json_array_append_new(ids, json_integer(stk_int(job, "id", 0)));
    }
    return ids;
}

/* Says what failed, but not that a job ended in the meantime. */
static int report(const struct stk_slurm *s, const json_t *answer)
{
    const json_t *results = json_object_get(answer, "results");
    int bad = 0;

    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *r = json_array_get(results, i);
        const char *text = stk_str(r, "error");

        if (json_is_true(json_object_get(r, "ok")) || strstr(text, "has already "))
            continue;
        stk_slurm_say(s->name, "error: Kill job error on job id %lld: %s",
                      (long long)stk_int(r, "id", 0), text);
        bad++;
    }
    return bad;
}

static int act(struct stk_slurm *s, const struct asked *a, json_t *take_ids)
{
    json_t *answer = NULL, *body;
    struct stk_err err = {""};
    struct stk_call call = {.method = "POST", .path = "/v1/jobs/act"};
    int rc = 0, bad = 0;

    if (json_array_size(take_ids) == 0) {
        json_decref(take_ids);
        return 0;
    }
    body = json_pack("{s:s, s:o}", "verb", a->signal ? "signal" : "cancel", "ids", take_ids);
    if (a->signal)
        (void)json_object_set_new(body, "signal", json_integer(a->signal));
    call.body = body;
    rc = stk_client_call(s->c, &call, &answer, &err);
    if (rc == 0)
        bad = report(s, answer);
    else if (!strstr(err.text, "has already "))
        bad = stk_slurm_fail(s, &err);
    json_decref(answer);
    json_decref(body);
    return bad;
}

int stk_scancel_main(int argc, char **argv)
{
    struct asked a = {.ids = json_array()};
    struct stk_slurm s = {.name = argv[0]};
    json_t *jobs = json_array();
    struct stk_err err = {""};
    int bad = 0, rc = read_options(argc, argv, &a);

    if (rc == 0 && a.version)
        (void)puts(STK_SLURM_VERSION);
    if (rc == 0 && !a.version) {
        rc = stk_slurm_open(&s, argv[0]);
        if (rc == 0 && stk_slurm_nodes(&s, &err) < 0)
            rc = stk_slurm_fail(&s, &err);
        if (rc == 0 && json_array_size(a.ids) > 0)
            rc = named(&s, &a, jobs, &bad);
        else if (rc == 0 && stk_slurm_live(&s, "", true, jobs, &err) < 0)
            rc = stk_slurm_fail(&s, &err);
        if (rc == 0)
            bad += act(&s, &a, numbers(&s, &a, jobs));
    }
    stk_slurm_close(&s);
    json_decref(jobs);
    json_decref(a.ids);
    return rc ? rc : bad > 0;
}
