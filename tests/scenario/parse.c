/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - see scenario.h. A scenario is lines; a line is a word and what belongs to it; lists
 * have commas. */
#include "parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int read_step(struct parser *p, char *text)
{
    int rc;

    if (strncmp(text, "submit ", 7) == 0)
        return scn_read_submit(p, text + 7);
    rc = scn_split(p, text);
    if (rc < 0)
        return rc;
    return scn_is(p, 0, "expect") ? scn_read_expect(p) : scn_read_action(p);
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
        return scn_wrong(p, "expected a time such as 90s, 10m, 1h30m or 2d, got \"%.20s\"", text);
    if (t < p->now)
        return scn_wrong(p, "time goes on: it is later than %.20s already", text);
    p->now = t;
    return *rest ? read_step(p, rest) : 0;
}

/* One rule as in a file of rules, without the braces. */
static int read_rule(struct parser *p, const char *text)
{
    struct scn_text *to = &p->s->rules;

    if (to->len == 0 && !scn_add(to, "rules:\n"))
        return scn_wrong(p, "too long");
    return scn_add(to, "  - {%s}\n", text) ? 0 : scn_wrong(p, "too long");
}

/* "2026-11-16 07:00 Europe/Berlin"; the zone may be left out. */
static int read_start(struct parser *p, const char *text)
{
    struct scenario *s = p->s;
    char *zone;

    while (*text == ' ')
        text++;
    if (strlen(text) >= sizeof(s->start))
        return scn_wrong(p, "expected \"start: DATE TIME ZONE\"");
    (void)snprintf(s->start, sizeof(s->start), "%s", text);
    zone = strrchr(s->start, ' ');
    if (zone && zone[1] >= 'A') {
        *zone = '\0';
        (void)snprintf(s->zone, sizeof(s->zone), "%s", zone + 1);
    }
    return 0;
}

static int read_line(struct parser *p, char *text)
{
    static const struct {
        const char *word;
        int (*read)(struct parser *, char *);
    } all[] = {{"cluster:", scn_read_cluster},
               {"policy:", scn_read_policy},
               {"param:", scn_read_param},
               {"tenant:", scn_read_tenant},
               {"queue:", scn_read_queue},
               {"reserve:", scn_read_reserve},
               {"at ", read_at}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strncmp(text, all[i].word, strlen(all[i].word)) == 0)
            return all[i].read(p, text + strlen(all[i].word));
    if (strncmp(text, "rule:", 5) == 0)
        return read_rule(p, text + 5);
    if (strncmp(text, "start:", 6) == 0)
        return read_start(p, text + 6);
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
        return scn_wrong(p, "a scenario needs a line \"cluster: N nodes x GPUS\"");
    if (s->n_steps == 0)
        return scn_wrong(p, "a scenario needs something to expect");
    if (s->n_tenants > 0 && !(scn_add(&s->tenants, "tenants: ") && scn_write_tenants(s, "", 0) &&
                              scn_add(&s->tenants, "\n")))
        return scn_wrong(p, "too long");
    if (s->queues.len > 0 && !scn_add(&s->tenants, "queues:\n%s", s->queues.s))
        return scn_wrong(p, "too long");
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
        rc =
            s->line ? read_line(&p, text) : scn_wrong(&p, "a file begins with \"scenario: TITLE\"");
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
    free(s->rules.s);
    free(s->windows.s);
    free(s->jobs.s);
    free(s->job);
    free(s->steps);
    *s = (struct scenario){.line = 0};
}
