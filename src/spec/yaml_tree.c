/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_tree.c - see yaml_tree.h.
 *
 * libfyaml does the parsing. Refused before it sees the text is what a job file never needs and
 * some of its versions never return from: directives and bytes that are not text. Aliases are
 * refused too: they would let a short file grow without bound. Depth is bounded because we recurse.
 */
#include "spec/yaml_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"
#include "spec/words.h"
#include "yaml/yaml.h"

#define MAX_DEPTH 8
#define MAX_NODES 400000
#define MAX_PATH_LEN 160

struct reader {
    struct stk_yaml *y;
    struct stk_err *err;
    uint32_t nodes;
    int line; /* of the last key seen */
    char path[MAX_PATH_LEN];
};

static int bad(struct reader *r, const char *what)
{
    return stk_err_set(r->err, -EINVAL, "%s:%d: %s", r->y->where, r->line, what);
}

static int check_line(const struct stk_yaml *y, const char *line, size_t len, uint32_t number,
                      struct stk_err *err)
{
    const char *what = !stk_words_is_text(line, len, true) ? "expected text in UTF-8"
                       : len > 0 && line[0] == '%'         ? "YAML directives are not supported"
                                                           : NULL;

    return what ? stk_err_set(err, -EINVAL, "%s:%" PRIu32 ": %s", y->where, number, what) : 0;
}

static bool is_blank(const char *line, size_t len)
{
    size_t n = 0;

    while (n < len && strchr(" \t\r", line[n]))
        n++;
    return n == len || line[n] == '#';
}

static int check_text(const struct stk_yaml *y, const char *text, size_t len, struct stk_err *err)
{
    const char *p = text, *end = text + len;
    uint32_t number = 0;
    bool content = false;

    if (len > STK_MAX_JOB_FILE)
        return stk_err_set(err, -E2BIG, "%s: a job file has at most %d bytes", y->where,
                           STK_MAX_JOB_FILE);
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        bool marker = n >= 3 && (memcmp(p, "---", 3) == 0 || memcmp(p, "...", 3) == 0) &&
                      (n == 3 || strchr(" \t\r", p[3]));
        int rc = check_line(y, p, n, ++number, err);

        if (rc < 0)
            return rc;
        if (marker && content)
            return stk_err_set(err, -EINVAL, "%s:%" PRIu32 ": a job file describes one job",
                               y->where, number);
        content |= !is_blank(p, n) && !marker;
        p = nl ? nl + 1 : end;
    }
    return content ? 0 : stk_err_set(err, -EINVAL, "%s:1: the job file is empty", y->where);
}

static int convert(struct reader *r, struct fy_node *n, int depth, json_t **ret);

static int scalar(struct reader *r, struct fy_node *n, json_t **ret)
{
    size_t len = 0;
    const char *s = n ? fy_node_get_scalar(n, &len) : NULL;
    bool plain = !n || fy_node_get_style(n) == FYNS_PLAIN;

    if (!s ||
        (plain && (len == 0 || (len == 1 && *s == '~') || (len == 4 && memcmp(s, "null", 4) == 0))))
        *ret = json_null();
    else if (memchr(s, '\0', len))
        return bad(r, "expected text without NUL");
    else
        *ret = json_stringn(s, len);
    return *ret ? 0 : bad(r, "expected text in UTF-8");
}

static int key_of(struct reader *r, struct fy_node *key, char *name, size_t room)
{
    const struct fy_mark *mark;
    const char *s;
    size_t len = 0;

    if (!key || !fy_node_is_scalar(key) || fy_node_is_alias(key))
        return bad(r, "a key must be a plain word");
    mark = fy_token_start_mark(fy_node_get_scalar_token(key));
    if (mark)
        r->line = mark->line + 1;
    s = fy_node_get_scalar(key, &len);
    if (!s || len == 0 || len >= room || memchr(s, '\0', len) || memchr(s, '.', len))
        return bad(r, "a key must be a plain word of at most 255 bytes");
    memcpy(name, s, len);
    name[len] = '\0';
    return 0;
}

