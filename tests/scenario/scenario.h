/* SPDX-License-Identifier: Apache-2.0 */
/* scenario.h - text scenarios: a cluster, tenants and jobs, and what is expected to become of them.
 * docs/spec/scenarios.md has the language.
 *
 * parse.c makes of each scenario the files that the simulator reads (YAML, JSON Lines), so that
 * what works there works here, and a list of steps; play.c runs it in the simulator, takes the
 * steps when their time has come, and says which expectations do not hold.
 */
#ifndef STK_TESTS_SCENARIO_SCENARIO_H
#define STK_TESTS_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "model/time.h"

#define SCN_MAX_FILE (1 << 20) /* bytes */
#define SCN_MAX_LINE 500
#define SCN_MAX_JOBS 2000 /* of one scenario; so many steps and checks, too */
#define SCN_MAX_TENANTS 256
#define SCN_MAX_NAME 64
#define SCN_MAX_PARAMS 32
#define SCN_MAX_WINDOWS 64 /* reservations */
#define SCN_NONE UINT32_MAX

struct scn_text { /* grows; always ends with a NUL */
    char *s;
    size_t len, cap;
};

enum scn_verb {
    /* actions */
    SCN_CANCEL,
    SCN_HOLD,
    SCN_RELEASE,
    SCN_PRIORITY, /* number */
    SCN_SAYS,     /* time */
    SCN_NODE_DOWN,
    SCN_NODE_UP,
    SCN_EMPTY,     /* number: the node; 0: the best */
    SCN_UNRESERVE, /* window */
    /* expectations; from here on */
    SCN_RUNS,  /* number: on so many nodes; nodes: exactly these */
    SCN_WAITS, /* text: the reason */
    SCN_HELD,
    SCN_ENDED,     /* time: then; STK_NEVER_TIME: by now */
    SCN_STARTED,   /* the same for its first start */
    SCN_EVICTED,   /* now; other: for this job */
    SCN_PREEMPTED, /* number: so often by now */
    SCN_MOVED,     /* now */
    SCN_ASLEEP,    /* suspended, with its memory */
    SCN_STOPPING,  /* told to go, and still there */
    SCN_REFUSED,   /* text: in the sentence */
    SCN_QUIET,     /* nothing has moved since 'time' */
    SCN_FREE,      /* number: GPUs are free */
    SCN_IS_EMPTY,  /* number: the node */
    SCN_WINDOW,    /* window, or job: a reservation is what the text says */
    /* what is not there yet: foresee.h; from here on */
    SCN_DEADLINE, /* text: the answer; time: the earliest; number: to spare */
    SCN_WOULD,    /* text: with this it would start now */
    SCN_CLAIMS,   /* text: what it is entitled to */
    SCN_LENDS,    /* text: from and to; number: milli-GPU */
};

struct scn_step {
    uint32_t line;
    stk_time at;
    enum scn_verb verb;
    bool not ;
    uint32_t job, other; /* SCN_NONE */
    uint32_t window;     /* likewise */
    int64_t number;      /* -1: not said */
    stk_time time;
    uint64_t nodes;              /* a bit for each of the first 64 */
    char text[SCN_MAX_NAME * 2]; /* "" : not said */
};

struct scn_job {
    char name[SCN_MAX_NAME];
    uint32_t line;
};

struct scn_tenant {
    char name[SCN_MAX_NAME], parent[SCN_MAX_NAME];
    uint32_t line;
    struct scn_text keys; /* YAML */
    bool written;
};

struct scenario {
    char title[SCN_MAX_LINE];
    uint32_t line;
    char policy[5][SCN_MAX_NAME]; /* bundle, order, backfill, place, preempt; "" : not said */
    char params[SCN_MAX_PARAMS][SCN_MAX_NAME * 2];
    uint32_t n_params;
    struct scn_text cluster, tenants, queues, jobs; /* as the simulator reads them */
    uint32_t cluster_line, tenants_line;
    struct scn_text rules, windows;             /* likewise; empty: none */
    char window[SCN_MAX_WINDOWS][SCN_MAX_NAME]; /* reservations, as they stand there */
    uint32_t n_windows;
    char start[SCN_MAX_NAME], zone[SCN_MAX_NAME]; /* the date at time 0; "" : not said */
    struct scn_tenant *tenant;
    uint32_t n_tenants;
    struct scn_job *job; /* in the order of submission */
    uint32_t n_jobs, cap_jobs;
    struct scn_step *steps; /* by time, then as they stand */
    uint32_t n_steps, cap_steps;
};

/* Reads the next scenario into 's', from *io_at on, which is moved behind it. 1, 0: there is none,
 * or -EINVAL with "line N: what is wrong". Free it in every case. */
int scn_parse(const char **io_at, const char *end, uint32_t *io_line, struct scenario *s,
              struct stk_err *err);
void scn_free(struct scenario *s);

/* How many expectations did not hold; each is said on 'out' as FILE:LINE. -Exxx: it could not be
 * run, and err says why. */
int scn_play(const struct scenario *s, const char *file, FILE *out, struct stk_err *err);

/* "90s", "10m", "1h30m", "2d", "0". False: it is none. */
bool scn_time(const char *s, stk_time *ret);
const char *scn_show_time(stk_time t, char buf[32]);
/* Appends; false: no memory, or too much. */
bool scn_add(struct scn_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
