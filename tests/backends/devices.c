/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about loop devices and the file systems that are made on them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "backends/format.h"
#include "backends/loop.h"
#include "facts.h"

static const char *
file_path(const char *name)
{
    static _Thread_local char paths[4][4096];
    static _Thread_local unsigned next;
    char *path = paths[next++ % COUNT_OF(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", scene.directory, name);
    return path;
}

/* An empty image with a device; the path of the device. */
static const char *
attach_new(const char *name, uint64_t size, struct loop_device *device)
{
    unlink(file_path(name));
    EXPECT(put_text(file_path(name), "") && truncate(file_path(name), (off_t)size) == 0);
    SUCCEEDS(loop_attach(file_path(name), LOOP_DIRECT_IO, device));
    return device->path;
}

bool
has_no_device(const char *file)
{
    for (int tries = 0; tries < 200; tries++) {
        struct loop_device device AUTO(loop_release) = LOOP_NONE;
        struct error *error = loop_find(file, &device);
        bool is_gone = error && error->code == CODE_NOT_FOUND;
        error_free(error);
        if (is_gone)
            return true;
        usleep(5000);
    }
    return false;
}

static void
detach_and_remove(const char *name, struct loop_device *device)
{
    loop_release(device);
    SUCCEEDS(loop_detach(file_path(name)));
    EXPECT(has_no_device(file_path(name)));
    EXPECT(unlink(file_path(name)) == 0);
}

/* ---- loop devices ---- */

static void
a_file_has_one_device_and_keeps_it(void)
{
    struct loop_device first = LOOP_NONE, second = LOOP_NONE, found = LOOP_NONE;
    attach_new("one", 8 * MIB, &first);
    SUCCEEDS(loop_attach(file_path("one"), LOOP_DIRECT_IO, &second));
    EXPECT(!strcmp(first.path, second.path));
    SUCCEEDS(loop_find(file_path("one"), &found));
    EXPECT(!strcmp(first.path, found.path));
    EXPECT(link(file_path("one"), file_path("second-name")) == 0);
    loop_release(&found);
    SUCCEEDS(loop_find(file_path("second-name"), &found));
    EXPECT(!strcmp(first.path, found.path));
    loop_release(&second);
    FAILS(CODE_FAILED_PRECONDITION, loop_attach(file_path("one"), LOOP_READ_ONLY, &second));
    loop_release(&found);
    unlink(file_path("second-name"));
    detach_and_remove("one", &first);
    SUCCEEDS(put_text(file_path("one"), "") ? loop_detach(file_path("one")) : NULL);
    unlink(file_path("one"));
}

static void
a_read_only_device_cannot_be_written(void)
{
    struct loop_device device = LOOP_NONE, second = LOOP_NONE;
    EXPECT(put_text(file_path("fixed"), "") && truncate(file_path("fixed"), MIB) == 0);
    SUCCEEDS(loop_attach(file_path("fixed"), LOOP_READ_ONLY, &device));
    int fd = open(device.path, O_WRONLY);
    EXPECT(fd < 0 || write(fd, "x", 1) < 0);
    if (fd >= 0)
        close(fd);
    FAILS(CODE_FAILED_PRECONDITION, loop_attach(file_path("fixed"), 0, &second));
    detach_and_remove("fixed", &device);
}

static bool
reads_directly(const struct loop_device *device)
{
    struct loop_info64 info;
    return ioctl(device->fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_flags & LO_FLAGS_DIRECT_IO;
}

static void
direct_io_is_used_where_it_can_be_and_done_without_elsewhere(void)
{
    struct loop_device device = LOOP_NONE;
    attach_new("direct", 8 * MIB, &device);
    int probe = open(file_path("direct"), O_RDWR | O_DIRECT);
    EXPECT(reads_directly(&device) == (probe >= 0));
    if (probe >= 0)
        close(probe);
    detach_and_remove("direct", &device);
    /* /proc has no direct I/O in any kernel. */
    SUCCEEDS(loop_attach("/proc/cmdline", LOOP_READ_ONLY | LOOP_DIRECT_IO, &device));
    EXPECT(!reads_directly(&device));
    loop_release(&device);
    SUCCEEDS(loop_detach("/proc/cmdline"));
}

static void
a_device_grows_with_its_file(void)
{
    struct loop_device device = LOOP_NONE;
    uint64_t size = 0;
    attach_new("growing", 8 * MIB, &device);
    EXPECT(ioctl(device.fd, BLKGETSIZE64, &size) == 0 && size == 8 * MIB);
    EXPECT(truncate(file_path("growing"), 16 * MIB) == 0);
    SUCCEEDS(loop_resize(&device));
    EXPECT(ioctl(device.fd, BLKGETSIZE64, &size) == 0 && size == 16 * MIB);
    detach_and_remove("growing", &device);
}

/* Whatever file it is of: what was formatted for smaller blocks cannot be mounted from larger ones. */
static void
the_blocks_of_a_device_have_one_size(void)
{
    static const unsigned flags[] = {0, LOOP_DIRECT_IO};
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        struct loop_device device = LOOP_NONE;
        int size = 0;
        EXPECT(put_text(file_path("blocks"), "") && truncate(file_path("blocks"), MIB) == 0);
        SUCCEEDS(loop_attach(file_path("blocks"), flags[i], &device));
        EXPECT(ioctl(device.fd, BLKSSZGET, &size) == 0 && size == 4096);
        detach_and_remove("blocks", &device);
    }
}

static void
an_autoclear_device_goes_with_its_last_user(void)
{
    struct loop_device device = LOOP_NONE;
    EXPECT(put_text(file_path("clear"), "") && truncate(file_path("clear"), MIB) == 0);
    SUCCEEDS(loop_attach(file_path("clear"), LOOP_AUTOCLEAR, &device));
    loop_release(&device);
    EXPECT(has_no_device(file_path("clear")));
    unlink(file_path("clear"));
}

static void
a_device_that_was_detached_in_use_can_be_had_again(void)
{
    struct loop_device user = LOOP_NONE, again = LOOP_NONE, found = LOOP_NONE;
    attach_new("again", MIB, &user);
    SUCCEEDS(loop_detach(file_path("again")));
    SUCCEEDS(loop_attach(file_path("again"), 0, &again));
    EXPECT(!strcmp(again.path, user.path));
    loop_release(&again);
    loop_release(&user);
    SUCCEEDS(loop_find(file_path("again"), &found));
    detach_and_remove("again", &found);
}

#define THREADS 12u

static char device_paths[THREADS][LOOP_PATH_SIZE];

/* Even numbers attach files of their own, odd ones the same file. */
static void *
attach_in_thread(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    char name[32];
    struct loop_device device = LOOP_NONE;
    snprintf(name, sizeof name, "thread-%u", number % 2 ? 1 : number);
    struct error *error = loop_attach(file_path(name), 0, &device);
    memcpy(device_paths[number], device.path, sizeof device.path);
    loop_release(&device);
    return error;
}

static void
many_at_once_get_devices_of_their_own(void)
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        char name[32];
        snprintf(name, sizeof name, "thread-%u", i);
        EXPECT(put_text(file_path(name), "") && truncate(file_path(name), MIB) == 0);
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, attach_in_thread, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *error = NULL;
        pthread_join(threads[i], &error);
        SUCCEEDS(error);
    }
    for (unsigned i = 0; i < THREADS; i++)
        for (unsigned j = 0; j < i; j++)
            EXPECT((i % 2 && j % 2) == !strcmp(device_paths[i], device_paths[j]));
    for (unsigned i = 0; i < THREADS; i++) {
        char name[32];
        snprintf(name, sizeof name, "thread-%u", i);
        SUCCEEDS(loop_detach(file_path(name)));
        unlink(file_path(name));
    }
}

