/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the SQLite store: state.db, SQLite's own state.db-wal and state.db-shm, and
 * state.lock.
 *
 * The store decides which data exists, so a damaged store must never be mistaken for an empty one.
 * Therefore the database is made under another name and renamed when it is complete: a state.db
 * without tables, or with no bytes, is always damaged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/sqlite_internal.h"

#define DATABASE "state.db"
#define UNFINISHED "state.db.new"
#define LOCK "state.lock"

/* What SQLite puts beside a database; the first is the database itself. */
static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

static void
close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static char *
join(const char *directory, const char *name, const char *suffix)
{
    char *path;
    if (asprintf(&path, "%s/%s%s", directory, name, suffix) < 0)
        memory_exhausted();
    return path;
}

/* A name is durable when its directory is. */
static struct error *
sync_directory(const char *path)
{
    int fd AUTO(close_file) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        return error_from_errno(errno, "make the directory %s durable", path);
    return NULL;
}

/* ---- directory and lock ---- */

static struct error *
make_directory(const char *path, char **absolute)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make the directory %s for the store", path);
    *absolute = realpath(path, NULL);
    return *absolute ? NULL : error_from_errno(errno, "find the directory %s of the store", path);
}

static struct error *
already_locked(int fd, const char *directory)
{
    char text[32] = "";
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    long pid = size > 0 ? strtol(text, NULL, 10) : 0;
    if (pid > 0)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the store in %s is in use by process %ld: stop that one, or give another "
                         "directory",
                         directory, pid);
    return error_new(CODE_FAILED_PRECONDITION,
                     "the store in %s is in use by another process: stop that one, or give another "
                     "directory",
                     directory);
}

/*
 * The kernel releases the lock when the process ends in any way; the process id in the file is for
 * messages.
 */
static struct error *
take_lock(struct sqlite_files *files)
{
    char *path AUTO(memory_cleanup) = join(files->directory, LOCK, "");
    int fd = files->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_from_errno(errno, "open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? already_locked(fd, files->directory)
                                    : error_from_errno(errno, "lock %s", path);
    /* If the disk is full the id is missing, and everything else works. */
    if (ftruncate(fd, 0) == 0)
        dprintf(fd, "%ld\n", (long)getpid());
    return NULL;
}

struct error *
sqlite_files_open(const char *directory, struct sqlite_files *out)
{
    *out = (struct sqlite_files){.lock = -1};
    if (!directory[0])
        return error_new(CODE_INVALID_ARGUMENT, "no directory stands behind \"sqlite:\"");
    struct error *error = make_directory(directory, &out->directory);
    if (!error)
        error = take_lock(out);
    if (error)
        sqlite_files_close(out);
    else
        out->database = join(out->directory, DATABASE, "");
    return error;
}

void
sqlite_files_close(struct sqlite_files *files)
{
    close_file(&files->lock);
    free(files->directory);
    free(files->database);
    *files = (struct sqlite_files){.lock = -1};
}

/* ---- the database ---- */

/* -1: there is no such file. */
static struct error *
find_size(const char *path, int64_t *size)
{
    struct stat status;
    *size = -1;
    if (stat(path, &status) == 0)
        *size = status.st_size;
    else if (errno != ENOENT)
        return error_from_errno(errno, "look at %s", path);
    return NULL;
}

struct error *
sqlite_files_find(const struct sqlite_files *files, bool *exists)
{
    int64_t size, log_size;
    char *log AUTO(memory_cleanup) = join(files->directory, DATABASE, "-wal");
    struct error *error = find_size(files->database, &size);
    if (!error)
        error = find_size(log, &log_size);
    if (error)
        return error;
    *exists = size > 0;
    if (size == 0)
        return sqlite_damaged(files->database, "the file is empty");
    /* SQLite would discard the log, and with it the latest writes. */
    if (size < 0 && log_size > 0)
        return sqlite_damaged(files->database, "the file is missing, but its log is there");
    return NULL;
}

struct error *
sqlite_files_begin(const struct sqlite_files *files, char **unfinished)
{
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char *left_over AUTO(memory_cleanup) = join(files->directory, UNFINISHED, suffixes[i]);
        unlink(left_over);
    }
    char *path AUTO(memory_cleanup) = join(files->directory, UNFINISHED, "");
    int fd AUTO(close_file) = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_from_errno(errno, "make %s", path);
    *unfinished = STEAL(path);
    return NULL;
}

struct error *
sqlite_files_finish(const struct sqlite_files *files, const char *unfinished)
{
    if (rename(unfinished, files->database) != 0)
        return error_from_errno(errno, "put %s in its place", unfinished);
    struct error *error = sync_directory(files->directory);
    /* The directory itself may be new too. */
    char *parent AUTO(memory_cleanup) = join(files->directory, "..", "");
    return error ? error : sync_directory(parent);
}

/* ---- setting aside ---- */

static struct error *
make_place_aside(const struct sqlite_files *files, char **out)
{
    for (int i = 1; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "damaged-%d", i);
        char *path AUTO(memory_cleanup) = join(files->directory, name, "");
        if (mkdir(path, 0700) == 0) {
            *out = STEAL(path);
            return NULL;
        }
        if (errno != EEXIST)
            return error_from_errno(errno, "make the directory %s", path);
    }
    return error_new(CODE_RESOURCE_EXHAUSTED, "%s has 10000 damaged stores: remove some",
                     files->directory);
}

/* Each step is durable before the next: the database must never be in its place without its log. */
static struct error *
move_file(const struct sqlite_files *files, const char *suffix, const char *aside)
{
    char *from AUTO(memory_cleanup) = join(files->directory, DATABASE, suffix);
    char *to AUTO(memory_cleanup) = join(aside, DATABASE, suffix);
    if (rename(from, to) != 0)
        return errno == ENOENT ? NULL : error_from_errno(errno, "move %s to %s", from, to);
    struct error *error = sync_directory(aside);
    return error ? error : sync_directory(files->directory);
}

static bool
has_files(const struct sqlite_files *files)
{
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char *path AUTO(memory_cleanup) = join(files->directory, DATABASE, suffixes[i]);
        found |= access(path, F_OK) == 0;
    }
    return found;
}

struct error *
sqlite_files_set_aside(const struct sqlite_files *files, struct arena *arena, const char **moved_to)
{
    if (!has_files(files))
        return NULL;
    char *aside AUTO(memory_cleanup) = NULL;
    struct error *error = make_place_aside(files, &aside);
    for (size_t i = 0; aside && i < COUNT_OF(suffixes) && !error; i++)
        error = move_file(files, suffixes[i], aside);
    if (!error)
        *moved_to = arena_string(arena, aside);
    return error;
}
