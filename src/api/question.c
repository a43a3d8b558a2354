/* SPDX-License-Identifier: Apache-2.0 */
/* question.c - see question.h. Whether the changes are possible is said by stoker-whatif, which
 * knows the world that they are made in. */
#include "api/question.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define MAX_IMPORT ((size_t)8 << 20)      /* bytes of a trace */
#define MAX_WORD ((size_t)2048)           /* bytes of its format, machines, name */
#define MAX_CHANGES ((size_t)262144)      /* bytes as JSON */
#define MAX_PERIOD (INT64_C(366) * 86400) /* seconds */

static int bad(struct stk_request *r, const char *text)
{
    stk_request_error(r, 400, NULL, "%s", text);
    return -EINVAL;
}

static int check_period(struct stk_request *r, json_t *body, double now)
{
    json_t *since = json_object_get(body, "since"), *until = json_object_get(body, "until");
    double from = json_number_value(since), to = until ? json_number_value(until) : now;

    if (!json_is_number(since) || (until && !json_is_number(until)))
        return bad(r, "since and until are seconds since 1970; since must be given");
    if (from < 0 || from >= to || to - from > MAX_PERIOD)
        return bad(r, "since must be before until, and the period at most 366 days");
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
            return bad(r, "import has text, format, cluster and name, which are texts");
        if (v != text && json_string_length(v) > MAX_WORD)
            return bad(r, "format, cluster and name of an import are at most 2048 bytes");
    }
    if (!json_is_string(text))
        return bad(r, "import.text must be the text of a trace");
    if (json_string_length(text) > MAX_IMPORT)
        return bad(r, "import.text is larger than 8 MiB; stoker sim reads larger ones");
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
            return bad(r, "a question has since and until, or import; changes; and title");
    }
    if (!json_is_object(body) || (changes && !json_is_object(changes)))
        return bad(r, "changes must be an object: policy, add_nodes, remove_nodes, quotas");
    v = json_object_get(body, "title");
    if (v && (!json_is_string(v) || json_string_length(v) > 200))
        return bad(r, "title is a text of at most 200 bytes");
    if (changes && json_dumpb(changes, NULL, 0, JSON_COMPACT) > MAX_CHANGES)
        return bad(r, "changes are more than 256 KiB");
    return import ? check_import(r, import) : check_period(r, body, now);
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
