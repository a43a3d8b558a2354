/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the daemon's configuration file, YAML. docs/config.md describes the keys; the table
 * they come from is stk_config_keys. */
#ifndef STK_CONFIG_CONFIG_H
#define STK_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "drive/setup.h"
#include "model/demand.h"
#include "teams/teams.h"

#define STK_CONFIG_MAX_FILE ((size_t)262144) /* bytes */
#define STK_CONFIG_MAX_LIST 1024u            /* names in a list */
#define STK_CONFIG_NO_GPUS UINT32_MAX        /* virtual_gpus was not said */
#define STK_CONFIG_MAX_NODES 4096u
#define STK_CONFIG_MAX_KEYS 128u

/* Strings are NULL where nothing was said. */
struct stk_config {
    char *listen, *socket, *state, *rules;
    uint64_t virtual_gpus, virtual_nodes;
    uint64_t engine; /* 0 local, 1 slurm */
    struct {
        char *conf, *gpu_type, **partitions;
        char **accounts, **qos; /* "name=value" */
    } slurm;
    struct {
        char *bundle, *order, *backfill, *place, *preempt;
        char *params[STK_MAX_PARAMS]; /* "k=v" */
        uint32_t n_params;
        uint64_t predict; /* 0 or 1 */
    } policy;
    struct stk_config_amounts {
        char *names[STK_MAX_RESOURCES];
        uint32_t amounts[STK_MAX_RESOURCES];
        uint32_t n;
    } resources;
    char **admins, **operators, **hosts; /* end with NULL; NULL: none */
    struct {
        uint64_t age_s, bytes; /* 0: no bound */
    } retention;
    struct {
        uint64_t step_s, bytes; /* of measurements; for those of 15 minutes */
    } series;
    struct {
        uint64_t gpu_hour, kwh; /* millionths of the currency; 0: not known */
        char *currency;
    } cost;
    struct { /* 0: off */
        uint64_t idle_s, wait_s, gpu, foreign_s, preemptions, quota_s, store_s, clock_s;
        char *webhook, *command;
    } alerts;
    struct {
        uint64_t foreign;       /* 0 block, 1 pack, 2 ignore */
        uint64_t idle_s;        /* a foreign process that did nothing for so long does not count */
        uint64_t pack_mib;      /* memory that must be left beside foreign processes */
        uint64_t quiet_s;       /* a GPU that had an error is used again after this; 0: never */
        uint64_t interval_ms;   /* between two looks */
        uint64_t mem_action;    /* a job takes more GPU memory than its part has: 0 stop, 1 warn */
        uint64_t mem_slack_mib; /* ... by more than this */
        uint64_t quantum_s;     /* of turns on a shared GPU */
        uint64_t switch_pct;    /* of the time may go into switching between them */
        uint64_t share;         /* of parts, for jobs that say nothing: 0 auto, 1 none, 2 mps */
    } gpus;
    struct {
        uint64_t warn_s, suspend_s, end_s; /* for jobs that say nothing; 0: never */
        uint64_t shell_warn_s, shell_suspend_s, shell_end_s; /* likewise, interactive ones */
    } idle;
    struct {
        uint64_t jobs, jobs_per_user, schedules_per_user, tokens_per_user, sessions_per_user;
    } limits;
    struct {
        uint64_t cpus; /* millionths; 0: none */
    } defaults;
    struct {
        uint64_t idle_s, age_s; /* 0: no bound */
    } sessions;
    struct {
        char *cert, *key;
    } tls;
    struct stk_teams *teams; /* what is built in, where nothing was said; NULL: out of memory */
    uint64_t insecure;       /* 0 or 1 */
    uint64_t bind_cpus;      /* likewise */
    /* Where the values stand. */
    char *file;                    /* NULL: there is no file */
    int line[STK_CONFIG_MAX_KEYS]; /* of each key of the table; 0: the file does not say it */
    int param_line[STK_MAX_PARAMS];
};

/* What holds when there is no file. */
void stk_config_init(struct stk_config *c);
void stk_config_done(struct stk_config *c); /* zeroed structs are fine */

/* "stoker.yaml:7: policy.bundle: there is no bundle "fare"; did you mean "fair"?" On failure *c is
 * untouched. */
int stk_config_load(const char *path, struct stk_config *c, struct stk_err *err);
int stk_config_read(const char *path, int take_fd, struct stk_config *c, struct stk_err *err);
int stk_config_parse(const char *name, const char *text, size_t len, struct stk_config *c,
                     struct stk_err *err);
/* The policies it asks for. */
int stk_config_setup(const struct stk_config *c, struct stk_setup *ret, struct stk_err *err);

/* ---- where.c: which line a refusal is about ---- */

/* Line of a key; 0: the file does not say it. */
int stk_config_line(const struct stk_config *c, const char *path);
/* The value is another than the file says. */
void stk_config_forget_line(struct stk_config *c, const char *path);
/* "stoker.yaml:7: listen: what"; where the file does not say it: "listen: what". -EINVAL. */
int stk_config_refuse(const struct stk_config *c, const char *path, const char *what,
                      struct stk_err *err);
/* Adds file and line to a sentence of the policies or of the core: the line of the
 * tenant or queue that it begins with, of a parameter that it names, or of the policy. */
int stk_config_refuse_policy(const struct stk_config *c, const char *what, struct stk_err *err);

/* ---- the table ---- */

enum stk_config_type {
    STK_CONFIG_TEXT,
    STK_CONFIG_NUMBER,
    STK_CONFIG_SECONDS, /* 90, 90s, 30m, 12h, 30d, 2w */
    STK_CONFIG_BYTES,   /* 4096, 512M, 20G */
    STK_CONFIG_DECIMAL, /* 2.5; kept in millionths */
    STK_CONFIG_BOOL,
    STK_CONFIG_WORD, /* one of 'words', kept as its place among them */
    STK_CONFIG_NAMES,
    STK_CONFIG_POLICY, /* a name out of a registry: 'words' says of which */
    STK_CONFIG_PARAMS,
    STK_CONFIG_PAIRS,   /* a list of "name=value" */
    STK_CONFIG_AMOUNTS, /* whole numbers by name */
    STK_CONFIG_TEAMS    /* read by src/teams */
};

struct stk_config_key {
    const char *path; /* "policy.bundle"; NULL: end of the table */
    enum stk_config_type type;
    size_t offset; /* in struct stk_config */
    const char *words;
    uint64_t max;
    const char *def; /* as shown; "" : none */
    const char *help;
};
extern const struct stk_config_key stk_config_keys[];
const char *stk_config_type_name(enum stk_config_type t);
/* The table as Markdown, for docs/config.md and --help-config. */
void stk_config_print_keys(FILE *f);

/* ---- values ---- */

/* 0 or -EINVAL with a sentence; 's' need not be NUL terminated. */
int stk_config_set(struct stk_config *c, const struct stk_config_key *k, const char *s, size_t len,
                   struct stk_err *err);
int stk_config_add_name(struct stk_config *c, const struct stk_config_key *k, const char *s,
                        size_t len, struct stk_err *err);
/* A name and its value, of keys that have such: neither need be NUL terminated. */
struct stk_config_pair {
    const char *name, *s;
    size_t name_len, len;
};
int stk_config_add_pair(struct stk_config *c, const struct stk_config_key *k,
                        const struct stk_config_pair *p, struct stk_err *err);

#endif
