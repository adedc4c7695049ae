/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a pack: as they are, and as a pack whose list and pieces are sealed, so that what
 * stands in them is looked at.
 */
#include <string.h>

#include "base/memory.h"
#include "repository/bytes.h"
#include "repository/pack.h"
#include "require.h"

static struct sealing *sealing;

static void
open_all(const uint8_t *bytes, size_t size)
{
    static uint8_t *chunk;
    struct buffer list = {0}, work = {0};
    struct sealing_key key;
    if (!chunk)
        chunk = memory_zeroed(REPOSITORY_CHUNK_MAX);
    struct error *error = pack_read_list(sealing, bytes, size, &key, &list);
    for (size_t at = 0; !error && at < list.size; at += PACK_ENTRY_BYTES) {
        struct pack_entry entry;
        if (!pack_entry_read(list.bytes + at, (uint32_t)size, &entry))
            continue;
        REQUIRE(entry.offset + entry.stored <= size && entry.raw <= REPOSITORY_CHUNK_MAX);
        error_free(pack_open_chunk(sealing, &key, &entry, bytes + entry.offset, &work, chunk));
    }
    error_free(error);
    buffer_clear(&list);
    buffer_clear(&work);
}

/* One piece with the data, and a list that is the rest of it. */
static void
open_sealed(const uint8_t *data, size_t size)
{
    size_t piece = data[0] % size, list = (size - piece) / PACK_ENTRY_BYTES * PACK_ENTRY_BYTES;
    uint8_t *pack = memory_zeroed(size + 128);
    struct sealing_key key;
    REQUIRE(!sealing_begin(sealing, OBJECT_PACK, pack, &key));
    size_t end = SEALING_HEADER_BYTES;
    REQUIRE(!sealing_seal(sealing, &key, end, data, piece, pack + end));
    end += piece + SEALING_TAG_BYTES;
    REQUIRE(!sealing_seal(sealing, &key, end, data + piece, list, pack + end));
    end += list + SEALING_TAG_BYTES;
    bytes_set32(pack + end, (uint32_t)(list + SEALING_TAG_BYTES));
    open_all(pack, end + PACK_END_BYTES);
    memory_cleanup(&pack);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!sealing)
        REQUIRE(!sealing_new(NULL, &sealing));
    open_all(data, size);
    if (size)
        open_sealed(data, size);
    return 0;
}
