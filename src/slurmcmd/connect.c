/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - the daemon, and messages; see slurm.h. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slurmcmd/slurm.h"
#include "spec/words.h"

#define PAGE 1000

static void say(const char *name, const char *kind, const char *fmt, va_list ap)
{
    char text[1024];

    (void)vsnprintf(text, sizeof(text), fmt, ap);
    for (char *p = text; *p; p++) /* the daemon's words reach a terminal */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    (void)fprintf(stderr, "%s: %s%s\n", name, kind, text);
}

void stk_slurm_say(const char *name, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(name, "", fmt, ap);
    va_end(ap);
}

int stk_slurm_misuse(const char *name, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(name, "error: ", fmt, ap);
    va_end(ap);
    return 2;
}

int stk_slurm_flags_only(const struct stk_opts *o, int rc, const struct stk_err *err)
{
    if (rc < 0)
        return stk_slurm_misuse(o->argv[0], "%s", err->text);
    if (o->at < o->argc)
        return stk_slurm_misuse(o->argv[0], "expected flags, got \"%s\"",
                                stk_words_show(o->argv[o->at]).text);
    return 0;
}

int stk_slurm_fail(const struct stk_slurm *s, const struct stk_err *err)
{
    (void)stk_slurm_misuse(s->name, "%s", err->text);
    return 1;
}

int stk_slurm_open(struct stk_slurm *s, const char *name)
{
    struct stk_err err = {""};
    char path[256];

    *s = (struct stk_slurm){.name = name};
    if (stk_client_find(NULL, path, sizeof(path), &err) < 0)
        return stk_slurm_fail(s, &err);
    s->c = stk_client_new(path);
    if (!s->c)
        return stk_slurm_misuse(name, "out of memory");
    return 0;
}

void stk_slurm_close(struct stk_slurm *s)
{
    stk_client_free(s->c);
    json_decref(s->nodes);
    s->c = NULL;
    s->nodes = NULL;
}

/* Reads pages of 'rows' into 'list'; the cursor is the number of the last row seen. */
static int pages(struct stk_slurm *s, const char *path, const char *cursor, const char *rows,
                 json_t *list, struct stk_err *err)
{
    int64_t at = -1;

    for (;;) {
        json_t *page = NULL, *next;
        int rc;

        if (at < 0)
            rc = stk_client_get(s->c, &page, err, "%s", path);
        else
            rc = stk_client_get(s->c, &page, err, "%s&%s=%lld", path, cursor, (long long)at);
        if (rc < 0)
            return rc;
        (void)json_array_extend(list, json_object_get(page, rows));
        next = json_object_get(page, "next");
        at = json_is_integer(next) ? (int64_t)json_integer_value(next) : -1;
        json_decref(page);
        if (at < 0)
            return 0;
    }
}

int stk_slurm_live(struct stk_slurm *s, const char *query, bool detail, json_t *jobs,
                   struct stk_err *err)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "/v1/jobs?limit=%d&detail=%d%s", PAGE, detail, query);
    return pages(s, path, "after", "jobs", jobs, err);
}

int stk_slurm_ended(struct stk_slurm *s, const char *query, bool detail, json_t *jobs,
                    struct stk_err *err)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "/v1/history?limit=%d&detail=%d%s", PAGE, detail, query);
    return pages(s, path, "before", "jobs", jobs, err);
}

int stk_slurm_nodes(struct stk_slurm *s, struct stk_err *err)
{
    char path[64];
    int rc;

    if (s->nodes)
        return 0;
    s->nodes = json_array();
    (void)snprintf(path, sizeof(path), "/v1/nodes?limit=%d", PAGE);
    rc = pages(s, path, "after", "nodes", s->nodes, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < json_array_size(s->nodes); i++) {
        const char *pool = stk_str(json_array_get(s->nodes, i), "pool");

        if (i == 0)
            (void)snprintf(s->pool, sizeof(s->pool), "%s", pool);
        else if (strcmp(s->pool, pool) != 0)
            s->pool[0] = '\0';
    }
    return 0;
}

void stk_slurm_away(const struct stk_slurm *s, struct stk_away *away, int signals)
{
    if (stk_away_lost(away, (double)time(NULL)))
        stk_slurm_say(s->name, "%s", STK_AWAY_TEXT);
    (void)poll(&(struct pollfd){.fd = signals, .events = POLLIN}, 1, stk_away_pause_ms(away));
}

int stk_slurm_wait(struct stk_slurm *s, uint32_t number, json_t **ret_job, struct stk_err *err)
{
    struct stk_away away = {0};
    char path[64];
    struct stk_call call = {.path = path, .timeout_ms = 60000};

    (void)snprintf(path, sizeof(path), "/v1/jobs/%u/wait?timeout_s=30", number);
    for (;;) {
        json_t *job = NULL;
        int rc = stk_client_call(s->c, &call, &job, err);

        if (rc == 0 && strcmp(stk_str(job, "state"), "done") == 0) {
            *ret_job = job;
            return 0;
        }
        json_decref(job);
        if (rc < 0 && !stk_away_is(rc))
            return rc;
        if (rc == 0)
            stk_away_back(&away);
        else
            stk_slurm_away(s, &away, -1);
    }
}
