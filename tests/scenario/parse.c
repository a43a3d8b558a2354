/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - see scenario.h. A scenario is lines; a line is a word and what belongs to it; lists
 * have commas. */
#include "scenario.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 64
#define MAX_TEXT (4 << 20)
#define MOST_TIME ((int64_t)3650 * 86400) /* seconds */

struct parser {
    struct scenario *s;
    struct stk_err *err;
    uint32_t line;
    stk_time now;
    char buf[SCN_MAX_LINE + 1];
    const char *word[MAX_WORDS]; /* of what is being read */
    uint32_t n;
};

/* ---- small things ---- */

bool scn_add(struct scn_text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    for (int pass = 0; pass < 2; pass++) {
        va_start(ap, fmt);
        n = vsnprintf(t->s ? t->s + t->len : NULL, t->s ? t->cap - t->len : 0, fmt, ap);
        va_end(ap);
        if (n < 0 || t->len + (size_t)n > MAX_TEXT)
            return false;
        if (t->s && t->len + (size_t)n < t->cap) {
            t->len += (size_t)n;
            return true;
        }
        size_t cap = (t->len + (size_t)n + 1) * 2;
        char *more = realloc(t->s, cap);

        if (!more)
            return false;
        t->s = more;
        t->s[t->len] = '\0';
        t->cap = cap;
    }
    return false;
}

static int wrong(const struct parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int wrong(const struct parser *p, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return stk_err_set(p->err, -EINVAL, "line %u: %s", p->line, text);
}

bool scn_time(const char *s, stk_time *ret)
{
    int64_t sum = 0;

    if (strcmp(s, "0") == 0) {
        *ret = 0;
        return true;
    }
    if (!*s)
        return false;
    while (*s) {
        static const struct {
            char unit;
            int64_t s;
        } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
        int64_t n = 0, unit = 0;

        if (!isdigit((unsigned char)*s))
            return false;
        for (; isdigit((unsigned char)*s) && n < MOST_TIME; s++)
            n = n * 10 + (*s - '0');
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
            unit = *s == units[i].unit ? units[i].s : unit;
        if (!unit || n > MOST_TIME)
            return false;
        s++;
        sum += n * unit;
        if (sum > MOST_TIME)
            return false;
    }
    *ret = sum * STK_SECOND;
    return true;
}

const char *scn_show_time(stk_time t, char buf[32])
{
    int64_t s = t / STK_SECOND;

    if (s % 3600 == 0 && s > 0)
        (void)snprintf(buf, 32, "%lldh", (long long)(s / 3600));
    else if (s % 60 == 0 && s > 0)
        (void)snprintf(buf, 32, "%lldm", (long long)(s / 60));
    else
        (void)snprintf(buf, 32, "%llds", (long long)s);
    return buf;
}

static bool name_ok(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n >= SCN_MAX_NAME)
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_-./", *s))
            return false;
    return true;
}

/* Words of a text that is cut into pieces for that. */
static int split(struct parser *p, char *text)
{
    char *save = NULL;

    p->n = 0;
    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (p->n == MAX_WORDS)
            return wrong(p, "more than %d words", MAX_WORDS);
        p->word[p->n++] = w;
    }
    return 0;
}

static bool is(const struct parser *p, uint32_t i, const char *word)
{
    return i < p->n && strcmp(p->word[i], word) == 0;
}

static bool is_gpus(const struct parser *p, uint32_t i)
{
    return is(p, i, "GPU") || is(p, i, "GPUs") || is(p, i, "gpu") || is(p, i, "gpus");
}

/* A decimal number in thousandths; -1: it is none. */
static int64_t milli_of(const char *s)
{
    char *end;
    double v;

    if (!isdigit((unsigned char)*s))
        return -1;
    v = strtod(s, &end);
    return *end == '\0' && v >= 0 && v < 1e9 ? (int64_t)(v * 1000 + 0.5) : -1;
}

static int64_t whole_of(const char *s)
{
    int64_t m = milli_of(s);

    return m >= 0 && m % 1000 == 0 ? m / 1000 : -1;
}

