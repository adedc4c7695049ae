/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer between SQLite and the disk: a test hears of every write, truncate, sync, read and delete before it happens, and may hold it up or
 * make it fail. `shim_install()` once, then set `shim_hook` while no store is at work.
 */
#ifndef UNIT_SHIM_VFS_H
#define UNIT_SHIM_VFS_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

enum shim_kind { SHIM_READ, SHIM_WRITE, SHIM_TRUNCATE, SHIM_SYNC, SHIM_DELETE };

struct shim_event {
    enum shim_kind kind;
    const char *name; /* of the file, without its directory; "" for one that has none */
    sqlite3_int64 offset;
    const void *bytes; /* of a write */
    int size;
};

/* Gives SQLITE_OK, or the error that SQLite gets instead. */
typedef int shim_function(const struct shim_event *event);

static _Atomic(shim_function *) shim_hook;

static inline int
shim_tell(struct shim_event event)
{
    shim_function *hook = atomic_load(&shim_hook);
    return hook ? hook(&event) : SQLITE_OK;
}

static inline const char *
shim_last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

/* ---- files ---- */

/* The file of the layer below stands behind it. */
struct shim_file {
    sqlite3_file base;
    const char *name;
    sqlite3_file below[];
};

static inline sqlite3_file *
shim_below(sqlite3_file *file)
{
    return ((struct shim_file *)file)->below;
}

static inline const char *
shim_name(sqlite3_file *file)
{
    return ((struct shim_file *)file)->name;
}

#define SHIM_PASS(file, function, ...)                                                             \
    shim_below(file)->pMethods->function(shim_below(file), ##__VA_ARGS__)

static int
shim_close(sqlite3_file *file)
{
    return SHIM_PASS(file, xClose);
}

static int
shim_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset)
{
    int result = shim_tell((struct shim_event){SHIM_READ, shim_name(file), offset, NULL, size});
    return result ? result : SHIM_PASS(file, xRead, bytes, size, offset);
}

static int
shim_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    int result = shim_tell((struct shim_event){SHIM_WRITE, shim_name(file), offset, bytes, size});
    return result ? result : SHIM_PASS(file, xWrite, bytes, size, offset);
}

static int
shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int result = shim_tell((struct shim_event){SHIM_TRUNCATE, shim_name(file), size, NULL, 0});
    return result ? result : SHIM_PASS(file, xTruncate, size);
}

static int
shim_sync(sqlite3_file *file, int flags)
{
    int result = shim_tell((struct shim_event){SHIM_SYNC, shim_name(file), 0, NULL, 0});
    return result ? result : SHIM_PASS(file, xSync, flags);
}

static int
shim_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return SHIM_PASS(file, xFileSize, size);
}

static int
shim_lock(sqlite3_file *file, int level)
{
    return SHIM_PASS(file, xLock, level);
}

static int
shim_unlock(sqlite3_file *file, int level)
{
    return SHIM_PASS(file, xUnlock, level);
}

static int
shim_check_reserved_lock(sqlite3_file *file, int *result)
{
    return SHIM_PASS(file, xCheckReservedLock, result);
}

static int
shim_file_control(sqlite3_file *file, int operation, void *argument)
{
    return SHIM_PASS(file, xFileControl, operation, argument);
}

static int
shim_sector_size(sqlite3_file *file)
{
    return SHIM_PASS(file, xSectorSize);
}

static int
shim_device_characteristics(sqlite3_file *file)
{
    return SHIM_PASS(file, xDeviceCharacteristics);
}

static int
shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return SHIM_PASS(file, xShmMap, page, size, extend, out);
}

static int
shim_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return SHIM_PASS(file, xShmLock, offset, count, flags);
}

static void
shim_shm_barrier(sqlite3_file *file)
{
    SHIM_PASS(file, xShmBarrier);
}

static int
shim_shm_unmap(sqlite3_file *file, int delete_too)
{
    return SHIM_PASS(file, xShmUnmap, delete_too);
}

static const sqlite3_io_methods shim_methods = {
    .iVersion = 2,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_file_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_check_reserved_lock,
    .xFileControl = shim_file_control,
    .xSectorSize = shim_sector_size,
    .xDeviceCharacteristics = shim_device_characteristics,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

/* ---- the layer ---- */

static sqlite3_vfs *shim_vfs_below;

static int
shim_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *flags_out)
{
    (void)vfs;
    struct shim_file *shim = (struct shim_file *)file;
    shim->base.pMethods = NULL;
    shim->name = shim_last_part(path);
    int result = shim_vfs_below->xOpen(shim_vfs_below, path, shim->below, flags, flags_out);
    if (shim->below->pMethods)
        shim->base.pMethods = &shim_methods;
    return result;
}

static int
shim_delete(sqlite3_vfs *vfs, const char *path, int sync_directory)
{
    (void)vfs;
    int result = shim_tell((struct shim_event){SHIM_DELETE, shim_last_part(path), 0, NULL, 0});
    return result ? result : shim_vfs_below->xDelete(shim_vfs_below, path, sync_directory);
}

/* From now on every connection of the process goes through the layer. */
static inline void
shim_install(void)
{
    static sqlite3_vfs shim;
    shim_vfs_below = sqlite3_vfs_find(NULL);
    shim = *shim_vfs_below;
    shim.zName = "shim";
    shim.pNext = NULL;
    shim.szOsFile = (int)sizeof(struct shim_file) + shim_vfs_below->szOsFile;
    shim.xOpen = shim_open;
    shim.xDelete = shim_delete;
    sqlite3_vfs_register(&shim, 1);
}

#endif
