/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - stoker-whatif: reads a question (a JSON object) from standard input and writes lines of
 * JSON: {"progress": 0.4, "step": "..."}, and at the end {"result": ...} or {"error": "..."}.
 *
 * It steps back before it does anything: idle scheduling class, limits on CPU time and memory, and
 * an end with its parent. What has come from outside is read only after the rights to read the
 * store were given up. "stoker-whatif export" is for people (export.c).
 */
#include <grp.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/recorded.h"
#include "whatif/whatif.h"

#define MAX_QUESTION ((size_t)256 << 20)
#define NOBODY 65534
#define CPU_S 600
#define MEMORY (UINT64_C(4) << 30)

/* ---- stepping back ---- */

static void step_back(json_t *question)
{
    const struct sched_param none = {0};
    rlim_t cpu = (rlim_t)json_integer_value(json_object_get(question, "cpu_s"));
    struct rlimit limit = {cpu ? cpu : CPU_S, (cpu ? cpu : CPU_S) + 5};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpriority(PRIO_PROCESS, 0, 19);
    (void)sched_setscheduler(0, SCHED_IDLE, &none);
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
    (void)setrlimit(RLIMIT_CPU, &limit);
    limit = (struct rlimit){0, 0};
    (void)setrlimit(RLIMIT_CORE, &limit);
#if !defined(__SANITIZE_ADDRESS__)
    limit = (struct rlimit){MEMORY, MEMORY};
    (void)setrlimit(RLIMIT_AS, &limit);
#endif
}

/* Root's rights are needed to open the store, and for nothing else. */
static int give_up_rights(struct stk_err *err)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return stk_err_set(err, -errno, "cannot give up rights: %s", strerror(errno));
    return 0;
}

/* ---- speaking ---- */

static void say(json_t *take)
{
    if (take) {
        (void)json_dumpf(take, stdout, JSON_COMPACT);
        (void)putchar('\n');
        (void)fflush(stdout);
    }
    json_decref(take);
}

static void tell(void *ctx, double done, const char *what)
{
    (void)ctx;
    say(json_pack("{s:f,s:s}", "progress", done, "step", what));
}

static json_t *hear(struct stk_err *err)
{
    char *text = NULL;
    size_t len = 0, cap = 0, n = 1;
    json_error_t why;
    json_t *o = NULL;

    while (n > 0 && len <= MAX_QUESTION) {
        if (cap - len < 65536) {
            char *more = realloc(text, cap ? cap * 2 : 131072);

            if (!more)
                break;
            text = more;
            cap = cap ? cap * 2 : 131072;
        }
        n = fread(text + len, 1, cap - len, stdin);
        len += n;
    }
    if (n > 0)
        (void)stk_err_set(err, -EFBIG, "the question is too long");
    else if (!(o = json_loadb(text, len, 0, &why)))
        (void)stk_err_set(err, -EINVAL, "the question is not JSON: %.160s", why.text);
    free(text);
    return o;
}

static stk_time time_of(json_t *o, const char *key)
{
    return (stk_time)(json_number_value(json_object_get(o, key)) * 1e6);
}

/* ---- questions ---- */

/* How things were when the period began; where nobody wrote that down, how they are. */
static json_t *world_at(struct stk_store *st, stk_time since, json_t *question)
{
    char *text = NULL;
    json_t *world = NULL;

    if (st && stk_store_world(st, since, &text, NULL) == 0)
        world = json_loads(text, 0, NULL);
    free(text);
    return world ? world : json_incref(json_object_get(question, "world"));
}

static int read_import(json_t *question, struct stk_trace *t, json_t **ret_world,
                       struct stk_err *err)
{
    json_t *import = json_object_get(question, "import"), *text = json_object_get(import, "text");
    const char *cluster = json_string_value(json_object_get(import, "cluster"));
    const struct stk_trace_options o = {
        .format = json_string_value(json_object_get(import, "format")), .lenient = true};
    char words[STK_RECORDED_WORDS];
    int rc;

    if (!json_is_string(text))
        return stk_err_set(err, -EINVAL, "import.text must be the text of a trace");
    rc = stk_trace_parse(t, "import", json_string_value(text), json_string_length(text), &o, err);
    if (rc == 0 && t->n_jobs == 0)
        rc = stk_err_set(err, -EINVAL, "import: there are no jobs in it");
    if (rc == 0 && stk_recorded_jobs(t) == 0)
        rc = stk_err_set(err, -EINVAL, "import: no job says how long it waited");
    if (rc == 0 && !cluster) {
        rc = stk_recorded_cluster(t, words, err);
        cluster = words;
    }
    if (rc == 0) {
        json_t *present = json_object_get(json_object_get(question, "world"), "policy");

        *ret_world = stk_world_of_words(cluster, present, err);
        rc = *ret_world ? 0 : -EINVAL;
    }
    if (rc == 0 && json_object_get(json_object_get(question, "changes"), "quotas"))
        rc = stk_world_take_tenants(*ret_world, t, err);
    return rc;
}

static json_t *count_jobs(const struct stk_past *p, bool imported)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "compared",
                     (json_int_t)stk_recorded_jobs(&p->trace), "carried_over",
                     (json_int_t)p->carried, "running", (json_int_t)p->running, "never_ran",
                     (json_int_t)(imported ? 0 : p->never_ran), "left_out",
                     (json_int_t)p->trace.n_left_out, "malformed", (json_int_t)p->trace.n_skipped);
}

