/* SPDX-License-Identifier: Apache-2.0 */
#include "api/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* what may come next */
       VALUE,
       VALUE_OR_END, /* of a list */
       KEY,
       KEY_OR_END, /* of an object */
       COLON,
       COMMA_OR_END,
       STRING, /* within one */
       WORD,   /* within a number, true, false, null */
       NOTHING /* but white space */
};

static const char *const expected[] = {[VALUE] = "a value",
                                       [VALUE_OR_END] = "a value or ]",
                                       [KEY] = "a name in quotation marks",
                                       [KEY_OR_END] = "a name in quotation marks or }",
                                       [COLON] = "a colon",
                                       [COMMA_OR_END] = "a comma or the end",
                                       [NOTHING] = "nothing more"};

void stk_scan_init(struct stk_scan *s, const struct stk_scan_limits *limits)
{
    *s = (struct stk_scan){.limits = *limits, .state = VALUE, .line = 1};
    if (s->limits.depth > STK_SCAN_MAX_DEPTH)
        s->limits.depth = STK_SCAN_MAX_DEPTH;
}

void stk_scan_done(struct stk_scan *s)
{
    free(s->jobs);
    s->jobs = NULL;
    s->n_jobs = s->cap_jobs = 0;
}

static int refuse_byte(const struct stk_scan *s, char c, struct stk_err *err)
{
    char shown[16];

    if ((unsigned char)c > 0x20 && (unsigned char)c < 0x7f)
        (void)snprintf(shown, sizeof(shown), "\"%c\"", c);
    else
        (void)snprintf(shown, sizeof(shown), "byte 0x%02x", (unsigned char)c);
    return stk_err_set(err, -EINVAL,
                       "the body is not valid JSON: line %u, column %u: expected %s, got %s",
                       s->line, s->column, expected[s->state], shown);
}

static bool in_object(const struct stk_scan *s)
{
    return s->depth > 0 && ((s->objects >> (s->depth - 1)) & 1);
}

/* Whether values at this level are job descriptions. */
static bool is_job_level(const struct stk_scan *s)
{
    return s->cut && s->depth == 2;
}

static int begin_job(struct stk_scan *s, struct stk_err *err)
{
    if (s->n_jobs == s->limits.jobs)
        return stk_err_set(err, -EFBIG,
                           "the body has more than %u job descriptions, the most that %s may send "
                           "in one request; split it into several requests",
                           s->limits.jobs, s->limits.who);
    if (s->n_jobs == s->cap_jobs) {
        uint32_t cap = s->cap_jobs ? 2 * s->cap_jobs : 16;
        struct stk_cut *more = realloc(s->jobs, cap * sizeof(*more));

        if (!more)
            return stk_err_set(err, -ENOMEM, "out of memory");
        s->jobs = more;
        s->cap_jobs = cap;
    }
    s->jobs[s->n_jobs++] = (struct stk_cut){.from = (uint32_t)s->at};
    s->values = 0;
    return 0;
}

static int begin_value(struct stk_scan *s, struct stk_err *err)
{
    if (is_job_level(s)) {
        int rc = begin_job(s, err);

        if (rc < 0)
            return rc;
    }
    if (++s->values > s->limits.values)
        return stk_err_set(err, -EFBIG,
                           "the %s more than %u values, the most that %s may send; split %s",
                           s->n_jobs ? "job description has" : "body has", s->limits.values,
                           s->limits.who, s->n_jobs ? "the job" : "the request");
    return 0;
}

/* The byte at hand is the last of a value. */
static void end_value(struct stk_scan *s, size_t behind)
{
    if (is_job_level(s))
        s->jobs[s->n_jobs - 1].len = (uint32_t)(behind - s->jobs[s->n_jobs - 1].from);
    s->state = s->depth > 0 ? COMMA_OR_END : NOTHING;
}

static int open_level(struct stk_scan *s, bool object, struct stk_err *err)
{
    int rc = begin_value(s, err);

    if (rc < 0)
        return rc;
    if (s->depth == s->limits.depth)
        return stk_err_set(err, -EINVAL, "the body is nested deeper than %u levels",
                           s->limits.depth);
    if (s->depth == 1 && !object && in_object(s) && s->limits.jobs > 0 && s->key_len == 4 &&
        memcmp(s->key, "jobs", 4) == 0 && s->n_jobs == 0)
        s->cut = true;
    s->objects &= ~(UINT64_C(1) << s->depth);
    s->objects |= (uint64_t)object << s->depth;
    s->depth++;
    s->state = object ? KEY_OR_END : VALUE_OR_END;
    return 0;
}

