/* SPDX-License-Identifier: Apache-2.0 */
/* Packs: see pack.h. */
#include "repository/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "repository/bytes.h"
#include "stream/stream_zstd.h"

/* ---- making one ---- */

struct pack *
pack_new(void)
{
    struct pack *pack = memory_zeroed(sizeof *pack);
    pack->bytes = memory_map(PACK_ROOM);
    return pack;
}

void
pack_free(struct pack *pack)
{
    if (!pack)
        return;
    memory_unmap(pack->bytes, PACK_ROOM);
    buffer_clear(&pack->entries);
    free(pack);
}

struct error *
pack_begin(struct pack *pack, const struct sealing *sealing)
{
    pack->size = SEALING_HEADER_BYTES;
    pack->count = 0;
    pack->entries.size = 0;
    return sealing_begin(sealing, OBJECT_PACK, pack->bytes, &pack->key);
}

uint32_t
pack_reserve(struct pack *pack, const struct repository_id *id, uint32_t size, uint32_t raw)
{
    struct pack_entry entry = {*id, pack->size, size + SEALING_TAG_BYTES, raw};
    pack_entry_append(&pack->entries, &entry);
    pack->size += entry.stored;
    pack->count++;
    return entry.offset;
}

bool
pack_is_full(const struct pack *pack)
{
    return pack->size >= PACK_TARGET || pack->count >= PACK_ENTRIES_MAX;
}

struct error *
pack_finish(struct pack *pack, const struct sealing *sealing)
{
    uint32_t sealed = (uint32_t)pack->entries.size + SEALING_TAG_BYTES;
    struct error *error = sealing_seal(sealing, &pack->key, pack->size, pack->entries.bytes,
                                       pack->entries.size, pack->bytes + pack->size);
    if (error)
        return error;
    pack->size += sealed;
    bytes_set32(pack->bytes + pack->size, sealed);
    pack->size += PACK_END_BYTES;
    return sealing_name(sealing, pack->bytes, pack->size, &pack->name);
}

/* ---- reading one ---- */

void
pack_entry_append(struct buffer *out, const struct pack_entry *entry)
{
    buffer_append(out, entry->id.bytes, sizeof entry->id.bytes);
    bytes_append32(out, entry->offset);
    bytes_append32(out, entry->stored);
    bytes_append32(out, entry->raw);
}

bool
pack_entry_read(const uint8_t *bytes, uint32_t size, struct pack_entry *out)
{
    memcpy(out->id.bytes, bytes, sizeof out->id.bytes);
    out->offset = bytes_get32(bytes + 32);
    out->stored = bytes_get32(bytes + 36);
    out->raw = bytes_get32(bytes + 40);
    return out->raw >= 1 && out->raw <= REPOSITORY_CHUNK_MAX && out->stored > SEALING_TAG_BYTES &&
           out->stored - SEALING_TAG_BYTES <= out->raw && out->offset >= SEALING_HEADER_BYTES &&
           out->offset <= size && out->stored <= size - out->offset;
}

struct error *
pack_read_list(const struct sealing *sealing, const uint8_t *bytes, size_t size,
               struct sealing_key *key, struct buffer *entries)
{
    entries->size = 0;
    if (size < SEALING_HEADER_BYTES + SEALING_TAG_BYTES + PACK_END_BYTES || size > PACK_ROOM)
        return error_new(CODE_DATA_LOSS, "it has %zu bytes, which is no size of a pack", size);
    struct error *error = sealing_read_header(sealing, OBJECT_PACK, bytes, key);
    if (error)
        return error;
    size_t end = size - PACK_END_BYTES;
    uint32_t sealed = bytes_get32(bytes + end);
    if (sealed < SEALING_TAG_BYTES || sealed > end - SEALING_HEADER_BYTES ||
        (sealed - SEALING_TAG_BYTES) % PACK_ENTRY_BYTES)
        return error_new(CODE_DATA_LOSS, "its list cannot have %u bytes", sealed);
    size_t plain = sealed - SEALING_TAG_BYTES;
    error = sealing_open(sealing, key, end - sealed, bytes + end - sealed, plain,
                         buffer_reserve(entries, plain ? plain : 1));
    if (!error)
        entries->size = plain;
    return error;
}

static struct error *
unpack(const struct pack_entry *entry, const uint8_t *packed, size_t size, uint8_t *out)
{
    if (size == entry->raw)
        return NULL;
    struct error *error = stream_zstd_unpack(packed, size, out, entry->raw);
    if (!error)
        return NULL;
    error_free(error);
    return error_new(CODE_DATA_LOSS, "the compressed chunk at byte %u is damaged", entry->offset);
}

struct error *
pack_open_chunk(const struct sealing *sealing, const struct sealing_key *key,
                const struct pack_entry *entry, const uint8_t *sealed, struct buffer *work,
                uint8_t *out)
{
    size_t size = entry->stored - SEALING_TAG_BYTES;
    struct repository_id id;
    work->size = 0;
    uint8_t *opened = size == entry->raw ? out : buffer_reserve(work, size);
    struct error *error = sealing_open(sealing, key, entry->offset, sealed, size, opened);
    if (!error)
        error = unpack(entry, opened, size, out);
    if (!error)
        error = sealing_identify(sealing, out, entry->raw, &id);
    if (!error && memcmp(id.bytes, entry->id.bytes, sizeof id.bytes) != 0)
        error = error_new(CODE_DATA_LOSS, "the chunk at byte %u is another one", entry->offset);
    return error;
}