static uint32_t find_job(const struct scenario *s, const char *name, size_t len)
{
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (strlen(s->job[i].name) == len && memcmp(s->job[i].name, name, len) == 0)
            return i;
    return SCN_NONE;
}

/* Puts what follows in place; more elements of the array. */
static int grow(const struct parser *p, void **array, uint32_t *cap, uint32_t need, size_t size)
{
    void *more;

    if (need <= *cap)
        return 0;
    if (need > SCN_MAX_JOBS)
        return wrong(p, "more than %d jobs or steps in one scenario", SCN_MAX_JOBS);
    more = realloc(*array, (size_t)need * 2 * size);
    if (!more)
        return wrong(p, "out of memory");
    *array = more;
    *cap = need * 2;
    return 0;
}

/* ---- setting ---- */

/* "KEY VALUE" as YAML. */
static int plain_key(struct parser *p, struct scn_text *to)
{
    if (p->n != 2 || !name_ok(p->word[0]))
        return wrong(p, "expected KEY VALUE, got \"%.40s\"", p->n ? p->word[0] : "");
    return scn_add(to, ", %s: %s", p->word[0], p->word[1]) ? 0 : wrong(p, "too long");
}

static int clause_of_cluster(struct parser *p, struct scn_text *to, bool first)
{
    uint32_t i = 0;
    bool ok = true;

    if (!first)
        return plain_key(p, to);
    if (p->n > 3 && (is(p, 1, "nodes") || is(p, 1, "node")) && is(p, 2, "x")) {
        ok = whole_of(p->word[0]) > 0 && scn_add(to, "count: %s, ", p->word[0]);
        i = 3;
    }
    if (!ok || i >= p->n || whole_of(p->word[i]) < 0)
        return wrong(p, "expected \"cluster: N nodes x GPUS TYPE\"");
    ok = scn_add(to, "gpus: %s", p->word[i]);
    i++;
    i += is_gpus(p, i);
    if (ok && i < p->n)
        ok = name_ok(p->word[i]) && scn_add(to, ", gpu_type: %s", p->word[i]), i++;
    return ok && i == p->n ? 0 : wrong(p, "expected \"cluster: N nodes x GPUS TYPE\"");
}

