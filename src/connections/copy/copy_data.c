/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of volumes: see copy_data.h. */
#include "connections/copy/copy_data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/files.h"
#include "base/memory.h"

#define CHUNK_BYTES (1u << 20)

/* ---- devices ---- */

static struct error *
open_device(const char *path, int flags, int *fd, uint64_t *size)
{
    *fd = open(path, flags | O_CLOEXEC);
    if (*fd < 0)
        return error_from_errno(errno, "open the device %s", path);
    if (ioctl(*fd, BLKGETSIZE64, size) != 0)
        return error_from_errno(errno, "measure the device %s", path);
    return NULL;
}

static bool
is_zero(const char *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static struct error *
read_chunk(int fd, char *bytes, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, bytes + done, size - done, (off_t)(offset + done));
        if (got == 0)
            return error_new(CODE_INTERNAL, "the device ends at %llu",
                             (unsigned long long)(offset + done));
        if (got < 0 && errno != EINTR)
            return error_from_errno(errno, "read at %llu", (unsigned long long)offset);
        done += got > 0 ? (size_t)got : 0;
    }
    return NULL;
}

/* A thin device stays thin. */
static struct error *
write_chunk(int fd, const char *bytes, size_t size, uint64_t offset)
{
    if (is_zero(bytes, size) &&
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size) == 0)
        return NULL;
    for (size_t done = 0; done < size;) {
        ssize_t put = pwrite(fd, bytes + done, size - done, (off_t)(offset + done));
        if (put < 0 && errno != EINTR)
            return error_from_errno(errno, "write at %llu", (unsigned long long)offset);
        done += put > 0 ? (size_t)put : 0;
    }
    return NULL;
}

/*
 * Writes only chunks that differ, so that an interrupted copy does not start again. `from` -1 means
 * zeros, beyond the end of the source.
 */
static struct error *
copy_chunk(int from, int to, char *bytes, char *there, size_t size, uint64_t offset)
{
    struct error *error = read_chunk(to, there, size, offset);
    if (!error && from >= 0)
        error = read_chunk(from, bytes, size, offset);
    else
        memset(bytes, 0, size);
    return error || memcmp(bytes, there, size) == 0 ? error : write_chunk(to, bytes, size, offset);
}

static struct error *
copy_range(int from, int to, uint64_t offset, uint64_t end, struct copy_job *job)
{
    char *bytes AUTO(memory_cleanup) = memory_new(CHUNK_BYTES);
    char *there AUTO(memory_cleanup) = memory_new(CHUNK_BYTES);
    struct error *error = NULL;
    while (offset < end && !error) {
        size_t part = end - offset < CHUNK_BYTES ? (size_t)(end - offset) : CHUNK_BYTES;
        error = copy_chunk(from, to, bytes, there, part, offset);
        offset += part;
        if (!error)
            error = copy_job_advance(job, from < 0 ? 0 : part);
    }
    return error;
}

/* Fills the target with zeros beyond the end of the source. */
static struct error *
copy_device(const char *from_path, const char *to_path, const struct progress *progress)
{
    int from AUTO(files_close) = -1, to AUTO(files_close) = -1;
    uint64_t from_size = 0, to_size = 0;
    struct error *error = open_device(from_path, O_RDONLY, &from, &from_size);
    if (!error)
        error = open_device(to_path, O_RDWR, &to, &to_size);
    if (!error && to_size < from_size)
        error = error_new(CODE_OUT_OF_RANGE,
                          "the volume has %llu bytes, its source %llu: request at least as many",
                          (unsigned long long)to_size, (unsigned long long)from_size);
    struct copy_job job = {.progress = progress, .total_bytes = from_size};
    if (!error)
        error = copy_range(from, to, 0, from_size, &job);
    if (!error)
        error = copy_range(-1, to, from_size, to_size, &job);
    if (!error && fsync(to) != 0)
        error = error_from_errno(errno, "make the copy durable");
    return error;
}

static struct error *
check_device_empty(const char *path, const struct progress *progress, bool *is_empty)
{
    int device AUTO(files_close) = -1;
    uint64_t size = 0;
    char *bytes AUTO(memory_cleanup) = memory_new(CHUNK_BYTES);
    struct copy_job job = {.progress = &(struct progress){.cancelled = progress->cancelled,
                                                          .context = progress->context}};
    struct error *error = open_device(path, O_RDONLY, &device, &size);
    *is_empty = true;
    for (uint64_t offset = 0; offset < size && *is_empty && !error; offset += CHUNK_BYTES) {
        size_t part = size - offset < CHUNK_BYTES ? (size_t)(size - offset) : CHUNK_BYTES;
        error = read_chunk(device, bytes, part, offset);
        *is_empty = !error && is_zero(bytes, part);
        if (!error)
            error = copy_job_advance(&job, 0);
    }
    return error;
}

/* ---- trees ---- */

static struct error *
check_tree_empty(const char *path, bool *is_empty)
{
    DIR *directory = opendir(path);
    if (!directory)
        return error_from_errno(errno, "open the published volume");
    *is_empty = true;
    errno = 0;
    for (struct dirent *entry; *is_empty && (entry = readdir(directory));)
        *is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                    strcmp(entry->d_name, "lost+found") == 0;
    struct error *error = errno ? error_from_errno(errno, "read the published volume") : NULL;
    closedir(directory);
    return error;
}

static struct error *
copy_tree(const char *from_path, const char *to_path, const struct progress *progress)
{
    struct tree_size size;
    int from AUTO(files_close) = open(from_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int to AUTO(files_close) = open(to_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0 || to < 0)
        return error_from_errno(errno, "open the published volumes");
    struct error *error = tree_measure(from, &size);
    struct copy_job job = {
        .progress = progress, .total_bytes = error ? 0 : size.allocated_bytes, .goes_on = true};
    if (!error)
        error = tree_copy(&job, from, to);
    if (!error && syncfs(to) != 0)
        error = error_from_errno(errno, "make the copy durable");
    return error;
}

struct error *
copy_data_check_empty(const char *path, const struct progress *progress, bool *is_empty)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return error_from_errno(errno, "stat the published volume");
    return S_ISDIR(found.st_mode) ? check_tree_empty(path, is_empty)
                                  : check_device_empty(path, progress, is_empty);
}

struct error *
copy_data(const char *from, const char *to, const struct progress *progress)
{
    struct stat source, target;
    if (stat(from, &source) != 0 || stat(to, &target) != 0)
        return error_from_errno(errno, "stat the published volumes");
    if ((source.st_mode & S_IFMT) != (target.st_mode & S_IFMT))
        return error_new(CODE_INVALID_ARGUMENT,
                         "cannot copy between a raw device and a file system");
    if (S_ISDIR(source.st_mode))
        return copy_tree(from, to, progress);
    if (S_ISBLK(source.st_mode))
        return copy_device(from, to, progress);
    return error_new(CODE_INTERNAL, "%s is neither a directory nor a device", from);
}
