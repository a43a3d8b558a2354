/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - the table of keys as a JSON Schema. Of the rules between keys it has what there must
 * be to run, which keys need another, and how an array is described; the check alone has the
 * others, which are answered with 422. Lengths are bytes for the check and characters for a schema.
 */
#include <stdio.h>
#include <string.h>

#include "model/demand.h"

#include "spec/keys.h"
#include "spec/rules.h"
#include "spec/spec.h"
#include "spec/words.h"

/* check.c says the same in words: what a line must not hold, and what follows from it. */
#define NOT_LINE "\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069"
#define LINE_PATTERN "^[^" NOT_LINE "]*$"
#define NAME_PATTERN "^[^/" NOT_LINE "]*$"
#define PATH_PATTERN "^/[^" NOT_LINE "]*$"
#define FILE_PATTERN "^([^%" NOT_LINE "]|%[0-9]*[jAaxtNu%])*$"
#define IMAGE_PATTERN "^(/[^" NOT_LINE "]*|[A-Za-z0-9.][A-Za-z0-9._:/@+~%=-]*)$"
#define ENV_PATTERN "^[^=" NOT_LINE "]+$"
#define SECRET_PATTERN "^[A-Za-z_][A-Za-z0-9_]*$"
#define RESOURCE_PATTERN "^[A-Za-z0-9_.-]+$"

/* pattern NULL: any text without NUL. That is said by what it must not hold: programs that make up
 * texts from a document take long for a pattern of all of a long text. */
static json_t *string_schema(int64_t min, int64_t max, const char *pattern)
{
    json_t *s = json_pack("{s:s, s:I}", "type", "string", "maxLength", (json_int_t)max);

    if (pattern)
        (void)json_object_set_new(s, "pattern", json_string(pattern));
    else
        (void)json_object_set_new(s, "not", json_pack("{s:s}", "pattern", "\\x00"));

    if (min > 0)
        (void)json_object_set_new(s, "minLength", json_integer(min));
    return s;
}

/* Their names as they are written, with or without SIG, or their numbers. */
static json_t *signal_schema(const struct stk_key *k)
{
    char pattern[512] = "^([1-9]|[1-5][0-9]|6[0-4]|(SIG)?(";
    size_t len = strlen(pattern);
    const char *bar = "";

    for (int n = 1; n <= 64; n++) {
        const char *name = stk_signal_name(n);

        if (name && len + strlen(name) + 8 < sizeof(pattern)) {
            len += (size_t)snprintf(pattern + len, sizeof(pattern) - len, "%s%s", bar, name);
            bar = "|";
        }
    }
    (void)snprintf(pattern + len, sizeof(pattern) - len, "))$");
    return string_schema(k->min, k->max, pattern);
}

static json_t *text_schema(const struct stk_key *k)
{
    switch (k->type) {
    case STK_KEY_NAME:
        return string_schema(k->min, k->max, NAME_PATTERN);
    case STK_KEY_LINE:
        return string_schema(k->min, k->max, LINE_PATTERN);
    case STK_KEY_PATH:
        return string_schema(k->min, k->max, PATH_PATTERN);
    case STK_KEY_PATTERN:
        return string_schema(k->min, k->max, FILE_PATTERN);
    case STK_KEY_IMAGE:
        return string_schema(k->min, k->max, IMAGE_PATTERN);
    default:
        return string_schema(k->min, k->max, NULL);
    }
}

static json_t *int_schema(const struct stk_key *k)
{
    return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)k->min, "maximum",
                     (json_int_t)k->max);
}

static json_t *list_schema(json_t *take_items, int64_t min, int64_t max)
{
    return json_pack("{s:s, s:o, s:I, s:I}", "type", "array", "items", take_items, "minItems",
                     (json_int_t)min, "maxItems", (json_int_t)max);
}

json_t *stk_spec_words_schema(const char *words)
{
    json_t *list = json_array();

    for (const char *w = words; *w != '\0';) {
        size_t n = strcspn(w, "|");

        (void)json_array_append_new(list, json_stringn(w, n));
        w += n + (w[n] == '|');
    }
    return json_pack("{s:s, s:o}", "type", "string", "enum", list);
}

static json_t *strings_schema(const struct stk_key *k)
{
    json_t *list = list_schema(k->type == STK_KEY_STRINGS ? string_schema(0, k->each, NULL)
                                                          : string_schema(1, k->each, NAME_PATTERN),
                               k->min, k->max);

    if (strcmp(k->name, "command") == 0)
        (void)json_object_set_new(list, "prefixItems",
                                  json_pack("[o]", string_schema(1, k->each, NULL)));
    return list;
}

