/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each chunk is: a local copy of all index objects, in a file that can be lost. Memory does
 * not grow with the number of chunks. Safe from any thread.
 */
#ifndef REPOSITORY_LOCATIONS_H
#define REPOSITORY_LOCATIONS_H

#include "repository/id_set.h"
#include "repository/index_object.h"

struct locations;

struct location {
    struct pack_entry entry;
    struct object_name pack;
    uint8_t salt[32]; /* of the pack */
    uint32_t size;    /* of the pack */
    bool is_lost;     /* the pack was not there when locations_sync_packs looked */
};

/*
 * The file in `directory` (NULL: a temporary one) for the repository of this id. If another process
 * uses it, this one makes a temporary one.
 */
MUST_CHECK struct error *locations_open(const char *directory, const char *repository_id,
                                        struct locations **out);
MUST_CHECK struct error *locations_open_temporary(const char *directory, struct locations **out);
/* NULL is fine. */
void locations_close(struct locations *locations);

MUST_CHECK struct error *locations_find(struct locations *locations, const struct repository_id *id,
                                        struct location *out, bool *found);

/* Adds the contents of an index object. A chunk that was known is then found in this pack. */
MUST_CHECK struct error *locations_add(struct locations *locations, const struct object_name *name,
                                       const struct buffer *index);

/* What the repository gives to locations_sync. */
struct locations_source {
    struct objects *objects;
    struct error *(*load)(void *context, const struct object_name *name, struct buffer *index);
    /* Takes an error of `load` and lets the work go on, or gives it back. NULL: none is taken. */
    struct error *(*tolerate)(void *context, const struct object_name *name, struct error *error);
    void *context;
    /* Packs whose chunks are found elsewhere if they are elsewhere too. May be NULL. */
    const struct id_set *garbage;
};

/* Reads the index objects that are new; if one has been removed, all of them. */
MUST_CHECK struct error *locations_sync(struct locations *locations,
                                        const struct locations_source *source);

/*
 * The same, and looks which packs that the index names are not there with their size. A chunk of
 * such a pack is found elsewhere if it is elsewhere, too. `*lost`: how many there are that are no
 * garbage. Memory: a bit for each pack, and the names of those that are lost.
 */
MUST_CHECK struct error *locations_sync_packs(struct locations *locations,
                                              const struct locations_source *source, size_t *lost);
/* Adds the names of the lost packs. */
void locations_lost(struct locations *locations, struct id_set *out);

/* The number of chunks, and their bytes before compression. */
MUST_CHECK struct error *locations_count(struct locations *locations, uint64_t *chunks,
                                         uint64_t *bytes);

#endif
