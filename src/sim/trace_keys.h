/* SPDX-License-Identifier: Apache-2.0 */
/* trace_keys.h - what trace_jsonl.c and trace_links.c share: the line that is being read, and the
 * keys of a job. */
#ifndef STK_SIM_TRACE_KEYS_H
#define STK_SIM_TRACE_KEYS_H

#include <jansson.h>

#include "sim/trace_extra.h"
#include "sim/trace_ids.h"
#include "sim/trace_lines.h"

struct stk_line_reader {
    struct stk_trace *t;
    struct stk_trace_lines *in;
    struct stk_id_map ids; /* of the jobs of this file */
    struct stk_trace_job j;
    struct stk_trace_extra x;
};

struct stk_line_key {
    const char *name;
    int (*read)(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v);
    size_t member; /* of struct stk_line_reader, where 'read' needs to be told */
    uint64_t max;
    const char *(*choice)(unsigned i);
    bool needed;
};

/* "KEY must be WANT, got V"; -EINVAL. */
int stk_line_wrong(struct stk_line_reader *r, const struct stk_line_key *k, const char *want,
                   const json_t *v);

static inline struct stk_field stk_line_text(const json_t *v)
{
    return (struct stk_field){json_string_value(v), (uint32_t)json_string_length(v)};
}

/* The keys by which jobs name themselves and each other. */
int stk_line_read_id(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v);
int stk_line_read_array(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v);
int stk_line_read_after(struct stk_line_reader *r, const struct stk_line_key *k, json_t *v);

#endif
