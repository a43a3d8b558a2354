/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - events in the order in which they were applied, and snapshots of what they led to.
 *
 * The store gives the numbers, without gaps: a reader that sees n and then n + 2 knows that the
 * file has lost something. Snapshots carry a hash, because a page that went bad inside a large
 * BLOB is nothing SQLite would notice. The older of the two is the way out, which is why events
 * since it are kept (prune.c).
 */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/db.h"
#include "store/journal.h"

int stk_store_append(struct stk_store *st, const struct stk_row *e, uint64_t *ret_seq,
                     struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (e->len > STK_STORE_MAX_EVENT)
        return stk_err_set(err, -EFBIG, "an event of %zu bytes is too large", e->len);
    rc = stk_db_write(st, STK_SLOT_APPEND, "INSERT INTO journal VALUES (?1, ?2, ?3, ?4, ?5)", &s,
                      err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, (int64_t)st->next_seq);
    (void)sqlite3_bind_int64(s, 2, e->at);
    (void)sqlite3_bind_int64(s, 3, e->type);
    (void)sqlite3_bind_int64(s, 4, e->number);
    stk_db_blob(s, 5, e->bytes, e->len);
    rc = stk_db_run(st, s, "write an event", err);
    if (rc == 0)
        *ret_seq = st->next_seq++;
    return rc;
}

static int missing(uint64_t want, uint64_t got, bool is_first, struct stk_err *err)
{
    if (is_first)
        return stk_err_set(err, -ERANGE,
                           "event %" PRIu64 " is no longer kept; the first is %" PRIu64, want, got);
    return stk_err_set(err, -EUCLEAN,
                       "the journal is damaged: event %" PRIu64 " is missing: restore a backup "
                       "(stoker store restore FILE)",
                       want);
}

static struct stk_row row_of(sqlite3_stmt *s)
{
    struct stk_row e = {.seq = (uint64_t)sqlite3_column_int64(s, 0),
                        .at = sqlite3_column_int64(s, 1),
                        .type = stk_db_u32(s, 2),
                        .number = stk_db_u32(s, 3),
                        .bytes = sqlite3_column_blob(s, 4),
                        .len = (size_t)sqlite3_column_bytes(s, 4)};

    if (!e.bytes)
        e.bytes = ""; /* SQLite has no address for an empty one */
    return e;
}

