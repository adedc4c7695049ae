/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in an SQLite database, the default: durable, one file, no other program.
 *
 * Write-ahead log with synchronous=FULL: a commit is one write and one fsync of the log, and
 * readers see only what is durable. One connection writes (sqlite_commit.c), a few others read
 * (sqlite_readers.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/sqlite_internal.h"

#define CACHE_KIB 512
#define CHECK_MS 30 /* at each start */

enum { GET, LIST, REVISION };

static const char *const statements[] = {
    [GET] = "SELECT key, value, revision FROM entry WHERE key = ?1",
    [LIST] = "SELECT key, value, revision FROM entry WHERE key >= ?1 ORDER BY key",
    [REVISION] = "SELECT number FROM meta WHERE name = 'revision'",
    NULL,
};

struct sqlite_store {
    struct store base; /* must be first */
    struct sqlite_files files;
    struct sqlite_readers readers;
    struct sqlite_log log;
    struct sqlite_committer committer;
};

static struct sqlite_store *
own(struct store *store)
{
    return (struct sqlite_store *)store;
}

/* ---- reading ---- */

/* A damaged row may have none. */
static const char *
key_of(sqlite3_stmt *statement)
{
    const char *key = (const char *)sqlite3_column_text(statement, 0);
    return key ? key : "";
}

static struct store_entry
copy_row(struct arena *arena, sqlite3_stmt *statement)
{
    const char *key = key_of(statement);
    const void *value = sqlite3_column_blob(statement, 1);
    return store_copy_entry(arena, key, (size_t)sqlite3_column_bytes(statement, 0), value,
                            (size_t)sqlite3_column_bytes(statement, 1),
                            (uint64_t)sqlite3_column_int64(statement, 2));
}

static struct error *
sqlite_get(struct store *base, const char *key, struct arena *arena, struct store_entry *out)
{
    struct sqlite_store *store = own(base);
    struct sqlite_connection *reader;
    struct error *error = sqlite_readers_take(&store->readers, &reader);
    if (error)
        return error;
    sqlite3_stmt *statement = reader->statements[GET];
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        *out = copy_row(arena, statement);
    else if (result == SQLITE_DONE)
        error = store_error_not_found(key);
    else
        error = sqlite_connection_error(reader);
    sqlite3_reset(statement);
    sqlite_readers_give_back(&store->readers, reader);
    return error;
}

static bool
has_prefix(sqlite3_stmt *statement, const char *prefix, size_t size)
{
    return !strncmp(key_of(statement), prefix, size);
}

static struct error *
collect(struct sqlite_connection *reader, const char *prefix, const char *after, size_t limit,
        struct arena *arena, struct store_list *out)
{
    sqlite3_stmt *statement = reader->statements[LIST];
    size_t capacity = 0, prefix_size = strlen(prefix);
    int result;
    sqlite3_bind_text(statement, 1, after ? after : prefix, -1, SQLITE_STATIC);
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        if (after && !strcmp(key_of(statement), after))
            continue;
        if (!has_prefix(statement, prefix, prefix_size))
            return NULL;
        out->has_more = limit && out->count == limit;
        if (out->has_more)
            return NULL;
        store_append_entry(arena, out, &capacity, copy_row(arena, statement));
    }
    return result == SQLITE_DONE ? NULL : sqlite_connection_error(reader);
}

static struct error *
sqlite_list(struct store *base, const char *prefix, const char *after, size_t limit,
            struct arena *arena, struct store_list *out)
{
    struct sqlite_store *store = own(base);
    struct sqlite_connection *reader;
    struct error *error = sqlite_readers_take(&store->readers, &reader);
    if (error)
        return error;
    error = collect(reader, prefix, after, limit, arena, out);
    sqlite3_reset(reader->statements[LIST]);
    sqlite_readers_give_back(&store->readers, reader);
    return error;
}

/*
 * Not the committer's own number: another reader may have seen entries of a commit that it has not
 * counted yet.
 */
static struct error *
sqlite_revision(struct store *base, uint64_t *revision)
{
    struct sqlite_store *store = own(base);
    struct sqlite_connection *reader;
    struct error *error = sqlite_readers_take(&store->readers, &reader);
    if (error)
        return error;
    sqlite3_stmt *statement = reader->statements[REVISION];
    if (sqlite3_step(statement) == SQLITE_ROW)
        *revision = (uint64_t)sqlite3_column_int64(statement, 0);
    else
        error = sqlite_connection_error(reader);
    sqlite3_reset(statement);
    sqlite_readers_give_back(&store->readers, reader);
    return error;
}

