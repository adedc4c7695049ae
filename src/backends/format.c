/* SPDX-License-Identifier: Apache-2.0 */
/* File systems on devices: see format.h. */
#include "backends/format.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backends/file_copy.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"

#define MKFS_TIMEOUT_MS 300000
#define CHECK_TIMEOUT_MS 3600000

/*
 * How each is made. ext4: the kernel writes the tables later, and no blocks are reserved for root.
 * Nothing is discarded: the device is empty. The minimum sizes are those of the tools.
 */
static const struct maker {
    const char *fs_type;
    uint64_t smallest_bytes;
    int label_size; /* at most */
    const char *label_option;
    const char *arguments[8];
} makers[] = {
    {"ext4",
     2u << 20,
     16,
     "-L",
     {"mkfs.ext4", "-q", "-F", "-m", "0", "-E",
      "lazy_itable_init=1,lazy_journal_init=1,nodiscard"}},
    {"xfs", 300u << 20, 12, "-L", {"mkfs.xfs", "-q", "-f", "-K"}},
    {"btrfs", 109u << 20, 255, "--label", {"mkfs.btrfs", "--quiet", "--force", "--nodiscard"}},
};

static const struct maker *
find_maker(const char *fs_type)
{
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        if (!strcmp(makers[i].fs_type, fs_type))
            return &makers[i];
    }
    return NULL;
}

bool
format_is_known(const char *fs_type)
{
    return find_maker(fs_type) != NULL;
}

uint64_t
format_smallest_bytes(const char *fs_type)
{
    const struct maker *maker = find_maker(fs_type);
    return maker ? maker->smallest_bytes : 0;
}

/* ---- making ---- */

static struct error *
check_size(const char *device, const struct maker *maker)
{
    int fd AUTO(files_close) = open(device, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (size < 0)
        return error_from_errno(errno, "ask for the size of %s", device);
    if ((uint64_t)size >= maker->smallest_bytes)
        return NULL;
    return error_new(CODE_OUT_OF_RANGE, "%s needs at least %llu MiB, and %s has %llu",
                     maker->fs_type, (unsigned long long)maker->smallest_bytes >> 20, device,
                     (unsigned long long)size >> 20);
}

static struct error *
make(const char *device, const struct maker *maker, const char *label)
{
    struct error *error = check_size(device, maker);
    if (error)
        return error;
    const char *arguments[COUNT_OF(maker->arguments) + 4];
    char cut[256];
    size_t count = 0;
    for (; count < COUNT_OF(maker->arguments) && maker->arguments[count]; count++)
        arguments[count] = maker->arguments[count];
    if (label && label[0]) {
        snprintf(cut, sizeof cut, "%.*s", maker->label_size, label);
        arguments[count++] = maker->label_option;
        arguments[count++] = cut;
    }
    arguments[count++] = device;
    arguments[count] = NULL;
    return error_wrap(process_run(arguments, MKFS_TIMEOUT_MS, NULL, NULL), "format %s as %s",
                      device, maker->fs_type);
}

static struct error *
refuse_unknown(const char *fs_type)
{
    return error_new(CODE_INVALID_ARGUMENT,
                     "the file system \"%.32s\" is not known; use ext4, xfs or btrfs", fs_type);
}

struct error *
format_ensure(const char *device, const char *fs_type, const char *label)
{
    char found[FORMAT_NAME_SIZE];
    const struct maker *maker = find_maker(fs_type);
    if (!maker)
        return refuse_unknown(fs_type);
    struct error *error = format_probe(device, found, sizeof found);
    if (error || !strcmp(found, fs_type))
        return error;
    if (found[0])
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s holds %s and is not formatted as %s: that would destroy it", device,
                         found, fs_type);
    return make(device, maker, label);
}

struct error *
format_wipe(const char *device)
{
    char *zeros AUTO(memory_cleanup) = memory_zeroed(FORMAT_END_BYTES);
    int fd AUTO(files_close) = open(device, O_RDWR | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (size < 0)
        return error_from_errno(errno, "open %s", device);
    size_t part = size < FORMAT_END_BYTES ? (size_t)size : FORMAT_END_BYTES;
    if (pwrite(fd, zeros, part, 0) != (ssize_t)part ||
        pwrite(fd, zeros, part, size - (off_t)part) != (ssize_t)part || fsync(fd) != 0)
        return error_from_errno(errno, "wipe %s", device);
    return NULL;
}

struct error *
format_again(const char *device, const char *fs_type, const char *label)
{
    const struct maker *maker = find_maker(fs_type);
    if (!maker)
        return refuse_unknown(fs_type);
    struct error *error = format_wipe(device);
    return error ? error : make(device, maker, label);
}

/* ---- keeping ---- */

/* Codes above 1 (repaired) need a person. */
static struct error *
run_e2fsck(const char *const *arguments, const char *device)
{
    char said[300];
    struct buffer output AUTO(buffer_clear) = {0};
    int code = 0;
    struct error *error = process_run(arguments, CHECK_TIMEOUT_MS, &output, &code);
    if (error || code <= 1)
        return error;
    process_summarize(&output, said, sizeof said);
    return error_new(CODE_DATA_LOSS, "e2fsck ended with code %d on %s, run it by hand: %s", code,
                     device, said);
}

/* Only ext4 needs this: the others replay their logs when they are mounted. */
struct error *
format_check(const char *device, const char *fs_type)
{
    const char *const arguments[] = {"e2fsck", "-p", device, NULL};
    return strcmp(fs_type, "ext4") == 0 ? run_e2fsck(arguments, device) : NULL;
}

bool
format_grows_mounted(const char *fs_type)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (strcmp(fs_type, "ext4") != 0)
        return true;
    return syscall(SYS_capget, &header, sets) == 0 &&
           sets[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE);
}

