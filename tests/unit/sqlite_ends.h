/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the SQLite store share: its files, touched by hand. */
#ifndef UNIT_SQLITE_ENDS_H
#define UNIT_SQLITE_ENDS_H

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "store/sqlite_internal.h"
#include "store_ends.h"

#define MIB (INT64_C(1) << 20)

static inline int64_t
size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

static inline unsigned
mode_of(const char *path)
{
    struct stat status = {0};
    stat(path, &status);
    return status.st_mode & 07777;
}

static inline void
write_at(const char *path, int64_t offset, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK_NUMBER(pwrite(fd, bytes, size, offset), size);
    close(fd);
}

/* Runs SQL on the database of a store that is closed, or makes one. */
static inline void
change_database(const char *name, const char *sql)
{
    sqlite3 *db;
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "%s/state.db", name);
    CHECK_NUMBER(sqlite3_open(below(path), &db), SQLITE_OK);
    sqlite3_exec(db, sql, NULL, NULL, &text);
    CHECK_TEXT(text, NULL);
    sqlite3_free(text);
    sqlite3_close(db);
}

static inline void
check_refused(const char *name, const char *part)
{
    struct store *store;
    CHECK_SAYS(store_open(url_of(name), NULL, &store), CODE_FAILED_PRECONDITION, part);
    CHECK(!store);
}

static inline void
make_store(const char *name, unsigned entries)
{
    struct store *store = open_store(url_of(name));
    char value[401];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (unsigned done = 0; done < entries;) {
        static char keys[STORE_MAX_CHANGES][24];
        struct store_change changes[STORE_MAX_CHANGES];
        size_t count = 0;
        for (; count < STORE_MAX_CHANGES && done < entries; count++, done++) {
            snprintf(keys[count], sizeof keys[count], "volume/%08u", done);
            changes[count] = text_change(keys[count], value, STORE_ANY);
        }
        CHECK_OK(store_write(store, changes, count, NULL));
    }
    store_close(store);
}

#endif
