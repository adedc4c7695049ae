/* SPDX-License-Identifier: Apache-2.0 */
/* Compression, and copy on write. */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "backends/format.h"
#include "facts.h"

static bool
has_flag(const char *path, unsigned flag)
{
    unsigned flags = 0;
    int fd = open(path, O_RDONLY);
    bool is_set = fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && flags & flag;
    if (fd >= 0)
        close(fd);
    return is_set;
}

static void
compression_and_nocow_are_set_and_inherited(void)
{
    if (!scene.backend->ops->compresses) {
        scene.not_for_this = "it cannot compress";
        return;
    }
    struct data_settings zstd = {.size_bytes = 64 * MIB, .compression = "zstd"};
    struct data_settings plain = {.size_bytes = 64 * MIB, .compression = "none"};
    struct data_settings nocow = {.size_bytes = 64 * MIB, .nocow = true};
    struct data small = VOLUME("small"), fast = VOLUME("fast"), image = IMAGE("fast");
    struct data cow = IMAGE("cow");
    char value[16] = "";
    SUCCEEDS(backend_create(scene.backend, &small, &zstd));
    EXPECT(mkdir(path_of(small, "d"), 0755) == 0 && put_text(path_of(small, "d/f"), "x"));
    EXPECT(getxattr(path_of(small, "d/f"), "btrfs.compression", value, sizeof value) == 4);
    EXPECT(!strcmp(value, "zstd"));
    SUCCEEDS(backend_change(scene.backend, &small, &plain));
    EXPECT(put_text(path_of(small, "g"), "x"));
    EXPECT(getxattr(path_of(small, "g"), "btrfs.compression", value, sizeof value) < 0);
    SUCCEEDS(backend_create(scene.backend, &fast, &nocow));
    EXPECT(put_text(path_of(fast, "f"), "x") && has_flag(path_of(fast, "f"), FS_NOCOW_FL));
    SUCCEEDS(backend_create(scene.backend, &image, &nocow));
    EXPECT(has_flag(path_of(image, NULL), FS_NOCOW_FL));
    EXPECT(fill_random(path_of(image, NULL), 0, 3 * MIB));
    FAILS(CODE_FAILED_PRECONDITION, backend_change(scene.backend, &image, &plain));
    SUCCEEDS(backend_copy(scene.backend, &image, &cow, &plain, NULL));
    EXPECT(!has_flag(path_of(cow, NULL), FS_NOCOW_FL));
    EXPECT(is_same_file(path_of(image, NULL), path_of(cow, NULL)));
    SUCCEEDS(drop(small));
    SUCCEEDS(drop(fast));
    SUCCEEDS(drop(image));
    SUCCEEDS(drop(cow));
}

static void
check_growth_keeps(const char *first, const char *then)
{
    struct data image = IMAGE("growing");
    struct data_settings before = {.size_bytes = 32 * MIB, .compression = first};
    struct data_settings after = {.size_bytes = 64 * MIB, .compression = then};
    bool differs = true;
    SUCCEEDS(backend_create(scene.backend, &image, &before));
    SUCCEEDS(format_ensure(path_of(image, NULL), "ext4", NULL));
    SUCCEEDS(backend_change(scene.backend, &image, &after));
    SUCCEEDS(format_grow_file(path_of(image, NULL)));
    SUCCEEDS(backend_differs(scene.backend, &image, &after, &differs));
    EXPECT(!differs);
    SUCCEEDS(drop(image));
}

/* The file system grows in a new file, which inherits what the image had when it was made. */
static void
a_changed_compression_outlives_the_growth_of_the_file_system(void)
{
    if (!scene.backend->ops->compresses) {
        scene.not_for_this = "it cannot compress";
        return;
    }
    check_growth_keeps("zstd", "none");
    check_growth_keeps("none", "zstd");
    check_growth_keeps("zstd", "lzo");
}

const struct fact facts_of_properties[] = {
    {"compression and nocow are set and inherited", compression_and_nocow_are_set_and_inherited},
    {"a changed compression outlives the growth of the file system",
     a_changed_compression_outlives_the_growth_of_the_file_system},
    {NULL, NULL},
};
