/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - "stoker sim": a workload through the scheduler in virtual time.
 *
 * Options are gathered into one struct and checked, the workload is read or generated, runs are
 * made (sim/compare.h) and written in the forms asked for.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/programs.h"
#include "cli/sim_list.h"
#include "hetero/hetero.h"
#include "sim/compare.h"
#include "sim/generate.h"
#include "sim/out_csv.h"
#include "sim/out_html.h"
#include "sim/out_json.h"
#include "sim/out_log.h"
#include "sim/out_table.h"
#include "sim/recorded.h"
#include "sim/ruled.h"
#include "sim/sequence.h"
#include "sim/slurp.h"

#define MAX_RUNS 32
#define MAX_PARAMS 64
#define START "2026-11-16" /* a Monday, as generated workloads begin */

struct options {
    struct stk_setup_words words;
    const char *params[MAX_PARAMS];
    const char *compare, *cluster, *generate, *split_by, *pools, *jobs_out, *html, *trace_out,
        *log_out;
    const char *sequence, *tenants;
    const char *rules, *reservations, *start, *zone;
    const char *const *traces;
    int n_traces;
    struct stk_trace_options read;
    struct stk_run_options run;
    char solver[PATH_MAX];
    uint64_t seed;
    bool json, list, before;
};

static const struct stk_option workload_options[] = {
    {"format", 0, "NAME", "say which format it is", NULL},
    {"generate", 0, "KEYS", "make one up (keys below)", NULL},
    {"seed", 0, "N", "the default seed of --generate", NULL},
    {"lenient", 0, NULL, "skip malformed lines and jobs that can never run; count\nthem", NULL},
    {"throughputs", 0, "FILE", "steps per second, for traces that count steps", "@files"},
    {"sequence", 0, "FILE",
     "jobs come one at a time in this order, times do not matter,\nnothing ends: how full does it "
     "get?",
     "@files"},
    {"trace-out", 0, "FILE", "also write the workload as JSON Lines", "@files"},
    {0},
};
static const struct stk_option cluster_options[] = {
    {"cluster", 0, "SPEC",
     "NODESxGPUS[:TYPE], joined by + (8x8:a100+4x4:v100), or a\nYAML or CSV file; guessed where "
     "the trace says when jobs ran",
     "@files"},
    {"split-by", 0, "vc", "each job goes to the pool named like its virtual cluster", "vc"},
    {"pools", 0, "FILE", "makes these pools from lines vc,nodes", "@files"},
    {"tenants", 0, "FILE", "who may have how many GPUs at a time, and queues (YAML)", "@files"},
    {"rules", 0, "FILE", "what changes when, and until when (YAML)", "@files"},
    {"reservations", 0, "FILE", "GPUs set aside at some times (YAML)", "@files"},
    {"before", 0, NULL, "each run also without rules and reservations, to compare", NULL},
    {"start", 0, "DATE", "when time begins, for these: 2026-11-16 [08:00] (a Monday)", NULL},
    {"zone", 0, "NAME", "of --start, and of those that name none: Europe/Berlin (UTC)", NULL},
    {0},
};
static const struct stk_option policy_options[] = {
    {"bundle", 0, "NAME", "a named set of policies (--list shows all)", NULL},
    {"order", 0, "NAME", "one policy in place of the bundle's", NULL},
    {"backfill", 0, "NAME", "likewise", NULL},
    {"place", 0, "NAME", "likewise", NULL},
    {"preempt", 0, "NAME", "likewise", NULL},
    {"param", 0, "NAME=VALUE", "may be repeated", NULL},
    {"defrag", 0, NULL, "running jobs may move to make room: 2% of placements at most", NULL},
    {"compare", 0, "A,B,C", "several bundles side by side", NULL},
    {"recorded", 0, NULL, "what really happened beside it, where the trace says", NULL},
    {"list", 0, NULL, "all policies and their parameters", NULL},
    {0},
};
static const struct stk_option output_options[] = {
    {"json", 0, NULL, "one JSON document", NULL},
    {"jobs-out", 0, "FILE", "a CSV row per job", "@files"},
    {"log-out", 0, "FILE", "a CSV row per start, preemption and end", "@files"},
    {"html", 0, "FILE", "a report to look at", "@files"},
    {"measure", 0, "FIRST-LAST", "totals over this range of job ids only; ends when they\nhave",
     NULL},
    {"fragments", 0, NULL, "also how much waits although enough is free (with --json)", NULL},
    {"forecast", 0, "N",
     "ask when every N-th job will start as it comes, and say how\ngood the answers were (with "
     "--json)",
     NULL},
    {"paranoid", 0, NULL, "check every invariant after every step (slow)", NULL},
    {0},
};
static const struct stk_options groups[] = {
    {"workload", workload_options},
    {"cluster", cluster_options},
    {"policy", policy_options},
    {"output", output_options},
    {0},
};

