/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of volumes that move: see move_rows.h. */
#include "volumes/move_rows.h"

#include <stdio.h>
#include <string.h>

#include "volumes/handle.h"
#include "volumes/pull.h"

#define INDEX "moved/"
#define PAGE 256

/* ---- states ---- */

bool
move_rows_has_data(const volume_record *volume)
{
    return volume->state == VOLUME_STATE(READY) || volume->state == VOLUME_STATE(MOVING) ||
           volume->state == VOLUME_STATE(INCOMING) || volume->state == VOLUME_STATE(SUPERSEDED);
}

bool
move_rows_is_deletion(const volume_record *volume)
{
    return volume->state == VOLUME_STATE(MOVING) && !volume->move->node_id[0];
}

bool
move_rows_is_listed(const volume_record *volume)
{
    return volume->state == VOLUME_STATE(READY) || volume->state == VOLUME_STATE(LOST) ||
           (volume->state == VOLUME_STATE(MOVING) && !move_rows_is_deletion(volume));
}

bool
move_rows_is_at_home(const struct engine *engine, const volume_record *volume)
{
    char home[HANDLE_HOME_SIZE];
    return volume->state == VOLUME_STATE(READY) && !volume->epoch &&
           (!handle_read_home(volume->handle, home) || !engine->home[0] ||
            strcmp(home, engine->home) == 0);
}

void
move_rows_set_node(volume_record *volume, const char *node_id, struct arena *arena)
{
    volume->move = arena_alloc(arena, sizeof *volume->move);
    skycap__records__move_record__init(volume->move);
    volume->move->node_id = arena_string(arena, node_id);
}

/* ---- writing ---- */

static struct store_change
index_change(const volume_record *volume, bool is_there, struct arena *arena)
{
    static const uint8_t yes[] = {1};
    return (struct store_change){arena_print(arena, INDEX "%s", volume->handle),
                                 is_there ? yes : NULL, sizeof yes, STORE_ANY};
}

static struct store_change
position_change(const volume_record *volume, struct arena *arena)
{
    struct data data = {.role = ROLE_VOLUME};
    snprintf(data.handle, sizeof data.handle, "%s", volume->handle);
    return (struct store_change){pull_row(&data, arena), NULL, 0, STORE_ANY};
}

void
move_rows_add_write(const volume_record *volume, struct arena *arena,
                    struct store_change out[MOVE_ROWS_CHANGES], size_t *count)
{
    rows_add_insert(&volume_rows, &volume->base, arena, out);
    out[0].expected = out[1].expected = STORE_ANY;
    if (volume->state == VOLUME_STATE(GONE))
        out[1].value = NULL;
    bool is_moved = volume->state != VOLUME_STATE(READY) || volume->epoch;
    out[2] = index_change(volume, is_moved, arena);
    out[3] = position_change(volume, arena);
    *count = MOVE_ROWS_CHANGES;
}

void
move_rows_add_delete(const volume_record *volume, struct arena *arena,
                     struct store_change out[MOVE_ROWS_CHANGES], size_t *count)
{
    rows_add_delete(&volume_rows, &volume->base, arena, out);
    out[2] = index_change(volume, false, arena);
    out[3] = position_change(volume, arena);
    *count = MOVE_ROWS_CHANGES;
    if (volume->state == VOLUME_STATE(GONE)) { /* its name may be another volume's by now */
        out[1] = out[3];
        *count = MOVE_ROWS_CHANGES - 1;
    }
}

struct error *
move_rows_write(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct store_change changes[MOVE_ROWS_CHANGES];
    size_t count;
    move_rows_add_write(volume, arena, changes, &count);
    return rows_write(engine, changes, count, NULL);
}

struct error *
move_rows_delete(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct store_change changes[MOVE_ROWS_CHANGES];
    size_t count;
    move_rows_add_delete(volume, arena, changes, &count);
    return rows_write(engine, changes, count, NULL);
}

/* ---- the index ---- */

static struct error *
walk_page(struct engine *engine, char *after, size_t size, bool *has_more,
          struct error *(*take)(void *context, const char *handle), void *context)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_list list;
    struct error *error =
        store_list(engine->store, INDEX, after[0] ? after : NULL, PAGE, &arena, &list);
    for (size_t i = 0; !error && i < list.count; i++) {
        error = take(context, list.entries[i].key + sizeof INDEX - 1);
        snprintf(after, size, "%s", list.entries[i].key);
    }
    *has_more = !error && list.has_more;
    return error;
}

struct error *
move_rows_walk(struct engine *engine, struct error *(*take)(void *context, const char *handle),
               void *context)
{
    char after[sizeof INDEX + BACKEND_HANDLE_SIZE] = "";
    bool has_more = true;
    struct error *error = NULL;
    while (!error && has_more)
        error = walk_page(engine, after, sizeof after, &has_more, take, context);
    return error;
}
