/* SPDX-License-Identifier: Apache-2.0 */
/* ack.h - inside the store: what was acknowledged, in a file of its own.
 *
 * SQLite reads its WAL up to the first frame that is damaged, and drops the rest without a word.
 * So the store writes down, in `stoker.ack`, how long the WAL was when the last commit returned;
 * opening compares, and refuses a store that has less. docs/spec/store.md has the rules. */
#ifndef STK_STORE_ACK_H
#define STK_STORE_ACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define STK_ACK_FILE "stoker.ack"

enum stk_ack_state {
    STK_ACK_ANY,  /* nothing is known: a new store, or one that was restored or accepted */
    STK_ACK_WAL,  /* acknowledged commits are in the WAL: its first 'frames' frames are needed */
    STK_ACK_CLEAN /* all of that WAL is in the database, too: it is not needed */
};

struct stk_ack {
    enum stk_ack_state state;
    uint32_t salt[2]; /* which WAL: SQLite draws a new pair whenever it begins anew */
    uint32_t frames;
    uint32_t counter; /* the database's change counter when its WAL was last emptied */
    uint64_t seq;     /* the newest event */
    uint64_t turn;    /* counts writes of the file: the higher of its two slots is the newer */
};

struct stk_wal { /* as it lies there */
    bool whole;  /* it has a header that is right */
    bool gap;    /* frames of a later commit follow after the last that is right */
    uint32_t salt[2];
    uint32_t frames; /* that are right, from the first on */
    uint64_t bytes;  /* of the file; 0: there is none */
};

struct stk_wal_scan {                       /* what to read of it */
    void (*page)(void *ctx, uint32_t page); /* told of each frame that is right; may be NULL */
    void *ctx;
    uint32_t enough; /* frames; 0: all, and what comes after a gap */
};

/* The newer slot. -ENOENT: there is no file; -EUCLEAN: neither slot is whole. */
int stk_ack_read(int dir_fd, struct stk_ack *ret);
/* Opens the file to be written, and makes it when it is not there. A descriptor, or -Exxx. */
int stk_ack_open(int dir_fd);
/* Into the older slot; 'turn' is counted up. 'flush': and onto the disk. */
int stk_ack_write(int fd, struct stk_ack *ack, bool flush);

/* Reads the WAL as SQLite does when it recovers it. */
int stk_wal_read(int dir_fd, const char *name, const struct stk_wal_scan *scan,
                 struct stk_wal *ret);
/* The salts of the WAL that is open as 'fd'. */
int stk_wal_salt(int fd, uint32_t ret_salt[2]);

#endif
