/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - "stoker export": the past as files that stoker sim reads. */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "spec/words.h"
#include "sys/state_dir.h"
#include "whatif/whatif.h"

static const char usage[] =
    "usage: stoker export FOLDER [--since WHEN] [--until WHEN] [--state DIR]\n"
    "\n"
    "Writes what the daemon remembers of a period as files for the simulator: jobs.jsonl,\n"
    "cluster.yaml and, where there are tenants or queues, tenants.yaml. The folder must not be\n"
    "there yet. It is read from the store, so it takes the rights of the daemon's user.\n"
    "\n"
    "  --since WHEN   7d, 12h (ago), 2026-11-01 or 2026-11-01T08:00 (7d)\n"
    "  --until WHEN   likewise (now)\n"
    "  --state DIR    the state directory (default: as of stoker store)\n";

struct options {
    const char *folder, *state;
    stk_time since, until, now;
};

/* "7d": so long ago; else a time. */
static int read_when(const char *text, int64_t now_s, stk_time *ret)
{
    int64_t s;

    if (stk_words_duration(text, 1, &s) == 0 && strspn(text, "0123456789") != strlen(text))
        s = now_s - s;
    else if (stk_words_time(text, now_s, &s, NULL) < 0)
        return -EINVAL;
    *ret = s * STK_SECOND;
    return s < 0 ? -EINVAL : 0;
}

static int misuse(const char *what, const char *got)
{
    (void)fprintf(stderr, "stoker export: %s%s\n%s", what, got, usage);
    return 2;
}

static int take(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {{"since", required_argument, NULL, 's'},
                                          {"until", required_argument, NULL, 'u'},
                                          {"state", required_argument, NULL, 'S'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    int64_t now = (int64_t)time(NULL);
    int c;

    o->now = now * STK_SECOND;
    o->since = o->now - INT64_C(7) * 86400 * STK_SECOND;
    o->until = o->now;
    while ((c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
        if (c == 'h') {
            (void)fputs(usage, stdout);
            return 1;
        }
        if (c == '?' || (c == 's' && read_when(optarg, now, &o->since) < 0) ||
            (c == 'u' && read_when(optarg, now, &o->until) < 0))
            return misuse("a time is 7d, 12h or 2026-11-01, got ", optarg ? optarg : "nothing");
        if (c == 'S')
            o->state = optarg;
    }
    if (optind + 1 != argc)
        return misuse("name one folder", "");
    o->folder = argv[optind];
    return o->since < o->until ? 0 : misuse("--since must be before --until", "");
}

static int write_text(const char *folder, const char *name, const char *text, struct stk_err *err)
{
    char path[PATH_MAX];
    FILE *f;
    int rc = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "wxe");
    if (!f || fputs(text, f) < 0 || putc('\n', f) < 0)
        rc = -errno;
    if (f && fclose(f) != 0 && rc == 0)
        rc = -errno;
    return rc < 0 ? stk_err_set(err, rc, "%.200s: %s", path, strerror(-rc)) : 0;
}

static int write_all(const struct options *o, const struct stk_past *p, const struct stk_world *w,
                     struct stk_err *err)
{
    char path[PATH_MAX], *cluster = stk_world_cluster_text(w->json);
    char *teams = w->has_tenants ? stk_world_teams_text(w->json) : NULL;
    int rc = 0;

    if (mkdir(o->folder, 0700) < 0)
        rc = stk_err_set(err, -errno, "%.200s: %s", o->folder, strerror(errno));
    (void)snprintf(path, sizeof(path), "%s/jobs.jsonl", o->folder);
    rc = rc < 0 ? rc : stk_trace_write_jsonl(&p->trace, path, err);
    rc = rc < 0 ? rc : write_text(o->folder, "cluster.yaml", cluster ? cluster : "", err);
    if (rc == 0 && teams)
        rc = write_text(o->folder, "tenants.yaml", teams, err);
    free(cluster);
    free(teams);
    return rc;
}

static void show_policy(const json_t *policy)
{
    static const char *const words[] = {"bundle", "order", "backfill", "place", "preempt"};
    const json_t *v;
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (json_object_get(policy, words[i]))
            (void)printf(" --%s %s", words[i],
                         json_string_value(json_object_get(policy, words[i])));
    json_array_foreach(json_object_get(policy, "params"), i, v)
    {
        (void)printf(" --param %s", json_string_value(v));
    }
}

static void show(const struct options *o, const struct stk_past *p, const struct stk_world *w)
{
    (void)printf("%s: %u jobs; %u of them were there before, %u have not ended, %u never ran and "
                 "are left out\n",
                 o->folder, p->trace.n_jobs, p->carried, p->running, p->never_ran);
    (void)printf("stoker sim %s/jobs.jsonl --cluster %s/cluster.yaml", o->folder, o->folder);
    if (w->has_tenants)
        (void)printf(" --tenants %s/tenants.yaml", o->folder);
    show_policy(json_object_get(w->json, "policy"));
    (void)printf(" --lenient --recorded\n");
}

int stk_whatif_export(int argc, char **argv)
{
    struct options o = {0};
    char *found = NULL;
    struct stk_err err = {""};
    struct stk_store *st = NULL;
    struct stk_world w = {0};
    struct stk_past p = {.world = &w};
    char *text = NULL;
    json_t *world = NULL;
    int rc = take(argc, argv, &o);

    if (rc != 0)
        return rc == 1 ? 0 : rc;
    p.since = o.since;
    p.until = o.until;
    p.now = o.now;
    if (!o.state)
        o.state = found = stk_state_dir();
    rc = o.state ? stk_store_open(o.state, STK_STORE_READ_ONLY, &st, &err)
                 : stk_err_set(&err, -ENOENT, "no state directory is known: --state DIR");
    rc = rc < 0 ? rc : stk_store_world(st, o.since, &text, &err);
    if (rc == 0 && !(world = json_loads(text, 0, NULL)))
        rc = stk_err_set(&err, -EBADMSG, "the store is damaged: stoker store check --state %s",
                         o.state);
    rc = rc < 0 ? rc : stk_world_make(&w, world, NULL, &err);
    rc = rc < 0 ? rc : stk_past_read(&p, st, &err);
    rc = rc < 0 ? rc : write_all(&o, &p, &w, &err);
    if (rc == 0)
        show(&o, &p, &w);
    else
        (void)fprintf(stderr, "stoker export: %s\n", err.text);
    free(text);
    free(found);
    json_decref(world);
    stk_trace_done(&p.trace);
    stk_world_done(&w);
    stk_store_close(st);
    return rc < 0 ? 1 : 0;
}
