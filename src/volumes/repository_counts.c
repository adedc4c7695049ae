/* SPDX-License-Identifier: Apache-2.0 */
/* Exports and drills by repository: see repository_counts.h. */
#include "volumes/repository_counts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define MOST 64
#define NAME_SIZE 64

struct repository_counts {
    pthread_mutex_t lock;
    struct {
        char name[NAME_SIZE];
        struct repository_count count;
    } items[MOST];
};

struct repository_counts *
repository_counts_new(void)
{
    struct repository_counts *counts = memory_zeroed(sizeof *counts);
    pthread_mutex_init(&counts->lock, NULL);
    return counts;
}

void
repository_counts_free(struct repository_counts *counts)
{
    pthread_mutex_destroy(&counts->lock);
    free(counts);
}

enum repository_end
repository_counts_end_of(const struct error *result)
{
    return !result                          ? REPOSITORY_SUCCEEDED
           : result->code == CODE_CANCELLED ? REPOSITORY_CANCELLED
                                            : REPOSITORY_FAILED;
}

/* The repository's place, or an unused one; NULL: there is none. With the lock held. */
static struct repository_count *
find(struct repository_counts *counts, const char *repository)
{
    for (size_t i = 0; i < MOST && strlen(repository) < NAME_SIZE; i++) {
        if (!counts->items[i].name[0])
            snprintf(counts->items[i].name, NAME_SIZE, "%s", repository);
        if (!strcmp(counts->items[i].name, repository))
            return &counts->items[i].count;
    }
    return NULL;
}

void
repository_counts_add(struct repository_counts *counts, const char *repository,
                      const struct repository_count *add)
{
    pthread_mutex_lock(&counts->lock);
    struct repository_count *sum = find(counts, repository);
    for (size_t i = 0; sum && i < REPOSITORY_ENDS; i++) {
        sum->exports[i] += add->exports[i];
        sum->drills[i] += add->drills[i];
    }
    if (sum) {
        sum->read_bytes += add->read_bytes;
        sum->stored_bytes += add->stored_bytes;
        sum->drill_ms += add->drill_ms;
    }
    pthread_mutex_unlock(&counts->lock);
}

struct repository_count
repository_counts_get(struct repository_counts *counts, const char *repository)
{
    pthread_mutex_lock(&counts->lock);
    const struct repository_count *found = find(counts, repository);
    struct repository_count count = found ? *found : (struct repository_count){0};
    pthread_mutex_unlock(&counts->lock);
    return count;
}

/* ---- the last export ---- */

static const char *
row_of(const char *repository, struct arena *arena)
{
    return arena_print(arena, "exported/%s", repository);
}

struct store_change
repository_counts_note_export(const char *repository, struct arena *arena)
{
    const char *text = arena_print(arena, "%jd", (intmax_t)clock_unix_ns());
    return (struct store_change){row_of(repository, arena), (const uint8_t *)text, strlen(text),
                                 STORE_ANY};
}

struct error *
repository_counts_last_export(struct store *store, const char *repository, int64_t *ns)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry entry;
    bool is_there = false;
    *ns = 0;
    struct error *error = store_find(store, row_of(repository, &arena), &arena, &entry, &is_there);
    if (!error && is_there)
        *ns = strtoll(arena_copy(&arena, entry.value, entry.value_size), NULL, 10);
    return error;
}
