/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/view.h"
#include "spec/words.h"

#define PAGE 1000

int stk_ask_open(struct stk_ask *k, const struct stk_args *a)
{
    struct stk_err err = {""};
    char path[256];

    *k = (struct stk_ask){.a = a, .name = a->cmd->name, .json = stk_arg_is(a, "json")};
    stk_term_init(&k->out, stdout);
    if (stk_client_find(stk_arg(a, "socket"), path, sizeof(path), &err) < 0)
        return stk_misused(a, "%s", err.text);
    k->c = stk_client_new(path);
    if (!k->c)
        return stk_ask_fail(k, -ENOMEM, &(struct stk_err){"out of memory"});
    return STK_EXIT_OK;
}

void stk_ask_close(struct stk_ask *k)
{
    stk_client_free(k->c);
    k->c = NULL;
}

int stk_ask_fail(const struct stk_ask *k, int rc, const struct stk_err *err)
{
    char clean[sizeof(err->text)];

    (void)fflush(stdout);
    (void)fprintf(stderr, "stoker %s: %s\n", k->name,
                  stk_text_clean(clean, sizeof(clean), err->text, false));
    switch (-rc) {
    case EINVAL:
    case EBADMSG:
        return STK_EXIT_USAGE;
    case EHOSTDOWN:
    case EPERM:
    case ETIMEDOUT:
    case EPIPE:
        return STK_EXIT_UNREACHABLE;
    default:
        return STK_EXIT_FAILED;
    }
}

int stk_misused(const struct stk_args *a, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "stoker %s: ", a->cmd->name);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    return STK_EXIT_USAGE;
}

int stk_ask_get(struct stk_ask *k, json_t **ret_body, const char *fmt, ...)
{
    char path[STK_CLIENT_MAX_PATH];
    struct stk_err err = {""};
    va_list ap;
    int rc;

    va_start(ap, fmt);
    (void)vsnprintf(path, sizeof(path), fmt, ap);
    va_end(ap);
    rc = stk_client_call(k->c, &(struct stk_call){.path = path}, ret_body, &err);
    return rc < 0 ? stk_ask_fail(k, rc, &err) : STK_EXIT_OK;
}

int stk_ask_do(struct stk_ask *k, const char *method, const char *path, const json_t *body,
               json_t **ret_body)
{
    const struct stk_call rq = {.method = method, .path = path, .body = body};
    struct stk_err err = {""};
    int rc = stk_client_call(k->c, &rq, ret_body, &err);

    return rc < 0 ? stk_ask_fail(k, rc, &err) : STK_EXIT_OK;
}

void stk_query(char *path, size_t size, const char *name, const char *value)
{
    size_t n = strlen(path);
    char escaped[1024];

    if (value)
        (void)snprintf(path + n, size - n, "%c%s=%s", strchr(path, '?') ? '&' : '?', name,
                       stk_client_escape(escaped, sizeof(escaped), value));
}

int stk_ask_pages(struct stk_ask *k, const char *path, const char *rows, const char *cursor,
                  uint32_t limit, json_t **ret_list)
{
    json_t *list = json_array();
    int64_t next = 0;
    int rc = STK_EXIT_OK;

    do {
        size_t left = limit > 0 ? limit - json_array_size(list) : PAGE;
        char page[STK_CLIENT_MAX_PATH], number[32];
        json_t *body = NULL;

        (void)snprintf(page, sizeof(page), "%s", path);
        (void)snprintf(number, sizeof(number), "%zu", left < PAGE ? left : PAGE);
        stk_query(page, sizeof(page), "limit", number);
        (void)snprintf(number, sizeof(number), "%lld", (long long)next);
        stk_query(page, sizeof(page), cursor, next > 0 ? number : NULL);
        rc = stk_ask_get(k, &body, "%s", page);
        next = stk_int(body, "next", 0);
        if (json_array_size(json_object_get(body, rows)) == 0)
            next = 0;
        (void)json_array_extend(list, json_object_get(body, rows));
        json_decref(body);
    } while (rc == STK_EXIT_OK && next > 0 && (limit == 0 || json_array_size(list) < limit));
    if (rc == STK_EXIT_OK)
        *ret_list = list;
    else
        json_decref(list);
    return rc;
}

void stk_print_json(const json_t *j)
{
    (void)json_dumpf(j, stdout, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    (void)putchar('\n');
}

int stk_arg_number(const struct stk_args *a, const char *name, int64_t min, int64_t max,
                   int64_t *ret)
{
    const char *text = stk_arg(a, name);
    char *end = NULL;
    long long v;

    if (!text)
        return STK_EXIT_OK;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || v < min || v > max)
        return stk_misused(a, "--%s takes a whole number from %lld to %lld, got \"%.40s\"", name,
                           (long long)min, (long long)max, text);
    *ret = v;
    return STK_EXIT_OK;
}

int stk_query_time(const struct stk_args *a, const char *name, char *path, size_t size)
{
    const char *text = stk_arg(a, name);
    int64_t now = (int64_t)stk_now(), at = 0;
    struct stk_err why = {""};
    char number[32];
    int rc = 0;

    if (!text)
        return STK_EXIT_OK;
    if (stk_words_duration(text, 60, &at) == 0 && strpbrk(text, "smhdw") && !strchr(text, ':'))
        at = now - at; /* "2h": two hours ago */
    else
        rc = stk_words_time(text, now, &at, &why);
    if (rc == -ERANGE)
        return stk_misused(a, "--%s %s", name, why.text);
    if (rc < 0)
        return stk_misused(
            a, "--%s takes a time (2026-01-31, 14:00) or how long ago (2h, 7d), got \"%.40s\"",
            name, text);
    if (at > now && strchr(text, ':') && !strchr(text, '-') && !strchr(text, '+'))
        at -= 86400; /* a time of day that is to come was yesterday's */
    (void)snprintf(number, sizeof(number), "%lld", (long long)at);
    stk_query(path, size, name, number);
    return STK_EXIT_OK;
}

int stk_ask_verb(const struct stk_args *a, const struct stk_verb *verbs, const char *usage)
{
    const char *word = a->n_words > 0 ? a->words[0] : "";
    struct stk_ask k;
    int rc;

    while (verbs->verb && strcmp(word, verbs->verb) != 0)
        verbs++;
    if (!verbs->verb)
        return stk_misused(a, "%s", usage);
    if (verbs->missing && a->n_words < 2)
        return stk_misused(a, "%s", verbs->missing);
    if (a->n_words > (verbs->missing ? 2 : 1) && !verbs->many)
        return stk_misused(a, "too many words");
    rc = stk_ask_open(&k, a);
    rc = rc == STK_EXIT_OK ? verbs->run(&k) : rc;
    stk_ask_close(&k);
    return rc;
}
