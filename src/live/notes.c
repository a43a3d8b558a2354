/* SPDX-License-Identifier: Apache-2.0 */
/* notes.c - what was changed, when and by whom, written down in the store: so that a period can be
 * compared with another, and the past be replayed as it was.
 *
 * A note carries the world from then on: what the configuration says (world.c), and under "quotas"
 * what operators have set in its place. What is different from the note before is its sentence.
 * Rules are noted when they come and go; what they do by the clock is no change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/state.h"
#include "sys/json.h"

#define MAX_TEXT 1000

struct words {
    char text[MAX_TEXT];
    size_t len;
};

/* ---- what is different ---- */

static void say(struct words *w, const char *path, json_t *a, json_t *b)
{
    char *was = a ? json_dumps(a, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char *is = b ? json_dumps(b, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    int n = snprintf(w->text + w->len, sizeof(w->text) - w->len, "%s%s: %.80s -> %.80s",
                     w->len ? "; " : "", path, was ? was : "none", is ? is : "none");

    w->len += n > 0 ? (size_t)n : 0;
    w->len = w->len < sizeof(w->text) ? w->len : sizeof(w->text) - 1;
    free(was);
    free(is);
}

/* A list of things with names, by name. */
static json_t *by_name(json_t *list)
{
    json_t *o = json_object(), *e;
    size_t i;

    json_array_foreach(list, i, e)
    {
        const char *name = json_string_value(json_object_get(e, "name"));
        char number[24];

        (void)snprintf(number, sizeof(number), "%zu", i + 1);
        (void)json_object_set(o, name ? name : number, e);
    }
    return o;
}

static void compare(struct words *w, const char *path, json_t *a, json_t *b, int depth);

static void compare_member(struct words *w, const char *path, const char *key, json_t *a, json_t *b,
                           int depth)
{
    char below[200];

    (void)snprintf(below, sizeof(below), "%s%s%.60s", path, *path ? "." : "", key);
    compare(w, below, a, b, depth + 1);
}

static void compare_objects(struct words *w, const char *path, json_t *a, json_t *b, int depth)
{
    const char *key;
    json_t *v;

    json_object_foreach(a, key, v)
    {
        compare_member(w, path, key, v, json_object_get(b, key), depth);
    }
    json_object_foreach(b, key, v)
    {
        if (!json_object_get(a, key))
            compare_member(w, path, key, NULL, v, depth);
    }
}

static void compare(struct words *w, const char *path, json_t *a, json_t *b, int depth)
{
    if (json_equal(a, b) || w->len > MAX_TEXT - 250)
        return;
    if (depth < 12 && json_is_object(a) && json_is_object(b)) {
        compare_objects(w, path, a, b, depth);
    } else if (depth < 12 && json_is_array(a) && json_is_array(b) &&
               json_is_object(json_array_get(a, 0)) && json_is_object(json_array_get(b, 0))) {
        json_t *x = by_name(a), *y = by_name(b);

        compare_objects(w, path, x, y, depth);
        json_decref(x);
        json_decref(y);
    } else {
        say(w, path, a, b);
    }
}

/* ---- writing it down ---- */

static json_t *last_world(struct stk_live *l)
{
    char *text = NULL;
    json_t *o = NULL;

    if (stk_store_world(l->cfg.store, STK_NEVER_TIME - 1, &text, NULL) == 0)
        o = stk_json_loads(text);
    free(text);
    return o;
}

/* In the transaction at hand. The world is taken over; NULL: as it was. */
static int put(struct stk_live *l, const char *kind, const char *user, const char *text,
               json_t *take_world, struct stk_err *err)
{
    char *world = take_world ? json_dumps(take_world, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    int rc = stk_live_begin(l, err);

    if (rc == 0) {
        const struct stk_note n = {0, l->now, kind, user, text, world ? world : ""};

        rc = stk_store_note_put(l->cfg.store, &n, err);
    }
    free(world);
    json_decref(take_world);
    return rc;
}

int stk_live_note_config(struct stk_live *l, struct stk_err *err)
{
    json_t *was = last_world(l), *is = stk_live_configured(l), *quotas;
    struct words w = {"", 0};
    bool same = false;
    int rc = 0;

    quotas = json_object_get(was, "quotas");
    if (is)
        (void)json_object_set(is, "quotas", quotas);
    if (!is)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    else if (!was)
        (void)snprintf(w.text, sizeof(w.text), "the first that is known");
    else
        compare(&w, "", was, is, 0);
    same = was && is && json_equal(was, is);
    json_decref(was);
    if (rc < 0 || same) {
        json_decref(is);
        return rc;
    }
    l->now = l->now ? l->now : l->cfg.clock(l->cfg.ctx);
    rc = put(l, "config", "", w.text, is, err);
    rc = rc < 0 ? rc : stk_live_commit(l, err);
    if (rc < 0 && l->in_txn) {
        stk_store_rollback(l->cfg.store);
        l->in_txn = false;
    }
    return rc;
}

/* "config" takes a number back; what is left empty goes. */
static void merge(json_t *own, const char *key, json_t *v)
{
    if (json_is_string(v))
        (void)json_object_del(own, key);
    else
        (void)json_object_set(own, key, v);
}

static void merge_quota(json_t *own, json_t *numbers)
{
    const char *type = json_string_value(json_object_get(numbers, "gpu_type")), *key;
    json_t *v;

    json_object_foreach(numbers, key, v)
    {
        char many[40];
        json_t *of;

        if (strcmp(key, "gpu_type") == 0)
            continue;
        if (!type || strcmp(key, "weight") == 0) {
            merge(own, key, v);
            continue;
        }
        (void)snprintf(many, sizeof(many), "%.30ss", key);
        of = json_object_get(own, many);
        if (!of) {
            of = json_object();
            (void)json_object_set_new(own, many, of);
        }
        merge(of, type, v);
        if (json_object_size(of) == 0)
            (void)json_object_del(own, many);
    }
}

int stk_live_note_quota(struct stk_live *l, const char *user, const char *tenant, json_t *numbers,
                        struct stk_err *err)
{
    json_t *was = last_world(l), *is = was ? json_deep_copy(was) : NULL, *quotas, *own;
    struct words w = {"", 0};

    if (!is) {
        json_decref(was);
        return was ? stk_err_set(err, -ENOMEM, "out of memory") : 0;
    }
    quotas = json_object_get(is, "quotas");
    if (!json_is_object(quotas)) {
        quotas = json_object();
        (void)json_object_set_new(is, "quotas", quotas);
    }
    own = json_object_get(quotas, tenant);
    if (!own) {
        own = json_object();
        (void)json_object_set_new(quotas, tenant, own);
    }
    merge_quota(own, numbers);
    if (json_object_size(own) == 0)
        (void)json_object_del(quotas, tenant);
    compare(&w, "", was, is, 0);
    json_decref(was);
    if (w.len == 0) {
        json_decref(is);
        return 0;
    }
    return put(l, "quota", user, w.text, is, err);
}

int stk_live_note_rule(struct stk_live *l, const char *user, const char *name, bool on,
                       struct stk_err *err)
{
    char text[200];

    (void)snprintf(text, sizeof(text), "rule %.100s %s", name, on ? "added" : "removed");
    return put(l, "rule", user, text, NULL, err);
}
