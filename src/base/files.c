/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors and small files: see files.h. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int
files_keep(int *fd)
{
    int kept = *fd;
    *fd = -1;
    return kept;
}

void
files_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int
files_open_below(int directory, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int
files_open_quietly(int directory, const char *path, int flags)
{
    int fd = files_open_below(directory, path, O_RDONLY | O_NOATIME | flags);
    /* Only the owner and root may read so. */
    return fd < 0 && errno == EPERM ? files_open_below(directory, path, O_RDONLY | flags) : fd;
}

int
files_open_directory(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct error *
files_make_path(const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make the directory %s", path);
    return NULL;
}

struct error *
files_make_directory(int parent, const char *name, int *out)
{
    if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make the directory %s", name);
    *out = files_open_directory(parent, name);
    if (*out < 0)
        return error_from_errno(errno, "open the directory %s", name);
    return NULL;
}

static int
write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        }
    }
    return 0;
}

/*
 * Writes the contents to the disk before the rename, so whichever commit of the file system
 * includes the new name, the contents are there. Unlike fsync, this needs no commit of its own.
 */
static int
write_out(int fd)
{
    return sync_file_range(
        fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

struct error *
files_replace(int directory, const char *name, const void *bytes, size_t size)
{
    char temporary[80];
    snprintf(temporary, sizeof temporary, "%s.new", name);
    int fd AUTO(files_close) =
        openat(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_from_errno(errno, "make the file %s", temporary);
    if (write_all(fd, bytes, size) != 0 || write_out(fd) != 0)
        return error_from_errno(errno, "write the file %s", temporary);
    if (renameat(directory, temporary, directory, name) != 0)
        return error_from_errno(errno, "rename %s to %s", temporary, name);
    return NULL;
}

struct error *
files_read(int directory, const char *name, void *bytes, size_t room, size_t *size)
{
    int fd AUTO(files_close) = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "open the file %s", name);
    struct stat status;
    if (fstat(fd, &status) != 0)
        return error_from_errno(errno, "look at the file %s", name);
    if ((uint64_t)status.st_size > room)
        return error_new(CODE_OUT_OF_RANGE, "the file %s has %lld bytes, more than %zu", name,
                         (long long)status.st_size, room);
    ssize_t got = read(fd, bytes, room);
    if (got < 0)
        return error_from_errno(errno, "read the file %s", name);
    *size = (size_t)got;
    return NULL;
}

int
files_read_line(const char *path, char *line, size_t size)
{
    int fd AUTO(files_close) = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t got = read(fd, line, size - 1);
    if (got < 0)
        return errno;
    line[got] = 0;
    line[strcspn(line, "\n")] = 0;
    return 0;
}

struct error *
files_read_all(const char *path, size_t limit, struct buffer *out)
{
    int fd AUTO(files_close) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_from_errno(errno, "cannot read \"%s\"", path);
    if (!S_ISREG(status.st_mode))
        return error_new(CODE_INVALID_ARGUMENT, "cannot read \"%s\": not a regular file", path);
    buffer_reserve(out, limit + 1);
    while (out->size <= limit) {
        ssize_t got = read(fd, out->bytes + out->size, limit + 1 - out->size);
        if (got < 0 && errno != EINTR)
            return error_from_errno(errno, "cannot read \"%s\"", path);
        if (got == 0)
            return NULL;
        if (got > 0)
            out->size += (size_t)got;
    }
    return error_new(CODE_OUT_OF_RANGE, "\"%s\" is larger than %zu bytes", path, limit);
}

struct error *
files_sync(int fd)
{
    return syncfs(fd) == 0 ? NULL : error_from_errno(errno, "make a file system's data durable");
}
