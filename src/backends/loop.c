/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop devices: see loop.h. The file is locked (flock) from the search for its device until a new
 * one is made, so that two callers that attach it at the same time get the same device. The lock is
 * on a separate descriptor: the one given to the device stays open, and would stay locked, as long
 * as the device exists.
 */
#include "backends/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/denial.h"
#include "base/files.h"

/*
 * The kernel offers the same free device to all who ask at the same time; all but one then find it
 * busy.
 */
#define MOST_TRIES 64

/*
 * Set for every device. By default the kernel uses the direct I/O block size of the file, which may
 * change: on xfs, a file that becomes the source of a reflink copy needs 4096 bytes instead of 512,
 * and then a file system with the smaller blocks cannot be mounted any more.
 */
#define BLOCK_BYTES 4096u
#define SMALL_BLOCK_BYTES 512u

/* How many devices the kernel has numbers for if none has partitions. */
#define MOST_DEVICES (1ul << 20)

void
loop_release(struct loop_device *device)
{
    files_close(&device->fd);
}

/* On a block device the kubelet has its own loop device, which is writable. Ours are read-only. */
static bool
is_of(int device, const struct stat *file)
{
    struct loop_info64 info = {0};
    return ioctl(device, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == file->st_dev &&
           info.lo_inode == file->st_ino &&
           (!S_ISBLK(file->st_mode) || info.lo_flags & LO_FLAGS_READ_ONLY);
}

/* Opens /dev/NAME if it is the device of this file; -1 otherwise. */
static int
open_if_of(const char *name, const struct stat *file)
{
    char path[280];
    snprintf(path, sizeof path, "/dev/%s", name);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !is_of(fd, file))
        files_close(&fd);
    return fd;
}

/* Only attached devices have this file in /sys. */
static bool
is_attached(const char *name)
{
    char path[320];
    snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", name);
    return access(path, F_OK) == 0;
}

/* `out->fd` stays -1 if there is none. */
static struct error *
find_device(const struct stat *file, struct loop_device *out)
{
    out->fd = -1;
    DIR *blocks = opendir("/sys/block");
    if (!blocks)
        return error_from_errno(errno, "open /sys/block");
    struct dirent *entry;
    while (out->fd < 0 && (entry = readdir(blocks))) {
        if (strncmp(entry->d_name, "loop", 4) != 0 || !is_attached(entry->d_name))
            continue;
        out->fd = open_if_of(entry->d_name, file);
        snprintf(out->path, sizeof out->path, "/dev/%.20s", entry->d_name);
    }
    closedir(blocks);
    return NULL;
}

static struct error *
open_control(int *out)
{
    *out = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (*out >= 0)
        return NULL;
    int failed = errno;
    struct error *error = error_from_errno(failed, "open /dev/loop-control");
    if (failed == ENOENT || failed == ENODEV || failed == ENXIO)
        return error_advise(error, "there are no loop devices here: load the module with `modprobe "
                                   "loop`; in a container, run it privileged with the host's /dev "
                                   "(podman run --privileged -v /dev:/dev)");
    return denial_explain(error, failed);
}

/* `out->fd` stays -1 if the device has just been removed (loop_remove_unused): try another. */
static struct error *
open_device(struct loop_device *out)
{
    char block[64];
    out->fd = open(out->path, O_RDWR | O_CLOEXEC);
    if (out->fd >= 0)
        return NULL;
    int failed = errno;
    snprintf(block, sizeof block, "/sys/block/%.20s", out->path + strlen("/dev/"));
    if (failed == ENXIO || access(block, F_OK) != 0)
        return NULL;
    return error_from_errno(failed, "open %s", out->path);
}

static struct error *
open_free_device(struct loop_device *out)
{
    int control AUTO(files_close) = -1;
    struct error *error = open_control(&control);
    if (error)
        return error;
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0)
        return error_from_errno(errno, "get a free loop device");
    snprintf(out->path, sizeof out->path, "/dev/loop%d", number);
    return open_device(out);
}

/* ---- devices with a name of their own ---- */

/*
 * The limit of device numbers. Each possible partition of a device takes one of the kernel's minor
 * numbers; the parameter is a power of two minus one.
 */
static unsigned long
number_limit(void)
{
    char text[32];
    if (files_read_line("/sys/module/loop/parameters/max_part", text, sizeof text) != 0)
        return MOST_DEVICES;
    return MOST_DEVICES / (strtoul(text, NULL, 10) + 1);
}

