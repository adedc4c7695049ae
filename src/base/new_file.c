/* SPDX-License-Identifier: Apache-2.0 */
/* Writing files atomically: see new_file.h. */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"

static char *
temporary_name(const char *path)
{
    struct buffer name = {0};
    buffer_print(&name, "%s.XXXXXX", path);
    buffer_text(&name);
    return (char *)name.bytes;
}

static bool
write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

struct error *
new_file_write(struct new_file *out, const char *path, mode_t mode, const void *bytes, size_t size)
{
    *out = (struct new_file){.path = memory_string(path)};
    char *temporary AUTO(memory_cleanup) = temporary_name(path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "cannot make \"%s\"", temporary);
    out->temporary = STEAL(temporary);
    int errnum = 0;
    if (fchmod(fd, mode) != 0 || !write_all(fd, bytes, size) || fsync(fd) != 0)
        errnum = errno;
    if (close(fd) != 0 && !errnum)
        errnum = errno;
    return errnum ? error_from_errno(errnum, "cannot write \"%s\"", out->temporary) : NULL;
}

static struct error *
sync_directory_of(const char *path)
{
    char *copy AUTO(memory_cleanup) = memory_string(path);
    const char *directory = dirname(copy);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int errnum = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return errnum ? error_from_errno(errnum, "cannot make \"%s\" durable", path) : NULL;
}

struct error *
new_file_put(struct new_file *file, bool replaces)
{
    /* link(2), unlike rename(2), never replaces a file, even if somebody else has just made it. */
    int result = replaces ? rename(file->temporary, file->path) : link(file->temporary, file->path);
    if (result != 0 && errno == EEXIST)
        return error_new(CODE_ALREADY_EXISTS, "\"%s\" exists already", file->path);
    if (result != 0)
        return error_from_errno(errno, "cannot make \"%s\"", file->path);
    if (!replaces)
        unlink(file->temporary);
    free(STEAL(file->temporary));
    return sync_directory_of(file->path);
}

void
new_file_clear(struct new_file *file)
{
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct new_file){0};
}
