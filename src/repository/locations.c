/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local copy of the index: see locations.h. The first byte of a key says what the row is:
 *
 *     'c' id        where the chunk is: number of the pack, offset, stored size, raw size
 *     'p' number    the pack: name, salt, size
 *     'n' name      the pack's number
 *     'i' name      the index object has been read; with a byte: its reading has begun
 *
 * An index object whose reading was interrupted is read again. If it is no longer there, everything
 * is made anew: rows of it could tell of packs that are gone.
 */
#include "repository/locations.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "repository/bytes.h"
#include "store/cache_db.h"

#define MEMORY_KIB 4096u
#define CHUNK_BYTES 16u
#define PACK_BYTES 68u

struct locations {
    struct cache_db *db;
    pthread_rwlock_t lock; /* whoever changes it has it alone */
    uint32_t packs;        /* the highest number of a pack */
    struct id_set lost;    /* packs that were not there */
};

struct row_key {
    uint8_t bytes[1 + OBJECT_NAME_BYTES];
};

static struct row_key
key_of(char type, const void *name)
{
    struct row_key key;
    key.bytes[0] = (uint8_t)type;
    memcpy(key.bytes + 1, name, OBJECT_NAME_BYTES);
    return key;
}

/* Numbers are sorted as bytes, so the highest byte comes first. */
static void
number_key(uint32_t number, uint8_t key[5])
{
    key[0] = 'p';
    number = htobe32(number);
    memcpy(key + 1, &number, sizeof number);
}

/* ---- opening ---- */

static struct error *
count_packs(struct locations *locations)
{
    uint8_t key[5];
    uint32_t packs = 0;
    struct error *error = NULL;
    /* Numbers are given without gaps. */
    for (uint32_t step = UINT32_C(1) << 31; step && !error; step >>= 1) {
        uint8_t value[PACK_BYTES];
        bool found = false;
        number_key(packs + step, key);
        error = cache_db_get(locations->db, key, sizeof key, value, sizeof value, &found);
        if (found)
            packs += step;
    }
    if (!error)
        locations->packs = packs;
    return error;
}

/* With the lock. A change that failed may have undone others: their numbers are free again. */
static struct error *
count_again(struct locations *locations, struct error *error)
{
    if (error)
        error_free(count_packs(locations));
    return error;
}

static struct error *
open_file(const char *directory, const char *repository_id, struct cache_db **out)
{
    struct buffer path AUTO(buffer_clear) = {0};
    struct error *error = files_make_path(directory);
    if (error)
        return error;
    buffer_print(&path, "%s/%s.index", directory, repository_id);
    return cache_db_open(buffer_text(&path), MEMORY_KIB, out);
}

/* Takes the database. */
static struct error *
open_on(struct cache_db *db, struct locations **out)
{
    struct locations *locations = memory_zeroed(sizeof *locations);
    pthread_rwlock_init(&locations->lock, NULL);
    locations->db = db;
    struct error *error = count_packs(locations);
    if (error)
        locations_close(STEAL(locations));
    *out = locations;
    return error;
}

struct error *
locations_open_temporary(const char *directory, struct locations **out)
{
    struct cache_db *db = NULL;
    *out = NULL;
    struct error *error = cache_db_open_temporary(directory, MEMORY_KIB, &db);
    return error ? error : open_on(db, out);
}

struct error *
locations_open(const char *directory, const char *repository_id, struct locations **out)
{
    struct cache_db *db = NULL;
    *out = NULL;
    if (!directory)
        return locations_open_temporary("/tmp", out);
    struct error *error = open_file(directory, repository_id, &db);
    if (error)
        return error;
    return db ? open_on(db, out) : locations_open_temporary(directory, out);
}

void
locations_close(struct locations *locations)
{
    if (!locations)
        return;
    cache_db_close(locations->db);
    id_set_clear(&locations->lost);
    pthread_rwlock_destroy(&locations->lock);
    free(locations);
}

/* ---- finding ---- */

static struct error *
find_pack(struct locations *locations, uint32_t number, struct location *out)
{
    uint8_t key[5], value[PACK_BYTES];
    bool found;
    number_key(number, key);
    struct error *error = cache_db_get(locations->db, key, sizeof key, value, sizeof value, &found);
    if (!error && !found)
        error = error_new(CODE_INTERNAL, "the local index has no pack %u: remove its file", number);
    if (error)
        return error;
    memcpy(out->pack.bytes, value, sizeof out->pack.bytes);
    memcpy(out->salt, value + 32, sizeof out->salt);
    out->size = bytes_get32(value + 64);
    out->is_lost = id_set_has(&locations->lost, value);
    return NULL;
}

/* With the lock, shared. */
static struct error *
find(struct locations *locations, const struct repository_id *id, struct location *out, bool *found)
{
    uint8_t value[CHUNK_BYTES];
    struct row_key key = key_of('c', id->bytes);
    struct error *error =
        cache_db_get(locations->db, key.bytes, sizeof key.bytes, value, sizeof value, found);
    if (error || !*found)
        return error;
    out->entry = (struct pack_entry){.id = *id,
                                     .offset = bytes_get32(value + 4),
                                     .stored = bytes_get32(value + 8),
                                     .raw = bytes_get32(value + 12)};
    return find_pack(locations, bytes_get32(value), out);
}

