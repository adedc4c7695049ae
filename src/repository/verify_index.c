/* SPDX-License-Identifier: Apache-2.0 */
/* The index objects of a repository that is verified: see verify_internal.h. */
#include <string.h>

#include "repository/bytes.h"
#include "repository/verify_internal.h"

static struct error *
note_pack(struct verify *verify, const struct index_pack *pack)
{
    uint8_t key[1 + OBJECT_NAME_BYTES] = {'p'}, value[5] = {0};
    bool is_new;
    memcpy(key + 1, pack->name.bytes, sizeof pack->name.bytes);
    bytes_set32(value, pack->size);
    struct error *error =
        cache_db_add(verify->facts, key, sizeof key, value, sizeof value, &is_new);
    if (!error && is_new) {
        verify->request->packs++;
        verify->request->chunks += pack->count;
        verify->total += !verify->has_checked;
    }
    return error;
}

static struct error *
load_index(void *context, const struct object_name *name, struct buffer *index)
{
    struct verify *verify = context;
    struct error *error = repository_load(verify->repository, OBJECT_INDEX, name, index);
    size_t at = 0;
    bool found = true;
    while (!error && found) {
        struct index_pack pack;
        error = index_next(index, &at, &pack, &found);
        if (!error && found)
            error = note_pack(verify, &pack);
    }
    return error;
}

/* A prune may replace an index object after it was listed: the next sync reads the new one. */
static struct error *
take_index_error(void *context, const struct object_name *name, struct error *error)
{
    struct verify *verify = context;
    uint8_t key[1 + OBJECT_NAME_BYTES] = {'x'};
    bool is_new = false;
    if (!error || error->code == CODE_NOT_FOUND)
        return error_forgive(error, CODE_NOT_FOUND);
    memcpy(key + 1, name->bytes, sizeof name->bytes);
    struct error *failed = cache_db_add(verify->facts, key, sizeof key, "", 0, &is_new);
    if (!failed && (is_new || error->code != CODE_DATA_LOSS))
        return verify_take(verify, OBJECT_INDEX, name, error);
    error_free(error);
    return failed;
}

static struct locations_source
source_of(struct verify *verify)
{
    return (struct locations_source){.objects = verify->repository->objects,
                                     .load = load_index,
                                     .tolerate = take_index_error,
                                     .context = verify};
}

struct error *
verify_sync(struct verify *verify)
{
    struct locations_source source = source_of(verify);
    return locations_sync(verify->locations, &source);
}

/* A chunk that is in a sound pack, too, is not looked for in one that is lost. */
struct error *
verify_sync_packs(struct verify *verify)
{
    struct locations_source source = source_of(verify);
    size_t lost;
    return locations_sync_packs(verify->locations, &source, &lost);
}
