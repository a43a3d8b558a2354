/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - a description against the table of keys; rules that concern two keys are in rules.c.
 *
 * Everything a user can make grow has a bound here, so that nobody after this has to ask. The path
 * to the value in hand is kept as it is walked, for the message.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "model/demand.h"
#include "spec/keys.h"
#include "spec/rules.h"
#include "spec/spec.h"
#include "spec/words.h"

struct checker {
    struct stk_fault *fault;
    size_t len;    /* of fault->path */
    bool in_bytes; /* too long, though not as the schema counts: it has characters and no sums */
};

__attribute__((format(printf, 2, 3))) static int wrong(struct checker *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->fault->what, sizeof(c->fault->what), fmt, ap);
    va_end(ap);
    return -EBADMSG;
}

/* Steps into a key or an entry; the caller restores c->len. */
__attribute__((format(printf, 2, 3))) static void enter(struct checker *c, const char *fmt, ...)
{
    size_t room = sizeof(c->fault->path) - c->len;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(c->fault->path + c->len, room, fmt, ap);
    va_end(ap);
    if (n > 0)
        c->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void leave(struct checker *c, size_t len)
{
    c->len = len;
    c->fault->path[len] = '\0';
}

/* How a value of the wrong kind is shown. */
static struct stk_word show(const json_t *v)
{
    struct stk_word w = {""};

    switch (json_typeof(v)) {
    case JSON_STRING: {
        struct stk_word s = stk_words_show(json_string_value(v));

        (void)snprintf(w.text, sizeof(w.text), "\"%.44s\"", s.text);
        break;
    }
    case JSON_INTEGER:
        (void)snprintf(w.text, sizeof(w.text), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        (void)snprintf(w.text, sizeof(w.text), "%g", json_real_value(v));
        break;
    case JSON_OBJECT:
        return (struct stk_word){"an object"};
    case JSON_ARRAY:
        return (struct stk_word){"a list"};
    case JSON_TRUE:
        return (struct stk_word){"true"};
    case JSON_FALSE:
        return (struct stk_word){"false"};
    case JSON_NULL:
        return (struct stk_word){"null"};
    }
    return w;
}

static int check_int(struct checker *c, const struct stk_key *k, const json_t *v)
{
    if (!json_is_integer(v) || json_integer_value(v) < k->min || json_integer_value(v) > k->max)
        return wrong(c, "must be a whole number from %" PRId64 " to %" PRId64 ", got %s", k->min,
                     k->max, show(v).text);
    return 0;
}

static int check_number(struct checker *c, const struct stk_key *k, const json_t *v)
{
    double n = json_number_value(v);

    if (!json_is_number(v) || !isfinite(n) || n < (double)k->min || n > (double)k->max)
        return wrong(c, "must be a number from %" PRId64 " to %" PRId64 ", got %s", k->min, k->max,
                     show(v).text);
    return 0;
}

static int check_bool(struct checker *c, const struct stk_key *k, const json_t *v)
{
    (void)k;
    return json_is_boolean(v) ? 0 : wrong(c, "must be true or false, got %s", show(v).text);
}

static int check_budget(struct checker *c, const struct stk_key *k, const json_t *v)
{
    if (json_is_string(v) && strcmp(json_string_value(v), "always") == 0)
        return 0;
    if (json_is_integer(v) && json_integer_value(v) >= k->min && json_integer_value(v) <= k->max)
        return 0;
    return wrong(c, "must be a whole number from %" PRId64 " to %" PRId64 ", or \"always\", got %s",
                 k->min, k->max, show(v).text);
}

/* Length, UTF-8 (jansson saw to it) and no NUL: what every string must have. */
static int64_t count_characters(const char *s, size_t len)
{
    int64_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xC0) != 0x80; /* not a byte in the middle of one */
    return n;
}

static int check_length(struct checker *c, int64_t min, int64_t max, const json_t *v)
{
    size_t len;

    if (!json_is_string(v))
        return wrong(c, "must be a string, got %s", show(v).text);
    len = json_string_length(v);
    if (memchr(json_string_value(v), '\0', len))
        return wrong(c, "must not hold a NUL byte");
    if (len == 0 && min > 0)
        return wrong(c, "must not be empty");
    c->in_bytes = (int64_t)len > max && count_characters(json_string_value(v), len) <= max;
    if ((int64_t)len > max)
        return wrong(c, "must have at most %" PRId64 " bytes, got %zu", max, len);
    return 0;
}

static int check_text(struct checker *c, const struct stk_key *k, const json_t *v)
{
    return check_length(c, k->min, k->max, v);
}

static int check_line(struct checker *c, const struct stk_key *k, const json_t *v)
{
    int rc = check_length(c, k->min, k->max, v);

    if (rc < 0)
        return rc;
    if (!stk_words_is_text(json_string_value(v), json_string_length(v), false))
        return wrong(c, "must be one line without control characters");
    return 0;
}

static int check_name(struct checker *c, const struct stk_key *k, const json_t *v)
{
    int rc = check_line(c, k, v);

    if (rc < 0)
        return rc;
    return strchr(json_string_value(v), '/') ? wrong(c, "must not hold '/', got %s", show(v).text)
                                             : 0;
}

static int check_path(struct checker *c, const struct stk_key *k, const json_t *v)
{
    int rc = check_line(c, k, v);

    if (rc < 0)
        return rc;
    return json_string_value(v)[0] != '/'
               ? wrong(c, "must be an absolute path, got %s", show(v).text)
               : 0;
}

static int check_pattern(struct checker *c, const struct stk_key *k, const json_t *v)
{
    int rc = check_line(c, k, v);
    char bad;

    if (rc < 0)
        return rc;
    bad = stk_words_bad_pattern(json_string_value(v));
    return bad ? wrong(c, "does not know %%%c; there are %%j %%A %%a %%x %%t %%N %%u %%%%", bad)
               : 0;
}

static int check_word(struct checker *c, const struct stk_key *k, const json_t *v)
{
    const char *s = json_string_value(v);

    if (s && stk_words_among(s, k->words))
        return 0;
    if (s && strcmp(k->name, "kind") == 0 && stk_words_among(s, "service|sweep"))
        return wrong(c, "%s is not supported yet", s);
    return wrong(c, "must be one of %s, got %s", k->words, show(v).text);
}

static int check_signal(struct checker *c, const struct stk_key *k, const json_t *v)
{
    int number;

    (void)k;
    if (!json_is_string(v) || stk_words_signal(json_string_value(v), &number) < 0)
        return wrong(c, "must be a signal such as \"USR1\", got %s", show(v).text);
    return 0;
}

static int check_count(struct checker *c, int64_t min, int64_t max, size_t n)
{
    if ((int64_t)n < min)
        return wrong(c, "must not be empty");
    if ((int64_t)n > max)
        return wrong(c, "must have at most %" PRId64 " entries, got %zu", max, n);
    return 0;
}

static int check_ints(struct checker *c, const struct stk_key *k, const json_t *v)
{
    size_t len = c->len, n = json_array_size(v);

    if (!json_is_array(v))
        return wrong(c, "must be a list of whole numbers, got %s", show(v).text);
    if (check_count(c, 1, k->each, n) < 0)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        enter(c, "[%zu]", i);
        if (check_int(c, k, json_array_get(v, i)) < 0)
            return -EBADMSG;
        leave(c, len);
    }
    return 0;
}

