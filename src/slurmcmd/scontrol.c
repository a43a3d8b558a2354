/* SPDX-License-Identifier: Apache-2.0 */
/* scontrol.c - what is done to jobs by hand, and what tools ask: show job, show hostnames. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/job.h"
#include "slurmcmd/fields.h"
#include "spec/spec.h"
#include "spec/words.h"

static int each_job(struct stk_slurm *s, const char *verb, const json_t *args, const json_t *jobs)
{
    int bad = 0;

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        json_t *answer = NULL;
        char path[80], id[48];
        struct stk_call call = {.method = "POST", .path = path, .body = args};
        struct stk_err err = {""};

        (void)snprintf(path, sizeof(path), "/v1/jobs/%" PRId64 "/%s",
                       stk_int(json_array_get(jobs, i), "id", 0), verb);
        if (stk_client_call(s->c, &call, &answer, &err) < 0) {
            stk_slurm_say(s->name, "error: job %s: %s",
                          stk_slurm_id(json_array_get(jobs, i), id, sizeof(id)), err.text);
            bad = 1;
        }
        json_decref(answer);
    }
    return bad;
}

/* "requeue 12,13_4" and the like; several words are several lists. */
static int act(struct stk_slurm *s, const char *verb, const json_t *args, int argc,
               const char *const *argv)
{
    int bad = 0;

    if (argc == 0)
        return stk_slurm_misuse(s->name, "too few arguments for keyword:%s", verb);
    for (int i = 0; i < argc; i++) {
        const char *ids = strncasecmp(argv[i], "jobid=", 6) == 0 ? argv[i] + 6 : argv[i];
        json_t *jobs = json_array();
        struct stk_err err = {""};

        if (stk_slurm_find(s, ids, false, jobs, &err) < 0)
            bad = stk_slurm_fail(s, &err);
        else if (json_array_size(jobs) == 0) {
            stk_slurm_say(s->name, "error: Job/step already completing or completed: %s",
                          stk_words_show(ids).text);
            bad = 1;
        } else {
            bad |= each_job(s, verb, args, jobs);
        }
        json_decref(jobs);
    }
    return bad;
}

static int print_name(void *ctx, const char *name)
{
    (void)ctx;
    return puts(name) < 0 ? -EIO : 0;
}

static int show_hostnames(const char *name, int argc, char **argv)
{
    const char *env = getenv("SLURM_JOB_NODELIST"); // NOLINT(concurrency-mt-unsafe)
    const char *list = argc > 0 ? argv[0] : env;

    if (!list)
        return stk_slurm_misuse(name, "show hostnames needs a list, or SLURM_JOB_NODELIST");
    if (stk_words_hosts(list, print_name, NULL) < 0)
        return stk_slurm_misuse(name, "Invalid hostlist: %s", stk_words_show(list).text);
    return 0;
}

/* "JobId=12 JobName=x": one field of fields.c under the name that scontrol has for it. */
static void pair(const struct stk_slurm *s, const json_t *job, const char *shown, const char *field,
                 const char *after)
{
    char text[STK_FIELD_MAX] = "";

    for (const struct stk_slurm_field *f = stk_slurm_fields; f->name; f++) {
        if (strcmp(f->name, field) == 0) {
            f->get(s, job, text, sizeof(text));
            break;
        }
    }
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    (void)printf("%s=%s%s", shown, *text ? text : "(null)", after);
}

static void show_one(const struct stk_slurm *s, const json_t *job)
{
    static const char *const rows[][3] = {
        {"JobName", "JobName", "\n   "},
        {"UserId", "User", " "},
        {"Priority", "Priority", " "},
        {"Account", "Account", " "},
        {"QOS", "QOS", " "},
        {"WCKey", "WCKey", "\n   "},
        {"JobState", "State", " "},
        {"Reason", "Reason", " "},
        {"Dependency", "Dependency", "\n   "},
        {"Restarts", "Restarts", " "},
        {"ExitCode", "ExitCode", "\n   "},
        {"RunTime", "Elapsed", " "},
        {"TimeLimit", "Timelimit", "\n   "},
        {"SubmitTime", "Submit", "\n   "},
        {"StartTime", "Start", " "},
        {"EndTime", "End", "\n   "},
        {"Partition", "Partition", "\n   "},
        {"NodeList", "NodeList", "\n   "},
        {"BatchHost", "BatchHost", "\n   "},
        {"NumNodes", "NNodes", " "},
        {"NumCPUs", "NCPUS", " "},
        {"NumTasks", "NTasks", "\n   "},
        {"ReqTRES", "ReqTRES", "\n   "},
        {"AllocTRES", "AllocTRES", "\n   "},
        {"TresPerNode", "TresPerNode", "\n   "},
        {"Comment", "Comment", "\n   "},
        {"WorkDir", "WorkDir", "\n   "},
        {"StdErr", "StdErr", "\n   "},
        {"StdOut", "StdOut", "\n\n"},
    };

    (void)printf("JobId=%" PRId64 " ", stk_int(job, "id", 0));
    if (stk_int(job, "array_id", 0) > 0)
        (void)printf("ArrayJobId=%" PRId64 " ArrayTaskId=%" PRId64 " ", stk_int(job, "array_id", 0),
                     stk_int(job, "array_index", 0));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        pair(s, job, rows[i][0], rows[i][1], rows[i][2]);
}

