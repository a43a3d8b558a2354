/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/ending.h"

#include <stdio.h>
#include <string.h>

void stk_end_words(enum stk_cause cause, int32_t code, char *buf, size_t size)
{
    const char *name;

    switch (cause) {
    case STK_CAUSE_NONE:
        (void)snprintf(buf, size, "has not ended");
        break;
    case STK_CAUSE_OK:
        (void)snprintf(buf, size, "completed");
        break;
    case STK_CAUSE_FAILED:
        (void)snprintf(buf, size, "failed with exit code %d", code);
        break;
    case STK_CAUSE_SIGNAL:
        name = code > 0 && code < 65 ? sigabbrev_np(code) : NULL;
        (void)snprintf(buf, size, "was killed by signal %d%s%s%s", code, name ? " (" : "",
                       name ? name : "", name ? ")" : "");
        break;
    case STK_CAUSE_OOM:
        (void)snprintf(buf, size, "ran out of memory");
        break;
    case STK_CAUSE_TIMEOUT:
        (void)snprintf(buf, size, "was over its time limit");
        break;
    case STK_CAUSE_NODE_LOST:
        (void)snprintf(buf, size, "its machine went away");
        break;
    case STK_CAUSE_NOT_STARTED:
        (void)snprintf(buf, size, "could not be started");
        break;
    case STK_CAUSE_EVICTED:
        (void)snprintf(buf, size, "was stopped to make room");
        break;
    case STK_CAUSE_CANCELLED:
        (void)snprintf(buf, size, "was cancelled");
        break;
    case STK_CAUSE_DEPENDENCY:
        (void)snprintf(buf, size, "did not run: a job it depends on did not end as needed");
        break;
    case STK_CAUSE_GPU:
        (void)snprintf(buf, size, "a GPU it used reported an error");
        break;
    case STK_CAUSE_UNKNOWN:
    case STK_CAUSE_MAX:
        (void)snprintf(buf, size, "is gone, and nobody knows how it ended");
        break;
    }
}

void stk_end_already(enum stk_cause cause, char *buf, size_t size)
{
    if (cause == STK_CAUSE_OK)
        (void)snprintf(buf, size, "has already completed");
    else
        (void)snprintf(buf, size, "has already ended (%s)", stk_cause_word(cause));
}
