/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a pull: see pull_position.h. */
#include "volumes/pull_position.h"

#include <string.h>

#include "message/message_bytes.h"

typedef Skycap__Records__TransferRecord transfer_record;

struct error *
pull_position_save(struct engine *engine, const char *row, const struct pull_position *position)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    transfer_record record = SKYCAP__RECORDS__TRANSFER_RECORD__INIT;
    size_t size;
    record.snapshot = (char *)position->snapshot;
    record.base_snapshot = (char *)position->base;
    record.node_id = (char *)position->node_id;
    record.offset = position->position.offset;
    record.sum.data = (uint8_t *)position->position.sum;
    record.sum.len = sizeof position->position.sum;
    uint8_t *bytes = message_bytes_pack(&record.base, &arena, &size);
    struct store_change change = {row, bytes, size, STORE_ANY};
    return store_write(engine->store, &change, 1, NULL);
}

struct error *
pull_position_read(struct engine *engine, const char *row, struct arena *arena,
                   struct pull_position *out, bool *is_there)
{
    struct store_entry entry;
    *out = (struct pull_position){.snapshot = "", .base = "", .node_id = ""};
    struct error *error = store_find(engine->store, row, arena, &entry, is_there);
    if (error || !*is_there)
        return error;
    const transfer_record *record = (transfer_record *)message_bytes_unpack(
        &skycap__records__transfer_record__descriptor, entry.value, entry.value_size, arena);
    if (!record || record->sum.len != sizeof out->position.sum)
        return NULL;
    out->snapshot = record->snapshot;
    out->base = record->base_snapshot;
    out->node_id = record->node_id;
    out->position.offset = record->offset;
    memcpy(out->position.sum, record->sum.data, sizeof out->position.sum);
    return NULL;
}
