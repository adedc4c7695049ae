/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about copies and snapshots. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "facts.h"

/* ---- everything that a tree can have ---- */

static bool
set_access_list(const char *path)
{
    /* Version 2; owner rwx, user 1234 r-x, group r--, mask r-x, others none: each tag, permission, id. */
    static const unsigned char list[] = {
        2, 0,    0,    0,    1,    0,    7,    0, 0xff, 0xff, 0xff, 0xff, 2,    0,    5,
        0, 0xd2, 0x04, 0,    0,    4,    0,    4, 0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,
        5, 0,    0xff, 0xff, 0xff, 0xff, 0x20, 0, 0,    0,    0xff, 0xff, 0xff, 0xff};
    return setxattr(path, "system.posix_acl_access", list, sizeof list, 0) == 0;
}

static bool
put_sparse(const char *path)
{
    return fill_random(path, 0, 5000) && fill_random(path, 3 * MIB, 70000) &&
           truncate(path, 10 * MIB + 123) == 0;
}

static void
furnish(struct data tree)
{
    char long_name[256];
    memset(long_name, 'n', 255);
    long_name[255] = 0;
    EXPECT(put_text(path_of(tree, "plain"), "some text"));
    EXPECT(put_text(path_of(tree, "empty"), ""));
    EXPECT(put_text(path_of(tree, long_name), "a long name"));
    EXPECT(put_text(path_of(tree, "odd\nname \xff\xfe"), "not UTF-8"));
    EXPECT(put_sparse(path_of(tree, "sparse")));
    EXPECT(mkdir(path_of(tree, "directory"), 0750) == 0);
    EXPECT(mkdir(path_of(tree, "directory/below"), 0777) == 0);
    EXPECT(put_text(path_of(tree, "directory/below/file"), "deep"));
    EXPECT(link(path_of(tree, "directory/below/file"), path_of(tree, "hard-link")) == 0);
    EXPECT(symlink("directory/below/file", path_of(tree, "link")) == 0);
    EXPECT(symlink("/nowhere/at all", path_of(tree, "dangling")) == 0);
    EXPECT(mkfifo(path_of(tree, "fifo"), 0640) == 0);
    EXPECT(setxattr(path_of(tree, "plain"), "user.note", "remember", 8, 0) == 0);
    EXPECT(setxattr(path_of(tree, "directory"), "user.note", "me too", 6, 0) == 0);
    EXPECT(set_access_list(path_of(tree, "plain")));
    const struct timespec times[] = {{1111111111, 111}, {1222222222, 222}};
    EXPECT(utimensat(AT_FDCWD, path_of(tree, "link"), times, AT_SYMLINK_NOFOLLOW) == 0);
    EXPECT(utimensat(AT_FDCWD, path_of(tree, "plain"), times, 0) == 0);
    if (geteuid() == 0) {
        EXPECT(mknod(path_of(tree, "device"), S_IFCHR | 0600, makedev(1, 3)) == 0);
        EXPECT(chown(path_of(tree, "directory/below/file"), 1234, 5678) == 0);
        EXPECT(chmod(path_of(tree, "directory/below/file"), 06755) == 0);
        EXPECT(lchown(path_of(tree, "dangling"), 4321, 8765) == 0);
        EXPECT(chown(path_of(tree, "directory"), 1000, 1000) == 0);
        EXPECT(chmod(path_of(tree, "directory"), 02775) == 0);
    }
    EXPECT(utimensat(AT_FDCWD, path_of(tree, "directory"), times, 0) == 0);
    EXPECT(chmod(path_of(tree, NULL), 0711) == 0);
    EXPECT(utimensat(AT_FDCWD, path_of(tree, NULL), times, 0) == 0);
}

/* ---- comparing ---- */

static char compared_root[4096], other_root[4096];
static unsigned compared, differing;

static void
differ(const char *path, const char *what)
{
    differing++;
    fprintf(stderr, "    %s: %s differs\n", path, what);
}

static bool
has_same_attributes(const char *a, const char *b)
{
    char names[4096], value[4096], other[4096];
    ssize_t size = llistxattr(a, names, sizeof names);
    for (const char *name = names; name < names + size; name += strlen(name) + 1) {
        ssize_t length = lgetxattr(a, name, value, sizeof value);
        if (lgetxattr(b, name, other, sizeof other) != length ||
            memcmp(value, other, length > 0 ? (size_t)length : 0) != 0)
            return false;
    }
    return llistxattr(b, other, sizeof other) == size;
}

