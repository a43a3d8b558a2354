/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - see docs/spec/store.md for what each column means.
 *
 * A submit should touch few pages: the indexes of the history hold only jobs that have ended, so a
 * new job is an append to 'job', to 'job_live' (whose entries are empty but for the number) and to
 * 'job_spec'. The history's indexes end in (ended, number, cause): answers come in order, pages
 * begin where the last one ended, and causes are told apart without looking at the rows. 'ended' is
 * NULL until then, and not 0: any bound on it tells SQLite that such an index will do.
 */
#include "store/schema.h"

#include <stdio.h>

#include "store/db.h"

static const char first[] =
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"

    "CREATE TABLE journal (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, type INTEGER NOT NULL,"
    " number INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"

    "CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, hash INTEGER NOT NULL,"
    " body BLOB NOT NULL) STRICT;"

    "CREATE TABLE spec (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;"

    "CREATE TABLE job (number INTEGER PRIMARY KEY, uid INTEGER NOT NULL, gid INTEGER NOT NULL,"
    " user TEXT NOT NULL, name TEXT NOT NULL, kind INTEGER NOT NULL, array INTEGER NOT NULL,"
    " array_index INTEGER NOT NULL, submitted INTEGER NOT NULL, first_started INTEGER NOT NULL,"
    " started INTEGER NOT NULL, ended INTEGER, cause INTEGER NOT NULL,"
    " code INTEGER NOT NULL, gpus INTEGER NOT NULL, tasks INTEGER NOT NULL,"
    " restarts INTEGER NOT NULL, preemptions INTEGER NOT NULL, served INTEGER NOT NULL,"
    " spec INTEGER NOT NULL, comment TEXT NOT NULL, note TEXT NOT NULL, stdout TEXT NOT NULL,"
    " stderr TEXT NOT NULL) STRICT;"
    "CREATE INDEX job_live ON job (ended) WHERE ended IS NULL;"
    "CREATE INDEX job_spec ON job (spec);"
    "CREATE INDEX job_ended ON job (ended, number, cause) WHERE ended IS NOT NULL;"
    "CREATE INDEX job_uid ON job (uid, ended, number, cause) WHERE ended IS NOT NULL;"
    "CREATE INDEX job_user ON job (user, ended, number, cause) WHERE ended IS NOT NULL;"
    "CREATE INDEX job_name ON job (name, ended, number, cause) WHERE ended IS NOT NULL;"

    "CREATE TABLE token (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE,"
    " name TEXT NOT NULL, uid INTEGER NOT NULL, user TEXT NOT NULL, role INTEGER NOT NULL,"
    " created INTEGER NOT NULL, expires INTEGER NOT NULL, used INTEGER NOT NULL) STRICT;"

    "CREATE TABLE request (uid INTEGER NOT NULL, key TEXT NOT NULL, first INTEGER NOT NULL,"
    " count INTEGER NOT NULL, body BLOB NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (uid, key))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX request_at ON request (at);"

    "CREATE TABLE item (job INTEGER NOT NULL, idx INTEGER NOT NULL, text TEXT NOT NULL,"
    " state INTEGER NOT NULL, worker INTEGER NOT NULL, attempts INTEGER NOT NULL,"
    " code INTEGER NOT NULL, given INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " PRIMARY KEY (job, idx)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX item_state ON item (job, state, idx);";

/* Parts of a GPU: gpus is then how many there are parts of. */
static const char second[] = "ALTER TABLE job ADD COLUMN gpu_milli INTEGER NOT NULL DEFAULT 0;";

/* Where it waited, and for whom it ran. */
static const char third[] = "ALTER TABLE job ADD COLUMN queue TEXT NOT NULL DEFAULT '';"
                            "ALTER TABLE job ADD COLUMN tenant TEXT NOT NULL DEFAULT '';";

/* Measurements: by group and time, and by time for forgetting. What jobs have used. */
static const char fourth[] =
    "CREATE TABLE series (kind INTEGER NOT NULL, tier INTEGER NOT NULL, id INTEGER NOT NULL,"
    " at INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, tier, id, at))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX series_at ON series (tier, at);"
    "CREATE TABLE usage (number INTEGER PRIMARY KEY, seen_s REAL NOT NULL, gpu_s REAL NOT NULL,"
    " active_s REAL NOT NULL, energy_j REAL NOT NULL, cpu_s REAL NOT NULL,"
    " gpu_mem_mib REAL NOT NULL, mem_mib REAL NOT NULL, gpus BLOB NOT NULL) STRICT;";

