/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees the space of what no snapshot refers to: see repository.h, and docs/repository.md for why
 * this is safe beside writers and at every power failure.
 */
#include <string.h>

#include "repository/bytes.h"
#include "repository/garbage.h"
#include "repository/prune_internal.h"

#define MEMORY_KIB 1024u
#define LEAST_LIVE_PERCENT 50u
/* So many packs below this size are made one. */
#define SMALL_BYTES (1u << 20)
#define SMALL_PACKS 64u

/* ---- which packs are garbage ---- */

static struct error *
count_chunk(struct prune *prune, const struct location *location, void *context)
{
    uint8_t value[8] = {0};
    bool found;
    (void)context;
    struct error *error = cache_db_get(prune->packs, location->pack.bytes, OBJECT_NAME_BYTES, value,
                                       sizeof value, &found);
    if (error)
        return error;
    uint64_t bytes = location->entry.stored + PACK_ENTRY_BYTES;
    bytes_set64(value, (found ? bytes_get64(value) : 0) + bytes);
    return cache_db_put(prune->packs, location->pack.bytes, OBJECT_NAME_BYTES, value, sizeof value);
}

struct choosing {
    struct prune *prune;
    struct buffer garbage; /* names of packs */
    struct buffer small;   /* names of small packs that would stay */
};

static struct error *
choose_pack(const struct object_name *name, uint64_t size, void *context)
{
    struct choosing *choosing = context;
    struct prune *prune = choosing->prune;
    unsigned least = prune->request->least_live_percent;
    uint8_t value[8];
    bool found;
    if (id_set_has(&prune->garbage, name->bytes))
        return NULL;
    struct error *error =
        cache_db_get(prune->packs, name->bytes, OBJECT_NAME_BYTES, value, sizeof value, &found);
    if (error)
        return error;
    bool is_sparse =
        found && bytes_get64(value) * 100 < size * (least ? least : LEAST_LIVE_PERCENT);
    if (is_sparse)
        id_set_add(&prune->sparse, name->bytes);
    if (is_sparse || !found)
        buffer_append(&choosing->garbage, name->bytes, sizeof name->bytes);
    else if (size < SMALL_BYTES)
        buffer_append(&choosing->small, name->bytes, sizeof name->bytes);
    return NULL;
}

/* Many small exports leave many small packs. */
static void
merge_small(struct choosing *choosing)
{
    const struct buffer *small = &choosing->small;
    if (small->size < (size_t)SMALL_PACKS * OBJECT_NAME_BYTES)
        return;
    for (size_t at = 0; at < small->size; at += OBJECT_NAME_BYTES)
        id_set_add(&choosing->prune->sparse, small->bytes + at);
    buffer_append(&choosing->garbage, small->bytes, small->size);
}

/* What becomes garbage is named only when the copies of its chunks in use are durable. */
static struct error *
mark(struct prune *prune)
{
    struct repository *repository = prune->repository;
    struct choosing choosing = {.prune = prune};
    struct error *error = prune_read_index(prune);
    if (!error)
        error = prune_walk(prune, count_chunk, NULL);
    if (!error)
        error = objects_list(repository->objects, OBJECT_PACK, choose_pack, &choosing);
    merge_small(&choosing);
    if (!error)
        error = prune_rewrite(prune);
    if (!error)
        error = garbage_put(repository, &choosing.garbage);
    buffer_clear(&choosing.garbage);
    buffer_clear(&choosing.small);
    return error;
}

/* ---- all of it ---- */

static struct error *
expect_snapshot(const struct object_name *name, uint64_t size, void *context)
{
    struct prune *prune = context;
    (void)name, (void)size;
    prune->total++;
    return NULL;
}

static struct error *
run(struct prune *prune)
{
    struct repository *repository = prune->repository;
    struct error *error = live_open(repository, &prune->live);
    if (!error)
        error = cache_db_open_temporary(repository_work_directory(repository), MEMORY_KIB,
                                        &prune->packs);
    if (!error)
        error = garbage_drop_damaged(repository);
    if (!error)
        error = garbage_load(repository, &prune->garbage, NULL);
    if (!error)
        error = objects_list(repository->objects, OBJECT_SNAPSHOT, expect_snapshot, prune);
    if (!error)
        error = prune_collect(prune);
    if (!error)
        error = mark(prune);
    return error ? error : prune_delete(prune);
}

struct error *
repository_prune(struct repository *repository, struct repository_prune *request)
{
    struct prune prune = {.repository = repository, .request = request};
    struct error *error = writers_begin_alone(repository, &prune.own);
    if (!error)
        error = run(&prune);
    error = writers_end_alone(repository, &prune.own, error);
    live_clear(&prune.live);
    id_set_clear(&prune.garbage);
    id_set_clear(&prune.sparse);
    locations_close(prune.locations);
    cache_db_close(prune.packs);
    return error_wrap(error, "prune the repository");
}
