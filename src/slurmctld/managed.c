/* SPDX-License-Identifier: Apache-2.0 */
#include "slurmctld/managed.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool add(struct stk_managed *m, const char *name, size_t len)
{
    size_t used = strlen(m->names);

    if (len == 0)
        return true;
    if (used + len + 2 > sizeof(m->names))
        return false;
    memcpy(m->names + used, name, len);
    memcpy(m->names + used + len, ",", 2);
    return true;
}

/* Without what is blank at both ends. */
static const char *trim(const char *s, size_t *io_len)
{
    while (*io_len > 0 && isspace((unsigned char)*s)) {
        s++;
        (*io_len)--;
    }
    while (*io_len > 0 && isspace((unsigned char)s[*io_len - 1]))
        (*io_len)--;
    return s;
}

static bool read_names(struct stk_managed *m, const char *s, size_t len)
{
    bool ok = true;

    while (len > 0) {
        const char *comma = memchr(s, ',', len);
        size_t n = comma ? (size_t)(comma - s) : len, word = n;
        const char *name = trim(s, &word);

        ok &= add(m, name, word);
        s += comma ? n + 1 : n;
        len -= comma ? n + 1 : n;
    }
    return ok;
}

static bool read_line(struct stk_managed *m, const char *line, size_t len)
{
    static const char key[] = "Partitions";
    const char *hash = memchr(line, '#', len), *is;
    size_t word;

    len = hash ? (size_t)(hash - line) : len;
    line = trim(line, &len);
    if (len == 0)
        return true;
    is = memchr(line, '=', len);
    word = is ? (size_t)(is - line) : 0;
    line = trim(line, &word);
    if (!is || word != sizeof(key) - 1 || strncasecmp(line, key, word) != 0)
        return false;
    return read_names(m, is + 1, len - (size_t)(is + 1 - line));
}

bool stk_managed_read(const char *text, size_t len, struct stk_managed *ret)
{
    bool ok = true;

    ret->names[0] = '\0';
    if (memchr(text, '\0', len))
        return false;
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;

        ok &= read_line(ret, text, n);
        text += end ? n + 1 : n;
        len -= end ? n + 1 : n;
    }
    return ok;
}

static bool has(const char *names, const char *name, size_t len)
{
    for (const char *s = names; *s;) {
        size_t n = strcspn(s, ",");

        if (n == len && strncmp(s, name, n) == 0)
            return true;
        s += n + (s[n] == ',');
    }
    return false;
}

bool stk_managed_any(const struct stk_managed *m, const char *partitions)
{
    for (const char *s = partitions; s && *s;) {
        size_t n = strcspn(s, ",");

        if (has(m->names, s, n))
            return true;
        s += n + (s[n] == ',');
    }
    return false;
}

void stk_managed_only(const struct stk_managed *m, const char *partitions,
                      char ret[STK_MANAGED_SIZE])
{
    size_t used = 0;

    ret[0] = '\0';
    for (const char *s = partitions; s && *s;) {
        size_t n = strcspn(s, ",");

        if (has(m->names, s, n) && !has(ret, s, n)) { /* so there is room for it */
            if (used > 0)
                ret[used++] = ',';
            memcpy(ret + used, s, n);
            ret[used += n] = '\0';
        }
        s += n + (s[n] == ',');
    }
}