static int
compare_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    char other[8192], target[4096], other_target[4096];
    struct stat copy;
    (void)type;
    (void)place;
    compared++;
    snprintf(other, sizeof other, "%s%s", other_root, path + strlen(compared_root));
    if (lstat(other, &copy) != 0) {
        differ(path, "existence");
        return 0;
    }
    if (copy.st_mode != status->st_mode)
        differ(path, "mode");
    if (copy.st_uid != status->st_uid || copy.st_gid != status->st_gid)
        differ(path, "owner");
    if (copy.st_mtim.tv_sec != status->st_mtim.tv_sec ||
        copy.st_mtim.tv_nsec != status->st_mtim.tv_nsec)
        differ(path, "time");
    if (!S_ISDIR(copy.st_mode) &&
        (copy.st_nlink != status->st_nlink || copy.st_size != status->st_size))
        differ(path, "number of links or size");
    if (copy.st_rdev != status->st_rdev)
        differ(path, "device");
    if (!has_same_attributes(path, other))
        differ(path, "extended attributes");
    if (S_ISREG(copy.st_mode) && !is_same_file(path, other))
        differ(path, "content");
    if (S_ISREG(copy.st_mode) && copy.st_blocks > status->st_blocks + 64)
        differ(path, "holes");
    if (S_ISLNK(copy.st_mode)) {
        ssize_t size = readlink(path, target, sizeof target);
        if (readlink(other, other_target, sizeof other_target) != size ||
            memcmp(target, other_target, (size_t)size) != 0)
            differ(path, "target");
    }
    return 0;
}

static void
compare_trees(struct data a, struct data b)
{
    unsigned expected = geteuid() == 0 ? 14 : 13; /* as furnish has made them, with the top */
    snprintf(compared_root, sizeof compared_root, "%s", path_of(a, NULL));
    snprintf(other_root, sizeof other_root, "%s", path_of(b, NULL));
    compared = differing = 0;
    EXPECT(nftw(compared_root, compare_entry, 20, FTW_PHYS | FTW_MOUNT) == 0);
    EXPECT(compared == expected);
    EXPECT(differing == 0);
}

static void
a_copy_of_a_tree_has_all_that_the_tree_has(void)
{
    SUCCEEDS(create(VOLUME("furnished"), 64 * MIB));
    furnish(VOLUME("furnished"));
    EXPECT(sync_around(VOLUME("furnished")));
    SUCCEEDS(copy(VOLUME("furnished"), VOLUME("copy"), 64 * MIB));
    compare_trees(VOLUME("furnished"), VOLUME("copy"));
    compare_trees(VOLUME("copy"), VOLUME("furnished"));
    SUCCEEDS(copy(VOLUME("furnished"), SNAPSHOT("snapshot"), 0));
    compare_trees(VOLUME("furnished"), SNAPSHOT("snapshot"));
    SUCCEEDS(copy(SNAPSHOT("snapshot"), VOLUME("restored"), 64 * MIB));
    compare_trees(VOLUME("furnished"), VOLUME("restored"));
    SUCCEEDS(copy(SNAPSHOT("snapshot"), VOLUME("restored"), 64 * MIB));
    SUCCEEDS(drop(VOLUME("copy")));
    SUCCEEDS(drop(VOLUME("restored")));
    SUCCEEDS(drop(SNAPSHOT("snapshot")));
    SUCCEEDS(drop(VOLUME("furnished")));
}