static int parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
    char *end = NULL;
    unsigned long long v;

    errno = 0;
    if (*s < '0' || *s > '9')
        return -EINVAL;
    v = strtoull(s, &end, 10);
    if (errno != 0 || *end != '\0' || v > max)
        return -EINVAL;
    *ret = v;
    return 0;
}

static int parse_measure(const char *text, struct options *o, struct stk_err *err)
{
    char first[16] = "";
    const char *dash = strchr(text, '-');
    uint64_t a = 0, b = 0;

    if (dash && dash > text && (size_t)(dash - text) < sizeof(first))
        memcpy(first, text, (size_t)(dash - text));
    if (!dash || parse_u64(first, UINT32_MAX, &a) < 0 || parse_u64(dash + 1, UINT32_MAX, &b) < 0 ||
        a > b)
        return stk_err_set(err, -EINVAL, "--measure takes a range of job ids such as 1500-1700");
    o->run.first_id = (uint32_t)a;
    o->run.last_id = (uint32_t)b;
    return 0;
}

static int parse_forecast(const char *text, struct options *o, struct stk_err *err)
{
    uint64_t n = 0;

    if (parse_u64(text, UINT32_MAX, &n) < 0 || n == 0)
        return stk_err_set(err, -EINVAL, "--forecast takes a whole number from 1 on, got \"%.40s\"",
                           text);
    o->run.forecast = (uint32_t)n;
    return 0;
}

static int add_param(struct options *o, const char *text, struct stk_err *err)
{
    if (o->words.n_params == MAX_PARAMS)
        return stk_err_set(err, -E2BIG, "at most %d --param", MAX_PARAMS);
    o->params[o->words.n_params++] = text;
    return 0;
}

