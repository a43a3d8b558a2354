/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What jansson takes for one value, its place in a list or an object included. */
#define VALUE_BYTES ((size_t)512)
/* How often the text: the copies, the buffer of a string, the half as large one before it, and the
 * gaps that smaller ones left. */
#define TEXT_TIMES 6u

/* One more than there are commas, colons and brackets outside of strings. */
static size_t count_values(const char *text, size_t len)
{
    bool in_string = false;
    size_t n = 1;

    for (size_t i = 0; i < len; i++) {
        const char c = text[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string)
            n += c == ',' || c == ':' || c == '[' || c == '{';
    }
    return n;
}

static bool has_memory(size_t bytes)
{
    void *volatile p = malloc(bytes); /* volatile: else the compiler leaves both calls out */

    free(p);
    return p != NULL;
}

json_t *stk_json_load(const char *text, size_t len, size_t flags, json_error_t *why)
{
    if (has_memory(TEXT_TIMES * len + VALUE_BYTES * count_values(text, len)))
        return json_loadb(text, len, flags, why);
    if (why) {
        *why = (json_error_t){.line = -1, .column = -1};
        (void)snprintf(why->text, sizeof(why->text), "out of memory");
        why->text[sizeof(why->text) - 1] = (char)json_error_out_of_memory;
    }
    return NULL;
}

json_t *stk_json_loads(const char *text)
{
    return text ? stk_json_load(text, strlen(text), 0, NULL) : NULL;
}

const char *stk_str_or(const json_t *o, const char *name, const char *none)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : none;
}

const char *stk_str(const json_t *o, const char *name)
{
    return stk_str_or(o, name, "");
}

bool stk_str_is(const json_t *o, const char *name, const char *word)
{
    const char *s = stk_str_or(o, name, NULL);

    return s && strcmp(s, word) == 0;
}

int64_t stk_int(const json_t *o, const char *name, int64_t none)
{
    const json_t *v = json_object_get(o, name);

    if (json_is_real(v))
        return (int64_t)json_real_value(v);
    return json_is_integer(v) ? json_integer_value(v) : none;
}

json_int_t stk_whole(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

double stk_num(const json_t *o, const char *name, double none)
{
    const json_t *v = json_object_get(o, name);

    return json_is_number(v) ? json_number_value(v) : none;
}

bool stk_yes(const json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name));
}

/* The integer that this real is; NULL: it is none. Beyond 2^53 a real may stand for several. */
static json_t *whole_of(const json_t *v)
{
    const double most = 9007199254740992.0;
    double real = json_real_value(v);

    return json_is_real(v) && real >= -most && real <= most && real == (double)(json_int_t)real
               ? json_integer((json_int_t)real)
               : NULL;
}

/* Depth is bounded by the JSON reader. */
void stk_json_make_whole(json_t *v)
{
    json_t *one, *whole;
    size_t i;

    for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
        one = json_object_iter_value(it);
        whole = whole_of(one);
        if (whole)
            (void)json_object_iter_set_new(v, it, whole);
        else
            stk_json_make_whole(one);
    }
    json_array_foreach(v, i, one)
    {
        whole = whole_of(one);
        if (whole)
            (void)json_array_set_new(v, i, whole);
        else
            stk_json_make_whole(one);
    }
}