static void
a_copy_of_an_image_has_its_bytes_and_its_holes(void)
{
    struct stat status;
    SUCCEEDS(create(IMAGE("image"), 64 * MIB));
    EXPECT(fill_random(path_of(IMAGE("image"), NULL), 5 * MIB, 300000));
    SUCCEEDS(copy(IMAGE("image"), IMAGE("same"), 0));
    EXPECT(is_same_file(path_of(IMAGE("image"), NULL), path_of(IMAGE("same"), NULL)));
    SUCCEEDS(copy(IMAGE("image"), IMAGE("larger"), 128 * MIB));
    EXPECT(stat(path_of(IMAGE("larger"), NULL), &status) == 0);
    EXPECT(status.st_size == 128 * MIB);
    EXPECT(status.st_blocks * 512 < 2 * MIB);
    EXPECT(truncate(path_of(IMAGE("larger"), NULL), 64 * MIB) == 0);
    EXPECT(is_same_file(path_of(IMAGE("image"), NULL), path_of(IMAGE("larger"), NULL)));
    FAILS(CODE_OUT_OF_RANGE, copy(IMAGE("image"), IMAGE("smaller"), 32 * MIB));
    SUCCEEDS(drop(IMAGE("image")));
    SUCCEEDS(drop(IMAGE("same")));
    SUCCEEDS(drop(IMAGE("larger")));
    SUCCEEDS(drop(IMAGE("smaller")));
}

static void
a_copy_and_its_source_do_not_see_each_others_writes(void)
{
    SUCCEEDS(create(VOLUME("source"), 0));
    SUCCEEDS(create(IMAGE("source"), 4 * MIB));
    EXPECT(put_text(path_of(VOLUME("source"), "file"), "before"));
    EXPECT(fill_random(path_of(IMAGE("source"), NULL), 0, 4 * MIB));
    SUCCEEDS(copy(VOLUME("source"), VOLUME("copy"), 0));
    SUCCEEDS(copy(IMAGE("source"), IMAGE("copy"), 0));
    SUCCEEDS(copy(IMAGE("source"), IMAGE_SNAPSHOT("witness"), 0));
    EXPECT(put_text(path_of(VOLUME("copy"), "file"), "written to the copy"));
    EXPECT(has_text(path_of(VOLUME("source"), "file"), "before"));
    EXPECT(put_text(path_of(VOLUME("source"), "file"), "written to the source"));
    EXPECT(has_text(path_of(VOLUME("copy"), "file"), "written to the copy"));
    EXPECT(fill_random(path_of(IMAGE("copy"), NULL), MIB, 5000));
    EXPECT(is_same_file(path_of(IMAGE("source"), NULL), path_of(IMAGE_SNAPSHOT("witness"), NULL)));
    EXPECT(!is_same_file(path_of(IMAGE("source"), NULL), path_of(IMAGE("copy"), NULL)));
    SUCCEEDS(drop(VOLUME("source")));
    SUCCEEDS(drop(IMAGE("source")));
    EXPECT(has_text(path_of(VOLUME("copy"), "file"), "written to the copy"));
    EXPECT(!is_same_file(path_of(IMAGE("copy"), NULL), path_of(IMAGE_SNAPSHOT("witness"), NULL)));
    SUCCEEDS(drop(VOLUME("copy")));
    SUCCEEDS(drop(IMAGE("copy")));
    SUCCEEDS(drop(IMAGE_SNAPSHOT("witness")));
}

static bool
is_refused(int result)
{
    return result < 0 && (errno == EROFS || errno == EPERM);
}

