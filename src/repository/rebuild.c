/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the index anew from the lists in the packs, for packs that no sound index names. Packs are
 * read whole, because only their names tell that all of their bytes are there.
 *
 * The chunks of a damaged pack that can be opened are stored in a new one. The index then says that
 * the damaged one is lost, so that exports do not count on it; prune deletes it. With all data, the
 * packs that an index names are read, too.
 *
 * Garbage is no exception: a snapshot may use it that was written since, and prune can tell only if
 * an index names the pack. Prune removes it from the index again before it deletes it.
 */
#include <string.h>

#include "base/memory.h"
#include "repository/index_drop.h"
#include "repository/writer_internal.h"

struct rebuilding {
    struct repository *repository;
    const struct repository_progress *progress;
    struct writers_own own;
    struct id_set known;   /* packs that need no entry */
    struct buffer damaged; /* names of damaged index objects */
    struct id_set read;    /* packs that an index names, and that were read */
    struct index_drop drop;
    struct repository_writer
        *writer; /* for sound chunks of damaged packs; NULL until there is one */
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

/* ---- packs that are damaged ---- */

static struct error *
open_writer(struct rebuilding *rebuilding)
{
    if (rebuilding->writer)
        return NULL;
    rebuilding->chunk = memory_zeroed(REPOSITORY_CHUNK_MAX);
    return writer_open(rebuilding->repository, WRITERS_EXPORT, true, &rebuilding->writer);
}

/* What cannot be opened is lost. */
static struct error *
copy_chunk(struct rebuilding *rebuilding, const struct sealing_key *key,
           const struct pack_entry *entry, uint32_t *sound)
{
    struct repository_id id;
    struct error *bad AUTO(error_cleanup) = pack_open_chunk(
        rebuilding->repository->sealing, key, entry, rebuilding->pack.bytes + entry->offset,
        &rebuilding->work, rebuilding->chunk);
    if (bad)
        return NULL;
    ++*sound;
    return repository_writer_put(rebuilding->writer, rebuilding->chunk, entry->raw, &id);
}

/* The pack's bytes are read, and they are not all good; its list is. */
static struct error *
salvage(struct rebuilding *rebuilding, const struct index_pack *pack, const struct error *damage)
{
    const struct log *log = rebuilding->repository->log;
    struct sealing_key key;
    uint32_t sound = 0;
    struct error *error = open_writer(rebuilding);
    if (!error)
        error = sealing_derive(rebuilding->repository->sealing, OBJECT_PACK, pack->salt, &key);
    for (uint32_t i = 0; i < pack->count && !error; i++) {
        struct pack_entry entry;
        if (pack_entry_read(pack->entries + (size_t)i * PACK_ENTRY_BYTES,
                            (uint32_t)rebuilding->pack.size, &entry))
            error = copy_chunk(rebuilding, &key, &entry, &sound);
        if (!error)
            error = repository_check_cancel(rebuilding->progress);
    }
    if (!error && log)
        log_warn(log, "a pack is damaged: its sound chunks are stored in another one",
                 LOG_TEXT("error", damage->message), LOG_NUMBER("sound", sound),
                 LOG_NUMBER("chunks", pack->count));
    return error;
}

/* ---- packs that an index names ---- */

static struct error *
check_pack(struct rebuilding *rebuilding, const struct index_pack *pack)
{
    struct error *damage AUTO(error_cleanup) = NULL;
    if (!pack->size || !id_set_add(&rebuilding->read, pack->name.bytes))
        return NULL;
    struct error *error = writers_refresh(rebuilding->repository, &rebuilding->own);
    if (!error)
        error =
            repository_load_pack(rebuilding->repository, &pack->name, &rebuilding->pack, &damage);
    /* One that is gone, or has another size, counts as lost already. */
    if (error || !damage)
        return error_forgive(error_forgive(error, CODE_NOT_FOUND), CODE_DATA_LOSS);
    error = salvage(rebuilding, pack, damage);
    id_set_add(&rebuilding->drop.packs, pack->name.bytes);
    rebuilding->packs++;
    return error;
}

static struct error *
check_index(struct rebuilding *rebuilding, const struct object_name *name)
{
    struct buffer index AUTO(buffer_clear) = {0};
    size_t at = 0;
    bool found = true;
    struct error *error = repository_load(rebuilding->repository, OBJECT_INDEX, name, &index);
    while (!error && found) {
        struct index_pack pack;
        error = index_next(&index, &at, &pack, &found);
        if (!error && found)
            error = check_pack(rebuilding, &pack);
        if (!error)
            error = repository_report(rebuilding->progress, rebuilding->packs, rebuilding->packs);
    }
    return error;
}

/* The copies of sound chunks are durable before the index says that their pack is lost. */
static struct error *
check_all(struct rebuilding *rebuilding)
{
    struct buffer names AUTO(buffer_clear) = {0};
    struct error *error = objects_list_names(rebuilding->repository->objects, OBJECT_INDEX, &names);
    for (size_t at = 0; at < names.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&names, at);
        error = check_index(rebuilding, &name);
    }
    if (!error && rebuilding->writer)
        error = repository_writer_flush(rebuilding->writer);
    if (!error && rebuilding->drop.packs.count)
        error = index_drop_run(&rebuilding->drop);
    return error;
}

