/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - reads the file: a tree of mappings whose leaves are the keys of the table.
 *
 * libfyaml keeps where each value stood, so that errors name the line. Aliases would let a short
 * file grow without bound and are refused; so is, before libfyaml sees it, what a configuration
 * never needs and some of its versions never return from: directives, and bytes that are not text.
 */
#include "config/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/near.h"
#include "base/utf8.h"
#include "yaml/yaml.h"

#define MAX_DEPTH 3

void stk_config_init(struct stk_config *c)
{
    struct stk_err unused;

    *c = (struct stk_config){0};
    for (const struct stk_config_key *k = stk_config_keys; k->path; k++)
        if (k->type == STK_CONFIG_NUMBER || k->type == STK_CONFIG_SECONDS ||
            k->type == STK_CONFIG_BYTES || k->type == STK_CONFIG_DECIMAL ||
            k->type == STK_CONFIG_WORD || k->type == STK_CONFIG_BOOL)
            (void)stk_config_set(c, k, k->def, strlen(k->def), &unused);
    c->virtual_gpus = STK_CONFIG_NO_GPUS;    /* its default is no number */
    c->teams = calloc(1, sizeof(*c->teams)); /* where it lies stays, wherever *c is copied to */
    if (c->teams)
        (void)stk_teams_read(c->teams, "", &unused);
}

static void free_list(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free((void *)list);
}

void stk_config_done(struct stk_config *c)
{
    for (const struct stk_config_key *k = stk_config_keys; k->path; k++) {
        char *at = (char *)c + k->offset;

        if (k->type == STK_CONFIG_TEXT || k->type == STK_CONFIG_POLICY)
            free(*(char **)at);
        else if (k->type == STK_CONFIG_NAMES || k->type == STK_CONFIG_PAIRS)
            free_list(*(char ***)at);
    }
    for (uint32_t i = 0; i < c->policy.n_params; i++)
        free(c->policy.params[i]);
    for (uint32_t i = 0; i < c->resources.n; i++)
        free(c->resources.names[i]);
    free(c->file);
    if (c->teams)
        stk_teams_done(c->teams);
    free(c->teams);
    *c = (struct stk_config){0};
}

/* ---- the tree ---- */

struct reader {
    struct stk_config *c;
    const char *name; /* of the file */
    struct stk_err *err;
};

static int bad(const struct reader *r, struct fy_node *at, const char *path, const char *what)
{
    return stk_err_set(r->err, -EINVAL, "%s:%d: %s%s%s", r->name, stk_yaml_line_of(at), path,
                       *path ? ": " : "", what);
}

static const char *scalar(struct fy_node *n, size_t *len)
{
    const char *s =
        n && fy_node_is_scalar(n) && !fy_node_is_alias(n) ? fy_node_get_scalar(n, len) : NULL;

    if (!s)
        *len = 0;
    return s ? s : "";
}

static int read_leaf(struct reader *r, const struct stk_config_key *k, struct fy_node *key,
                     struct fy_node *value)
{
    struct stk_err why = {""};
    struct fy_node *item, *at = value ? value : key;
    void *it = NULL;
    size_t len;
    const char *s;
    int rc = 0;

    if (k->type == STK_CONFIG_NAMES && value && fy_node_is_sequence(value)) {
        while (rc == 0 && (item = fy_node_sequence_iterate(value, &it))) {
            s = scalar(item, &len);
            rc = stk_config_add_name(r->c, k, s, len, &why);
            at = item;
        }
    } else {
        s = scalar(value, &len);
        rc = stk_config_set(r->c, k, s, len, &why);
    }
    return rc < 0 ? bad(r, at, k->path, why.text) : 0;
}

/* Names and values. */
static int read_pairs(struct reader *r, const struct stk_config_key *k, struct fy_node *value)
{
    struct fy_node_pair *pair;
    struct stk_err why = {""};
    void *it = NULL;

    while ((pair = fy_node_mapping_iterate(value, &it))) {
        struct stk_config_pair p;

        p.name = scalar(fy_node_pair_key(pair), &p.name_len);
        p.s = scalar(fy_node_pair_value(pair), &p.len);
        if (stk_config_add_pair(r->c, k, &p, &why) < 0)
            return bad(r, fy_node_pair_key(pair), k->path, why.text);
        if (k->type == STK_CONFIG_PARAMS)
            r->c->param_line[r->c->policy.n_params - 1] = stk_yaml_line_of(fy_node_pair_key(pair));
    }
    return 0;
}

