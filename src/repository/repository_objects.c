/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of one sealed piece: all but packs. */
#include <string.h>

#include "repository/repository_internal.h"

static bool
is_named_by_contents(enum object_kind kind)
{
    return kind == OBJECT_PACK || kind == OBJECT_INDEX || kind == OBJECT_SNAPSHOT ||
           kind == OBJECT_GARBAGE;
}

struct error *
repository_seal(const struct sealing *sealing, enum object_kind kind, const void *bytes,
                size_t size, struct buffer *out)
{
    struct sealing_key key;
    out->size = 0;
    uint8_t *to = buffer_reserve(out, SEALING_HEADER_BYTES + size + SEALING_TAG_BYTES);
    struct error *error = sealing_begin(sealing, kind, to, &key);
    if (!error)
        error = sealing_seal(sealing, &key, SEALING_HEADER_BYTES, bytes, size,
                             to + SEALING_HEADER_BYTES);
    if (!error)
        out->size = SEALING_HEADER_BYTES + size + SEALING_TAG_BYTES;
    return error;
}

struct error *
repository_put(struct repository *repository, enum object_kind kind, const void *bytes, size_t size,
               struct object_name *name)
{
    struct buffer object AUTO(buffer_clear) = {0};
    struct error *error = repository_seal(repository->sealing, kind, bytes, size, &object);
    if (!error)
        error = sealing_name(repository->sealing, object.bytes, object.size, name);
    if (!error)
        error =
            objects_put(repository->objects, kind, name, object.bytes, object.size, OBJECTS_NOW);
    return error;
}

static struct error *
check_name(const struct sealing *sealing, enum object_kind kind, const struct object_name *name,
           const struct buffer *bytes)
{
    struct object_name actual;
    if (!is_named_by_contents(kind))
        return NULL;
    struct error *error = sealing_name(sealing, bytes->bytes, bytes->size, &actual);
    if (!error && memcmp(actual.bytes, name->bytes, sizeof actual.bytes) != 0)
        error = error_new(CODE_DATA_LOSS, "its contents do not have this name");
    return error;
}

static struct error *
read_bytes(struct repository *repository, enum object_kind kind, const struct object_name *name,
           struct buffer *out)
{
    uint64_t size;
    out->size = 0;
    struct error *error = objects_size(repository->objects, kind, name, &size);
    if (error)
        return error;
    if (size > OBJECT_BYTES_MAX)
        return error_new(CODE_DATA_LOSS, "it has %llu bytes, more than any object",
                         (unsigned long long)size);
    error = objects_get(repository->objects, kind, name, 0, buffer_reserve(out, size + 1), size);
    if (!error)
        out->size = size;
    return error;
}

static struct error *
name_in(struct error *error, enum object_kind kind, const struct object_name *name)
{
    char key[OBJECT_KEY_BYTES];
    object_key_print(kind, name, key);
    return error_wrap(error, "the object %s", key);
}

struct error *
repository_load_bytes(struct repository *repository, enum object_kind kind,
                      const struct object_name *name, struct buffer *out)
{
    struct error *error = read_bytes(repository, kind, name, out);
    if (!error)
        error = name_in(check_name(repository->sealing, kind, name, out), kind, name);
    return error;
}

struct error *
repository_load_pack(struct repository *repository, const struct object_name *name,
                     struct buffer *out, struct error **damage)
{
    *damage = NULL;
    struct error *error = read_bytes(repository, OBJECT_PACK, name, out);
    if (!error)
        error = name_in(check_name(repository->sealing, OBJECT_PACK, name, out), OBJECT_PACK, name);
    if (error && error->code == CODE_DATA_LOSS && out->size) {
        *damage = error;
        error = NULL;
    }
    return error;
}

static struct error *
open_object(const struct sealing *sealing, enum object_kind kind, struct buffer *object)
{
    struct sealing_key key;
    if (object->size < SEALING_HEADER_BYTES + SEALING_TAG_BYTES)
        return error_new(CODE_DATA_LOSS, "it has only %zu bytes", object->size);
    size_t size = object->size - SEALING_HEADER_BYTES - SEALING_TAG_BYTES;
    uint8_t *sealed = object->bytes + SEALING_HEADER_BYTES;
    struct error *error = sealing_read_header(sealing, kind, object->bytes, &key);
    if (!error)
        error = sealing_open(sealing, &key, SEALING_HEADER_BYTES, sealed, size, sealed);
    if (!error) {
        memmove(object->bytes, sealed, size);
        object->size = size;
    }
    return error;
}

struct error *
repository_load(struct repository *repository, enum object_kind kind,
                const struct object_name *name, struct buffer *out)
{
    struct error *error = repository_load_bytes(repository, kind, name, out);
    if (!error)
        error = name_in(open_object(repository->sealing, kind, out), kind, name);
    return error;
}