/* One more digit would exceed the limit: no other number begins with this one. */
static bool
is_own_number(unsigned long number, unsigned long limit)
{
    return number < limit && number * 10 >= limit;
}

static bool
has_own_name(const char *device, unsigned long limit)
{
    static const char start[] = "/dev/loop";
    char *end;
    if (strncmp(device, start, sizeof start - 1) != 0)
        return false;
    unsigned long number = strtoul(device + sizeof start - 1, &end, 10);
    return *end == '\0' && is_own_number(number, limit);
}

bool
loop_has_own_name(const char *device)
{
    return has_own_name(device, number_limit());
}

/*
 * Chooses at random: a number is not reused soon, so nobody who remembers the old device mistakes
 * another for it.
 */
static unsigned long
choose_number(void)
{
    unsigned long limit = number_limit();
    unsigned long lowest = (limit + 9) / 10;
    uint32_t random;
    while (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        ;
    return lowest + random % (limit - lowest);
}

/* If /dev is not a devtmpfs, nobody makes the device file. */
static void
make_device_file(const char *path)
{
    char numbers_path[64], numbers[32], *colon;
    if (access(path, F_OK) == 0)
        return;
    snprintf(numbers_path, sizeof numbers_path, "/sys/block/%.20s/dev", path + strlen("/dev/"));
    if (files_read_line(numbers_path, numbers, sizeof numbers) != 0)
        return;
    unsigned major = (unsigned)strtoul(numbers, &colon, 10);
    if (*colon == ':')
        mknod(path, S_IFBLK | 0600, makedev(major, (unsigned)strtoul(colon + 1, NULL, 10)));
}

/* As open_device; `out->fd` also stays -1 if the number is in use. */
static struct error *
open_own_device(struct loop_device *out)
{
    int control AUTO(files_close) = -1;
    struct error *error = open_control(&control);
    if (error)
        return error;
    unsigned long number = choose_number();
    if (ioctl(control, LOOP_CTL_ADD, number) < 0)
        return errno == EEXIST ? NULL : error_from_errno(errno, "make the loop device %lu", number);
    snprintf(out->path, sizeof out->path, "/dev/loop%lu", number);
    make_device_file(out->path);
    return open_device(out);
}

/*
 * Somebody else may have removed a device whose file make_device_file made. The kernel removes its
 * own files before those in /sys.
 */
static void
remove_stale_files(unsigned long limit)
{
    DIR *devices = opendir("/dev");
    struct dirent *entry;
    while (devices && (entry = readdir(devices))) {
        char device[LOOP_PATH_SIZE], block[64];
        snprintf(device, sizeof device, "/dev/%.20s", entry->d_name);
        snprintf(block, sizeof block, "/sys/devices/virtual/block/%.20s", entry->d_name);
        if (has_own_name(device, limit) && access(block, F_OK) != 0)
            unlink(device);
    }
    if (devices)
        closedir(devices);
}

void
loop_remove_unused(void)
{
    int control AUTO(files_close) = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    DIR *blocks = opendir("/sys/block");
    unsigned long limit = number_limit();
    struct dirent *entry;
    while (control >= 0 && blocks && (entry = readdir(blocks))) {
        char device[LOOP_PATH_SIZE];
        snprintf(device, sizeof device, "/dev/%.20s", entry->d_name);
        /* If it is busy, somebody is just attaching it. */
        if (has_own_name(device, limit) && !is_attached(entry->d_name))
            ioctl(control, LOOP_CTL_REMOVE, strtoul(device + strlen("/dev/loop"), NULL, 10));
    }
    if (blocks)
        closedir(blocks);
    remove_stale_files(limit);
}

/* ---- attaching ---- */

static int
configure(int device, int file, unsigned flags)
{
    struct loop_config config = {.fd = (uint32_t)file,
                                 .block_size =
                                     flags & LOOP_SMALL_BLOCKS ? SMALL_BLOCK_BYTES : BLOCK_BYTES};
    if (flags & LOOP_READ_ONLY)
        config.info.lo_flags |= LO_FLAGS_READ_ONLY;
    if (flags & LOOP_DIRECT_IO)
        config.info.lo_flags |= LO_FLAGS_DIRECT_IO;
    if (flags & LOOP_AUTOCLEAR)
        config.info.lo_flags |= LO_FLAGS_AUTOCLEAR;
    return ioctl(device, LOOP_CONFIGURE, &config);
}

static struct error *
make_device(const char *path, unsigned flags, struct loop_device *out)
{
    int mode = flags & LOOP_READ_ONLY ? O_RDONLY : O_RDWR;
    int file AUTO(files_close) = open(path, mode | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return error_from_errno(errno, "open %s", path);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        struct error *error = flags & LOOP_OWN_NAME ? open_own_device(out) : open_free_device(out);
        if (error)
            return error;
        if (out->fd < 0)
            continue;
        if (configure(out->fd, file, flags) == 0)
            return NULL;
        /* Some file systems do not support direct I/O. */
        if (errno == EINVAL && flags & LOOP_DIRECT_IO) {
            flags &= ~(unsigned)LOOP_DIRECT_IO;
            if (configure(out->fd, file, flags) == 0)
                return NULL;
        }
        int failed = errno;
        loop_release(out);
        if (failed != EBUSY)
            return error_from_errno(failed, "attach %s to %s", path, out->path);
    }
    return error_new(CODE_UNAVAILABLE,
                     "attach %s: every free loop device was taken by somebody else", path);
}

static struct error *
lock_file(const char *path, int *lock, struct stat *status)
{
    *lock = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*lock < 0)
        return error_from_errno(errno, "open %s", path);
    if (flock(*lock, LOCK_EX) != 0 || fstat(*lock, status) != 0)
        return error_from_errno(errno, "lock %s", path);
    return NULL;
}

