/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/table.h"
#include "sim/human.h"
#include "spec/words.h"

#define MAX_SIDES 4

static double value(const json_t *o, const char *key)
{
    const char *dot = strchr(key, '.');
    char first[40];

    if (!dot)
        return json_is_number(json_object_get(o, key)) ? json_number_value(json_object_get(o, key))
                                                       : (double)NAN;
    (void)snprintf(first, sizeof(first), "%.*s", (int)(dot - key), key);
    return value(json_object_get(o, first), dot + 1);
}

static void put(char *buf, size_t size, enum stk_figure_kind kind, double v)
{
    if (!isfinite(v))
        (void)snprintf(buf, size, "-");
    else if (kind == STK_FIGURE_TIME)
        stk_human_duration(buf, size, v);
    else if (kind == STK_FIGURE_SHARE)
        (void)snprintf(buf, size, "%.1f%%", v * 100);
    else if (kind == STK_FIGURE_COUNT)
        (void)snprintf(buf, size, "%.0f", v);
    else
        (void)snprintf(buf, size, "%.*f", v >= 100 ? 0 : 2, v);
}

/* Figures that read the same are the same. */
static bool reads_same(enum stk_figure_kind kind, double was, double is)
{
    char a[64], b[64];

    put(a, sizeof(a), kind, was);
    put(b, sizeof(b), kind, is);
    return strcmp(a, b) == 0;
}

/* "-32%", or in points where both are shares. */
static void put_change(char *buf, size_t size, enum stk_figure_kind kind, double was, double is)
{
    if (!isfinite(was) || !isfinite(is))
        (void)snprintf(buf, size, "cannot be compared");
    else if (reads_same(kind, was, is))
        (void)snprintf(buf, size, "same");
    else if (kind == STK_FIGURE_SHARE)
        (void)snprintf(buf, size, "%+.1f points", (is - was) * 100);
    else if (fabs(was) < 1e-9)
        (void)snprintf(buf, size, "new");
    else
        (void)snprintf(buf, size, "%+.0f%%", (is / was - 1) * 100);
}

static enum stk_colour colour(const struct stk_figure *f, double was, double is)
{
    double gain = (is - was) * f->better;

    if (!isfinite(gain) || reads_same(f->kind, was, is) || fabs(is - was) <= 0.005 * fabs(was))
        return STK_PLAIN;
    return gain > 0 ? STK_GREEN : gain < 0 ? STK_YELLOW : STK_PLAIN;
}

void stk_compare_print(const struct stk_ask *k, const struct stk_figure *f,
                       const struct stk_side *sides, size_t n, size_t against)
{
    struct stk_column columns[MAX_SIDES + 2] = {{"", false, 0}};
    size_t n_columns = 1 + n + (against < n);
    struct stk_table *t;

    for (size_t i = 0; i < n && i < MAX_SIDES; i++)
        columns[1 + i] = (struct stk_column){sides[i].title, true, 0};
    columns[1 + n] = (struct stk_column){"CHANGE", true, 0};
    t = stk_table_new(columns, n_columns);
    for (; f->key; f++) {
        double v[MAX_SIDES] = {0}, was;
        char text[64];
        bool known = false;

        for (size_t i = 0; i < n && i < MAX_SIDES; i++) {
            v[i] = value(sides[i].figures, f->key);
            known |= isfinite(v[i]);
        }
        if (!known)
            continue;
        was = against < n ? v[against] : (double)NAN;
        stk_table_cell(t, STK_PLAIN, "%s", f->name);
        for (size_t i = 0; i < n && i < MAX_SIDES; i++) {
            put(text, sizeof(text), f->kind, v[i]);
            stk_table_cell(t, STK_PLAIN, "%s", text);
        }
        if (n_columns > 1 + n) {
            put_change(text, sizeof(text), f->kind, was, v[n - 1]);
            stk_table_cell(t, colour(f, was, v[n - 1]), "%s", text);
        }
    }
    (void)stk_table_print(t, &k->out, 0);
    stk_table_free(t);
}

void stk_compare_each(const struct stk_figure *f, const json_t *was, const json_t *is,
                      void (*fn)(void *ctx, const struct stk_compared *row), void *ctx)
{
    for (; f->key; f++) {
        const double a = value(was, f->key), b = value(is, f->key);
        const enum stk_colour c = colour(f, a, b);
        struct stk_compared row = {.name = f->name,
                                   .tone = c == STK_GREEN    ? 1
                                           : c == STK_YELLOW ? -1
                                                             : 0};

        if (!isfinite(a) && !isfinite(b))
            continue;
        put(row.was, sizeof(row.was), f->kind, a);
        put(row.is, sizeof(row.is), f->kind, b);
        put_change(row.change, sizeof(row.change), f->kind, a, b);
        fn(ctx, &row);
    }
}

static int when(const char *text, int64_t now, int64_t *ret, struct stk_err *err)
{
    int64_t s;

    if (strspn(text, "0123456789") != strlen(text) && stk_words_duration(text, 1, &s) == 0) {
        *ret = now - s;
        return 0;
    }
    return stk_words_time(text, now, ret, err);
}

int stk_period(const struct stk_args *a, const char *since, json_t *o)
{
    const char *from = stk_arg(a, "since"), *to = stk_arg(a, "until");
    int64_t now = (int64_t)time(NULL), at = 0;
    struct stk_err why = {""};
    int rc;

    from = from ? from : since;
    if (!from)
        return stk_misused(a, "--since is missing: 7d (ago) or a time such as 2026-11-01");
    rc = when(from, now, &at, &why);
    if (rc == -ERANGE)
        return stk_misused(a, "--since %s", why.text);
    if (rc < 0 || at < 0)
        return stk_misused(a, "--since takes 7d (ago) or a time such as 2026-11-01, got \"%s\"",
                           from);
    (void)json_object_set_new(o, "since", json_integer(at));
    if (!to)
        return STK_EXIT_OK;
    rc = when(to, now, &at, &why);
    if (rc == -ERANGE)
        return stk_misused(a, "--until %s", why.text);
    if (rc < 0 || at < 0)
        return stk_misused(a, "--until takes 7d (ago) or a time such as 2026-11-01, got \"%s\"",
                           to);
    (void)json_object_set_new(o, "until", json_integer(at));
    return STK_EXIT_OK;
}
