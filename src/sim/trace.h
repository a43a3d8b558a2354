/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - a workload in memory: what readers and the generator produce and the simulator replays.
 *
 * One flat array of jobs in order of arrival (stable: equal submit times keep file order). Names
 * are interned per kind in string tables. Reading is the only thing that can fail; a trace that was
 * read is valid: every time >= 0 and <= STK_MAX_DURATION, gpus <= STK_MAX_GPUS, duration >= 0.
 */
#ifndef STK_SIM_TRACE_H
#define STK_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/job.h"
#include "sys/names.h"

struct stk_speed_table;

/* A job id as the trace writes it. A plain decimal number below 2^63 is kept as a number; any
 * other text is interned and stored as STK_TRACE_ID_NAME | number in trace->ids. */
#define STK_TRACE_ID_NAME (UINT64_C(1) << 63)

struct stk_trace_job {
    uint64_t id;
    stk_time submit;
    stk_time duration;  /* how long it really runs, >= 0 */
    stk_time estimate;  /* what the scheduler is told, 0: the true duration */
    uint64_t gpu_types; /* bit per trace->gpu_types entry; STK_ANY_GPU_TYPE */
    uint32_t
        types_text; /* in trace->types_texts, + 1: gpu_types as the trace wrote it; 0: nothing */
    uint32_t gpus;  /* per task */
    uint32_t tasks; /* 0: one task that may be cut over nodes (the demand's 'cut') */
    uint32_t cpu_milli;   /* per task */
    uint32_t mem_mib;     /* per task */
    uint32_t gpu_milli;   /* 0: whole GPUs; else thousandths of the one GPU of each task */
    uint32_t gpu_mem_mib; /* on each GPU, or of the part; 0: does not matter */
    uint32_t share_max; /* of whole GPUs: 2: one other job may have them with it; of parts: at most
                           so many on a GPU; 0: no wish */
    uint32_t slo_milli; /* company must leave it so many thousandths of its speed; 0: no wish */
    uint32_t mig;       /* 0: no MIG instance; else its profile, and gpu_milli is its milli */
    uint32_t subgroup;  /* tasks of one; 0: there are none */
    uint32_t per_node;  /* tasks on each node that is used; 0: as they fit */
    uint8_t level, prefer, subgroup_level; /* enum stk_level; 0: no wish */
    bool exclusive;                        /* nobody else on its nodes */
    uint32_t tenant;                       /* in trace->tenants */
    uint32_t group; /* in trace->groups: virtual cluster, partition; what --split-by vc splits */
    int32_t priority;
    uint32_t first_dep; /* in trace->deps */
    uint16_t n_deps;
    uint8_t kind;  /* enum stk_job_kind */
    uint8_t tier;  /* enum stk_tier */
    uint8_t cause; /* how it ends: STK_CAUSE_OK, FAILED, CANCELLED... */
    bool held;
    uint32_t array; /* index + 1 of the array's first job in jobs[]; 0: none */
    uint32_t array_index;
    stk_time begin;     /* not before; 0: at once */
    uint64_t steps;     /* where speeds are known, the work; 0: it is the duration */
    uint32_t speed_row; /* in trace->speeds */
    uint32_t queue;     /* in trace->queues, + 1; 0: it names none */
    uint32_t user;      /* in trace->users, + 1; 0: its tenant */
    uint32_t extra;     /* in trace->extras, + 1; 0: it has none */
    stk_time waited;    /* how long it really waited, all its pauses together; if it is ... */
    bool recorded;      /* ... known */
};

struct stk_trace_extra {                  /* of the few jobs that have them */
    uint32_t resource[STK_MAX_RESOURCES]; /* per task, by number in trace->resources */
    uint32_t n_speeds;
    uint8_t speed_type[STK_MAX_SPEEDS]; /* in trace->gpu_types; on others it has speed 1 */
    uint16_t speed_milli[STK_MAX_SPEEDS];
    stk_time deadline;   /* it should have ended by then; 0: none */
    stk_time min_run;    /* as in stk_terms */
    stk_time checkpoint; /* it reports one each time it has run so long; 0: as the simulator says */
    uint32_t keep_group; /* in trace->keep_groups, + 1: of these so many stay up; 0: none */
    uint32_t keep_min;   /* so many */
    uint32_t reservation;          /* in trace->reservations, + 1; 0: it names none */
    uint32_t nodes;                /* in trace->node_lists, + 1; 0: any */
    bool movable, no_sleep, plain; /* as in stk_terms */
    bool no_save;                  /* warned, it does not save */
};

