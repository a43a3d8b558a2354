/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - the table of keys as a JSON Schema. Rules between keys are not in it: the check has
 * them, and its sentence is better than a schema's. */
#include <string.h>

#include "spec/keys.h"
#include "spec/spec.h"

static json_t *string_schema(int64_t min, int64_t max)
{
    json_t *s = json_pack("{s:s, s:I}", "type", "string", "maxLength", (json_int_t)max);

    if (min > 0)
        (void)json_object_set_new(s, "minLength", json_integer(min));
    return s;
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

static json_t *word_schema(const char *words)
{
    json_t *list = json_array();

    for (const char *w = words; *w != '\0';) {
        size_t n = strcspn(w, "|");

        (void)json_array_append_new(list, json_stringn(w, n));
        w += n + (w[n] == '|');
    }
    return json_pack("{s:s, s:o}", "type", "string", "enum", list);
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
    case STK_KEY_SIGNAL:
        return string_schema(k->min, k->max);
    case STK_KEY_WORD:
        return word_schema(k->words);
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
        return list_schema(string_schema(0, k->each), k->min, k->max);
    case STK_KEY_TYPES:
        return json_pack("{s:[o, {s:s, s:{s:s, s:f, s:f}, s:I, s:I}]}", "oneOf",
                         list_schema(string_schema(1, k->each), k->min, k->max), "type", "object",
                         "additionalProperties", "type", "number", "minimum", 0.001, "maximum",
                         65.535, "minProperties", (json_int_t)k->min, "maxProperties",
                         (json_int_t)k->max);
    case STK_KEY_AMOUNTS:
        return json_pack("{s:s, s:{s:s, s:i, s:I}, s:I}", "type", "object", "additionalProperties",
                         "type", "integer", "minimum", 0, "maximum", (json_int_t)k->each,
                         "maxProperties", (json_int_t)k->max);
    case STK_KEY_ENVS:
    case STK_KEY_SECRETS:
        return json_pack("{s:s, s:o, s:I}", "type", "object", "additionalProperties",
                         string_schema(0, k->each), "maxProperties", (json_int_t)k->max);
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

json_t *stk_spec_schema(void)
{
    return object_schema(stk_spec_keys());
}
