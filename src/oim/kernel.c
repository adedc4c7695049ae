/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accelerator `kernel`: block devices in memory, without special hardware. Each is a file on a
 * tmpfs, with all of its memory reserved, and a loop device while it is mapped.
 *
 * A memfd would be lost when the process is killed; a file on a tmpfs survives until the machine
 * shuts down. A volume is mapped if it has a loop device; there is no other record.
 *
 * The loop device has a special name (loop_has_own_name), because clients search for it as a part
 * of a link's target, and "/block/loop7" is also a part of "/block/loop70".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/loop.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "oim/accelerator.h"

/* Bytes of a name in one path element: each byte is two digits, and the limit is 255. */
#define PART_BYTES 100
#define FILE_NAME_SIZE (2 * ACCELERATOR_NAME_MAX + 16)
#define PATH_SIZE (PATH_MAX + FILE_NAME_SIZE)

/* How long unmapping waits for programs that have the device open, such as udev. */
#define CLOSING_MS 5000
/* How long it waits for mounts: a starting container has copies of all mounts for a moment. */
#define LEAVING_MS 1000
#define PAUSE_MS 5

struct kernel {
    struct accelerator base; /* first */
    char *directory;         /* where the tmpfs is mounted */
};

static struct kernel *
of(struct accelerator *accelerator)
{
    return (struct kernel *)accelerator;
}

/* ---- files ---- */

static char *
append_hex(char *out, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out += sprintf(out, "%02x", (unsigned char)bytes[i]);
    return out;
}

/* "666f6f"; a long name has its first part as a directory, "66...6f+/6f6f". */
static void
print_path(const struct kernel *kernel, const char *name, char out[static PATH_SIZE])
{
    size_t size = strlen(name);
    size_t first = size < PART_BYTES ? size : PART_BYTES;
    char *end = out + sprintf(out, "%.*s/", PATH_MAX, kernel->directory);
    end = append_hex(end, name, first);
    if (size > first)
        append_hex(end + sprintf(end, "+/"), name + first, size - first);
}

/* The directory in the path of a long name; "" if the name is short. */
static void
print_parent(const char *path, char out[static PATH_SIZE])
{
    const char *plus = strrchr(path, '+');
    snprintf(out, PATH_SIZE, "%.*s", plus && plus[1] == '/' ? (int)(plus + 1 - path) : 0, path);
}

/* NOT_FOUND: there is no such device. */
static struct error *
find_file(const struct kernel *kernel, const char *name, char path[static PATH_SIZE],
          struct stat *status)
{
    print_path(kernel, name, path);
    if (lstat(path, status) == 0)
        return NULL;
    if (errno == ENOENT)
        return error_new(CODE_NOT_FOUND,
                         "there is no block device \"%s\": create it with ProvisionMallocBDev",
                         name);
    return error_from_errno(errno, "look at %s", path);
}

static struct error *
reserve(int file, const char *name, uint64_t size_bytes)
{
    if (size_bytes > INT64_MAX || fallocate(file, 0, 0, (off_t)size_bytes) != 0)
        return error_from_errno(size_bytes > INT64_MAX || errno == EFBIG ? ENOSPC : errno,
                                "reserve %llu bytes of memory for the block device \"%s\"",
                                (unsigned long long)size_bytes, name);
    return NULL;
}

/* Links the complete file. Another call may remove its directory meanwhile, so it retries. */
static struct error *
give_name(int file, const char *path)
{
    char open_path[64], parent[PATH_SIZE];
    snprintf(open_path, sizeof open_path, "/proc/self/fd/%d", file);
    print_parent(path, parent);
    for (int tries = 0; tries < 10; tries++) {
        if (parent[0] && mkdir(parent, 0700) != 0 && errno != EEXIST)
            return error_from_errno(errno, "make %s", parent);
        if (linkat(AT_FDCWD, open_path, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
            return NULL;
        if (errno != ENOENT)
            break;
    }
    return error_from_errno(errno, "make %s", path);
}

static struct error *
provision(struct accelerator *accelerator, const char *name, uint64_t size_bytes,
          uint64_t deadline_ns)
{
    struct kernel *kernel = of(accelerator);
    struct stat status = {0};
    char path[PATH_SIZE];
    (void)deadline_ns;
    struct error *error = find_file(kernel, name, path, &status);
    if (!error && (uint64_t)status.st_size != size_bytes)
        return error_new(CODE_ALREADY_EXISTS,
                         "the block device \"%s\" is there with %lld bytes, not %llu", name,
                         (long long)status.st_size, (unsigned long long)size_bytes);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    int file AUTO(files_close) = open(kernel->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        return error_from_errno(errno, "make a file in %s", kernel->directory);
    error = reserve(file, name, size_bytes);
    return error ? error : give_name(file, path);
}

static struct error *
check(struct accelerator *accelerator, const char *name, uint64_t deadline_ns)
{
    struct stat status;
    char path[PATH_SIZE];
    (void)deadline_ns;
    return find_file(of(accelerator), name, path, &status);
}

/* ---- devices ---- */

/* Frees a NOT_FOUND error; false if there is none. */
static bool
forgive_absence(struct error **error)
{
    if (!*error || (*error)->code != CODE_NOT_FOUND)
        return false;
    error_free(STEAL(*error));
    return true;
}

static struct error *
remove_bdev(struct accelerator *accelerator, const char *name, uint64_t deadline_ns)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct stat status;
    char path[PATH_SIZE], parent[PATH_SIZE];
    (void)deadline_ns;
    struct error *error = find_file(of(accelerator), name, path, &status);
    if (forgive_absence(&error) || error)
        return error;
    error = loop_find(path, &device);
    if (!error)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the block device \"%s\" is mapped (%s): unmap it first", name,
                         device.path);
    if (!forgive_absence(&error))
        return error;
    if (unlink(path) != 0 && errno != ENOENT)
        return error_from_errno(errno, "remove %s", path);
    print_parent(path, parent);
    if (parent[0])
        rmdir(parent); /* it may not be empty */
    return NULL;
}

static struct error *
map_malloc(struct accelerator *accelerator, const char *volume, uint64_t deadline_ns,
           struct mapping *out)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct stat status;
    char path[PATH_SIZE];
    (void)deadline_ns;
    struct error *error = find_file(of(accelerator), volume, path, &status);
    if (error)
        return error;
    error = loop_attach(path, LOOP_OWN_NAME | LOOP_SMALL_BLOCKS, &device);
    if (error) {
        loop_remove_unused();
        return error_wrap(error, "map the volume \"%s\"", volume);
    }
    if (!loop_has_own_name(device.path))
        return error_new(
            CODE_FAILED_PRECONDITION,
            "the volume \"%s\" is attached to %s by something else: run `losetup -d %s`", volume,
            device.path, device.path);
    snprintf(out->device, sizeof out->device, "/block/%s", device.path + strlen("/dev/"));
    return NULL;
}

