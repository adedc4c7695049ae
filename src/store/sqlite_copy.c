/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy of the store that a downgrade goes back to. It is made under another name and renamed
 * when it is complete and durable: a full disk or a power cut leaves no half of one that the next
 * start would take for the copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/new_file.h"
#include "store/sqlite_internal.h"

static char *
print_path(const char *database, int64_t version, const char *suffix)
{
    char *path;
    if (asprintf(&path, "%s.version-%lld%s", database, (long long)version, suffix) < 0)
        memory_exhausted();
    return path;
}

/* Of an attempt that failed. The next one must not find the journal: SQLite would play it back. */
static void
remove_remains(const char *unfinished)
{
    char *journal AUTO(memory_cleanup) = NULL;
    if (asprintf(&journal, "%s-journal", unfinished) < 0)
        memory_exhausted();
    unlink(unfinished);
    unlink(journal);
}

/* SQLite writes into an empty file that is there, and so does not choose its mode. */
static struct error *
make_empty(const char *path, int *fd)
{
    remove_remains(path);
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return *fd < 0 ? error_from_errno(errno, "make %s", path) : NULL;
}

static struct error *
copy_into(struct sqlite_connection *connection, const char *path)
{
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", path);
    if (!sql)
        memory_exhausted();
    struct error *error = sqlite_execute(connection, sql);
    sqlite3_free(sql);
    return error;
}

struct error *
sqlite_copy_keep(struct sqlite_connection *connection, int64_t version)
{
    struct new_file copy AUTO(new_file_clear) = {
        .path = print_path(connection->path, version, ""),
        .temporary = print_path(connection->path, version, ".new"),
    };
    int fd AUTO(files_close) = -1;
    struct error *error = make_empty(copy.temporary, &fd);
    if (!error)
        error = copy_into(connection, copy.temporary);
    if (!error && fsync(fd) != 0)
        error = error_from_errno(errno, "make %s durable", copy.temporary);
    if (!error)
        error = new_file_put(&copy, true);
    if (copy.temporary)
        remove_remains(copy.temporary);
    return error_wrap(error, "copy the store to %s before its upgrade; nothing was changed",
                      copy.path);
}
