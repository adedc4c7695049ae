/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the chunks in use of sparse packs into new packs. The old packs are read whole. */
#include <string.h>

#include "base/memory.h"
#include "repository/prune_internal.h"
#include "repository/writer_internal.h"

struct rewriting {
    struct prune *prune;
    struct repository_writer *writer;
    struct buffer pack, list, work;
    uint8_t *chunk; /* REPOSITORY_CHUNK_MAX */
};

/* Only the copy that prune_walk found counts: the chunk may be in other packs, too. */
static struct error *
is_wanted(struct prune *prune, const struct object_name *pack, const struct pack_entry *entry,
          bool *is)
{
    struct location location;
    struct error *error = live_has(&prune->live, &entry->id, is);
    if (error || !*is)
        return error;
    error = locations_find(prune->locations, &entry->id, &location, is);
    *is = *is && !memcmp(location.pack.bytes, pack->bytes, sizeof pack->bytes) &&
          location.entry.offset == entry->offset;
    return error;
}

static struct error *
copy_chunk(struct rewriting *rewriting, const struct sealing_key *key,
           const struct pack_entry *entry)
{
    const struct sealing *sealing = rewriting->prune->repository->sealing;
    struct repository_id id;
    struct error *error =
        pack_open_chunk(sealing, key, entry, rewriting->pack.bytes + entry->offset,
                        &rewriting->work, rewriting->chunk);
    if (!error)
        error = repository_writer_put(rewriting->writer, rewriting->chunk, entry->raw, &id);
    return error;
}

static struct error *
copy_chunks(struct rewriting *rewriting, const struct object_name *name,
            const struct sealing_key *key)
{
    struct error *error = NULL;
    for (size_t at = 0; at < rewriting->list.size && !error; at += PACK_ENTRY_BYTES) {
        struct pack_entry entry;
        bool is = false;
        if (!pack_entry_read(rewriting->list.bytes + at, (uint32_t)rewriting->pack.size, &entry))
            return error_new(CODE_DATA_LOSS, "its list has an entry that cannot be");
        error = is_wanted(rewriting->prune, name, &entry, &is);
        if (!error && is)
            error = copy_chunk(rewriting, key, &entry);
    }
    return error;
}

static struct error *
rewrite_pack(struct rewriting *rewriting, const struct object_name *name)
{
    struct repository *repository = rewriting->prune->repository;
    struct sealing_key key;
    /* Each chunk is checked when it is copied: damage in the others does no harm. */
    struct error *damage AUTO(error_cleanup) = NULL;
    struct error *error = repository_load_pack(repository, name, &rewriting->pack, &damage);
    if (!error)
        error = pack_read_list(repository->sealing, rewriting->pack.bytes, rewriting->pack.size,
                               &key, &rewriting->list);
    if (!error)
        error = copy_chunks(rewriting, name, &key);
    if (error) {
        char text[OBJECT_KEY_BYTES];
        object_key_print(OBJECT_PACK, name, text);
        return error_wrap(error, "rewrite the object %s", text);
    }
    rewriting->prune->request->packs_rewritten++;
    return prune_report(rewriting->prune);
}

static struct error *
rewrite_all(struct rewriting *rewriting)
{
    const struct id_set *sparse = &rewriting->prune->sparse;
    struct error *error = NULL;
    for (size_t i = 0; i < sparse->capacity && !error; i++) {
        struct object_name name;
        if (!sparse->slots[i].is_used)
            continue;
        memcpy(name.bytes, sparse->slots[i].id, sizeof name.bytes);
        error = rewrite_pack(rewriting, &name);
    }
    return error ? error : repository_writer_flush(rewriting->writer);
}

struct error *
prune_rewrite(struct prune *prune)
{
    struct rewriting rewriting = {.prune = prune};
    if (!prune->sparse.count)
        return NULL;
    prune->total += prune->sparse.count;
    struct error *error = writer_open(prune->repository, WRITERS_EXPORT, true, &rewriting.writer);
    rewriting.chunk = memory_zeroed(REPOSITORY_CHUNK_MAX);
    if (!error)
        error = rewrite_all(&rewriting);
    repository_writer_close(rewriting.writer);
    memory_cleanup(&rewriting.chunk);
    buffer_clear(&rewriting.pack);
    buffer_clear(&rewriting.list);
    buffer_clear(&rewriting.work);
    return error;
}
