/* SPDX-License-Identifier: Apache-2.0 */
/* trace_sacct.c - what Slurm's accounting says of a cluster's past: the output of
 *
 *     sacct -aXP -S 2026-10-01 -o JobIDRaw,JobID,User,Account,...
 *
 * Fields with '|' between and a header that names them, in any order; columns that are not needed
 * are passed over. So the file that somebody has will mostly do.
 *
 * A row is a job that held GPUs. Steps (12.batch), jobs that never started and jobs without GPUs
 * are left out and counted. The job's wait is kept beside it (struct stk_trace_job, 'waited'): what
 * a policy does can then be compared with what the cluster did. Priorities and QOS are Slurm's own
 * decisions, which are what is to be replaced: they are not taken over.
 *
 * See: man sacct; docs/spec/simulator.md.
 */
#include "sim/trace_sacct.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "sim/trace_formats.h"
#include "sim/trace_ids.h"

#define MAX_COLUMNS 256
#define COMMAND                                                                                    \
    "sacct -aXP -S 2026-10-01 -o JobIDRaw,JobID,User,Account,Partition,Submit,Eligible,Start,"     \
    "ElapsedRaw,TimelimitRaw,State,NNodes,ReqTRES,AllocTRES"

enum column {
    RAW_ID,
    ID,
    USER,
    ACCOUNT,
    PARTITION,
    SUBMIT,
    ELIGIBLE,
    START,
    END,
    ELAPSED_RAW,
    ELAPSED,
    LIMIT_RAW,
    LIMIT,
    STATE,
    NODES,
    ALLOC_NODES,
    REQ_TRES,
    ALLOC_TRES,
    REQ_GRES,
    ALLOC_GRES,
    N_COLUMNS
};

static const char *const names[N_COLUMNS] = {
    [RAW_ID] = "JobIDRaw",
    [ID] = "JobID",
    [USER] = "User",
    [ACCOUNT] = "Account",
    [PARTITION] = "Partition",
    [SUBMIT] = "Submit",
    [ELIGIBLE] = "Eligible",
    [START] = "Start",
    [END] = "End",
    [ELAPSED_RAW] = "ElapsedRaw",
    [ELAPSED] = "Elapsed",
    [LIMIT_RAW] = "TimelimitRaw",
    [LIMIT] = "Timelimit",
    [STATE] = "State",
    [NODES] = "NNodes",
    [ALLOC_NODES] = "AllocNodes",
    [REQ_TRES] = "ReqTRES",
    [ALLOC_TRES] = "AllocTRES",
    [REQ_GRES] = "ReqGRES",
    [ALLOC_GRES] = "AllocGRES",
};

struct reader {
    struct stk_trace *t;
    uint32_t n;             /* columns of the file */
    uint32_t at[N_COLUMNS]; /* where each is, + 1; 0: it is not there */
    struct stk_id_map arrays;
    struct stk_last_name account, partition, user;
};

struct row {
    const struct reader *r;
    struct stk_field f[N_COLUMNS]; /* empty where the file has no such column */
    struct stk_sacct_tres asked, had;
    stk_time submit, start, duration; /* -1: not known */
};

static bool has(const struct reader *r, enum column c)
{
    return r->at[c] != 0;
}

static int bad(struct stk_trace_lines *in, const struct row *w, enum column c, const char *want)
{
    return stk_lines_bad(in, "column %u (%s): expected %s, got \"%s\"", w->r->at[c], names[c], want,
                         stk_field_show(w->f[c]).text);
}

/* ---- the header ---- */

static int column_of(struct stk_field f)
{
    for (int c = 0; c < N_COLUMNS; c++)
        if (strlen(names[c]) == f.len && strncasecmp(names[c], f.s, f.len) == 0)
            return c;
    return -1;
}

static int missing(struct stk_trace_lines *in, const char *what)
{
    return stk_lines_bad(in, "there is no column %s; make the file with: " COMMAND, what);
}

static int read_header(struct stk_trace_lines *in, struct reader *r)
{
    struct stk_field f[MAX_COLUMNS];

    if (!stk_lines_next(in))
        return 0;
    r->n = stk_lines_split(in, '|', f, MAX_COLUMNS);
    if (r->n > MAX_COLUMNS)
        return stk_lines_bad(in, "at most %d columns, got %u", MAX_COLUMNS, r->n);
    if (f[r->n - 1].len == 0) /* --parsable ends each line with one more '|' */
        r->n--;
    for (uint32_t i = 0; i < r->n; i++) {
        int c = column_of(f[i]);

        if (c >= 0 && r->at[c] == 0)
            r->at[c] = i + 1;
    }
    if (!has(r, RAW_ID) && !has(r, ID))
        return missing(in, "JobIDRaw or JobID");
    if (!has(r, SUBMIT) && !has(r, ELIGIBLE))
        return missing(in, "Submit or Eligible");
    if (!has(r, ELAPSED_RAW) && !has(r, ELAPSED) && !(has(r, START) && has(r, END)))
        return missing(in, "ElapsedRaw, or Elapsed, or Start and End");
    if (!has(r, ALLOC_TRES) && !has(r, REQ_TRES) && !has(r, ALLOC_GRES) && !has(r, REQ_GRES))
        return missing(in, "AllocTRES or ReqTRES");
    return 0;
}

