/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How full a volume is: see usage.h. For an image the file system tells, for a tree the back end.
 */
#include "node/usage.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "volumes/volume.h"

static struct error *
measure_file_system(const char *path, struct volume_usage *out)
{
    struct statvfs found;
    if (statvfs(path, &found) != 0)
        return error_from_errno(errno, "ask for the free space of %s", path);
    int64_t block = (int64_t)found.f_frsize;
    out->bytes = (struct usage_figures){
        .available = (int64_t)found.f_bavail * block,
        .total = (int64_t)found.f_blocks * block,
        .used = (int64_t)(found.f_blocks - found.f_bfree) * block,
    };
    out->inodes = (struct usage_figures){
        .available = (int64_t)found.f_favail,
        .total = (int64_t)found.f_files,
        .used = (int64_t)(found.f_files - found.f_ffree),
    };
    out->knows_inodes = true;
    return NULL;
}

static struct error *
measure_tree(struct engine *engine, const volume_record *volume, struct volume_usage *out)
{
    struct data data = volume_data(volume);
    struct data_usage used;
    struct backend_capacity capacity;
    struct error *error =
        usage_cache_measure(&engine->usages, engine->backend, &data, volume->size_bytes, &used);
    if (!error)
        error = backend_capacity(backend_of(engine->backend, data.handle), &capacity);
    if (error)
        return error;
    int64_t free_bytes = (int64_t)capacity.available_bytes;
    int64_t left = (int64_t)used.total_bytes - (int64_t)used.used_bytes;
    if (used.total_bytes && left < free_bytes)
        free_bytes = left > 0 ? left : 0;
    out->bytes = (struct usage_figures){
        .available = free_bytes,
        .total =
            used.total_bytes ? (int64_t)used.total_bytes : (int64_t)used.used_bytes + free_bytes,
        .used = (int64_t)used.used_bytes,
    };
    out->knows_inodes = used.used_inodes != DATA_USAGE_UNKNOWN;
    if (!out->knows_inodes)
        return NULL;
    out->inodes = (struct usage_figures){
        .available = used.total_inodes ? (int64_t)(used.total_inodes - used.used_inodes) : 0,
        .total = (int64_t)used.total_inodes,
        .used = (int64_t)used.used_inodes,
    };
    return NULL;
}

struct error *
usage_measure(struct engine *engine, const volume_record *volume, const char *path,
              struct volume_usage *out)
{
    struct stat found;
    *out = (struct volume_usage){0};
    if (volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE)
        return measure_tree(engine, volume, out);
    if (stat(path, &found) != 0)
        return error_from_errno(errno, "look at %s", path);
    out->is_block = S_ISBLK(found.st_mode);
    if (!out->is_block && volume->fs_type[0])
        return measure_file_system(path, out);
    out->is_block = true;
    out->bytes.total = volume->size_bytes;
    return NULL;
}