struct error *
locations_find(struct locations *locations, const struct repository_id *id, struct location *out,
               bool *found)
{
    pthread_rwlock_rdlock(&locations->lock);
    struct error *error = find(locations, id, out, found);
    pthread_rwlock_unlock(&locations->lock);
    return error;
}

/* ---- adding ---- */

static struct error *
number_pack(struct locations *locations, const struct index_pack *pack, uint32_t *number)
{
    uint8_t value[PACK_BYTES], digits[4], key[5];
    bool found;
    struct row_key name = key_of('n', pack->name.bytes);
    struct error *error =
        cache_db_get(locations->db, name.bytes, sizeof name.bytes, digits, sizeof digits, &found);
    if (error || found) {
        *number = found ? bytes_get32(digits) : 0;
        return error;
    }
    *number = ++locations->packs;
    number_key(*number, key);
    memcpy(value, pack->name.bytes, 32);
    memcpy(value + 32, pack->salt, 32);
    bytes_set32(value + 64, pack->size);
    bytes_set32(digits, *number);
    error = cache_db_put(locations->db, key, sizeof key, value, sizeof value);
    if (!error)
        error = cache_db_put(locations->db, name.bytes, sizeof name.bytes, digits, sizeof digits);
    return error;
}

static struct error *
add_pack(struct locations *locations, const struct index_pack *pack, const struct id_set *garbage)
{
    uint32_t number;
    bool is_lost = id_set_has(&locations->lost, pack->name.bytes), is_new;
    bool is_garbage = garbage && id_set_has(garbage, pack->name.bytes);
    struct error *error = number_pack(locations, pack, &number);
    for (uint32_t i = 0; i < pack->count && !error; i++) {
        struct pack_entry entry = index_entry(pack, i);
        struct row_key key = key_of('c', entry.id.bytes);
        uint8_t value[CHUNK_BYTES];
        bytes_set32(value, number);
        bytes_set32(value + 4, entry.offset);
        bytes_set32(value + 8, entry.stored);
        bytes_set32(value + 12, entry.raw);
        if (is_garbage || is_lost)
            error = cache_db_add(locations->db, key.bytes, sizeof key.bytes, value, sizeof value,
                                 &is_new);
        else
            error = cache_db_put(locations->db, key.bytes, sizeof key.bytes, value, sizeof value);
    }
    return error;
}

/* With the lock. */
static struct error *
add(struct locations *locations, const struct object_name *name, const struct buffer *index,
    const struct id_set *garbage)
{
    size_t at = 0;
    bool found = true;
    struct row_key key = key_of('i', name->bytes);
    struct error *error = cache_db_put(locations->db, key.bytes, sizeof key.bytes, "", 1);
    while (!error && found) {
        struct index_pack pack;
        error = index_next(index, &at, &pack, &found);
        if (!error && found)
            error = add_pack(locations, &pack, garbage);
    }
    if (!error)
        error = cache_db_put(locations->db, key.bytes, sizeof key.bytes, "", 0);
    return error;
}

struct error *
locations_add(struct locations *locations, const struct object_name *name,
              const struct buffer *index)
{
    pthread_rwlock_wrlock(&locations->lock);
    struct error *error = count_again(locations, add(locations, name, index, NULL));
    pthread_rwlock_unlock(&locations->lock);
    return error;
}

/* ---- the same as in the repository ---- */

struct sync {
    struct locations *locations;
    const struct locations_source *source;
    struct buffer index;
    uint64_t listed; /* index objects that have been read, now or before */
    bool has_gone;   /* one that was listed: others may be new that were not */
};

/* An index that cannot be read is empty here, and is not marked as read. */
static struct error *
load(struct sync *sync, const struct object_name *name, bool *is_loaded)
{
    const struct locations_source *source = sync->source;
    struct error *error = source->load(source->context, name, &sync->index);
    *is_loaded = !error;
    /* Prune has replaced it after it was listed. */
    sync->has_gone |= error && error->code == CODE_NOT_FOUND;
    error = error_forgive(error, CODE_NOT_FOUND);
    if (error && source->tolerate)
        error = source->tolerate(source->context, name, error);
    return error;
}

static struct error *
sync_one(const struct object_name *name, uint64_t size, void *context)
{
    struct sync *sync = context;
    struct row_key key = key_of('i', name->bytes);
    bool found;
    (void)size;
    struct error *error =
        cache_db_get(sync->locations->db, key.bytes, sizeof key.bytes, NULL, 0, &found);
    if (error)
        return error;
    bool is_loaded = false;
    if (!found)
        error = load(sync, name, &is_loaded);
    if (is_loaded)
        error = add(sync->locations, name, &sync->index, sync->source->garbage);
    sync->listed += found || is_loaded;
    return error;
}

static struct error *
count_read(struct locations *locations, uint64_t *out)
{
    struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
    struct error *error;
    *out = 0;
    buffer_append_byte(&walk.key, 'i');
    while (!(error = cache_db_next(locations->db, &walk)) && walk.found && walk.key.bytes[0] == 'i')
        ++*out;
    return error;
}