struct stk_trace_dep {
    uint32_t on; /* index in jobs[]; smaller than the depending job's own */
    enum stk_dep_type type;
};

struct stk_trace {
    struct stk_trace_job *jobs;
    uint32_t n_jobs, cap_jobs;
    struct stk_trace_dep *deps;
    uint32_t n_deps, cap_deps;
    struct stk_trace_extra *extras;
    uint32_t n_extras, cap_extras;
    struct stk_names ids, tenants, groups, gpu_types, types_texts, resources, queues, users,
        keep_groups, reservations, node_lists;
    uint32_t n_skipped;             /* malformed lines left out (--lenient) */
    struct stk_err first_skip;      /* what was wrong with the first of them, with file:line */
    struct stk_speed_table *speeds; /* measured, of its jobs (sim/speeds.h); NULL: none */
    uint32_t n_left_out; /* rows that were no jobs with GPUs, of formats that have such */
    bool times_in_trace; /* submit times are the trace's own (always true for readers) */
};

#define STK_TRACE_MAX_JOBS 100000000u
#define STK_TRACE_MAX_LINE 65536u
#define STK_TRACE_MAX_NAMES 4000000u /* of one kind; gpu_types: STK_MAX_GPU_TYPES */
#define STK_TRACE_MAX_NAME_LEN STK_MAX_NAME_LEN

void stk_trace_done(struct stk_trace *t); /* NULL members are fine */

/* Appends a zeroed job; NULL when out of memory or over STK_TRACE_MAX_JOBS. */
struct stk_trace_job *stk_trace_push(struct stk_trace *t);

/* Appends a dependency to those of the job being built; NULL when out of memory. */
struct stk_trace_dep *stk_trace_push_dep(struct stk_trace *t);

/* Keeps an extra; its number + 1, or 0 when out of memory. */
uint32_t stk_trace_push_extra(struct stk_trace *t, const struct stk_trace_extra *x);

/* Puts the jobs in order of submit time, stable, and keeps dependencies and arrays pointing at the
 * same jobs. Costs one pass when they are in order already. 0 or -ENOMEM with nothing changed. */
int stk_trace_sort(struct stk_trace *t);

struct stk_trace_options {
    const char *format;      /* NULL: detect; else a name from stk_trace_formats[] */
    bool lenient;            /* skip malformed lines and count them */
    bool untimed;            /* times are not read, and need not be there */
    const char *throughputs; /* path of a table of speeds, for traces that count steps; NULL:
                                simulation_throughputs.json beside the trace */
};

/* Appends the jobs of a file ("-": standard input; .gz is unpacked) to 't', then puts all jobs in
 * order of submit time, stable. 0, -EINVAL with "file:line: what was expected" in err, or the
 * errno of the file. On failure 't' may hold some jobs but is still valid to free. */
int stk_trace_read(struct stk_trace *t, const char *path, const struct stk_trace_options *o,
                   struct stk_err *err);

/* The same over a buffer, for tests and fuzzers. 'name' is used in messages. */
int stk_trace_parse(struct stk_trace *t, const char *name, const char *data, size_t len,
                    const struct stk_trace_options *o, struct stk_err *err);

/* One trace format: one file, one line in the table in trace_formats.c. */
struct stk_trace_lines;
struct stk_trace_format {
    const char *name; /* as in --format */
    const char *help;
    /* Looks at the first bytes; true when this is its format. Pure. */
    bool (*detect)(const char *data, size_t len);
    /* Parses the whole buffer into 't'. */
    int (*parse)(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err);
};
extern const struct stk_trace_format *const stk_trace_formats[]; /* NULL terminated */

/* Writes the trace in our own JSON Lines format. */
int stk_trace_write_jsonl(const struct stk_trace *t, const char *path, struct stk_err *err);

#endif