/* Options that are a text or a flag. */
static void take_simple(const struct stk_args *a, struct options *o)
{
    const struct {
        const char *name;
        const char **text;
    } texts[] = {
        {"generate", &o->generate},
        {"cluster", &o->cluster},
        {"order", &o->words.order},
        {"backfill", &o->words.backfill},
        {"place", &o->words.place},
        {"preempt", &o->words.preempt},
        {"bundle", &o->words.bundle},
        {"compare", &o->compare},
        {"jobs-out", &o->jobs_out},
        {"html", &o->html},
        {"log-out", &o->log_out},
        {"format", &o->read.format},
        {"split-by", &o->split_by},
        {"pools", &o->pools},
        {"throughputs", &o->read.throughputs},
        {"trace-out", &o->trace_out},
        {"sequence", &o->sequence},
        {"tenants", &o->tenants},
        {"rules", &o->rules},
        {"reservations", &o->reservations},
        {"start", &o->start},
        {"zone", &o->zone},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        *texts[i].text = stk_arg(a, texts[i].name);
    o->words.tenants = o->tenants != NULL;
    o->list = stk_arg_is(a, "list");
    o->json = stk_arg_is(a, "json");
    o->run.paranoid = stk_arg_is(a, "paranoid");
    o->run.fragments = stk_arg_is(a, "fragments");
    o->read.lenient = stk_arg_is(a, "lenient");
    o->before = stk_arg_is(a, "before");
    o->run.recorded = stk_arg_is(a, "recorded");
}

static bool to_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* Options that do not go together with --sequence, --rules or --log-out. */
static int check_together(const struct options *o, struct stk_err *err)
{
    if (o->sequence && (o->html || o->split_by || o->run.paranoid || o->tenants))
        return stk_err_set(err, -EINVAL,
                           "--sequence has no times: leave out --html, --split-by, --tenants and "
                           "--paranoid");
    if (!o->rules && !o->reservations && (o->before || o->start || o->zone))
        return stk_err_set(err, -EINVAL,
                           "--before, --start and --zone go with --rules FILE or --reservations "
                           "FILE");
    if (o->sequence && (o->rules || o->reservations))
        return stk_err_set(err, -EINVAL,
                           "--sequence has no times: leave out --rules and --reservations");
    if (o->sequence && (o->run.recorded || !o->cluster))
        return stk_err_set(err, -EINVAL, "--sequence takes --cluster, and has no --recorded");
    if (o->sequence && o->jobs_out && o->compare)
        return stk_err_set(err, -EINVAL, "--sequence writes --jobs-out of one run: no --compare");
    if (o->log_out && (o->compare || o->before || o->sequence))
        return stk_err_set(err, -EINVAL,
                           "--log-out is of one run: leave out --compare, --before and --sequence");
    return 0;
}

static int check_options(const struct options *o, struct stk_err *err)
{
    if (!o->generate && o->n_traces == 0)
        return stk_err_set(err, -EINVAL, "name a trace file, or --generate jobs=1000,seed=1");
    if (o->split_by && strcmp(o->split_by, "vc") != 0)
        return stk_err_set(err, -EINVAL, "--split-by takes vc, got \"%.40s\"", o->split_by);
    if (o->pools && !o->split_by)
        return stk_err_set(err, -EINVAL, "--pools FILE goes with --split-by vc");
    if (o->compare && (o->words.bundle || o->words.order || o->words.backfill || o->words.preempt))
        return stk_err_set(err, -EINVAL,
                           "--compare names whole bundles: leave out --bundle, --order, --backfill "
                           "and --preempt");
    if (o->json && (to_stdout(o->jobs_out) || to_stdout(o->html) || to_stdout(o->trace_out)))
        return stk_err_set(err, -EINVAL,
                           "--json writes to standard output; name a file for the rest");
    return check_together(o, err);
}

static int take_options(const struct stk_args *a, struct options *o, struct stk_err *err)
{
    const char *text;
    int rc = 0, at = 0;

    take_simple(a, o);
    if (stk_arg_is(a, "defrag"))
        rc = add_param(o, "defrag.most=20", err);
    if (rc == 0 && stk_arg_is(a, "defrag"))
        rc = add_param(o, "defrag.jobs=all", err);
    while (rc == 0 && (text = stk_arg_next(a, "param", &at)) != NULL)
        rc = add_param(o, text, err);
    if (rc == 0 && (text = stk_arg(a, "measure")) != NULL)
        rc = parse_measure(text, o, err);
    if (rc == 0 && (text = stk_arg(a, "seed")) != NULL && parse_u64(text, UINT64_MAX, &o->seed) < 0)
        rc = stk_err_set(err, -EINVAL, "--seed takes a whole number, got \"%.40s\"", text);
    if (rc == 0 && (text = stk_arg(a, "forecast")) != NULL)
        rc = parse_forecast(text, o, err);
    o->traces = (const char *const *)a->words;
    o->n_traces = a->n_words;
    o->words.params = o->params;
    o->run.lenient = o->read.lenient;
    o->run.split = o->split_by != NULL;
    o->run.samples = o->html != NULL;
    o->read.untimed = o->sequence != NULL;
    return rc < 0 || o->list ? rc : check_options(o, err);
}

/* One setup per name in --compare, or the single one described by the other options. */
static int make_setups(struct options *o, struct stk_setup *setups, uint32_t *ret_n,
                       struct stk_err *err)
{
    const char *p = o->compare;
    uint32_t n = 0;

    if (!p) {
        *ret_n = 1;
        return stk_setup_resolve(&o->words, &setups[0], err);
    }
    while (*p) {
        char name[64];
        size_t len = strcspn(p, ",");
        int rc;

        if (len == 0 || len >= sizeof(name) || n == MAX_RUNS)
            return stk_err_set(err, -EINVAL,
                               "--compare takes 1 to %d bundle names joined by commas", MAX_RUNS);
        memcpy(name, p, len);
        name[len] = '\0';
        o->words.bundle = name;
        rc = stk_setup_resolve(&o->words, &setups[n++], err);
        o->words.bundle = NULL;
        if (rc < 0)
            return rc;
        p += len + (p[len] == ',');
    }
    *ret_n = n;
    return n > 0 ? 0 : stk_err_set(err, -EINVAL, "--compare names no bundle");
}

/* Where nobody says, as large as it must have been. */
static int guess_cluster(const struct stk_trace *t, struct stk_cluster *c, struct stk_err *err)
{
    char words[STK_RECORDED_WORDS];
    int rc;

    if (stk_recorded_cluster(t, words, NULL) < 0)
        return stk_err_set(err, -EINVAL,
                           "--cluster is missing: NODESxGPUS such as 16x8, or a YAML or CSV file");
    rc = stk_cluster_parse(c, words, err);
    if (rc == 0)
        (void)fprintf(stderr,
                      "stoker sim: no --cluster: %.400s is guessed from the most GPUs in use at "
                      "once\n",
                      words);
    return rc;
}

static int read_inputs(const struct options *o, struct stk_trace *t, struct stk_cluster *c,
                       struct stk_err *err)
{
    int rc = o->cluster ? stk_cluster_parse(c, o->cluster, err) : 0;

    if (rc == 0 && o->generate)
        rc = stk_generate(t, o->generate, o->seed, err);
    for (int i = 0; rc == 0 && i < o->n_traces; i++)
        rc = stk_trace_read(t, o->traces[i], &o->read, err);
    if (rc == 0 && t->n_jobs == 0)
        rc = stk_err_set(err, -EINVAL, "the workload has no jobs");
    if (rc == 0 && !o->cluster)
        rc = guess_cluster(t, c, err);
    if (rc == 0 && o->pools)
        rc = stk_cluster_split(c, &t->groups, o->pools, err);
    else if (rc == 0 && c->pools.n > 1 && !o->split_by)
        rc = stk_err_set(err, -EINVAL,
                         "the cluster has %u pools: --split-by vc sends each job to the pool named "
                         "like its virtual cluster",
                         c->pools.n);
    if (rc == 0 && o->trace_out)
        rc = stk_trace_write_jsonl(t, o->trace_out, err);
    return rc;
}

/* A parameter that no run uses is a mistake. */
static int check_params(const struct options *o, const struct stk_setup *setups, uint32_t n,
                        struct stk_err *err)
{
    for (uint32_t p = 0; p < o->words.n_params; p++) {
        bool used = false;

        for (uint32_t i = 0; i < n; i++)
            used |= stk_setup_uses(&setups[i], o->params[p]);
        if (!used)
            return stk_err_set(err, -EINVAL, "--param %.80s: no policy of this run takes it",
                               o->params[p]);
    }
    return 0;
}

/* Objectives for unlike GPUs that take a solver find it beside this program. */
static int find_solver(struct options *o, const struct stk_setup *setups, uint32_t n,
                       struct stk_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!setups[i].order->advised || !stk_adviser_solves(&setups[i].params))
            continue;
        if (stk_find_program("stoker-lp", o->solver, sizeof(o->solver)) != STK_EXIT_OK)
            return stk_err_set(err, -ENXIO, "%s cannot be run without it", setups[i].name);
        o->run.solver = o->solver;
        return 0;
    }
    return 0;
}

