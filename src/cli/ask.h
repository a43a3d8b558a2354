/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - a command's talk with the daemon: the connection, the terminal, and what to say and which
 * code to exit with when something fails. */
#ifndef STK_CLI_ASK_H
#define STK_CLI_ASK_H

#include <jansson.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/term.h"
#include "client/client.h"
#include "sys/json.h"

struct stk_ask {
    const struct stk_args *a;
    const char *name; /* of the command, for messages */
    struct stk_client *c;
    struct stk_term out;
    bool json;
};

/* 0, or the exit code after having said why. Nothing is connected yet. */
int stk_ask_open(struct stk_ask *k, const struct stk_args *a);
void stk_ask_close(struct stk_ask *k);

/* Says what went wrong (text from the daemon is cleaned) and returns the exit code for 'rc'. */
int stk_ask_fail(const struct stk_ask *k, int rc, const struct stk_err *err);

/* GET with a printf path: 0 and *ret_body (may be NULL), or the exit code after having said why. */
int stk_ask_get(struct stk_ask *k, json_t **ret_body, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* POST, PUT or DELETE. 'body' may be NULL. */
int stk_ask_do(struct stk_ask *k, const char *method, const char *path, const json_t *body,
               json_t **ret_body);

/* Pages of a list: calls 'path' with after=N (or before=N) until there is no next page or 'limit'
 * rows (0: no limit) have come. *ret_list is an array of the rows under 'rows'. */
int stk_ask_pages(struct stk_ask *k, const char *path, const char *rows, const char *cursor,
                  uint32_t limit, json_t **ret_list);

/* One line of JSON on standard output, in ASCII: escapes keep what is in it from the terminal. */
void stk_print_json(const json_t *j);

/* A whole number given as an option: 0, or STK_EXIT_USAGE after having said so. */
int stk_arg_number(const struct stk_args *a, const char *name, int64_t min, int64_t max,
                   int64_t *ret);

/* The time that an option names ("7d": so long ago; "14:00"), as seconds since 1970 in the query.
 * STK_EXIT_USAGE after having said what it takes. */
int stk_query_time(const struct stk_args *a, const char *name, char *path, size_t size);

/* Adds "&name=value" (or "?...") to a path, escaped; 'value' NULL adds nothing. */
void stk_query(char *path, size_t size, const char *name, const char *value);

/* A command with verbs of its own: its first word. */
struct stk_verb {
    const char *verb;    /* NULL ends a list of them */
    const char *missing; /* it needs a word, and this is asked for it; NULL: it takes none */
    int (*run)(struct stk_ask *k);
    bool many; /* it takes several */
};
/* Does it. usage: what there is, for those who say something else. */
int stk_ask_verb(const struct stk_args *a, const struct stk_verb *verbs, const char *usage);

#endif
