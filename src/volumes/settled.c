/* SPDX-License-Identifier: Apache-2.0 */
/* Up to which time everything is durable: see settled.h. */
#include "volumes/settled.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "volumes/handle.h"
#include "volumes/rows.h"

#define SETTLED_KEY "engine/settled"
#define BOOT_KEY "engine/boot"

/* How many rows are read at a time. */
#define PAGE 256

/* `*text` is NULL if there is none. */
static struct error *
read_text(struct engine *engine, const char *key, struct arena *arena, const char **text)
{
    struct store_entry entry;
    *text = NULL;
    struct error *error = store_get(engine->store, key, arena, &entry);
    if (!error)
        *text = arena_copy(arena, entry.value, entry.value_size);
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
settled_read(struct engine *engine, struct settled *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *time = NULL, *boot = NULL;
    *out = (struct settled){0};
    struct error *error = read_text(engine, SETTLED_KEY, &arena, &time);
    if (!error)
        error = read_text(engine, BOOT_KEY, &arena, &boot);
    if (time)
        out->time_ms = strtoull(time, NULL, 10);
    out->is_same_boot = engine->boot_id[0] && boot && strcmp(boot, engine->boot_id) == 0;
    return error;
}

struct error *
settled_write(struct engine *engine, uint64_t time_ms)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRIu64, time_ms);
    struct store_change changes[] = {
        {SETTLED_KEY, (const uint8_t *)text, (size_t)size, STORE_ANY},
        {BOOT_KEY, (const uint8_t *)engine->boot_id, strlen(engine->boot_id), STORE_ANY},
    };
    size_t count = engine->is_first_of_boot ? 1 : COUNT_OF(changes);
    struct error *error = backend_sync(engine->backend);
    return error ? error : store_write(engine->store, changes, count, NULL);
}

/* ---- the newest ---- */

static void
take_newer(const char *handle, uint64_t *newest)
{
    uint64_t time_ms = handle_read_time(handle);
    if (time_ms > *newest)
        *newest = time_ms;
}

/* Looks only at rows newer than `*newest`. */
static struct error *
find_newest_row(struct engine *engine, const struct row_kind *kind, uint64_t *newest)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char after[BACKEND_HANDLE_SIZE];
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    handle_print_least(*newest, after);
    while (!error && page.has_more) {
        error = rows_list(engine, kind, after, PAGE, &arena, &page);
        if (page.count && !error)
            snprintf(after, sizeof after, "%s",
                     rows_handle(kind, page.rows[page.count - 1].record));
        arena_clear(&arena);
    }
    take_newer(after, newest);
    return error;
}

static struct error *
take_entry(void *context, const struct backend_entry *entry)
{
    take_newer(entry->data.handle, context);
    return NULL;
}

/*
 * Lists data without rows only if the clock is known to be behind: reading all directories at each
 * start would take too long.
 */
struct error *
settled_find_newest(struct engine *engine, uint64_t *time_ms)
{
    struct settled settled;
    uint64_t now = (uint64_t)clock_unix_ms(), newest = now - 1;
    struct error *error = settled_read(engine, &settled);
    if (!error)
        error = find_newest_row(engine, &volume_rows, &newest);
    if (!error)
        error = find_newest_row(engine, &snapshot_rows, &newest);
    if (!error)
        error = find_newest_row(engine, &group_rows, &newest);
    if (!error && settled.time_ms > newest)
        newest = settled.time_ms;
    if (!error && newest > now)
        error = backend_list(engine->backend, take_entry, &newest);
    *time_ms = newest >= now ? newest : 0;
    return error;
}