static int mapping(struct reader *r, struct fy_node *n, int depth, json_t **ret)
{
    json_t *o = json_object();
    size_t before = strlen(r->path);
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = o ? 0 : -ENOMEM;

    while (rc == 0 && (pair = fy_node_mapping_iterate(n, &it))) {
        json_t *value = NULL;
        char name[256];

        rc = key_of(r, fy_node_pair_key(pair), name, sizeof(name));
        if (rc < 0)
            break;
        (void)snprintf(r->path + before, sizeof(r->path) - before, "%s%s", before ? "." : "", name);
        if (depth < 4)
            (void)json_object_set_new(r->y->lines, r->path, json_integer(r->line));
        rc = convert(r, fy_node_pair_value(pair), depth + 1, &value);
        if (rc == 0 && json_object_set_new(o, name, value) < 0)
            rc = bad(r, "expected text in UTF-8");
        r->path[before] = '\0';
    }
    if (rc == 0)
        *ret = o;
    else
        json_decref(o);
    return rc;
}

static int sequence(struct reader *r, struct fy_node *n, int depth, json_t **ret)
{
    json_t *list = json_array();
    struct fy_node *item;
    void *it = NULL;
    int rc = list ? 0 : -ENOMEM;

    while (rc == 0 && (item = fy_node_sequence_iterate(n, &it))) {
        json_t *value = NULL;

        rc = convert(r, item, depth + 1, &value);
        if (rc == 0)
            rc = json_array_append_new(list, value);
    }
    if (rc == 0)
        *ret = list;
    else
        json_decref(list);
    return rc;
}

static int convert(struct reader *r, struct fy_node *n, int depth, json_t **ret)
{
    if (depth > MAX_DEPTH)
        return bad(r, "the values are nested too deeply");
    if (++r->nodes > MAX_NODES)
        return bad(r, "the file has too many values");
    if (n && fy_node_is_alias(n))
        return bad(r, "aliases (*name) are not supported");
    if (n && fy_node_is_mapping(n))
        return mapping(r, n, depth, ret);
    if (n && fy_node_is_sequence(n))
        return sequence(r, n, depth, ret);
    return scalar(r, n, ret);
}

static int build(struct stk_yaml *y, const char *text, size_t len, struct stk_err *err)
{
    struct reader r = {.y = y, .err = err, .line = 1};
    struct stk_yaml_doc d;
    int rc = stk_yaml_open(&d, y->where, text, len, err);
    struct fy_node *root = rc == 0 && d.doc ? fy_document_root(d.doc) : NULL;

    if (rc == 0 && !d.doc)
        rc = stk_err_set(err, -EINVAL, "%s:1: not valid YAML", y->where);
    else if (rc == 0 && (!root || !fy_node_is_mapping(root)))
        rc = bad(&r, "a job file must be a mapping such as \"run: python train.py\"");
    else if (rc == 0)
        rc = convert(&r, root, 0, &y->root);
    stk_yaml_close(&d);
    return rc;
}

int stk_yaml_read(struct stk_yaml *y, const char *text, size_t len, const char *where,
                  struct stk_err *err)
{
    int rc;

    *y = (struct stk_yaml){.lines = json_object()};
    (void)snprintf(y->where, sizeof(y->where), "%s", stk_words_show(where).text);
    if (!y->lines)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = check_text(y, text, len, err);
    if (rc == 0)
        rc = build(y, text, len, err);
    if (rc < 0)
        stk_yaml_done(y);
    return rc;
}

void stk_yaml_done(struct stk_yaml *y)
{
    json_decref(y->root);
    json_decref(y->lines);
    y->root = y->lines = NULL;
}

int stk_yaml_line(const struct stk_yaml *y, const char *path)
{
    char up[MAX_PATH_LEN];

    (void)snprintf(up, sizeof(up), "%s", path);
    for (;;) {
        const json_t *line = json_object_get(y->lines, up);
        char *cut = strrchr(up, '.');

        if (line)
            return (int)json_integer_value(line);
        if (!cut)
            return 1;
        *cut = '\0';
    }
}
