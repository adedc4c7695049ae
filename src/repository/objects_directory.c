/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects as files: PATH/KIND/NAME. A file is written in PATH/tmp, made durable and renamed: under
 * its name it is always complete. Files that are put "soon" wait in PATH/tmp, with the writing to
 * the disk begun, so that one round of syncs makes many of them durable.
 *
 * A file in PATH/tmp is locked while its process lives. Whoever opens the directory removes those
 * that are not: their process has been killed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "repository/objects.h"

#define WAITING_MAX 64u
#define TEMPORARY "tmp"
#define TEMPORARY_BYTES 24u

/* A file that is written and not yet in its place. */
struct waiting {
    int fd;
    char temporary[TEMPORARY_BYTES];
    char key[OBJECT_KEY_BYTES];
};

struct directory {
    struct objects objects;
    int root;
    pthread_mutex_t lock; /* of `waiting` */
    struct waiting waiting[WAITING_MAX];
    size_t waiting_count;
};

static struct directory *
directory_of(struct objects *objects)
{
    return CONTAINER_OF(objects, struct directory, objects);
}

/* ---- writing ---- */

/* Makes a file in TEMPORARY and locks it. */
static struct error *
begin(struct directory *directory, struct waiting *out)
{
    for (int i = 0; i < 100; i++) {
        uint64_t number = 0;
        struct stat status;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return error_from_errno(errno, "get a random number");
        snprintf(out->temporary, sizeof out->temporary, TEMPORARY "/%016llx",
                 (unsigned long long)number);
        out->fd =
            openat(directory->root, out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (out->fd < 0 && errno != EEXIST)
            return error_from_errno(errno, "make the file %s", out->temporary);
        /* Whoever tidies up may have been here between the two calls. */
        if (out->fd >= 0 && flock(out->fd, LOCK_EX | LOCK_NB) == 0 &&
            fstat(out->fd, &status) == 0 && status.st_nlink)
            return NULL;
        files_close(&out->fd);
    }
    return error_new(CODE_UNAVAILABLE, "cannot make a file in " TEMPORARY);
}

static void
abandon(struct directory *directory, struct waiting *file)
{
    if (file->fd >= 0)
        unlinkat(directory->root, file->temporary, 0);
    files_close(&file->fd);
}

static struct error *
write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_from_errno(errno, "write");
        bytes += written;
        size -= (size_t)written;
    }
    return NULL;
}

static struct error *
sync_kind(struct directory *directory, const char *key)
{
    char kind[3] = {key[0], key[1], 0};
    int fd AUTO(files_close) = files_open_directory(directory->root, kind);
    if (fd < 0 || fsync(fd) != 0)
        return error_from_errno(errno, "make the directory %s durable", kind);
    return NULL;
}

static struct error *
finish(struct directory *directory, struct waiting *file)
{
    if (fsync(file->fd) != 0)
        return error_from_errno(errno, "make %s durable", file->temporary);
    if (renameat(directory->root, file->temporary, directory->root, file->key) != 0)
        return error_from_errno(errno, "rename %s to %s", file->temporary, file->key);
    files_close(&file->fd);
    return NULL;
}

/*
 * As finish, but the first one stays. The caller then abandons the file. A file system without
 * links cannot promise that.
 */
static struct error *
finish_first(struct directory *directory, struct waiting *file)
{
    if (fsync(file->fd) != 0)
        return error_from_errno(errno, "make %s durable", file->temporary);
    if (linkat(directory->root, file->temporary, directory->root, file->key, 0) == 0 ||
        errno == EEXIST)
        return NULL;
    return finish(directory, file);
}

/* With the lock. All in the same directory are made durable together. */
static struct error *
finish_waiting(struct directory *directory)
{
    struct error *error = NULL;
    bool kinds[OBJECT_KINDS] = {false};
    for (size_t i = 0; i < directory->waiting_count; i++) {
        struct waiting *file = &directory->waiting[i];
        if (!error)
            error = finish(directory, file);
        kinds[file->key[1] - '0'] = true;
        abandon(directory, file);
    }
    directory->waiting_count = 0;
    for (unsigned kind = 0; kind < OBJECT_KINDS && !error; kind++)
        if (kinds[kind])
            error = sync_kind(directory, (char[]){'0', (char)('0' + kind), 0});
    if (error)
        atomic_fetch_add(&directory->objects.losses, 1);
    return error;
}

static struct error *
directory_sync(struct objects *objects)
{
    struct directory *directory = directory_of(objects);
    pthread_mutex_lock(&directory->lock);
    struct error *error = finish_waiting(directory);
    pthread_mutex_unlock(&directory->lock);
    return error;
}

static struct error *
keep_waiting(struct directory *directory, struct waiting *file)
{
    struct error *error = NULL;
    sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    pthread_mutex_lock(&directory->lock);
    if (directory->waiting_count == WAITING_MAX)
        error = finish_waiting(directory);
    directory->waiting[directory->waiting_count++] = *file;
    pthread_mutex_unlock(&directory->lock);
    return error;
}

static struct error *
directory_put(struct objects *objects, const char *key, const uint8_t *bytes, size_t size,
              enum objects_put how)
{
    struct directory *directory = directory_of(objects);
    struct waiting file = {.fd = -1};
    /* Whoever put it may have been killed before the name was durable. */
    if (how != OBJECTS_REPLACE && faccessat(directory->root, key, F_OK, 0) == 0)
        return sync_kind(directory, key);
    memcpy(file.key, key, strlen(key) + 1);
    struct error *error = begin(directory, &file);
    if (!error)
        error = write_all(file.fd, bytes, size);
    if (!error && how == OBJECTS_SOON)
        return keep_waiting(directory, &file);
    if (!error)
        error = how == OBJECTS_NOW && object_key_is_config(key) ? finish_first(directory, &file)
                                                                : finish(directory, &file);
    if (!error)
        error = sync_kind(directory, key);
    abandon(directory, &file);
    return error;
}