/* ---- file systems ---- */

static const struct {
    const char *name;
    uint64_t size;
} file_systems[] = {{"ext4", 32 * MIB}, {"xfs", 320 * MIB}, {"btrfs", 128 * MIB}};

static bool
mount_at(const char *device, const char *fs_type)
{
    EXPECT(mkdir(file_path("mount"), 0755) == 0 || errno == EEXIST);
    return mount(device, file_path("mount"), fs_type, 0, NULL) == 0;
}

static uint64_t
mounted_size(void)
{
    struct statvfs status;
    return statvfs(file_path("mount"), &status) == 0 ? status.f_blocks * status.f_frsize : 0;
}

static void
an_empty_device_is_formatted_once(void)
{
    char found[FORMAT_NAME_SIZE];
    for (size_t i = 0; i < COUNT_OF(file_systems); i++) {
        const char *name = file_systems[i].name;
        struct loop_device device = LOOP_NONE;
        attach_new("blank", file_systems[i].size, &device);
        SUCCEEDS(format_probe(device.path, found, sizeof found));
        EXPECT(!strcmp(found, ""));
        SUCCEEDS(format_ensure(device.path, name, "a-label-that-is-longer-than-allowed"));
        SUCCEEDS(format_probe(device.path, found, sizeof found));
        EXPECT(!strcmp(found, name));
        SUCCEEDS(format_check(device.path, name));
        EXPECT(mount_at(device.path, name));
        EXPECT(put_text(file_path("mount/file"), "stays"));
        EXPECT(umount(file_path("mount")) == 0);
        SUCCEEDS(format_ensure(device.path, name, NULL));
        EXPECT(mount_at(device.path, name));
        EXPECT(has_text(file_path("mount/file"), "stays"));
        EXPECT(umount(file_path("mount")) == 0);
        detach_and_remove("blank", &device);
    }
}

