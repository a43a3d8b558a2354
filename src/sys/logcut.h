/* SPDX-License-Identifier: Apache-2.0 */
/* logcut.h - a log that has grown beyond its cap loses its middle and stays text: its first bytes,
 * one line that says what was left out, its last bytes.
 *
 *     ... last whole line\n
 *     [stoker: the log reached its size limit, left out:   1234567 bytes, from byte 262100 on]   \n
 *     first whole line of the rest ...
 *
 * The number stands at byte 'head' of the file, whatever the lines around it: so the line is found
 * without a search, and a middle that grows is replaced in one step of the file system.
 *
 * Offsets in a job's output are those of a file without a cut ("logical"): what comes after the cut
 * keeps its offset when more is left out. */
#ifndef STK_SYS_LOGCUT_H
#define STK_SYS_LOGCUT_H

#include <stdbool.h>
#include <stdint.h>

#define STK_LOGCUT_DEFAULT_MIB 1024 /* log_max_mib of jobs that do not say */

struct stk_logcut {
    uint64_t at;   /* bytes of the file from here... */
    uint64_t next; /* ... to here are the line */
    uint64_t lost; /* bytes of output that it stands for, from logical offset 'at' on; 0: no cut */
};

/* What the file behind a readable descriptor has at 'head'. */
void stk_logcut_find(int fd, uint64_t head, struct stk_logcut *ret);

static inline uint64_t stk_logcut_to_file(const struct stk_logcut *c, uint64_t logical)
{
    return c->lost == 0 || logical < c->at ? logical
           : logical < c->at + c->lost     ? c->at
                                           : logical - c->at - c->lost + c->next;
}

static inline uint64_t stk_logcut_to_logical(const struct stk_logcut *c, uint64_t in_file)
{
    return c->lost == 0 || in_file <= c->at ? in_file
           : in_file < c->next              ? c->at
                                            : in_file - c->next + c->at + c->lost;
}

enum stk_logcut_when {
    STK_LOGCUT_RUNS,  /* others append to the file */
    STK_LOGCUT_OVER,  /* our processes do not any more; others may */
    STK_LOGCUT_ALONE, /* no process does */
};

/* Cuts a log of more than 'cap' bytes down to at most that: the first 'head' stay, which is a
 * multiple of 64 KiB, and the newest. 'fd' is writable; unless it is RUNS, it is closed. While
 * others append, the file system must be able to take a range out of the file; where it cannot,
 * that range is given back and reads as zeros until no process does any more. 0: the log is as it
 * should be; -EAGAIN: another process has it locked; others: it is as it was. */
int stk_logcut_make(int fd, uint64_t head, uint64_t cap, enum stk_logcut_when when);

#endif
