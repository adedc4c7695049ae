/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of snapshots that are spread: see stream_slots.h. There are only a few at any time. */
#include "volumes/stream_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct stream_slot {
    struct stream_slot *next;
    char *snapshot;
    char *node_id;
    unsigned streams;
    uint64_t used_ms; /* when it was taken, or its last stream has ended */
};

void
stream_slots_init(struct stream_slots *slots)
{
    pthread_mutex_init(&slots->lock, NULL);
    slots->first = NULL;
}

static void
remove_slot(struct stream_slot **at)
{
    struct stream_slot *slot = *at;
    *at = slot->next;
    free(slot->snapshot);
    free(slot->node_id);
    free(slot);
}

void
stream_slots_clear(struct stream_slots *slots)
{
    while (slots->first)
        remove_slot(&slots->first);
    pthread_mutex_destroy(&slots->lock);
}

/* With the lock held, like all below. The place of the slot, or where it would be. */
static struct stream_slot **
find(struct stream_slots *slots, const char *snapshot, const char *node_id)
{
    struct stream_slot **at = &slots->first;
    while (*at && (strcmp((*at)->snapshot, snapshot) != 0 || strcmp((*at)->node_id, node_id) != 0))
        at = &(*at)->next;
    return at;
}

static void
drop_idle(struct stream_slots *slots, uint64_t now_ms)
{
    for (struct stream_slot **at = &slots->first; *at;) {
        if (!(*at)->streams && now_ms - (*at)->used_ms > STREAM_SLOTS_IDLE_MS)
            remove_slot(at);
        else
            at = &(*at)->next;
    }
}

static unsigned
count(const struct stream_slots *slots, const char *snapshot)
{
    unsigned result = 0;
    for (const struct stream_slot *slot = slots->first; slot; slot = slot->next)
        result += strcmp(slot->snapshot, snapshot) == 0;
    return result;
}

static struct stream_slot *
take(struct stream_slots *slots, const char *snapshot, const char *node_id, uint64_t now_ms)
{
    drop_idle(slots, now_ms);
    struct stream_slot **at = find(slots, snapshot, node_id);
    if (!*at && count(slots, snapshot) >= STREAM_SLOTS_MOST)
        return NULL;
    if (!*at) {
        *at = memory_zeroed(sizeof **at);
        (*at)->snapshot = memory_string(snapshot);
        (*at)->node_id = memory_string(node_id);
    }
    (*at)->used_ms = now_ms;
    return *at;
}

static struct error *
take_or_refuse(struct stream_slots *slots, const char *snapshot, const char *node_id,
               uint64_t now_ms, unsigned streams)
{
    pthread_mutex_lock(&slots->lock);
    struct stream_slot *slot = take(slots, snapshot, node_id, now_ms);
    if (slot)
        slot->streams += streams;
    pthread_mutex_unlock(&slots->lock);
    return slot ? NULL
                : error_new(CODE_RESOURCE_EXHAUSTED,
                            "other nodes are fetching the snapshot \"%s\" here; try again",
                            snapshot);
}

struct error *
stream_slots_take(struct stream_slots *slots, const char *snapshot, const char *node_id,
                  uint64_t now_ms)
{
    return take_or_refuse(slots, snapshot, node_id, now_ms, 0);
}

struct error *
stream_slots_begin(struct stream_slots *slots, const char *snapshot, const char *node_id,
                   uint64_t now_ms)
{
    return take_or_refuse(slots, snapshot, node_id, now_ms, 1);
}

void
stream_slots_end(struct stream_slots *slots, const char *snapshot, const char *node_id,
                 uint64_t now_ms)
{
    pthread_mutex_lock(&slots->lock);
    struct stream_slot *slot = *find(slots, snapshot, node_id);
    if (slot) {
        slot->streams--;
        slot->used_ms = now_ms;
    }
    pthread_mutex_unlock(&slots->lock);
}

void
stream_slots_release(struct stream_slots *slots, const char *snapshot, const char *node_id)
{
    pthread_mutex_lock(&slots->lock);
    struct stream_slot **at = find(slots, snapshot, node_id);
    if (*at && !(*at)->streams)
        remove_slot(at);
    pthread_mutex_unlock(&slots->lock);
}
