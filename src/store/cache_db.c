/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that may be lost: see cache_db.h.
 *
 * A named file has a write-ahead log, which SQLite syncs only when it is copied into the file: a
 * power failure loses the latest commits and damages nothing. A temporary file needs no journal.
 */
#include "store/cache_db.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define CHANGES_PER_COMMIT 8192u
/* Changes with the format, so that a file of another version is made anew. */
#define VERSION 2

enum { PUT, ADD, DELETE, GET, NEXT, BEHIND, COUNT, STATEMENTS };

static const char *const texts[STATEMENTS] = {
    [PUT] = "INSERT OR REPLACE INTO cache VALUES (?1, ?2)",
    [ADD] = "INSERT OR IGNORE INTO cache VALUES (?1, ?2)",
    [DELETE] = "DELETE FROM cache WHERE key = ?1",
    [GET] = "SELECT value FROM cache WHERE key = ?1",
    [NEXT] = "SELECT key, value FROM cache WHERE key >= ?1 ORDER BY key LIMIT 1",
    [BEHIND] = "SELECT key, value FROM cache WHERE key > ?1 ORDER BY key LIMIT 1",
    [COUNT] = "SELECT count(*) FROM cache",
};

struct cache_db {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    char *path;
    int lock; /* a descriptor, or -1 */
    pthread_mutex_t mutex;
    unsigned changes; /* since the last commit; a transaction is open unless 0 */
};

static struct error *
failure(const struct cache_db *db)
{
    int code = sqlite3_extended_errcode(db->db);
    enum code kind = CODE_INTERNAL;
    if ((code & 0xff) == SQLITE_FULL)
        kind = CODE_RESOURCE_EXHAUSTED;
    return error_new(kind, "the cache %s: %s (%d). It can be removed: it will be made anew",
                     db->path, sqlite3_errmsg(db->db), code);
}

static struct error *
execute(struct cache_db *db, const char *sql)
{
    return sqlite3_exec(db->db, sql, NULL, NULL, NULL) == SQLITE_OK ? NULL : failure(db);
}

/* ---- opening ---- */

static void
remove_files(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        struct buffer name AUTO(buffer_clear) = {0};
        buffer_print(&name, "%s%s", path, suffixes[i]);
        unlink(buffer_text(&name));
    }
}

static struct error *
check_version(struct cache_db *db)
{
    int version = 0;
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db->db, "PRAGMA user_version", -1, &statement, NULL) != SQLITE_OK)
        return failure(db);
    if (sqlite3_step(statement) == SQLITE_ROW)
        version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    if (version != 0 && version != VERSION)
        return error_new(CODE_FAILED_PRECONDITION, "a cache of version %d", version);
    return NULL;
}

static struct error *
set_up(struct cache_db *db, const char *journal, unsigned memory_kib)
{
    char sql[640];
    snprintf(sql, sizeof sql,
             "PRAGMA locking_mode = EXCLUSIVE;"
             "PRAGMA %s;"
             "PRAGMA wal_autocheckpoint = 2000;"
             "PRAGMA temp_store = MEMORY;"
             "PRAGMA secure_delete = OFF;"
             "PRAGMA cell_size_check = ON;"
             "PRAGMA trusted_schema = OFF;"
             "PRAGMA cache_size = -%u;"
             "CREATE TABLE IF NOT EXISTS cache (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
             " WITHOUT ROWID;"
             "PRAGMA user_version = %d",
             journal, memory_kib, VERSION);
    struct error *error = check_version(db);
    if (!error)
        error = execute(db, sql);
    for (size_t i = 0; i < STATEMENTS && !error; i++)
        if (sqlite3_prepare_v3(db->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &db->statements[i],
                               NULL) != SQLITE_OK)
            error = failure(db);
    return error;
}

static void
close_database(struct cache_db *db)
{
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(db->statements[i]);
    memset(db->statements, 0, sizeof db->statements);
    sqlite3_close(db->db);
    db->db = NULL;
}

static struct error *
open_database(struct cache_db *db, const char *journal, unsigned memory_kib)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    struct error *error = NULL;
    if (sqlite3_open_v2(db->path, &db->db, flags, NULL) != SQLITE_OK)
        error = failure(db);
    if (!error)
        error = set_up(db, journal, memory_kib);
    if (error)
        close_database(db);
    return error;
}

