/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of devices: see btrfs_devices.h.
 *
 * The kernel does not remember when a scrub has ended: BTRFS_IOC_SCRUB_PROGRESS answers only while
 * one runs. `btrfs scrub` writes a file about each scrub that it starts on this machine. That file
 * is read; without it nothing is known. Scrubs of other programs are not noticed.
 */
#include "backends/btrfs_devices.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/files.h"

#define STATUS_PREFIX "/var/lib/btrfs/scrub.status."
#define STATUS_SIZE 16384 /* a line has about 500 bytes */
#define UUID_SIZE 37

/* ---- errors ---- */

static bool
read_device(int root, uint64_t id, struct backend_device *out)
{
    struct btrfs_ioctl_get_dev_stats stats = {.devid = id, .nr_items = BTRFS_DEV_STAT_VALUES_MAX};
    if (ioctl(root, BTRFS_IOC_GET_DEV_STATS, &stats) != 0)
        return false;
    *out = (struct backend_device){
        .id = id,
        .write_errors = stats.values[BTRFS_DEV_STAT_WRITE_ERRS],
        .read_errors = stats.values[BTRFS_DEV_STAT_READ_ERRS],
        .flush_errors = stats.values[BTRFS_DEV_STAT_FLUSH_ERRS],
        .corruption_errors = stats.values[BTRFS_DEV_STAT_CORRUPTION_ERRS],
        .generation_errors = stats.values[BTRFS_DEV_STAT_GENERATION_ERRS],
    };
    return true;
}

/* Numbers of devices that were removed are not used again, so there may be gaps. */
static void
read_devices(int root, const struct btrfs_ioctl_fs_info_args *info, struct backend_devices *out)
{
    uint64_t most =
        info->num_devices < BACKEND_MOST_DEVICES ? info->num_devices : BACKEND_MOST_DEVICES;
    for (uint64_t id = 1; id <= info->max_id && id <= UINT16_MAX && out->count < most; id++)
        out->count += read_device(root, id, &out->items[out->count]);
}

/* ---- scrubs ---- */

/* "UUID:1|...|t_start:1700000000|...|canceled:0|finished:1", one line for each device. */
static int64_t
read_status_line(char *line)
{
    int64_t start = 0;
    bool is_finished = false, is_cancelled = false;
    for (char *field; (field = strsep(&line, "|"));) {
        const char *value = strchr(field, ':');
        if (!value)
            continue;
        int64_t number = strtoll(value + 1, NULL, 10);
        if (!strncmp(field, "t_start:", strlen("t_start:")))
            start = number;
        else if (!strncmp(field, "finished:", strlen("finished:")))
            is_finished = number == 1;
        else if (!strncmp(field, "canceled:", strlen("canceled:")))
            is_cancelled = number != 0;
    }
    return is_finished && !is_cancelled && start > 0 ? start : 0;
}

int64_t
btrfs_devices_read_status(char *text)
{
    int64_t first = 0;
    const char *head = strsep(&text, "\n");
    if (strcmp(head, "scrub status:1") != 0)
        return 0;
    for (char *line; (line = strsep(&text, "\n"));) {
        if (!line[0])
            continue;
        int64_t start = read_status_line(line);
        if (!start)
            return 0;
        if (!first || start < first)
            first = start;
    }
    return first;
}

static void
print_uuid(const uint8_t bytes[BTRFS_FSID_SIZE], char out[UUID_SIZE])
{
    size_t size = 0;
    for (size_t i = 0; i < BTRFS_FSID_SIZE; i++)
        size += (size_t)snprintf(out + size, UUID_SIZE - size, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

static int64_t
find_scrub(const struct btrfs_ioctl_fs_info_args *info)
{
    char uuid[UUID_SIZE], path[sizeof STATUS_PREFIX + UUID_SIZE], text[STATUS_SIZE];
    print_uuid(info->fsid, uuid);
    snprintf(path, sizeof path, STATUS_PREFIX "%s", uuid);
    int fd AUTO(files_close) = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (got < 0 || got == sizeof text - 1) /* none, or too long to be true */
        return 0;
    text[got] = 0;
    return btrfs_devices_read_status(text);
}

struct error *
btrfs_devices(struct backend *backend, struct backend_devices *out)
{
    struct btrfs_ioctl_fs_info_args info = {0};
    if (ioctl(backend->root, BTRFS_IOC_FS_INFO, &info) != 0)
        return error_from_errno(errno, "ask for the devices of the file system");
    read_devices(backend->root, &info, out);
    out->scrubbed_s = find_scrub(&info);
    return NULL;
}