/* Values by name. */
static json_t *map_schema(const struct stk_key *k, json_t *take_names, json_t *take_values)
{
    return json_pack("{s:s, s:o, s:o, s:I, s:I}", "type", "object", "propertyNames", take_names,
                     "additionalProperties", take_values, "minProperties", (json_int_t)k->min,
                     "maxProperties", (json_int_t)k->max);
}

static json_t *object_schema(const struct stk_key *keys);

static json_t *key_schema(const struct stk_key *k)
{
    switch (k->type) {
    case STK_KEY_NAME:
    case STK_KEY_LINE:
    case STK_KEY_TEXT:
    case STK_KEY_PATH:
    case STK_KEY_PATTERN:
    case STK_KEY_IMAGE:
        return text_schema(k);
    case STK_KEY_SIGNAL:
        return signal_schema(k);
    case STK_KEY_WORD:
        return stk_spec_words_schema(k->words);
    case STK_KEY_INT:
        return int_schema(k);
    case STK_KEY_NUMBER:
        return json_pack("{s:s, s:I, s:I}", "type", "number", "minimum", (json_int_t)k->min,
                         "maximum", (json_int_t)k->max);
    case STK_KEY_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case STK_KEY_BUDGET:
        return json_pack("{s:[o, {s:s}]}", "oneOf", int_schema(k), "const", "always");
    case STK_KEY_INTS:
        return list_schema(int_schema(k), 1, k->each);
    case STK_KEY_STRINGS:
    case STK_KEY_NAMES:
        return strings_schema(k);
    case STK_KEY_TYPES:
        return json_pack("{s:[o, o]}", "oneOf", strings_schema(k),
                         map_schema(k, string_schema(1, k->each, LINE_PATTERN),
                                    json_pack("{s:s, s:f, s:f}", "type", "number", "minimum", 0.001,
                                              "maximum", 65.535)));
    case STK_KEY_AMOUNTS:
        return map_schema(k, string_schema(1, STK_MAX_RESOURCE_NAME - 1, RESOURCE_PATTERN),
                          json_pack("{s:s, s:i, s:I}", "type", "integer", "minimum", 0, "maximum",
                                    (json_int_t)k->each));
    case STK_KEY_ENVS:
        return map_schema(k, string_schema(1, STK_MAX_ENV_NAME, ENV_PATTERN),
                          string_schema(0, k->each, NULL));
    case STK_KEY_SECRETS:
        return map_schema(k, string_schema(1, STK_MAX_ENV_NAME, SECRET_PATTERN),
                          string_schema(1, k->each, PATH_PATTERN));
    case STK_KEY_OBJECT:
        return object_schema(k->keys);
    case STK_KEY_OBJECTS:
        return list_schema(object_schema(k->keys), k->min, k->max);
    case STK_KEY_TYPE_MAX:
        break;
    }
    return NULL;
}

static json_t *object_schema(const struct stk_key *keys)
{
    json_t *all = json_object(), *need = json_array();

    for (const struct stk_key *k = keys; k->name; k++) {
        json_t *one = key_schema(k);

        (void)json_object_set_new(one, "description", json_string(k->help));
        (void)json_object_set_new(all, k->name, one);
        if (strcmp(k->standard, "needed") == 0)
            (void)json_array_append_new(need, json_string(k->name));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", all, "required", need,
                     "additionalProperties", 0);
}

static json_t *needed_keys(void)
{
    json_t *all = json_object();

    for (const struct stk_key_pair *p = stk_spec_needs; p->key; p++)
        (void)json_object_set_new(all, p->key, json_pack("[s]", p->other));
    return all;
}

/* A list of indices, or first, last and step. */
static void describe_array(json_t *array)
{
    (void)json_object_set_new(array, "oneOf",
                              json_pack("[{s:[s], s:{s:b, s:b, s:b}}, {s:[s], s:{s:b}}]",
                                        "required", "indices", "properties", "first", 0, "last", 0,
                                        "step", 0, "required", "last", "properties", "indices", 0));
    (void)json_object_set_new(json_object_get(json_object_get(array, "properties"), "indices"),
                              "uniqueItems", json_true());
}

json_t *stk_spec_schema(void)
{
    json_t *job = object_schema(stk_spec_keys());

    describe_array(json_object_get(json_object_get(job, "properties"), "array"));
    (void)json_object_set_new(job, "dependentRequired", needed_keys());
    (void)json_object_set_new(
        job, "anyOf",
        json_pack("[{s:[s], s:{s:b, s:b}}, {s:[s], s:{s:b}}, {s:[s], s:{s:{s:b}, s:b, s:b}}]",
                  "required", "command", "properties", "script", 0, "args", 0, "required", "script",
                  "properties", "command", 0, "required", "interactive", "properties",
                  "interactive", "const", 1, "command", 0, "script", 0));
    return job;
}
