/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of index objects: see index_object.h. */
#include "repository/index_object.h"

#include <string.h>

#include "repository/bytes.h"

void
index_append(struct buffer *out, const struct index_pack *pack)
{
    buffer_append(out, pack->name.bytes, sizeof pack->name.bytes);
    buffer_append(out, pack->salt, sizeof pack->salt);
    bytes_append32(out, pack->size);
    bytes_append32(out, pack->count);
    buffer_append(out, pack->entries, (size_t)pack->count * PACK_ENTRY_BYTES);
}

static bool
entries_are_good(const struct index_pack *pack)
{
    struct pack_entry entry;
    for (uint32_t i = 0; i < pack->count; i++)
        if (!pack_entry_read(pack->entries + (size_t)i * PACK_ENTRY_BYTES, pack->size, &entry))
            return false;
    return true;
}

struct error *
index_next(const struct buffer *index, size_t *at, struct index_pack *out, bool *found)
{
    size_t left = index->size - *at;
    *found = left > 0;
    if (!left)
        return NULL;
    if (left < INDEX_PACK_BYTES)
        return error_new(CODE_DATA_LOSS, "it ends in the middle of a pack");
    const uint8_t *bytes = index->bytes + *at;
    memcpy(out->name.bytes, bytes, sizeof out->name.bytes);
    memcpy(out->salt, bytes + 32, sizeof out->salt);
    out->size = bytes_get32(bytes + 64);
    out->count = bytes_get32(bytes + 68);
    out->entries = bytes + INDEX_PACK_BYTES;
    left -= INDEX_PACK_BYTES;
    if (out->size > PACK_ROOM || out->count > left / PACK_ENTRY_BYTES || !entries_are_good(out))
        return error_new(CODE_DATA_LOSS, "it has an entry that cannot be");
    *at += INDEX_PACK_BYTES + (size_t)out->count * PACK_ENTRY_BYTES;
    return NULL;
}

struct pack_entry
index_entry(const struct index_pack *pack, uint32_t i)
{
    struct pack_entry entry;
    pack_entry_read(pack->entries + (size_t)i * PACK_ENTRY_BYTES, pack->size, &entry);
    return entry;
}