static bool has_pairs(const struct stk_config_key *k)
{
    return k->type == STK_CONFIG_PARAMS || k->type == STK_CONFIG_PAIRS ||
           k->type == STK_CONFIG_AMOUNTS;
}

/* Whether some key lies below 'path'. */
static bool is_group(const char *path)
{
    size_t len = strlen(path);

    for (const struct stk_config_key *k = stk_config_keys; k->path; k++)
        if (strncmp(k->path, path, len) == 0 && k->path[len] == '.')
            return true;
    return false;
}

static const struct stk_config_key *find_key(const char *path)
{
    for (const struct stk_config_key *k = stk_config_keys; k->path; k++)
        if (strcmp(k->path, path) == 0)
            return k;
    return NULL;
}

static int unknown(const struct reader *r, struct fy_node *key, const char *path)
{
    unsigned best = stk_near_limit(path);
    const char *near = NULL;
    char what[128];

    for (const struct stk_config_key *k = stk_config_keys; k->path; k++) {
        char group[64];

        (void)snprintf(group, sizeof(group), "%.*s", (int)strcspn(k->path, "."), k->path);
        if (stk_near(path, k->path, &best))
            near = k->path;
        if (stk_near(path, group, &best)) {
            (void)snprintf(what, sizeof(what), "is not known; did you mean \"%s\"?", group);
            near = NULL;
        }
    }
    if (near)
        (void)snprintf(what, sizeof(what), "is not known; did you mean \"%s\"?", near);
    else if (best == stk_near_limit(path))
        (void)snprintf(what, sizeof(what), "is not known (stokerd --help-config lists the keys)");
    return bad(r, key, path, what);
}

/* Walks the file's mappings, which may not be deeper than the table's keys. */
static int read_mapping(struct reader *r, struct fy_node *map, const char *prefix, int depth);

static int read_pair(struct reader *r, struct fy_node_pair *pair, const char *prefix, int depth)
{
    struct fy_node *key = fy_node_pair_key(pair), *value = fy_node_pair_value(pair);
    const struct stk_config_key *k;
    char path[128];
    size_t len;
    const char *name = scalar(key, &len);

    (void)snprintf(path, sizeof(path), "%s%s%.*s", prefix, *prefix ? "." : "",
                   (int)(len < 60 ? len : 60), name);
    k = find_key(path);
    if (k)
        r->c->line[k - stk_config_keys] = stk_yaml_line_of(key);
    if (k && k->type == STK_CONFIG_TEAMS && stk_teams_take(r->c->teams, key, value))
        return 0;
    if (k && has_pairs(k) && value && fy_node_is_mapping(value))
        return read_pairs(r, k, value);
    if (k)
        return read_leaf(r, k, key, value);
    if (!is_group(path) || len == 0 || depth >= MAX_DEPTH)
        return unknown(r, key, path);
    if (strcmp(path, "policy") == 0 && value && fy_node_is_scalar(value)) {
        k = find_key("policy.bundle");
        r->c->line[k - stk_config_keys] = stk_yaml_line_of(key);
        return read_leaf(r, k, key, value);
    }
    if (!value || !fy_node_is_mapping(value))
        return bad(r, key, path, "expected keys below it");
    return read_mapping(r, value, path, depth + 1);
}

static int read_mapping(struct reader *r, struct fy_node *map, const char *prefix, int depth)
{
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = 0;

    while (rc == 0 && (pair = fy_node_mapping_iterate(map, &it)))
        rc = read_pair(r, pair, prefix, depth);
    return rc;
}

/* ---- the text ---- */

/* Length of the character at s, 0: not one, or not one for a text. */
static size_t character(const char *s, size_t left)
{
    uint32_t code;
    size_t n = stk_utf8(s, left, &code);

    return n > 0 && code < 0x20 && code != '\t' && code != '\n' && code != '\r' ? 0 : n;
}

static int check_text(const struct reader *r, const char *text, size_t len)
{
    int line = 1;
    bool start = true;

    if (len > STK_CONFIG_MAX_FILE)
        return stk_err_set(r->err, -EFBIG, "%s: larger than %zu KiB", r->name,
                           STK_CONFIG_MAX_FILE >> 10);
    for (size_t i = 0; i < len;) {
        size_t n = character(text + i, len - i);

        if (n == 0)
            return stk_err_set(r->err, -EINVAL, "%s:%d: expected text in UTF-8", r->name, line);
        if (start && text[i] == '%')
            return stk_err_set(r->err, -EINVAL, "%s:%d: YAML directives are not supported", r->name,
                               line);
        start = text[i] == '\n';
        line += start;
        i += n;
    }
    return 0;
}