/* Nothing of it may change. */
static void
check_refused(const char *name, const char *fs_type)
{
    struct loop_device device = LOOP_NONE;
    char command[9000];
    SUCCEEDS(loop_attach(file_path(name), 0, &device));
    snprintf(command, sizeof command, "cp --sparse=always %s %s", file_path(name),
             file_path("witness"));
    EXPECT(system(command) == 0);
    FAILS(CODE_FAILED_PRECONDITION, format_ensure(device.path, fs_type, NULL));
    loop_release(&device);
    SUCCEEDS(loop_detach(file_path(name)));
    EXPECT(is_same_file(file_path(name), file_path("witness")));
    unlink(file_path("witness"));
    unlink(file_path(name));
}

static void
put_image(const char *name, uint64_t size, uint64_t offset, const char *text)
{
    unlink(file_path(name));
    EXPECT(put_text(file_path(name), "") && truncate(file_path(name), (off_t)size) == 0);
    int fd = open(file_path(name), O_WRONLY);
    EXPECT(pwrite(fd, text, strlen(text), (off_t)offset) == (ssize_t)strlen(text));
    close(fd);
}

static void
a_device_with_anything_on_it_is_never_formatted(void)
{
    struct loop_device device = LOOP_NONE;
    for (size_t i = 0; i < COUNT_OF(file_systems); i++) {
        attach_new("occupied", file_systems[i].size, &device);
        SUCCEEDS(format_ensure(device.path, file_systems[i].name, NULL));
        loop_release(&device);
        SUCCEEDS(loop_detach(file_path("occupied")));
        check_refused("occupied", file_systems[(i + 1) % COUNT_OF(file_systems)].name);
    }
    put_image("head", 64 * MIB, 0, "x");
    check_refused("head", "ext4");
    put_image("inside", 64 * MIB, MIB - 1, "x");
    check_refused("inside", "ext4");
    put_image("tail", 64 * MIB, 64 * MIB - 1, "x");
    check_refused("tail", "ext4");
    put_image("partitions", 64 * MIB, 510, "\x55\xaa");
    check_refused("partitions", "ext4");
    put_image("swap", 64 * MIB, 4086, "SWAPSPACE2");
    check_refused("swap", "ext4");
    put_image("lvm", 64 * MIB, 512, "LABELONE");
    check_refused("lvm", "ext4");
}

