/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_resources.c - GPUs, CPUs and memory as job files write them.
 *
 * "4+" and "4.." ask for at least so much and get it; "4..8" gets the least. GPUs are "8",
 * "H100:8", {H100: 8}, or a list of types that will all do, with one count; a count below 1 is part
 * of a GPU.
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

    if (!least(v, word, sizeof(word)) || stk_words_size(word, 'G', &mib) < 0)
        return stk_yaml_bad(j, "must be a size such as 32 (GiB), 32+ or 512MB");
    return stk_yaml_put(j, w->text, json_integer(mib));
}

struct wish {
    json_t *types;
    int64_t milli;   /* GPUs, in thousandths; -1: not said yet */
    int64_t mem_mib; /* on each; 0: does not matter */
};

/* "8", "0.5" */
static int read_count(const char *s, int64_t *ret_milli)
{
    int64_t n = 0, each = 100;

    if (stk_words_whole(s, STK_MAX_GPUS, &n) == 0) {
        *ret_milli = n * 1000;
        return 0;
    }
    if (strncmp(s, "0.", 2) != 0)
        return -EINVAL;
    for (s += 2; *s >= '0' && *s <= '9' && each > 0; s++, each /= 10)
        n += (*s - '0') * each;
    if (*s != '\0' || n == 0)
        return -EINVAL;
    *ret_milli = n;
    return 0;
}

static int add_wish(struct stk_yaml_job *j, struct wish *g, const char *type, int64_t n)
{
    if (g->milli >= 0 && g->milli != n)
        return stk_yaml_bad(j, "must ask for the same number of each type");
    g->milli = n;
    if (type && json_array_append_new(g->types, json_string(type)) < 0)
        return stk_yaml_bad(j, "out of memory");
    return 0;
}

/* "8", "H100", "H100:8", "H100:0.5" */
static int read_wish(struct stk_yaml_job *j, struct wish *g, const char *s)
{
    const char *colon = strchr(s, ':');
    char type[64];
    int64_t n = 1000;

    if (read_count(s, &n) == 0)
        return add_wish(j, g, NULL, n);
    if (strstr(s, "..") || strcasestr(s, "GB:") || (strlen(s) > 2 && !colon && strcasestr(s, "GB")))
        return stk_yaml_bad(j, "GPUs are chosen by their memory with gpu_mem: 40GB");
    if (strspn(s, "0123456789.") == strlen(s))
        return stk_yaml_bad(j, "must be whole GPUs, or part of one from 0.001 to 0.999, got \"%s\"",
                            stk_words_show(s).text);
    if (colon && read_count(colon + 1, &n) < 0)
        return stk_yaml_bad(j, "must be TYPE:COUNT such as H100:8 or H100:0.5, got \"%s\"",
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

/* dstack: {name: A100, count: 2, memory: 40GB} */
static int named_wish(struct stk_yaml_job *j, struct wish *g, json_t *v)
{
    const json_t *names = json_object_get(v, "name"), *count = json_object_get(v, "count"),
                 *memory = json_object_get(v, "memory");
    size_t known = (names ? 1U : 0U) + (count ? 1U : 0U) + (memory ? 1U : 0U);
    char word[32];
    int64_t n = 1000;
    int rc = 0;

    if (json_object_size(v) != known)
        return stk_yaml_bad(j, "can have name, count and memory; nothing else about a GPU can be "
                               "chosen");
    if (count && (!json_is_string(count) || read_count(json_string_value(count), &n) < 0))
        return stk_yaml_bad(j, "count must be a whole number, or part of one GPU such as 0.5");
    if (memory &&
        (!least(memory, word, sizeof(word)) || stk_words_size(word, 'G', &g->mem_mib) < 0))
        return stk_yaml_bad(j, "memory must be a size such as 40GB or 40GB..");
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
        int64_t n = 1000;

        if (json_is_null(json_object_iter_value(it)) || (s && read_count(s, &n) == 0))
            rc = add_wish(j, g, json_object_iter_key(it), n);
        else
            rc = stk_yaml_bad(j, "must be a mapping such as {H100: 8}");
    }
    return rc;
}

int stk_yaml_accelerators(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    struct wish g = {json_array(), -1, 0};
    int rc;

    (void)w;
    if (json_is_string(v))
        rc = read_wish(j, &g, json_string_value(v));
    else if (json_is_array(v))
        rc = list_wish(j, &g, v);
    else
        rc = map_wish(j, &g, stk_json_loose(v));
    if (rc == 0 && g.milli < 0)
        rc = stk_yaml_bad(j, "must say how many GPUs, such as H100:8");
    if (rc == 0)
        rc = stk_yaml_put(j, "gpus",
                          g.milli % 1000 ? json_real((double)g.milli / 1000)
                                         : json_integer(g.milli / 1000));
    if (rc == 0 && g.mem_mib > 0)
        rc = stk_yaml_put(j, "gpu_mem_mib", json_integer(g.mem_mib));
    if (rc == 0 && json_array_size(g.types) > 0 && g.milli > 0)
        rc = stk_yaml_put(j, "gpu_types", json_incref(g.types));
    json_decref(g.types);
    return rc;
}