static void
a_snapshot_is_read_only(void)
{
    if (geteuid() != 0) {
        scene.not_for_this = "without root there are no seals";
        return;
    }
    SUCCEEDS(create(VOLUME("source"), 0));
    SUCCEEDS(create(IMAGE("source"), MIB));
    EXPECT(put_text(path_of(VOLUME("source"), "file"), "x"));
    EXPECT(mkdir(path_of(VOLUME("source"), "directory"), 0755) == 0);
    EXPECT(put_text(path_of(VOLUME("source"), "directory/file"), "x"));
    EXPECT(link(path_of(VOLUME("source"), "directory/file"), path_of(VOLUME("source"), "link")) ==
           0);
    SUCCEEDS(copy(VOLUME("source"), SNAPSHOT("fixed"), 0));
    SUCCEEDS(copy(IMAGE("source"), IMAGE_SNAPSHOT("fixed"), 0));
    EXPECT(is_refused(open(path_of(SNAPSHOT("fixed"), "file"), O_WRONLY)));
    EXPECT(is_refused(open(path_of(SNAPSHOT("fixed"), "link"), O_WRONLY)));
    EXPECT(is_refused(open(path_of(SNAPSHOT("fixed"), "new"), O_WRONLY | O_CREAT, 0600)));
    EXPECT(is_refused(unlink(path_of(SNAPSHOT("fixed"), "directory/file"))));
    EXPECT(is_refused(chmod(path_of(SNAPSHOT("fixed"), "directory"), 0700)));
    EXPECT(is_refused(open(path_of(IMAGE_SNAPSHOT("fixed"), NULL), O_RDWR)));
    SUCCEEDS(copy(SNAPSHOT("fixed"), VOLUME("thawed"), 0));
    EXPECT(put_text(path_of(VOLUME("thawed"), "directory/file"), "can be written"));
    EXPECT(unlink(path_of(VOLUME("thawed"), "link")) == 0);
    SUCCEEDS(copy(IMAGE_SNAPSHOT("fixed"), IMAGE("thawed"), 0));
    EXPECT(fill_random(path_of(IMAGE("thawed"), NULL), 0, 1000));
    SUCCEEDS(drop(SNAPSHOT("fixed")));
    SUCCEEDS(drop(IMAGE_SNAPSHOT("fixed")));
    EXPECT(path_of(SNAPSHOT("fixed"), NULL)[0] == 0);
    SUCCEEDS(drop(VOLUME("thawed")));
    SUCCEEDS(drop(IMAGE("thawed")));
    SUCCEEDS(drop(VOLUME("source")));
    SUCCEEDS(drop(IMAGE("source")));
}

/* ---- hostile contents ---- */

static void
symbolic_links_lead_nowhere(void)
{
    char outside[4096], victim[4200];
    snprintf(outside, sizeof outside, "%s/outside", scene.directory);
    snprintf(victim, sizeof victim, "%s/victim", outside);
    EXPECT(mkdir(outside, 0755) == 0 || errno == EEXIST);
    EXPECT(put_text(victim, "must not change"));
    SUCCEEDS(create(VOLUME("hostile"), 0));
    EXPECT(symlink(outside, path_of(VOLUME("hostile"), "directory")) == 0);
    EXPECT(symlink(victim, path_of(VOLUME("hostile"), "file")) == 0);
    EXPECT(symlink("..", path_of(VOLUME("hostile"), "up")) == 0);
    EXPECT(symlink("../../..", path_of(VOLUME("hostile"), "skycap-removes-0")) == 0);
    EXPECT(mkdir(path_of(VOLUME("hostile"), "a"), 0755) == 0);
    EXPECT(mkdir(path_of(VOLUME("hostile"), "a/b"), 0755) == 0);
    EXPECT(symlink(outside, path_of(VOLUME("hostile"), "a/b/c")) == 0);
    SUCCEEDS(copy(VOLUME("hostile"), VOLUME("copy"), 0));
    char target[4096] = "";
    EXPECT(readlink(path_of(VOLUME("copy"), "directory"), target, sizeof target - 1) > 0);
    EXPECT(!strcmp(target, outside));
    struct data_usage usage;
    struct data hostile = VOLUME("hostile");
    SUCCEEDS(backend_usage(scene.backend, &hostile, &usage));
    EXPECT(usage.used_bytes < MIB);
    SUCCEEDS(drop(VOLUME("copy")));
    SUCCEEDS(drop(VOLUME("hostile")));
    EXPECT(has_text(victim, "must not change"));
}