static void
what_cannot_be_made_is_told_before_anything_is_written(void)
{
    struct loop_device device = LOOP_NONE;
    char found[FORMAT_NAME_SIZE];
    attach_new("small", 16 * MIB, &device);
    FAILS(CODE_OUT_OF_RANGE, format_ensure(device.path, "xfs", NULL));
    FAILS(CODE_OUT_OF_RANGE, format_ensure(device.path, "btrfs", NULL));
    FAILS(CODE_INVALID_ARGUMENT, format_ensure(device.path, "ntfs; rm -rf /", NULL));
    FAILS(CODE_INVALID_ARGUMENT, format_ensure(device.path, "", NULL));
    FAILS(CODE_NOT_FOUND, format_ensure(file_path("nothing"), "ext4", NULL));
    SUCCEEDS(format_probe(device.path, found, sizeof found));
    EXPECT(!strcmp(found, ""));
    for (size_t i = 0; i < COUNT_OF(file_systems); i++)
        EXPECT(format_smallest_bytes(file_systems[i].name) <= file_systems[i].size);
    detach_and_remove("small", &device);
}

/* What an interrupted mkfs leaves can be made again by one who knows that. */
static void
an_interrupted_format_can_be_done_again(void)
{
    char found[FORMAT_NAME_SIZE];
    put_image("half", 32 * MIB, 5000, "rubbish");
    SUCCEEDS(format_again(file_path("half"), "ext4", NULL));
    SUCCEEDS(format_probe(file_path("half"), found, sizeof found));
    EXPECT(!strcmp(found, "ext4"));
    SUCCEEDS(format_check(file_path("half"), "ext4"));
    unlink(file_path("half"));
}

static void
the_smallest_sizes_are_true(void)
{
    for (size_t i = 0; i < COUNT_OF(file_systems); i++) {
        struct loop_device device = LOOP_NONE;
        const char *name = file_systems[i].name;
        attach_new("smallest", format_smallest_bytes(name), &device);
        SUCCEEDS(format_ensure(device.path, name, NULL));
        EXPECT(mount_at(device.path, name));
        EXPECT(put_text(file_path("mount/file"), "fits"));
        EXPECT(umount(file_path("mount")) == 0);
        detach_and_remove("smallest", &device);
    }
}

static void
grow_once(const char *name, uint64_t size)
{
    struct loop_device device = LOOP_NONE;
    attach_new("grown", size, &device);
    SUCCEEDS(format_ensure(device.path, name, NULL));
    EXPECT(mount_at(device.path, name));
    EXPECT(put_text(file_path("mount/file"), "stays"));
    uint64_t before = mounted_size();
    EXPECT(truncate(file_path("grown"), (off_t)size * 2) == 0);
    SUCCEEDS(loop_resize(&device));
    SUCCEEDS(format_grow(device.path, name, file_path("mount")));
    EXPECT(mounted_size() >= before + size * 9 / 10);
    EXPECT(has_text(file_path("mount/file"), "stays"));
    EXPECT(umount(file_path("mount")) == 0);
    SUCCEEDS(format_check(device.path, name));
    detach_and_remove("grown", &device);
}

/* Also when something is left of a growth that was interrupted. */
static void
ext4_grows_in_a_file_that_is_not_attached(void)
{
    struct loop_device device = LOOP_NONE;
    struct stat status;
    attach_new("grown", 32 * MIB, &device);
    SUCCEEDS(format_ensure(device.path, "ext4", NULL));
    EXPECT(mount_at(device.path, "ext4"));
    EXPECT(put_text(file_path("mount/file"), "stays"));
    uint64_t before = mounted_size();
    EXPECT(umount(file_path("mount")) == 0);
    SUCCEEDS(loop_detach(file_path("grown")));
    loop_release(&device);
    EXPECT(truncate(file_path("grown"), 64 * MIB) == 0);
    EXPECT(put_text(file_path("grown.growing"), "left"));
    SUCCEEDS(format_grow_file(file_path("grown")));
    EXPECT(stat(file_path("grown.growing"), &status) != 0);
    SUCCEEDS(loop_attach(file_path("grown"), 0, &device));
    EXPECT(mount_at(device.path, "ext4"));
    EXPECT(mounted_size() >= before + 28 * MIB);
    EXPECT(has_text(file_path("mount/file"), "stays"));
    EXPECT(umount(file_path("mount")) == 0);
    detach_and_remove("grown", &device);
}

