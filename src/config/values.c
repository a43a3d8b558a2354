/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - one value of the configuration: checked, and put where it belongs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "config/config.h"
#include "policy/registry.h"

#define MAX_TEXT 4095u

static void *place(struct stk_config *c, const struct stk_config_key *k)
{
    return (char *)c + k->offset;
}

static char *copy(const char *s, size_t len)
{
    char *p = malloc(len + 1);

    if (!p)
        return NULL;
    memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

/* A whole number and the unit after it. */
static int read_number(const char *s, size_t len, uint64_t *ret, char *ret_unit)
{
    uint64_t v = 0;
    size_t i = 0;

    for (; i < len && s[i] >= '0' && s[i] <= '9'; i++) {
        if (v > (UINT64_MAX - 9) / 10)
            return -ERANGE;
        v = v * 10 + (uint64_t)(s[i] - '0');
    }
    if (i == 0 || len - i > 1)
        return -EINVAL;
    *ret = v;
    *ret_unit = '\0';
    if (i < len)
        *ret_unit = s[i];
    return 0;
}

static uint64_t scale_of(enum stk_config_type t, char unit)
{
    static const struct {
        enum stk_config_type type;
        char unit;
        uint64_t scale;
    } units[] = {
        {STK_CONFIG_SECONDS, 's', 1},
        {STK_CONFIG_SECONDS, 'm', 60},
        {STK_CONFIG_SECONDS, 'h', 3600},
        {STK_CONFIG_SECONDS, 'd', 86400},
        {STK_CONFIG_SECONDS, 'w', 604800},
        {STK_CONFIG_BYTES, 'K', UINT64_C(1) << 10},
        {STK_CONFIG_BYTES, 'M', UINT64_C(1) << 20},
        {STK_CONFIG_BYTES, 'G', UINT64_C(1) << 30},
        {STK_CONFIG_BYTES, 'T', UINT64_C(1) << 40},
    };

    if (unit == '\0')
        return 1;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (units[i].type == t && units[i].unit == unit)
            return units[i].scale;
    return 0;
}

static int set_number(struct stk_config *c, const struct stk_config_key *k, const char *s,
                      size_t len, struct stk_err *err)
{
    static const char *const like[] = {[STK_CONFIG_NUMBER] = "a whole number",
                                       [STK_CONFIG_SECONDS] = "a time such as 90, 30m, 12h or 30d",
                                       [STK_CONFIG_BYTES] = "a size such as 512M or 20G"};
    uint64_t v = 0, scale = 0;
    char unit;

    if (read_number(s, len, &v, &unit) == 0)
        scale = scale_of(k->type, unit);
    if (scale == 0 || v > k->max / scale)
        return stk_err_set(err, -EINVAL, "expected %s (at most %" PRIu64 "), got \"%.*s\"",
                           like[k->type], k->max, (int)(len < 40 ? len : 40), s);
    *(uint64_t *)place(c, k) = v * scale;
    return 0;
}

/* Digits, and up to six of them after a point. */
static int set_decimal(struct stk_config *c, const struct stk_config_key *k, const char *s,
                       size_t len, struct stk_err *err)
{
    const char *point = memchr(s, '.', len);
    size_t whole = point ? (size_t)(point - s) : len, rest = point ? len - whole - 1 : 0;
    uint64_t v = 0, part = 0;
    char unit = '\0';
    int rc = read_number(s, whole, &v, &unit);

    if (rc == 0 && unit == '\0' && point && rest <= 6)
        rc = read_number(point + 1, rest, &part, &unit);
    for (size_t i = rest; i < 6; i++)
        part *= 10;
    if (rc < 0 || unit != '\0' || rest > 6 || v > k->max / 1000000)
        return stk_err_set(err, -EINVAL, "expected a number such as 2.5, got \"%.*s\"",
                           (int)(len < 40 ? len : 40), s);
    *(uint64_t *)place(c, k) = v * 1000000 + part;
    return 0;
}

static bool is(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

static int set_bool(struct stk_config *c, const struct stk_config_key *k, const char *s, size_t len,
                    struct stk_err *err)
{
    bool yes = is(s, len, "yes") || is(s, len, "true") || is(s, len, "on");

    if (!yes && !is(s, len, "no") && !is(s, len, "false") && !is(s, len, "off"))
        return stk_err_set(err, -EINVAL, "expected yes or no, got \"%.*s\"",
                           (int)(len < 40 ? len : 40), s);
    *(uint64_t *)place(c, k) = yes;
    return 0;
}

static int set_word(struct stk_config *c, const struct stk_config_key *k, const char *s, size_t len,
                    struct stk_err *err)
{
    uint64_t i = 0;

    for (const char *w = k->words; *w; i++) {
        size_t n = strcspn(w, "|");

        if (n == len && memcmp(w, s, n) == 0) {
            *(uint64_t *)place(c, k) = i;
            return 0;
        }
        w += n + (w[n] == '|');
    }
    return stk_err_set(err, -EINVAL, "expected %s, got \"%.*s\"", k->words,
                       (int)(len < 40 ? len : 40), s);
}

static int set_text(struct stk_config *c, const struct stk_config_key *k, const char *s, size_t len,
                    struct stk_err *err)
{
    char *p = copy(s, len);

    if (!p)
        return stk_err_set(err, -ENOMEM, "out of memory");
    free(*(char **)place(c, k));
    *(char **)place(c, k) = p;
    return 0;
}

/* The i-th name of a registry, NULL past the end. */
static const char *registered(const char *which, size_t i)
{
    switch (which[0] == 'b' ? which[1] : which[0]) {
    case 'u':
        return stk_bundles[i].name;
    case 'a':
        return stk_backfills[i] ? stk_backfills[i]->name : NULL;
    case 'o':
        return stk_orders[i] ? stk_orders[i]->name : NULL;
    default:
        break;
    }
    if (strcmp(which, "place") == 0)
        return stk_places[i] ? stk_places[i]->name : NULL;
    return stk_preempts[i] ? stk_preempts[i]->name : NULL;
}

static int set_policy(struct stk_config *c, const struct stk_config_key *k, const char *s,
                      size_t len, struct stk_err *err)
{
    char word[64] = "", names[128] = "";
    const char *name, *near = NULL;
    unsigned best;
    size_t used = 0;

    memcpy(word, s, len < sizeof(word) ? len : sizeof(word) - 1);
    best = stk_near_limit(word);
    for (size_t i = 0; (name = registered(k->words, i)); i++) {
        if (is(s, len, name))
            return set_text(c, k, s, len, err);
        if (stk_near(word, name, &best))
            near = name;
        if (used + 32 < sizeof(names))
            used +=
                (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", name);
    }
    if (near)
        return stk_err_set(err, -EINVAL, "there is no %s \"%s\"; did you mean \"%s\"?", k->words,
                           word, near);
    return stk_err_set(err, -EINVAL, "there is no %s \"%s\"; there are: %s", k->words, word, names);
}

int stk_config_set(struct stk_config *c, const struct stk_config_key *k, const char *s, size_t len,
                   struct stk_err *err)
{
    if (len == 0 || len > MAX_TEXT || memchr(s, '\0', len))
        return stk_err_set(err, -EINVAL, "expected a %s of 1 to %u characters, none of them NUL",
                           stk_config_type_name(k->type), MAX_TEXT);
    switch (k->type) {
    case STK_CONFIG_TEXT:
        return set_text(c, k, s, len, err);
    case STK_CONFIG_NUMBER:
    case STK_CONFIG_SECONDS:
    case STK_CONFIG_BYTES:
        return set_number(c, k, s, len, err);
    case STK_CONFIG_DECIMAL:
        return set_decimal(c, k, s, len, err);
    case STK_CONFIG_BOOL:
        return set_bool(c, k, s, len, err);
    case STK_CONFIG_WORD:
        return set_word(c, k, s, len, err);
    case STK_CONFIG_POLICY:
        return set_policy(c, k, s, len, err);
    case STK_CONFIG_NAMES:
        return stk_config_add_name(c, k, s, len, err);
    case STK_CONFIG_AMOUNTS:
        return stk_err_set(err, -EINVAL, "expected names and numbers such as {licence: 2}");
    case STK_CONFIG_PAIRS:
    case STK_CONFIG_TEAMS: /* config.c hands them on */
    case STK_CONFIG_PARAMS:
        break;
    }
    return stk_err_set(err, -EINVAL, "expected names and values such as {las.round_s: 60}");
}

int stk_config_add_name(struct stk_config *c, const struct stk_config_key *k, const char *s,
                        size_t len, struct stk_err *err)
{
    char ***at = place(c, k), **list;
    size_t n = 0;

    if (len == 0 || len > 255 || memchr(s, '\0', len))
        return stk_err_set(err, -EINVAL, "expected names of 1 to 255 characters, none of them NUL");
    while (*at && (*at)[n])
        n++;
    if (n >= STK_CONFIG_MAX_LIST)
        return stk_err_set(err, -E2BIG, "more than %u names", STK_CONFIG_MAX_LIST);
    list = realloc(*at, (n + 2) * sizeof(*list));
    if (!list)
        return stk_err_set(err, -ENOMEM, "out of memory");
    *at = list;
    list[n + 1] = NULL;
    list[n] = copy(s, len);
    return list[n] ? 0 : stk_err_set(err, -ENOMEM, "out of memory");
}

static int add_amount(struct stk_config_amounts *a, const struct stk_config_pair *p,
                      struct stk_err *err)
{
    uint64_t v = 0;
    char unit = '\0';

    if (!stk_resource_name_ok(p->name, p->name_len))
        return stk_err_set(err, -EINVAL, "a name is 1 to %d letters, digits, _ - or .",
                           STK_MAX_RESOURCE_NAME - 1);
    if (read_number(p->s, p->len, &v, &unit) < 0 || unit != '\0' || v > UINT32_MAX)
        return stk_err_set(err, -EINVAL, "%.*s: expected a whole number (at most %u)",
                           (int)p->name_len, p->name, UINT32_MAX);
    if (a->n == STK_MAX_RESOURCES)
        return stk_err_set(err, -E2BIG, "more than %d names", STK_MAX_RESOURCES);
    a->names[a->n] = copy(p->name, p->name_len);
    if (!a->names[a->n])
        return stk_err_set(err, -ENOMEM, "out of memory");
    a->amounts[a->n++] = (uint32_t)v;
    return 0;
}

static int add_param(struct stk_config *c, const struct stk_config_pair *p, struct stk_err *err)
{
    struct stk_params scratch = {0};
    const struct stk_param *decl;
    char text[STK_MAX_PARAM_TEXT + 80];

    if (p->name_len > 64 || p->len >= STK_MAX_PARAM_TEXT)
        return stk_err_set(err, -EINVAL, "the name or its value is too long");
    if (c->policy.n_params >= STK_MAX_PARAMS)
        return stk_err_set(err, -E2BIG, "more than %d parameters", STK_MAX_PARAMS);
    (void)snprintf(text, sizeof(text), "%.*s", (int)p->name_len, p->name);
    decl = stk_param_find(text, NULL);
    if (!decl)
        return stk_err_set(err, -EINVAL,
                           "there is no parameter \"%s\" (stoker sim --list shows all)", text);
    (void)snprintf(text, sizeof(text), "%.*s", (int)p->len, p->s);
    if (stk_params_set(&scratch, decl, text, err) < 0)
        return -EINVAL;
    (void)snprintf(text, sizeof(text), "%.*s=%.*s", (int)p->name_len, p->name, (int)p->len, p->s);
    c->policy.params[c->policy.n_params] = copy(text, strlen(text));
    if (!c->policy.params[c->policy.n_params])
        return stk_err_set(err, -ENOMEM, "out of memory");
    c->policy.n_params++;
    return 0;
}

/* Kept as a list of "name=text". */
static int add_text(struct stk_config *c, const struct stk_config_key *k,
                    const struct stk_config_pair *p, struct stk_err *err)
{
    char *both = NULL;
    int n, rc;

    if (p->name_len == 0 || p->len == 0 || memchr(p->name, '=', p->name_len))
        return stk_err_set(err, -EINVAL,
                           "expected names (without =) and values, got \"%.*s\": \"%.*s\"",
                           (int)(p->name_len < 40 ? p->name_len : 40), p->name,
                           (int)(p->len < 40 ? p->len : 40), p->s);
    n = asprintf(&both, "%.*s=%.*s", (int)p->name_len, p->name, (int)p->len, p->s);
    if (n < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = stk_config_add_name(c, k, both, (size_t)n, err);
    free(both);
    return rc;
}

int stk_config_add_pair(struct stk_config *c, const struct stk_config_key *k,
                        const struct stk_config_pair *p, struct stk_err *err)
{
    if (k->type == STK_CONFIG_PARAMS)
        return add_param(c, p, err);
    if (k->type == STK_CONFIG_AMOUNTS)
        return add_amount(&c->resources, p, err);
    return add_text(c, k, p, err);
}
