/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write-ahead log: what is committed goes there first, and from there into the database now and
 * then; after that the log is written from its beginning again.
 *
 * DESIGN. Two things that SQLite leaves to chance are seen to here. A log that grows costs a commit
 * of the file system with each of ours, twice the time; so it gets its size at the start. And the
 * log can be begun anew only in a moment when nobody reads from it, which may not come for long (it
 * grew by 50 MB a second under four readers); so from some size on we make such a moment. SQLite's
 * own way to wait for readers (SQLITE_CHECKPOINT_RESTART) was tried: it polls, and under the same
 * readers often did not get there in half a second.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "store/sqlite_internal.h"

#define COPY_PAGES 1000      /* the log is copied when it has so many */
#define COPY_AGAIN_PAGES 250 /* and again after so many more, if it could not be begun anew */
#define LONG_PAGES 4000      /* for each so many the readers are paused once */
#define WAIT_MS 200
#define LOG_BYTES (4 << 20) /* a little more than COPY_PAGES take */

/* ---- copying ---- */

static void
copy(sqlite3 *db)
{
    sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/*
 * Who begins to read when all is copied reads from the database alone, and the next commit can
 * begin the log anew.
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
 * Called behind each commit. What is committed is durable already, so nothing that goes wrong here
 * concerns the writer: it is tried again later, and if the log can neither be copied nor grow (a
 * full disk) a commit will say so.
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

/* SQLite does not call it an error when it keeps another mode. */
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
 * SQLite takes zeros behind the last page of the log for the end of it. A log that stays short is
 * only slower.
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
