/* SPDX-License-Identifier: Apache-2.0 */
/* Sending metadata: see stream_attributes.h. */
#include "stream/stream_attributes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "base/memory.h"

#define ATTRIBUTES_BYTES (64u << 10) /* the kernel's maximum for a list and for a value */

/* Where to find a file: a descriptor, or a path below /proc that is not followed at its end. */
struct source {
    int fd;
    char path[STREAM_NAME_MAX + 64];
};

void
stream_attributes_init(struct stream_attributes *attributes, struct stream_writer *writer)
{
    *attributes = (struct stream_attributes){.writer = writer,
                                             .names = memory_new(ATTRIBUTES_BYTES),
                                             .value = memory_new(ATTRIBUTES_BYTES)};
}

void
stream_attributes_clear(struct stream_attributes *attributes)
{
    free(attributes->names);
    free(attributes->value);
    *attributes = (struct stream_attributes){0};
}

/* ---- extended attributes ---- */

static ssize_t
list(const struct source *source, char *names)
{
    return source->fd >= 0 ? flistxattr(source->fd, names, ATTRIBUTES_BYTES)
                           : llistxattr(source->path, names, ATTRIBUTES_BYTES);
}

static ssize_t
get(const struct source *source, const char *name, char *value)
{
    return source->fd >= 0 ? fgetxattr(source->fd, name, value, ATTRIBUTES_BYTES)
                           : lgetxattr(source->path, name, value, ATTRIBUTES_BYTES);
}

static struct error *
send_xattr(struct stream_attributes *attributes, const char *path, const struct source *source,
           const char *name)
{
    ssize_t size = get(source, name, attributes->value);
    if (size < 0)
        return error_from_errno(errno, "read the extended attribute %s of %s", name, path);
    if (size > UINT16_MAX)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the extended attribute %s of %s has more than %u bytes", name, path,
                         UINT16_MAX);
    struct error *error = stream_writer_begin(attributes->writer, STREAM_SET_XATTR, path);
    if (error)
        return error;
    stream_writer_put_text(attributes->writer, STREAM_A_XATTR_NAME, name);
    stream_writer_put(attributes->writer, STREAM_A_XATTR_DATA, attributes->value, (size_t)size);
    return stream_writer_end(attributes->writer);
}

/* xfs shows access lists in a form of its own besides the common one. */
static bool
is_repeated(const char *name)
{
    return !strncmp(name, "trusted.SGI_ACL_", strlen("trusted.SGI_ACL_"));
}

static struct error *
send_xattrs(struct stream_attributes *attributes, const char *path, const struct source *source)
{
    ssize_t size = list(source, attributes->names);
    if (size < 0 && errno == EOPNOTSUPP)
        return NULL;
    if (size < 0)
        return error_from_errno(errno, "list the extended attributes of %s", path);
    struct error *error = NULL;
    for (const char *name = attributes->names; !error && name < attributes->names + size;
         name += strlen(name) + 1)
        error = is_repeated(name) ? NULL : send_xattr(attributes, path, source, name);
    return error;
}

/* ---- the rest ---- */

static struct error *
send_owner_and_mode(struct stream_writer *writer, const char *path, const struct stat *status)
{
    struct error *error = stream_writer_begin(writer, STREAM_CHOWN, path);
    if (error)
        return error;
    stream_writer_put_number(writer, STREAM_A_UID, status->st_uid);
    stream_writer_put_number(writer, STREAM_A_GID, status->st_gid);
    error = stream_writer_end(writer);
    if (error || S_ISLNK(status->st_mode))
        return error;
    error = stream_writer_begin(writer, STREAM_CHMOD, path);
    if (error)
        return error;
    stream_writer_put_number(writer, STREAM_A_MODE, status->st_mode & 07777);
    return stream_writer_end(writer);
}

static struct error *
send_times(struct stream_writer *writer, const char *path, const struct stat *status)
{
    struct error *error = stream_writer_begin(writer, STREAM_UTIMES, path);
    if (error)
        return error;
    stream_writer_put_time(writer, STREAM_A_ATIME, &status->st_atim);
    stream_writer_put_time(writer, STREAM_A_MTIME, &status->st_mtim);
    stream_writer_put_time(writer, STREAM_A_CTIME, &status->st_ctim);
    return stream_writer_end(writer);
}

struct error *
stream_attributes_send(struct stream_attributes *attributes, const char *path,
                       const struct stat *status, int fd, int at, const char *name)
{
    struct source source = {.fd = fd};
    snprintf(source.path, sizeof source.path, "/proc/self/fd/%d/%s", at, name);
    struct error *error = send_owner_and_mode(attributes->writer, path, status);
    if (!error)
        error = send_xattrs(attributes, path, &source);
    return error ? error : send_times(attributes->writer, path, status);
}
