/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - what the daemon says over HTTP: the routes, and what is behind them. docs/spec/api.md
 * has it from the outside. */
#ifndef STK_API_API_H
#define STK_API_API_H

#include <jansson.h>
#include <uv.h>

#include "api/http.h"
#include "base/err.h"
#include "live/live.h"

struct stk_api;

struct stk_api_logins {
    uint64_t idle_s, age_s; /* of sessions: that are not used; of all; 0: no bound */
    uint64_t tokens_per_user, sessions_per_user;
};

struct stk_api_config { /* borrowed for life */
    uv_loop_t *loop;
    struct stk_live *live;
    const char *version, *state_dir;
    bool virtual_gpus;
    bool slurm;                                   /* Slurm runs the jobs */
    bool own_user_only;                           /* as in stk_http_config */
    const char *const *admins, *const *operators; /* user names, end with NULL; may be NULL */
    const char *const *hosts;                     /* as in stk_http_config */
    const char *whatif;                           /* path of stoker-whatif; NULL: it is not there */
    const json_t *gpus; /* the table of "stoker-gpu list", for names and uuids; may be NULL */
    json_t *topology;   /* how this machine is built, for /v1/topology; may be NULL */
    /* Optional: adds what the engine knows of a job that has not ended ("pids", "attach"). */
    void (*detail)(void *ctx, stk_job_number number, json_t *job);
    /* Optional, where the engine has numbers of its own (Slurm's): that of a job ("1234_5"; "": it
     * has none), which may be looked for in its description if 'deep'; and a job by such a number,
     * of an array its first element (0: none). */
    void (*theirs)(void *ctx, const struct stk_record *rec, bool deep, char *buf, size_t size);
    stk_job_number (*by_theirs)(void *ctx, uint32_t theirs);
    /* Optional: accounts and QOS of the engine's own, and what they mean here; NULL: it has none.
     */
    json_t *(*groups)(void *ctx);
    /* Optional: where it stands among those who share its GPU in turns; NULL: it does not. */
    json_t *(*turn)(void *ctx, stk_job_number number);
    /* Optional: turns that were given, and the time that went into switching. */
    void (*turns)(void *ctx, uint64_t *ret_turns, double *ret_switch_s);
    /* Optional: {"pid", "name"?, "gpus"?}: makes a job of a process. < 0: refused, not answered. */
    int (*adopt)(void *ctx, const struct stk_who *who, json_t *body, stk_reply_fn reply,
                 void *reply_ctx, struct stk_err *err);
    /* Optional: adds what was measured of a job and is not in the store yet. */
    void (*usage)(void *ctx, stk_job_number number, struct stk_usage *u);
    /* Optional: notable things, one line each. */
    void (*log)(void *ctx, const char *line);
    void (*warn)(void *ctx, const char *line); /* a line that operators should see */
    void *ctx;
};

int stk_api_new(const struct stk_api_config *cfg, struct stk_api **ret_api, struct stk_err *err);
/* The server, to open its doors. It belongs to the api. */
struct stk_http *stk_api_http(struct stk_api *api);
/* The role that the configuration gives this user. */
enum stk_role stk_api_role(struct stk_api *api, uint32_t uid);
/* Who is what, and our names, after the configuration was read again; borrowed as in the config. */
void stk_api_set_names(struct stk_api *api, const char *const *admins, const char *const *operators,
                       const char *const *hosts);
/* How long browsers stay logged in, and how many there may be. Until this is said: none. */
void stk_api_set_logins(struct stk_api *api, const struct stk_api_logins *l);
/* To be called after every turn: answers those who wait, feeds those who listen. */
void stk_api_after_turn(struct stk_api *api);
/* The latest line of "stoker-gpu watch". */
void stk_api_take_sample(struct stk_api *api, json_t *take_sample);
/* What is measured over time; borrowed, NULL: nothing. */
struct stk_series;
void stk_api_set_series(struct stk_api *api, const struct stk_series *series);
/* What things cost: in millionths of the currency, 0: not known. */
struct stk_api_cost {
    uint64_t gpu_hour, kwh;
    const char *currency; /* borrowed; NULL: none */
};
void stk_api_set_cost(struct stk_api *api, const struct stk_api_cost *cost);
/* {"alerts", "rules", "idle_gpus"}, for /v1/alerts and /metrics. */
void stk_api_set_alerts(struct stk_api *api, json_t *take);
/* An event of that type for those who listen. */
void stk_api_tell_of(struct stk_api *api, const char *type, json_t *take);
/* Tells those who listen to events something about a job that is not in the journal. */
void stk_api_tell(struct stk_api *api, stk_job_number number, const char *type,
                  const char *sentence);
/* What is wrong with the daemon ("cannot write to the disk"); NULL: nothing. Shown by health. */
void stk_api_set_trouble(struct stk_api *api, const char *sentence);
/* A new link that logs a browser in as the daemon's own user, once; "" when not listening on TCP.
 */
void stk_api_login_link(struct stk_api *api, char *buf, size_t size);

void stk_api_stop(struct stk_api *api);
/* Its memory goes when the loop has run once more. NULL is a no-op. */
void stk_api_free(struct stk_api *api);

/* The route table, for tests. */
extern const struct stk_route stk_api_routes[];
/* The OpenAPI document made from it; a new reference. */
json_t *stk_api_document(const struct stk_route *routes, const char *version);

#endif