static int policy_clause(struct parser *p, bool first)
{
    static const char *const kinds[] = {"bundle", "order", "backfill", "place", "preempt"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if ((p->n == 2 && is(p, 0, kinds[i])) || (i == 0 && p->n == 1 && first)) {
            if (!name_ok(p->word[p->n - 1]))
                return wrong(p, "no name of a policy: %.40s", p->word[p->n - 1]);
            (void)snprintf(p->s->policy[i], SCN_MAX_NAME, "%s", p->word[p->n - 1]);
            return 0;
        }
    return wrong(p,
                 "expected \"policy: BUNDLE\", \"order NAME\", \"backfill NAME\", \"place NAME\" "
                 "or \"preempt NAME\"");
}

static int param(struct parser *p)
{
    struct scenario *s = p->s;

    if (p->n != 1 || !strchr(p->word[0], '=') || strlen(p->word[0]) >= sizeof(s->params[0]))
        return wrong(p, "expected \"param: NAME=VALUE\"");
    if (s->n_params == SCN_MAX_PARAMS)
        return wrong(p, "more than %d parameters", SCN_MAX_PARAMS);
    (void)snprintf(s->params[s->n_params++], sizeof(s->params[0]), "%s", p->word[0]);
    return 0;
}

/* "limit 8", "limit 8 of A100", "weight 2", "under research". */
static int clause_of_tenant(struct parser *p, struct scn_tenant *t, bool first)
{
    if (first) {
        if (p->n != 1 || !name_ok(p->word[0]))
            return wrong(p, "expected \"tenant: NAME, ...\"");
        (void)snprintf(t->name, sizeof(t->name), "%s", p->word[0]);
        return 0;
    }
    if (p->n == 2 && is(p, 0, "under") && name_ok(p->word[1])) {
        (void)snprintf(t->parent, sizeof(t->parent), "%s", p->word[1]);
        return 0;
    }
    if (p->n == 4 && is(p, 2, "of") && name_ok(p->word[0]) && name_ok(p->word[3]))
        return scn_add(&t->keys, ", %ss: {%s: %s}", p->word[0], p->word[3], p->word[1])
                   ? 0
                   : wrong(p, "too long");
    return plain_key(p, &t->keys);
}

/* Each clause of a list with commas. */
static int clauses(struct parser *p, char *text, int (*one)(struct parser *, void *, bool),
                   void *ctx)
{
    bool first = true;
    int rc = 0;

    for (char *next; text && rc == 0; text = next, first = false) {
        next = strchr(text, ',');
        if (next)
            *next++ = '\0';
        rc = split(p, text);
        if (rc == 0 && p->n == 0)
            rc = wrong(p, "nothing between two commas");
        rc = rc < 0 ? rc : one(p, ctx, first);
    }
    return rc;
}

static int one_cluster(struct parser *p, void *ctx, bool first)
{
    return clause_of_cluster(p, ctx, first);
}

static int one_policy(struct parser *p, void *ctx, bool first)
{
    (void)ctx;
    return policy_clause(p, first);
}

static int one_tenant(struct parser *p, void *ctx, bool first)
{
    return clause_of_tenant(p, ctx, first);
}

static int read_cluster(struct parser *p, char *text)
{
    struct scn_text *t = &p->s->cluster;
    int rc;

    p->s->cluster_line = p->line;
    if (!scn_add(t, t->len ? "  - {" : "nodes:\n  - {"))
        return wrong(p, "too long");
    rc = clauses(p, text, one_cluster, t);
    return rc < 0 ? rc : scn_add(t, "}\n") ? 0 : wrong(p, "too long");
}

static int read_tenant(struct parser *p, char *text)
{
    struct scenario *s = p->s;
    struct scn_tenant *t;
    int rc;

    if (!s->tenant)
        s->tenant = calloc(SCN_MAX_TENANTS, sizeof(*s->tenant));
    if (!s->tenant || s->n_tenants == SCN_MAX_TENANTS)
        return wrong(p, "more than %d tenants", SCN_MAX_TENANTS);
    t = &s->tenant[s->n_tenants++];
    t->line = p->line;
    s->tenants_line = p->line;
    rc = clauses(p, text, one_tenant, t);
    for (uint32_t i = 0; rc == 0 && *t->parent; i++) {
        if (i == s->n_tenants - 1)
            return wrong(p, "no tenant %s above this line", t->parent);
        if (strcmp(s->tenant[i].name, t->parent) == 0)
            break;
    }
    return rc;
}

/* "NAME {...}", as YAML has it. */
static int read_queue(struct parser *p, char *text)
{
    char *yaml = strchr(text, '{');
    char name[SCN_MAX_NAME];
    size_t n = yaml ? strlen(yaml) : 0;

    if (!yaml || yaml[n - 1] != '}' || yaml == text)
        return wrong(p, "expected \"queue: NAME {KEY: VALUE, ...}\"");
    yaml[-1] = '\0';
    if (split(p, text) < 0 || p->n != 1 || !name_ok(p->word[0]))
        return wrong(p, "expected \"queue: NAME {KEY: VALUE, ...}\"");
    (void)snprintf(name, sizeof(name), "%s", p->word[0]);
    p->s->tenants_line = p->line;
    return scn_add(&p->s->queues, "  %s: %s\n", name, yaml) ? 0 : wrong(p, "too long");
}

/* The tenants below 'parent', as YAML. */
static bool write_tenants(struct scenario *s, const char *parent, uint32_t depth)
{
    bool ok = scn_add(&s->tenants, "[");

    for (uint32_t i = 0, n = 0; ok && i < s->n_tenants && depth < 16; i++) {
        struct scn_tenant *t = &s->tenant[i];
        bool above = false;

        if (strcmp(t->parent, parent) != 0)
            continue;
        for (uint32_t k = i + 1; k < s->n_tenants; k++)
            above |= strcmp(s->tenant[k].parent, t->name) == 0;
        ok = scn_add(&s->tenants, "%s{name: %s%s", n++ ? ", " : "", t->name,
                     t->keys.s ? t->keys.s : "");
        if (ok && above)
            ok = scn_add(&s->tenants, ", tenants: ") && write_tenants(s, t->name, depth + 1);
        ok = ok && scn_add(&s->tenants, "}");
    }
    return ok && scn_add(&s->tenants, "]");
}

/* ---- jobs ---- */

struct job_text {
    struct scn_text *to;
    bool lasts;
};

/* A value as JSON: a number, true or false, a time where the key says seconds, else a string. */
static int json_value(struct parser *p, struct scn_text *to, const char *key, const char *v)
{
    size_t n = strlen(key);
    stk_time t;
    bool ok;

    if (strpbrk(v, "\"\\"))
        return wrong(p, "quotes and backslashes are not allowed");
    if (n > 2 && strcmp(key + n - 2, "_s") == 0 && scn_time(v, &t))
        ok = scn_add(to, ", \"%s\": %lld", key, (long long)(t / STK_SECOND));
    else if (milli_of(v) >= 0 || strcmp(v, "true") == 0 || strcmp(v, "false") == 0 ||
             (*v == '-' && milli_of(v + 1) >= 0))
        ok = scn_add(to, ", \"%s\": %s", key, v);
    else
        ok = scn_add(to, ", \"%s\": \"%s\"", key, v);
    return ok ? 0 : wrong(p, "too long");
}

/* "A100|V100" as a list. */
static int types_clause(struct parser *p, struct scn_text *to, const char *v)
{
    bool ok = !strpbrk(v, "\"\\") && scn_add(to, ", \"gpu_types\": [");

    for (bool first = true; ok && *v; first = false) {
        size_t n = strcspn(v, "|");

        ok = scn_add(to, "%s\"%.*s\"", first ? "" : ", ", (int)n, v);
        v += n + (v[n] == '|');
    }
    return ok && scn_add(to, "]") ? 0 : wrong(p, "not a list of GPU types");
}

static int gpus_clause(struct parser *p, struct scn_text *to, uint32_t i)
{
    int64_t milli = milli_of(p->word[i]);
    bool ok;

    if (milli > 0 && milli < 1000)
        ok = scn_add(to, ", \"gpus\": 1, \"gpu_milli\": %lld", (long long)milli);
    else if (milli >= 0 && milli % 1000 == 0)
        ok = scn_add(to, ", \"gpus\": %lld", (long long)milli / 1000);
    else
        return wrong(p, "expected whole GPUs, or part of one, got %.20s", p->word[i]);
    return ok ? 0 : wrong(p, "too long");
}

static int lasts_clause(struct parser *p, struct job_text *j, const char *v)
{
    stk_time t;

    if (!scn_time(v, &t))
        return wrong(p, "expected a time such as 90s, 10m, 1h30m or 2d, got %.20s", v);
    j->lasts = true;
    return scn_add(j->to, ", \"duration_s\": %lld", (long long)(t / STK_SECOND))
               ? 0
               : wrong(p, "too long");
}

/* "4 GPUs for 1h", "2 tasks of 4 GPUs", "on A100|V100", "after b", "KEY VALUE". */
static int clause_of_job(struct parser *p, struct job_text *j)
{
    uint32_t at = 0;
    int rc = 0;

    if (p->n >= 4 && is(p, 1, "tasks") && is(p, 2, "of")) {
        rc = json_value(p, j->to, "tasks", p->word[0]);
        at = 3;
    }
    if (rc == 0 && at + 1 < p->n && is_gpus(p, at + 1)) {
        rc = gpus_clause(p, j->to, at);
        at += 2;
    }
    if (rc == 0 && at + 2 == p->n && is(p, at, "for")) {
        rc = lasts_clause(p, j, p->word[at + 1]);
        at += 2;
    }
    if (rc < 0 || (at > 0 && at == p->n))
        return rc;
    if (at > 0 || p->n != 2 || !name_ok(p->word[0]))
        return wrong(p, "expected KEY VALUE, \"N GPUs for TIME\" or \"N tasks of M GPUs\"");
    if (is(p, 0, "on"))
        return types_clause(p, j->to, p->word[1]);
    if (is(p, 0, "says"))
        return json_value(p, j->to, "estimate_s", p->word[1]);
    if (is(p, 0, "after") && find_job(p->s, p->word[1], strlen(p->word[1])) != SCN_NONE)
        return scn_add(j->to, ", \"after\": [{\"on\": \"%s\", \"type\": \"afterok\"}]", p->word[1])
                   ? 0
                   : wrong(p, "too long");
    return json_value(p, j->to, p->word[0], p->word[1]);
}

static int one_job(struct parser *p, void *ctx, bool first)
{
    (void)first;
    return clause_of_job(p, ctx);
}

/* "submit NAME [of TENANT]: clauses" */
static int read_submit(struct parser *p, char *text)
{
    struct job_text j = {.to = &p->s->jobs};
    char *colon = strchr(text, ':');
    struct scn_job *job;
    int rc;

    if (!colon)
        return wrong(p, "expected \"submit NAME: ...\"");
    *colon = '\0';
    rc = split(p, text);
    if (rc < 0)
        return rc;
    if (!(p->n == 1 || (p->n == 3 && is(p, 1, "of") && name_ok(p->word[2]))) ||
        !name_ok(p->word[0]))
        return wrong(p, "expected \"submit NAME: ...\" or \"submit NAME of TENANT: ...\"");
    if (find_job(p->s, p->word[0], strlen(p->word[0])) != SCN_NONE)
        return wrong(p, "there is a job %s already", p->word[0]);
    rc = grow(p, (void **)&p->s->job, &p->s->cap_jobs, p->s->n_jobs + 1, sizeof(*p->s->job));
    if (rc < 0)
        return rc;
    job = &p->s->job[p->s->n_jobs++];
    *job = (struct scn_job){.line = p->line};
    (void)snprintf(job->name, sizeof(job->name), "%s", p->word[0]);
    if (!scn_add(j.to, "{\"id\": \"%s\", \"submit_s\": %lld", job->name,
                 (long long)(p->now / STK_SECOND)) ||
        (p->n == 3 && !scn_add(j.to, ", \"tenant\": \"%s\"", p->word[2])))
        return wrong(p, "too long");
    rc = clauses(p, colon + 1, one_job, &j);
    if (rc == 0 && !j.lasts)
        return wrong(p, "how long does it run? add \"for TIME\"");
    return rc < 0 ? rc : scn_add(j.to, "}\n") ? 0 : wrong(p, "too long");
}

/* ---- steps ---- */

static int add_step(struct parser *p, const struct scn_step *step)
{
    struct scenario *s = p->s;
    uint32_t i;
    int rc = grow(p, (void **)&s->steps, &s->cap_steps, s->n_steps + 1, sizeof(*s->steps));

    if (rc < 0)
        return rc;
    for (i = s->n_steps++; i > 0 && s->steps[i - 1].at > step->at; i--)
        s->steps[i] = s->steps[i - 1];
    s->steps[i] = *step;
    return 0;
}

static struct scn_step step_of(const struct parser *p, enum scn_verb verb)
{
    return (struct scn_step){.line = p->line,
                             .at = p->now,
                             .verb = verb,
                             .job = SCN_NONE,
                             .other = SCN_NONE,
                             .number = -1,
                             .time = STK_NEVER_TIME};
}

static int job_named(struct parser *p, uint32_t i, uint32_t *ret)
{
    *ret = i < p->n ? find_job(p->s, p->word[i], strlen(p->word[i])) : SCN_NONE;
    return *ret == SCN_NONE ? wrong(p, "no job %.40s above this line", i < p->n ? p->word[i] : "")
                            : 0;
}

static int read_node(struct parser *p)
{
    struct scn_step step = step_of(p, is(p, 2, "down") ? SCN_NODE_DOWN : SCN_NODE_UP);

    if (p->n != 3 || !(is(p, 2, "down") || is(p, 2, "up")) ||
        (step.number = whole_of(p->word[1])) < 1)
        return wrong(p, "expected \"node N down\" or \"node N up\"; the first is node 1");
    return add_step(p, &step);
}

static int read_action(struct parser *p)
{
    static const struct {
        const char *word;
        enum scn_verb verb;
    } all[] = {{"cancel", SCN_CANCEL},
               {"hold", SCN_HOLD},
               {"release", SCN_RELEASE},
               {"update", SCN_PRIORITY}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct scn_step step = step_of(p, all[i].verb);
        bool update = all[i].verb == SCN_PRIORITY;

        if (!is(p, 0, all[i].word))
            continue;
        if (p->n != (update ? 4U : 2U) || (update && !is(p, 2, "priority")))
            return wrong(p, "expected \"%s JOB%s\"", all[i].word, update ? " priority N" : "");
        if (update && (step.number = whole_of(p->word[3])) < 0)
            return wrong(p, "not a priority: %.20s", p->word[3]);
        return job_named(p, 1, &step.job) < 0 ? -EINVAL : add_step(p, &step);
    }
    if (is(p, 0, "node"))
        return read_node(p);
    return wrong(p, "no such word: %.40s", p->n ? p->word[0] : "");
}

/* "on node 1", "on nodes 1 2", "on 2 nodes". */
static int expect_where(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at == p->n)
        return 0;
    if (is(p, at, "on") && at + 3 == p->n && (is(p, at + 2, "nodes") || is(p, at + 2, "node"))) {
        step->number = whole_of(p->word[at + 1]);
        return step->number > 0 ? 0 : wrong(p, "on how many nodes?");
    }
    if (is(p, at, "on") && (is(p, at + 1, "node") || is(p, at + 1, "nodes"))) {
        for (at += 2; at < p->n; at++) {
            int64_t node = whole_of(p->word[at]);

            if (node < 1 || node > 64)
                return wrong(p, "no node %.20s; the first is node 1", p->word[at]);
            step->nodes |= UINT64_C(1) << (node - 1);
        }
        return step->nodes ? 0 : wrong(p, "on which node?");
    }
    return wrong(p, "expected \"on node N\", \"on nodes N M\" or \"on N nodes\"");
}

