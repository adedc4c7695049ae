/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that the page shows: see operation_table.h. */
#include "web/operation_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define SHOWN_MS 60000

/* In a list, oldest first. The text is its JSON. */
struct entry {
    struct entry *next;
    char *id;
    char *name; /* of its subject */
    char *source_name;
    struct buffer text;
    uint64_t ended_ms; /* on the monotonic clock; 0: it runs */
};

struct operation_table {
    pthread_mutex_t lock;
    struct entry *entries;
    size_t count;
    bool has_changed;
};

struct operation_table *
operation_table_new(void)
{
    struct operation_table *table = memory_zeroed(sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

static void
drop(struct operation_table *table, struct entry **place)
{
    struct entry *entry = *place;
    *place = entry->next;
    free(entry->id);
    free(entry->name);
    free(entry->source_name);
    buffer_clear(&entry->text);
    free(entry);
    table->count--;
    table->has_changed = true;
}

void
operation_table_free(struct operation_table *table)
{
    while (table->entries)
        drop(table, &table->entries);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static struct entry **
find(struct operation_table *table, const char *id)
{
    struct entry **place = &table->entries;
    while (*place && strcmp((*place)->id, id) != 0)
        place = &(*place)->next;
    return place;
}

/* Drops those that ended long ago. */
static void
tidy(struct operation_table *table)
{
    uint64_t now_ms = clock_now_ms();
    for (struct entry **place = &table->entries; *place;)
        if ((*place)->ended_ms && now_ms - (*place)->ended_ms > SHOWN_MS)
            drop(table, place);
        else
            place = &(*place)->next;
}

/* Those that run matter more than those that have ended: the oldest of these goes. */
static void
make_room(struct operation_table *table)
{
    struct entry **place = &table->entries;
    while (*place && !(*place)->ended_ms)
        place = &(*place)->next;
    if (*place)
        drop(table, place);
}

static void
set_names(struct entry *entry, const struct api_subject *subject)
{
    free(entry->name);
    free(entry->source_name);
    entry->name = memory_string(subject->name);
    entry->source_name = memory_string(subject->source_name);
}

void
operation_table_put(struct operation_table *table, const Skycap__V1__Operation *operation,
                    const struct api_subject *subject)
{
    bool is_running = operation->state == SKYCAP__V1__OPERATION__STATE__RUNNING;
    pthread_mutex_lock(&table->lock);
    struct entry **place = find(table, operation->id);
    if (!*place && table->count == OPERATION_TABLE_MAX) {
        make_room(table);
        place = find(table, operation->id);
    }
    if (!*place && table->count < OPERATION_TABLE_MAX) {
        *place = memory_zeroed(sizeof **place);
        (*place)->id = memory_string(operation->id);
        table->count++;
    }
    if (*place) {
        set_names(*place, subject); /* they may not have been known before */
        struct json_writer out = {&(*place)->text, false};
        buffer_clear(&(*place)->text);
        api_print_operation(&out, operation,
                            &(struct api_subject){(*place)->name, (*place)->source_name});
        (*place)->ended_ms = is_running ? 0 : clock_now_ms();
        table->has_changed = true;
    }
    pthread_mutex_unlock(&table->lock);
}

bool
operation_table_find(struct operation_table *table, const char *id, struct arena *arena,
                     struct api_subject *out)
{
    pthread_mutex_lock(&table->lock);
    const struct entry *entry = *find(table, id);
    bool has_name = entry && entry->name[0];
    if (has_name)
        *out = (struct api_subject){arena_string(arena, entry->name),
                                    arena_string(arena, entry->source_name)};
    pthread_mutex_unlock(&table->lock);
    return has_name;
}

void
operation_table_forget_running(struct operation_table *table)
{
    pthread_mutex_lock(&table->lock);
    for (struct entry **place = &table->entries; *place;)
        if (!(*place)->ended_ms)
            drop(table, place);
        else
            place = &(*place)->next;
    pthread_mutex_unlock(&table->lock);
}

bool
operation_table_has_changed(struct operation_table *table)
{
    pthread_mutex_lock(&table->lock);
    tidy(table);
    bool has_changed = table->has_changed;
    pthread_mutex_unlock(&table->lock);
    return has_changed;
}

void
operation_table_print(struct operation_table *table, struct buffer *out)
{
    pthread_mutex_lock(&table->lock);
    table->has_changed = false;
    buffer_append_text(out, "{\"operations\":[");
    for (const struct entry *entry = table->entries; entry; entry = entry->next) {
        buffer_append(out, entry->text.bytes, entry->text.size);
        buffer_append_text(out, entry->next ? "," : "");
    }
    buffer_append_text(out, "]}");
    pthread_mutex_unlock(&table->lock);
}
