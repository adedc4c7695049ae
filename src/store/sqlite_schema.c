/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables and their versions.
 *
 * The key is not the b-tree's own key (WITHOUT ROWID): then the inner pages would contain whole
 * entries, and one of more than a kilobyte would need pages of its own. The revision counter is a
 * row of its own, written with each commit, because the highest revision among the entries
 * decreases when that entry is deleted.
 */
#include <stdio.h>

#include "store/sqlite_internal.h"

#define APPLICATION_ID 0x534b5943 /* "SKYC" */

const char *const sqlite_schema_steps[] = {
    "CREATE TABLE entry ("
    "    key TEXT NOT NULL UNIQUE,"
    "    revision INTEGER NOT NULL,"
    "    value BLOB NOT NULL"
    ") STRICT;"
    "CREATE TABLE meta ("
    "    name TEXT NOT NULL PRIMARY KEY,"
    "    number INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO meta (name, number) VALUES ('revision', 0);",
};
const size_t sqlite_schema_step_count = COUNT_OF(sqlite_schema_steps);

/* ---- versions ---- */

struct error *
sqlite_schema_mark(struct sqlite_connection *connection)
{
    char sql[48];
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d", APPLICATION_ID);
    return sqlite_execute(connection, sql);
}

struct error *
sqlite_schema_check(struct sqlite_connection *connection, size_t step_count)
{
    int64_t id, version;
    struct error *error = sqlite_query_number(connection, "PRAGMA application_id", &id);
    if (!error)
        error = sqlite_query_number(connection, "PRAGMA user_version", &version);
    if (error)
        return error;
    if (id != APPLICATION_ID)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s is a database, but not a store of skycap: give another directory",
                         connection->path);
    if (version < 0 || (uint64_t)version > step_count)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the store %s has been written by a newer skycap (version %lld of its "
                         "tables; this program knows %zu): use the newer program",
                         connection->path, (long long)version, step_count);
    return NULL;
}

/*
 * Changes the tables and their version in one transaction: a crash leaves the old or the new ones.
 */
static struct error *
take_step(struct sqlite_connection *connection, const char *step, size_t version)
{
    char mark[48];
    snprintf(mark, sizeof mark, "PRAGMA user_version = %zu", version);
    struct error *error = sqlite_execute(connection, "BEGIN IMMEDIATE");
    if (error)
        return error;
    error = sqlite_execute(connection, step);
    if (!error)
        error = sqlite_execute(connection, mark);
    if (!error)
        error = sqlite_execute(connection, "COMMIT");
    if (error && !sqlite3_get_autocommit(connection->db))
        sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    return error_wrap(error, "bring the tables to version %zu", version);
}

struct error *
sqlite_schema_migrate(struct sqlite_connection *connection, const char *const *steps,
                      size_t step_count)
{
    int64_t version;
    struct error *error = sqlite_query_number(connection, "PRAGMA user_version", &version);
    for (size_t i = error ? step_count : (size_t)version; i < step_count && !error; i++)
        error = take_step(connection, steps[i], i + 1);
    return error;
}
