/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - a job file into a description.
 *
 * Each key of the file is a word of yaml_words.c, a section that holds such words, or a key of the
 * description itself. The check then looks at the whole; when it finds fault with a key, the
 * message names the place in the file that the key came from.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "spec/spec.h"
#include "spec/words.h"
#include "spec/yaml_words.h"

int stk_yaml_bad(const struct stk_yaml_job *j, const char *fmt, ...)
{
    char what[192];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return stk_err_set(j->err, -EINVAL, "%s:%d: %.60s: %s", j->y->where,
                       stk_yaml_line(j->y, j->path), j->path, what);
}

int stk_yaml_put(struct stk_yaml_job *j, const char *key, json_t *take_value)
{
    const char *before = json_string_value(json_object_get(j->origin, key));

    if (before && strcmp(before, j->path) != 0) {
        json_decref(take_value);
        return stk_yaml_bad(j, "says the same as %.40s", before);
    }
    if (!take_value || json_object_set_new(j->job, key, take_value) < 0 ||
        json_object_set_new(j->origin, key, json_string(j->path)) < 0)
        return stk_yaml_bad(j, "out of memory");
    return 0;
}

static json_t *typed_number(const char *s)
{
    int64_t n;
    char *end;
    double d;

    if (stk_words_signed(s, INT64_MIN, INT64_MAX, &n) == 0)
        return json_integer(n);
    if (strspn(s, "0123456789.+-eE") != strlen(s) || strlen(s) > 40)
        return json_string(s);
    d = strtod(s, &end);
    return *s != '\0' && *end == '\0' && d > -1e18 && d < 1e18 ? json_real(d) : json_string(s);
}

static json_t *typed_object(const struct stk_key *keys, json_t *v)
{
    json_t *o = json_object();

    for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
        const char *name = json_object_iter_key(it);
        const struct stk_key *k = stk_key_find(keys, name);
        const json_t *value = json_object_iter_value(it);

        (void)json_object_set_new(o, name, k ? stk_yaml_typed(k, value) : json_deep_copy(value));
    }
    return o;
}

/* One name for a list of names; or numbers by name. */
static json_t *typed_by_name(const struct stk_key *k, const json_t *from)
{
    json_t *v = stk_json_loose(from), *o;

    if (json_is_string(v) && k->type == STK_KEY_TYPES)
        return json_pack("[O]", v);
    if (!json_is_object(v))
        return json_incref(v);
    o = json_object();
    for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
        json_t *value = json_object_iter_value(it);
        const char *s = json_string_value(value);

        (void)json_object_set_new(o, json_object_iter_key(it),
                                  s ? typed_number(s) : json_incref(value));
    }
    return o;
}

static json_t *typed_list(const struct stk_key *k, const json_t *v)
{
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(v); i++) {
        json_t *one = json_array_get(v, i);

        if (k->type == STK_KEY_INTS && json_is_string(one))
            one = typed_number(json_string_value(one));
        else if (k->type == STK_KEY_OBJECTS && json_is_object(one))
            one = typed_object(k->keys, one);
        else
            one = json_incref(one);
        (void)json_array_append_new(list, one);
    }
    return list;
}

json_t *stk_yaml_typed(const struct stk_key *k, const json_t *v)
{
    const char *s = json_string_value(v);
    bool yes;

    switch (k->type) {
    case STK_KEY_INT:
    case STK_KEY_NUMBER:
    case STK_KEY_BUDGET:
        if (s)
            return typed_number(s);
        break;
    case STK_KEY_BOOL:
        if (s && stk_words_bool(s, &yes) == 0)
            return json_boolean(yes);
        break;
    case STK_KEY_NAMES:
        if (s)
            return json_pack("[s]", s);
        break;
    case STK_KEY_TYPES:
    case STK_KEY_AMOUNTS:
        return typed_by_name(k, v);
    case STK_KEY_INTS:
        if (s)
            return json_pack("[o]", typed_number(s));
        if (json_is_array(v))
            return typed_list(k, v);
        break;
    case STK_KEY_OBJECTS:
        if (json_is_array(v))
            return typed_list(k, v);
        break;
    case STK_KEY_OBJECT:
        if (json_is_object(v))
            return typed_object(k->keys, stk_json_loose(v));
        break;
    default:
        break;
    }
    return json_incref(stk_json_loose(v));
}