int stk_store_read(struct stk_store *st, uint64_t after, stk_row_fn fn, void *ctx,
                   struct stk_err *err)
{
    uint64_t want = after + 1;
    sqlite3_stmt *s;
    int rc = stk_db_once(
        st, "SELECT seq, at, type, number, body FROM journal WHERE seq > ?1 ORDER BY seq", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, (int64_t)after);
    while ((rc = stk_db_row(st, s, "read events", err)) > 0) {
        struct stk_row e = row_of(s);

        if (e.seq != want) {
            rc = missing(want, e.seq, want == after + 1, err);
            break;
        }
        want++;
        rc = fn(ctx, &e);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

/* The first event at or after a time; one more than the last when there is none. Times never go
 * back in the journal. */
static int first_at(struct stk_store *st, stk_time at, uint64_t *ret_seq, struct stk_err *err)
{
    uint64_t low = 0, high = 0;
    sqlite3_stmt *s = NULL;
    int rc = stk_store_span(st, &low, &high, err);

    if (rc < 0)
        return rc;
    rc = stk_db_once(st, "SELECT at FROM journal WHERE seq = ?1", &s, err);
    if (rc < 0)
        return rc;
    high++;
    while (low < high && rc >= 0) {
        uint64_t mid = low + (high - low) / 2;

        (void)sqlite3_bind_int64(s, 1, (int64_t)mid);
        rc = stk_db_row(st, s, "read an event's time", err);
        if (rc > 0 && sqlite3_column_int64(s, 0) < at)
            low = mid + 1;
        else
            high = mid;
        (void)sqlite3_reset(s);
    }
    (void)sqlite3_finalize(s);
    *ret_seq = low;
    return rc < 0 ? rc : 0;
}

int stk_store_read_job(struct stk_store *st, const struct stk_job_span *q, stk_row_fn fn, void *ctx,
                       struct stk_err *err)
{
    uint64_t from = 0, to = 0;
    sqlite3_stmt *s = NULL;
    int rc = first_at(st, q->since, &from, err);

    rc = rc < 0 ? rc : first_at(st, q->until < INT64_MAX ? q->until + 1 : q->until, &to, err);
    if (rc < 0)
        return rc;
    rc = stk_db_once(st,
                     "SELECT seq, at, type, number, body FROM journal WHERE seq >= ?1 AND"
                     " seq < ?2 AND number = ?3 ORDER BY seq",
                     &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, (int64_t)from);
    (void)sqlite3_bind_int64(s, 2, (int64_t)to);
    (void)sqlite3_bind_int64(s, 3, q->number);
    while ((rc = stk_db_row(st, s, "read a job's events", err)) > 0) {
        struct stk_row e = row_of(s);

        rc = fn(ctx, &e);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_span(struct stk_store *st, uint64_t *ret_first, uint64_t *ret_last,
                   struct stk_err *err)
{
    int64_t first = 0, last = 0, covered = 0;
    int rc = stk_db_int(st, "SELECT min(seq) FROM journal", 0, &first, err);

    if (rc == 0)
        rc = stk_db_int(st, "SELECT max(seq) FROM journal", 0, &last, err);
    if (rc == 0)
        rc = stk_db_int(st, "SELECT max(seq) FROM snapshot", 0, &covered, err);
    if (rc < 0)
        return rc;
    *ret_last = (uint64_t)(last > covered ? last : covered);
    *ret_first = first ? (uint64_t)first : *ret_last + 1;
    return 0;
}

int64_t stk_snapshot_hash(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = stk_hash_mix(UINT64_C(0x5eed5eed5eed5eed), len), word;

    for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        h = stk_hash_mix(h, le64toh(word));
    }
    for (; len; p++, len--)
        h = stk_hash_mix(h, *p);
    return (int64_t)stk_hash_mix(h, 0);
}

int stk_store_snapshot_put(struct stk_store *st, const struct stk_snapshot *snap,
                           struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (snap->len > STK_STORE_MAX_SNAPSHOT)
        return stk_err_set(err, -EFBIG, "a snapshot of %zu bytes is too large", snap->len);
    if (snap->seq == 0 || snap->seq >= st->next_seq)
        return stk_err_set(err, -EINVAL,
                           "a snapshot up to event %" PRIu64 ", and the last is %" PRIu64,
                           snap->seq, st->next_seq - 1);
    rc = stk_db_change(st, "INSERT OR REPLACE INTO snapshot VALUES (?1, ?2, ?3, ?4)", &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, (int64_t)snap->seq);
    (void)sqlite3_bind_int64(s, 2, snap->at);
    (void)sqlite3_bind_int64(s, 3, stk_snapshot_hash(snap->bytes, snap->len));
    stk_db_blob(s, 4, snap->bytes, snap->len);
    rc = stk_db_run(st, s, "write a snapshot", err);
    (void)sqlite3_finalize(s);
    if (rc == 0)
        rc = stk_db_exec(st,
                         "DELETE FROM snapshot WHERE seq NOT IN"
                         " (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT 2)",
                         "drop an old snapshot", err);
    return rc;
}

/* The row's snapshot when it is whole: 1. Damaged: 0. */
static int take(sqlite3_stmt *s, struct stk_snapshot *snap)
{
    char *bytes;
    size_t len;
    int rc = stk_db_copy(s, 3, &bytes, &len);

    if (rc < 0)
        return rc;
    if (stk_snapshot_hash(bytes, len) != sqlite3_column_int64(s, 2)) {
        free(bytes);
        return 0;
    }
    *snap = (struct stk_snapshot){.seq = (uint64_t)sqlite3_column_int64(s, 0),
                                  .at = sqlite3_column_int64(s, 1),
                                  .bytes = bytes,
                                  .len = len};
    return 1;
}

/* No snapshot is whole. That is fine as long as the journal goes back to the first event. */
static int from_the_start(struct stk_store *st, uint64_t damaged, struct stk_snapshot *ret_snapshot,
                          struct stk_err *err)
{
    uint64_t first, last;
    int rc = stk_store_span(st, &first, &last, err);

    if (rc < 0)
        return rc;
    if (damaged && first != 1)
        return stk_err_set(err, -EUCLEAN,
                           "%.80s: every snapshot is damaged, and the journal begins at event "
                           "%" PRIu64 ": restore a backup (stoker store restore FILE)",
                           st->path, first);
    *ret_snapshot = (struct stk_snapshot){0};
    return 0;
}

int stk_store_snapshot_get(struct stk_store *st, struct stk_snapshot *ret_snapshot,
                           struct stk_err *ret_warning, struct stk_err *err)
{
    uint64_t damaged = 0;
    sqlite3_stmt *s;
    int rc = stk_db_once(st, "SELECT seq, at, hash, body FROM snapshot ORDER BY seq DESC", &s, err);

    if (rc < 0)
        return rc;
    (void)stk_err_set(ret_warning, 0, "%s", "");
    while ((rc = stk_db_row(st, s, "read a snapshot", err)) > 0) {
        rc = take(s, ret_snapshot);
        if (rc < 0)
            (void)stk_err_set(err, rc, "out of memory for a snapshot");
        if (rc != 0)
            break;
        damaged = (uint64_t)sqlite3_column_int64(s, 0);
        (void)stk_err_set(ret_warning, 0,
                          "the snapshot up to event %" PRIu64 " is damaged and was passed over",
                          damaged);
    }
    (void)sqlite3_finalize(s);
    if (rc == 0)
        return from_the_start(st, damaged, ret_snapshot, err);
    return rc < 0 ? rc : 0;
}