static int check_strings(struct checker *c, const struct stk_key *k, const json_t *v)
{
    int64_t most = strcmp(k->name, "items") == 0 ? STK_MAX_ITEMS_BYTES : STK_MAX_TEXT, bytes = 0;
    size_t len = c->len, n = json_array_size(v);

    if (!json_is_array(v))
        return wrong(c, "must be a list of strings, got %s", show(v).text);
    if (check_count(c, k->min, k->max, n) < 0)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_array_get(v, i);
        struct stk_key one = {.min = 1, .max = k->each};

        enter(c, "[%zu]", i);
        if (k->type == STK_KEY_NAMES ? check_name(c, &one, s) < 0
                                     : check_length(c, 0, k->each, s) < 0)
            return -EBADMSG;
        bytes += (int64_t)json_string_length(s) + 1;
        leave(c, len);
    }
    c->in_bytes = bytes > most;
    if (bytes > most)
        return wrong(c, "must have at most %" PRId64 " bytes in all, got %" PRId64, most, bytes);
    if (strcmp(k->name, "command") == 0 && json_string_length(json_array_get(v, 0)) == 0)
        return wrong(c, "must begin with a program");
    return 0;
}

/* Numbers of this kind by name. */
static int check_by_name(struct checker *c, const struct stk_key *k, const json_t *v,
                         int (*check)(struct checker *c, const struct stk_key *k, const char *name,
                                      const json_t *n))
{
    size_t len = c->len;

    if (check_count(c, k->min, k->max, json_object_size(v)) < 0)
        return -EBADMSG;
    for (void *it = json_object_iter(stk_json_loose(v)); it;
         it = json_object_iter_next(stk_json_loose(v), it)) {
        const char *name = json_object_iter_key(it);

        enter(c, ".%s", stk_words_show(name).text);
        if (check(c, k, name, json_object_iter_value(it)) < 0)
            return -EBADMSG;
        leave(c, len);
    }
    return 0;
}

