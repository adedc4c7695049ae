/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to the database: its settings, statements and errors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/sqlite_internal.h"

/* Others open the database only briefly: somebody with sqlite3, or a backup. */
#define BUSY_MS 5000

/*
 * secure_delete is Debian's default and overwrites deleted data with zeros, in the log too; the
 * values are not secret. With cell_size_check and trusted_schema, a damaged or foreign database
 * causes an error rather than undefined behaviour.
 */
static const char settings[] = "PRAGMA synchronous = FULL;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA secure_delete = OFF;"
                               "PRAGMA cell_size_check = ON;"
                               "PRAGMA trusted_schema = OFF;";

static struct error *
apply_settings(struct sqlite_connection *connection, int cache_kib)
{
    char cache[48];
    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d", cache_kib);
    sqlite3_extended_result_codes(connection->db, 1);
    sqlite3_busy_timeout(connection->db, BUSY_MS);
    struct error *error = sqlite_execute(connection, settings);
    return error ? error : sqlite_execute(connection, cache);
}

struct error *
sqlite_connection_open(struct sqlite_connection *connection, const char *path, int cache_kib)
{
    *connection = (struct sqlite_connection){.path = path};
    /* Each connection is used by one thread at a time. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    struct error *error = NULL;
    if (sqlite3_open_v2(path, &connection->db, flags, NULL) != SQLITE_OK)
        error = sqlite_connection_error(connection);
    if (!error)
        error = apply_settings(connection, cache_kib);
    if (error)
        sqlite_connection_close(connection);
    return error;
}

struct error *
sqlite_connection_prepare(struct sqlite_connection *connection, const char *const *statements)
{
    for (size_t i = 0; statements[i]; i++)
        if (sqlite3_prepare_v3(connection->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &connection->statements[i], NULL) != SQLITE_OK)
            return sqlite_connection_error(connection);
    return NULL;
}

void
sqlite_connection_close(struct sqlite_connection *connection)
{
    for (size_t i = 0; i < COUNT_OF(connection->statements); i++)
        sqlite3_finalize(connection->statements[i]);
    sqlite3_close(connection->db);
    *connection = (struct sqlite_connection){0};
}

/* ---- errors ---- */

struct error *
sqlite_damaged(const char *path, const char *what)
{
    return error_new(CODE_DATA_LOSS,
                     "the store %s is damaged: %s. Stop skycap and run `skycap doctor --rebuild`: "
                     "it keeps the damaged files and makes a new store from the notes beside the "
                     "volumes",
                     path, what);
}

static bool
is_out_of_space(int code, int errnum)
{
    switch (code) {
    case SQLITE_FULL:
    case SQLITE_IOERR_SHMSIZE:
        return true;
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
    case SQLITE_CANTOPEN:
        return errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG;
    default:
        return false;
    }
}

static enum code
code_of(int primary)
{
    switch (primary) {
    case SQLITE_NOMEM:
        return CODE_RESOURCE_EXHAUSTED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return CODE_UNAVAILABLE;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return CODE_FAILED_PRECONDITION;
    default:
        return CODE_INTERNAL;
    }
}

struct error *
sqlite_connection_error(struct sqlite_connection *connection)
{
    int errnum = errno; /* sqlite3_system_errno() does not report it if a commit fails */
    const char *text = sqlite3_errmsg(connection->db);
    int code = sqlite3_extended_errcode(connection->db);
    int primary = code & 0xff;
    if (is_out_of_space(code, errnum))
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "no space left for the store %s: free some and try again",
                         connection->path);
    /* SQLITE_ERROR: our statements do not fit the tables. */
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR)
        return sqlite_damaged(connection->path, text);
    if (errnum && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN))
        return error_new(CODE_INTERNAL, "the store %s: %s (%d): %s", connection->path, text, code,
                         strerrordesc_np(errnum));
    return error_new(code_of(primary), "the store %s: %s (%d)", connection->path, text, code);
}

/* ---- statements ---- */

struct error *
sqlite_execute(struct sqlite_connection *connection, const char *sql)
{
    if (sqlite3_exec(connection->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_connection_error(connection);
    return NULL;
}

struct error *
sqlite_query_number(struct sqlite_connection *connection, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    struct error *error = NULL;
    if (sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return sqlite_connection_error(connection);
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    else if (result == SQLITE_DONE)
        error = sqlite_damaged(connection->path, "a row that every store has is missing");
    else
        error = sqlite_connection_error(connection);
    sqlite3_finalize(statement);
    return error;
}

struct error *
sqlite_run(struct sqlite_connection *connection, sqlite3_stmt *statement)
{
    struct error *error = NULL;
    if (sqlite3_step(statement) != SQLITE_DONE)
        error = sqlite_connection_error(connection);
    sqlite3_reset(statement);
    return error;
}
