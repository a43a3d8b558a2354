/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - JSON is looked at while it arrives, so that what it would cost is known before any of it
 * is made.
 *
 * The scanner is fed with the pieces of a body. It checks the structure (brackets, commas, colons,
 * strings) and counts bytes, values, depth and job descriptions; over a limit it stops. Whether
 * numbers, words and characters are right is left to the parser that comes after it.
 *
 * A body {"jobs": [...]} is cut: where each description begins and ends is kept, so that they can
 * be parsed one by one.
 */
#ifndef STK_API_SCAN_H
#define STK_API_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "live/many.h"

#define STK_SCAN_MAX_DEPTH 64u

struct stk_scan_limits {
    size_t bytes;
    uint32_t values; /* of the body; of a body that is cut: of each description */
    uint32_t depth;  /* at most STK_SCAN_MAX_DEPTH */
    uint32_t jobs;   /* descriptions; 0: nothing is cut */
    const char *who; /* whose limits they are: "users" */
};

struct stk_scan {
    struct stk_scan_limits limits;
    int state;
    bool is_key, escaped, cut, ended;
    uint32_t depth, values, members; /* members: of the outermost object */
    uint64_t objects;                /* bit i: level i is an object, else a list */
    size_t at;                       /* bytes seen */
    uint32_t line, column;
    char key[8]; /* the outermost one at hand */
    uint32_t key_len;
    struct stk_cut *jobs;
    uint32_t n_jobs, cap_jobs;
    int failed;
};

void stk_scan_init(struct stk_scan *s, const struct stk_scan_limits *limits);
void stk_scan_done(struct stk_scan *s);
/* More of the body. 0; -EFBIG: it is over a limit; -EINVAL: it is not JSON; -ENOMEM. After a
 * failure every call fails alike. */
int stk_scan_feed(struct stk_scan *s, const char *data, size_t len, struct stk_err *err);
/* That was all. -EINVAL: it is not complete. */
int stk_scan_end(struct stk_scan *s, struct stk_err *err);

#endif
