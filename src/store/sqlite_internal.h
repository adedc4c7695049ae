/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the SQLite store, for its own files only:
 *
 *     sqlite.c             the store: opening, reading, the ops
 *     sqlite_files.c       directory, lock, names of files
 *     sqlite_connection.c  one connection: settings, statements, errors
 *     sqlite_schema.c      the tables and their versions
 *     sqlite_steps.c       the steps from each version to the next
 *     sqlite_copy.c        the copy that is made before an upgrade
 *     sqlite_check.c       whether they are sound
 *     sqlite_readers.c     the connections to read with
 *     sqlite_log.c         the write-ahead log
 *     sqlite_commit.c      writing: group commit
 */
#ifndef STORE_SQLITE_INTERNAL_H
#define STORE_SQLITE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/store_ops.h"

/* ---- sqlite_files.c ---- */

struct sqlite_files {
    char *directory; /* absolute */
    char *database;
    int lock; /* a descriptor, or -1 */
};

/*
 * Creates the directory if it is missing and locks it: FAILED_PRECONDITION if somebody else holds
 * the lock.
 */
MUST_CHECK struct error *sqlite_files_open(const char *directory, struct sqlite_files *out);
void sqlite_files_close(struct sqlite_files *files);

/* `*exists`: there is a database. FAILED_PRECONDITION if there are only remains of one. */
MUST_CHECK struct error *sqlite_files_find(const struct sqlite_files *files, bool *exists);

/*
 * An empty file to make the database in, invisible until it is renamed. The caller frees the name.
 */
MUST_CHECK struct error *sqlite_files_begin(const struct sqlite_files *files, char **unfinished);
MUST_CHECK struct error *sqlite_files_finish(const struct sqlite_files *files,
                                             const char *unfinished);

MUST_CHECK struct error *sqlite_files_set_aside(const struct sqlite_files *files,
                                                struct arena *arena, const char **moved_to);

/* ---- sqlite_connection.c ---- */

#define SQLITE_MAX_STATEMENTS 8

struct sqlite_connection {
    sqlite3 *db;
    const char *path; /* not owned */
    sqlite3_stmt *statements[SQLITE_MAX_STATEMENTS];
};

/* `path` must outlive it. */
MUST_CHECK struct error *sqlite_connection_open(struct sqlite_connection *connection,
                                                const char *path, int cache_kib);
/* Prepares a NULL-terminated list of SQL statements and keeps them in the same order. */
MUST_CHECK struct error *sqlite_connection_prepare(struct sqlite_connection *connection,
                                                   const char *const *statements);
void sqlite_connection_close(struct sqlite_connection *connection);

/* The last error of the connection; names the file and says what can be done. */
MUST_CHECK NEVER_NULL struct error *sqlite_connection_error(struct sqlite_connection *connection);
MUST_CHECK NEVER_NULL struct error *sqlite_damaged(const char *path, const char *what);

MUST_CHECK struct error *sqlite_execute(struct sqlite_connection *connection, const char *sql);
/* The number in the first row. */
MUST_CHECK struct error *sqlite_query_number(struct sqlite_connection *connection, const char *sql,
                                             int64_t *out);
/* Runs a prepared statement that returns no row. */
MUST_CHECK struct error *sqlite_run(struct sqlite_connection *connection, sqlite3_stmt *statement);

/* ---- sqlite_steps.c ---- */

/*
 * Step i upgrades a database of version i to version i + 1; once released, a step never changes. In
 * a file of its own, so that tests can link another one.
 */
extern const char *const sqlite_schema_steps[];
extern const size_t sqlite_schema_step_count;

/* ---- sqlite_copy.c ---- */

/*
 * Copies the store to PATH.version-N, for a downgrade. An earlier copy is replaced when the new one
 * is complete and durable; after an error it is still there.
 */
MUST_CHECK struct error *sqlite_copy_keep(struct sqlite_connection *connection, int64_t version);

/* ---- sqlite_schema.c ---- */

/* The first step: the tables of version 1. */
extern const char sqlite_schema_tables[];

/* Marks a new database as ours. */
MUST_CHECK struct error *sqlite_schema_mark(struct sqlite_connection *connection);

/* FAILED_PRECONDITION if the database is not ours, or was made by a newer version. */
MUST_CHECK struct error *sqlite_schema_check(struct sqlite_connection *connection,
                                             size_t step_count);
/* Notes the version of this program, for the one that refuses the store one day. */
MUST_CHECK struct error *sqlite_schema_sign(struct sqlite_connection *connection);
MUST_CHECK struct error *sqlite_schema_migrate(struct sqlite_connection *connection,
                                               const char *const *steps, size_t step_count);

/* ---- sqlite_check.c ---- */

/* DATA_LOSS if it is damaged. Checks as much as it can within the time. */
MUST_CHECK struct error *sqlite_check_for(struct sqlite_connection *connection, unsigned limit_ms);
MUST_CHECK struct error *sqlite_check_all(struct sqlite_connection *connection);

/* ---- sqlite_readers.c ---- */

#define SQLITE_READERS 4

struct sqlite_readers {
    const char *path;              /* not owned */
    const char *const *statements; /* prepared by each of them */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sqlite_connection *free[SQLITE_READERS];
    unsigned free_count;
    unsigned count; /* of open ones */
    bool is_paused;
};

void sqlite_readers_init(struct sqlite_readers *readers, const char *path,
                         const char *const *statements);
/* Called when all have been given back. */
void sqlite_readers_clear(struct sqlite_readers *readers);
MUST_CHECK struct error *sqlite_readers_take(struct sqlite_readers *readers,
                                             struct sqlite_connection **out);
void sqlite_readers_give_back(struct sqlite_readers *readers, struct sqlite_connection *reader);

/*
 * Lets no reader start, and waits until none is active. False: one is still active. Call
 * sqlite_readers_resume in either case.
 */
bool sqlite_readers_pause(struct sqlite_readers *readers, unsigned limit_ms);
void sqlite_readers_resume(struct sqlite_readers *readers);

/* ---- sqlite_log.c ---- */

struct sqlite_log {
    struct sqlite_readers *readers;
    int pages;    /* after the last commit */
    int copy_at;  /* the size from which it is copied into the database */
    int pause_at; /* the size from which readers are paused for that */
};

/* Switches the log on, for the writing connection. `log` and `readers` must outlive it. */
MUST_CHECK struct error *sqlite_log_open(struct sqlite_log *log,
                                         struct sqlite_connection *connection,
                                         struct sqlite_readers *readers);

/* ---- sqlite_commit.c ---- */

struct pending;

/* The queue of writers, and the connection that their leader uses. */
struct sqlite_committer {
    struct sqlite_connection connection; /* used by the leader */
    struct history *history;
    uint64_t revision; /* of the last commit */
    pthread_mutex_t lock;
    struct pending *first; /* waiting, in the order of their arrival */
    struct pending **last;
    bool has_leader;
};

/* Takes the connection. */
MUST_CHECK struct error *sqlite_committer_open(struct sqlite_committer *committer,
                                               struct sqlite_connection *connection,
                                               struct history *history);
void sqlite_committer_close(struct sqlite_committer *committer);
MUST_CHECK struct error *sqlite_committer_write(struct sqlite_committer *committer,
                                                const struct store_change *changes, size_t count,
                                                uint64_t *revision);

#endif