/* What people compare with: changes, marked periods, answers. How far a job says it has come. */
static const char fifth[] =
    "CREATE TABLE note (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,"
    " user TEXT NOT NULL, text TEXT NOT NULL, world TEXT NOT NULL) STRICT;"
    "CREATE TABLE baseline (name TEXT PRIMARY KEY, since INTEGER NOT NULL, until INTEGER NOT NULL,"
    " note TEXT NOT NULL, user TEXT NOT NULL, created INTEGER NOT NULL, figures TEXT NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE answer (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, uid INTEGER NOT NULL,"
    " user TEXT NOT NULL, state TEXT NOT NULL, question TEXT NOT NULL, result TEXT NOT NULL)"
    " STRICT;"
    "ALTER TABLE job ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;";

/* Sessions of browsers beside tokens: what they are, the other half of a session's secret, when it
 * ends however much it is used, and what it was made with. */
static const char sixth[] = "ALTER TABLE token ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
                            "ALTER TABLE token ADD COLUMN cookie BLOB NOT NULL DEFAULT x'';"
                            "ALTER TABLE token ADD COLUMN ends INTEGER NOT NULL DEFAULT 0;"
                            "ALTER TABLE token ADD COLUMN parent INTEGER NOT NULL DEFAULT 0;"
                            "CREATE INDEX token_uid ON token (uid, kind, used);"
                            "CREATE INDEX token_parent ON token (parent);";

/* From here on there is a file of what was acknowledged beside the store (guard.h). */
static const char seventh[] = "";

/* When jobs had GPUs and what they waited before; how many GPUs there were. Of jobs from before
 * this only the sum of their run times is known: taken as one lease, which ends with the job, or
 * began with its first start where it has not ended. */
static const char eighth[] =
    "CREATE TABLE lease (number INTEGER NOT NULL, n INTEGER NOT NULL, began INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, waited INTEGER NOT NULL, gpus INTEGER NOT NULL,"
    " preempted INTEGER NOT NULL, PRIMARY KEY (number, n)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE capacity (at INTEGER PRIMARY KEY, gpus INTEGER NOT NULL) STRICT;"
    "ALTER TABLE job ADD COLUMN waited INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN lease_from INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN lease_to INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN lease_waited INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN lease_gpus INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN lease_preempted INTEGER NOT NULL DEFAULT 0;"
    "UPDATE job SET lease_from = max(first_started, ended - served), lease_to = ended,"
    " lease_waited = max(0, first_started - submitted), waited = max(0, first_started - submitted),"
    " lease_gpus = gpus * iif(gpu_milli = 0, 1000, gpu_milli)"
    " WHERE ended IS NOT NULL AND first_started > 0;";

/* From here on pages have checksums (pages.h). */
static const char ninth[] = "";

static const char *const steps[] = {first, second,  third,  fourth, fifth,
                                    sixth, seventh, eighth, ninth};
_Static_assert(sizeof(steps) / sizeof(*steps) >= STK_SCHEMA_SUMS, "the steps are there");

const struct stk_schema stk_schema = {steps, sizeof(steps) / sizeof(*steps)};

int stk_schema_apply(sqlite3 *db, const struct stk_schema *schema, int from, const char *path,
                     struct stk_err *err)
{
    for (int v = from; v < schema->n; v++) {
        char *version = sqlite3_mprintf("PRAGMA user_version = %d", v + 1), what[64];
        int rc = version ? sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) : SQLITE_NOMEM;

        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, schema->step[v], NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, version, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        sqlite3_free(version);
        if (rc != SQLITE_OK) {
            (void)snprintf(what, sizeof(what), "bring the store from schema %d to %d", v, v + 1);
            rc = stk_db_error(db, rc, path, what, err);
            if (!sqlite3_get_autocommit(db))
                (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
            return rc;
        }
    }
    return 0;
}
