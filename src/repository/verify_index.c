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
    if (error && error->code == CODE_NOT_FOUND)
        return error_forgive(error, CODE_NOT_FOUND);
    return verify_take(context, OBJECT_INDEX, name, error);
}

struct error *
verify_sync(struct verify *verify)
{
    struct locations_source source = {.objects = verify->repository->objects,
                                      .load = load_index,
                                      .tolerate = take_index_error,
                                      .context = verify};
    return locations_sync(verify->locations, &source);
}
