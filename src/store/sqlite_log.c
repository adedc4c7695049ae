/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write-ahead log: commits go there first, and are copied into the database from time to time;
 * after that the log is written from its beginning again.
 *
 * This does two things that SQLite leaves to chance. A growing log makes each of our commits cost
 * one of the file system too, which doubles the time; so the log gets its size at the start. And
 * the log can start again only when nobody reads from it, which may not happen for a long time (it
 * grew by 50 MB a second under four readers); so beyond a certain size readers are paused. SQLite's
 * own way to wait for readers (SQLITE_CHECKPOINT_RESTART) was tried: it polls, and with the same
 * readers often did not succeed in half a second.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "store/sqlite_internal.h"

#define COPY_PAGES 1000      /* the log is copied when it has this many */
#define COPY_AGAIN_PAGES 250 /* and again after this many more, if it could not start again */
#define LONG_PAGES 4000      /* readers are paused once for each of these */
#define WAIT_MS 200
#define LOG_BYTES (4 << 20) /* a little more than COPY_PAGES need */

/* ---- copying ---- */

static void
copy(sqlite3 *db)
{
    sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/*
 * A reader that starts when everything is copied reads only from the database, so the next commit
 * can start the log again.
 */
static void
copy_without_readers(struct sqlite_log *log, sqlite3 *db)
{
    if (sqlite_readers_pause(log->readers, WAIT_MS))
        copy(db);
    sqlite_readers_resume(log->readers);
}

static void
begin(struct sqlite_log *log)
{
    log->copy_at = COPY_PAGES;
    log->pause_at = LONG_PAGES;
}

/*
 * Called after each commit. The commit is already durable, so a failure here does not concern the
 * writer: it is tried again later, and if the log can be neither copied nor extended (a full disk),
 * a commit will report it.
 */
static int
look_at_log(void *argument, sqlite3 *db, const char *name, int pages)
{
    (void)name;
    struct sqlite_log *log = argument;
    if (pages < log->pages)
        begin(log);
    log->pages = pages;
    if (pages < log->copy_at)
        return SQLITE_OK;
    log->copy_at = pages + COPY_AGAIN_PAGES;
    copy(db);
    if (pages >= log->pause_at) {
        log->pause_at = pages + LONG_PAGES;
        copy_without_readers(log, db);
    }
    return SQLITE_OK;
}

/* ---- switching on ---- */

/* SQLite does not report an error if it keeps another mode. */
static struct error *
switch_on(struct sqlite_connection *connection)
{
    int64_t is_on;
    struct error *error = sqlite_execute(connection, "PRAGMA journal_mode = WAL");
    if (!error)
        error = sqlite_query_number(connection,
                                    "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &is_on);
    if (!error && !is_on)
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the file system of %s cannot have a write-ahead log (is it a network "
                          "one?): give a directory on a local disk",
                          connection->path);
    return error;
}

/*
 * SQLite takes zeros after the last page of the log for its end. If this fails, the log is only
 * slower.
 */
static void
extend_log(const char *database)
{
    static const uint8_t zeros[64 * 1024];
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s-wal", database);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    off_t end = lseek(fd, 0, SEEK_END);
    while (end >= 0 && end < LOG_BYTES) {
        ssize_t written = pwrite(fd, zeros, sizeof zeros, end);
        if (written < 0)
            break;
        end += written;
    }
    fdatasync(fd);
    close(fd);
}

struct error *
sqlite_log_open(struct sqlite_log *log, struct sqlite_connection *connection,
                struct sqlite_readers *readers)
{
    char limit[48];
    snprintf(limit, sizeof limit, "PRAGMA journal_size_limit = %d", LOG_BYTES);
    *log = (struct sqlite_log){.readers = readers};
    begin(log);
    struct error *error = switch_on(connection);
    if (!error)
        error = sqlite_execute(connection, limit);
    if (error)
        return error;
    extend_log(connection->path);
    sqlite3_wal_hook(connection->db, look_at_log, log);
    return NULL;
}
