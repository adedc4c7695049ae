/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes garbage that no writer can still use: first the index objects lose the packs, then the
 * packs go, then the garbage object. Until the last step, writers see that the packs are garbage,
 * and the next prune does the rest.
 */
#include <string.h>

#include "repository/garbage.h"
#include "repository/index_drop.h"
#include "repository/prune_internal.h"

struct deleting {
    struct prune *prune;
    struct buffer objects; /* names of the garbage objects that are free */
    struct id_set packs;   /* what they name, without the rescued ones */
    bool has_writers;      /* that may use a pack that is lost, and do not know it */
    struct id_set lost;    /* packs that the index names, and nobody uses */
    struct buffer index;   /* packs that stay, for a new index object */
    uint32_t index_entries;
};

/* ---- what can be deleted ---- */

static struct error *
choose_garbage(struct deleting *deleting, const struct object_name *name)
{
    struct prune *prune = deleting->prune;
    struct id_set waiting = {0};
    bool is_free;
    struct error *error = garbage_is_free(prune->repository, name, &prune->own.name, &is_free);
    if (!error && is_free) {
        buffer_append(&deleting->objects, name->bytes, sizeof name->bytes);
        return garbage_load_one(prune->repository, name, &deleting->packs);
    }
    if (!error)
        error = garbage_load_one(prune->repository, name, &waiting);
    prune->request->packs_waiting += waiting.count;
    id_set_clear(&waiting);
    return error;
}

static struct error *
choose_all(struct deleting *deleting)
{
    struct prune *prune = deleting->prune;
    struct buffer names AUTO(buffer_clear) = {0};
    struct error *error = garbage_load(prune->repository, &prune->garbage, &names);
    for (size_t at = 0; at < names.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&names, at);
        error = choose_garbage(deleting, &name);
    }
    return error;
}

static struct error *
rescue_chunk(struct prune *prune, const struct location *location, void *context)
{
    struct deleting *deleting = context;
    if (id_set_has(&deleting->packs, location->pack.bytes)) {
        id_set_remove(&deleting->packs, location->pack.bytes);
        prune->request->packs_rescued++;
    }
    return NULL;
}

/*
 * Writers that have ended since the garbage was named may have left snapshots that use it. They
 * have ended, so all their snapshots are listed now.
 */
static struct error *
rescue(struct deleting *deleting)
{
    struct prune *prune = deleting->prune;
    struct error *error = prune_collect(prune);
    if (!error)
        error = prune_read_index(prune);
    return error ? error : prune_walk(prune, rescue_chunk, deleting);
}

/* ---- packs that are lost ---- */

static struct error *
note_writer(const struct writers_found *writer, void *context)
{
    struct deleting *deleting = context;
    const struct object_name *own = &deleting->prune->own.name;
    if (!writer->is_dead && memcmp(writer->name.bytes, own->bytes, sizeof own->bytes) != 0)
        deleting->has_writers = true;
    return NULL;
}

/*
 * The index loses what is to be deleted, and lost packs. It names those so that everybody sees what
 * is missing, until all that is in use of them has been stored anew.
 */
static struct error *
drop_from_index(struct deleting *deleting)
{
    struct prune *prune = deleting->prune;
    struct index_drop drop = {.repository = prune->repository, .own = &prune->own};
    for (size_t i = 0; i < deleting->packs.capacity; i++)
        if (deleting->packs.slots[i].is_used)
            id_set_add(&drop.packs, deleting->packs.slots[i].id);
    if (!deleting->has_writers)
        locations_lost(prune->locations, &drop.packs);
    struct error *error = index_drop_run(&drop);
    index_drop_clear(&drop);
    return error;
}

/* ---- the packs ---- */

static struct error *
delete_packs(struct deleting *deleting)
{
    struct repository_prune *request = deleting->prune->request;
    struct repository *repository = deleting->prune->repository;
    struct objects *objects = repository->objects;
    struct error *error = NULL;
    deleting->prune->total += deleting->packs.count;
    for (size_t i = 0; i < deleting->packs.capacity && !error; i++) {
        struct object_name name;
        uint64_t size = 0;
        if (!deleting->packs.slots[i].is_used)
            continue;
        memcpy(name.bytes, deleting->packs.slots[i].id, sizeof name.bytes);
        error = objects_size(objects, OBJECT_PACK, &name, &size);
        bool is_there = !error;
        error = error_forgive(error, CODE_NOT_FOUND);
        /* If others took us for dead, the next prune may have found that it is in use. */
        if (!error && is_there)
            error = writers_check(repository, &deleting->prune->own);
        if (!error && is_there)
            error = objects_delete(objects, OBJECT_PACK, &name);
        if (!error && is_there) {
            request->packs_deleted++;
            request->bytes_deleted += size;
        }
        if (!error)
            error = prune_report(deleting->prune);
    }
    return error;
}

static struct error *
remove_garbage(struct deleting *deleting)
{
    struct error *error = NULL;
    for (size_t at = 0; at < deleting->objects.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&deleting->objects, at);
        error = garbage_remove(deleting->prune->repository, &name);
    }
    return error;
}

/* Writers that begin from now on see which packs are lost. */
static struct error *
choose(struct deleting *deleting)
{
    struct error *error = choose_all(deleting);
    return error ? error : writers_list(deleting->prune->repository, note_writer, deleting);
}

struct error *
prune_delete(struct prune *prune)
{
    struct deleting deleting = {.prune = prune};
    struct error *error = choose(&deleting);
    if (!error && (deleting.objects.size || (prune->lost && !deleting.has_writers))) {
        error = rescue(&deleting);
        if (!error)
            error = drop_from_index(&deleting);
        if (!error)
            error = delete_packs(&deleting);
        if (!error)
            error = remove_garbage(&deleting);
    }
    buffer_clear(&deleting.objects);
    id_set_clear(&deleting.packs);
    return error;
}