static int compare(struct stk_past *p, const struct stk_period_figures *period, json_t *world,
                   json_t *changes, json_t **ret, struct stk_err *err)
{
    struct stk_world before = {0}, after = {0};
    struct stk_whatif q = {.trace = &p->trace, .before = &before, .period = period, .tell = tell};
    bool changed = json_object_size(changes) > 0;
    int rc = stk_world_make(&before, world, NULL, err);

    if (rc == 0 && changed) {
        q.after = &after;
        rc = stk_world_make(&after, world, changes, err);
    }
    tell(NULL, 0.1, "the past as it was");
    rc = rc < 0 ? rc : stk_whatif_compare(&q, ret, err);
    if (rc == 0)
        (void)json_object_set_new(
            *ret, "machines",
            json_pack("{s:O,s:o}", "before", json_object_get(before.json, "nodes"), "after",
                      changed ? json_incref(json_object_get(after.json, "nodes")) : json_null()));
    stk_world_done(&before);
    stk_world_done(&after);
    return rc;
}

/* Only a job that was submitted in the period, ran and ended can be compared with itself. */
static int check_replayed(const struct stk_past *p, struct stk_err *err)
{
    if (stk_recorded_jobs(&p->trace) > 0)
        return 0;
    return stk_err_set(err, -EINVAL,
                       "no job of that period can be replayed: none was submitted in it, ran and "
                       "ended (%u still run, %u were submitted before it); ask for a longer period",
                       p->running, p->carried);
}

static int ask_whatif(struct stk_store *st, json_t *question, json_t **ret, struct stk_err *err)
{
    struct stk_past p = {.since = time_of(question, "since"),
                         .until = time_of(question, "until"),
                         .now = time_of(question, "now")};
    json_t *changes = json_object_get(question, "changes");
    bool imported = json_object_get(question, "import") != NULL;
    json_t *world = imported ? NULL : world_at(st, p.since, question);
    struct stk_world all = {0};
    struct stk_period_figures period;
    json_t *actual = NULL;
    int rc = 0;

    tell(NULL, 0, "reading the past");
    if (!imported) { /* with the names of all types there may be */
        rc = stk_world_make(&all, world, changes, err);
        p.world = &all;
        rc = rc < 0 ? rc : stk_past_read(&p, st, err);
        rc = rc < 0 ? rc : check_replayed(&p, err);
        rc = rc < 0 ? rc
                    : stk_figures(st, (struct stk_period){p.since, p.until}, p.now, &period,
                                  &actual, err);
    }
    rc = rc < 0 ? rc : give_up_rights(err);
    if (rc == 0 && imported)
        rc = read_import(question, &p.trace, &world, err);
    rc = rc < 0 ? rc : compare(&p, imported ? NULL : &period, world, changes, ret, err);
    if (rc == 0) {
        (void)json_object_set_new(*ret, "jobs", count_jobs(&p, imported));
        (void)json_object_set_new(*ret, "actual", actual ? json_incref(actual) : json_null());
        (void)json_object_set_new(*ret, "since", json_real((double)p.trace.jobs[0].submit / 1e6));
        (void)json_object_set_new(*ret, "until",
                                  json_real((double)p.trace.jobs[p.trace.n_jobs - 1].submit / 1e6));
    }
    stk_world_done(&all);
    stk_trace_done(&p.trace);
    json_decref(actual);
    json_decref(world);
    return rc;
}

static int ask_figures(struct stk_store *st, json_t *question, json_t **ret, struct stk_err *err)
{
    const struct stk_period p = {time_of(question, "since"), time_of(question, "until")};
    struct stk_period_figures f;

    return stk_figures(st, p, time_of(question, "now"), &f, ret, err);
}

static int answer(json_t *question, json_t **ret, struct stk_err *err)
{
    const char *task = json_string_value(json_object_get(question, "task"));
    const char *state = json_string_value(json_object_get(question, "state"));
    struct stk_store *st = NULL;
    int rc = 0;

    if (state && !json_object_get(question, "import"))
        rc = stk_store_open(state, STK_STORE_READ_ONLY, &st, err);
    if (rc == 0 && task && strcmp(task, "figures") == 0)
        rc = ask_figures(st, question, ret, err);
    else if (rc == 0)
        rc = ask_whatif(st, question, ret, err);
    stk_store_close(st);
    return rc;
}

int main(int argc, char **argv)
{
    struct stk_err err = {""};
    json_t *question, *result = NULL;
    int rc;

    if (argc > 1 && strcmp(argv[1], "export") == 0)
        return stk_whatif_export(argc - 1, argv + 1);
    if (argc > 1) {
        (void)fprintf(stderr, "stoker-whatif is for the daemon; see stoker whatif --help\n");
        return 2;
    }
    question = hear(&err);
    if (question)
        step_back(question);
    rc = question ? answer(question, &result, &err) : -EINVAL;
    say(rc == 0 ? json_pack("{s:O}", "result", result)
                : json_pack("{s:s}", "error", err.text[0] ? err.text : "out of memory"));
    json_decref(result);
    json_decref(question);
    return rc == 0 ? 0 : 1;
}
