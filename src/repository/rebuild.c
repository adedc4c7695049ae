/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the index anew from the lists in the packs, for packs that no sound index names. Packs are
 * read whole, because only their names tell that all of their bytes are there. Of a damaged pack,
 * the chunks that can be opened are in the new index.
 *
 * Garbage is no exception: a snapshot may use it that was written since, and prune can tell only if
 * an index names the pack. Prune removes it from the index again before it deletes it.
 */
#include <string.h>

#include "base/memory.h"
#include "repository/id_set.h"
#include "repository/writers.h"

struct rebuilding {
    struct repository *repository;
    const struct repository_progress *progress;
    struct writers_own own;
    struct id_set known;   /* packs that need no entry */
    struct buffer damaged; /* names of damaged index objects */
    struct buffer pack, list, index, work;
    uint8_t *chunk; /* REPOSITORY_CHUNK_MAX; NULL until there is a damaged pack */
    uint32_t entries;
    uint64_t packs;
};

/* ---- what is known ---- */

static struct error *
note_index(const struct object_name *name, uint64_t size, void *context)
{
    struct rebuilding *rebuilding = context;
    size_t at = 0;
    bool found = true;
    (void)size;
    struct error *error = writers_refresh(rebuilding->repository, &rebuilding->own);
    if (!error)
        error = repository_load(rebuilding->repository, OBJECT_INDEX, name, &rebuilding->index);
    while (!error && found) {
        struct index_pack pack;
        error = index_next(&rebuilding->index, &at, &pack, &found);
        if (!error && found)
            id_set_add(&rebuilding->known, pack.name.bytes);
    }
    rebuilding->index.size = 0;
    if (error && error->code == CODE_DATA_LOSS) {
        buffer_append(&rebuilding->damaged, name->bytes, sizeof name->bytes);
        error_free(error);
        return NULL;
    }
    return error;
}

/* ---- adding ---- */

static struct error *
put_index(struct rebuilding *rebuilding)
{
    struct object_name name;
    if (!rebuilding->index.size)
        return NULL;
    struct error *error = writers_check(rebuilding->repository, &rebuilding->own);
    if (!error)
        error = repository_put(rebuilding->repository, OBJECT_INDEX, rebuilding->index.bytes,
                               rebuilding->index.size, &name);
    rebuilding->index.size = 0;
    rebuilding->entries = 0;
    return error;
}

/* Leaves out of the list what cannot be opened. */
static void
drop_damaged_chunks(struct rebuilding *rebuilding, const struct sealing_key *key)
{
    struct buffer *list = &rebuilding->list;
    size_t kept = 0;
    if (!rebuilding->chunk)
        rebuilding->chunk = memory_zeroed(REPOSITORY_CHUNK_MAX);
    for (size_t at = 0; at < list->size; at += PACK_ENTRY_BYTES) {
        struct pack_entry entry;
        struct error *bad AUTO(error_cleanup) = NULL;
        if (!pack_entry_read(list->bytes + at, (uint32_t)rebuilding->pack.size, &entry))
            continue;
        bad = pack_open_chunk(rebuilding->repository->sealing, key, &entry,
                              rebuilding->pack.bytes + entry.offset, &rebuilding->work,
                              rebuilding->chunk);
        if (bad)
            continue;
        memmove(list->bytes + kept, list->bytes + at, PACK_ENTRY_BYTES);
        kept += PACK_ENTRY_BYTES;
    }
    list->size = kept;
}

static void
keep_sound_chunks(struct rebuilding *rebuilding, const struct sealing_key *key,
                  const struct error *damage)
{
    const struct log *log = rebuilding->repository->log;
    size_t all = rebuilding->list.size / PACK_ENTRY_BYTES;
    drop_damaged_chunks(rebuilding, key);
    if (log)
        log_warn(log, "a pack is damaged: its sound chunks are in the index",
                 LOG_TEXT("error", damage->message),
                 LOG_NUMBER("sound", rebuilding->list.size / PACK_ENTRY_BYTES),
                 LOG_NUMBER("chunks", all));
}

