/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - a row per job, and the descriptions they share. */
#include "store/record.h"

#include "store/db.h"

int stk_store_spec_put(struct stk_store *st, const void *body, size_t len, int64_t *ret_id,
                       struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (len > STK_STORE_MAX_SPEC)
        return stk_err_set(err, -EFBIG, "a job description of %zu bytes is too large", len);
    rc = stk_db_write(st, STK_SLOT_SPEC_PUT, "INSERT INTO spec (body) VALUES (?1)", &s, err);
    if (rc < 0)
        return rc;
    stk_db_blob(s, 1, body, len);
    rc = stk_db_run(st, s, "write a job description", err);
    if (rc == 0)
        *ret_id = sqlite3_last_insert_rowid(st->db);
    return rc;
}

int stk_store_spec_get(struct stk_store *st, int64_t id, char **ret_body, size_t *ret_len,
                       struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st, "SELECT body FROM spec WHERE id = ?1", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, id);
    rc = stk_db_row(st, s, "read a job description", err);
    if (rc == 0)
        rc = stk_err_set(err, -ENOENT, "no job description %lld", (long long)id);
    else if (rc > 0 && (rc = stk_db_copy(s, 0, ret_body, ret_len)) < 0)
        (void)stk_err_set(err, rc, "out of memory for a job description");
    (void)sqlite3_finalize(s);
    return rc;
}

/* What may change, in the order of the columns, from parameter 'i' on. */
static void bind_mutable(sqlite3_stmt *s, int i, const struct stk_record *r)
{
    stk_db_text(s, i++, r->name);
    (void)sqlite3_bind_int64(s, i++, r->first_started);
    (void)sqlite3_bind_int64(s, i++, r->started);
    (void)(r->ended ? sqlite3_bind_int64(s, i, r->ended) : sqlite3_bind_null(s, i));
    i++;
    (void)sqlite3_bind_int(s, i++, (int)r->cause);
    (void)sqlite3_bind_int(s, i++, r->code);
    (void)sqlite3_bind_int64(s, i++, r->gpus);
    (void)sqlite3_bind_int64(s, i++, r->tasks);
    (void)sqlite3_bind_int64(s, i++, r->restarts);
    (void)sqlite3_bind_int64(s, i++, r->preemptions);
    (void)sqlite3_bind_int64(s, i++, r->served);
    (void)sqlite3_bind_int64(s, i++, (int64_t)r->steps);
    stk_db_text(s, i++, r->comment);
    stk_db_text(s, i++, r->note);
    stk_db_text(s, i++, r->stdout_path);
    stk_db_text(s, i++, r->stderr_path);
    (void)sqlite3_bind_int64(s, i++, r->waited);
    (void)sqlite3_bind_int64(s, i++, r->leases);
    (void)sqlite3_bind_int64(s, i++, r->lease.from);
    (void)sqlite3_bind_int64(s, i++, r->lease.to);
    (void)sqlite3_bind_int64(s, i++, r->lease.waited);
    (void)sqlite3_bind_int64(s, i++, r->lease.milli);
    (void)sqlite3_bind_int(s, i, r->lease.preempted);
}

static int check_texts(const struct stk_record *r, struct stk_err *err)
{
    const char *const all[] = {r->user,        r->name,        r->comment, r->note,
                               r->stdout_path, r->stderr_path, r->queue,   r->tenant};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (!stk_db_fits(all[i]))
            return stk_err_set(err, -EFBIG, "job %u: a text is longer than %u bytes", r->number,
                               STK_STORE_MAX_TEXT);
    return 0;
}

