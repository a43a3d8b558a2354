/* SPDX-License-Identifier: Apache-2.0 */
#include "libslurm/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- hosts ---- */

struct hosts {
    stk_slurm_host_fn each;
    void *ctx;
    uint32_t n;
    char name[STK_SLURM_HOST_LEN];
};

static int expand(struct hosts *h, size_t at, const char *s, const char *end);

static int finish(struct hosts *h, size_t at)
{
    if (at == 0 || h->n >= STK_SLURM_MAX_HOSTS)
        return at == 0 ? -EINVAL : -E2BIG;
    h->n++;
    h->name[at] = '\0';
    return h->each(h->ctx, h->name);
}

static int append(struct hosts *h, size_t *at, const char *s, size_t len)
{
    if (*at + len >= sizeof(h->name))
        return -E2BIG;
    memcpy(h->name + *at, s, len);
    *at += len;
    return 0;
}

/* Digits at 's'; how many. Slurm's own numbers are short. */
static size_t number(const char *s, const char *end, uint32_t *ret)
{
    size_t n = 0;

    *ret = 0;
    for (; s + n < end && n < 9 && s[n] >= '0' && s[n] <= '9'; n++)
        *ret = *ret * 10 + (uint32_t)(s[n] - '0');
    return n;
}

/* A number with as many digits at least as the first of its range was written with. */
static int append_number(struct hosts *h, size_t *at, uint32_t v, size_t width)
{
    char digits[12];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    while (sizeof(digits) - n < width && n > 0)
        digits[--n] = '0';
    return append(h, at, digits + n, sizeof(digits) - n);
}

/* One range of a bracket, and for each of its numbers all that follows the bracket. */
static int each_number(struct hosts *h, size_t at, const char **s, const char *close,
                       const char *end)
{
    uint32_t from, to;
    size_t width = number(*s, close, &from), n;
    int rc = width > 0 ? 0 : -EINVAL;

    to = from;
    *s += width;
    if (rc == 0 && *s < close && **s == '-') {
        n = number(*s + 1, close, &to);
        rc = n > 0 && to >= from ? 0 : -EINVAL;
        *s += n + 1;
    }
    if (rc == 0 && to - from >= STK_SLURM_MAX_HOSTS)
        rc = -E2BIG;
    for (uint32_t v = from; rc == 0 && v <= to; v++) {
        size_t with = at;

        rc = append_number(h, &with, v, width);
        rc = rc < 0 ? rc : expand(h, with, close + 1, end);
    }
    return rc;
}

static int bracket(struct hosts *h, size_t at, const char *s, const char *end)
{
    const char *close = memchr(s, ']', (size_t)(end - s));
    int rc;

    if (!close)
        return -EINVAL;
    do {
        rc = each_number(h, at, &s, close, end);
    } while (rc == 0 && s < close && *s++ == ',');
    return rc < 0 ? rc : s == close ? 0 : -EINVAL;
}

/* One word of the list, its first 'at' characters made already. */
static int expand(struct hosts *h, size_t at, const char *s, const char *end)
{
    const char *open = memchr(s, '[', (size_t)(end - s));
    int rc = append(h, &at, s, (size_t)((open ? open : end) - s));

    if (rc < 0)
        return rc;
    return open ? bracket(h, at, open + 1, end) : finish(h, at);
}

/* The end of the first word: a comma that is not in brackets. */
static const char *word_end(const char *s)
{
    bool inside = false;

    for (; *s && (inside || *s != ','); s++)
        inside = *s == '[' || (inside && *s != ']');
    return s;
}

int stk_slurm_hosts(const char *list, stk_slurm_host_fn each, void *ctx)
{
    struct hosts h = {.each = each, .ctx = ctx};
    int rc = 0;

    while (rc == 0 && list && *list) {
        const char *end = word_end(list);

        rc = expand(&h, 0, list, end);
        list = *end ? end + 1 : end;
    }
    return rc;
}

/* ---- resources ---- */