static int expect_at(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at == p->n)
        return 0;
    if (!is(p, at, "at") || at + 2 != p->n || !scn_time(p->word[at + 1], &step->time))
        return wrong(p, "expected \"at TIME\"");
    if (step->time < p->now)
        return wrong(p, "that time is over");
    step->at = step->time;
    return 0;
}

static int expect_text(struct parser *p, uint32_t at, struct scn_step *step)
{
    size_t used = 0;

    for (; at < p->n; at++) {
        used += (size_t)snprintf(step->text + used, sizeof(step->text) - used, "%s%s",
                                 used ? " " : "", p->word[at]);
        if (used >= sizeof(step->text))
            return wrong(p, "too long");
    }
    return 0;
}

/* "evicted", "evicted for d". */
static int expect_for(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at == p->n)
        return 0;
    if (!is(p, at, "for") || at + 2 != p->n)
        return wrong(p, "expected \"evicted for JOB\"");
    return job_named(p, at + 1, &step->other);
}

static int expect_times(struct parser *p, uint32_t at, struct scn_step *step)
{
    if (at + 2 != p->n || !(is(p, at + 1, "times") || is(p, at + 1, "time")) ||
        (step->number = whole_of(p->word[at])) < 0)
        return wrong(p, "expected \"was preempted N times\"");
    return 0;
}

