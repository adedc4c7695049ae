/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves of a tree's manifest: whatever the bytes are, every name stays below the tree, entries are
 * in order, parts make up the size; and a leaf that is read and written again is the same.
 */
#include <string.h>

#include "exports/tree_manifest.h"
#include "require.h"

static void
check_entry(const struct tree_leaf *leaf)
{
    const struct tree_entry *entry = &leaf->entry;
    uint64_t size = 0;
    REQUIRE(entry->kind == TREE_DIRECTORY
                ? !entry->name_size || tree_entry_is_path(entry->name, entry->name_size)
                : tree_entry_is_name(entry->name, entry->name_size));
    REQUIRE(!leaf->directory[0] || tree_entry_is_path(leaf->directory, strlen(leaf->directory)));
    REQUIRE(entry->part_count <= TREE_PARTS_MAX);
    for (size_t i = 0; i < entry->part_count; i++)
        size += entry->parts[i].size;
    REQUIRE(size == entry->size);
    REQUIRE(entry->name[entry->name_size] == 0);
}

/* An entry has one form. */
static void
check_form(const struct tree_leaf *leaf, const uint8_t *start, size_t size)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct tree_ids ids AUTO(tree_ids_clear) = {0};
    struct varint_reader in;
    struct tree_entry again;
    static struct tree_part parts[TREE_PARTS_MAX];
    tree_entry_encode(&bytes, &ids, &leaf->entry);
    in = (struct varint_reader){bytes.bytes, bytes.bytes + bytes.size, false};
    REQUIRE(tree_entry_decode(&in, ids.ids, ids.count, parts, &again));
    REQUIRE(in.at == in.end);
    if (!leaf->entry.part_count)
        REQUIRE(bytes.size == size && !memcmp(bytes.bytes, start, size));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tree_leaf leaf AUTO(tree_leaf_close) = {0};
    struct error *error = tree_leaf_read(&leaf, bytes, size);
    while (!error) {
        const uint8_t *start = leaf.in.at;
        error = tree_leaf_next(&leaf);
        if (error || !leaf.has_entry)
            break;
        check_entry(&leaf);
        check_form(&leaf, start, (size_t)(leaf.in.at - start));
    }
    REQUIRE(!error || error->code == CODE_DATA_LOSS);
    error_free(error);
    return 0;
}
