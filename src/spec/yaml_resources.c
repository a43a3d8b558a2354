/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_resources.c - GPUs, CPUs and memory as job files write them.
 *
 * "4+" and "4.." ask for at least so much and get it; "4..8" gets the least. GPUs are "8",
 * "H100:8", {H100: 8}, or a list of types that will all do, with one count.
 */
#include <stdlib.h>
#include <string.h>

#include "model/demand.h"
#include "spec/words.h"
#include "spec/yaml_words.h"

/* Cuts "+" and ".." off; false: not a plain word that fits. */
static bool least(const json_t *v, char *word, size_t room)
{
    const char *s = json_string_value(v), *end;

    if (!s || strlen(s) >= room || *s == '\0')
        return false;
    end = strstr(s, "..");
    if (!end)
        end = s + strlen(s) - (s[strlen(s) - 1] == '+');
    memcpy(word, s, (size_t)(end - s));
    word[end - s] = '\0';
    return end > s;
}

int stk_yaml_cpus(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    char word[32], *end;
    double n;

    (void)w;
    if (!least(v, word, sizeof(word)) || strspn(word, "0123456789.") != strlen(word))
        return stk_yaml_bad(j, "must be a number of cores such as 4 or 4+");
    n = strtod(word, &end);
    if (*end != '\0')
        return stk_yaml_bad(j, "must be a number of cores such as 4 or 4+");
    return stk_yaml_put(j, "cpus", json_real(n));
}

int stk_yaml_memory(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    char word[32];
    int64_t mib;

    (void)w;
    if (!least(v, word, sizeof(word)) || stk_words_size(word, 'G', &mib) < 0)
        return stk_yaml_bad(j, "must be a size such as 32 (GiB), 32+ or 512MB");
    return stk_yaml_put(j, "mem_mib", json_integer(mib));
}

struct wish {
    json_t *types;
    int64_t gpus; /* -1: not said yet */
};

static int add_wish(struct stk_yaml_job *j, struct wish *g, const char *type, int64_t n)
{
    if (g->gpus >= 0 && g->gpus != n)
        return stk_yaml_bad(j, "must ask for the same number of each type");
    g->gpus = n;
    if (type && json_array_append_new(g->types, json_string(type)) < 0)
        return stk_yaml_bad(j, "out of memory");
    return 0;
}

/* "8", "H100", "H100:8" */
static int read_wish(struct stk_yaml_job *j, struct wish *g, const char *s)
{
    const char *colon = strchr(s, ':');
    char type[64];
    int64_t n = 1;

    if (stk_words_whole(s, STK_MAX_GPUS, &n) == 0)
        return add_wish(j, g, NULL, n);
    if (strstr(s, "..") || strcasestr(s, "GB:") || (strlen(s) > 2 && !colon && strcasestr(s, "GB")))
        return stk_yaml_bad(j, "GPUs cannot be chosen by their memory yet; name the type");
    if (strspn(s, "0123456789.") == strlen(s))
        return stk_yaml_bad(j, "fractions of a GPU are not supported yet, got \"%s\"",
                            stk_words_show(s).text);
    if (colon && stk_words_whole(colon + 1, STK_MAX_GPUS, &n) < 0)
        return stk_yaml_bad(j, "must be TYPE:COUNT such as H100:8, got \"%s\"",
                            stk_words_show(s).text);
    if (strlen(s) == 0 || (size_t)(colon ? colon - s : (long)strlen(s)) >= sizeof(type))
        return stk_yaml_bad(j, "must name a GPU type in at most 63 bytes");
    memcpy(type, s, (size_t)(colon ? colon - s : (long)strlen(s)));
    type[colon ? (size_t)(colon - s) : strlen(s)] = '\0';
    return add_wish(j, g, type, n);
}

static int list_wish(struct stk_yaml_job *j, struct wish *g, const json_t *v)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_array_size(v); i++) {
        const char *s = json_string_value(json_array_get(v, i));

        rc = s ? read_wish(j, g, s) : stk_yaml_bad(j, "must be a list of types such as H100:8");
    }
    return rc;
}

/* dstack: {name: A100, count: 2} */
static int named_wish(struct stk_yaml_job *j, struct wish *g, json_t *v)
{
    const json_t *names = json_object_get(v, "name"), *count = json_object_get(v, "count");
    size_t known = (names ? 1U : 0U) + (count ? 1U : 0U);
    int64_t n = 1;
    int rc = 0;

    if (json_object_size(v) != known)
        return stk_yaml_bad(j,
                            "can name a type and a count; nothing else about a GPU can be chosen");
    if (count &&
        (!json_is_string(count) || stk_words_whole(json_string_value(count), STK_MAX_GPUS, &n) < 0))
        return stk_yaml_bad(j, "count must be a whole number");
    if (json_is_string(names))
        return add_wish(j, g, json_string_value(names), n);
    for (size_t i = 0; rc == 0 && i < json_array_size(names); i++)
        rc = add_wish(j, g, json_string_value(json_array_get(names, i)), n);
    return rc < 0 ? rc : add_wish(j, g, NULL, n);
}

static int map_wish(struct stk_yaml_job *j, struct wish *g, json_t *v)
{
    int rc = 0;

    if (json_object_get(v, "name") || json_object_get(v, "count") || json_object_get(v, "memory"))
        return named_wish(j, g, v);
    for (void *it = json_object_iter(v); rc == 0 && it; it = json_object_iter_next(v, it)) {
        const char *s = json_string_value(json_object_iter_value(it));
        int64_t n = 1;

        if (json_is_null(json_object_iter_value(it)) ||
            (s && stk_words_whole(s, STK_MAX_GPUS, &n) == 0))
            rc = add_wish(j, g, json_object_iter_key(it), n);
        else
            rc = stk_yaml_bad(j, "must be a mapping such as {H100: 8}");
    }
    return rc;
}

int stk_yaml_accelerators(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    struct wish g = {json_array(), -1};
    int rc;

    (void)w;
    if (json_is_string(v))
        rc = read_wish(j, &g, json_string_value(v));
    else if (json_is_array(v))
        rc = list_wish(j, &g, v);
    else
        rc = map_wish(j, &g, stk_json_loose(v));
    if (rc == 0 && g.gpus < 0)
        rc = stk_yaml_bad(j, "must say how many GPUs, such as H100:8");
    if (rc == 0)
        rc = stk_yaml_put(j, "gpus", json_integer(g.gpus));
    if (rc == 0 && json_array_size(g.types) > 0 && g.gpus > 0)
        rc = stk_yaml_put(j, "gpu_types", json_incref(g.types));
    json_decref(g.types);
    return rc;
}
