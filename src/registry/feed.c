/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of entries: see feed.h. */
#include "registry/feed.h"

#include <string.h>

/* The value of a change in the history; its key is the path. */
struct piece {
    enum news_kind kind;
    uint64_t revision;
    uint8_t record[];
};

void
feed_init(struct feed *feed)
{
    history_init(&feed->history, 0);
    atomic_init(&feed->number, 0);
}

void
feed_clear(struct feed *feed)
{
    history_clear(&feed->history);
}

void
feed_publish(struct feed *feed, const struct news *news)
{
    const struct entry *entry = &news->entry;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    size_t size;
    const uint8_t *record = entries_pack(entry, &arena, &size);
    struct piece *piece = arena_alloc(&arena, sizeof *piece + size);
    *piece = (struct piece){news->kind, entry->revision};
    if (size)
        memcpy(piece->record, record, size);
    struct store_change change = {.key = entry->path ? entry->path : "",
                                  .value = (const uint8_t *)piece,
                                  .value_size = sizeof *piece + size};
    struct change_list list = {0};
    change_list_add(&list, &change, atomic_fetch_add(&feed->number, 1) + 1);
    history_publish(&feed->history, &list);
}

struct error *
feed_watch(struct feed *feed, struct store_watch **out)
{
    return history_watch(&feed->history, "", atomic_load(&feed->number), out);
}

struct error *
feed_next(struct store_watch *watch, uint32_t timeout_ms, struct arena *arena, struct news *out)
{
    struct store_entry change;
    struct error *error = store_watch_next(watch, timeout_ms, arena, &change);
    if (error && error->code == CODE_OUT_OF_RANGE) {
        error_free(error);
        *out = (struct news){.kind = NEWS_ANEW};
        return NULL;
    }
    if (error)
        return error;
    const struct piece *piece = (const void *)change.value;
    *out =
        (struct news){piece->kind, {.path = change.key, .value = "", .revision = piece->revision}};
    if (!entries_unpack(piece->record, change.value_size - sizeof *piece, arena, &out->entry))
        return error_new(CODE_INTERNAL, "a change of \"%s\" cannot be read", change.key);
    return NULL;
}
