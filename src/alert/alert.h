/* SPDX-License-Identifier: Apache-2.0 */
/* alert.h - what people should know of: which conditions hold, since when, and who was told. No
 * clock and no files: looks go in, changes come out.
 *
 *     a condition is seen      pending, until it has held for as long as its rule says
 *     it still is              firing: said once
 *     it is not, for a while   resolved: said once; shown for a day
 *
 * A message that is being sent counts as sent, so that nothing is said twice, whatever is killed
 * when; one that could not be sent is sent again.
 */
#ifndef STK_ALERT_ALERT_H
#define STK_ALERT_ALERT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/time.h"

enum stk_alert_kind {
    STK_ALERT_IDLE,
    STK_ALERT_WAIT,
    STK_ALERT_GPU,
    STK_ALERT_FOREIGN,
    STK_ALERT_PREEMPTIONS,
    STK_ALERT_QUOTA,
    STK_ALERT_STORE,
    STK_ALERT_CLOCK,
    STK_ALERT_MAX
};

struct stk_alert_about {
    const char *name, *severity, *unit, *help;
};
extern const struct stk_alert_about stk_alert_table[STK_ALERT_MAX];

#define STK_ALERTS_MAX 100u                  /* at a time; more are not taken */
#define STK_ALERT_SHOWN (86400 * STK_SECOND) /* how long one that is over is shown */

struct stk_alert_seen { /* a condition that holds now */
    enum stk_alert_kind kind;
    stk_time since;   /* when it began, where that is known; 0: now */
    const char *of;   /* what it is about: "job 12"; "": the whole */
    const char *text; /* a sentence */
    uint32_t job;     /* 0: none */
    const char *node; /* "": none; as tenant */
    int32_t gpu;      /* -1: none */
    const char *tenant;
};

struct stk_alert {
    enum stk_alert_kind kind;
    char of[160], text[400], node[80], tenant[80];
    uint32_t job;
    int32_t gpu;
    uint64_t id;
    stk_time since, seen;     /* it holds since; it was seen last */
    stk_time fired, resolved; /* 0: not yet */
    bool told, told_end;      /* or being told */
    bool sending;             /* what it is now is being told */
};

struct stk_alerts {
    struct stk_alert *list;
    uint32_t n, cap;
    uint64_t next_id;
    bool changed;  /* something that is kept */
    bool reworded; /* the text of one that fires: to be shown again */
};

struct stk_alert_rule {
    bool on;
    stk_time hold; /* before it is said */
};

void stk_alerts_done(struct stk_alerts *a);

/* Since when a condition holds that has been said and is not over; 0: there is none. */
stk_time stk_alerts_since(const struct stk_alerts *a, enum stk_alert_kind kind, const char *of);
/* The time has jumped: what holds and is not over has held as long as before. */
void stk_alerts_skip(struct stk_alerts *a, stk_time by);
/* A condition holds at this look. A condition of the whole ("of" is "") may be about another job
 * than at the look before: text, job, node, GPU and tenant are those of the last look. */
void stk_alerts_see(struct stk_alerts *a, const struct stk_alert_seen *s, stk_time now);
/* The look is over: what was not seen for 'calm' is over. Returns how many began or ended. */
uint32_t stk_alerts_look(struct stk_alerts *a, const struct stk_alert_rule rules[STK_ALERT_MAX],
                         stk_time calm, stk_time now);

/* Marks what nobody was told of as being sent: [{...}], new reference; NULL: nothing. */
json_t *stk_alerts_send(struct stk_alerts *a);
/* ... it was sent, or not. */
void stk_alerts_sent(struct stk_alerts *a, bool well);
/* There is something that nobody was told of. */
bool stk_alerts_untold(const struct stk_alerts *a);

json_t *stk_alert_show(const struct stk_alert *x);
json_t *stk_alerts_show(const struct stk_alerts *a); /* those that fire first */

/* To be kept over restarts. Reading takes what is whole, and what is not is passed over. */
json_t *stk_alerts_save(const struct stk_alerts *a);
void stk_alerts_load(struct stk_alerts *a, const json_t *saved, stk_time now);

#endif
