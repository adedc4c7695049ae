/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of controllers: see controller_table.h. */
#include "registry/controller_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "registry/client/path.h"

#define FIRST_BUCKETS 1024u

_Static_assert(PATH_MAX_ID_BYTES <= UINT8_MAX, "the length of an id must fit");

void
controller_table_init(struct controller_table *table)
{
    *table = (struct controller_table){
        .buckets = memory_zeroed(FIRST_BUCKETS * sizeof(void *)),
        .bucket_count = FIRST_BUCKETS,
    };
}

void
controller_table_free(struct controller_table *table)
{
    free(table->buckets);
}

struct announced
controller_announced(const struct controller *controller)
{
    const char *address = controller->text + controller->id_size + 1;
    return (struct announced){address, (const uint8_t *)address + strlen(address) + 1,
                              controller->attributes_size};
}

/* Ids have no slash. */
bool
controller_is_node(const struct controller *controller)
{
    return memchr(controller->text, '/', controller->id_size) != NULL;
}

static uint32_t
hash_of(const char *id, size_t size)
{
    uint64_t hash = hash_bytes(id, size);
    return (uint32_t)(hash >> 32) ^ (uint32_t)hash;
}

static struct controller **
bucket_of(const struct controller_table *table, uint32_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

/* The pointer to the controller, or the NULL at the end of its bucket. */
static struct controller **
find_place(const struct controller_table *table, const char *id, size_t id_size)
{
    uint32_t hash = hash_of(id, id_size);
    struct controller **place = bucket_of(table, hash);
    while (*place && !((*place)->hash == hash && (*place)->id_size == id_size &&
                       !memcmp((*place)->text, id, id_size)))
        place = &(*place)->next;
    return place;
}

struct controller *
controller_table_find(const struct controller_table *table, const char *id, size_t id_size)
{
    return *find_place(table, id, id_size);
}

static void
grow(struct controller_table *table)
{
    struct controller **old = table->buckets;
    size_t old_count = table->bucket_count;
    table->bucket_count = 2 * old_count;
    table->buckets = memory_zeroed(table->bucket_count * sizeof(void *));
    for (size_t i = 0; i < old_count; i++) {
        while (old[i]) {
            struct controller *moved = old[i];
            old[i] = moved->next;
            struct controller **bucket = bucket_of(table, moved->hash);
            moved->next = *bucket;
            *bucket = moved;
        }
    }
    free(old);
}

/* Calls in progress through its channel go on. */
static void
drop(struct controller_table *table, struct controller **place)
{
    struct controller *controller = *place;
    *place = controller->next;
    table->count--;
    channel_retire(controller->channel);
    free(controller);
}

static struct controller *
make(const char *id, size_t id_size, const struct announced *announced)
{
    size_t address_size = strlen(announced->address) + 1;
    struct controller *made =
        memory_zeroed(sizeof *made + id_size + 1 + address_size + announced->attributes_size);
    char *address = made->text + id_size + 1;
    made->hash = hash_of(id, id_size);
    made->id_size = (uint8_t)id_size;
    made->attributes_size = (uint32_t)announced->attributes_size;
    memcpy(made->text, id, id_size);
    memcpy(address, announced->address, address_size);
    if (announced->attributes_size)
        memcpy(address + address_size, announced->attributes, announced->attributes_size);
    return made;
}

static bool
is_same(const struct controller *controller, const struct announced *announced)
{
    struct announced known = controller_announced(controller);
    return !strcmp(known.address, announced->address) &&
           known.attributes_size == announced->attributes_size &&
           (!known.attributes_size ||
            !memcmp(known.attributes, announced->attributes, known.attributes_size));
}

struct controller *
controller_table_put(struct controller_table *table, const char *id, size_t id_size,
                     const struct announced *announced)
{
    struct controller **place = find_place(table, id, id_size);
    if (*place && is_same(*place, announced))
        return *place;
    struct controller *made = make(id, id_size, announced);
    if (*place)
        drop(table, place);
    made->next = *place;
    *place = made;
    if (++table->count > table->bucket_count)
        grow(table);
    return made;
}

void
controller_table_walk(struct controller_table *table,
                      bool (*visit)(void *context, struct controller *controller), void *context)
{
    for (size_t i = 0; i < table->bucket_count; i++) {
        struct controller **place = &table->buckets[i];
        while (*place) {
            if (visit(context, *place))
                drop(table, place);
            else
                place = &(*place)->next;
        }
    }
}
