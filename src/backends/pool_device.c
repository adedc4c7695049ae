/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool on a block device: see pool.h. The file `pool.device` in the data directory has the UUID
 * of the file system, and until the device is formatted a second line, "formatting". It is written
 * before the file system is made: after a power failure in between, a device that is blank, or has
 * parts with this UUID, is formatted the next time.
 */
#include <blkid/blkid.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/format.h"
#include "backends/pool_internal.h"
#include "base/files.h"
#include "base/memory.h"

#define MARK POOL_DEVICE_FILE
#define FORMATTING "formatting"
#define UUID_SIZE 40
#define UUID_BYTES 16

struct mark {
    char uuid[UUID_SIZE];
    bool is_formatting;
};

static struct error *
read_mark(const struct pool *pool, struct mark *mark)
{
    char text[UUID_SIZE + sizeof FORMATTING];
    size_t size = 0;
    struct error *error = files_read(pool->directory, MARK, text, sizeof text - 1, &size);
    text[error ? 0 : size] = 0;
    size_t length = strcspn(text, "\n");
    snprintf(mark->uuid, sizeof mark->uuid, "%.*s", (int)length, text);
    mark->is_formatting = !strcmp(text + length, "\n" FORMATTING);
    return error_wrap(error_forgive(error, CODE_NOT_FOUND), "read %s", MARK);
}

static struct error *
write_mark(const struct pool *pool, const struct mark *mark)
{
    char text[UUID_SIZE + sizeof FORMATTING];
    int size =
        snprintf(text, sizeof text, "%s%s", mark->uuid, mark->is_formatting ? "\n" FORMATTING : "");
    struct error *error = files_replace(pool->directory, MARK, text, (size_t)size);
    if (!error && fsync(pool->directory) != 0)
        error = error_from_errno(errno, "make %s durable", MARK);
    return error;
}

static struct error *
choose_uuid(struct mark *mark)
{
    int failed = files_read_line("/proc/sys/kernel/random/uuid", mark->uuid, UUID_SIZE);
    return failed ? error_from_errno(failed, "make a UUID") : NULL;
}

static bool
has_uuid(const char *device, const char *uuid)
{
    char found[UUID_SIZE] = "";
    struct error *error AUTO(error_cleanup) = format_read_uuid(device, found, sizeof found);
    return !error && !strcmp(found, uuid);
}

/* Devices may have other names after a reboot. */
static char *
search(const char *uuid)
{
    blkid_cache cache = NULL;
    if (blkid_get_cache(&cache, "/dev/null") != 0)
        return NULL;
    char *device = blkid_evaluate_tag("UUID", uuid, &cache);
    blkid_put_cache(cache);
    if (device && !has_uuid(device, uuid)) {
        free(device);
        device = NULL;
    }
    return device;
}

static struct error *
check_blank(const char *device)
{
    char found[FORMAT_NAME_SIZE];
    struct stat status;
    if (stat(device, &status) != 0)
        return error_from_errno(errno, "look at %s", device);
    if (!S_ISBLK(status.st_mode))
        return error_new(CODE_INVALID_ARGUMENT, "%s is not a block device", device);
    struct error *error = format_probe(device, found, sizeof found);
    if (!error && found[0])
        error = error_new(CODE_FAILED_PRECONDITION,
                          "%s is not blank but holds %s, and a pool would destroy it: choose "
                          "another device, or wipe this one",
                          device, found);
    return error;
}

static bool
read_uuid(const char *text, unsigned char bytes[UUID_BYTES])
{
    for (int i = 0; i < UUID_BYTES; i++, text += 2) {
        text += *text == '-';
        if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
            return false;
        bytes[i] = (unsigned char)strtoul((char[]){text[0], text[1], 0}, NULL, 16);
    }
    return true;
}

/* Nobody else has this UUID: whatever it is in is what was being made when the power failed. */
static struct error *
check_own(const struct pool *pool, const char *device, const struct mark *mark)
{
    unsigned char uuid[UUID_BYTES];
    bool is_own = false;
    struct error *refusal = check_blank(device);
    if (!refusal || !mark->is_formatting || !read_uuid(mark->uuid, uuid))
        return refusal;
    struct error *error = format_find_bytes(device, uuid, sizeof uuid, &is_own);
    if (error || !is_own) {
        error_free(error);
        return refusal;
    }
    error_free(refusal);
    log_info(pool->log, "formatting was interrupted, and begins again", LOG_TEXT("device", device));
    return format_wipe(device);
}

static struct error *
sync_device(const char *device)
{
    int fd AUTO(files_close) = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        return error_from_errno(errno, "sync %s", device);
    return NULL;
}

static struct error *
format_pool(struct pool *pool, const char *given, struct mark *mark)
{
    mark->is_formatting = true;
    struct error *error = write_mark(pool, mark);
    if (!error)
        error = pool->fs->make(given, mark->uuid);
    if (!error)
        error = sync_device(given);
    mark->is_formatting = false;
    return error ? error : write_mark(pool, mark);
}

/* The first start on this device, or the first after one that was interrupted. */
static struct error *
make(struct pool *pool, const char *given, struct mark *mark)
{
    struct error *error = check_own(pool, given, mark);
    if (!error && !mark->uuid[0])
        error = choose_uuid(mark);
    if (!error)
        error = format_pool(pool, given, mark);
    if (error)
        return error;
    log_info(pool->log, "made a pool", LOG_TEXT("device", given), LOG_TEXT("uuid", mark->uuid));
    pool->device = memory_string(given);
    return NULL;
}

static struct error *
find(struct pool *pool, const char *given, const char *uuid)
{
    if (given && has_uuid(given, uuid)) {
        pool->device = memory_string(given);
        return NULL;
    }
    pool->device = search(uuid);
    if (!pool->device)
        return error_new(CODE_UNAVAILABLE,
                         "the device of the pool, with the file system %s, is missing: attach it",
                         uuid);
    if (given)
        log_warn(pool->log, "the pool is on another device than --pool-device names",
                 LOG_TEXT("given", given), LOG_TEXT("device", pool->device));
    return NULL;
}

struct error *
pool_device_open(struct pool *pool, const char *given, bool must_exist)
{
    struct mark mark = {0};
    struct error *error = read_mark(pool, &mark);
    if (error || (!given && !mark.uuid[0]))
        return error;
    if (access(pool->image, F_OK) == 0)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the pool of this data directory is the file %s, and does not move to a "
                         "device: use another data directory",
                         pool->image);
    if (must_exist && !mark.uuid[0])
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volumes of this data directory are not on a device (it has no file "
                         "%s): put the file back if it is lost, or use another data directory",
                         MARK);
    if (mark.is_formatting && !must_exist && !given)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the device of the pool is not completely formatted: start with "
                         "--pool-device again");
    if (mark.uuid[0] && (must_exist || !mark.is_formatting))
        error = find(pool, given, mark.uuid);
    if (!must_exist && given && !pool->device) {
        error_free(error);
        error = make(pool, given, &mark);
    }
    pool->is_allocated = true;
    return error;
}
