/* SPDX-License-Identifier: Apache-2.0 */
/* squeue.c - jobs that have not ended. An element of an array has a row of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurmcmd/fields.h"
#include "spec/words.h"

#define STANDARD "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define LONG "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"

enum {
    JOBS,
    USERS,
    ME,
    STATES,
    NAMES,
    FORMAT,
    LONG_FORMAT,
    NO_HEADER,
    LONG_ROWS,
    PARTITION,
    NOTHING,
    ACCOUNT,
    VERSION
};

static const struct stk_opt options[] = {
    {"jobs", 'j', STK_OPT_NEEDS, JOBS},
    {"job", 0, STK_OPT_NEEDS, JOBS},
    {"user", 'u', STK_OPT_NEEDS, USERS},
    {"users", 0, STK_OPT_NEEDS, USERS},
    {"me", 0, STK_OPT_NONE, ME},
    {"states", 't', STK_OPT_NEEDS, STATES},
    {"state", 0, STK_OPT_NEEDS, STATES},
    {"name", 'n', STK_OPT_NEEDS, NAMES},
    {"format", 'o', STK_OPT_NEEDS, FORMAT},
    {"Format", 'O', STK_OPT_NEEDS, LONG_FORMAT},
    {"noheader", 'h', STK_OPT_NONE, NO_HEADER},
    {"long", 'l', STK_OPT_NONE, LONG_ROWS},
    {"partition", 'p', STK_OPT_NEEDS, PARTITION},
    {"account", 'A', STK_OPT_NEEDS, ACCOUNT},
    {"array", 'r', STK_OPT_NONE, NOTHING},
    {"all", 'a', STK_OPT_NONE, NOTHING},
    {"verbose", 'v', STK_OPT_NONE, NOTHING},
    {"version", 'V', STK_OPT_NONE, VERSION},
    {0},
};

struct asked {
    const char *jobs, *users, *states, *names, *format, *long_format, *partition, *account;
    bool me, no_header, long_rows, version;
};

static int read_options(int argc, char **argv, struct asked *a)
{
    struct stk_opts o = {.table = options, .argc = argc, .argv = argv, .at = 1};
    struct stk_err err;
    int rc;

    while ((rc = stk_opts_next(&o, &err)) > 0) {
        const char **word[] = {
            [JOBS] = &a->jobs,           [USERS] = &a->users,     [STATES] = &a->states,
            [NAMES] = &a->names,         [FORMAT] = &a->format,   [LONG_FORMAT] = &a->long_format,
            [PARTITION] = &a->partition, [ACCOUNT] = &a->account, [VERSION] = NULL};

        a->me |= o.opt->id == ME;
        a->no_header |= o.opt->id == NO_HEADER;
        a->long_rows |= o.opt->id == LONG_ROWS;
        a->version |= o.opt->id == VERSION;
        if (word[o.opt->id])
            *word[o.opt->id] = o.value;
    }
    return stk_slurm_flags_only(&o, rc, &err);
}

/* Is the word in the list "a,b,c"? No list has everything. */
static bool listed(const char *list, const char *word)
{
    size_t len = strlen(word);

    if (!list)
        return true;
    for (const char *p = list; *p != '\0';) {
        size_t n = strcspn(p, ",");

        if (n == len && memcmp(p, word, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

static bool shown(const struct stk_slurm *s, const struct asked *a, const json_t *job)
{
    const json_t *spec = json_object_get(job, "spec");
    const char *pool = stk_str(spec, "pool");
    char uid[24];
    bool in = true;

    (void)snprintf(uid, sizeof(uid), "%lld", (long long)stk_int(job, "uid", -1));
    if (a->me && stk_int(job, "uid", -1) != (int64_t)getuid())
        return false;
    if (a->users && !listed(a->users, stk_str(job, "user")) && !listed(a->users, uid))
        return false;
    if (a->states)
        (void)stk_slurm_state_in(stk_slurm_state(job), a->states, &in);
    else
        in = strcmp(stk_str(job, "state"), "done") != 0;
    return in && listed(a->names, stk_str(job, "name")) &&
           listed(a->partition, *pool ? pool : s->pool) &&
           listed(a->account, stk_str(spec, "account"));
}

/* Jobs that were asked for by number and are long gone are no error: they are not in the queue. */
static int collect(struct stk_slurm *s, const struct asked *a, bool detail, json_t *jobs,
                   struct stk_err *err)
{
    int rc = stk_slurm_nodes(s, err);

    if (rc < 0)
        return rc;
    detail |= s->pool[0] == '\0' || a->account != NULL;
    return a->jobs ? stk_slurm_find(s, a->jobs, false, jobs, err)
                   : stk_slurm_live(s, "", detail, jobs, err);
}

static int show(struct stk_slurm *s, const struct asked *a, const struct stk_slurm_table *t)
{
    json_t *jobs = json_array();
    struct stk_err err = {""};
    int rc = collect(s, a, t->detail, jobs, &err);

    if (rc < 0) {
        json_decref(jobs);
        return stk_slurm_fail(s, &err);
    }
    if (!a->no_header)
        stk_slurm_header(t);
    for (size_t i = 0; i < json_array_size(jobs); i++)
        if (shown(s, a, json_array_get(jobs, i)))
            stk_slurm_row(t, s, json_array_get(jobs, i));
    json_decref(jobs);
    return 0;
}

int stk_squeue_main(int argc, char **argv)
{
    const char *standard = getenv("SQUEUE_FORMAT"); // NOLINT(concurrency-mt-unsafe)
    struct asked a = {0};
    struct stk_slurm_table t = {0};
    struct stk_slurm s = {.name = argv[0]};
    struct stk_err err = {""};
    bool known;
    int rc = read_options(argc, argv, &a);

    if (rc)
        return rc;
    if (a.version) {
        (void)puts(STK_SLURM_VERSION);
        return 0;
    }
    if (a.states && stk_slurm_state_in(NULL, a.states, &known) < 0)
        return stk_slurm_misuse(argv[0], "Invalid job state specified: %s",
                                stk_words_show(a.states).text);
    if (a.long_format)
        rc = stk_slurm_names(&t, a.long_format, ':', &err);
    else
        rc = stk_slurm_letters(&t,
                               a.format      ? a.format
                               : a.long_rows ? LONG
                               : standard    ? standard
                                             : STANDARD,
                               &err);
    if (rc < 0)
        rc = stk_slurm_misuse(argv[0], "%s", err.text);
    else
        rc = stk_slurm_open(&s, argv[0]);
    if (rc == 0)
        rc = show(&s, &a, &t);
    stk_slurm_close(&s);
    stk_slurm_table_done(&t);
    return rc;
}