/* ---- packs that no index names ---- */

/* Copies of sound chunks first. */
static struct error *
put_index(struct rebuilding *rebuilding)
{
    struct object_name name;
    if (!rebuilding->index.size)
        return NULL;
    struct error *error = writers_check(rebuilding->repository, &rebuilding->own);
    if (!error && rebuilding->writer)
        error = repository_writer_flush(rebuilding->writer);
    if (!error)
        error = repository_put(rebuilding->repository, OBJECT_INDEX, rebuilding->index.bytes,
                               rebuilding->index.size, &name);
    rebuilding->index.size = 0;
    rebuilding->entries = 0;
    return error;
}

static struct error *
check_list(const struct index_pack *pack)
{
    struct pack_entry entry;
    for (uint32_t i = 0; i < pack->count; i++)
        if (!pack_entry_read(pack->entries + (size_t)i * PACK_ENTRY_BYTES, pack->size, &entry))
            return error_new(CODE_DATA_LOSS, "its list has an entry that cannot be");
    return NULL;
}

static struct error *
read_pack(struct rebuilding *rebuilding, const struct object_name *name, struct index_pack *out)
{
    struct sealing_key key;
    struct error *damage AUTO(error_cleanup) = NULL;
    struct error *error =
        repository_load_pack(rebuilding->repository, name, &rebuilding->pack, &damage);
    if (!error)
        error = pack_read_list(rebuilding->repository->sealing, rebuilding->pack.bytes,
                               rebuilding->pack.size, &key, &rebuilding->list);
    if (error)
        return error;
    *out = (struct index_pack){.name = *name,
                               .size = (uint32_t)rebuilding->pack.size,
                               .count = (uint32_t)(rebuilding->list.size / PACK_ENTRY_BYTES),
                               .entries = rebuilding->list.bytes};
    memcpy(out->salt, key.salt, sizeof out->salt);
    if (!damage)
        return check_list(out);
    error = salvage(rebuilding, out, damage);
    out->size = out->count = 0; /* it is lost */
    return error;
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
run(struct rebuilding *rebuilding, enum repository_level level)
{
    struct repository *repository = rebuilding->repository;
    struct error *error = objects_list(repository->objects, OBJECT_INDEX, note_index, rebuilding);
    if (!error)
        error = objects_list(repository->objects, OBJECT_PACK, add_pack, rebuilding);
    if (!error)
        error = put_index(rebuilding);
    if (!error)
        error = delete_damaged(rebuilding);
    if (!error && level == REPOSITORY_DATA)
        error = check_all(rebuilding);
    return error ? error : repository_sync(repository);
}

static void
clear(struct rebuilding *rebuilding)
{
    repository_writer_close(rebuilding->writer);
    index_drop_clear(&rebuilding->drop);
    id_set_clear(&rebuilding->known);
    id_set_clear(&rebuilding->read);
    buffer_clear(&rebuilding->damaged);
    buffer_clear(&rebuilding->pack);
    buffer_clear(&rebuilding->list);
    buffer_clear(&rebuilding->index);
    buffer_clear(&rebuilding->work);
    memory_cleanup(&rebuilding->chunk);
}

struct error *
repository_rebuild(struct repository *repository, enum repository_level level,
                   const struct repository_progress *progress, uint64_t *packs)
{
    struct rebuilding rebuilding = {.repository = repository, .progress = progress};
    rebuilding.drop =
        (struct index_drop){.repository = repository, .own = &rebuilding.own, .leaves_marks = true};
    struct error *error = writers_begin_alone(repository, &rebuilding.own);
    if (!error)
        error = run(&rebuilding, level);
    error = writers_end_alone(repository, &rebuilding.own, error);
    *packs = rebuilding.packs;
    clear(&rebuilding);
    return error_wrap(error, "rebuild the index");
}