static int check_amount(struct checker *c, const struct stk_key *k, const char *name,
                        const json_t *n)
{
    const struct stk_key amount = {.name = name, .min = 0, .max = k->each};

    if (!stk_resource_name_ok(name, strlen(name)))
        return wrong(c, "must be a name of at most %d letters, digits, _ - and .",
                     STK_MAX_RESOURCE_NAME - 1);
    return check_int(c, &amount, n);
}

static int check_amounts(struct checker *c, const struct stk_key *k, const json_t *v)
{
    if (!json_is_object(v))
        return wrong(c, "must be an object such as {\"licence\": 1}, got %s", show(v).text);
    return check_by_name(c, k, v, check_amount);
}

static int check_speed(struct checker *c, const struct stk_key *k, const char *name,
                       const json_t *n)
{
    double milli = json_is_number(n) ? round(json_number_value(n) * STK_SPEED) : 0;
    size_t len = strlen(name);

    c->in_bytes = (int64_t)len > k->each && count_characters(name, len) <= k->each;
    if (len == 0 || (int64_t)len > k->each || !stk_words_is_text(name, len, false))
        return wrong(c, "must be a name of 1 to %" PRId64 " bytes", k->each);
    if (!(milli >= 1 && milli <= STK_MAX_SPEED))
        return wrong(c, "must be a speed from 0.001 to 65.535, got %s", show(n).text);
    return 0;
}

static int check_types(struct checker *c, const struct stk_key *k, const json_t *v)
{
    const struct stk_key names = {k->name, STK_KEY_NAMES, k->min, k->max, k->each, 0, 0, 0, 0};

    return json_is_object(v) ? check_by_name(c, k, v, check_speed) : check_strings(c, &names, v);
}

static bool is_env_name(const char *s, bool strict)
{
    size_t len = strlen(s);

    if (len == 0 || len > STK_MAX_ENV_NAME || strchr(s, '=') || !stk_words_is_text(s, len, false))
        return false;
    return !strict ||
           (strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == len &&
            !(s[0] >= '0' && s[0] <= '9'));
}

static int check_env(struct checker *c, const struct stk_key *k, const char *name, const json_t *v)
{
    bool secret = k->type == STK_KEY_SECRETS;
    struct stk_key one = {.min = secret, .max = k->each - (int64_t)(secret ? 0 : strlen(name) + 1)};

    enter(c, ".%s", stk_words_show(name).text);
    c->in_bytes = strlen(name) > STK_MAX_ENV_NAME &&
                  count_characters(name, strlen(name)) <= (int64_t)STK_MAX_ENV_NAME;
    if (!is_env_name(name, secret))
        return wrong(c, "is not a name for an environment variable");
    return secret ? check_path(c, &one, v) : check_length(c, 0, one.max, v);
}

static int check_envs(struct checker *c, const struct stk_key *k, const json_t *v)
{
    size_t len = c->len;
    int64_t bytes = 0;

    if (!json_is_object(v))
        return wrong(c, "must be an object of NAME: \"value\", got %s", show(v).text);
    if (check_count(c, k->min, k->max, json_object_size(v)) < 0)
        return -EBADMSG;
    for (void *it = json_object_iter(stk_json_loose(v)); it;
         it = json_object_iter_next(stk_json_loose(v), it)) {
        const char *name = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);

        if (check_env(c, k, name, value) < 0)
            return -EBADMSG;
        bytes += (int64_t)(strlen(name) + json_string_length(value) + 2);
        leave(c, len);
    }
    c->in_bytes = bytes > STK_MAX_TEXT;
    if (bytes > STK_MAX_TEXT)
        return wrong(c, "must have at most %d bytes in all, got %" PRId64, STK_MAX_TEXT, bytes);
    return 0;
}

static int check_value(struct checker *c, const struct stk_key *k, const json_t *v);

static int unknown_key(struct checker *c, const struct stk_key *keys, const char *name)
{
    unsigned best = stk_near_limit(name);
    const char *near = stk_key_nearest(keys, name, &best);

    if (keys == stk_spec_keys() &&
        stk_words_among(name,
                        "uid|gid|groups|user|home|shell|host|submitted|schedule_id|cpu_share"))
        return wrong(c, "is set by the server and cannot be asked for");
    if (near)
        return wrong(c, "is not a known key; did you mean \"%s\"?", near);
    return wrong(c, "is not a known key");
}

