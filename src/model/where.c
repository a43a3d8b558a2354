/* SPDX-License-Identifier: Apache-2.0 */
#include "model/where.h"

#include <stdint.h>
#include <string.h>

#define MAX_DEPTH 16 /* of parentheses */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- names ---- */

/* A number of at most nine digits, and how many these are; 0: there is none. */
static size_t number(const char *s, uint32_t *ret)
{
    size_t n = 0;

    for (*ret = 0; n < 9 && is_digit(s[n]); n++)
        *ret = *ret * 10 + (uint32_t)(s[n] - '0');
    return n;
}

/* Whether a number of so many digits is written as the range has it: 01 in "01-12", 1 in "1-12". */
static bool same_width(const char *first, size_t width, const char *digits, size_t n)
{
    return first[0] == '0' && width > 1 ? n == width : digits[0] != '0' || n == 1;
}

/* "1-4,7]": whether the number is in it. *io_list moves behind the bracket; NULL: there is none. */
static bool in_list(const char **io_list, const char *digits, size_t n, uint32_t is)
{
    const char *s = *io_list, *end = strchr(s, ']');
    bool found = false;

    while (end && s < end) {
        uint32_t from, to;
        const char *first = s;
        size_t width = number(s, &from);

        s += width;
        to = from;
        if (*s == '-')
            s += 1 + number(s + 1, &to);
        found |= width > 0 && is >= from && is <= to && same_width(first, width, digits, n);
        s = *s == ',' ? s + 1 : end;
    }
    *io_list = end ? end + 1 : NULL;
    return found;
}

bool stk_where_names(const char *pattern, const char *node)
{
    while (*pattern) {
        uint32_t is;
        size_t n;

        if (*pattern != '[') {
            if (*pattern++ != *node++)
                return false;
            continue;
        }
        n = number(node, &is);
        pattern++;
        if (n == 0 || is_digit(node[n]) || !in_list(&pattern, node, n, is) || !pattern)
            return false;
        node += n;
    }
    return *node == '\0';
}

/* ---- features ---- */

struct reader {
    const char *at, *features, *type;
    struct stk_err *err;
    uint32_t depth;
};

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Whether a name of so many bytes is part of the text, whatever its case. */
static bool part_of(const char *text, const char *name, size_t n)
{
    for (; text && *text; text++) {
        size_t i = 0;

        while (i < n && lower(text[i]) == lower(name[i]) && text[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

static bool has(const char *features, const char *name, size_t n)
{
    for (const char *s = features ? features : ""; *s;) {
        size_t len = strcspn(s, ",");

        if (len == n && strncmp(s, name, n) == 0)
            return true;
        s += len + (s[len] == ',');
    }
    return false;
}

static int wrong(const struct reader *r, const char *what)
{
    const char *quote = *r->at ? "\"" : "";

    return stk_err_set(r->err, -EINVAL, "at %s%.40s%s: %s", quote, *r->at ? r->at : "the end",
                       quote, what);
}

static int any(struct reader *r);

/* A name, or a constraint in parentheses. */
static int one(struct reader *r)
{
    int rc;

    while (*r->at == ' ')
        r->at++;
    if (*r->at == '(') {
        if (++r->depth > MAX_DEPTH)
            return wrong(r, "too many parentheses");
        r->at++;
        rc = any(r);
        if (rc >= 0 && *r->at != ')')
            rc = wrong(r, "a parenthesis is not closed");
        r->depth--;
        r->at += rc >= 0;
    } else {
        size_t n = strcspn(r->at, "&|,()[]*? ");

        if (n == 0 || strchr("[*?", r->at[n] ? r->at[n] : '.'))
            return wrong(r, "names of features with & or | between them are understood, and "
                            "parentheses; not [], * and ?");
        rc = has(r->features, r->at, n) || part_of(r->type, r->at, n);
        r->at += n;
    }
    while (rc >= 0 && *r->at == ' ')
        r->at++;
    return rc;
}

/* Several, with the same sign between them: what both together mean is told in more than one way.
 */
static int any(struct reader *r)
{
    int rc = one(r);
    int sign = rc >= 0 ? *r->at : 0;

    sign = sign == ',' ? '&' : sign;
    while (rc >= 0 && (*r->at == '&' || *r->at == ',' || *r->at == '|')) {
        bool or = *r->at == '|';
        int next;

        if (or != (sign == '|'))
            return wrong(r, "where & and | are mixed parentheses must say what belongs together");
        r->at++;
        next = one(r);
        if (next < 0)
            return next;
        rc = or ? rc || next : rc && next;
    }
    return rc;
}

int stk_where_meets(const char *constraint, const char *features, const char *gpu_type,
                    struct stk_err *err)
{
    struct reader r = {.at = constraint, .features = features, .type = gpu_type, .err = err};
    int rc = any(&r);

    return rc >= 0 && *r.at ? wrong(&r, "this is left over") : rc;
}