/* resize2fs insists on a full check of an unmounted file system before it grows. */
static struct error *
resize_unmounted(const char *device)
{
    const char *const check[] = {"e2fsck", "-f", "-p", device, NULL};
    const char *const resize[] = {"resize2fs", device, NULL};
    struct error *error = run_e2fsck(check, device);
    return error ? error : process_run(resize, CHECK_TIMEOUT_MS, NULL, NULL);
}

static struct error *
grow_mounted_ext4(const char *device)
{
    const char *const resize[] = {"resize2fs", device, NULL};
    struct error *error = process_run(resize, CHECK_TIMEOUT_MS, NULL, NULL);
    if (!error || !strstr(error->message, "Permission denied"))
        return error;
    error_free(error);
    return error_new(CODE_PERMISSION_DENIED, "a mounted ext4 can grow only with CAP_SYS_RESOURCE; "
                                             "unmount it, and it grows at the next mount");
}

static struct error *
grow_btrfs(const char *mount_path)
{
    struct btrfs_ioctl_vol_args *whole AUTO(memory_cleanup) = memory_zeroed(sizeof *whole);
    int fd AUTO(files_close) = open(mount_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    strcpy(whole->name, "max");
    if (fd < 0 || ioctl(fd, BTRFS_IOC_RESIZE, whole) != 0)
        return error_from_errno(errno, "resize the btrfs at %s", mount_path);
    return NULL;
}

struct error *
format_grow(const char *device, const char *fs_type, const char *mount_path)
{
    struct error *error = NULL;
    const char *const xfs_growfs[] = {"xfs_growfs", "-d", mount_path, NULL};
    if (!format_is_known(fs_type))
        return refuse_unknown(fs_type);
    if (!strcmp(fs_type, "ext4"))
        error = grow_mounted_ext4(device);
    else if (!strcmp(fs_type, "xfs"))
        error = process_run(xfs_growfs, CHECK_TIMEOUT_MS, NULL, NULL);
    else
        error = grow_btrfs(mount_path);
    return error_wrap(error, "grow the %s on %s", fs_type, device);
}

struct error *
format_set_label(const char *mount_path, const char *fs_type, const char *label)
{
    const struct maker *maker = find_maker(fs_type);
    char wanted[FSLABEL_MAX] = "", now[FSLABEL_MAX] = "";
    if (!maker)
        return refuse_unknown(fs_type);
    snprintf(wanted, sizeof wanted, "%.*s", maker->label_size, label);
    int fd AUTO(files_close) = open(mount_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, FS_IOC_GETFSLABEL, now) == 0 && strcmp(now, wanted) == 0)
        return NULL;
    if (fd < 0 || ioctl(fd, FS_IOC_SETFSLABEL, wanted) != 0)
        return error_from_errno(errno, "label the %s at %s", fs_type, mount_path);
    return NULL;
}

/* ---- growing a file ---- */

/*
 * Gives the copy the compression of the image, which may have changed since it was made: the copy
 * has inherited that of the directory. File systems without compression have no such attribute.
 */
static struct error *
copy_compression(int from, int to)
{
    static const char attribute[] = "btrfs.compression";
    char value[16];
    ssize_t size = fgetxattr(from, attribute, value, sizeof value);
    int failed =
        size > 0 ? fsetxattr(to, attribute, value, (size_t)size, 0) : fremovexattr(to, attribute);
    if (failed && errno != ENODATA && errno != ENOTSUP)
        return error_from_errno(errno, "copy the compression of an image");
    return NULL;
}

static struct error *
grow_copy(int from, int to, const char *copy)
{
    struct copy_job job = {0};
    struct error *error = copy_compression(from, to);
    if (!error)
        error = file_copy(&job, from, to);
    if (!error)
        error = resize_unmounted(copy);
    if (!error && fsync(to) != 0)
        error = error_from_errno(errno, "make %s durable", copy);
    return error;
}

static struct error *
put_in_place(const char *copy, const char *image)
{
    char *directory AUTO(memory_cleanup) = memory_string(image);
    char *end = strrchr(directory, '/');
    if (end)
        *end = '\0';
    int fd AUTO(files_close) = open(end ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || rename(copy, image) != 0 || fsync(fd) != 0)
        return error_from_errno(errno, "rename %s to %s", copy, image);
    return NULL;
}

struct error *
format_grow_file(const char *image)
{
    char *copy AUTO(memory_cleanup) = NULL;
    if (asprintf(&copy, "%s.growing", image) < 0)
        memory_exhausted();
    int from AUTO(files_close) = open(image, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return error_from_errno(errno, "open %s", image);
    unlink(copy); /* left by an interrupted run */
    int to AUTO(files_close) = open(copy, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        return error_from_errno(errno, "make %s", copy);
    struct error *error = grow_copy(from, to, copy);
    if (!error)
        error = put_in_place(copy, image);
    if (error)
        unlink(copy);
    return error_wrap(error, "grow the ext4 in %s", image);
}