int stk_store_job_put(struct stk_store *st, const struct stk_record *r, struct stk_err *err)
{
    static const char sql[] =
        "INSERT INTO job (number, uid, gid, user, kind, array, array_index, submitted, spec, name,"
        " first_started, started, ended, cause, code, gpus, tasks, restarts, preemptions, served,"
        " steps, comment, note, stdout, stderr, waited, leases, lease_from, lease_to, lease_waited,"
        " lease_gpus, lease_preempted, gpu_milli, queue, tenant) VALUES (?1, ?2, ?3, ?4,"
        " ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,"
        " ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35)";
    sqlite3_stmt *s = NULL;
    int rc = check_texts(r, err);

    if (rc == 0)
        rc = stk_db_write(st, STK_SLOT_JOB_PUT, sql, &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, r->number);
    (void)sqlite3_bind_int64(s, 2, r->uid);
    (void)sqlite3_bind_int64(s, 3, r->gid);
    stk_db_text(s, 4, r->user);
    (void)sqlite3_bind_int(s, 5, (int)r->kind);
    (void)sqlite3_bind_int64(s, 6, r->array);
    (void)sqlite3_bind_int64(s, 7, r->array_index);
    (void)sqlite3_bind_int64(s, 8, r->submitted);
    (void)sqlite3_bind_int64(s, 9, r->spec);
    bind_mutable(s, 10, r);
    (void)sqlite3_bind_int64(s, 33, r->gpu_milli);
    stk_db_text(s, 34, r->queue);
    stk_db_text(s, 35, r->tenant);
    return stk_db_run(st, s, "write a job", err);
}

#define SET_MUTABLE                                                                                \
    "UPDATE job SET name = ?2, first_started = ?3, started = ?4, cause = ?6, code = ?7, "          \
    "gpus = ?8, tasks = ?9, restarts = ?10, preemptions = ?11, served = ?12, steps = ?13, "        \
    "comment = ?14, note = ?15, stdout = ?16, stderr = ?17, waited = ?18, leases = ?19, "          \
    "lease_from = ?20, lease_to = ?21, lease_waited = ?22, lease_gpus = ?23, "                     \
    "lease_preempted = ?24"

/* A job that goes on living stays in its indexes; naming 'ended' would take it out and put it back.
 */
int stk_store_job_update(struct stk_store *st, const struct stk_record *r, struct stk_err *err)
{
    static const char *const sql[] = {SET_MUTABLE " WHERE number = ?1 AND ended IS ?5",
                                      SET_MUTABLE ", ended = ?5 WHERE number = ?1"};
    sqlite3_stmt *s;
    int rc = check_texts(r, err);

    for (int i = r->ended ? 1 : 0; i < 2 && rc == 0; i++) {
        rc = stk_db_write(st, i ? STK_SLOT_JOB_END : STK_SLOT_JOB_LIVE, sql[i], &s, err);
        if (rc < 0)
            break;
        (void)sqlite3_bind_int64(s, 1, r->number);
        bind_mutable(s, 2, r);
        rc = stk_db_run(st, s, "write a job", err);
        if (rc == 0 && sqlite3_changes(st->db) > 0)
            return 0;
    }
    return rc < 0 ? rc : stk_err_set(err, -ENOENT, "no job %u in the store", r->number);
}

#define LATER(column) #column " = iif(" #column " > 0, min(" #column " + ?1, ?2), 0)"

int stk_store_jobs_skip(struct stk_store *st, stk_time by, stk_time now, struct stk_err *err)
{
    static const char sql[] = "UPDATE job SET " LATER(submitted) "," LATER(first_started) "," LATER(
        started) "," LATER(lease_from) "," LATER(lease_to) " WHERE ended IS NULL";
    sqlite3_stmt *s;
    int rc = stk_db_change(st, sql, &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, by);
    (void)sqlite3_bind_int64(s, 2, now);
    rc = stk_db_run(st, s, "write when jobs came", err);
    (void)sqlite3_finalize(s);
    return rc;
}

