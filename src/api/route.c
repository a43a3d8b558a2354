/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include <stdio.h>
#include <string.h>

#include "base/near.h"

/* Length of the segment that 's' begins with, without its slash. */
static size_t segment(const char *s)
{
    return strcspn(s, "/");
}

bool stk_route_fits(const char *pattern, const char *path, char (*params)[128], uint32_t max)
{
    uint32_t n = 0;

    while (*pattern == '/' && *path == '/') {
        size_t a = segment(++pattern), b = segment(++path);

        if (a > 0 && pattern[0] == '{') {
            if (b == 0 || b >= sizeof(params[0]) || n >= max)
                return false;
            memcpy(params[n], path, b);
            params[n++][b] = '\0';
        } else if (a != b || memcmp(pattern, path, a) != 0) {
            return false;
        }
        pattern += a;
        path += b;
    }
    return *pattern == '\0' && *path == '\0';
}

/* Without {names}. */
static bool is_written_out(const struct stk_route *routes, const char *path)
{
    for (const struct stk_route *r = routes; r->method; r++)
        if (strcmp(r->path, path) == 0)
            return true;
    return false;
}

const struct stk_route *stk_route_find(const struct stk_route *routes, const char *method,
                                       const char *path, const struct stk_route **ret_other)
{
    const bool exact = is_written_out(routes, path); /* a number is never a word of the table */
    char params[8][128];

    *ret_other = NULL;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (const struct stk_route *r = routes; r->method; r++) {
        if (!stk_route_fits(r->path, path, params, 8) || (exact && strstr(r->path, "{id}")))
            continue;
        if (strcmp(r->method, method) == 0)
            return r;
        *ret_other = r;
    }
    return NULL;
}

void stk_route_allow(const struct stk_route *routes, const char *path, char *buf, size_t size)
{
    const bool exact = is_written_out(routes, path);
    char params[8][128];
    size_t used = 0;

    buf[0] = '\0';
    for (const struct stk_route *r = routes; r->method && used < size; r++)
        if (exact ? strcmp(r->path, path) == 0 : stk_route_fits(r->path, path, params, 8))
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", r->method);
}

/* The pattern with what the path has in place of its {names}: then only typing errors differ. */
static void fill_in(const char *pattern, const char *path, char *buf, size_t size)
{
    size_t used = 0;

    while (*pattern == '/' && used + 2 < size) {
        size_t a = segment(++pattern), b;
        const char *from = pattern;

        path += *path == '/';
        b = segment(path);
        if (pattern[0] == '{' && b > 0)
            from = path;
        used +=
            (size_t)snprintf(buf + used, size - used, "/%.*s", (int)(from == path ? b : a), from);
        pattern += a;
        path += b;
    }
    buf[used < size ? used : size - 1] = '\0';
}

const char *stk_route_near(const struct stk_route *routes, const char *path)
{
    unsigned best = stk_near_limit(path);
    const char *near = NULL;

    for (const struct stk_route *r = routes; r->method; r++) {
        char filled[512] = "";

        fill_in(r->path, path, filled, sizeof(filled));
        if (stk_near(path, filled, &best))
            near = r->path;
    }
    return near;
}

bool stk_route_takes(const struct stk_route *route, const char *name)
{
    size_t len = strlen(name);

    for (const char *w = route->query; w && *w;) {
        size_t n = strcspn(w, " ");

        if (n == len && memcmp(w, name, n) == 0)
            return true;
        w += n + (w[n] == ' ');
    }
    return false;
}