/*
 * With the lock. `*is_same` is false if an index object is no longer there that was listed, or read
 * earlier, at least in part.
 */
static struct error *
sync_all(struct locations *locations, const struct locations_source *source, bool *is_same)
{
    struct sync sync = {.locations = locations, .source = source};
    uint64_t read = 0;
    struct error *error = objects_list(source->objects, OBJECT_INDEX, sync_one, &sync);
    if (!error)
        error = count_read(locations, &read);
    *is_same = read == sync.listed && !sync.has_gone;
    buffer_clear(&sync.index);
    return error ? error : cache_db_commit(locations->db);
}

/* With the lock. */
static struct error *
make_anew(struct locations *locations, const struct locations_source *source)
{
    bool is_same;
    struct error *error = cache_db_drop(locations->db);
    locations->packs = 0;
    return error ? error : sync_all(locations, source, &is_same);
}

struct error *
locations_sync(struct locations *locations, const struct locations_source *source)
{
    bool is_same = true;
    pthread_rwlock_wrlock(&locations->lock);
    struct error *error = sync_all(locations, source, &is_same);
    if (!error && !is_same)
        error = make_anew(locations, source);
    error = count_again(locations, error);
    pthread_rwlock_unlock(&locations->lock);
    return error;
}

/* ---- packs that are lost ---- */

struct looking {
    struct locations *locations;
    uint8_t *there; /* a bit for each number of a pack */
};

static struct error *
note_there(const struct object_name *name, uint64_t size, void *context)
{
    struct looking *looking = context;
    struct cache_db *db = looking->locations->db;
    struct row_key key = key_of('n', name->bytes);
    struct location location;
    uint8_t digits[4];
    bool found;
    struct error *error =
        cache_db_get(db, key.bytes, sizeof key.bytes, digits, sizeof digits, &found);
    if (error || !found)
        return error;
    uint32_t number = bytes_get32(digits);
    error = find_pack(looking->locations, number, &location);
    if (!error && location.size == size)
        looking->there[number / 8] |= (uint8_t)(1u << number % 8);
    return error;
}

/* With the lock, shared: numbers stay. */
static struct error *
find_lost(struct locations *locations, const struct locations_source *source, struct id_set *lost,
          size_t *count)
{
    struct looking looking = {locations, memory_zeroed((size_t)locations->packs / 8 + 1)};
    struct error *error = objects_list(source->objects, OBJECT_PACK, note_there, &looking);
    for (uint32_t number = 1; !error && number <= locations->packs; number++) {
        struct location location;
        if (looking.there[number / 8] & 1u << number % 8)
            continue;
        error = find_pack(locations, number, &location);
        if (error)
            break;
        id_set_add(lost, location.pack.bytes);
        *count += !source->garbage || !id_set_has(source->garbage, location.pack.bytes);
    }
    memory_cleanup(&looking.there);
    return error;
}

static bool
has_new(const struct id_set *now, const struct id_set *before)
{
    for (size_t i = 0; i < now->capacity; i++)
        if (now->slots[i].is_used && !id_set_has(before, now->slots[i].id))
            return true;
    return false;
}

/* Takes the set. Chunks of packs that are newly lost may be elsewhere. */
static struct error *
set_lost(struct locations *locations, const struct locations_source *source, struct id_set *lost)
{
    pthread_rwlock_wrlock(&locations->lock);
    struct id_set before = locations->lost;
    locations->lost = *lost;
    struct error *error = NULL;
    if (has_new(lost, &before))
        error = count_again(locations, make_anew(locations, source));
    pthread_rwlock_unlock(&locations->lock);
    id_set_clear(&before);
    return error;
}

struct error *
locations_sync_packs(struct locations *locations, const struct locations_source *source,
                     size_t *lost)
{
    struct id_set found = {0};
    *lost = 0;
    struct error *error = locations_sync(locations, source);
    if (error)
        return error;
    pthread_rwlock_rdlock(&locations->lock);
    error = find_lost(locations, source, &found, lost);
    pthread_rwlock_unlock(&locations->lock);
    if (!error)
        return set_lost(locations, source, &found);
    id_set_clear(&found);
    return error;
}

void
locations_lost(struct locations *locations, struct id_set *out)
{
    pthread_rwlock_rdlock(&locations->lock);
    for (size_t i = 0; i < locations->lost.capacity; i++)
        if (locations->lost.slots[i].is_used)
            id_set_add(out, locations->lost.slots[i].id);
    pthread_rwlock_unlock(&locations->lock);
}

struct error *
locations_count(struct locations *locations, uint64_t *chunks, uint64_t *bytes)
{
    struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
    struct error *error;
    *chunks = *bytes = 0;
    buffer_append_byte(&walk.key, 'c');
    while (!(error = cache_db_next(locations->db, &walk)) && walk.found &&
           walk.key.bytes[0] == 'c' && walk.value.size == CHUNK_BYTES) {
        ++*chunks;
        *bytes += bytes_get32(walk.value.bytes + 12);
    }
    return error;
}