static int expect_verb(struct parser *p, uint32_t at, struct scn_step *step)
{
    static const struct {
        const char *word;
        enum scn_verb verb;
        int (*rest)(struct parser *, uint32_t, struct scn_step *);
    } all[] = {{"runs", SCN_RUNS, expect_where},
               {"run", SCN_RUNS, expect_where},
               {"waits", SCN_WAITS, expect_text},
               {"wait", SCN_WAITS, expect_text},
               {"waits:", SCN_WAITS, expect_text},
               {"wait:", SCN_WAITS, expect_text},
               {"starts", SCN_STARTED, expect_at},
               {"start", SCN_STARTED, expect_at},
               {"ends", SCN_ENDED, expect_at},
               {"end", SCN_ENDED, expect_at},
               {"ended", SCN_ENDED, expect_at},
               {"evicted", SCN_EVICTED, expect_for},
               {"moved", SCN_MOVED, expect_at},
               {"refused", SCN_REFUSED, expect_text},
               {"refused:", SCN_REFUSED, expect_text},
               {"held", SCN_HELD, expect_at},
               {"preempted", SCN_PREEMPTED, expect_times}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (is(p, at, all[i].word)) {
            step->verb = all[i].verb;
            return all[i].rest(p, at + 1, step);
        }
    return wrong(p,
                 "expected runs, waits, starts, ends, evicted, moved, held, preempted or refused, "
                 "got \"%.30s\"",
                 at < p->n ? p->word[at] : "");
}

/* "nothing moves for 1h" */
static int expect_quiet(struct parser *p)
{
    struct scn_step step = step_of(p, SCN_QUIET);
    stk_time t;

    if (p->n != 5 || !is(p, 2, "moves") || !is(p, 3, "for") || !scn_time(p->word[4], &t))
        return wrong(p, "expected \"expect nothing moves for TIME\"");
    step.time = p->now;
    step.at = p->now + t;
    return add_step(p, &step);
}

/* "expect a, b and c run on node 1" */
static int read_expect(struct parser *p)
{
    struct scn_step step = step_of(p, SCN_RUNS);
    uint32_t jobs[MAX_WORDS], n = 0, at = 1;
    int rc;

    if (is(p, 1, "nothing"))
        return expect_quiet(p);
    if (p->n == 4 && is_gpus(p, 2) && (is(p, 3, "free") || is(p, 3, "idle"))) {
        step.verb = SCN_FREE;
        step.number = whole_of(p->word[1]);
        return step.number < 0 ? wrong(p, "how many GPUs?") : add_step(p, &step);
    }
    for (; at < p->n; at++) {
        size_t len = strlen(p->word[at]);

        if (is(p, at, "and"))
            continue;
        len -= len > 0 && p->word[at][len - 1] == ',';
        jobs[n] = find_job(p->s, p->word[at], len);
        if (jobs[n] == SCN_NONE)
            break;
        n++;
    }
    if (n == 0)
        return wrong(p, "no job %.40s above this line", p->n > 1 ? p->word[1] : "");
    at += is(p, at, "is") || is(p, at, "are") || is(p, at, "was") || is(p, at, "were");
    if (is(p, at, "not")) {
        step.not = true;
        at++;
    }
    rc = expect_verb(p, at, &step);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        step.job = jobs[i];
        rc = add_step(p, &step);
    }
    return rc;
}