static struct cache_db *
make(char *path)
{
    struct cache_db *db = memory_zeroed(sizeof *db);
    db->path = path;
    db->lock = -1;
    pthread_mutex_init(&db->mutex, NULL);
    return db;
}

/* `*is_ours` is false if somebody else has it. */
static struct error *
lock_file(struct cache_db *db, bool *is_ours)
{
    struct buffer name AUTO(buffer_clear) = {0};
    buffer_print(&name, "%s.lock", db->path);
    db->lock = open(buffer_text(&name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (db->lock < 0)
        return error_from_errno(errno, "open %s", buffer_text(&name));
    *is_ours = flock(db->lock, LOCK_EX | LOCK_NB) == 0;
    return NULL;
}

struct error *
cache_db_open(const char *path, unsigned memory_kib, struct cache_db **out)
{
    static const char journal[] = "journal_mode = WAL; PRAGMA synchronous = NORMAL";
    struct cache_db *db AUTO(cache_db_cleanup) = make(memory_string(path));
    bool is_ours = false;
    *out = NULL;
    struct error *error = lock_file(db, &is_ours);
    if (error || !is_ours)
        return error;
    error = open_database(db, journal, memory_kib);
    if (error) {
        error_free(error);
        remove_files(path);
        error = open_database(db, journal, memory_kib);
    }
    if (!error)
        *out = STEAL(db);
    return error;
}

struct error *
cache_db_open_temporary(const char *directory, unsigned memory_kib, struct cache_db **out)
{
    struct buffer name AUTO(buffer_clear) = {0};
    *out = NULL;
    buffer_print(&name, "%s/skycap-XXXXXX", directory);
    int fd AUTO(files_close) = mkostemp((char *)(uintptr_t)buffer_text(&name), O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "make a temporary file in %s", directory);
    struct cache_db *db AUTO(cache_db_cleanup) = make(memory_string(buffer_text(&name)));
    struct error *error =
        open_database(db, "journal_mode = OFF; PRAGMA synchronous = OFF", memory_kib);
    unlink(db->path);
    if (!error)
        *out = STEAL(db);
    return error;
}

void
cache_db_close(struct cache_db *db)
{
    if (!db)
        return;
    if (db->db)
        error_free(cache_db_commit(db));
    close_database(db);
    files_close(&db->lock);
    pthread_mutex_destroy(&db->mutex);
    free(db->path);
    free(db);
}

void
cache_db_cleanup(struct cache_db **db)
{
    cache_db_close(*db);
}

/* ---- changes ---- */

/* With the mutex. */
static struct error *
commit(struct cache_db *db)
{
    if (!db->changes)
        return NULL;
    db->changes = 0;
    struct error *error = execute(db, "COMMIT");
    if (error)
        sqlite3_exec(db->db, "ROLLBACK", NULL, NULL, NULL);
    return error;
}

struct error *
cache_db_commit(struct cache_db *db)
{
    pthread_mutex_lock(&db->mutex);
    struct error *error = commit(db);
    pthread_mutex_unlock(&db->mutex);
    return error;
}

static void
bind_bytes(sqlite3_stmt *statement, int position, const void *bytes, size_t size)
{
    if (size)
        sqlite3_bind_blob64(statement, position, bytes, size, SQLITE_STATIC);
    else
        sqlite3_bind_zeroblob(statement, position, 0);
}

/* With the mutex. */
static struct error *
change(struct cache_db *db, int which, const void *key, size_t key_size, const void *value,
       size_t value_size)
{
    struct error *error = db->changes ? NULL : execute(db, "BEGIN");
    if (error)
        return error;
    sqlite3_stmt *statement = db->statements[which];
    db->changes++;
    bind_bytes(statement, 1, key, key_size);
    if (which != DELETE)
        bind_bytes(statement, 2, value, value_size);
    if (sqlite3_step(statement) != SQLITE_DONE)
        error = failure(db);
    sqlite3_reset(statement);
    if (!error && db->changes >= CHANGES_PER_COMMIT)
        error = commit(db);
    return error;
}

struct error *
cache_db_put(struct cache_db *db, const void *key, size_t key_size, const void *value,
             size_t value_size)
{
    pthread_mutex_lock(&db->mutex);
    struct error *error = change(db, PUT, key, key_size, value, value_size);
    pthread_mutex_unlock(&db->mutex);
    return error;
}

struct error *
cache_db_add(struct cache_db *db, const void *key, size_t key_size, const void *value,
             size_t value_size, bool *is_new)
{
    pthread_mutex_lock(&db->mutex);
    struct error *error = change(db, ADD, key, key_size, value, value_size);
    *is_new = !error && sqlite3_changes(db->db) > 0;
    pthread_mutex_unlock(&db->mutex);
    return error;
}

struct error *
cache_db_delete(struct cache_db *db, const void *key, size_t key_size)
{
    pthread_mutex_lock(&db->mutex);
    struct error *error = change(db, DELETE, key, key_size, NULL, 0);
    pthread_mutex_unlock(&db->mutex);
    return error;
}

struct error *
cache_db_drop(struct cache_db *db)
{
    pthread_mutex_lock(&db->mutex);
    struct error *error = commit(db);
    if (!error)
        error = execute(db, "DELETE FROM cache");
    pthread_mutex_unlock(&db->mutex);
    return error;
}

/* ---- reading ---- */

/* With the mutex. Binds the key and steps; the caller resets the statement. */
static struct error *
find_row(struct cache_db *db, sqlite3_stmt *statement, const void *key, size_t key_size,
         bool *found)
{
    bind_bytes(statement, 1, key, key_size);
    int result = sqlite3_step(statement);
    *found = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? NULL : failure(db);
}

static void
copy_column(sqlite3_stmt *statement, int column, struct buffer *out)
{
    out->size = 0;
    buffer_append(out, sqlite3_column_blob(statement, column),
                  (size_t)sqlite3_column_bytes(statement, column));
}

struct error *
cache_db_get(struct cache_db *db, const void *key, size_t key_size, void *value, size_t size,
             bool *found)
{
    pthread_mutex_lock(&db->mutex);
    sqlite3_stmt *statement = db->statements[GET];
    struct error *error = find_row(db, statement, key, key_size, found);
    if (*found && (size_t)sqlite3_column_bytes(statement, 0) != size)
        *found = false;
    if (*found && size)
        memcpy(value, sqlite3_column_blob(statement, 0), size);
    sqlite3_reset(statement);
    pthread_mutex_unlock(&db->mutex);
    return error;
}

struct error *
cache_db_read(struct cache_db *db, const void *key, size_t key_size, struct buffer *value,
              bool *found)
{
    pthread_mutex_lock(&db->mutex);
    sqlite3_stmt *statement = db->statements[GET];
    struct error *error = find_row(db, statement, key, key_size, found);
    if (*found)
        copy_column(statement, 0, value);
    sqlite3_reset(statement);
    pthread_mutex_unlock(&db->mutex);
    return error;
}

struct error *
cache_db_count(struct cache_db *db, uint64_t *out)
{
    pthread_mutex_lock(&db->mutex);
    struct error *error = NULL;
    sqlite3_stmt *statement = db->statements[COUNT];
    if (sqlite3_step(statement) == SQLITE_ROW)
        *out = (uint64_t)sqlite3_column_int64(statement, 0);
    else
        error = failure(db);
    sqlite3_reset(statement);
    pthread_mutex_unlock(&db->mutex);
    return error;
}

struct error *
cache_db_next(struct cache_db *db, struct cache_db_walk *walk)
{
    pthread_mutex_lock(&db->mutex);
    sqlite3_stmt *statement = db->statements[walk->has_begun ? BEHIND : NEXT];
    struct error *error = find_row(db, statement, walk->key.bytes, walk->key.size, &walk->found);
    walk->has_begun = true;
    if (walk->found) {
        /* The key that is bound is in walk->key: SQLite is done with it when the row is there. */
        copy_column(statement, 1, &walk->value);
        copy_column(statement, 0, &walk->key);
    }
    sqlite3_reset(statement);
    pthread_mutex_unlock(&db->mutex);
    return error;
}

void
cache_db_walk_clear(struct cache_db_walk *walk)
{
    buffer_clear(&walk->key);
    buffer_clear(&walk->value);
}
