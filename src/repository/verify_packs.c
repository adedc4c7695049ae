/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the packs that the index names are there, have the right size, and are sound. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "repository/bytes.h"
#include "repository/id_set.h"
#include "repository/verify_internal.h"

#define INDEX_TRIES 5u /* while prunes change the index */

struct checking {
    struct verify *verify;
    struct buffer pack, list, work;
    uint8_t *chunk; /* REPOSITORY_CHUNK_MAX */
};

static struct error *
note_bad_pack(struct verify *verify, const struct object_name *name)
{
    uint8_t key[1 + OBJECT_NAME_BYTES] = {'b'};
    memcpy(key + 1, name->bytes, sizeof name->bytes);
    return cache_db_put(verify->facts, key, sizeof key, "", 0);
}

static struct error *
note_bad_chunk(struct verify *verify, const struct object_name *name, uint32_t offset)
{
    uint8_t key[1 + OBJECT_NAME_BYTES + 4] = {'c'};
    memcpy(key + 1, name->bytes, sizeof name->bytes);
    bytes_set32(key + 1 + OBJECT_NAME_BYTES, offset);
    return cache_db_put(verify->facts, key, sizeof key, "", 0);
}

/*
 * A pack that is not there may have been pruned since the index was read. That is found out at the
 * end, for all of them.
 */
static struct error *
note_missing(struct verify *verify, const struct object_name *name)
{
    uint8_t key[1 + OBJECT_NAME_BYTES] = {'m'};
    memcpy(key + 1, name->bytes, sizeof name->bytes);
    return cache_db_put(verify->facts, key, sizeof key, "", 0);
}

/* ---- sizes ---- */

static struct error *
check_size(const struct object_name *name, uint64_t size, void *context)
{
    struct verify *verify = context;
    uint8_t key[1 + OBJECT_NAME_BYTES] = {'p'}, value[5];
    char text[96];
    bool found;
    memcpy(key + 1, name->bytes, sizeof name->bytes);
    struct error *error = cache_db_get(verify->facts, key, sizeof key, value, sizeof value, &found);
    if (error || !found)
        return error;
    value[4] = 1;
    error = cache_db_put(verify->facts, key, sizeof key, value, sizeof value);
    if (error || size == bytes_get32(value))
        return error;
    if (bytes_get32(value))
        snprintf(text, sizeof text, "it has %llu bytes; the index says %u",
                 (unsigned long long)size, bytes_get32(value));
    else
        snprintf(text, sizeof text, "it was damaged: `skycap snapshot prune` deletes it");
    verify_report(verify, OBJECT_PACK, name, NULL, text);
    return note_bad_pack(verify, name);
}

/* ---- data ---- */

static struct error *
check_chunks(struct checking *checking, const struct object_name *name,
             const struct sealing_key *key)
{
    struct verify *verify = checking->verify;
    struct error *error = NULL;
    for (size_t at = 0; at < checking->list.size && !error; at += PACK_ENTRY_BYTES) {
        struct pack_entry entry;
        if (!pack_entry_read(checking->list.bytes + at, (uint32_t)checking->pack.size, &entry))
            return error_new(CODE_DATA_LOSS, "its list has an entry that cannot be");
        struct error *bad =
            pack_open_chunk(verify->repository->sealing, key, &entry,
                            checking->pack.bytes + entry.offset, &checking->work, checking->chunk);
        if (bad)
            error = note_bad_chunk(verify, name, entry.offset);
        if (!error)
            error = verify_take(verify, OBJECT_PACK, name, STEAL(bad));
        error_free(bad);
    }
    return error;
}

