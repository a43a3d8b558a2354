/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - "submit NAME of TENANT: ..." as a line of JSON Lines. */
#include "parse.h"

#include <string.h>

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
        return scn_wrong(p, "quotes and backslashes are not allowed");
    if (n > 2 && strcmp(key + n - 2, "_s") == 0 && scn_time(v, &t))
        ok = scn_add(to, ", \"%s\": %lld", key, (long long)(t / STK_SECOND));
    else if (scn_milli(v) >= 0 || strcmp(v, "true") == 0 || strcmp(v, "false") == 0 ||
             (*v == '-' && scn_milli(v + 1) >= 0))
        ok = scn_add(to, ", \"%s\": %s", key, v);
    else
        ok = scn_add(to, ", \"%s\": \"%s\"", key, v);
    return ok ? 0 : scn_wrong(p, "too long");
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
    return ok && scn_add(to, "]") ? 0 : scn_wrong(p, "not a list of GPU types");
}

static int gpus_clause(struct parser *p, struct scn_text *to, uint32_t i)
{
    int64_t milli = scn_milli(p->word[i]);
    bool ok;

    if (milli > 0 && milli < 1000)
        ok = scn_add(to, ", \"gpus\": 1, \"gpu_milli\": %lld", (long long)milli);
    else if (milli >= 0 && milli % 1000 == 0)
        ok = scn_add(to, ", \"gpus\": %lld", (long long)milli / 1000);
    else
        return scn_wrong(p, "expected whole GPUs, or part of one, got %.20s", p->word[i]);
    return ok ? 0 : scn_wrong(p, "too long");
}

static int lasts_clause(struct parser *p, struct job_text *j, const char *v)
{
    stk_time t;

    if (!scn_time(v, &t))
        return scn_wrong(p, "expected a time such as 90s, 10m, 1h30m or 2d, got %.20s", v);
    j->lasts = true;
    return scn_add(j->to, ", \"duration_s\": %lld", (long long)(t / STK_SECOND))
               ? 0
               : scn_wrong(p, "too long");
}

/* "keep_up 2 of web": of this group so many stay up. */
static int keep_up_clause(struct parser *p, struct scn_text *to)
{
    if (scn_whole(p->word[1]) < 0 || !scn_name_ok(p->word[3]))
        return scn_wrong(p, "expected \"keep_up NUMBER of GROUP\"");
    return scn_add(to, ", \"keep_up\": {\"group\": \"%s\", \"min\": %s}", p->word[3], p->word[1])
               ? 0
               : scn_wrong(p, "too long");
}

/* "4 GPUs for 1h", "2 tasks of 4 GPUs", "on A100|V100", "after b", "KEY VALUE". */
static int clause_of_job(struct parser *p, struct job_text *j)
{
    uint32_t at = 0;
    int rc = 0;

    if (p->n >= 4 && scn_is(p, 1, "tasks") && scn_is(p, 2, "of")) {
        rc = json_value(p, j->to, "tasks", p->word[0]);
        at = 3;
    }
    if (rc == 0 && at + 1 < p->n && scn_is_gpus(p, at + 1)) {
        rc = gpus_clause(p, j->to, at);
        at += 2;
    }
    if (rc == 0 && at + 2 == p->n && scn_is(p, at, "for")) {
        rc = lasts_clause(p, j, p->word[at + 1]);
        at += 2;
    }
    if (rc < 0 || (at > 0 && at == p->n))
        return rc;
    if (at == 0 && p->n == 4 && scn_is(p, 0, "keep_up") && scn_is(p, 2, "of"))
        return keep_up_clause(p, j->to);
    if (at > 0 || p->n != 2 || !scn_name_ok(p->word[0]))
        return scn_wrong(p, "expected KEY VALUE, \"N GPUs for TIME\" or \"N tasks of M GPUs\"");
    if (scn_is(p, 0, "on"))
        return types_clause(p, j->to, p->word[1]);
    if (scn_is(p, 0, "says"))
        return json_value(p, j->to, "estimate_s", p->word[1]);
    if (scn_is(p, 0, "after") && scn_find_job(p->s, p->word[1], strlen(p->word[1])) != SCN_NONE)
        return scn_add(j->to, ", \"after\": [{\"on\": \"%s\", \"type\": \"afterok\"}]", p->word[1])
                   ? 0
                   : scn_wrong(p, "too long");
    return json_value(p, j->to, p->word[0], p->word[1]);
}

static int one_job(struct parser *p, void *ctx, bool first)
{
    (void)first;
    return clause_of_job(p, ctx);
}

/* "submit NAME [of TENANT]: clauses" */
int scn_read_submit(struct parser *p, char *text)
{
    struct job_text j = {.to = &p->s->jobs};
    char *colon = strchr(text, ':');
    struct scn_job *job;
    int rc;

    if (!colon)
        return scn_wrong(p, "expected \"submit NAME: ...\"");
    *colon = '\0';
    rc = scn_split(p, text);
    if (rc < 0)
        return rc;
    if (!(p->n == 1 || (p->n == 3 && scn_is(p, 1, "of") && scn_name_ok(p->word[2]))) ||
        !scn_name_ok(p->word[0]))
        return scn_wrong(p, "expected \"submit NAME: ...\" or \"submit NAME of TENANT: ...\"");
    if (scn_find_job(p->s, p->word[0], strlen(p->word[0])) != SCN_NONE)
        return scn_wrong(p, "there is a job %s already", p->word[0]);
    rc = scn_grow(p, (void **)&p->s->job, &p->s->cap_jobs, p->s->n_jobs + 1, sizeof(*p->s->job));
    if (rc < 0)
        return rc;
    job = &p->s->job[p->s->n_jobs++];
    *job = (struct scn_job){.line = p->line};
    (void)snprintf(job->name, sizeof(job->name), "%s", p->word[0]);
    if (!scn_add(j.to, "{\"id\": \"%s\", \"submit_s\": %lld", job->name,
                 (long long)(p->now / STK_SECOND)) ||
        (p->n == 3 && !scn_add(j.to, ", \"tenant\": \"%s\"", p->word[2])))
        return scn_wrong(p, "too long");
    rc = scn_clauses(p, colon + 1, one_job, &j);
    if (rc == 0 && !j.lasts)
        return scn_wrong(p, "how long does it run? add \"for TIME\"");
    return rc < 0 ? rc : scn_add(j.to, "}\n") ? 0 : scn_wrong(p, "too long");
}
