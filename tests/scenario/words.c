/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - words, numbers, times and lists. See parse.h. */
#include "parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT (4 << 20)
#define MOST_TIME ((int64_t)3650 * 86400) /* seconds */

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

int scn_wrong(const struct parser *p, const char *fmt, ...)
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

bool scn_name_ok(const char *s)
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
int scn_split(struct parser *p, char *text)
{
    char *save = NULL;

    p->n = 0;
    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (p->n == MAX_WORDS)
            return scn_wrong(p, "more than %d words", MAX_WORDS);
        p->word[p->n++] = w;
    }
    return 0;
}

bool scn_is(const struct parser *p, uint32_t i, const char *word)
{
    return i < p->n && strcmp(p->word[i], word) == 0;
}

bool scn_is_gpus(const struct parser *p, uint32_t i)
{
    return scn_is(p, i, "GPU") || scn_is(p, i, "GPUs") || scn_is(p, i, "gpu") ||
           scn_is(p, i, "gpus");
}

/* A decimal number in thousandths; -1: it is none. */
int64_t scn_milli(const char *s)
{
    char *end;
    double v;

    if (!isdigit((unsigned char)*s))
        return -1;
    v = strtod(s, &end);
    return *end == '\0' && v >= 0 && v < 1e9 ? (int64_t)(v * 1000 + 0.5) : -1;
}

int64_t scn_whole(const char *s)
{
    int64_t m = scn_milli(s);

    return m >= 0 && m % 1000 == 0 ? m / 1000 : -1;
}

uint32_t scn_find_job(const struct scenario *s, const char *name, size_t len)
{
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (strlen(s->job[i].name) == len && memcmp(s->job[i].name, name, len) == 0)
            return i;
    return SCN_NONE;
}

/* Puts what follows in place; more elements of the array. */
int scn_grow(const struct parser *p, void **array, uint32_t *cap, uint32_t need, size_t size)
{
    void *more;

    if (need <= *cap)
        return 0;
    if (need > SCN_MAX_JOBS)
        return scn_wrong(p, "more than %d jobs or steps in one scenario", SCN_MAX_JOBS);
    more = realloc(*array, (size_t)need * 2 * size);
    if (!more)
        return scn_wrong(p, "out of memory");
    *array = more;
    *cap = need * 2;
    return 0;
}

/* Each clause of a list with commas. */
int scn_clauses(struct parser *p, char *text, int (*one)(struct parser *, void *, bool), void *ctx)
{
    bool first = true;
    int rc = 0;

    for (char *next; text && rc == 0; text = next, first = false) {
        next = strchr(text, ',');
        if (next)
            *next++ = '\0';
        rc = scn_split(p, text);
        if (rc == 0 && p->n == 0)
            rc = scn_wrong(p, "nothing between two commas");
        rc = rc < 0 ? rc : one(p, ctx, first);
    }
    return rc;
}
