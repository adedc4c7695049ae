/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables and their versions. sqlite_steps.c has the list of versions.
 *
 * The key is not the b-tree's own key (WITHOUT ROWID): then the inner pages would contain whole
 * entries, and one of more than a kilobyte would need pages of its own. The revision counter is a
 * row of its own, written with each commit, because the highest revision among the entries
 * decreases when that entry is deleted.
 */
#include <stdio.h>

#include "base/version.h"
#include "store/sqlite_internal.h"

#define APPLICATION_ID 0x534b5943 /* "SKYC" */

const char sqlite_schema_tables[] = "CREATE TABLE entry ("
                                    "    key TEXT NOT NULL UNIQUE,"
                                    "    revision INTEGER NOT NULL,"
                                    "    value BLOB NOT NULL"
                                    ") STRICT;"
                                    "CREATE TABLE meta ("
                                    "    name TEXT NOT NULL PRIMARY KEY,"
                                    "    number INTEGER NOT NULL"
                                    ") STRICT, WITHOUT ROWID;"
                                    "INSERT INTO meta (name, number) VALUES ('revision', 0);";

/* ---- versions ---- */

struct error *
sqlite_schema_mark(struct sqlite_connection *connection)
{
    char sql[48];
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d", APPLICATION_ID);
    return sqlite_execute(connection, sql);
}

/* ---- who wrote it ---- */

/* 0.12.3 is 12003: a number, because the table has only those. */
static int64_t
own_number(void)
{
    unsigned major = 0, minor = 0, patch = 0;
    /* Three digits are always a number. NOLINTNEXTLINE(cert-err34-c) */
    sscanf(SKYCAP_VERSION, "%3u.%3u.%3u", &major, &minor, &patch);
    return (int64_t)major * 1000000 + minor * 1000 + patch;
}

/* "0.12.3"; "a newer version" if the store does not say. */
static void
print_writer(struct sqlite_connection *connection, char *out, size_t size)
{
    int64_t number = 0;
    struct error *error AUTO(error_cleanup) = sqlite_query_number(
        connection, "SELECT coalesce(max(number), 0) FROM meta WHERE name = 'writer'", &number);
    if (error || number <= 0)
        snprintf(out, size, "a newer version of skycap");
    else
        snprintf(out, size, "skycap %lld.%lld.%lld", (long long)(number / 1000000),
                 (long long)(number / 1000 % 1000), (long long)(number % 1000));
}

/* The newest program that has used the store is the one to advise. */
struct error *
sqlite_schema_sign(struct sqlite_connection *connection)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "INSERT INTO meta (name, number) VALUES ('writer', %lld) ON CONFLICT (name) DO UPDATE "
             "SET number = excluded.number WHERE number < excluded.number",
             (long long)own_number());
    return sqlite_execute(connection, sql);
}

static struct error *
from_newer(struct sqlite_connection *connection, int64_t version, size_t step_count)
{
    char writer[64];
    print_writer(connection, writer, sizeof writer);
    return error_new(
        CODE_FAILED_PRECONDITION,
        "the store %s has been written by %s (version %lld of its tables; this is "
        "skycap " SKYCAP_VERSION ", which knows %zu): start that program or a newer one "
        "again; to stay with this one, put back the copy of the store that was made "
        "before the upgrade, %s.version-%zu (docs/upgrade.md). Nothing was changed",
        connection->path, writer, (long long)version, step_count, connection->path, step_count);
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
        return from_newer(connection, version, step_count);
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
    if (!error && version > 0 && (size_t)version < step_count)
        error = sqlite_copy_keep(connection, version);
    for (size_t i = error ? step_count : (size_t)version; i < step_count && !error; i++)
        error = take_step(connection, steps[i], i + 1);
    return error;
}