/* ---- a row ---- */

static int get_row(struct stk_trace_lines *in, const struct reader *r, struct row *w)
{
    struct stk_field f[MAX_COLUMNS + 1] = {{NULL, 0}};
    uint32_t n = stk_lines_split(in, '|', f, MAX_COLUMNS + 1);

    if (n != r->n && !(n == r->n + 1 && n <= MAX_COLUMNS + 1 && f[n - 1].len == 0))
        return stk_lines_bad(in, "expected %u fields, as the header has, got %u", r->n, n);
    *w = (struct row){.r = r, .submit = -1, .start = -1, .duration = -1};
    for (int c = 0; c < N_COLUMNS; c++)
        w->f[c] = r->at[c] ? f[r->at[c] - 1] : (struct stk_field){"", 0};
    return 0;
}

static int get_time(struct stk_trace_lines *in, const struct row *w, enum column c, stk_time *ret)
{
    int rc = stk_sacct_time(w->f[c], ret);

    return rc < 0 ? bad(in, w, c, "a time such as 2026-11-15T08:30:00") : 0;
}

static int get_duration(struct stk_trace_lines *in, const struct row *w, enum column raw,
                        enum column text, stk_time unit, stk_time *ret)
{
    uint64_t n;

    if (stk_field_whole(w->f[raw], &n)) {
        if (n > (uint64_t)(STK_MAX_DURATION / unit))
            return bad(in, w, raw, "less than 100 years");
        *ret = (stk_time)n * unit;
        return 0;
    }
    if (stk_sacct_duration(w->f[text], ret) < 0)
        return bad(in, w, text, "a duration such as 1-02:03:04");
    return 0;
}

static int get_tres(struct stk_trace_lines *in, const struct row *w, enum column tres,
                    enum column gres, uint64_t nodes, struct stk_sacct_tres *ret)
{
    bool old = !has(w->r, tres) && has(w->r, gres);
    int rc = old ? stk_sacct_gres(w->f[gres], nodes, ret) : stk_sacct_tres(w->f[tres], ret);

    if (rc == -E2BIG)
        return bad(in, w, old ? gres : tres, "at most 8 GPU types");
    if (rc < 0)
        return bad(in, w, old ? gres : tres, "resources such as cpu=8,gres/gpu:a100=2,node=1");
    return 0;
}

/* A job later than what it waited for is one that could not run before. */
static int get_times(struct stk_trace_lines *in, struct row *w)
{
    stk_time eligible = -1, end = -1;
    int rc;

    if ((rc = get_time(in, w, SUBMIT, &w->submit)) < 0 ||
        (rc = get_time(in, w, ELIGIBLE, &eligible)) < 0 ||
        (rc = get_time(in, w, START, &w->start)) < 0 || (rc = get_time(in, w, END, &end)) < 0 ||
        (rc = get_duration(in, w, ELAPSED_RAW, ELAPSED, STK_SECOND, &w->duration)) < 0)
        return rc;
    if (eligible > w->submit && (w->start < 0 || eligible <= w->start))
        w->submit = eligible;
    if (w->duration < 0 && w->start >= 0 && end >= w->start)
        w->duration = end - w->start;
    return 0;
}

static int get_resources(struct stk_trace_lines *in, struct row *w)
{
    uint64_t nodes = 1;
    int rc;

    if (!stk_field_whole(w->f[has(w->r, NODES) ? NODES : ALLOC_NODES], &nodes) || nodes == 0)
        nodes = 1;
    if ((rc = get_tres(in, w, REQ_TRES, REQ_GRES, nodes, &w->asked)) < 0 ||
        (rc = get_tres(in, w, ALLOC_TRES, ALLOC_GRES, nodes, &w->had)) < 0)
        return rc;
    if (w->asked.nodes == 0)
        w->asked.nodes = nodes;
    if (w->had.gpus > STK_MAX_GPUS || w->asked.gpus > STK_MAX_GPUS)
        return stk_lines_bad(in, "a job has at most %d GPUs", STK_MAX_GPUS);
    return 0;
}

static bool is_step(struct stk_field f)
{
    return f.len > 0 && memchr(f.s, '.', f.len) != NULL;
}

