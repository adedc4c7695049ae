/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of exports and imports: see export_position.h. */
#include "volumes/export_position.h"

#include "message/message_bytes.h"

const char *
export_position_row(const char *operation, struct arena *arena)
{
    return arena_print(arena, "export/%s", operation);
}

const char *
import_position_row(const char *handle, struct arena *arena)
{
    return arena_print(arena, "import/%s", handle);
}

struct error *
export_position_save(struct engine *engine, const char *row, const export_position *position)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    size_t size;
    uint8_t *bytes = message_bytes_pack(&position->base, &arena, &size);
    struct store_change change = {row, bytes, size, STORE_ANY};
    return store_write(engine->store, &change, 1, NULL);
}

struct error *
export_position_read(struct engine *engine, const char *row, struct arena *arena,
                     export_position **out)
{
    struct store_entry entry;
    bool is_there;
    *out = NULL;
    struct error *error = store_find(engine->store, row, arena, &entry, &is_there);
    if (error || !is_there)
        return error;
    *out = (export_position *)message_bytes_unpack(&skycap__records__export_position__descriptor,
                                                   entry.value, entry.value_size, arena);
    return NULL;
}
