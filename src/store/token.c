/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - who may come in over the network, and which requests were seen before.
 *
 * A token is a long random word, so a plain SHA-256 of it is as hard to turn back as any slow
 * hash, and the row is found by it: no comparison of secrets, nothing to time.
 */
#include <stdlib.h>
#include <string.h>

#include "store/db.h"
#include "store/sha.h"

#define HASH 32
#define TOKEN_COLUMNS "id, name, uid, user, role, created, expires, used, kind, parent, ends"

static void load(sqlite3_stmt *s, struct stk_token *t)
{
    *t = (struct stk_token){.id = sqlite3_column_int64(s, 0),
                            .uid = stk_db_u32(s, 2),
                            .role = stk_db_u32(s, 4),
                            .created = sqlite3_column_int64(s, 5),
                            .expires = sqlite3_column_int64(s, 6),
                            .used = sqlite3_column_int64(s, 7),
                            .kind = sqlite3_column_int64(s, 8) == STK_TOKEN_SESSION
                                        ? STK_TOKEN_SESSION
                                        : STK_TOKEN_BEARER,
                            .parent = sqlite3_column_int64(s, 9),
                            .ends = sqlite3_column_int64(s, 10)};
    (void)snprintf(t->name, sizeof(t->name), "%s", stk_db_str(s, 1));
    (void)snprintf(t->user, sizeof(t->user), "%s", stk_db_str(s, 3));
}

static int put(struct stk_store *st, const char *secret, const char *cookie,
               const struct stk_token *t, int64_t *ret_id, struct stk_err *err)
{
    uint8_t hash[HASH], other[HASH];
    sqlite3_stmt *s;
    int rc = stk_db_change(st,
                           "INSERT INTO token (hash, name, uid, user, role, created, expires, used,"
                           " kind, cookie, ends, parent)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                           &s, err);

    if (rc < 0)
        return rc;
    stk_sha256(secret, strlen(secret), hash);
    if (cookie)
        stk_sha256(cookie, strlen(cookie), other);
    stk_db_blob(s, 1, hash, HASH);
    stk_db_text(s, 2, t->name);
    (void)sqlite3_bind_int64(s, 3, t->uid);
    stk_db_text(s, 4, t->user);
    (void)sqlite3_bind_int64(s, 5, t->role);
    (void)sqlite3_bind_int64(s, 6, t->created);
    (void)sqlite3_bind_int64(s, 7, t->expires);
    (void)sqlite3_bind_int64(s, 8, t->used);
    (void)sqlite3_bind_int64(s, 9, cookie ? STK_TOKEN_SESSION : STK_TOKEN_BEARER);
    stk_db_blob(s, 10, other, cookie ? HASH : 0);
    (void)sqlite3_bind_int64(s, 11, t->ends);
    (void)sqlite3_bind_int64(s, 12, t->parent);
    rc = stk_db_run(st, s, "write a token", err);
    (void)sqlite3_finalize(s);
    if (rc == 0)
        *ret_id = sqlite3_last_insert_rowid(st->db);
    return rc == -EEXIST ? stk_err_set(err, rc, "this token is there already") : rc;
}

int stk_store_token_put(struct stk_store *st, const char *secret, const struct stk_token *t,
                        int64_t *ret_id, struct stk_err *err)
{
    return put(st, secret, NULL, t, ret_id, err);
}

int stk_store_session_put(struct stk_store *st, const char *page, const char *cookie,
                          const struct stk_token *t, int64_t *ret_id, struct stk_err *err)
{
    return put(st, page, cookie, t, ret_id, err);
}

/* The row with this secret, of this kind; 'cookie' gets the hash of its other half. */
static int find(struct stk_store *st, const char *secret, enum stk_token_kind kind,
                struct stk_token *ret_token, uint8_t cookie[HASH], struct stk_err *err)
{
    uint8_t hash[HASH];
    sqlite3_stmt *s;
    int rc = stk_db_read(st, STK_SLOT_TOKEN_FIND,
                         "SELECT " TOKEN_COLUMNS ", cookie FROM token WHERE hash = ?1 AND kind = ?2"
                         " AND length(cookie) = ?3",
                         &s, err);

    if (rc < 0)
        return rc;
    stk_sha256(secret, strlen(secret), hash);
    stk_db_blob(s, 1, hash, HASH);
    (void)sqlite3_bind_int64(s, 2, kind);
    (void)sqlite3_bind_int64(s, 3, kind == STK_TOKEN_SESSION ? HASH : 0);
    rc = stk_db_row(st, s, "look for a token", err);
    if (rc > 0) {
        load(s, ret_token);
        if (kind == STK_TOKEN_SESSION)
            memcpy(cookie, sqlite3_column_blob(s, 11), HASH);
    }
    (void)sqlite3_reset(s);
    return rc < 0 ? rc : rc == 0 ? stk_err_set(err, -ENOENT, "the token is not known") : 0;
}

static int check_time(const struct stk_token *t, stk_time now, struct stk_err *err)
{
    if (t->expires && t->expires <= now)
        return stk_err_set(err, -EKEYEXPIRED, "the token \"%s\" has expired", t->name);
    return 0;
}

int stk_store_token_find(struct stk_store *st, const char *secret, stk_time now,
                         struct stk_token *ret_token, struct stk_err *err)
{
    struct stk_token t = {0};
    int rc = find(st, secret, STK_TOKEN_BEARER, &t, NULL, err);

    rc = rc < 0 ? rc : check_time(&t, now, err);
    if (rc == 0)
        *ret_token = t;
    return rc;
}

/* What is compared are hashes: how far two agree says nothing about the secrets. */
int stk_store_session_find(struct stk_store *st, const char *page,
                           const struct stk_cookies *cookies, stk_time now,
                           struct stk_token *ret_token, struct stk_err *err)
{
    struct stk_token t = {0};
    uint8_t want[HASH], got[HASH];
    int rc = find(st, page, STK_TOKEN_SESSION, &t, want, err);
    bool same = false;

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < cookies->n; i++) {
        stk_sha256(cookies->value[i], strlen(cookies->value[i]), got);
        same = same || memcmp(got, want, HASH) == 0;
    }
    if (!same)
        return stk_err_set(err, -EACCES, "the cookie is not that of this session");
    rc = check_time(&t, now, err);
    if (rc == 0)
        *ret_token = t;
    return rc;
}

