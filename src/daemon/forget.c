/* SPDX-License-Identifier: Apache-2.0 */
/* forget.c - the daemon deletes old jobs as fast as new ones come.
 *
 * stk_store_prune() deletes in steps of some milliseconds. A timer asks for a step soon after a
 * turn and once a minute, and a step is due at once when turns have written many rows. While the
 * store has more to delete than one step does, every row that a turn wrote is a debt, and no turn
 * begins before as many rows were deleted. So the bounds of `retention` hold under any load and on
 * any machine: rows are compared, not times. The loop polls between two steps, so requests that
 * only read are answered.
 *
 * A step needs the store outside of a transaction. While a long request keeps one open, the step
 * waits for its end. */
#include "daemon/daemon.h"

#define LOOK_MS 60000u           /* between two steps, when nothing happens; */
#define LOOK_SOON_MS 100u        /* ... after a turn; */
#define LOOK_AGAIN_MS 10u        /* ... while there is more */
#define LOOK_ROWS UINT64_C(2000) /* ... at once, when turns have written this much */
#define WAL_MANY (UINT64_C(256) << 20)

static void on_timer(uv_timer_t *t)
{
    struct stk_daemon *d = t->data;

    d->forget.due = true; /* the step comes before the next poll */
}

void stk_daemon_forget_init(struct stk_daemon *d)
{
    (void)uv_timer_init(&d->loop, &d->forget.timer);
    d->forget.timer.data = d;
    (void)uv_timer_start(&d->forget.timer, on_timer, LOOK_SOON_MS, 0);
}

void stk_daemon_forget_after_turn(struct stk_daemon *d)
{
    const uint64_t rows = stk_store_rows_changed(d->store);

    d->forget.owed += rows - d->forget.rows;
    d->forget.rows = rows;
    if (d->forget.owed >= LOOK_ROWS)
        d->forget.due = true;
    else if (uv_timer_get_due_in(&d->forget.timer) > LOOK_SOON_MS)
        (void)uv_timer_start(&d->forget.timer, on_timer, LOOK_SOON_MS, 0);
}

/* Another program reads the store for a long time, and the WAL grows: the operator should know what
 * fills the disk. */
static void watch_wal(struct stk_daemon *d)
{
    const uint64_t bytes = stk_store_wal_bytes(d->store);

    if (bytes > WAL_MANY && !d->forget.wal_told)
        stk_log(STK_LOG_WARN,
                "stoker.db-wal has %llu MiB and grows: another program has been reading the store "
                "for long (stoker store backup, check or export). It is emptied when that ends",
                (unsigned long long)(bytes >> 20));
    d->forget.wal_told = bytes > WAL_MANY;
}

bool stk_daemon_forget(struct stk_daemon *d)
{
    const struct stk_retention keep = {(stk_time)d->config.retention.age_s * STK_SECOND,
                                       d->config.retention.bytes};
    const uint64_t before = d->forget.rows;
    struct stk_err err = {""};
    uint64_t deleted;
    bool more = false;

    if (!d->forget.due)
        return false;
    if (stk_store_prune(d->store, &keep, stk_live_age_now(d->live), &more, &err) < 0)
        stk_log(STK_LOG_WARN, "cannot forget old jobs: %s", err.text);
    watch_wal(d);
    d->forget.rows = stk_store_rows_changed(d->store);
    deleted = d->forget.rows - before;
    d->forget.owed = more && d->forget.owed > deleted ? d->forget.owed - deleted : 0;
    d->forget.due = d->forget.owed > 0;
    if (!d->forget.due)
        (void)uv_timer_start(&d->forget.timer, on_timer, more ? LOOK_AGAIN_MS : LOOK_MS, 0);
    return d->forget.due;
}