/* ---- lines ---- */

static int read_step(struct parser *p, char *text)
{
    int rc;

    if (strncmp(text, "submit ", 7) == 0)
        return read_submit(p, text + 7);
    rc = split(p, text);
    if (rc < 0)
        return rc;
    return is(p, 0, "expect") ? read_expect(p) : read_action(p);
}

static int read_at(struct parser *p, char *text)
{
    size_t n = strcspn(text, " \t");
    char *rest = text + n + strspn(text + n, " \t");
    stk_time t;

    text[n] = '\0';
    if (n > 0 && text[n - 1] == ':')
        text[n - 1] = '\0';
    if (!scn_time(text, &t))
        return wrong(p, "expected a time such as 90s, 10m, 1h30m or 2d, got \"%.20s\"", text);
    if (t < p->now)
        return wrong(p, "time goes on: it is later than %.20s already", text);
    p->now = t;
    return *rest ? read_step(p, rest) : 0;
}

static int read_line(struct parser *p, char *text)
{
    static const struct {
        const char *word;
        int (*read)(struct parser *, char *);
    } all[] = {{"cluster:", read_cluster},
               {"tenant:", read_tenant},
               {"queue:", read_queue},
               {"at ", read_at}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strncmp(text, all[i].word, strlen(all[i].word)) == 0)
            return all[i].read(p, text + strlen(all[i].word));
    if (strncmp(text, "policy:", 7) == 0)
        return clauses(p, text + 7, one_policy, NULL);
    if (strncmp(text, "param:", 6) == 0)
        return split(p, text + 6) < 0 ? -EINVAL : param(p);
    return read_step(p, text);
}

