/* SPDX-License-Identifier: Apache-2.0 */
/* demo.c - "stoker demo": a daemon of its own in a folder of its own, the day of demo_day.c sent to
 * it, what happens told as it happens, and the results checked at the end. */
#include "cli/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/follow.h"
#include "cli/programs.h"
#include "cli/submit.h"
#include "cli/view.h"
#include "sys/signals.h"

struct show {
    struct stk_ask *k;
    struct stk_demo d;
    char dir[PATH_MAX];
    pid_t daemon;
    double began;
    int signals;
};

static void tell(const struct show *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void tell(const struct show *s, const char *fmt, ...)
{
    char text[512], clean[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)printf("%5.1fs  %s\n", s->began > 0 ? stk_now() - s->began : 0.0,
                 stk_text_clean(clean, sizeof(clean), text, false));
    (void)fflush(stdout);
}

/* Writes the daemon's configuration and starts it. */
static int start_daemon(struct show *s)
{
    char program[PATH_MAX], path[PATH_MAX + 32], log[PATH_MAX + 32];
    sigset_t none;
    FILE *f;
    int fd, rc = stk_find_program("stokerd", program, sizeof(program));

    if (rc != STK_EXIT_OK)
        return rc;
    (void)snprintf(path, sizeof(path), "%s/stoker.yaml", s->dir);
    (void)snprintf(log, sizeof(log), "%s/daemon.log", s->dir);
    f = fopen(path, "we");
    if (!f)
        return stk_misused(s->k->a, "cannot write %s: %s", path, strerror(errno));
    (void)fprintf(f, "socket: %s/stoker.sock\nstate: %s/state\nlisten: off\nvirtual_gpus: %d\n",
                  s->dir, s->dir, STK_DEMO_GPUS);
    if (fclose(f) != 0)
        return stk_misused(s->k->a, "cannot write %s: %s", path, strerror(errno));
    s->daemon = fork();
    if (s->daemon == 0) {
        fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        (void)setpgid(0, 0); /* Ctrl-C is ours to handle */
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
        (void)execl(program, program, "--config", path, (char *)NULL);
        _exit(127);
    }
    return s->daemon > 0 ? STK_EXIT_OK : STK_EXIT_FAILED;
}

static int wait_for_daemon(struct show *s)
{
    struct stk_err err = {""};
    json_t *health = NULL;

    for (int i = 0; i < 200; i++) {
        int status;

        if (stk_client_get(s->k->c, &health, &err, "/v1/health") == 0) {
            json_decref(health);
            return STK_EXIT_OK;
        }
        if (waitpid(s->daemon, &status, WNOHANG) == s->daemon) {
            s->daemon = 0;
            (void)fprintf(stderr, "stoker demo: the daemon did not start; see %s/daemon.log\n",
                          s->dir);
            return STK_EXIT_FAILED;
        }
        (void)poll(NULL, 0, 50);
    }
    return stk_ask_fail(s->k, -EHOSTDOWN, &err);
}

static int open_own(struct show *s)
{
    const char *tmp = getenv("TMPDIR");
    char path[PATH_MAX + 32];
    int rc;

    (void)snprintf(s->dir, sizeof(s->dir), "%s/stoker-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(s->dir))
        return stk_misused(s->k->a, "no temporary folder: %s", strerror(errno));
    rc = start_daemon(s);
    (void)snprintf(path, sizeof(path), "%s/stoker.sock", s->dir);
    stk_client_free(s->k->c);
    s->k->c = stk_client_new(path);
    return rc != STK_EXIT_OK ? rc : wait_for_daemon(s);
}

/* On the daemon that runs already: it must have the GPUs. */
static int open_here(struct show *s)
{
    json_t *cluster = NULL;
    int rc = stk_ask_get(s->k, &cluster, "/v1/cluster");
    int64_t gpus = stk_int(json_object_get(cluster, "gpus"), "total", 0);

    json_decref(cluster);
    if (rc != STK_EXIT_OK)
        return rc;
    if (gpus < STK_DEMO_GPUS)
        return stk_misused(s->k->a, "it takes %d GPUs, here are %lld", STK_DEMO_GPUS,
                           (long long)gpus);
    (void)snprintf(s->dir, sizeof(s->dir), "/tmp/stoker-demo-XXXXXX");
    return mkdtemp(s->dir) ? STK_EXIT_OK : STK_EXIT_FAILED;
}

static json_t *describe(const struct show *s, int i)
{
    const struct stk_demo_job *j = &stk_demo_day[i];
    json_t *spec = json_loads(j->spec, 0, NULL);
    const char *colon = j->after ? strchr(j->after, ':') : NULL;
    char pattern[64];

    (void)json_object_set_new(spec, "name", json_string(j->name));
    (void)json_object_set_new(spec, "workdir", json_string(s->dir));
    (void)snprintf(pattern, sizeof(pattern), "%s.out", j->name);
    if (json_object_get(spec, "array"))
        (void)snprintf(pattern, sizeof(pattern), "%s-%%a.out", j->name);
    if (!json_object_get(spec, "stdout"))
        (void)json_object_set_new(spec, "stdout", json_string(pattern));
    if (colon)
        (void)json_object_set_new(spec, "depends",
                                  json_pack("[{s:s%, s:I}]", "type", j->after,
                                            (size_t)(colon - j->after), "job",
                                            (json_int_t)s->d.first[stk_demo_find(colon + 1)]));
    return spec;
}

static int submit(struct show *s, int i)
{
    json_t *spec = describe(s, i), *reply = NULL;
    int rc = stk_ask_submit(s->k, spec, NULL, false, &reply);

    if (rc == STK_EXIT_OK) {
        int64_t n =
            stk_int(reply, "count", (int64_t)json_array_size(json_object_get(reply, "ids")));

        s->d.first[i] = (uint32_t)stk_ask_submitted(reply);
        s->d.count[i] = n > 0 ? (uint32_t)n : 1;
        tell(s, "job %u \"%s\" submitted: %s", s->d.first[i], stk_demo_day[i].name,
             stk_demo_day[i].says);
    }
    json_decref(reply);
    json_decref(spec);
    return rc;
}

/* What a change from one state to another means, in words. */
static void tell_change(const struct show *s, const json_t *was, const json_t *job)
{
    const char *state = stk_view_state(job), *before = was ? stk_view_state(was) : "";
    char id[40], where[256];

    if (strcmp(state, before) == 0 || strcmp(state, "starting") == 0 ||
        strcmp(state, "stopping") == 0)
        return;
    (void)stk_view_id(job, id, sizeof(id));
    (void)stk_view_where(job, where, sizeof(where));
    if (strcmp(state, "running") == 0)
        tell(s, "job %s \"%s\" %s %s", id, stk_str(job, "name"),
             stk_int(job, "preemptions", 0) > 0 ? "goes on, now on" : "starts on", where);
    else if (strcmp(state, "suspended") == 0)
        tell(s, "job %s \"%s\" is suspended: its GPUs are needed", id, stk_str(job, "name"));
    else if (stk_view_ended(job))
        tell(s, "job %s \"%s\" %s", id, stk_str(job, "name"), state);
    else if (was == NULL && (strcmp(state, "waiting") == 0 || strcmp(state, "blocked") == 0))
        tell(s, "job %s \"%s\" waits: %s", id, stk_str(job, "name"), where);
}

/* Are the GPUs of jobs that run now different ones? */
static void check_overlap(struct show *s)
{
    uint64_t used = 0;
    const char *key;
    json_t *job, *gpus;

    json_object_foreach(s->d.jobs, key, job)
    {
        if (strcmp(stk_str(job, "state"), "running") != 0)
            continue;
        gpus = json_object_get(job, "gpu_indices");
        for (size_t i = 0; i < json_array_size(gpus); i++) {
            uint64_t bit = UINT64_C(1) << (json_integer_value(json_array_get(gpus, i)) & 63);

            s->d.overlap = s->d.overlap || (used & bit) != 0;
            used |= bit;
        }
    }
}

static int look_at(struct show *s, uint32_t number, bool *ret_ended)
{
    const json_t *was = stk_demo_job(&s->d, number);
    json_t *job = NULL;
    char key[16];
    int rc;

    if (was && stk_view_ended(was))
        return STK_EXIT_OK;
    rc = stk_ask_get(s->k, &job, "/v1/jobs/%u", number);
    if (rc != STK_EXIT_OK)
        return rc;
    tell_change(s, was, job);
    *ret_ended = *ret_ended && stk_view_ended(job);
    (void)snprintf(key, sizeof(key), "%u", number);
    (void)json_object_set_new(s->d.jobs, key, job);
    return STK_EXIT_OK;
}

/* One look at everything. *ret_over: all has been submitted and has ended. */
static int step(struct show *s, bool *ret_over)
{
    bool over = true;
    int rc = STK_EXIT_OK;

    for (int i = 0; stk_demo_day[i].name && rc == STK_EXIT_OK; i++) {
        if (s->d.count[i] == 0 && stk_now() - s->began >= stk_demo_day[i].at)
            rc = submit(s, i);
        over = over && s->d.count[i] > 0;
        for (uint32_t n = 0; n < s->d.count[i] && rc == STK_EXIT_OK; n++)
            rc = look_at(s, s->d.first[i] + n, &over);
    }
    check_overlap(s);
    *ret_over = over;
    return rc;
}

static int play(struct show *s)
{
    bool over = false;
    int rc = STK_EXIT_OK;

    s->began = stk_now();
    while (rc == STK_EXIT_OK && !over) {
        rc = step(s, &over);
        if (stk_now() - s->began > STK_DEMO_LIMIT_S) {
            tell(s, "this takes too long");
            break;
        }
        if (!over && poll(&(struct pollfd){.fd = s->signals, .events = POLLIN}, 1, 200) > 0)
            return 128 + stk_signal_read(s->signals);
    }
    if (rc != STK_EXIT_OK)
        return rc;
    (void)printf("\n");
    return stk_demo_check(&s->d) > 0 ? STK_EXIT_FAILED : STK_EXIT_OK;
}

static void stop_daemon(pid_t pid)
{
    (void)kill(pid, SIGTERM);
    for (int i = 0; i < 100; i++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        (void)poll(NULL, 0, 50);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* Ends what is left, then the daemon; the folder goes when all went well. */
static void clean_up(struct show *s, int rc)
{
    struct stk_err err = {""};
    json_t *ids = json_array(), *body;

    for (int i = 0; stk_demo_day[i].name && rc != STK_EXIT_OK; i++)
        for (uint32_t n = 0; n < s->d.count[i]; n++)
            (void)json_array_append_new(ids, json_integer(s->d.first[i] + n));
    body = json_pack("{s:s, s:o}", "verb", "cancel", "ids", ids);
    if (json_array_size(ids) > 0)
        (void)stk_client_call(
            s->k->c, &(struct stk_call){.method = "POST", .path = "/v1/jobs/act", .body = body},
            NULL, &err);
    json_decref(body);
    if (s->daemon > 0) {
        if (json_array_size(ids) > 0)
            (void)poll(NULL, 0, 1000);
        stop_daemon(s->daemon);
    }
    if (s->dir[0] == '\0')
        return;
    if (rc == STK_EXIT_OK && !stk_arg_is(s->k->a, "keep"))
        stk_remove_tree(s->dir);
    else
        (void)printf("The folder is kept: %s\n", s->dir);
}

static int run_demo(const struct stk_args *a)
{
    bool here = stk_arg_is(a, "here");
    struct stk_ask k;
    struct show s = {.k = &k, .d.jobs = json_object()};
    int rc = a->n_words > 0 ? stk_misused(a, "takes no words") : stk_ask_open(&k, a);

    if (rc != STK_EXIT_OK) {
        json_decref(s.d.jobs);
        return rc;
    }
    s.signals = stk_signals();
    s.d.folder = s.dir;
    rc = here ? open_here(&s) : open_own(&s);
    if (rc == STK_EXIT_OK) {
        (void)printf("A small day on %d %sGPUs. It takes about a minute.\n\n", STK_DEMO_GPUS,
                     here ? "" : "virtual ");
        rc = play(&s);
        (void)printf("\n%s\n",
                     rc == STK_EXIT_OK ? "All is as it should be." : "Something went wrong.");
    }
    clean_up(&s, rc);
    json_decref(s.d.jobs);
    (void)close(s.signals);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"here", 0, NULL, "on the daemon that runs already, instead of one of its own", NULL},
    {"keep", 0, NULL, "keep the folder with the output", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_demo = {
    .name = "demo",
    .synopsis = "[--here] [--keep]",
    .help = "a small mixed day on 8 virtual GPUs, explained as it happens",
    .about =
        "Starts a daemon of its own in a temporary folder, sends it gangs, an array, jobs that\n"
        "depend on others, and jobs that give way to others; tells what happens and checks\n"
        "that it is right.",
    .options = groups,
    .section = STK_SECTION_SITE,
    .run = run_demo,
};
