/* SPDX-License-Identifier: Apache-2.0 */
/* sacct.c - jobs, ended or not. There are no steps to show: every row is a whole job. Without -j it
 * shows the user's own jobs since midnight, as Slurm's does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "slurmcmd/fields.h"
#include "spec/words.h"

#define STANDARD "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
#define BRIEF "JobID,State,ExitCode"

enum {
    JOBS,
    FORMAT,
    NO_HEADER,
    PARSABLE,
    PARSABLE2,
    DELIMITER,
    SINCE,
    UNTIL,
    USERS,
    ALL_USERS,
    STATES,
    NAMES,
    BRIEF_ROWS,
    NOTHING,
    REFUSED,
    VERSION
};

static const struct stk_opt options[] = {
    {"jobs", 'j', STK_OPT_NEEDS, JOBS},
    {"format", 'o', STK_OPT_NEEDS, FORMAT},
    {"noheader", 'n', STK_OPT_NONE, NO_HEADER},
    {"parsable", 'p', STK_OPT_NONE, PARSABLE},
    {"parsable2", 'P', STK_OPT_NONE, PARSABLE2},
    {"delimiter", 0, STK_OPT_NEEDS, DELIMITER},
    {"starttime", 'S', STK_OPT_NEEDS, SINCE},
    {"endtime", 'E', STK_OPT_NEEDS, UNTIL},
    {"user", 'u', STK_OPT_NEEDS, USERS},
    {"uid", 0, STK_OPT_NEEDS, USERS},
    {"allusers", 'a', STK_OPT_NONE, ALL_USERS},
    {"state", 's', STK_OPT_NEEDS, STATES},
    {"name", 0, STK_OPT_NEEDS, NAMES},
    {"brief", 'b', STK_OPT_NONE, BRIEF_ROWS},
    {"allocations", 'X', STK_OPT_NONE, NOTHING},
    {"array", 0, STK_OPT_NONE, NOTHING},
    {"duplicates", 'D', STK_OPT_NONE, NOTHING},
    {"truncate", 'T', STK_OPT_NONE, NOTHING},
    {"verbose", 'v', STK_OPT_NONE, NOTHING},
    {"json", 0, STK_OPT_MAYBE, REFUSED},
    {"yaml", 0, STK_OPT_MAYBE, REFUSED},
    {"version", 'V', STK_OPT_NONE, VERSION},
    {0},
};

struct asked {
    json_t *jobs; /* lists of ids, in the order given */
    const char *format, *users, *states, *names, *since, *until;
    char delimiter;
    bool no_header, parsable, parsable2, all, brief, version;
};

static int take(struct asked *a, const struct stk_opts *o)
{
    switch (o->opt->id) {
    case JOBS:
        return json_array_append_new(a->jobs, json_string(o->value)) < 0 ? -EINVAL : 0;
    case FORMAT:
        a->format = o->value;
        break;
    case NO_HEADER:
        a->no_header = true;
        break;
    case PARSABLE:
        a->parsable = true;
        break;
    case PARSABLE2:
        a->parsable2 = true;
        break;
    case DELIMITER:
        a->delimiter = o->value[0];
        break;
    case SINCE:
        a->since = o->value;
        break;
    case UNTIL:
        a->until = o->value;
        break;
    case USERS:
        a->users = o->value;
        break;
    case ALL_USERS:
        a->all = true;
        break;
    case STATES:
        a->states = o->value;
        break;
    case NAMES:
        a->names = o->value;
        break;
    case BRIEF_ROWS:
        a->brief = true;
        break;
    case VERSION:
        a->version = true;
        break;
    case REFUSED:
        return -EOPNOTSUPP;
    default:
        break;
    }
    return 0;
}

static int read_options(int argc, char **argv, struct asked *a)
{
    struct stk_opts o = {.table = options, .argc = argc, .argv = argv, .at = 1};
    struct stk_err err;
    bool known;
    int rc;

    while ((rc = stk_opts_next(&o, &err)) > 0) {
        rc = take(a, &o);
        if (rc == -EOPNOTSUPP)
            return stk_slurm_misuse(argv[0], "%s is not supported: use --parsable2", o.shown);
        if (rc < 0)
            return stk_slurm_misuse(argv[0], "%s is not understood", o.shown);
    }
    rc = stk_slurm_flags_only(&o, rc, &err);
    if (rc != 0)
        return rc;
    if (a->states && stk_slurm_state_in(NULL, a->states, &known) < 0)
        return stk_slurm_misuse(argv[0], "Invalid state: %s", stk_words_show(a->states).text);
    return 0;
}

/* "now-2days" besides what stk_words_time() knows. */
static int read_when(const char *text, int64_t *ret)
{
    int64_t now = (int64_t)time(NULL), at;
    char plus[64];

    if (strncmp(text, "now-", 4) == 0) {
        (void)snprintf(plus, sizeof(plus), "now+%.50s", text + 4);
        if (stk_words_time(plus, now, &at, NULL) < 0)
            return -EINVAL;
        *ret = now - (at - now);
        return 0;
    }
    if (strchr(text, ':') && !strchr(text, 'T')) { /* today's, even when it has passed */
        if (stk_words_time(text, now, &at, NULL) < 0)
            return -EINVAL;
        *ret = at > now ? at - 86400 : at;
        return 0;
    }
    return stk_words_time(text, now, ret, NULL);
}