/* A pack whose name or list is wrong may still have sound chunks, and the other way round. */
static struct error *
check_data(struct checking *checking, const struct object_name *name)
{
    struct verify *verify = checking->verify;
    struct repository *repository = verify->repository;
    struct sealing_key key;
    struct error *error = repository_load_bytes(repository, OBJECT_PACK, name, &checking->pack);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return note_missing(verify, name);
    }
    bool is_there = !error || error->code == CODE_DATA_LOSS;
    error = verify_take(verify, OBJECT_PACK, name, error);
    if (error || !is_there)
        return error;
    verify->request->bytes += checking->pack.size;
    error = pack_read_list(repository->sealing, checking->pack.bytes, checking->pack.size, &key,
                           &checking->list);
    if (!error)
        return verify_take(verify, OBJECT_PACK, name, check_chunks(checking, name, &key));
    /* Without its list, nobody can tell which chunks are sound. */
    struct error *noted = note_bad_pack(verify, name);
    error = verify_take(verify, OBJECT_PACK, name, error);
    if (error)
        error_free(noted);
    return error ? error : noted;
}

static struct error *
check_pack(struct checking *checking, const struct cache_db_walk *walk)
{
    struct verify *verify = checking->verify;
    struct object_name name;
    struct error *error = NULL;
    memcpy(name.bytes, walk->key.bytes + 1, sizeof name.bytes);
    if (!walk->value.bytes[4])
        error = note_missing(verify, &name);
    else if (verify->request->level == REPOSITORY_DATA)
        error = check_data(checking, &name);
    return error ? error : verify_count(verify);
}

/* ---- missing ones ---- */

struct naming {
    struct repository *repository;
    struct id_set packs; /* that the index names now */
    bool has_changed;    /* while it was read */
    struct buffer index;
};

static struct error *
take_names(const struct object_name *name, uint64_t size, void *context)
{
    struct naming *naming = context;
    size_t at = 0;
    bool found = true;
    (void)size;
    struct error *error = repository_load(naming->repository, OBJECT_INDEX, name, &naming->index);
    naming->has_changed |= error && error->code == CODE_NOT_FOUND;
    while (!error && found) {
        struct index_pack pack;
        error = index_next(&naming->index, &at, &pack, &found);
        if (!error && found)
            id_set_add(&naming->packs, pack.name.bytes);
    }
    /* Damage is reported elsewhere. */
    return error_forgive(error_forgive(error, CODE_NOT_FOUND), CODE_DATA_LOSS);
}

static struct error *
read_names(struct naming *naming)
{
    struct error *error = NULL;
    unsigned tries = 0;
    do {
        naming->has_changed = false;
        id_set_clear(&naming->packs);
        error = objects_list(naming->repository->objects, OBJECT_INDEX, take_names, naming);
    } while (!error && naming->has_changed && ++tries < INDEX_TRIES);
    return error;
}

static struct error *
report_missing(struct verify *verify)
{
    struct naming naming = {.repository = verify->repository};
    struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
    struct error *error = NULL;
    bool is_read = false;
    buffer_append_byte(&walk.key, 'm');
    while (!error && !(error = cache_db_next(verify->facts, &walk)) && walk.found &&
           walk.key.bytes[0] == 'm') {
        struct object_name name;
        memcpy(name.bytes, walk.key.bytes + 1, sizeof name.bytes);
        if (!is_read)
            error = read_names(&naming);
        is_read = true;
        if (error || !id_set_has(&naming.packs, name.bytes))
            continue;
        verify_report(verify, OBJECT_PACK, &name, NULL, "it is missing");
        error = note_bad_pack(verify, &name);
    }
    id_set_clear(&naming.packs);
    buffer_clear(&naming.index);
    return error;
}

struct error *
verify_packs(struct verify *verify)
{
    struct checking checking = {.verify = verify};
    struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
    struct error *error =
        objects_list(verify->repository->objects, OBJECT_PACK, check_size, verify);
    checking.chunk = memory_zeroed(REPOSITORY_CHUNK_MAX);
    buffer_append_byte(&walk.key, 'p');
    while (!error && !(error = cache_db_next(verify->facts, &walk)) && walk.found &&
           walk.key.bytes[0] == 'p')
        error = check_pack(&checking, &walk);
    if (!error)
        error = report_missing(verify);
    memory_cleanup(&checking.chunk);
    buffer_clear(&checking.pack);
    buffer_clear(&checking.list);
    buffer_clear(&checking.work);
    return error;
}
