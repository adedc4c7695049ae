/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a controller's block device in a tree of links that looks like the kernel's: bridges, partitions, SCSI numbers, and names that begin alike. */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "drivers/oim_device.h"
#include "rpc_ends.h"

#define FUNCTION "../../devices/pci0000:00/0000:00:15.0/virtio3"

static char root[] = "/tmp/skycap-oim-device-XXXXXX";

/* ---- the tree ---- */

static void
add_link(const char *entry, const char *target)
{
    char path[128];
    snprintf(path, sizeof path, "%s/dev/block/%s", root, entry);
    CHECK(symlink(target, path) == 0);
}

static void
remove_link(const char *entry)
{
    char path[128];
    snprintf(path, sizeof path, "%s/dev/block/%s", root, entry);
    CHECK(unlink(path) == 0);
}

static void
make_tree(void)
{
    char path[128];
    CHECK(mkdtemp(root) != NULL);
    snprintf(path, sizeof path, "%s/dev", root);
    CHECK(mkdir(path, 0700) == 0);
    strcat(path, "/block");
    CHECK(mkdir(path, 0700) == 0);
    add_link("8:0", FUNCTION "/host0/target0:0:0/0:0:0:0/block/sda");
    add_link("8:1", FUNCTION "/host0/target0:0:0/0:0:0:0/block/sda/sda1");
    add_link("8:16", FUNCTION "/host0/target0:0:7/0:0:7:0/block/sdb");
    add_link("8:32", FUNCTION "/host0/target0:0:10/0:0:10:0/block/sdc");
    add_link("8:48", FUNCTION "/host0/target0:0:16/0:0:16:0/block/sdd");
    add_link("8:64", FUNCTION "/host0/target0:0:7/0:0:7:1/block/sde");
    add_link("253:0", FUNCTION "/block/vda");
    add_link("253:1", FUNCTION "/block/vda/vda1");
    /* Another function, and two behind a bridge. */
    add_link("253:16", "../../devices/pci0000:00/0000:00:15.1/virtio4/block/vdb");
    add_link("253:32", "../../devices/pci0000:00/0000:00:1c.0/0000:02:00.0/virtio5/block/vdc");
    add_link("253:48", "../../devices/pci0000:00/0000:00:1c.0/0000:02:01.0/virtio6/block/vdd");
    /* A disk of the bridge's own would be a strange thing, but it is not one behind it. */
    add_link("253:64", "../../devices/pci0000:00/0000:00:1d.0/virtio7/block/vde");
    add_link("253:80", "../../devices/pci0000:00/0000:00:1d.0/0000:03:00.0/virtio8/block/vdf");
    add_link("7:7", "../../devices/virtual/block/loop7");
    add_link("7:70", "../../devices/virtual/block/loop70");
    add_link("65:160",
             "../../devices/pci0000:00/0000:00:17.0/ata1/host3/target3:0:0/3:0:0:0/block/sdaa");
    add_link("259:0", "../../devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1");
    add_link("104:0", "../../devices/pci0000:00/0000:00:05.0/block/cciss!c0d0");
}

static int
remove_one(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found;
    (void)kind;
    (void)where;
    return remove(path);
}

/* ---- looking ---- */

/* The disk's name, or the code's. */
static const char *
look(const char *device, const char *scsi)
{
    static struct oim_device found;
    struct oim_device_query query = {root, device, scsi};
    struct error *error AUTO(error_cleanup) = oim_device_find(&query, &found);
    return error ? error_code_name(error->code) : found.name;
}

static void
scsi_disks_of_one_function_are_told_apart(void)
{
    const char *function = "/devices/pci0000:00/0000:00:15.0/";
    CHECK_TEXT(look(function, "0:0"), "sda");
    CHECK_TEXT(look(function, "7:0"), "sdb");
    CHECK_TEXT(look(function, "7:1"), "sde");
    CHECK_TEXT(look(function, "10:0"), "sdc"); /* 16 where digits are taken for hexadecimal */
    CHECK_TEXT(look(function, "16:0"), "sdd");
    CHECK_TEXT(look(function, "a:0"), "INTERNAL");
    CHECK_TEXT(look(function, "1:0"), "NOT_FOUND");
    CHECK_TEXT(look(function, "0:1"), "NOT_FOUND");
}

static void
a_disk_beside_scsi_disks_is_found_without_a_number(void)
{
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:15.0/", ""), "vda");
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:15.1/", "0:0"), "NOT_FOUND");
}

static void
parts_of_older_controllers_do(void)
{
    CHECK_TEXT(look("0000:00:15.0", "7:0"), "sdb");
    CHECK_TEXT(look("/0000:00:15.0/", "7:0"), "sdb");
    CHECK_TEXT(look("00:15.1", ""), "vdb");
    CHECK_TEXT(look("pci0000:00/0000:00:15.1", ""), "vdb");
    CHECK_TEXT(look("00:15.", "7:0"), "sdb"); /* whatever the function */
    CHECK_TEXT(look("00:15.", ""), "FAILED_PRECONDITION");
}

static void
bridges_are_on_the_way_only(void)
{
    CHECK_TEXT(look("/0000:02:00.0/", ""), "vdc");
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:1c.0/0000:02:01.0/", ""), "vdd");
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:1c.0/", ""), "NOT_FOUND");
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:1d.0/", ""), "vde");
    CHECK_TEXT(look("0000:00:1d.0", ""), "vde");
}

