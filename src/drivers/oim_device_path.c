/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that open a controller's block device: see oim_device.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "drivers/oim_device.h"

static bool
is_node_of(const char *path, dev_t number)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISBLK(found.st_mode) && found.st_rdev == number;
}

/* The kernel replaces slashes in names by '!'. */
static const char *
usual_path(const struct oim_device *device, struct arena *arena)
{
    char *path = arena_print(arena, "/dev/%s", device->name);
    for (char *at = path; (at = strchr(at, '!'));)
        *at = '/';
    return path;
}

/* Device nodes cannot be opened on a file system mounted with nodev; /dev allows it. */
static bool
forbids_devices(const char *directory)
{
    struct statvfs found;
    return statvfs(directory, &found) == 0 && (found.f_flag & ST_NODEV);
}

static char *
own_path(const char *directory, const char *name, struct arena *arena)
{
    return forbids_devices(directory) ? arena_print(arena, "/dev/skycap-%s", name)
                                      : arena_print(arena, "%s/%s", directory, name);
}

struct error *
oim_device_path(const struct oim_device *device, const char *directory, const char *name,
                struct arena *arena, const char **out)
{
    *out = usual_path(device, arena);
    if (is_node_of(*out, device->number))
        return NULL;
    *out = own_path(directory, name, arena);
    if (is_node_of(*out, device->number))
        return NULL;
    if ((unlink(*out) != 0 && errno != ENOENT) || mknod(*out, S_IFBLK | 0600, device->number) != 0)
        return error_from_errno(errno, "make the device node %s", *out);
    return NULL;
}

void
oim_device_forget_path(const char *directory, const char *name)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    unlink(own_path(directory, name, &arena));
}
