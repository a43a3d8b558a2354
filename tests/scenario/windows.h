/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - reservations of a scenario while it is played: those of its file, then, by job, what
 * is kept free for it. */
#ifndef STK_TESTS_SCENARIO_WINDOWS_H
#define STK_TESTS_SCENARIO_WINDOWS_H

#include "core/state.h"
#include "model/event.h"
#include "scenario.h"

struct scn_window {
    uint32_t number; /* of its window; 0: it has none now */
    const char *was; /* what became of the last; NULL: there was none */
    char refused[SCN_MAX_LINE];
};

struct scn_windows {
    struct scn_window *of;
    uint32_t n, total;
};

int scn_windows_init(struct scn_windows *w, const struct scenario *s); /* free 'of' */
/* 'job': for whom, of one that is kept free for a job. */
void scn_windows_event(struct scn_windows *w, const struct stk_event *ev, uint32_t job);
void scn_windows_refused(struct scn_windows *w, uint32_t i, const char *why);
bool scn_window_is(const struct scn_windows *w, const struct stk_state *s,
                   const struct scn_step *step);
void scn_window_show(const struct scn_windows *w, const struct stk_state *s,
                     const struct scn_step *step, char *buf, size_t size);

#endif