static int range(const struct asked *a, int64_t *since, int64_t *until, struct stk_err *err)
{
    *until = 0;
    if (read_when(a->since ? a->since : "today", since) < 0)
        return stk_err_set(err, -EINVAL, "Invalid time specification (-S): %s",
                           stk_words_show(a->since).text);
    if (a->until && read_when(a->until, until) < 0)
        return stk_err_set(err, -EINVAL, "Invalid time specification (-E): %s",
                           stk_words_show(a->until).text);
    return 0;
}

static int by_time(struct stk_slurm *s, const struct asked *a, bool detail, json_t *jobs,
                   struct stk_err *err)
{
    int64_t since = 0, until = 0;
    char query[300], user[160];
    json_t *ended = json_array();
    int rc = range(a, &since, &until, err);

    user[0] = '\0';
    if (!a->all) {
        char escaped[120];

        (void)snprintf(user, sizeof(user), "&user=%s",
                       a->users ? stk_client_escape(escaped, sizeof(escaped), a->users) : "me");
    }
    (void)snprintf(query, sizeof(query), "%s&since=%lld", user, (long long)since);
    if (until > 0)
        (void)snprintf(query + strlen(query), sizeof(query) - strlen(query), "&until=%lld",
                       (long long)until);
    rc = rc < 0 ? rc : stk_slurm_ended(s, query, detail, ended, err);
    for (size_t i = json_array_size(ended); i > 0; i--) /* the latest came first */
        (void)json_array_append(jobs, json_array_get(ended, i - 1));
    json_decref(ended);
    return rc < 0 ? rc : stk_slurm_live(s, user, detail, jobs, err);
}

/* Jobs that do not exist make no row, as with Slurm's. */
static int by_id(struct stk_slurm *s, const struct asked *a, json_t *jobs, struct stk_err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_array_size(a->jobs); i++) {
        char *list = strdup(json_string_value(json_array_get(a->jobs, i))), *save = NULL;

        for (char *id = strtok_r(list, ",", &save); rc == 0 && id;
             id = strtok_r(NULL, ",", &save)) {
            id[strcspn(id, ".")] = '\0'; /* a step */
            rc = stk_slurm_find(s, id, true, jobs, err);
            rc = rc == -ENOENT ? 0 : rc;
        }
        free(list);
    }
    return rc;
}

static bool shown(const struct asked *a, const json_t *job)
{
    bool in = true;

    if (a->states)
        (void)stk_slurm_state_in(stk_slurm_state(job), a->states, &in);
    return in && (!a->names || strcmp(a->names, stk_str(job, "name")) == 0);
}

static int show(struct stk_slurm *s, const struct asked *a, const struct stk_slurm_table *t)
{
    json_t *jobs = json_array();
    struct stk_err err = {""};
    int rc = stk_slurm_nodes(s, &err);

    if (rc == 0)
        rc = json_array_size(a->jobs) > 0 ? by_id(s, a, jobs, &err)
                                          : by_time(s, a, t->detail, jobs, &err);
    if (rc == 0 && !a->no_header)
        stk_slurm_header(t);
    for (size_t i = 0; rc == 0 && i < json_array_size(jobs); i++)
        if (shown(a, json_array_get(jobs, i)))
            stk_slurm_row(t, s, json_array_get(jobs, i));
    json_decref(jobs);
    return rc < 0 ? stk_slurm_fail(s, &err) : 0;
}

int stk_sacct_main(int argc, char **argv)
{
    const char *standard = getenv("SACCT_FORMAT"); // NOLINT(concurrency-mt-unsafe)
    struct asked a = {.jobs = json_array(), .delimiter = '|'};
    struct stk_slurm_table t = {.names = true};
    struct stk_slurm s = {.name = argv[0]};
    struct stk_err err = {""};
    int rc = read_options(argc, argv, &a);

    if (rc == 0 && a.version) {
        (void)puts(STK_SLURM_VERSION);
        json_decref(a.jobs);
        return 0;
    }
    if (a.parsable || a.parsable2)
        t.separator = a.delimiter;
    t.end = a.parsable && !a.parsable2;
    if (rc == 0 && stk_slurm_names(&t,
                                   a.format   ? a.format
                                   : a.brief  ? BRIEF
                                   : standard ? standard
                                              : STANDARD,
                                   '%', &err) < 0)
        rc = stk_slurm_misuse(argv[0], "%s", err.text);
    if (rc == 0)
        rc = stk_slurm_open(&s, argv[0]);
    if (rc == 0)
        rc = show(&s, &a, &t);
    stk_slurm_close(&s);
    stk_slurm_table_done(&t);
    json_decref(a.jobs);
    return rc;
}
