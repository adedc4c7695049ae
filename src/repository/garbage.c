/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage and witness objects: rows of names, 32 bytes each. See garbage.h. */
#include "repository/garbage.h"

#include <string.h>

#include "repository/writers.h"

struct error *
garbage_load_one(struct repository *repository, const struct object_name *name,
                 struct id_set *packs)
{
    struct buffer body AUTO(buffer_clear) = {0};
    struct error *error = repository_load(repository, OBJECT_GARBAGE, name, &body);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    for (size_t at = 0; at + OBJECT_NAME_BYTES <= body.size; at += OBJECT_NAME_BYTES)
        id_set_add(packs, body.bytes + at);
    return NULL;
}

struct error *
garbage_load(struct repository *repository, struct id_set *packs, struct buffer *names)
{
    struct buffer found AUTO(buffer_clear) = {0};
    struct error *error = objects_list_names(repository->objects, OBJECT_GARBAGE, &found);
    for (size_t at = 0; at < found.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&found, at);
        error = garbage_load_one(repository, &name, packs);
    }
    if (names)
        buffer_append(names, found.bytes, found.size);
    return error;
}

static struct error *
drop_if_damaged(struct repository *repository, const struct object_name *name)
{
    struct buffer body AUTO(buffer_clear) = {0};
    struct error *error = repository_load(repository, OBJECT_GARBAGE, name, &body);
    if (!error || error->code != CODE_DATA_LOSS)
        return error_forgive(error, CODE_NOT_FOUND);
    if (repository->log)
        log_warn(repository->log, "a damaged list of packs to be deleted is made anew",
                 LOG_TEXT("error", error->message));
    error_free(error);
    return garbage_remove(repository, name);
}

struct error *
garbage_drop_damaged(struct repository *repository)
{
    struct buffer names AUTO(buffer_clear) = {0};
    struct error *error = objects_list_names(repository->objects, OBJECT_GARBAGE, &names);
    for (size_t at = 0; at < names.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&names, at);
        error = drop_if_damaged(repository, &name);
    }
    return error;
}

struct error *
garbage_put(struct repository *repository, const struct buffer *packs)
{
    struct error *error = NULL;
    for (size_t at = 0; at < packs->size && !error;) {
        struct object_name name;
        size_t size = packs->size - at, most = (size_t)GARBAGE_PACKS_MAX * OBJECT_NAME_BYTES;
        if (size > most)
            size = most;
        error = repository_put(repository, OBJECT_GARBAGE, packs->bytes + at, size, &name);
        at += size;
    }
    return error;
}

/* ---- witnesses ---- */

struct witnesses {
    struct repository *repository;
    const struct object_name *own;
    struct buffer names;
};

static struct error *
note_writer(const struct writers_found *writer, void *context)
{
    struct witnesses *witnesses = context;
    if (!writer->is_dead &&
        memcmp(writer->name.bytes, witnesses->own->bytes, sizeof writer->name.bytes) != 0)
        buffer_append(&witnesses->names, writer->name.bytes, sizeof writer->name.bytes);
    return NULL;
}

static struct error *
make_witness(struct witnesses *witnesses, const struct object_name *name)
{
    struct repository *repository = witnesses->repository;
    struct buffer object AUTO(buffer_clear) = {0};
    struct error *error = writers_list(repository, note_writer, witnesses);
    if (!error)
        error = repository_seal(repository->sealing, OBJECT_WITNESS, witnesses->names.bytes,
                                witnesses->names.size, &object);
    if (!error)
        error = objects_put(repository->objects, OBJECT_WITNESS, name, object.bytes, object.size,
                            OBJECTS_NOW);
    return error;
}

/* Writers that were taken for dead have no object: prune has removed it. */
static struct error *
have_ended(struct repository *repository, const struct buffer *names, bool *have)
{
    struct error *error = NULL;
    *have = true;
    for (size_t at = 0; at + OBJECT_NAME_BYTES <= names->size && *have && !error;
         at += OBJECT_NAME_BYTES) {
        uint64_t size;
        struct object_name name = objects_name_at(names, at);
        error = objects_size(repository->objects, OBJECT_WRITER, &name, &size);
        *have = error && error->code == CODE_NOT_FOUND;
        error = error_forgive(error, CODE_NOT_FOUND);
    }
    return error;
}

struct error *
garbage_is_free(struct repository *repository, const struct object_name *name,
                const struct object_name *own, bool *is_free)
{
    struct witnesses witnesses = {.repository = repository, .own = own};
    struct error *error = repository_load(repository, OBJECT_WITNESS, name, &witnesses.names);
    /* One that is damaged is made anew: the writers of today are as good. */
    if (error && (error->code == CODE_NOT_FOUND || error->code == CODE_DATA_LOSS)) {
        bool is_damaged = error->code == CODE_DATA_LOSS;
        error_free(error);
        witnesses.names.size = 0;
        error = is_damaged ? objects_delete(repository->objects, OBJECT_WITNESS, name) : NULL;
        if (!error)
            error = make_witness(&witnesses, name);
    }
    if (!error)
        error = have_ended(repository, &witnesses.names, is_free);
    buffer_clear(&witnesses.names);
    return error;
}

struct error *
garbage_remove(struct repository *repository, const struct object_name *name)
{
    /* A garbage object without a witness gets a new one; nobody looks for the opposite. */
    struct error *error = objects_delete(repository->objects, OBJECT_WITNESS, name);
    return error ? error : objects_delete(repository->objects, OBJECT_GARBAGE, name);
}