static struct error *
read_pack(struct rebuilding *rebuilding, const struct object_name *name, struct index_pack *out)
{
    struct sealing_key key;
    struct pack_entry entry;
    struct error *damage AUTO(error_cleanup) = NULL;
    struct error *error =
        repository_load_pack(rebuilding->repository, name, &rebuilding->pack, &damage);
    if (!error)
        error = pack_read_list(rebuilding->repository->sealing, rebuilding->pack.bytes,
                               rebuilding->pack.size, &key, &rebuilding->list);
    if (error)
        return error;
    if (damage)
        keep_sound_chunks(rebuilding, &key, damage);
    *out = (struct index_pack){.name = *name,
                               .size = (uint32_t)rebuilding->pack.size,
                               .count = (uint32_t)(rebuilding->list.size / PACK_ENTRY_BYTES),
                               .entries = rebuilding->list.bytes};
    memcpy(out->salt, key.salt, sizeof out->salt);
    for (uint32_t i = 0; i < out->count; i++)
        if (!pack_entry_read(out->entries + (size_t)i * PACK_ENTRY_BYTES, out->size, &entry))
            return error_new(CODE_DATA_LOSS, "its list has an entry that cannot be");
    return NULL;
}

static struct error *
add_pack(const struct object_name *name, uint64_t size, void *context)
{
    struct rebuilding *rebuilding = context;
    const struct log *log = rebuilding->repository->log;
    struct index_pack pack;
    (void)size;
    if (id_set_has(&rebuilding->known, name->bytes))
        return NULL;
    struct error *error = writers_refresh(rebuilding->repository, &rebuilding->own);
    if (!error)
        error = read_pack(rebuilding, name, &pack);
    if (error && (error->code == CODE_DATA_LOSS || error->code == CODE_NOT_FOUND)) {
        if (log)
            log_warn(log, "a pack without a sound list is left out",
                     LOG_TEXT("error", error->message));
        error_free(error);
        return NULL;
    }
    if (error)
        return error;
    index_append(&rebuilding->index, &pack);
    rebuilding->entries += pack.count;
    rebuilding->packs++;
    if (rebuilding->entries >= INDEX_ENTRIES)
        error = put_index(rebuilding);
    return error ? error
                 : repository_report(rebuilding->progress, rebuilding->packs, rebuilding->packs);
}

/* The packs of damaged index objects have their entries in new ones now. */
static struct error *
delete_damaged(struct rebuilding *rebuilding)
{
    struct error *error = NULL;
    for (size_t at = 0; at < rebuilding->damaged.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&rebuilding->damaged, at);
        error = objects_delete(rebuilding->repository->objects, OBJECT_INDEX, &name);
    }
    return error;
}

/* ---- all of it ---- */

static struct error *
run(struct rebuilding *rebuilding)
{
    struct repository *repository = rebuilding->repository;
    struct error *error = objects_list(repository->objects, OBJECT_INDEX, note_index, rebuilding);
    if (!error)
        error = objects_list(repository->objects, OBJECT_PACK, add_pack, rebuilding);
    if (!error)
        error = put_index(rebuilding);
    if (!error)
        error = delete_damaged(rebuilding);
    return error ? error : repository_sync(repository);
}

struct error *
repository_rebuild(struct repository *repository, const struct repository_progress *progress,
                   uint64_t *packs)
{
    struct rebuilding rebuilding = {.repository = repository, .progress = progress};
    struct error *error = writers_begin_alone(repository, &rebuilding.own);
    if (!error)
        error = run(&rebuilding);
    error = writers_end_alone(repository, &rebuilding.own, error);
    *packs = rebuilding.packs;
    id_set_clear(&rebuilding.known);
    buffer_clear(&rebuilding.damaged);
    buffer_clear(&rebuilding.pack);
    buffer_clear(&rebuilding.list);
    buffer_clear(&rebuilding.index);
    buffer_clear(&rebuilding.work);
    memory_cleanup(&rebuilding.chunk);
    return error_wrap(error, "rebuild the index");
}
