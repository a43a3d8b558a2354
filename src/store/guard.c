/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - compares what is there with what was acknowledged (ack.h).
 *
 * Which WAL belongs to the database SQLite says by a pair of salts: the first is drawn when a
 * process makes the file, and is one more each time that process begins the WAL anew, which it does
 * only after all of it was copied into the database. Every such copy is followed by a flushed note
 * (CLEAN), so a WAL that is found is the one of the note, or the next.
 *
 * Which database it is says its change counter, which the first commit of each WAL counts up: so
 * each copy of a WAL raises it, and a file that was put back from an older copy has a lower one.
 */
#include "store/guard.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "store/dir.h"
#include "store/schema.h"

#define WAL_FILE STK_STORE_FILE "-wal"
#define AT_COUNTER 24 /* in the database's header */
#define AT_VERSION 60
static uint32_t read_header(const struct stk_store *st, int at)
{
    unsigned char b[4] = {0};
    sqlite3_file *f = NULL;

    if (sqlite3_file_control(st->db, "main", SQLITE_FCNTL_FILE_POINTER, &f) != SQLITE_OK || !f ||
        !f->pMethods || f->pMethods->xRead(f, b, sizeof(b), at) != SQLITE_OK)
        return 0;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int tell_damage(const struct stk_wal *w, const struct stk_ack *a, struct stk_err *err)
{
    return stk_err_set(err, -EUCLEAN,
                       WAL_FILE " is damaged after page %u of %u, and the rest was acknowledged",
                       w->frames, a->frames);
}

/* After a power cut the file of what was acknowledged may say less than there was. */
static int check_gap(const struct stk_wal *w, struct stk_err *err)
{
    if (!w->gap)
        return 0;
    return stk_err_set(err, -EUCLEAN,
                       WAL_FILE " is damaged after page %u, and later commits follow", w->frames);
}

/* Commits that were acknowledged are in this WAL. When it is gone, and the database has its first
 * commit, another program (sqlite3) has copied it and closed the database: that is no loss. */
static int check_needed(const struct stk_store *st, const struct stk_ack *a,
                        const struct stk_wal *w, struct stk_err *err)
{
    const char *what = w->bytes == 0 ? "gone" : "damaged";

    if (w->bytes == 0 && (int32_t)(read_header(st, AT_COUNTER) - a->counter) > 0)
        return 0; /* stk_guard_check_seq() has a look, too */
    if (w->whole && (w->salt[0] != a->salt[0] || w->salt[1] != a->salt[1]))
        what = "not the latest";
    else if (w->whole && w->frames >= a->frames)
        return check_gap(w, err);
    else if (w->whole)
        return tell_damage(w, a, err);
    return stk_err_set(err, -EUCLEAN, WAL_FILE " is %s, and acknowledged changes were in it", what);
}

/* All of it is in the database. SQLite must not read a part of it, which would be older. */
static int cut_wal(const struct stk_store *st, struct stk_err *err)
{
    int fd = openat(st->dir_fd, WAL_FILE, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 || ftruncate(fd, 0) < 0 ? -errno : 0;

    if (fd >= 0)
        (void)close(fd);
    return rc < 0 ? stk_err_set(err, rc, "%.120s/" WAL_FILE ": %s", st->dir, strerror(-rc)) : 0;
}

static int check_wal(const struct stk_store *st, const struct stk_ack *a, struct stk_err *err)
{
    struct stk_wal w;
    int rc = stk_wal_read(st->dir_fd, WAL_FILE, &(struct stk_wal_scan){.page = NULL}, &w);

    if (rc < 0)
        return stk_err_set(err, rc, "%.120s/" WAL_FILE ": %s", st->dir, strerror(-rc));
    if (a->state == STK_ACK_WAL)
        return check_needed(st, a, &w, err);
    if ((!a->salt[0] && !a->salt[1]) || !w.whole || w.frames == 0)
        return 0; /* any WAL is right; or SQLite does not read it */
    if (w.salt[0] == a->salt[0] && w.salt[1] == a->salt[1])
        return w.frames < a->frames && !st->read_only ? cut_wal(st, err) : 0;
    if (w.salt[0] == a->salt[0] + 1) /* begun anew, by commits of which the file was not told yet */
        return check_gap(&w, err);
    return stk_err_set(err, -EUCLEAN, WAL_FILE " does not belong to the database beside it");
}

int stk_guard_check(struct stk_store *st, struct stk_err *err)
{
    struct stk_ack a = {0};
    int rc = stk_ack_read(st->dir_fd, &a);

    if (rc == -ENOENT && read_header(st, AT_VERSION) < STK_SCHEMA_ACK)
        return 0; /* of an older stoker, which had none */
    if (rc < 0)
        return stk_err_set(err, -EUCLEAN,
                           STK_ACK_FILE " is %s: without it nobody knows whether all that was "
                                        "acknowledged is there",
                           rc == -ENOENT ? "gone" : "damaged");
    st->ack = a;
    if (a.state == STK_ACK_ANY)
        return 0;
    if ((int32_t)(read_header(st, AT_COUNTER) - a.counter) < 0)
        return stk_err_set(err, -EUCLEAN,
                           STK_STORE_FILE " is damaged, or older than what was acknowledged");
    return check_wal(st, &a, err);
}

int stk_guard_check_seq(const struct stk_store *st, struct stk_err *err)
{
    if (st->ack.state == STK_ACK_ANY || st->next_seq > st->ack.seq)
        return 0;
    return stk_err_set(err, -EUCLEAN,
                       "events %" PRIu64 " to %" PRIu64 " were acknowledged and are missing",
                       st->next_seq, st->ack.seq);
}

/* Not knowing is no reason to stop: the file then says less than there is. */
static void note(struct stk_store *st, bool flush)
{
    if (st->ack_fd >= 0)
        (void)stk_ack_write(st->ack_fd, &st->ack, flush);
    st->ack_flushed = flush;
}

void stk_guard_flush(struct stk_store *st)
{
    if (st->ack_fd >= 0 && !st->ack_flushed)
        st->ack_flushed = fdatasync(st->ack_fd) == 0;
}

/* Counts the change counter up, which lies on a page that few commits touch. */
static void bump(struct stk_store *st)
{
    char sql[96];

    (void)snprintf(sql, sizeof(sql), "BEGIN IMMEDIATE; PRAGMA user_version = %d; COMMIT",
                   st->version);
    if (sqlite3_exec(st->db, sql, NULL, NULL, NULL) != SQLITE_OK && !sqlite3_get_autocommit(st->db))
        (void)sqlite3_exec(st->db, "ROLLBACK", NULL, NULL, NULL);
}

void stk_guard_commit(struct stk_store *st)
{
    if (!st->wal_grew || st->ack_fd < 0)
        return;
    st->wal_grew = false;
    if (st->wal_fd < 0)
        st->wal_fd = openat(st->dir_fd, WAL_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (st->wal_fd < 0 || stk_wal_salt(st->wal_fd, st->ack.salt) < 0)
        return;
    st->ack.state = STK_ACK_WAL;
    st->ack.frames = st->wal_frames;
    st->ack.seq = st->next_seq - 1;
    note(st, false);
}

int stk_guard_begin(struct stk_store *st, struct stk_err *err)
{
    int rc = 0;

    if (st->accept)
        st->ack = (struct stk_ack){.turn = st->ack.turn, .seq = st->ack.seq};
    st->ack_fd = stk_ack_open(st->dir_fd);
    if (st->ack_fd >= 0 && st->ack.state != STK_ACK_WAL) {
        st->ack.counter = read_header(st, AT_COUNTER);
        st->ack.state = STK_ACK_CLEAN; /* the first commit may begin a WAL with any salts */
        st->ack.frames = st->ack.salt[0] = st->ack.salt[1] = 0;
        rc = stk_ack_write(st->ack_fd, &st->ack, false);
        rc = rc < 0 ? rc : stk_ack_write(st->ack_fd, &st->ack, true); /* both slots */
    }
    rc = st->ack_fd < 0 ? st->ack_fd : rc;
    return rc < 0 ? stk_err_set(err, rc, "%.120s/" STK_ACK_FILE ": %s", st->dir, strerror(-rc)) : 0;
}

void stk_guard_start(struct stk_store *st, int version)
{
    st->version = version;
    if (st->ack.state ==
        STK_ACK_CLEAN) /* making it a WAL database was a change of the file itself */
        st->ack.counter = read_header(st, AT_COUNTER);
    bump(st);
    stk_guard_commit(st);
    stk_guard_flush(st);
}

/* Whether the WAL is still what was written. SQLite compares its frames only when it opens it; what
 * was damaged since would get a checksum that matches when it is copied into the database. */
static bool may_copy_wal(struct stk_store *st)
{
    const struct stk_ack *a = &st->ack;
    struct stk_err why;
    struct stk_wal w;

    if (st->damage.text[0] != '\0')
        return false;
    if (a->state != STK_ACK_WAL || a->frames == 0 ||
        stk_wal_read(st->dir_fd, WAL_FILE, &(struct stk_wal_scan){.enough = a->frames}, &w) < 0 ||
        w.bytes == 0 || (w.whole && (w.salt[0] != a->salt[0] || w.salt[1] != a->salt[1])) ||
        w.frames >= a->frames)
        return true;
    (void)tell_damage(&w, a, &why);
    (void)stk_err_set(&st->damage, -EUCLEAN, "%s: " STK_STORE_LOSS_ADVICE, why.text, st->dir,
                      st->dir);
    return false;
}

static void checkpoint(struct stk_store *st, int mode, bool last)
{
    int frames = -1, copied = -1, rc;

    if (!may_copy_wal(st))
        return;
    rc = sqlite3_wal_checkpoint_v2(st->db, NULL, mode, &frames, &copied);
    if (rc != SQLITE_OK || frames < 0 || frames != copied || st->ack_fd < 0)
        return;
    st->ack.state = STK_ACK_CLEAN;
    st->ack.counter = read_header(st, AT_COUNTER);
    if (mode == SQLITE_CHECKPOINT_TRUNCATE) /* it may be begun anew more than once */
        st->ack.salt[0] = st->ack.salt[1] = 0;
    note(st, true);
    if (last)
        return;
    bump(st);
    stk_guard_commit(st);
    stk_guard_flush(st); /* which WAL is needed from now on survives a power cut */
}

void stk_guard_checkpoint(struct stk_store *st, int mode)
{
    checkpoint(st, mode, false);
}

void stk_guard_stop(struct stk_store *st)
{
    if (st->version == 0) /* opening failed: all stays as it is */
        return;
    checkpoint(st, SQLITE_CHECKPOINT_PASSIVE, true);
    if (st->ack.state == STK_ACK_CLEAN) /* else SQLite must not empty it behind our back */
        (void)sqlite3_db_config(st->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

int stk_guard_reset(int dir_fd, struct stk_err *err)
{
    struct stk_ack a = {.state = STK_ACK_ANY};
    int fd = stk_ack_open(dir_fd), rc = fd < 0 ? fd : 0;

    if (rc == 0)
        rc = ftruncate(fd, 0) < 0 ? -errno : stk_ack_write(fd, &a, false);
    if (rc == 0)
        rc = stk_ack_write(fd, &a, true);
    if (fd >= 0)
        (void)close(fd);
    return rc < 0 ? stk_err_set(err, rc, STK_ACK_FILE ": %s", strerror(-rc)) : 0;
}

int stk_guard_may_make(const struct stk_store *st, struct stk_err *err)
{
    struct stk_ack a;
    int rc = stk_ack_read(st->dir_fd, &a);

    if (rc == -ENOENT || (rc == 0 && a.state == STK_ACK_ANY))
        return 0;
    return stk_err_set(err, -EUCLEAN,
                       STK_STORE_FILE " is gone: restore a backup (stoker store restore FILE "
                                      "--state %s), or remove %s/" STK_ACK_FILE
                                      ", too, to begin with an empty store",
                       st->dir, st->dir);
}
