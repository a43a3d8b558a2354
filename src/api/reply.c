/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - the kinds of answers: JSON, errors, texts. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/conn.h"
#include "api/writer.h"

#define SPARE ((size_t)64 << 10) /* bytes behind a text that are worth giving back */

void stk_request_json(struct stk_request *r, int status, json_t *take_body)
{
    char *text = take_body ? json_dumps(take_body, STK_JSON_FLAGS) : NULL;

    json_decref(take_body);
    if (!text) {
        static const char sorry[] = "{\"error\":{\"code\":\"internal\",\"message\":"
                                    "\"the answer could not be made\"}}";

        stk_request_text(r, 500, "application/json", sorry, sizeof(sorry) - 1);
        return;
    }
    stk_request_give(r, status, "application/json", text, strlen(text));
}

const char *stk_http_code(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{400, "bad_request"}, {401, "unauthorized"},    {403, "forbidden"},
                 {404, "not_found"},   {405, "method"},          {409, "conflict"},
                 {413, "too_large"},   {414, "url_too_long"},    {422, "unprocessable"},
                 {429, "too_many"},    {501, "not_implemented"}, {503, "stopping"},
                 {507, "cannot_write"}};

    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return status < 500 ? "refused" : "internal";
}

void stk_request_error(struct stk_request *r, int status, const char *code, const char *fmt, ...)
{
    char text[1024];
    json_t *message;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    message = json_string(text);
    for (char *p = text; !message && *p; p++) /* what the user sent need not be UTF-8 */
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    if (!message)
        message = json_string(text);
    stk_request_json(r, status,
                     json_pack("{s:{s:s,s:o}}", "error", "code",
                               code ? code : stk_http_code(status), "message", message));
}

void stk_request_text(struct stk_request *r, int status, const char *type, const char *text,
                      size_t len)
{
    char *copy = malloc(len + 1);

    if (copy)
        memcpy(copy, text, len);
    stk_request_give(r, status, type, copy, len);
}

void stk_request_constant(struct stk_request *r, const char *type, const char *text, size_t len)
{
    void *bytes; /* only read: libmicrohttpd has no const for them */

    memcpy(&bytes, &text, sizeof(bytes));
    stk_request_answer(r, 200, type,
                       MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_PERSISTENT));
}

void stk_request_give(struct stk_request *r, int status, const char *type, char *take_text,
                      size_t len)
{
    if (take_text && r->conn && !stk_unread_fits(r, len)) {
        free(take_text);
        return;
    }
    if (r->conn)
        stk_conn_widen(r->conn, len);
    stk_request_answer(
        r, status, type,
        take_text ? MHD_create_response_from_buffer(len, take_text, MHD_RESPMEM_MUST_FREE) : NULL);
}

void stk_request_written(struct stk_request *r, struct stk_writer *take_text)
{
    char *text = take_text->text, *cut = NULL;

    if (text && take_text->cap - take_text->len > SPARE)
        cut = realloc(text, take_text->len);
    text = cut ? cut : text;
    take_text->text = text;
    if (take_text->starved || !text) {
        stk_request_error(r, 503, "no_memory", "the daemon has no memory for this answer now");
    } else {
        take_text->text = NULL;
        stk_request_give(r, 200, "application/json", text, take_text->len);
    }
    stk_writer_done(take_text);
}

void stk_request_add(struct stk_request *r, const char *name, const char *value)
{
    if (r->response)
        (void)MHD_add_response_header(r->response, name, value);
}