static int show_jobs(struct stk_slurm *s, const char *ids)
{
    json_t *jobs = json_array();
    struct stk_err err = {""};
    int rc = stk_slurm_nodes(s, &err);

    if (rc == 0)
        rc = ids ? stk_slurm_find(s, ids, true, jobs, &err)
                 : stk_slurm_live(s, "", true, jobs, &err);
    for (size_t i = 0; rc == 0 && i < json_array_size(jobs); i++)
        show_one(s, json_array_get(jobs, i));
    json_decref(jobs);
    return rc < 0 ? stk_slurm_fail(s, &err) : 0;
}

static int show_nodes(struct stk_slurm *s, const char *name)
{
    struct stk_err err = {""};
    bool found = false;

    if (stk_slurm_nodes(s, &err) < 0)
        return stk_slurm_fail(s, &err);
    for (size_t i = 0; i < json_array_size(s->nodes); i++) {
        const json_t *n = json_array_get(s->nodes, i);

        if (name && strcmp(name, stk_str(n, "name")) != 0)
            continue;
        found = true;
        (void)printf("NodeName=%s CPUTot=%" PRId64 " RealMemory=%" PRId64 " Gres=gpu:%" PRId64
                     "\n   State=%s Partitions=%s\n\n",
                     stk_str(n, "name"), stk_int(n, "cpus", 0), stk_int(n, "mem_mib", 0),
                     stk_int(n, "gpus", 0),
                     strcmp(stk_str(n, "state"), "up") != 0 ? "DOWN"
                     : stk_int(n, "gpus_busy", 0) > 0       ? "MIXED"
                                                            : "IDLE",
                     stk_str(n, "pool"));
    }
    return found ? 0 : (stk_slurm_say(s->name, "error: Node %s not found", name ? name : ""), 1);
}

static int show(struct stk_slurm *s, int argc, char **argv)
{
    const char *what = argc > 0 ? argv[0] : "", *eq = strchr(what, '=');
    const char *name = eq ? eq + 1 : argc > 1 ? argv[1] : NULL;
    size_t n = eq ? (size_t)(eq - what) : strlen(what);

    if (strncasecmp(what, "jobs", n) == 0 && n >= 3)
        return show_jobs(s, name);
    if (strncasecmp(what, "jobid", n) == 0 && n >= 3)
        return show_jobs(s, name);
    if (strncasecmp(what, "nodes", n) == 0 && n >= 4)
        return show_nodes(s, name);
    return stk_slurm_misuse(s->name,
                            "show %s is not supported; there are show job, show node and show "
                            "hostnames",
                            stk_words_show(what).text);
}

/* "TimeLimit=2:00:00" and the like into what the daemon takes. -EINVAL: the value is wrong;
 * -ENOENT: there is no such word. */
static int change(const char *word, json_t *changes)
{
    const char *eq = strchr(word, '='), *v = eq ? eq + 1 : "";
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    int64_t number = 0;

    if (n == 9 && strncasecmp(word, "TimeLimit", n) == 0) {
        bool none = strcasecmp(v, "UNLIMITED") == 0 || strcasecmp(v, "INFINITE") == 0;

        if (!none && stk_words_duration(v, 60, &number) < 0)
            return -EINVAL;
        return json_object_set_new(changes, "time_limit_s", json_integer(number));
    }
    if (n == 8 && strncasecmp(word, "Priority", n) == 0)
        return stk_words_signed(v, -STK_MAX_PRIORITY, STK_MAX_PRIORITY, &number) < 0
                   ? -EINVAL
                   : json_object_set_new(changes, "priority", json_integer(number));
    if (n == 4 && strncasecmp(word, "Nice", n) == 0) /* less of what jobs have */
        return stk_words_signed(v, -1000000, 1000000, &number) < 0
                   ? -EINVAL
                   : json_object_set_new(changes, "nice", json_integer(number));
    if ((n == 7 && strncasecmp(word, "JobName", n) == 0) ||
        (n == 4 && strncasecmp(word, "Name", n) == 0))
        return *v ? json_object_set_new(changes, "name", json_string(v)) : -EINVAL;
    return -ENOENT;
}