static void
xfs_and_btrfs_grow_while_they_are_mounted(void)
{
    for (size_t i = 1; i < COUNT_OF(file_systems); i++)
        grow_once(file_systems[i].name, file_systems[i].size);
}

static bool
has_capability(unsigned number)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{0}};
    return syscall(SYS_capget, &header, sets) == 0 &&
           sets[number / 32].effective & (1u << number % 32);
}

static void
ext4_grows_while_it_is_mounted(void)
{
    if (has_capability(CAP_SYS_RESOURCE)) {
        grow_once(file_systems[0].name, file_systems[0].size);
        return;
    }
    struct loop_device device = LOOP_NONE;
    attach_new("grown", 32 * MIB, &device);
    SUCCEEDS(format_ensure(device.path, "ext4", NULL));
    EXPECT(mount_at(device.path, "ext4"));
    EXPECT(truncate(file_path("grown"), 64 * MIB) == 0);
    SUCCEEDS(loop_resize(&device));
    FAILS(CODE_PERMISSION_DENIED, format_grow(device.path, "ext4", file_path("mount")));
    EXPECT(umount(file_path("mount")) == 0);
    detach_and_remove("grown", &device);
    scene.skipped = "root has no CAP_SYS_RESOURCE here; that this is told was checked";
}

static void
a_damaged_ext4_is_repaired_or_refused(void)
{
    struct loop_device device = LOOP_NONE;
    static char rubbish[64 << 10];
    attach_new("damaged", 32 * MIB, &device);
    SUCCEEDS(format_ensure(device.path, "ext4", NULL));
    memset(rubbish, 0xa5, sizeof rubbish);
    int fd = open(device.path, O_WRONLY);
    EXPECT(pwrite(fd, rubbish, sizeof rubbish, 2048) == sizeof rubbish && fsync(fd) == 0);
    close(fd);
    FAILS(CODE_DATA_LOSS, format_check(device.path, "ext4"));
    detach_and_remove("damaged", &device);
}

const struct fact facts_of_devices[] = {
    {"a file has one device and keeps it", a_file_has_one_device_and_keeps_it},
    {"a read-only device cannot be written", a_read_only_device_cannot_be_written},
    {"direct I/O is used where it can be and done without elsewhere",
     direct_io_is_used_where_it_can_be_and_done_without_elsewhere},
    {"a device grows with its file", a_device_grows_with_its_file},
    {"the blocks of a device have one size", the_blocks_of_a_device_have_one_size},
    {"an autoclear device goes with its last user", an_autoclear_device_goes_with_its_last_user},
    {"a device that was detached in use can be had again",
     a_device_that_was_detached_in_use_can_be_had_again},
    {"many at once get devices of their own", many_at_once_get_devices_of_their_own},
    {"an empty device is formatted once", an_empty_device_is_formatted_once},
    {"a device with anything on it is never formatted",
     a_device_with_anything_on_it_is_never_formatted},
    {"what cannot be made is told before anything is written",
     what_cannot_be_made_is_told_before_anything_is_written},
    {"an interrupted format can be done again", an_interrupted_format_can_be_done_again},
    {"the smallest sizes are true", the_smallest_sizes_are_true},
    {"ext4 grows in a file that is not attached", ext4_grows_in_a_file_that_is_not_attached},
    {"xfs and btrfs grow while they are mounted", xfs_and_btrfs_grow_while_they_are_mounted},
    {"ext4 grows while it is mounted", ext4_grows_while_it_is_mounted},
    {"a damaged ext4 is repaired or refused", a_damaged_ext4_is_repaired_or_refused},
    {NULL, NULL},
};
