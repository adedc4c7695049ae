/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's start and end: see engine.h. */
#include "volumes/engine.h"

#include <stdlib.h>

#include "base/memory.h"
#include "volumes/rows.h"

static const struct row_kind *
rows_of(const struct data *data)
{
    return data->role == ROLE_SNAPSHOT ? &snapshot_rows : &volume_rows;
}

/* Does the store know it? */
static struct error *
find_row(struct engine *engine, const struct data *data, bool *known)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct row row;
    struct error *error = rows_get(engine, rows_of(data), data->handle, &arena, &row);
    *known = !error;
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return NULL;
}

/* The store belongs to this process alone and nothing runs yet: data without a row was never answered for. */
static struct error *
sweep_data(void *context, const struct backend_entry *entry)
{
    struct engine *engine = context;
    bool known = false;
    struct error *error = entry->is_whole ? find_row(engine, &entry->data, &known) : NULL;
    if (error || known)
        return error;
    log_info(engine->log, "removing data that nothing refers to",
             LOG_TEXT("handle", entry->data.handle));
    return backend_remove(engine->backend, &entry->data);
}

struct error *
engine_open(const struct engine_options *options, struct engine **out)
{
    struct engine *engine = memory_zeroed(sizeof *engine);
    engine->store = options->store;
    engine->backend = options->backend;
    engine->node_id = options->node_id;
    engine->log = options->log;
    keys_init(&engine->keys);
    struct error *error = backend_list(engine->backend, sweep_data, engine);
    if (error) {
        engine_close(engine);
        return error_wrap(error, "look through the data for what a crash has left");
    }
    *out = engine;
    return NULL;
}

void
engine_close(struct engine *engine)
{
    if (!engine)
        return;
    keys_clear(&engine->keys);
    free(engine);
}
