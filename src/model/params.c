/* SPDX-License-Identifier: Apache-2.0 */
#include "model/params.h"

#include <stddef.h>
#include <string.h>

static const char *text_of(const struct stk_params *p, const struct stk_param *decl)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (strcmp(p->set[i].decl->name, decl->name) == 0)
            return p->set[i].text;
    return decl->def;
}

/* Reads a decimal number scaled by 10^decimals. Returns the end, or NULL when there is none, it has
 * too many decimals or it overflows. */
static const char *read_number(const char *s, int decimals, int64_t *ret)
{
    int64_t v = 0;
    bool digits = false, negative = *s == '-';

    s += negative;
    for (; *s >= '0' && *s <= '9'; s++, digits = true) {
        if (v > (INT64_MAX - 9) / 10)
            return NULL;
        v = v * 10 + (*s - '0');
    }
    if (decimals > 0 && *s == '.')
        s++;
    else if (decimals == 0 && *s == '.')
        return NULL;
    for (int d = 0; d < decimals; d++) {
        int digit = *s >= '0' && *s <= '9' ? *s++ - '0' : 0;

        if (v > (INT64_MAX - 9) / 10)
            return NULL;
        v = v * 10 + digit;
    }
    if (!digits)
        return NULL;
    *ret = negative ? -v : v;
    return s;
}

static bool in_words(const char *words, const char *text)
{
    size_t len = strlen(text);

    for (const char *w = words; *w;) {
        size_t n = 0;

        while (w[n] != '\0' && w[n] != '|')
            n++;
        if (n == len && memcmp(w, text, n) == 0)
            return true;
        w += n + (w[n] == '|');
    }
    return false;
}

/* One item of "8:40,*:60": reads the size (-1: any) and the seconds. */
static const char *read_size(const char *s, int64_t *ret_upto, int64_t *ret_us)
{
    const char *colon = s;

    *ret_upto = -1;
    while (*colon != '\0' && *colon != ':' && *colon != ',')
        colon++;
    if (*colon == ':') {
        if (*s == '*')
            s++;
        else
            s = read_number(s, 0, ret_upto);
        if (s != colon)
            return NULL;
        s++;
    }
    return read_number(s, 6, ret_us);
}

static bool valid_list(const struct stk_param *d, const char *s)
{
    int64_t v, last = INT64_MIN;

    if (*s == '\0')
        return true;
    for (int n = 0; n < STK_MAX_PARAM_LIST; n++) {
        s = read_number(s, 0, &v);
        if (!s || v < d->min || v > d->max || v <= last)
            return false;
        last = v;
        if (*s == '\0')
            return true;
        if (*s++ != ',')
            return false;
    }
    return false;
}

static bool valid_sizes(const struct stk_param *d, const char *s)
{
    int64_t upto, us, last = 0;

    for (int n = 0; n < STK_MAX_PARAM_LIST; n++) {
        s = read_size(s, &upto, &us);
        if (!s || us < d->min * STK_SECOND || us > d->max * STK_SECOND)
            return false;
        if (upto < 0)
            return *s == '\0';
        if (upto <= last || *s++ != ',')
            return false;
        last = upto;
    }
    return false;
}

static bool valid(const struct stk_param *d, const char *text)
{
    const char *end;
    int64_t v = 0;

    switch (d->type) {
    case STK_PARAM_INT:
        end = read_number(text, 0, &v);
        return end && *end == '\0' && v >= d->min && v <= d->max;
    case STK_PARAM_SECONDS:
        end = read_number(text, 6, &v);
        return end && *end == '\0' && v >= d->min * STK_SECOND && v <= d->max * STK_SECOND;
    case STK_PARAM_MILLI:
        end = read_number(text, 3, &v);
        return end && *end == '\0' && v >= d->min && v <= d->max;
    case STK_PARAM_LIST:
        return valid_list(d, text);
    case STK_PARAM_SIZES:
        return valid_sizes(d, text);
    case STK_PARAM_WORD:
        return in_words(d->words, text);
    }
    return false;
}

