/* SPDX-License-Identifier: Apache-2.0 */
/* handlers.h - what the handlers share: the api's own state, and the handlers by name for the route
 * table in routes.c. */
#ifndef STK_API_HANDLERS_H
#define STK_API_HANDLERS_H

#include "api/api.h"
#include "figures/figures.h"
#include "model/reason.h"

#define STK_API_PAGE 100u                          /* rows of a list, when not said */
#define STK_API_MAX_PAGE 1000u                     /* ... at most */
#define STK_API_MAX_TIME (INT32_MAX * UINT64_C(4)) /* seconds since 1970 that a query may say */

struct stk_looks;
struct stk_slices;
struct stk_remedies;
struct stk_wait; /* wait.c: a request that waits for a job */
struct stk_feed; /* events.c: a stream of events */
struct stk_tail; /* log.c: a log that is followed */
struct stk_wire;
struct stk_line;     /* line.c: places of waiting jobs */
struct stk_question; /* whatif.c: one that is not answered yet */

struct stk_user {
    uint32_t uid, gid;
    uint64_t until_ms; /* 0: not set */
    char name[64];
};

struct stk_api {
    struct stk_api_config cfg;
    struct stk_http *http;
    uv_timer_t *tick; /* runs while somebody waits or listens */
    uv_timer_t *feed_timer;
    uint64_t fed_ms; /* when listeners were woken last */
    struct stk_wait *waits;
    struct stk_feed *feeds;
    struct stk_tail *tails;
    struct stk_feed_text { /* events (from, to] as they are sent; most feeds want the same */
        uint64_t from, to;
        char *text;
        size_t len;
    } feed_text;
    struct { /* of the array that was looked at last */
        stk_job_number array;
        uint32_t at_once;
    } array_limit;
    struct stk_slices *listings;    /* listing.c; NULL: not asked for yet */
    struct stk_looks *looks;        /* look.c; NULL: not asked for yet */
    struct stk_slices *whys;        /* whys.c; NULL: not asked for yet */
    struct stk_leases leases;       /* of the job that is looked at */
    double allocated_gpu_s;         /* the largest that /metrics has said */
    struct stk_line *line;          /* NULL: not asked for yet */
    struct stk_question *questions; /* in line; only the first may run */
    int64_t last_question;          /* its id; 0: not looked up yet */
    uint32_t counting;              /* baseline.c: requests that wait for figures */
    json_t *sample;
    const struct stk_series *series;
    json_t *alerts;
    struct stk_api_cost cost;
    struct stk_api_reasons { /* why jobs wait (metrics.c) */
        uint64_t until_ms;   /* looked at again then */
        uint64_t n[STK_WHY_MAX + 1];
        double oldest_s; /* how long the oldest has waited */
    } reasons;
    char trouble[256];
    struct stk_api_logins logins;
    struct stk_code { /* of a login link (login.c) */
        uint8_t hash[32];
        struct stk_who who;
        struct stk_pass pass; /* made with this */
        uint64_t until_ms;    /* 0: none */
    } codes[64];
    struct stk_user users[64];
};

/* users.c */
int stk_api_identify(void *ctx, const struct stk_peer *peer, struct stk_who *ret,
                     struct stk_pass *ret_pass);
void stk_api_fill_who(struct stk_api *a, uint32_t uid, uint32_t gid, struct stk_who *ret);
/* A new random one that begins so. */
int stk_api_secret(const char *prefix, char *buf, size_t size, struct stk_err *err);

/* pass.c: until when a session lasts that is used now. */
stk_time stk_pass_until(const struct stk_api *a, stk_time now, stk_time ends);
/* Writes down that it was used, if that was not done lately; moves the end of a session. */
void stk_pass_note_use(struct stk_api *a, struct stk_token *t, stk_time now);
void stk_pass_tick(struct stk_api *a);    /* ends what came with something that has expired */
void stk_pass_changed(struct stk_api *a); /* ends what came with something that was deleted */
/* Whether who asks may have jobs run for them; if not, the request has been answered. */
bool stk_api_may_run(struct stk_request *r);
const char *stk_role_name(uint32_t role); /* tokens.c */