/* Priority 0 is a hold. Of jobs that have started the time limit can be changed. */
static int update(struct stk_slurm *s, int argc, char **argv)
{
    json_t *changes = json_object();
    const char *ids = NULL, *verb = "update";
    int rc = 0;

    for (int i = 0; i < argc && rc == 0; i++) {
        if (strncasecmp(argv[i], "jobid=", 6) == 0)
            ids = argv[i] + 6;
        else if (strcasecmp(argv[i], "priority=0") == 0)
            verb = "hold";
        else if ((rc = change(argv[i], changes)) == -ENOENT)
            rc =
                stk_slurm_misuse(s->name,
                                 "update %s is not supported: a job can get another TimeLimit, and "
                                 "before it has started another Priority, Nice or JobName",
                                 stk_words_show(argv[i]).text);
        else if (rc < 0)
            rc = stk_slurm_misuse(s->name, "update: %s is not understood",
                                  stk_words_show(argv[i]).text);
    }
    if (rc == 0 && (!ids || (json_object_size(changes) == 0 && strcmp(verb, "update") == 0)))
        rc = stk_slurm_misuse(s->name, "update needs JobId=N and what to change");
    if (rc == 0 && ids && json_object_size(changes) > 0)
        rc = act(s, "update", changes, 1, &ids);
    if (rc == 0 && ids && strcmp(verb, "hold") == 0)
        rc = act(s, verb, NULL, 1, &ids);
    json_decref(changes);
    return rc;
}

static int command(struct stk_slurm *s, int argc, char **argv)
{
    static const char *const verbs[][2] = {{"requeue", "requeue"}, {"hold", "hold"},
                                           {"uhold", "hold"},      {"release", "release"},
                                           {"suspend", "suspend"}, {"resume", "resume"}};

    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcasecmp(argv[0], verbs[i][0]) == 0)
            return act(s, verbs[i][1], NULL, argc - 1, (const char *const *)(argv + 1));
    if (strcasecmp(argv[0], "show") == 0)
        return show(s, argc - 1, argv + 1);
    if (strcasecmp(argv[0], "update") == 0)
        return update(s, argc - 1, argv + 1);
    if (strcasecmp(argv[0], "ping") == 0) {
        struct stk_err err = {""};

        if (stk_client_get(s->c, NULL, &err, "/v1/health") < 0)
            return stk_slurm_fail(s, &err);
        (void)puts("Slurmctld(primary) at localhost is UP");
        return 0;
    }
    return stk_slurm_misuse(s->name,
                            "invalid keyword: %s; there are requeue, hold, release, suspend, "
                            "resume, show, update and ping",
                            stk_words_show(argv[0]).text);
}

enum { ONE_LINE, QUIET, VERSION };

static const struct stk_opt options[] = {
    {"oneliner", 'o', STK_OPT_NONE, ONE_LINE},
    {"quiet", 'Q', STK_OPT_NONE, QUIET},
    {"verbose", 'v', STK_OPT_NONE, QUIET},
    {"version", 'V', STK_OPT_NONE, VERSION},
    {0},
};

int stk_scontrol_main(int argc, char **argv)
{
    struct stk_opts o = {.table = options, .argc = argc, .argv = argv, .at = 1};
    struct stk_slurm s = {.name = argv[0]};
    struct stk_err err;
    int rc;

    while ((rc = stk_opts_next(&o, &err)) > 0) {
        if (o.opt->id == VERSION) {
            (void)puts(STK_SLURM_VERSION);
            return 0;
        }
        if (o.opt->id == ONE_LINE)
            return stk_slurm_misuse(argv[0], "%s is not supported", o.shown);
    }
    if (rc < 0)
        return stk_slurm_misuse(argv[0], "%s", err.text);
    argc -= o.at;
    if (argc == 0)
        return stk_slurm_misuse(argv[0], "expected a command such as requeue 12");
    if (argc >= 2 && strcasecmp(argv[o.at], "show") == 0 &&
        strncasecmp(argv[o.at + 1], "hostname", 8) == 0)
        return show_hostnames(argv[0], argc - 2, argv + o.at + 2);
    rc = stk_slurm_open(&s, argv[0]);
    if (rc == 0)
        rc = command(&s, argc, argv + o.at);
    stk_slurm_close(&s);
    return rc;
}
