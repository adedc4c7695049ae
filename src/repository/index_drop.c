/* SPDX-License-Identifier: Apache-2.0 */
/* Index objects without some of their packs: see index_drop.h. */
#include "repository/index_drop.h"

static struct error *
put_index(struct index_drop *drop)
{
    struct object_name name;
    if (!drop->index.size)
        return NULL;
    struct error *error = writers_check(drop->repository, drop->own);
    if (!error)
        error = repository_put(drop->repository, OBJECT_INDEX, drop->index.bytes, drop->index.size,
                               &name);
    drop->index.size = 0;
    drop->entries = 0;
    return error;
}

static bool
is_dropped(const struct index_drop *drop, const struct index_pack *pack)
{
    bool is_mark = !pack->size && drop->leaves_marks;
    return !is_mark && id_set_has(&drop->packs, pack->name.bytes);
}

/* Whether the index names a pack that is to be dropped. */
static bool
is_affected(const struct index_drop *drop, const struct buffer *index)
{
    struct index_pack pack;
    size_t at = 0;
    bool found = true, is = false;
    while (found && !is) {
        error_free(index_next(index, &at, &pack, &found));
        is = found && is_dropped(drop, &pack);
    }
    return is;
}

static struct error *
keep_pack(struct index_drop *drop, struct index_pack *pack)
{
    if (is_dropped(drop, pack)) {
        if (!drop->leaves_marks)
            return NULL;
        pack->size = pack->count = 0;
    }
    index_append(&drop->index, pack);
    drop->entries += pack->count;
    return drop->entries >= INDEX_ENTRIES ? put_index(drop) : NULL;
}

static struct error *
keep_packs(struct index_drop *drop, const struct buffer *index)
{
    struct error *error = NULL;
    size_t at = 0;
    bool found = true;
    while (!error && found) {
        struct index_pack pack;
        error = index_next(index, &at, &pack, &found);
        if (!error && found)
            error = keep_pack(drop, &pack);
    }
    return error;
}

static struct error *
delete_all(struct index_drop *drop, const struct buffer *names)
{
    struct error *error = writers_check(drop->repository, drop->own);
    for (size_t at = 0; at < names->size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(names, at);
        error = objects_delete(drop->repository->objects, OBJECT_INDEX, &name);
    }
    return error;
}

struct error *
index_drop_run(struct index_drop *drop)
{
    struct repository *repository = drop->repository;
    struct buffer names AUTO(buffer_clear) = {0}, old AUTO(buffer_clear) = {0};
    struct buffer index AUTO(buffer_clear) = {0};
    struct error *error = objects_list_names(repository->objects, OBJECT_INDEX, &names);
    for (size_t at = 0; at < names.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&names, at);
        error = writers_refresh(repository, drop->own);
        if (!error)
            error = repository_load(repository, OBJECT_INDEX, &name, &index);
        if (error || !is_affected(drop, &index))
            continue;
        error = keep_packs(drop, &index);
        buffer_append(&old, name.bytes, sizeof name.bytes);
    }
    if (!error)
        error = put_index(drop);
    return error ? error : delete_all(drop, &old);
}

void
index_drop_clear(struct index_drop *drop)
{
    id_set_clear(&drop->packs);
    buffer_clear(&drop->index);
}
