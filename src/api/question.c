/* SPDX-License-Identifier: Apache-2.0 */
/* question.c - see question.h. Whether the changes are possible is said by stoker-whatif, which
 * knows the world that they are made in. */
#include "api/question.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "base/hash.h"

#define MAX_IMPORT ((size_t)8 << 20)      /* bytes of a trace */
#define MAX_WORD ((size_t)2048)           /* bytes of its format, machines, name */
#define MAX_CHANGES ((size_t)262144)      /* bytes as JSON */
#define MAX_PERIOD (INT64_C(366) * 86400) /* seconds */

static int refuse(struct stk_request *r, int status, const char *text)
{
    stk_request_error(r, status, NULL, "%s", text);
    return -EINVAL;
}

/* 'used': the question is about a period, not about an import. */
static int check_period(struct stk_request *r, json_t *body, double now, bool used)
{
    json_t *since = json_object_get(body, "since"), *until = json_object_get(body, "until");
    double from = json_number_value(since), to = until ? json_number_value(until) : now;

    if (((since || used) && !json_is_number(since)) || (until && !json_is_number(until)) ||
        from < 0 || to < 0 || from > (double)STK_API_MAX_TIME || to > (double)STK_API_MAX_TIME)
        return refuse(r, 400, "since and until are seconds since 1970; since must be given");
    if (used && (from >= to || to - from > MAX_PERIOD))
        return refuse(r, 422, "since must be before until, and the period at most 366 days");
    return 0;
}

static int check_import(struct stk_request *r, json_t *import)
{
    json_t *text = json_object_get(import, "text"), *v;
    const char *key;

    json_object_foreach(import, key, v)
    {
        if (!json_is_string(v) || (strcmp(key, "text") != 0 && strcmp(key, "format") != 0 &&
                                   strcmp(key, "cluster") != 0 && strcmp(key, "name") != 0))
            return refuse(r, 400, "import has text, format, cluster and name, which are texts");
        if (v != text && json_string_length(v) > MAX_WORD)
            return refuse(r, 413, "format, cluster and name of an import are at most 2048 bytes");
    }
    if (!json_is_string(text))
        return refuse(r, 400, "import.text must be the text of a trace");
    if (json_string_length(text) > MAX_IMPORT)
        return refuse(r, 413, "import.text is larger than 8 MiB; stoker sim reads larger ones");
    return 0;
}

static bool are_texts(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return false;
    return json_is_array(list);
}

static bool is_amount(const json_t *v)
{
    return json_is_null(v) || (json_is_number(v) && fabs(json_number_value(v)) <= 1e9);
}

static bool are_amounts(json_t *by_type)
{
    const char *type;
    json_t *v;

    json_object_foreach(by_type, type, v)
    {
        if (!is_amount(v))
            return false;
    }
    return json_is_object(by_type);
}

/* {"limit": 8, "limits": {"H100": 4}} */
static bool is_quota(json_t *tenant)
{
    const char *key;
    json_t *v;

    json_object_foreach(tenant, key, v)
    {
        if (strcmp(key, "limits") == 0 || strcmp(key, "guarantees") == 0
                ? !are_amounts(v)
                : !is_amount(v) || (strcmp(key, "limit") != 0 && strcmp(key, "guarantee") != 0 &&
                                    strcmp(key, "weight") != 0))
            return false;
    }
    return json_is_object(tenant);
}

static bool are_quotas(json_t *quotas)
{
    const char *name;
    json_t *v;

    json_object_foreach(quotas, name, v)
    {
        if (!is_quota(v))
            return false;
    }
    return json_is_object(quotas) || json_is_null(quotas);
}

static bool is_policy(json_t *policy)
{
    static const char *const names[] = {"bundle", "order", "backfill", "place", "preempt"};
    json_t *params = json_object_get(policy, "params"), *v;
    size_t known = params != NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        v = json_object_get(policy, names[i]);
        known += json_is_string(v);
    }
    return json_is_null(policy) || (json_is_object(policy) && known == json_object_size(policy) &&
                                    (!params || are_texts(params)));
}

static int check_changes(struct stk_request *r, json_t *changes)
{
    const char *key;
    json_t *v;

    json_object_foreach(changes, key, v)
    {
        if (strcmp(key, "quotas") == 0) {
            if (!are_quotas(v))
                return refuse(r, 400, "quotas must be {\"tenant\": {\"limit\": 8}}");
        } else if (strcmp(key, "policy") == 0) {
            if (!is_policy(v))
                return refuse(r, 400,
                              "policy must be an object: bundle, order, backfill, place and "
                              "preempt are texts, "
                              "params is a list of texts such as \"energy.cap_w=500\"");
        } else if (strcmp(key, "add_nodes") == 0 || strcmp(key, "remove_nodes") == 0) {
            if (!json_is_string(v) && !json_is_null(v))
                return refuse(r, 400, "add_nodes and remove_nodes are texts such as \"4x8:H100\"");
        } else {
            return refuse(r, 400, "changes has policy, add_nodes, remove_nodes and quotas");
        }
    }
    return 0;
}

int stk_question_check(struct stk_request *r, json_t *body, double now)
{
    json_t *import = json_object_get(body, "import"), *changes = json_object_get(body, "changes"),
           *v;
    const char *key;

    json_object_foreach(body, key, v)
    {
        if (strcmp(key, "since") != 0 && strcmp(key, "until") != 0 && strcmp(key, "import") != 0 &&
            strcmp(key, "changes") != 0 && strcmp(key, "title") != 0)
            return refuse(r, 400, "a question has since and until, or import; changes; and title");
    }
    if (!json_is_object(body) || (changes && !json_is_object(changes)))
        return refuse(r, 400, "changes must be an object: policy, add_nodes, remove_nodes, quotas");
    if (check_changes(r, changes) < 0)
        return -EINVAL;
    v = json_object_get(body, "title");
    if (v && !json_is_string(v))
        return refuse(r, 400, "title is a text");
    if (json_string_length(v) > 200)
        return refuse(r, 422, "title is a text of at most 200 bytes");
    if (changes && json_dumpb(changes, NULL, 0, JSON_COMPACT) > MAX_CHANGES)
        return refuse(r, 413, "changes are more than 256 KiB");
    if (check_period(r, body, now, !import) < 0)
        return -EINVAL;
    return import ? check_import(r, import) : 0;
}

/* The same text has the same number, so that questions about it are known to belong together. */
static json_t *digest_of(const json_t *text)
{
    const char *s = json_string_value(text);
    size_t len = json_string_length(text);
    uint64_t h = len, word;
    char hex[24];

    for (size_t i = 0; i < len; i += sizeof(word)) {
        word = 0;
        memcpy(&word, s + i, len - i < sizeof(word) ? len - i : sizeof(word));
        h = stk_hash_mix(h, word);
    }
    (void)snprintf(hex, sizeof(hex), "%016" PRIx64, h);
    return json_string(hex);
}

json_t *stk_question_shown(json_t *body, double until)
{
    json_t *o = json_copy(body), *import = json_object_get(o, "import"), *v;

    if (import) {
        v = json_copy(import);
        (void)json_object_set_new(
            v, "bytes", json_integer((json_int_t)json_string_length(json_object_get(v, "text"))));
        (void)json_object_set_new(v, "digest", digest_of(json_object_get(v, "text")));
        (void)json_object_del(v, "text");
        (void)json_object_set_new(o, "import", v);
    } else if (!json_object_get(o, "until")) {
        (void)json_object_set_new(o, "until", json_real(until));
    }
    return o;
}