/* The next line, without comment and spaces around it; false: there is none. */
static bool next_line(struct parser *p, const char **io_at, const char *end, uint32_t *io_line,
                      char **ret)
{
    const char *at = *io_at, *stop;
    size_t n;

    if (at >= end)
        return false;
    stop = memchr(at, '\n', (size_t)(end - at));
    n = (size_t)((stop ? stop : end) - at);
    *io_at = stop ? stop + 1 : end;
    p->line = ++*io_line;
    n = n < SCN_MAX_LINE ? n : SCN_MAX_LINE;
    for (size_t i = 0; i < n; i++)
        p->buf[i] = (char)(at[i] == '\0' || at[i] == '\r' ? ' ' : at[i]);
    p->buf[n] = '\0';
    p->buf[strcspn(p->buf, "#")] = '\0';
    n = strlen(p->buf);
    while (n > 0 && isspace((unsigned char)p->buf[n - 1]))
        p->buf[--n] = '\0';
    *ret = p->buf + strspn(p->buf, " \t");
    return true;
}

static int finish(struct parser *p)
{
    struct scenario *s = p->s;

    p->line = s->line;
    if (!s->cluster.len)
        return wrong(p, "a scenario needs a line \"cluster: N nodes x GPUS\"");
    if (s->n_steps == 0)
        return wrong(p, "a scenario needs something to expect");
    if (s->n_tenants > 0 && !(scn_add(&s->tenants, "tenants: ") && write_tenants(s, "", 0) &&
                              scn_add(&s->tenants, "\n")))
        return wrong(p, "too long");
    if (s->queues.len > 0 && !scn_add(&s->tenants, "queues:\n%s", s->queues.s))
        return wrong(p, "too long");
    return 1;
}