/* "0-1,4" */
static int read_indices(const char *s, const char *end, uint64_t *ret)
{
    while (s < end) {
        uint32_t from, to;
        size_t n = number(s, end, &from);

        if (n == 0)
            return -EINVAL;
        to = from;
        s += n;
        if (s < end && *s == '-') {
            n = number(s + 1, end, &to);
            s += n + 1;
        }
        if (n == 0 || to < from || to > 63)
            return -EINVAL;
        for (uint32_t v = from; v <= to; v++)
            *ret |= UINT64_C(1) << v;
        if (s < end && *s++ != ',')
            return -EINVAL;
    }
    return 0;
}

/* A count, as the digits that Slurm writes; it is at most nine of them. */
static int read_count(const char *s, const char *end, uint32_t *ret)
{
    while (s + 1 < end && *s == '0')
        s++;
    return s < end && number(s, end, ret) == (size_t)(end - s) ? 0 : -EINVAL;
}

/* What is behind the count, in brackets: the sockets, which of them, or how many. */
static int read_bracket(const char *s, const char *end, struct stk_slurm_gres *g)
{
    static const char idx[] = "IDX:", cnt[] = "CNT:";
    const size_t len = sizeof(idx) - 1;
    const char *close = memchr(s, ')', (size_t)(end - s));

    if (!close || close + 1 != end)
        return -EINVAL;
    if ((size_t)(close - s) >= len && memcmp(s, cnt, len) == 0)
        return read_count(s + len, close, &g->count);
    if ((size_t)(close - s) < len || memcmp(s, idx, len) != 0)
        return 0;
    s += len;
    return (size_t)(close - s) == 3 && memcmp(s, "N/A", 3) == 0
               ? 0
               : read_indices(s, close, &g->indices);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether Slurm may read the word as a number: it takes blanks or a sign before one, and units
 * behind ("2k"). A type of GPUs is none of these ("1g.5gb"). */
static bool is_odd(const char *s, const char *end)
{
    if (s == end || *s < '0' || *s > '9')
        return s == end || strchr(" \t\n\v\f\r+-", *s);
    while (s < end && *s >= '0' && *s <= '9')
        s++;
    while (s < end && is_letter(*s))
        s++;
    return s == end;
}

/* "2", "h100", "h100:2"; Slurm writes "(null):2" where there is no type. */
static int read_words(const char *s, const char *end, struct stk_slurm_gres *g)
{
    static const char none[] = "(null)";
    const size_t len = sizeof(none) - 1;
    const char *sep = s;
    size_t n;

    while (sep < end && *sep != ':' && *sep != '=')
        sep++;
    if (sep == end && read_count(s, end, &g->count) == 0)
        return 0;
    g->count = 1;
    n = (size_t)(sep - s);
    if (n >= sizeof(g->type) || (sep == end && is_odd(s, end)) || n == 0)
        return -EINVAL;
    if (n != len || memcmp(s, none, len) != 0)
        memcpy(g->type, s, n);
    return sep == end ? 0 : read_count(sep + 1, end, &g->count);
}

/* Where the kind of a resource is behind "gres:", that is wherever it stands: so Slurm reads it. */
static const char *skip_gres(const char *s, const char *end)
{
    static const char word[] = "gres";
    const size_t len = sizeof(word) - 1;

    for (const char *p = s; p + len < end; p++)
        if (memcmp(p, word, len) == 0 && (p[len] == ':' || p[len] == '/'))
            return p + len + 1;
    return s;
}

/* Where its brackets open, behind those of a type; 'end': it has none. */
static const char *find_bracket(const char *s, const char *end)
{
    static const char key[] = ":(null)";
    const size_t len = sizeof(key) - 1;

    for (; s < end && *s != '('; s++)
        if ((size_t)(end - s) >= len && memcmp(s, key, len) == 0)
            s += len - 1;
    return s;
}

/* "gpu:h100:2(IDX:0-1)"; 1: of another kind. */
static int read_one(const char *s, const char *end, struct stk_slurm_gres *g)
{
    const char *stop = find_bracket(s, end);
    int rc = 0;

    *g = (struct stk_slurm_gres){.count = 1};
    s = skip_gres(s, stop);
    if (stop - s < 3 || memcmp(s, "gpu", 3) != 0 || (stop - s > 3 && s[3] != ':' && s[3] != '='))
        return 1;
    if (stop - s > 3)
        rc = read_words(s + 4, stop, g);
    return rc < 0 || stop == end ? rc : read_bracket(stop + 1, end, g);
}

/* A comma in brackets does not end an entry. */
static const char *entry_end(const char *s)
{
    bool inside = false;

    for (; *s && (inside || *s != ','); s++)
        inside = *s == '(' || (inside && *s != ')');
    return s;
}

int stk_slurm_gpus(const char *list, struct stk_slurm_gres *ret, uint32_t max)
{
    uint32_t n = 0;

    if (!list || strcmp(list, "(null)") == 0)
        return 0;
    while (*list) {
        const char *end = entry_end(list);
        struct stk_slurm_gres g;
        int rc = read_one(list, end, &g);

        if (rc < 0 || n >= STK_SLURM_MAX_GRES)
            return -EINVAL;
        if (rc == 0 && n < max)
            ret[n] = g;
        n += rc == 0;
        list = *end ? end + 1 : end;
    }
    return (int)n;
}

void stk_slurm_plain_gres(char *io_list)
{
    static const char word[] = "gres";
    const size_t len = sizeof(word) - 1;
    char *to = io_list;

    for (const char *s = io_list; *s;) {
        const char *end = entry_end(s);
        size_t n = (size_t)(end - s);
        bool more = *end != '\0';

        if (n > len && strncmp(s, word, len) == 0 && (s[len] == '/' || s[len] == ':')) {
            if (to > io_list)
                *to++ = ',';
            memmove(to, s, n);
            to[len] = ':';
            for (char *is = to; (is = memchr(is, '=', n - (size_t)(is - to)));)
                *is = ':';
            to += n;
        }
        s = end + more;
    }
    *to = '\0';
}

/* ---- what a script asks for ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip(const char *s, const char *end, bool blanks)
{
    while (s < end && is_blank(*s) == blanks)
        s++;
    return s;
}

/* The value of --signal, where the word is that: behind '=', or the next word. NULL: it is another.
 */
static const char *value_of(const char *word, const char *stop, const char *end)
{
    static const char flag[] = "--signal";
    const size_t len = sizeof(flag) - 1, n = (size_t)(stop - word);

    if (n < len || strncmp(word, flag, len) != 0)
        return NULL;
    if (n == len)
        return skip(stop, end, true);
    return word[len] == '=' ? word + len + 1 : NULL;
}

/* Of the rest of a line. */
static bool signal_of(const char *s, const char *end, char *buf, size_t size)
{
    bool found = false;

    for (s = skip(s, end, true); s < end; s = skip(s, end, true)) {
        const char *stop = skip(s, end, false), *value = value_of(s, stop, end);
        size_t n = value ? (size_t)(skip(value, end, false) - value) : 0;

        s = value ? value + n : stop;
        if (n == 0 || n >= size)
            continue;
        memcpy(buf, value, n);
        buf[n] = '\0';
        found = true;
    }
    return found;
}

/* Slurm reads up to the first line that is a command. */
bool stk_slurm_script_signal(const char *script, char *buf, size_t size)
{
    static const char word[] = "#SBATCH";
    bool found = false;

    while (*script) {
        const char *end = script + strcspn(script, "\r\n"), *s = script;

        while (s < end && is_blank(*s))
            s++;
        if (s < end && *s != '#')
            break;
        if (s == script && (size_t)(end - s) >= sizeof(word) - 1 &&
            strncmp(s, word, sizeof(word) - 1) == 0)
            found |= signal_of(s + sizeof(word) - 1, end, buf, size);
        script = end + (*end != '\0');
    }
    return found;
}
