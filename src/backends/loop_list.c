/* SPDX-License-Identifier: Apache-2.0 */
/* All loop devices of the machine: see loop.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backends/loop.h"
#include "base/files.h"

struct error *
loop_list(loop_found *found, void *context)
{
    DIR *blocks = opendir("/sys/block");
    if (!blocks)
        return error_from_errno(errno, "open /sys/block");
    struct error *error = NULL;
    struct dirent *entry;
    while (!error && (entry = readdir(blocks))) {
        char path[320], device[LOOP_PATH_SIZE], file[PATH_MAX];
        snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
        snprintf(device, sizeof device, "/dev/%.20s", entry->d_name);
        if (strncmp(entry->d_name, "loop", 4) == 0 && files_read_line(path, file, sizeof file) == 0)
            error = found(context, device, file);
    }
    closedir(blocks);
    return error;
}

struct wanted_file {
    char part[256]; /* "/HANDLE/" */
    struct loop_device *device;
};

static struct error *
take_below(void *context, const char *device, const char *file)
{
    const struct wanted_file *wanted = context;
    if (wanted->device->fd >= 0 || !strstr(file, wanted->part))
        return NULL;
    wanted->device->fd = open(device, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    snprintf(wanted->device->path, sizeof wanted->device->path, "%s", device);
    return NULL; /* ignores a device that has just been removed */
}

struct error *
loop_find_below(const char *directory, struct loop_device *out)
{
    struct wanted_file wanted = {.device = out};
    *out = (struct loop_device)LOOP_NONE;
    snprintf(wanted.part, sizeof wanted.part, "/%s/", directory);
    struct error *error = loop_list(take_below, &wanted);
    if (!error && out->fd < 0)
        error = error_new(CODE_NOT_FOUND, "no file below %s has a loop device", directory);
    return error;
}

struct error *
loop_drop(const char *device)
{
    int fd AUTO(files_close) = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, LOOP_CLR_FD) == 0 || errno == ENXIO)
        return NULL;
    return error_from_errno(errno, "detach %s", device);
}
