/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool on a block device: see pool.h. The file `pool.device` in the data directory has the UUID
 * of the file system. It is written before the file system is made: a power failure in between
 * leaves a blank device and a UUID that is used for it the next time.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/format.h"
#include "backends/pool_internal.h"
#include "base/files.h"
#include "base/memory.h"

#define MARK POOL_DEVICE_FILE
#define UUID_SIZE 40

static struct error *
read_mark(const struct pool *pool, char uuid[UUID_SIZE])
{
    size_t size = 0;
    struct error *error = files_read(pool->directory, MARK, uuid, UUID_SIZE - 1, &size);
    uuid[error ? 0 : size] = 0;
    uuid[strcspn(uuid, "\n")] = 0;
    return error_wrap(error_forgive(error, CODE_NOT_FOUND), "read %s", MARK);
}

static struct error *
write_mark(const struct pool *pool, char uuid[UUID_SIZE])
{
    int failed = files_read_line("/proc/sys/kernel/random/uuid", uuid, UUID_SIZE);
    if (failed)
        return error_from_errno(failed, "make a UUID");
    struct error *error = files_replace(pool->directory, MARK, uuid, strlen(uuid));
    if (!error && fsync(pool->directory) != 0)
        error = error_from_errno(errno, "make %s durable", MARK);
    return error;
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

/* The first start on this device, or the first after one that was interrupted. */
static struct error *
make(struct pool *pool, const char *given, char uuid[UUID_SIZE])
{
    struct error *error = check_blank(given);
    if (!error && !uuid[0])
        error = write_mark(pool, uuid);
    if (!error)
        error = pool->fs->make(given, uuid);
    if (error)
        return error;
    log_info(pool->log, "made a pool", LOG_TEXT("device", given), LOG_TEXT("uuid", uuid));
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
    char uuid[UUID_SIZE];
    struct error *error = read_mark(pool, uuid);
    if (error || (!given && !uuid[0]))
        return error;
    if (access(pool->image, F_OK) == 0)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the pool of this data directory is the file %s, and does not move to a "
                         "device: use another data directory",
                         pool->image);
    if (must_exist && !uuid[0])
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volumes of this data directory are not on a device (it has no file "
                         "%s): put the file back if it is lost, or use another data directory",
                         MARK);
    error = uuid[0] ? find(pool, given, uuid) : NULL;
    if (!must_exist && given && !pool->device) {
        error_free(error);
        error = make(pool, given, uuid);
    }
    pool->is_allocated = true;
    return error;
}
