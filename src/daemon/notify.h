/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - telling others: the service manager how we are, people what happened. */
#ifndef STK_DAEMON_NOTIFY_H
#define STK_DAEMON_NOTIFY_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

void stk_notify(const char *text); /* to the service manager, where there is one: "READY=1" */

/* ---- messages to people: by a command, by a webhook, or both ---- */

struct stk_notifier;
typedef void (*stk_notified_fn)(void *ctx, bool well, const char *why);

/* 'fn' is called once for each message. */
int stk_notifier_new(uv_loop_t *loop, stk_notified_fn fn, void *ctx, struct stk_notifier **ret);
void stk_notifier_free(struct stk_notifier *n); /* NULL is a no-op; memory goes with the loop */
bool stk_notifier_busy(const struct stk_notifier *n);

struct stk_message {
    const char *command; /* for sh -c, with the text on its standard input; NULL: none */
    const char *webhook; /* gets the JSON by POST; NULL: none */
    const char *subject; /* one line; STOKER_SUBJECT for the command */
    const char *text;
    const json_t *body;
};
/* One at a time: not while it is busy. Strings are copied. */
void stk_notifier_send(struct stk_notifier *n, const struct stk_message *m);

/* What curl is told: address, header and data, nothing of which shows in a list of processes. NULL:
 * out of memory. */
char *stk_notify_curl(const char *webhook, const json_t *body);

#endif
