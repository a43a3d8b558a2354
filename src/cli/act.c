/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - commands that do something to jobs: cancel, hold, release, suspend, resume, requeue. One
 * request for all of them; what happened is said job by job. */
#include <string.h>

#include "cli/act.h"
#include "cli/view.h"

#define BATCH 10000 /* jobs per request */

/* Live jobs that --mine and --name choose. */
static int choose(struct stk_ask *k, struct stk_ids *ids)
{
    char path[STK_CLIENT_MAX_PATH] = "/v1/jobs", word[32];
    struct stk_err err = {""};
    json_t *jobs = NULL;
    int rc;

    stk_query(path, sizeof(path), "user", stk_arg_is(k->a, "mine") ? "me" : NULL);
    stk_query(path, sizeof(path), "name", stk_arg(k->a, "name"));
    stk_query(path, sizeof(path), "state", stk_arg(k->a, "state"));
    rc = stk_ask_pages(k, path, "jobs", "after", STK_IDS_MAX, &jobs);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        size_t n = ids->n;

        (void)snprintf(word, sizeof(word), "%lld", (long long)stk_int(job, "id", 0));
        if (stk_ids_add(ids, word, &err) == 0)
            ids->list[n].range = true; /* this job, even if an array has its number */
    }
    json_decref(jobs);
    return rc;
}

/* The daemon's sentence about one job, NULL: it went well. */
static const char *refusal(const json_t *r)
{
    const json_t *e = json_object_get(r, "error");
    const char *text = json_is_string(e) ? json_string_value(e) : stk_str(e, "message");

    if (!e || json_is_null(e))
        return json_is_false(json_object_get(r, "ok")) ? "refused" : NULL;
    return *text != '\0' ? text : "refused";
}

/* What was done, in words. */
static const char *done_word(const char *verb)
{
    static const char *const words[][2] = {
        {"cancel", "cancelled"},
        {"hold", "held"},
        {"release", "released"},
        {"suspend", "is being suspended"},
        {"resume", "goes on when there is room"},
        {"requeue", "goes back to the queue"},
        {"update", "changed"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i][0], verb) == 0)
            return words[i][1];
    return verb;
}

static bool report_one(const struct stk_ask *k, const json_t *r)
{
    const char *wrong = refusal(r);
    char clean[512], id[40];

    (void)stk_view_id(r, id, sizeof(id));
    if (wrong) {
        bool names = strncmp(wrong, "job ", 4) == 0 || strncmp(wrong, "there is no job", 15) == 0;

        (void)fflush(stdout);
        (void)fprintf(stderr, "stoker %s: %s%s%s%s\n", k->name, names ? "" : "job ",
                      names ? "" : id, names ? "" : ": ",
                      stk_text_clean(clean, sizeof(clean), wrong, false));
        return false;
    }
    if (!k->json)
        (void)printf("job %s: %s\n", id, done_word(k->name));
    return true;
}

static int send(struct stk_ask *k, const struct stk_ids *ids, size_t from, json_t *args,
                json_t *all)
{
    json_t *list = json_array(), *body, *reply = NULL, *results;
    size_t to = ids->n - from > BATCH ? from + BATCH : ids->n, i;
    int rc, worst = STK_EXIT_OK;

    for (i = from; i < to; i++)
        (void)json_array_append_new(list, json_integer(ids->list[i].job));
    body = json_pack("{s:s, s:o}", "verb", k->name, "ids", list);
    (void)json_object_update(body, args);
    rc = stk_ask_do(k, "POST", "/v1/jobs/act", body, &reply);
    json_decref(body);
    if (rc != STK_EXIT_OK)
        return rc;
    results = json_object_get(reply, "results");
    if (!results)
        results = json_object_get(reply, "jobs");
    if (!json_is_array(results))
        (void)json_array_append(all, reply);
    for (i = 0; i < json_array_size(results); i++) {
        json_t *r = json_array_get(results, i);

        if (!report_one(k, r))
            worst = STK_EXIT_FAILED;
        (void)json_array_append(all, r);
    }
    json_decref(reply);
    return worst;
}

int stk_act(struct stk_ask *k, const struct stk_ids *ids, json_t *args)
{
    json_t *all = json_array();
    int worst = STK_EXIT_OK;

    for (size_t i = 0; i < ids->n && worst != STK_EXIT_UNREACHABLE; i += BATCH) {
        int rc = send(k, ids, i, args, all);

        worst = rc > worst ? rc : worst;
    }
    if (k->json && json_array_size(all) > 0) {
        json_t *out = json_pack("{s:O}", "results", all);

        stk_print_json(out);
        json_decref(out);
    }
    json_decref(all);
    return worst;
}

static int run_act(const struct stk_args *a)
{
    bool chosen = stk_arg_is(a, "mine") || stk_arg_is(a, "name");
    struct stk_ids ids = {0};
    struct stk_ask k;
    int rc;

    if (stk_arg_is(a, "state") && !chosen)
        return stk_misused(a, "--state goes with --mine or --name");
    if (chosen && a->n_words > 0)
        return stk_misused(a, "name jobs, or choose them with --mine and --name, not both");
    rc = stk_ids_take(a, chosen, &ids);
    if (rc != STK_EXIT_OK || (rc = stk_ask_open(&k, a)) != STK_EXIT_OK)
        return rc;
    rc = chosen ? choose(&k, &ids) : stk_ids_resolve(&k, &ids, false);
    if (rc == STK_EXIT_OK && ids.n == 0 && !k.json)
        (void)printf("no such jobs\n");
    if (rc == STK_EXIT_OK)
        rc = stk_act(&k, &ids, NULL);
    stk_ids_done(&ids);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"mine", 'm', NULL, "all my jobs", NULL},
    {"name", 'n', "NAME", "all jobs of this name (mine, with --mine)", NULL},
    {"state", 's', "STATE", "with these: only those in this state",
     "held blocked waiting starting running suspended stopping"},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

#define ACT(id, word, text)                                                                        \
    const struct stk_command stk_cmd_##id = {                                                      \
        .name = (word),                                                                            \
        .synopsis = "JOB...\n--mine [--name NAME]",                                                \
        .help = (text),                                                                            \
        .about = "JOB is a number (12), a range (3-7), an array's element (12_3) or Slurm's "      \
                 "number\n(slurm:1234); an array's number means all of it.",                       \
        .complete = "@jobs",                                                                       \
        .options = groups,                                                                         \
        .section = STK_SECTION_CHANGE,                                                             \
        .run = run_act,                                                                            \
    }

ACT(cancel, "cancel", "stop jobs for good");
ACT(hold, "hold", "keep jobs from starting");
ACT(release, "release", "let held jobs start");
ACT(suspend, "suspend", "stop jobs for now: they keep their work and give back their GPUs");
ACT(resume, "resume", "let suspended jobs go on");
ACT(requeue, "requeue", "stop running jobs and start them anew");