static bool is_state(struct stk_field f, const char *s)
{
    size_t n = strlen(s);

    return f.len >= n && memcmp(f.s, s, n) == 0 && (f.len == n || f.s[n] == ' ' || f.s[n] == '+');
}

/* It never held GPUs. */
static bool is_left_out(const struct row *w)
{
    bool allocated = has(w->r, ALLOC_TRES) || has(w->r, ALLOC_GRES);

    if (is_state(w->f[STATE], "PENDING") || is_state(w->f[STATE], "REVOKED"))
        return true;
    if (w->start < 0 && w->duration <= 0)
        return true;
    return (allocated ? w->had.gpus : w->asked.gpus) == 0;
}

static int get_cause(struct stk_trace_lines *in, const struct row *w, uint8_t *ret)
{
    static const struct {
        const char *name;
        enum stk_cause cause;
    } states[] = {
        {"COMPLETED", STK_CAUSE_OK},        {"CANCELLED", STK_CAUSE_CANCELLED},
        {"FAILED", STK_CAUSE_FAILED},       {"TIMEOUT", STK_CAUSE_TIMEOUT},
        {"NODE_FAIL", STK_CAUSE_NODE_LOST}, {"OUT_OF_MEMORY", STK_CAUSE_OOM},
        {"PREEMPTED", STK_CAUSE_CANCELLED}, {"BOOT_FAIL", STK_CAUSE_NOT_STARTED},
        {"DEADLINE", STK_CAUSE_TIMEOUT},    {"REQUEUED", STK_CAUSE_CANCELLED},
        {"RUNNING", STK_CAUSE_OK},          {"COMPLETING", STK_CAUSE_OK},
        {"SUSPENDED", STK_CAUSE_OK},        {"RESIZING", STK_CAUSE_OK},
    };

    if (!has(w->r, STATE))
        return 0;
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        if (is_state(w->f[STATE], states[i].name)) {
            *ret = (uint8_t)states[i].cause;
            return 0;
        }
    }
    return bad(in, w, STATE, "a state such as COMPLETED, CANCELLED, FAILED");
}

/* On so many nodes as it asked for, the GPUs shared out evenly; otherwise as they fit. */
static void get_demand(const struct row *w, struct stk_trace_job *j)
{
    const struct stk_sacct_tres *a = w->asked.gpus ? &w->asked : &w->had;
    uint64_t nodes = w->asked.nodes, cpus = a->cpus ? a->cpus : w->had.cpus, each;
    uint64_t mem = a->mem_mib ? a->mem_mib : w->had.mem_mib;

    j->gpus = (uint32_t)a->gpus;
    if (nodes > 0 && nodes <= STK_MAX_TASKS && a->gpus % nodes == 0) {
        j->tasks = (uint32_t)nodes;
        j->gpus = (uint32_t)(a->gpus / nodes);
        j->per_node = nodes > 1;
    }
    each = j->tasks ? j->tasks : 1;
    cpus = (cpus * 1000 + each - 1) / each;
    mem = (mem + each - 1) / each;
    j->cpu_milli = cpus < UINT32_MAX ? (uint32_t)cpus : 0;
    j->mem_mib = mem < UINT32_MAX ? (uint32_t)mem : 0;
}

/* What it asked for; where it named no type, what it had. */
static int get_types(struct stk_trace_lines *in, const struct row *w, struct stk_trace *t,
                     struct stk_trace_job *j)
{
    const struct stk_sacct_tres *a = w->asked.n_types ? &w->asked : &w->had;
    uint64_t types = 0;

    for (uint32_t i = 0; i < a->n_types; i++) {
        uint32_t number = 0;
        int rc = stk_lines_name(in, &t->gpu_types, STK_MAX_GPU_TYPES, a->type[i], NULL, &number);

        if (rc < 0)
            return rc;
        types |= UINT64_C(1) << number;
    }
    j->gpu_types = types ? types : STK_ANY_GPU_TYPE;
    return 0;
}

static int get_names(struct stk_trace_lines *in, struct reader *r, const struct row *w,
                     struct stk_trace_job *j)
{
    struct stk_field account = has(r, ACCOUNT) ? w->f[ACCOUNT] : w->f[USER];
    int rc;

    if ((rc = get_types(in, w, r->t, j)) < 0 ||
        (rc = stk_lines_id(in, r->t, w->f[has(r, RAW_ID) ? RAW_ID : ID], &j->id)) < 0 ||
        (rc = stk_lines_name(in, &r->t->tenants, STK_TRACE_MAX_NAMES, account, &r->account,
                             &j->tenant)) < 0 ||
        (rc = stk_lines_name(in, &r->t->groups, STK_TRACE_MAX_NAMES, w->f[PARTITION], &r->partition,
                             &j->group)) < 0)
        return rc;
    if (w->f[USER].len == 0)
        return 0;
    rc = stk_lines_name(in, &r->t->users, STK_TRACE_MAX_NAMES, w->f[USER], &r->user, &j->user);
    j->user += rc == 0;
    return rc;
}

