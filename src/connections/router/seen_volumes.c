/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of other nodes: see seen_volumes.h. */
#include "connections/router/seen_volumes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "volumes/handle.h"

struct row {
    char *handle; /* the name follows it in the same memory */
    const char *name;
    int64_t size_bytes;
};

struct place {
    char *name;
    struct row *rows; /* by handle */
    size_t count;
};

struct seen_volumes {
    pthread_mutex_t lock;
    struct place *places;
    size_t place_count;
    size_t count; /* of rows in all places */
    size_t most;
};

struct seen_volumes *
seen_volumes_new(size_t most)
{
    struct seen_volumes *seen = memory_zeroed(sizeof *seen);
    pthread_mutex_init(&seen->lock, NULL);
    seen->most = most;
    return seen;
}

static void
clear_place(struct place *place)
{
    for (size_t i = 0; i < place->count; i++)
        free(place->rows[i].handle);
    free(place->rows);
    free(place->name);
}

void
seen_volumes_free(struct seen_volumes *seen)
{
    if (!seen)
        return;
    for (size_t i = 0; i < seen->place_count; i++)
        clear_place(&seen->places[i]);
    free(seen->places);
    pthread_mutex_destroy(&seen->lock);
    free(seen);
}

/* ---- one place; with the lock held ---- */

static struct place *
find_place(const struct seen_volumes *seen, const char *name)
{
    for (size_t i = 0; i < seen->place_count; i++)
        if (strcmp(seen->places[i].name, name) == 0)
            return &seen->places[i];
    return NULL;
}

static struct place *
add_place(struct seen_volumes *seen, const char *name)
{
    seen->places = memory_resize(seen->places, (seen->place_count + 1) * sizeof *seen->places);
    struct place *place = &seen->places[seen->place_count++];
    *place = (struct place){.name = memory_string(name)};
    return place;
}

/* The position of the first row whose handle is greater. */
static size_t
first_after(const struct place *place, const char *handle)
{
    size_t low = 0, high = place->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(place->rows[middle].handle, handle) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static const struct row *
find_row(const struct place *place, const char *handle)
{
    size_t after = place->rows ? first_after(place, handle) : 0;
    return after && strcmp(place->rows[after - 1].handle, handle) == 0 ? &place->rows[after - 1]
                                                                       : NULL;
}

static struct row
new_row(const struct place *place, const struct seen_volume *volume)
{
    const struct row *before = volume->name[0] ? NULL : find_row(place, volume->handle);
    const char *name = before ? before->name : volume->name;
    size_t handle_size = strlen(volume->handle) + 1, name_size = strlen(name) + 1;
    char *memory = memory_resize(NULL, handle_size + name_size);
    memcpy(memory, volume->handle, handle_size);
    memcpy(memory + handle_size, name, name_size);
    return (struct row){memory, memory + handle_size, volume->size_bytes};
}

/* Replaces the rows from `first` up to `end`. */
static void
replace(struct seen_volumes *seen, struct place *place, size_t first, size_t end,
        const struct seen_page *page)
{
    struct row *fresh = memory_resize(NULL, (page->count + 1) * sizeof *fresh);
    size_t rest = place->count - end, count = first + page->count + rest;
    size_t most = count > place->count ? count : place->count; /* before the rest has moved */
    for (size_t i = 0; i < page->count; i++)
        fresh[i] = new_row(place, &page->items[i]);
    for (size_t i = first; place->rows && i < end; i++)
        free(place->rows[i].handle);
    place->rows = memory_resize(place->rows, (most + 1) * sizeof *place->rows);
    if (rest)
        memmove(&place->rows[first + page->count], &place->rows[end], rest * sizeof *place->rows);
    if (page->count)
        memcpy(&place->rows[first], fresh, page->count * sizeof *fresh);
    seen->count += count - place->count;
    place->count = count;
    free(fresh);
}

/* ---- all places ---- */

static bool
is_sorted(const char *after, const struct seen_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        if (strcmp(page->items[i].handle, after) <= 0)
            return false;
        after = page->items[i].handle;
    }
    return page->count || !page->has_more;
}

/* A volume that has moved is not where it was. One that is at home was never elsewhere. */
static void
drop_elsewhere(struct seen_volumes *seen, const char *place, const char *handle)
{
    char home[HANDLE_HOME_SIZE];
    const char *at = strrchr(place, '@');
    if (!at || (handle_read_home(handle, home) && strcmp(home, at + 1) == 0))
        return;
    for (size_t i = 0; i < seen->place_count; i++) {
        struct place *other = &seen->places[i];
        if (strcmp(other->name, place) == 0 || !find_row(other, handle))
            continue;
        size_t end = first_after(other, handle);
        replace(seen, other, end - 1, end, &(struct seen_page){0});
    }
}

void
seen_volumes_set(struct seen_volumes *seen, const char *name, const char *after,
                 const struct seen_page *page)
{
    if (!is_sorted(after, page))
        return;
    pthread_mutex_lock(&seen->lock);
    struct place *place = find_place(seen, name);
    if (!place)
        place = add_place(seen, name);
    size_t first = first_after(place, after);
    size_t end =
        page->has_more ? first_after(place, page->items[page->count - 1].handle) : place->count;
    if (seen->count - (end - first) + page->count <= seen->most)
        replace(seen, place, first, end, page);
    for (size_t i = 0; i < page->count; i++)
        drop_elsewhere(seen, name, page->items[i].handle);
    pthread_mutex_unlock(&seen->lock);
}

struct seen_page
seen_volumes_find(struct seen_volumes *seen, const char *name, const char *after, size_t most,
                  struct arena *arena)
{
    struct seen_page page = {0};
    pthread_mutex_lock(&seen->lock);
    const struct place *place = find_place(seen, name);
    size_t first = place ? first_after(place, after) : 0;
    size_t rest = place ? place->count - first : 0;
    page.count = rest < most ? rest : most;
    page.has_more = page.count < rest;
    page.items = arena_alloc(arena, page.count * sizeof *page.items);
    for (size_t i = 0; i < page.count; i++) {
        const struct row *row = &place->rows[first + i];
        page.items[i] = (struct seen_volume){arena_string(arena, row->handle),
                                             arena_string(arena, row->name), row->size_bytes};
    }
    pthread_mutex_unlock(&seen->lock);
    return page;
}

static bool
is_one_of(const char *place, const struct member_list *members)
{
    const char *at = strrchr(place, '@');
    for (size_t i = 0; at && i < members->count; i++)
        if (strcmp(members->items[i].home, at + 1) == 0)
            return true;
    return false;
}

void
seen_volumes_keep(struct seen_volumes *seen, const struct member_list *members)
{
    size_t kept = 0;
    pthread_mutex_lock(&seen->lock);
    for (size_t i = 0; i < seen->place_count; i++) {
        struct place *place = &seen->places[i];
        if (is_one_of(place->name, members)) {
            seen->places[kept++] = *place;
            continue;
        }
        seen->count -= place->count;
        clear_place(place);
    }
    seen->place_count = kept;
    pthread_mutex_unlock(&seen->lock);
}