static void say_notes(const struct stk_trace *t, const struct stk_run_result *r)
{
    if (t->n_skipped > 0)
        (void)fprintf(stderr, "stoker sim: %u malformed lines were left out; the first: %s\n",
                      t->n_skipped, t->first_skip.text);
    if (t->n_left_out > 0)
        (void)fprintf(stderr, "stoker sim: %u jobs without GPUs, or that never started, left out\n",
                      t->n_left_out);
    if (r->finished < r->n_jobs)
        (void)fprintf(stderr, "stoker sim: %u of %u jobs never ran\n", r->n_jobs - r->finished,
                      r->n_jobs);
}

static int write_outputs(const struct options *o, const struct stk_trace *t,
                         const struct stk_run_result *results, uint32_t n, struct stk_err *err)
{
    int rc =
        o->json ? stk_out_json(stdout, results, n, err) : stk_out_table(stdout, results, n, err);

    if (rc == 0 && o->jobs_out)
        rc = stk_out_csv(o->jobs_out, t, results, n, err);
    if (rc == 0 && o->html) {
        const char *title = o->generate ? "Generated workload" : o->traces[0];

        rc = stk_out_html(o->html, t, results, n, title, err);
        if (rc == 0 && !o->json)
            (void)printf("\nReport: %s\n", o->html);
    }
    return rc;
}