/* "12_4": element 4 of array 12. */
static int get_array(struct reader *r, const struct row *w, struct stk_trace_job *j)
{
    const char *line = w->f[ID].len ? memchr(w->f[ID].s, '_', w->f[ID].len) : NULL;
    uint64_t array, index;
    int64_t first;

    if (!line)
        return 0;
    if (!stk_field_whole((struct stk_field){w->f[ID].s, (uint32_t)(line - w->f[ID].s)}, &array) ||
        !stk_field_whole(
            (struct stk_field){line + 1, (uint32_t)(w->f[ID].s + w->f[ID].len - line - 1)},
            &index) ||
        index > UINT32_MAX)
        return 0;
    first = stk_id_map_get(&r->arrays, array);
    if (first < 0) {
        first = r->t->n_jobs;
        if (stk_id_map_put(&r->arrays, array, (uint32_t)first) < 0)
            return -ENOMEM;
    } else if (r->t->jobs[first].submit > j->submit) {
        return 0;
    }
    j->array = (uint32_t)first + 1;
    j->array_index = (uint32_t)index;
    return 0;
}

static int get_job(struct stk_trace_lines *in, const struct row *w, struct stk_trace_job *j)
{
    stk_time limit = -1;
    int rc = get_duration(in, w, LIMIT_RAW, LIMIT, 60 * STK_SECOND, &limit);

    if (rc < 0 || (rc = get_cause(in, w, &j->cause)) < 0)
        return rc;
    if (w->submit < 0)
        return bad(in, w, has(w->r, SUBMIT) ? SUBMIT : ELIGIBLE, "when it was submitted");
    if (w->duration < 0)
        return bad(in, w,
                   has(w->r, ELAPSED_RAW) ? ELAPSED_RAW
                   : has(w->r, ELAPSED)   ? ELAPSED
                                          : END,
                   "how long it ran");
    j->submit = w->submit;
    j->duration = w->duration;
    j->estimate = limit > 0 ? limit : 0;
    j->recorded = w->start >= 0;
    j->waited = w->start > w->submit ? w->start - w->submit : 0;
    get_demand(w, j);
    return 0;
}

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct reader *r = ctx;
    struct stk_trace_job j = stk_lines_job();
    struct row w = {.r = r};
    int rc = get_row(in, r, &w);

    if (rc < 0)
        return rc;
    if (is_step(w.f[ID]) || is_step(w.f[RAW_ID]))
        return 0; /* its job has a row of its own */
    if ((rc = get_times(in, &w)) < 0 || (rc = get_resources(in, &w)) < 0)
        return rc;
    if (is_left_out(&w)) {
        r->t->n_left_out++;
        return 0;
    }
    if ((rc = get_job(in, &w, &j)) < 0 || (rc = get_names(in, r, &w, &j)) < 0 ||
        (rc = get_array(r, &w, &j)) < 0)
        return rc;
    return stk_lines_push(r->t, &j);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    struct reader r = {.t = t};
    uint32_t before = t->n_jobs;
    int rc = read_header(in, &r);

    if (rc < 0)
        return stk_err_set(err, rc, "%s", in->bad.text);
    rc = stk_lines_each(in, one, &r, err);
    stk_id_map_done(&r.arrays);
    if (rc == 0 && t->n_jobs == before && t->n_left_out > 0)
        return stk_err_set(err, -EINVAL,
                           "%.60s: no job of %u had GPUs: no gres/gpu in AllocTRES. Slurm counts "
                           "GPUs with AccountingStorageTRES=gres/gpu in slurm.conf",
                           in->name, t->n_left_out);
    return rc;
}

static bool detect(const char *data, size_t len)
{
    struct stk_trace_lines in;
    struct stk_field f[MAX_COLUMNS];
    uint32_t n;

    stk_lines_init(&in, "", data, len);
    if (!stk_lines_next(&in) || in.text.len > STK_TRACE_MAX_LINE)
        return false;
    n = stk_lines_split(&in, '|', f, MAX_COLUMNS);
    for (uint32_t i = 0; n > 1 && i < n && i < MAX_COLUMNS; i++) {
        int c = column_of(f[i]);

        if (c == ID || c == RAW_ID)
            return true;
    }
    return false;
}

const struct stk_trace_format stk_trace_sacct = {
    .name = "sacct",
    .help = "Slurm's past: " COMMAND,
    .detect = detect,
    .parse = parse,
};