/* api.c */
stk_time stk_api_now(const struct stk_api *a);   /* the scheduler's own is that of its last turn */
stk_time stk_api_ahead(const struct stk_api *a); /* of the wall clock */
void stk_api_need_tick(struct stk_api *a);
/* The {id} of the path, "12" or "12_4" (of an array); on failure the request has been answered. */
int stk_api_job_number(struct stk_api *a, struct stk_request *r, stk_job_number *ret);
/* "limit", with the usual bounds. */
int stk_api_limit(struct stk_request *r, uint32_t *ret);
/* Answers with an error of ours: -ENOENT is 404, -EBADMSG (the body breaks the schema) 400, -EINVAL
 * 422 and so on. */
void stk_api_fail(struct stk_request *r, int rc, const struct stk_err *err);
/* Runs the turn that is due, if any: the store is then free for a transaction of our own, which is
 * begun. */
int stk_api_begin(struct stk_api *a, struct stk_err *err);
/* Keeps what was done in it when rc is 0, else takes it back. rc, or why it could not be kept. */
int stk_api_end(struct stk_api *a, int rc, struct stk_err *err);
void stk_api_reply(void *ctx, int status, json_t *take_body); /* stk_reply_fn of a request */

/* metrics.c: at most so old that it does not matter. */
const struct stk_api_reasons *stk_api_reasons(struct stk_api *a);
void stk_looks_free(struct stk_api *a); /* look.c */
/* why.c: answers, with what would start the job. */
void stk_why_answer(struct stk_api *a, struct stk_request *r, stk_job_number number,
                    const struct stk_remedies *all);
void stk_line_free(struct stk_line *l); /* line.c; NULL is a no-op */

/* events.c: an event of the journal as it is shown, a new reference; NULL: it is not shown. */
json_t *stk_api_event(const struct stk_api *a, const struct stk_row *row, struct stk_wire *wire);

/* wait.c, events.c, log.c: what each does when time passes and after turns */
void stk_wait_tick(struct stk_api *a);
void stk_feed_tick(struct stk_api *a);
void stk_tail_tick(struct stk_api *a);
void stk_wait_turn(struct stk_api *a);
void stk_feed_turn(struct stk_api *a);
void stk_tail_turn(struct stk_api *a);

/* whatif.c */
void stk_api_questions_free(struct stk_api *a);
/* A question for stoker-whatif about a period; new reference. */
json_t *stk_api_ask(struct stk_api *a, const char *task, double since, double until);

/* notes.c: of a period, the latest first; NULL with a sentence */
json_t *stk_api_notes(struct stk_api *a, double since, double until, struct stk_err *err);

/* The handlers. */
typedef void stk_handler(void *ctx, struct stk_request *r);
/* what people compare with */
stk_handler stk_do_whatif_new, stk_do_whatifs, stk_do_whatif, stk_do_whatif_delete, stk_do_notes,
    stk_do_note_new, stk_do_baselines, stk_do_baseline_new, stk_do_baseline_delete,
    stk_do_baseline_compare, stk_do_policies;
stk_handler stk_do_jobs, stk_do_submit, stk_do_job, stk_do_verb, stk_do_act, stk_do_why,
    stk_do_defrag_plan, stk_do_defrag, stk_do_log, stk_do_wait, stk_do_report, stk_do_control,
    stk_do_items, stk_do_history, stk_do_nodes, stk_do_gpus, stk_do_topology, stk_do_cluster,
    stk_do_node_drain, stk_do_node_resume, stk_do_gpu_drain, stk_do_gpu_resume, stk_do_adopt,
    stk_do_tokens, stk_do_tenants, stk_do_quota, stk_do_quota_set, stk_do_reservations,
    stk_do_reserve, stk_do_unreserve, stk_do_token_new, stk_do_token_delete, stk_do_events,
    stk_do_health, stk_do_metrics, stk_do_openapi, stk_do_page, stk_do_page_js, stk_do_page_css,
    stk_do_rules, stk_do_rule, stk_do_rule_new, stk_do_rule_delete, stk_do_rule_test;
stk_handler stk_do_job_events, stk_do_login, stk_do_login_code, stk_do_logout;
/* measured */
stk_handler stk_do_alerts, stk_do_summary, stk_do_usage, stk_do_series, stk_do_metrics_jobs,
    stk_do_metrics_dcgm;

#endif