int stk_store_token_get(struct stk_store *st, int64_t id, struct stk_token *ret_token,
                        struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_read(st, STK_SLOT_TOKEN_GET,
                         "SELECT " TOKEN_COLUMNS " FROM token WHERE id = ?1", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, id);
    rc = stk_db_row(st, s, "look for a token", err);
    if (rc > 0)
        load(s, ret_token);
    (void)sqlite3_reset(s);
    return rc < 0 ? rc : rc == 0 ? stk_err_set(err, -ENOENT, "no token %lld", (long long)id) : 0;
}

int stk_store_token_used(struct stk_store *st, int64_t id, stk_time now, stk_time expires,
                         struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_write(st, STK_SLOT_TOKEN_USED,
                          "UPDATE token SET used = ?2, expires = ?3 WHERE id = ?1", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, id);
    (void)sqlite3_bind_int64(s, 2, now);
    (void)sqlite3_bind_int64(s, 3, expires);
    rc = stk_db_run(st, s, "write a token", err);
    if (rc == 0 && sqlite3_changes(st->db) == 0)
        rc = stk_err_set(err, -ENOENT, "no token %lld", (long long)id);
    return rc;
}

int stk_store_token_delete(struct stk_store *st, int64_t id, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_change(st,
                           "WITH RECURSIVE gone(id) AS (VALUES (?1) UNION"
                           " SELECT token.id FROM token JOIN gone ON token.parent = gone.id)"
                           " DELETE FROM token WHERE id IN (SELECT id FROM gone)",
                           &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, id);
    rc = stk_db_run(st, s, "delete a token", err);
    (void)sqlite3_finalize(s);
    if (rc == 0 && sqlite3_changes(st->db) == 0)
        rc = stk_err_set(err, -ENOENT, "no token %lld", (long long)id);
    return rc;
}

