/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes: see members.h. */
#include "cluster/members.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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

bool
member_has_connection(const struct member *member, const char *name)
{
    const char *names = text_map_find(&member->attributes, CLUSTER_CONNECTIONS);
    size_t size = strlen(name);
    for (; names && *names; names += strcspn(names, ","), names += *names == ',')
        if (strcspn(names, ",") == size && strncmp(names, name, size) == 0)
            return true;
    return false;
}

const struct member *
member_list_find(const struct member_list *members, const char *node_id)
{
    for (size_t i = 0; i < members->count; i++)
        if (strcmp(members->items[i].id, node_id) == 0)
            return &members->items[i];
    return NULL;
}

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

/* With the lock held. */
static void
put(struct members *members, const struct member *member)
{
    bool found;
    struct row *row = memory_zeroed(sizeof *row);
    arena_init(&row->arena, NULL, 0, SIZE_MAX);
    copy_member(&row->member, member, &row->arena);
    size_t at = find(members, member->id, &found);
    if (found) {
        free_row(members->rows[at]);
        members->rows[at] = row;
    } else {
        insert(members, at, row);
    }
}

void
members_set(struct members *members, const struct member *member)
{
    pthread_mutex_lock(&members->lock);
    put(members, member);
    pthread_mutex_unlock(&members->lock);
}

/* ---- missing ones ---- */

static void
mark_missing(struct member *member)
{
    member->is_expired = member->is_missing = true;
    member->seen_ms = clock_unix_ms();
}

void
members_miss(struct members *members, const char *id)
{
    bool found;
    pthread_mutex_lock(&members->lock);
    size_t at = find(members, id, &found);
    if (found && !members->rows[at]->member.is_missing)
        mark_missing(&members->rows[at]->member);
    pthread_mutex_unlock(&members->lock);
}

/* `row` is NULL: it is a new one. False: it need not change. */
static bool
add_connection(const struct row *row, const char *id, const char *connection, struct arena *arena,
               struct member *out)
{
    const char *names = row ? text_map_find(&row->member.attributes, CLUSTER_CONNECTIONS) : NULL;
    if (row && (!row->member.is_missing || member_has_connection(&row->member, connection)))
        return false;
    *out = (struct member){.id = id, .address = ""};
    if (row)
        copy_member(out, &row->member, arena);
    else
        mark_missing(out);
    bool is_first = !names || !names[0];
    text_map_set(&out->attributes, arena, CLUSTER_CONNECTIONS,
                 is_first ? connection : arena_print(arena, "%s,%s", names, connection));
    return true;
}

bool
members_note(struct members *members, const char *id, const char *connection)
{
    struct arena arena AUTO(arena_clear);
    struct member member;
    bool found;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    pthread_mutex_lock(&members->lock);
    size_t at = find(members, id, &found);
    bool changes =
        add_connection(found ? members->rows[at] : NULL, id, connection, &arena, &member);
    if (changes)
        put(members, &member);
    pthread_mutex_unlock(&members->lock);
    return changes;
}

bool
members_forget(struct members *members, const char *id)
{
    bool found;
    pthread_mutex_lock(&members->lock);
    size_t at = find(members, id, &found);
    bool is_missing = found && members->rows[at]->member.is_missing;
    if (is_missing)
        remove_at(members, at);
    pthread_mutex_unlock(&members->lock);
    return is_missing;
}

/* ---- reading ---- */

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