/* A directory in each other, without ever using a long path. */
static bool
dig(struct data tree, unsigned depth)
{
    int at = open(path_of(tree, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; at >= 0 && i < depth; i++) {
        int next =
            mkdirat(at, "d", 0755) == 0 ? openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        int file = next < 0 ? -1 : openat(next, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (file >= 0)
            close(file);
        close(at);
        at = next;
    }
    if (at >= 0)
        close(at);
    return at >= 0;
}

static void
a_tree_of_any_depth_can_be_removed_and_a_deep_one_copied(void)
{
    SUCCEEDS(create(VOLUME("deep"), 0));
    EXPECT(dig(VOLUME("deep"), 1500));
    SUCCEEDS(copy(VOLUME("deep"), VOLUME("deep-copy"), 0));
    SUCCEEDS(drop(VOLUME("deep-copy")));
    SUCCEEDS(drop(VOLUME("deep")));
    SUCCEEDS(create(VOLUME("deeper"), 0));
    EXPECT(dig(VOLUME("deeper"), 5000));
    struct error *error = copy(VOLUME("deeper"), VOLUME("deeper-copy"), 0);
    EXPECT(scene.backend->copies_are_instant ? !error
                                             : error && error->code == CODE_FAILED_PRECONDITION);
    error_free(error);
    SUCCEEDS(drop(VOLUME("deeper-copy")));
    SUCCEEDS(drop(VOLUME("deeper")));
    EXPECT(path_of(VOLUME("deeper"), NULL)[0] == 0);
}

/* Many directories in one whose path is as long as one can be. */
static bool
crowd(struct data tree, unsigned count)
{
    char long_name[201] = "", name[16];
    memset(long_name, 'n', 200);
    int at = open(path_of(tree, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; at >= 0 && i < 19; i++) {
        int next = mkdirat(at, long_name, 0755) == 0
                       ? openat(at, long_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                       : -1;
        close(at);
        at = next;
    }
    bool is_good = at >= 0;
    for (unsigned i = 0; is_good && i < count; i++) {
        snprintf(name, sizeof name, "%u", i);
        is_good = mkdirat(at, name, 0755) == 0;
    }
    if (at >= 0)
        close(at);
    return is_good;
}

static long
most_memory_kib(void)
{
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_maxrss;
}

static void
many_directories_cost_little_memory(void)
{
    struct data crowded = VOLUME("crowded");
    struct data_usage usage;
    SUCCEEDS(create(crowded, 0));
    EXPECT(crowd(crowded, 20000));
    long before = most_memory_kib();
    SUCCEEDS(backend_usage(scene.backend, &crowded, &usage));
    /* Where a quota knows the bytes so many are not counted. */
    EXPECT(usage.used_inodes >= 20000 ||
           (!usage.is_counted && usage.used_inodes == DATA_USAGE_UNKNOWN));
    EXPECT(most_memory_kib() - before < 16 * 1024);
    SUCCEEDS(drop(crowded));
}

static bool
add_flag(const char *path, unsigned flag)
{
    unsigned flags = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_good = fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
    flags |= flag;
    is_good = is_good && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
    if (fd >= 0)
        close(fd);
    return is_good;
}

static void
files_that_their_user_has_sealed_can_be_removed(void)
{
    if (geteuid() != 0) {
        scene.not_for_this = "without root there are no seals";
        return;
    }
    SUCCEEDS(create(VOLUME("sealed"), 0));
    EXPECT(mkdir(path_of(VOLUME("sealed"), "directory"), 0755) == 0);
    EXPECT(put_text(path_of(VOLUME("sealed"), "directory/file"), "x"));
    EXPECT(put_text(path_of(VOLUME("sealed"), "append"), "x"));
    EXPECT(add_flag(path_of(VOLUME("sealed"), "directory/file"), FS_IMMUTABLE_FL));
    EXPECT(add_flag(path_of(VOLUME("sealed"), "directory"), FS_IMMUTABLE_FL));
    EXPECT(add_flag(path_of(VOLUME("sealed"), "append"), FS_APPEND_FL));
    SUCCEEDS(drop(VOLUME("sealed")));
    EXPECT(path_of(VOLUME("sealed"), NULL)[0] == 0);
}

/* ---- written to meanwhile ---- */

/* Somebody who writes to the front of an image and then to its end, when the copy of it has begun. */
struct writer {
    struct data image;
    bool has_written;
};

static bool
write_once(void *context)
{
    struct writer *writer = context;
    if (!writer->has_written)
        EXPECT(fill_random(path_of(writer->image, NULL), 0, 4096) &&
               fill_random(path_of(writer->image, NULL), 64 * MIB - 4096, 4096));
    writer->has_written = true;
    return false;
}

static bool
is_zero_at(struct data image, off_t offset)
{
    char byte = 1;
    int fd = open(path_of(image, NULL), O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0 && pread(fd, &byte, 1, offset) == 1);
    close(fd);
    return byte == 0;
}

static void
copy_while_written(bool nocow)
{
    struct writer writer = {.image = IMAGE("written")};
    struct data to = IMAGE("copy");
    struct data_settings before = {.size_bytes = 64 * MIB, .nocow = !nocow};
    struct data_settings after = {.size_bytes = 64 * MIB, .nocow = nocow};
    struct progress progress = {.cancelled = write_once, .context = &writer};
    SUCCEEDS(backend_create(scene.backend, &writer.image, &before));
    EXPECT(fill_random(path_of(writer.image, NULL), MIB, 32 * MIB));
    SUCCEEDS(backend_copy(scene.backend, &writer.image, &to, &after, &progress));
    EXPECT(writer.has_written);
    EXPECT(is_zero_at(to, 0));
    EXPECT(is_zero_at(to, 64 * MIB - 4096));
    SUCCEEDS(drop(writer.image));
    SUCCEEDS(drop(to));
}

static struct error *
count_entry(void *context, const struct backend_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return NULL;
}

static void
a_copy_of_an_image_without_copy_on_write_is_of_one_instant(void)
{
    unsigned left = 0;
    if (!scene.backend->ops->compresses) {
        scene.not_for_this = "it has no copy on write to switch off";
        return;
    }
    copy_while_written(true);
    copy_while_written(false);
    SUCCEEDS(backend_list(scene.backend, count_entry, &left));
    EXPECT(left == 0);
}

/* ---- between back ends ---- */

static void
a_volume_can_be_copied_into_another_back_end(void)
{
    char directory[4096];
    snprintf(directory, sizeof directory, "%s/other", scene.directory);
    EXPECT(mkdir(directory, 0700) == 0 || errno == EEXIST);
    struct backend_options options = {.directory = directory, .log = &scene.log};
    struct backend *home = scene.backend, *other = NULL;
    struct data_settings settings = {.size_bytes = 64 * MIB};
    struct data tree = VOLUME("tree"), image = IMAGE("image");
    if (!SUCCEEDS(backend_open("dir", &options, &other)))
        return;
    SUCCEEDS(create(tree, 64 * MIB));
    SUCCEEDS(create(image, 32 * MIB));
    furnish(tree);
    EXPECT(fill_random(path_of(image, NULL), 7 * MIB, MIB));
    SUCCEEDS(backend_copy_between(home, &tree, other, &tree, &settings, NULL));
    SUCCEEDS(backend_copy_between(home, &image, other, &image, &settings, NULL));
    SUCCEEDS(backend_copy_between(home, &image, other, &image, &settings, NULL));
    struct data back = VOLUME("back");
    SUCCEEDS(backend_copy_between(other, &tree, home, &back, &settings, NULL));
    compare_trees(tree, back);
    char there[4096];
    struct stat status;
    SUCCEEDS(backend_path(other, &image, there, sizeof there));
    EXPECT(stat(there, &status) == 0 && status.st_size == 64 * MIB && status.st_blocks < 8192);
    EXPECT(truncate(there, 32 * MIB) == 0);
    EXPECT(is_same_file(there, path_of(image, NULL)));
    SUCCEEDS(backend_remove(other, &tree));
    SUCCEEDS(backend_remove(other, &image));
    backend_close(other);
    SUCCEEDS(drop(tree));
    SUCCEEDS(drop(image));
    SUCCEEDS(drop(back));
}

const struct fact facts_of_copies[] = {
    {"a copy of a tree has all that the tree has", a_copy_of_a_tree_has_all_that_the_tree_has},
    {"a copy of an image has its bytes and its holes",
     a_copy_of_an_image_has_its_bytes_and_its_holes},
    {"a copy and its source do not see each other's writes",
     a_copy_and_its_source_do_not_see_each_others_writes},
    {"a snapshot is read-only", a_snapshot_is_read_only},
    {"symbolic links lead nowhere", symbolic_links_lead_nowhere},
    {"a tree of any depth can be removed, and a deep one copied",
     a_tree_of_any_depth_can_be_removed_and_a_deep_one_copied},
    {"many directories cost little memory", many_directories_cost_little_memory},
    {"files that their user has sealed can be removed",
     files_that_their_user_has_sealed_can_be_removed},
    {"a copy of an image with or without copy on write is of one instant",
     a_copy_of_an_image_without_copy_on_write_is_of_one_instant},
    {"a volume can be copied into another back end", a_volume_can_be_copied_into_another_back_end},
    {NULL, NULL},
};