static int complain(const struct stk_param *d, const char *text, struct stk_err *err)
{
    const long long lo = d->min, hi = d->max;

    switch (d->type) {
    case STK_PARAM_INT:
        return stk_err_set(err, -EINVAL, "%s takes a whole number from %lld to %lld, got \"%s\"",
                           d->name, lo, hi, text);
    case STK_PARAM_SECONDS:
        return stk_err_set(err, -EINVAL, "%s takes seconds from %lld to %lld, got \"%s\"", d->name,
                           lo, hi, text);
    case STK_PARAM_MILLI:
        return stk_err_set(err, -EINVAL,
                           "%s takes a number from %g to %g with at most three decimals, got "
                           "\"%s\"",
                           d->name, (double)lo / 1000, (double)hi / 1000, text);
    case STK_PARAM_LIST:
        return stk_err_set(err, -EINVAL,
                           "%s takes at most %d ascending whole numbers from %lld to %lld joined "
                           "by commas, got \"%s\"",
                           d->name, STK_MAX_PARAM_LIST, lo, hi, text);
    case STK_PARAM_SIZES:
        return stk_err_set(err, -EINVAL,
                           "%s takes seconds (30), or seconds by GPUs (8:40,*:60), got \"%s\"",
                           d->name, text);
    case STK_PARAM_WORD:
        return stk_err_set(err, -EINVAL, "%s takes one of %s, got \"%s\"", d->name, d->words, text);
    }
    return -EINVAL;
}

int stk_params_set(struct stk_params *p, const struct stk_param *decl, const char *text,
                   struct stk_err *err)
{
    size_t len = strlen(text);
    uint32_t i = 0;

    if (len >= STK_MAX_PARAM_TEXT)
        return stk_err_set(err, -EINVAL, "%s: value longer than %d characters", decl->name,
                           STK_MAX_PARAM_TEXT - 1);
    if (!valid(decl, text))
        return complain(decl, text, err);
    while (i < p->n && strcmp(p->set[i].decl->name, decl->name) != 0)
        i++;
    if (i == STK_MAX_PARAMS)
        return stk_err_set(err, -E2BIG, "more than %d parameters", STK_MAX_PARAMS);
    if (i == p->n)
        p->n++;
    p->set[i].decl = decl;
    memcpy(p->set[i].text, text, len + 1);
    return 0;
}

bool stk_params_has(const struct stk_params *p, const struct stk_param *decl)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (strcmp(p->set[i].decl->name, decl->name) == 0)
            return true;
    return false;
}

int64_t stk_params_int(const struct stk_params *p, const struct stk_param *decl)
{
    int64_t v = 0;

    (void)read_number(text_of(p, decl), 0, &v);
    return v;
}

int64_t stk_params_milli(const struct stk_params *p, const struct stk_param *decl)
{
    int64_t v = 0;

    (void)read_number(text_of(p, decl), 3, &v);
    return v;
}

stk_time stk_params_seconds(const struct stk_params *p, const struct stk_param *decl)
{
    int64_t v = 0;

    (void)read_number(text_of(p, decl), 6, &v);
    return v;
}

uint32_t stk_params_list(const struct stk_params *p, const struct stk_param *decl, int64_t *ret)
{
    const char *s = text_of(p, decl);
    uint32_t n = 0;

    while (s && *s != '\0' && n < STK_MAX_PARAM_LIST) {
        s = read_number(s, 0, &ret[n++]);
        if (s && *s == ',')
            s++;
    }
    return n;
}

stk_time stk_params_size(const struct stk_params *p, const struct stk_param *decl, uint64_t gpus)
{
    const char *s = text_of(p, decl);
    int64_t upto = 0, us = 0;

    while (s && *s != '\0') {
        s = read_size(s, &upto, &us);
        if (upto < 0 || gpus <= (uint64_t)upto)
            return us;
        if (s && *s == ',')
            s++;
    }
    return us;
}

uint32_t stk_params_sizes(const struct stk_params *p, const struct stk_param *decl,
                          int64_t *ret_upto, stk_time *ret_us, uint32_t most)
{
    const char *s = text_of(p, decl);
    uint32_t n = 0;

    while (s && *s != '\0' && n < most) {
        s = read_size(s, &ret_upto[n], &ret_us[n]);
        n++;
        if (s && *s == ',')
            s++;
    }
    return n;
}

bool stk_params_word(const struct stk_params *p, const struct stk_param *decl, const char *word)
{
    return strcmp(text_of(p, decl), word) == 0;
}
