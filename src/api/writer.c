/* SPDX-License-Identifier: Apache-2.0 */
#include "api/writer.h"

#include <stdlib.h>
#include <string.h>

#include "api/http.h"
#include "base/utf8.h"

#define NUMBER_MAX 24u /* characters of a 64-bit number with its sign, and of a point */

void stk_writer_done(struct stk_writer *w)
{
    free(w->text);
    *w = (struct stk_writer){0};
}

/* Room for 'n' more bytes at the end; NULL: there is none. */
static char *make_room(struct stk_writer *w, size_t n)
{
    size_t cap;
    char *more;

    if (w->len + n <= w->cap)
        return w->text + w->len;
    cap = w->cap + w->cap / 2 + n + 4096;
    more = realloc(w->text, cap);
    if (!more) {
        w->starved = true;
        return NULL;
    }
    w->text = more;
    w->cap = cap;
    return more + w->len;
}

static int append_bytes(const char *data, size_t n, void *ctx)
{
    struct stk_writer *w = ctx;
    char *at = make_room(w, n);

    if (!at)
        return -1;
    memcpy(at, data, n);
    w->len += n;
    return 0;
}

/* The comma and the key, if any, of a value that takes at most 'n' bytes; returns where it begins.
 */
static char *begin_value(struct stk_writer *w, const char *key, size_t n)
{
    const size_t len = key ? strlen(key) : 0;
    const bool first = w->len == 0 || w->text[w->len - 1] == '{' || w->text[w->len - 1] == '[';
    char *at = make_room(w, len + n + 4);

    if (!at)
        return NULL;
    if (!first)
        *at++ = ',';
    if (key) {
        *at++ = '"';
        at = stpcpy(at, key);
        *at++ = '"';
        *at++ = ':';
    }
    return at;
}

static void end_value(struct stk_writer *w, const char *end)
{
    w->len = (size_t)(end - w->text);
}

static void write_word(struct stk_writer *w, const char *key, const char *word, size_t len)
{
    char *at = begin_value(w, key, len);

    if (!at)
        return;
    memcpy(at, word, len);
    end_value(w, at + len);
}

void stk_write_open(struct stk_writer *w, const char *key, char bracket)
{
    write_word(w, key, &bracket, 1);
}

void stk_write_close(struct stk_writer *w, char bracket)
{
    (void)append_bytes(&bracket, 1, w);
}

void stk_write_null(struct stk_writer *w, const char *key)
{
    write_word(w, key, "null", 4);
}

void stk_write_bool(struct stk_writer *w, const char *key, bool value)
{
    write_word(w, key, value ? "true" : "false", value ? 4 : 5);
}

/* At least 'least' digits; returns the end. */
static char *put_digits(char *at, uint64_t value, unsigned least)
{
    char digits[NUMBER_MAX];
    unsigned n = 0;

    while (value > 0 || n < least) {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    }
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

static uint64_t put_sign(char **at, int64_t value)
{
    if (value >= 0)
        return (uint64_t)value;
    *(*at)++ = '-';
    return 0 - (uint64_t)value;
}

void stk_write_number(struct stk_writer *w, const char *key, int64_t value)
{
    char *at = begin_value(w, key, NUMBER_MAX);
    uint64_t size;

    if (!at)
        return;
    size = put_sign(&at, value);
    end_value(w, put_digits(at, size, 1));
}

void stk_write_millionths(struct stk_writer *w, const char *key, int64_t value)
{
    char *at = begin_value(w, key, NUMBER_MAX);
    uint64_t size, rest;
    unsigned digits = 6;

    if (!at)
        return;
    size = put_sign(&at, value);
    rest = size % 1000000;
    at = put_digits(at, size / 1000000, 1);
    *at++ = '.';
    for (; digits > 1 && rest % 10 == 0; digits--)
        rest /= 10;
    end_value(w, put_digits(at, rest, digits));
}

/* ---- text ---- */

/* Bytes at 's' that are written as they are: plain ASCII. */
static size_t plain_run(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;

    while (*p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
        p++;
    return (size_t)(p - (const unsigned char *)s);
}

/* Writes the one character at 's' that is not plain; returns how many bytes it has there. */
static size_t write_special(struct stk_writer *w, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char c = (unsigned char)*s;
    const char *const named = strchr("\"\\\bb\ff\nn\rr\tt", c);
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    uint32_t code;
    size_t n;

    if (c >= 0x7f) {
        n = stk_utf8(s, SIZE_MAX, &code);
        (void)append_bytes(n > 0 ? s : "?", n > 0 ? n : 1, w);
        return n > 0 ? n : 1;
    }
    if (c == '"' || c == '\\')
        escape[1] = (char)c;
    else if (named)
        escape[1] = named[1];
    (void)append_bytes(escape, c == '"' || c == '\\' || named ? 2 : 6, w);
    return 1;
}

void stk_write_text(struct stk_writer *w, const char *key, const char *value)
{
    const char *s = value ? value : "";
    size_t n = plain_run(s);
    char *at = begin_value(w, key, n + 1);

    if (!at)
        return;
    *at++ = '"';
    memcpy(at, s, n);
    end_value(w, at + n);
    for (s += n; *s; s += n) {
        s += write_special(w, s);
        n = plain_run(s);
        (void)append_bytes(s, n, w);
    }
    (void)append_bytes("\"", 1, w);
}

/* ---- values made elsewhere ---- */

void stk_write_written(struct stk_writer *w, const char *key, struct stk_writer *take_value)
{
    if (take_value->starved || !take_value->text)
        w->starved = true;
    else
        write_word(w, key, take_value->text, take_value->len);
    stk_writer_done(take_value);
}

void stk_write_json(struct stk_writer *w, const char *key, json_t *take_value)
{
    char *at = begin_value(w, key, 0);

    if (at)
        end_value(w, at);
    w->starved |= !take_value ||
                  json_dump_callback(take_value, append_bytes, w, STK_JSON_FLAGS | JSON_ENCODE_ANY);
    json_decref(take_value);
}

void stk_write_members(struct stk_writer *w, json_t *take_object)
{
    const char *key;
    json_t *value;

    w->starved |= !take_object;
    json_object_foreach(take_object, key, value)
    {
        stk_write_json(w, key, json_incref(value));
    }
    json_decref(take_object);
}