static struct error *
directory_delete(struct objects *objects, const char *key)
{
    struct directory *directory = directory_of(objects);
    if (unlinkat(directory->root, key, 0) != 0)
        return errno == ENOENT ? NULL : error_from_errno(errno, "unlink");
    return sync_kind(directory, key);
}

/* ---- reading ---- */

static struct error *
open_object(struct directory *directory, const char *key, int *fd)
{
    *fd = openat(directory->root, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd >= 0)
        return NULL;
    if (errno == ENOENT)
        return error_new(CODE_NOT_FOUND, "there is no such file");
    return error_from_errno(errno, "open");
}

static struct error *
directory_get(struct objects *objects, const char *key, uint64_t offset, uint8_t *bytes,
              size_t size)
{
    int fd AUTO(files_close) = -1;
    struct error *error = open_object(directory_of(objects), key, &fd);
    while (size && !error) {
        ssize_t got = pread(fd, bytes, size, (off_t)offset);
        if (got == 0)
            error = error_new(CODE_DATA_LOSS, "it ends before byte %llu",
                              (unsigned long long)(offset + size));
        else if (got < 0 && errno != EINTR)
            error = error_from_errno(errno, "read");
        if (got > 0) {
            bytes += got;
            offset += (uint64_t)got;
            size -= (size_t)got;
        }
    }
    return error;
}

static struct error *
directory_size(struct objects *objects, const char *key, uint64_t *size, uint64_t *age_ms)
{
    int fd AUTO(files_close) = -1;
    struct stat status = {0};
    struct error *error = open_object(directory_of(objects), key, &fd);
    if (!error && fstat(fd, &status) != 0)
        error = error_from_errno(errno, "stat");
    int64_t age = clock_unix_ms() - (int64_t)status.st_mtim.tv_sec * 1000;
    *size = (uint64_t)status.st_size;
    *age_ms = age > 0 ? (uint64_t)age : 0;
    return error;
}

static void
close_directory(DIR **entries)
{
    if (*entries)
        closedir(*entries);
}

static struct error *
list_directory(DIR *entries, objects_each *each, void *context)
{
    struct error *error = NULL;
    struct dirent *entry;
    while (!error && (errno = 0, entry = readdir(entries))) {
        struct object_name name;
        struct stat status;
        if (!object_name_parse(entry->d_name, &name))
            continue;
        if (fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            error = each(&name, (uint64_t)status.st_size, context);
        else if (errno != ENOENT)
            error = error_from_errno(errno, "look at the object %s", entry->d_name);
    }
    if (!error && errno)
        error = error_from_errno(errno, "list objects");
    return error;
}

static struct error *
directory_list(struct objects *objects, enum object_kind kind, objects_each *each, void *context)
{
    char name[3] = {'0', (char)('0' + kind), 0};
    int fd AUTO(files_close) = files_open_directory(directory_of(objects)->root, name);
    if (fd < 0)
        return error_from_errno(errno, "open the directory %s", name);
    DIR *entries AUTO(close_directory) = fdopendir(fd);
    if (!entries)
        return error_from_errno(errno, "read the directory %s", name);
    files_keep(&fd);
    return list_directory(entries, each, context);
}

/* ---- opening ---- */

static struct error *
make_kinds(struct directory *directory)
{
    struct error *error = NULL;
    for (int kind = -1; kind < OBJECT_KINDS && !error; kind++) {
        char name[4] = {'0', (char)('0' + kind), 0};
        int fd AUTO(files_close) = -1;
        error = files_make_directory(directory->root, kind < 0 ? TEMPORARY : name, &fd);
    }
    if (!error && fsync(directory->root) != 0)
        error = error_from_errno(errno, "make the repository's directory durable");
    return error;
}

/* Removes what killed processes left. Failures do no harm. */
static void
tidy(struct directory *directory)
{
    int fd AUTO(files_close) = files_open_directory(directory->root, TEMPORARY);
    DIR *entries AUTO(close_directory) = fd < 0 ? NULL : fdopendir(fd);
    if (!entries)
        return;
    files_keep(&fd);
    for (struct dirent *entry; (entry = readdir(entries));) {
        int file AUTO(files_close) =
            openat(dirfd(entries), entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
}

static void
directory_close(struct objects *objects)
{
    struct directory *directory = directory_of(objects);
    for (size_t i = 0; i < directory->waiting_count; i++)
        abandon(directory, &directory->waiting[i]);
    files_close(&directory->root);
    pthread_mutex_destroy(&directory->lock);
    free(directory);
}

static const struct objects_ops directory_ops = {
    .put = directory_put,
    .sync = directory_sync,
    .get = directory_get,
    .size = directory_size,
    .list = directory_list,
    .delete = directory_delete,
    .close = directory_close,
    .uploads = 2,
};

struct error *
objects_directory_open(const char *path, bool creates, struct objects **out)
{
    struct error *error = creates ? files_make_path(path) : NULL;
    if (error)
        return error;
    int root AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return errno == ENOENT ? error_new(CODE_NOT_FOUND, "there is no directory %s", path)
                               : error_from_errno(errno, "open the directory %s", path);
    struct directory *directory = memory_zeroed(sizeof *directory);
    directory->objects.ops = &directory_ops;
    directory->root = files_keep(&root);
    pthread_mutex_init(&directory->lock, NULL);
    error = creates ? make_kinds(directory) : NULL;
    if (error) {
        directory_close(&directory->objects);
        return error;
    }
    tidy(directory);
    *out = &directory->objects;
    return NULL;
}
