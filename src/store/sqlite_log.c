/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write-ahead log: what is committed goes there first, and from there into the database now and then; after that the log is
 * written from its beginning again.
 *
 * DESIGN. Two things that SQLite leaves to chance are seen to here. A log that grows costs a commit of the file system with each of
 * ours, twice the time; so it gets its size at the start. And while somebody reads all the time, the moment in which the log could be begun again may
 * not come for long (it grew by 50 MB a second); so from some size on we wait until the present readers have finished, which
 * later ones do not hold up.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "store/sqlite_internal.h"

#define COPY_PAGES 1000      /* the log is copied when it has so many */
#define COPY_AGAIN_PAGES 250 /* and again after so many more, if it could not be begun anew */
#define LONG_PAGES                                                                                 \
    (4 * COPY_PAGES) /* from here on readers are waited for, once for so many pages */
#define WAIT_MS 500
#define LOG_BYTES (4 << 20) /* a little more than COPY_PAGES take */

static const struct sqlite_log begun_anew = {.copy_at = COPY_PAGES, .wait_at = LONG_PAGES};

/* ---- copying ---- */

static void
copy(sqlite3 *db, bool and_wait)
{
    sqlite3_busy_timeout(db, WAIT_MS);
    sqlite3_wal_checkpoint_v2(
        db, "main", and_wait ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    sqlite3_busy_timeout(db, SQLITE_BUSY_MS);
}

/*
 * Called behind each commit. What is committed is durable already, so nothing that goes wrong here concerns the writer: it is tried
 * again later, and if the log can neither be copied nor grow (a full disk) a commit will say so.
 */
static int
look_at_log(void *argument, sqlite3 *db, const char *name, int pages)
{
    (void)name;
    struct sqlite_log *log = argument;
    if (pages < log->pages)
        *log = begun_anew;
    log->pages = pages;
    if (pages >= log->copy_at) {
        bool and_wait = pages >= log->wait_at;
        copy(db, and_wait);
        log->copy_at = pages + COPY_AGAIN_PAGES;
        log->wait_at = and_wait ? pages + LONG_PAGES : log->wait_at;
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

/* SQLite takes zeros behind the last page of the log for the end of it. A log that stays short is only slower. */
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
sqlite_log_open(struct sqlite_log *log, struct sqlite_connection *connection)
{
    char limit[48];
    snprintf(limit, sizeof limit, "PRAGMA journal_size_limit = %d", LOG_BYTES);
    *log = begun_anew;
    struct error *error = switch_on(connection);
    if (!error)
        error = sqlite_execute(connection, limit);
    if (error)
        return error;
    extend_log(connection->path);
    sqlite3_wal_hook(connection->db, look_at_log, log);
    return NULL;
}
