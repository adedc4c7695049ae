/* SPDX-License-Identifier: Apache-2.0 */
/* Reading chunks: see repository.h. */
#include <string.h>

#include "repository/repository_internal.h"

static struct error *
find(struct repository *repository, const struct repository_id *id, struct location *location)
{
    bool found;
    struct error *error = locations_find(repository->locations, id, location, &found);
    if (!error && !found) {
        /* It may be new, or prune has moved it. */
        error = repository_sync(repository);
        if (!error)
            error = locations_find(repository->locations, id, location, &found);
    }
    if (!error && !found) {
        char text[REPOSITORY_NAME_BYTES];
        repository_id_print(id, text);
        error = repository->has_damaged_index
                    ? error_new(CODE_DATA_LOSS,
                                "no index has the chunk %s, and an index is damaged: run `skycap "
                                "repository rebuild`",
                                text)
                    : error_new(CODE_NOT_FOUND, "the repository has no chunk %s", text);
    }
    return error;
}

static struct error *
read_sealed(struct repository *repository, const struct location *location, struct buffer *sealed)
{
    size_t size = location->entry.stored;
    sealed->size = 0;
    return objects_get(repository->objects, OBJECT_PACK, &location->pack, location->entry.offset,
                       buffer_reserve(sealed, size), size);
}

static bool
is_gone(const struct error *error)
{
    return error && (error->code == CODE_NOT_FOUND || error->code == CODE_DATA_LOSS);
}

/* The pack is not there, or too short. Takes the error. */
static struct error *
read_elsewhere(struct repository *repository, const struct repository_id *id,
               struct location *location, struct buffer *sealed, struct error *error)
{
    size_t lost;
    error_free(error);
    /* Prune has deleted the pack, and its chunks in use are in another one. */
    error = repository_sync(repository);
    if (!error)
        error = find(repository, id, location);
    if (!error)
        error = read_sealed(repository, location, sealed);
    if (!is_gone(error) || location->is_lost)
        return error;
    /* The pack is lost: an export may have stored the chunk anew since. */
    error_free(error);
    error = repository_sync_packs(repository, NULL, &lost);
    if (!error)
        error = find(repository, id, location);
    return error ? error : read_sealed(repository, location, sealed);
}

struct error *
repository_read(struct repository *repository, const struct repository_id *id, void *bytes,
                size_t *size)
{
    struct buffer sealed AUTO(buffer_clear) = {0}, work AUTO(buffer_clear) = {0};
    struct location location;
    struct sealing_key key;
    struct error *error = find(repository, id, &location);
    if (error)
        return error;
    error = read_sealed(repository, &location, &sealed);
    if (is_gone(error))
        error = read_elsewhere(repository, id, &location, &sealed, error);
    if (error && error->code == CODE_NOT_FOUND)
        error->code = CODE_DATA_LOSS;
    if (!error)
        error = sealing_derive(repository->sealing, OBJECT_PACK, location.salt, &key);
    if (error)
        return error;
    *size = location.entry.raw;
    error = pack_open_chunk(repository->sealing, &key, &location.entry, sealed.bytes, &work, bytes);
    char text[OBJECT_KEY_BYTES];
    object_key_print(OBJECT_PACK, &location.pack, text);
    return error_wrap(error, "the object %s", text);
}