/* Values that are right one by one and wrong together. */
static int check_together(const struct stk_config *c, struct stk_err *err)
{
    struct stk_setup setup;
    struct stk_err why;

    if (stk_config_setup(c, &setup, &why) < 0)
        return stk_config_refuse_policy(c, why.text, err);
    if (!c->tls.cert != !c->tls.key)
        return stk_config_refuse(c, c->tls.cert ? "tls.cert" : "tls.key",
                                 "TLS needs both tls.cert and tls.key", err);
    if (c->series.step_s == 0 || 60 % c->series.step_s != 0)
        return stk_config_refuse(c, "series.step", "must divide a minute: 1s, 2s, 5s, 10s, 30s",
                                 err);
    if (c->engine == 1 && (!c->slurm.partitions || !c->slurm.partitions[0]))
        return stk_config_refuse(
            c, stk_config_line(c, "slurm.partitions") ? "slurm.partitions" : "engine",
            "slurm.partitions: which partitions are stoker's? (sinfo lists "
            "them)",
            err);
    return 0;
}

static int read_document(struct reader *r, struct fy_node *root)
{
    size_t len = 1;
    int rc;

    if (root && fy_node_is_scalar(root))
        (void)scalar(root, &len);
    if (!root || len == 0)
        return 0; /* says nothing */
    if (!fy_node_is_mapping(root))
        return bad(r, root, "", "expected keys and values such as \"listen: 127.0.0.1:8470\"");
    rc = read_mapping(r, root, "", 0);
    rc = rc < 0 ? rc : stk_teams_read(r->c->teams, r->name, r->err);
    return rc < 0 ? rc : check_together(r->c, r->err);
}

static int parse(struct reader *r, const char *text, size_t len)
{
    struct stk_yaml_doc d;
    int rc = stk_yaml_open(&d, r->name, text, len, r->err);

    if (rc == 0 && d.doc)
        rc = read_document(r, fy_document_root(d.doc));
    stk_yaml_close(&d);
    return rc;
}

int stk_config_parse(const char *name, const char *text, size_t len, struct stk_config *c,
                     struct stk_err *err)
{
    struct stk_config fresh;
    struct reader r = {.c = &fresh, .name = name, .err = err};
    const char *slash = strrchr(name, '/');
    int rc;

    if (slash && strlen(name) > 80)
        r.name = slash + 1;
    stk_config_init(&fresh);
    fresh.file = strdup(r.name);
    rc = fresh.teams && fresh.file ? check_text(&r, text, len)
                                   : stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : parse(&r, text, len);
    if (rc < 0) {
        stk_config_done(&fresh);
        return rc;
    }
    stk_config_done(c);
    *c = fresh;
    return 0;
}

int stk_config_read(const char *path, int take_fd, struct stk_config *c, struct stk_err *err)
{
    char *text = malloc(STK_CONFIG_MAX_FILE + 2);
    size_t len = 0;
    ssize_t n = -1;
    int rc;

    while (text && len <= STK_CONFIG_MAX_FILE &&
           (n = read(take_fd, text + len, STK_CONFIG_MAX_FILE + 1 - len)) > 0)
        len += (size_t)n;
    rc = n < 0 ? stk_err_set(err, -errno, "%s: %s", path, strerror(errno))
               : stk_config_parse(path, text, len, c, err);
    (void)close(take_fd);
    free(text);
    return rc;
}

int stk_config_load(const char *path, struct stk_config *c, struct stk_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? stk_err_set(err, -errno, "%s: %s", path, strerror(errno))
                  : stk_config_read(path, fd, c, err);
}

int stk_config_setup(const struct stk_config *c, struct stk_setup *ret, struct stk_err *err)
{
    const struct stk_setup_words w = {c->policy.bundle,   c->policy.order,
                                      c->policy.backfill, c->policy.place,
                                      c->policy.preempt,  (const char *const *)c->policy.params,
                                      c->policy.n_params, c->teams && c->teams->n_tenants > 0};

    int rc = stk_setup_resolve(&w, ret, err);

    if (rc == 0 && ret->order->advised)
        return stk_err_set(err, -EINVAL, "order %s has no adviser here yet: it is for stoker sim",
                           ret->order->name);
    return rc < 0 ? rc
                  : stk_setup_serve(ret,
                                    c->teams && c->teams->n_queues > 0
                                        ? c->teams->queues[0].priority
                                        : stk_default_queues[0].priority,
                                    err);
}