/* A mount or another device uses it. */
static bool
is_in_use(const char *device)
{
    int fd AUTO(files_close) = open(device, O_RDONLY | O_EXCL | O_CLOEXEC);
    return fd < 0 && errno == EBUSY;
}

static bool
has_device(const char *path)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    error_free(loop_find(path, &device));
    return device.fd >= 0;
}

/* False: `is_so` is still true after that time or at the deadline. */
static bool
wait_while(bool (*is_so)(const char *path), const char *path, uint64_t most_ms,
           uint64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
    uint64_t until_ns = clock_now_ns() + most_ms * UINT64_C(1000000);
    if (deadline_ns < until_ns)
        until_ns = deadline_ns;
    while (is_so(path)) {
        if (clock_now_ns() > until_ns)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static struct error *
detach(const char *volume, const char *path, uint64_t deadline_ns)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct error *error = loop_find(path, &device);
    if (forgive_absence(&error) || error)
        return error;
    loop_release(&device);
    if (!wait_while(is_in_use, device.path, LEAVING_MS, deadline_ns))
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s, the device of the volume \"%s\", is in use: unmount it first",
                         device.path, volume);
    error = loop_detach(path);
    if (error || wait_while(has_device, path, CLOSING_MS, deadline_ns))
        return error;
    return error_new(
        CODE_FAILED_PRECONDITION,
        "%s, the device of the volume \"%s\", is still open: it is removed when it is closed",
        device.path, volume);
}

static struct error *
unmap(struct accelerator *accelerator, const char *volume, uint64_t deadline_ns)
{
    struct stat status;
    char path[PATH_SIZE];
    struct error *error = find_file(of(accelerator), volume, path, &status);
    if (!error)
        error = detach(volume, path, deadline_ns);
    else
        forgive_absence(&error);
    loop_remove_unused();
    return error;
}

/* ---- opening ---- */

static bool
is_mount(const char *path)
{
    struct statx status;
    return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &status) == 0 &&
           status.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static struct error *
mount_memory(struct kernel *kernel, const char *data_directory)
{
    if (mkdir(data_directory, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s", data_directory);
    char *absolute AUTO(memory_cleanup) = realpath(data_directory, NULL);
    if (!absolute)
        return error_from_errno(errno, "find %s", data_directory);
    if (asprintf(&kernel->directory, "%s/oim-memory", absolute) < 0)
        memory_exhausted();
    if (mkdir(kernel->directory, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s", kernel->directory);
    if (!is_mount(kernel->directory) &&
        mount("skycap", kernel->directory, "tmpfs", MS_NOATIME | MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=0700") != 0)
        return error_from_errno(errno, "mount a tmpfs at %s", kernel->directory);
    return NULL;
}

/* Unmounts the tmpfs if it is empty. */
static void
close_kernel(struct accelerator *accelerator)
{
    struct kernel *kernel = of(accelerator);
    DIR *directory = kernel->directory ? opendir(kernel->directory) : NULL;
    int entries = 0;
    while (directory && entries < 3 && readdir(directory))
        entries++;
    if (directory)
        closedir(directory);
    /* "." and ".." */
    if (entries == 2 && umount2(kernel->directory, UMOUNT_NOFOLLOW) == 0)
        rmdir(kernel->directory);
    free(kernel->directory);
    free(kernel);
}

static struct error *
open_kernel(const struct accelerator_options *options, struct accelerator **out)
{
    if (!options->data_directory)
        return error_new(CODE_INVALID_ARGUMENT, "the kernel accelerator needs a data directory");
    if (geteuid() != 0)
        return error_new(CODE_PERMISSION_DENIED,
                         "the kernel accelerator needs root, to mount and for loop devices");
    struct kernel *kernel = memory_zeroed(sizeof *kernel);
    kernel->base.ops = &accelerator_kernel;
    struct error *error = mount_memory(kernel, options->data_directory);
    if (error) {
        close_kernel(&kernel->base);
        return error;
    }
    loop_remove_unused();
    log_info(options->log, "block devices are in memory and are lost when the machine shuts down",
             LOG_TEXT("directory", kernel->directory));
    *out = &kernel->base;
    return NULL;
}

const struct accelerator_ops accelerator_kernel = {
    .name = "kernel",
    .open = open_kernel,
    .close = close_kernel,
    .provision = provision,
    .remove = remove_bdev,
    .check = check,
    .map_malloc = map_malloc,
    .unmap = unmap,
};