static int fill(const struct options *o, const struct stk_trace *t, const struct stk_cluster *c,
                const struct stk_setup *setups, uint32_t n, struct stk_err *err)
{
    struct stk_sequence_result *runs = calloc(n, sizeof(*runs));
    struct stk_sequence q = {0};
    int rc = runs ? 0 : stk_err_set(err, -ENOMEM, "out of memory");

    rc = rc < 0 ? rc : stk_sequence_read(&q, o->sequence, t, c, err);
    q.jobs_out = o->jobs_out;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = stk_sequence_run(t, c, &setups[i], &q, &runs[i], err);
    if (rc == 0 && o->json)
        rc = stk_sequence_json(stdout, runs, n, err);
    else if (rc == 0)
        stk_sequence_table(stdout, runs, n);
    stk_sequence_done(&q);
    free(runs);
    return rc;
}

/* The text of a file of rules or reservations, and when time begins. */
static int read_rules(const struct options *o, const char *path, bool dated,
                      struct stk_run_rules *ret, char **ret_text, struct stk_err *err)
{
    size_t len = 0;
    int rc = stk_slurp(path, ret_text, &len, err);

    *ret = (struct stk_run_rules){.name = path, .text = *ret_text, .len = len, .zone = o->zone};
    return rc < 0 ? rc
                  : stk_ruled_start(o->start ? o->start
                                    : dated  ? "1970-01-01"
                                             : START,
                                    o->zone, &ret->start_s, err);
}

struct timed { /* what happens by the clock */
    struct stk_run_rules rules, windows;
    char *rules_text, *windows_text;
};

static int read_timed(const struct options *o, bool dated, struct timed *t,
                      struct stk_run_options *run, struct stk_err *err)
{
    int rc = 0;

    if (o->rules) {
        run->rules = &t->rules;
        rc = read_rules(o, o->rules, dated, &t->rules, &t->rules_text, err);
    }
    if (rc == 0 && o->reservations) {
        run->reservations = &t->windows;
        rc = read_rules(o, o->reservations, dated, &t->windows, &t->windows_text, err);
    }
    return rc;
}

static int read_teams(const struct options *o, struct stk_trace *trace,
                      const struct stk_cluster *cluster, struct stk_tenants *tenants,
                      struct stk_run_options *run, struct stk_err *err)
{
    int rc;

    if (!o->tenants)
        return 0;
    run->tenants = tenants;
    rc = stk_tenants_read(tenants, o->tenants, cluster, err);
    return rc < 0 ? rc : stk_tenants_match(tenants, trace, err);
}

/* All that is to be run, and what came of it into the files that were asked for. */
static int run_all(const struct options *o, struct stk_compare *c, struct stk_run_result *results,
                   struct stk_err *err)
{
    struct stk_out_log log = {0};
    int rc = 0;

    if (o->log_out) {
        rc = stk_out_log_open(&log, o->log_out, c->trace, err);
        c->options.guest = &log.guest;
    }
    if (rc == 0 && o->run.recorded)
        rc = stk_recorded_run(c->trace, c->cluster, &c->options, results, err);
    rc = rc < 0 ? rc : stk_compare_run(c, results + o->run.recorded, err);
    if (stk_out_log_close(&log, rc < 0 ? NULL : err) < 0 && rc == 0)
        rc = -EIO;
    c->options.guest = NULL;
    if (rc < 0)
        return rc;
    say_notes(c->trace, &results[0]);
    return write_outputs(o, c->trace, results, c->n + o->run.recorded, err);
}