static int close_level(struct stk_scan *s, char c, struct stk_err *err)
{
    if (s->depth == 0 || (c == '}') != in_object(s))
        return refuse_byte(s, c, err);
    if (s->cut && s->depth == 2) { /* of all descriptions */
        s->cut = false;
        s->ended = true;
    }
    s->depth--;
    end_value(s, s->at + 1);
    return 0;
}

static int take_value(struct stk_scan *s, char c, struct stk_err *err)
{
    if (c == '{' || c == '[')
        return open_level(s, c == '{', err);
    if (s->depth == 0)
        return stk_err_set(err, -EINVAL,
                           "the body is not valid JSON: it must be an object or a list");
    if (c == '"') {
        s->state = STRING;
        s->is_key = false;
        return begin_value(s, err);
    }
    if ((c >= '0' && c <= '9') || c == '-' || (c >= 'a' && c <= 'z')) {
        s->state = WORD;
        return begin_value(s, err);
    }
    return refuse_byte(s, c, err);
}

static int take_key(struct stk_scan *s, char c, struct stk_err *err)
{
    if (c != '"')
        return refuse_byte(s, c, err);
    s->state = STRING;
    s->is_key = true;
    if (s->depth == 1) {
        s->key_len = 0;
        s->members++;
    }
    return 0;
}

static void take_in_string(struct stk_scan *s, char c)
{
    if (s->is_key && s->depth == 1 && s->key_len < sizeof(s->key) && (c != '"' || s->escaped))
        s->key[s->key_len++] = c;
    if (s->escaped) {
        s->escaped = false;
    } else if (c == '\\') {
        s->escaped = true;
    } else if (c == '"') {
        if (s->is_key)
            s->state = COLON;
        else
            end_value(s, s->at + 1);
    }
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '.';
}

static int take_structure(struct stk_scan *s, char c, struct stk_err *err)
{
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        return 0;
    switch (s->state) {
    case VALUE_OR_END:
        return c == ']' ? close_level(s, c, err) : take_value(s, c, err);
    case VALUE:
        return take_value(s, c, err);
    case KEY_OR_END:
        return c == '}' ? close_level(s, c, err) : take_key(s, c, err);
    case KEY:
        return take_key(s, c, err);
    case COLON:
        s->state = c == ':' ? VALUE : s->state;
        return c == ':' ? 0 : refuse_byte(s, c, err);
    case COMMA_OR_END:
        if (c == '}' || c == ']')
            return close_level(s, c, err);
        if (c == ',')
            s->state = in_object(s) ? KEY : VALUE;
        return c == ',' ? 0 : refuse_byte(s, c, err);
    default:
        return refuse_byte(s, c, err);
    }
}

static int take_byte(struct stk_scan *s, char c, struct stk_err *err)
{
    if (s->state == STRING) {
        take_in_string(s, c);
        return 0;
    }
    if (s->state == WORD) {
        if (is_word(c))
            return 0;
        end_value(s, s->at); /* the byte before was its last */
    }
    return take_structure(s, c, err);
}

int stk_scan_feed(struct stk_scan *s, const char *data, size_t len, struct stk_err *err)
{
    if (s->failed)
        return stk_err_set(err, s->failed, "the body was refused");
    if (len > s->limits.bytes - s->at) {
        s->failed = -EFBIG;
        return stk_err_set(err, -EFBIG,
                           "the body is larger than %zu bytes, the most that %s may send here",
                           s->limits.bytes, s->limits.who);
    }
    for (size_t i = 0; i < len; i++, s->at++) {
        s->column++;
        s->failed = take_byte(s, data[i], err);
        if (s->failed < 0)
            return s->failed;
        if (data[i] == '\n') {
            s->line++;
            s->column = 0;
        }
    }
    return 0;
}

int stk_scan_end(struct stk_scan *s, struct stk_err *err)
{
    if (s->failed)
        return stk_err_set(err, s->failed, "the body was refused");
    if (s->state != NOTHING)
        return stk_err_set(err, -EINVAL,
                           "the body is not valid JSON: line %u, column %u: it ends too early",
                           s->line, s->column);
    return 0;
}
