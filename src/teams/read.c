/* SPDX-License-Identifier: Apache-2.0 */
#include "teams/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int stk_teams_bad(const struct stk_teams_reader *r, struct fy_node *at, const char *fmt, ...)
{
    char what[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return stk_err_set(r->err, -EINVAL, "%s:%d: %s", r->name, stk_yaml_line_of(at), what);
}

int stk_teams_no_memory(const struct stk_teams_reader *r)
{
    return stk_err_set(r->err, -ENOMEM, "out of memory");
}

const char *stk_teams_word(struct fy_node *n, size_t *ret_len)
{
    const char *s =
        n && fy_node_is_scalar(n) && !fy_node_is_alias(n) ? fy_node_get_scalar(n, ret_len) : NULL;

    if (!s || memchr(s, '\0', *ret_len)) { /* no name has a NUL in it */
        *ret_len = 0;
        return "";
    }
    return s;
}

bool stk_teams_is(struct fy_node *n, const char *word)
{
    size_t len;
    const char *s = stk_teams_word(n, &len);

    return len == strlen(word) && memcmp(s, word, len) == 0;
}

struct stk_teams_shown stk_teams_show(struct fy_node *n)
{
    struct stk_teams_shown shown = {""};
    size_t len;
    const char *s = stk_teams_word(n, &len);

    for (size_t i = 0; i < len && i + 1 < sizeof(shown.text); i++)
        shown.text[i] = (char)(s[i] >= ' ' && s[i] <= '~' ? s[i] : '?');
    return shown;
}

static int unknown(const struct stk_teams_reader *r, struct fy_node *key, const char *what,
                   const struct stk_teams_field *fields)
{
    char keys[160] = "";
    size_t len = 0;

    for (size_t i = 0; fields[i].key && len < sizeof(keys); i++)
        len +=
            (size_t)snprintf(keys + len, sizeof(keys) - len, "%s%s", i ? ", " : "", fields[i].key);
    return stk_teams_bad(r, key, "unknown key \"%s\"; %s has %s", stk_teams_show(key).text, what,
                         keys);
}

int stk_teams_fields(const struct stk_teams_reader *r, struct fy_node *map, const char *what,
                     struct stk_teams_field *fields)
{
    struct fy_node_pair *pair;
    void *it = NULL;

    if (!map || !fy_node_is_mapping(map) || fy_node_is_alias(map))
        return stk_teams_bad(r, map, "%s must be a mapping such as {%s: ...}", what, fields[0].key);
    while ((pair = fy_node_mapping_iterate(map, &it))) {
        struct fy_node *key = fy_node_pair_key(pair);
        size_t i = 0;

        while (fields[i].key && !stk_teams_is(key, fields[i].key))
            i++;
        if (!fields[i].key)
            return unknown(r, key, what, fields);
        fields[i].value = fy_node_pair_value(pair);
        if (!fields[i].value)
            return stk_teams_bad(r, key, "%s has no value", fields[i].key);
    }
    return 0;
}

/* Digits, at most three of them behind a point. */
static bool read_milli(const char *s, size_t len, uint64_t *ret)
{
    uint64_t whole = 0, part = 0;
    size_t i = 0, point, places = 0;

    for (; i < len && s[i] >= '0' && s[i] <= '9'; i++) {
        if (whole > UINT32_MAX)
            return false;
        whole = whole * 10 + (uint64_t)(s[i] - '0');
    }
    point = i;
    if (i < len && s[i] == '.')
        for (i++; i < len && places < 3 && s[i] >= '0' && s[i] <= '9'; i++, places++)
            part = part * 10 + (uint64_t)(s[i] - '0');
    while (places > 0 && i < len && s[i] == '0')
        i++;
    if (i < len || point + places == 0)
        return false;
    for (; places < 3; places++)
        part *= 10;
    *ret = whole * 1000 + part;
    return true;
}

int stk_teams_milli(const struct stk_teams_reader *r, const char *what, struct fy_node *v,
                    uint64_t max, uint64_t *ret)
{
    uint64_t milli;
    size_t len;
    const char *s = stk_teams_word(v, &len);

    if (!read_milli(s, len, &milli) || milli > max * 1000)
        return stk_teams_bad(r, v, "%s, got \"%s\"", what, stk_teams_show(v).text);
    *ret = milli;
    return 0;
}

int stk_teams_name(const struct stk_teams_reader *r, struct stk_names *names, int *lines,
                   uint32_t max, struct fy_node *v, uint32_t *ret)
{
    size_t len;
    const char *s = stk_teams_word(v, &len);
    uint32_t before = names->n;
    int64_t number;

    if (len == 0 || len > STK_MAX_NAME_LEN)
        return stk_teams_bad(r, v, "expected a name of at most %u bytes", STK_MAX_NAME_LEN);
    number = stk_names_add(names, s, len, max);
    if (number == -ENOMEM)
        return stk_teams_no_memory(r);
    if (number < 0)
        return stk_teams_bad(r, v, "there are more than %u names of this kind", max);
    if (names->n > before)
        lines[number] = stk_yaml_line_of(v);
    *ret = (uint32_t)number;
    return 0;
}
