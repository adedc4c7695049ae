/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of parameters: see parameter_table.h. */
#include "volumes/parameter_table.h"

#include <string.h>

#define TEXT_OF(number) TEXT_OF_TOKEN(number)
#define TEXT_OF_TOKEN(token) #token

#define RATE "a number, a size such as `20Mi`, or `unlimited`"

static const char *const compressions[] = {"none", "zstd", "lzo", "zlib", NULL};
static const char *const switches[] = {"true", "false", NULL};
static const char *const kinds[] = {"tree", "image", NULL};
static const char *const sector_sizes[] = {"4096", "512", NULL};
static const char *const mobilities[] = {"stay", "follow", NULL};
static const char *const consistencies[] = {"instant", "files", NULL};

const struct parameter parameter_table_of_volumes[] = {
    {"backend", .value = "one of those in use: `btrfs`, `xfs`, `dir`, `memory`",
     .meaning =
         "the back end of the volume. Default: that of its source, or the first. GetCapacity "
         "reads it, too"},
    {"kind", kinds,
     .meaning = "a directory, or a disk image with a file system (ext4 unless the "
                "capability names another). Default: `tree`, unless the "
                "capability needs an image"},
    {"consistency", consistencies,
     .meaning = "for clones of a directory that is copied file by file: `instant` fails if the "
                "directory changes during the copy, `files` copies each file at its own time. "
                "Default: `instant`. btrfs needs neither"},
    {"compression", compressions, .is_mutable = true,
     .meaning = "how data is compressed, if the back end can do it. Default: `none`"},
    {"nocow", switches,
     .meaning = "on btrfs, `true` writes data in place: faster random writes, no checksums, no "
                "compression. Default: that of its source, or `true` for images without "
                "compression and `false` for everything else"},
    {"sector-size", sector_sizes,
     .meaning =
         "bytes in a sector of the device of an image. Default: that of its source, or 4096"},
    {"label", .value = "text", .is_mutable = true,
     .meaning = "the label of the file system; for a directory only a comment"},
    {"mobility", mobilities, .is_mutable = true,
     .meaning = "in a cluster: `follow` moves the volume to the node that publishes it. "
                "Default: `stay`"},
    {PARAMETER_TRANSFER_RATE, .value = RATE, .is_rate = true,
     .meaning = "in a cluster: how many bytes per second are fetched at most when the volume is "
                "created from a source on another node, and when it moves. Default: `unlimited`"},
    {"read-bytes-per-second", .value = RATE, .is_rate = true, .is_mutable = true,
     .meaning = "limit for the device of an image, in the control group of the pod. Default, "
                "also for the next three: `unlimited`"},
    {"write-bytes-per-second", .value = RATE, .is_rate = true, .is_mutable = true,
     .meaning = "the same, for writes"},
    {"read-operations-per-second", .value = RATE, .is_rate = true, .is_mutable = true,
     .meaning = "the same, for read operations"},
    {"write-operations-per-second", .value = RATE, .is_rate = true, .is_mutable = true,
     .meaning = "the same, for write operations"},
    {0},
};

const struct parameter parameter_table_of_snapshots[] = {
    {"consistency", consistencies,
     .meaning = "as for a clone: whether a directory that is copied file by file may change "
                "during the copy"},
    {PARAMETER_REPLICAS, .value = "a number from 1 to " TEXT_OF(PARAMETER_MOST_REPLICAS),
     .meaning = "in a cluster: on how many nodes the snapshot is kept, the one that takes it "
                "included. Default: 1"},
    {PARAMETER_EXPORT, .value = "the name of a repository",
     .meaning = "copies the snapshot to the repository, in the background"},
    {0},
};

const struct parameter *
parameter_table_find(const struct parameter *table, const char *key)
{
    for (; table->key; table++)
        if (strcmp(table->key, key) == 0)
            return table;
    return NULL;
}

void
parameter_table_print_keys(const struct parameter *table, struct buffer *out)
{
    for (const struct parameter *one = table; one->key; one++)
        buffer_print(out, "%s%s", one == table ? "" : ", ", one->key);
}

void
parameter_table_print_values(const struct parameter *parameter, struct buffer *out)
{
    if (!parameter->words)
        buffer_print(out, "%s", parameter->value);
    for (size_t i = 0; parameter->words && parameter->words[i]; i++)
        buffer_print(out, "%s`%s`", i ? ", " : "", parameter->words[i]);
}