static int check_object(struct checker *c, const struct stk_key *keys, const json_t *v)
{
    size_t len = c->len;

    if (!json_is_object(v))
        return wrong(c, "must be an object, got %s", show(v).text);
    for (void *it = json_object_iter(stk_json_loose(v)); it;
         it = json_object_iter_next(stk_json_loose(v), it)) {
        const char *name = json_object_iter_key(it);
        const struct stk_key *k = stk_key_find(keys, name);

        if (len == 0)
            (void)snprintf(c->fault->key, sizeof(c->fault->key), "%.*s",
                           (int)sizeof(c->fault->key) - 1, stk_words_show(name).text);
        enter(c, "%s%s", len > 0 ? "." : "", stk_words_show(name).text);
        if (k ? check_value(c, k, json_object_iter_value(it)) < 0 : unknown_key(c, keys, name) < 0)
            return -EBADMSG;
        leave(c, len);
    }
    for (const struct stk_key *k = keys; k->name; k++)
        if (strcmp(k->standard, "needed") == 0 && !json_object_get(v, k->name))
            return wrong(c, "needs \"%s\"", k->name);
    return 0;
}

static int check_sub(struct checker *c, const struct stk_key *k, const json_t *v)
{
    return check_object(c, k->keys, v);
}

static int check_objects(struct checker *c, const struct stk_key *k, const json_t *v)
{
    size_t len = c->len, n = json_array_size(v);

    if (!json_is_array(v))
        return wrong(c, "must be a list of objects, got %s", show(v).text);
    if (check_count(c, k->min, k->max, n) < 0)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        enter(c, "[%zu]", i);
        if (check_object(c, k->keys, json_array_get(v, i)) < 0)
            return -EBADMSG;
        leave(c, len);
    }
    return 0;
}

/* It goes to podman, docker or apptainer as a word: it must not look like an option of theirs. */
static int check_image(struct checker *c, const struct stk_key *k, const json_t *v)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                              "._:/@+~%=-";
    const char *s = json_string_value(v);

    if (check_line(c, k, v) < 0)
        return -EBADMSG;
    if (s[0] == '/' || ((strchr(letters, s[0]) || s[0] == '.') && strspn(s, all) == strlen(s)))
        return 0;
    return wrong(c,
                 "must be an absolute path, or a name of letters, digits and ._:/@+~%%=- that "
                 "begins with a letter or digit, got %s",
                 show(v).text);
}

static int check_value(struct checker *c, const struct stk_key *k, const json_t *v)
{
    static int (*const checks[STK_KEY_TYPE_MAX])(struct checker *, const struct stk_key *,
                                                 const json_t *) = {
        [STK_KEY_NAME] = check_name,       [STK_KEY_LINE] = check_line,
        [STK_KEY_TEXT] = check_text,       [STK_KEY_PATH] = check_path,
        [STK_KEY_PATTERN] = check_pattern, [STK_KEY_WORD] = check_word,
        [STK_KEY_IMAGE] = check_image,     [STK_KEY_SIGNAL] = check_signal,
        [STK_KEY_INT] = check_int,         [STK_KEY_NUMBER] = check_number,
        [STK_KEY_BOOL] = check_bool,       [STK_KEY_BUDGET] = check_budget,
        [STK_KEY_INTS] = check_ints,       [STK_KEY_STRINGS] = check_strings,
        [STK_KEY_NAMES] = check_strings,   [STK_KEY_TYPES] = check_types,
        [STK_KEY_AMOUNTS] = check_amounts, [STK_KEY_ENVS] = check_envs,
        [STK_KEY_SECRETS] = check_envs,    [STK_KEY_OBJECT] = check_sub,
        [STK_KEY_OBJECTS] = check_objects,
    };

    return checks[k->type](c, k, v);
}

int stk_spec_fault(const json_t *spec, struct stk_fault *ret)
{
    struct checker c = {.fault = ret};
    int rc;

    *ret = (struct stk_fault){.key = ""};
    if (!json_is_object(spec))
        return wrong(&c, "a job description must be a JSON object");
    rc = check_object(&c, stk_spec_keys(), spec);
    if (rc < 0)
        return c.in_bytes ? -EINVAL : rc;
    *ret = (struct stk_fault){.key = ""};
    return stk_spec_rules(spec, ret);
}

int stk_spec_check(const json_t *spec, struct stk_err *err)
{
    struct stk_fault fault;

    int rc = stk_spec_fault(spec, &fault);

    if (rc == 0)
        return 0;
    if (fault.path[0] == '\0')
        return stk_err_set(err, rc, "%s", fault.what);
    return stk_err_set(err, rc, "%.60s: %s", fault.path, fault.what);
}