void stk_record_load(sqlite3_stmt *s, struct stk_record *ret_record)
{
    *ret_record = (struct stk_record){
        .number = stk_db_u32(s, 0),
        .uid = stk_db_u32(s, 1),
        .gid = stk_db_u32(s, 2),
        .user = stk_db_str(s, 3),
        .name = stk_db_str(s, 4),
        .kind = (enum stk_job_kind)stk_db_u32(s, 5),
        .array = stk_db_u32(s, 6),
        .array_index = stk_db_u32(s, 7),
        .submitted = sqlite3_column_int64(s, 8),
        .first_started = sqlite3_column_int64(s, 9),
        .started = sqlite3_column_int64(s, 10),
        .ended = sqlite3_column_int64(s, 11),
        .cause = (enum stk_cause)stk_db_u32(s, 12),
        .code = sqlite3_column_int(s, 13),
        .gpus = stk_db_u32(s, 14),
        .tasks = stk_db_u32(s, 15),
        .restarts = stk_db_u32(s, 16),
        .preemptions = stk_db_u32(s, 17),
        .served = sqlite3_column_int64(s, 18),
        .spec = sqlite3_column_int64(s, 19),
        .comment = stk_db_str(s, 20),
        .note = stk_db_str(s, 21),
        .stdout_path = stk_db_str(s, 22),
        .stderr_path = stk_db_str(s, 23),
        .gpu_milli = stk_db_u32(s, 24),
        .queue = stk_db_str(s, 25),
        .tenant = stk_db_str(s, 26),
        .steps = (uint64_t)sqlite3_column_int64(s, 27),
        .waited = sqlite3_column_int64(s, 28),
        .leases = stk_db_u32(s, 29),
        .lease = {.from = sqlite3_column_int64(s, 30),
                  .to = sqlite3_column_int64(s, 31),
                  .waited = sqlite3_column_int64(s, 32),
                  .milli = stk_db_u32(s, 33),
                  .preempted = sqlite3_column_int(s, 34) != 0},
    };
}

int stk_record_each(struct stk_store *st, sqlite3_stmt *stmt, stk_record_fn fn, void *ctx,
                    struct stk_err *err)
{
    struct stk_record r;
    int rc;

    while ((rc = stk_db_row(st, stmt, "read jobs", err)) > 0) {
        stk_record_load(stmt, &r);
        rc = fn(ctx, &r);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(stmt);
    return rc < 0 ? rc : 0;
}

int stk_store_job_get(struct stk_store *st, stk_job_number number, stk_record_fn fn, void *ctx,
                      struct stk_err *err)
{
    struct stk_record r;
    sqlite3_stmt *s;
    int rc = stk_db_once(st, "SELECT " STK_RECORD_COLUMNS " FROM job WHERE number = ?1", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, number);
    rc = stk_db_row(st, s, "read a job", err);
    if (rc > 0) {
        stk_record_load(s, &r);
        rc = fn(ctx, &r);
        rc = rc < 0 ? rc : 0;
    } else if (rc == 0) {
        rc = stk_err_set(err, -ENOENT, "no job %u in the store", number);
    }
    (void)sqlite3_finalize(s);
    return rc;
}

int stk_store_job_outcome(struct stk_store *st, stk_job_number number,
                          struct stk_outcome *ret_outcome, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc =
        stk_db_read(st, STK_SLOT_JOB_OUTCOME,
                    "SELECT array, array_index, cause, ended FROM job WHERE number = ?1", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, number);
    rc = stk_db_row(st, s, "read a job", err);
    if (rc > 0)
        *ret_outcome = (struct stk_outcome){.array = stk_db_u32(s, 0),
                                            .index = stk_db_u32(s, 1),
                                            .cause = (enum stk_cause)stk_db_u32(s, 2),
                                            .ended = sqlite3_column_int64(s, 3) != 0};
    (void)sqlite3_reset(s);
    return rc < 0 ? rc : rc == 0 ? stk_err_set(err, -ENOENT, "no job %u in the store", number) : 0;
}

int stk_store_live(struct stk_store *st, stk_record_fn fn, void *ctx, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st,
                         "SELECT " STK_RECORD_COLUMNS
                         " FROM job INDEXED BY job_live WHERE ended IS NULL ORDER BY number",
                         &s, err);

    return rc < 0 ? rc : stk_record_each(st, s, fn, ctx, err);
}

struct elements {
    stk_job_number array;
    stk_record_fn fn;
    void *ctx;
};

/* Their numbers are in a row: the first other job ends it. */
static int element(void *ctx, const struct stk_record *r)
{
    const struct elements *e = ctx;

    return r->array == e->array ? e->fn(e->ctx, r) : 1;
}

int stk_store_array(struct stk_store *st, stk_job_number array, stk_record_fn fn, void *ctx,
                    struct stk_err *err)
{
    struct elements e = {array, fn, ctx};
    sqlite3_stmt *s;
    int rc = stk_db_once(
        st, "SELECT " STK_RECORD_COLUMNS " FROM job WHERE number >= ?1 ORDER BY number", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, array);
    return stk_record_each(st, s, element, &e, err);
}
