/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of transfers: see transfer_ids.h. Of too many, the one that goes first is forgotten. */
#include "volumes/transfer_ids.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "volumes/engine.h"
#include "volumes/handle.h"

#define OPENING_MS UINT64_C(120000) /* longer than the call */
#define AGAIN_MS UINT64_C(600000)   /* how soon the caller must ask again */
#define ENDED_MS UINT64_C(60000)    /* until the row of the volume is written */

void
transfer_ids_init(struct transfer_ids *ids)
{
    pthread_mutex_init(&ids->lock, NULL);
}

void
transfer_ids_clear(struct transfer_ids *ids)
{
    pthread_mutex_destroy(&ids->lock);
}

static uint64_t
hash_purpose(const char *name, const char *source)
{
    return hash_text(name) * 31 + hash_text(source);
}

/* One that waits for this purpose, or else the one that goes first. With the lock held. */
static struct transfer_id *
choose(struct transfer_ids *ids, uint64_t purpose, uint64_t now_ms)
{
    struct transfer_id *first = &ids->items[0];
    for (size_t i = 0; i < TRANSFER_IDS_MOST; i++) {
        struct transfer_id *item = &ids->items[i];
        if (item->is_open_again && item->purpose == purpose && item->until_ms > now_ms)
            return item;
        if (item->until_ms < first->until_ms)
            first = item;
    }
    first->is_open_again = false;
    return first;
}

void
transfer_ids_begin(struct engine *engine, const char *name, const char *source,
                   char id[BACKEND_HANDLE_SIZE])
{
    struct transfer_ids *ids = &engine->transfer_ids;
    uint64_t purpose = hash_purpose(name, source), now_ms = clock_now_ms();
    pthread_mutex_lock(&ids->lock);
    struct transfer_id *item = choose(ids, purpose, now_ms);
    if (!item->is_open_again)
        handle_make(engine, item->id);
    item->purpose = purpose;
    item->is_open_again = false;
    item->until_ms = now_ms + OPENING_MS;
    memcpy(id, item->id, sizeof item->id);
    pthread_mutex_unlock(&ids->lock);
}

/* NULL: it is forgotten. With the lock held. */
static struct transfer_id *
find(struct transfer_ids *ids, const char *id)
{
    for (size_t i = 0; i < TRANSFER_IDS_MOST; i++)
        if (strcmp(ids->items[i].id, id) == 0)
            return &ids->items[i];
    return NULL;
}

void
transfer_ids_end(struct engine *engine, const char *id, bool is_open_again)
{
    struct transfer_ids *ids = &engine->transfer_ids;
    pthread_mutex_lock(&ids->lock);
    struct transfer_id *item = find(ids, id);
    if (item) {
        item->is_open_again = is_open_again;
        item->until_ms = clock_now_ms() + (is_open_again ? AGAIN_MS : ENDED_MS);
    }
    pthread_mutex_unlock(&ids->lock);
}

bool
transfer_ids_has(struct engine *engine, const char *id)
{
    struct transfer_ids *ids = &engine->transfer_ids;
    pthread_mutex_lock(&ids->lock);
    const struct transfer_id *item = find(ids, id);
    bool is_there = item && item->until_ms > clock_now_ms();
    pthread_mutex_unlock(&ids->lock);
    return is_there;
}