static void
names_and_numbers_are_whole(void)
{
    CHECK_TEXT(look("block/loop7", ""), "loop7");
    CHECK_TEXT(look("/devices/virtual/block/loop70", ""), "loop70");
    CHECK_TEXT(look("block/loop", ""), "NOT_FOUND");
    CHECK_TEXT(look("block/sda", ""), "sda"); /* not sdaa, nor sda1 */
    CHECK_TEXT(look("block/sdaa", ""), "sdaa");
    CHECK_TEXT(look("0000:00:1", ""), "NOT_FOUND"); /* neither 15 nor 1c nor 17 */
    CHECK_TEXT(look("0000:00:04.0", ""), "nvme0n1");
    CHECK_TEXT(look("0000:00:05.0", ""), "cciss!c0d0");
}

static void
nothing_is_not_everything(void)
{
    CHECK_TEXT(look("", ""), "INTERNAL");
    CHECK_TEXT(look("", "0:0"), "INTERNAL");
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:15.0/", "0"), "INTERNAL");
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:15.0/", "0:0:0"), "INTERNAL");
    CHECK_TEXT(look("/devices/pci0000:00/0000:00:15.0/", "99999999999999999999:0"), "INTERNAL");
}

static void
several_are_named(void)
{
    struct oim_device found;
    struct oim_device_query query = {root, "0000:00:15.", ""};
    struct error *error = oim_device_find(&query, &found);
    CHECK(error && strstr(error->message, "vda (") && strstr(error->message, "vdb ("));
    CHECK(error && !strstr(error->message, "sda"));
    error_free(error);
}

/* ---- waiting ---- */

static void *
add_later(void *ignored)
{
    (void)ignored;
    sleep_ms(100);
    add_link("253:96", "../../devices/pci0000:00/0000:00:16.0/virtio9/block/vdg");
    return NULL;
}

static void
one_that_comes_is_waited_for(void)
{
    struct oim_device found;
    struct oim_device_query query = {root, "/0000:00:16.0/", ""};
    pthread_t thread;
    uint64_t start = timers_now();
    pthread_create(&thread, NULL, add_later, NULL);
    struct error *error = oim_device_wait(&query, PATIENCE_MS, NULL, &found);
    pthread_join(thread, NULL);
    CHECK_CODE(error, CODE_OK);
    CHECK_TEXT(found.name, "vdg");
    CHECK(found.number == makedev(253, 96));
    CHECK(ms_since(start) < 3000); /* the tree sends no messages: it is looked at every second */

    CHECK_CODE(oim_device_wait_gone(&query, 50, NULL), CODE_DEADLINE_EXCEEDED);
    remove_link("253:96");
    CHECK_CODE(oim_device_wait_gone(&query, 50, NULL), CODE_OK);
}

static void
one_that_does_not_come_is_told(void)
{
    struct oim_device found;
    struct oim_device_query query = {root, "/0000:00:16.0/", "10:0"};
    uint64_t start = timers_now();
    struct error *error = oim_device_wait(&query, 200, NULL, &found);
    CHECK(error && strstr(error->message, "/0000:00:16.0/") && strstr(error->message, "10:0"));
    CHECK_CODE(error, CODE_DEADLINE_EXCEEDED);
    CHECK(ms_since(start) >= 200 && ms_since(start) < 1500);
}

/* ---- paths ---- */

static void
a_device_without_a_node_gets_one(void)
{
    struct oim_device device = {"skycap-no-such-disk", makedev(7, 1000)};
    struct arena arena AUTO(arena_clear);
    const char *path;
    struct stat found;
    if (getuid() != 0)
        return;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK_CODE(oim_device_path(&device, root, "volume", &arena, &path), CODE_OK);
    CHECK(stat(path, &found) == 0 && S_ISBLK(found.st_mode) && found.st_rdev == makedev(7, 1000));
    device.number = makedev(7, 1001); /* mapped again, as another device */
    CHECK_CODE(oim_device_path(&device, root, "volume", &arena, &path), CODE_OK);
    CHECK(stat(path, &found) == 0 && found.st_rdev == makedev(7, 1001));
    oim_device_forget_path(root, "volume");
    CHECK(stat(path, &found) != 0 && errno == ENOENT);
}

static void *
put_ready_device(void *path)
{
    char ready[300];
    snprintf(ready, sizeof ready, "%s.ready", (char *)path);
    sleep_ms(200);
    CHECK(mknod(ready, S_IFBLK | 0600, makedev(7, 0)) == 0 && rename(ready, path) == 0);
    return NULL;
}

static void
a_disk_that_cannot_be_opened_yet_is_waited_for(void)
{
    char path[256];
    pthread_t thread;
    if (getuid() != 0 || access("/dev/loop0", F_OK) != 0)
        return;
    snprintf(path, sizeof path, "%s/late", root);
    CHECK(mknod(path, S_IFBLK | 0600, makedev(240, 77)) == 0); /* nobody's: ENXIO */
    uint64_t start = timers_now();
    CHECK_CODE(oim_device_wait_open(path, 100, NULL), CODE_DEADLINE_EXCEEDED);
    CHECK(ms_since(start) >= 100);
    pthread_create(&thread, NULL, put_ready_device, path);
    CHECK_CODE(oim_device_wait_open(path, PATIENCE_MS, NULL), CODE_OK);
    CHECK(ms_since(start) >= 300);
    pthread_join(thread, NULL);
    unlink(path);
}

int
main(void)
{
    make_tree();
    scsi_disks_of_one_function_are_told_apart();
    a_disk_beside_scsi_disks_is_found_without_a_number();
    parts_of_older_controllers_do();
    bridges_are_on_the_way_only();
    names_and_numbers_are_whole();
    nothing_is_not_everything();
    several_are_named();
    one_that_comes_is_waited_for();
    one_that_does_not_come_is_told();
    a_device_without_a_node_gets_one();
    a_disk_that_cannot_be_opened_yet_is_waited_for();
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return check_report("oim_device");
}