/*
 * A device that was detached while open still exists until its last user closes it. It is wanted
 * again. It cannot disappear while we have it open.
 */
static struct error *
keep(const struct loop_device *device, struct loop_info64 *info)
{
    info->lo_flags &= ~(uint32_t)LO_FLAGS_AUTOCLEAR;
    if (ioctl(device->fd, LOOP_SET_STATUS64, info) != 0)
        return error_from_errno(errno, "keep %s", device->path);
    return NULL;
}

static struct error *
take_found(const char *file, unsigned flags, const struct loop_device *device)
{
    struct loop_info64 info = {0};
    if (ioctl(device->fd, LOOP_GET_STATUS64, &info) != 0)
        return error_from_errno(errno, "look at %s", device->path);
    bool is_read_only = info.lo_flags & LO_FLAGS_READ_ONLY;
    bool wants_read_only = flags & LOOP_READ_ONLY;
    if (is_read_only != wants_read_only)
        return error_new(CODE_FAILED_PRECONDITION, "%s is attached to %s, which is %s", file,
                         device->path, is_read_only ? "read-only" : "not read-only");
    bool would_go = info.lo_flags & LO_FLAGS_AUTOCLEAR && !(flags & LOOP_AUTOCLEAR);
    return would_go ? keep(device, &info) : NULL;
}

struct error *
loop_attach(const char *path, unsigned flags, struct loop_device *out)
{
    int lock AUTO(files_close) = -1;
    struct stat status = {0};
    *out = (struct loop_device)LOOP_NONE;
    struct error *error = lock_file(path, &lock, &status);
    if (!error)
        error = find_device(&status, out);
    if (error)
        return error;
    if (out->fd < 0)
        return make_device(path, flags, out);
    error = take_found(path, flags, out);
    if (error)
        loop_release(out);
    return error;
}

struct error *
loop_find(const char *path, struct loop_device *out)
{
    struct stat status = {0};
    *out = (struct loop_device)LOOP_NONE;
    if (stat(path, &status) != 0)
        return error_from_errno(errno, "look at %s", path);
    struct error *error = find_device(&status, out);
    if (!error && out->fd < 0)
        error = error_new(CODE_NOT_FOUND, "%s has no loop device", path);
    return error;
}

struct error *
loop_detach(const char *path)
{
    int lock AUTO(files_close) = -1;
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct stat status = {0};
    struct error *error = lock_file(path, &lock, &status);
    if (!error)
        error = find_device(&status, &device);
    if (error || device.fd < 0)
        return error;
    if (ioctl(device.fd, LOOP_CLR_FD) != 0 && errno != ENXIO)
        return error_from_errno(errno, "detach %s from %s", path, device.path);
    return NULL;
}

struct error *
loop_resize(const struct loop_device *device)
{
    if (ioctl(device->fd, LOOP_SET_CAPACITY) != 0)
        return error_from_errno(errno, "resize %s", device->path);
    return NULL;
}
