/* SPDX-License-Identifier: Apache-2.0 */
/* Finding out what is on a device: see format.h. */
#include "backends/format.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

static bool
is_zero(const char *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && !memcmp(bytes, bytes + 1, size - 1));
}

/* What the ends of a device are looked at for. */
struct look {
    bool is_zero;
    const void *bytes; /* NULL: none */
    size_t size;
    bool has_bytes;
};

static struct error *
read_end(int fd, off_t start, off_t end, char *bytes, struct look *look)
{
    size_t size = (size_t)(end - start), done = 0;
    while (done < size) {
        ssize_t got = pread(fd, bytes + done, size - done, start + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_from_errno(got ? errno : EIO, "read at %lld",
                                    (long long)start + (long long)done);
        done += (size_t)got;
    }
    look->is_zero = look->is_zero && is_zero(bytes, size);
    look->has_bytes =
        look->has_bytes || (look->bytes && memmem(bytes, size, look->bytes, look->size));
    return NULL;
}

static struct error *
look_at_ends(int fd, struct look *look)
{
    char *bytes AUTO(memory_cleanup) = memory_new(FORMAT_END_BYTES);
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0)
        return error_from_errno(errno, "ask for the size");
    if (size == 0)
        return error_new(CODE_FAILED_PRECONDITION, "the device has no size");
    off_t head = size < FORMAT_END_BYTES ? size : FORMAT_END_BYTES;
    look->is_zero = true;
    struct error *error = read_end(fd, 0, head, bytes, look);
    return error ? error : read_end(fd, size - head, size, bytes, look);
}

static void
take_value(blkid_probe probe, const char *name, char *found, size_t size)
{
    const char *value = NULL;
    if (!found[0] && blkid_probe_lookup_value(probe, name, &value, NULL) == 0 && value)
        snprintf(found, size, "%s", value);
}

static struct error *
start_probe(int fd, int flags, blkid_probe *out)
{
    blkid_probe probe = blkid_new_probe();
    if (!probe || blkid_probe_set_device(probe, fd, 0, 0) != 0) {
        blkid_free_probe(probe);
        return error_new(CODE_INTERNAL, "libblkid does not take the device");
    }
    blkid_probe_enable_superblocks(probe, 1);
    blkid_probe_set_superblocks_flags(probe, flags);
    *out = probe;
    return NULL;
}

/* Two signatures are an answer too: a person must decide what the device is. */
static struct error *
ask_blkid(int fd, char *found, size_t size)
{
    blkid_probe probe;
    struct error *error = start_probe(fd, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_BADCSUM, &probe);
    if (error)
        return error;
    blkid_probe_enable_partitions(probe, 1);
    int result = blkid_do_safeprobe(probe);
    if (result == 0) {
        take_value(probe, "TYPE", found, size);
        take_value(probe, "PTTYPE", found, size);
    } else if (result == -2) {
        snprintf(found, size, "more than one signature");
    }
    blkid_free_probe(probe);
    if (result == -1)
        return error_new(CODE_INTERNAL, "libblkid cannot read the device");
    return NULL;
}

struct error *
format_probe(const char *device, char *found, size_t size)
{
    struct look look = {0};
    found[0] = 0;
    int fd AUTO(files_close) = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "open %s", device);
    struct error *error = ask_blkid(fd, found, size);
    if (!error && !found[0])
        error = look_at_ends(fd, &look);
    if (error)
        return error_wrap(error, "find out what is on %s", device);
    if (!found[0] && !look.is_zero)
        snprintf(found, size, "unknown data");
    return NULL;
}

struct error *
format_find_bytes(const char *device, const void *bytes, size_t size, bool *found)
{
    struct look look = {.bytes = bytes, .size = size};
    int fd AUTO(files_close) = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "open %s", device);
    struct error *error = look_at_ends(fd, &look);
    *found = !error && look.has_bytes;
    return error_wrap(error, "look at the ends of %s", device);
}

struct error *
format_read_uuid(const char *device, char *uuid, size_t size)
{
    blkid_probe probe;
    uuid[0] = 0;
    int fd AUTO(files_close) = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "open %s", device);
    struct error *error = start_probe(fd, BLKID_SUBLKS_UUID, &probe);
    if (error)
        return error;
    if (blkid_do_safeprobe(probe) == 0)
        take_value(probe, "UUID", uuid, size);
    blkid_free_probe(probe);
    return NULL;
}
