/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of places: see places.h. */
#include "connections/router/places.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define SLOTS 4096
#define MAX_PLACE 64

struct known {
    char handle[BACKEND_HANDLE_SIZE];
    char place[MAX_PLACE];
};

struct places {
    pthread_mutex_t lock;
    struct known *known; /* by hash; SLOTS of them, or NULL */
};

struct places *
places_new(void)
{
    struct places *places = memory_zeroed(sizeof *places);
    pthread_mutex_init(&places->lock, NULL);
    return places;
}

void
places_free(struct places *places)
{
    if (!places)
        return;
    pthread_mutex_destroy(&places->lock);
    free(places->known);
    free(places);
}

/* With the lock held. */
static struct known *
slot_of(const struct places *places, const char *handle)
{
    return places->known ? &places->known[hash_text(handle) % SLOTS] : NULL;
}

struct connection *
places_find(struct places *places, const struct connection_set *set, const char *handle)
{
    char place[MAX_PLACE] = "";
    pthread_mutex_lock(&places->lock);
    const struct known *known = slot_of(places, handle);
    if (known && strcmp(known->handle, handle) == 0)
        memcpy(place, known->place, sizeof place);
    pthread_mutex_unlock(&places->lock);
    return place[0] ? connection_set_find_place(set, place) : NULL;
}

void
places_set(struct places *places, const char *handle, const char *place)
{
    if (strlen(handle) >= BACKEND_HANDLE_SIZE || strlen(place) >= MAX_PLACE)
        return;
    pthread_mutex_lock(&places->lock);
    if (!places->known)
        places->known = memory_zeroed(SLOTS * sizeof *places->known);
    struct known *known = &places->known[hash_text(handle) % SLOTS];
    snprintf(known->handle, sizeof known->handle, "%s", handle);
    snprintf(known->place, sizeof known->place, "%s", place);
    pthread_mutex_unlock(&places->lock);
}

void
places_forget(struct places *places, const char *handle)
{
    pthread_mutex_lock(&places->lock);
    struct known *known = slot_of(places, handle);
    if (known && strcmp(known->handle, handle) == 0)
        known->handle[0] = '\0';
    pthread_mutex_unlock(&places->lock);
}
