/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - every record as a line of JSON, with the names the API has. Descriptions are JSON
 * already and go in as they are, made compact by SQLite; should one not be, it goes in as a string.
 * Whatever bytes a text has, the line is valid JSON in UTF-8. */
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "store/db.h"
#include "store/record.h"

#define TICK_ROWS 1000

static void put_string(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    (void)putc('"', f);
    while (*s != '\0') {
        uint32_t code;
        size_t n = stk_utf8((const char *)s, SIZE_MAX, &code);

        if (n == 0)
            (void)fputs("\\ufffd", f);
        else if (*s == '"' || *s == '\\')
            (void)fprintf(f, "\\%c", *s);
        else if (*s < 0x20)
            (void)fprintf(f, "\\u%04x", *s);
        else
            (void)fwrite(s, 1, n, f);
        s += n ? n : 1;
    }
    (void)putc('"', f);
}

static void put_text(FILE *f, const char *name, const char *text)
{
    (void)fprintf(f, ",\"%s\":", name);
    put_string(f, text);
}

/* Seconds with six digits; 0: has not come. */
static void put_time(FILE *f, const char *name, stk_time t)
{
    if (t == 0)
        (void)fprintf(f, ",\"%s\":null", name);
    else
        (void)fprintf(f, ",\"%s\":%s%" PRId64 ".%06d", name, t < 0 ? "-" : "",
                      (t < 0 ? -t : t) / STK_SECOND, (int)((t < 0 ? -t : t) % STK_SECOND));
}

static void put_code(FILE *f, const char *name, bool is_set, int32_t code)
{
    if (is_set)
        (void)fprintf(f, ",\"%s\":%d", name, code);
    else
        (void)fprintf(f, ",\"%s\":null", name);
}

static void put_record(FILE *f, const struct stk_record *r)
{
    (void)fprintf(f, "{\"id\":%u", r->number);
    put_text(f, "name", r->name);
    put_text(f, "user", r->user);
    (void)fprintf(f, ",\"uid\":%u,\"gid\":%u,\"kind\":\"%s\",\"array_id\":", r->uid, r->gid,
                  r->kind < STK_KIND_MAX ? stk_kind_name(r->kind) : "?");
    if (r->array)
        (void)fprintf(f, "%u,\"array_index\":%u", r->array, r->array_index);
    else
        (void)fprintf(f, "null,\"array_index\":null");
    put_time(f, "submitted", r->submitted);
    put_time(f, "first_started", r->first_started);
    put_time(f, "started", r->started);
    put_time(f, "ended", r->ended);
    if (r->cause && r->cause < STK_CAUSE_MAX)
        put_text(f, "cause", stk_cause_word(r->cause));
    else
        (void)fprintf(f, ",\"cause\":null");
    put_code(f, "exit_code", r->cause == STK_CAUSE_OK || r->cause == STK_CAUSE_FAILED, r->code);
    put_code(f, "signal", r->cause == STK_CAUSE_SIGNAL, r->code);
    (void)fprintf(f, ",\"code\":%d,\"gpus\":%.10g,\"tasks\":%u,\"restarts\":%u,\"preemptions\":%u",
                  r->code, r->gpus * (r->gpu_milli ? r->gpu_milli / 1000.0 : 1), r->tasks,
                  r->restarts, r->preemptions);
    (void)fprintf(f, ",\"served_s\":%" PRId64 ".%06d", r->served / STK_SECOND,
                  (int)(r->served % STK_SECOND));
    (void)fprintf(f, ",\"waited_s\":%" PRId64 ".%06d", r->waited / STK_SECOND,
                  (int)(r->waited % STK_SECOND));
    put_text(f, "comment", r->comment);
    put_text(f, "note", r->note);
    put_text(f, "stdout", r->stdout_path);
    put_text(f, "stderr", r->stderr_path);
}

static int put_rows(struct stk_store *st, sqlite3_stmt *s, FILE *f, stk_tick_fn tick, void *ctx,
                    struct stk_err *err)
{
    uint64_t done = 0, total = 0;
    struct stk_record r;
    int64_t n = 0;
    int rc = stk_db_int(st, "SELECT count(*) FROM job", 0, &n, err);

    if (rc < 0)
        return rc;
    total = (uint64_t)n;
    while ((rc = stk_db_row(st, s, "read jobs", err)) > 0) {
        bool is_json = sqlite3_column_int(s, STK_RECORD_N_COLUMNS) != 0;

        stk_record_load(s, &r);
        put_record(f, &r);
        (void)fputs(",\"spec\":", f);
        if (is_json)
            (void)fputs(stk_db_str(s, STK_RECORD_N_COLUMNS + 1), f);
        else if (sqlite3_column_type(s, STK_RECORD_N_COLUMNS + 1) == SQLITE_NULL)
            (void)fputs("null", f);
        else
            put_string(f, stk_db_str(s, STK_RECORD_N_COLUMNS + 1));
        (void)fputs("}\n", f);
        if (ferror(f))
            return stk_err_set(err, errno ? -errno : -EIO, "cannot write the export: %s",
                               strerror(errno ? errno : EIO));
        if (++done % TICK_ROWS == 0 && tick && tick(ctx, done, total))
            return stk_err_set(err, -ECANCELED, "the export was stopped");
    }
    return rc;
}

int stk_store_export(struct stk_store *st, FILE *out, stk_tick_fn tick, void *ctx,
                     struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st,
                         "SELECT " STK_RECORD_COLUMNS ", t IS NOT NULL AND json_valid(t),"
                         " CASE WHEN t IS NOT NULL AND json_valid(t) THEN json(t) ELSE t END"
                         " FROM (SELECT job.*, CAST(spec.body AS TEXT) AS t FROM job"
                         " LEFT JOIN spec ON spec.id = job.spec) ORDER BY number",
                         &s, err);

    if (rc < 0)
        return rc;
    rc = put_rows(st, s, out, tick, ctx, err);
    (void)sqlite3_finalize(s);
    if (rc == 0 && fflush(out) != 0)
        rc = stk_err_set(err, -errno, "cannot write the export: %s", strerror(errno));
    return rc;
}