static struct error *
sqlite_check(struct store *base)
{
    struct sqlite_store *store = own(base);
    struct sqlite_connection *reader;
    struct error *error = sqlite_readers_take(&store->readers, &reader);
    if (error)
        return error;
    error = sqlite_check_all(reader);
    sqlite_readers_give_back(&store->readers, reader);
    return error;
}

/* ---- writing ---- */

static struct error *
sqlite_write(struct store *base, const struct store_change *changes, size_t count,
             uint64_t *revision)
{
    return sqlite_committer_write(&own(base)->committer, changes, count, revision);
}

/* ---- opening and closing ---- */

/* Without the log, so that everything is in one file when it is renamed. */
static struct error *
make_database(const struct sqlite_files *files)
{
    struct sqlite_connection connection = {0};
    char *path AUTO(memory_cleanup) = NULL;
    struct error *error = sqlite_files_begin(files, &path);
    if (!error)
        error = sqlite_connection_open(&connection, path, CACHE_KIB);
    if (!error)
        error = sqlite_schema_mark(&connection);
    if (!error)
        error = sqlite_schema_migrate(&connection, sqlite_schema_steps, sqlite_schema_step_count);
    sqlite_connection_close(&connection);
    return error ? error : sqlite_files_finish(files, path);
}

/* A refused database stays as it is: closing it must not copy the log into it. */
static void
set_copy_at_close(struct sqlite_connection *connection, bool is_on)
{
    sqlite3_db_config(connection->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !is_on, NULL);
}

static struct error *
prepare_database(struct sqlite_store *store, struct sqlite_connection *connection)
{
    set_copy_at_close(connection, false);
    struct error *error = sqlite_schema_check(connection, sqlite_schema_step_count);
    if (!error)
        error = sqlite_check_for(connection, CHECK_MS);
    if (!error)
        error = sqlite_log_open(&store->log, connection, &store->readers);
    if (!error)
        error = sqlite_schema_migrate(connection, sqlite_schema_steps, sqlite_schema_step_count);
    return error ? error : sqlite_schema_sign(connection);
}

static struct error *
open_database(struct sqlite_store *store)
{
    struct sqlite_connection connection = {0};
    bool exists = false;
    struct error *error = sqlite_files_find(&store->files, &exists);
    if (!error && !exists)
        error = make_database(&store->files);
    if (!error)
        error = sqlite_connection_open(&connection, store->files.database, CACHE_KIB);
    if (!error)
        error = prepare_database(store, &connection);
    if (!error)
        error = sqlite_committer_open(&store->committer, &connection, &store->base.history);
    if (!error)
        set_copy_at_close(&store->committer.connection, true);
    sqlite_connection_close(&connection);
    /* Opening a store asks whether it can be used. */
    if (error && error->code == CODE_DATA_LOSS)
        error->code = CODE_FAILED_PRECONDITION;
    return error;
}

static struct error *
sqlite_open(const char *place, const struct store_options *options, struct store **out)
{
    (void)options;
    struct sqlite_store *store = memory_zeroed(sizeof *store);
    struct error *error = sqlite_files_open(place, &store->files);
    sqlite_readers_init(&store->readers, store->files.database, statements);
    if (!error)
        error = open_database(store);
    if (error) {
        sqlite_readers_clear(&store->readers);
        sqlite_files_close(&store->files);
        free(store);
        return error;
    }
    store->base.ops = &sqlite_store_ops;
    history_init(&store->base.history, store->committer.revision);
    *out = &store->base;
    return NULL;
}

/*
 * The writer is closed last: the last connection copies the log into the database. The lock is
 * released after it.
 */
static void
sqlite_close(struct store *base)
{
    struct sqlite_store *store = own(base);
    sqlite_readers_clear(&store->readers);
    sqlite_committer_close(&store->committer);
    sqlite_files_close(&store->files);
    history_clear(&base->history);
    free(store);
}

static struct error *
sqlite_set_aside(const char *place, struct arena *arena, const char **moved_to)
{
    struct sqlite_files files;
    struct error *error = sqlite_files_open(place, &files);
    if (error)
        return error;
    error = sqlite_files_set_aside(&files, arena, moved_to);
    sqlite_files_close(&files);
    return error;
}

const struct store_ops sqlite_store_ops = {
    .scheme = "sqlite",
    .form = "sqlite:DIRECTORY",
    .open = sqlite_open,
    .close = sqlite_close,
    .get = sqlite_get,
    .write = sqlite_write,
    .list = sqlite_list,
    .revision = sqlite_revision,
    .check = sqlite_check,
    .set_aside = sqlite_set_aside,
};