static int unknown_key(const struct stk_yaml_job *j)
{
    unsigned best = stk_near_limit(j->path);
    const char *near = stk_key_nearest(stk_spec_keys(), j->path, &best);

    for (const struct stk_yaml_word *w = stk_yaml_words; w->path; w++)
        if (stk_near(j->path, w->path, &best))
            near = w->path;
    if (near)
        return stk_yaml_bad(j, "is not a known key; did you mean \"%s\"?", near);
    return stk_yaml_bad(j, "is not a known key");
}

static const struct stk_yaml_word *find_word(const char *path)
{
    for (const struct stk_yaml_word *w = stk_yaml_words; w->path; w++)
        if (strcmp(w->path, path) == 0)
            return w;
    return NULL;
}

/* Do words begin with "path."? */
static bool is_section(const char *path)
{
    size_t n = strlen(path);

    for (const struct stk_yaml_word *w = stk_yaml_words; w->path; w++)
        if (strncmp(w->path, path, n) == 0 && w->path[n] == '.')
            return true;
    return false;
}

static int take_keys(struct stk_yaml_job *j, json_t *o, const char *section);

static int take_key(struct stk_yaml_job *j, const char *path, bool top, json_t *v)
{
    const struct stk_yaml_word *w = find_word(path);
    const struct stk_key *k = top ? stk_key_find(stk_spec_keys(), path) : NULL;

    j->path = path;
    if (json_is_null(v) && (w || k))
        return 0; /* "time:" and nothing after it */
    if (w)
        return w->take(j, w, v);
    if (top && is_section(path) && json_is_object(v))
        return take_keys(j, v, path);
    if (top && is_section(path))
        return stk_yaml_bad(j, "must be a mapping");
    if (k)
        return stk_yaml_put(j, k->name, stk_yaml_typed(k, v));
    return unknown_key(j);
}

static int take_keys(struct stk_yaml_job *j, json_t *o, const char *section)
{
    int rc = 0;

    for (void *it = json_object_iter(o); rc == 0 && it; it = json_object_iter_next(o, it)) {
        char path[160];

        (void)snprintf(path, sizeof(path), "%s%s%.80s", section ? section : "", section ? "." : "",
                       json_object_iter_key(it));
        rc = take_key(j, path, !section, json_object_iter_value(it));
        j->path = "";
    }
    return rc;
}

/* Says it in the words of the file. */
static int check(const struct stk_yaml_job *j)
{
    struct stk_fault f;
    struct stk_yaml_job at = *j;
    const char *origin;
    char path[160];

    if (stk_spec_fault(j->job, &f) == 0)
        return 0;
    if (f.key[0] == '\0')
        return stk_err_set(j->err, -EINVAL, "%s:1: %s", j->y->where,
                           !json_object_get(j->job, "script") ? "a job file needs run" : f.what);
    origin = json_string_value(json_object_get(j->origin, f.key));
    (void)snprintf(path, sizeof(path), "%.100s%.50s", origin ? origin : f.key,
                   f.path + (strlen(f.key) < strlen(f.path) ? strlen(f.key) : strlen(f.path)));
    at.path = path;
    return stk_yaml_bad(&at, "%s", f.what);
}

json_t *stk_spec_from_yaml(const char *text, size_t len, const char *where, struct stk_err *err)
{
    struct stk_yaml y;
    struct stk_yaml_job j = {.y = &y, .err = err};
    json_t *job = NULL;

    if (stk_yaml_read(&y, text, len, where, err) < 0)
        return NULL;
    j.job = json_object();
    j.origin = json_object();
    if (j.job && j.origin && take_keys(&j, y.root, NULL) == 0 && check(&j) == 0)
        job = json_incref(j.job);
    json_decref(j.job);
    json_decref(j.origin);
    stk_yaml_done(&y);
    return job;
}