static int run_setups(const struct options *o, const struct stk_setup *setups, uint32_t n,
                      struct stk_run_result *results, struct stk_err *err)
{
    struct timed timed = {.rules_text = NULL};
    struct stk_cluster cluster = {0};
    struct stk_trace trace = {0};
    struct stk_tenants tenants = {0};
    struct stk_flat_tenants flat = {0};
    struct stk_compare c = {.trace = &trace,
                            .cluster = &cluster,
                            .setups = setups,
                            .n = n,
                            .plain = o->before ? n / 2 : 0,
                            .options = o->run,
                            .progress = isatty(STDERR_FILENO) == 1};
    int rc = read_inputs(o, &trace, &cluster, err);

    c.options.flat = &flat;
    rc = rc < 0 ? rc : read_teams(o, &trace, &cluster, &tenants, &c.options, err);
    rc = rc < 0 ? rc : stk_flat_tenants_make(&flat, &trace, err);
    rc = rc < 0 ? rc : read_timed(o, stk_trace_is_dated(&trace), &timed, &c.options, err);
    if (rc == 0)
        rc = o->sequence ? fill(o, &trace, &cluster, setups, n, err) : run_all(o, &c, results, err);
    free(timed.rules_text);
    free(timed.windows_text);
    stk_tenants_free(&tenants);
    stk_flat_tenants_free(&flat);
    stk_trace_done(&trace);
    stk_cluster_done(&cluster);
    return rc;
}

/* All of them once more, with the rules or reservations. */
static int twice(const struct options *o, struct stk_setup *setups, uint32_t *n,
                 struct stk_err *err)
{
    if (*n > MAX_RUNS / 2)
        return stk_err_set(err, -EINVAL, "--before takes at most %d runs", MAX_RUNS / 2);
    for (uint32_t i = 0; i < *n; i++) {
        struct stk_setup *s = &setups[*n + i];
        char name[sizeof(s->name)];

        *s = setups[i];
        (void)snprintf(name, sizeof(name), "%.40s, %s", s->name,
                       o->rules ? "rules" : "reservations");
        (void)memcpy(s->name, name, sizeof(name));
    }
    *n *= 2;
    return 0;
}

static int simulate(struct options *o, struct stk_err *err)
{
    struct stk_setup *setups = calloc(MAX_RUNS, sizeof(*setups));
    struct stk_run_result *results = calloc(MAX_RUNS + 1, sizeof(*results));
    uint32_t n = 0;
    int rc = -ENOMEM;

    if (!setups || !results) {
        (void)stk_err_set(err, rc, "out of memory");
        goto out;
    }
    rc = make_setups(o, setups, &n, err);
    if (rc == 0 && o->before)
        rc = twice(o, setups, &n, err);
    rc = rc < 0 ? rc : check_params(o, setups, n, err);
    rc = rc < 0 ? rc : find_solver(o, setups, n, err);
    rc = rc < 0 ? rc : run_setups(o, setups, n, results, err);
    for (uint32_t i = 0; i < n + o->run.recorded; i++)
        stk_run_result_done(&results[i]);
out:
    free(results);
    free(setups);
    return rc;
}

static int run_sim(const struct stk_args *a)
{
    struct options o = {.seed = 1, .run.last_id = UINT32_MAX};
    struct stk_err err = {{0}};
    int rc = take_options(a, &o, &err);

    if (rc == 0 && o.list) {
        stk_sim_list();
        return STK_EXIT_OK;
    }
    if (rc == 0)
        rc = simulate(&o, &err);
    if (rc == 0)
        return STK_EXIT_OK;
    (void)fprintf(stderr, "stoker sim: %s\n", err.text);
    return rc == -EINVAL || rc == -E2BIG || rc == -ENOENT || rc == -ERANGE ? STK_EXIT_USAGE
                                                                           : STK_EXIT_FAILED;
}

const struct stk_command stk_cmd_sim = {
    .name = "sim",
    .synopsis = "TRACE... --cluster SPEC [options]\n"
                "--generate jobs=1000,seed=1 --cluster SPEC [options]",
    .help = "replay or generate a workload in virtual time and compare policies",
    .about = "TRACE: trace files; the format is detected (\"-\": standard input).",
    .complete = "@files",
    .options = groups,
    .section = STK_SECTION_SITE,
    .offline = true,
    .run = run_sim,
    .more = stk_sim_more,
};
