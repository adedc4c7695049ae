/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes: see members.h. */
#include "cluster/members.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "volumes/handle.h"

struct row {
    struct member member; /* texts in the arena */
    struct arena arena;
};

struct members {
    pthread_mutex_t lock;
    struct row **rows; /* by id */
    size_t count;
    size_t capacity;
    bool is_known;
};

struct members *
members_new(void)
{
    struct members *members = memory_zeroed(sizeof *members);
    pthread_mutex_init(&members->lock, NULL);
    return members;
}

static void
free_row(struct row *row)
{
    arena_clear(&row->arena);
    free(row);
}

void
members_free(struct members *members)
{
    if (!members)
        return;
    for (size_t i = 0; i < members->count; i++)
        free_row(members->rows[i]);
    free(members->rows);
    pthread_mutex_destroy(&members->lock);
    free(members);
}

/* ---- changes ---- */

static void
copy_member(struct member *to, const struct member *from, struct arena *arena)
{
    *to = *from;
    to->id = arena_string(arena, from->id);
    to->address = arena_string(arena, from->address);
    to->attributes = text_map_copy(&from->attributes, arena);
    handle_print_home(to->id, to->home);
}

/* The position of the id, or where it would be. */
static size_t
find(const struct members *members, const char *id, bool *found)
{
    size_t low = 0, high = members->count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(members->rows[middle]->member.id, id);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
insert(struct members *members, size_t at, struct row *row)
{
    if (members->count == members->capacity) {
        members->capacity = members->capacity ? 2 * members->capacity : 16;
        members->rows = memory_resize(members->rows, members->capacity * sizeof *members->rows);
    }
    memmove(&members->rows[at + 1], &members->rows[at],
            (members->count - at) * sizeof *members->rows);
    members->rows[at] = row;
    members->count++;
}

static void
remove_at(struct members *members, size_t at)
{
    free_row(members->rows[at]);
    members->count--;
    memmove(&members->rows[at], &members->rows[at + 1],
            (members->count - at) * sizeof *members->rows);
}

void
members_set(struct members *members, const struct member *member)
{
    bool found;
    struct row *row = memory_zeroed(sizeof *row);
    arena_init(&row->arena, NULL, 0, SIZE_MAX);
    copy_member(&row->member, member, &row->arena);
    pthread_mutex_lock(&members->lock);
    size_t at = find(members, member->id, &found);
    if (found) {
        free_row(members->rows[at]);
        members->rows[at] = row;
    } else {
        insert(members, at, row);
    }
    pthread_mutex_unlock(&members->lock);
}

void
members_remove(struct members *members, const char *id)
{
    bool found;
    pthread_mutex_lock(&members->lock);
    size_t at = find(members, id, &found);
    if (found)
        remove_at(members, at);
    pthread_mutex_unlock(&members->lock);
}

void
members_complete(struct members *members)
{
    pthread_mutex_lock(&members->lock);
    members->is_known = true;
    pthread_mutex_unlock(&members->lock);
}

struct member_list
members_read(struct members *members, struct arena *arena)
{
    pthread_mutex_lock(&members->lock);
    struct member_list list = {
        .items = arena_alloc(arena, (members->count + 1) * sizeof *list.items),
        .count = members->count,
        .is_known = members->is_known,
    };
    for (size_t i = 0; i < members->count; i++)
        copy_member(&list.items[i], &members->rows[i]->member, arena);
    pthread_mutex_unlock(&members->lock);
    return list;
}
