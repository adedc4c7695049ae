/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any two lines, taken as what a controller says of a device: at most one disk is found, which has the first in its link, and never a partition; what is
 * said otherwise is fit for a log.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "drivers/oim_device.h"
#include "require.h"

#define FUNCTION "../../devices/pci0000:00/0000:00:15.0/virtio3"

static const struct {
    const char *entry;
    const char *link;
    bool is_disk;
} links[] = {
    {"8:0", FUNCTION "/host0/target0:0:0/0:0:0:0/block/sda", true},
    {"8:1", FUNCTION "/host0/target0:0:0/0:0:0:0/block/sda/sda1", false},
    {"8:16", FUNCTION "/host0/target0:0:10/0:0:10:0/block/sdb", true},
    {"253:0", "../../devices/pci0000:00/0000:00:1c.0/0000:02:00.0/virtio5/block/vda", true},
    {"7:7", "../../devices/virtual/block/loop7", true},
    {"7:70", "../../devices/virtual/block/loop70", true},
};

static char root[] = "/tmp/skycap-fuzz-XXXXXX";

static const char *
path_of(const char *entry)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", root, entry);
    return path;
}

static const char *
path_of_link(size_t index)
{
    char entry[64];
    snprintf(entry, sizeof entry, "dev/block/%s", links[index].entry);
    return path_of(entry);
}

static void
remove_tree(void)
{
    for (size_t i = 0; i < COUNT_OF(links); i++)
        unlink(path_of_link(i));
    rmdir(path_of("dev/block"));
    rmdir(path_of("dev"));
    rmdir(root);
}

static void
make_tree(void)
{
    static bool is_made;
    if (is_made)
        return;
    is_made = true;
    REQUIRE(mkdtemp(root) && mkdir(path_of("dev"), 0700) == 0);
    REQUIRE(mkdir(path_of("dev/block"), 0700) == 0);
    for (size_t i = 0; i < COUNT_OF(links); i++)
        REQUIRE(symlink(links[i].link, path_of_link(i)) == 0);
    atexit(remove_tree);
}

static void
check_found(const struct oim_device *found, const char *device)
{
    char entry[32];
    snprintf(entry, sizeof entry, "%u:%u", major(found->number), minor(found->number));
    for (size_t i = 0; i < COUNT_OF(links); i++)
        if (strcmp(links[i].entry, entry) == 0) {
            REQUIRE(links[i].is_disk && strstr(links[i].link, device));
            return;
        }
    REQUIRE(!"a device that is not there");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = memory_new(size + 1);
    make_tree();
    memcpy(text, data, size);
    text[size] = '\0';
    if (utf8_is_valid(text, strlen(text))) { /* as all texts in messages are */
        char *end = text + strcspn(text, "\n");
        const char *scsi = *end ? end + 1 : "";
        *end = '\0';
        struct oim_device found;
        struct oim_device_query query = {root, text, scsi};
        struct error *error = oim_device_find(&query, &found);
        REQUIRE(error || text[0]);
        REQUIRE(!error || utf8_is_valid(error->message, strlen(error->message)));
        if (!error)
            check_found(&found, text);
        error_free(error);
    }
    free(text);
    return 0;
}