static int delete_expired(struct stk_store *st, uint32_t uid, stk_time now, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_change(st, "DELETE FROM token WHERE uid = ?1 AND expires > 0 AND expires <= ?2",
                           &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, uid);
    (void)sqlite3_bind_int64(s, 2, now);
    rc = stk_db_run(st, s, "delete expired tokens", err);
    (void)sqlite3_finalize(s);
    return rc;
}

int stk_store_token_tidy(struct stk_store *st, uint32_t uid, enum stk_token_kind kind, stk_time now,
                         struct stk_token_count *ret_count, struct stk_err *err)
{
    sqlite3_stmt *s = NULL;
    int rc = delete_expired(st, uid, now, err);

    if (rc == 0)
        rc = stk_db_once(st,
                         "SELECT count(*) OVER (), id FROM token WHERE uid = ?1 AND kind = ?2"
                         " ORDER BY used, id LIMIT 1",
                         &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, uid);
    (void)sqlite3_bind_int64(s, 2, kind);
    rc = stk_db_row(st, s, "count tokens", err);
    if (rc >= 0)
        *ret_count = (struct stk_token_count){0};
    if (rc > 0)
        *ret_count = (struct stk_token_count){stk_db_u32(s, 0), sqlite3_column_int64(s, 1)};
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_token_list(struct stk_store *st, stk_token_fn fn, void *ctx, struct stk_err *err)
{
    struct stk_token t;
    sqlite3_stmt *s;
    int rc = stk_db_once(st, "SELECT " TOKEN_COLUMNS " FROM token ORDER BY id", &s, err);

    if (rc < 0)
        return rc;
    while ((rc = stk_db_row(st, s, "read tokens", err)) > 0) {
        load(s, &t);
        rc = fn(ctx, &t);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

/* One that is too old counts as gone, pruned or not. */
int stk_store_key_put(struct stk_store *st, uint32_t uid, const char *key, const struct stk_once *k,
                      struct stk_err *err)
{
    static const char sql[] =
        "INSERT INTO request (uid, key, first, count, body, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        " ON CONFLICT (uid, key) DO UPDATE SET first = ?3, count = ?4, body = ?5, at = ?6"
        " WHERE at <= ?7";
    sqlite3_stmt *s;
    int rc;

    if (!stk_db_fits(key))
        return stk_err_set(err, -EFBIG, "an idempotency key is too long");
    rc = stk_db_write(st, STK_SLOT_KEY_PUT, sql, &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, uid);
    stk_db_text(s, 2, key);
    (void)sqlite3_bind_int64(s, 3, k->first);
    (void)sqlite3_bind_int64(s, 4, k->count);
    stk_db_blob(s, 5, k->body, sizeof(k->body));
    (void)sqlite3_bind_int64(s, 6, k->at);
    (void)sqlite3_bind_int64(s, 7, k->at - STK_STORE_KEY_AGE);
    rc = stk_db_run(st, s, "write an idempotency key", err);
    if (rc == 0 && sqlite3_changes(st->db) == 0)
        rc = stk_err_set(err, -EEXIST, "the idempotency key \"%.80s\" was used before", key);
    return rc;
}

int stk_store_key_get(struct stk_store *st, uint32_t uid, const char *key, stk_time now,
                      struct stk_once *ret_key, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_read(st, STK_SLOT_KEY_GET,
                         "SELECT first, count, body, at FROM request"
                         " WHERE uid = ?1 AND key = ?2 AND at > ?3 AND length(body) = 32",
                         &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, uid);
    stk_db_text(s, 2, key);
    (void)sqlite3_bind_int64(s, 3, now - STK_STORE_KEY_AGE);
    rc = stk_db_row(st, s, "look for an idempotency key", err);
    if (rc > 0) {
        *ret_key = (struct stk_once){
            .first = stk_db_u32(s, 0), .count = stk_db_u32(s, 1), .at = sqlite3_column_int64(s, 3)};
        memcpy(ret_key->body, sqlite3_column_blob(s, 2), sizeof(ret_key->body));
    }
    (void)sqlite3_reset(s);
    if (rc == 0)
        return stk_err_set(err, -ENOENT, "the idempotency key \"%.80s\" is new", key);
    return rc < 0 ? rc : 0;
}