int scn_parse(const char **io_at, const char *end, uint32_t *io_line, struct scenario *s,
              struct stk_err *err)
{
    struct parser p = {.s = s, .err = err};
    const char *before;
    uint32_t line;
    char *text;
    int rc = 0;

    *s = (struct scenario){.line = 0};
    for (;;) {
        before = *io_at;
        line = *io_line;
        if (!next_line(&p, io_at, end, io_line, &text))
            return s->line ? finish(&p) : 0;
        if (!*text)
            continue;
        if (strncmp(text, "scenario:", 9) == 0) {
            if (s->line) { /* the next one */
                *io_at = before;
                *io_line = line;
                return finish(&p);
            }
            s->line = p.line;
            (void)snprintf(s->title, sizeof(s->title), "%s", text + 9 + strspn(text + 9, " "));
            continue;
        }
        rc = s->line ? read_line(&p, text) : wrong(&p, "a file begins with \"scenario: TITLE\"");
        if (rc < 0)
            return rc;
    }
}

void scn_free(struct scenario *s)
{
    for (uint32_t i = 0; i < s->n_tenants; i++)
        free(s->tenant[i].keys.s);
    free(s->tenant);
    free(s->cluster.s);
    free(s->tenants.s);
    free(s->queues.s);
    free(s->jobs.s);
    free(s->job);
    free(s->steps);
    *s = (struct scenario){.line = 0};
}
